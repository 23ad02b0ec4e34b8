/* Parts of pwcperf: the command line, rows, patterns, samples, and the plan and ids of the stress
 * test. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tools/pwcperf/heading.h"
#include "tools/pwcperf/options.h"
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/row.h"
#include "tools/pwcperf/samples.h"
#include "tools/pwcperf/stress/stress.h"

#define WORDS_MAX 8

/* Parses words (NULL-terminated), and hides the output. */
static int parse(struct options *out, const char *const *words)
{
    char *argv[WORDS_MAX + 2] = {"pwcperf"};
    int argc = 1, shown = dup(STDERR_FILENO);
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    optind = 0; /* makes getopt start again */
    FILE *silent = freopen("/dev/null", "w", stderr);
    int rc = options_parse(out, argc, argv);
    if (silent != NULL)
        fflush(stderr);
    dup2(shown, STDERR_FILENO);
    close(shown);
    return rc;
}

static void test_command_lines(void)
{
    static const struct {
        const char *words[WORDS_MAX];
        int expected;
    } rows[] = {
        {{NULL}, -EINVAL},
        {{"put_lat"}, 0},
        {{"put"}, -EINVAL},
        {{"put_lat", "get_lat"}, -EINVAL},
        {{"put_lat", "--size", "0,8,4k,1024m"}, 0},
        {{"put_lat", "--size", "1025m"}, -EINVAL},
        {{"put_lat", "--size", "8,"}, -EINVAL},
        {{"put_lat", "--size", "-1"}, -EINVAL},
        {{"put_lat", "--size", "8x"}, -EINVAL},
        {{"put_lat", "--size", "18446744073709551616"}, -EINVAL},
        {{"put_bw", "--window", "4096"}, 0},
        {{"put_bw", "--window", "0"}, -EINVAL},
        {{"put_bw", "--window", "4097"}, -EINVAL},
        {{"put_bw", "--no-event"}, 0},
        {{"put_rate", "--no-event", "--check"}, 0},
        {{"put_lat", "--no-event"}, -EINVAL},
        {{"get_bw", "--no-event"}, -EINVAL},
        {{"put_bw", "--slots", "1"}, 0},
        {{"put_bw", "--slots", "0"}, -EINVAL},
        {{"put_bw", "--slots", "4097"}, -EINVAL},
        {{"inject"}, 0},
        {{"inject", "--depth", "1,4k"}, 0},
        {{"inject", "--depth", "0"}, -EINVAL},
        {{"inject", "--depth", "4097"}, -EINVAL},
        {{"inject", "--depth", "1,"}, -EINVAL},
        {{"inject", "--depth", ""}, -EINVAL},
        {{"inject", "--deep"}, -EINVAL},
        {{"put_bw", "--protocol", "ordered"}, 0},
        {{"inject", "--protocol", "reassemble"}, 0},
        {{"put_lat", "--protocol", "chain"}, 0},
        {{"put_lat", "--protocol", "auto"}, -EINVAL},
        {{"put_lat", "--protocol", "chai"}, -EINVAL},
        {{"signal_lat", "--protocol", "chain"}, 0},
        {{"signal_lat", "--no-event"}, -EINVAL},
        {{"get_lat", "--protocol", "chain"}, -EINVAL},
        {{"stress", "--protocol", "chain"}, -EINVAL},
        {{"am_lat"}, 0},
        {{"am_lat", "--kind", "long", "--protocol", "chain"}, 0},
        {{"am_lat", "--kind", "put"}, -EINVAL},
        {{"am_lat", "--kind", "longer"}, -EINVAL},
        {{"am_lat", "--kind", "medium", "--protocol", "chain"}, -EINVAL},
        {{"am_lat", "--protocol", "chain"}, -EINVAL},
        {{"am_lat", "--size", "8"}, -EINVAL},
        {{"am_lat", "--size", "0"}, 0},
        {{"am_lat", "--both"}, -EINVAL},
        {{"am_bw", "--both"}, 0},
        {{"am_bw", "--kind", "medium", "--size", "8,64"}, 0},
        {{"inject", "--kind", "put"}, 0},
        {{"inject", "--kind", "short"}, 0},
        {{"inject", "--kind", "short", "--size", "1"}, -EINVAL},
        {{"inject", "--kind", "short", "--protocol", "chain"}, -EINVAL},
        {{"put_lat", "--kind", "put"}, -EINVAL},
        {{"stress", "--kind", "long"}, -EINVAL},
        {{"put_bw", "--both"}, -EINVAL},
        {{"overlap", "--size", "8,4k", "--protocol", "chain"}, 0},
        {{"overlap", "--kind", "put"}, 0},
        {{"overlap", "--kind", "fetch"}, 0},
        {{"overlap", "--kind", "fetch", "--size", "16"}, -EINVAL},
        {{"overlap", "--kind", "fetch", "--protocol", "chain"}, -EINVAL},
        {{"overlap", "--kind", "short"}, -EINVAL},
        {{"inject", "--kind", "fetch"}, -EINVAL},
        {{"fetch_lat", "--contend"}, 0},
        {{"fetch_rate", "--size", "4"}, -EINVAL},
        {{"gups", "--window", "1024"}, 0},
        {{"gups", "--contend"}, -EINVAL},
        {{"gups", "--protocol", "chain"}, -EINVAL},
        {{"overlap", "--both"}, -EINVAL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options options;
        int rc = parse(&options, rows[i].words);
        if (rc != rows[i].expected)
            printf("\n%s %s %s: %d, not %d\n", rows[i].words[0], rows[i].words[1], rows[i].words[2],
                   rc, rows[i].expected);
        CU_ASSERT_EQUAL(rc, rows[i].expected);
    }
}

static void test_lists(void)
{
    static const uint64_t sizes[] = {0, 8, 4096, 2 << 20},
                          depths[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
    struct options o;
    CU_ASSERT_EQUAL_FATAL(parse(&o, (const char *[]){"inject", "--size", "0,8,4k,2m", NULL}), 0);
    CU_ASSERT_EQUAL_FATAL(o.size_count, sizeof(sizes) / sizeof(sizes[0]));
    CU_ASSERT_EQUAL(memcmp(o.sizes, sizes, sizeof(sizes)), 0);
    CU_ASSERT_EQUAL_FATAL(o.depth_count, sizeof(depths) / sizeof(depths[0]));
    CU_ASSERT_EQUAL(memcmp(o.depths, depths, sizeof(depths)), 0);
}

/* Checks the size that a test measures where --size is left out. */
static void test_default_sizes(void)
{
    static const struct {
        const char *words[WORDS_MAX];
        size_t count;
        uint64_t first, last;
    } rows[] = {
        {{"put_lat"}, 7, 1, 1 << 20},
        {{"overlap"}, 1, 8, 8},
        {{"am_lat"}, 1, 0, 0},
        {{"am_lat", "--kind", "medium"}, 5, 8, 4096},
        {{"am_lat", "--kind", "long"}, 7, 1, 1 << 20},
        {{"am_bw", "--kind", "long"}, 5, 64, 1 << 20},
        {{"inject"}, 6, 8, 2 << 20},
        {{"inject", "--kind", "short"}, 1, 0, 0},
        {{"inject", "--kind", "long"}, 6, 8, 2 << 20},
        {{"am_lat", "--kind", "long", "--size", "16"}, 1, 16, 16},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options o;
        CU_ASSERT_EQUAL_FATAL(parse(&o, rows[i].words), 0);
        CU_ASSERT_EQUAL_FATAL(o.size_count, rows[i].count);
        CU_ASSERT_EQUAL(o.sizes[0], rows[i].first);
        CU_ASSERT_EQUAL(o.sizes[o.size_count - 1], rows[i].last);
    }
}

/* Checks the window where --window is left out, and the line above a table. */
static void test_windows(void)
{
    static const struct {
        const char *words[WORDS_MAX];
        uint64_t size, window;
        const char *heading;
    } rows[] = {
        {{"put_rate"}, 8, 2048, "put_rate, 2 ranks, 2 nodes, stream, window 2048, bound"},
        {{"put_rate", "--window", "64"}, 8, 64, "stream, window 64, bound"},
        {{"put_bw"}, 64, 512, "stream, window 8 to 512, bound"},
        {{"put_bw"}, 64 << 10, 128, "stream, window 8 to 512, bound"},
        {{"put_bw", "--size", "1m"}, 1 << 20, 8, "put_bw, 2 ranks, 2 nodes, stream, window 8, bo"},
        {{"put_bw"}, 0, 512, NULL},
        {{"put_bw"}, 1 << 30, 8, NULL},
        {{"get_bw"}, 64, 64, "window 64, bound"},
        {{"gups"}, 8, 1024, "window 1024, bound"},
        {{"share"}, 8, 64, "window 64, bound"},
        {{"put_lat"}, 8, 64, "put_lat, 2 ranks, 2 nodes, stream, bound"},
        {{"stress"}, 0, 64, NULL},
    };
    char line[256];
    struct options o;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_EQUAL_FATAL(parse(&o, rows[i].words), 0);
        CU_ASSERT_EQUAL(options_window(&o, rows[i].size), rows[i].window);
        heading_format(line, sizeof(line), &o, 2, 2, "stream", true);
        CU_ASSERT_EQUAL(strncmp(line, "# pwcperf 0.", 12), 0);
        CU_ASSERT_TRUE(rows[i].heading == NULL || strstr(line, rows[i].heading) != NULL);
    }
    CU_ASSERT_EQUAL_FATAL(parse(&o, (const char *[]){"put_lat", NULL}), 0);
    heading_format(line, sizeof(line), &o, 4, 0, NULL, false); /* the daemon does not answer */
    CU_ASSERT_PTR_NOT_NULL(strstr(line, " put_lat, 4 ranks, not bound"));
    heading_format(line, sizeof(line), &o, 2, 1, "shared memory", false);
    CU_ASSERT_PTR_NOT_NULL(strstr(line, ", 1 node, shared memory, not bound"));
}

/* Each row is an object on a line of its own, with each key once. */
static void test_rows_as_json(void)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *expected;
    } rows[] = {
        {{"get_lat", "--json"},
         "{\"test\":\"get_lat\",\"size\":8,\"iters\":100,\"min_us\":0.050,\"p50_us\":0.060,"
         "\"p99_us\":0.070,\"mean_us\":0.080,\"rate_mps\":2.000000,\"bw_mbps\":16.000}\n"},
        {{"put_lat", "--json"},
         "{\"test\":\"put_lat\",\"protocol\":\"auto\",\"size\":8,\"iters\":100,\"min_us\":0.050,"
         "\"p50_us\":0.060,"
         "\"p99_us\":0.070,\"mean_us\":0.080,\"rate_mps\":2.000000,\"bw_mbps\":16.000}\n"},
        {{"overlap", "--json"},
         "{\"test\":\"overlap\",\"kind\":\"put\",\"protocol\":\"auto\",\"size\":8,\"iters\":100,"
         "\"min_us\":0.050,"
         "\"p50_us\":0.060,\"p99_us\":0.070,\"mean_us\":0.080,\"loss_percent\":1.50}\n"},
        {{"am_lat", "--json", "--kind", "long"},
         "{\"test\":\"am_lat\",\"kind\":\"long\",\"protocol\":\"auto\",\"size\":8,\"iters\":100,"
         "\"min_us\":0.050,\"p50_us\":0.060,\"p99_us\":0.070,\"mean_us\":0.080,"
         "\"rate_mps\":2.000000,\"bw_mbps\":16.000}\n"},
        {{"inject", "--json", "--protocol", "chain"},
         "{\"test\":\"inject\",\"kind\":\"put\",\"protocol\":\"chain\",\"depth\":64,\"size\":8,"
         "\"iters\":100,\"min_"
         "ns\":50.0,"
         "\"p50_ns\":60.0,\"p99_ns\":70.0,\"mean_ns\":80.0,\"eagain\":3}\n"},
    };
    static const struct result result = {.size = 8,
                                         .iters = 100,
                                         .min_us = 0.05,
                                         .p50_us = 0.06,
                                         .p99_us = 0.07,
                                         .mean_us = 0.08,
                                         .rate_mps = 2,
                                         .bw_mbps = 16,
                                         .depth = 64,
                                         .loss_percent = 1.5,
                                         .eagain = 3};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct options options;
        char *text = NULL;
        size_t length;
        FILE *to = open_memstream(&text, &length);
        CU_ASSERT_PTR_NOT_NULL_FATAL(to);
        CU_ASSERT_EQUAL(parse(&options, rows[i].words), 0);
        row_print(to, &options, &result);
        fclose(to);
        CU_ASSERT_STRING_EQUAL(text, rows[i].expected);
        free(text);
    }
}

