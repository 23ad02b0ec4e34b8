/*
 * Routes each event and message of any ring to its destination. Only the channel's own files
 * include this header.
 *
 *     a message     its handler runs, if there is room for the reply; its event is shown,
 *                   where the probe asks for it
 *     a local event is settled first: ends of the library's own operations stop here
 *     a notification goes to the started request that it matches; else it is shown, where the probe
 *                   asks for notifications; else it is unexpected, within the bound
 *     the end of a peer is noted, and shown by a later probe that asks for it
 *     an event      is shown, where the probe asks for it, else kept; where no more can be kept, it
 *                   stays in its ring
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_CHANNEL_ROUTE_H
#define PWC_CLIENTLIB_CHANNEL_ROUTE_H

#include "clientlib/channel/channel.h"

/* The filter of one probe. */
struct asked {
    uint64_t peer; /* or PWC_ANY */
    unsigned kinds;
    uint64_t keep_max; /* bytes of events that may be kept for later probes */
};

enum route {
    ROUTE_STAYS = 0, /* nothing was done: the record must wait in its ring */
    ROUTE_SHOWN = 1, /* the event is in *out */
    ROUTE_KEPT = 2,  /* the event is kept for a later probe; or it was only for the library */
    ROUTE_RAN = 3,   /* a message's handler ran, and no probe asks for its event */
};

/*
 * Routes a record. Returns an enum route; unless it is ROUTE_STAYS, the caller drops the record
 * from its ring. -EPROTO: the record makes no sense; -ENOBUFS, -ENOMEM: it cannot be kept, and
 * stays.
 *
 * `event` is valid and of a kind of its ring. Its id follows it: for a message the block, which may
 * be in the ring itself. `from` is the neighbour that a request has arrived from, else NULL.
 */
int channel_route(struct channel *ch, struct neighbour *from, struct event_record *event,
                  const struct asked *asked, struct pwc_event *out);

/* Gives a notification to the started request that it matches: false where there is none. */
bool channel_match(struct channel *ch, uint64_t peer, uint64_t id, uint32_t bytes);
/* Routes a notification: as channel_route. */
int channel_notified(struct channel *ch, const struct event_record *event,
                     const struct asked *asked, struct pwc_event *out);
/* Whether a notification with this id would leave its ring, whatever a probe asks for. */
bool channel_may_notify(struct channel *ch, uint64_t peer, uint64_t id);
/* Shows the oldest unexpected notification of this peer (or PWC_ANY): false where there is none. */
bool channel_take_unexpected(struct channel *ch, uint64_t peer, struct pwc_event *out);

/* Notes that a peer has ended, for a later probe; returns as channel_route. */
int channel_peer_ended(struct channel *ch, const struct event_record *event);
/* The end of a peer that a probe with this filter would show now, or NULL. */
struct channel_end *channel_end_to_show(struct channel *ch, uint64_t peer, unsigned kinds);
/* Shows that end, or first a kept event of the same peer. False: there is none. */
bool channel_take_end(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out);
/* Shows the oldest kept event that this filter accepts: false where there is none. */
bool channel_take_kept(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out);
/* Moves the events that stand in the remote ring to the kept ones, as long as there is room.
 * Events that come meanwhile may stay in the ring: their senders could keep this call busy for
 * ever. */
void channel_learn(struct channel *ch);

/* Whether there is room for any reply to the request with this block, and for the end of that
 * reply. 1: yes; 0: the request must wait; -EPROTO: a neighbour sends more requests than it has
 * left room for answers. */
int channel_reply_room(struct channel *ch, struct neighbour *from, const struct message *block);

static inline bool channel_asks(const struct asked *asked, unsigned kind, uint64_t peer)
{
    return asked->kinds & kind && (asked->peer == PWC_ANY || asked->peer == peer);
}

/* Fills in a pwc_event: only this function does. `id` points to the bytes of its id. */
static inline void channel_show(const struct event_record *event, const void *id,
                                struct pwc_event *out)
{
    out->kind = event_shown_as(event->kind);
    out->op = event->op;
    out->status = event->status;
    out->id_size = event->id_len;
    out->peer = event->peer;
    out->id = event->id;
    out->data = event->id_len > 0 ? id : NULL;
    out->length = event->bytes;
    out->reserved[0] = out->reserved[1] = 0;
}

/* ---- the rings of events -------------------------------------------------------------- */

/* How many events of neighbours are taken before the rings of the session have their turn. */
#define CHANNEL_DIRECT_MAX 16

/* Takes the next event of neighbours: 1 or 0, as channel_probe. Runs the handlers of their
 * messages. */
int channel_take_direct(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out);
/* Whether there may be an event of neighbours, or another reason for a probe. */
bool channel_direct_pending(struct channel *ch, uint64_t peer, unsigned kinds);
/* Whether there is room for any reply through the daemon, or there will be when local events are
 * collected. */
bool channel_may_reply(struct channel *ch);

#endif
