/*
 * Exchanges: one rank on each node puts 8 bytes to each of its peers, waits for a put of each, and
 * then begins the next round, without a barrier. The peers of rank r are r - k/2 to r + k/2; or
 * all; or, around a hub, the hub alone, whose peers are all other ranks.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/fleet.h"

#define ROUNDS 4u

#define HUB 0u

struct talker {
    struct fleet_rank rank;
    uint32_t peers;
    struct fleet_bind *binds; /* one for each peer */
    uint32_t round;           /* the round that it is in */
    uint32_t next;            /* the peer that it puts to next */
    uint32_t arrived[2];      /* in this round and the next, by the round's parity */
};

struct exchange {
    struct fleet *fleet;
    struct talker *talkers;
    uint32_t count;
    uint32_t puts;  /* of all ranks in a round */
    uint32_t bound; /* talkers, from the first on, whose binds are known to be done */
    uint32_t until; /* the round up to which all talkers work */
    uint32_t ended; /* talkers that have reached it */
    uint32_t (*peer)(const struct exchange *x, uint32_t self, uint32_t i); /* the i-th */
};

/* Returns the i-th peer: alternately to the right and to the left, the nearest first. */
static uint32_t peer_around(const struct exchange *x, uint32_t self, uint32_t i)
{
    uint32_t distance = i / 2 + 1;

    return (self + (i % 2 == 0 ? distance : x->count - distance)) % x->count;
}

static uint32_t peer_of_hub(const struct exchange *x, uint32_t self, uint32_t i)
{
    return self == HUB ? i + 1 : HUB;
}

static void put_all(struct exchange *x, struct talker *t)
{
    static const uint64_t payload = UINT64_C(0x0102030405060708);
    int rc = 0;

    for (; t->next < t->peers && rc >= 0; t->next += rc >= 0)
        rc = channel_put(&t->rank.channel, t->binds[t->next].remote, 0, &payload, sizeof payload, 0,
                         t->round, SUBMIT_NO_LCE);
    if (rc < 0 && rc != -EAGAIN)
        fleet_fail(x->fleet, "put of rank %u: %s", t->rank.number, strerror(-rc));
    fleet_rouse(x->fleet, t->rank.node);
}

static void begin(struct exchange *x, struct talker *t)
{
    if (t->round == x->until)
        x->ended++;
    else
        put_all(x, t);
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct exchange *x = context;
    struct talker *t = &x->talkers[node];
    struct pwc_event event;

    while (t->rank.channel.shared &&
           channel_probe(&t->rank.channel, PWC_ANY, PWC_REMOTE, &event) == 1) {
        if (event.id != t->round && event.id != t->round + 1)
            fleet_fail(f, "rank %u is in round %u and gets one of %llu", node, t->round,
                       (unsigned long long)event.id);
        t->arrived[event.id % 2]++;
    }
    if (t->round < x->until && t->next < t->peers)
        put_all(x, t);
    if (t->round == x->until || t->next < t->peers || t->arrived[t->round % 2] < t->peers)
        return;
    t->arrived[t->round++ % 2] = 0;
    t->next = 0;
    begin(x, t);
}

static bool all_ended(void *context)
{
    const struct exchange *x = context;

    return x->ended == x->count;
}

/* Runs `rounds` more rounds. Measures their time, and their cost until nothing is under way any
 * more. */
static bool run_rounds(struct exchange *x, uint32_t rounds, struct fleet_count *cost)
{
    struct fleet_count from = fleet_counted(x->fleet), to;
    uint64_t ended;

    x->until += rounds;
    x->ended = 0;
    for (uint32_t i = 0; i < x->count; i++)
        begin(x, &x->talkers[i]);
    if (!fleet_run(x->fleet, all_ended, x))
        return false;
    ended = sim_now(x->fleet->sim);
    if (!fleet_run(x->fleet, NULL, NULL))
        return false;
    to = fleet_counted(x->fleet);
    *cost = fleet_between(&from, &to);
    cost->ns = ended - from.ns;
    return true;
}

static int open_ranks(struct exchange *x)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < x->count; i++) {
        struct talker *t = &x->talkers[i];

        t->binds = calloc(t->peers, sizeof *t->binds);
        rc = t->binds ? fleet_rank_open(x->fleet, i, i, x->count, &t->rank) : -ENOMEM;
        if (rc == 0)
            rc = fleet_rank_talks(&t->rank);
    }
    return rc == 0 && !fleet_run(x->fleet, NULL, NULL) ? -EPROTO : rc;
}

