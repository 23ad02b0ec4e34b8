/* Remote atomics through the public calls, against a daemon on a thread, and without it between two
 * contexts: each test runs on both paths. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "pwc/atomic.h"
#include "pwc/request.h"
#include "tests/count.h"
#include "tests/clientlib/daemon/client_path.h"
#include "tests/suite.h"

/* The next event of a context is an atomic's: with this id, status and length. */
static void expect_event(pwc_ctx *ctx, unsigned kind, uint64_t id, int status, uint64_t length)
{
    expect_op(ctx, kind, PWC_OP_ATOMIC, id, status, length);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void all_operations(struct path *p)
{
    static const struct {
        enum pwc_atomic_op op;
        enum pwc_type type;
        uint64_t old, operand, after;
    } rows[] = {
        {PWC_SET, PWC_U64, 5, 7, 7},
        {PWC_ADD, PWC_I64, 5, UINT64_MAX, 4},
        {PWC_ADD, PWC_U8, 0xaa05, 0xff, 0xaa04},
        {PWC_PROD, PWC_U16, 0x7770003, 5, 0x777000f},
        {PWC_MIN, PWC_I32, 3, (uint32_t)-2, (uint32_t)-2},
        {PWC_MIN, PWC_U32, 3, (uint32_t)-2, 3},
        {PWC_MAX, PWC_I8, 3, 0xfe, 3},
        {PWC_MAX, PWC_U8, 3, 0xfe, 0xfe},
        {PWC_AND, PWC_U64, 0xff0, 0x3c3c, 0xc30},
        {PWC_OR, PWC_U64, 0xff0, 0x3c3c, 0x3ffc},
        {PWC_XOR, PWC_I64, 0xff0, 0x3c3c, 0x33cc},
        {PWC_ADD, PWC_F64, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
        {PWC_PROD, PWC_F32, 0x40000000, 0x40400000, 0x40c00000},
    };
    static const uint64_t size_of[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t size = size_of[rows[i].type], fetched = 0, old = 0;
        unsigned executed = fake_executed(&p->w->daemon);

        memcpy(&old, &rows[i].old, size);
        p->words[3] = rows[i].old;
        CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 24, rows[i].op, rows[i].type, &rows[i].operand, 1,
                                   pwc_cid_u64(i), pwc_cid_u64(~i), 0),
                        0);
        expect_event(p->a, PWC_LOCAL, i, 0, size);
        expect_event(p->b, PWC_REMOTE, ~i, 0, size);
        CU_ASSERT_EQUAL(p->words[3], rows[i].after);
        p->words[3] = rows[i].old;
        CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 24, rows[i].op, rows[i].type, &rows[i].operand, 1,
                                         &fetched, pwc_cid_u64(i), pwc_cid_u64(~i), 0),
                        0);
        expect_event(p->a, PWC_LOCAL, i, 0, size);
        expect_event(p->b, PWC_REMOTE, ~i, 0, size);
        CU_ASSERT_EQUAL(p->words[3], rows[i].after);
        CU_ASSERT_EQUAL(fetched, old);
        check_path(p, executed);
    }
}

static void test_operations(void)
{
    on_both(all_operations);
}

static void swaps(struct path *p)
{
    uint32_t expected = 5, desired = 9, mask = 0xf0, result = 0;

    p->words[0] = UINT64_C(0x1111111100000005);
    for (int i = 0; i < 2; i++) { /* the second time the word has another value */
        CU_ASSERT_EQUAL(pwc_compare_swap(p->to_b, 0, PWC_U32, &expected, &desired, &result,
                                         pwc_cid_u64(1), PWC_CID_NONE, PWC_NO_RCE),
                        0);
        expect_event(p->a, PWC_LOCAL, 1, 0, 4);
        CU_ASSERT_EQUAL(result, i == 0 ? 5 : 9);
        CU_ASSERT_EQUAL(p->words[0], UINT64_C(0x1111111100000009));
    }
    desired = 0xabcdef;
    CU_ASSERT_EQUAL(pwc_masked_swap(p->to_b, 0, PWC_U32, &mask, &desired, &result, pwc_cid_u64(2),
                                    pwc_cid_u64(3), 0),
                    0);
    expect_event(p->a, PWC_LOCAL, 2, 0, 4);
    expect_event(p->b, PWC_REMOTE, 3, 0, 4);
    CU_ASSERT_EQUAL(result, 9);
    CU_ASSERT_EQUAL(p->words[0], UINT64_C(0x11111111000000e9));
    expect_nothing(p->a);
    expect_nothing(p->b);
}

static void test_swaps(void)
{
    on_both(swaps);
}

