/*
 * The delay decorator over the loop, with a clock that the test advances: no event comes early,
 * none is lost, order is kept unless reordering is configured, and a seed replays the same run.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>
#include "daemon/fabric/delay.h"
#include "daemon/fabric/loop.h"
#include "tests/suite.h"

#define SELF  0u
#define LEAST 1000u
#define MOST  10000u
#define COUNT 40u

static uint64_t now; /* global, because the decorator's clock has no argument */

static uint64_t test_clock(void)
{
    return now;
}

struct slow {
    struct fabric *fabric;
    struct fabric_memory memory;
    uint8_t bytes[4096];
};

/* Returns the next event, and lets time pass meanwhile. Kind 0: none comes. */
static struct fabric_event next_event(struct slow *s)
{
    struct fabric_event event = {0};

    for (int i = 0; i < 10000; i++, now += 100)
        if (fabric_poll(s->fabric, &event, 1) == 1)
            return event;
    return event;
}

static void slow_open(struct slow *s, uint64_t seed, bool reorder, uint32_t held_max)
{
    struct delay_config config = {
        .least_ns = LEAST,
        .most_ns = MOST,
        .seed = seed,
        .reorder = reorder,
        .held_max = held_max,
        .clock = test_clock,
    };
    struct loop_config loop = {0};
    struct fabric_address self;
    struct fabric *inner;
    struct fabric_event event;

    memset(s, 0, sizeof(*s));
    CU_ASSERT_EQUAL_FATAL(loop_open(&loop, &inner), 0);
    CU_ASSERT_EQUAL_FATAL(delay_open(inner, &config, &s->fabric), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_address_of(s->fabric, &self), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_connect(s->fabric, SELF, &self), 0);
    CU_ASSERT_EQUAL_FATAL(
        fabric_mem_add(s->fabric, s->bytes, sizeof(s->bytes), FABRIC_REMOTE_WRITE, 1), 0);
    event = next_event(s);
    CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ADDED);
    s->memory = event.memory;
}

static int post(struct slow *s, uint32_t number)
{
    struct fabric_write w = {
        .peer = SELF,
        .memory = s->memory.index,
        .source = s->bytes,
        .length = 1,
        .remote_address = s->memory.address + 64,
        .remote_key = s->memory.key,
        .cookie = number,
        .immediate = number,
        .announce = true,
    };

    return fabric_post_write(s->fabric, &w);
}

/* Posts COUNT writes and notes the order of their arrivals; each must arrive and end once. */
static void run(struct slow *s, uint32_t order[COUNT])
{
    uint32_t ended[COUNT] = {0}, arrived[COUNT] = {0}, n = 0, wrong = 0;

    for (uint32_t i = 0; i < COUNT; i++)
        CU_ASSERT_EQUAL(post(s, i), 0);
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        struct fabric_event event = next_event(s);

        if (event.kind == FABRIC_ARRIVED) {
            order[n++] = event.immediate;
            arrived[event.immediate]++;
        } else if (event.kind == FABRIC_WRITTEN && event.status == 0) {
            ended[event.cookie]++;
        }
    }
    for (uint32_t i = 0; i < COUNT; i++)
        wrong += arrived[i] != 1 || ended[i] != 1;
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(n, COUNT);
}

static uint32_t out_of_order(const uint32_t order[COUNT])
{
    uint32_t n = 0;

    for (uint32_t i = 1; i < COUNT; i++)
        n += order[i] < order[i - 1];
    return n;
}

static void in_time(void)
{
    struct fabric_event event;
    struct slow s;
    int descriptor;

    slow_open(&s, 1, false, 0);
    for (uint32_t i = 0; i < 100; i++) {
        uint64_t start = now;

        CU_ASSERT_EQUAL(post(&s, i), 0);
        CU_ASSERT_EQUAL(fabric_poll(s.fabric, &event, 1), 0); /* taken in, and held back */
        CU_ASSERT_EQUAL(fabric_arm(s.fabric, &descriptor), -EAGAIN);
        now = start + LEAST - 1;
        CU_ASSERT_EQUAL(fabric_poll(s.fabric, &event, 1), 0);
        now = start + MOST;
        CU_ASSERT_EQUAL(fabric_poll(s.fabric, &event, 1), 1);
        CU_ASSERT_EQUAL(event.kind, FABRIC_ARRIVED);
        CU_ASSERT_EQUAL(fabric_poll(s.fabric, &event, 1), 1);
        CU_ASSERT_EQUAL(event.kind, FABRIC_WRITTEN);
        CU_ASSERT_EQUAL(fabric_arm(s.fabric, &descriptor), 0);
    }
    fabric_close(s.fabric);
}

