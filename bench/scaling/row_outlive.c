/*
 * A broadcast of node 0 that reaches all live nodes although some are dead. The targets of each
 * node are the nodes 1, 2, 4, ... further on. A node passes on the first copy that it gets to all
 * its targets, and drops other copies: by handlers in the engines (examples/handlers/broadcast.c),
 * or by its client, WAKE_NS after the copy has come.
 *
 *     0 --> 1, 2 and 4 (dead) and 8        of 16 nodes; 8 passes it on to 9, 10, 12 and 0
 *
 * All targets of node 0 except the last one are dead: they are bound, but pass nothing on. So a
 * copy leaves node 0 by one way only, and later arrives by many ways.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/fleet.h"

#define ROUNDS      4u
#define WAKE_NS     1000u /* as in row_forward.c */
#define TARGETS_MAX 10u
#define PAGE        4096u

struct member {
    struct fleet_rank rank;
    uint32_t targets;
    struct fleet_bind binds[TARGETS_MAX];
    struct fleet_bind offload;
    uint64_t last; /* number of the last broadcast that it has got */
};

struct spreading {
    struct fleet *fleet;
    struct member *members;
    uint32_t count, alive, ended; /* nodes; live ones; nodes that have this broadcast */
    uint64_t bytes, number;       /* of this broadcast; numbers begin with 1 */
    bool handled;
};

static bool is_dead(const struct spreading *s, uint32_t node)
{
    return node > 0 && (node & (node - 1)) == 0 && 2 * node < s->count;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Puts to all targets. */
static void pass_on(struct spreading *s, struct member *from)
{
    for (uint32_t i = 0; i < from->targets; i++) {
        int rc = channel_put(&from->rank.channel, from->binds[i].remote, 0, from->rank.memory,
                             (uint32_t)s->bytes, 0, s->number, SUBMIT_NO_LCE);

        if (rc < 0)
            fleet_fail(s->fleet, "put of node %u: %s", from->rank.node, strerror(-rc));
    }
    fleet_rouse(s->fleet, from->rank.node);
}

/* The number of the broadcast that an event is about. */
static uint64_t number_of(struct spreading *s, uint32_t node, const struct pwc_event *event)
{
    struct offload_word word;

    if (event->status != 0)
        fleet_fail(s->fleet, "node %u: an event: %s", node, strerror(-event->status));
    if (event->kind != PWC_OFFLOAD || event->id_size != sizeof word)
        return event->id;
    memcpy(&word, event->data, sizeof word);
    return word.id;
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct spreading *s = context;
    struct member *here = &s->members[node];
    struct pwc_event event;

    if (!here->rank.channel.shared || s->number == 0 || is_dead(s, node))
        return;
    while (channel_probe(&here->rank.channel, PWC_ANY, PWC_REMOTE | PWC_OFFLOAD, &event) == 1) {
        if (number_of(s, node, &event) <= here->last)
            continue; /* another copy */
        here->last = s->number;
        if (memcmp(here->rank.memory, s->members[0].rank.memory, s->bytes) != 0)
            fleet_fail(f, "node %u has got other bytes than node 0 has sent", node);
        s->ended++;
        if (!s->handled)
            fleet_later(f, node, WAKE_NS);
    }
}

/* Runs when the client is awake. */
static void awake(void *context, struct fleet *f, const struct sim_entry *frame)
{
    struct spreading *s = context;

    pass_on(s, &s->members[frame->subject]);
}

static bool all_ended(void *context)
{
    const struct spreading *s = context;

    return s->ended == s->alive;
}

/* Runs one more broadcast; *ns is the time until all live nodes have it. */
static bool run_round(struct spreading *s, uint64_t *ns, struct fleet_count *cost)
{
    struct fleet_count from = fleet_counted(s->fleet), to;
    struct member *root = &s->members[0];

    s->number++;
    memset(root->rank.memory, (int)s->number, s->bytes);
    root->last = s->number;
    if (s->handled) /* copies that come back to it are dropped */
        memcpy(root->rank.memory + root->rank.segment_bytes - FLEET_STATE, &s->number,
               sizeof s->number);
    s->ended = 1;
    pass_on(s, root);
    if (!fleet_run(s->fleet, all_ended, s))
        return false;
    *ns = sim_now(s->fleet->sim) - from.ns;
    if (!fleet_run(s->fleet, NULL, NULL))
        return false;
    to = fleet_counted(s->fleet);
    *cost = fleet_between(&from, &to);
    return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int bind_targets(struct spreading *s, struct member *from)
{
    int rc = 0;

    for (uint32_t step = 1; rc == 0 && step < s->count; step *= 2) {
        struct member *to = &s->members[(from->rank.node + step) % s->count];

        rc = fleet_bind(s->fleet, &from->rank, &to->rank, &from->binds[from->targets]);
        from->targets += rc == 0;
    }
    for (uint32_t i = 0; rc == 0 && i < from->targets; i++)
        rc = fleet_settled(s->fleet, &from->binds[i]) ? 0 : -EPROTO;
    return rc;
}

static int passes_on(struct spreading *s, struct member *here)
{
    const uint64_t state[2] = {0, here->targets};
    uint32_t targets[TARGETS_MAX];
    struct fleet_handlers h = {.object = OUTLIVE_OBJECT,
                               .state = state,
                               .state_bytes = sizeof state,
                               .targets = here->targets,
                               .target = targets};

    for (uint32_t i = 0; i < here->targets; i++)
        targets[i] = here->binds[i].remote;
    return fleet_offload(s->fleet, &here->rank, &h, &here->offload);
}

/* Replaces the offload that was there when the region was bound by one with targets. */
static int renew(struct spreading *s, struct member *here)
{
    int rc = engine_offload_destroy(s->fleet->nodes[here->rank.node].engine, here->rank.session,
                                    here->offload.remote);

    return rc < 0 ? rc : passes_on(s, here);
}

/* A context that binds a region must learn that the region is an offload's. Each node is a target
 * of others and has targets, so each region gets an offload without targets before all binds. */
static int open_members(struct spreading *s)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->count; i++) {
        rc = fleet_rank_open(s->fleet, i, i, s->count, &s->members[i].rank);
        if (rc == 0)
            rc = fleet_rank_talks(&s->members[i].rank);
    }
    for (uint32_t i = 0; rc == 0 && s->handled && i < s->count; i++)
        rc = passes_on(s, &s->members[i]);
    for (uint32_t i = 0; rc == 0 && i < s->count; i++)
        rc = bind_targets(s, &s->members[i]);
    for (uint32_t i = 0; rc == 0 && s->handled && i < s->count; i++)
        if (!is_dead(s, i))
            rc = renew(s, &s->members[i]);
    return rc;
}

