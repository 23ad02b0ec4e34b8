/*
 * Owns the patterns of requests for notifications, and the spaces of windows. Gives each
 * notification to the request that it matches, to the probe that asks for it, or to the unexpected.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/channel/channel_route.h"

/* The pattern of one request for notifications. It has a cache line of its own, with the same index
 * as the request in its chunk. */
struct channel_posting {
    _Alignas(64) struct matcher_request asks; /* first: the matcher returns a pointer to it */
    struct pwc_request *request;
};
static_assert(sizeof(struct channel_posting) == 64, "channel_posting");

void channel_notify_init(struct channel_notify *n)
{
    *n = (struct channel_notify){.highest_space = CHANNEL_SPACES_OWN - 1};
    matcher_init(&n->matcher, MATCHER_UNEXPECTED);
}

void channel_notify_destroy(struct channel *ch)
{
    for (uint32_t i = 0; i < ch->requests.chunk_count; i++)
        free(request_head(ch->requests.chunks[i])->postings);
    matcher_destroy(&ch->notify.matcher);
}

void channel_set_unexpected(struct channel *ch, uint32_t max)
{
    matcher_init(&ch->notify.matcher, max);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static struct channel_posting *posting_of(const struct pwc_request *r)
{
    return &request_head(r)->postings[request_place(r)];
}

/* Allocates the patterns for all requests of this request's chunk. */
static int make_places(const struct pwc_request *r)
{
    struct request_chunk_head *head = request_head(r);

    if (!head->postings)
        head->postings = aligned_alloc(64, REQUESTS_A_CHUNK * sizeof(struct channel_posting));
    return head->postings ? 0 : -ENOMEM;
}

int channel_notify_open(struct channel *ch, struct pwc_request *r,
                        const struct matcher_pattern *pattern)
{
    int rc = make_places(r);

    if (rc == 0)
        *posting_of(r) = (struct channel_posting){.asks = {.pattern = *pattern}, .request = r};
    return rc;
}

/* Publishes for pwcctl how many requests are started, and how many notifications were matched
 * (session_notices). */
static inline void publish_matched(struct channel *ch)
{
    struct session_notices *notices = &ch->shared->notices;
    const struct channel_notify *n = &ch->notify;

    atomic_store_explicit(&notices->started, n->matcher.started, memory_order_relaxed);
    atomic_store_explicit(&notices->matched, n->matched, memory_order_relaxed);
}

/* publish_matched, and how many notifications are unexpected. */
static void publish(struct channel *ch)
{
    publish_matched(ch);
    atomic_store_explicit(&ch->shared->notices.unexpected, ch->notify.matcher.kept,
                          memory_order_relaxed);
}

/* Notes a notification that the request has been waiting for. */
static inline void note(struct channel *ch, struct pwc_request *r, uint64_t peer, uint64_t id,
                        uint32_t bytes)
{
    ch->notify.matched++;
    r->status.count++;
    r->status.peer = peer;
    r->status.id = id;
    r->status.bytes = bytes;
    r->left--;
}

int channel_notify_start(struct channel *ch, struct pwc_request *r)
{
    struct channel_posting *posting = posting_of(r);
    struct matcher *matcher = &ch->notify.matcher;
    struct matcher_notice notice;
    int rc = matcher_prepare(matcher);

    if (rc < 0)
        return rc;
    while (r->left > 0 && matcher_take(matcher, &posting->asks.pattern, &notice))
        note(ch, r, notice.peer, notice.id, notice.bytes);
    if (r->left > 0)
        matcher_start(matcher, &posting->asks);
    else
        channel_end_request(ch, r, 0);
    publish(ch);
    return 0;
}

void channel_notify_stop(struct channel *ch, struct pwc_request *r)
{
    matcher_stop(&ch->notify.matcher, &posting_of(r)->asks);
    publish(ch);
}

/* ---- spaces -----------------------------------------------------------------------------------
 */

void channel_space_open(struct channel *ch, struct channel_space *space)
{
    struct channel_notify *n = &ch->notify;

    space->next = n->spaces;
    n->spaces = space;
    if (n->highest_space < space->number)
        n->highest_space = space->number;
}

void channel_space_close(struct channel *ch, struct channel_space *space)
{
    struct channel_space **at = &ch->notify.spaces;

    while (*at != space)
        at = &(*at)->next;
    *at = space->next;
    matcher_drop(&ch->notify.matcher, space->number);
    publish(ch);
}

/* Whether the window of this space is gone, so that no request can match its notifications any
 * more. A space with a higher number than this context has had may belong to a window that other
 * members have already made. */
static bool space_is_over(const struct channel_notify *n, uint64_t number)
{
    const struct channel_space *space = n->spaces;

    if (number < CHANNEL_SPACES_OWN || number > n->highest_space)
        return false;
    while (space && space->number != number)
        space = space->next;
    return !space;
}

/* ---- notifications ----------------------------------------------------------------------------
 */

bool channel_match(struct channel *ch, uint64_t peer, uint64_t id, uint32_t bytes)
{
    struct matcher_request *asks = matcher_find(&ch->notify.matcher, peer, id);
    struct pwc_request *r;

    if (!asks)
        return false;
    r = ((struct channel_posting *)(void *)asks)->request;
    note(ch, r, peer, id, bytes);
    if (r->left == 0) {
        matcher_stop(&ch->notify.matcher, asks);
        channel_ended_request(ch, r);
    }
    publish_matched(ch);
    return true;
}

int channel_notified(struct channel *ch, const struct event_record *event,
                     const struct asked *asked, struct pwc_event *out)
{
    const struct matcher_notice notice = {
        .peer = event->peer, .id = event->id, .bytes = (uint32_t)event->bytes, .op = event->op};
    int rc;

    if (channel_match(ch, notice.peer, notice.id, notice.bytes))
        return ROUTE_KEPT;
    if (channel_asks(asked, PWC_NOTIFICATION, notice.peer)) {
        channel_show(event, NULL, out);
        return ROUTE_SHOWN;
    }
    if (space_is_over(&ch->notify, notice.id >> 32))
        return ROUTE_KEPT;
    rc = matcher_keep(&ch->notify.matcher, &notice);
    publish(ch);
    return rc < 0 ? rc : ROUTE_KEPT;
}

bool channel_may_notify(struct channel *ch, uint64_t peer, uint64_t id)
{
    struct channel_notify *n = &ch->notify;

    return matcher_find(&n->matcher, peer, id) || space_is_over(n, id >> 32) ||
           matcher_room(&n->matcher) == 0;
}

bool channel_take_unexpected(struct channel *ch, uint64_t peer, struct pwc_event *out)
{
    struct event_record event = {.kind = EVENT_NOTIFY};
    struct matcher_notice notice;

    if (!matcher_take_from(&ch->notify.matcher, peer, peer == PWC_ANY, &notice))
        return false;
    publish(ch);
    event.op = notice.op;
    event.peer = notice.peer;
    event.id = notice.id;
    event.bytes = notice.bytes;
    channel_show(&event, NULL, out);
    return true;
}
