/* Puts and gets through the public calls, against a daemon on a thread. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "pwc/am.h"
#include "pwc/tuning.h"
#include "tests/suite.h"

static void test_put_sizes(void)
{
    static const size_t sizes[] = {0, 1, 8, 63, 1023, FAKE_PACKED_MAX};
    struct world *w = world_new();
    uint8_t source[FAKE_PACKED_MAX + 1];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fill(source, sizeof(source), (unsigned)i);
        CU_ASSERT_EQUAL(put(w, 11, source, sizes[i], i, 0), 0);
        CU_ASSERT_EQUAL(expect(w, PWC_LOCAL, i, 0).length, sizes[i]);
        CU_ASSERT_EQUAL(expect(w, PWC_REMOTE, ~i, 0).length, sizes[i]);
        CU_ASSERT_EQUAL(memcmp(w->memory + 11, source, sizes[i]), 0);
    }
    fill(w->memory + BIG, BIG, 5);
    CU_ASSERT_EQUAL(put(w, 0, w->memory + BIG, BIG, 2, PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED),
                    0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    (void)expect(w, PWC_REMOTE, ~UINT64_C(2), 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, w->memory + BIG, BIG), 0);
    world_free(w);
}

static void test_long_ids(void)
{
    struct world *w = world_new();
    uint8_t lid[PWC_CID_MAX + 1], rid[PWC_CID_MAX];
    struct pwc_event event;

    fill(lid, sizeof(lid), 1);
    fill(rid, sizeof(rid), 2);
    for (int is_get = 0; is_get < 2; is_get++) {
        CU_ASSERT_EQUAL((is_get ? pwc_get(w->remote, 0, w->memory, 8, pwc_cid_bytes(lid, 5),
                                          pwc_cid_bytes(rid, PWC_CID_MAX), 0)
                                : pwc_put(w->remote, 0, w->memory, 8, pwc_cid_bytes(lid, 5),
                                          pwc_cid_bytes(rid, PWC_CID_MAX), 0)),
                        0);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.op, is_get ? PWC_OP_GET : PWC_OP_PUT);
        CU_ASSERT_EQUAL(event.id_size, 5);
        CU_ASSERT_EQUAL(memcmp(event.data, lid, 5), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.op, is_get ? PWC_OP_GET : PWC_OP_PUT);
        CU_ASSERT_EQUAL(event.id_size, PWC_CID_MAX);
        CU_ASSERT_EQUAL(memcmp(event.data, rid, PWC_CID_MAX), 0);
    }
    CU_ASSERT_EQUAL(
        pwc_put(w->remote, 0, NULL, 0, pwc_cid_bytes(lid, PWC_CID_MAX + 1), pwc_cid_u64(0), 0),
        -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_get(w->remote, 0, NULL, 0, pwc_cid_u64(0), pwc_cid_bytes(lid, PWC_CID_MAX + 1), 0),
        -EINVAL);
    world_free(w);
}

static void test_checks(void)
{
    static const struct {
        uint64_t off, len;
        int result;
    } rows[] = {
        {0, 1 << 20, 0},
        {1, 1 << 20, -ERANGE},
        {1 << 20, 0, 0},
        {1 << 20, 1, -ERANGE},
        {(1 << 20) + 1, 0, -ERANGE},
        {UINT64_MAX, 1, -ERANGE},
        {UINT64_MAX - 7, 8, -ERANGE},
        {8, UINT64_MAX - 7, -EMSGSIZE},
        {0, FAKE_MESSAGE_MAX + 1, -EMSGSIZE},
    };
    struct world *w = world_new();
    pwc_remote *write_only, *read_only, *nothing;
    pwc_region *for_write, *for_read;
    struct pwc_key key;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_EQUAL(put(w, rows[i].off, w->memory, rows[i].len, 0, 0), rows[i].result);
        CU_ASSERT_EQUAL(get(w, rows[i].off, w->memory, rows[i].len, 0, 0), rows[i].result);
    }
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 0, 1u << 7), -EINVAL);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 0, PWC_PROTOCOL_CHAIN), 0);
    CU_ASSERT_EQUAL(get(w, 0, w->memory, 8, 0, PWC_PROTOCOL_ORDERED), -EINVAL);
    CU_ASSERT_EQUAL(get(w, 0, w->memory, 8, 0, 1u << 15), -EINVAL);

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, PWC_REMOTE_WRITE, &for_write), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, PWC_REMOTE_READ, &for_read), 0);
    CU_ASSERT_EQUAL(pwc_region_key(for_write, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &write_only), 0);
    CU_ASSERT_EQUAL(pwc_region_key(for_read, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &read_only), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, NULL, &nothing), 0);
    CU_ASSERT_EQUAL(pwc_remote_len(read_only), 64);
    CU_ASSERT_EQUAL(pwc_remote_len(nothing), 0);
    CU_ASSERT_EQUAL(pwc_get(write_only, 0, w->memory, 8, pwc_cid_u64(0), pwc_cid_u64(0), 0),
                    -EKEYREJECTED);
    CU_ASSERT_EQUAL(pwc_put(read_only, 0, w->memory, 8, pwc_cid_u64(0), pwc_cid_u64(0), 0),
                    -EKEYREJECTED);
    CU_ASSERT_EQUAL(pwc_put(nothing, 0, w->memory, 1, pwc_cid_u64(0), pwc_cid_u64(0), 0), -ERANGE);
    CU_ASSERT_EQUAL(pwc_put(nothing, 0, NULL, 0, pwc_cid_u64(0), pwc_cid_u64(0), 0), 0);
    key.secret[3] ^= 1;
    CU_ASSERT_EQUAL(pwc_bind(w->ctx, 0, &key, &nothing), -EKEYREJECTED);

    world_free(w);
}

/* One call takes several events: they are in order, and each has its own id, which stays valid. */
static void test_batches(void)
{
    enum { COUNT = 90, MAX = 64 };
    static const unsigned kinds[] = {PWC_LOCAL, PWC_REMOTE};
    struct world *w = world_new();
    struct pwc_event events[MAX + 1], *last = &events[MAX];
    uint8_t id[PWC_CID_MAX];

    memset(last, 0xee, sizeof(*last));
    CU_ASSERT_EQUAL(pwc_probe_n(w->ctx, PWC_ANY, 0, events, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_probe_n(w->ctx, PWC_ANY, 1u << 9, events, 1), -EINVAL);
    CU_ASSERT_EQUAL(pwc_probe_n(w->ctx, PWC_ANY, 0, events, MAX), 0);
    for (unsigned round = 0; round < 4; round++) {

        for (unsigned i = 0; i < COUNT; i++) {
            /* In odd rounds every third operation has a long id. */
            bool longer = round % 2 && i % 3 == 0;
            pwc_cid lid = longer ? pwc_cid_bytes(id, PWC_CID_MAX - i) : pwc_cid_u64(i);

            memset(id, (int)i, sizeof(id));
            while (pwc_put(w->remote, 0, &i, sizeof(i), lid, lid, 0) == -EAGAIN)
                usleep(100);
        }
        if (round >= 2) /* the flush makes the library keep the events */
            CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
        for (unsigned k = 0; k < 2; k++) {
            for (unsigned seen = 0; seen < COUNT;) {
                int n = pwc_probe_n(w->ctx, PWC_ANY, kinds[k], events, MAX);

                CU_ASSERT_FATAL(n >= 0 && n <= MAX);
                for (int e = 0; e < n; e++, seen++) {
                    bool longer = round % 2 && seen % 3 == 0;

                    CU_ASSERT_EQUAL(events[e].kind, kinds[k]);
                    CU_ASSERT_EQUAL(events[e].op, PWC_OP_PUT);
                    CU_ASSERT_EQUAL_FATAL(events[e].id_size, longer ? PWC_CID_MAX - seen : 0);
                    memset(id, (int)seen, sizeof(id));
                    if (longer)
                        CU_ASSERT_EQUAL(memcmp(events[e].data, id, events[e].id_size), 0)
                    else
                        CU_ASSERT_EQUAL(events[e].id, seen);
                }
            }
            CU_ASSERT_EQUAL(pwc_probe_n(w->ctx, PWC_ANY, kinds[k], events, MAX), 0);
        }
    }
    CU_ASSERT_EQUAL(last->id, UINT64_C(0xeeeeeeeeeeeeeeee));
    world_free(w);
}

static void test_suppressed_events(void)
{
    struct world *w = world_new();

    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, PWC_NO_LCE), 0);
    (void)expect(w, PWC_REMOTE, ~UINT64_C(1), 0);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 2, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(get(w, 0, w->memory, 8, 3, PWC_NO_LCE), 0);
    (void)expect(w, PWC_REMOTE, ~UINT64_C(3), 0);
    CU_ASSERT_EQUAL(get(w, 0, w->memory, 8, 4, PWC_NO_RCE | PWC_NO_LCE), 0);
    expect_silence(w);
    world_free(w);
}

