/* What pwcperf relies on: patterns, samples, and the stress's plan and ids. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "pattern.h"
#include "samples.h"
#include "stress.h"

static void test_pattern_tells_every_byte(void)
{
    unsigned char bytes[64];
    static const size_t sizes[] = {0, 1, 7, 8, 9, 16, 63, 64};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (uint64_t from = 0; from < 9; from++) {
            size_t size = sizes[s];
            pattern_fill(bytes, size, 5, from);
            CU_ASSERT_EQUAL(pattern_check(bytes, size, 5, from), size);
            for (size_t i = 0; i < size; i++) {
                bytes[i] ^= 1;
                CU_ASSERT_EQUAL(pattern_check(bytes, size, 5, from), i);
                bytes[i] ^= 1;
            }
        }
    }
}

/* A piece from the middle of a stream is what the whole stream has there. */
static void test_pattern_by_position(void)
{
    unsigned char whole[256], piece[64];
    pattern_fill(whole, sizeof(whole), 77, 0);
    for (uint64_t from = 0; from < sizeof(whole) - sizeof(piece); from++) {
        pattern_fill(piece, sizeof(piece), 77, from);
        CU_ASSERT_EQUAL(memcmp(piece, whole + from, sizeof(piece)), 0);
    }
}

static void test_samples(void)
{
    static const struct {
        uint64_t count;
        double p50, p99;
    } cases[] = {{1, 1, 1}, {2, 1, 2}, {100, 50, 99}, {101, 51, 100}, {1000, 500, 990}};
    struct samples samples;
    CU_ASSERT_EQUAL_FATAL(samples_open(&samples), 0);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct result result = {0};
        samples_clear(&samples);
        for (uint64_t i = cases[c].count; i > 0; i--)
            samples_add(&samples, i * 1000);
        samples_summary(&samples, 1, &result);
        CU_ASSERT_DOUBLE_EQUAL(result.min_us, 1, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(result.p50_us, cases[c].p50, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(result.p99_us, cases[c].p99, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(result.mean_us, ((double)cases[c].count + 1) / 2, 1e-9);
        samples_summary(&samples, 2, &result);
        CU_ASSERT_DOUBLE_EQUAL(result.min_us, 0.5, 1e-9);
    }
    samples_close(&samples);
}

/* More than there is room for: thinned out, but spread over the whole run. */
static void test_samples_beyond_room(void)
{
    struct samples samples;
    struct result result = {0};
    uint64_t count = UINT64_C(5) << 20;
    CU_ASSERT_EQUAL_FATAL(samples_open(&samples), 0);
    for (uint64_t i = 0; i < count; i++)
        samples_add(&samples, i * 1000);
    CU_ASSERT(samples.count <= samples.room);
    CU_ASSERT(samples.count > samples.room / 2);
    samples_summary(&samples, 1, &result);
    CU_ASSERT_DOUBLE_EQUAL(result.p50_us / (double)count, 0.5, 0.001);
    CU_ASSERT_DOUBLE_EQUAL(result.p99_us / (double)count, 0.99, 0.001);
    samples_close(&samples);
}

static const struct stress_shape shape = {.seed = 3, .ranks = 8, .ops = 20000};

/* The plan is one for all, and has everything in it that the stress promises. */
static void test_plan_covers(void)
{
    uint64_t targets[8] = {0}, gets = 0, empty = 0, large = 0, by_bytes = 0, flags = 0;
    for (uint64_t i = 0; i < shape.ops; i++) {
        struct stress_op op, again;
        memset(&op, 0, sizeof(op));
        memset(&again, 0, sizeof(again));
        stress_plan(&shape, 2, i, &op);
        stress_plan(&shape, 2, i, &again);
        CU_ASSERT_EQUAL(memcmp(&op, &again, sizeof(op)), 0);
        CU_ASSERT(op.target < shape.ranks && op.size <= STRESS_SIZE_MAX);
        CU_ASSERT(op.lid_size <= PWC_CID_MAX && op.rid_size <= PWC_CID_MAX);
        /* nothing is without any event that tells its end */
        CU_ASSERT_NOT_EQUAL(op.flags & (PWC_NO_LCE | PWC_NO_RCE), PWC_NO_LCE | PWC_NO_RCE);
        CU_ASSERT(!(op.get && (op.flags & PWC_NO_LCE)));
        targets[op.target]++;
        gets += op.get;
        empty += op.size == 0;
        large += op.size > (1 << 20);
        by_bytes += op.rid_size > 0;
        flags |= op.flags;
    }
    for (size_t i = 0; i < 8; i++)
        CU_ASSERT(targets[i] > shape.ops / 16);
    CU_ASSERT(gets > shape.ops / 8 && gets < shape.ops / 2);
    CU_ASSERT(empty > 0 && large > 0 && by_bytes > shape.ops / 8);
    CU_ASSERT_EQUAL(flags, PWC_NO_LCE | PWC_NO_RCE | PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED);
}

/* Turns an id into the event that would carry it. */
static struct pwc_event event_of(pwc_cid id)
{
    struct pwc_event event = {.size = id.size};
    if (id.size == 0)
        event.id = id.value;
    else
        event.data = id.data;
    return event;
}

static void test_ids(void)
{
    static const uint32_t sizes[] = {0, STRESS_ID_BYTES_MIN, STRESS_ID_BYTES_MIN + 1, PWC_CID_MAX};
    static const struct stress_id ids[] = {
        {STRESS_OPERATION, 0, 0, 0},
        {STRESS_ENDED, 7, STRESS_OPS_MAX - 1, STRESS_SLICE - 1},
        {STRESS_COMPARED, 3, 12345, 678},
    };
    char room[PWC_CID_MAX];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
            struct pwc_event event = event_of(stress_id_encode(&shape, &ids[i], sizes[s], room));
            struct stress_id out = {.origin = ids[i].origin};
            CU_ASSERT_EQUAL(stress_id_decode(&shape, &event, &out), 0);
            CU_ASSERT_EQUAL(out.kind, ids[i].kind);
            CU_ASSERT_EQUAL(out.number, ids[i].number);
            CU_ASSERT_EQUAL(out.offset, ids[i].offset);
            /* from somebody else */
            out.origin = ids[i].origin + 1;
            CU_ASSERT_EQUAL(stress_id_decode(&shape, &event, &out), -EBADMSG);
            /* one bit wrong */
            out.origin = ids[i].origin;
            event.id ^= UINT64_C(1) << 30;
            room[sizes[s] > 0 ? sizes[s] - 1 : 0] ^= 1;
            CU_ASSERT_EQUAL(stress_id_decode(&shape, &event, &out), -EBADMSG);
        }
    }
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("pwcperf", NULL, NULL);
    CU_add_test(suite, "a pattern tells every byte", test_pattern_tells_every_byte);
    CU_add_test(suite, "a pattern by position", test_pattern_by_position);
    CU_add_test(suite, "samples", test_samples);
    CU_add_test(suite, "samples beyond the room", test_samples_beyond_room);
    CU_add_test(suite, "the plan covers what it promises", test_plan_covers);
    CU_add_test(suite, "ids", test_ids);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures > 0;
}
