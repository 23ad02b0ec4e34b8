/* Opens benches (record_bench.h) whose link to node 1 is up. One thread. */
#ifndef PWC_TESTS_ENGINE_LINKED_BENCH_H
#define PWC_TESTS_ENGINE_LINKED_BENCH_H

#include <CUnit/CUnit.h>
#include "tests/engine/bench/record_bench.h"
#include "proto/wire_abi.h"

#define RING 8192u /* bytes of each ring of the session */

/* Nothing is bound yet. `with_self` as in struct bench_shape. */
static inline struct bench *unbound_bench(bool with_self)
{
    const struct bench_shape shape = {
        .ring_bytes = RING, .region_bytes = 4096, .with_self = with_self};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    return b;
}

/* Opens a bench with a flow from node 1 to the client. */
static inline struct bench *linked_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_bind(b, 5);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

#endif
