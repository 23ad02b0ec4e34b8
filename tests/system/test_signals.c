/*
 * Puts with signal, waits for a word, and words that are stored as a whole, on one path.
 *
 *     test_signals PWCD PROVIDER [NODES [--KEY VALUE]...]    1: the ranks are neighbours
 *
 * Rank 1 waits in a thread of its own while rank 0 puts. The program wraps the library's sleeps
 * (__wrap_doorbell_sleep): where the bell must wake a sleeper, the wrapper makes the sleep so long
 * that only the bell can end it in time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "proto/clock.h"
#include "pwc/signal.h"
#include "pwc/tuning.h"
#include "shm_ring/doorbell.h"
#include "tests/lib/cluster.h"
#include "tests/lib/process.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

#define REGION_BYTES (4u << 20)
#define WORD_AT      (REGION_BYTES - 64u) /* offset of the word that most tests signal */
#define LONG_NS      (RANK_WAIT_MS * INT64_C(1000000))
#define ROUNDS       200
#define STORES       100000            /* stores, at least, and looks at the word */
#define STORES_NS    INT64_C(30000000) /* shortest time of a run: the direct path is fast */

/* Set by main before the tests run. */
static struct cluster cluster;
static struct rank ranks[2]; /* on different nodes, where there are two */

static uint64_t *word(void)
{
    return (uint64_t *)(void *)(ranks[1].memory + WORD_AT);
}

static void wait_local(int status)
{
    struct pwc_event event = {0};

    CU_ASSERT_EQUAL_FATAL(pwc_wait(ranks[0].ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.status, status);
    CU_ASSERT_EQUAL(event.op, PWC_OP_SIGNAL);
    CU_ASSERT_EQUAL(event.peer, pwc_peer_of(1, 0));
}

static void pause_ms(int ms)
{
    const struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

/* ---- payload, then signal -------------------------------------------------------------------- */

static const size_t lengths[] = {0, 1, 8, 100, 4096, 4097, 65536, 1u << 20};
static const unsigned protocols[] = {0, PWC_PROTOCOL_ORDERED, PWC_PROTOCOL_REASSEMBLE,
                                     PWC_PROTOCOL_CHAIN};

/* Rank 1: checks each payload once the signal has changed the word. */
static void *receive_all(void *argument)
{
    int *wrong = argument;
    uint64_t number = 0;

    for (size_t p = 0; p < sizeof(protocols) / sizeof(protocols[0]); p++)
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            int rc = pwc_wait_word(ranks[1].ctx, word(), PWC_GE, ++number, RANK_WAIT_MS);

            *wrong += rc != 1 || rank_check(ranks[1].memory, lengths[l], number) != 0;
            /* Rank 0 puts the next payload when this word has changed. */
            atomic_store((_Atomic uint64_t *)(void *)(ranks[1].memory + WORD_AT + 8), number);
        }
    return NULL;
}

static void test_payload_first(void)
{
    _Atomic uint64_t *seen = (_Atomic uint64_t *)(void *)(ranks[1].memory + WORD_AT + 8);
    uint64_t number = 0;
    int wrong = 0;
    pthread_t thread;

    *word() = 0;
    atomic_store(seen, 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, receive_all, &wrong), 0);
    for (size_t p = 0; p < sizeof(protocols) / sizeof(protocols[0]); p++)
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            bool add = ++number % 2;
            int rc;

            rank_fill(ranks[0].memory, lengths[l], number);
            rc = pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, lengths[l], WORD_AT,
                                add ? 1 : number, add ? PWC_ADD : PWC_SET, pwc_cid_u64(number),
                                protocols[p]);
            CU_ASSERT_EQUAL_FATAL(rc, 0);
            CU_ASSERT_EQUAL(pwc_wait_word(ranks[0].ctx, (uint64_t *)(uintptr_t)seen, PWC_EQ, number,
                                          RANK_WAIT_MS),
                            1);
            wait_local(0);
        }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Many signals without a wait between them count exactly once each. */
