/* Messages whose bytes stand in the offload's region (stored.h). Thread: the progress thread. */
#include "daemon/engine/offload/puts/stored.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/peer/region.h"

/* How long after the beginning of a step a further handler may begin, besides the first one of a
 * message. Handlers that are this slow have page faults. */
#define STEP_NS 200000

/* ---- packet by packet ------------------------------------------------------------------------ */

void stored_take(struct work *m, uint32_t at)
{
    uint32_t size = packet_longest(&m->e->config);

    if (at >= m->h.total)
        at = (m->h.total - 1) / size * size;
    m->offset = at;
    m->bytes.data = m->h.total - at < size ? m->h.total - at : size;
    m->bytes.header = at == 0 || m->h.kind == HANDLER_MESSAGE ? m->header : 0;
    m->last = at + m->bytes.data == m->h.total;
}

void stored_next(struct work *m)
{
    if (!(m->h.flags & HANDLED_STORED) || m->last || m->h.stage == HANDLER_HEADER)
        return;
    if (m->h.stage == HANDLER_PAYLOAD) {
        if (m->h.done > m->offset)
            stored_take(m, m->h.done);
        return;
    }
    if (m->h.flags & HANDLED_DROPS)
        m->h.dropped += m->h.total - m->h.done;
    m->h.done = m->h.total;
    stored_take(m, m->h.total);
}

bool stored_rests(const struct work *m)
{
    bool late = (int64_t)(m->latest - m->e->now) > STEP_NS;

    return m->h.flags & HANDLED_STORED && m->ran &&
           (late || m->e->offloads.spent >= OFFLOAD_STEP_UNITS);
}

/* ---- Longs ----------------------------------------------------------------------------------- */

/* Finds the place of the payload in the offload's host window. Returns 0, or the status for the
 * Long's origin. */
static int find_place(const struct work *m, uint64_t *place)
{
    const struct engine_range *host = &m->o->host;
    const struct message *w = &m->a->message;
    uint64_t length;
    uint8_t *base;
    int r = region_to_write(m->e, m->session, w->slot, w->generation, &base, &length);

    if (r < 0)
        return r;
    /* If the offset is in front of the window, the difference wraps, and is longer than any
     * window. */
    if (w->slot != host->slot || w->generation != host->generation || m->h.total > host->length ||
        w->offset - host->offset > host->length - m->h.total)
        return -EMSGSIZE;
    *place = w->offset - host->offset;
    return 0;
}

void long_begin(struct work *m)
{
    int r = find_place(m, &m->h.place);

    if (m->a->message.arguments > 0)
        memcpy(&m->h.argument, m->a->id + sizeof(struct message), sizeof(m->h.argument));
    m->h.flags |= HANDLED_STORED;
    if (r < 0) {
        m->h.status = r;
        m->h.stage = HANDLER_STAGES;
    }
    stored_take(m, 0);
}

int long_resume(struct work *m)
{
    bool stored = m->h.flags & HANDLED_STORED;

    if (!work_origin_failed(m) &&
        (stored != long_has_bytes(m->a) || (stored && m->a->w.op.length != m->h.total)))
        return -EPROTO;
    if (!stored)
        return 0;
    stored_take(m, m->h.done);
    stored_next(m);
    return 0;
}

void long_place(struct work *m)
{
    const struct arrival_kind *kind = m->a->kind;
    int r;

    if (m->h.kind != HANDLER_MESSAGE || !(m->h.flags & HANDLED_STORED) || !kind->act ||
        m->h.stage == HANDLER_STAGES || !work_is_untouched(m))
        return;
    r = kind->admit(m->e, m->session, m->a);
    if (r == 0)
        r = kind->act(m->e, m->a);
    if (work_memory_faulted(m)) {
        work_memory_gone(m);
    } else if (r < 0) {
        m->h.status = r;
        m->h.stage = HANDLER_STAGES;
    }
}
