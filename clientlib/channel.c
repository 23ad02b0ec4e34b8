/*
 * Owns a context's private view of its session: ring positions, local event space, kept events.
 * Thread: the one that owns the context.
 */
#include "channel.h"

#include <errno.h>
#include <string.h>
#include "doorbell.h"

static bool ring_size_valid(uint32_t size)
{
    return size >= SESSION_RING_MIN && size <= SESSION_RING_MAX && (size & (size - 1)) == 0;
}

static void inbox_init(struct channel_inbox *inbox, struct ring_control *control, const void *data,
                       uint32_t size, uint8_t kind)
{
    ring_consumer_init(&inbox->ring, control, data, size, 0);
    inbox->kind = kind;
    inbox->unreleased = 0;
    inbox->batch = size / 8;
}

int channel_init(struct channel *ch, void *base, size_t size)
{
    struct session_shared *shared = base;
    uint8_t *data = (uint8_t *)base + SESSION_DATA_OFFSET;

    if (size < SESSION_DATA_OFFSET || shared->magic != SESSION_MAGIC ||
        shared->version != SESSION_VERSION)
        return -EPROTO;

    const struct session_sizes sizes = shared->sizes;

    if (!ring_size_valid(sizes.submit) || !ring_size_valid(sizes.local) ||
        !ring_size_valid(sizes.remote) || !ring_size_valid(sizes.answer) ||
        !ring_size_valid(sizes.reply) || session_bytes(&sizes) > size)
        return -EPROTO;

    memset(ch, 0, sizeof(*ch));
    ch->shared = shared;
    ring_producer_init(&ch->submit, &shared->submit, data, sizes.submit, 0);
    data += sizes.submit;
    inbox_init(&ch->local, &shared->local, data, sizes.local, EVENT_LOCAL);
    data += sizes.local;
    inbox_init(&ch->remote, &shared->remote, data, sizes.remote, EVENT_REMOTE);
    ch->record_max = sizes.submit / 4;
    ch->space_limit = session_local_limit(sizes.local);
    kept_init(&ch->kept, CHANNEL_KEPT_BYTES + sizes.local);
    return 0;
}

void channel_destroy(struct channel *ch)
{
    kept_destroy(&ch->kept);
}

void channel_set_settle(struct channel *ch, channel_settle *settle, void *context)
{
    ch->settle = settle;
    ch->settle_context = context;
}

int channel_state(const struct channel *ch)
{
    uint32_t state = atomic_load_explicit(&ch->shared->state, memory_order_acquire);

    if (ch->over)
        return ch->over;
    switch (state) {
    case SESSION_LIVE:
        return 0;
    case SESSION_CLOSED:
        return -ESHUTDOWN;
    default:
        return -EPROTO;
    }
}

void channel_end(struct channel *ch, int status)
{
    ch->over = status;
}

static int break_channel(struct channel *ch)
{
    channel_end(ch, -EPROTO);
    return -EPROTO;
}

/* ---- local event space and the event rings -------------------------------------------------- */

/*
 * Gives consumed space back to the daemon. Local event space counts as returned only now: the
 * daemon holds us to what it can see.
 */
static void inbox_release(struct channel *ch, struct channel_inbox *inbox)
{
    if (inbox->unreleased == 0)
        return;
    ring_release(&inbox->ring);
    if (inbox == &ch->local)
        ch->space_returned += inbox->unreleased;
    inbox->unreleased = 0;
}

static uint64_t space_held(const struct channel *ch)
{
    return ch->space_reserved - ch->space_returned - ch->space_released;
}

/* 0 when `bytes` more may be reserved. Looks at shared memory only when the last sight is not
 * enough. */
static int space_check(struct channel *ch, uint32_t bytes)
{
    if (space_held(ch) + bytes <= ch->space_limit)
        return 0;
    inbox_release(ch, &ch->local);

    uint64_t released = atomic_load_explicit(&ch->shared->released, memory_order_acquire);

    if (released < ch->space_released || released > ch->space_reserved - ch->space_returned)
        return break_channel(ch);
    ch->space_released = released;
    return space_held(ch) + bytes <= ch->space_limit ? 0 : -EAGAIN;
}

