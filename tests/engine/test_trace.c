/*
 * The trace: its ring alone, with a reader beside the writer; what engines record of operations,
 * and to which user a record belongs; and that nothing is recorded when nobody traces.
 *
 * Threads: one, except for the two of the ring's test.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/engine/world/paths/driver.h"
#include "daemon/engine/watch/trace_ring.h"
#include "tests/engine/world/paths/world_path.h"
#include "tests/engine/bench/peek.h"

enum { RING = 1 << 14, SMALL = 8, WRITES = 400000 };

static struct trace_ring *ring_new(uint64_t size)
{
    struct trace_ring *ring = aligned_alloc(64, (trace_ring_bytes(size) + 63) / 64 * 64);

    CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
    memset(ring, 0, trace_ring_bytes(size));
    trace_ring_init(ring, size);
    return ring;
}

static struct trace_record numbered(uint64_t n)
{
    return (struct trace_record){.at_ns = n,
                                 .sequence = n,
                                 .position = n,
                                 .length = (uint32_t)n,
                                 .uid = (uint32_t)n,
                                 .client = (uint32_t)n,
                                 .flow = (uint32_t)n,
                                 .kind = TRACE_SUBMITTED};
}

/* Whether all words of the record are from the same write. */
static bool whole(const struct trace_record *r)
{
    uint32_t n = (uint32_t)r->at_ns;

    return r->index == r->at_ns + 1 && r->sequence == r->at_ns && r->position == r->at_ns &&
           r->length == n && r->uid == n && r->client == n && r->flow == n;
}

/* Guards that each record comes once and in order, and that overwritten records are counted, to the
 * last one. */
static void ring_order_and_loss(void)
{
    static const struct {
        uint64_t written, seen, lost;
    } turns[] = {{0, 0, 0},
                 {1, 1, 0},
                 {SMALL - 1, SMALL - 1, 0},
                 {SMALL, SMALL, 0},
                 {SMALL + 1, SMALL, 1},
                 {3 * SMALL + 5, SMALL, 2 * SMALL + 5}};
    struct trace_ring *ring = ring_new(SMALL);
    struct trace_record got[SMALL + 1];
    uint64_t written = 0, from = 0, late = 0, late_lost = 0;

    for (size_t t = 0; t < sizeof(turns) / sizeof(turns[0]); t++) {
        uint64_t lost = 0;
        int n;

        for (uint64_t i = 0; i < turns[t].written; i++, written++)
            trace_ring_write(ring, &(struct trace_record){.at_ns = written,
                                                          .sequence = written,
                                                          .kind = TRACE_SUBMITTED});
        n = trace_ring_read(ring, &from, got, SMALL + 1, &lost);
        CU_ASSERT_EQUAL(n, (int)turns[t].seen);
        CU_ASSERT_EQUAL(lost, turns[t].lost);
        for (int i = 0; i < n; i++)
            CU_ASSERT(got[i].index == written - (uint64_t)n + (uint64_t)i + 1 &&
                      got[i].sequence == got[i].index - 1);
        CU_ASSERT_EQUAL(from, written);
    }
    /* A reader that has read nothing yet, with little room, gets the records in parts. */
    CU_ASSERT_EQUAL(trace_ring_read(ring, &late, got, 3, &late_lost), 3);
    CU_ASSERT_EQUAL(trace_ring_read(ring, &late, got, SMALL, &late_lost), SMALL - 3);
    CU_ASSERT_EQUAL(late_lost, written - SMALL);
    free(ring);
}

static void *write_all(void *argument)
{
    for (uint64_t i = 0; i < WRITES; i++) {
        struct trace_record r = numbered(i);

        trace_ring_write(argument, &r);
    }
    return NULL;
}

/* Guards that a reader which the writer overtakes sees no record in part, and counts the records
 * that it missed. */
