/*
 * The pieces of a vector or a shape: which are joined, which are left out, how far they reach, and
 * that a shape's pieces are where a plain loop finds them. Nothing is submitted.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>
#include "clientlib/calls/pieces.h"
#include "tests/count.h"
#include "tests/suite.h"

/* The address at which local memory begins. It is not mapped, because no piece is touched here. */
#define BASE  ((uintptr_t)1 << 40)
#define AT(n) ((void *)(BASE + (n)))
#define FAR   ((size_t)PTRDIFF_MAX)

/* ---- lists ----------------------------------------------------------------------------------- */

static bool same(const struct pwc_piece *a, const struct pwc_piece *b)
{
    return a->off == b->off && a->local == b->local && a->len == b->len;
}

/* Whether the list's pieces, after joining, are the expected ones. */
static bool makes(const struct pwc_piece *list, size_t n, const struct pwc_piece *expected,
                  size_t count)
{
    struct pieces pieces;
    struct pwc_piece piece;
    size_t i = 0;
    bool right = true;

    pieces_of_vector(&pieces, list, n);
    for (; pieces_next(&pieces, &piece); i++)
        right = right && i < count && same(&piece, &expected[i]);
    return right && i == count && !pieces_next(&pieces, &piece);
}

static void test_lists(void)
{
    static const struct {
        const char *what;
        size_t n, count;
        struct pwc_piece list[4], expected[4];
    } rows[] = {
        {"one", 1, 1, {{8, AT(0), 4}}, {{8, AT(0), 4}}},
        {"one without bytes", 1, 0, {{8, AT(0), 0}}, {{0}}},
        {"none with bytes", 3, 0, {{8, AT(0), 0}, {9, NULL, 0}, {UINT64_MAX, NULL, 0}}, {{0}}},
        {"side by side", 2, 1, {{8, AT(0), 4}, {12, AT(4), 6}}, {{8, AT(0), 10}}},
        {"side by side here only",
         2,
         2,
         {{8, AT(0), 4}, {13, AT(4), 6}},
         {{8, AT(0), 4}, {13, AT(4), 6}}},
        {"side by side there only",
         2,
         2,
         {{8, AT(0), 4}, {12, AT(5), 6}},
         {{8, AT(0), 4}, {12, AT(5), 6}}},
        {"the later one first",
         2,
         2,
         {{12, AT(4), 6}, {8, AT(0), 4}},
         {{12, AT(4), 6}, {8, AT(0), 4}}},
        {"three and one",
         4,
         2,
         {{0, AT(0), 1}, {1, AT(1), 1}, {2, AT(2), 1}, {9, AT(9), 1}},
         {{0, AT(0), 3}, {9, AT(9), 1}}},
        {"one and three",
         4,
         2,
         {{9, AT(9), 1}, {0, AT(0), 1}, {1, AT(1), 1}, {2, AT(2), 1}},
         {{9, AT(9), 1}, {0, AT(0), 3}}},
        {"two and two",
         4,
         2,
         {{0, AT(0), 2}, {2, AT(2), 2}, {8, AT(8), 2}, {10, AT(10), 2}},
         {{0, AT(0), 4}, {8, AT(8), 4}}},
        {"side by side over one without bytes",
         3,
         1,
         {{0, AT(0), 2}, {77, NULL, 0}, {2, AT(2), 2}},
         {{0, AT(0), 4}}},
        {"without bytes first and last",
         3,
         1,
         {{5, NULL, 0}, {0, AT(0), 2}, {2, AT(2), 0}},
         {{0, AT(0), 2}}},
        {"overlapping", 2, 2, {{0, AT(0), 4}, {2, AT(2), 4}}, {{0, AT(0), 4}, {2, AT(2), 4}}},
        {"twice the same", 2, 2, {{0, AT(0), 4}, {0, AT(0), 4}}, {{0, AT(0), 4}, {0, AT(0), 4}}},
        /* Adjacent pieces are joined to a length that no region has, so a later check refuses
         * them. */
        {"as long as can be", 2, 1, {{0, AT(0), FAR}, {FAR, AT(FAR), 1}}, {{0, AT(0), FAR + 1}}},
        {"longer than can be",
         2,
         2,
         {{2, AT(2), SIZE_MAX}, {1, AT(1), 1}},
         {{2, AT(2), SIZE_MAX}, {1, AT(1), 1}}},
    };

    CU_ASSERT(makes(NULL, 0, NULL, 0));
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!makes(rows[i].list, rows[i].n, rows[i].expected, rows[i].count))
            CU_FAIL(rows[i].what);
}

