/*
 * Owns nothing: waits for requests.
 *
 * A wait looks at its requests once and marks those that are under way. A marked request that ends
 * is put on the wait's list (request.h), so the others need not be looked at again. Only a wait for
 * all looks again at its end: handlers may have started more of its requests. A context has one
 * wait at a time, because handlers may not wait.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"
#include "clientlib/requests/request.h"
#include "clientlib/calls/wait.h"

enum { GLANCES = 8 }; /* looks at neighbours for each look at everything: a power of two */

struct wait {
    struct pwc_ctx *ctx; /* NULL before the first request was looked at */
    struct request_pool *pool;
    const struct pwc_request *sole; /* the only request of this wait, or NULL: there are several */
    uint32_t marked;                /* marked requests that are neither reported nor gone */
    unsigned ended_by;              /* enum pwc_kinds */
    int timeout_ms;
    int64_t deadline; /* 0: not yet known */
};

static int begin(struct wait *wait, const struct pwc_request *r, int timeout_ms)
{
    struct pwc_ctx *ctx = request_ctx(r);
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    *wait = (struct wait){.ctx = ctx, .pool = &ctx->channel.requests, .timeout_ms = timeout_ms};
    request_wait_begin(wait->pool);
    return 0;
}

/* Marks a request that is under way, unless an earlier entry of the array has marked it. */
static void mark(struct wait *wait, struct pwc_request *r, size_t position)
{
    if (r->waiter == wait->pool->wait)
        return;
    request_mark(wait->pool, r, (uint32_t)position);
    wait->marked++;
    wait->ended_by |= request_kind_of(r)->ended_by;
}

/* Takes the next request that has ended off the list. Passes over requests that a handler has
 * meanwhile started again, or whose end it has reported. NULL: there is none. */
static struct pwc_request *next_ended(struct wait *wait)
{
    struct pwc_request *r;

    while ((r = request_pop(wait->pool)) != NULL) {
        if (r->left > 0) {
            request_mark(wait->pool, r, r->position);
            continue;
        }
        wait->marked--;
        if (!r->reported)
            return r;
    }
    return NULL;
}

/* Whether this many of the marked requests have ended. */
static inline bool is_over(const struct wait *wait, uint32_t needed)
{
    return wait->sole ? wait->sole->left == 0 : wait->pool->ended >= needed;
}

/* Looks only at neighbours' rings, which costs a fifth of a look at everything. */
static inline void glance(const struct wait *wait)
{
    (void)channel_run_direct(&wait->ctx->channel);
    if (wait->ctx->channel.neighbours.wakes_due)
        wake_retry(wait->ctx);
}

/* 1: this many of the marked requests have ended; 0: not yet; or an error that makes waiting
 * useless. */
static int progress_awhile(const struct wait *wait, uint32_t needed)
{
    bool neighbours = wait->ctx->channel.neighbours.count > 0;
    int rc = 0;

    for (unsigned i = wait_spins(wait->ctx); i > 0 && rc == 0 && !is_over(wait, needed); i--) {
        if (neighbours && i % GLANCES != 1)
            glance(wait);
        else
            rc = request_progress(wait->ctx, wait->ended_by);
    }
    return is_over(wait, needed) ? 1 : rc;
}

static int pause_until(struct wait *wait, uint32_t needed)
{
    struct pwc_ctx *ctx = wait->ctx;
    /* Events in the rings end no collective, so they must not keep its waiter awake. */
    unsigned kinds = wait->ended_by ? wait->ended_by : PWC_MESSAGE;
    int64_t now = clock_now();
    int rc = 0;

    patience_worked(&ctx->patience, (uint64_t)now);
    while (rc == 0 && now < wait->deadline) {
        wait_pause(ctx, kinds, NULL, now, wait->deadline);
        rc = progress_awhile(wait, needed);
        now = clock_now();
    }
    return rc;
}

/* Waits until this many of the marked requests have ended: 1; 0 after the timeout; or an error. */
static int wait_for(struct wait *wait, uint32_t needed)
{
    int rc = progress_awhile(wait, needed);

    if (rc != 0)
        return rc;
    if (wait->deadline == 0)
        wait->deadline = deadline_after_ms(wait->timeout_ms);
    wait_begin(wait->ctx, SESSION_WAITS_EVENT);
    rc = pause_until(wait, needed);
    wait_end(wait->ctx);
    return rc;
}

