/*
 * Counters over real daemons, on one path: each kind of operation counts once and wakes a sleeper;
 * a wait in which nothing arrives takes hardly any processor time; and counts stay when peers end
 * and when daemons die.
 *
 *     test_counters PWCD PROVIDER [NODES [--KEY VALUE]...]    1: the ranks are neighbours
 *
 * Rank 1 waits in a thread of its own while rank 0 acts. The program wraps the library's sleeps
 * (__wrap_doorbell_sleep): where the bell must wake rank 1, the wrapper makes its sleep so
 * long that only the bell can end it in time. Rank 0's sleeps stay as they are: no bell rings for
 * the end of a put without an event.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "proto/clock.h"
#include "pwc/atomic.h"
#include "pwc/counter.h"
#include "pwc/signal.h"
#include "pwc/vector.h"
#include "shm_ring/doorbell.h"
#include "tests/count.h"
#include "tests/lib/cluster.h"
#include "tests/lib/process.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

#define REGION_BYTES (4u << 20)
#define WORD_AT      (REGION_BYTES - 64u) /* offset of the word for atomics and signals */
#define LONG_NS      (RANK_WAIT_MS * INT64_C(1000000))
#define SILENT       ((unsigned)PWC_NO_LCE | (unsigned)PWC_NO_RCE)

/* Set by main before the tests run. */
static struct cluster cluster;
static struct rank ranks[2]; /* on different nodes, where there are two */

static uint64_t counted(const struct rank *r, enum pwc_counter which)
{
    uint64_t value = 0;

    CU_ASSERT_EQUAL(pwc_counter_read(r->ctx, which, &value), 0);
    return value;
}

/* Takes all events that have arrived at a rank. */
static void drain(const struct rank *r)
{
    struct pwc_event event;

    while (pwc_probe(r->ctx, PWC_ANY, PWC_LOCAL | PWC_REMOTE | PWC_NOTIFICATION, &event) == 1)
        continue;
}

/* ---- the operations -------------------------------------------------------------------------- */

enum manner { PUT, SIGNAL, ATOMIC, FETCH, READ, VECTOR, GET, LOOSE_PUT, LOOSE_SIGNAL, LOOSE_GET };

static uint8_t loose[1 << 20]; /* loose memory */

static const struct act {
    const char *name;
    enum manner manner;
    unsigned flags;
    size_t length;
    unsigned arrives; /* arrivals that the target counts for it */
} acts[] = {
    {"8 bytes", PUT, SILENT, 8, 1},
    {"8 bytes, with event", PUT, PWC_NO_LCE, 8, 1},
    {"8 bytes, notified", PUT, PWC_NO_LCE | PWC_NOTIFY, 8, 1},
    {"8 bytes, local event", PUT, PWC_NO_RCE, 8, 1},
    {"64 KiB", PUT, SILENT, 65536, 1},
    {"1 MiB", PUT, PWC_NO_LCE, 1u << 20, 1},
    {"nothing, with event", PUT, PWC_NO_LCE, 0, 1},
    {"nothing", PUT, SILENT, 0, 0},
    {"signal", SIGNAL, PWC_NO_LCE, 0, 1},
    {"signal of 64 KiB", SIGNAL, PWC_NO_LCE, 65536, 1},
    {"atomic", ATOMIC, SILENT, 8, 1},
    {"atomic, with event", ATOMIC, PWC_NO_LCE, 8, 1},
    {"fetching atomic", FETCH, SILENT, 8, 1},
    {"read of a word", READ, SILENT, 8, 0},
    {"vector", VECTOR, SILENT, 100000, 1},
    {"vector, with event", VECTOR, PWC_NO_LCE, 100000, 1},
    {"get", GET, SILENT, 8, 0},
    {"loose, 10000 bytes", LOOSE_PUT, SILENT, 10000, 1},
    {"loose, 1 MiB", LOOSE_PUT, SILENT, sizeof(loose), 1},
    {"loose, 1 MiB, with event", LOOSE_PUT, PWC_NO_LCE, sizeof(loose), 1},
    {"loose, 1 MiB, with signal", LOOSE_SIGNAL, PWC_NO_LCE, sizeof(loose), 1},
    {"loose get of 1 MiB", LOOSE_GET, SILENT, sizeof(loose), 0},
};

