/*
 * Probe, wait, and the descriptor that becomes readable.
 *
 * A context is woken in one of two ways: in pwc_wait by a futex on the session's event bell;
 * through pwc_fd, or while binds are under way, by a byte on the wake socket. Once pwc_fd has been
 * called, an empty probe arms the wake socket. No bell rings when the daemon dies, but the wake
 * socket hangs up.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <limits.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/descriptor.h"
#include "clientlib/attach/wake.h"
#include "clientlib/attach/wake_socket.h"
#include "clientlib/calls/flush.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/wait.h"
#include "clientlib/binds/bind_start.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/doorbell.h"

enum {
    KINDS_ALL = PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE | PWC_NOTIFICATION | PWC_OFFLOAD | PWC_PEER,
};

/* The work that is due at the end of a probe, whose result was `rc`. When this submits pieces,
 * events may have been kept: an empty probe then looks again, for up to `max` events, as
 * channel_probe_n. */
static __attribute__((noinline)) int do_due(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                                            struct pwc_event *events, unsigned max, int rc)
{
    if (ctx->channel.neighbours.wakes_due)
        wake_retry(ctx);
    if (ctx->channel.neighbours.pieces_due && series_continue(ctx) > 0 && rc == 0)
        rc = channel_probe_n(&ctx->channel, peer, kinds, events, max);
    return rc;
}

/* channel_probe_n; first takes changes among neighbours, and afterwards submits wake-ups that are
 * due.
 */
static inline int probe_batch(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                              struct pwc_event *events, unsigned max)
{
    uint32_t changes = neighbour_changes(ctx);
    int rc;

    ctx->channel.neighbours.polled = false;
    if (changes != ctx->neighbour_changes_seen)
        neighbours_update(ctx, changes);
    teams_progress(ctx);
    binds_progress(ctx);
    rc = channel_probe_n(&ctx->channel, peer, kinds, events, max);
    if (ctx->channel.neighbours.due)
        rc = do_due(ctx, peer, kinds, events, max, rc);
    return rc;
}

/* Takes one event as channel_probe does, with the same results. */
static inline int probe_once(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                             struct pwc_event *out)
{
    uint32_t changes = neighbour_changes(ctx);
    int rc;

    ctx->channel.neighbours.polled = false;
    if (changes != ctx->neighbour_changes_seen)
        neighbours_update(ctx, changes);
    teams_progress(ctx);
    binds_progress(ctx);
    rc = channel_probe(&ctx->channel, peer, kinds, out);
    if (ctx->channel.neighbours.due)
        rc = do_due(ctx, peer, kinds, out, 1, rc);
    return rc;
}

/* After an empty probe: arms the bell, so that the descriptor becomes readable when something
 * arrives, or when there is room for what the program submits after this call. */
static int arm_descriptor(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = 0;

    while (rc == 0) {
        wake_socket_read(ctx);
        if (!ctx->binds.first)
            descriptor_forget_answers(ctx);
        if (wait_arm(ctx, DOORBELL_FD, wait_taken_too(kinds)) == 0) {
            ctx->channel.neighbours.polled = true;
            break;
        }
        rc = probe_once(ctx, peer, kinds, out);
    }
    return rc;
}

int pwc_probe(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    rc = probe_once(ctx, peer, kinds, out);
    if (rc == 0 && ctx->give_way.refused)
        give_way_for_room(ctx);
    if (rc == 0 && ctx->descriptor >= 0)
        rc = arm_descriptor(ctx, peer, kinds, out);
    return rc;
}

int pwc_probe_n(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *events, unsigned n)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (n == 0 || n > INT_MAX || kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    rc = probe_batch(ctx, peer, kinds, events, n);
    if (rc == 0 && ctx->give_way.refused)
        give_way_for_room(ctx);
    if (rc == 0 && ctx->descriptor >= 0)
        rc = arm_descriptor(ctx, peer, kinds, events);
    return rc;
}

