/*
 * Clients beside bad clients, with real daemons. A bad client submits as fast as it can to a client
 * that takes no events, or that is stopped (SIGSTOP); then both die. Meanwhile two bystanders on
 * the same nodes check every byte, and must keep a part of their rate. The bound is wide, because
 * all processes share this machine's processors; engine/quota and engine/turns measure the cost
 * without time. Also two clients that flood each other, then flush.
 *
 *     test_flood PWCD PROVIDER
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/lib/process.h"

#define SLOWER       50u /* bystanders may be slower by this factor */
#define WHILES       5
#define REGION_BYTES (1u << 20)
#define WATCH_MS     300
#define WATCH_MS_MAX 4800
#define WAIT_MS      20000
#define FULL_MS      100 /* refused for so long: nothing moves any more */

/* Set by main before the tests run. */
static struct cluster cluster;
static struct bystanders others;

/* Shared with the children. */
static struct counts {
    _Atomic uint64_t ready, taken, refused;
} * counts;

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static bool comes_true(const _Atomic uint64_t *count, uint64_t least)
{
    for (int ms = 0; *count < least && ms < WAIT_MS; ms++)
        pause_ms(1);
    return *count >= least;
}

/* The process of a bad rank: rank 0 floods, rank 1 only has memory. */
_Noreturn static void be_bad(uint32_t number, const char *job)
{
    struct rank r = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rank_attach(&r, cluster.nodes[number].socket, job, number, 2, REGION_BYTES) < 0 ||
        rank_bind_other(&r) < 0)
        _exit(1);
    counts->ready++;
    while (number == 1)
        pause();
    for (uint64_t i = 0;; i++) {
        int rc = pwc_put(r.remote, 0, r.memory, i % 64 ? 64 : 65536, pwc_cid_u64(i), pwc_cid_u64(i),
                         PWC_NO_LCE);

        if (rc == 0)
            counts->taken++;
        else if (rc != -EAGAIN)
            _exit(1);
        else
            counts->refused++;
        if (rc == -EAGAIN)
            sched_yield();
    }
}

static uint64_t rounds_within(long ms)
{
    uint64_t before = others.rounds;

    pause_ms(ms);
    return others.rounds - before;
}

static void beside(const char *job, bool stopped)
{
    long span_ms = WATCH_MS;
    uint64_t alone, now = 0;
    pid_t bad[2];

    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &cluster, "bystanders"), 0);
    CU_ASSERT_FATAL(bystanders_go_on(&others));
    alone = rounds_within(span_ms);
    while (alone <= SLOWER && span_ms < WATCH_MS_MAX)
        alone = rounds_within(span_ms *= 2);
    CU_ASSERT_FATAL(alone > SLOWER);
    *counts = (struct counts){0};
    fflush(NULL);
    for (uint32_t i = 0; i < 2; i++) {
        bad[i] = fork();
        if (bad[i] == 0)
            be_bad(i, job);
        CU_ASSERT_FATAL(bad[i] > 0);
    }
    CU_ASSERT(comes_true(&counts->ready, 2));
    if (stopped)
        CU_ASSERT_TRUE(process_stop(bad[1]));
    /* Wait until the client has used all that it may have, so that it is refused every time. */
    CU_ASSERT(comes_true(&counts->taken, 100));
    CU_ASSERT(comes_true(&counts->refused, 10000));
    /* The best of several spans counts: other work on this machine slows some of them, a flood
     * slows all. */
    for (int i = 0; i < WHILES && now * SLOWER < alone; i++) {
        uint64_t rounds = rounds_within(span_ms);

        now = rounds > now ? rounds : now;
    }
    printf("\n    %llu rounds beside it, %llu alone ", (unsigned long long)now,
           (unsigned long long)alone);
    CU_ASSERT(now * SLOWER >= alone);
    /* The target dies first: operations towards it end, and the bystanders notice nothing. */
    for (int i = 1; i >= 0; i--) {
        CU_ASSERT_EQUAL(kill(bad[i], SIGKILL), 0);
        CU_ASSERT_EQUAL(waitpid(bad[i], NULL, 0), bad[i]);
        CU_ASSERT(bystanders_go_on(&others));
    }
    CU_ASSERT(bystanders_stop(&others));
    CU_ASSERT(cluster_runs(&cluster));
}

static void test_deaf(void)
{
    beside("deaf", false);
}

static void test_stopped(void)
{
    beside("stopped", true);
}

/* Puts to the other rank until puts are refused for good, and takes no event. Returns the number of
 * puts. */
static uint64_t fill_ring(struct rank *r)
{
    uint64_t count = 0;
    int rc = 0;

    for (int ms = 0; ms < FULL_MS; ms += rc == -EAGAIN) {
        while ((rc = pwc_put(r->remote, 0, NULL, 0, PWC_CID_NONE, pwc_cid_u64(count),
                             PWC_NO_LCE)) == 0) {
            count++;
            ms = 0;
        }
        CU_ASSERT_EQUAL_FATAL(rc, -EAGAIN);
        pause_ms(1);
    }
    return count;
}

/* Two ranks have filled each other's rings, without taking an event, and flush. Each flush keeps
 * the other rank's events, until it ends or returns an error because no more can be kept. */
static void test_flush_of_both(void)
{
    struct rank ranks[2] = {0};
    uint64_t sent[2], seen[2] = {0};
    struct pwc_event event;
    int rc[2] = {-ETIMEDOUT, -ETIMEDOUT};

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&ranks[i], cluster.nodes[i].socket, "flush", i, 2, REGION_BYTES), 0);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[i], &ranks[1 - i]), 0);
    for (uint32_t i = 0; i < 2; i++)
        sent[i] = fill_ring(&ranks[i]);
    /* The flushes take turns, in place of two processes. */
    for (int ms = 0; (rc[0] < 0 || rc[1] < 0) && ms < WAIT_MS; ms += 20) {
        for (uint32_t i = 0; i < 2; i++) {
            rc[i] = pwc_flush(ranks[i].ctx, PWC_ANY, 10);
            CU_ASSERT_FATAL(rc[i] == 0 || rc[i] == -ETIMEDOUT || rc[i] == -ENOBUFS);
            while (rc[i] != -ETIMEDOUT && pwc_probe(ranks[i].ctx, 1 - i, PWC_REMOTE, &event) == 1)
                CU_ASSERT_EQUAL_FATAL(event.id, seen[i]++);
        }
    }
    CU_ASSERT_EQUAL(rc[0], 0);
    CU_ASSERT_EQUAL(rc[1], 0);
    for (uint32_t i = 0; i < 2; i++) {
        while (seen[i] < sent[1 - i]) {
            CU_ASSERT_EQUAL_FATAL(pwc_wait(ranks[i].ctx, 1 - i, PWC_REMOTE, &event, WAIT_MS), 1);
            CU_ASSERT_EQUAL_FATAL(event.id, seen[i]++);
        }
        CU_ASSERT_EQUAL(pwc_probe(ranks[i].ctx, PWC_ANY, 0, &event), 0);
    }
    printf("\n    %llu and %llu events ", (unsigned long long)sent[0], (unsigned long long)sent[1]);
    for (uint32_t i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {{"a flood to one that does not drain", test_deaf},
                                  {"a flood to one that is stopped", test_stopped},
                                  {"two floods that flush", test_flush_of_both},
                                  CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: test_flood PWCD PROVIDER\n");
        return 2;
    }
    options.pwcd = argv[1];
    options.provider = argv[2];
    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 1;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("flood", tests);
    if (others.runs)
        bystanders_stop(&others);
    return cluster_end(&cluster, status);
}