/* A list may have any length if its pieces can be joined. */
static void test_long_lists(void)
{
    static struct pwc_piece list[3 * PWC_PIECES_MAX];
    const struct pwc_piece whole = {100, AT(0), 5 * COUNT(list)};

    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = (struct pwc_piece){100 + 5 * i, AT(5 * i), 5};
    CU_ASSERT(makes(list, COUNT(list), &whole, 1));
    for (size_t i = 0; i < COUNT(list); i++)
        list[i].local = AT(6 * i);
    CU_ASSERT(makes(list, COUNT(list), list, COUNT(list)));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void test_no_shapes(void)
{
    static const struct {
        struct pwc_shape shape;
        int result;
    } rows[] = {
        {{.dims = 0, .element = 4}, -EINVAL},
        {{.dims = 5, .element = 4, .count = {1, 1, 1, 1}}, -EINVAL},
        {{.dims = UINT32_MAX, .element = 4}, -EINVAL},
        {{.dims = 1, .reserved = 1, .element = 4, .count = {1}}, -EINVAL},
        {{.dims = 1, .reserved = 1, .element = 0}, -EINVAL}, /* an empty shape is checked, too */
        {{.dims = 1, .element = 2, .count = {SIZE_MAX}, .local_stride = {2}, .remote_stride = {2}},
         -EMSGSIZE},
        {{.dims = 2,
          .element = 1,
          .count = {4, FAR},
          .local_stride = {PTRDIFF_MAX, 1},
          .remote_stride = {PTRDIFF_MAX, 1}},
         -EMSGSIZE},
        /* A stride is compared with a length that has no sign. */
        {{.dims = 1,
          .element = SIZE_MAX,
          .count = {2},
          .local_stride = {-1},
          .remote_stride = {-1}},
         0},
        /* Counts beyond the dimensions mean nothing. */
        {{.dims = 1, .element = 4, .count = {2, 0, SIZE_MAX, 7}}, 0},
    };
    struct pieces pieces;

    for (size_t i = 0; i < COUNT(rows); i++)
        CU_ASSERT_EQUAL(pieces_of_shape(&pieces, 0, AT(0), &rows[i].shape), rows[i].result);
}

/* Without elements, or without bytes, there is no piece, whatever the other fields are. */
static void test_empty_shapes(void)
{
    static const struct pwc_shape rows[] = {
        {.dims = 1, .element = 4, .count = {0}},
        {.dims = 1, .element = 0, .count = {7}},
        {.dims = 4, .element = 4, .count = {SIZE_MAX, SIZE_MAX, SIZE_MAX, 0}},
        {.dims = 4, .element = 4, .count = {0, 1, 1, 1}, .remote_stride = {PTRDIFF_MIN}},
        {.dims = 3, .element = 0, .count = {SIZE_MAX, SIZE_MAX, SIZE_MAX}},
    };
    struct pieces pieces;
    struct pwc_piece piece;

    for (size_t i = 0; i < COUNT(rows); i++) {
        CU_ASSERT_EQUAL(pieces_of_shape(&pieces, 0, NULL, &rows[i]), 0);
        CU_ASSERT_EQUAL(pieces.left, 0);
        CU_ASSERT_FALSE(pieces_next(&pieces, &piece));
    }
}

/* The elements that a plain loop visits, in the order of an array of C. */
static size_t visit(const struct pwc_shape *s, uint64_t off, struct pwc_piece *out, size_t most)
{
    size_t count[4] = {1, 1, 1, 1}, n = 0;
    ptrdiff_t remote[4] = {0}, local[4] = {0};

    for (uint32_t d = 0; d < s->dims; d++) {
        count[d] = s->count[d];
        remote[d] = s->remote_stride[d];
        local[d] = s->local_stride[d];
    }
    for (size_t i = 0; i < count[0]; i++)
        for (size_t j = 0; j < count[1]; j++)
            for (size_t k = 0; k < count[2]; k++)
                for (size_t l = 0; l < count[3] && n < most; l++) {
                    const ptrdiff_t at[] = {(ptrdiff_t)i, (ptrdiff_t)j, (ptrdiff_t)k, (ptrdiff_t)l};

                    out[n] = (struct pwc_piece){off, AT(0), s->element};
                    for (int d = 0; d < 4; d++) {
                        out[n].off += (uint64_t)(at[d] * remote[d]);
                        out[n].local = (char *)out[n].local + at[d] * local[d];
                    }
                    n++;
                }
    return n;
}

static void test_shapes(void)
{
    static const struct {
        const char *what;
        size_t pieces; /* number of pieces after joining */
        struct pwc_shape s;
    } rows[] = {
        {"one element", 1, {.dims = 1, .element = 3, .count = {1}}},
        {"one element in four dimensions", 1, {.dims = 4, .element = 3, .count = {1, 1, 1, 1}}},
        {"a column", 5, {1, 0, 3, {5}, {3}, {64}}},
        {"packed on both sides", 1, {1, 0, 3, {5}, {3}, {3}}},
        {"packed there", 5, {1, 0, 3, {5}, {64}, {3}}},
        {"mirrored there", 5, {1, 0, 3, {5}, {3}, {-3}}},
        {"mirrored here", 5, {1, 0, 3, {5}, {-3}, {3}}},
        {"mirrored on both sides", 5, {1, 0, 3, {5}, {-3}, {-3}}},
        {"one place here", 5, {1, 0, 3, {5}, {0}, {3}}},
        {"one place there", 5, {1, 0, 3, {5}, {3}, {0}}},
        {"overlapping", 5, {1, 0, 3, {5}, {2}, {2}}},
        {"rows of a block", 4, {2, 0, 2, {4, 8}, {16, 2}, {100, 2}}},
        {"a block that is whole", 1, {2, 0, 2, {4, 8}, {16, 2}, {16, 2}}},
        {"a block that is whole, in four dimensions",
         1,
         {4, 0, 1, {2, 3, 4, 5}, {60, 20, 5, 1}, {60, 20, 5, 1}}},
        {"columns first", 32, {2, 0, 2, {8, 4}, {2, 16}, {2, 16}}},
        {"one index outside", 8, {2, 0, 2, {1, 8}, {999, 4}, {-7, 5}}},
        {"one index inside", 8, {2, 0, 2, {8, 1}, {4, 999}, {5, -7}}},
        {"one index between", 8, {3, 0, 2, {4, 1, 2}, {40, 9, 4}, {50, -9, 5}}},
        {"two of four are one index", 6, {4, 0, 2, {1, 2, 1, 3}, {1, 90, 1, 4}, {2, 80, 3, 5}}},
        {"four dimensions", 120, {4, 0, 1, {2, 3, 4, 5}, {600, 150, 30, 3}, {-700, 160, -31, 4}}},
        {"all downwards", 24, {3, 0, 8, {2, 3, 4}, {-480, -160, -16}, {-960, -240, -24}}},
        {"the inner two join", 6, {4, 0, 2, {2, 3, 4, 5}, {500, 100, 10, 2}, {900, 200, 10, 2}}},
    };
    static struct pwc_piece all[128];
    const uint64_t off = 1 << 20;

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t elements = visit(&rows[i].s, off, all, COUNT(all)), n = 0, done = 0;
        struct pieces pieces;
        struct pwc_piece piece;
        bool right = true;

        CU_ASSERT_EQUAL_FATAL(pieces_of_shape(&pieces, off, AT(0), &rows[i].s), 0);
        for (; pieces_next(&pieces, &piece); n++) {
            /* A joined piece begins where its first element does. */
            right = right && done < elements && piece.off == all[done].off &&
                    piece.local == all[done].local && piece.len % rows[i].s.element == 0;
            done += piece.len / rows[i].s.element;
        }
        if (!right || n != rows[i].pieces || done != elements)
            CU_FAIL(rows[i].what);
        CU_ASSERT_FALSE(pieces_next(&pieces, &piece));
    }
}

