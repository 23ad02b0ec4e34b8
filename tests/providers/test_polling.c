/*
 * Programs that poll: reads of a queue or a counter that find nothing yield the processor, which
 * the daemon may need, but not the first look after a submission. This program's sched_yield stands
 * before the C library's, so it counts all yields of the process, and its pwc_probe_n before that
 * of libpwc, which only the provider loads.
 *
 *     test_polling PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <dlfcn.h>
#include <pwc/atomic.h>
#include <pwc/pwc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/count.h"
#include "tests/providers/both.h"

static unsigned yields;

int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

typedef int (*probe_function)(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *events,
                              unsigned n);

static unsigned probes;

int pwc_probe_n(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *events, unsigned n)
{
    static probe_function probe;

    if (!probe)
        probe =
            (probe_function)dlsym(dlopen("libpwc.so.1", RTLD_LAZY | RTLD_NOLOAD), "pwc_probe_n");
    probes++;
    return probe(ctx, peer, kinds, events, n);
}

static struct side_options polling_as(enum fi_threading threading)
{
    return (struct side_options){.mr_mode = both_basic.mr_mode,
                                 .format = FI_CQ_FORMAT_CONTEXT,
                                 .cq_flags = FI_SELECTIVE_COMPLETION,
                                 .threading = threading,
                                 .counters = true};
}

static void look_at_queue(struct side *side)
{
    struct fi_cq_entry entry;

    CU_ASSERT_EQUAL(fi_cq_read(side->cq, &entry, 1), -FI_EAGAIN);
}

static void ask_for_progress(struct side *side)
{
    CU_ASSERT_EQUAL(fi_cq_read(side->cq, NULL, 0), 0);
}

static void look_at_ends(struct side *side)
{
    CU_ASSERT_EQUAL(fi_cntr_read(side->writes), 0);
}

static void look_at_arrivals(struct side *side)
{
    CU_ASSERT_EQUAL(fi_cntr_read(side->arrived), 0);
}

/* Whether looks yield. Where a program computes on this processor, yields pause for up to a
 * second. */
static bool ever_yields(struct side *side, void (*look)(struct side *side))
{
    int64_t end = side_now() + SIDE_WAIT_MS;
    unsigned before = yields;

    while (yields == before && side_now() < end)
        look(side);
    return yields > before;
}

static void test_looks(void)
{
    static const enum fi_threading threadings[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE};

    for (int i = 0; i < 2; i++) {
        const struct side_options options = polling_as(threadings[i]);
        struct side sides[2];

        both_open(sides, &options);
        CU_ASSERT(ever_yields(&sides[0], look_at_queue));
        CU_ASSERT(ever_yields(&sides[0], ask_for_progress));
        CU_ASSERT(ever_yields(&sides[0], look_at_ends));
        CU_ASSERT(ever_yields(&sides[1], look_at_arrivals));
        both_close(sides);
    }
}

/* A look at a counter of ends, of an endpoint's arrivals, or of both takes events once. */
static void test_probes(void)
{
    static const uint64_t counted[] = {FI_WRITE, FI_REMOTE_WRITE, FI_WRITE | FI_REMOTE_WRITE};

    for (unsigned i = 0; i < 3; i++) {
        struct side side;
        struct fid_cntr *cntr;

        CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &both_basic), 0);
        CU_ASSERT_EQUAL_FATAL(fi_cntr_open(side.domain, NULL, &cntr, NULL), 0);
        CU_ASSERT_EQUAL_FATAL(fi_ep_bind(side.ep, &cntr->fid, counted[i]), 0);
        probes = 0;
        CU_ASSERT_EQUAL(fi_cntr_read(cntr), 0);
        CU_ASSERT_EQUAL(probes, 1);
        CU_ASSERT_EQUAL(fi_close(&side.ep->fid), 0);
        side.ep = NULL;
        CU_ASSERT_EQUAL(fi_close(&cntr->fid), 0);
        side_close(&side);
    }
}

/* A program that looks once after each submission keeps the processor, so that its daemon gets many
 * submissions at once. */