/* A table has a dash in columns that its test does not measure. */
static void test_row_of_a_table(void)
{
    static const char *const words[WORDS_MAX] = {"fetch_rate"};
    static const struct result result = {.size = 8, .iters = 100, .mean_us = 0.05, .rate_mps = 20};
    struct options options;
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    CU_ASSERT_EQUAL(parse(&options, words), 0);
    row_print(to, &options, &result);
    fclose(to);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nfetch_rate             8       100          -          -"
                                        "          -       0.05    20.0000          -\n"));
    free(text);
}

static void test_pattern_identifies_every_byte(void)
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

/* A piece of the pattern, made from the middle, is the same as that part of the whole. */
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

/* With more samples than there is room for, some are dropped, and the rest is still spread over the
 * whole run. */
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

/* All ranks derive the same plan, and the plan has every kind of operation that the stress test
 * promises. */
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
        /* each operation has an event that shows its end */
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
    struct pwc_event event = {.id_size = id.size};
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
        {STRESS_COMPARED, 3, STRESS_OPS_MAX, 0}, /* all operations are compared */
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
            /* from another origin */
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
    CU_TestInfo tests[] = {{"command lines", test_command_lines},
                           {"lists", test_lists},
                           {"default sizes", test_default_sizes},
                           {"windows, and the line above a table", test_windows},
                           {"rows as JSON", test_rows_as_json},
                           {"a row of a table", test_row_of_a_table},
                           {"a pattern identifies every byte", test_pattern_identifies_every_byte},
                           {"a pattern by position", test_pattern_by_position},
                           {"samples", test_samples},
                           {"samples beyond the room", test_samples_beyond_room},
                           {"the plan covers what it promises", test_plan_covers},
                           {"ids", test_ids},
                           CU_TEST_INFO_NULL};

    return suite_run("pwcperf", tests);
}