/* A failed operation has a local event even with PWC_NO_LCE. */
static void test_errors_are_shown(void)
{
    struct world *w = world_new();
    struct pwc_key key;
    pwc_region *region;
    pwc_remote *stale;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &stale), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    for (unsigned flags = 0; flags <= PWC_NO_LCE; flags++) {
        CU_ASSERT_EQUAL(pwc_put(stale, 0, w->memory, 8, pwc_cid_u64(1), pwc_cid_u64(2), flags), 0);
        (void)expect(w, PWC_LOCAL, 1, -EKEYREJECTED);
        CU_ASSERT_EQUAL(pwc_get(stale, 0, w->memory, 8, pwc_cid_u64(3), pwc_cid_u64(4), flags), 0);
        (void)expect(w, PWC_LOCAL, 3, -EKEYREJECTED);
    }
    expect_silence(w);
    world_free(w);
}

/* A packed payload may not fit into a small ring: then it is sent from its region, or through
 * staging.
 */
static void test_small_rings(void)
{
    struct world *w = world_new_sized(SESSION_RING_MIN, NULL);
    uint8_t outside[FAKE_PACKED_MAX], id[PWC_CID_MAX];
    pwc_cid long_id = pwc_cid_bytes(id, sizeof(id));

    fill(w->memory + BIG, FAKE_PACKED_MAX, 3);
    memset(id, 1, sizeof(id));
    memset(outside, 2, sizeof(outside));
    CU_ASSERT_EQUAL(put(w, 0, w->memory + BIG, FAKE_PACKED_MAX, 1, PWC_NO_RCE | PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, w->memory + BIG, FAKE_PACKED_MAX), 0);
    CU_ASSERT_EQUAL(put(w, 0, outside, FAKE_PACKED_MAX, 1, PWC_NO_RCE | PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, outside, FAKE_PACKED_MAX), 0);
    /* Two ids of full length always fit. */
    CU_ASSERT_EQUAL(pwc_put(w->remote, 0, outside, 1000, long_id, long_id, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, -1), 0);
    CU_ASSERT_EQUAL(memcmp(w->memory, outside, 1000), 0);
    world_free(w);
}

