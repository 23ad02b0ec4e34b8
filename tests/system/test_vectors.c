/*
 * Vectors and shapes through libpwc and real daemons, compared byte by byte with a plain loop; also
 * arguments that a call refuses. This process has both ranks.
 *
 *     test_vectors PWCD PROVIDER NODES [--KEY VALUE]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/count.h"
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "pwc/request.h"
#include "pwc/vector.h"

#define REGION (256u << 10)
#define SHAPES 400

/* Set by main before the tests run. */
static struct cluster cluster;
static unsigned seed = 1;

static size_t below(size_t n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % n;
}

/* Two ranks, and the expected contents of their memory. */
struct two {
    struct rank a, b;
    uint8_t a_holds[REGION], b_holds[REGION];
};

static void open_two(struct two *t, const char *job)
{
    unsigned last = cluster.options.nodes - 1;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&t->a, cluster.nodes[0].socket, job, 0, 2, REGION), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&t->b, cluster.nodes[last].socket, job, 1, 2, REGION), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&t->a, &t->b), 0);
    for (size_t i = 0; i < REGION; i++) {
        t->a_holds[i] = t->a.memory[i] = (uint8_t)(i * 7 + (i >> 8));
        t->b_holds[i] = t->b.memory[i] = (uint8_t)(i * 11 + (i >> 8));
    }
}

static void close_two(struct two *t)
{
    rank_detach(&t->a);
    rank_detach(&t->b);
}

static bool comes(const struct rank *r, unsigned kind, uint64_t id, int status, uint64_t length)
{
    struct pwc_event event = {0};
    int rc = pwc_wait(r->ctx, PWC_ANY, kind, &event, RANK_WAIT_MS);

    if (rc == 1 && event.id == id && event.status == status && event.length == length)
        return true;
    printf("\n    event: %d, id %d, status %d, %zu bytes, not id %d, status %d, %zu bytes ", rc,
           (int)event.id, event.status, (size_t)event.length, (int)id, status, (size_t)length);
    return false;
}

