/*
 * Owns nothing: routes events and messages (channel_route.h).
 *
 * A request that may be replied to waits in its ring, with all after it, until there is room for
 * any reply. For a request through the daemon, that means room in the reply_submit ring, which the
 * daemon always drains, and local event space, some of which is set aside for replies. The daemon
 * returns that space by ending earlier replies, without help of a handler; local events in the way
 * are kept. So requests stop only for a program that leaves more local events untaken than can be
 * kept.
 *
 * Thread: the one that owns the context.
 */
#include "clientlib/channel/channel_route.h"

#include <errno.h>
#include "proto/wire_abi.h"
#include "shm_ring/fault.h"

/* ---- messages -------------------------------------------------------------------------------- */

/* Whether the block is consistent, and fills the id. */
static bool block_valid(const struct channel *ch, const struct event_record *event)
{
    const struct message *block = (const struct message *)(event + 1);
    uint64_t bytes;

    if (event->id_len < sizeof(*block) || event->id_len > ch->block_max)
        return false;
    if (block->index >= SESSION_HANDLERS || block->arguments > SESSION_ARGUMENTS_MAX ||
        !submit_is_message(block->kind) ||
        (block->kind != SUBMIT_MEDIUM && block->payload_len != 0))
        return false;
    bytes = sizeof(*block) + 8u * block->arguments + (uint64_t)block->payload_len;
    return event->id_len == ((bytes + 7) & ~UINT64_C(7));
}

/* Whether the reply_submit ring has room for the longest reply. */
static bool has_reply_room(struct channel *ch)
{
    void *room;
    int rc = ring_reserve(&ch->reply_submit.ring, ch->reply_max, &room);

    if (rc == -EPROTO)
        (void)channel_break(ch);
    return rc == 0;
}

/* Whether there is local event space for a reply with the longest id. */
static bool has_local_space(struct channel *ch)
{
    int rc = inbox_space(&ch->local, EVENT_BYTES_MAX);

    if (rc == -EPROTO)
        (void)channel_break(ch);
    return rc == 0;
}

static bool can_reply(struct channel *ch)
{
    return has_reply_room(ch) &&
           (has_local_space(ch) || (channel_collect(ch) != 0 && has_local_space(ch)));
}

bool channel_may_reply(struct channel *ch)
{
    return has_reply_room(ch) &&
           (has_local_space(ch) || (inbox_pending(&ch->local) && channel_can_collect(ch)));
}

static int neighbour_reply_room(struct channel *ch, struct neighbour *from)
{
    uint32_t lines = ch->neighbours.answer_max;

    if (channel_own_room(ch, SESSION_ID_MAX) < 0)
        return 0;
    return lines > 0 && pair_room(&from->answers, lines) == 0 ? 1 : -EPROTO;
}

int channel_reply_room(struct channel *ch, struct neighbour *from, const struct message *block)
{
    if (block->token == WIRE_NONE)
        return 1;
    if (from)
        return block->token == 0 ? neighbour_reply_room(ch, from) : -EPROTO;
    if (can_reply(ch))
        return 1;
    ch->hold = HOLD_REPLY;
    return 0;
}

/* Runs the handler; *ended gets the event of the message. Returns 1, or as channel_deliver. */
static int run_message(struct channel *ch, struct neighbour *from, const struct event_record *event,
                       struct event_record *ended)
{
    const struct message *block = (const struct message *)(event + 1);
    int rc;