/* Several elements: their values are brought into a region of ours, at most 16. */
static void several(struct path *p)
{
    uint64_t *result = p->words + 100, operands[17], anywhere[16];

    for (uint64_t i = 0; i < 17; i++) {
        p->words[i] = i;
        operands[i] = 1000 * i;
    }
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, operands, 16, result,
                                     pwc_cid_u64(1), pwc_cid_u64(2), 0),
                    0);
    expect_event(p->a, PWC_LOCAL, 1, 0, 128);
    expect_event(p->b, PWC_REMOTE, 2, 0, 128);
    for (uint64_t i = 0; i < 16; i++)
        CU_ASSERT(result[i] == i && p->words[i] == 1001 * i);
    CU_ASSERT_EQUAL(p->words[16], 16);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 8, PWC_READ, PWC_U64, NULL, 3, result, pwc_cid_u64(3),
                                     PWC_CID_NONE, PWC_NO_RCE),
                    0);
    expect_event(p->a, PWC_LOCAL, 3, 0, 24);
    CU_ASSERT(result[0] == 1001 && result[2] == 3003 && result[3] == 3);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, operands, 16, anywhere,
                                     PWC_CID_NONE, PWC_CID_NONE, 0),
                    -EFAULT);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, operands, 17, result,
                                     PWC_CID_NONE, PWC_CID_NONE, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_XOR, PWC_U64, operands, 17, pwc_cid_u64(4),
                               PWC_CID_NONE, PWC_NO_RCE),
                    0);
    expect_event(p->a, PWC_LOCAL, 4, 0, 136);
    CU_ASSERT_EQUAL(p->words[16], 16 ^ 16000);
}

static void test_several(void)
{
    on_both(several);
}

/* The value may be brought into any memory. Without a local event a flush shows that it is
 * there. */
static void silent(struct path *p)
{
    uint16_t one = 1, before = 0xdead;

    p->words[0] = 41;
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U16, &one, 1, &before, PWC_CID_NONE,
                                     PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE),
                    0);
    expect_nothing(p->a);
    CU_ASSERT_EQUAL(before, 41);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U16, &one, 1, PWC_CID_NONE, PWC_CID_NONE,
                               PWC_NO_LCE | PWC_NO_RCE),
                    0);
    expect_nothing(p->a);
    expect_nothing(p->b);
    CU_ASSERT_EQUAL(p->words[0], 43);
}

static void test_silent(void)
{
    on_both(silent);
}

static void long_ids(struct path *p)
{
    uint8_t lid[PWC_CID_MAX + 1], rid[PWC_CID_MAX];
    uint64_t one = 1, before = 0;
    struct pwc_event event;

    fill(lid, sizeof(lid), 1);
    fill(rid, sizeof(rid), 2);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, &before,
                                     pwc_cid_bytes(lid, 77), pwc_cid_bytes(rid, PWC_CID_MAX), 0),
                    0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(p->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT(event.id_size == 77 && memcmp(event.data, lid, 77) == 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(p->b, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
    CU_ASSERT(event.id_size == PWC_CID_MAX && memcmp(event.data, rid, PWC_CID_MAX) == 0);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1,
                               pwc_cid_bytes(lid, PWC_CID_MAX + 1), PWC_CID_NONE, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, PWC_CID_NONE,
                               pwc_cid_bytes(lid, PWC_CID_MAX + 1), 0),
                    -EINVAL);
}

static void test_long_ids(void)
{
    on_both(long_ids);
}

/* With PWC_NOTIFY the target gets a notification. */
static void notify(struct path *p)
{
    uint64_t one = 1;

    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, pwc_cid_u64(5),
                               pwc_cid_u64(6), PWC_NOTIFY),
                    0);
    expect_event(p->a, PWC_LOCAL, 5, 0, 8);
    expect_event(p->b, PWC_NOTIFICATION, 6, 0, 8);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, PWC_CID_NONE,
                               pwc_cid_bytes(&one, 8), PWC_NOTIFY),
                    -EINVAL);
    expect_nothing(p->b);
}

static void test_notify(void)
{
    on_both(notify);
}