/* A vector of short and long pieces: through daemons it takes several records. */
static int put_vector(size_t length, unsigned flags)
{
    struct pwc_piece pieces[6];
    size_t half = length / 2;

    for (size_t i = 0; i < COUNT(pieces); i++)
        pieces[i] = (struct pwc_piece){
            .off = i < 4 ? i * 64 : 4096 + (i - 4) * half,
            .local = ranks[0].memory + (i < 4 ? i * 64 : 4096 + (i - 4) * half),
            .len = i < 4 ? 24 : half - 100,
        };
    return pwc_putv(ranks[0].remote, pieces, COUNT(pieces), PWC_CID_NONE, PWC_CID_NONE, flags);
}

static int submit(const struct act *a)
{
    static uint64_t result;
    const uint64_t one = 1;

    switch (a->manner) {
    case PUT:
        return pwc_put(ranks[0].remote, 0, ranks[0].memory, a->length, PWC_CID_NONE, PWC_CID_NONE,
                       a->flags);
    case SIGNAL:
        return pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, a->length, WORD_AT, 1, PWC_ADD,
                              PWC_CID_NONE, a->flags);
    case ATOMIC:
        return pwc_atomic(ranks[0].remote, WORD_AT, PWC_ADD, PWC_U64, &one, 1, PWC_CID_NONE,
                          PWC_CID_NONE, a->flags);
    case FETCH:
    case READ:
        return pwc_fetch_atomic(ranks[0].remote, WORD_AT, a->manner == READ ? PWC_READ : PWC_ADD,
                                PWC_U64, &one, 1, &result, PWC_CID_NONE, PWC_CID_NONE, a->flags);
    case VECTOR:
        return put_vector(a->length, a->flags);
    case GET:
        return pwc_get(ranks[0].remote, 0, ranks[0].memory, a->length, PWC_CID_NONE, PWC_CID_NONE,
                       a->flags);
    case LOOSE_PUT:
        return pwc_put(ranks[0].remote, 0, loose, a->length, PWC_CID_NONE, PWC_CID_NONE, a->flags);
    case LOOSE_SIGNAL:
        return pwc_put_signal(ranks[0].remote, 0, loose, a->length, WORD_AT, 1, PWC_ADD,
                              PWC_CID_NONE, a->flags);
    case LOOSE_GET:
        return pwc_get(ranks[0].remote, 0, loose, a->length, PWC_CID_NONE, PWC_CID_NONE, a->flags);
    }
    return -EINVAL;
}

/* Each operation counts once as ended at the origin, and as arrived at the target as often as its
 * row says. When the origin has the end, the target has counted already. */
static void test_each_counts(void)
{
    for (size_t i = 0; i < 3 * COUNT(acts); i++) {
        const struct act *a = &acts[i % COUNT(acts)];
        uint64_t ended = counted(&ranks[0], PWC_COUNT_ENDED);
        uint64_t arrived = counted(&ranks[1], PWC_COUNT_ARRIVED);

        CU_ASSERT_EQUAL_FATAL(submit(a), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[0].ctx, PWC_COUNT_ENDED, ended + 1, RANK_WAIT_MS),
                        0);
        CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
        CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_ENDED), ended + 1);
        if (a->arrives > 0)
            CU_ASSERT_EQUAL(
                pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, arrived + 1, RANK_WAIT_MS), 0);
        CU_ASSERT_EQUAL(counted(&ranks[1], PWC_COUNT_ARRIVED), arrived + a->arrives);
        drain(&ranks[0]);
        drain(&ranks[1]);
    }
    CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_FAILED), 0);
}

