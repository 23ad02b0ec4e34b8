/*
 * State and functions that the files of the stream fabric share.
 *
 *     stream.c             opening, closing, posting, poll, sleeping
 *     stream_memory.c      registered memory, and what a peer may do with it
 *     stream_item.c        items that are sent, answered or reported, and their queues
 *     stream_connection.c  a connection: its socket, sending
 *     stream_inbound.c     a connection: receiving
 *     stream_peer.c        peers: connecting, disconnecting, reporting a lost one
 *     stream_listener.c    accepted connections that do not belong to a peer yet
 *
 * Thread: the progress thread owns all of it.
 */
#ifndef PWC_FABRIC_STREAM_PRIVATE_H
#define PWC_FABRIC_STREAM_PRIVATE_H

#include <sys/socket.h>
#include "daemon/fabric/places.h"
#include "daemon/fabric/stream/stream.h"

#define STREAM_NOBODY UINT32_MAX
#define STREAM_BUFFER 16384u /* bytes for data received before its place is known */

#define STREAM_HOT 2u /* connections that are read without asking the kernel first */

#define STREAM_FRAME sizeof(struct stream_frame)
/* A connection sends and receives so many bytes in one turn; then other connections have theirs. */
#define STREAM_TURN (1u << 20)
/* The most bytes of an answer that one frame carries. */
#define STREAM_PIECE (256u << 10)

#define STREAM_ARRIVALS 1024u /* most arrivals that are not delivered yet */

/* ---- items ----------------------------------------------------------------------------------- */

/*
 * A frame to send, an operation of ours that waits for its answer, or one that has ended. An item
 * is in one queue at a time: a connection's `posted`, `answers`, `out` or `awaiting`, or the
 * fabric's `ended` or `free`.
 */
struct stream_item {
    struct stream_item *next;
    struct stream_frame frame;
    const uint8_t *payload; /* WRITE, DATA: the bytes to send */
    uint8_t *destination;   /* READ: the place of the bytes that have not come yet */
    uint64_t rest;          /* DATA: bytes of the answer after this frame; READ: bytes that have not
                             * come */
    uint64_t sent;          /* sent bytes of frame and payload; in a joined item: the position of
                             * its end in the frame */
    struct stream_item *joined; /* WRITE: list of the writes whose payloads are also in its frame,
                                 * in order */
    uint64_t cookie;
    uint32_t memory; /* the memory that payload or destination is in */
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
/* Takes a free item; NULL: there is no memory for more. */
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
    struct places places; /* a place is free again when FABRIC_DROPPED is delivered */
    uint32_t count;
    uint64_t index_mask; /* the bits of a key that are the index */
    uint32_t due_head, due_tail;
};

struct stream;

int stream_memories_open(struct stream_memories *memories, uint32_t count);
void stream_memories_close(struct stream_memories *memories);
int stream_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                   uint64_t cookie);
int stream_mem_drop(struct fabric *fabric, uint32_t index, uint64_t cookie);
/* Delivers the events that wait for no arrival; `delivered` is the head of the arrivals. */
int stream_memories_deliver(struct stream_memories *memories, uint32_t delivered,
                            struct fabric_event *events, int room);
/* Whether our memory with this index contains the range. */
bool stream_memory_holds(const struct stream_memories *memories, uint32_t index, const void *at,
                         uint64_t length);
/* Finds the place that a peer's frame names, and its memory's index; NULL: the frame may not use
 * it. */
uint8_t *stream_memory_named(const struct stream_memories *memories,
                             const struct stream_frame *frame, uint32_t access, uint32_t *index);

/* ---- connections ----------------------------------------------------------------------------- */

/* The frame that is being received. */
struct stream_inbound {
    struct stream_frame frame;
    uint32_t got;    /* bytes of the frame's head; where it is complete, the payload follows */
    uint32_t memory; /* the memory that `to` is in */
    uint64_t left;   /* bytes of the payload that have not come */
    uint8_t *to;     /* the place of the next byte; NULL: the payload was refused, and is skipped */
    bool copied;     /* the kernel cannot write to the place, so the payload is copied from the
                      * buffer */
};

struct stream_connection {
    int socket;
    uint32_t peer; /* STREAM_NOBODY: the connection is the listener's */
    bool connecting;
    bool readable;     /* until a read finds that the socket is empty */
    bool writable;     /* until a send finds that the socket is full */
    bool hung;         /* the other side has ended, or there is an error, which a read will
                        * return */
    bool due;          /* in the chain of connections that may have work */
    bool blocked;      /* has something to send, and the socket is full */
    uint32_t cold;     /* reads in a row without data, while hot */
    uint32_t asked_at; /* number of the poll after which a read was posted last */
    struct stream_connection *next_due, *previous_due;
    struct stream_inbound in;
    struct stream_queue posted;  /* our writes and reads, in order */
    struct stream_queue answers; /* our answers to the peer's operations, in order */
    /* The operations that leave next, from `posted` and `answers` in turns. */
    struct stream_queue out;
    uint32_t out_count;
    uint64_t out_bytes; /* bytes of items in `out` */
    int64_t lead;       /* how many more bytes were chosen from `posted` than from `answers`, while
                         * both wait */
    bool answering;     /* a part of a long answer is in `out`, and later answers wait */
    struct stream_queue awaiting;
    uint32_t answers_due;     /* our answers to the peer, in `answers` or `out` */
    uint32_t answers_awaited; /* the peer's answers to our items in `posted`, `out` or `awaiting` */
    /* Used by the listener. */
    struct stream_connection *next_waiting;
    struct stream_greeting greeting;
    uint32_t greeted; /* bytes of the greeting that have come */
};