/* Rows of a shape are taken in parts, of up to `most` elements, and are the elements of a plain
 * loop. */
static void test_rows(void)
{
    static const struct {
        uint32_t most, parts;
        struct pwc_shape s;
    } rows[] = {
        {1, 5, {1, 0, 3, {5}, {10}, {-7}}},
        {2, 3, {1, 0, 3, {5}, {10}, {-7}}},
        {5, 1, {1, 0, 3, {5}, {10}, {-7}}},
        {UINT32_MAX, 1, {1, 0, 3, {5}, {10}, {-7}}},
        {3, 8, {2, 0, 2, {4, 5}, {100, -4}, {-90, 6}}},
        {5, 4, {2, 0, 2, {4, 5}, {100, -4}, {-90, 6}}},
        {4, 24, {3, 0, 1, {3, 4, 5}, {600, 30, 3}, {-700, -31, 4}}},
        {9, 1, {2, 0, 2, {1, 5}, {100, 4}, {90, 6}}},
        {9, 1, {1, 0, 3, {5}, {3}, {3}}}, /* one piece */
        {9, 0, {1, 0, 3, {0}, {3}, {3}}},
    };
    static struct pwc_piece all[64];
    const uint64_t off = 1 << 20;

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t elements = visit(&rows[i].s, off, all, COUNT(all)), done = 0;
        uint32_t parts = 0, n;
        struct pieces pieces, before;
        struct pwc_piece first;

        CU_ASSERT_EQUAL_FATAL(pieces_of_shape(&pieces, off, AT(0), &rows[i].s), 0);
        before = pieces;
        for (; (n = pieces_take_row(&pieces, rows[i].most, &first)) > 0; parts++)
            for (uint32_t k = 0; k < n; k++) {
                const struct pwc_piece piece = {first.off + (uint64_t)(k * before.remote_stride),
                                                (char *)first.local + k * before.local_stride,
                                                rows[i].s.element};

                CU_ASSERT_FATAL(done < elements);
                CU_ASSERT(first.len == piece.len ? same(&piece, &all[done]) : n == 1);
                done += first.len / piece.len;
            }
        CU_ASSERT_EQUAL(parts, rows[i].parts);
        CU_ASSERT_EQUAL(done, elements);
    }
}

