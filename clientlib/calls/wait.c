/*
 * Owns nothing: yields, sleeps, and checks that the daemon lives. The session's event bell (a
 * futex) ends a sleep; while binds are under way, a readable descriptor does. No bell rings when
 * the daemon dies, so once a second the wake socket is polled for its hang-up, before a pause and
 * after a sleep: neighbours may end each sleep early, or keep a wait from sleeping. Thread: the one
 * that owns the context.
 */
#include "clientlib/calls/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/guard.h"
#include "clientlib/attach/wake.h"
#include "clientlib/attach/wake_socket.h"
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/series.h"
#include "clientlib/binds/bind_start.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/doorbell.h"

enum {
    HEALTH_NS = 1000000000, /* between two checks that the daemon lives */
    HELD_NS = 1000000, /* longest sleep while a request waits for room for its reply: no bell rings
                          then */
    NAP_NS = 1000000,  /* longest sleep for room in a ring, which may have come before the arm */
    WAKES_NS = 100000000,
    DRAINED = 64, /* events at a time */
};

static bool daemon_hung_up(struct pwc_ctx *ctx)
{
    struct pollfd wake = {.fd = ctx->wake_fd, .events = POLLRDHUP};

    return poll(&wake, 1, 0) > 0 && (wake.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Ends the channel when the daemon is gone. Looks once a second. */
static void check_daemon(struct pwc_ctx *ctx, int64_t now)
{
    if (now < ctx->health_at)
        return;
    if (daemon_hung_up(ctx))
        channel_end(&ctx->channel, -ESHUTDOWN);
    ctx->health_at = now + HEALTH_NS;
}

/* ---- shown to pwcctl -------------------------------------------------------------------- */

/* Only this thread writes these words. */
static void grow(_Atomic uint64_t *word, int64_t by)
{
    uint64_t value = atomic_load_explicit(word, memory_order_relaxed);

    atomic_store_explicit(word, value + (uint64_t)by, memory_order_relaxed);
}

/* A pause begins: shows the call at its first pause, and counts the time since the last one. */
static void pause_begins(struct pwc_ctx *ctx, int64_t now)
{
    struct session_waits *shown = &ctx->channel.shared->waits;
    struct context_wait *w = &ctx->wait;

    if (w->shown != w->call) {
        w->shown = w->call;
        atomic_store_explicit(&shown->call, w->call, memory_order_relaxed);
    }
    if (w->at != 0)
        grow(&shown->waited_ns, now - w->at);
    w->at = now;
}

/* A pause ends. If its call continues to wait, the time up to the next pause is waited, too. */
static void pause_ends(struct pwc_ctx *ctx, int64_t now)
{
    grow(&ctx->channel.shared->waits.waited_ns, now - ctx->wait.at);
    ctx->wait.at = ctx->wait.call != SESSION_WAITS_NOT ? now : 0;
    give_way_resumes(ctx, now);
}

void wait_show_end(struct pwc_ctx *ctx)
{
    ctx->wait.shown = SESSION_WAITS_NOT;
    ctx->wait.at = 0;
    atomic_store_explicit(&ctx->channel.shared->waits.call, SESSION_WAITS_NOT,
                          memory_order_relaxed);
}

/* Whether the daemon is on this processor, but in another scheduler group, so that a yield hardly
 * reaches it (shm_ring/patience.h). */
static bool daemon_is_apart_here(const struct pwc_ctx *ctx)
{
    return atomic_load_explicit(&ctx->channel.shared->apart, memory_order_relaxed) == 1 &&
           give_way_is_here(ctx);
}

/* A thread of the batch policy takes the processor from nobody when it wakes up. So a daemon that
 * wakes a sleeper on its own processor ends its step and sleeps, and what arrives wakes it while
 * the program computes. Otherwise it would lose the processor to the sleeper, and get it back only
 * at the end of a slice. A policy that the program has chosen stays. */
static void become_batch(struct context_wait *w)
{
    static const struct sched_param none;

    if (w->unbatched || sched_getscheduler(0) != SCHED_OTHER)
        return;
    w->batch = sched_setscheduler(0, SCHED_BATCH, &none) == 0;
    w->unbatched = !w->batch;
}

/* Another thread may have chosen another policy for this one meanwhile. */
static void become_other(struct context_wait *w)
{
    static const struct sched_param none;

    w->batch = false;
    if (sched_getscheduler(0) == SCHED_BATCH)
        (void)sched_setscheduler(0, SCHED_OTHER, &none);
}

void wait_asleep(struct pwc_ctx *ctx, int64_t now)
{
    pause_begins(ctx, now);
    channel_begin_fenced(&ctx->channel);
    atomic_store_explicit(&ctx->channel.shared->waits.asleep_since, (uint64_t)now,
                          memory_order_release);
    if (daemon_is_apart_here(ctx))
        become_batch(&ctx->wait);
}

int64_t wait_awake(struct pwc_ctx *ctx)
{
    struct session_waits *shown = &ctx->channel.shared->waits;
    int64_t now, since = ctx->wait.at;

    if (ctx->wait.batch)
        become_other(&ctx->wait);
    now = clock_now();
    /* In this order a reader that looks between the two stores may miss the nap, but never counts
     * it twice. */
    atomic_store_explicit(&shown->asleep_since, 0, memory_order_relaxed);
    atomic_store_explicit(&shown->asleep_ns,
                          atomic_load_explicit(&shown->asleep_ns, memory_order_relaxed) +
                              (uint64_t)(now - since),
                          memory_order_release);
    pause_ends(ctx, now);
    return now;
}

/* ---- pauses --------------------------------------------------------------------------------- */

/* The kinds that the function of pwc_set_handler takes now. */
static inline unsigned drained_kinds(const struct pwc_ctx *ctx)
{
    return ctx->events.run ? ctx->events.kinds & ~ctx->events.asked : 0;
}

/* As channel_arm_drained, and as wait_arm. */
static int arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds, unsigned drained)
{
    bool pieces = ctx->channel.neighbours.pieces_due;
    int rc;

    /* The end of a piece allows the next one, so wake for local events, too. */
    if (pieces && channel_can_collect(&ctx->channel))
        kinds = PWC_LOCAL | (kinds ? kinds : PWC_LOCAL | PWC_REMOTE);
    if (ctx->channel.neighbours.wakes_due)
        kinds = wait_taken_too(kinds);
    rc = channel_arm_drained(&ctx->channel, mode, kinds, drained);
    if (rc == 0 && pieces && series_go_on(ctx) > 0) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }

    if (rc == 0 && neighbours_have_changed(ctx)) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }
    if (rc == 0 && teams_arm(ctx) == 1) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }
    return rc;
}

