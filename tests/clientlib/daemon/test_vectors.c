/*
 * Vectors and shapes through the public calls, on both paths: against a daemon on a thread, and
 * without it between two contexts. Every byte is compared with a plain loop's.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "pwc/notify.h"
#include "pwc/request.h"
#include "pwc/vector.h"
#include "tests/count.h"
#include "tests/clientlib/daemon/client_path.h"
#include "tests/suite.h"

enum {
    END = 1 << 20,     /* end of the region */
    HERE = 512 * 1024, /* from here on the region is the local side, before it the remote side */
    LID = 5,
    RID = 6,
    SOME = 2 * PWC_PIECES_MAX,
};

static struct pwc_piece list[SOME]; /* the pieces of the running test */

static uint8_t *here(const struct path *p)
{
    return p->w->memory + HERE;
}

/* Makes a list of pieces of `length` bytes, with the given distances at each side. */
static void make_list(const struct path *p, size_t count, size_t length, size_t apart_there,
                      size_t apart_here)
{
    for (size_t i = 0; i < count; i++)
        list[i] = (struct pwc_piece){i * apart_there, here(p) + i * apart_here, length};
}

static void fill_both(const struct path *p, unsigned seed)
{
    fill(p->w->memory, END, seed);
}

/* Expects both sides as they were filled, except for the first `count` pieces of the list, which a
 * put has placed or a get has brought. */
static void expect_moved(const struct path *p, size_t count, bool get, unsigned seed)
{
    static uint8_t expected[END];

    fill(expected, END, seed);
    for (size_t i = 0; i < count; i++) {
        uint8_t *local = expected + HERE + ((uint8_t *)list[i].local - here(p));
        uint8_t *remote = expected + list[i].off;

        if (list[i].len > 0)
            memcpy(get ? local : remote, get ? remote : local, list[i].len);
    }
    CU_ASSERT_EQUAL(memcmp(p->w->memory, expected, END), 0);
}

static int move(struct path *p, bool get, size_t count, pwc_cid lid, unsigned flags)
{
    return get ? pwc_getv(p->to_b, list, count, lid, pwc_cid_u64(RID), flags)
               : pwc_putv(p->to_b, list, count, lid, pwc_cid_u64(RID), flags);
}

/* ---- moved bytes ---------------------------------------------------------------------------- */

/* Vectors of any number and length of pieces have one local and one remote event, with the sum of
 * bytes.
 */
static void lists(struct path *p)
{
    static const struct {
        size_t count, length, apart_there, apart_here;
    } rows[] = {
        {0, 0, 0, 0},
        {1, 0, 8, 8},
        {7, 0, 8, 8},
        {1, 10, 0, 0},
        {2, 1, 2, 2},
        {2, 10, 10, 10}, /* adjacent at both sides, so joined: one put */
        {2, 10, 10, 11}, /* adjacent at one side only */
        {3, FAKE_PACKED_MAX, 5000, 6000},
        {3, FAKE_PACKED_MAX + 1, 5000, 6000},
        {200, 40, 100, 50},
        {PWC_PIECES_MAX, 9, 17, 33},
        {SOME, 9, 9, 9}, /* joined to one piece */
        {SOME, 0, 9, 9},
        {5, 3000, 3000, 3001},
        {4, 60, 90, 0}, /* all from one place: the sources of a put may overlap */
    };

    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        size_t row = i / 2, count = rows[row].count;
        uint64_t total = count * rows[row].length;
        bool get = i % 2;
        int op = get ? PWC_OP_GET : PWC_OP_PUT;
        unsigned executed = fake_executed(&p->w->daemon);

        if (get && rows[row].apart_here == 0 && rows[row].length > 0 && count > 1)
            continue;
        make_list(p, count, rows[row].length, rows[row].apart_there, rows[row].apart_here);
        fill_both(p, (unsigned)i);
        CU_ASSERT_EQUAL_FATAL(move(p, get, count, pwc_cid_u64(LID), 0), 0);
        expect_op(p->a, PWC_LOCAL, op, LID, 0, total);
        expect_op(p->b, PWC_REMOTE, op, RID, 0, total);
        expect_moved(p, count, get, (unsigned)i);
        check_path(p, executed);
        expect_nothing(p->a);
        expect_nothing(p->b);
    }
}

static void test_lists(void)
{
    on_both(lists);
}

