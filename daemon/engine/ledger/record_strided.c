/* Equal elements at equal distances, a record of a vector, at the target (kinds/op_strided.c is the
 * origin's side). As record_vector.c, but the elements are placed out of the ring: whatever becomes
 * of their bytes there, their places were checked. Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include "daemon/engine/kinds/strided_format.h"
#include "daemon/engine/peer/region.h"

static int64_t strided_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    const struct wire_strided *w = &a->w.strided;
    uint64_t bytes = (uint64_t)w->element * w->count;

    if (bytes == 0 || w->count > VECTOR_PIECES_MAX || bytes > left || bytes > w->op.length)
        return -EPROTO;
    return (int64_t)((bytes + 7) & ~UINT64_C(7));
}

static int strided_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    const struct wire_strided *w = &a->w.strided;
    uint64_t end;
    uint64_t room;
    int status = region_to_write(e, session, w->slot, w->generation, &a->base, &room);

    if (status < 0)
        return status;
    if (strided_end(w->offset, w->stride, w->element, w->count, &end) < 0)
        return -ERANGE;
    return end <= room ? 0 : -ERANGE;
}

static int strided_act(struct engine *e, struct arrival *a)
{
    const struct wire_strided *w = &a->w.strided;

    strided_copy(a->base + w->offset, w->stride, a->id + abi_pad8(w->op.rid_len), w->element,
                 w->element, w->count);
    strided_round(e, w->element, w->count);
    return 0;
}

const struct arrival_kind arrival_strided = {
    .op = SUBMIT_PUT,
    .parse = strided_parse,
    .admit = strided_admit,
    .act = strided_act,
    .changed = put_changed,
};
