/*
 * Histograms: buckets at their edges, and, over random values, their quantiles compared with
 * those of the values themselves. The seed is printed; one argument replays another. One thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/watch/histogram.h"

enum { ROUNDS = 200, VALUES_MAX = 3000 };

/* Set by main, then by each test. */
static uint64_t seed = 1;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Draws a value of any size; small ones are as likely as large ones. */
static uint64_t random_value(void)
{
    return next_random() >> (next_random() % 64);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Guards that buckets follow one another without a gap, in order. */
static void edges(void)
{
    uint64_t largest = (UINT64_C(1) << HISTOGRAM_POWERS) - 1;

    for (uint32_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t upper = histogram_upper(i);

        CU_ASSERT_EQUAL(histogram_bucket(upper), i);
        CU_ASSERT_EQUAL(histogram_bucket(upper + 1), i + 1);
    }
    CU_ASSERT_EQUAL(histogram_upper(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
    CU_ASSERT_EQUAL(histogram_bucket(0), 0);
    CU_ASSERT_EQUAL(histogram_bucket(largest), HISTOGRAM_BUCKETS - 1);
    CU_ASSERT_EQUAL(histogram_bucket(largest + 1), HISTOGRAM_BUCKETS - 1);
    CU_ASSERT_EQUAL(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void empty(void)
{
    static const struct histogram h;

    CU_ASSERT_EQUAL(h.count, 0);
    CU_ASSERT_EQUAL(histogram_quantile(&h, 500000), 0);
    CU_ASSERT_EQUAL(histogram_quantile(&h, 1000000), 0);
}

/* Guards that a percentile is not less than the value itself, and less than an eighth more. */
static void quantiles(void)
{
    static const uint32_t per_million[] = {1, 500000, 900000, 990000, 999000, 999999, 1000000};
    static uint64_t values[VALUES_MAX];
    static struct histogram h;
    uint64_t limit = (UINT64_C(1) << (HISTOGRAM_POWERS - 1)) - 1;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t count = 1 + next_random() % VALUES_MAX;

        memset(&h, 0, sizeof(h));
        for (uint64_t i = 0; i < count; i++) {
            values[i] = random_value() & limit;
            histogram_record(&h, values[i], 1);
        }
        qsort(values, count, sizeof(values[0]), compare);
        for (size_t q = 0; q < sizeof(per_million) / sizeof(per_million[0]); q++) {
            uint64_t rank = (count * per_million[q] + 999999) / 1000000;
            uint64_t exact = values[rank - 1], found = histogram_quantile(&h, per_million[q]);

            CU_ASSERT(found >= exact && found - exact <= exact / HISTOGRAM_PARTS);
        }
        CU_ASSERT_EQUAL(histogram_quantile(&h, 1000000), values[count - 1]);
        CU_ASSERT_EQUAL(h.max, values[count - 1]);
        CU_ASSERT_EQUAL(h.count, count);
    }
}

/* Guards that counts up to the end of a bucket are those of the values. */
static void counts_to(void)
{
    static struct histogram h;
    static uint64_t values[VALUES_MAX];

    memset(&h, 0, sizeof(h));
    for (uint32_t i = 0; i < VALUES_MAX; i++) {
        values[i] = random_value();
        histogram_record(&h, values[i], 1);
    }
    for (uint32_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        uint64_t upper = histogram_upper(b), below = 0;

        for (uint32_t i = 0; i < VALUES_MAX; i++)
            below += values[i] <= upper;
        CU_ASSERT_EQUAL(histogram_count_to(&h, upper), below);
    }
}

/* Guards that parts which are merged in any order equal the whole, and that `times` adds one value
 * that many times. */
static void merged(void)
{
    static struct histogram whole, parts[3], sum, alike;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t value = random_value() >> 20, times = 1 + next_random() % 64;

        histogram_record(&whole, value, times);
        histogram_record(&parts[next_random() % 3], value, times);
        for (uint64_t i = 0; i < times; i++)
            histogram_record(&alike, value, 1);
    }
    for (uint32_t i = 3; i-- > 0;)
        histogram_merge(&sum, &parts[i]);
    CU_ASSERT_EQUAL(memcmp(&sum, &whole, sizeof(sum)), 0);
    CU_ASSERT_EQUAL(memcmp(&alike, &whole, sizeof(alike)), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"edges", edges},         {"empty", empty},   {"quantiles", quantiles},
                           {"counts to", counts_to}, {"merged", merged}, CU_TEST_INFO_NULL};

    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : UINT64_C(20261121);
    printf("seed %" PRIu64 "\n", seed);
    return suite_run("histogram", tests);
}
