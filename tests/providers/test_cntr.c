/*
 * Counters over libfabric and two daemons: of writes, reads, arrivals and failures; values that the
 * application sets; and waits that sleep until the last operation has been counted.
 *
 *     test_cntr PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "tests/count.h"
#include "tests/providers/both.h"

#define WRITES 200u

static struct side_options counting_as(enum fi_threading threading)
{
    return (struct side_options){.mr_mode = both_basic.mr_mode,
                                 .format = FI_CQ_FORMAT_CONTEXT,
                                 .cq_flags = FI_SELECTIVE_COMPLETION,
                                 .threading = threading,
                                 .counters = true};
}

struct writer {
    struct side *sides;
    ssize_t rc; /* of the write that failed, or of the wait for all of them */
};

/* Writes from side 0, some time later, for a side that waits. */
static void *write_later(void *argument)
{
    struct writer *w = argument;
    struct side *sides = w->sides;
    struct timespec while_ = {.tv_nsec = 30000000};

    nanosleep(&while_, NULL);
    for (uint64_t i = 1; i <= WRITES && w->rc == 0; i++)
        w->rc = SIDE_REPEAT(&sides[0], NULL,
                            fi_inject_write(sides[0].ep, &i, sizeof(i), sides[0].peer,
                                            side_address(&sides[1], i * 8), side_key(&sides[1])));
    if (w->rc == 0)
        w->rc = fi_cntr_wait(sides[0].writes, WRITES, SIDE_WAIT_MS);
    return NULL;
}

/* A wait of the target ends when all writes have arrived, and its counter has their number. */
static void wait_for_arrivals(enum fi_threading threading)
{
    const struct side_options options = counting_as(threading);
    struct side sides[2];
    struct writer writer = {.sides = sides};
    pthread_t thread;

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, write_later, &writer), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[1].arrived, WRITES, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), WRITES);
    for (uint64_t i = 1; i <= WRITES; i++)
        CU_ASSERT_EQUAL(((uint64_t *)sides[1].memory)[i], i);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(writer.rc, 0);
    both_close(sides);
}

static void test_arrivals(void)
{
    wait_for_arrivals(FI_THREAD_DOMAIN);
    wait_for_arrivals(FI_THREAD_SAFE);
}

/* Counts stay when the endpoint is closed at which the operations arrived. */
static void test_closed_endpoint(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[1].arrived, 1, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_close(&sides[1].ep->fid), 0);
    sides[1].ep = NULL;
    CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), 1);
    both_close(sides);
}

/* A write of several pieces arrives once: of short ones in any memory, and of long ones in a
 * region. Long ones elsewhere arrive, too. */
static void test_pieces(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];
    static char text[3] = "abc", elsewhere[16384];
    struct iovec middles[] = {{text + 1, 1}, {NULL, 16384}, {elsewhere, sizeof(elsewhere)}};

    both_open(sides, &options);
    middles[1].iov_base = sides[0].memory;
    for (uint64_t i = 0; i < COUNT(middles); i++) {
        const struct iovec pieces[] = {{text, 1}, middles[i], {text + 2, 1}};

        memset(sides[1].memory, 0, SIDE_BYTES);
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], NULL,
                        fi_writev(sides[0].ep, pieces, NULL, COUNT(pieces), sides[0].peer,
                                  side_address(&sides[1], 0), side_key(&sides[1]), NULL)),
            0);
        CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, i + 1, SIDE_WAIT_MS), 0);
        if (middles[i].iov_base != elsewhere)
            CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), i + 1);
        CU_ASSERT_EQUAL(sides[1].memory[0], 'a');
        CU_ASSERT_EQUAL(sides[1].memory[1 + middles[i].iov_len], 'c');
    }
    both_close(sides);
}

/* Reads and fetching atomics count as reads, and do not arrive. */
static void test_reads(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];
    uint64_t word = 0;

    both_open(sides, &options);
    *(uint64_t *)sides[1].memory = 42;
    CU_ASSERT_EQUAL_FATAL(
        both_read(sides, &word, 8, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].reads, 1, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(word, 42);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_fetch_atomic(sides[0].ep, NULL, 1, NULL, &word, NULL, sides[0].peer,
                                    side_address(&sides[1], 0), side_key(&sides[1]), FI_UINT64,
                                    FI_ATOMIC_READ, NULL)),
        0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].reads, 2, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[0].writes), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), 0);
    both_close(sides);
}

/* A failure ends a wait, counts as an error, and has an error entry in the queue. */
static void test_failures(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];
    struct fi_cq_err_entry error;

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]) + 99, NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 1, SIDE_WAIT_MS), -FI_EAVAIL);
    CU_ASSERT_EQUAL(fi_cntr_readerr(sides[0].writes), 1);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 1, 20), -FI_ETIMEDOUT);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[0].writes), 0);
    CU_ASSERT_EQUAL(side_error(&sides[0], &error), FI_EKEYREJECTED);
    both_close(sides);
}

