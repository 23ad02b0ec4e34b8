/*
 * A rank that sleeps is woken by operations of peers; daemons with nothing to do sleep, too.
 *
 *     test_wake PWCD PROVIDER [NODES [--KEY VALUE]...]    1: the ranks are neighbours
 *
 * In pwc_wait a sleeper looks once a second by itself. The program wraps the library's sleeps
 * (__wrap_doorbell_sleep): where the bell must wake rank 1, its sleep is so long that only the bell
 * can end it in time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "shm_ring/doorbell.h"
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/process.h"
#include "tests/lib/rank.h"

#define REGION_BYTES (4u << 20)
#define ASLEEP_MS    100 /* longer than any side polls */
#define LONG_NS      (RANK_WAIT_MS * INT64_C(1000000))
#define IDLE_MS      2000
#define LOOKS        5
#define MEMORY_KB    INT64_C(57344)    /* of a daemon with two clients */
#define TICK_NS      INT64_C(10000000) /* processor time that a sleeper may take in ten seconds */
#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 2 /* a sanitizer slows down */
#else
#define SLOWDOWN 1
#endif

/* Set by main before the tests run. */
static struct cluster cluster;
static struct rank ranks[2]; /* on different nodes, where there are two */
static bool provider_sleeps;

/* While this is set, a sleep of this thread lasts until the bell rings, or for LONG_NS. */
static _Thread_local bool bell_only;
static _Atomic int timeouts; /* such sleeps that the bell did not end */

int __real_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns)
{
    int rc = __real_doorbell_sleep(at, bell_only ? LONG_NS : timeout_ns);

    atomic_fetch_add(&timeouts, bell_only && rc == -ETIMEDOUT);
    return rc;
}

enum manner { IN_WAIT, IN_POLL };

/* A thread that waits for one remote event at rank 1. */
struct sleeper {
    enum manner manner;
    bool bell_only; /* the thread does not wake up by itself */
    _Atomic pid_t thread;
    struct pwc_event event;
    int rc; /* the result, as pwc_wait returns it */
};

