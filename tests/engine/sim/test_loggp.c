/*
 * The LogGP clock of the simulated fabric: times of messages, computed by hand.
 *
 * L = 1000 ns, o = 100 ns, g = 30 ns, G = 2 ns a byte: in a sum, each can be distinguished from the
 * others. In this file, G is the model's g, and B is its G.
 *
 * Thread: one.
 */
#include <string.h>
#include "tests/suite.h"
#include "tests/engine/bench/fabric_pair.h"

#define L 1000u
#define O 100u
#define G 30u
#define B 2u /* ns for each byte */

static const struct loggp clock_of_tests = {
    .latency_ps = L * 1000, .overhead_ps = O * 1000, .gap_ps = G * 1000, .byte_fs = B * 1000000};

/* Opens a pair whose clock is still at 0, because registering memory takes no time. */
static void open_at_zero(struct fabric_pair *p, struct loggp loggp, unsigned access)
{
    const struct sim_options options = {.seed = 3, .loggp = loggp, .ordered_write_max = UINT64_MAX};

    pair_open(p, &options, access);
    CU_ASSERT_EQUAL_FATAL(sim_now(p->world), 0);
}

static void post(struct fabric_pair *p, uint64_t length, uint64_t cookie, bool placed)
{
    struct fabric_write w = pair_write(p, 0, length, cookie);

    w.placed = placed;
    CU_ASSERT_EQUAL_FATAL(fabric_post_write(p->fabric[ORIGIN], &w), 0);
}

/* Returns when the node gets its next event, which must be of that kind and number. */
static uint64_t event_at(struct fabric_pair *p, int node, uint32_t kind, uint64_t number)
{
    struct fabric_event event;

    CU_ASSERT_FATAL(pair_await(p, node, &event));
    CU_ASSERT_EQUAL(event.kind, kind);
    CU_ASSERT_EQUAL(event.status, 0);
    CU_ASSERT_EQUAL(kind == FABRIC_ARRIVED ? event.immediate : event.cookie, number);
    return sim_now(p->world);
}

/* Guards two messages where both processors are the bottleneck: o is more than g. */
static void test_two_messages(void)
{
    static struct fabric_pair p;

    open_at_zero(&p, clock_of_tests, FABRIC_REMOTE_WRITE);
    post(&p, 1, 7, false);
    post(&p, 1, 8, false);
    CU_ASSERT_EQUAL(event_at(&p, ORIGIN, FABRIC_WRITTEN, 7), O);
    CU_ASSERT_EQUAL(event_at(&p, ORIGIN, FABRIC_WRITTEN, 8), 2 * O);
    CU_ASSERT_EQUAL(event_at(&p, TARGET, FABRIC_ARRIVED, 7), O + L + O);
    CU_ASSERT_EQUAL(event_at(&p, TARGET, FABRIC_ARRIVED, 8), O + O + L + O);
    pair_close(&p);
}