    *ended = (struct event_record){
        .kind = event->kind,
        .op = block->kind,
        .peer = event->peer,
        .bytes = block->kind == SUBMIT_LONG ? event->bytes : block->payload_len,
        .id = block->index,
    };
    FAULT(MESSAGE_FOUND);
    ch->neighbours.answering = from;
    rc = ch->deliver(ch->deliver_context, event, &ended->status);
    ch->neighbours.answering = NULL;
    FAULT(MESSAGE_RUN);
    return rc < 0 ? rc : 1;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The end of an operation with a request: as settle. */
static int settle_request(struct channel *ch, const struct event_record *event)
{
    return event->id_len == 0
               ? request_end_one(&ch->requests, event->id, event->status, event->peer, event->bytes)
               : -EPROTO;
}

/* The end of an operation with a slot, or with a request: as settle. */
static int settle_slot(struct channel *ch, struct event_record *event)
{
    bool ended = true;
    int rc = 1;

    if (!request_is_id(event->id))
        rc = pending_settle(&ch->pending, event, &ended);
    if (rc == 1 && event->op & EVENT_SLOT)
        rc = settle_request(ch, event);
    if (rc >= 0 && ended)
        channel_count_end(ch, event->status);
    return rc;
}

/* Handles a local event. 1: it is for the program; 0: it was only for the library; -EPROTO. */
static int settle(struct channel *ch, struct event_record *event)
{
    if (event->op & EVENT_SLOT)
        return settle_slot(ch, event);
    if (event->op != SUBMIT_FLUSH)
        return 1;
    if (event->id > ch->flushed)
        ch->flushed = event->id;
    return 0;
}

static const struct {
    bool message, replied_to;
    bool in_order; /* in the remote ring after the end of an earlier context with its peer's
                      number */
    int (*settle)(struct channel *ch, struct event_record *event);
} kinds[] = {
    [EVENT_LOCAL] = {.settle = settle},
    [EVENT_REMOTE] = {.in_order = true},
    [EVENT_REQUEST] = {.message = true, .replied_to = true, .in_order = true},
    [EVENT_REPLY] = {.message = true},
    [EVENT_NOTIFY] = {.in_order = true},
    [EVENT_OFFLOAD] = {.in_order = true},
    [EVENT_PEER] = {.message = false},
};

static int route_message(struct channel *ch, struct neighbour *from, struct event_record *event,
                         const struct asked *asked, struct pwc_event *out)
{
    struct event_record ended;
    int rc = 1;

    if (!ch->deliver || !block_valid(ch, event))
        return -EPROTO;
    if (kinds[event->kind].replied_to)
        rc = channel_reply_room(ch, from, (const struct message *)(event + 1));
    if (rc == 1)
        rc = run_message(ch, from, event, &ended);
    if (rc <= 0)
        return rc;
    if (!channel_asks(asked, PWC_MESSAGE, ended.peer))
        return ROUTE_RAN;
    channel_show(&ended, NULL, out);
    return ROUTE_SHOWN;
}

int channel_route(struct channel *ch, struct neighbour *from, struct event_record *event,
                  const struct asked *asked, struct pwc_event *out)
{
    bool shown = channel_asks(asked, event_shown_as(event->kind), event->peer);
    int rc;

    if (event->kind == EVENT_PEER && event->op == PEER_BACK) {
        channel_peer_is_back(ch, event->peer);
        return ROUTE_KEPT;
    }
    if (event->kind == EVENT_PEER)
        return channel_peer_ended(ch, event);
    if (kinds[event->kind].in_order && !from && channel_has_ended(&ch->ends, event->peer))
        channel_peer_is_back(ch, event->peer);
    if (kinds[event->kind].message)
        return route_message(ch, from, event, asked, out);
    if (event->kind == EVENT_NOTIFY)
        return channel_notified(ch, event, asked, out);
    rc = shown ? 0 : kept_room(&ch->kept, asked->keep_max);
    if (rc < 0)
        return rc;
    rc = kinds[event->kind].settle ? kinds[event->kind].settle(ch, event) : 1;
    if (rc <= 0)
        return rc == 0 ? ROUTE_KEPT : rc;
    if (shown)
        channel_show(event, event + 1, out);
    else
        kept_add(&ch->kept, event);
    return shown ? ROUTE_SHOWN : ROUTE_KEPT;
}