/* A request counts atomics on both paths, and the value is there when it has ended. */
static void requests(struct path *p)
{
    uint64_t one = 1, before[2] = {0, 0}, *several_before = p->words + 100;
    pwc_request *request;
    struct pwc_status status;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(p->a, &request), 0);
    p->words[0] = 70;
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, &before[i],
                                         pwc_cid_request(request), PWC_CID_NONE, PWC_NO_RCE),
                        0);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &one, 1, pwc_cid_request(request),
                               PWC_CID_NONE, PWC_NO_RCE | PWC_NO_LCE),
                    0);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_READ, PWC_U64, NULL, 2, several_before,
                                     pwc_cid_request(request), PWC_CID_NONE, PWC_NO_RCE),
                    0);
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(request, &status, WAIT_MS), 1);
    CU_ASSERT(status.status == 0 && status.count == 4 && status.bytes == 16);
    CU_ASSERT(before[0] == 70 && before[1] == 71 && several_before[0] == 73);
    CU_ASSERT_EQUAL(pwc_atomic(p->to_b, 4, PWC_ADD, PWC_U64, &one, 1, pwc_cid_request(request),
                               PWC_CID_NONE, 0),
                    /* The request counts no operation after a refusal, and can be freed. */
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_request_free(request), 0);
    expect_nothing(p->a);
}

static void test_requests(void)
{
    on_both(requests);
}

/* ---- checks --------------------------------------------------------------------------------- */

static int change(struct path *p, uint64_t off, unsigned op, unsigned type, size_t count,
                  unsigned flags)
{
    static const uint8_t operands[FAKE_PACKED_MAX + 8];

    return pwc_atomic(p->to_b, off, (enum pwc_atomic_op)op, (enum pwc_type)type, operands, count,
                      PWC_CID_NONE, PWC_CID_NONE, flags | PWC_NO_LCE | PWC_NO_RCE);
}

static void checks(struct path *p)
{
    static const struct {
        uint64_t off;
        unsigned op, type;
        size_t count;
        unsigned flags;
        int result;
    } rows[] = {
        {8, PWC_ADD, PWC_U64, 1, 0, 0},
        {8, PWC_ADD, PWC_U64, 0, 0, -EINVAL},
        {8, PWC_ADD, PWC_F64, 1, PWC_FENCE | PWC_UNORDERED, 0},
        {8, PWC_ADD, PWC_U64, 1, PWC_LCE_SOURCE, -EINVAL},
        {8, PWC_ADD, PWC_U64, 1, 1u << 15, -EINVAL},
        {8, PWC_ADD, PWC_U64, 1, PWC_NOTIFY, -EINVAL}, /* change adds PWC_NO_RCE */
        {8, PWC_READ, PWC_U64, 1, 0, -EINVAL},         /* would bring nothing back */
        {8, PWC_READ + 1, PWC_U64, 1, 0, -EINVAL},
        {8, UINT32_MAX, PWC_U64, 1, 0, -EINVAL},
        {8, PWC_ADD, PWC_F64 + 1, 1, 0, -EINVAL},
        {8, PWC_ADD, UINT32_MAX, 1, 0, -EINVAL},
        {8, PWC_AND, PWC_F64, 1, 0, -EINVAL},
        {8, PWC_XOR, PWC_F32, 1, 0, -EINVAL},
        {4, PWC_ADD, PWC_U64, 1, 0, -EINVAL},
        {4, PWC_ADD, PWC_F32, 1, 0, 0},
        {2, PWC_ADD, PWC_F32, 1, 0, -EINVAL},
        {1, PWC_ADD, PWC_I16, 1, 0, -EINVAL},
        {1, PWC_ADD, PWC_I8, 1, 0, 0},
        {0, PWC_ADD, PWC_U64, FAKE_PACKED_MAX / 8, 0, 0},
        {0, PWC_ADD, PWC_U64, FAKE_PACKED_MAX / 8 + 1, 0, -EMSGSIZE},
        {0, PWC_ADD, PWC_U64, SIZE_MAX / 8 + 2, 0, -EMSGSIZE},
        {(1 << 20) - 8, PWC_ADD, PWC_U64, 1, 0, 0},
        {(1 << 20) - 8, PWC_ADD, PWC_U64, 2, 0, -ERANGE},
        {1 << 20, PWC_ADD, PWC_U8, 1, 0, -ERANGE},
        {UINT64_MAX - 7, PWC_ADD, PWC_U64, 1, 0, -ERANGE},
    };
    uint64_t word = 0;

    for (size_t i = 0; i < COUNT(rows); i++)
        CU_ASSERT_EQUAL(
            change(p, rows[i].off, rows[i].op, rows[i].type, rows[i].count, rows[i].flags),
            rows[i].result);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(p->to_b, 0, PWC_ADD, PWC_U64, &word, 1, NULL, PWC_CID_NONE,
                                     PWC_CID_NONE, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_compare_swap(p->to_b, 0, PWC_U64, &word, &word, NULL, PWC_CID_NONE, PWC_CID_NONE, 0),
        -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_compare_swap(p->to_b, 4, PWC_F64, &word, &word, &word, PWC_CID_NONE, PWC_CID_NONE, 0),
        -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_masked_swap(p->to_b, 0, PWC_F64, &word, &word, &word, PWC_CID_NONE, PWC_CID_NONE, 0),
        -EINVAL);
    expect_nothing(p->a);
}