/* A wait ends also where the peer has died before its first use, so that the failure is counted
 * within the call that submits. */
static void test_dead_peer(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];
    uint64_t key;

    both_open(sides, &options);
    key = side_key(&sides[1]);
    side_close(&sides[1]);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], NULL, fi_inject_write(sides[0].ep, "x", 1, sides[0].peer, 0, key)),
        0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 1, SIDE_WAIT_MS), -FI_EAVAIL);
    side_close(&sides[0]);
}

/* Values that the application sets and adds, and the time limit of a wait. */
static void test_set(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];

    both_open(sides, &options);
    CU_ASSERT_EQUAL(fi_cntr_set(sides[0].writes, 10), 0);
    CU_ASSERT_EQUAL(fi_cntr_add(sides[0].writes, 5), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[0].writes), 15);
    CU_ASSERT_EQUAL(fi_cntr_seterr(sides[0].writes, 2), 0);
    CU_ASSERT_EQUAL(fi_cntr_adderr(sides[0].writes, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_readerr(sides[0].writes), 3);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 16, 20), -FI_ETIMEDOUT);
    CU_ASSERT_EQUAL(fi_cntr_adderr(sides[0].writes, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_seterr(sides[0].writes, 0), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 16, 20), -FI_ETIMEDOUT);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 16, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[1].arrived, 1, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_set(sides[1].arrived, 100), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), 100);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[1].arrived, 101, SIDE_WAIT_MS), 0);
    both_close(sides);
}

/* A counter that an endpoint has refused may be used after the endpoint is closed. */
static void test_refused(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    static const uint64_t refused[] = {FI_WRITE, FI_WRITE | FI_SEND, FI_REMOTE_READ, FI_TAGGED, 0};
    static const int errors[] = {-FI_EBUSY, -FI_EBUSY, -FI_ENOSYS, -FI_EBADFLAGS, -FI_EINVAL};
    struct side side;
    struct fid_cntr *other, *sends;

    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &options), 0);
    CU_ASSERT_EQUAL_FATAL(fi_cntr_open(side.domain, NULL, &other, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(fi_cntr_open(side.domain, NULL, &sends, NULL), 0);
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        CU_ASSERT_EQUAL(fi_ep_bind(side.ep, &other->fid, refused[i]), errors[i]);
    /* No part of a refused bind has happened. */
    CU_ASSERT_EQUAL(fi_ep_bind(side.ep, &sends->fid, FI_SEND), 0);
    CU_ASSERT_EQUAL(fi_close(&side.ep->fid), 0);
    side.ep = NULL;
    CU_ASSERT_EQUAL(fi_cntr_read(other), 0);
    CU_ASSERT_EQUAL(fi_cntr_readerr(other), 0);
    CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
    CU_ASSERT_EQUAL(fi_close(&sends->fid), 0);
    side_close(&side);
}

/* A counter counts what arrives after it is bound to a memory region. */
static void test_bound_later(void)
{
    const struct side_options options = counting_as(FI_THREAD_DOMAIN);
    struct side sides[2];
    struct fid_cntr *later;
    struct fid_mr *mr;
    static char memory[64];

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[1].arrived, 1, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL_FATAL(fi_cntr_open(sides[1].domain, NULL, &later, NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_add(later, 10), 0);
    CU_ASSERT_EQUAL_FATAL(
        fi_mr_reg(sides[1].domain, memory, 64, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0);
    CU_ASSERT_EQUAL(fi_mr_bind(mr, &later->fid, FI_REMOTE_WRITE), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(later), 10);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(later, 11, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(later), 11);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[1].arrived), 2);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    CU_ASSERT_EQUAL(fi_close(&later->fid), 0);
    both_close(sides);
}

static void *fail_later(void *cntr)
{
    const struct timespec while_ = {.tv_nsec = 30000000};

    nanosleep(&while_, NULL);
    return fi_cntr_adderr(cntr, 1) == 0 ? cntr : NULL;
}

/* A failure refuses a wait for the descriptor once, and ends fi_cntr_wait, also one that begins
 * later; neither where the program knows of the failure: from the count, or from fi_cntr_wait. */
static void fail_between(struct fid_fabric *fabric, struct fid_cntr *cntr)
{
    struct fid *fids[1] = {&cntr->fid};
    uint64_t value = fi_cntr_read(cntr);
    pthread_t thread;

    CU_ASSERT_EQUAL(fi_cntr_adderr(cntr, 1), 0);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(cntr, value + 1, SIDE_WAIT_MS), -FI_EAVAIL);
    CU_ASSERT_EQUAL(fi_cntr_wait(cntr, value + 1, 20), -FI_ETIMEDOUT);
    CU_ASSERT_EQUAL(fi_cntr_adderr(cntr, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_readerr(cntr), 2);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fail_later, cntr), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(cntr, value + 1, SIDE_WAIT_MS), -FI_EAVAIL);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), 0);
    /* A count that has failed before counts anew after the program has set it back. */
    CU_ASSERT_EQUAL(fi_cntr_adderr(cntr, 1), 0);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
    CU_ASSERT_EQUAL(fi_cntr_seterr(cntr, 3), 0);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_adderr(cntr, 1), 0);
    CU_ASSERT_EQUAL(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
}

