/* Batches at the target: copied, checked as a whole, placed, told put by put (op_batch.c is the
 * origin's side). Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/ops/batch_format.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/session/session.h"

int record_batch_parse(struct engine *e, const uint8_t *record, uint32_t size, struct wire_batch *w)
{
    uint32_t bytes = size - (uint32_t)sizeof(*w), at = 0, puts = 0;
    uint64_t rid, offset;
    uint32_t length;

    if (size < sizeof(*w) || bytes > e->record_max)
        return -EPROTO;
    memcpy(w, record, sizeof(*w));
    memcpy(e->record, record + sizeof(*w), bytes);
    for (; at < bytes && bytes - at >= sizeof(struct wire_batch_put); puts++)
        at = batch_step(e->record, at, &rid, &offset, &length);
    return at == bytes && puts > 0 && puts == w->op.rid && w->op.rid_len == 0 ? 0 : -EPROTO;
}

int record_batch_place(struct engine *e, uint32_t session, const struct wire_batch *w)
{
    uint64_t rid, offset, room;
    uint32_t at, next, length;
    uint8_t *base;
    int status = region_to_write(e, session, w->slot, w->generation, &base, &room);

    next = 0;
    for (uint64_t i = 0; i < w->op.rid && status == 0; i++) {
        next = batch_step(e->record, next, &rid, &offset, &length);
        if (!(offset <= room && length <= room - offset))
            status = -ERANGE;
    }
    next = 0;
    for (uint64_t i = 0; i < w->op.rid && status == 0; i++) {
        at = next;
        next = batch_step(e->record, at, &rid, &offset, &length);
        batch_copy(base + offset, e->record + at + sizeof(struct wire_batch_put), length);
    }
    if (status == 0 && e->host->faulted &&
        e->host->faulted(e->host->context, e->sessions[session].client)) {
        client_quarantine(e, e->sessions[session].client, QUARANTINE_MEMORY);
        status = -EHOSTDOWN;
    }
    return status;
}