/* Whether all are bound; looks only at talkers that were not bound before. */
static bool all_bound(void *context)
{
    struct exchange *x = context;

    for (; x->bound < x->count; x->bound++)
        for (uint32_t i = 0; i < x->talkers[x->bound].peers; i++)
            if (!x->talkers[x->bound].binds[i].done)
                return false;
    return true;
}

static int bind_all(struct exchange *x)
{
    int rc = 0;

    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; rc == 0 && k < x->talkers[i].peers; k++)
            rc = fleet_bind(x->fleet, &x->talkers[i].rank, &x->talkers[x->peer(x, i, k)].rank,
                            &x->talkers[i].binds[k]);
    if (rc == 0 && !fleet_run(x->fleet, all_bound, x))
        rc = -EPROTO;
    for (uint32_t i = 0; rc == 0 && i < x->count; i++)
        for (uint32_t k = 0; rc == 0 && k < x->talkers[i].peers; k++)
            rc = x->talkers[i].binds[k].status;
    return rc;
}

static int measure(struct exchange *x, struct figures *out)
{
    struct fleet_count start = fleet_counted(x->fleet), bound, settled, cost;
    double links = (double)x->puts / 2, all = (double)ROUNDS * x->count;
    int rc = bind_all(x);

    if (rc != 0)
        return rc;
    bound = fleet_counted(x->fleet);
    bound = fleet_between(&start, &bound);
    figure_add(out, "bind_us", (double)bound.ns / 1e3);
    if (!fleet_run(x->fleet, NULL, NULL))
        return -EPROTO;
    settled = fleet_counted(x->fleet);
    settled = fleet_between(&start, &settled);
    figure_add(out, "bind_messages_a_link", (double)settled.messages / links);
    if (!run_rounds(x, 1, &cost) || !run_rounds(x, ROUNDS, &cost))
        return -EPROTO;
    figure_add(out, "us", (double)cost.ns / 1e3 / ROUNDS);
    figure_add(out, "messages_a_node", (double)cost.messages / all);
    figure_add(out, "bytes_a_node", (double)cost.bytes / all);
    figure_add(out, "steps_a_node", (double)cost.steps / all);
    figure_add(out, "real_us_a_put", (double)cost.real_ns / 1e3 / ((double)ROUNDS * x->puts));
    figure_add(out, "kib_a_node", (double)fleet_resident(x->fleet, HUB) / 1024);
    return 0;
}

static void close_ranks(struct exchange *x)
{
    for (uint32_t i = 0; x->talkers && i < x->count; i++) {
        fleet_rank_close(&x->talkers[i].rank);
        free(x->talkers[i].binds);
    }
    free(x->talkers);
}

/* Runs exchanges, in which the hub has `hub_peers` peers, and each other rank `peers`. */
static int exchange(struct exchange *x, const struct row_run *run, uint32_t hub_peers,
                    uint32_t peers, struct figures *out)
{
    struct fleet_options options = {
        .nodes = run->nodes, .loggp = run->loggp, .hooks = {.context = x, .look = look}};
    int rc;

    x->count = run->nodes;
    x->puts = hub_peers + (x->count - 1) * peers;
    x->talkers = calloc(x->count, sizeof *x->talkers);
    rc = x->talkers ? fleet_open(&options, &x->fleet) : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < x->count; i++)
        x->talkers[i].peers = i == HUB ? hub_peers : peers;
    if (rc == 0)
        rc = open_ranks(x);
    if (rc == 0)
        rc = measure(x, out);
    if (x->fleet && x->fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", x->fleet->failure);
    close_ranks(x);
    if (x->fleet)
        fleet_close(x->fleet);
    return rc;
}

int row_exchange(const struct row_run *run, struct figures *out)
{
    struct exchange x = {.peer = peer_around};
    uint32_t most = run->nodes - 1, wanted = run->row->parameter;
    uint32_t peers = wanted && wanted < most ? wanted : most;

    return exchange(&x, run, peers, peers, out);
}

int row_hub(const struct row_run *run, struct figures *out)
{
    struct exchange x = {.peer = peer_of_hub};

    return exchange(&x, run, run->nodes - 1, 1, out);
}
