/* Sessions: the views over their rings, publishing, the way out. Thread: the progress thread. */
#include "daemon/engine/session/session.h"

#include <string.h>
#include "shm_ring/counts.h"
#include "shm_ring/doorbell.h"
#include "daemon/engine/session/direct.h"

/* Shows the events that were written since the last call. */
static void show_rings(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint64_t local, remote, reply;
    int64_t used;

    if (ring_published(&live->local) && ring_published(&live->remote) &&
        ring_published(&live->reply_event))
        return;
    local = live->local.tail - live->local.head_seen;
    remote = live->remote.tail - live->remote.head_seen;
    reply = live->reply_event.tail - live->reply_event.head_seen;
    live->local_high = local > live->local_high ? local : live->local_high;
    /* head_seen may be old: look at the consumer's index before remote_high rises. */
    if (remote > live->remote_high && (used = ring_used(&live->remote)) > 0)
        live->remote_high = (uint64_t)used > live->remote_high ? (uint64_t)used : live->remote_high;
    live->reply_high = reply > live->reply_high ? reply : live->reply_high;
    /* Padding in front of an event that found no room is published with the events before it. */
    if (s->local_tail != live->local.tail || s->remote_tail != live->remote.tail ||
        s->reply_tail != live->reply_event.tail) {
        set64(e, &s->local_tail, live->local.tail);
        set64(e, &s->remote_tail, live->remote.tail);
        set64(e, &s->reply_tail, live->reply_event.tail);
        commit(e);
    }
    ring_publish(&live->local);
    ring_publish(&live->remote);
    ring_publish(&live->reply_event);
}

void session_show(struct engine *e, uint32_t session)
{
    struct session_live *live = &e->session_live[session];

    if (!live->attached)
        return;
    /* An event is never seen before its operation is counted. */
    count_show(&live->shared->counts.arrived, e->sessions[session].arrived);
    show_rings(e, session);
    direct_show_spill(live, e->sessions[session].spill_bytes > 0);
}

void sessions_show(struct engine *e)
{
    for (uint32_t i = 0; i < e->dirty_count; i++)
        session_show(e, e->dirty[i]);
}

/* Rings if the client sleeps for counts, or may sleep for room, where nothing else has changed.
 * Returns the sleeper's mode, or DOORBELL_AWAKE. The fence (D) stands before all looks. */
static uint32_t ring_for_little(struct session_shared *shared, bool taken)
{
    bool wanted;

    atomic_thread_fence(memory_order_seq_cst); /* D */
    wanted = atomic_load_explicit(&shared->client.awaited, memory_order_relaxed) != 0;
    if (taken)
        wanted |= atomic_load_explicit(&shared->waits.spacious, memory_order_relaxed) == 0;
    return wanted ? doorbell_ring_unfenced(&shared->event_bell) : DOORBELL_AWAKE;
}

static void show_left(const struct session *s, const struct session_live *live)
{
    atomic_store_explicit(&live->shared->left, s->ended - live->early + 1, memory_order_release);
}

void session_publish(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    bool loud = live->loud, taken = live->taken;
    uint32_t mode;

    live->dirty = live->loud = live->taken = false;
    if (!live->attached)
        return;
    atomic_store_explicit(&live->shared->released, s->released, memory_order_relaxed);
    atomic_store_explicit(&live->shared->reply_released, s->reply_released, memory_order_relaxed);
    atomic_store_explicit(&live->shared->ended, s->ended, memory_order_release);
    show_left(s, live);
    count_show(&live->shared->counts.failed, s->failed);
    count_show(&live->shared->counts.ended, s->ended - s->uncounted);
    mode = loud ? doorbell_ring(&live->shared->event_bell) : ring_for_little(live->shared, taken);
    if (mode != DOORBELL_AWAKE)
        e->host->wake(e->host->context, session, mode);
}

void session_show_processor(struct engine *e, uint32_t session)
{
    atomic_store_explicit(&e->session_live[session].shared->processor, e->processor,
                          memory_order_relaxed);
}

void session_views(struct engine *e, uint32_t session, void *base)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint8_t *data = (uint8_t *)base + SESSION_DATA_OFFSET;

    live->shared = base;
    ring_consumer_init(&live->submit, &live->shared->submit, data, s->sizes.submit, s->submit_head);
    data += s->sizes.submit;
    ring_producer_init(&live->local, &live->shared->local, data, s->sizes.local, s->local_tail);
    data += s->sizes.local;
    ring_producer_init(&live->remote, &live->shared->remote, data, s->sizes.remote, s->remote_tail);
    data += s->sizes.remote;
    ring_consumer_init(&live->reply_submit, &live->shared->reply_submit, data,
                       s->sizes.reply_submit, s->answer_head);
    data += s->sizes.reply_submit;
    ring_producer_init(&live->reply_event, &live->shared->reply_event, data, s->sizes.reply_event,
                       s->reply_tail);
    /* The old process may have died after it took records, before it gave back their room: a full
     * ring would stay full. */
    ring_release(&live->submit);
    ring_release(&live->reply_submit);
    memset(live->drained, 0, sizeof(live->drained));
    session_show_processor(e, session);
    __atomic_store_n(&live->attached, true, __ATOMIC_RELEASE); /* views may look from here on */
    /* The old process may have died before it showed the last events. As in `publish`, events are
     * shown before the count that says that they are there. */
    session_show(e, session);
    show_left(s, live);
    session_dirty(e, session);
}

void session_add_totals(const struct session *s, const struct session_live *live,
                        struct engine_totals_view *to)
{
    to->put_ops += live->ops[OP_COUNT_PUT];
    to->get_ops += live->ops[OP_COUNT_GET];
    to->am_ops += live->ops[OP_COUNT_MESSAGE];
    to->put_bytes += live->bytes[OP_COUNT_PUT];
    to->get_bytes += live->bytes[OP_COUNT_GET];
    to->am_bytes += live->bytes[OP_COUNT_MESSAGE];
    to->atomic_ops += live->ops[OP_COUNT_ATOMIC];
    to->atomic_bytes += live->bytes[OP_COUNT_ATOMIC];
    to->errors += live->errors;
    to->delivered += s->delivered;
    to->spilled += live->spilled;
}
