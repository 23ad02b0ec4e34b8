/*
 * Owns nothing: completes what the contexts of a client have submitted, before the client detaches.
 *
 * The program takes no more events, so they are taken and dropped here. So peers whose operations
 * wait for room in our rings continue; handlers of messages still run.
 *
 * Thread: the caller of pwc_finalize, alone with the client.
 */
#include "clientlib/calls/finish.h"

#include "clientlib/attach/deadline.h"
#include "clientlib/calls/flush.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/wait.h"

enum {
    KINDS_ALL = PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE | PWC_NOTIFICATION | PWC_OFFLOAD | PWC_PEER,
    EVENTS = 32,
    NAP_NS = 1000000, /* between two looks at a context, while another one sleeps */
};

/* Takes some of the events that are there, as pwc_probe_n, and counts operations that failed. */
static int drop_events(struct pwc_ctx *ctx, unsigned kinds, uint64_t *failed)
{
    struct pwc_event events[EVENTS];
    int n = pwc_probe_n(ctx, PWC_ANY, kinds, events, EVENTS);

    for (int i = 0; i < n; i++)
        *failed += events[i].kind == PWC_LOCAL && events[i].status < 0;
    return n;
}

/* Looks at each context once. Returns whether one of them must still wait; *idle is the last of the
 * waiting contexts that had no event. */
static bool look(struct pwc_client *client, uint64_t *failed, struct pwc_ctx **idle)
{
    bool waits = false;

    *idle = NULL;
    for (struct pwc_ctx *ctx = client->contexts; ctx; ctx = ctx->next) {
        int taken = drop_events(ctx, KINDS_ALL, failed);

        if (flush_has_ended(ctx) || channel_state(&ctx->channel) < 0)
            continue;
        waits = true;
        if (taken <= 0)
            *idle = ctx;
    }
    return waits;
}

/* An operation with a request has no event: its failure is noted in the request. */
static uint64_t failed_requests(const struct pwc_client *client)
{
    uint64_t count = 0;

    for (const struct pwc_ctx *ctx = client->contexts; ctx; ctx = ctx->next)
        count += request_pool_failed(&ctx->channel.requests);
    return count;
}

static uint64_t not_ended(const struct pwc_client *client)
{
    uint64_t count = 0;

    for (const struct pwc_ctx *ctx = client->contexts; ctx; ctx = ctx->next)
        count += channel_unended(&ctx->channel) + ctx->binds.count + series_count(ctx);
    return count;
}

uint64_t finish_contexts(struct pwc_client *client, int64_t deadline)
{
    struct pwc_ctx *idle;
    uint64_t failed = 0;
    int64_t now = clock_now();

    for (struct pwc_ctx *ctx = client->contexts; ctx; ctx = ctx->next) {
        if (ctx->channel.submit.open)
            channel_cancel(&ctx->channel, &ctx->channel.submit);
        patience_worked(&ctx->patience, (uint64_t)now);
        wait_begin(ctx, SESSION_WAITS_FLUSH);
    }
    for (; look(client, &failed, &idle) && now < deadline; now = clock_now())
        if (idle)
            wait_pause(idle, KINDS_ALL, flush_has_ended, now,
                       deadline - now < NAP_NS ? deadline : now + NAP_NS);
    for (struct pwc_ctx *ctx = client->contexts; ctx; ctx = ctx->next) {
        while (drop_events(ctx, PWC_LOCAL, &failed) > 0)
            continue;
        if (ctx->channel.neighbours.wakes_due)
            wait_for_due_wakes(ctx);
        wait_end(ctx);
    }
    return failed_requests(client) + failed + not_ended(client);
}