/* Some pieces have no bytes; and a list of no pieces, given as NULL. */
static void no_bytes(struct path *p)
{
    fill_both(p, 3);
    list[0] = (struct pwc_piece){END + 1, NULL, 0}; /* has no bytes, so its range is not checked */
    list[1] = (struct pwc_piece){0, here(p), 5};
    list[2] = (struct pwc_piece){UINT64_MAX, NULL, 0};
    list[3] = (struct pwc_piece){5, here(p) + 5, 5};
    list[4] = (struct pwc_piece){20, here(p) + 20, 5};
    for (int get = 0; get < 2; get++) {
        CU_ASSERT_EQUAL(move(p, get, 5, pwc_cid_u64(LID), 0), 0);
        expect_op(p->a, PWC_LOCAL, get ? PWC_OP_GET : PWC_OP_PUT, LID, 0, 15);
        expect_op(p->b, PWC_REMOTE, get ? PWC_OP_GET : PWC_OP_PUT, RID, 0, 15);
    }
    for (int i = 0; i < 5; i += 2)
        list[i] = list[0];
    expect_nothing(p->a);
    CU_ASSERT_EQUAL(pwc_putv(p->to_b, NULL, 0, pwc_cid_u64(LID), pwc_cid_u64(RID), 0), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_PUT, LID, 0, 0);
    expect_op(p->b, PWC_REMOTE, PWC_OP_PUT, RID, 0, 0);
    CU_ASSERT_EQUAL(pwc_getv(p->to_b, NULL, 0, pwc_cid_u64(LID), PWC_CID_NONE, PWC_NO_RCE), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_GET, LID, 0, 0);
    expect_nothing(p->b);
}

static void test_no_bytes(void)
{
    on_both(no_bytes);
}

/* Where pieces overlap at the target, each byte there is from one of them; all other bytes are
 * right. */
static void overlapping(struct path *p)
{
    fill_both(p, 4);
    memset(here(p), 0xaa, 60);
    memset(here(p) + 100, 0xbb, 60);
    list[0] = (struct pwc_piece){1000, here(p), 60};
    list[1] = (struct pwc_piece){1020, here(p) + 100, 60};
    CU_ASSERT_EQUAL(move(p, false, 2, pwc_cid_u64(LID), PWC_NO_RCE), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_PUT, LID, 0, 120);
    for (int i = 0; i < 80; i++) {
        uint8_t byte = p->w->memory[1000 + i];

        CU_ASSERT(i < 20 ? byte == 0xaa : i >= 60 ? byte == 0xbb : byte == 0xaa || byte == 0xbb);
    }
    expect_nothing(p->b);
}

static void test_overlapping(void)
{
    on_both(overlapping);
}

