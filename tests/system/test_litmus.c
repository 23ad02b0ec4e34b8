/*
 * The promises of docs/memory-model.md, on one path: a small program for each.
 *
 *     test_litmus PWCD PROVIDER [NODES [--KEY VALUE]...]    1: the ranks are neighbours
 *
 * Rank 0 is the origin, rank 1 the target; rank 2 has bound rank 1, too. A row counts broken
 * promises. Each row then runs once more with an origin that deliberately does something else
 * (`astray`), and must notice: so each row is shown to be able to fail.
 *
 * Threads: one, and in two rows a second one, which looks at a word.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "pwc/am.h"
#include "pwc/atomic.h"
#include "pwc/notify.h"
#include "pwc/signal.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

#define REGION_BYTES (2u << 20)
#define WORD_AT      (REGION_BYTES - 64u)
#define OTHER_AT     (REGION_BYTES / 2) /* offset of a second payload */
#define ROUNDS       20u                /* rounds for each length */
#define MANY         64u                /* operations under way at once */
#define CHANGES      20000u             /* changes of a word that a thread looks at */
#define INDEX        3u                 /* index of the active messages' handler */

/* Set by main before the tests run. */
static struct cluster cluster;
static struct rank ranks[3];
static bool astray; /* the origin deliberately breaks its row's rule */

static const size_t lengths[] = {1, 8, 100, 4096, 4097, 65536, 300000};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static const pwc_cid none = {.value = 0};

/* ---- the ranks ------------------------------------------------------------------------------- */

/* Fills the origin's payload for a round. */
static void fill(size_t length, uint64_t round)
{
    rank_fill(ranks[0].memory, length, round + astray);
}

static bool has_come(size_t at, size_t length, uint64_t round)
{
    return rank_check(ranks[1].memory + at, length, round) == 0;
}