/* ---- the row --------------------------------------------------------------------------------- */

static int measure(struct spreading *s, const char *time, const char *messages, struct figures *out)
{
    uint64_t ns, sum = 0;
    struct fleet_count cost;

    for (uint32_t i = 0; i <= ROUNDS; i++) {
        if (!run_round(s, &ns, &cost))
            return -EPROTO;
        sum += i > 0 ? ns : 0;
    }
    figure_add(out, time, (double)sum / 1e3 / ROUNDS);
    figure_add(out, messages, (double)cost.messages / s->count);
    return 0;
}

static int broadcast(const struct row_run *run, bool handled, const char *time,
                     const char *messages, struct figures *out)
{
    struct spreading s = {.count = run->nodes, .bytes = run->row->bytes, .handled = handled};
    struct fleet_options options = {.nodes = run->nodes,
                                    .segment = PAGE + FLEET_STATE,
                                    .loggp = run->loggp,
                                    .hooks = {.context = &s, .look = look, .frame = awake}};
    int rc;

    for (uint32_t i = 0; i < s.count; i++)
        s.alive += !is_dead(&s, i);
    s.members = calloc(s.count, sizeof *s.members);
    rc = s.members ? fleet_open(&options, &s.fleet) : -ENOMEM;
    if (rc == 0)
        rc = open_members(&s);
    if (rc == 0)
        rc = measure(&s, time, messages, out);
    if (s.fleet && s.fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", s.fleet->failure);
    for (uint32_t i = 0; s.members && i < s.count; i++)
        fleet_rank_close(&s.members[i].rank);
    free(s.members);
    if (s.fleet)
        fleet_close(s.fleet);
    return rc;
}

int row_outlive(const struct row_run *run, struct figures *out)
{
    int rc = broadcast(run, true, "us", "messages_a_node", out);

    return rc == 0 ? broadcast(run, false, "us_by_client", "messages_a_node_by_client", out) : rc;
}
