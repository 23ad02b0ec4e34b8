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
    struct arrival *a; /* NULL: there is no record, because the message is cut or a get has come */
    struct inflow *in; /* by which the message came; NULL for a get */
    uint32_t inflow;   /* number of `in`, or NONE */
    uint32_t session;
    uint32_t peer;         /* the origin's node; of a get, its target's */
    uint64_t origin;       /* rank and context there */
    struct handled *noted; /* in the arena */
    struct offload *o;     /* NULL: it has gone */
    uint32_t offload;
    uint32_t event;  /* bytes of the default action's event, and for an observed get of a fault's
                      * event */
    bool ran;        /* a handler has run in this call */
    uint64_t latest; /* ns: when the latest run of this call began; 0: runs have no clock */
    uint64_t units;  /* units of the runs that are not charged yet */
    uint64_t begun;  /* ns: when the first of these runs began */
    /* The record's part of the message: all of it, except for a message in several packets. */
    struct packet_bytes bytes;
    uint32_t header; /* bytes of the header, where one is due */
    uint32_t offset; /* where the data of `bytes` begins in the message */
    bool last;
    struct handled h;
};

/* The message that has come by this inflow, with its record. */
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

/* Whether the message may have several packets: a put, or a Long. */
static inline bool work_in_packets(const struct work *m)
{
    return m->h.kind == HANDLER_PUT || m->h.flags & HANDLED_STORED;
}

/* Whether all of the message came in its record. */
static inline bool work_in_record(const struct work *m)
{
    return m->h.kind == HANDLER_MESSAGE && !work_in_packets(m);
}

/* Whether the message's origin has failed, and expects nothing any more. */
static inline bool work_origin_failed(const struct work *m)
{
    return m->h.kind != HANDLER_OBSERVED &&
           m->a->w.op.head.flags & (m->h.kind == HANDLER_PUT ? WIRE_CUT : WIRE_NO_EVENT);
}

/* Within a transaction: notes in the arena how far the message is. */
void work_note(const struct work *m);
/* Continues the message as the arena has noted it. */
void work_resume(struct work *m);
/* Whether no handler has run on the message, nor may have run when an earlier process died. */
bool work_is_untouched(const struct work *m);
/* Whether the client may still have handlers run. */
bool work_client_lives(const struct work *m);

/* Within a transaction that holds the room for the message's end, and which it ends: runs the next
 * handler. Returns 0, or -ENOSPC: the handler has returned AGAIN. */
int work_run(struct work *m);
/* Whether an access of ours to the client's memory has faulted. work_memory_gone: quarantines the
 * client for that, and ends the message. */
bool work_memory_faulted(const struct work *m);
void work_memory_gone(struct work *m);
/* Charges the units of the runs since the last call to the client; or their time where that is
 * more, up to a bound, because the thread may have been preempted. */
void work_charge(struct work *m, uint32_t client);
/* Cuts a message that can't end, after a handler has run on it: drops the rest of it, and the
 * completion handler is next. */
void work_cut(struct work *m);

/* Whether the client gets an event; always for errors. */
bool work_event_due(const struct work *m);
/* Within a transaction: writes the event into the room that was reserved for it. */
void work_post_event(const struct work *m, const struct event_room *where);
/* Within a transaction: closes the message. Its record is about to be consumed, or it ends without
 * one. */
void work_close(const struct work *m);

#endif
