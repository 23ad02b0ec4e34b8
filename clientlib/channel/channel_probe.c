/*
 * Owns nothing: takes events and messages out of the session's rings, and gives the rings and the
 * neighbours their turns. channel_route decides what becomes of each.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel_route.h"
#include "shm_ring/fault.h"

enum {
    MESSAGES_MAX = 64, /* handlers that one call runs before it looks into other rings */
};

static struct event_record *current(struct channel *ch)
{
    return (struct event_record *)(void *)ch->event;
}

static bool event_valid(const struct inbox *inbox, const struct event_record *event, uint32_t size)
{
    if (size < sizeof(*event) || size != event_bytes(event->id_len))
        return false;
    return event->kind == inbox->event_kind ||
           ((event->kind == inbox->notify_kind ||
             (event->kind == EVENT_PEER && inbox->notify_kind == EVENT_NOTIFY)) &&
            event->id_len == 0) ||
           (event->kind == EVENT_OFFLOAD && inbox->notify_kind == EVENT_NOTIFY &&
            event->id_len == sizeof(struct offload_word));
}

/* Copies the event at the head of a ring to `to`, which has EVENT_BYTES_MAX bytes: 1 or -EPROTO. */
static int copy_event(const struct inbox *inbox, const struct event_record *event, uint32_t size,
                      struct event_record *to)
{
    if (size > EVENT_BYTES_MAX)
        return -EPROTO;
    if (size == sizeof(*to)) /* an id by value: copied without a call */
        *to = *event;
    else
        memcpy(to, event, size);
    return event_valid(inbox, to, size) ? 1 : -EPROTO;
}

/* `space` is the event space that is returned with the record. */
static inline void consume(struct inbox *inbox, uint32_t size, uint64_t space)
{
    FAULT(EVENT_READ);
    inbox_consume(inbox, size, space);
    FAULT(EVENT_RELEASED);
}

/*
 * Routes the record at the head of a ring. An event is copied to `to`, which has EVENT_BYTES_MAX
 * bytes; a message is routed in the ring, where the daemon does not write until the message is
 * consumed. Results as channel_route; ROUTE_STAYS also where there is no record.
 */
static int take(struct channel *ch, struct inbox *inbox, struct event_record *to,
                const struct asked *asked, struct pwc_event *out)
{
    const struct event_record *there;
    uint32_t size;
    int rc = inbox_look(inbox, &there, &size);

    if (rc == 1 && there->kind == inbox->message_kind) {
        to = (struct event_record *)(uintptr_t)there;
        rc = size >= sizeof(*to) && size == event_bytes(to->id_len) ? 1 : -EPROTO;
    } else if (rc == 1) {
        rc = copy_event(inbox, there, size, to);
    }
    if (rc == 1)
        rc = channel_route(ch, NULL, to, asked, out);
    if (rc > 0 && inbox == &ch->reply_event)
        consume(inbox, size, event_bytes(ch->message_max));
    else if (rc > 0)
        consume(inbox, size, inbox == &ch->local ? size : 0);
    return rc == -EPROTO ? channel_break(ch) : rc;
}

/* The kinds of events that a ring may hold. */
static unsigned shown_from(const struct channel *ch, const struct inbox *inbox)
{
    return inbox == &ch->remote ? CHANNEL_RING_KINDS : event_shown_as(inbox->event_kind);
}

/* Routes records until one is shown: 1; 0 when no record is left or the next one must wait; or an
 * error. */
static int take_until_shown(struct channel *ch, struct inbox *inbox, const struct asked *asked,
                            struct pwc_event *out)
{
    unsigned messages = 0;
    int rc;

    if (inbox == &ch->remote)
        ch->hold = HOLD_NONE;
    do {
        rc = take(ch, inbox, current(ch), asked, out);
        messages += rc == ROUTE_RAN;
    } while (rc > ROUTE_SHOWN && messages < MESSAGES_MAX);
    if (rc == -ENOBUFS && !(asked->kinds & shown_from(ch, inbox))) {
        ch->hold = HOLD_KEPT;
        return 0;
    }
    return rc > ROUTE_SHOWN ? 0 : rc;
}

/* The first word of a plain event, whose id is by value, with 0 in place of its operation. */
static inline uint64_t plain_head(uint8_t event_kind)
{
    const struct ring_record_head head = {
        .size = sizeof(struct event_record),
        .kind = event_kind,
        .byte5 = 0, /* op */
        .half6 = 0, /* id_len */
    };
    uint64_t word;

    memcpy(&word, &head, sizeof(word));
    return word;
}

