/*
 * Wake-ups of contexts that sleep: a client asks for one, of a context of its own engine or of a
 * sibling; a sibling asks for one; and records and numbers that make no sense wake nobody. Guards
 * daemon/engine/session/direct.c, the fences of engine_arm, and what keeps the thread awake. One
 * thread.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/record_bench.h"
#include "tests/suite.h"

enum {
    RING = 8192,
    US = 0,           /* the bench's client: rank 0, context 0 */
    THERE = 1,        /* a client of engine 1: rank 1, context 0 */
    ORIGIN_FLOW = 5,  /* the number of that client's flow to US, at engine 1 */
    THEIR_INFLOW = 3, /* the number of the flow from US to that client, as bench_bound says */
    FLOWS = 8,
};

#define SECOND (UINT64_C(1) << 32) /* rank 0, context 1 */

/* Counts the requests of the engine to its sibling. */
static struct {
    uint32_t count, number, flow;
    enum engine_flow_end end;
} asked;

static void wake_sibling(void *context, uint32_t number, uint32_t flow, enum engine_flow_end end)
{
    asked.count++;
    asked.number = number;
    asked.flow = flow;
    asked.end = end;
    (void)context;
}

/* Opens a bench with a flow from US to the client of engine 1, and a flow of that client to US. */
static struct bench *open_bench(bool siblings)
{
    const struct bench_shape shape = {
        .ring_bytes = RING, .region_bytes = 4096, .entries = FLOWS, .siblings = siblings};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    b->host.wake_sibling = wake_sibling;
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_bind(b, ORIGIN_FLOW);
    bench_remote(b);
    CU_ASSERT_FALSE_FATAL(b->broken);
    asked.count = 0;
    return b;
}

static struct submit_record wake_of(uint32_t remote, uint64_t endpoint)
{
    return (struct submit_record){.size = sizeof(struct submit_record),
                                  .kind = SUBMIT_WAKE,
                                  .remote = remote,
                                  .endpoint = endpoint};
}

/* Makes two steps. Returns whether the client US has been woken once since sleep_now, which has
 * returned `before`. */
static bool wakes(struct bench *b, uint32_t before)
{
    bench_steps(b, 2);
    return b->woken == before + 1 && atomic_load(&b->session->event_bell.armed) == 0;
}

static uint32_t sleep_now(struct bench *b)
{
    atomic_store(&b->session->event_bell.armed, 1);
    return b->woken;
}

/* Guards which engine is asked to wake a context: the sibling that has the target of the remote, or
 * the origin of a flow to US. Another node's engine is never asked, and none is asked for a pair of
 * contexts that does not exist. */