static int probe_awhile(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = 0;

    for (unsigned i = wait_spins(ctx); i > 0 && rc == 0; i--)
        rc = probe_once(ctx, peer, kinds, out);
    return rc;
}

/*
 * For a wait on one peer that has found no event. 0: it may continue; 1: *out is an event after
 * all; -EHOSTDOWN: the peer has ended, and no event can come any more.
 *
 * The search for the peer's end moves events that arrived since the last probe from the ring to the
 * kept ones. No bell rings for these, so they are probed for at once.
 */
static int look_for_end(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    const uint64_t kept = ctx->channel.kept.bytes;
    struct pwc_remote *remote;
    bool over;
    int rc;

    if (peer == PWC_ANY)
        return 0;
    over = channel_peer_is_over(&ctx->channel, peer);
    rc = ctx->channel.kept.bytes != kept ? probe_once(ctx, peer, kinds, out) : 0;
    if (rc != 0 || !over || binds_await(ctx, peer))
        return rc;
    remote = bound_of_peer(&ctx->bound, peer);
    /* Operations may end after their peer has ended. */
    if (remote && (kinds == 0 || kinds & PWC_LOCAL) && flush_peer(ctx, remote, 0) != 0)
        return 0;
    rc = probe_once(ctx, peer, kinds, out);
    return rc == 0 && channel_peer_is_over(&ctx->channel, peer) ? -EHOSTDOWN : rc;
}

static __attribute__((noinline)) int wait_for(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                                              struct pwc_event *out, int timeout_ms)
{
    int64_t deadline = deadline_after_ms(timeout_ms);
    int64_t now = clock_now();
    int rc;

    patience_worked(&ctx->patience, (uint64_t)now);
    for (;;) {
        rc = look_for_end(ctx, peer, kinds, out); /* also where no time is left, or was given */
        if (rc != 0)
            return rc;
        if (now >= deadline)
            break;
        if (ctx->events.run && ctx->channel.neighbours.pieces_due)
            (void)wait_drain(ctx); /* events that a probe has kept */
        wait_pause(ctx, kinds, NULL, now, deadline);
        if (ctx->events.run)
            (void)wait_drain(ctx);
        rc = probe_awhile(ctx, peer, kinds, out);
        if (rc != 0)
            return rc;
        now = clock_now();
    }
    return ctx->descriptor >= 0 ? arm_descriptor(ctx, peer, kinds, out) : 0;
}

int pwc_wait(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out, int timeout_ms)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    rc = probe_awhile(ctx, peer, kinds, out);
    if (rc != 0)
        return rc;
    ctx->events.asked = kinds ? kinds : PWC_LOCAL | PWC_REMOTE;
    wait_begin(ctx, SESSION_WAITS_EVENT);
    rc = wait_for(ctx, peer, kinds, out, timeout_ms);
    wait_end(ctx);
    ctx->events.asked = 0;
    return rc;
}

int pwc_yield(pwc_ctx *ctx, unsigned kinds, unsigned looks)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    /* After its first look the program may still have something to submit, so it keeps the
     * processor. Later, one look in so many (wait_spins) is followed by a wait. */
    if (looks <= 1 || looks % wait_spins(ctx) != 0)
        return 0;
    ctx->events.asked = kinds ? kinds : PWC_LOCAL | PWC_REMOTE;
    wait_between_looks(ctx, ctx->events.asked);
    if (ctx->events.run)
        (void)wait_drain(ctx);
    ctx->events.asked = 0;
    return 0;
}

int pwc_set_handler(pwc_ctx *ctx, unsigned kinds, pwc_event_handler handler, void *argument)
{
    /* Messages have handlers of their own. */
    if (!ctx || kinds & ~((unsigned)KINDS_ALL & ~(unsigned)PWC_MESSAGE))
        return -EINVAL;
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    ctx->events.run = handler;
    ctx->events.argument = argument;
    ctx->events.kinds = kinds ? kinds : PWC_LOCAL | PWC_REMOTE;
    return 0;
}

int pwc_fd(pwc_ctx *ctx)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    return descriptor_of(ctx);
}