static void test_counts(void)
{
    uint64_t sum = 0;

    *word() = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        size_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
        int rc;

        do
            rc = pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, length, WORD_AT, i, PWC_ADD,
                                PWC_CID_NONE, PWC_NO_LCE);
        while (rc == -EAGAIN);
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        sum += i;
    }
    CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    CU_ASSERT_EQUAL(*word(), sum);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_refused(void)
{
    static const struct {
        uint64_t off, signal_off;
        size_t length;
        int op;
        unsigned flags;
        int rc;
    } rows[] = {
        {0, WORD_AT + 4, 8, PWC_SET, 0, -EINVAL},
        {0, WORD_AT + 1, 8, PWC_SET, 0, -EINVAL},
        {0, WORD_AT, 8, PWC_ADD + 1, 0, -EINVAL},
        {0, WORD_AT, 8, 16, 0, -EINVAL},
        {0, WORD_AT, 8, PWC_SET, PWC_NO_RCE, -EINVAL},
        {0, REGION_BYTES, 8, PWC_SET, 0, -ERANGE},
        {0, UINT64_MAX - 7, 8, PWC_SET, 0, -ERANGE},
        {REGION_BYTES - 7, WORD_AT, 8, PWC_SET, 0, -ERANGE},
        {0, REGION_BYTES, 0, PWC_SET, 0, -ERANGE},
    };

    *word() = 77;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CU_ASSERT_EQUAL(pwc_put_signal(ranks[0].remote, rows[i].off, ranks[0].memory,
                                       rows[i].length, rows[i].signal_off, 1,
                                       (enum pwc_atomic_op)rows[i].op, PWC_CID_NONE, rows[i].flags),
                        rows[i].rc);
    CU_ASSERT_EQUAL(*word(), 77);
    CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
}

/* With a withdrawn region, or a region with only the right to read, neither payload nor signal is
 * written. */
static void test_rights(void)
{
    pwc_region *region;
    pwc_remote *remote;
    struct pwc_key key;
    uint64_t *there, value = 5;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(ranks[1].client, 4096, PWC_REMOTE_READ, &region), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(ranks[0].ctx, pwc_peer_of(1, 0), &key, &remote), 0);
    there = pwc_region_addr(region);
    for (size_t length = 0; length <= 8; length += 8)
        CU_ASSERT_EQUAL(pwc_put_signal(remote, 64, &value, length, 0, 1, PWC_SET, PWC_CID_NONE, 0),
                        -EKEYREJECTED);
    CU_ASSERT_EQUAL(there[0], 0);
    CU_ASSERT_EQUAL(there[8], 0);
    CU_ASSERT_EQUAL(pwc_unbind(remote), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(ranks[1].client, 4096, PWC_REMOTE_WRITE, &region), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(ranks[0].ctx, pwc_peer_of(1, 0), &key, &remote), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    for (size_t length = 0; length <= 8; length += 8) {
        CU_ASSERT_EQUAL(pwc_put_signal(remote, 64, &value, length, 0, 1, PWC_SET, PWC_CID_NONE, 0),
                        0);
        wait_local(-EKEYREJECTED);
    }
    CU_ASSERT_EQUAL(pwc_unbind(remote), 0);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void test_comparisons(void)
{
    static const uint64_t words[] = {0, 1, 5, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    const size_t count = sizeof(words) / sizeof(words[0]);
    uint64_t mine;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            const bool expected[] = {words[i] == words[j], words[i] != words[j],
                                     words[i] > words[j],  words[i] >= words[j],
                                     words[i] < words[j],  words[i] <= words[j]};

            mine = words[i];
            for (int c = PWC_EQ; c <= PWC_LE; c++)
                CU_ASSERT_EQUAL(
                    pwc_wait_word(ranks[1].ctx, &mine, (enum pwc_compare)c, words[j], 0),
                    expected[c]);
        }
    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, &mine, (enum pwc_compare)(PWC_LE + 1), 0, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, &mine, (enum pwc_compare) - 1, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, (uint64_t *)((uintptr_t)&mine + 4), PWC_EQ, 0, 0),
                    -EINVAL);
}

static void test_timeout(void)
{
    const uint64_t mine = 1;
    int64_t before = now_ns();

    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, &mine, PWC_EQ, 0, 30), 0);
    CU_ASSERT(now_ns() - before >= 30 * INT64_C(1000000));
}