/* Whether an event with this first word is for the program as it is: neither EVENT_SLOT nor the end
 * of a flush. *op becomes its operation. */
static inline bool is_plain(uint64_t head, uint8_t event_kind, uint8_t *op)
{
    enum { OP_SHIFT = 8 * offsetof(struct event_record, op) };
    const uint64_t bits = UINT8_MAX & ~EVENT_SLOT;

    *op = (uint8_t)(head >> OP_SHIFT);
    return (head & ~(bits << OP_SHIFT)) == plain_head(event_kind) && *op != SUBMIT_FLUSH;
}

/*
 * Takes a plain event from the head of a ring without the steps that others need,
 * if it is from the peer that the caller asks for. Loads each of its words once. False: the ring is
 * empty, or the event is another one, or its peer may have ended before.
 */
static inline bool take_plain(const struct channel_ends *ends, struct inbox *inbox, uint64_t peer,
                              uint64_t space, struct pwc_event *out)
{
    const _Atomic uint64_t *there;
    struct event_record event;
    uint8_t op;

    if (inbox->ring.tail_seen == inbox->ring.head)
        (void)inbox_pending(inbox);
    if (ring_piece(&inbox->ring, &there) < sizeof(event) ||
        !is_plain(ring_word(there, 0), inbox->event_kind, &op))
        return false;
    event = (struct event_record){
        .kind = inbox->event_kind,
        .op = op,
        .status = (int32_t)ring_word(there, offsetof(struct event_record, status) / 8),
        .peer = ring_word(there, offsetof(struct event_record, peer) / 8),
        .bytes = ring_word(there, offsetof(struct event_record, bytes) / 8),
        .id = ring_word(there, offsetof(struct event_record, id) / 8),
    };
    if ((peer != PWC_ANY && event.peer != peer) || channel_has_ended(ends, event.peer))
        return false;
    consume(inbox, sizeof(event), space);
    channel_show(&event, NULL, out);
    return true;
}

/* The only ring that must be looked into for these kinds; NULL: several must be. */
static inline struct inbox *only_ring(struct channel *ch, unsigned kinds)
{
    if (channel_sorts(ch))
        return NULL;
    return kinds == PWC_REMOTE ? &ch->remote : kinds == PWC_LOCAL ? &ch->local : NULL;
}

/* Takes an event of these kinds from all rings, or from `only`. */
static __attribute__((noinline)) int probe_rings(struct channel *ch, struct inbox *only,
                                                 uint64_t peer, unsigned kinds,
                                                 struct pwc_event *out)
{
    struct inbox *const rings[] = {&ch->local, &ch->remote, &ch->reply_event};
    const struct asked asked = {.peer = peer, .kinds = kinds, .keep_max = CHANNEL_KEPT_BYTES};
    unsigned rings_left = 3;
    int full = 0;
    int rc = 0;

    /* Whether the ring may hold events that the probe asks for, or messages. */
    const bool look_into[] = {
        kinds & PWC_LOCAL,
        kinds & CHANNEL_RING_KINDS || channel_sorts(ch),
        ch->deliver,
    };

    if (only) {
        rc = take_until_shown(ch, only, &asked, out);
        rings_left = 0;
    }
    for (unsigned i = 0; i < rings_left && rc == 0; i++) {
        unsigned ring = ch->turn;

        ch->turn = ring == 2 ? 0 : ring + 1;
        if (look_into[ring])
            rc = take_until_shown(ch, rings[ring], &asked, out);
        if (rc == -ENOBUFS) { /* another ring may still have an event of the right kind */
            full = rc;
            rc = 0;
        }
    }
    if (rc == 0)
        rc = full != 0 ? full : channel_state(ch);
    return rc;
}

/* Whether kept events may have one of these kinds. Ends without the daemon are local events, so a
 * probe for other kinds need not search among them. */
static bool may_be_kept(const struct channel *ch, unsigned kinds)
{
    return ch->kept.bytes > 0 && (kinds & PWC_LOCAL || ch->kept.bytes > ch->kept.own);
}

__attribute__((noinline)) bool channel_take_kept(struct channel *ch, uint64_t peer, unsigned kinds,
                                                 struct pwc_event *out)
{
    if (!kept_take(&ch->kept, peer, kinds, current(ch)))
        return false;
    channel_show(current(ch), current(ch) + 1, out);
    return true;
}

