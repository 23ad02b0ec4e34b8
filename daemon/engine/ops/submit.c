/* Operations enter their flows (submit.h). Thread: the progress thread. */
#include "daemon/engine/ops/submit.h"

#include <string.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/watch/steps.h"
#include "shm_ring/fault.h"

static struct op *op_fill(struct engine *e, struct flow *f, uint64_t slot,
                          const struct submit_record *r, uint32_t span, int32_t status)
{
    struct op *op = flow_op(e, f, slot);
    const uint8_t *bytes = (const uint8_t *)(r + 1);
    uint32_t left = r->size - (uint32_t)sizeof(*r);

    *op = (struct op){
        .kind = r->kind,
        .phase = status < 0 && (f->traffic == FLOW_REQUESTS || f->state == FLOW_DEAD) ? OP_PLACED
                                                                                      : OP_QUEUED,
        .flags = r->flags,
        .status = status,
        .remote = r->remote,
        .span = (uint16_t)span,
        .offset = r->offset,
        .length = r->length < UINT32_MAX ? (uint32_t)r->length : UINT32_MAX,
        .lid = r->lid,
        .rid = f->traffic == FLOW_REPLIES ? 0 : r->rid, /* for a reply, `rid` was the token */
        .code = r->code,
        .lid_len = r->lid_len,
        .rid_len = r->rid_len,
        .segment = r->segment,
        .local_offset = r->local_offset,
        .reserve = r->reserve,
        .nonce = UINT16_MAX,
        .submitted_at = e->now,
    };
    if (span == 1) {
        memcpy(op->small, bytes, left);
        return op;
    }
    for (uint64_t entry = slot + 1; left > 0;) {
        uint32_t entries = queue_side_by_side(&f->ops, entry);
        uint32_t n = left < entries * sizeof(*op) ? left : entries * (uint32_t)sizeof(*op);

        memcpy(flow_op(e, f, entry), bytes, n);
        entry += entries;
        bytes += n;
        left -= n;
    }
    return op;
}

/* A record of a vector fails with the records before it, and the records after it fail with it.
 * Returns its status. */
static int32_t fail_together(struct engine *e, struct flow *f, const struct submit_record *draft,
                             int32_t status)
{
    if (status == 0)
        status = f->failing;
    set32(e, (uint32_t *)&f->failing, draft->flags & SUBMIT_MORE ? (uint32_t)status : 0);
    return status;
}

/* Within a transaction: puts the operation into its flow. */
static inline const struct op *op_add(struct engine *e, uint32_t flow,
                                      const struct submit_record *draft, uint32_t span,
                                      int32_t status)
{
    const struct op_kind *kind = op_kinds[draft->kind];
    struct flow *f = &e->flows[flow];
    uint64_t slot = f->ops.tail - span;
    const struct op *op;

    if (status < 0 || f->failing < 0)
        status = fail_together(e, f, draft, status);
    op = op_fill(e, f, slot, draft, span, status);
    if (kind->taken)
        kind->taken(e, flow, draft);
    if (op->phase == OP_PLACED && f->staged == slot) {
        set64(e, &f->staged, f->ops.tail);
        set64(e, &f->started, f->ops.tail);
    }
    return op;
}

void op_entered(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    if (f->staged == f->ops.tail)
        flow_finish(e, flow);
    else
        flow_ready(e, flow);
}

void op_enqueue(struct engine *e, uint32_t flow, const struct submit_record *draft, uint32_t span,
                int32_t status)
{
    uint64_t slot = e->flows[flow].ops.tail - span;
    const struct op *op = op_add(e, flow, draft, span, status);

    commit(e);
    FAULT(OPERATION_QUEUED);
    step_submitted(e, flow, slot, op);
    op_entered(e, flow);
}

/* Whether the draft suits its kind and its remote belongs to this flow. */
static bool draft_valid(const struct engine *e, uint32_t flow, const struct op_kind *kind,
                        const struct submit_record *draft)
{
    uint64_t size = sizeof(*draft) + abi_pad8(draft->lid_len) + abi_pad8(draft->rid_len);

    if (draft->flags & SUBMIT_INLINE)
        size += abi_pad8((uint32_t)draft->length);
    if (!kind || !kind->validate || draft->size != size || draft->lid_len > SESSION_ID_MAX ||
        draft->remote >= e->config.remotes_max ||
        (draft->flags & SUBMIT_INLINE &&
         draft->length > submit_inline_max(draft->kind, e->config.packed_max)))
        return false;
    return e->remotes[draft->remote].state != REMOTE_FREE && e->remotes[draft->remote].flow == flow;
}

int op_submit(struct engine *e, uint32_t flow, const struct submit_record *draft)
{
    const struct op_kind *kind = op_kind_of(draft->kind);
    struct flow *f = &e->flows[flow];
    int status = draft_valid(e, flow, kind, draft) ? 0 : -EINVAL;

    if (status == 0 && reply_awaited(f, draft->kind, draft->flags))
        status = -EOPNOTSUPP;
    if (status == 0)
        status = queue_push(&e->pool, &f->ops, op_span(draft), e->chunks_keep);
    if (status < 0) {
        arena_rollback(&e->arena);
        return status;
    }
    status = f->state == FLOW_DEAD
                 ? f->error
                 : kind->validate(e, owner_client(e, f->owner), draft, &e->remotes[draft->remote]);
    op_enqueue(e, flow, draft, op_span(draft), status);
    return 0;
}

int op_check(struct engine *e, uint32_t flow, const struct submit_record *draft)
{
    const struct op_kind *kind = op_kind_of(draft->kind);
    const struct flow *f = &e->flows[flow];

    return f->state == FLOW_DEAD
               ? f->error
               : kind->validate(e, owner_client(e, f->owner), draft,
                                kind->over_remote ? &e->remotes[draft->remote] : NULL);
}

int op_enter(struct engine *e, uint32_t flow, const struct submit_record *draft)
{
    struct flow *f = &e->flows[flow];
    uint64_t slot = f->ops.tail;
    uint32_t span = op_span(draft);
    int status = queue_push(&e->pool, &f->ops, span, 0);

    if (status < 0)
        return status;
    step_submitted(e, flow, slot, op_add(e, flow, draft, span, op_check(e, flow, draft)));
    return 0;
}