static void test_checks(void)
{
    on_both(checks);
}

/* A change needs the right to write, a fetch both rights, PWC_READ only the right to read. */
static void rights(struct path *p)
{
    static const struct {
        unsigned rights;
        int change, fetch, read;
    } rows[] = {
        {PWC_REMOTE_READ, -EKEYREJECTED, -EKEYREJECTED, 0},
        {PWC_REMOTE_WRITE, 0, -EKEYREJECTED, -EKEYREJECTED},
        {PWC_REMOTE_RW, 0, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t one = 1, before = 0;
        pwc_region *region;
        pwc_remote *to;

        CU_ASSERT_EQUAL_FATAL(pwc_alloc(p->w->client, 64, rows[i].rights, &region), 0);
        to = bind_to_b(p, region);
        CU_ASSERT_EQUAL(pwc_atomic(to, 0, PWC_ADD, PWC_U64, &one, 1, PWC_CID_NONE, PWC_CID_NONE,
                                   PWC_NO_LCE | PWC_NO_RCE),
                        rows[i].change);
        CU_ASSERT_EQUAL(pwc_fetch_atomic(to, 0, PWC_ADD, PWC_U64, &one, 1, &before, PWC_CID_NONE,
                                         PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE),
                        rows[i].fetch);
        CU_ASSERT_EQUAL(pwc_fetch_atomic(to, 0, PWC_READ, PWC_U64, NULL, 1, &before, PWC_CID_NONE,
                                         PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE),
                        rows[i].read);
        expect_nothing(p->a);
        CU_ASSERT_EQUAL(*(uint64_t *)pwc_region_addr(region),
                        (uint64_t)(rows[i].change == 0) + (rows[i].fetch == 0));
        if (rows[i].read == 0)
            CU_ASSERT_EQUAL(before, *(uint64_t *)pwc_region_addr(region));
    }
}

static void test_rights(void)
{
    on_both(rights);
}

/* With a full submit ring an atomic is refused, and changes nothing. */
static void test_full(void)
{
    struct world *w = world_new_sized(16384, NULL);
    uint64_t one = 1, before[1024] = {0};
    unsigned submitted = 0;
    int rc;

    fake_hold(&w->daemon, true);
    while ((rc = pwc_fetch_atomic(w->remote, 0, PWC_ADD, PWC_U64, &one, 1, &before[submitted],
                                  pwc_cid_u64(submitted), PWC_CID_NONE, PWC_NO_RCE)) == 0)
        submitted++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    fake_hold(&w->daemon, false);
    for (unsigned i = 0; i < submitted; i++)
        (void)expect(w, PWC_LOCAL, i, 0);
    for (unsigned i = 0; i < submitted; i++)
        CU_ASSERT_EQUAL(before[i], i);
    CU_ASSERT_EQUAL(*(uint64_t *)(void *)w->memory, submitted);
    world_free(w);
}

/* A fetch that is refused gives its slot back. The ring is full of puts, which use no slots. */
static void test_slots(void)
{
    struct world *w = world_new_sized(16384, NULL);
    const uint64_t ones[2] = {1, 1};
    void *before = w->memory + 64; /* several values need a region */

    fake_hold(&w->daemon, true);
    while (put(w, 0, NULL, 0, 1, PWC_NO_LCE | PWC_NO_RCE) == 0)
        ;
    for (unsigned i = 0; i < 10000; i++) /* more often than there are slots */
        CU_ASSERT_EQUAL(pwc_fetch_atomic(w->remote, 0, PWC_ADD, PWC_U64, ones, 1 + i % 2, before,
                                         PWC_CID_NONE, PWC_CID_NONE, PWC_NO_RCE),
                        -EAGAIN);
    fake_hold(&w->daemon, false);
    expect_silence(w);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(w->remote, 0, PWC_ADD, PWC_U64, ones, 1, before,
                                     pwc_cid_u64(9), PWC_CID_NONE, PWC_NO_RCE),
                    0);
    (void)expect(w, PWC_LOCAL, 9, 0);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"operations, with and without the value before", test_operations},
        {"swaps", test_swaps},
        {"several elements", test_several},
        {"without an event", test_silent},
        {"long ids", test_long_ids},
        {"notifications", test_notify},
        {"requests", test_requests},
        {"checks", test_checks},
        {"rights", test_rights},
        {"a full ring", test_full},
        {"slots of refused fetches", test_slots},
        CU_TEST_INFO_NULL,
    };

    return suite_run("atomics", tests);
}
