/*
 * A message under way through handlers: a record, or none, with a copy of what its inflow, or a
 * get's entry, notes in the arena. Private to handle.c, which leads a message through its handlers,
 * region_put.c, which knows puts in packets, stored.c, which knows bytes that stand in the region,
 * observe.c, which knows gets of peers, and got.c, which knows those of handlers. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_WORK_H
#define PWC_ENGINE_OFFLOAD_WORK_H

#include "daemon/engine/ledger/records.h"
#include "daemon/engine/offload/run.h"
#include "daemon/engine/session/session.h"

struct work {
    struct engine *e;
    struct arrival *a; /* NULL: there is no record: the message is cut, or a get has come */
    struct inflow *in; /* that it came by; NULL for a get */
    uint32_t inflow;   /* its number, or NONE */
    uint32_t session;
    uint32_t peer;         /* the origin's node; of a get, its target's */
    uint64_t origin;       /* rank and context there */
    struct handled *noted; /* in the arena */
    struct offload *o;     /* NULL: it has gone */
    uint32_t offload;
    uint32_t event; /* bytes of the default action's; of a get that is observed, and of a fault's */
    uint64_t units; /* that its handlers have taken now */
    uint64_t begun; /* ns: the first of them */
    /* The record's part of the message: all of it, but for a put. */
    struct packet_bytes bytes;
    uint32_t header; /* bytes of the header, where one is due */
    uint32_t offset; /* of its data */
    bool last;
    struct handled h;
};

/* The message that has come by this inflow. */
static inline struct work work_by_inflow(struct engine *e, uint32_t inflow, struct arrival *a)
{
    struct inflow *in = &e->inflows[inflow];

    return (struct work){.e = e,
                         .a = a,
                         .in = in,
                         .inflow = inflow,
                         .session = in->session,
                         .peer = in->peer,
                         .origin = in->origin,
                         .noted = &in->handled};
}

/* Bytes of an event about a message. */
#define WORK_EVENT_SIZE event_bytes(sizeof(struct offload_word))

static inline bool work_wants_reply(const struct work *m)
{
    return m->h.kind == HANDLER_MESSAGE && !(m->a->w.op.head.flags & WIRE_NO_REPLY);
}

/* Whether it may be more than one packet: a put, or a Long. */
static inline bool work_in_packets(const struct work *m)
{
    return m->h.kind == HANDLER_PUT || m->h.flags & HANDLED_STORED;
}

/* Whether it is a message that came in its record, whole. */
static inline bool work_in_record(const struct work *m)
{
    return m->h.kind == HANDLER_MESSAGE && !work_in_packets(m);
}

/* Whether its origin has failed: nothing is expected any more. */
static inline bool work_origin_failed(const struct work *m)
{
    return m->h.kind != HANDLER_OBSERVED &&
           m->a->w.op.head.flags & (m->h.kind == HANDLER_PUT ? WIRE_CUT : WIRE_NO_EVENT);
}

/* Within a transaction: the arena knows how far the message is. */
void work_note(const struct work *m);
/* The message as the arena has noted it. */
void work_resume(struct work *m);
/* Whether no handler has run on it. */
bool work_is_untouched(const struct work *m);
/* Whether the client may still have handlers run for it. */
bool work_client_lives(const struct work *m);

/* Within a transaction that holds the room of the message's end, and which it ends: runs the next
 * handler. 0, or -ENOSPC: it has returned AGAIN. */
int work_run(struct work *m);
/* Whether an access of ours to the client's memory has faulted; then the client loses it, and the
 * message ends. */
bool work_memory_faulted(const struct work *m);
void work_memory_gone(struct work *m);
/* The time that the handlers have taken counts where it is more than their units; up to a bound,
 * for the thread may have been switched out. */
void work_charge(const struct work *m, uint32_t client);
/* The message can't end: what is left of it is dropped, and the completion handler is next, where
 * another one has run. */
void work_cut(struct work *m);

/* Whether the client gets an event: of errors always. */
bool work_event_due(const struct work *m);
/* Within a transaction: the event takes the room that was reserved for it. */
void work_post_event(const struct work *m, const struct event_room *where);
/* Within a transaction: the record is about to be consumed, or the message ends without one. */
void work_close(const struct work *m);

#endif
