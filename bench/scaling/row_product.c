/*
 * All other nodes put numbers to node 0, which multiplies its own numbers by them, until each node
 * knows that its numbers are in the product. Either handlers in node 0's engine multiply
 * (examples/handlers/accumulate.c), and the end of a put is the answer; or node 0's client does,
 * WAKE_NS after each put has come, and answers by a put.
 *
 *     1, 2, 3, ... --numbers--> 0 --answer--> 1, 2, 3, ...
 *
 * Neither handlers nor clients take virtual time to compute.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/scaling/fleet.h"

#define ROUNDS  4u
#define WAKE_NS 1000u /* as in row_forward.c */
#define PAGE    4096u
#define ANSWER  8u /* bytes */

struct complex {
    double re, im;
};

struct party {
    struct fleet_rank rank;
    struct fleet_bind to_hub, from_hub;
    struct fleet_bind offload; /* node 0's */
};

struct reducing {
    struct fleet *fleet;
    struct party *parties;
    uint32_t *waiting; /* nodes whose puts the client has not seen, circular */
    uint32_t first, waits;
    uint32_t count, ended;   /* nodes; nodes that have their answer */
    uint64_t bytes, numbers; /* of a put; numbers multiplied into each place so far */
    bool handled;
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns the product of so many numbers, each of which is i, the imaginary unit. */
static struct complex product_of(uint64_t numbers)
{
    static const struct complex turns[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

    return turns[numbers % 4];
}

static void fill(uint8_t *to, uint64_t bytes, struct complex number)
{
    for (uint64_t at = 0; at < bytes; at += sizeof number)
        memcpy(to + at, &number, sizeof number);
}

static void multiply(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += sizeof(struct complex)) {
        struct complex a, b, c;

        memcpy(&a, to + at, sizeof a);
        memcpy(&b, from + at, sizeof b);
        c = (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
        memcpy(to + at, &c, sizeof c);
    }
}

static void check(struct reducing *r)
{
    struct complex expected = product_of(r->numbers), found;

    for (uint64_t at = 0; at < r->bytes; at += sizeof found) {
        memcpy(&found, r->parties[0].rank.memory + at, sizeof found);
        if (found.re != expected.re || found.im != expected.im)
            fleet_fail(r->fleet, "a product is %g%+gi, not %g%+gi", found.re, found.im, expected.re,
                       expected.im);
    }
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Returns the place of a node's numbers at node 0. Where a client multiplies, each node has its own
 * place. */
static uint64_t place_of(const struct reducing *r, uint32_t node)
{
    return r->handled ? 0 : node * r->bytes;
}

static void put(struct reducing *r, struct party *from, uint32_t remote, uint64_t place,
                uint64_t bytes, uint16_t flags)
{
    int rc = channel_put(&from->rank.channel, remote, place, from->rank.memory, (uint32_t)bytes, 0,
                         1, flags);

    if (rc < 0)
        fleet_fail(r->fleet, "put of node %u: %s", from->rank.node, strerror(-rc));
    fleet_rouse(r->fleet, from->rank.node);
}

static void look_at_hub(struct reducing *r, struct fleet *f)
{
    struct channel *channel = &r->parties[0].rank.channel;
    struct pwc_event event;

    while (channel_probe(channel, PWC_ANY, PWC_REMOTE | PWC_OFFLOAD, &event) == 1) {
        if (event.status != 0)
            fleet_fail(f, "node 0: an event: %s", strerror(-event.status));
        if (r->handled)
            continue;
        r->waiting[(r->first + r->waits++) % r->count] = pwc_peer_rank(event.peer);
        fleet_later(f, 0, WAKE_NS);
    }
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct reducing *r = context;
    struct party *here = &r->parties[node];
    struct pwc_event event;

    if (!here->rank.channel.shared)
        return;
    if (node == 0) {
        look_at_hub(r, f);
        return;
    }
    while (channel_probe(&here->rank.channel, PWC_ANY, r->handled ? PWC_LOCAL : PWC_REMOTE,
                         &event) == 1) {
        if (event.status != 0)
            fleet_fail(f, "node %u: an event: %s", node, strerror(-event.status));
        r->ended++;
    }
}

/* Runs when node 0's client has seen the next put. */
static void awake(void *context, struct fleet *f, const struct sim_entry *frame)
{
    struct reducing *r = context;
    struct party *hub = &r->parties[0];
    uint32_t node = r->waiting[r->first];

    (void)f;
    (void)frame;
    r->first = (r->first + 1) % r->count;
    r->waits--;
    multiply(hub->rank.memory, hub->rank.memory + place_of(r, node), r->bytes);
    put(r, hub, r->parties[node].from_hub.remote, hub->rank.segment_bytes - FLEET_STATE, ANSWER,
        SUBMIT_NO_LCE);
}

static bool all_ended(void *context)
{
    const struct reducing *r = context;

    return r->ended == r->count - 1;
}

/* Each node puts its numbers once more; *ns is the time until each has its answer. */
static bool run_round(struct reducing *r, uint64_t *ns, struct fleet_count *cost)
{
    struct fleet_count from = fleet_counted(r->fleet), to;

    r->ended = 0;
    r->numbers += r->count - 1;
    for (uint32_t i = 1; i < r->count; i++)
        put(r, &r->parties[i], r->parties[i].to_hub.remote, place_of(r, i), r->bytes,
            r->handled ? 0 : SUBMIT_NO_LCE);
    if (!fleet_run(r->fleet, all_ended, r))
        return false;
    *ns = sim_now(r->fleet->sim) - from.ns;
    check(r);
    if (!fleet_run(r->fleet, NULL, NULL))
        return false;
    to = fleet_counted(r->fleet);
    *cost = fleet_between(&from, &to);
    return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int open_hub(struct reducing *r)
{
    const uint64_t pong = 0;
    struct fleet_handlers h = {
        .object = PRODUCT_OBJECT, .state = &pong, .state_bytes = sizeof pong};
    struct party *hub = &r->parties[0];

    fill(hub->rank.memory, r->bytes, product_of(0));
    return r->handled ? fleet_offload(r->fleet, &hub->rank, &h, &hub->offload) : 0;
}

static int bind_both(struct reducing *r, struct party *other)
{
    struct party *hub = &r->parties[0];
    int rc = fleet_bind(r->fleet, &other->rank, &hub->rank, &other->to_hub);

    fill(other->rank.memory, r->bytes, product_of(1));
    if (rc == 0 && !fleet_settled(r->fleet, &other->to_hub))
        rc = -EPROTO;
    if (rc < 0 || r->handled)
        return rc;
    rc = fleet_bind(r->fleet, &hub->rank, &other->rank, &other->from_hub);
    return rc < 0 || fleet_settled(r->fleet, &other->from_hub) ? rc : -EPROTO;
}

static int open_parties(struct reducing *r)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < r->count; i++) {
        rc = fleet_rank_open(r->fleet, i, i, r->count, &r->parties[i].rank);
        if (rc == 0)
            rc = fleet_rank_talks(&r->parties[i].rank);
    }
    if (rc == 0)
        rc = open_hub(r);
    for (uint32_t i = 1; rc == 0 && i < r->count; i++)
        rc = bind_both(r, &r->parties[i]);
    return rc;
}

/* ---- the row --------------------------------------------------------------------------------- */

static int measure(struct reducing *r, const char *time, const char *messages, struct figures *out)
{
    uint64_t ns, sum = 0;
    struct fleet_count cost;

    for (uint32_t i = 0; i <= ROUNDS; i++) {
        if (!run_round(r, &ns, &cost))
            return -EPROTO;
        sum += i > 0 ? ns : 0;
    }
    figure_add(out, time, (double)sum / 1e3 / ROUNDS);
    figure_add(out, messages, (double)cost.messages / r->count);
    return r->fleet->failed ? -EPROTO : 0;
}

static int reduce(const struct row_run *run, bool handled, const char *time, const char *messages,
                  struct figures *out)
{
    struct reducing r = {.count = run->nodes, .bytes = run->row->bytes, .handled = handled};
    uint64_t all = r.bytes * (handled ? 1 : r.count);
    struct fleet_options options = {.nodes = run->nodes,
                                    .segment =
                                        (uint32_t)((all + PAGE - 1) / PAGE * PAGE) + FLEET_STATE,
                                    .loggp = run->loggp,
                                    .hooks = {.context = &r, .look = look, .frame = awake}};
    int rc;

    r.parties = calloc(r.count, sizeof *r.parties);
    r.waiting = calloc(r.count, sizeof *r.waiting);
    rc = r.parties && r.waiting ? fleet_open(&options, &r.fleet) : -ENOMEM;
    if (rc == 0)
        rc = open_parties(&r);
    if (rc == 0)
        rc = measure(&r, time, messages, out);
    if (r.fleet && r.fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", r.fleet->failure);
    for (uint32_t i = 0; r.parties && i < r.count; i++)
        fleet_rank_close(&r.parties[i].rank);
    free(r.parties);
    free(r.waiting);
    if (r.fleet)
        fleet_close(r.fleet);
    return rc;
}

int row_product(const struct row_run *run, struct figures *out)
{
    int rc = reduce(run, true, "us", "messages_a_node", out);

    return rc == 0 ? reduce(run, false, "us_by_client", "messages_a_node_by_client", out) : rc;
}
