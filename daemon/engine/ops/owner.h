/*
 * Owners of flows: an owner submits the operations of its flows, and gets their ends. The arena
 * names a flow's owner by kind and handle (state/flows.h). A context of a client is an owner
 * (session/session_owner.c); a part of the engine that submits on its own (submit.h) is an owner of
 * another kind. Each kind has a row of hooks, and only the row knows how the kinds differ.
 *
 * An owner that outlives the process keeps its state in the arena, and changes it in the
 * transactions in which its hooks run. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OWNER_H
#define PWC_ENGINE_OWNER_H

#include "daemon/engine/state/state.h"

/* The user and job in whose name an owner binds, and the endpoint that events of its operations
 * name. */
struct owner_identity {
    uint32_t uid;
    uint64_t origin;
    const char *job;
};

/* A hook that is NULL has nothing to do. */
struct owner_kind {
    /* The head of the list of the owner's flows, in the arena. NULL: the flows stand in
     * e->own_flows. */
    uint32_t *(*flows)(struct engine *e, uint32_t handle);
    /* The client whose turns its operations take, and whose memory they may name. NULL: none. */
    uint32_t (*client)(const struct engine *e, uint32_t handle);
    /* Never NULL. */
    void (*identify)(const struct engine *e, uint32_t handle, struct owner_identity *out);
    /* Within a transaction: a bind has ended. After a failure the remote is free, or with
     * -ESHUTDOWN has no owner any more. */
    void (*bound)(struct engine *e, uint32_t remote, int32_t status);
    /* Within a transaction: an operation has ended, once, with op->status. Operations that end well
     * under SUBMIT_NO_LCE are left to the next hook. */
    void (*ended)(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op);
    /* Within a transaction: `count` operations have ended whose ends are not to be reported;
     * `reserve` bytes were reserved for their events. */
    void (*ended_silently)(struct engine *e, uint32_t handle, uint32_t count, uint64_t reserve);
    /* Within a transaction, which will be committed: `change` is added to the number of operations
     * that have ended and have not left their flows. */
    void (*ended_early)(struct engine *e, uint32_t handle, int64_t change);
    /* Within a transaction: the context at the other end has answered the flow's first bind. */
    void (*peer_answered)(struct engine *e, uint32_t flow);
    /* Within a transaction: the context at the other end of the flow has ended (WIRE_ENDED or an
     * error). */
    void (*peer_ended)(struct engine *e, uint32_t flow, int32_t end);
    /* Within a transaction: as queue_pop, where a chunk is given back. NULL: queue_pop itself. */
    void (*pop)(struct engine *e, uint32_t handle, struct queue *ops, uint32_t n);
    /* After a restart: counts these operations for the owner. */
    void (*inherit)(struct engine *e, uint32_t handle, const struct queue *ops);
};

/* A context of a client; its handle is the session. */
extern const struct owner_kind owner_session;

/* The row of an owner that exists. */
static inline const struct owner_kind *owner_row(const struct engine *e, uint64_t owner)
{
    return e->owners[owner >> 32];
}

static inline uint32_t *owner_flows(struct engine *e, uint64_t owner)
{
    const struct owner_kind *row = owner_row(e, owner);

    return row->flows ? row->flows(e, owner_handle(owner)) : e->own_flows;
}

/* The owner's client; NONE: it has none. */
static inline uint32_t owner_client(const struct engine *e, uint64_t owner)
{
    const struct owner_kind *row = owner_row(e, owner);

    return row->client ? row->client(e, owner_handle(owner)) : NONE;
}

/* Whether the end of an operation is reported: errors are, even under SUBMIT_NO_LCE. */
static inline bool op_reports(const struct op *op)
{
    return op->status != 0 || !(op->flags & SUBMIT_NO_LCE);
}

/* Within a transaction: removes the first `n` entries of the flow. */
static inline void owner_pop(struct engine *e, struct flow *f, uint32_t n)
{
    const struct owner_kind *row;

    if (queue_pop_stays(&f->ops, n)) {
        set64(e, &f->ops.head, f->ops.head + n);
        return;
    }
    row = owner_row(e, f->owner);
    if (row->pop)
        row->pop(e, owner_handle(f->owner), &f->ops, n);
    else
        queue_pop(&e->pool, &f->ops, n);
}

#endif