/* Whether exactly one local and one remote event arrive, and both memories are as expected. */
static bool has_ended(struct two *t, uint64_t length)
{
    struct pwc_event event;

    return comes(&t->b, PWC_REMOTE, 2, 0, length) && comes(&t->a, PWC_LOCAL, 1, 0, length) &&
           pwc_probe(t->a.ctx, PWC_ANY, 0, &event) == 0 &&
           pwc_probe(t->b.ctx, PWC_ANY, 0, &event) == 0 &&
           memcmp(t->a.memory, t->a_holds, REGION) == 0 &&
           memcmp(t->b.memory, t->b_holds, REGION) == 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Chooses strides for one side with which no two elements overlap; some are negative. Returns the
 * offset of the first element; -1: the shape does not fit. */
static ptrdiff_t lay_out(const struct pwc_shape *s, ptrdiff_t stride[4])
{
    ptrdiff_t extent = (ptrdiff_t)s->element, low = 0;

    for (uint32_t i = 0; i < s->dims; i++) {
        uint32_t d = s->dims - 1 - i;
        ptrdiff_t step = extent + (ptrdiff_t)(below(3) ? 0 : below(40));

        if (s->count[d] > 0)
            extent += step * (ptrdiff_t)(s->count[d] - 1);
        if (extent > (ptrdiff_t)REGION / 2)
            return -1;
        stride[d] = below(3) ? step : -step;
        if (stride[d] < 0 && s->count[d] > 0)
            low -= stride[d] * (ptrdiff_t)(s->count[d] - 1);
    }
    return low + (ptrdiff_t)below(REGION / 2);
}

/* Copies by a plain loop, and returns the number of bytes. */
static uint64_t plain(const struct pwc_shape *s, uint8_t *to, const uint8_t *from,
                      const ptrdiff_t *to_stride, const ptrdiff_t *from_stride)
{
    size_t n[4] = {1, 1, 1, 1}, i[4];
    uint64_t moved = 0;

    for (uint32_t d = 0; d < s->dims; d++)
        n[d] = s->count[d];
    for (i[0] = 0; i[0] < n[0]; i[0]++)
        for (i[1] = 0; i[1] < n[1]; i[1]++)
            for (i[2] = 0; i[2] < n[2]; i[2]++)
                for (i[3] = 0; i[3] < n[3]; i[3]++) {
                    ptrdiff_t t = 0, f = 0;

                    for (uint32_t d = 0; d < s->dims; d++) {
                        t += (ptrdiff_t)i[d] * to_stride[d];
                        f += (ptrdiff_t)i[d] * from_stride[d];
                    }
                    memcpy(to + t, from + f, s->element);
                    moved += s->element;
                }
    return moved;
}

/* Chooses a shape of up to four dimensions, sometimes without elements, sometimes with long
 * ones. */
static struct pwc_shape some_shape(ptrdiff_t *local, ptrdiff_t *remote)
{
    static const size_t elements[] = {1, 3, 8, 64, 200, 700, 5000};

    for (;;) {
        struct pwc_shape s = {.dims = 1 + (uint32_t)below(4),
                              .element = below(40) ? elements[below(COUNT(elements))] : 0};

        for (uint32_t d = 0; d < s.dims; d++)
            s.count[d] = below(30) ? 1 + below(6) : 0;
        *local = lay_out(&s, s.local_stride);
        *remote = lay_out(&s, s.remote_stride);
        if (*local >= 0 && *remote >= 0)
            return s;
    }
}

static void shapes(void)
{
    static struct two t;

    open_two(&t, "shapes");
    for (int i = 0; i < SHAPES; i++) {
        ptrdiff_t local, remote;
        struct pwc_shape s = some_shape(&local, &remote);
        bool put = below(2);
        uint64_t moved;
        int rc;

        if (put) {
            moved =
                plain(&s, t.b_holds + remote, t.a_holds + local, s.remote_stride, s.local_stride);
            rc = pwc_put_shape(t.a.remote, (uint64_t)remote, t.a.memory + local, &s, pwc_cid_u64(1),
                               pwc_cid_u64(2), 0);
        } else {
            moved =
                plain(&s, t.a_holds + local, t.b_holds + remote, s.local_stride, s.remote_stride);
            rc = pwc_get_shape(t.a.remote, (uint64_t)remote, t.a.memory + local, &s, pwc_cid_u64(1),
                               pwc_cid_u64(2), 0);
        }
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        if (!has_ended(&t, moved)) {
            printf("\n    shape %d: %s, %u dimensions, elements of %zu ", i, put ? "put" : "get",
                   s.dims, s.element);
            CU_FAIL_FATAL("the shape is not as the loop's");
        }
    }
    close_two(&t);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* One list with pieces of many lengths, also a long one, adjacent and not. */
static void lists(void)
{
    static struct two t;
    struct pwc_piece pieces[64];
    uint64_t total = 0;

    open_two(&t, "lists");
    for (uint32_t i = 0; i < COUNT(pieces); i++) {
        size_t at = (size_t)i * 1000, length = i < 40 ? (size_t)i * i : i == 63 ? 6000 : 0;
        bool joins = i % 10 == 9; /* begins where the piece before ends */

        if (joins)
            at = (size_t)(i - 1) * 1000 + pieces[i - 1].len;
        pieces[i] = (struct pwc_piece){at, t.a.memory + at, length};
        memcpy(t.b_holds + at, t.a_holds + at, length);
        total += length;
    }
    CU_ASSERT_EQUAL_FATAL(
        pwc_putv(t.a.remote, pieces, COUNT(pieces), pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    CU_ASSERT_TRUE(has_ended(&t, total));
    for (uint32_t i = 0; i < COUNT(pieces); i++) {
        uint64_t from = pieces[i].off + REGION / 2;

        memcpy(t.a_holds + pieces[i].off, t.b_holds + from, pieces[i].len);
        pieces[i].off = from;
    }
    CU_ASSERT_EQUAL_FATAL(
        pwc_getv(t.a.remote, pieces, COUNT(pieces), pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    CU_ASSERT_TRUE(has_ended(&t, total));
    CU_ASSERT_EQUAL(pwc_putv(t.a.remote, NULL, 0, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    CU_ASSERT_TRUE(has_ended(&t, 0));
    close_two(&t);
}

/* Destinations in memory that is registered through a copy are filled when the operation has
 * ended. */
static void copied_destinations(void)
{
    static struct two t;
    static uint8_t memory[8192];
    struct pwc_piece pieces[8];
    pwc_region *region;

    open_two(&t, "copied");
    CU_ASSERT_EQUAL_FATAL(pwc_register(t.a.client, memory, sizeof(memory), 0, 0, &region), 0);
    for (size_t i = 0; i < COUNT(pieces); i++)
        pieces[i] = (struct pwc_piece){i * 2000, memory + i * 1000, 900};
    CU_ASSERT_EQUAL_FATAL(
        pwc_getv(t.a.remote, pieces, COUNT(pieces), pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    CU_ASSERT_TRUE(has_ended(&t, 7200));
    for (size_t i = 0; i < COUNT(pieces); i++)
        CU_ASSERT_EQUAL(memcmp(memory + i * 1000, t.b_holds + i * 2000, 900), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    close_two(&t);
}

/* A request counts a vector once, however many pieces it has. */
static void requests(void)
{
    static struct two t;
    struct pwc_piece pieces[] = {{0, NULL, 100}, {5000, NULL, 5000}, {20000, NULL, 8}};
    struct pwc_status status = {0};
    pwc_request *r;

    open_two(&t, "requests");
    CU_ASSERT_EQUAL_FATAL(pwc_request_create(t.a.ctx, &r), 0);
    for (size_t i = 0; i < COUNT(pieces); i++)
        pieces[i].local = t.a.memory + 1000 + pieces[i].off;
    for (int round = 0; round < 2; round++) {
        int rc =
            round ? pwc_getv(t.a.remote, pieces, 3, pwc_cid_request(r), PWC_CID_NONE, PWC_NO_RCE)
                  : pwc_putv(t.a.remote, pieces, 3, pwc_cid_request(r), PWC_CID_NONE, PWC_NO_RCE);

        CU_ASSERT_EQUAL_FATAL(rc, 0);
        CU_ASSERT_EQUAL(pwc_request_wait(r, &status, RANK_WAIT_MS), 1);
        CU_ASSERT(status.status == 0 && status.bytes == 5108);
    }
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    close_two(&t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* A refused call has submitted nothing: memory stays as it is, and no event comes. */
static void refusals(void)
{
    static struct two t;
    static uint8_t outside[8192];
    static struct pwc_piece many[PWC_PIECES_MAX + 1];
    struct pwc_event event;
    const struct {
        struct pwc_piece last;
        int put, get;
    } rows[] = {
        {{REGION - 8, t.a.memory, 9}, -ERANGE, -ERANGE},
        {{UINT64_MAX, t.a.memory, 1}, -ERANGE, -ERANGE},
        {{9000, outside, 5000}, -EFAULT, -EFAULT},
        {{9000, outside, 8}, 0, -EFAULT},
    };
    static const struct {
        uint64_t off;
        ptrdiff_t outer;
    } outside_shapes[] = {{99, -100},       {REGION - 139, 100},
                          {0, PTRDIFF_MAX}, {UINT64_MAX - 8, 100},
                          {REGION, -100},   {0, PTRDIFF_MIN}};
    struct pwc_shape shape = {.dims = 5, .element = 1, .count = {1}};

    open_two(&t, "refusals");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pwc_piece pieces[] = {{100, t.a.memory, 50}, {8000, t.a.memory, 50}, rows[i].last};

        if (pieces[2].local != outside)
            pieces[2].local = t.a.memory + 100;
        CU_ASSERT_EQUAL(pwc_getv(t.a.remote, pieces, 3, pwc_cid_u64(1), pwc_cid_u64(2), 0),
                        rows[i].get);
        if (rows[i].put < 0)
            CU_ASSERT_EQUAL(pwc_putv(t.a.remote, pieces, 3, pwc_cid_u64(1), pwc_cid_u64(2), 0),
                            rows[i].put);
    }
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = (struct pwc_piece){i * 16, t.a.memory + i * 16, 8};
    CU_ASSERT_EQUAL(pwc_putv(t.a.remote, many, COUNT(many), pwc_cid_u64(1), pwc_cid_u64(2), 0),
                    -E2BIG);
    CU_ASSERT_EQUAL(
        pwc_put_shape(t.a.remote, 0, t.a.memory, &shape, pwc_cid_u64(1), pwc_cid_u64(2), 0),
        -EINVAL);
    shape = (struct pwc_shape){.dims = 1, .element = 1, .count = {SIZE_MAX}, .local_stride = {2}};
    CU_ASSERT_EQUAL(
        pwc_put_shape(t.a.remote, 0, t.a.memory, &shape, pwc_cid_u64(1), pwc_cid_u64(2), 0),
        -E2BIG);
    for (size_t i = 0; i < COUNT(outside_shapes); i++) {
        shape = (struct pwc_shape){.dims = 2,
                                   .element = 8,
                                   .count = {2, 3},
                                   .local_stride = {100, 20},
                                   .remote_stride = {outside_shapes[i].outer, 16}};
        CU_ASSERT_EQUAL(pwc_put_shape(t.a.remote, outside_shapes[i].off, t.a.memory, &shape,
                                      pwc_cid_u64(1), pwc_cid_u64(2), 0),
                        -ERANGE);
    }
    CU_ASSERT_EQUAL(pwc_putv(t.a.remote, many, 2, pwc_cid_u64(1), pwc_cid_u64(2), 1 << 12),
                    -EINVAL);
    CU_ASSERT_EQUAL(memcmp(t.b.memory, t.b_holds, REGION), 0);
    CU_ASSERT_EQUAL(pwc_probe(t.a.ctx, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(pwc_probe(t.b.ctx, PWC_ANY, 0, &event), 0);
    /* A vector with the maximum number of pieces is accepted. */
    for (size_t i = 0; i < PWC_PIECES_MAX; i++)
        memcpy(t.b_holds + i * 16, t.a_holds + i * 16, 8);
    CU_ASSERT_EQUAL(pwc_putv(t.a.remote, many, PWC_PIECES_MAX, pwc_cid_u64(1), pwc_cid_u64(2), 0),
                    0);
    CU_ASSERT_TRUE(has_ended(&t, 8 * PWC_PIECES_MAX));
    close_two(&t);
}

/* Many vectors without a probe fill the ring: the refused vector has moved nothing. */
static void full_ring(void)
{
    static struct two t;
    struct pwc_piece pieces[40];
    struct pwc_event event;
    int taken = 0, seen = 0, rc = 0;

    open_two(&t, "full");
    for (size_t i = 0; i < COUNT(pieces); i++)
        pieces[i] = (struct pwc_piece){i * 2000, t.a.memory + i * 2000, 1500};
    for (int i = 0; i < 4000 && rc == 0; i++) {
        rc = pwc_putv(t.a.remote, pieces, COUNT(pieces), pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE);
        taken += rc == 0;
    }
    CU_ASSERT(rc == 0 || rc == -EAGAIN);
    while (seen < taken && pwc_wait(t.a.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS) == 1) {
        CU_ASSERT_EQUAL_FATAL(event.status, 0);
        CU_ASSERT_EQUAL_FATAL(event.length, 60000);
        seen++;
    }
    CU_ASSERT_EQUAL(seen, taken);
    CU_ASSERT_EQUAL(pwc_probe(t.a.ctx, PWC_ANY, 0, &event), 0);
    close_two(&t);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"shapes", shapes},
                           {"lists", lists},
                           {"copied destinations", copied_destinations},
                           {"requests", requests},
                           {"refusals", refusals},
                           {"full ring", full_ring},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("vectors", tests);
    return cluster_end(&cluster, status);
}
