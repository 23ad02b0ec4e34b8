/*
 * Entries that leave a table in parts, or that leave an arena that is not whole: a region that is
 * withdrawn under many remotes ends some of them in each step; and a flow or inflow that its
 * session's lists lack can still end; and handles that are given again. One thread.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/suite.h"

enum {
    ENTRIES = 4096,
    BOUND = 700,     /* remotes of the region: their answers fit the ring */
    STEP_MOST = 256, /* remotes that one step may end at most */
};

static struct bench *large_bench(void)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = ENTRIES};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    return b;
}

/* Binds BOUND remotes by one flow; the last one has another key. */
static void bind_many(struct bench *b)
{
    const struct engine_key key = BENCH_KEY;
    struct engine_key other = BENCH_KEY;

    other.slot++;
    for (uint32_t i = 0; i < BOUND; i++) {
        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, i + 1 < BOUND ? &key : &other, i), 0);
        if (i % 16 == 0)
            bench_ack(b);
        bench_bound(b, i, 0, 3);
        CU_ASSERT_EQUAL_FATAL(peek_remote(b->engine, i).state, REMOTE_READY);
    }
}

/* Guards a withdrawal of a region with many remotes: the answer waits for the last of them, and no
 * remote of another region ends. */
static void revoked_in_pieces(void)
{
    const struct engine_key key = BENCH_KEY;
    struct wire_region revoke = {.head = {.words = sizeof(revoke) / 8, .kind = WIRE_REVOKE},
                                 .slot = key.slot,
                                 .generation = key.generation};
    struct bench *b = large_bench();
    uint32_t revoked = 0;

    bind_many(b);
    b->fabric.kinds = 0;
    bench_send(b, &revoke, sizeof(revoke)); /* this makes two steps */
    for (uint32_t i = 0; i < BOUND; i++)
        revoked += peek_remote(b->engine, i).state == REMOTE_REVOKED;
    CU_ASSERT(revoked > 0 && revoked <= 2 * STEP_MOST);
    CU_ASSERT_FALSE(b->fabric.kinds & 1u << WIRE_REVOKED);
    bench_steps(b, BOUND / STEP_MOST + 1);
    CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_REVOKED);
    for (uint32_t i = 0; i < BOUND; i++)
        CU_ASSERT_EQUAL(peek_remote(b->engine, i).state,
                        i + 1 < BOUND ? REMOTE_REVOKED : REMOTE_READY);
    bench_free(b);
}

/* Guards the end of a context whose flow has more remotes than one step goes through, also where
 * the daemon dies between two of these steps. */
static void closed_in_pieces(void)
{
    for (uint32_t restarts = 0; restarts < 2; restarts++) {
        uint64_t owner = owner_of(OWNER_SESSION, 0);
        struct bench *b = large_bench();

        bind_many(b);
        engine_session_close(b->engine, 0);
        bench_steps(b, 1);
        CU_ASSERT_NOT_EQUAL(peek_remote_of(b->engine, owner), NONE);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).state, SESSION_CLOSING);
        if (restarts)
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        bench_steps(b, 10);
        CU_ASSERT_EQUAL(peek_remote_of(b->engine, owner), NONE);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).state, SESSION_FREE);
        CU_ASSERT_EQUAL(peek_census(b->engine).remotes, 0);
        bench_free(b);
    }
}

/* Guards an arena that is not whole: an inflow and a flow that their session's lists lack still
 * end. */
static void torn_lists(void)
{
    struct bench *b = linked_bench();

    bench_remote(b);
    CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, 0).state, INFLOW_OPEN);
    CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).state, FLOW_OPEN);
    poke_lists(b->engine, 0);
    bench_note(b, WIRE_CLOSE, bench_inflow(b), 0);
    CU_ASSERT_EQUAL(peek_inflow(b->engine, 0).state, INFLOW_FREE);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 0), 0);
    CU_ASSERT_EQUAL(peek_flow(b->engine, 0).state, FLOW_CLOSING);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Opens context 1 and a second segment, which have handle 1, and finds them. */
static void open_seconds(struct bench *b, struct session_shared *memory, void *segment,
                         struct engine_session_found *session, struct engine_segment_found *found)
{
    const struct session_sizes sizes = {RING, RING, RING, RING, RING};

    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, memory, &sizes, 0), 1);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(b->engine, 0, segment, 4096), 1);
    CU_ASSERT_EQUAL(engine_session_find(b->engine, 1, session), 0);
    CU_ASSERT_EQUAL(engine_segment_find(b->engine, 1, found), 0);
}

/* Guards that a handle that is given again has another generation, which a restart keeps: the names
 * of what the caller keeps for it have both. */
static void handles_again(void)
{
    const struct session_sizes sizes = {RING, RING, RING, RING, RING};
    struct session_shared *memory = calloc(1, session_bytes(&sizes));
    struct engine_session_found sessions[2];
    struct engine_segment_found segments[2];
    static uint8_t segment[4096];
    struct bench *b = large_bench();

    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    open_seconds(b, memory, segment, &sessions[0], &segments[0]);
    engine_session_close(b->engine, 1);
    CU_ASSERT_EQUAL(engine_segment_close(b->engine, 0, 1), 0);
    bench_steps(b, 8);
    open_seconds(b, memory, segment, &sessions[1], &segments[1]);
    CU_ASSERT_NOT_EQUAL(sessions[1].generation, sessions[0].generation);
    CU_ASSERT_NOT_EQUAL(segments[1].generation, segments[0].generation);
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    CU_ASSERT_EQUAL(engine_session_find(b->engine, 1, &sessions[0]), 0);
    CU_ASSERT_EQUAL(engine_segment_find(b->engine, 1, &segments[0]), 0);
    CU_ASSERT_EQUAL(sessions[1].generation, sessions[0].generation);
    CU_ASSERT_EQUAL(segments[1].generation, segments[0].generation);
    bench_free(b);
    free(memory);
}

int main(void)
{
    CU_TestInfo tests[] = {{"a withdrawal in pieces", revoked_in_pieces},
                           {"the end of a context in pieces", closed_in_pieces},
                           {"lists that are torn", torn_lists},
                           {"handles that are given again", handles_again},
                           CU_TEST_INFO_NULL};

    return suite_run("leaving", tests);
}