/* Many puts at once: they travel in batches, and are more than rings hold. */
static void test_many(void)
{
    enum { MANY = 20000 };
    uint64_t ended = counted(&ranks[0], PWC_COUNT_ENDED);
    uint64_t arrived = counted(&ranks[1], PWC_COUNT_ARRIVED), seen = arrived;

    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t value = i;
        uint64_t now;
        int rc;

        while ((rc = pwc_put(ranks[0].remote, i % 512 * 8, &value, sizeof(value), PWC_CID_NONE,
                             PWC_CID_NONE, SILENT)) == -EAGAIN)
            continue;
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        now = i % 64 == 0 ? counted(&ranks[1], PWC_COUNT_ARRIVED) : seen;
        CU_ASSERT(now >= seen && now <= arrived + i + 1);
        seen = now;
    }
    CU_ASSERT_EQUAL(pwc_counter_wait(ranks[0].ctx, PWC_COUNT_ENDED, ended + MANY, RANK_WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, arrived + MANY, RANK_WAIT_MS),
                    0);
    CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_ENDED), ended + MANY);
    CU_ASSERT_EQUAL(counted(&ranks[1], PWC_COUNT_ARRIVED), arrived + MANY);
}

/* ---- failures, and what is wrong ------------------------------------------------------------- */

static void test_failures(void)
{
    uint64_t ended = counted(&ranks[0], PWC_COUNT_ENDED), value = 5;
    uint64_t arrived = counted(&ranks[1], PWC_COUNT_ARRIVED);
    pwc_region *region;
    pwc_remote *remote;
    struct pwc_key key;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(ranks[1].client, 4096, PWC_REMOTE_WRITE, &region), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(ranks[0].ctx, pwc_peer_of(1, 0), &key, &remote), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        CU_ASSERT_EQUAL(
            pwc_put(remote, 0, &value, sizeof(value), PWC_CID_NONE, PWC_CID_NONE, PWC_NO_LCE), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[0].ctx, PWC_COUNT_FAILED, i, RANK_WAIT_MS), 0);
        CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
        CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_ENDED), ended + i);
    }
    CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_FAILED), 3);
    CU_ASSERT_EQUAL(counted(&ranks[1], PWC_COUNT_ARRIVED), arrived);
    CU_ASSERT_EQUAL(pwc_unbind(remote), 0);
    drain(&ranks[0]);
}

static void test_refused(void)
{
    uint64_t value = 77;
    int64_t before = now_ns();

    CU_ASSERT_EQUAL(pwc_counter_read(ranks[1].ctx, (enum pwc_counter)3, &value), -EINVAL);
    CU_ASSERT_EQUAL(pwc_counter_read(ranks[1].ctx, (enum pwc_counter) - 1, &value), -EINVAL);
    CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, (enum pwc_counter)3, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(value, 77);
    for (int which = PWC_COUNT_ENDED; which <= PWC_COUNT_ARRIVED; which++) {
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, (enum pwc_counter)which, 0, 0), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, (enum pwc_counter)which, UINT64_MAX, 0),
                        -ETIMEDOUT);
    }
    CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, UINT64_MAX, 30), -ETIMEDOUT);
    CU_ASSERT(now_ns() - before >= 30 * INT64_C(1000000));
}

/* ---- sleepers -------------------------------------------------------------------------------- */

/* While this is set, a sleep of this thread lasts until the bell rings, or for LONG_NS. */
static _Thread_local bool bell_only;
static _Atomic int timeouts; /* such sleeps that the bell did not end */
static _Atomic int sleeps;   /* all such sleeps */

int __real_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns)
{
    int rc;

    if (!bell_only)
        return __real_doorbell_sleep(at, timeout_ns);
    atomic_fetch_add(&sleeps, 1);
    rc = __real_doorbell_sleep(at, LONG_NS);
    atomic_fetch_add(&timeouts, rc == -ETIMEDOUT);
    return rc;
}

struct sleeper {
    uint64_t threshold;
    int timeout_ms;
    bool bell_only;
    _Atomic pid_t thread;
    int rc;
    int64_t woken_ns, cpu_ns;
};