static void ring_two_threads(void)
{
    struct trace_ring *ring = ring_new(64);
    static struct trace_record got[64];
    uint64_t from = 0, lost = 0, seen = 0, last = 0, torn = 0;
    pthread_t writer;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&writer, NULL, write_all, ring), 0);
    while (from < WRITES) {
        int n = trace_ring_read(ring, &from, got, 64, &lost);

        for (int i = 0; i < n; i++) {
            torn += !whole(&got[i]) || got[i].index <= last;
            last = got[i].index;
        }
        seen += (uint64_t)n;
    }
    pthread_join(writer, NULL);
    CU_ASSERT_EQUAL(torn, 0);
    CU_ASSERT_EQUAL(seen + lost, WRITES);
    free(ring);
}

/* ---- engines --------------------------------------------------------------------------------- */

static struct world_path path;
static struct driver driver;
static struct trace_ring *rings[2];
static struct trace_record records[2][RING];
static int counts[2];

static void world_begin(void)
{
    const struct world_options options = {.seed = 5, .submit_bytes = 65536};
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 4, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    for (int i = 0; i < 2; i++)
        rings[i] = ring_new(RING);
}

static void trace(bool on)
{
    for (int i = 0; i < 2; i++)
        engine_trace(path.world->nodes[i].engine, on ? rings[i] : NULL);
}

static void read_all(void)
{
    for (int i = 0; i < 2; i++) {
        uint64_t from = 0, lost = 0;

        counts[i] = trace_ring_read(rings[i], &from, records[i], RING, &lost);
        CU_ASSERT_EQUAL(lost, 0);
    }
}

static void world_end(void)
{
    trace(false);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    driver_close(&driver);
    world_path_close(&path);
    for (int i = 0; i < 2; i++)
        free(rings[i]);
}

/* The index of the first record of this kind from `from` on; -1 without one. */
static int find(int node, int from, enum trace_kind kind)
{
    for (int i = from; i < counts[node]; i++)
        if (records[node][i].kind == kind)
            return i;
    return -1;
}

/* Checks that the operation's steps at the origin are recorded in this order, and name the same
 * operation. */
static void check_steps(const uint8_t *kinds, uint32_t length)
{
    const struct trace_record *first = NULL;
    int at = 0;

    for (; *kinds; kinds++) {
        const struct trace_record *r;

        at = find(0, at, (enum trace_kind) * kinds);
        CU_ASSERT_FATAL(at >= 0);
        r = &records[0][at];
        first = first ? first : r;
        CU_ASSERT(r->at_ns >= first->at_ns && r->flow == first->flow &&
                  r->sequence == first->sequence && r->uid == 1000 && r->length == length &&
                  r->node == 1);
    }
}

/* Makes a put of this length, and checks what both ends record of it. */
static void one_put(uint64_t length, const uint8_t *kinds)
{
    const struct trace_record *local, *event;
    int drained;

    world_begin();
    driver_finish_one(
        &driver, driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT}));
    trace(true);
    driver_finish_one(
        &driver,
        driver_submit(&driver,
                      (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = length}));
    driver_finish(&driver);
    read_all();
    check_steps(kinds, (uint32_t)length);
    local = &records[0][find(0, 0, TRACE_LOCAL)];
    CU_ASSERT_FATAL(find(1, 0, TRACE_REMOTE) >= 0);
    event = &records[1][find(1, 0, TRACE_REMOTE)];
    CU_ASSERT(event->flow == local->flow && event->sequence == (uint32_t)local->sequence &&
              event->node == 0 && event->length == length && event->uid == 1000);
    /* Both events have been taken since they were posted. */
    drained = find(0, find(0, 0, TRACE_LOCAL), TRACE_DRAINED);
    CU_ASSERT_FATAL(drained >= 0);
    CU_ASSERT(records[0][drained].op == TRACE_RING_LOCAL &&
              records[0][drained].position >= local->position && local->position > 0);
    drained = find(1, find(1, 0, TRACE_REMOTE), TRACE_DRAINED);
    CU_ASSERT(drained >= 0 && records[1][drained].op == TRACE_RING_REMOTE &&
              records[1][drained].position >= event->position);
    world_end();
}

static void small_put(void)
{
    static const uint8_t kinds[] = {TRACE_SUBMITTED, TRACE_STAGED, TRACE_PLACED, TRACE_LOCAL, 0};

    one_put(100, kinds);
}

