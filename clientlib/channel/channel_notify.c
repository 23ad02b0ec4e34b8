/*
 * Owns what the requests for notifications ask for, and the spaces of windows. Gives each
 * notification to the request that it matches, to the probe that asks for it, or to the unexpected.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/channel/channel_route.h"

/* The notifications that one request asks for; its place is that of its request in the pool. */
struct channel_posting {
    struct matcher_request asks; /* first: the matcher gives it back */
    struct pwc_request *request;
};

void channel_notify_init(struct channel_notify *n)
{
    *n = (struct channel_notify){.highest_space = CHANNEL_SPACES_OWN - 1};
    matcher_init(&n->matcher, MATCHER_UNEXPECTED);
}

void channel_notify_destroy(struct channel_notify *n)
{
    for (uint32_t i = 0; i < n->chunk_count; i++)
        free(n->chunks[i]);
    free(n->chunks);
    n->chunks = NULL;
    n->chunk_count = 0;
    matcher_destroy(&n->matcher);
}

void channel_set_unexpected(struct channel *ch, uint32_t max)
{
    matcher_init(&ch->notify.matcher, max);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static struct channel_posting *posting_of(const struct channel *ch, const struct pwc_request *r)
{
    uint32_t number = request_number(r);

    return &ch->notify.chunks[number / REQUESTS_A_CHUNK][number % REQUESTS_A_CHUNK];
}

/* The places of the requests up to this one's chunk. */
static int make_places(struct channel_notify *n, const struct pwc_request *r)
{
    uint32_t needed = request_number(r) / REQUESTS_A_CHUNK + 1;
    struct channel_posting **chunks;

    if (needed <= n->chunk_count)
        return 0;
    chunks = realloc(n->chunks, needed * sizeof(chunks[0]));
    if (!chunks)
        return -ENOMEM;
    n->chunks = chunks;
    for (; n->chunk_count < needed; n->chunk_count++) {
        chunks[n->chunk_count] = calloc(REQUESTS_A_CHUNK, sizeof(*chunks[0]));
        if (!chunks[n->chunk_count])
            return -ENOMEM;
    }
    return 0;
}

int channel_notify_open(struct channel *ch, struct pwc_request *r,
                        const struct matcher_pattern *pattern)
{
    int rc = make_places(&ch->notify, r);

    if (rc == 0)
        *posting_of(ch, r) = (struct channel_posting){.asks = {.pattern = *pattern}, .request = r};
    return rc;
}

/* Shows what has changed to people who look (session_notices). */
static void publish(struct channel *ch)
{
    struct session_notices *notices = &ch->shared->notices;
    const struct channel_notify *n = &ch->notify;

    atomic_store_explicit(&notices->started, n->matcher.started, memory_order_relaxed);
    atomic_store_explicit(&notices->unexpected, n->matcher.kept, memory_order_relaxed);
    atomic_store_explicit(&notices->matched, n->matched, memory_order_relaxed);
}

/* One notification more of those that the request waits for. */
static void note(struct channel *ch, struct pwc_request *r, const struct matcher_notice *notice)
{
    ch->notify.matched++;
    r->status.count++;
    r->status.peer = notice->peer;
    r->status.id = notice->id;
    r->status.bytes = notice->bytes;
    r->left--;
}

int channel_notify_start(struct channel *ch, struct pwc_request *r)
{
    struct channel_posting *posting = posting_of(ch, r);
    struct matcher *matcher = &ch->notify.matcher;
    struct matcher_notice notice;
    int rc = matcher_prepare(matcher);

    if (rc < 0)
        return rc;
    while (r->left > 0 && matcher_take(matcher, &posting->asks.pattern, &notice))
        note(ch, r, &notice);
    if (r->left > 0)
        matcher_start(matcher, &posting->asks);
    else
        channel_end_request(ch, r, 0);
    publish(ch);
    return 0;
}

void channel_notify_stop(struct channel *ch, struct pwc_request *r)
{
    matcher_stop(&ch->notify.matcher, &posting_of(ch, r)->asks);
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

/* The window of this space is gone: nothing can ask for its notifications any more. A space above
 * all that this context has had may be that of a window whose other members know it already. */
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

static void give(struct channel *ch, struct matcher_request *asks,
                 const struct matcher_notice *notice)
{
    struct pwc_request *r = ((struct channel_posting *)(void *)asks)->request;

    note(ch, r, notice);
    if (r->left == 0) {
        matcher_stop(&ch->notify.matcher, asks);
        channel_end_request(ch, r, 0);
    }
    publish(ch);
}

int channel_notified(struct channel *ch, const struct event_record *event,
                     const struct asked *asked, struct pwc_event *out)
{
    const struct matcher_notice notice = {
        .peer = event->peer, .id = event->id, .bytes = (uint32_t)event->bytes, .op = event->op};
    struct matcher_request *asks = matcher_find(&ch->notify.matcher, notice.peer, notice.id);
    int rc;

    if (asks) {
        give(ch, asks, &notice);
        return ROUTE_KEPT;
    }
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
