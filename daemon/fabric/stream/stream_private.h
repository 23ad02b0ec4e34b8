/*
 * Inside the stream fabric: what its files share.
 *
 *     stream.c             opening, closing, posting, poll, sleeping
 *     stream_memory.c      registered memory, and what a peer may do with it
 *     stream_item.c        items to be sent, awaited or reported, and their queues
 *     stream_connection.c  a connection: its socket, sending
 *     stream_inbound.c     a connection: receiving
 *     stream_peer.c        peers: connecting, disconnecting, reporting a lost one
 *     stream_listener.c    connections not yet known to belong to a peer
 *
 * Thread: the progress thread owns all of it.
 */
#ifndef PWC_FABRIC_STREAM_PRIVATE_H
#define PWC_FABRIC_STREAM_PRIVATE_H

#include <sys/socket.h>
#include "daemon/fabric/stream/stream.h"

#define STREAM_NOBODY UINT32_MAX
#define STREAM_BUFFER 16384u /* bytes for data received before its place is known */

#define STREAM_HOT 2u /* connections that are read without asking whether there is anything */

#define STREAM_FRAME sizeof(struct stream_frame)
/* Bytes sent or received in one turn; then the others have theirs. */
#define STREAM_TURN (1u << 20)
/* The most bytes of an answer that one frame carries. */
#define STREAM_PIECE (256u << 10)

#define STREAM_ARRIVALS 1024u /* arrivals not delivered yet, at most */

/* ---- items ----------------------------------------------------------------------------------- */

/*
 * A frame on its way, an operation of ours that waits for its answer, or one that has ended.
 * An item is in one queue at a time: a connection's `posted`, `answers`, `out` or `awaiting`, the
 * fabric's `ended` or `free`.
 */
struct stream_item {
    struct stream_item *next;
    struct stream_frame frame;
    const uint8_t *payload; /* WRITE, DATA */
    uint8_t *destination;   /* READ: of what has not come yet */
    uint64_t rest;          /* DATA: of the answer, after this frame; READ: that has not come */
    uint64_t sent;          /* of frame and payload; of one that is joined: where its end stands */
    struct stream_item *joined; /* WRITE: those whose payloads go along in its frame, in order */
    uint64_t cookie;
    uint32_t memory; /* that payload or destination is in */
    uint32_t peer;
    int32_t status;
    uint32_t event; /* FABRIC_WRITTEN, FABRIC_READ; 0: an answer of ours, without an event */
};

struct stream_queue {
    struct stream_item *head;
    struct stream_item **tail;
};

struct stream_block;

struct stream_items {
    struct stream_item *free;
    struct stream_block *blocks;
};

int stream_items_open(struct stream_items *items, uint32_t count);
void stream_items_close(struct stream_items *items);
/* NULL: no memory for more. */
struct stream_item *stream_item_take(struct stream_items *items);
void stream_item_release(struct stream_items *items, struct stream_item *item);