static void a_sibling_is_asked(void)
{
    static const struct {
        bool siblings;
        uint32_t remote;
        uint64_t endpoint;
        uint32_t count, flow;
        enum engine_flow_end end;
    } rows[] = {
        {true, 0, 0, 1, THEIR_INFLOW, ENGINE_FLOW_TARGET},
        {true, SUBMIT_NO_REMOTE, THERE, 1, ORIGIN_FLOW, ENGINE_FLOW_ORIGIN},
        {true, SUBMIT_NO_REMOTE, US, 0, 0, 0},
        {true, SUBMIT_NO_REMOTE, UINT64_MAX, 0, 0, 0},
        {true, 1, 0, 0, 0, 0}, /* a remote that is not bound any more */
        {false, 0, 0, 0, 0, 0},
        {false, SUBMIT_NO_REMOTE, THERE, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = open_bench(rows[i].siblings);
        const struct submit_record wake = wake_of(rows[i].remote, rows[i].endpoint);

        bench_submit(b, &wake);
        CU_ASSERT_FALSE(b->quarantined);
        CU_ASSERT_EQUAL(asked.count, rows[i].count);
        if (rows[i].count > 0) {
            CU_ASSERT_EQUAL(asked.number, 1);
            CU_ASSERT_EQUAL(asked.flow, rows[i].flow);
            CU_ASSERT_EQUAL(asked.end, rows[i].end);
        }
        bench_free(b);
    }
}

/* Guards that the request of a sibling wakes nobody when its flow has ended, or the number is
 * another flow's, by the time that the request is seen. */
static void a_sibling_asks(void)
{
    static const struct {
        bool siblings;
        uint32_t flow;
        enum engine_flow_end end;
        bool wakes;
    } rows[] = {
        {true, 0, ENGINE_FLOW_ORIGIN, true},
        {true, 0, ENGINE_FLOW_TARGET, true},
        {true, 1, ENGINE_FLOW_ORIGIN, false},
        {true, 1, ENGINE_FLOW_TARGET, false},
        {true, FLOWS, ENGINE_FLOW_ORIGIN, false},
        {true, FLOWS, ENGINE_FLOW_TARGET, false},
        {true, UINT32_MAX, ENGINE_FLOW_ORIGIN, false},
        {true, UINT32_MAX, ENGINE_FLOW_TARGET, false},
        {false, 0, ENGINE_FLOW_ORIGIN, false},
        {false, 0, ENGINE_FLOW_TARGET, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = open_bench(rows[i].siblings);
        uint32_t before = sleep_now(b);

        engine_wake(b->engine, rows[i].flow, rows[i].end);
        CU_ASSERT_EQUAL(wakes(b, before), rows[i].wakes);
        bench_free(b);
    }
}

/* Opens another context of the client; the two are bound to each other by remotes 1 and 2. */
static struct session_shared *open_second(struct bench *b)
{
    const struct session_sizes sizes = b->session->sizes;
    size_t bytes = session_bytes(&sizes);
    struct session_shared *second = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    memset(second, 0, bytes);
    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, second, &sizes, 0), 1);
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 0, SECOND, NULL, 1), 0);
    bench_steps(b, 8);
    CU_ASSERT_EQUAL_FATAL(b->remote, 1);
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 1, 0, US, NULL, 1), 0);
    bench_steps(b, 8);
    CU_ASSERT_EQUAL_FATAL(b->remote, 2);
    return second;
}

/* Guards that every session shows the daemon's processor, also a session that opens later. */
static void the_processor_is_shown(void)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .with_self = true};
    struct bench *b = bench_new(&shape);
    struct session_shared *second;

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL(atomic_load(&b->session->processor), 0);
    engine_set_processor(b->engine, 0);
    CU_ASSERT_EQUAL(atomic_load(&b->session->processor), 1);
    second = open_second(b);
    CU_ASSERT_EQUAL(atomic_load(&second->processor), 1);
    engine_set_processor(b->engine, 9);
    CU_ASSERT_EQUAL(atomic_load(&b->session->processor), 10);
    CU_ASSERT_EQUAL(atomic_load(&second->processor), 10);
    bench_free(b);
    free(second);
}

/* Guards that a context of the same engine is woken as the target of a remote, and as the origin of
 * a flow. */
static void a_context_of_this_engine(void)
{
    static const struct {
        uint32_t remote;
        uint64_t endpoint;
        bool wakes;
    } rows[] = {
        {1, 0, true},
        {SUBMIT_NO_REMOTE, SECOND, true},
        {0, 0, false}, /* the remote to the context itself */
        {SUBMIT_NO_REMOTE, US, false},
        {SUBMIT_NO_REMOTE, THERE, false},
        {2, 0, false}, /* a remote of the other context */
    };
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .with_self = true};
    struct bench *b = bench_new(&shape);
    struct session_shared *second;

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    second = open_second(b);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct submit_record wake = wake_of(rows[i].remote, rows[i].endpoint);

        atomic_store(&second->event_bell.armed, 1);
        bench_submit(b, &wake);
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(atomic_load(&second->event_bell.armed), !rows[i].wakes);
        CU_ASSERT_FALSE(b->quarantined);
    }
    bench_free(b);
    free(second);
}

/* Guards that a wake-up with ids, flags, bytes or an event quarantines its client, and wakes
 * nobody. */