/* ---- sleepers -------------------------------------------------------------------------------- */

/* While this is set, a sleep lasts until the bell rings, or for LONG_NS. */
static _Atomic bool bell_only;
static _Atomic int timeouts; /* such sleeps that the bell did not end */

int __real_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *at, int64_t timeout_ns)
{
    int rc;

    if (!atomic_load(&bell_only))
        return __real_doorbell_sleep(at, timeout_ns);
    rc = __real_doorbell_sleep(at, LONG_NS);
    atomic_fetch_add(&timeouts, rc == -ETIMEDOUT);
    return rc;
}

struct sleeper {
    _Atomic pid_t thread;
    int rc;
    int64_t woken_ns;
};

static void *sleep_until_word(void *argument)
{
    struct sleeper *s = argument;

    s->thread = (pid_t)syscall(SYS_gettid);
    s->rc = pwc_wait_word(ranks[1].ctx, word(), PWC_NE, 0, RANK_WAIT_MS);
    s->woken_ns = now_ns();
    return NULL;
}

static bool fell_asleep(const struct sleeper *s)
{
    for (int i = 0; i < RANK_WAIT_MS; i++) {
        if (s->thread && thread_sleeps_in(s->thread, SYS_futex))
            return true;
        pause_ms(1);
    }
    return false;
}

enum manner { SIGNAL_SET, SIGNAL_ADD, PUT_WITH_EVENT, PUT_ALONE };

static const struct wake_row {
    const char *name;
    enum manner manner;
    size_t length;
} wake_rows[] = {
    {"signal alone", SIGNAL_SET, 0},      {"8 bytes", SIGNAL_SET, 8},
    {"8 bytes, added", SIGNAL_ADD, 8},    {"4 KiB", SIGNAL_ADD, 4096},
    {"64 KiB", SIGNAL_SET, 65536},        {"1 MiB", SIGNAL_ADD, 1u << 20},
    {"a put's event", PUT_WITH_EVENT, 8}, {"a put without event", PUT_ALONE, 8},
};

static int change_word(const struct wake_row *row)
{
    const uint64_t one = 1;

    if (row->manner == PUT_WITH_EVENT)
        return pwc_put(ranks[0].remote, WORD_AT, &one, sizeof(one), PWC_CID_NONE, pwc_cid_u64(3),
                       PWC_NO_LCE);
    if (row->manner == PUT_ALONE)
        return pwc_put(ranks[0].remote, WORD_AT, &one, sizeof(one), PWC_CID_NONE, PWC_CID_NONE,
                       PWC_NO_LCE | PWC_NO_RCE);
    return pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, row->length, WORD_AT, 1,
                          row->manner == SIGNAL_SET ? PWC_SET : PWC_ADD, PWC_CID_NONE, PWC_NO_LCE);
}

static void wake_by(const struct wake_row *row)
{
    bool by_bell = row->manner != PUT_ALONE;
    struct sleeper sleeper = {0};
    struct pwc_event event;
    pthread_t thread;
    int64_t before;

    atomic_store((_Atomic uint64_t *)word(), 0);
    atomic_store(&timeouts, 0);
    atomic_store(&bell_only, by_bell);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_until_word, &sleeper), 0);
    CU_ASSERT(fell_asleep(&sleeper));
    before = now_ns();
    CU_ASSERT_EQUAL(change_word(row), 0);
    pthread_join(thread, NULL);
    atomic_store(&bell_only, false);
    CU_ASSERT_EQUAL(sleeper.rc, 1);
    CU_ASSERT_EQUAL(atomic_load(&timeouts), 0);
    printf("\n    %s: %.0f us", row->name, (double)(sleeper.woken_ns - before) / 1e3);
    CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    if (row->manner == PUT_WITH_EVENT)
        CU_ASSERT_EQUAL(pwc_wait(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
}

static void test_wakes(void)
{
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < sizeof(wake_rows) / sizeof(wake_rows[0]); i++)
            wake_by(&wake_rows[i]);
}

/* ---- one store ------------------------------------------------------------------------------- */

static const uint64_t patterns[] = {0, UINT64_MAX, UINT64_C(0x5555555555555555),
                                    UINT64_C(0xaaaaaaaaaaaaaaaa)};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