/* fi_trywait lets a program wait only where it knows the counter's value and failures, which
 * another thread may have changed since. */
static void test_trywait(void)
{
    const struct side_options options = counting_as(FI_THREAD_SAFE);
    struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
    struct side sides[2];
    struct fid_cntr *sends;
    struct fid *fids[1];
    int64_t end = side_now() + SIDE_WAIT_MS;

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(fi_cntr_open(sides[0].domain, &attr, &sends, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(fi_ep_bind(sides[0].ep, &sends->fid, FI_SEND), 0);
    fids[0] = &sends->fid;
    CU_ASSERT_EQUAL(fi_trywait(sides[0].fabric, fids, 1), 0);
    CU_ASSERT_EQUAL(fi_cntr_add(sends, 1), 0);
    CU_ASSERT_EQUAL(fi_trywait(sides[0].fabric, fids, 1), -FI_EAGAIN);
    CU_ASSERT_EQUAL(fi_cntr_read(sends), 1);
    CU_ASSERT_EQUAL(fi_trywait(sides[0].fabric, fids, 1), 0);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1], fi_inject(sides[0].ep, "x", 1, sides[0].peer)), 0);
    while (fi_trywait(sides[0].fabric, fids, 1) == 0 && side_now() < end)
        side_drive(&sides[1], NULL);
    CU_ASSERT_EQUAL(fi_cntr_wait(sends, 2, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_trywait(sides[0].fabric, fids, 1), 0);
    CU_ASSERT(side_now() < end);
    fail_between(sides[0].fabric, sends);
    CU_ASSERT_EQUAL(fi_close(&sides[0].ep->fid), 0);
    sides[0].ep = NULL;
    CU_ASSERT_EQUAL(fi_close(&sends->fid), 0);
    both_close(sides);
}

/* A wait for arrivals ends within seconds when the daemon dies. */
static void test_killed(void)
{
    static const enum fi_threading threadings[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE};
    const unsigned node = both_cluster.options.nodes - 1;

    for (int i = 0; i < 2; i++) {
        const struct side_options options = counting_as(threadings[i]);
        struct side side;
        int64_t begin;

        CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(node), &options), 0);
        cluster_kill(&both_cluster, node);
        begin = side_now();
        CU_ASSERT_EQUAL(fi_cntr_wait(side.arrived, 1, SIDE_WAIT_MS), -FI_ESHUTDOWN);
        CU_ASSERT(side_now() - begin < SIDE_WAIT_MS / 4);
        side_close(&side);
        CU_ASSERT_EQUAL_FATAL(cluster_restart(&both_cluster, node), 0);
    }
}

/* No descriptor becomes readable by arrivals, so a counter with a descriptor does not count them.
 */
static void test_no_descriptor(void)
{
    struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
    struct side side;
    struct fid_cntr *cntr;

    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &both_basic), 0);
    CU_ASSERT_EQUAL_FATAL(fi_cntr_open(side.domain, &attr, &cntr, NULL), 0);
    CU_ASSERT_EQUAL(fi_mr_bind(side.mr, &cntr->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
    CU_ASSERT_EQUAL(fi_ep_bind(side.ep, &cntr->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
    CU_ASSERT_EQUAL(fi_ep_bind(side.ep, &cntr->fid, FI_WRITE | FI_REMOTE_WRITE), -FI_ENOSYS);
    CU_ASSERT_EQUAL(fi_close(&cntr->fid), 0);
    side_close(&side);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"arrivals", test_arrivals},
        {"pieces", test_pieces},
        {"reads", test_reads},
        {"failures", test_failures},
        {"dead peer", test_dead_peer},
        {"set and add", test_set},
        {"closed endpoint", test_closed_endpoint},
        {"refused", test_refused},
        {"bound later", test_bound_later},
        {"trywait", test_trywait},
        {"no descriptor for arrivals", test_no_descriptor},
        {"killed daemon", test_killed},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, counters", tests);
}
