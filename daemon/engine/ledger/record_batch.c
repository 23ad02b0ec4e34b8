/* Batches at the target: copied, checked as a whole, placed (op_batch.c is the origin's side).
 * Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/peer/region.h"
#include "shm_ring/word.h"

static int64_t batch_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    uint32_t bytes = (uint32_t)left, at = 0, puts = 0;
    uint64_t rid, offset;
    uint32_t length;

    if (bytes > e->record_max)
        return -EPROTO;
    memcpy(e->record, a->id, bytes);
    a->block = e->record;
    for (; at < bytes && bytes - at >= sizeof(struct wire_batch_put); puts++)
        at = batch_step(a->block, at, &rid, &offset, &length);
    if (at != bytes || puts == 0 || puts != a->w.op.count || a->w.op.rid_len != 0)
        return -EPROTO;
    return bytes;
}

static int batch_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    uint64_t rid, offset, room;
    uint32_t at = 0, length;
    int status = region_memory(e, session, a->w.batch.slot, a->w.batch.generation,
                               ENGINE_REMOTE_WRITE, &a->base, &room);

    if (status < 0)
        return status;
    for (uint64_t left = a->w.op.count; left > 0; left--) {
        at = batch_step(a->block, at, &rid, &offset, &length);
        if (!(offset <= room && length <= room - offset))
            return -ERANGE;
    }
    return 0;
}

static int batch_act(struct engine *e, struct arrival *a)
{
    const uint8_t *block = a->block; /* our own copy, which no put changes */
    uint8_t *base = a->base;
    uint64_t rid, offset;
    uint32_t at = 0, length;

    for (uint64_t left = a->w.op.count; left > 0; left--) {
        const uint8_t *put = block + at;

        at = batch_step(block, at, &rid, &offset, &length);
        word_place(base + offset, put + sizeof(struct wire_batch_put), length);
    }
    return 0;
}

static uint32_t batch_changed(const struct arrival *a)
{
    return (uint32_t)a->w.op.count;
}

const struct arrival_kind arrival_batch = {
    .op = SUBMIT_PUT,
    .several = true,
    .parse = batch_parse,
    .admit = batch_admit,
    .act = batch_act,
    .changed = batch_changed,
};
