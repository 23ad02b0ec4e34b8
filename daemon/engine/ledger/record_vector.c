/* Short pieces of a vector at the target: copied, checked as a whole, placed (op_vector.c is the
 * origin's side). The last record names the region, too: if the region of an earlier record was
 * withdrawn, the last one fails as well, and brings no event. Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include "daemon/engine/kinds/vector_format.h"
#include "daemon/engine/peer/region.h"

static int64_t vector_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    uint64_t id_bytes = abi_pad8(a->w.op.rid_len), bytes = left - id_bytes;
    struct vector_extent extent;

    if (id_bytes > left || bytes > submit_inline_max(SUBMIT_VECTOR, ENGINE_PACKED_MAX))
        return -EPROTO;
    memcpy(e->record, a->id + id_bytes, bytes);
    a->block = e->record;
    a->block_bytes = (uint32_t)bytes;
    if (vector_look(a->block, a->block_bytes, &extent) < 0 || extent.payload > a->w.op.length)
        return -EPROTO;
    a->block_end = extent.end;
    e->rounded += extent.rounded;
    return (int64_t)bytes;
}

static int vector_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    uint64_t room;
    int status =
        region_to_write(e, session, a->w.vector.slot, a->w.vector.generation, &a->base, &room);

    return status == 0 && a->block_end > room ? -ERANGE : status;
}

static int vector_act(struct engine *e, struct arrival *a)
{
    uint32_t at = 0, length;
    uint64_t offset;

    while (at < a->block_bytes) {
        const uint8_t *piece = a->block + at;

        at = vector_step(a->block, at, &offset, &length);
        memcpy(a->base + offset, piece + sizeof(struct vector_piece), length);
    }
    return 0;
}

/* The last record of the vector counts for all, and has the length of the whole. */
static uint32_t vector_changed(const struct arrival *a)
{
    return put_changed(a) && (a->w.op.length > 0 || !(a->w.op.head.flags & WIRE_NO_EVENT));
}

const struct arrival_kind arrival_vector = {
    .op = SUBMIT_PUT,
    .parse = vector_parse,
    .admit = vector_admit,
    .act = vector_act,
    .changed = vector_changed,
};
