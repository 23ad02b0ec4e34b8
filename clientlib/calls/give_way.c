/* Learns after which submissions the program computes (give_way.h). Thread: the one that owns the
 * context. */
#include "clientlib/calls/give_way.h"

#include <sched.h>
#include "clientlib/attach/context.h"
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"

enum {
    COMPUTES_NS = 20000,  /* less is not worth a yield */
    SUBMIT_NS = 1000,     /* more than most submissions take; a long copy counts as computing */
    AT_ONCE_MOST = 8,     /* so many yields in a row without computing: the program has changed */
    VAIN_MOST = 4,        /* so many yields in vain in a row are not by chance */
    AGAIN_NS = 100000000, /* no yields for so long after these */
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

bool give_way_is_here(const struct pwc_ctx *ctx)
{
    uint32_t processor =
        atomic_load_explicit(&ctx->channel.shared->processor, memory_order_relaxed);

    return processor != 0 && processor == (uint32_t)sched_getcpu() + 1;
}

bool give_way_is_due(struct pwc_ctx *ctx)
{
    return give_way_is_here(ctx) && !channel_is_taken(&ctx->channel);
}

/* Notes whether a yield was in vain: the daemon has not run. Some are by chance: the scheduler
 * passes over a daemon that has had more than its share. */
static void note_vain(struct give_way *g, bool vain, int64_t now)
{
    g->vain = vain ? g->vain + 1 : 0;
    if (g->vain < VAIN_MOST)
        return;
    g->vain = 0;
    g->burst = 0;
    g->again_at = now + AGAIN_NS;
}

void give_way(struct pwc_ctx *ctx)
{
    struct give_way *g = &ctx->give_way;
    int64_t before, after;

    if (!give_way_is_due(ctx))
        return;
    before = clock_now();
    if (before < g->again_at || !patience_may_yield(&ctx->patience, (uint64_t)before))
        return;
    sched_yield();
    after = clock_now();
    patience_yielded(&ctx->patience, (uint64_t)before, (uint64_t)after);
    note_vain(g, give_way_is_due(ctx), after);
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
    }
    expect_burst(ctx);
}

void give_way_passes_over(struct pwc_ctx *ctx)
{
    ctx->give_way.submitted_then++;
    if (ctx->channel.burst_end != CHANNEL_NO_BURST)
        ctx->channel.burst_end++;
}

void give_way_or_wake(struct pwc_ctx *ctx, int rc)
{
    if (rc == CHANNEL_WAKES)
        wake_daemon(ctx);
    else
        end_burst(ctx);
}

void give_way_for_room(struct pwc_ctx *ctx)
{
    int64_t before;

    ctx->give_way.refused = false;
    if (!give_way_is_here(ctx))
        return;
    before = clock_now();
    if (!patience_may_yield(&ctx->patience, (uint64_t)before))
        return;
    sched_yield();
    patience_yielded(&ctx->patience, (uint64_t)before, (uint64_t)clock_now());
}

void give_way_pauses(struct pwc_ctx *ctx, int64_t now, bool owed)
{
    struct give_way *g = &ctx->give_way;
    uint64_t burst = ctx->channel.submitted - g->submitted_then;
    int64_t since = g->gave != 0 ? g->gave : g->resumed;

    if (burst == 0)
        return;
    if (owed && has_computed(since, now, burst))
        g->burst = burst;
    if (g->gave == 0)
        return;
    g->at_once = has_computed(g->gave, now, 0) ? 0 : g->at_once + 1;
    if (g->at_once == AT_ONCE_MOST)
        g->burst = g->at_once = 0;
}

void give_way_resumes(struct pwc_ctx *ctx, int64_t now)
{
    struct give_way *g = &ctx->give_way;

    g->submitted_then = ctx->channel.submitted;
    g->resumed = now;
    g->refused = false; /* the daemon has had the processor */
    g->gave = 0;
    expect_burst(ctx);
}