int wait_arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds)
{
    return arm(ctx, mode, kinds, 0);
}

int wait_arm_drained(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds)
{
    return arm(ctx, mode, kinds, drained_kinds(ctx));
}

/* An answer to a bind wakes no futex. So while a bind is under way, the context sleeps on the wake
 * socket and the sources of answers. */
static bool sleeps_on_descriptors(const struct pwc_ctx *ctx)
{
    return ctx->binds.first != NULL;
}

int wait_arm_sleep(struct pwc_ctx *ctx, unsigned kinds)
{
    if (!sleeps_on_descriptors(ctx))
        return wait_arm_drained(ctx, DOORBELL_FUTEX, kinds);
    wake_socket_read(ctx);
    return wait_arm_drained(ctx, DOORBELL_FD, kinds);
}

/* Sleeps until the daemon writes to the wake socket, or an answer arrives, or the time is over: 0,
 * -ETIMEDOUT or -EINTR. */
static int sleep_on_descriptors(struct pwc_ctx *ctx, int64_t nap)
{
    struct pollfd polled[] = {{.fd = ctx->wake_fd, .events = POLLIN},
                              {.fd = ctx->client->link.frames.fd, .events = POLLIN},
                              {.fd = ctx->binds.mailbox.bell, .events = POLLIN}};
    struct timespec limit = deadline_timespec(nap);
    int ready = ppoll(polled, sizeof(polled) / sizeof(polled[0]), &limit, NULL);

    return ready < 0 ? -errno : ready == 0 ? -ETIMEDOUT : 0;
}

void wait_disarm(struct pwc_ctx *ctx)
{
    channel_disarm(&ctx->channel);
    teams_disarm(ctx);
}

void wait_sleep(struct pwc_ctx *ctx, int64_t now, int64_t deadline)
{
    int64_t longest = channel_holds_request(&ctx->channel) ? HELD_NS : HEALTH_NS;
    int64_t end = binds_deadline(ctx) < deadline ? binds_deadline(ctx) : deadline;
    int64_t left = end > now ? end - now : 0;
    int64_t nap = left < longest ? left : longest;

    wait_asleep(ctx, now);
    int rc = sleeps_on_descriptors(ctx) ? sleep_on_descriptors(ctx, nap)
                                        : doorbell_sleep(&ctx->channel.shared->event_bell, nap);
    int64_t awake = wait_awake(ctx);

    if (rc == 0)
        patience_worked(&ctx->patience, (uint64_t)awake);
    check_daemon(ctx, awake);
    wait_disarm(ctx);
}