static bool event_valid(const struct channel_inbox *inbox, const struct event_record *event,
                        uint32_t size)
{
    return size >= sizeof(*event) && event->kind == inbox->kind &&
           event->id_len <= SESSION_ID_MAX && size == event_bytes(event->id_len);
}

/*
 * The next event of a ring into `event` (EVENT_BYTES_MAX bytes), not yet consumed: 1, 0 when there
 * is none (then its space has been given back), or -EPROTO. *size is what it takes in the ring.
 */
static int inbox_look(struct channel *ch, struct channel_inbox *inbox, struct event_record *event,
                      uint32_t *size)
{
    int rc = ring_copy(&inbox->ring, event, EVENT_BYTES_MAX, size);

    if (rc == 0)
        inbox_release(ch, inbox);
    else if (rc < 0 || !event_valid(inbox, event, *size))
        rc = break_channel(ch);
    return rc;
}

static void inbox_consume(struct channel *ch, struct channel_inbox *inbox, uint32_t size)
{
    ring_consume(&inbox->ring, size);
    inbox->unreleased += size;
    if (inbox->unreleased >= inbox->batch)
        inbox_release(ch, inbox);
}

/* The library's own events end here: 0. The user's: 1. */
static int event_shown(struct channel *ch, struct event_record *event)
{
    int rc = 1;

    if (event->kind != EVENT_LOCAL)
        return rc;
    if (event->op == SUBMIT_FLUSH) {
        if (event->id > ch->flushed)
            ch->flushed = event->id;
        rc = 0;
    } else if (event->op == SUBMIT_GET && ch->settle) {
        rc = ch->settle(ch->settle_context, event);
    }
    return rc < 0 ? break_channel(ch) : rc;
}

/* ---- submission ----------------------------------------------------------------------------- */

uint64_t channel_record_bytes(const struct submit_record *record)
{
    uint64_t bytes = sizeof(*record) + abi_pad8(record->lid_len) + abi_pad8(record->rid_len);

    if (record->flags & SUBMIT_INLINE) {
        if (record->length > SESSION_RING_MAX)
            return UINT64_MAX;
        bytes += abi_pad8((uint32_t)record->length);
    }
    return bytes;
}

static uint8_t *append(uint8_t *at, const void *bytes, uint32_t length)
{
    memcpy(at, bytes, length);
    return at + abi_pad8(length);
}

int channel_submit(struct channel *ch, const struct submit_record *record, const void *lid,
                   const void *rid, const void *payload)
{
    uint64_t bytes = channel_record_bytes(record);
    uint32_t reserve = event_bytes(record->lid_len);
    struct submit_record *placed;
    void *room;
    int rc = channel_state(ch);

    if (rc < 0)
        return rc;
    if (bytes > ch->record_max)
        return -EMSGSIZE;
    rc = space_check(ch, reserve);
    if (rc < 0)
        return rc;
    rc = ring_reserve(&ch->submit, (uint32_t)bytes, &room);
    if (rc < 0)
        return rc == -EPROTO ? break_channel(ch) : rc;

    placed = room;
    *placed = *record;
    placed->size = (uint32_t)bytes;
    placed->reserve = reserve;

    uint8_t *at = (uint8_t *)(placed + 1);

    if (record->lid_len > 0)
        at = append(at, lid, record->lid_len);
    if (record->rid_len > 0)
        at = append(at, rid, record->rid_len);
    if (record->flags & SUBMIT_INLINE)
        append(at, payload, (uint32_t)record->length);

    ch->space_reserved += reserve;
    ch->submitted++;
    ring_advance(&ch->submit, (uint32_t)bytes);
    ring_publish(&ch->submit);
    return doorbell_ring(&ch->shared->submit_bell) != DOORBELL_AWAKE;
}

