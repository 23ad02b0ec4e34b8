/*
 * Events on their way out of the rings: to who asks for them, or to those kept for later. Messages
 * that stand between them are run.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/fault.h"

enum {
    MESSAGES_MAX = 64, /* handlers that one call runs for a ring before it looks into the others */
    DIRECT_MAX = 16,   /* events of neighbours before the rings have their turn */
};

static struct event_record *current(struct channel *ch)
{
    return (struct event_record *)(void *)ch->event;
}

static bool event_valid(const struct inbox *inbox, const struct event_record *event, uint32_t size)
{
    return size >= sizeof(*event) && event->kind == inbox->event_kind &&
           size == event_bytes(event->id_len);
}

/* The event at the head of a ring into `to`, which has EVENT_BYTES_MAX bytes: 0 or -EPROTO. */
static int copy_event(struct channel *ch, const struct inbox *inbox,
                      const struct event_record *event, uint32_t size, struct event_record *to)
{
    if (size > EVENT_BYTES_MAX)
        return channel_break(ch);
    if (size == sizeof(*to)) /* an id by value: copied without a call */
        *to = *event;
    else
        memcpy(to, event, size);
    return event_valid(inbox, to, size) ? 0 : channel_break(ch);
}

static void consume(struct channel *ch, struct inbox *inbox, uint32_t size)
{
    FAULT(EVENT_READ);
    inbox_consume(inbox, size, inbox == &ch->local ? size : 0);
    FAULT(EVENT_RELEASED);
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
    return rc < 0 ? channel_break(ch) : rc;
}

static int look(struct channel *ch, struct inbox *inbox, const struct event_record **event,
                uint32_t *size)
{
    int rc = inbox_look(inbox, event, size);

    return rc < 0 ? channel_break(ch) : rc;
}

static bool matches(const struct event_record *event, uint64_t peer)
{
    return peer == PWC_ANY || event->peer == peer;
}

/*
 * Pops until an event of `peer` and of these kinds comes, which is then the current one; others are
 * kept. 1, 0 when there is no more or what comes next has to wait, or an error.
 */
static int pass(struct channel *ch, struct inbox *inbox, uint64_t peer, unsigned kinds)
{
    bool asked_for = kinds & (inbox == &ch->local ? PWC_LOCAL : PWC_REMOTE);
    const struct event_record *there;
    unsigned messages = 0;
    uint32_t size;
    int rc = 0;

    if (inbox == &ch->remote)
        ch->hold = HOLD_NONE;
    while (messages < MESSAGES_MAX && (rc = look(ch, inbox, &there, &size)) == 1) {
        if (there->kind == inbox->message_kind) {
            rc = channel_meet(ch, inbox, there, size);
            if (rc <= 0 || (kinds & PWC_MESSAGE && matches(current(ch), peer)))
                return rc;
            messages++;
            continue;
        }
        rc = copy_event(ch, inbox, there, size, current(ch));
        if (rc < 0)
            return rc;

        bool wanted = asked_for && matches(current(ch), peer);

        rc = wanted ? 0 : kept_room(&ch->kept, CHANNEL_KEPT_BYTES);
        if (rc == -ENOBUFS && !asked_for) {
            ch->hold = HOLD_KEPT;
            return 0;
        }
        if (rc < 0)
            return rc;
        consume(ch, inbox, size);
        rc = event_shown(ch, current(ch));
        if (rc < 0 || (rc == 1 && wanted))
            return rc;
        if (rc == 1)
            kept_add(&ch->kept, current(ch));
    }
    return rc < 0 ? rc : 0;
}

static inline void show(const struct event_record *event, struct pwc_event *out)
{
    static const int kinds[] = {
        [EVENT_LOCAL] = PWC_LOCAL,
        [EVENT_REMOTE] = PWC_REMOTE,
        [EVENT_REQUEST] = PWC_MESSAGE,
        [EVENT_REPLY] = PWC_MESSAGE,
    };

    out->kind = kinds[event->kind];
    out->status = event->status;
    out->peer = event->peer;
    out->id = event->id;
    out->size = event->id_len;
    out->data = event->id_len > 0 ? event + 1 : NULL;
    out->bytes = event->bytes;
}

void channel_show(const struct channel *ch, struct pwc_event *out)
{
    show((const struct event_record *)(const void *)ch->event, out);
}

/*
 * Takes what most events are: of a put, with its id by value, of the peer that is asked for; from
 * the head of a ring to the caller, without the steps that others need. False: it is no such event,
 * or none has been seen yet, which pass tells.
 */
static inline bool take_plain(struct channel *ch, struct inbox *inbox, uint64_t peer,
                              struct pwc_event *out)
{
    const _Atomic uint64_t *there;
    struct event_record event;

    if (ring_piece(&inbox->ring, &there) < sizeof(event))
        return false;
    event = *(const struct event_record *)(const void *)there;
    /* Keeps the compiler from reading the shared record again in place of the copy. */
    atomic_signal_fence(memory_order_seq_cst);
    if (event.size != sizeof(event) || event.kind != inbox->event_kind || event.op != SUBMIT_PUT ||
        event.id_len > 0 || !matches(&event, peer))
        return false;
    consume(ch, inbox, sizeof(event));
    show(&event, out);
    return true;
}

