/*
 * Thousands of random runs (chaos.h), each from its seed.
 *
 *     test_seeds [--seeds N] [--first S] [--jobs J]    all of them; a failing one prints its replay
 *     test_seeds --seed S [--trace]                    one of them again
 *
 * Thread: one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/engine/world/chaos/chaos.h"

#define JOBS_MAX     64u
#define FAILURES_MAX 5u
#define SEED_SECONDS 30u /* seconds that one run may take, in real time */

/* The result of each job, in memory that parent and jobs share. */
struct job {
    uint64_t seed; /* the seed that is run now */
    uint64_t done, failed;
    struct chaos_counters counters;
};

static void run_job(struct job *job, const char *name, uint64_t first, uint64_t count,
                    uint32_t number, uint32_t jobs)
{
    char failure[400];

    for (uint64_t i = number; i < count && job->failed < FAILURES_MAX; i += jobs) {
        const char *wrong;

        job->seed = first + i;
        alarm(SEED_SECONDS);
        wrong = chaos_run(job->seed, NULL, &job->counters, failure);
        job->done++;
        if (!wrong)
            continue;
        job->failed++;
        printf("seed %llu: %s\n  again: %s --seed %llu --trace\n", (unsigned long long)job->seed,
               wrong, name, (unsigned long long)job->seed);
        fflush(stdout);
    }
}

static void add(struct chaos_counters *sum, const struct chaos_counters *c)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)c;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

/* Prints the counters. Returns false where one of them is 0 that must not be: such runs have not
 * tested what they claim to. */
static bool report(const struct chaos_counters *c, uint64_t seeds)
{
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {
        {"operations", c->operations},
        {"puts with signal", c->signals},
        {"events", c->events},
        {"ended in error", c->errors},
        {"links broken", c->breaks},
        {"links cut", c->cuts},
        {"fabrics gone silent", c->blackouts},
        {"signs of life asked for", c->asks},
        {"silences noticed", c->silences},
        {"links lost for good", c->losses},
        {"daemons crashed", c->crashes},
        {"states lost", c->states_lost},
        {"clients died", c->deaths},
        {"clients quarantined", c->quarantines},
        {"events spilled", c->spills},
        {"ledgers starved", c->starved},
        {"contexts opened", c->contexts_opened},
        {"contexts closed", c->contexts_closed},
        {"keys withdrawn", c->withdrawals},
        {"unbinds", c->unbinds},
        {"flushes", c->flushes},
        {"ledgers grown", c->grown},
        {"writes overtaken", c->overtaken},
        {"payloads striped", c->striped},
        {"atomics", c->atomics},
        {"rounds", c->rounds},
    };
    bool all = true;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("%12llu %s\n", (unsigned long long)rows[i].count, rows[i].name);
        all &= rows[i].count > 0;
    }
    if (!all && seeds >= 1000)
        printf("something never came up: the test is blunt\n");
    return all || seeds < 1000;
}

static int run_all(const char *name, uint64_t first, uint64_t count, uint32_t jobs)
{
    struct job *shared = mmap(NULL, jobs * sizeof *shared, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct chaos_counters sum = {0};
    uint64_t done = 0, failed = 0;
    pid_t pids[JOBS_MAX];

    if (shared == MAP_FAILED)
        return 1;
    for (uint32_t i = 0; i < jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_job(&shared[i], name, first, count, i, jobs);
            exit(0);
        }
    }
    for (uint32_t i = 0; i < jobs; i++) {
        int status;

        if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0)
            return 1;
        if (WIFSIGNALED(status)) {
            failed++;
            printf("seed %llu: signal %d (%s)\n  again: %s --seed %llu --trace\n",
                   (unsigned long long)shared[i].seed, WTERMSIG(status),
                   strsignal(WTERMSIG(status)), name, (unsigned long long)shared[i].seed);
        } else if (WEXITSTATUS(status) != 0) {
            failed++;
            printf("seed %llu: exit status %d\n", (unsigned long long)shared[i].seed,
                   WEXITSTATUS(status));
        }
        add(&sum, &shared[i].counters);
        done += shared[i].done;
        failed += shared[i].failed;
    }
    printf("%llu seeds, %llu failed\n", (unsigned long long)done, (unsigned long long)failed);
    return !report(&sum, count) || failed > 0 || done != count;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 10000, first = 1, one = 0;
    uint32_t jobs = 2;
    bool single = false;
    FILE *trace = NULL;
    struct chaos_counters counters = {0};
    char failure[400];
    const char *wrong;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (more && strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--first") == 0) {
            first = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--jobs") == 0) {
            jobs = (uint32_t)strtoul(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--seed") == 0) {
            one = strtoull(argv[++i], NULL, 0);
            single = true;
        } else if (strcmp(argv[i], "--trace") == 0) {
            trace = stdout;
        } else {
            fprintf(stderr,
                    "usage: %s [--seeds N] [--first S] [--jobs 1-%u] | --seed S [--trace]\n",
                    argv[0], JOBS_MAX);
            return 2;
        }
    }
    if (!single && jobs >= 1 && jobs <= JOBS_MAX)
        return run_all(argv[0], first, seeds, jobs);
    wrong = chaos_run(one, trace, &counters, failure);
    printf("seed %llu: %s\n", (unsigned long long)one, wrong ? wrong : "passed");
    return wrong != NULL;
}
