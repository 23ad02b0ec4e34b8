/* Flows: how operations end, and how flows end (flow.h). Thread: the progress thread. */
#include "daemon/engine/ops/flow.h"

#include <string.h>
#include "daemon/engine/session/direct.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/peer/keepalive.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/watch/steps.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"

/* Whether the operation's local event is due; `head` is the first operation that has not left. */
static bool event_due(const struct op *op, uint64_t slot, uint64_t head)
{
    const struct op_kind *kind = op_row(op);
    /* An event that brings values waits for them. */
    bool copied = ((op->flags & SUBMIT_INLINE && !kind->described) || kind->copied) &&
                  !(op->flags & SUBMIT_FETCH);

    if (op->flags & SUBMIT_LCE_SOURCE && copied && !(op->flags & SUBMIT_NO_LCE) && op->status == 0)
        return true; /* its source was copied at submission */
    if (kind->at_head && slot != head)
        return false;
    return op->phase == OP_PLACED && op->pending == 0;
}

#define FINISH_BATCH 32u /* the most operations that finish in one transaction */

/* The operations that leave a flow in one transaction. */
struct finish {
    uint64_t reported, head; /* the flow's indices after it */
    uint64_t silent_bytes;
    uint32_t silent; /* operations that end without a report; silent_bytes is their event space */
    int64_t early;   /* operations that end and stay, less those that leave after they stayed */
};

/* Reports the end of an operation to the flow's owner. */
static void report(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct owner_kind *row = owner_row(e, e->flows[flow].owner);

    if (row->ended)
        row->ended(e, flow, slot, op);
}

/* Reports to the owner how many operations have ended without a report of their own. */
static void report_silent(struct engine *e, const struct flow *f, uint32_t count, uint64_t bytes)
{
    const struct owner_kind *row = owner_row(e, f->owner);

    if (row->ended_silently)
        row->ended_silently(e, owner_handle(f->owner), count, bytes);
}

/* Reports to the owner how the number of operations that have ended, and stay in their flow, has
 * changed. */
static void report_early(struct engine *e, const struct flow *f, int64_t change)
{
    const struct owner_kind *row = owner_row(e, f->owner);

    if (row->ended_early)
        row->ended_early(e, owner_handle(f->owner), change);
}

/* Ends an operation, with a report if its owner wants one. */
static void finish_end(struct engine *e, uint32_t flow, struct finish *done, struct op *op)
{
    if (op_reports(op)) {
        report(e, flow, done->reported, op);
    } else {
        done->silent += op_count(op);
        done->silent_bytes += op->reserve;
    }
    if (done->reported != done->head || op->phase != OP_PLACED || op->pending > 0) {
        set8(e, &op->ended, 1); /* the operation stays in its flow */
        done->early += op_count(op);
    }
    step_reported(e, flow, done->reported, op);
}

/* Reports the end of the next operation, if its event is due. */
static bool finish_report(struct engine *e, uint32_t flow, struct finish *done)
{
    struct flow *f = &e->flows[flow];
    struct op *op;

    if (done->reported >= f->staged)
        return false;
    op = flow_op(e, f, done->reported);
    if (!op->ended && !event_due(op, done->reported, done->head))
        return false;
    if (!op->ended)
        finish_end(e, flow, done, op);
    done->reported += op->span;
    return true;
}

/* Removes the first operation, if nothing is under way for it. An operation that is to be staged
 * again stays, even if it has ended: `staged` never stands before the head. */
static bool finish_leave(struct engine *e, uint32_t flow, struct finish *done)
{
    struct flow *f = &e->flows[flow];
    struct op *op;

    if (done->head >= done->reported || done->head >= f->staged)
        return false;
    op = flow_op(e, f, done->head);
    if (op->phase != OP_PLACED || op->pending > 0)
        return false;
    if (op->ended)
        done->early -= op_count(op);
    if (op_row(op)->leave)
        op_row(op)->leave(e, flow, op);
    done->head += op->span;
    return true;
}

/* Lets operations end and leave, as many as one transaction may. Returns whether there may be more.
 */
static bool finish_some(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    struct finish done = {.reported = f->reported, .head = f->ops.head};
    uint32_t moves = 0;
    bool more = true;

    /* A batch may make a change for each of its operations. */
    while (more && moves < FINISH_BATCH && arena_has_room(&e->arena)) {
        bool reported = finish_report(e, flow, &done);

        more = finish_leave(e, flow, &done) || reported;
        moves += more;
    }
    if (moves == 0)
        return false;
    if (done.silent > 0)
        report_silent(e, f, done.silent, done.silent_bytes);
    if (done.early != 0)
        report_early(e, f, done.early);
    if (done.reported != f->reported)
        set64(e, &f->reported, done.reported);
    if (done.head != f->ops.head)
        owner_pop(e, f, (uint32_t)(done.head - f->ops.head));
    commit(e);
    return more;
}

