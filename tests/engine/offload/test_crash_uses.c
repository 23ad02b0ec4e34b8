/*
 * A daemon may die anywhere (crash_main.h) while it runs the handlers of the examples from their
 * images (uses.h): before any store of node 0, which runs most handlers, or of node 1. Afterwards
 * each use checks its results.
 *
 * Uses whose handlers may run again have offloads with ENGINE_OFFLOAD_REPEATABLE: the results are
 * as if no daemon had died. In the other uses (accumulate, transaction log, deletes of a key,
 * RAID-5) each death leaves at most one operation in doubt, whose handler has done its work once or
 * not at all; with RAID-5 the packet in doubt may be without its parity.
 *
 * The images are in EXAMPLES_FOLDER. Nodes die only after all clients are bound: test_crash has the
 * deaths while offloads are created.
 *
 * Thread: one in each process.
 */
#include <string.h>
#include "tests/count.h"
#include "tests/engine/offload/uses/uses.h"
#include "tests/engine/world/crash/crash_main.h"

enum { AGAIN = ENGINE_OFFLOAD_REPEATABLE, PACKET = 512 };

static const struct {
    const char *name;
    const struct use *use;
    uint32_t flags, nodes;
    uint32_t wanted; /* number of operations */
} scenarios[] = {
    {"ping-pong", &use_ping_pong, AGAIN, 2, 4},
    {"ping-pong with strangers", &use_ping_pong, AGAIN, 3, 6},
    {"accumulate", &use_accumulate, 0, 2, 5},
    {"strided", &use_strided, AGAIN, 2, 6},
    {"transaction log", &use_transaction_log, 0, 2, 6},
    {"keys and values", &use_key_value, 0, 3, 12},
    {"keys and values, inserts again", &use_key_value, AGAIN, 3, 8},
    {"conditional read", &use_conditional_read, AGAIN, 2, 6},
    {"RAID-5", &use_raid5, 0, 3, 5},
    {"shortest paths", &use_shortest_paths, AGAIN, 3, 1},
    {"breadth-first search", &use_breadth_first, AGAIN, 3, 2},
    {"broadcast", &use_broadcast, AGAIN, 4, 4},
    {"broadcast past dead clients", &use_broadcast_past_dead, AGAIN, 4, 4},
};

static const char *name_of(size_t number)
{
    return scenarios[number].name;
}

static const char *run(size_t number, struct crash_guard *g, FILE *trace, char failure[400])
{
    static struct uses uses;
    static struct uses_counters counters;
    struct uses *u = &uses;
    const struct world_options options = {
        .seed = 7 + number,
        .nodes = scenarios[number].nodes,
        .segment_bytes = USES_PART,
        .limits = {.ledger_bytes = 512 * 1024, .packed_max = PACKET, .handler_us = 1000000},
        .trace = trace,
        .sim = {.ordered_write_max = UINT64_MAX}};
    const char *wrong;

    memset(u, 0, sizeof(*u));
    u->use = scenarios[number].use;
    u->random.state = number;
    u->nodes = scenarios[number].nodes;
    u->packet = PACKET;
    u->more_flags = scenarios[number].flags;
    u->dies = true;
    u->counters = &counters;
    wrong = uses_begin(u, &options, EXAMPLES_FOLDER);
    if (wrong)
        return wrong;
    u->wanted = scenarios[number].wanted;
    u->world->reopen_rounds = CRASH_REOPEN_ROUNDS;
    g->world = u->world;
    crash_guard_open(g);
    g->armed = true;
    uses_work(u);
    g->armed = false;
    u->doubts = u->world->nodes[g->victim].deaths;
    uses_check(u);
    crash_guard_close(g);
    return uses_end(u, failure);
}

int main(int argc, char **argv)
{
    const struct crash_suite suite = {.count = COUNT(scenarios), .name = name_of, .run = run};

    return crash_main(&suite, argc, argv);
}
