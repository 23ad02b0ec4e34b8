/*
 * Owns a context's list of peers that have ended: contexts that it has bound, or that have bound
 * it.
 *
 * The daemon's event of an end is in the remote ring after all events of that peer that came
 * through the daemon. Records that a neighbour has written to its own ring are shown before the
 * event, too. A new context may have the rank and number of one that has ended: it is then an
 * ordinary peer. If the new context ends, too, before a probe has shown the first end, both ends
 * are one event.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/channel/channel_route.h"

/* The place that leads to this peer's entry; or the free place where it would stand. At least half
 * of the places are free. */
static uint32_t *place_of(const struct channel_ends *ends, uint64_t peer)
{
    uint32_t mask = 2 * ends->room - 1;
    uint32_t at = (uint32_t)(peer * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;

    while (ends->places[at] != 0 && ends->list[ends->places[at] - 1].peer != peer)
        at = (at + 1) & mask;
    return &ends->places[at];
}

struct channel_end *channel_end_of(const struct channel_ends *ends, uint64_t peer)
{
    uint32_t place = *place_of(ends, peer);

    return place != 0 ? &ends->list[place - 1] : NULL;
}

static struct channel_end *find(const struct channel_ends *ends, uint64_t peer)
{
    return ends->seen & channel_end_bit(peer) ? channel_end_of(ends, peer) : NULL;
}

/* Makes the hash anew, and `seen`. */
static void index_all(struct channel_ends *ends)
{
    memset(ends->places, 0, 2 * (size_t)ends->room * sizeof(*ends->places));
    ends->seen = 0;
    for (uint32_t i = 0; i < ends->count; i++) {
        *place_of(ends, ends->list[i].peer) = i + 1;
        ends->seen |= channel_end_bit(ends->list[i].peer);
    }
}

static int grow(struct channel_ends *ends)
{
    uint32_t room = ends->room > 0 ? 2 * ends->room : 4;
    uint32_t *places = malloc(2 * (size_t)room * sizeof(*places));
    struct channel_end *list = places ? realloc(ends->list, room * sizeof(*list)) : NULL;

    if (!list) {
        free(places);
        return -ENOMEM;
    }
    free(ends->places);
    ends->places = places;
    ends->list = list;
    ends->room = room;
    index_all(ends);
    return 0;
}

int channel_peer_ended(struct channel *ch, const struct event_record *event)
{
    struct channel_ends *ends = &ch->ends;
    struct channel_end *known = find(ends, event->peer);

    if (known) {
        if (known->back)
            known->status = event->status;
        known->back = false;
        return ROUTE_KEPT;
    }
    if (ends->count == ends->room && grow(ends) < 0)
        return -ENOMEM;
    *place_of(ends, event->peer) = ends->count + 1;
    ends->list[ends->count++] = (struct channel_end){.peer = event->peer, .status = event->status};
    ends->seen |= channel_end_bit(event->peer);
    ends->untaken++;
    return ROUTE_KEPT;
}

void channel_peer_is_back(struct channel *ch, uint64_t peer)
{
    struct channel_ends *ends = &ch->ends;
    struct channel_end *end = find(ends, peer);

    if (!end)
        return;
    end->back = true;
    if (!end->taken)
        return; /* the event is still to be shown */
    *end = ends->list[--ends->count];
    index_all(ends);
}

/* Whether the peer is a neighbour whose ring still holds records. */
static bool still_speaks(const struct channel *ch, uint64_t peer)
{
    const struct neighbours *n = &ch->neighbours;

    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].peer == peer && pair_pending(&n->list[i].ring))
            return true;
    return false;
}

static bool asked_for(const struct channel_end *end, uint64_t peer)
{
    return !end->taken && (peer == PWC_ANY || peer == end->peer);
}

static void show(struct channel *ch, struct channel_end *end, struct pwc_event *out)
{
    const struct event_record event = {
        .kind = EVENT_PEER, .status = end->status, .peer = end->peer};

    end->taken = true;
    ch->ends.untaken--;
    channel_show(&event, NULL, out);
    if (end->back)
        channel_peer_is_back(ch, event.peer);
}

struct channel_end *channel_end_to_show(struct channel *ch, uint64_t peer, unsigned kinds)
{
    struct channel_ends *ends = &ch->ends;

    for (uint32_t i = 0; ends->untaken > 0 && kinds & PWC_PEER && i < ends->count; i++)
        if (asked_for(&ends->list[i], peer) &&
            !(kinds & CHANNEL_REMOTE_KINDS && still_speaks(ch, ends->list[i].peer)))
            return &ends->list[i];
    return NULL;
}

bool channel_take_end(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct channel_end *end = channel_end_to_show(ch, peer, kinds);

    if (!end)
        return false;
    /* Kept events of this peer are shown first. */
    if (!(kinds & PWC_NOTIFICATION && channel_take_unexpected(ch, end->peer, out)) &&
        !channel_take_kept(ch, end->peer, kinds, out))
        show(ch, end, out);
    return true;
}

bool channel_peer_is_over(struct channel *ch, uint64_t peer)
{
    const struct channel_end *end;
    bool spilled = atomic_load_explicit(&ch->shared->spilled, memory_order_acquire);

    channel_learn(ch);
    if (spilled && ch->hold == HOLD_NONE)
        return false; /* the ring has room now for what is spilled: the peer may be back */
    end = find(&ch->ends, peer);
    return end && !end->back && !still_speaks(ch, peer);
}

void channel_ends_destroy(struct channel_ends *ends)
{
    free(ends->list);
    free(ends->places);
    *ends = (struct channel_ends){0};
}
