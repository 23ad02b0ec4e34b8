/*
 * How a context lets time pass when a probe has found nothing.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WAIT_H
#define PWC_CLIENTLIB_WAIT_H

#include "clientlib/attach/context.h"
#include "clientlib/teams/teams.h"

/*
 * A call that waits shows its kind to pwcctl (session_waits): it calls wait_begin, then any of the
 * pauses below, then wait_end. Without a pause, nothing is written to shared memory. The time from
 * the first pause to the last counts as waited, including handlers that ran meanwhile.
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

/* wait_asleep shows (session_waits) that the context sleeps, wait_awake that the context is awake
 * again. Beside a daemon of another scheduler group the thread has the batch policy in between. A
 * caller that does not sleep by wait_sleep calls both, before and after its sleep. wait_awake
 * returns the time. */
void wait_asleep(struct pwc_ctx *ctx, int64_t now);
int64_t wait_awake(struct pwc_ctx *ctx);

/* These kinds of events (0: local and remote ones), or the daemon has taken submissions: for a
 * caller that waits for room, or for the daemon. */
static inline unsigned wait_taken_too(unsigned kinds)
{
    return (kinds ? kinds : PWC_LOCAL | PWC_REMOTE) | CHANNEL_TAKEN;
}

/* As channel_arm. A change among the neighbours also counts as something to probe: if it happened
 * before the arm, no bell rings for it. */
int wait_arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds);
/* As wait_arm, for a call that waits: events for the function of pwc_set_handler count, too; the
 * caller then calls wait_drain. */
int wait_arm_drained(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds);
/* As wait_arm_drained, before wait_sleep. */
int wait_arm_sleep(struct pwc_ctx *ctx, unsigned kinds);

/* How often to look before letting time pass. A neighbour, or a member of a team, answers in less
 * time than a yield takes, so the context looks 100 times, for a few microseconds. Else once,
 * because the daemon may need this core. */
static inline unsigned wait_spins(const struct pwc_ctx *ctx)
{
    const struct neighbours *n = &ctx->channel.neighbours;

    return n->count > 0 || n->awaited > 0 || teams_await_members(ctx) ? 100 : 1;
}

/* Begins a pause: yields, if ctx->patience says so. False: the context should sleep. Looks once a
 * second whether the daemon lives, because a wait that always finds something may never sleep. */
bool wait_yield(struct pwc_ctx *ctx, int64_t now);
/* After wait_arm_sleep gave 0, for a caller that does not sleep after all. */
void wait_disarm(struct pwc_ctx *ctx);
/* Called after wait_arm_sleep gave 0. Sleeps until the bell rings or the deadline passes, or
 * shorter, to check that the daemon still lives; then disarms. */
void wait_sleep(struct pwc_ctx *ctx, int64_t now, int64_t deadline);

/* Whether a call need not wait any more. NULL in its place: never. */
typedef bool wait_over(const struct pwc_ctx *ctx);

/*
 * Yields, or sleeps, as ctx->patience says. A sleep ends when the daemon rings for an event of
 * these kinds or for another reason, when the deadline passes, or after a moment, to check that the
 * daemon still lives. If `over` holds once the bell is armed, no sleep begins: what came before the
 * arm rings no bell. May return early.
 */
void wait_pause(struct pwc_ctx *ctx, unsigned kinds, wait_over *over, int64_t now,
                int64_t deadline);

/* For a program that polls for these kinds and has found nothing: yields, as patience says; sleeps,
 * for a moment, only where yields do not reach the daemon, which waits for this processor. With a
 * descriptor the context does not sleep, since the arm belongs to the descriptor. Looks once a
 * second whether the daemon lives. */
void wait_between_looks(struct pwc_ctx *ctx, unsigned kinds);

/* For a caller that waits for these kinds and takes no events: takes changes among neighbours,
 * keeps events that have arrived (local events only if `kinds` has PWC_LOCAL), runs handlers, and
 * submits wake-ups that are due. 0; -ENOBUFS: no more can be kept; -ENOMEM; -EPROTO. */
int wait_collect(struct pwc_ctx *ctx, unsigned kinds);

/* Gives events that have arrived to the function of pwc_set_handler, some at a time, except those
 * that a running pwc_wait asks for. Returns how many. wait_collect does this, too. */
unsigned wait_drain(struct pwc_ctx *ctx);

/* Lets time pass until the deadline or for a moment (`kinds` and `over` as for wait_pause), then
 * keeps what has arrived: 0, -ETIMEDOUT when the deadline had already passed, or the error that
 * makes waiting useless. */
int wait_pass(struct pwc_ctx *ctx, unsigned kinds, wait_over *over, int64_t deadline);

/* Submits the wake-ups that are due, for 100 ms at most, because the program may make no later call
 * that would submit them. */
void wait_for_due_wakes(struct pwc_ctx *ctx);

#endif
