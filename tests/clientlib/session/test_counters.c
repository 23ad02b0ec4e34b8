/*
 * A context adds up the counts that its neighbours write: the sum never falls, whatever they write,
 * and what a pair has counted stays in the sum when the pair ends. Guards
 * clientlib/neighbours/neighbours.c.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <unistd.h>
#include "clientlib/channel/channel.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum { RING = SESSION_RING_MIN, PAIRS = 3 };

struct hall {
    struct fake_session daemon;
    struct mapping mapping, pairs[PAIRS];
    struct channel channel;
};

static struct pair_shared *pair_of(struct hall *h, unsigned i)
{
    return h->pairs[i].base;
}

static void add(struct hall *h, unsigned i)
{
    const struct pair_note note = {.peer = i + 1, .slot = BOARD_NONE};

    CU_ASSERT_EQUAL_FATAL(mapping_create(&h->pairs[i], "test-pair", PAIR_BYTES), 0);
    pair_format(h->pairs[i].base);
    neighbours_add(&h->channel.neighbours, &note, dup(h->pairs[i].fd), -1);
}

static struct hall *hall_new(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    fake_channel_open(&h->daemon, &h->mapping, &h->channel, &rings);
    for (unsigned i = 0; i < PAIRS; i++)
        add(h, i);
    return h;
}

static void hall_free(struct hall *h)
{
    fake_channel_close(&h->daemon, &h->mapping, &h->channel);
    for (unsigned i = 0; i < PAIRS; i++)
        mapping_destroy(&h->pairs[i]);
    free(h);
}

static void count(struct hall *h, unsigned i, uint64_t value)
{
    count_show(&pair_of(h, i)->origin.counts.arrived, value);
}

/* The count of arrived operations, with those of all pairs. */
static uint64_t arrived(struct hall *h)
{
    return count_look(&h->channel.shared->client.counts.arrived) +
           neighbours_arrived(&h->channel.neighbours);
}

static void test_sum(void)
{
    struct hall *h = hall_new();

    CU_ASSERT_EQUAL(arrived(h), 0);
    count(h, 0, 5);
    count(h, 1, 7);
    count(h, 2, 1);
    CU_ASSERT_EQUAL(arrived(h), 13);
    hall_free(h);
}

/* A count that falls, or jumps back by 2^63, does not lower the sum. */
static void test_counts_that_fall(void)
{
    static const uint64_t values[] = {99, 0, 1, UINT64_MAX, UINT64_C(1) << 63, 42};
    struct hall *h = hall_new();

    count(h, 0, 100);
    count(h, 1, 3);
    CU_ASSERT_EQUAL(arrived(h), 103);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        count(h, 0, values[i]);
        CU_ASSERT(arrived(h) >= 103);
    }
    hall_free(h);
}

/* When a neighbour ends, its count is added for good, although nobody had looked at it before.
 * Later changes of its memory have no effect. */
static void test_pair_goes(void)
{
    struct hall *h = hall_new();

    count(h, 0, 2);
    count(h, 1, 30);
    count(h, 2, 400);
    atomic_store(&pair_of(h, 1)->gone, PAIR_ORIGIN_GONE);
    neighbours_check(&h->channel.neighbours);
    CU_ASSERT_EQUAL(h->channel.neighbours.count, 2);
    CU_ASSERT_EQUAL(count_look(&h->channel.shared->client.counts.arrived), 30);
    CU_ASSERT_EQUAL(arrived(h), 432);
    count(h, 1, 31);
    CU_ASSERT_EQUAL(arrived(h), 432);
    hall_free(h);
}

/* Each pair's word says whether the context sleeps for its counts, also in a pair that is made
 * meanwhile. */
static void test_awaited(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_PTR_NOT_NULL_FATAL(h);
    fake_channel_open(&h->daemon, &h->mapping, &h->channel, &rings);
    add(h, 0);
    CU_ASSERT_EQUAL(atomic_load(&pair_of(h, 0)->target.counts_awaited), 0);
    neighbours_await_counts(&h->channel.neighbours, true);
    add(h, 1);
    CU_ASSERT_EQUAL(atomic_load(&pair_of(h, 0)->target.counts_awaited), 1);
    CU_ASSERT_EQUAL(atomic_load(&pair_of(h, 1)->target.counts_awaited), 1);
    neighbours_await_counts(&h->channel.neighbours, false);
    add(h, 2);
    for (unsigned i = 0; i < PAIRS; i++)
        CU_ASSERT_EQUAL(atomic_load(&pair_of(h, i)->target.counts_awaited), 0);
    hall_free(h);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a sum over pairs", test_sum},
        {"counts that fall", test_counts_that_fall},
        {"a pair goes", test_pair_goes},
        {"whether a sleeper waits", test_awaited},
        CU_TEST_INFO_NULL,
    };

    return suite_run("counters", tests);
}
