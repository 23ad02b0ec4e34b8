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
 * A kind of request: what is different about it. One row each; a plain one has no `start`, and only
 * notifications can be taken back.
 */
struct request_kind {
    unsigned ended_by; /* enum pwc_kinds: the rings that may bring its end */
    /* After channel_start_request: looks for what has arrived before, and lets the rest come. 0, or
     * an error after which nothing comes to it. */
    int (*start)(struct pwc_ctx *ctx, struct pwc_request *r);
    /* Takes a request under way back: from now on nothing comes to it. */
    void (*take_back)(struct pwc_ctx *ctx, struct pwc_request *r);
    /* A request with this number has been freed. */
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

/* Takes what has arrived: 0, or why a wait for requests that end by events of these kinds cannot go
 * on. Where the session is over, all requests end. */
int request_progress(struct pwc_ctx *ctx, unsigned ended_by);

/* As pwc_request_wait, in a call that may block. `deadline` 0: that of timeout_ms, looked up when
 * the wait begins to let time pass. */
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