void flow_finish(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    uint64_t head = f->ops.head;

    if (f->owner == OWNER_GONE)
        return;
    while (finish_some(e, flow))
        continue;
    if (f->state == FLOW_DEAD &&
        (f->staged < f->ops.tail || (f->traffic == FLOW_REPLIES && queue_count(&f->ops) == 0)))
        table_leaves(e, TABLE_FLOWS, flow); /* more are to end; or its inflow may be gone */
    if (e->flow_live[flow].let_go && queue_count(&f->ops) == 0) {
        e->flow_live[flow].let_go = false;
        e->sweep = true; /* remotes of the flow may be free now */
    }
    /* The next operation may have waited behind a fence, or in a paced flow. */
    if (f->ops.head != head && (f->started == f->ops.head || e->flow_live[flow].paced_to > 0))
        flow_ready(e, flow);
}

/* Reports the end of an UNORDERED operation, which need not wait for the operations before it. */
static void flow_end_early(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (!(op->flags & SUBMIT_UNORDERED) || op->ended || op->phase != OP_PLACED || op->pending > 0 ||
        e->flows[flow].owner == OWNER_GONE)
        return;
    set8(e, &op->ended, 1);
    if (op_reports(op))
        report(e, flow, slot, op);
    else
        report_silent(e, &e->flows[flow], op_count(op), op->reserve);
    report_early(e, &e->flows[flow], op_count(op));
    step_reported(e, flow, slot, op);
    commit(e);
}

void flow_acknowledged(struct engine *e, uint32_t flow, uint64_t slot, uint32_t count,
                       uint32_t epoch)
{
    struct flow *f = &e->flows[flow];
    bool unordered = false;

    for (uint64_t at = slot; at < slot + count && f->state != FLOW_FREE; at++) {
        struct op *op;

        if ((f->epoch != epoch && at >= f->rewound) || at < f->ops.head || at >= f->ops.tail)
            continue;
        op = flow_op(e, f, at);
        set8(e, &op->phase, OP_PLACED);
        step_placed(e, flow, at, op);
        unordered |= op->flags & SUBMIT_UNORDERED;
    }
    commit(e);
    if (f->state == FLOW_FREE)
        return;
    for (uint64_t at = slot; at < slot + count && unordered; at++)
        if (at >= f->ops.head && at < f->ops.tail)
            flow_end_early(e, flow, at, flow_op(e, f, at));
    flow_finish(e, flow);
}

/* Counts out a packet. Packets that an earlier process has sent are not counted. */
static void part_leaves(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];

    if (live->parts > 0)
        live->parts--;
}

void flow_part_acknowledged(struct engine *e, uint32_t flow, uint32_t epoch)
{
    struct flow_live *live = &e->flow_live[flow];

    part_leaves(e, flow);
    if (live->paced_to == 0)
        return;
    /* An operation that was dropped after a refused one has another epoch. */
    if (epoch == e->flows[flow].epoch && ++live->pace_kept >= live->pace) {
        live->pace++;
        live->pace_kept = 0;
    }
    flow_ready(e, flow);
}

/* Handlers at the target are behind: the operation at `slot` was refused. */
static void slow_down(struct flow_live *live, uint64_t slot)
{
    uint32_t half = live->pace / 2 > PACED_PARTS_LEAST ? live->pace / 2 : PACED_PARTS_LEAST;

    live->pace = slot < live->paced_to ? half : PACED_PARTS;
    live->pace_kept = 0;
    live->paced_to = slot + PACED_ENTRIES;
}

void flow_rewind(struct engine *e, uint32_t flow, uint64_t slot, uint32_t epoch, uint32_t part)
{
    struct flow *f = &e->flows[flow];

    if (part > 0)
        part_leaves(e, flow);
    /* A put may have ended, and left, while some of its packets stood in the ledger. */
    if (epoch != f->epoch || slot > f->staged || slot < f->ops.head || slot >= f->ops.tail)
        return;
    set64(e, &f->staged, slot);
    set32(e, &f->cut, packet_before(e, flow_op(e, f, slot), part));
}

/* The last piece on its way has ended, and none is left to be posted. */
static void flow_payload_done(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (op->posted_after > 0)
        step_completed(e, flow, slot, op);
    if (op_row(op)->on_fabric)
        op_row(op)->on_fabric(e, flow, op);
    flow_end_early(e, flow, slot, op);
}

