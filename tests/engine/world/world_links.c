/*
 * The links of the world's control layer, which stands in for the real one: what a handshake does
 * to engines, and when (world.h).
 *
 *     wanted -> attempt: old link down at both ends, both offer -> up at one end, then at the other
 *     broken -> down at one end, then at the other
 *
 * Thread: one.
 */
#include "tests/engine/world/world.h"

#include <errno.h>
#include <string.h>

enum link_step {
    LINK_ATTEMPT = 1, /* subject: link, a: generation */
    LINK_UP,          /* subject: link, a: generation, b: side */
    LINK_DOWN,        /* subject: link, a: generation, b: side */
};

#define RETRY_NS 30000u

static uint32_t node_at(const struct world_link *l, uint32_t side)
{
    return side == 0 ? l->a : l->b;
}

static uint32_t sides_of(const struct world_link *l)
{
    return l->a == l->b ? 1 : 2;
}

/* Finds the link by its place in the order of world_links_open. */
struct world_link *world_link_of(struct world *w, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a, n = w->options.nodes;

    return &w->links[low * n - low * (low + 1) / 2 + high];
}

void world_links_open(struct world *w)
{
    for (uint32_t a = 0; a < w->options.nodes; a++)
        for (uint32_t b = a; b < w->options.nodes; b++)
            w->links[w->link_count++] = (struct world_link){.a = a, .b = b};
}

static void schedule(struct world *w, struct world_link *l, enum link_step what, uint32_t side,
                     uint64_t delay)
{
    struct sim_entry entry = {
        .time = sim_now(w->sim) + delay,
        .what = what,
        .subject = (uint32_t)(l - w->links),
        .a = l->generation,
        .b = side,
    };

    if (sim_timeline_add(&w->agenda, &entry) != 0)
        world_fail(w, "out of memory for the agenda");
}

static uint64_t delay(struct world *w)
{
    return sim_random_range(&w->random, 100, 20000);
}

/* ---- calls into engines, each of which the node may die in ----------------------------------- */

struct link_call {
    struct world_node *node;
    uint32_t peer;
    struct engine_offer *offer;
    int result;
    uint64_t bytes;
};

static void call_offer(void *argument)
{
    struct link_call *c = argument;

    c->result = engine_offer(c->node->engine, c->peer, c->offer);
}

static void call_up(void *argument)
{
    struct link_call *c = argument;

    c->result = engine_peer_up(c->node->engine, c->peer, c->offer);
}

static void call_down(void *argument)
{
    struct link_call *c = argument;

    engine_peer_down(c->node->engine, c->peer);
}

static void call_lost(void *argument)
{
    struct link_call *c = argument;

    engine_peer_lost(c->node->engine, c->peer);
}

static void call_beat(void *argument)
{
    struct link_call *c = argument;

    c->result = engine_beat(c->node->engine, c->peer, &c->bytes);
}

static void call_answered(void *argument)
{
    struct link_call *c = argument;

    engine_peer_answered(c->node->engine, c->peer, c->bytes);
}

static bool enter(struct world *w, void (*call)(void *), struct link_call *c)
{
    return world_call(w, c->node, call, c);
}

static struct link_call call_at(struct world *w, struct world_link *l, uint32_t side)
{
    return (struct link_call){.node = &w->nodes[node_at(l, side)], .peer = node_at(l, 1 - side)};
}