static int64_t thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *sleep_until_arrived(void *argument)
{
    struct sleeper *s = argument;

    bell_only = s->bell_only;
    s->thread = (pid_t)syscall(SYS_gettid);
    s->rc = pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, s->threshold, s->timeout_ms);
    s->woken_ns = now_ns();
    s->cpu_ns = thread_cpu_ns();
    return NULL;
}

static bool fell_asleep(const struct sleeper *s)
{
    const struct timespec ms = {0, 1000000};

    for (int i = 0; i < RANK_WAIT_MS; i++) {
        if (s->thread && thread_sleeps_in(s->thread, SYS_futex))
            return true;
        nanosleep(&ms, NULL);
    }
    return false;
}

static void wake_by(const struct act *a)
{
    struct sleeper sleeper = {.threshold = counted(&ranks[1], PWC_COUNT_ARRIVED) + 1,
                              .timeout_ms = RANK_WAIT_MS,
                              .bell_only = true};
    pthread_t thread;
    int64_t before;

    atomic_store(&timeouts, 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_arrived, &sleeper), 0);
    CU_ASSERT(fell_asleep(&sleeper));
    before = now_ns();
    CU_ASSERT_EQUAL(submit(a), 0);
    CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(sleeper.rc, 0);
    CU_ASSERT_EQUAL(atomic_load(&timeouts), 0);
    printf("\n    %s: %.0f us", a->name, (double)(sleeper.woken_ns - before) / 1e3);
    drain(&ranks[0]);
    drain(&ranks[1]);
}

static void test_wakes(void)
{
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(acts); i++)
            if (acts[i].arrives > 0)
                wake_by(&acts[i]);
}

static void *sleep_until_event(void *argument)
{
    struct sleeper *s = argument;
    struct pwc_event event;

    bell_only = true;
    s->thread = (pid_t)syscall(SYS_gettid);
    s->rc = pwc_wait(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS);
    return NULL;
}

/* A sleep for events is not ended by puts without events. */
static void test_others_sleep_on(void)
{
    enum { PUTS = 100 };
    pthread_t thread;
    struct sleeper earlier = {.threshold = UINT64_MAX, .timeout_ms = 10}, sleeper = {0};
    int before;

    /* An earlier wait for counts is over, so counts need ring no bell any more. */
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_arrived, &earlier), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_event, &sleeper), 0);
    CU_ASSERT(fell_asleep(&sleeper));
    before = atomic_load(&sleeps);
    for (int i = 0; i < PUTS; i++) {
        CU_ASSERT_EQUAL(submit(&acts[0]), 0);
        CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    }
    CU_ASSERT(fell_asleep(&sleeper));
    CU_ASSERT_EQUAL(atomic_load(&sleeps), before);
    CU_ASSERT_EQUAL(submit(&acts[1]), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(sleeper.rc, 1);
    drain(&ranks[0]);
    drain(&ranks[1]);
}

/* A wait of 400 ms in which nothing arrives takes less than 1 % of a processor, apart from the
 * looks before the sleep. */
static void test_idle(void)
{
    enum { MS = 400, LOOKS_NS = 2000000 };
    struct sleeper sleeper = {.threshold = UINT64_MAX, .timeout_ms = MS};
    pthread_t thread;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_arrived, &sleeper), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(sleeper.rc, -ETIMEDOUT);
    printf("\n    %.0f us of %d ms", (double)sleeper.cpu_ns / 1e3, MS);
    CU_ASSERT(sleeper.cpu_ns < MS * INT64_C(10000) + LOOKS_NS);
}

/* ---- peers that come and go, and daemons that die ------------------------------------------- */