static void pause_ms(int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static int wait_by_poll(struct sleeper *s)
{
    struct pollfd polled = {.fd = pwc_fd(ranks[1].ctx), .events = POLLIN};
    int rc = pwc_probe(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &s->event);

    while (rc == 0 && poll(&polled, 1, RANK_WAIT_MS) == 1)
        rc = pwc_probe(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &s->event);
    return rc;
}

static void *sleep_until_event(void *argument)
{
    struct sleeper *s = argument;

    bell_only = s->bell_only;
    s->thread = (pid_t)syscall(SYS_gettid);
    s->rc = s->manner == IN_POLL
                ? wait_by_poll(s)
                : pwc_wait(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &s->event, RANK_WAIT_MS);
    return NULL;
}

/* Whether the sleeper has fallen asleep, and stays asleep. */
static bool fell_asleep(const struct sleeper *s)
{
    long call = s->manner == IN_POLL ? SYS_poll : SYS_futex;
    int64_t before;

    for (int i = 0; i < RANK_WAIT_MS && !(s->thread && thread_sleeps_in(s->thread, call)); i++)
        pause_ms(1);
    before = thread_sleeps(s->thread);
    pause_ms(ASLEEP_MS);
    /* In pwc_wait the thread checks once a second whether the daemon lives, where it does not sleep
     * until the bell rings. */
    return thread_sleeps_in(s->thread, call) && before > 0 &&
           thread_sleeps(s->thread) - before <= 1;
}

static const struct wake_row {
    const char *name;
    enum manner manner;
    bool get;
    size_t length;
    size_t id_length;
} rows[] = {
    {"notification", IN_WAIT, false, 0, 0},
    {"packed put", IN_WAIT, false, 8, 0},
    {"packed put, long id", IN_WAIT, false, 4096, PWC_CID_MAX},
    {"two-put", IN_WAIT, false, 65536, 0},
    {"two-put, long id", IN_WAIT, false, 1u << 20, 100},
    {"get", IN_WAIT, true, 65536, 0},
    {"packed put, by descriptor", IN_POLL, false, 8, 0},
    {"two-put, by descriptor", IN_POLL, false, 65536, 9},
    {"get, by descriptor", IN_POLL, true, 100, 0},
};

static void check_remote_event(const struct sleeper *s, const struct wake_row *row, pwc_cid rid)
{
    CU_ASSERT_EQUAL_FATAL(s->rc, 1);
    CU_ASSERT_EQUAL(s->event.kind, PWC_REMOTE);
    CU_ASSERT_EQUAL(s->event.status, 0);
    CU_ASSERT_EQUAL(s->event.peer, pwc_peer_of(0, 0));
    CU_ASSERT_EQUAL(s->event.length, row->length);
    CU_ASSERT_EQUAL_FATAL(s->event.id_size, row->id_length);
    if (row->id_length)
        CU_ASSERT_EQUAL(memcmp(s->event.data, rid.data, row->id_length), 0)
    else
        CU_ASSERT_EQUAL(s->event.id, rid.value);
}

static void wake_by(const struct wake_row *row, uint64_t seed)
{
    struct sleeper sleeper = {.manner = row->manner, .bell_only = true};
    uint8_t *source = row->get ? ranks[1].memory : ranks[0].memory;
    const uint8_t *target = row->get ? ranks[0].memory : ranks[1].memory;
    uint8_t id[PWC_CID_MAX];
    pwc_cid rid =
        row->id_length ? pwc_cid_bytes(id, row->id_length) : pwc_cid_u64(seed << 32 | 0x77);
    struct pwc_event local;
    pthread_t thread;
    bool slept;
    int rc;

    rank_fill(id, sizeof(id), seed + 100);
    rank_fill(source, row->length, seed);
    atomic_store(&timeouts, 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_event, &sleeper), 0);
    slept = fell_asleep(&sleeper);
    rc = row->get
             ? pwc_get(ranks[0].remote, 0, ranks[0].memory, row->length, pwc_cid_u64(seed), rid, 0)
             : pwc_put(ranks[0].remote, 0, source, row->length, pwc_cid_u64(seed), rid, 0);
    pthread_join(thread, NULL);
    CU_ASSERT(slept);
    CU_ASSERT_EQUAL(atomic_load(&timeouts), 0);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    check_remote_event(&sleeper, row, rid);
    CU_ASSERT(row->get || rank_check(target, row->length, seed) == 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(ranks[0].ctx, PWC_ANY, PWC_LOCAL, &local, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(local.status, 0);
    CU_ASSERT_EQUAL(local.id, seed);
    CU_ASSERT_EQUAL(rank_check(target, row->length, seed), 0);
}

static void test_wake(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned before = CU_get_number_of_failures();

        wake_by(&rows[i], i + 1);
        if (CU_get_number_of_failures() > before)
            fprintf(stderr, "\n    %s fails\n", rows[i].name);
    }
}

struct idler {
    const char *name;
    pid_t pid;
    int64_t limit; /* ns in IDLE_MS */
    int64_t least; /* least time that it took in a look */
};

/* Watches for IDLE_MS. Returns whether each process has kept to its limit, in this look or in an
 * earlier one. */
static bool all_idle(struct idler *idlers, unsigned count)
{
    int64_t before[3];
    bool idle = true;

    for (unsigned i = 0; i < count; i++)
        before[i] = process_cpu_ns(idlers[i].pid);
    pause_ms(IDLE_MS);
    for (unsigned i = 0; i < count; i++) {
        int64_t took = process_cpu_ns(idlers[i].pid) - before[i];

        CU_ASSERT(before[i] > 0 && took >= 0);
        idlers[i].least = took < idlers[i].least ? took : idlers[i].least;
        idle = idle && idlers[i].least <= idlers[i].limit;
    }
    return idle;
}

/* Daemons are idle, with attached clients, one of them in pwc_wait, and with links that have
 * carried traffic. Other work on this machine makes a wake-up more expensive, so the best of
 * several looks counts. */
static void test_idle(void)
{
    const int64_t share = SLOWDOWN * IDLE_MS * INT64_C(1000000) / 200; /* half a percent */
    const int64_t none = provider_sleeps ? SLOWDOWN * IDLE_MS * TICK_NS / 10000 : share;
    struct idler idlers[] = {
        {"client", getpid(), share, INT64_MAX}, /* a timer wakes it once a second */
        {"daemon 0", cluster.nodes[0].pid, none, INT64_MAX},
        {"daemon 1", cluster.nodes[1].pid, none, INT64_MAX},
    };
    unsigned count = 1 + cluster.options.nodes;
    struct sleeper sleeper = {.manner = IN_WAIT};
    pthread_t thread;
    bool idle = false;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_event, &sleeper), 0);
    CU_ASSERT(fell_asleep(&sleeper));
    for (int i = 0; i < LOOKS && !idle; i++)
        idle = all_idle(idlers, count);
    CU_ASSERT_TRUE(idle);
    for (unsigned i = 0; i < count; i++)
        printf("\n    %s: %.3f ms of processor time in %d ms", idlers[i].name,
               (double)idlers[i].least / 1e6, IDLE_MS);
    CU_ASSERT_EQUAL(
        pwc_put(ranks[0].remote, 0, NULL, 0, pwc_cid_u64(0), pwc_cid_u64(1), PWC_NO_LCE), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(sleeper.rc, 1);
}

#if SLOWDOWN == 1 /* a sanitizer takes memory of its own */
/* Guards that no provider takes memory for what the daemon never uses: over rxm's defaults it would
 * have 80 MiB for each thread. */
static void test_memory(void)
{
    for (uint32_t i = 0; i < cluster.options.nodes; i++) {
        int64_t kb = process_resident_kb(cluster.nodes[i].pid);

        printf("\n    daemon %u: %lld KiB", i, (long long)kb);
        CU_ASSERT(kb > 0 && kb <= MEMORY_KB);
    }
}
#endif

static int attach(void)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_attach(&ranks[i], cluster.nodes[i % cluster.options.nodes].socket, "wake", i, 2,
                         REGION_BYTES);
    return rc < 0 ? rc : rank_bind(&ranks[0], &ranks[1]);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"a sleeping rank is woken", test_wake},
        {"who waits sleeps", test_idle},
#if SLOWDOWN == 1
        {"a daemon's memory", test_memory},
#endif
        CU_TEST_INFO_NULL
    };
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    /* With this variable malloc writes to all memory that it gives out, and takes it so. */
    unsetenv("MALLOC_PERTURB_");
    if (!cluster_arguments(&options, argc, argv))
        return 2;
    provider_sleeps = strncmp(argv[2], "tcp", 3) == 0 || strcmp(argv[2], "stream") == 0;
    if (cluster_open(&cluster, &options) == 0 && attach() == 0)
        status = suite_run("wake", tests);
    for (int i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
    return cluster_end(&cluster, status);
}
