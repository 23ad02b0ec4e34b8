/* Learns after which submissions the program computes (give_way.h). Thread: the one that owns the
 * context. */
#include "clientlib/calls/give_way.h"

#include <sched.h>
#include "clientlib/attach/context.h"
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"

enum {
    COMPUTES_NS = 20000,   /* less is not worth a yield */
    SUBMIT_NS = 1000,      /* the most that a submission takes; most take a tenth */
    LEARNS_NS = 100000000, /* after two yields in vain */
};

/* Whether the program has computed since `since`, besides this many submissions. */
static bool has_computed(int64_t since, int64_t now, uint64_t submissions)
{
    return now - since > COMPUTES_NS + (int64_t)submissions * SUBMIT_NS;
}

static void expect_burst(struct pwc_ctx *ctx)
{
    uint64_t burst = ctx->give_way.burst;

    ctx->channel.burst_end = burst == 0 ? CHANNEL_NO_BURST : ctx->channel.submitted + burst;
}

bool give_way_is_due(struct pwc_ctx *ctx)
{
    uint32_t processor =
        atomic_load_explicit(&ctx->channel.shared->processor, memory_order_relaxed);

    return processor != 0 && processor == (uint32_t)sched_getcpu() + 1 &&
           !channel_is_taken(&ctx->channel);
}

void give_way(struct pwc_ctx *ctx)
{
    uint64_t before;

    if (!give_way_is_due(ctx))
        return;
    before = (uint64_t)clock_now();
    if (!patience_may_yield(&ctx->patience, before))
        return;
    sched_yield();
    patience_yielded(&ctx->patience, before, (uint64_t)clock_now());
}

/* Notes whether a yield was in vain: the daemon has not run. One may be by chance. */
static void note_vain(struct give_way *g, bool vain)
{
    if (vain && g->vain) {
        g->burst = 0;
        g->learns_at = g->gave + LEARNS_NS;
    }
    g->vain = vain;
}

/* A burst has ended. If it follows the last one at once, the program does not compute. */
static void end_burst(struct pwc_ctx *ctx)
{
    struct give_way *g = &ctx->give_way;

    if (g->gave != 0 && !has_computed(g->gave, clock_now(), g->burst)) {
        g->burst = 0;
    } else {
        give_way(ctx);
        g->gave = clock_now();
        note_vain(g, give_way_is_due(ctx));
    }
    expect_burst(ctx);
}

void give_way_or_wake(struct pwc_ctx *ctx, int rc)
{
    if (rc == CHANNEL_WAKES)
        wake_daemon(ctx);
    else
        end_burst(ctx);
}

void give_way_pauses(struct pwc_ctx *ctx, int64_t now, bool owed)
{
    struct give_way *g = &ctx->give_way;
    uint64_t burst = ctx->channel.submitted - g->submitted_then;
    int64_t since = g->gave != 0 ? g->gave : g->resumed;

    if (burst == 0)
        return;
    if (owed && now >= g->learns_at && has_computed(since, now, burst))
        g->burst = burst;
    else if (g->gave != 0 && !has_computed(g->gave, now, 0))
        g->burst = 0;
}

void give_way_resumes(struct pwc_ctx *ctx, int64_t now)
{
    struct give_way *g = &ctx->give_way;

    g->submitted_then = ctx->channel.submitted;
    g->resumed = now;
    g->gave = 0;
    expect_burst(ctx);
}