void flow_fabric_done(struct engine *e, uint32_t flow, uint64_t low, int status)
{
    struct flow *f = &e->flows[flow];
    uint32_t peer = f->peer;
    uint64_t slot = f->ops.head + ((low - f->ops.head) & COOKIE_SLOTS);
    struct op *op = flow_op(e, f, slot);

    op_fabric_end(e, flow, op);
    if (e->peer_live[peer].link != LINK_UP) {
        peer_activate(e, peer); /* the peer's next step drains its operations */
    } else if (status < 0) {
        peer_broken(e, peer, status);
    } else if (!e->peer_live[peer].broken) {
        /* On a broken link the piece may have failed; then the payload is sent again. */
        if (op_row(op)->reads)
            keepalive_heard(e, peer);
        if (op->pending == 0 && !flow_half_posted(f, slot))
            flow_payload_done(e, flow, slot, op);
    }
    if (e->flow_live[flow].outstanding == 0 && f->state == FLOW_CLOSING)
        e->sweep = true;
    flow_finish(e, flow);
    flow_ready(e, flow);
    if (e->peer_live[peer].blocked.first != NONE)
        peer_activate(e, peer); /* its window may have room */
}

/* The index of a sequence that came over the wire, or UINT64_MAX. */
static uint64_t flow_slot_of(struct engine *e, struct flow *f, uint32_t sequence)
{
    uint64_t slot = f->ops.head + (uint32_t)(sequence - (uint32_t)f->ops.head);
    uint64_t *begins = &e->flow_live[f - e->flows].begins;
    uint64_t at = *begins > f->ops.head && *begins <= slot ? *begins : f->ops.head;

    /* The peer has named this position: check that an operation begins there. */
    while (at < slot && at < f->staged)
        at += flow_op(e, f, at)->span;
    /* Some packets of the next operation may stand in the ledger. */
    if (at != slot || slot > f->staged || (slot == f->staged && f->cut == 0))
        return UINT64_MAX;
    *begins = slot;
    return slot;
}

void flow_failed(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status, uint32_t done)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = flow_slot_of(e, f, sequence);
    struct op *op;

    if (slot == UINT64_MAX)
        return;
    op = flow_op(e, f, slot);
    set32(e, (uint32_t *)&op->status, (uint32_t)(status < 0 ? status : -EIO));
    if (op_row(op)->failed)
        op_row(op)->failed(e, op, done);
}

int flow_failed_apart(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status,
                      const struct op_outcomes *outcomes)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = flow_slot_of(e, f, sequence);
    struct op *op;

    if (slot == UINT64_MAX || f->owner == OWNER_GONE)
        return 0;
    op = flow_op(e, f, slot);
    if (op->phase == OP_PLACED)
        return 0;
    if (!op_row(op)->failed_apart)
        return -EPROTO;
    set32(e, (uint32_t *)&op->status, (uint32_t)status);
    return op_row(op)->failed_apart(e, op, outcomes);
}

int flow_result(struct engine *e, uint32_t flow, uint32_t sequence, const struct op_result *result)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = flow_slot_of(e, f, sequence);
    struct op *op;

    if (slot == UINT64_MAX || f->owner == OWNER_GONE)
        return 0;
    op = flow_op(e, f, slot);
    if (op->phase == OP_PLACED)
        return 0;
    return op_row(op)->result ? op_row(op)->result(e, flow, op, result) : -EPROTO;
}

void flow_refused(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status, uint32_t done)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = flow_slot_of(e, f, sequence);
    struct op *op;

    if (slot == UINT64_MAX)
        return;
    op = flow_op(e, f, slot);
    /* This is only the peer's word: an operation that has ended stays ended, and packets that have
     * not left do not count as dealt with. */
    if (op->phase == OP_PLACED)
        return;
    if (slot == f->staged && done > f->cut)
        done = f->cut;
    /* The payloads of later records have been placed; only the records are sent again. */
    set64(e, &f->staged, slot);
    set32(e, &f->cut, packet_behind(e, op, done));
    set64(e, &f->rewound, slot);
    set32(e, &f->epoch, f->epoch + 1);
    set32(e, &f->held, 1);
    /* Handlers may have changed the bytes that they were given: no new link places them again. */
    if (op_is_in_place(e, op))
        set8(e, &op->phase, OP_READY);
    if (status == -EBUSY)
        slow_down(&e->flow_live[flow], slot);
    flow_ready(e, flow);
}

void flow_hold(struct engine *e, uint32_t flow, bool held)
{
    set32(e, &e->flows[flow].held, held);
    flow_ready(e, flow);
}

/* Within a transaction: the target will take no further operation of the flow. */
static void flow_dies(struct engine *e, uint32_t flow)
{
    set32(e, &e->flows[flow].held, 0);
    flow_gone_known(e, flow, -EHOSTDOWN);
    e->sweep = true;
}

