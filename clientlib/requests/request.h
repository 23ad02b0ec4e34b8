/* Code that the calls on requests share. Thread: the one that owns the context. */
#ifndef PWC_CLIENTLIB_CALLS_REQUEST_H
#define PWC_CLIENTLIB_CALLS_REQUEST_H

#include "clientlib/attach/context.h"

static inline struct pwc_ctx *request_ctx(const struct pwc_request *r)
{
    uint8_t *pool = (uint8_t *)request_head(r)->pool;

    return (struct pwc_ctx *)(void *)(pool - offsetof(struct pwc_ctx, channel.requests));
}

/*
 * The functions of one kind of request. Each kind has a row; plain requests have no `start`, and
 * only requests for notifications have `take_back`.
 */
struct request_kind {
    unsigned ended_by; /* enum pwc_kinds: the rings that may bring its end */
    /* Called after channel_start_request: takes what has arrived already, and begins to receive the
     * rest. 0, or an error, after which the request receives nothing. */
    int (*start)(struct pwc_ctx *ctx, struct pwc_request *r);
    /* Stops a request that is under way: from now on it receives nothing. */
    void (*take_back)(struct pwc_ctx *ctx, struct pwc_request *r);
    /* Called when a request with this number has been freed. */
    void (*forget)(struct pwc_ctx *ctx, uint32_t number);
};

extern const struct request_kind request_notify;     /* notify.c */
extern const struct request_kind request_collective; /* teams/again.c */

/* Indexed by enum request_kinds. */
extern const struct request_kind *const request_kinds[];

static inline const struct request_kind *request_kind_of(const struct pwc_request *r)
{
    return request_kinds[r->kind];
}

/* Takes what has arrived: 0, or why a wait for requests that end by events of these kinds cannot
 * continue. When the session is over, all requests end. */
int request_progress(struct pwc_ctx *ctx, unsigned ended_by);

/* As pwc_request_wait, in a call that may block. `deadline` 0: it is computed from timeout_ms when
 * the wait first lets time pass. */
int request_wait_until(struct pwc_request *request, struct pwc_status *out, int timeout_ms,
                       int64_t deadline);

/* Reports the end of a request that has ended; `out` may be NULL. */
static inline void request_report(struct pwc_request *r, struct pwc_status *out)
{
    r->reported = true;
    if (out)
        *out = r->status;
}

#endif
