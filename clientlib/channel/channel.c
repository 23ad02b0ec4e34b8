/*
 * Owns a context's private view of its session: the views of its rings, its state, and the event
 * bell. Thread: the one that owns the context.
 */
#include "clientlib/channel/channel_route.h"

#include <errno.h>
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"

static bool ring_size_valid(uint32_t size)
{
    return size >= SESSION_RING_MIN && size <= SESSION_RING_MAX && (size & (size - 1)) == 0;
}

static bool sizes_valid(const struct session_sizes *sizes, uint64_t mapped)
{
    return ring_size_valid(sizes->submit) && ring_size_valid(sizes->local) &&
           ring_size_valid(sizes->remote) && ring_size_valid(sizes->reply_submit) &&
           ring_size_valid(sizes->reply_event) && session_bytes(sizes) <= mapped;
}

static void outbox_init(struct channel_outbox *outbox, struct ring_control *control, void *data,
                        uint32_t size)
{
    ring_producer_init(&outbox->ring, control, data, size, 0);
    outbox->record_max = size / 4;
}

/* The limit of reply event space; 0 where the ring is too small for any message. */
static uint64_t reply_limit(uint32_t reply_size, uint32_t message_max)
{
    return reply_size / 4 < event_bytes(message_max) ? 0
                                                     : session_reply_limit(reply_size, message_max);
}

/* The bytes of the longest reply: a record, a local id, and a block with a Medium's payload, or a
 * block and a Long's packed payload. */
static uint32_t reply_bytes_max(uint32_t block_max, uint64_t record_max)
{
    uint32_t bytes = (uint32_t)sizeof(struct submit_record) + SESSION_ID_MAX + abi_pad8(block_max);

    return bytes < record_max ? bytes : (uint32_t)record_max;
}

int channel_init(struct channel *ch, void *base, size_t size)
{
    struct session_shared *shared = base;
    uint8_t *data = (uint8_t *)base + SESSION_DATA_OFFSET;

    if (size < SESSION_DATA_OFFSET || shared->magic != SESSION_MAGIC ||
        shared->version != SESSION_VERSION || shared->message_max > SESSION_RING_MAX)
        return -EPROTO;

    const struct session_sizes sizes = shared->sizes;

    if (!sizes_valid(&sizes, size))
        return -EPROTO;

    memset(ch, 0, sizeof(*ch));
    ch->burst_end = CHANNEL_NO_BURST;
    ch->shared = shared;
    ch->message_max = shared->message_max;
    ch->block_max = ch->message_max < UINT16_MAX ? ch->message_max : UINT16_MAX;

    outbox_init(&ch->submit, &shared->submit, data, sizes.submit);
    data += sizes.submit;
    inbox_init(&ch->local, &shared->local, data, sizes.local, session_local_limit(sizes.local),
               &shared->released);
    ch->local.event_kind = EVENT_LOCAL;
    data += sizes.local;
    inbox_init(&ch->remote, &shared->remote, data, sizes.remote, 0, NULL);
    ch->remote.event_kind = EVENT_REMOTE;
    ch->remote.message_kind = EVENT_REQUEST;
    ch->remote.notify_kind = EVENT_NOTIFY;
    data += sizes.remote;
    outbox_init(&ch->reply_submit, &shared->reply_submit, data, sizes.reply_submit);
    ch->reply_max = reply_bytes_max(ch->block_max, ch->reply_submit.record_max);
    data += sizes.reply_submit;
    inbox_init(&ch->reply_event, &shared->reply_event, data, sizes.reply_event,
               reply_limit(sizes.reply_event, ch->message_max), &shared->reply_released);
    ch->reply_event.message_kind = EVENT_REPLY;
    kept_init(&ch->kept, CHANNEL_KEPT_BYTES + 2 * (uint64_t)sizes.local);
    request_pool_init(&ch->requests);
    channel_notify_init(&ch->notify);
    ch->own_limit = ch->local.limit;
    neighbours_init(&ch->neighbours, pwc_peer_of(shared->rank, shared->context), ch->event,
                    ch->message_max);
    ch->neighbours.arrived_before = &shared->client.counts.arrived;
    channel_begin_fenced(ch);
    return 0;
}

void channel_destroy(struct channel *ch)
{
    neighbours_destroy(&ch->neighbours);
    pending_close(&ch->pending);
    channel_notify_destroy(ch);
    request_pool_destroy(&ch->requests);
    kept_destroy(&ch->kept);
    channel_ends_destroy(&ch->ends);
}

int channel_set_deliver(struct channel *ch, channel_deliver *deliver, void *context)
{
    /* Replies to neighbours need this, even where this context is the origin of no pair. */
    int rc = channel_own_prepare(ch);

    if (rc == 0)
        rc = neighbours_take_messages(&ch->neighbours, ch->block_max);
    if (rc < 0)
        return rc;
    ch->deliver = deliver;
    ch->deliver_context = context;
    ch->set_aside = EVENT_BYTES_MAX;
    return 0;
}