static void senseless_records(void)
{
    struct row {
        struct submit_record record;
        uint64_t more;
    };
    struct row rows[16];
    size_t count = 0;

    for (int team = 0; team < 2; team++) {
        struct row row = {.record = wake_of(0, 0)};

        row.record.kind = team ? SUBMIT_TEAM_WAKE : SUBMIT_WAKE;
        for (int field = 0; field < 5; field++) {
            rows[count] = row;
            rows[count].record.size += field == 0 ? 8 : 0;
            rows[count].record.flags = field == 1 ? SUBMIT_FENCE : 0;
            rows[count].record.lid_len = field == 2 ? 8 : 0;
            rows[count].record.rid_len = field == 3 ? 8 : 0;
            rows[count].record.reserve = field == 4 ? 64 : 0;
            count++;
        }
    }
    rows[count++].record = wake_of(FLOWS, 0);
    rows[count++].record = wake_of(SUBMIT_NO_REMOTE - 1, 0);
    for (size_t i = 0; i < count; i++) {
        struct bench *b = open_bench(true);

        bench_submit(b, &rows[i].record);
        CU_ASSERT_TRUE(b->quarantined);
        CU_ASSERT_EQUAL(asked.count, 0);
        bench_free(b);
    }
}

static unsigned fences;

static int fence(void *context)
{
    (void)context;
    fences++;
    return 0;
}

/* Guards that the engine fences before it sleeps if a client whose bell it arms does not fence for
 * itself. An arm that stands needs no fence, also if its client has ended its own fences since. The
 * engine looks at all rings in any case. */
static void fences_for_clients(void)
{
    static const struct {
        uint32_t first, second;     /* fenced; 2: a hostile client's */
        unsigned both, only_second; /* fences, by the bells that are armed */
    } rows[] = {
        {1, 1, 0, 0}, {0, 1, 1, 0}, {1, 0, 1, 1}, {0, 0, 1, 1}, {2, 1, 1, 0}, {1, UINT32_MAX, 1, 1},
    };
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .with_self = true};
    const struct submit_record wake = wake_of(0, 0);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = bench_new(&shape);
        struct session_shared *second;

        CU_ASSERT_PTR_NOT_NULL_FATAL(b);
        second = open_second(b);
        b->host.fence = fence;
        engine_disarm(b->engine);
        atomic_store(&b->session->waits.fenced, rows[i].first);
        atomic_store(&second->waits.fenced, rows[i].second);
        fences = 0;
        CU_ASSERT_EQUAL(engine_arm(b->engine), 0);
        CU_ASSERT_EQUAL(fences, rows[i].both);
        atomic_store(&b->session->waits.fenced, 0);
        CU_ASSERT_EQUAL(engine_arm(b->engine), 0);
        CU_ASSERT_EQUAL(fences, rows[i].both);
        fences = 0;
        atomic_store(&second->submit_bell.armed, 0); /* the second client has rung */
        CU_ASSERT_EQUAL(engine_arm(b->engine), 0);
        CU_ASSERT_EQUAL(fences, rows[i].only_second);
        engine_disarm(b->engine);
        bench_submit_unseen(b, &wake);
        CU_ASSERT_EQUAL(engine_arm(b->engine), -EAGAIN);
        bench_free(b);
        free(second);
    }
}

/* Guards that a step has worked where the fabric has served reads of peers, so that the thread does
 * not sleep between them. */
static void served_reads_are_work(void)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096};
    struct bench *b = bench_new(&shape);
    uint64_t deadline;

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    bench_steps(b, 110); /* the engine has nothing to do any more */
    CU_ASSERT_EQUAL(engine_step(b->engine, b->now, 64, &deadline), 0);
    b->fabric.serves = true;
    CU_ASSERT_EQUAL(engine_step(b->engine, b->now, 64, &deadline), 1);
    b->fabric.serves = false;
    CU_ASSERT_EQUAL(engine_step(b->engine, b->now, 64, &deadline), 0);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a sibling is asked", a_sibling_is_asked},
        {"a sibling asks", a_sibling_asks},
        {"a context of this engine", a_context_of_this_engine},
        {"the processor is shown", the_processor_is_shown},
        {"senseless records", senseless_records},
        {"fences for clients", fences_for_clients},
        {"served reads are work", served_reads_are_work},
        CU_TEST_INFO_NULL,
    };

    return suite_run("wakes", tests);
}
