/*
 * Operations in flight, as views show them: flow by flow, in parts of any length. One engine whose
 * peer is the test (record_bench.h). One thread.
 */
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/suite.h"

enum { PUTS = 10 };

/* Guards that each operation is shown once, in the order of its flow, however few rows there is
 * room for, and that a caller may pass over the rest of a flow. */
static void parts_of_a_flow(void)
{
    for (int room = 1; room <= PUTS + 1; room++) {
        const struct submit_record put = {.size = sizeof(struct submit_record),
                                          .kind = SUBMIT_PUT,
                                          .reserve = event_bytes(0),
                                          .length = 64};
        struct bench *b = linked_bench();
        struct view_op rows[PUTS + 1];
        struct engine_ops_at at = {0};
        uint64_t next = 0;
        int got, seen = 0;

        bench_remote(b);
        for (int i = 0; i < PUTS; i++)
            bench_submit(b, &put);
        while ((got = engine_view_ops(b->engine, &at, rows, room)) > 0) {
            CU_ASSERT(got <= room);
            for (int i = 0; i < got; i++, seen++) {
                CU_ASSERT(seen == 0 || rows[i].sequence >= next);
                CU_ASSERT_EQUAL(rows[i].client, 0);
                next = rows[i].sequence + 1;
            }
        }
        CU_ASSERT_EQUAL(seen, PUTS);
        at = (struct engine_ops_at){0};
        CU_ASSERT(engine_view_ops(b->engine, &at, rows, 1) == 1);
        at = (struct engine_ops_at){.flow = at.flow + 1};
        CU_ASSERT_EQUAL(engine_view_ops(b->engine, &at, rows, 1), 0);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"parts of a flow", parts_of_a_flow}, CU_TEST_INFO_NULL};

    return suite_run("view", tests);
}
