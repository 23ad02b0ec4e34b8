/*
 * Rules that only the loop has: it checks keys and bounds at the target, copies long payloads in
 * pieces, and can sleep.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fabric/end.h"
#include "daemon/fabric/loop.h"
#include "tests/suite.h"

#define SELF  3u
#define SMALL 4096u

struct loop_pair {
    struct fabric *fabric;
    struct fabric_memory source, target;
    uint8_t *bytes; /* memory of source and target, adjacent */
};

static struct fabric_event next_event(struct fabric *fabric)
{
    struct fabric_event event = {0};

    /* The loop does nothing on its own, so a bounded number of polls is enough. */
    for (int i = 0; i < 1000; i++)
        if (fabric_poll(fabric, &event, 1) == 1)
            return event;
    return event;
}

static struct fabric_memory add_memory(struct fabric *fabric, void *base, uint64_t length,
                                       unsigned access)
{
    struct fabric_event event;

    CU_ASSERT_EQUAL_FATAL(fabric_mem_add(fabric, base, length, access, 77), 0);
    event = next_event(fabric);
    CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ADDED);
    CU_ASSERT_EQUAL_FATAL(event.status, 0);
    CU_ASSERT_EQUAL(event.cookie, 77);
    return event.memory;
}

static void pair_open(struct loop_pair *p, uint64_t length, unsigned access)
{
    struct loop_config config = {.operations_max = 8, .memories_max = 4};
    struct fabric_address self;

    p->bytes = calloc(2, length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->bytes);
    CU_ASSERT_EQUAL_FATAL(loop_open(&config, &p->fabric), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_address_of(p->fabric, &self), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_connect(p->fabric, SELF, &self), 0);
    p->source = add_memory(p->fabric, p->bytes, length, FABRIC_LOCAL);
    p->target = add_memory(p->fabric, p->bytes + length, length, access);
}

static void pair_close(struct loop_pair *p)
{
    fabric_close(p->fabric);
    free(p->bytes);
}

static struct fabric_write write_to(const struct loop_pair *p, uint64_t length)
{
    return (struct fabric_write){
        .peer = SELF,
        .memory = p->source.index,
        .source = p->bytes,
        .length = length,
        .remote_address = p->target.address,
        .remote_key = p->target.key,
        .cookie = 5,
    };
}

/* Writes are refused outside the target's memory, and with a wrong key. */
static void target_checks(void)
{
    static const struct {
        int64_t shift; /* added to the right address */
        uint64_t length;
        uint64_t key_xor;
        int status;
    } rows[] = {
        {0, SMALL, 0, 0},
        {SMALL - 8, 8, 0, 0},
        {SMALL, 0, 0, 0},
        {SMALL - 8, 9, 0, -EACCES},
        {SMALL, 1, 0, -EACCES},
        {-1, 1, 0, -EACCES},
        {0, 8, 1, -EACCES},                 /* another memory's index */
        {0, 8, UINT64_C(1) << 63, -EACCES}, /* the random part is wrong */
        {0, 8, UINT64_C(3), -EACCES},       /* no such memory */
        {INT64_MAX, SMALL, 0, -EACCES},     /* far away */
    };
    struct loop_pair p;

    pair_open(&p, SMALL, FABRIC_REMOTE_WRITE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fabric_write w = write_to(&p, rows[i].length);
        struct fabric_event event;

        w.remote_address += (uint64_t)rows[i].shift;
        w.remote_key ^= rows[i].key_xor;
        w.announce = rows[i].status != 0; /* a write that fails is not announced */
        CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);
        event = next_event(p.fabric);
        CU_ASSERT_EQUAL(event.kind, FABRIC_WRITTEN);
        CU_ASSERT_EQUAL(event.status, rows[i].status);
    }
    pair_close(&p);
}

/* A source beyond its own memory is refused as an error of the caller. */
static void source_checks(void)
{
    struct loop_pair p;

    pair_open(&p, SMALL, FABRIC_REMOTE_WRITE);

    struct fabric_write w = write_to(&p, SMALL + 1);

    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), -EINVAL);
    w.length = 1;
    w.source = p.bytes + SMALL;
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), -EINVAL);
    w.source = p.bytes - 1;
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), -EINVAL);
    pair_close(&p);
}