/* A notification, ids of any length, no events, and a request: as with a single put. */
static void ids(struct path *p)
{
    uint8_t id[PWC_CID_MAX + 1];
    struct pwc_event event;
    struct pwc_status status;
    pwc_request *request;

    fill(id, sizeof(id), 1);
    make_list(p, 3, 10, 100, 20);
    for (int get = 0; get < 2; get++) {
        CU_ASSERT_EQUAL(move(p, get, 3, pwc_cid_bytes(id, PWC_CID_MAX), PWC_NOTIFY), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(p->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT(event.id_size == PWC_CID_MAX && memcmp(event.data, id, PWC_CID_MAX) == 0);
        expect_op(p->b, PWC_NOTIFICATION, get ? PWC_OP_GET : PWC_OP_PUT, RID, 0, 30);
        CU_ASSERT_EQUAL(move(p, get, 3, pwc_cid_bytes(id, PWC_CID_MAX + 1), 0), -EINVAL);
        CU_ASSERT_EQUAL((get ? pwc_getv : pwc_putv)(p->to_b, list, 3, PWC_CID_NONE,
                                                    pwc_cid_bytes(id, 700), PWC_NO_LCE),
                        0);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(p->b, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
        CU_ASSERT(event.length == 30 && event.id_size == 700 && memcmp(event.data, id, 700) == 0);
        expect_nothing(p->a);

        CU_ASSERT_EQUAL_FATAL(pwc_request_create(p->a, &request), 0);
        CU_ASSERT_EQUAL(move(p, get, 3, pwc_cid_request(request), PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL(move(p, get, SOME, pwc_cid_request(request), 1u << 15), -EINVAL);
        CU_ASSERT_EQUAL_FATAL(pwc_request_wait(request, &status, WAIT_MS), 1);
        CU_ASSERT(status.status == 0 && status.count == 1 && status.bytes == 30);
        CU_ASSERT_EQUAL(status.peer, pwc_ctx_peer(p->b));
        CU_ASSERT_EQUAL(pwc_request_free(request), 0);
    }
    expect_nothing(p->a);
    expect_nothing(p->b);
}

static void test_ids(void)
{
    on_both(ids);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Writes the elements of a shape into the list, and returns their number. */
static size_t list_shape(const struct pwc_shape *s, uint64_t off, uint8_t *local)
{
    size_t n = 1;

    list[0] = (struct pwc_piece){off, local, s->element};
    for (uint32_t d = s->dims; d-- > 0;) {
        size_t inner = n;

        for (size_t i = 1; i < s->count[d]; i++)
            for (size_t j = 0; j < inner; j++, n++)
                list[n] = (struct pwc_piece){
                    list[j].off + (uint64_t)((ptrdiff_t)i * s->remote_stride[d]),
                    (uint8_t *)list[j].local + (ptrdiff_t)i * s->local_stride[d], s->element};
    }
    return n;
}

static void shapes(struct path *p)
{
    static const struct pwc_shape rows[] = {
        {1, 0, 8, {1}, {0}, {0}},
        {1, 0, 8, {12}, {8}, {8}},
        {1, 0, 8, {12}, {10}, {9}},
        {1, 0, 8, {12}, {-8}, {8}},
        {1, 0, 8, {12}, {8}, {-16}},
        {2, 0, 4, {6, 7}, {100, 4}, {-200, 8}},
        {2, 0, 5000, {2, 3}, {20000, 6000}, {15000, 5000}},
        {3, 0, 1, {3, 4, 5}, {200, 40, 3}, {300, -50, 2}},
        {4, 0, 3, {2, 3, 4, 5}, {1000, 300, 60, 5}, {900, 280, 50, 3}},
        {4, 0, 3, {2, 1, 4, 1}, {1000, 3, 60, 5}, {900, 2, 50, 3}},
        {1, 0, 1, {PWC_PIECES_MAX}, {2}, {3}},
        {1, 0, 64, {200}, {100}, {90}},
        {2, 0, 24, {5, 100}, {4000, 40}, {-3000, 30}},
        {3, 0, 40, {2, 3, 110}, {30000, 9000, -80}, {21000, 7000, 60}},
    };

    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const struct pwc_shape *s = &rows[i / 2];
        uint64_t off = 120000;
        uint8_t *local = here(p) + off;
        size_t count = list_shape(s, off, local);
        int rc;

        fill_both(p, (unsigned)i);
        rc = i % 2 ? pwc_get_shape(p->to_b, off, local, s, pwc_cid_u64(LID), pwc_cid_u64(RID), 0)
                   : pwc_put_shape(p->to_b, off, local, s, pwc_cid_u64(LID), pwc_cid_u64(RID), 0);
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        expect_op(p->a, PWC_LOCAL, i % 2 ? PWC_OP_GET : PWC_OP_PUT, LID, 0, count * s->element);
        expect_op(p->b, PWC_REMOTE, i % 2 ? PWC_OP_GET : PWC_OP_PUT, RID, 0, count * s->element);
        expect_moved(p, count, i % 2, (unsigned)i);
    }
}

static void test_shapes(void)
{
    on_both(shapes);
}

/*
 * When the daemon reads a shape's elements itself: only where they are more than one packed payload
 * and lie in a region, and where the rows are long enough. Then each record has as many elements of
 * a row as a packed payload holds, and the source is read later.
 */
static void test_read_by_the_daemon(void)
{
    static uint8_t loose[64 * 1024];
    static const struct {
        const char *what;
        bool in_region;
        unsigned records;
        struct pwc_shape s;
    } rows[] = {
        {"over one payload", true, 2, {1, 0, 64, {65}, {100}, {80}}},
        {"one payload", true, 0, {1, 0, 64, {64}, {100}, {80}}},
        {"not in a region", false, 0, {1, 0, 64, {65}, {100}, {80}}},
        {"short rows", true, 0, {2, 0, 64, {10, 15}, {2000, 100}, {1500, 80}}},
        {"rows of a quarter", true, 10, {2, 0, 64, {10, 16}, {2000, 100}, {1500, 80}}},
        {"rows of two records", true, 6, {2, 0, 64, {3, 65}, {8000, 100}, {7000, 80}}},
        {"elements of a payload", true, 3, {1, 0, FAKE_PACKED_MAX, {3}, {5000}, {6000}}},
        {"longer elements", true, 0, {1, 0, FAKE_PACKED_MAX + 1, {3}, {5000}, {6000}}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world_new();
        const struct pwc_shape *s = &rows[i].s;
        uint8_t *source = rows[i].in_region ? w->memory + HERE : loose;
        size_t bytes = s->element;

        for (uint32_t d = 0; d < s->dims; d++)
            bytes *= s->count[d];
        memset(source, 'a', sizeof(loose));
        fake_hold(&w->daemon, true);
        CU_ASSERT_EQUAL(
            pwc_put_shape(w->remote, 0, source, s, pwc_cid_u64(LID), PWC_CID_NONE, PWC_NO_RCE), 0);
        source[0] = 'b';
        fake_hold(&w->daemon, false);
        CU_ASSERT_EQUAL(expect(w, PWC_LOCAL, LID, 0).length, bytes);
        if (w->daemon.strided != rows[i].records)
            printf("%s: %u records\n", rows[i].what, w->daemon.strided);
        CU_ASSERT_EQUAL(w->daemon.strided, rows[i].records);
        /* A payload that is longer than a packed one is read later, too. */
        CU_ASSERT_EQUAL(w->memory[0],
                        rows[i].records > 0 || s->element > FAKE_PACKED_MAX ? 'b' : 'a');
        world_free(w);
    }
}

/* Strides of 0: the same element again and again, as source and as target. */
static void strides_of_zero(struct path *p)
{
    struct pwc_shape s = {1, 0, 4, {5}, {0}, {4}};

    memcpy(here(p), "abcd", 4);
    memset(p->w->memory, 'x', 32);
    CU_ASSERT_EQUAL(
        pwc_put_shape(p->to_b, 0, here(p), &s, pwc_cid_u64(LID), PWC_CID_NONE, PWC_NO_RCE), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_PUT, LID, 0, 20);
    CU_ASSERT_EQUAL(memcmp(p->w->memory, "abcdabcdabcdabcdabcdxxxx", 24), 0);
    s.local_stride[0] = s.remote_stride[0] = 0;
    CU_ASSERT_EQUAL(
        pwc_put_shape(p->to_b, 24, here(p), &s, pwc_cid_u64(LID), PWC_CID_NONE, PWC_NO_RCE), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_PUT, LID, 0, 20);
    CU_ASSERT_EQUAL(memcmp(p->w->memory + 20, "xxxxabcdxxxx", 12), 0);
    expect_nothing(p->b);
}

static void test_strides_of_zero(void)
{
    on_both(strides_of_zero);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Expects that no byte has moved and no event comes, and that the next operation works. */
static void expect_untouched(struct path *p)
{
    expect_moved(p, 0, false, 7);
    expect_nothing(p->a);
    expect_nothing(p->b);
}

static void refused_lists(struct path *p)
{
    static uint8_t outside[2 * FAKE_PACKED_MAX];
    const struct {
        struct pwc_piece last;
        int put, get;
    } rows[] = {
        {{END - 8, here(p), 9}, -ERANGE, -ERANGE},
        {{END, here(p), 1}, -ERANGE, -ERANGE},
        {{END + 1, here(p), 1}, -ERANGE, -ERANGE},
        {{UINT64_MAX, here(p), 1}, -ERANGE, -ERANGE}, /* the sum of off and len wraps to 0 */
        {{UINT64_MAX - 7, here(p), 16}, -ERANGE, -ERANGE},
        {{0, here(p), FAKE_MESSAGE_MAX + 1}, -EMSGSIZE, -EMSGSIZE},
        {{0, here(p), SIZE_MAX}, -EMSGSIZE, -EMSGSIZE},
        {{0, outside, FAKE_PACKED_MAX + 1}, -EFAULT, -EFAULT},
        {{0, outside, 1}, 1, -EFAULT}, /* a short source is copied from any memory */
        {{0, NULL, FAKE_PACKED_MAX + 1}, -EFAULT, -EFAULT},
    };

    fill_both(p, 7);
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        int result = i % 2 ? rows[i / 2].get : rows[i / 2].put;

        make_list(p, 2, 50, 1000, 100);
        list[2] = rows[i / 2].last;
        if (result < 0)
            CU_ASSERT_EQUAL(move(p, i % 2, 3, pwc_cid_u64(LID), 0), result);
        expect_untouched(p);
    }
    for (unsigned get = 0; get < 2; get++) {
        make_list(p, SOME, 8, 16, 16);
        CU_ASSERT_EQUAL(move(p, get, PWC_PIECES_MAX + 1, pwc_cid_u64(LID), 0), -E2BIG);
        CU_ASSERT_EQUAL(move(p, get, SOME, pwc_cid_u64(LID), 0), -E2BIG);
        CU_ASSERT_EQUAL(move(p, get, 2, pwc_cid_u64(LID), 1u << 15), -EINVAL);
        CU_ASSERT_EQUAL(move(p, get, 2, pwc_cid_u64(LID), PWC_NOTIFY | PWC_NO_RCE), -EINVAL);
        CU_ASSERT_EQUAL((get ? pwc_getv : pwc_putv)(p->to_b, list, 2, PWC_CID_NONE,
                                                    pwc_cid_bytes("id", 2), PWC_NOTIFY),
                        -EINVAL);
        CU_ASSERT_EQUAL((get ? pwc_getv : pwc_putv)(p->to_b, list, 2, PWC_CID_NONE,
                                                    pwc_cid_bytes("id", PWC_CID_MAX + 1), 0),
                        -EINVAL);
        expect_untouched(p);
    }
}

static void test_refused_lists(void)
{
    on_both(refused_lists);
}

static void refused_shapes(struct path *p)
{
    static const struct {
        uint64_t off;
        struct pwc_shape s;
        int result;
    } rows[] = {
        {0, {0, 0, 8, {1}, {0}, {0}}, -EINVAL},
        {0, {5, 0, 8, {1, 1, 1, 1}, {0}, {0}}, -EINVAL},
        {0, {1, 1, 8, {1}, {0}, {0}}, -EINVAL},
        {0, {1, 0, 8, {1025}, {16}, {16}}, -E2BIG},
        {0, {1, 0, 8, {SIZE_MAX}, {16}, {16}}, -E2BIG},
        {0, {2, 0, 8, {(size_t)1 << 63, 2}, {1000, 16}, {1000, 16}}, -E2BIG},
        {0, {1, 0, 2, {SIZE_MAX}, {2}, {2}}, -EMSGSIZE},
        {0, {1, 0, FAKE_MESSAGE_MAX + 1, {2}, {0}, {0}}, -EMSGSIZE},
        {END - 126, {1, 0, 8, {8}, {16}, {17}}, -ERANGE},
        {END - 8, {1, 0, 8, {2}, {16}, {1}}, -ERANGE},
        {15, {1, 0, 8, {2}, {16}, {-16}}, -ERANGE},
        {UINT64_MAX - 7, {1, 0, 8, {2}, {16}, {16}}, -ERANGE},
        {UINT64_MAX - 6, {1, 0, 8, {2}, {16}, {16}}, -ERANGE},
        {0, {1, 0, 8, {3}, {16}, {PTRDIFF_MAX}}, -ERANGE},
        {0, {1, 0, 8, {2}, {16}, {PTRDIFF_MIN}}, -ERANGE},
        {0, {1, 0, FAKE_PACKED_MAX + 1, {2}, {PTRDIFF_MAX}, {9000}}, -EFAULT},
    };

    fill_both(p, 7);
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const struct pwc_shape *s = &rows[i / 2].s;
        int rc = i % 2 ? pwc_get_shape(p->to_b, rows[i / 2].off, here(p), s, pwc_cid_u64(LID),
                                       pwc_cid_u64(RID), 0)
                       : pwc_put_shape(p->to_b, rows[i / 2].off, here(p), s, pwc_cid_u64(LID),
                                       pwc_cid_u64(RID), 0);

        CU_ASSERT_EQUAL(rc, rows[i / 2].result);
        expect_untouched(p);
    }
}

static void test_refused_shapes(void)
{
    on_both(refused_shapes);
}

/* The bound for an operation's bytes holds for the sum of all pieces. */
static void too_many_bytes(struct path *p)
{
    enum { PIECE = 512 * 1024 };

    fill_both(p, 7);
    for (size_t i = 0; i <= FAKE_MESSAGE_MAX / PIECE; i++)
        list[i] = (struct pwc_piece){i % 2, here(p), PIECE};
    for (unsigned get = 0; get < 2; get++)
        CU_ASSERT_EQUAL(move(p, get, FAKE_MESSAGE_MAX / PIECE + 1, pwc_cid_u64(LID), 0), -EMSGSIZE);
    expect_untouched(p);
}

static void test_too_many_bytes(void)
{
    on_both(too_many_bytes);
}

/* A put needs the right to write, a get the right to read, also without pieces. */
static void rights(struct path *p)
{
    static const struct {
        unsigned rights;
        int put, get;
    } rows[] = {
        {PWC_REMOTE_READ, -EKEYREJECTED, 0},
        {PWC_REMOTE_WRITE, 0, -EKEYREJECTED},
        {PWC_REMOTE_RW, 0, 0},
    };
    const struct pwc_shape s = {1, 0, 4, {3}, {8}, {8}};

    make_list(p, 2, 4, 8, 8);
    for (size_t i = 0; i < COUNT(rows); i++) {
        pwc_region *region;
        pwc_remote *to;

        CU_ASSERT_EQUAL_FATAL(pwc_alloc(p->w->client, 64, rows[i].rights, &region), 0);
        to = bind_to_b(p, region);
        for (int shape = 0; shape < 2; shape++) {
            CU_ASSERT_EQUAL(
                shape ? pwc_put_shape(to, 0, here(p), &s, PWC_CID_NONE, PWC_CID_NONE,
                                      PWC_NO_LCE | PWC_NO_RCE)
                      : pwc_putv(to, list, 2, PWC_CID_NONE, PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE),
                rows[i].put);
            CU_ASSERT_EQUAL(
                shape ? pwc_get_shape(to, 0, here(p), &s, PWC_CID_NONE, PWC_CID_NONE,
                                      PWC_NO_LCE | PWC_NO_RCE)
                      : pwc_getv(to, list, 2, PWC_CID_NONE, PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE),
                rows[i].get);
        }
        expect_nothing(p->a);
    }
}

static void test_rights(void)
{
    on_both(rights);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* A vector that takes more than half of a ring is refused for good; one that finds no room now may
 * be tried again. */
static void test_rings(void)
{
    enum { RING = 16384, LONGS = RING / 2 / 64 };
    struct world *w = world_new_sized(RING, NULL);
    static const struct {
        size_t count, length;
        int result;
    } rows[] = {
        {LONGS, FAKE_PACKED_MAX, 0}, /* each piece is a record of 64 bytes */
        {LONGS + 1, FAKE_PACKED_MAX, -E2BIG},
        {440, 8, 0}, /* 16 bytes for each piece, and one record for each 252 pieces */
        {520, 8, -E2BIG},
    };
    unsigned taken = 0;
    int rc = 0;

    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t n = 0; n < rows[i].count; n++)
            list[n] = (struct pwc_piece){n * 100, w->memory + HERE + n * 110, rows[i].length};
        CU_ASSERT_EQUAL(
            pwc_putv(w->remote, list, rows[i].count, pwc_cid_u64(LID), PWC_CID_NONE, PWC_NO_RCE),
            rows[i].result);
        if (rows[i].result == 0)
            expect(w, PWC_LOCAL, LID, 0);
        expect_silence(w);
    }
    for (size_t n = 0; n < 40; n++)
        list[n] = (struct pwc_piece){n * 9000, w->memory + HERE, 8000};
    fake_hold(&w->daemon, true);
    for (; rc == 0; taken += rc == 0)
        rc = pwc_putv(w->remote, list, 40, pwc_cid_u64(taken), pwc_cid_u64(RID), 0);
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(taken, RING / 64 / 41); /* 40 records, and one more for the vector's end */
    memset(w->memory, 0, 9000);
    fake_hold(&w->daemon, false);
    for (unsigned i = 0; i < taken; i++) {
        CU_ASSERT_EQUAL(expect(w, PWC_LOCAL, i, 0).length, 320000);
        CU_ASSERT_EQUAL(expect(w, PWC_REMOTE, RID, 0).length, 320000);
    }
    expect_silence(w);
    CU_ASSERT_EQUAL(pwc_putv(w->remote, list, 40, pwc_cid_u64(9), pwc_cid_u64(RID), 0), 0);
    CU_ASSERT_EQUAL(expect(w, PWC_LOCAL, 9, 0).length, 320000);
    expect(w, PWC_REMOTE, RID, 0);
    expect_silence(w);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {{"lists", test_lists},
                           {"no bytes", test_no_bytes},
                           {"overlapping", test_overlapping},
                           {"ids", test_ids},
                           {"shapes", test_shapes},
                           {"shapes that the daemon reads", test_read_by_the_daemon},
                           {"strides of zero", test_strides_of_zero},
                           {"refused lists", test_refused_lists},
                           {"refused shapes", test_refused_shapes},
                           {"too many bytes", test_too_many_bytes},
                           {"rights", test_rights},
                           {"rings", test_rings},
                           CU_TEST_INFO_NULL};

    return suite_run("vectors", tests);
}
