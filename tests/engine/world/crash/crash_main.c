/* The main function of tests in which a daemon may die anywhere (crash_main.h). Thread: one. */
#include "tests/engine/world/crash/crash_main.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define JOBS    2u
/* A sample is one of so many calls, or fewer, and of their stores. */
#define CALLS_EVERY 8u

/* The arguments of the command line. */
struct wish {
    const char *program;
    size_t number; /* number of the scenario; the suite's count: all scenarios */
    uint32_t victim;
    uint64_t every, first, again;
    uint64_t store; /* number of the one store before which the node dies; 0: each store */
    FILE *trace;
};

/* The sample of one store in K, the F-th of all such samples. */
static struct crash_sample sample_of(uint64_t every, uint64_t first)
{
    uint64_t calls = every < CALLS_EVERY ? every : CALLS_EVERY;
    uint64_t stores = every / calls;

    return (struct crash_sample){
        .calls = calls, .call = first % calls, .stores = stores, .store = first / calls % stores};
}

/* Runs one scenario: with a fork at every store (store 0), or with a stop at one store. A child
 * does not return. Returns NULL, or what failed. */
static const char *run(const struct crash_suite *suite, const struct wish *wish,
                       struct crash_guard *g, char failure[400])
{
    const char *wrong;

    *g = (struct crash_guard){.victim = wish->victim,
                              .forking = wish->store == 0,
                              .stop = wish->store,
                              .sample = sample_of(wish->every, wish->first),
                              .again = wish->again};
    wrong = suite->run(wish->number, g, wish->trace, failure);
    if (!g->child)
        return wrong;
    if (wrong)
        printf("%s, node %u dies at store %llu: %s\n  again: %s --scenario %zu --victim %u "
               "--every %llu --first %llu --store %llu --again %llu --trace\n",
               suite->name(wish->number), wish->victim, (unsigned long long)g->died_at, wrong,
               wish->program, wish->number, wish->victim, (unsigned long long)wish->every,
               (unsigned long long)wish->first, (unsigned long long)g->died_at,
               (unsigned long long)g->again);
    fflush(stdout);
    _exit(wrong != NULL);
}

/* Runs all crashes of one scenario and victim. Returns how many went wrong. */
static uint64_t run_all_stores(const struct crash_suite *suite, const struct wish *wish)
{
    const char *name = suite->name(wish->number), *wrong;
    struct crash_guard g;
    char failure[400];

    wrong = run(suite, wish, &g, failure);
    if (wrong)
        printf("%s, node %u, without a crash: %s\n", name, wish->victim, wrong);
    printf("%s, node %u: %llu calls, %llu stores in those of the sample, %llu crashes went wrong\n",
           name, wish->victim, (unsigned long long)g.calls, (unsigned long long)g.stores,
           (unsigned long long)g.failed);
    if (g.work < 10) {
        printf("  the node does too little, %llu: is it the right one?\n",
               (unsigned long long)g.work);
        return 1;
    }
    return g.failed + (wrong != NULL);
}

static int run_all(const struct crash_suite *suite, const struct wish *wish)
{
    const struct crash_sample sample = sample_of(wish->every, wish->first);
    pid_t pids[JOBS];
    int failed = 0;

    printf(
        "deaths in every call of number %% %llu == %llu, before every store of number %% %llu == "
        "%llu\n",
        (unsigned long long)sample.calls, (unsigned long long)sample.call,
        (unsigned long long)sample.stores, (unsigned long long)sample.store);
    for (uint32_t job = 0; job < JOBS; job++) {
        fflush(stdout);
        pids[job] = fork();
        if (pids[job] == 0) {
            struct wish one = *wish;
            uint64_t wrong = 0;

            for (size_t i = job; i < 2 * suite->count; i += JOBS) {
                one.number = i / 2;
                one.victim = (uint32_t)(i % 2);
                wrong += run_all_stores(suite, &one);
                fflush(stdout);
            }
            _exit(wrong > 0);
        }
    }
    for (uint32_t job = 0; job < JOBS; job++) {
        int status;

        if (pids[job] < 0 || waitpid(pids[job], &status, 0) < 0 || status != 0)
            failed = 1;
    }
    return failed;
}

static int usage(const struct crash_suite *suite, const struct wish *wish)
{
    fprintf(stderr,
            "usage: %s [--every K] [--first F] [--again M] [--scenario 0-%zu --victim 0-1 "
            "[--store N [--trace]]]\n",
            wish->program, suite->count - 1);
    return 2;
}

/* Reads the command line. Returns whether it makes sense. */
static bool parse(struct wish *wish, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (more && strcmp(argv[i], "--scenario") == 0)
            wish->number = strtoul(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--victim") == 0)
            wish->victim = (uint32_t)strtoul(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--store") == 0)
            wish->store = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--again") == 0)
            wish->again = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--every") == 0)
            wish->every = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--first") == 0)
            wish->first = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--trace") == 0)
            wish->trace = stdout;
        else
            return false;
    }
    return wish->every > 0 && wish->victim <= 1;
}

int crash_main(const struct crash_suite *suite, int argc, char **argv)
{
    struct wish wish = {.program = argv[0],
                        .number = suite->count,
                        .every = 1,
                        .first = (uint64_t)time(NULL) / 86400};
    struct crash_guard g;
    char failure[400];
    const char *wrong;

    if (!crash_guard_supported()) {
        printf("skipped: single steps are known for x86-64 only\n");
        return SKIPPED;
    }
    if (!parse(&wish, argc, argv))
        return usage(suite, &wish);
    if (wish.number == suite->count && wish.victim == 0 && wish.store == 0 && !wish.trace)
        return run_all(suite, &wish);
    if (wish.number >= suite->count)
        return usage(suite, &wish);
    if (wish.store == 0)
        return run_all_stores(suite, &wish) != 0;
    wrong = run(suite, &wish, &g, failure);
    if (!wrong && g.died_at == 0)
        wrong = "the node has not so many stores, and did not die";
    printf("%s, node %u, store %llu: %s\n", suite->name(wish.number), wish.victim,
           (unsigned long long)wish.store, wrong ? wrong : "passed");
    return wrong != NULL;
}