/* Whether neighbours' rings may have events that the probe asks for, or records that must be
 * routed. */
static bool neighbours_may_have(const struct channel *ch, unsigned kinds)
{
    return ch->neighbours.awaited > 0 ||
           (ch->neighbours.count > 0 && (kinds & CHANNEL_REMOTE_KINDS || channel_sorts(ch)));
}

/* For a probe that has found nothing: takes a local event that was kept meanwhile, because a
 * handler, or a matched request, has added it, or because a handler has collected it. */
static int take_added(struct channel *ch, uint64_t kept_before, uint64_t peer, unsigned kinds,
                      struct pwc_event *out)
{
    return ch->kept.bytes > kept_before && kinds & PWC_LOCAL &&
           channel_take_kept(ch, peer, kinds, out);
}

/* channel_probe when several rings must be looked into. Neighbours' rings are first, but not
 * forever. */
static __attribute__((noinline)) int probe_all(struct channel *ch, uint64_t peer, unsigned kinds,
                                               struct pwc_event *out)
{
    bool neighbours = neighbours_may_have(ch, kinds);
    uint64_t kept = ch->kept.bytes;
    int rc;

    if (kinds & PWC_NOTIFICATION && channel_take_unexpected(ch, peer, out))
        return 1;
    if (neighbours && ch->direct_run < CHANNEL_DIRECT_MAX &&
        channel_take_direct(ch, peer, kinds, out)) {
        ch->direct_run++;
        return 1;
    }
    rc = probe_rings(ch, only_ring(ch, kinds), peer, kinds, out);
    if (neighbours) {
        if (rc == 0 && ch->direct_run >= CHANNEL_DIRECT_MAX)
            rc = channel_take_direct(ch, peer, kinds, out);
        ch->direct_run = 0;
    }
    if (rc == 0)
        rc = take_added(ch, kept, peer, kinds, out);
    if (rc == 0 && neighbours && ch->notify.held && kinds & CHANNEL_REMOTE_KINDS)
        rc = -ENOBUFS;
    return rc;
}

int channel_probe(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct inbox *only;

    if (kinds == 0)
        kinds = PWC_LOCAL | PWC_REMOTE;
    ch->asked_peer = peer;
    if (ch->ends.untaken > 0 && channel_take_end(ch, peer, kinds, out))
        return 1;
    if (may_be_kept(ch, kinds) && channel_take_kept(ch, peer, kinds, out))
        return 1;
    only = neighbours_may_have(ch, kinds) ? NULL : only_ring(ch, kinds);
    if (!only)
        return probe_all(ch, peer, kinds, out);
    if (take_plain(&ch->ends, only, peer, only == &ch->local ? event_bytes(0) : 0, out))
        return 1;
    return probe_rings(ch, only, peer, kinds, out);
}

/* Takes plain events from the head of the only ring that must be looked into. Returns how many. */
static unsigned take_plain_run(struct channel *ch, uint64_t peer, unsigned kinds,
                               struct pwc_event *events, unsigned max)
{
    struct inbox *only = only_ring(ch, kinds);
    uint64_t space = only == &ch->local ? event_bytes(0) : 0;
    unsigned count = 0;

    if (!only || neighbours_may_have(ch, kinds) || may_be_kept(ch, kinds))
        return 0;
    while (count < max && take_plain(&ch->ends, only, peer, space, &events[count]))
        count++;
    return count;
}

/* Copies the id's bytes, so that they last until the next probe. Returns the bytes of `ids` that
 * the copy takes. */
static uint32_t copy_id(struct pwc_event *event, uint8_t *to)
{
    if (event->id_size > 0)
        event->data = memcpy(to, event->data, event->id_size);
    return abi_pad8(event->id_size);
}

int channel_probe_n(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *events,
                    unsigned max)
{
    unsigned count = take_plain_run(ch, peer, kinds, events, max);
    uint32_t used = 0;
    int rc = 0;

    while (count < max && used + SESSION_ID_MAX <= sizeof(ch->ids)) {
        rc = channel_probe(ch, peer, kinds, &events[count]);
        if (rc != 1)
            break;
        used += copy_id(&events[count], ch->ids + used);
        count++;
        count += take_plain_run(ch, peer, kinds, events + count, max - count);
    }
    return count > 0 ? (int)count : rc;
}

static uint64_t collect_quota(const struct channel *ch)
{
    return CHANNEL_KEPT_BYTES + ch->local.ring.size;
}

