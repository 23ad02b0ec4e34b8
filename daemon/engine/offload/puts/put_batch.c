/* Batches of puts to an offload's region (put_batch.h). Thread: the progress thread. */
#include "daemon/engine/offload/puts/put_batch.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/ledger/notes.h"

#define OUTCOME_BITS 8u

static_assert(
    sizeof(struct wire_flow) + WIRE_BATCH_PUTS <=
        3 * (sizeof(struct wire_batch) + WIRE_BATCH_PUTS * sizeof(struct wire_batch_put)) / 4,
    "the FAIL is no longer than three quarters of its record");

int put_batch_begin(const struct engine *e, const struct arrival *a, struct put_batch *place)
{
    const struct wire_op *w = &a->w.op;
    uint32_t at = 0, length;
    uint64_t rid, offset;

    *place = (struct put_batch){.done = put_batch_done(&e->inflows[w->flow], w->sequence)};
    if (w->count > WIRE_BATCH_PUTS || w->count < place->done)
        return -EPROTO;
    for (uint32_t i = 0; i < w->count; i++) {
        if (i == place->done)
            place->at = at;
        at = batch_step(a->block, at, &rid, &offset, &length);
        if (length > packet_longest(&e->config))
            return -EPROTO;
    }
    return 0;
}

bool put_batch_next(struct engine *e, const struct arrival *a, struct put_batch *place,
                    struct arrival *one)
{
    const struct wire_batch *w = &a->w.batch;
    uint32_t at = place->at, length;
    uint64_t rid, offset;

    if (place->done == w->op.count)
        return false;
    if (at > 0)
        e->peer_live[e->inflows[w->op.flow].peer].in.part = (uint32_t)sizeof(*w) + at;
    place->at = batch_step(a->block, at, &rid, &offset, &length);
    place->done++;
    *one = (struct arrival){.kind = &arrival_packet,
                            .w.packet = {.put = {.op = w->op,
                                                 .slot = w->slot,
                                                 .generation = w->generation,
                                                 .offset = offset},
                                         .total = length},
                            .id = a->block + at + sizeof(struct wire_batch_put),
                            .in_batch = true};
    one->w.op.head.kind = WIRE_PACKET;
    one->w.op.rid = rid;
    one->w.op.length = length;
    return true;
}

static void note_outcome(struct engine *e, struct batched *b, uint32_t put, int32_t status)
{
    uint32_t shift = put % sizeof(uint64_t) * OUTCOME_BITS;
    uint64_t *word = &b->outcomes[put / sizeof(uint64_t)], value = (uint8_t)-status;

    if (b->failed == 0)
        for (uint32_t i = 0; i < WIRE_BATCH_PUTS / sizeof(uint64_t); i++)
            set64(e, &b->outcomes[i], 0);
    set64(e, word, *word | (value > 0 ? value : EIO) << shift);
    set32(e, &b->failed, b->failed + 1);
}

void put_batch_ended(struct engine *e, const struct arrival *a, int32_t status)
{
    const struct wire_op *w = &a->w.op;
    struct batched *b = &e->inflows[w->flow].batched;
    uint32_t done = put_batch_done(&e->inflows[w->flow], w->sequence);

    if (done == 0) {
        set32(e, &b->sequence, w->sequence);
        set32(e, &b->failed, 0);
    }
    if (status < 0)
        note_outcome(e, b, done, status);
    set32(e, &b->done, done + 1);
    commit(e);
}

int put_batch_verdict(struct engine *e, const struct arrival *a)
{
    struct inflow *in = &e->inflows[a->w.op.flow];
    struct {
        struct wire_flow w;
        uint8_t outcomes[WIRE_BATCH_PUTS];
    } fail = {.w = {.head.kind = WIRE_FAIL,
                    .flow = in->origin_flow,
                    .sequence = a->w.op.sequence,
                    .done = in->batched.done}};
    uint32_t first = 0, client = in->session != NONE ? e->sessions[in->session].client : NONE;

    if (in->batched.failed > 0) {
        memcpy(fail.outcomes, in->batched.outcomes, sizeof(fail.outcomes));
        while (fail.outcomes[first] == 0)
            first++;
        fail.w.status = -(int32_t)fail.outcomes[first];
        if (notes_push(e, in->peer, client, &fail,
                       (uint32_t)sizeof(fail.w) + abi_pad8(in->batched.done)) < 0)
            return -ENOBUFS;
    }
    set32(e, &in->batched.done, 0);
    return 0;
}