/* Arrivals from a context stay counted when it has ended, and a new context is counted further. */
static void test_contexts_go(void)
{
    uint64_t arrived = counted(&ranks[1], PWC_COUNT_ARRIVED), value = 1;

    for (unsigned i = 0; i < 5; i++) {
        struct pwc_key key;
        pwc_remote *remote;
        pwc_ctx *ctx;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(ranks[0].client, NULL, &ctx), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_region_key(ranks[1].region, &key), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_bind(ctx, pwc_peer_of(1, 0), &key, &remote), 0);
        for (unsigned k = 0; k <= i; k++)
            CU_ASSERT_EQUAL(
                pwc_put(remote, 8, &value, sizeof(value), PWC_CID_NONE, PWC_CID_NONE, SILENT), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(ctx, PWC_COUNT_ENDED, i + 1, RANK_WAIT_MS), 0);
        arrived += i + 1;
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, arrived, RANK_WAIT_MS),
                        0);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(ctx), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, arrived + 1, 2),
                        -ETIMEDOUT);
        CU_ASSERT_EQUAL(counted(&ranks[1], PWC_COUNT_ARRIVED), arrived);
    }
}

/* Kills a daemon, and waits until its keeper has started the next one. */
static bool die(unsigned node)
{
    const struct timespec ms = {0, 1000000};
    pid_t pid = cluster_kept(&cluster, node), next = 0;

    if (pid <= 0 || kill(pid, SIGKILL) != 0)
        return false;
    for (int i = 0; i < RANK_WAIT_MS && (next == 0 || next == pid); i++) {
        nanosleep(&ms, NULL);
        next = cluster_kept(&cluster, node);
    }
    return next != 0 && next != pid;
}

/* Both daemons die, one after the other, while puts are under way. */
static void test_deaths(void)
{
    enum { DEATHS = 4, PUTS = 2000 };
    uint64_t arrived = counted(&ranks[1], PWC_COUNT_ARRIVED);
    uint64_t ended = counted(&ranks[0], PWC_COUNT_ENDED);
    uint64_t failed = counted(&ranks[0], PWC_COUNT_FAILED);

    for (unsigned death = 0; death < DEATHS; death++) {
        unsigned node = death % cluster.options.nodes;

        for (uint64_t i = 0; i < PUTS; i++) {
            int rc;

            while ((rc = submit(&acts[i % 2 ? 0 : 4])) == -EAGAIN)
                (void)pwc_probe(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &(struct pwc_event){0});
            CU_ASSERT_EQUAL_FATAL(rc, 0);
            if (i == PUTS / 2) {
                CU_ASSERT_FATAL(die(node));
            }
        }
        ended += PUTS;
        arrived += PUTS;
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[0].ctx, PWC_COUNT_ENDED, ended, RANK_WAIT_MS), 0);
        CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_FAILED), failed);
        CU_ASSERT_EQUAL(pwc_counter_wait(ranks[1].ctx, PWC_COUNT_ARRIVED, arrived, RANK_WAIT_MS),
                        0);
        CU_ASSERT_EQUAL(counted(&ranks[0], PWC_COUNT_ENDED), ended);
        CU_ASSERT_EQUAL(counted(&ranks[1], PWC_COUNT_ARRIVED), arrived);
    }
}

/* ---------------------------------------------------------------------------------------------- */

static int attach(void)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_attach(&ranks[i], cluster.nodes[i % cluster.options.nodes].socket, "counters", i,
                         2, REGION_BYTES);
    return rc < 0 ? rc : rank_bind(&ranks[0], &ranks[1]);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"each operation counts once", test_each_counts},
                           {"many count exactly", test_many},
                           {"failures count", test_failures},
                           {"what is wrong is refused", test_refused},
                           {"a sleeper is woken by each", test_wakes},
                           {"a sleeper for events is left asleep", test_others_sleep_on},
                           {"a waiter sleeps", test_idle},
                           {"contexts come and go", test_contexts_go},
                           {"daemons die", test_deaths},
                           CU_TEST_INFO_NULL};
    static const char *const more[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    struct cluster_options options = {.nodes = 2, .more = more};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0 && attach() == 0)
        status = suite_run("counters", tests);
    for (int i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
    return cluster_end(&cluster, status);
}