static void rights(void)
{
    static const unsigned accesses[] = {FABRIC_LOCAL, FABRIC_REMOTE_READ, FABRIC_REMOTE_WRITE};

    for (size_t i = 0; i < 3; i++) {
        struct loop_pair p;

        pair_open(&p, SMALL, accesses[i]);

        struct fabric_write w = write_to(&p, 8);
        struct fabric_read r = {
            .peer = SELF,
            .memory = p.source.index,
            .destination = p.bytes,
            .length = 8,
            .remote_address = p.target.address,
            .remote_key = p.target.key,
        };

        CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);
        CU_ASSERT_EQUAL(next_event(p.fabric).status,
                        accesses[i] == FABRIC_REMOTE_WRITE ? 0 : -EACCES);
        CU_ASSERT_EQUAL(fabric_post_read(p.fabric, &r), 0);
        CU_ASSERT_EQUAL(next_event(p.fabric).status,
                        accesses[i] == FABRIC_REMOTE_READ ? 0 : -EACCES);
        pair_close(&p);
    }
}

/* A write whose memory is dropped before its turn changes no byte. */
static void dropped_under_way(void)
{
    struct loop_pair p;

    pair_open(&p, SMALL, FABRIC_REMOTE_WRITE);

    struct fabric_write w = write_to(&p, 8);

    memset(p.bytes, 0xaa, 8);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);
    CU_ASSERT_EQUAL(fabric_mem_drop(p.fabric, p.target.index, 78), 0);
    CU_ASSERT_EQUAL(next_event(p.fabric).kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(next_event(p.fabric).status, -EACCES);
    CU_ASSERT_EQUAL(p.bytes[SMALL], 0);
    pair_close(&p);
}

/* A long copy takes several polls, and operations posted after it wait for it. */
static void pieces(void)
{
    enum { LONG = 4 << 20, LEAST = 8 };
    struct fabric_event events[8];
    struct loop_pair p;
    int polls = 0, n = 0;

    pair_open(&p, LONG, FABRIC_REMOTE_WRITE);
    pattern_fill(p.bytes, LONG, 1);

    struct fabric_write first = write_to(&p, LONG), second = write_to(&p, 8);

    first.cookie = 1;
    second.cookie = 2;
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &first), 0);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &second), 0);
    while (n < 2 && polls < 1000) {
        n += fabric_poll(p.fabric, events + n, 8 - n);
        polls++;
    }
    CU_ASSERT_TRUE(polls >= LEAST);
    CU_ASSERT_EQUAL(events[0].cookie, 1);
    CU_ASSERT_EQUAL(events[1].cookie, 2);
    CU_ASSERT_TRUE(pattern_holds(p.bytes + LONG, LONG, 1));
    pair_close(&p);
}

/* Full queues and tables return an error, and accept more when there is room again. */
static void full(void)
{
    struct loop_pair p;

    pair_open(&p, SMALL, FABRIC_REMOTE_WRITE);

    struct fabric_write w = write_to(&p, 8);

    for (int i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), -EAGAIN);
    CU_ASSERT_EQUAL(next_event(p.fabric).kind, FABRIC_WRITTEN);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);

    CU_ASSERT_EQUAL(fabric_mem_add(p.fabric, p.bytes, 8, FABRIC_LOCAL, 1), 0);
    CU_ASSERT_EQUAL(fabric_mem_add(p.fabric, p.bytes, 8, FABRIC_LOCAL, 2), 0);
    CU_ASSERT_EQUAL(fabric_mem_add(p.fabric, p.bytes, 8, FABRIC_LOCAL, 3), -ENOSPC);
    pair_close(&p);
}

static void sleeping(void)
{
    struct loop_pair p;
    struct pollfd look = {.events = POLLIN};

    pair_open(&p, SMALL, FABRIC_REMOTE_WRITE);

    struct fabric_write w = write_to(&p, 8);

    CU_ASSERT_EQUAL_FATAL(fabric_arm(p.fabric, &look.fd), 0);
    CU_ASSERT_EQUAL(poll(&look, 1, 0), 0);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric, &w), 0);
    CU_ASSERT_EQUAL(fabric_arm(p.fabric, &look.fd), -EAGAIN);
    (void)next_event(p.fabric);
    CU_ASSERT_EQUAL(fabric_arm(p.fabric, &look.fd), 0);
    pair_close(&p);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the target's keys and bounds", target_checks},
        {"the source's bounds", source_checks},
        {"rights", rights},
        {"memory dropped under way", dropped_under_way},
        {"long copies in pieces", pieces},
        {"full", full},
        {"sleeping", sleeping},
        CU_TEST_INFO_NULL,
    };

    return suite_run("loop", tests);
}
