/* Flows: operations start and are staged in order (flow.h). Thread: the progress thread. */
#include "daemon/engine/ops/flow.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/watch/steps.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/state/table.h"

/* How many entries ahead of the next record a flow may start payloads and reads. */
#define START_AHEAD 64u

/* Ends an operation that cannot be done. But a reply is still sent, without its event, because its
 * requester waits; so is an operation that its target waits for, or has a part of. */
static void flow_fail_op(struct engine *e, const struct flow *f, uint64_t slot, struct op *op,
                         int32_t status)
{
    if (f->traffic == FLOW_REPLIES || flow_awaited(f, slot) || (f->cut > 0 && slot == f->staged))
        set32(e, (uint32_t *)&op->status, (uint32_t)status);
    else
        flow_end_op(e, op, status);
}

/* Fails an operation that may have started, and is not staged. */
static void flow_drop_op(struct engine *e, uint32_t flow, uint64_t slot, struct op *op,
                         int32_t status)
{
    struct flow *f = &e->flows[flow];

    if (op->phase == OP_PLACED || op->status < 0)
        return;
    if (slot < f->started)
        op_abandon(e, flow, op, op->length);
    else if (flow_half_posted(f, slot))
        op_abandon(e, flow, op, f->posted);
    flow_fail_op(e, f, slot, op, status);
}

/* The last record of the vector to which the operation at *slot belongs; NULL: it has not been
 * submitted yet. */
static struct op *flow_vector_end(struct engine *e, struct flow *f, uint64_t *slot)
{
    struct op *op = flow_op(e, f, *slot);

    while (op->flags & SUBMIT_MORE) {
        *slot += op->span;
        if (*slot >= f->ops.tail)
            return NULL;
        op = flow_op(e, f, *slot);
    }
    return op;
}

/*
 * Fails the records of a vector that follow a failed one, the last one first: it brings no remote
 * event then, even if the process dies before it has failed the others, which may be placed. Once
 * all have failed, none of them comes here again.
 */
static void flow_fail_vector(struct engine *e, uint32_t flow, uint64_t slot, int32_t status)
{
    struct flow *f = &e->flows[flow];
    uint64_t at = slot + flow_op(e, f, slot)->span, end = slot;
    struct op *op = flow_vector_end(e, f, &end);

    if (op)
        flow_drop_op(e, flow, end, op, status);
    else
        set32(e, (uint32_t *)&f->failing, (uint32_t)status);
    commit(e);
    for (; at < end; at += op->span) {
        op = flow_op(e, f, at);
        flow_drop_op(e, flow, at, op, status);
        commit(e);
    }
}

/* Fails the operation, and the later records of its vector. */
static void flow_fail(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, int32_t status)
{
    if (op->flags & SUBMIT_MORE)
        flow_fail_vector(e, flow, slot, status);
    flow_fail_op(e, &e->flows[flow], slot, op, status);
}

static int flow_start_op(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct op_kind *kind = op_row(op);

    return kind->start ? kind->start(e, flow, slot, op) : 0;
}

/* Posts payloads and reads, piece by piece and ahead of the records, as far as the turn allows.
 * Returns 0; 1: pieces of the next payload are left to post; or the reason to stop. */
static int flow_start(struct engine *e, uint32_t flow, int64_t *left)
{
    struct flow *f = &e->flows[flow];
    const uint64_t *on_their_way = &e->peer_live[f->peer].bytes;
    uint64_t slot = f->started;
    int r = 0;

    while (*left > 0 && slot < f->ops.tail && slot < f->staged + START_AHEAD) {
        struct op *op = flow_op(e, f, slot);
        uint64_t before = *on_their_way;
        bool first = f->posted == 0;

        r = 0;
        if (op->flags & SUBMIT_FENCE && slot != f->ops.head)
            r = -EINPROGRESS;
        else if (op->phase != OP_PLACED && op->status == 0)
            r = flow_start_op(e, flow, slot, op);
        if (r == -EAGAIN || r == -EBUSY || r == -EINPROGRESS || r == -ENOBUFS)
            break;
        if (*on_their_way > before)
            *left -= (int64_t)(*on_their_way - before) + TURN_POST_BYTES;
        if (r < 0) {
            op_abandon(e, flow, op, f->posted); /* some of its pieces may be on their way */
            flow_fail(e, flow, slot, op, r);
            r = 0;
        } else if (first && f->posted > 0) {
            step_posted(e, flow, slot, op);
        }
        if (r == 1)
            continue;
        f->posted = 0;
        slot += op->span;
    }
    if (slot != f->started) {
        set64(e, &f->started, slot);
        commit(e);
    }
    return r;
}