bool channel_can_collect(struct channel *ch)
{
    return kept_room(&ch->kept, collect_quota(ch)) == 0;
}

/* Whether this is the first word of the local event of an operation, of any kind, with a
 * request. */
static inline bool heads_request_end(uint64_t word)
{
    const struct ring_record_head any_kind = {.byte5 = (uint8_t)~EVENT_SLOT};
    const struct ring_record_head head = {
        .size = sizeof(struct event_record), .kind = EVENT_LOCAL, .byte5 = EVENT_SLOT};
    uint64_t mask, wanted;

    memcpy(&mask, &any_kind, sizeof(mask));
    memcpy(&wanted, &head, sizeof(wanted));
    return (word & ~mask) == wanted;
}

/* Takes such events from the head of the local ring, without the steps that others need, and
 * returns how many. Loads each of their words once. Leaves a record that makes no sense to
 * take(). */
static int take_request_ends(struct channel *ch)
{
    struct inbox *inbox = &ch->local;
    const _Atomic uint64_t *there;
    int ends = 0;

    if (inbox->ring.tail_seen == inbox->ring.head)
        (void)inbox_pending(inbox);
    while (ring_piece(&inbox->ring, &there) >= sizeof(struct event_record) &&
           heads_request_end(ring_word(there, 0))) {
        uint64_t id = ring_word(there, offsetof(struct event_record, id) / 8);
        int32_t status = (int32_t)ring_word(there, offsetof(struct event_record, status) / 8);

        if (!request_is_id(id) ||
            request_end_one(&ch->requests, id, status,
                            ring_word(there, offsetof(struct event_record, peer) / 8),
                            ring_word(there, offsetof(struct event_record, bytes) / 8)) < 0)
            break;
        channel_count_end(ch, status);
        consume(inbox, sizeof(struct event_record), event_bytes(0));
        ends++;
    }
    return ends;
}

int channel_collect(struct channel *ch)
{
    _Alignas(8) uint8_t buffer[EVENT_BYTES_MAX];
    struct event_record *event = (struct event_record *)(void *)buffer;
    const struct asked nothing = {.keep_max = collect_quota(ch)};
    int collected = 0;
    int rc;

    do {
        collected += take_request_ends(ch);
        rc = take(ch, &ch->local, event, &nothing, NULL);
        collected += rc > 0;
    } while (rc > 0);
    return rc < 0 ? rc : collected;
}

/* Whether the next remote events may find no room, so that the daemon would stop their senders.
 * While at most half of the ring is used, even the longest event fits, wrap padding included. */
static bool is_crowded(struct channel *ch)
{
    const struct ring_consumer *ring = &ch->remote.ring;

    return atomic_load_explicit(&ch->shared->spilled, memory_order_acquire) ||
           (inbox_pending(&ch->remote) && ring->tail_seen - ring->head > ring->size / 2);
}

void channel_learn(struct channel *ch)
{
    const struct asked nothing = {.keep_max = CHANNEL_KEPT_BYTES};
    const struct ring_consumer *ring = &ch->remote.ring;
    const uint64_t end = inbox_pending(&ch->remote) ? ring->tail_seen : ring->head;

    while ((int64_t)(end - ring->head) > 0 &&
           take_until_shown(ch, &ch->remote, &nothing, NULL) == 0 && ch->hold == HOLD_NONE)
        continue;
}

uint64_t channel_position(const struct channel *ch)
{
    const struct neighbours *n = &ch->neighbours;
    uint64_t sum = ch->local.ring.head + ch->remote.ring.head + ch->reply_event.ring.head;

    for (uint32_t i = 0; i < n->count; i++)
        sum += n->list[i].ring.head;
    for (const struct direct_pair *p = n->ours; p; p = p->next)
        sum += p->answers.head;
    return sum;
}

int channel_run(struct channel *ch)
{
    const struct asked nothing = {.keep_max = CHANNEL_KEPT_BYTES};
    int rc = 0;

    if (channel_run_direct(ch))
        return 0;
    if (ch->deliver)
        rc = take_until_shown(ch, &ch->reply_event, &nothing, NULL);
    if (rc < 0 || !(channel_sorts(ch) || is_crowded(ch)))
        return rc;
    rc = take_until_shown(ch, &ch->remote, &nothing, NULL);
    return rc == 0 && ch->hold == HOLD_KEPT && is_crowded(ch) ? -ENOBUFS : rc;
}