static void down(struct world *w, struct world_link *l, uint32_t side)
{
    struct link_call c = call_at(w, l, side);

    if (!l->up[side] && !l->offered[side])
        return;
    l->up[side] = l->offered[side] = false;
    world_log(w, "link %u-%u down at %u", l->a, l->b, node_at(l, side));
    enter(w, call_down, &c);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void attempt_later(struct world *w, struct world_link *l, uint64_t after)
{
    if (l->attempting)
        return;
    l->attempting = true;
    schedule(w, l, LINK_ATTEMPT, 0, after);
}

/* Collects both offers. Returns false if one is missing: the attempt is made again later, or waits
 * for ENGINE_OFFER_READY. */
static bool collect_offers(struct world *w, struct world_link *l)
{
    for (uint32_t side = 0; side < sides_of(l); side++) {
        struct link_call c = call_at(w, l, side);

        memset(&l->offers[side], 0, sizeof l->offers[side]);
        c.offer = &l->offers[side];
        if (!enter(w, call_offer, &c)) /* the node has died */
            return false;
        if (c.result == -EAGAIN) {
            l->waiting = true;
            return false;
        }
        if (c.result != 0) {
            world_fail(w, "engine_offer of %u for %u: %s", node_at(l, side), c.peer,
                       strerror(-c.result));
            return false;
        }
        l->offered[side] = true;
    }
    return true;
}

static void attempt(struct world *w, struct world_link *l)
{
    l->attempting = false;
    if (!l->wanted || (l->up[0] && (l->up[1] || sides_of(l) == 1)))
        return;
    if (l->cut || !w->nodes[l->a].alive || !w->nodes[l->b].alive) {
        attempt_later(w, l, RETRY_NS);
        return;
    }
    /* The earlier link ends first, at both ends; events scheduled for it are void. */
    l->generation++;
    for (uint32_t side = 0; side < sides_of(l); side++)
        if (l->up[side])
            down(w, l, side);
    if (!collect_offers(w, l)) {
        if (!l->waiting)
            attempt_later(w, l, RETRY_NS);
        return;
    }
    l->wanted = false;
    for (uint32_t side = 0; side < sides_of(l); side++)
        schedule(w, l, LINK_UP, side, delay(w));
}

static void up(struct world *w, struct world_link *l, uint32_t side)
{
    struct link_call c = call_at(w, l, side);
    struct engine_offer theirs = l->offers[sides_of(l) - 1 - side];

    if (!l->offered[side])
        return;
    c.offer = &theirs;
    l->offered[side] = false;
    world_log(w, "link %u-%u up at %u", l->a, l->b, node_at(l, side));
    if (!enter(w, call_up, &c))
        return;
    if (c.result != 0)
        world_fail(w, "engine_peer_up of %u for %u: %s", node_at(l, side), c.peer,
                   strerror(-c.result));
    l->up[side] = true;
}

void world_link_step(struct world *w, const struct sim_entry *entry)
{
    struct world_link *l = &w->links[entry->subject];

    if (entry->a != l->generation)
        return;
    switch (entry->what) {
    case LINK_ATTEMPT:
        attempt(w, l);
        break;
    case LINK_UP:
        up(w, l, (uint32_t)entry->b);
        break;
    case LINK_DOWN:
        down(w, l, (uint32_t)entry->b);
        break;
    }
}

/* ---- calls of engines and tests -------------------------------------------------------------- */

void world_link_wanted(struct world *w, uint32_t from, uint32_t to)
{
    struct world_link *l = world_link_of(w, from, to);

    l->wanted = true;
    attempt_later(w, l, delay(w));
}

void world_link_offer_ready(struct world *w, uint32_t from, uint32_t to)
{
    struct world_link *l = world_link_of(w, from, to);

    if (!l->waiting)
        return;
    l->waiting = false;
    attempt_later(w, l, 1);
}

/* Makes scheduled steps of the link void; an attempt under way begins again. */
static void new_generation(struct world *w, struct world_link *l)
{
    bool attempting = l->attempting || l->waiting || l->offered[0] || l->offered[1];

    l->generation++;
    l->attempting = l->waiting = false;
    if (attempting) {
        l->wanted = true;
        attempt_later(w, l, RETRY_NS);
    }
}

void world_link_break(struct world *w, uint32_t a, uint32_t b)
{
    struct world_link *l = world_link_of(w, a, b);

    world_log(w, "link %u-%u breaks", l->a, l->b);
    new_generation(w, l);
    for (uint32_t side = 0; side < sides_of(l); side++)
        schedule(w, l, LINK_DOWN, side, delay(w));
}

void world_link_broken(struct world *w, uint32_t a, uint32_t b, int status)
{
    world_link_of(w, a, b)->silences += status == -ETIMEDOUT;
    world_link_of(w, a, b)->holes += status == -ENODATA;
    world_link_break(w, a, b);
}

void world_link_ask(struct world *w, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct world_link *l = world_link_of(w, from, to);
    struct link_call there = {.node = &w->nodes[to], .peer = from, .bytes = bytes};
    struct link_call here = {.node = &w->nodes[from], .peer = to};

    l->asks++;
    if (!enter(w, call_beat, &there) || there.result == -ENOTCONN)
        return;
    here.bytes = there.bytes;
    enter(w, call_answered, &here);
}

void world_link_gone(struct world *w, uint32_t from, uint32_t to)
{
    struct world_link *l = world_link_of(w, from, to);
    uint32_t side = l->a == from ? 0 : 1;
    struct link_call c = call_at(w, l, side);

    world_log(w, "node %u gives node %u up", from, to);
    l->gone++;
    world_link_break(w, from, to); /* the other end sees the connection close */
    l->up[side] = l->offered[side] = false;
    l->lost_due[side] = !enter(w, call_lost, &c);
}

void world_link_node_gone(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->link_count; i++) {
        struct world_link *l = &w->links[i];

        for (uint32_t side = 0; side < 2; side++)
            if (node_at(l, side) == node)
                l->up[side] = l->offered[side] = false;
        if (l->a == node || l->b == node)
            world_link_break(w, l->a, l->b);
    }
}

void world_link_cut(struct world *w, uint32_t a, uint32_t b)
{
    world_link_of(w, a, b)->cut = true;
    sim_cut(w->sim, a, b);
    world_link_break(w, a, b);
}

void world_link_blackout(struct world *w, uint32_t a, uint32_t b)
{
    world_log(w, "fabric %u-%u goes silent", a, b);
    sim_cut(w->sim, a, b);
}

void world_link_swallow(struct world *w, uint32_t from, uint32_t to)
{
    sim_swallow(w->sim, from, to);
}

void world_link_carry(struct world *w, uint32_t from, uint32_t to)
{
    sim_carry(w->sim, from, to);
}

void world_link_restore(struct world *w, uint32_t a, uint32_t b)
{
    world_link_of(w, a, b)->cut = false;
    sim_restore(w->sim, a, b);
}

void world_link_lost(struct world *w, uint32_t a, uint32_t b)
{
    struct world_link *l = world_link_of(w, a, b);

    world_log(w, "link %u-%u given up", l->a, l->b);
    new_generation(w, l);
    for (uint32_t side = 0; side < sides_of(l); side++) {
        struct link_call c = call_at(w, l, side);

        l->up[side] = l->offered[side] = false;
        l->lost_due[side] = !enter(w, call_lost, &c);
    }
}

void world_links_resume(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->link_count; i++) {
        struct world_link *l = &w->links[i];

        for (uint32_t side = 0; side < sides_of(l); side++) {
            struct link_call c = call_at(w, l, side);

            if (node_at(l, side) == node && l->lost_due[side])
                l->lost_due[side] = !enter(w, call_lost, &c);
        }
    }
}