/* The one ring that may hold events of these kinds, and no messages; NULL: more have to be looked
 * into. */
static inline struct inbox *only_ring(struct channel *ch, unsigned kinds)
{
    if (ch->deliver)
        return NULL;
    return kinds == PWC_REMOTE ? &ch->remote : kinds == PWC_LOCAL ? &ch->local : NULL;
}

/* An event of these kinds from the rings, or from one alone, into `out`. */
static __attribute__((noinline)) int probe_rings(struct channel *ch, struct inbox *only,
                                                 uint64_t peer, unsigned kinds,
                                                 struct pwc_event *out)
{
    struct inbox *const rings[] = {&ch->local, &ch->remote, &ch->reply};
    unsigned rings_left = 3;
    int full = 0;
    int rc = 0;

    /* Rings that may hold what is asked for, or messages. */
    const bool look_into[] = {
        kinds & PWC_LOCAL,
        kinds & PWC_REMOTE || ch->deliver,
        ch->deliver,
    };

    if (only) {
        rc = pass(ch, only, peer, kinds);
        rings_left = 0;
    }
    for (unsigned i = 0; i < rings_left && rc == 0; i++) {
        unsigned ring = ch->turn;

        ch->turn = ring == 2 ? 0 : ring + 1;
        if (look_into[ring])
            rc = pass(ch, rings[ring], peer, kinds);
        if (rc == -ENOBUFS) { /* another ring may still have what is asked for */
            full = rc;
            rc = 0;
        }
    }
    if (rc == 0)
        rc = full != 0 ? full : channel_state(ch);
    if (rc == 1)
        channel_show(ch, out);
    return rc;
}

/* Our own ends are local events: who asks for others need not search among them. */
static bool may_be_kept(const struct channel *ch, unsigned kinds)
{
    return ch->kept.bytes > (kinds & PWC_LOCAL ? 0 : ch->kept.own);
}

/* What comes by neighbours is asked for, or runs handlers. */
static bool neighbours_tell(const struct channel *ch, unsigned kinds)
{
    return ch->neighbours.awaited > 0 ||
           (ch->neighbours.count > 0 && (kinds & PWC_REMOTE || ch->deliver));
}

/* Neighbours go first, but not for ever. */
int channel_probe(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct inbox *only;
    int rc;

    if (kinds == 0)
        kinds = PWC_LOCAL | PWC_REMOTE;
    ch->asked_peer = peer;
    if (may_be_kept(ch, kinds) && kept_take(&ch->kept, peer, kinds, current(ch))) {
        channel_show(ch, out);
        return 1;
    }
    if (!neighbours_tell(ch, kinds)) {
        only = only_ring(ch, kinds);
        return only && take_plain(ch, only, peer, out) ? 1
                                                       : probe_rings(ch, only, peer, kinds, out);
    }
    if (ch->direct_run < DIRECT_MAX && channel_take_direct(ch, peer, kinds, out)) {
        ch->direct_run++;
        return 1;
    }
    rc = probe_rings(ch, only_ring(ch, kinds), peer, kinds, out);
    if (rc == 0 && ch->direct_run >= DIRECT_MAX)
        rc = channel_take_direct(ch, peer, kinds, out);
    ch->direct_run = 0;
    return rc;
}

static uint64_t collect_quota(const struct channel *ch)
{
    return CHANNEL_KEPT_BYTES + ch->local.ring.size;
}

bool channel_can_collect(struct channel *ch)
{
    return kept_room(&ch->kept, collect_quota(ch)) == 0;
}

int channel_collect(struct channel *ch)
{
    _Alignas(8) uint8_t buffer[EVENT_BYTES_MAX];
    struct event_record *event = (struct event_record *)(void *)buffer;
    uint64_t quota = collect_quota(ch);
    const struct event_record *there;
    uint32_t size;
    int collected = 0;
    int rc;

    while ((rc = look(ch, &ch->local, &there, &size)) == 1) {
        rc = copy_event(ch, &ch->local, there, size, event);
        if (rc < 0)
            return rc;
        rc = kept_room(&ch->kept, quota);
        if (rc < 0)
            return rc;
        consume(ch, &ch->local, size);
        collected++;
        rc = event_shown(ch, event);
        if (rc < 0)
            return rc;
        if (rc == 1)
            kept_add(&ch->kept, event);
    }
    return rc < 0 ? rc : collected;
}

int channel_run(struct channel *ch)
{
    struct pwc_event none;
    int rc;

    if (ch->neighbours.awaited > 0 || (ch->deliver && ch->neighbours.count > 0))
        (void)channel_take_direct(ch, PWC_ANY, 0, &none);
    if (!ch->deliver)
        return 0;
    rc = pass(ch, &ch->reply, PWC_ANY, 0);
    return rc < 0 ? rc : pass(ch, &ch->remote, PWC_ANY, 0);
}