struct poller {
    uint32_t width;
    _Atomic bool stop;
    _Atomic uint64_t looks;
    uint64_t torn;
};

static void *poll_word(void *argument)
{
    struct poller *p = argument;
    const volatile uint8_t *at = ranks[1].memory + WORD_AT;

    for (; !atomic_load_explicit(&p->stop, memory_order_relaxed);
         atomic_fetch_add_explicit(&p->looks, 1, memory_order_relaxed)) {
        uint64_t now = p->width == 8   ? *(const volatile uint64_t *)(const volatile void *)at
                       : p->width == 4 ? *(const volatile uint32_t *)(const volatile void *)at
                                       : *(const volatile uint16_t *)(const volatile void *)at;
        bool whole = false;

        for (size_t i = 0; i < PATTERNS; i++)
            whole = whole || now == (patterns[i] & (UINT64_MAX >> (64 - 8 * p->width)));
        p->torn += !whole;
    }
    return NULL;
}

enum store { BATCHED, PACKED, FROM_REGION, AS_PAYLOAD, STORE_KINDS };

/* One put of a pattern. Puts in a row of the kind BATCHED form batches; the other kinds use flags
 * that batches do not have, so each put is a record of its own. */
static int put_pattern(enum store kind, uint32_t width, uint64_t number)
{
    uint8_t *source = ranks[0].memory + 4096 + number % 64 * 8;
    unsigned protocol = protocols[number % 4];

    memcpy(source, &patterns[number % PATTERNS], sizeof(patterns[0]));
    switch (kind) {
    case BATCHED:
        return pwc_put(ranks[0].remote, WORD_AT, source, width, PWC_CID_NONE, PWC_CID_NONE,
                       PWC_NO_LCE | PWC_NO_RCE);
    case PACKED:
        return pwc_put(ranks[0].remote, WORD_AT, source, width, PWC_CID_NONE, PWC_CID_NONE,
                       PWC_NO_LCE | PWC_NO_RCE | PWC_UNORDERED);
    case FROM_REGION:
        return pwc_put(ranks[0].remote, WORD_AT, source, width, PWC_CID_NONE, PWC_CID_NONE,
                       PWC_NO_LCE | PWC_NO_RCE | protocol);
    default:
        return pwc_put_signal(ranks[0].remote, WORD_AT, source, width, WORD_AT + 8, 1, PWC_ADD,
                              PWC_CID_NONE, PWC_NO_LCE);
    }
}

static void store_by(enum store kind, uint32_t width)
{
    struct poller poller = {.width = width};
    int64_t begun = now_ns();
    pthread_t thread;

    *word() = 0;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, poll_word, &poller), 0);
    for (uint64_t i = 0;
         i < STORES || now_ns() - begun < (poller.looks < STORES ? LONG_NS : STORES_NS); i++) {
        int rc;

        while ((rc = put_pattern(kind, width, i)) == -EAGAIN)
            continue;
        CU_ASSERT_EQUAL_FATAL(rc, 0);
    }
    CU_ASSERT_EQUAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    atomic_store(&poller.stop, true);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(poller.torn, 0);
    CU_ASSERT(poller.looks >= STORES);
}

static void test_one_store(void)
{
    for (int kind = 0; kind < STORE_KINDS; kind++)
        for (uint32_t width = 2; width <= 8; width *= 2)
            store_by((enum store)kind, width);
}

/* ---------------------------------------------------------------------------------------------- */

static int attach(void)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_attach(&ranks[i], cluster.nodes[i % cluster.options.nodes].socket, "signals", i,
                         2, REGION_BYTES);
    return rc < 0 ? rc : rank_bind(&ranks[0], &ranks[1]);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"a signal comes behind its payload", test_payload_first},
                           {"each signal counts once", test_counts},
                           {"what is wrong is refused", test_refused},
                           {"rights", test_rights},
                           {"comparisons", test_comparisons},
                           {"a wait ends in time", test_timeout},
                           {"a sleeper is woken by its bell", test_wakes},
                           {"words appear by one store", test_one_store},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0 && attach() == 0)
        status = suite_run("signals", tests);
    for (int i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
    return cluster_end(&cluster, status);
}