int request_wait_until(struct pwc_request *request, struct pwc_status *out, int timeout_ms,
                       int64_t deadline)
{
    struct pwc_ctx *ctx = request_ctx(request);
    struct request_pool *pool = &ctx->channel.requests;
    int rc = 1;

    if (request->left > 0) {
        struct wait wait = {.ctx = ctx,
                            .pool = pool,
                            .sole = request,
                            .ended_by = request_kind_of(request)->ended_by,
                            .timeout_ms = timeout_ms,
                            .deadline = deadline};

        pool->awaited = request;
        rc = wait_for(&wait, 1);
        pool->awaited = NULL;
    }
    if (rc == 1)
        request_report(request, out);
    return rc;
}

int pwc_request_wait(pwc_request *request, struct pwc_status *out, int timeout_ms)
{
    int rc = client_may_block(request_ctx(request)->client);

    return rc < 0 ? rc : request_wait_until(request, out, timeout_ms, 0);
}

/* ---- several --------------------------------------------------------------------------------- */

/* The requests of one wait, and where it reports ends. */
struct many {
    pwc_request *const *requests;
    size_t n;
    size_t *which;
    struct pwc_status *out; /* or NULL */
    size_t most;            /* the most ends to report */
    size_t count;
};

static void report(struct many *many, struct pwc_request *r, size_t position)
{
    many->which[many->count] = position;
    request_report(r, many->out ? &many->out[many->count] : NULL);
    many->count++;
}

/* Looks at all requests: marks the ones under way, and reports ended ones while there is room. 0,
 * or an error. */
static int look(struct wait *wait, struct many *many, int timeout_ms)
{
    *wait = (struct wait){.ctx = NULL};
    if (many->n > INT32_MAX)
        return -EINVAL;
    for (size_t i = 0; i < many->n; i++) {
        struct pwc_request *r = many->requests[i];
        int rc = r && !wait->ctx ? begin(wait, r, timeout_ms) : 0;

        if (rc < 0)
            return rc;
        if (r && request_head(r)->pool != wait->pool)
            return -EINVAL;
        if (r && r->left > 0)
            mark(wait, r, i);
        else if (r && !r->reported && many->count < many->most)
            report(many, r, i);
    }
    return 0;
}

/* Reports the ends of marked requests, as many as there is room for. */
static void report_ended(struct wait *wait, struct many *many)
{
    struct pwc_request *r;

    while (many->count < many->most && (r = next_ended(wait)) != NULL)
        report(many, r, r->position);
}

static int wait_many(struct many *many, int timeout_ms)
{
    struct wait wait;
    int rc = look(&wait, many, timeout_ms);

    if (rc == 0 && many->count == 0) {
        do {
            rc = wait.marked > 0 ? wait_for(&wait, 1) : -ENOENT;
            if (rc == 1)
                report_ended(&wait, many);
        } while (rc == 1 && many->count == 0);
    }
    if (wait.ctx)
        request_wait_end(wait.pool);
    return rc < 0 ? rc : (int)many->count;
}

int pwc_wait_any(pwc_request *const *requests, size_t n, size_t *which, struct pwc_status *out,
                 int timeout_ms)
{
    struct many many = {.requests = requests, .n = n, .which = which, .out = out, .most = 1};

    return wait_many(&many, timeout_ms);
}

int pwc_wait_some(pwc_request *const *requests, size_t n, size_t *which, struct pwc_status *out,
                  int timeout_ms)
{
    struct many many = {.requests = requests, .n = n, .which = which, .out = out, .most = n};

    return wait_many(&many, timeout_ms);
}

/* Marks the requests that handlers have started meanwhile, although they were not under way at the
 * look: whether there are any. */
static bool mark_started(struct wait *wait, const struct many *many)
{
    for (size_t i = 0; i < many->n; i++)
        if (many->requests[i] && many->requests[i]->left > 0)
            mark(wait, many->requests[i], i);
    return wait->marked > 0;
}

int pwc_wait_all(pwc_request *const *requests, size_t n, int timeout_ms)
{
    struct many many = {.requests = requests, .n = n};
    struct wait wait;
    int rc = look(&wait, &many, timeout_ms);

    if (rc == 0)
        for (rc = 1; rc == 1 && (wait.marked > 0 || mark_started(&wait, &many));) {
            rc = wait_for(&wait, wait.marked);
            while (rc == 1 && next_ended(&wait))
                ;
        }
    if (wait.ctx)
        request_wait_end(wait.pool);
    for (size_t i = 0; i < n && rc == 1; i++)
        if (requests[i])
            request_report(requests[i], NULL);
    return rc;
}