/* As socket(2): a TCP socket that does not block, and whose connections do not pace what they send.
 * Accepted connections inherit this from their listening socket. */
int stream_socket(int family);

/* Takes over the socket, also where the call fails. */
int stream_connection_open(struct stream *s, int socket, bool connecting,
                           struct stream_connection **out);
/* Sets the options of a connected socket that belongs to a peer. */
void stream_connection_tune(const struct stream_connection *c);
/* Closes the connection, and ends its items with the status. */
void stream_connection_close(struct stream *s, struct stream_connection *c, int status);
void stream_connection_due(struct stream *s, struct stream_connection *c);
/* Sends as much as the socket has room for, in one turn. */
void stream_connection_flush(struct stream *s, struct stream_connection *c);
/* Receives what has arrived. Returns 0, or why the connection has to end. */
int stream_receive(struct stream *s, struct stream_connection *c);
/* Acts on what the kernel has reported: connected, writable, readable. May close the connection. */
void stream_connection_progress(struct stream *s, struct stream_connection *c);
/* Whether an operation of the connection uses this memory. */
bool stream_connection_uses(const struct stream_connection *c, uint32_t memory);

/* ---- peers ----------------------------------------------------------------------------------- */

struct stream_peer {
    struct stream_connection *connection;
    uint8_t token[STREAM_TOKEN];
    int broken;      /* why the peer is lost; 0: it is not */
    uint32_t behind; /* tail of the arrivals when the peer was lost; earlier arrivals are delivered
                      * first */
    uint32_t next_broken;
    bool in_broken_chain;
    bool connected;      /* the caller has connected the peer */
    bool awaited;        /* the peer is to connect to us */
    uint32_t operations; /* ours, of this link and earlier ones, until their events are delivered */
};

struct stream_peers {
    struct stream_peer *table;
    uint32_t count;
    uint32_t awaited; /* how many are to connect to us */
    uint32_t broken_head;
};

int stream_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address);
int stream_disconnect(struct fabric *fabric, uint32_t peer);
/* Notes that the transport lost the peer: closes its connection, and reports the loss once. */
void stream_peer_broken(struct stream *s, uint32_t peer, int status);
/* Delivers the events that wait for no arrival; `delivered` is the head of the arrivals. */
int stream_peers_deliver(struct stream_peers *peers, uint32_t delivered,
                         struct fabric_event *events, int room);
/* Gives a connection that has greeted to its peer. */
void stream_peer_greeted(struct stream *s, struct stream_connection *c);

/* ---- the listener ---------------------------------------------------------------------------- */

struct stream_listener {
    int socket;
    int timer; /* starts the next look, after a look that has accepted connections or has failed */
    struct sockaddr_storage address;
    socklen_t address_size;
    uint8_t token[STREAM_TOKEN];
    struct stream_connection *waiting; /* the oldest first */
    uint32_t silent, greeted;          /* waiting connections without, and with, a greeting */
};

int stream_listener_open(struct stream *s, const struct stream_config *config);
void stream_listener_close(struct stream *s);
/* Accepts a few connections, after the set has reported the listening socket or its timer. */
void stream_listener_look(struct stream *s);
/* Accepts at most `most` connections. Returns their number, or a negative errno. */
int stream_listener_accept(struct stream *s, uint32_t most);
/* Reads the greeting of an accepted connection. May close it. */
void stream_listener_read(struct stream *s, struct stream_connection *c);
/* Takes the connection that greeted as `origin` from the listener; NULL: none waits. */
struct stream_connection *stream_listener_take(struct stream *s,
                                               const uint8_t origin[STREAM_TOKEN]);
int stream_address(struct fabric *fabric, struct fabric_address *out);

/* ---- the fabric ------------------------------------------------------------------------------ */

struct stream_arrival {
    uint32_t peer; /* STREAM_NOBODY: its connection has ended */
    uint32_t immediate;
};

struct stream {
    struct fabric fabric; /* first */
    int set;              /* an epoll set of all sockets, edge-triggered */
    uint32_t operations;  /* outstanding */
    uint32_t operations_max;
    struct stream_items items;
    struct stream_queue ended;
    struct stream_connection *due_head, *due_tail;
    uint32_t due_count;
    struct stream_connection *hot[STREAM_HOT];
    uint32_t next_hot;
    uint32_t polls;                      /* polls so far; may wrap */
    uint32_t unasked;                    /* polls since the kernel was asked */
    bool slept_on;                       /* the caller slept on the set, so any socket may have
                                          * woken it */
    uint32_t rests;                      /* how many more polls do not read hot sockets, after a
                                          * sleep */
    uint32_t blocked;                    /* how many connections are blocked */
    uint32_t arrival_head, arrival_tail; /* both only grow */
    struct stream_arrival arrivals[STREAM_ARRIVALS];
    struct stream_memories memories;
    struct stream_peers peers;
    struct stream_listener listener;
    _Alignas(64) uint8_t buffer[STREAM_BUFFER];
};

/* Ends an item: an operation's event is due, and an answer of ours is free again. */
static inline void stream_item_ended(struct stream *s, struct stream_item *item, int status)
{
    if (item->event == 0) {
        stream_item_release(&s->items, item);
        return;
    }
    item->status = status;
    stream_queue_push(&s->ended, item);
}

/* Whether there is room for all arrivals of one read. */
static inline bool stream_arrivals_room(const struct stream *s)
{
    return s->arrival_tail - s->arrival_head <= STREAM_ARRIVALS - STREAM_BUFFER / STREAM_FRAME - 2;
}

bool stream_same_token(const uint8_t *a, const uint8_t *b);

#endif