/* Within a transaction: the operations before `slot` have ended, or stand in the ledger. */
static void flow_passes(struct engine *e, struct flow *f, uint64_t slot)
{
    set64(e, &f->started, slot);
    set64(e, &f->staged, slot);
    set32(e, &f->cut, 0);
    f->posted = 0;
}

void flow_gone_known(struct engine *e, uint32_t flow, int32_t end)
{
    struct flow *f = &e->flows[flow];
    bool report = f->state == FLOW_OPEN && f->traffic == FLOW_REQUESTS && f->owner != OWNER_GONE &&
                  owner_row(e, f->owner)->peer_ended;

    set32(e, (uint32_t *)&f->error, (uint32_t)-EHOSTDOWN);
    reply_give_back(e, flow, f->replies_expected);
    direct_end_flow(e, flow);
    if (f->state == FLOW_OPEN || f->state == FLOW_BINDING)
        set32(e, &f->state, FLOW_DEAD);
    if (report)
        owner_row(e, f->owner)->peer_ended(e, flow, end);
}

uint32_t flow_end_rest(struct engine *e, uint32_t flow, uint32_t most)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = f->staged;

    while (slot < f->ops.tail && (most > 0 || slot < f->started || flow_half_posted(f, slot))) {
        struct op *op = flow_op(e, f, slot);

        most -= op_count(op) < most ? op_count(op) : most;
        if (op->phase != OP_PLACED) {
            flow_end_op(e, op, -EHOSTDOWN);
            commit(e);
        }
        slot += op->span;
    }
    flow_passes(e, f, slot);
    commit(e);
    flow_finish(e, flow);
    return most;
}

void flow_gone(struct engine *e, uint32_t flow)
{
    flow_void(e, &e->flows[flow]);
    flow_dies(e, flow);
    commit(e);
    flow_end_rest(e, flow, 0);
}

void flow_kill(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];

    for (uint64_t slot = f->ops.head; slot < f->ops.tail;) {
        struct op *op = flow_op(e, f, slot);
        bool begun = slot < f->started || flow_half_posted(f, slot);

        if (op->phase != OP_PLACED) {
            flow_end_op(e, op, begun ? -ECONNABORTED : -EHOSTDOWN);
            commit(e);
        }
        slot += op->span;
    }
    flow_passes(e, f, f->ops.tail);
    flow_dies(e, flow);
    set32(e, &f->epoch, f->epoch + 1);
    set32(e, &f->inflow, NONE);
    commit(e);
    flow_finish(e, flow);
}

void flow_empty(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];

    if (queue_count(&f->ops) == 0)
        return;
    flow_void(e, f);
    set32(e, &f->epoch, f->epoch + 1);
    set64(e, &f->staged, f->ops.tail);
    set32(e, &f->cut, 0);
    set64(e, &f->started, f->ops.tail);
    set64(e, &f->reported, f->ops.tail);
    f->posted = 0;
    commit(e);
    queue_clear(&e->pool, &f->ops);
}

void flow_detach(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    enum replier who = f->owner >> 32 == OWNER_OFFLOADS ? REPLIER_OFFLOADS : REPLIER_CLIENT;

    unlist_flow(e, owner_flows(e, f->owner), flow);
    held_flow_parts(e, flow);
    if (f->due != 0)
        session_drop_due(e, owner_as_session(f->owner), &f->due);
    set64(e, &f->owner, OWNER_GONE);
    chain_remove(&e->flows_of_way, flow);
    if (f->serves != NONE) /* the inflow may stay longer, while this number becomes another's */
        set32(e, &e->inflows[f->serves].reply_flow[who], NONE);
    set32(e, &f->state, FLOW_CLOSING);
    set32(e, &f->held, 0);
    commit(e);
    table_leaves(e, TABLE_FLOWS, flow);
}

void flows_detach(struct engine *e, uint64_t owner)
{
    uint32_t flow = *owner_flows(e, owner);

    while (flow != NONE) {
        uint32_t next = e->flows[flow].next;

        if (e->flows[flow].owner == owner)
            flow_detach(e, flow);
        flow = next;
    }
}

void flow_retire(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    if (f->traffic == FLOW_REQUESTS && f->owner != OWNER_GONE &&
        (f->state == FLOW_BINDING || f->state == FLOW_OPEN || f->state == FLOW_DEAD) &&
        e->flow_live[flow].remotes == 0 && e->flow_live[flow].outstanding == 0 &&
        queue_count(&f->ops) == 0 && f->replies_expected == 0)
        flow_detach(e, flow);
}
