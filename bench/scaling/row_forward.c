/*
 * A broadcast of node 0 down a binomial tree, until all nodes have all bytes. Either handlers in
 * the engines forward each packet as it arrives (bench/handler_use/forward.c), or each client
 * forwards the bytes, WAKE_NS after it has all of them.
 *
 *     0 --> 1 --> 3 --> 7        a node's children are 2^k further on, for all 2^k above its own
 *     |     +---> 5              number
 *     +---> 2 --> 6
 *     +---> 4
 *
 * Handlers take no virtual time, like all work of an engine.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/fleet.h"

#define ROUNDS       4u
#define WAKE_NS      1000u /* from daemon to client and back, each awake on a core of its own */
#define CHILDREN_MAX 10u
#define PAGE         4096u

struct passer {
    struct fleet_rank rank;
    uint32_t children;
    struct fleet_bind binds[CHILDREN_MAX];
    struct fleet_bind offload;
    uint64_t got; /* bytes, since the beginning */
};

struct passing {
    struct fleet *fleet;
    struct passer *passers;
    uint32_t count, ended; /* nodes; nodes that have all bytes of this round */
    uint64_t bytes, until; /* bytes of a round; bytes that each node is to have */
    bool handled;
};

/* ---- a round --------------------------------------------------------------------------------- */

static int put(const struct passing *p, struct passer *from, uint32_t remote)
{
    const struct submit_record record = {.kind = SUBMIT_PUT,
                                         .flags = SUBMIT_NO_LCE,
                                         .remote = remote,
                                         .length = p->bytes,
                                         .rid = 1,
                                         .segment = from->rank.segment};

    if (p->bytes <= PAGE) /* as libpwc does */
        return channel_put(&from->rank.channel, remote, 0, from->rank.memory, (uint32_t)p->bytes, 0,
                           record.rid, record.flags);
    return channel_submit(&from->rank.channel, &record, NULL, NULL, NULL);
}

/* Puts to all children. */
static void pass_on(struct passing *p, struct passer *from)
{
    for (uint32_t i = 0; i < from->children; i++) {
        int rc = put(p, from, from->binds[i].remote);

        if (rc < 0)
            fleet_fail(p->fleet, "put of node %u: %s", from->rank.node, strerror(-rc));
    }
    fleet_rouse(p->fleet, from->rank.node);
}

/* Returns how many bytes have arrived according to an event. */
static uint64_t bytes_of(struct passing *p, uint32_t node, const struct pwc_event *event)
{
    struct offload_word word;

    if (event->status != 0)
        fleet_fail(p->fleet, "node %u: an event: %s", node, strerror(-event->status));
    if (event->kind != PWC_OFFLOAD || event->id_size != sizeof word)
        return event->length;
    memcpy(&word, event->data, sizeof word);
    return word.value;
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct passing *p = context;
    struct passer *here = &p->passers[node];
    struct pwc_event event;

    if (!here->rank.channel.shared || here->got == p->until)
        return;
    while (channel_probe(&here->rank.channel, PWC_ANY, PWC_REMOTE | PWC_OFFLOAD, &event) == 1)
        here->got += bytes_of(p, node, &event);
    if (here->got != p->until)
        return;
    if (memcmp(here->rank.memory, p->passers[0].rank.memory, p->bytes) != 0)
        fleet_fail(f, "node %u has got other bytes than node 0 has sent", node);
    p->ended++;
    if (!p->handled && here->children > 0)
        fleet_later(f, node, WAKE_NS);
}

/* Runs when the client is awake. */
static void awake(void *context, struct fleet *f, const struct sim_entry *frame)
{
    struct passing *p = context;

    pass_on(p, &p->passers[frame->subject]);
}

static bool all_ended(void *context)
{
    const struct passing *p = context;

    return p->ended == p->count;
}