bool channel_idle(const struct channel *ch)
{
    return atomic_load_explicit(&ch->shared->ended, memory_order_acquire) == ch->submitted;
}

/* ---- events --------------------------------------------------------------------------------- */

static unsigned kinds_wanted(unsigned kinds)
{
    return kinds == 0 ? PWC_LOCAL | PWC_REMOTE : kinds;
}

static void show(const struct event_record *event, struct pwc_event *out)
{
    out->kind = event->kind == EVENT_LOCAL ? PWC_LOCAL : PWC_REMOTE;
    out->status = event->status;
    out->peer = event->peer;
    out->id = event->id;
    out->size = event->id_len;
    out->data = event->id_len > 0 ? event + 1 : NULL;
    out->bytes = event->bytes;
}

/* Pops until an event of `peer` comes; others are kept. */
static int inbox_probe(struct channel *ch, struct channel_inbox *inbox, uint64_t peer)
{
    struct event_record *event = (struct event_record *)(void *)ch->event;
    uint32_t size;
    int rc;

    while ((rc = inbox_look(ch, inbox, event, &size)) == 1) {
        bool wanted = peer == PWC_ANY || event->peer == peer;

        rc = wanted ? 0 : kept_room(&ch->kept, CHANNEL_KEPT_BYTES);
        if (rc < 0)
            return rc;
        inbox_consume(ch, inbox, size);
        rc = event_shown(ch, event);
        if (rc < 0 || (rc == 1 && wanted))
            return rc;
        if (rc == 1)
            kept_add(&ch->kept, event);
    }
    return rc;
}

int channel_probe(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct event_record *event = (struct event_record *)(void *)ch->event;
    int full = 0;
    int rc;

    kinds = kinds_wanted(kinds);
    rc = ch->kept.bytes > 0 ? kept_take(&ch->kept, peer, kinds, event) : 0;
    for (int turn = 0; turn < 2 && rc == 0; turn++) {
        bool remote = ch->remote_next;

        ch->remote_next = !remote;
        if (kinds & (remote ? PWC_REMOTE : PWC_LOCAL))
            rc = inbox_probe(ch, remote ? &ch->remote : &ch->local, peer);
        if (rc == -ENOBUFS) { /* the other ring may still have what is asked for */
            full = rc;
            rc = 0;
        }
    }
    if (rc == 0)
        rc = full != 0 ? full : channel_state(ch);
    if (rc == 1)
        show(event, out);
    return rc;
}

int channel_collect(struct channel *ch)
{
    _Alignas(8) uint8_t buffer[EVENT_BYTES_MAX];
    struct event_record *event = (struct event_record *)(void *)buffer;
    uint64_t quota = CHANNEL_KEPT_BYTES + ch->local.ring.size;
    uint32_t size;
    int collected = 0;
    int rc;

    while ((rc = inbox_look(ch, &ch->local, event, &size)) == 1) {
        rc = kept_room(&ch->kept, quota);
        if (rc < 0)
            return rc;
        inbox_consume(ch, &ch->local, size);
        collected++;
        rc = event_shown(ch, event);
        if (rc < 0)
            return rc;
        if (rc == 1)
            kept_add(&ch->kept, event);
    }
    return rc < 0 ? rc : collected;
}

/* ---- sleeping ------------------------------------------------------------------------------- */

static bool inbox_pending(struct channel_inbox *inbox)
{
    return ring_pending(&inbox->ring) != 0;
}

int channel_arm(struct channel *ch, uint32_t mode, unsigned kinds)
{
    kinds = kinds_wanted(kinds);
    doorbell_arm(&ch->shared->event_bell, mode);
    if (!((kinds & PWC_LOCAL) && inbox_pending(&ch->local)) &&
        !((kinds & PWC_REMOTE) && inbox_pending(&ch->remote)) && channel_state(ch) == 0)
        return 0;
    doorbell_disarm(&ch->shared->event_bell);
    return 1;
}

void channel_disarm(struct channel *ch)
{
    doorbell_disarm(&ch->shared->event_bell);
}
