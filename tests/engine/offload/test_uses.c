/*
 * The uses of handlers on 2 to 64 simulated nodes, with links that break and are cut, refusals,
 * full rings, packets that overtake one another, clients that do not take events and daemons that
 * die between two steps: each handler runs exactly once, each origin's event says what really
 * happened, and memory is what a plain computation says (uses.h).
 *
 *     test_uses FOLDER [--seeds N] [--first S]    all uses; a failing seed prints its replay
 *     test_uses FOLDER --seed S [--trace]         one seed again
 *
 * FOLDER has the object files of the examples.
 *
 * Thread: one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/engine/offload/uses/uses.h"

#define SEED_SECONDS 60u
#define SEEDS_SHARP  200u /* with fewer, a counter may stay 0 */
#define FAILURES_MAX 5u

static const struct use *const uses[] = {
    &use_ping_pong,           &use_accumulate,    &use_strided,          &use_transaction_log,
    &use_transaction_log_cut, &use_key_value,     &use_conditional_read, &use_raid5,
    &use_shortest_paths,      &use_breadth_first, &use_broadcast,        &use_broadcast_past_dead,
};
enum { USES = sizeof(uses) / sizeof(uses[0]) };

/* Prints the counters. Returns false where one is 0 that must not be: such runs have not tested
 * what they claim to. */
static bool report(const struct uses_counters *c, uint64_t seeds)
{
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {
        {"operations", c->operations},
        {"runs of handlers", c->runs},
        {"runs that ended with AGAIN", c->reruns},
        {"operations that failed", c->failed},
        {"operations left to clients", c->deferred},
        {"puts that were cut", c->cut},
        {"links broken", c->breaks},
        {"links cut", c->cuts},
        {"daemons died", c->deaths},
        {"clients that did not look", c->sleeps},
        {"clients died", c->ends},
    };
    bool all = true;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("%12llu %s\n", (unsigned long long)rows[i].count, rows[i].name);
        all &= rows[i].count > 0;
    }
    if (!all && seeds >= SEEDS_SHARP)
        printf("something never came up: the test is blunt\n");
    return all || seeds < SEEDS_SHARP;
}

static bool run(uint64_t seed, FILE *trace, struct uses_counters *counters, const char *name)
{
    char failure[400];
    const char *wrong;

    alarm(SEED_SECONDS);
    wrong = uses_run(uses[seed % USES], seed, EXAMPLES_FOLDER, trace, counters, failure);
    if (wrong)
        printf("seed %llu: %s\n  again: %s --seed %llu --trace\n", (unsigned long long)seed, wrong,
               name, (unsigned long long)seed);
    fflush(stdout);
    return !wrong;
}

static int usage(void)
{
    fprintf(stderr, "usage: test_uses [--seeds N] [--first S] | --seed S [--trace]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 220, first = 1, failed = 0;
    struct uses_counters counters = {0};
    FILE *trace = NULL;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--trace") == 0)
            trace = stdout;
        else if (more && strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--seed") == 0)
            first = strtoull(argv[++i], NULL, 0), seeds = 1;
        else
            return usage();
    }
    for (uint64_t seed = first; seed < first + seeds && failed < FAILURES_MAX; seed++)
        failed += !run(seed, trace, &counters, argv[0]);
    printf("%llu seeds, %llu failed\n", (unsigned long long)seeds, (unsigned long long)failed);
    return !report(&counters, seeds) || failed > 0;
}