/* Runs one more broadcast; *ns is the time until all nodes have it. */
static bool run_round(struct passing *p, uint64_t *ns, struct fleet_count *cost)
{
    struct fleet_count from = fleet_counted(p->fleet), to;

    memset(p->passers[0].rank.memory, (int)(p->until / p->bytes) + 1, p->bytes);
    p->until += p->bytes;
    p->passers[0].got = p->until;
    p->ended = 1;
    pass_on(p, &p->passers[0]);
    if (!fleet_run(p->fleet, all_ended, p))
        return false;
    *ns = sim_now(p->fleet->sim) - from.ns;
    if (!fleet_run(p->fleet, NULL, NULL))
        return false;
    to = fleet_counted(p->fleet);
    *cost = fleet_between(&from, &to);
    return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int bind_children(struct passing *p, struct passer *from)
{
    int rc = 0;

    for (uint32_t step = 1; rc == 0 && step < p->count; step *= 2) {
        uint32_t child = from->rank.node + step;
        struct fleet_bind *bind = &from->binds[from->children];

        if (step <= from->rank.node || child >= p->count)
            continue;
        rc = fleet_bind(p->fleet, &from->rank, &p->passers[child].rank, bind);
        from->children += rc == 0;
        if (rc == 0 && !fleet_settled(p->fleet, bind))
            rc = -EPROTO;
    }
    return rc;
}

/* Makes the offload. Its handler answers the root after the packet that ends at state[1], the size;
 * bench/handlers uses this. Here the size is 0: no packet ends there, so no node answers. */
static int forwards(struct passing *p, struct passer *here)
{
    const uint64_t state[2] = {here->children};
    uint32_t targets[1 + CHILDREN_MAX] = {here->binds[0].remote};
    struct fleet_handlers h = {.object = FORWARD_OBJECT,
                               .state = state,
                               .state_bytes = sizeof state,
                               .targets = here->children ? 1 + here->children : 0,
                               .target = targets};

    for (uint32_t i = 0; i < here->children; i++)
        targets[1 + i] = here->binds[i].remote;
    return fleet_offload(p->fleet, &here->rank, &h, &here->offload);
}

/* Opens all nodes. Then binds each node's children and makes its offload, the last node first: a
 * region's offload must be there before the region is bound. */
static int open_passers(struct passing *p)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < p->count; i++) {
        rc = fleet_rank_open(p->fleet, i, i, p->count, &p->passers[i].rank);
        if (rc == 0)
            rc = fleet_rank_talks(&p->passers[i].rank);
    }
    if (rc == 0 && !fleet_run(p->fleet, NULL, NULL))
        rc = -EPROTO;
    for (uint32_t i = p->count; rc == 0 && i-- > 0;) {
        rc = bind_children(p, &p->passers[i]);
        if (rc == 0 && p->handled && i > 0)
            rc = forwards(p, &p->passers[i]);
    }
    return rc;
}

/* ---- the row --------------------------------------------------------------------------------- */

static int measure(struct passing *p, const char *time, const char *messages, struct figures *out)
{
    uint64_t ns, sum = 0;
    struct fleet_count cost;

    for (uint32_t i = 0; i <= ROUNDS; i++) {
        if (!run_round(p, &ns, &cost))
            return -EPROTO;
        sum += i > 0 ? ns : 0;
    }
    figure_add(out, time, (double)sum / 1e3 / ROUNDS);
    figure_add(out, messages, (double)cost.messages / p->count);
    return 0;
}

static int broadcast(const struct row_run *run, bool handled, const char *time,
                     const char *messages, struct figures *out)
{
    struct passing p = {.count = run->nodes, .bytes = run->row->bytes, .handled = handled};
    struct fleet_options options = {.nodes = run->nodes,
                                    .segment = (p.bytes + 2 * PAGE - 1) / PAGE * PAGE,
                                    .loggp = run->loggp,
                                    .hooks = {.context = &p, .look = look, .frame = awake}};
    int rc;

    p.passers = calloc(p.count, sizeof *p.passers);
    rc = p.passers ? fleet_open(&options, &p.fleet) : -ENOMEM;
    if (rc == 0)
        rc = open_passers(&p);
    if (rc == 0)
        rc = measure(&p, time, messages, out);
    if (p.fleet && p.fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", p.fleet->failure);
    for (uint32_t i = 0; p.passers && i < p.count; i++)
        fleet_rank_close(&p.passers[i].rank);
    free(p.passers);
    if (p.fleet)
        fleet_close(p.fleet);
    return rc;
}

int row_forward(const struct row_run *run, struct figures *out)
{
    int rc = broadcast(run, true, "us", "messages_a_node", out);

    return rc == 0 ? broadcast(run, false, "us_by_client", "messages_a_node_by_client", out) : rc;
}