static void order_kept(void)
{
    uint32_t order[COUNT];

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct slow s;

        slow_open(&s, seed, false, 0);
        CU_ASSERT_TRUE(s.fabric->traits.ordered_write_max > 0);
        run(&s, order);
        CU_ASSERT_EQUAL(out_of_order(order), 0);
        fabric_close(s.fabric);
    }
}

static void order_broken(void)
{
    uint32_t order[2][COUNT];

    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int again = 0; again < 2; again++) {
            struct slow s;

            now = 0;
            slow_open(&s, seed, true, 0);
            CU_ASSERT_EQUAL(s.fabric->traits.ordered_write_max, 0);
            run(&s, order[again]);
            fabric_close(s.fabric);
        }
        CU_ASSERT_TRUE(out_of_order(order[0]) > 0);
        CU_ASSERT_EQUAL(memcmp(order[0], order[1], sizeof(order[0])), 0);
    }
}

/* Posts far more operations than the decorator can hold: some are refused with -EAGAIN, and no
 * accepted one is lost. */
static void full(void)
{
    for (int reorder = 0; reorder < 2; reorder++) {
        uint32_t posted = 0, arrived = 0, ended = 0, refused = 0;
        struct slow s;

        slow_open(&s, 3, reorder, 16);
        for (uint32_t i = 0; i < 100000 && arrived + ended < 2000; i++, now += 500) {
            struct fabric_event events[4];

            while (posted < 1000) {
                if (post(&s, posted)) {
                    refused++;
                    break;
                }
                posted++;
            }
            for (int n = fabric_poll(s.fabric, events, 4); n-- > 0;) {
                arrived += events[n].kind == FABRIC_ARRIVED;
                ended += events[n].kind == FABRIC_WRITTEN;
            }
        }
        CU_ASSERT_EQUAL(arrived, 1000);
        CU_ASSERT_EQUAL(ended, 1000);
        CU_ASSERT_TRUE(refused > 0 || !reorder);
        fabric_close(s.fabric);
    }
}

/* Operations that are held back at a disconnect end, too. */
static void disconnected(void)
{
    struct slow s;
    uint32_t cancelled = 0;

    slow_open(&s, 4, true, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        CU_ASSERT_EQUAL(post(&s, i), 0);
    CU_ASSERT_EQUAL(fabric_disconnect(s.fabric, SELF), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct fabric_event event = next_event(&s);

        cancelled += event.kind == FABRIC_WRITTEN && event.status == -ECANCELED;
    }
    CU_ASSERT_EQUAL(cancelled, COUNT);
    CU_ASSERT_EQUAL(next_event(&s).kind, 0);
    CU_ASSERT_EQUAL(post(&s, 1), 0); /* held back, then refused by the inner fabric */
    CU_ASSERT_EQUAL(next_event(&s).status, -ENOTCONN);
    fabric_close(s.fabric);
}

static void configuration(void)
{
    static const struct delay_config wrong[] = {
        {.clock = NULL},
        {.clock = test_clock, .least_ns = 2, .most_ns = 1},
    };
    struct loop_config loop = {0};
    struct fabric *inner, *outer;

    CU_ASSERT_EQUAL_FATAL(loop_open(&loop, &inner), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CU_ASSERT_EQUAL(delay_open(inner, &wrong[i], &outer), -EINVAL);
    fabric_close(inner);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"nothing early, nothing late", in_time},
        {"order kept", order_kept},
        {"order broken, by the seed", order_broken},
        {"full", full},
        {"disconnected", disconnected},
        {"configuration", configuration},
        CU_TEST_INFO_NULL,
    };

    return suite_run("delay", tests);
}