static void test_back_pressure(void)
{
    enum { OPERATIONS = 20000 };
    struct world *w = world_new_sized(SESSION_RING_MIN, NULL);
    uint64_t submitted = 0, local = 0, remote = 0, refused = 0;

    while (local < OPERATIONS || remote < OPERATIONS) {
        struct pwc_event event;
        int rc = submitted < OPERATIONS ? put(w, 0, &submitted, 8, submitted, 0) : -EAGAIN;

        if (rc == 0) {
            submitted++;
            continue;
        }
        CU_ASSERT_EQUAL_FATAL(rc, -EAGAIN);
        refused++;
        CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, WAIT_MS), 1);
        if (event.kind == PWC_LOCAL) {
            CU_ASSERT_EQUAL_FATAL(event.id, local);
            local++;
        } else {
            CU_ASSERT_EQUAL_FATAL(event.id, ~remote);
            remote++;
        }
    }
    CU_ASSERT_TRUE(refused > 2 * OPERATIONS / 200);
    expect_silence(w);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"puts of every size", test_put_sizes},
        {"long completion ids", test_long_ids},
        {"several events by one call", test_batches},
        {"what put and get check at once", test_checks},
        {"events that were not asked for", test_suppressed_events},
        {"errors are shown all the same", test_errors_are_shown},
        {"small rings", test_small_rings},
        {"back-pressure", test_back_pressure},
        CU_TEST_INFO_NULL,
    };

    return suite_run("transfer", tests);
}