/* ---- extent of a shape ---------------------------------------------------------------------- */

static void test_extents(void)
{
    static const struct {
        uint64_t off;
        struct pwc_shape s;
        int result;
        uint64_t count, from, end;
    } rows[] = {
        {100, {1, 0, 3, {5}, {0}, {10}}, 0, 5, 100, 143},
        {100, {1, 0, 3, {5}, {0}, {-10}}, 0, 5, 60, 103},
        {100, {1, 0, 3, {5}, {0}, {0}}, 0, 5, 100, 103},
        {100, {2, 0, 3, {2, 5}, {0}, {-50, 10}}, 0, 10, 50, 143},
        {40, {1, 0, 3, {5}, {0}, {-10}}, 0, 5, 0, 43},
        {39, {1, 0, 3, {5}, {0}, {-10}}, -ERANGE, 0, 0, 0},
        {UINT64_MAX - 2, {1, 0, 2, {2}, {0}, {0}}, 0, 2, UINT64_MAX - 2, UINT64_MAX},
        {UINT64_MAX - 2, {1, 0, 3, {2}, {0}, {0}}, -ERANGE, 0, 0, 0}, /* off + length wraps */
        {UINT64_MAX, {1, 0, 1, {2}, {0}, {0}}, -ERANGE, 0, 0, 0},
        {0, {1, 0, SIZE_MAX, {2}, {0}, {0}}, 0, 2, 0, UINT64_MAX},
        {1, {1, 0, SIZE_MAX, {2}, {0}, {0}}, -ERANGE, 0, 0, 0},
        {UINT64_MAX - 20, {1, 0, 4, {2}, {0}, {16}}, 0, 2, UINT64_MAX - 20, UINT64_MAX},
        {UINT64_MAX - 20, {1, 0, 4, {2}, {0}, {17}}, -ERANGE, 0, 0, 0},
        {0, {1, 0, 1, {2}, {0}, {PTRDIFF_MAX}}, 0, 2, 0, (uint64_t)PTRDIFF_MAX + 1},
        {0, {1, 0, 1, {3}, {0}, {PTRDIFF_MAX}}, -ERANGE, 0, 0, 0}, /* stride times count wraps */
        {0, {1, 0, 1, {2}, {0}, {PTRDIFF_MIN}}, -ERANGE, 0, 0, 0},
        {UINT64_C(1) << 63, {1, 0, 1, {2}, {0}, {PTRDIFF_MIN}}, 0, 2, 0, (UINT64_C(1) << 63) + 1},
        {UINT64_MAX - 1, {1, 0, 1, {3}, {0}, {PTRDIFF_MIN}}, -ERANGE, 0, 0, 0},
        {0, {1, 0, 1, {1024}, {0}, {2}}, 0, 1024, 0, 2047},
        {0, {1, 0, 1, {1025}, {0}, {2}}, -E2BIG, 0, 0, 0},
        {0, {2, 0, 1, {32, 32}, {0}, {100, 2}}, 0, 1024, 0, 3163},
        {0, {2, 0, 1, {32, 33}, {0}, {100, 2}}, -E2BIG, 0, 0, 0},
        {0, {2, 0, 1, {2, SIZE_MAX}, {0}, {100, 2}}, -E2BIG, 0, 0, 0},
        {0, {2, 0, 1, {SIZE_MAX, 2}, {0}, {100, 2}}, -E2BIG, 0, 0, 0},
        /* The number of elements would wrap to a small number. */
        {0, {2, 0, 1, {(size_t)1 << 63, 2}, {0}, {100, 2}}, -E2BIG, 0, 0, 0},
        {0, {4, 0, 1, {1024, 1024, 1024, 1024}, {0}, {0, 0, 0, 2}}, -E2BIG, 0, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pieces_extent out;
        struct pieces pieces;

        CU_ASSERT_EQUAL_FATAL(pieces_of_shape(&pieces, rows[i].off, AT(0), &rows[i].s), 0);
        CU_ASSERT_EQUAL(pieces_extent(&pieces, &out), rows[i].result);
        if (rows[i].result == 0) {
            CU_ASSERT_EQUAL(out.count, rows[i].count);
            CU_ASSERT_EQUAL(out.length, rows[i].s.element);
            CU_ASSERT_EQUAL(out.from, rows[i].from);
            CU_ASSERT_EQUAL(out.end, rows[i].end);
        }
    }
}

/* The range of local addresses; 0 and 0 where it wraps around. */
static void test_local_extents(void)
{
    static const struct {
        uintptr_t local;
        struct pwc_shape s;
        uint64_t from, end;
    } rows[] = {
        {100, {1, 0, 3, {5}, {10}, {0}}, 100, 143},
        {100, {1, 0, 3, {5}, {-10}, {0}}, 60, 103},
        {100, {2, 0, 3, {2, 5}, {-50, 10}, {0}}, 50, 143},
        {40, {1, 0, 3, {5}, {-10}, {0}}, 0, 43},
        {39, {1, 0, 3, {5}, {-10}, {0}}, 0, 0},
        {UINTPTR_MAX - 12, {1, 0, 3, {2}, {9}, {0}}, UINTPTR_MAX - 12, UINTPTR_MAX},
        {UINTPTR_MAX - 12, {1, 0, 3, {2}, {10}, {0}}, 0, 0},
        {UINTPTR_MAX - 1, {1, 0, 3, {2}, {-10}, {0}}, 0, 0},
        {100, {1, 0, 3, {2}, {PTRDIFF_MIN}, {0}}, 0, 0},
        {100, {2, 0, 3, {2, 3}, {1, PTRDIFF_MAX}, {0}}, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pieces_extent out;
        struct pieces pieces;

        CU_ASSERT_EQUAL_FATAL(pieces_of_shape(&pieces, 0, (void *)rows[i].local, &rows[i].s), 0);
        CU_ASSERT_EQUAL(pieces_extent(&pieces, &out), 0);
        CU_ASSERT_EQUAL(out.local_from, rows[i].from);
        CU_ASSERT_EQUAL(out.local_end, rows[i].end);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"lists", test_lists},
                           {"long lists", test_long_lists},
                           {"no shapes", test_no_shapes},
                           {"empty shapes", test_empty_shapes},
                           {"shapes", test_shapes},
                           {"rows", test_rows},
                           {"extents", test_extents},
                           {"local extents", test_local_extents},
                           CU_TEST_INFO_NULL};

    return suite_run("vector_pieces", tests);
}
