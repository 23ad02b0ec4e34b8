/*
 * Atomics over libpwc and real daemons: each operation on each path to a word; and words that the
 * owner's daemon, neighbours and the owner itself change at the same time, while links are cut and
 * daemons are killed.
 *
 *     test_atomics PWCD [OPERATIONS [CUTS [KILLS]]]
 *
 * A cut closes all TCP connections of the daemons at once (ss -K: root, and a kernel that can). The
 * keeper starts a killed daemon again, which takes over its predecessor's state.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pwc/atomic.h"
#include "shm_ring/word.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum {
    RANKS = 4,
    WINDOW = 64,
    RUN = 32,
    REGION = 4096,
    STALLED_S = 60,
    NAP_US = 50, /* slows ranks on the owner's node, which are many times as fast */
};

/* Set by main before the tests run. */
static struct cluster cluster;
static uint64_t operations = 200000;
static unsigned cuts, kills;

/* Ranks 0 and 1 are neighbours, and so are 2 and 3. All tests use the region of rank 0. */
static unsigned node_of(uint32_t rank)
{
    return rank / 2;
}

static void attach_all(struct rank *ranks, const char *job)
{
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&ranks[i], cluster.nodes[node_of(i)].socket, job, i, RANKS, REGION), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[i], &ranks[0]), 0);
}

