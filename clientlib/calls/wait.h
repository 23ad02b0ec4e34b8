/*
 * How a context lets time pass where a probe has found nothing.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WAIT_H
#define PWC_CLIENTLIB_WAIT_H

#include "clientlib/attach/context.h"
#include "clientlib/teams/teams.h"

/*
 * A call that waits shows its kind to people who look (session_waits): wait_begin, then any of the
 * pauses below, then wait_end. wait_begin and wait_end cost nothing where there is no pause. The
 * time from the first pause to the last one counts as waited, with the handlers that ran meanwhile.
 */
static inline void wait_begin(struct pwc_ctx *ctx, enum session_wait call)
{
    ctx->wait.call = call;
    ctx->wait.at = 0;
}
void wait_show_end(struct pwc_ctx *ctx);
static inline void wait_end(struct pwc_ctx *ctx)
{
    if (ctx->wait.at != 0)
        wait_show_end(ctx);
    ctx->wait.call = SESSION_WAITS_NOT;
}

/* Called around a sleep other than wait_sleep: notes that the context sleeps, and that it is
 * awake. */
void wait_asleep(struct pwc_ctx *ctx, int64_t now);
void wait_awake(struct pwc_ctx *ctx, int64_t now);

/* As channel_arm; a change among the neighbours also counts as something to probe, since it may
 * precede the arm and then rings no bell. */
int wait_arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds);
/* As wait_arm, for a call that waits: events for the function of pwc_set_handler count, too, and
 * the caller drains them. */
int wait_arm_drained(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds);
/* As wait_arm_drained, before wait_sleep. */
int wait_arm_sleep(struct pwc_ctx *ctx, unsigned kinds);

/* Looks to take before letting time pass: a neighbour, or a member of a team, answers within less
 * time than a yield takes, and this many looks take a few microseconds. A daemon may need this
 * core. */
static inline unsigned wait_spins(const struct pwc_ctx *ctx)
{
    const struct neighbours *n = &ctx->channel.neighbours;

    return n->count > 0 || n->awaited > 0 || teams_await_members(ctx) ? 100 : 1;
}

/* Yields, if ctx->patience says so. False: the context is to sleep. */
bool wait_yield(struct pwc_ctx *ctx, int64_t now);
/* Between wait_arm_sleep, which gave 0, and the disarming that this call does: sleeps until the
 * bell rings, until the deadline, or for a moment, to check that the daemon still lives. */
void wait_sleep(struct pwc_ctx *ctx, int64_t now, int64_t deadline);

/*
 * Yields, or sleeps, as ctx->patience says. A sleep ends when the daemon rings for an event of
 * these kinds or for another reason, when the deadline passes, or after a moment, to check that the
 * daemon still lives. May return early.
 */
void wait_pause(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t deadline);

/* For a caller that waits for these kinds and takes no events: learns of neighbours, keeps what has
 * arrived, local events only where it waits for them, runs handlers, and asks for the wake-ups that
 * are due. 0; -ENOBUFS: no more can be kept; -ENOMEM; -EPROTO. */
int wait_collect(struct pwc_ctx *ctx, unsigned kinds);

/* Gives events that have come to the function of pwc_set_handler, some at a time, except those that
 * a running pwc_wait asks for: how many. wait_collect does this, too. */
unsigned wait_drain(struct pwc_ctx *ctx);

/* Lets time pass until the deadline or for a moment, then keeps what has arrived: 0, -ETIMEDOUT
 * when the deadline had passed before, or the error that makes waiting useless. */
int wait_pass(struct pwc_ctx *ctx, int64_t deadline);

/* Asks for the wake-ups that are due, for 100 ms at most: the caller may make no later call that
 * would ask. */
void wait_for_due_wakes(struct pwc_ctx *ctx);

#endif