static void test_submissions(void)
{
    static const enum fi_threading threadings[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE};

    for (int i = 0; i < 2; i++) {
        const struct side_options options = polling_as(threadings[i]);
        struct side sides[2];
        struct fi_cq_entry entry;
        unsigned before;

        both_open(sides, &options);
        CU_ASSERT_EQUAL_FATAL(
            both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
        before = yields;
        for (int write = 0; write < 8; write++) {
            CU_ASSERT_EQUAL_FATAL(fi_inject_write(sides[0].ep, "y", 1, sides[0].peer,
                                                  side_address(&sides[1], 0), side_key(&sides[1])),
                                  0);
            CU_ASSERT_EQUAL(fi_cq_read(sides[0].cq, &entry, 1), -FI_EAGAIN);
        }
        CU_ASSERT_EQUAL(yields, before);
        CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 9, SIDE_WAIT_MS), 0);
        both_close(sides);
    }
}

static ssize_t write_word(struct side sides[2])
{
    return fi_inject_write(sides[0].ep, "y", 1, sides[0].peer, side_address(&sides[1], 0),
                           side_key(&sides[1]));
}

/* Loops of programs, each of which ends after the death of the daemon. */
static bool reading_ends(struct side sides[2], int64_t end)
{
    struct fi_cq_entry entry;

    while (fi_cq_read(sides[0].cq, &entry, 1) == -FI_EAGAIN)
        if (side_now() > end)
            return false;
    return true;
}

static bool counting_ends(struct side sides[2], int64_t end)
{
    CU_ASSERT_EQUAL(write_word(sides), 0);
    while (fi_cntr_read(sides[0].writes) < 2 && fi_cntr_readerr(sides[0].writes) == 0)
        if (side_now() > end)
            return false;
    return true;
}

static bool trying_ends(struct side sides[2], int64_t end)
{
    while (write_word(sides) == 0)
        if (side_now() > end)
            return false;
    while (write_word(sides) == -FI_EAGAIN)
        if (side_now() > end)
            return false;
    return true;
}

/* A call of several parts, which finds no room for a later part, waits for the daemon. */
static bool fetching_ends(struct side sides[2], int64_t end)
{
    static uint64_t words[PWC_FETCH_MAX];

    while (fi_cntr_readerr(sides[0].reads) == 0) {
        (void)fi_fetch_atomic(sides[0].ep, words, PWC_FETCH_MAX, NULL, words, NULL, sides[0].peer,
                              side_address(&sides[1], 0), side_key(&sides[1]), FI_UINT64, FI_SUM,
                              NULL);
        if (side_now() > end)
            return false;
    }
    return true;
}

/* A program that polls notices within seconds that its daemon has died, however it polls. */
static void test_killed(void)
{
    static bool (*const loops[])(struct side sides[2], int64_t end) = {reading_ends, counting_ends,
                                                                       trying_ends, fetching_ends};
    /* Fetches on one node need no daemon. */
    const unsigned count = both_cluster.options.nodes == 1 ? COUNT(loops) - 1 : COUNT(loops);

    for (unsigned i = 0; i < 2 * count; i++) {
        const struct side_options options =
            polling_as(i % 2 == 0 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE);
        struct side sides[2];
        int64_t begin = side_now();

        both_open(sides, &options);
        CU_ASSERT_EQUAL_FATAL(
            both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
        /* No call that waits: with a descriptor to wait on, each probe looks at the daemon. */
        while (fi_cntr_read(sides[0].writes) < 1 && side_now() < begin + SIDE_WAIT_MS)
            ;
        cluster_kill(&both_cluster, 0);
        CU_ASSERT(loops[i / 2](sides, side_now() + SIDE_WAIT_MS / 4));
        /* Daemon 1 waits for it, or gives it up late, before it lets go of the other region. */
        CU_ASSERT_EQUAL_FATAL(cluster_restart(&both_cluster, 0), 0);
        both_close(sides);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"looks in vain", test_looks},
        {"one probe a look", test_probes},
        {"looks between submissions", test_submissions},
        {"killed daemon", test_killed},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, polling", tests);
}