static inline void stream_queue_open(struct stream_queue *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

static inline void stream_queue_push(struct stream_queue *queue, struct stream_item *item)
{
    item->next = NULL;
    *queue->tail = item;
    queue->tail = &item->next;
}

static inline void stream_queue_push_front(struct stream_queue *queue, struct stream_item *item)
{
    item->next = queue->head;
    if (!queue->head)
        queue->tail = &item->next;
    queue->head = item;
}

static inline struct stream_item *stream_queue_pop(struct stream_queue *queue)
{
    struct stream_item *item = queue->head;

    queue->head = item->next;
    if (!queue->head)
        queue->tail = &queue->head;
    return item;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct stream_memory {
    uint8_t *base;
    uint64_t length;
    uint64_t key; /* the low bits are the index, the others random */
    uint64_t cookie;
    uint32_t access;
    uint32_t behind; /* tail of the arrivals when the event became due */
    uint32_t event;  /* FABRIC_ADDED or FABRIC_DROPPED that is due; 0: none */
    uint32_t next;   /* next memory with an event due */
    bool live;
};

struct stream_memories {
    struct stream_memory *table;
    uint32_t count;
    uint64_t index_mask; /* of a key */
    uint32_t due_head, due_tail;
};

struct stream;

int stream_memories_open(struct stream_memories *memories, uint32_t count);
void stream_memories_close(struct stream_memories *memories);
int stream_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                   uint64_t cookie);
int stream_mem_drop(struct fabric *fabric, uint32_t index, uint64_t cookie);
/* Delivers the events that no undelivered arrival precedes; `delivered` is the arrivals' head. */
int stream_memories_deliver(struct stream_memories *memories, uint32_t delivered,
                            struct fabric_event *events, int room);
/* Whether memory of ours holds that range. */
bool stream_memory_holds(const struct stream_memories *memories, uint32_t index, const void *at,
                         uint64_t length);
/* The place that a peer's frame names, and its memory's index; NULL where the frame may not use it.
 */
uint8_t *stream_memory_named(const struct stream_memories *memories,
                             const struct stream_frame *frame, uint32_t access, uint32_t *index);

/* ---- connections ----------------------------------------------------------------------------- */

/* The frame being received. */
struct stream_inbound {
    struct stream_frame frame;
    uint32_t got;    /* bytes of the frame; all: its payload is under way */
    uint32_t memory; /* that `to` is in */
    uint64_t left;   /* of the payload */
    uint8_t *to;     /* where it goes; NULL: nowhere, it was refused */
    bool copied;     /* the kernel does not reach the place: by way of the buffer */
};

struct stream_connection {
    int socket;
    uint32_t peer; /* STREAM_NOBODY: with the listener */
    bool connecting;
    bool readable;     /* until a read finds nothing more */
    bool writable;     /* until a write is not taken */
    bool hung;         /* the other side has ended, or an error waits: a read returns it */
    bool due;          /* in the chain of connections to look at */
    bool blocked;      /* has something to send that the socket does not take */
    uint32_t cold;     /* polls since something came */
    uint32_t asked_at; /* the poll after which a read was posted last */
    struct stream_connection *next_due, *previous_due;
    struct stream_inbound in;
    struct stream_queue posted;  /* our writes and reads, in order */
    struct stream_queue answers; /* to theirs, in order */
    /* The operations that leave next, from `posted` and `answers` in turns. */
    struct stream_queue out;
    uint32_t out_count;
    uint64_t out_bytes; /* of what was chosen and is not sent whole */
    int64_t lead;       /* bytes chosen of `posted` more than of `answers`, while both wait */
    bool answering;     /* a long answer is in `out`, by a part of it: those after it wait */
    struct stream_queue awaiting;
    uint32_t answers_due;     /* ours to them: in `answers` or `out` */
    uint32_t answers_awaited; /* theirs to us: in `posted`, `out` or `awaiting` */
    /* The listener's. */
    struct stream_connection *next_waiting;
    struct stream_greeting greeting;
    uint32_t greeted; /* bytes of it */
};

/* Takes the socket over, also when it fails. */
int stream_connection_open(struct stream *s, int socket, bool connecting,
                           struct stream_connection **out);
/* Sets the socket's options, once both ends are known and it is a peer's. */
void stream_connection_tune(const struct stream_connection *c);
/* Ends the connection's items with the status. */
void stream_connection_close(struct stream *s, struct stream_connection *c, int status);
void stream_connection_due(struct stream *s, struct stream_connection *c);
/* Sends what can be sent. */
void stream_connection_flush(struct stream *s, struct stream_connection *c);
/* Takes what has arrived: 0, or why the connection is at its end. */
int stream_receive(struct stream *s, struct stream_connection *c);
/* Acts on what the kernel reported: connected, writable, readable. May close the connection. */
void stream_connection_progress(struct stream *s, struct stream_connection *c);
/* Whether an operation of the connection names that memory. */
bool stream_connection_uses(const struct stream_connection *c, uint32_t memory);

/* ---- peers ----------------------------------------------------------------------------------- */

struct stream_peer {
    struct stream_connection *connection;
    uint8_t token[STREAM_TOKEN];
    int broken;      /* why; 0: it is not */
    uint32_t behind; /* tail of the arrivals when it was lost: they are delivered first */
    uint32_t next_broken;
    bool in_broken_chain;
    bool connected; /* by the caller's connect */
};

struct stream_peers {
    struct stream_peer *table;
    uint32_t count;
    uint32_t broken_head;
};

int stream_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address);
int stream_disconnect(struct fabric *fabric, uint32_t peer);
/* The transport lost the peer: closes its connection and reports it once. */
void stream_peer_broken(struct stream *s, uint32_t peer, int status);
/* Delivers the events that no undelivered arrival precedes; `delivered` is the arrivals' head. */
int stream_peers_deliver(struct stream_peers *peers, uint32_t delivered,
                         struct fabric_event *events, int room);