/* Whether the next payload is on its way, and was charged to the turn: then its record leaves with
 * it. */
static bool flow_owes_record(struct engine *e, struct flow *f)
{
    const struct op *op;

    if (f->started <= f->staged)
        return false;
    op = flow_op(e, f, f->staged);
    return op->length > 0 && !(op->flags & SUBMIT_INLINE) && op->phase != OP_PLACED &&
           !op_in_packets(e, op);
}

/* Whether the flow is paced (flow.h), with as many operations or packets on their way as may be. */
static bool flow_is_paced(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = f->ops.head;
    const struct flow_live *live = &e->flow_live[flow];
    uint32_t count = 0;

    if (f->staged >= live->paced_to)
        return false;
    if (live->parts >= live->pace)
        return true;
    for (; slot < f->staged && count < PACED_OPS; count++)
        slot += flow_op(e, f, slot)->span;
    return count == PACED_OPS;
}

/* The cost of an operation in its turn: the bytes that it has staged. An operation that has staged
 * nothing, because it needs no record or has failed, costs something for its ends. */
static int64_t staging_cost(uint64_t bytes, uint32_t ends)
{
    return bytes > 0 ? (int64_t)bytes : (int64_t)(ends * sizeof(struct wire_op));
}

int flow_advance(struct engine *e, uint32_t flow, struct turn *turn, int *work)
{
    struct flow *f = &e->flows[flow];
    const struct peer *p = &e->peers[f->peer];
    int reason = 0;

    if (f->held && f->state == FLOW_OPEN) {
        flow_void(e, f);
        return 0;
    }
    while (f->state == FLOW_OPEN && f->staged < f->ops.tail && !f->held && reply_way_open(e, f) &&
           !flow_is_paced(e, flow)) {
        uint64_t slot = f->staged, begun = p->tx_tail, rounded = e->rounded;
        struct op *op;
        uint32_t ends;
        int r = 0;

        if (f->started <= slot || f->started < f->staged + START_AHEAD / 2)
            reason = flow_start(e, flow, &turn->left);
        if (f->started <= slot)
            return reason == -EINPROGRESS ? 0 : reason;
        op = flow_op(e, f, slot);
        ends = op_count(op);
        if (op->phase != OP_PLACED && op_row(op)->record)
            r = op_row(op)->record(e, flow, slot, op);
        if (r == -ENOSPC || r == -EINPROGRESS) {
            arena_rollback(&e->arena);
            return r == -ENOSPC ? -ENOSPC : 0;
        }
        if (r < 0)
            flow_fail(e, flow, slot, op, r);
        if (r < 0 && op->phase != OP_PLACED) {
            commit(e); /* the loop stages it again, as a failed one */
            continue;
        }
        if (r == 0 && op_row(op)->at_head)
            set8(e, &op->phase, OP_PLACED);
        if (r == 1)
            step_staged(e, flow, slot, op);
        if (r != OP_PART) {
            set64(e, &f->staged, slot + op->span);
            if (f->cut > 0) /* an operation has ended half way */
                set32(e, &f->cut, 0);
        }
        commit(e);
        if (r == OP_PART)
            e->flow_live[flow].parts++;
        ++*work;
        if (r <= 0)
            flow_finish(e, flow);
        turn->left -= staging_cost(p->tx_tail - begun + e->rounded - rounded, ends);
        burst_spend(turn, ends, p->tx_tail - begun, e->rounded - rounded);
        if (turn->burst <= 0 && p->tx_tail != begun)
            turn->soon = ledger_acked_soon(e, f->peer, burst_may_pause(e, turn));
        if ((turn->left <= 0 || turn->burst <= 0) && !flow_owes_record(e, f))
            return f->staged < f->ops.tail ? 1 : 0;
    }
    return reason == -EINPROGRESS ? 0 : reason;
}
