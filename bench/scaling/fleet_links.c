/*
 * The fleet's control (fleet.h): frames between control threads, and links.
 *
 *     wanted -> three frames -> both offers -> up at both ends
 *
 * An engine may have to register its ring before it can offer; then the handshake continues at the
 * notice ENGINE_OFFER_READY.
 *
 * Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "bench/scaling/fleet.h"

#define HANDSHAKE_FRAMES 3u
#define HANDSHAKE_BYTES  512u /* of each, about */

static uint8_t *link_of(struct fleet *f, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;

    return &f->up[(size_t)low * f->options.nodes + high];
}

static void add(struct fleet *f, uint64_t time, uint32_t what, uint32_t subject, uint64_t a,
                uint64_t b)
{
    struct sim_entry entry = {.time = time, .what = what, .subject = subject, .a = a, .b = b};

    if (sim_timeline_add(&f->agenda, &entry) != 0)
        fleet_fail(f, "out of memory for the agenda");
}

static void send(struct fleet *f, enum fleet_entry what, uint32_t from, uint32_t to, uint32_t bytes,
                 uint64_t a, uint64_t b)
{
    const struct loggp *model = &f->options.loggp;
    uint64_t now = sim_now(f->sim), left;

    if (from == to) {
        add(f, now, what, to, a, b);
        return;
    }
    f->count.frames++;
    left = loggp_send(model, &f->nodes[from].control, now * 1000, bytes).left;
    add(f, loggp_ns(left + model->latency_ps), what | FLEET_ARRIVES, to, a, b);
}

void fleet_send(struct fleet *f, uint32_t from, uint32_t to, uint32_t bytes, uint64_t a, uint64_t b)
{
    send(f, FLEET_FRAME, from, to, bytes, a, b);
}

void fleet_later(struct fleet *f, uint32_t node, uint64_t ns)
{
    add(f, sim_now(f->sim) + ns, FLEET_FRAME, node, 0, 0);
}

/* A frame has arrived: enters into the agenda when the control thread will have read it. */
static void arrives(struct fleet *f, const struct sim_entry *entry)
{
    uint64_t at =
        loggp_notice(&f->options.loggp, &f->nodes[entry->subject].control, entry->time * 1000);

    add(f, loggp_ns(at), entry->what & ~(uint32_t)FLEET_ARRIVES, entry->subject, entry->a,
        entry->b);
}

static void shake(struct fleet *f, uint32_t from, uint32_t to, uint64_t left)
{
    send(f, FLEET_SHAKE, from, to, HANDSHAKE_BYTES, from, left);
}

/* False: the engine is not ready yet. */
static bool offer(struct fleet *f, uint32_t node, uint32_t peer, struct engine_offer *out)
{
    int rc = engine_offer(f->nodes[node].engine, peer, out);

    fleet_rouse(f, node);
    if (rc != 0 && rc != -EAGAIN)
        fleet_fail(f, "engine_offer of %u for %u: %s", node, peer, strerror(-rc));
    return rc == 0;
}

static void up(struct fleet *f, uint32_t node, uint32_t peer, const struct engine_offer *theirs)
{
    int rc = engine_peer_up(f->nodes[node].engine, peer, theirs);

    if (rc != 0)
        fleet_fail(f, "engine_peer_up of %u for %u: %s", node, peer, strerror(-rc));
}

static void handshake(struct fleet *f, uint32_t a, uint32_t b)
{
    struct engine_offer ours = {0}, theirs = {0};
    bool ready;

    if (*link_of(f, a, b))
        return;
    ready = offer(f, a, b, &ours);
    ready = offer(f, b, a, &theirs) && ready;
    if (!ready)
        return;
    *link_of(f, a, b) = 1;
    up(f, a, b, &theirs);
    up(f, b, a, &ours);
}

void fleet_link_step(struct fleet *f, const struct sim_entry *entry)
{
    if (entry->what & FLEET_ARRIVES)
        arrives(f, entry);
    else if (entry->what == FLEET_SHAKE && entry->b > 0)
        shake(f, entry->subject, (uint32_t)entry->a, entry->b - 1);
    else if (entry->what == FLEET_SHAKE)
        handshake(f, entry->subject, (uint32_t)entry->a);
    else if (f->options.hooks.frame)
        f->options.hooks.frame(f->options.hooks.context, f, entry);
}

static void bound(const struct engine_notice *notice)
{
    struct fleet_bind *bind = (struct fleet_bind *)(uintptr_t)notice->cookie;

    bind->done = true;
    bind->status = notice->status;
    bind->remote = notice->handle;
}

void fleet_notice(struct fleet *f, uint32_t node, const struct engine_notice *notice)
{
    switch (notice->kind) {
    case ENGINE_WANT_PEER:
        shake(f, node, notice->peer, HANDSHAKE_FRAMES - 1);
        break;
    case ENGINE_OFFER_READY:
        handshake(f, node, notice->peer);
        break;
    case ENGINE_BOUND:
    case ENGINE_OFFLOAD_READY:
        bound(notice);
        break;
    case ENGINE_SEGMENT_READY:
        if (notice->status != 0)
            fleet_fail(f, "segment of node %u: %s", node, strerror(-notice->status));
        break;
    default:
        fleet_fail(f, "node %u: notice %u, status %d%s%s", node, notice->kind, notice->status,
                   notice->reason ? ": " : "", notice->reason ? notice->reason : "");
    }
}