int channel_end_error(uint32_t state)
{
    return state == SESSION_CLOSED ? -ESHUTDOWN : -EPROTO;
}

void channel_end(struct channel *ch, int status)
{
    uint32_t state = atomic_load_explicit(&ch->shared->state, memory_order_acquire);

    if (ch->over == 0)
        ch->over = state == SESSION_LIVE ? status : channel_end_error(state);
}

int channel_break(struct channel *ch)
{
    ch->over = -EPROTO;
    return -EPROTO;
}

uint64_t channel_unended(const struct channel *ch)
{
    uint64_t left = atomic_load_explicit(&ch->shared->left, memory_order_acquire);

    /* A daemon before 0.7 shows only the ends. */
    return ch->submitted -
           (left > 0 ? left - 1 : atomic_load_explicit(&ch->shared->ended, memory_order_acquire));
}

bool channel_is_taken(struct channel *ch)
{
    return ring_used(&ch->submit.ring) <= 0;
}

bool channel_awaits_reply(const struct channel *ch)
{
    const struct inbox *reply = &ch->reply_event;

    return reply->reserved - reply->returned - reply->unreturned !=
           atomic_load_explicit(reply->released_word, memory_order_acquire);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* Whether the remote ring has an event that a probe could take: an event that was left there counts
 * only if it can be taken now. */
static bool remote_pending(struct channel *ch)
{
    switch (ch->hold) {
    case HOLD_NONE:
        return inbox_pending(&ch->remote);
    case HOLD_REPLY:
        return channel_may_reply(ch);
    case HOLD_KEPT:
        return false;
    }
    return true;
}

void channel_set_registered(struct channel *ch)
{
    ch->daemon_fences = ch->shared->fences == 1;
}

/* After so many publications while the daemon was awake, the daemon fences again: its next sleep is
 * probably far away. */
#define FENCED_PUBLICATIONS 64u

void channel_begin_fenced(struct channel *ch)
{
    ch->fenced = FENCED_PUBLICATIONS;
    doorbell_begin_fenced(&ch->shared->waits.fenced);
}

/* Whether the ring is nearly empty. Where it is not, work that goes on in the background
 * (collectives, pieces of loose memory, wake-ups) may wait for room. */
static bool is_spacious(struct channel_outbox *outbox)
{
    int64_t used = ring_used(&outbox->ring);

    return used >= 0 && (uint64_t)used <= outbox->ring.size / 8;
}

/* Shows the daemon whether it need not wake this client when it has only taken submissions. */
static void show_room(struct channel *ch, unsigned kinds)
{
    uint32_t spacious =
        !(kinds & CHANNEL_TAKEN) && is_spacious(&ch->submit) && is_spacious(&ch->reply_submit);

    atomic_store_explicit(&ch->shared->waits.spacious, spacious, memory_order_relaxed); /* C */
}

/* Whether a neighbour's ring has an event for such a probe, or a peer's end is to be shown. */
static bool has_for(struct channel *ch, uint64_t peer, unsigned kinds)
{
    return channel_direct_pending(ch, peer, kinds) || channel_end_to_show(ch, peer, kinds);
}

int channel_arm_drained(struct channel *ch, uint32_t mode, unsigned kinds, unsigned drained)
{
    unsigned both;
    bool pending;

    show_room(ch, kinds);
    kinds &= ~CHANNEL_TAKEN;
    if (kinds == 0)
        kinds = PWC_LOCAL | PWC_REMOTE;
    both = kinds | drained;
    doorbell_arm(&ch->shared->event_bell, mode);
    neighbours_arm(&ch->neighbours, mode);
    FAULT(WAIT_ARMED);
    pending = (both & PWC_LOCAL) && inbox_pending(&ch->local);
    if (!pending && (both & CHANNEL_RING_KINDS || channel_sorts(ch)))
        pending = remote_pending(ch);
    if (!pending && ch->deliver)
        pending = inbox_pending(&ch->reply_event);
    pending = pending || has_for(ch, ch->asked_peer, kinds) ||
              (drained != 0 && has_for(ch, PWC_ANY, drained));
    if (!pending && channel_state(ch) == 0)
        return 0;
    channel_disarm(ch);
    return 1;
}

int channel_arm(struct channel *ch, uint32_t mode, unsigned kinds)
{
    return channel_arm_drained(ch, mode, kinds, 0);
}

void channel_disarm(struct channel *ch)
{
    doorbell_disarm(&ch->shared->event_bell);
    neighbours_disarm(&ch->neighbours);
}