/* Gives a connection that has greeted to its peer. */
void stream_peer_greeted(struct stream *s, struct stream_connection *c);

/* ---- the listener ---------------------------------------------------------------------------- */

struct stream_listener {
    int socket;
    int timer; /* of the next look, after one that has accepted connections, or could not */
    struct sockaddr_storage address;
    socklen_t address_size;
    uint8_t token[STREAM_TOKEN];
    struct stream_connection *waiting; /* the oldest first */
    uint32_t silent, greeted;          /* waiting connections without, and with, a greeting */
};

int stream_listener_open(struct stream *s, const struct stream_config *config);
void stream_listener_close(struct stream *s);
/* The set has reported the listening socket or its timer: accepts a few connections. */
void stream_listener_look(struct stream *s);
/* Accepts at most this many connections: their number, or a negative errno. */
int stream_listener_accept(struct stream *s, uint32_t most);
/* Reads the greeting of an accepted connection. May close it. */
void stream_listener_read(struct stream *s, struct stream_connection *c);
/* Takes the connection that greeted as `origin` from the listener; NULL: none waits. */
struct stream_connection *stream_listener_take(struct stream *s,
                                               const uint8_t origin[STREAM_TOKEN]);
int stream_address(struct fabric *fabric, struct fabric_address *out);

/* ---- the fabric ------------------------------------------------------------------------------ */

struct stream_arrival {
    uint32_t peer; /* STREAM_NOBODY: of a connection that has ended */
    uint32_t immediate;
};

struct stream {
    struct fabric fabric; /* first */
    int set;              /* epoll: all sockets, edge-triggered */
    uint32_t operations;  /* outstanding */
    uint32_t operations_max;
    struct stream_items items;
    struct stream_queue ended;
    struct stream_connection *due_head, *due_tail;
    uint32_t due_count;
    struct stream_connection *hot[STREAM_HOT];
    uint32_t next_hot;
    uint32_t polls;                      /* so far; it wraps */
    uint32_t unasked;                    /* polls since the kernel was asked */
    bool slept_on;                       /* the caller slept on the set: it may report any socket */
    uint32_t rests;                      /* polls that read no socket unasked, after that */
    uint32_t blocked;                    /* connections that are */
    uint32_t arrival_head, arrival_tail; /* both only grow */
    struct stream_arrival arrivals[STREAM_ARRIVALS];
    struct stream_memories memories;
    struct stream_peers peers;
    struct stream_listener listener;
    _Alignas(64) uint8_t buffer[STREAM_BUFFER];
};

/* An operation has ended, or an answer of ours is out of the way. */
static inline void stream_item_ended(struct stream *s, struct stream_item *item, int status)
{
    if (item->event == 0) {
        stream_item_release(&s->items, item);
        return;
    }
    item->status = status;
    stream_queue_push(&s->ended, item);
}

/* Whether what one read brings can be noted. */
static inline bool stream_arrivals_room(const struct stream *s)
{
    return s->arrival_tail - s->arrival_head <= STREAM_ARRIVALS - STREAM_BUFFER / STREAM_FRAME - 2;
}

bool stream_same_token(const uint8_t *a, const uint8_t *b);

#endif