bool wait_yield(struct pwc_ctx *ctx, int64_t now)
{
    check_daemon(ctx, now);

    bool here = give_way_is_here(ctx), owed = here && !channel_is_taken(&ctx->channel);
    /* Beside a client that yields again and again a daemon that is apart gets no more than its
     * share (give_way.h). Neighbours answer sooner than a sleeper wakes up. */
    bool unheard =
        ctx->wait.unheard && (owed || (daemon_is_apart_here(ctx) && wait_spins(ctx) == 1));

    ctx->wait.unheard = false;
    give_way_pauses(ctx, now, owed);
    if (unheard || patience_next(&ctx->patience, (uint64_t)now, UINT64_MAX) != PATIENCE_YIELD)
        return false;
    pause_begins(ctx, now);
    if (here)
        ctx->wait.unheard = yields_in_vain(&ctx->wait.yields);
    else
        sched_yield();
    int64_t after = clock_now();

    pause_ends(ctx, after);
    patience_yielded(&ctx->patience, (uint64_t)now, (uint64_t)after);
    return true;
}

void wait_pause(struct pwc_ctx *ctx, unsigned kinds, wait_over *over, int64_t now, int64_t deadline)
{
    if (wait_yield(ctx, now) || now >= deadline || wait_arm_sleep(ctx, kinds) != 0)
        return;
    if (over && over(ctx))
        wait_disarm(ctx);
    else
        wait_sleep(ctx, now, deadline);
}

/* Whether a program that polls may be put to sleep: only to let the daemon run, and never after
 * pwc_fd, whose arm the sleep would end. */
static bool may_sleep(struct pwc_ctx *ctx)
{
    return ctx->descriptor < 0 && give_way_is_due(ctx);
}

void wait_between_looks(struct pwc_ctx *ctx, unsigned kinds)
{
    int64_t now = clock_now();

    /* A program that polls goes on with it, however long nothing comes. */
    patience_worked(&ctx->patience, (uint64_t)now);
    if (ctx->wait.unheard && !may_sleep(ctx))
        ctx->wait.unheard = false; /* yield again, although the last yield was in vain */
    if (wait_yield(ctx, now) || !may_sleep(ctx))
        return;
    /* The sleep only gives the daemon the processor. */
    if (wait_arm_sleep(ctx, wait_taken_too(kinds)) == 0)
        wait_sleep(ctx, now, now + NAP_NS);
}

unsigned wait_drain(struct pwc_ctx *ctx)
{
    const uint64_t asked = ctx->channel.asked_peer;
    struct pwc_event event;
    unsigned count = 0;

    while (count < DRAINED && drained_kinds(ctx) != 0 &&
           channel_probe(&ctx->channel, PWC_ANY, drained_kinds(ctx), &event) == 1) {
        handler_enter();
        ctx->events.run(ctx, &event, ctx->events.argument);
        handler_leave();
        count++;
    }
    ctx->channel.asked_peer = asked; /* of the call that waits */
    return count;
}

/* The work that is due at the end of a call that waits. */
static __attribute__((noinline)) void do_due(struct pwc_ctx *ctx)
{
    if (ctx->channel.neighbours.wakes_due)
        wake_retry(ctx);
    if (ctx->channel.neighbours.pieces_due && series_continue(ctx) > 0 && ctx->events.run)
        (void)wait_drain(ctx);
}

int wait_collect(struct pwc_ctx *ctx, unsigned kinds)
{
    int rc;

    if (neighbours_have_changed(ctx))
        neighbours_update_beside_poll(ctx);
    teams_progress(ctx);
    binds_progress(ctx);
    rc = kinds & PWC_LOCAL ? channel_collect(&ctx->channel) : 0;

    if (rc >= 0 || rc == -ENOBUFS) {
        int run = channel_run(&ctx->channel);

        rc = rc < 0 ? rc : run;
    }
    if (rc >= 0)
        rc = channel_relieve(&ctx->channel);
    if (ctx->events.run && wait_drain(ctx) > 0 && rc == -ENOBUFS)
        rc = 0; /* the function has taken events, so there is room */
    if (ctx->channel.neighbours.due)
        do_due(ctx);
    return rc;
}

int wait_pass(struct pwc_ctx *ctx, unsigned kinds, wait_over *over, int64_t deadline)
{
    int64_t now = clock_now();
    bool late = now >= deadline;
    int rc = channel_state(&ctx->channel);

    if (rc < 0)
        return rc;
    if (!late)
        wait_pause(ctx, kinds, over, now, deadline - now < NAP_NS ? deadline : now + NAP_NS);
    rc = wait_collect(ctx, PWC_LOCAL);
    return rc == 0 && late ? -ETIMEDOUT : rc;
}

void wait_for_due_wakes(struct pwc_ctx *ctx)
{
    const struct channel *ch = &ctx->channel;
    int64_t now = clock_now(), limit = now + WAKES_NS;

    for (; ch->neighbours.wakes_due && !ch->submit.open && now < limit; now = clock_now()) {
        wake_retry(ctx);
        if (channel_state(ch) < 0)
            return;
        if (ch->neighbours.wakes_due)
            wait_pause(ctx, wait_taken_too(PWC_LOCAL), NULL, now, now + NAP_NS);
    }
}
