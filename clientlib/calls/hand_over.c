/* Learns after which submissions the program computes (hand_over.h). Thread: the one that owns the
 * context. */
#include "clientlib/calls/hand_over.h"

#include <sched.h>
#include "clientlib/attach/context.h"
#include "clientlib/attach/deadline.h"

enum {
    COMPUTES_NS = 20000, /* less is not worth a yield */
    SUBMIT_NS = 1000,    /* the most that a submission takes; most take a tenth */
};

/* Whether the program has computed since `since`, besides this many submissions. */
static bool has_computed(int64_t since, int64_t now, uint64_t submissions)
{
    return now - since > COMPUTES_NS + (int64_t)submissions * SUBMIT_NS;
}

static void expect_row(struct pwc_ctx *ctx)
{
    uint64_t row = ctx->hand_over.row;

    ctx->channel.row_end = row == 0 ? 0 : ctx->channel.submitted + row;
}

static void forget(struct pwc_ctx *ctx)
{
    ctx->hand_over.row = 0;
    expect_row(ctx);
}

bool hand_over_is_due(struct pwc_ctx *ctx)
{
    uint32_t processor =
        atomic_load_explicit(&ctx->channel.shared->processor, memory_order_relaxed);

    return processor != 0 && processor == (uint32_t)sched_getcpu() + 1 &&
           !channel_is_taken(&ctx->channel);
}

void hand_over(struct pwc_ctx *ctx)
{
    uint64_t before;

    if (!hand_over_is_due(ctx))
        return;
    before = (uint64_t)clock_now();
    if (!patience_may_yield(&ctx->patience, before))
        return;
    sched_yield();
    patience_yielded(&ctx->patience, before, (uint64_t)clock_now());
}

void hand_over_row(struct pwc_ctx *ctx)
{
    struct hand_over *h = &ctx->hand_over;

    if (h->handed != 0 && !has_computed(h->handed, clock_now(), h->row)) {
        forget(ctx);
        return;
    }
    hand_over(ctx);
    h->handed = clock_now();
    expect_row(ctx);
}

void hand_over_pauses(struct pwc_ctx *ctx, int64_t now, bool owed)
{
    struct hand_over *h = &ctx->hand_over;
    uint64_t row = ctx->channel.submitted - h->paused;
    int64_t since = h->handed != 0 ? h->handed : h->resumed;

    if (row == 0)
        return;
    if (owed && has_computed(since, now, row))
        h->row = row;
    else if (h->handed != 0 && !has_computed(h->handed, now, 0))
        h->row = 0;
}

void hand_over_resumes(struct pwc_ctx *ctx, int64_t now)
{
    struct hand_over *h = &ctx->hand_over;

    h->paused = ctx->channel.submitted;
    h->resumed = now;
    h->handed = 0;
    expect_row(ctx);
}