static void detach_all(struct rank *ranks)
{
    for (uint32_t i = 0; i < RANKS; i++)
        rank_detach(&ranks[i]);
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* ---- each operation, each way ------------------------------------------------------------------
 */

static int submit(pwc_remote *to, uint8_t code, const uint8_t *operands, uint8_t *fetched)
{
    unsigned op = word_op(code), type = word_type(code);
    const uint8_t *second = operands + word_bytes(code);
    pwc_cid lid = pwc_cid_u64(1), rid = pwc_cid_u64(2);

    if (op == WORD_COMPARE_SWAP)
        return pwc_compare_swap(to, 64, type, operands, second, fetched, lid, rid, PWC_NO_RCE);
    if (op == WORD_MASKED_SWAP)
        return pwc_masked_swap(to, 64, type, operands, second, fetched, lid, rid, PWC_NO_RCE);
    return fetched ? pwc_fetch_atomic(to, 64, op, type, operands, 1, fetched, lid, rid, PWC_NO_RCE)
                   : pwc_atomic(to, 64, op, type, operands, 1, lid, rid, PWC_NO_RCE);
}

/* Makes one operation on a word of rank 0, and compares the result with the same operation on a
 * local word. */
static void check_one(struct rank *from, uint8_t *word, uint8_t code, bool fetch)
{
    _Alignas(8) uint8_t expected[8];
    uint8_t operands[16], fetched[8] = {0}, before[8] = {0};
    struct pwc_event event;

    for (size_t i = 0; i < sizeof(operands); i++) {
        operands[i] = (uint8_t)(rand() >> 8);
        word[i % 8] = expected[i % 8] = (uint8_t)(rand() >> 8);
    }
    if (word_op(code) == WORD_COMPARE_SWAP && rand() % 2 == 0)
        memcpy(operands, word, word_bytes(code));
    CU_ASSERT_EQUAL(word_apply(expected, code, operands, before), 0);
    CU_ASSERT_EQUAL_FATAL(submit(from->remote, code, operands, fetch ? fetched : NULL), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(from->ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT(event.status == 0 && event.op == PWC_OP_ATOMIC);
    CU_ASSERT_EQUAL(event.length, word_bytes(code));
    if (fetch)
        CU_ASSERT_EQUAL(memcmp(fetched, before, 8), 0);
    CU_ASSERT_EQUAL(memcmp(word, expected, 8), 0);
}

static void test_operations(void)
{
    struct rank ranks[RANKS];

    attach_all(ranks, "each");
    for (uint32_t from = 0; from < RANKS; from++)
        for (unsigned code = 0; code < 256; code++)
            for (int fetch = 0; fetch < 2 && word_code_valid((uint8_t)code); fetch++)
                if (fetch || word_op((uint8_t)code) < WORD_READ)
                    check_one(&ranks[from], ranks[0].memory + 64, (uint8_t)code, fetch);
    detach_all(ranks);
}

/* ---- all at once ------------------------------------------------------------------------------
 */

enum { FETCHED_AT = 0, ADDED_AT = 64 }; /* offsets of the two words */

/* A rank that adds to both words of rank 0 until it is stopped. */
struct adder {
    struct rank *rank;
    pthread_t thread;
    atomic_bool *stop;
    uint8_t *seen; /* how often each value was fetched */
    uint64_t seen_max;
    uint64_t begun;
    _Atomic uint64_t ended;            /* number of operations */
    uint64_t fetched, added;           /* operations of each kind that have succeeded */
    uint64_t fetched_unknown, unknown; /* operations of each kind with an unknown outcome */
    uint64_t before[WINDOW];
    bool wrong;
};

static void note_fetched(struct adder *a, uint64_t value)
{
    a->fetched++;
    if (value >= a->seen_max)
        a->wrong = true;
    else
        a->wrong |= __atomic_fetch_add(&a->seen[value], 1, __ATOMIC_RELAXED) != 0;
}

static bool fetches(uint64_t number)
{
    return number / RUN % 2 == 0;
}

/* Takes a local event; they must come in the order of submission. */
static void take(struct adder *a, const struct pwc_event *event)
{
    uint64_t number = atomic_load(&a->ended);
    bool fetch = fetches(number);

    a->wrong |= event->id != number || (event->status != 0 && event->status != -ECONNABORTED);
    if (event->status == 0 && fetch)
        note_fetched(a, a->before[number % WINDOW]);
    else if (event->status == 0)
        a->added++;
    else if (fetch)
        a->fetched_unknown++;
    else
        a->unknown++;
    atomic_store(&a->ended, number + 1);
}

static int add_one(struct adder *a)
{
    uint64_t one = 1, number = a->begun;
    pwc_cid lid = pwc_cid_u64(number);
    int rc = fetches(number)
                 ? pwc_fetch_atomic(a->rank->remote, FETCHED_AT, PWC_ADD, PWC_U64, &one, 1,
                                    &a->before[number % WINDOW], lid, PWC_CID_NONE, PWC_NO_RCE)
                 : pwc_atomic(a->rank->remote, ADDED_AT, PWC_ADD, PWC_U64, &one, 1, lid,
                              PWC_CID_NONE, PWC_NO_RCE);

    a->begun += rc == 0;
    return rc;
}

static void *add_main(void *argument)
{
    struct adder *a = argument;
    struct pwc_event event;
    int rc = 0;

    while (!a->wrong && rc >= 0 && (!atomic_load(a->stop) || atomic_load(&a->ended) < a->begun)) {
        bool more = !atomic_load(a->stop) && a->begun - atomic_load(&a->ended) < WINDOW;

        if (more && node_of(a->rank->number) == 0 && a->begun % RUN == 0)
            nap_us(NAP_US);
        rc = more ? add_one(a) : -EAGAIN;
        if (rc == -EAGAIN) {
            rc = pwc_wait(a->rank->ctx, PWC_ANY, PWC_LOCAL, &event, STALLED_S * 1000);
            if (rc == 1)
                take(a, &event);
            a->wrong |= rc == 0;
        }
    }
    if (rc < 0)
        fprintf(stderr, "rank %u: %s\n", a->rank->number, pwc_strerror(rc));
    a->wrong |= rc < 0;
    return NULL;
}

/* The owner adds by a processor instruction, without the library. */
static void *own_main(void *argument)
{
    struct adder *a = argument;
    _Atomic uint64_t *fetched = (_Atomic uint64_t *)(void *)(a->rank->memory + FETCHED_AT);
    _Atomic uint64_t *added = (_Atomic uint64_t *)(void *)(a->rank->memory + ADDED_AT);

    while (!atomic_load(a->stop)) {
        note_fetched(a, atomic_fetch_add(fetched, 1));
        atomic_fetch_add(added, 1);
        a->added++;
        nap_us(NAP_US);
    }
    return NULL;
}

/* The number of operations that went through daemons: those of ranks 2 and 3. */
static uint64_t ended_by(const struct adder *adders)
{
    return atomic_load(&adders[2].ended) + atomic_load(&adders[3].ended);
}

/* Whether each rank but the owner has ended an operation. */
static bool all_take_part(const struct adder *adders)
{
    bool all = true;

    for (int i = 1; i < RANKS; i++)
        all &= atomic_load(&adders[i].ended) > 0;
    return all;
}

/* Waits until this many operations have ended, at least one by each rank but the owner: one rank
 * may make all of them before the others get a processor. */
static bool goes_on(const struct adder *adders, uint64_t until)
{
    time_t limit = time(NULL) + STALLED_S;
    bool wrong = false;

    while ((ended_by(adders) < until || !all_take_part(adders)) && !wrong && time(NULL) < limit) {
        nap_us(1000);
        for (int i = 0; i < RANKS; i++)
            wrong |= adders[i].wrong;
    }
    return ended_by(adders) >= until && !wrong;
}

static bool cut_all(void)
{
    char command[100];

    snprintf(command, sizeof(command), "ss -K -t dst %s >/dev/null 2>&1", cluster.host);
    return system(command) == 0;
}

static bool kill_one(unsigned node)
{
    time_t limit = time(NULL) + STALLED_S;
    pid_t pid = cluster_kept(&cluster, node), next;

    if (pid <= 0 || kill(pid, SIGKILL) != 0)
        return false;
    while (((next = cluster_kept(&cluster, node)) == 0 || next == pid) && time(NULL) < limit)
        nap_us(1000);
    return next != 0 && next != pid;
}

/* Makes all cuts and kills, spread over the operations. */
static void disturb(const struct adder *adders)
{
    unsigned count = cuts + kills, cut = 0, killed = 0;
    bool right = true;

    for (unsigned i = 0; i < count && right; i++) {
        right = goes_on(adders, operations / (count + 1) * (i + 1));
        if (right && cut < cuts && (killed == kills || i % 2 == 0)) {
            right = cut_all();
            cut++;
        } else if (right) {
            right = kill_one(killed++ % 3 != 0 ? 0 : 1); /* the owner's daemon more often */
        }
    }
    CU_ASSERT(right);
    CU_ASSERT(goes_on(adders, operations));
}

/* Checks that a word has all additions that succeeded, and at most the unknown ones besides. */
static void check_word(const struct rank *owner, uint64_t at, uint64_t well, uint64_t unknown)
{
    uint64_t word = *(uint64_t *)(void *)(owner->memory + at);

    printf("\n    %llu ended well and %llu unknown, the word is %llu ", (unsigned long long)well,
           (unsigned long long)unknown, (unsigned long long)word);
    CU_ASSERT(word >= well && word - well <= unknown);
    if (cuts + kills == 0)
        CU_ASSERT_EQUAL(unknown, 0);
}

static void test_sum(void)
{
    static struct adder adders[RANKS];
    struct rank ranks[RANKS];
    atomic_bool stop = false;
    uint64_t seen_max = 64 * operations + (1 << 20);
    uint8_t *seen = calloc(1, seen_max);
    uint64_t fetched = 0, added = 0, fetched_unknown = 0, unknown = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
    attach_all(ranks, "sum");
    for (int i = 0; i < RANKS; i++) {
        adders[i] =
            (struct adder){.rank = &ranks[i], .stop = &stop, .seen = seen, .seen_max = seen_max};
        CU_ASSERT_EQUAL_FATAL(
            pthread_create(&adders[i].thread, NULL, i == 0 ? own_main : add_main, &adders[i]), 0);
    }
    disturb(adders);
    atomic_store(&stop, true);
    for (int i = 0; i < RANKS; i++) {
        pthread_join(adders[i].thread, NULL);
        CU_ASSERT_FALSE(adders[i].wrong);
        fetched += adders[i].fetched;
        added += adders[i].added;
        fetched_unknown += adders[i].fetched_unknown;
        unknown += adders[i].unknown;
    }
    printf("\n    by neighbour and other node: %llu, %llu, %llu; by the owner: %llu ",
           (unsigned long long)adders[1].ended, (unsigned long long)adders[2].ended,
           (unsigned long long)adders[3].ended, (unsigned long long)adders[0].fetched * 2);
    check_word(&ranks[0], FETCHED_AT, fetched, fetched_unknown);
    check_word(&ranks[0], ADDED_AT, added, unknown);
    CU_ASSERT(adders[1].ended > 0 && adders[2].ended > 0 && adders[3].ended > 0);
    detach_all(ranks);
    free(seen);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"operations, each way", test_operations},
                           {"a sum by daemon, neighbour and owner", test_sum},
                           CU_TEST_INFO_NULL};
    static const char *const more[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    struct cluster_options options = {.nodes = 2, .provider = "stream", .more = more};
    int status = 1;

    if (argc < 2 || argc > 5) {
        fprintf(stderr, "usage: %s PWCD [OPERATIONS [CUTS [KILLS]]]\n", argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    if (argc > 2)
        operations = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        cuts = (unsigned)strtoul(argv[3], NULL, 10);
    if (argc > 4)
        kills = (unsigned)strtoul(argv[4], NULL, 10);
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("atomics", tests);
    return cluster_end(&cluster, status);
}