static void put(uint64_t at, size_t length, pwc_cid lid, pwc_cid rid, unsigned flags)
{
    int rc;

    while ((rc = pwc_put(ranks[0].remote, at, ranks[0].memory, length, lid, rid, flags)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
}

/* Waits for one event, and returns its id. */
static uint64_t event_of(const struct rank *r, unsigned kind)
{
    struct pwc_event event = {0};

    CU_ASSERT_EQUAL_FATAL(pwc_wait(r->ctx, PWC_ANY, kind, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.status, 0);
    return event.id;
}

static void flush(void)
{
    CU_ASSERT_EQUAL_FATAL(pwc_flush(ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
}

static uint64_t *word(void)
{
    return (uint64_t *)(void *)(ranks[1].memory + WORD_AT);
}

/* Calls a row's part for each length and round, each with another number. Returns the number of
 * failures. */
static uint64_t each_length(uint64_t (*part)(size_t length, uint64_t round))
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < LENGTHS * ROUNDS; i++)
        wrong += part(lengths[i % LENGTHS], 2 * i + 1);
    return wrong;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* A thread that looks at the target's word. */
struct looker {
    bool (*right)(uint64_t before, uint64_t now);
    _Atomic bool stop;
    _Atomic uint64_t looks;
    uint64_t wrong;
};

static void *look(void *argument)
{
    struct looker *l = argument;
    uint64_t before = 0;

    while (!atomic_load(&l->stop)) {
        uint64_t now = atomic_load((_Atomic uint64_t *)(void *)word());

        l->wrong += !l->right(before, now);
        before = now;
        atomic_fetch_add(&l->looks, 1);
    }
    return NULL;
}

/* Waits until the thread has looked at the word once more. */
static void await_look(struct looker *l)
{
    uint64_t looks = atomic_load(&l->looks);

    while (atomic_load(&l->looks) < looks + 2)
        sched_yield();
}

/* Changes the word many times while a thread looks. Returns the number of wrong values that it
 * saw. */
static uint64_t watched(bool (*right)(uint64_t before, uint64_t now), void (*change)(uint64_t i))
{
    struct looker looker = {.right = right};
    pthread_t thread;

    *word() = 0;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, look, &looker), 0);
    await_look(&looker);
    for (uint64_t i = 1; i <= CHANGES || atomic_load(&looker.looks) < CHANGES; i++) {
        change(i);
        if (i % MANY == 0) {
            flush();
            await_look(&looker);
        }
    }
    flush();
    atomic_store(&looker.stop, true);
    pthread_join(thread, NULL);
    return looker.wrong;
}

static bool is_whole(uint64_t before, uint64_t now)
{
    return now == 0 || now == UINT64_MAX;
}

static void put_word(uint64_t i)
{
    uint64_t value = i % 2 ? UINT64_MAX : astray ? UINT32_MAX : 0;

    memcpy(ranks[0].memory, &value, sizeof(value));
    put(WORD_AT, sizeof(value), none, none, PWC_NO_LCE | PWC_NO_RCE);
}

static uint64_t words_are_whole(void)
{
    return watched(is_whole, put_word);
}

static bool has_grown(uint64_t before, uint64_t now)
{
    return now >= before;
}

static void set_word(uint64_t i)
{
    uint64_t value = astray ? CHANGES * 1000 - i : i;
    int rc;

    while ((rc = pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, lengths[i % 3], WORD_AT, value,
                                PWC_SET, none, PWC_NO_LCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static uint64_t signals_in_order(void)
{
    return watched(has_grown, set_word);
}

static uint64_t signal_behind_data(size_t length, uint64_t round)
{
    int rc;

    *word() = 0;
    fill(length, round);
    while ((rc = pwc_put_signal(ranks[0].remote, 0, ranks[0].memory, length, WORD_AT, round,
                                PWC_SET, none, PWC_NO_LCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, word(), PWC_EQ, round, RANK_WAIT_MS), 1);
    rc = !has_come(0, length, round);
    flush();
    return (uint64_t)rc;
}

static uint64_t signals_behind_data(void)
{
    return each_length(signal_behind_data);
}

/* A put of the payload, then an atomic: where the atomic is visible, so is the payload. */
static uint64_t atomic_behind_put(size_t length, uint64_t round)
{
    const uint64_t one = 1;
    uint64_t wrong;
    int rc;

    *word() = 0;
    fill(length, round);
    put(0, length, none, none, PWC_NO_LCE | PWC_NO_RCE);
    while ((rc = pwc_atomic(ranks[0].remote, WORD_AT, PWC_ADD, PWC_U64, &one, 1, none, none,
                            PWC_NO_LCE | PWC_NO_RCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL(pwc_wait_word(ranks[1].ctx, word(), PWC_EQ, 1, RANK_WAIT_MS), 1);
    wrong = !has_come(0, length, round);
    flush();
    return wrong;
}

static uint64_t atomics_behind_puts(void)
{
    return each_length(atomic_behind_put);
}

/* Two origins add to one word: each addition counts once. */
static uint64_t atomics_count_once(void)
{
    const uint64_t one = 1;

    *word() = 0;
    for (uint32_t i = 0; i < 2 * MANY * ROUNDS - astray; i++) {
        int rc;

        while ((rc = pwc_atomic(ranks[i % 2 * 2].remote, WORD_AT, PWC_ADD, PWC_U64, &one, 1, none,
                                none, PWC_NO_LCE | PWC_NO_RCE)) == -EAGAIN)
            continue;
        CU_ASSERT_EQUAL_FATAL(rc, 0);
    }
    flush();
    CU_ASSERT_EQUAL(pwc_flush(ranks[2].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    return *word() != 2 * MANY * ROUNDS;
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t event_behind_data(size_t length, uint64_t round)
{
    fill(length, round);
    put(0, length, none, pwc_cid_u64(round), PWC_NO_LCE);
    if (event_of(&ranks[1], PWC_REMOTE) != round || !has_come(0, length, round))
        return 1;
    flush();
    return 0;
}

static uint64_t events_behind_data(void)
{
    return each_length(event_behind_data);
}

/* The event of a later put means that an earlier put's data has been placed, too. */
static uint64_t later_event(size_t length, uint64_t round)
{
    uint64_t wrong;

    fill(length, round);
    put(OTHER_AT, length, none, pwc_cid_u64(1), PWC_NO_LCE);
    put(0, 1, none, pwc_cid_u64(2), PWC_NO_LCE);
    while (event_of(&ranks[1], PWC_REMOTE) != 2)
        continue;
    wrong = !has_come(OTHER_AT, length, round);
    flush();
    return wrong;
}

static uint64_t later_events(void)
{
    return each_length(later_event);
}

static uint64_t events_in_order(void)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < MANY; i++)
        put(0, lengths[i % LENGTHS], none, pwc_cid_u64(i ^ astray),
            PWC_NO_LCE | (i % 3 == 0 ? PWC_UNORDERED : 0));
    for (uint64_t i = 0; i < MANY; i++)
        wrong += event_of(&ranks[1], PWC_REMOTE) != i;
    flush();
    return wrong;
}

static uint64_t ends_in_order(void)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < MANY; i++)
        put(0, lengths[i % LENGTHS], pwc_cid_u64(i ^ astray), none, PWC_NO_RCE);
    for (uint64_t i = 0; i < MANY; i++)
        wrong += event_of(&ranks[0], PWC_LOCAL) != i;
    return wrong;
}

static uint64_t unordered_ends_come_once(void)
{
    uint64_t come = 0, wrong = 0;

    for (uint64_t i = 0; i < MANY; i++)
        put(0, lengths[i % LENGTHS], pwc_cid_u64(i & ~(uint64_t)astray), none,
            PWC_NO_RCE | PWC_UNORDERED);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t bit = UINT64_C(1) << event_of(&ranks[0], PWC_LOCAL) % MANY;

        wrong += (come & bit) != 0;
        come |= bit;
    }
    return wrong;
}

static uint64_t notification_behind_data(size_t length, uint64_t round)
{
    fill(length, round);
    put(0, length, none, pwc_notice(1, (uint32_t)round), PWC_NO_LCE | PWC_NOTIFY);
    if ((uint32_t)event_of(&ranks[1], PWC_NOTIFICATION) != round || !has_come(0, length, round))
        return 1;
    flush();
    return 0;
}

static uint64_t notifications_behind_data(void)
{
    return each_length(notification_behind_data);
}

/* ---- the origin's ends ----------------------------------------------------------------------- */

static uint64_t end_means_placed(size_t length, uint64_t round)
{
    fill(length, round);
    put(0, length, pwc_cid_u64(round), none, PWC_NO_RCE);
    return event_of(&ranks[0], PWC_LOCAL) != round || !has_come(0, length, round);
}

static uint64_t ends_mean_placed(void)
{
    return each_length(end_means_placed);
}

/* Once the origin has the end, any rank that is informed of it can read the put's data: here rank
 * 2. */
static uint64_t third_reads(size_t length, uint64_t round)
{
    int rc;

    if (end_means_placed(length, round))
        return 1;
    memset(ranks[2].memory, 0, length);
    while ((rc = pwc_get(ranks[2].remote, 0, ranks[2].memory, length, pwc_cid_u64(1), none,
                         PWC_NO_RCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    (void)event_of(&ranks[2], PWC_LOCAL);
    return rank_check(ranks[2].memory, length, round) != 0;
}

static uint64_t thirds_read(void)
{
    return each_length(third_reads);
}

static uint64_t flush_means_placed(size_t length, uint64_t round)
{
    fill(length, round);
    put(0, length, none, none, PWC_NO_LCE | PWC_NO_RCE);
    put(OTHER_AT, length, none, none, PWC_NO_LCE | PWC_NO_RCE | PWC_UNORDERED);
    flush();
    return !has_come(0, length, round) || !has_come(OTHER_AT, length, round);
}

static uint64_t flushes_mean_placed(void)
{
    return each_length(flush_means_placed);
}

/* The source is overwritten as soon as PWC_LCE_SOURCE allows: the target must have the old
 * bytes. */
static uint64_t source_is_free(size_t length, uint64_t round)
{
    bool packed = length <= pwc_packed_max(ranks[0].client);

    fill(length, round);
    put(0, length, pwc_cid_u64(round), pwc_cid_u64(round), PWC_LCE_SOURCE);
    if (packed)
        rank_fill(ranks[0].memory, length, round + 1);
    (void)event_of(&ranks[0], PWC_LOCAL);
    rank_fill(ranks[0].memory, length, round + 1);
    return event_of(&ranks[1], PWC_REMOTE) != round || !has_come(0, length, round);
}

static uint64_t sources_are_free(void)
{
    return each_length(source_is_free);
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* Two puts from two sources to the same bytes: with a fence the second one wins. */
static uint64_t fenced_put(size_t length, uint64_t round)
{
    uint8_t *second = ranks[0].memory + OTHER_AT;
    int rc;

    rank_fill(ranks[0].memory, length, round + 1);
    rank_fill(second, length, round + astray);
    put(0, length, none, none, PWC_NO_LCE | PWC_NO_RCE);
    while ((rc = pwc_put(ranks[0].remote, 0, second, length, none, none,
                         PWC_NO_LCE | PWC_NO_RCE | PWC_FENCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    flush();
    return !has_come(0, length, round);
}

static uint64_t fenced_puts(void)
{
    return each_length(fenced_put);
}

static uint64_t fenced_get(size_t length, uint64_t round)
{
    uint8_t *into = ranks[0].memory + OTHER_AT;
    int rc;

    fill(length, round);
    put(0, length, none, none, PWC_NO_LCE | PWC_NO_RCE);
    while ((rc = pwc_get(ranks[0].remote, 0, into, length, pwc_cid_u64(round), none,
                         PWC_NO_RCE | PWC_FENCE)) == -EAGAIN)
        continue;
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return event_of(&ranks[0], PWC_LOCAL) != round || rank_check(into, length, round) != 0;
}

static uint64_t fenced_gets(void)
{
    return each_length(fenced_get);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct heard {
    uint64_t messages, wrong;
};

static void hear(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    struct heard *h = argument;

    h->wrong += message->arguments[0] != h->messages++ ||
                rank_check(message->payload, message->length, message->arguments[1]) != 0;
}

/* Runs the target's handlers. The origin probes, too, because its path to a neighbour may need
 * that. */
static void listen_once(void)
{
    struct pwc_event event;

    (void)pwc_probe(ranks[1].ctx, PWC_ANY, PWC_REMOTE, &event);
    (void)pwc_probe(ranks[0].ctx, PWC_ANY, PWC_LOCAL, &event);
}

/* Mediums and Longs in turns: each handler finds its whole payload, and handlers run in order. */
static uint64_t handlers_behind_data(void)
{
    struct heard heard = {0};

    CU_ASSERT_EQUAL_FATAL(pwc_am_register(ranks[1].ctx, INDEX, hear, &heard), 0);
    for (uint64_t i = 0; i < LENGTHS * ROUNDS; i++) {
        size_t length = lengths[i % LENGTHS];
        const uint64_t arguments[] = {i ^ astray, i};
        struct pwc_am_send send = {.index = INDEX,
                                   .count = 2,
                                   .arguments = arguments,
                                   .src = ranks[0].memory,
                                   .len = length,
                                   .flags = PWC_NO_LCE};
        bool medium = length <= pwc_am_max_medium(ranks[0].client);
        int rc;

        fill(length, i);
        while ((rc = medium ? pwc_am_medium(ranks[0].remote, &send)
                            : pwc_am_long(ranks[0].remote, 0, &send)) == -EAGAIN)
            listen_once();
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        /* The next Long's payload has the same offset, so wait for this handler. */
        while (!medium && heard.messages <= i)
            listen_once();
    }
    while (heard.messages < LENGTHS * ROUNDS)
        listen_once();
    flush();
    CU_ASSERT_EQUAL(pwc_am_register(ranks[1].ctx, INDEX, NULL, NULL), 0);
    return heard.wrong;
}

/* ---------------------------------------------------------------------------------------------- */

/* The table of docs/memory-model.md. */
static const struct row {
    const char *name;
    uint64_t (*wrong)(void);
} rows[] = {
    {"a word appears whole", words_are_whole},
    {"a signal is behind its payload", signals_behind_data},
    {"signals of a pair are in order", signals_in_order},
    {"an atomic is behind earlier puts", atomics_behind_puts},
    {"atomics count once", atomics_count_once},
    {"an event is behind its data", events_behind_data},
    {"an event is behind earlier data", later_events},
    {"remote events are in order", events_in_order},
    {"local events are in order", ends_in_order},
    {"unordered local events come once", unordered_ends_come_once},
    {"a notification is behind its data", notifications_behind_data},
    {"a local event means placed", ends_mean_placed},
    {"a third rank sees what is placed", thirds_read},
    {"a flush means placed", flushes_mean_placed},
    {"a source may be used again", sources_are_free},
    {"a fence orders puts", fenced_puts},
    {"a fence orders a get behind a put", fenced_gets},
    {"a handler is behind its data, in order", handlers_behind_data},
};

static void test_promises(void)
{
    astray = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t wrong = rows[i].wrong();

        if (wrong != 0)
            printf("\n    %s: %lu times it was not so", rows[i].name, (unsigned long)wrong);
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

static void test_rows_can_fail(void)
{
    astray = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t wrong = rows[i].wrong();

        if (wrong == 0)
            printf("\n    %s: the row has not noticed", rows[i].name);
        CU_ASSERT_NOT_EQUAL(wrong, 0);
    }
}

static int attach(void)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < 3; i++)
        rc = rank_attach(&ranks[i], cluster.nodes[i % cluster.options.nodes].socket, "litmus", i, 3,
                         REGION_BYTES);
    for (uint32_t i = 0; rc == 0 && i < 3; i += 2)
        rc = rank_bind(&ranks[i], &ranks[1]);
    return rc;
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"promises", test_promises}, {"rows can fail", test_rows_can_fail}, CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0 && attach() == 0)
        status = suite_run("litmus", tests);
    for (int i = 0; i < 3; i++)
        rank_detach(&ranks[i]);
    return cluster_end(&cluster, status);
}