/* Guards a burst of messages where the cards are the bottleneck: g is more than o. */
static void test_burst(void)
{
    static struct fabric_pair p;
    struct loggp loggp = clock_of_tests;

    /* 10.5 ns: halves of a ns add up from one message to the next. */
    loggp.overhead_ps = 10500;
    open_at_zero(&p, loggp, FABRIC_REMOTE_WRITE);
    for (uint32_t i = 0; i < 10; i++)
        post(&p, 1, i, false);
    for (uint32_t i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(event_at(&p, TARGET, FABRIC_ARRIVED, i), i * G + L + 21);
    pair_close(&p);
}

/* Guards that a long message keeps both cards busy, one after the other, but no processor. */
static void test_long(void)
{
    static struct fabric_pair p;

    open_at_zero(&p, clock_of_tests, FABRIC_REMOTE_WRITE);
    memset(p.bytes[ORIGIN], 0x5a, 10001);
    post(&p, 10001, 1, true);
    post(&p, 1, 2, false);
    CU_ASSERT_EQUAL(event_at(&p, ORIGIN, FABRIC_WRITTEN, 2), O + 10000 * B + G);
    CU_ASSERT_EQUAL(event_at(&p, TARGET, FABRIC_ARRIVED, 1), O + 10000 * B + L + O);
    CU_ASSERT_EQUAL(memcmp(p.bytes[TARGET], p.bytes[ORIGIN], 10001), 0);
    /* The target's processor takes the long message first, and the short one as soon as it is done.
     */
    CU_ASSERT_EQUAL(event_at(&p, TARGET, FABRIC_ARRIVED, 2), O + 10000 * B + L + 2 * O);
    CU_ASSERT_EQUAL(event_at(&p, ORIGIN, FABRIC_WRITTEN, 1), O + 10000 * B + L + L);
    pair_close(&p);
}

/* Guards that the target's processor takes no part in the request and the answer of a read. */
static void test_read(void)
{
    static struct fabric_pair p;
    struct fabric_read r;

    open_at_zero(&p, clock_of_tests, FABRIC_REMOTE_READ);
    memset(p.bytes[TARGET], 0x17, 501);
    r = pair_read(&p, 0, 501, 4);
    CU_ASSERT_EQUAL_FATAL(fabric_post_read(p.fabric[ORIGIN], &r), 0);
    CU_ASSERT_EQUAL(event_at(&p, ORIGIN, FABRIC_READ, 4), O + L + L + 500 * B + O);
    CU_ASSERT_EQUAL(memcmp(p.bytes[ORIGIN], p.bytes[TARGET], 501), 0);
    pair_close(&p);
}

/* Guards that a receiver with two senders takes one message at a time, in the order of arrival. */
static void test_two_senders(void)
{
    struct loggp_end from[2] = {{0}}, to = {0};
    uint64_t first, second;

    first = loggp_send(&clock_of_tests, &from[0], 0, 101).arrives;
    second = loggp_send(&clock_of_tests, &from[1], 50000, 1).arrives;
    CU_ASSERT_EQUAL(loggp_receive(&clock_of_tests, &to, first, 101), (O + L + 100 * B) * 1000);
    CU_ASSERT_EQUAL(second, (50 + O + L) * 1000);
    CU_ASSERT_EQUAL(loggp_receive(&clock_of_tests, &to, second, 1),
                    (O + L + 100 * B + G) * 1000); /* not at 50 + O + L, as if the card were free */
}

/* Guards that a node which gets an event is named once, until it gets another. */
static void test_roused(void)
{
    static struct fabric_pair p;
    struct fabric_event event;
    uint32_t node;

    open_at_zero(&p, clock_of_tests, FABRIC_REMOTE_WRITE);
    while (sim_roused(p.world, &node))
        continue;
    post(&p, 1, 1, false);
    post(&p, 1, 2, false);
    CU_ASSERT_FALSE(sim_roused(p.world, &node));
    sim_advance(p.world, 2 * O);
    CU_ASSERT_TRUE(sim_roused(p.world, &node));
    CU_ASSERT_EQUAL(node, ORIGIN);
    CU_ASSERT_FALSE(sim_roused(p.world, &node));
    sim_advance(p.world, 2 * O + L);
    CU_ASSERT_TRUE(sim_roused(p.world, &node));
    CU_ASSERT_EQUAL(node, TARGET);
    CU_ASSERT_EQUAL(pair_poll(&p, TARGET, &event), 1);
    pair_close(&p);
}

int main(void)
{
    CU_TestInfo tests[] = {{"two messages", test_two_messages},
                           {"a burst", test_burst},
                           {"a long one, and one behind it", test_long},
                           {"a read", test_read},
                           {"two senders", test_two_senders},
                           {"who has an event", test_roused},
                           CU_TEST_INFO_NULL};

    return suite_run("loggp", tests);
}