static void large_put(void)
{
    static const uint8_t kinds[] = {TRACE_SUBMITTED, TRACE_POSTED, TRACE_STAGED,
                                    TRACE_PLACED,    TRACE_LOCAL,  0};

    one_put(8192, kinds);
    CU_ASSERT(find(0, 0, TRACE_COMPLETED) >= 0);
}

/* Guards that nothing is recorded while nobody traces, and that earlier records stay. */
static void off(void)
{
    uint64_t before;

    world_begin();
    for (int i = 0; i < 20; i++)
        driver_submit(&driver, driver_random_op(&driver, 0, 1));
    driver_finish(&driver);
    CU_ASSERT_EQUAL(trace_ring_head(rings[0]), 0);
    trace(true);
    driver_submit(&driver, driver_random_op(&driver, 0, 1));
    driver_finish(&driver);
    trace(false);
    before = trace_ring_head(rings[0]);
    CU_ASSERT(before > 0);
    for (int i = 0; i < 20; i++)
        driver_submit(&driver, driver_random_op(&driver, 0, 1));
    driver_finish(&driver);
    CU_ASSERT_EQUAL(trace_ring_head(rings[0]), before);
    world_end();
}

/* Guards that a write is recorded as a user's only where all operations in it are that user's. */
static void owners(void)
{
    uint32_t own = 0, mixed = 0, others = 0;

    world_begin();
    /* End 2 is on node 0, as end 0 is, and becomes another user's when its remote is bound. */
    for (uint32_t i = 0; i < 4; i += 2)
        driver_finish_one(
            &driver,
            driver_submit(&driver, (struct model_op){.from = i, .to = 1, .kind = PATH_PUT}));
    poke_uid(path.world->nodes[0].engine, path.world->clients[2].handle, 7);
    trace(true);
    for (int round = 0; round < 40; round++) {
        driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT});
        if (round % 2)
            driver_submit(&driver, (struct model_op){.from = 2, .to = 1, .kind = PATH_PUT});
        for (int i = 0; i < 100; i++)
            driver_turn(&driver);
    }
    driver_finish(&driver);
    read_all();
    for (int i = 0, since = 0; i < counts[0]; i++) {
        const struct trace_record *r = &records[0][i];
        bool seven = false, thousand = false;

        if (r->kind != TRACE_RUN || r->node != 1)
            continue;
        for (int k = since; k < i; k++)
            if (records[0][k].kind == TRACE_STAGED && records[0][k].node == 1) {
                seven |= records[0][k].uid == 7;
                thousand |= records[0][k].uid == 1000;
            }
        since = i;
        own += thousand && !seven && r->uid == 1000;
        others += seven && !thousand && r->uid == 7;
        mixed += seven && thousand;
        CU_ASSERT(r->uid == (seven == thousand ? TRACE_NONE : seven ? 7u : 1000u));
    }
    CU_ASSERT(own > 0 && own + mixed + others >= 40);
    CU_ASSERT(mixed + others > 0);
    world_end();
}

/* Guards that a process which takes the engine's state over traces again, including operations
 * under way. */
static void restart(void)
{
    world_begin();
    trace(true);
    for (int i = 0; i < 10; i++)
        driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT});
    world_node_crash(path.world, 0);
    world_node_reopen(path.world, 0, false);
    CU_ASSERT_FALSE(peek_traced(path.world->nodes[0].engine));
    trace(true);
    driver_finish(&driver);
    read_all();
    CU_ASSERT(find(0, 0, TRACE_LOCAL) >= 0);
    CU_ASSERT(find(0, 0, TRACE_PEER_UP) >= 0);
    world_end();
}

int main(void)
{
    CU_TestInfo tests[] = {{"ring: order and loss", ring_order_and_loss},
                           {"ring: two threads", ring_two_threads},
                           {"a small put", small_put},
                           {"a large put", large_put},
                           {"off", off},
                           {"owners of writes", owners},
                           {"restart", restart},
                           CU_TEST_INFO_NULL};

    return suite_run("trace", tests);
}
