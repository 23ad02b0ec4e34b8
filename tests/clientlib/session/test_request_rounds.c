/*
 * Requests over a session whose daemon side is the test itself: rounds of persistent requests with
 * their local events, the list of ended requests for a wait, and ends that make no sense.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/channel.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum {
    RING = SESSION_RING_MIN,
    PERSISTENT = REQUEST_PLAIN + 100, /* a kind of request that only the test knows */
};

struct pair {
    struct fake_session daemon;
    struct mapping mapping;
    struct channel channel;
};

static struct pair *pair_new(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct pair *p = calloc(1, sizeof(*p));

    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    fake_channel_open(&p->daemon, &p->mapping, &p->channel, &rings);
    return p;
}

static void pair_free(struct pair *p)
{
    fake_channel_close(&p->daemon, &p->mapping, &p->channel);
    free(p);
}

static struct pwc_request *persistent(struct pair *p, pwc_cid lid)
{
    struct pwc_request *r = NULL;

    CU_ASSERT_EQUAL_FATAL(
        request_pool_take(&p->channel.requests, (enum request_kinds)PERSISTENT, &r), 0);
    CU_ASSERT_EQUAL_FATAL(request_set_lid(r, &lid), 0);
    r->wanted = 2;
    return r;
}

static int probe_local(struct pair *p, struct pwc_event *event)
{
    return channel_probe(&p->channel, PWC_ANY, PWC_LOCAL, event);
}

/* Each round of a request with a local id ends with one local event, which has that id. */
static void test_events(void)
{
    static uint8_t bytes[PWC_CID_MAX];
    struct pair *p = pair_new();
    const pwc_cid lids[] = {pwc_cid_u64(5), pwc_cid_bytes(bytes, 3),
                            pwc_cid_bytes(bytes, PWC_CID_MAX), PWC_CID_NONE};
    const pwc_cid too_long = pwc_cid_bytes(bytes, PWC_CID_MAX + 1);
    struct pwc_event event;

    memset(bytes, 7, sizeof(bytes));
    for (unsigned i = 0; i < 4; i++) {
        struct pwc_request *r = persistent(p, lids[i]);

        for (int status = 0; status >= -1; status--) {
            CU_ASSERT_EQUAL(channel_start_request(&p->channel, r), 0);
            CU_ASSERT_EQUAL(r->left, 2);
            CU_ASSERT_EQUAL(request_pool_give(r), -EBUSY);
            CU_ASSERT_EQUAL(probe_local(p, &event), 0);
            r->status.peer = 77;
            r->status.bytes = 11;
            channel_end_request(&p->channel, r, status);
            CU_ASSERT_EQUAL(r->left, 0);
            CU_ASSERT_EQUAL(r->status.status, status);
            CU_ASSERT_EQUAL_FATAL(probe_local(p, &event), i < 3);
            if (i == 3)
                continue;
            CU_ASSERT_EQUAL(event.kind, PWC_LOCAL);
            CU_ASSERT_EQUAL(event.op, PWC_OP_REQUEST);
            CU_ASSERT_EQUAL(event.status, status);
            CU_ASSERT_EQUAL(event.peer, 77);
            CU_ASSERT_EQUAL(event.length, 11);
            CU_ASSERT_EQUAL(event.id_size, lids[i].size);
            CU_ASSERT_EQUAL(event.id, lids[i].size == 0 ? lids[i].value : 0);
            CU_ASSERT_EQUAL(event.id_size > 0 ? memcmp(event.data, bytes, event.id_size) : 0, 0);
            CU_ASSERT_EQUAL(probe_local(p, &event), 0);
        }
        CU_ASSERT_EQUAL(request_set_lid(r, &too_long), -EINVAL);
        CU_ASSERT_EQUAL(request_pool_give(r), 0);
    }
    pair_free(p);
}

/* A request is not started without room for its event. The room is given back with the event, or
 * when the start was taken back. */
static void test_event_room(void)
{
    enum { MOST = 4096 };
    struct pair *p = pair_new();
    struct pwc_request *r[MOST];
    struct pwc_event event;
    unsigned started = 0, again = 0;
    int rc = 0;

    while (rc == 0 && started < MOST) {
        r[started] = persistent(p, pwc_cid_u64(started + 1));
        rc = channel_start_request(&p->channel, r[started]);
        started += rc == 0;
    }
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(started, session_local_limit(RING) / event_bytes(0));
    CU_ASSERT_EQUAL(channel_own_room(&p->channel, 0), -EAGAIN);
    channel_unstart_request(&p->channel, r[0]);
    CU_ASSERT_EQUAL(channel_own_room(&p->channel, 0), 0);
    CU_ASSERT_EQUAL(channel_start_request(&p->channel, r[0]), 0);
    for (unsigned i = 0; i < started; i++)
        channel_end_request(&p->channel, r[i], 0);
    CU_ASSERT_EQUAL(channel_start_request(&p->channel, r[0]), -EAGAIN);
    for (unsigned i = 0; i < started; i++) {
        CU_ASSERT_EQUAL_FATAL(probe_local(p, &event), 1);
        CU_ASSERT_EQUAL(event.id, i + 1);
    }
    while (again < started && channel_start_request(&p->channel, r[again]) == 0)
        again++;
    CU_ASSERT_EQUAL(again, started);
    pair_free(p);
}

static int post_notice(struct pair *p, uint64_t id)
{
    return fake_session_post(&p->daemon, EVENT_NOTIFY, SUBMIT_PUT, 9, 0, 8, id, NULL, 0);
}

static void expect_published(struct pair *p, uint64_t started, uint64_t unexpected,
                             uint64_t matched)
{
    const struct session_notices *notices = &p->daemon.shared->notices;

    CU_ASSERT_EQUAL(notices->started, started);
    CU_ASSERT_EQUAL(notices->unexpected, unexpected);
    CU_ASSERT_EQUAL(notices->matched, matched);
}

/* The session shows the numbers of started requests and unexpected notifications after each
 * change. */
static void test_published_counts(void)
{
    const struct matcher_pattern pattern = {.peer = 9, .id = 7};
    struct pair *p = pair_new();
    struct channel *ch = &p->channel;
    struct pwc_request *r;
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(request_pool_take(&ch->requests, REQUEST_NOTIFY, &r), 0);
    r->wanted = 2;
    CU_ASSERT_EQUAL_FATAL(channel_notify_open(ch, r, &pattern), 0);
    expect_published(p, 0, 0, 0);
    for (uint64_t id = 6; id <= 8; id++)
        CU_ASSERT_EQUAL(post_notice(p, id), 0);
    CU_ASSERT_EQUAL(channel_probe(ch, PWC_ANY, PWC_REMOTE, &event), 0);
    expect_published(p, 0, 3, 0);
    CU_ASSERT_EQUAL(channel_start_request(ch, r), 0);
    CU_ASSERT_EQUAL(channel_notify_start(ch, r), 0);
    expect_published(p, 1, 2, 1);
    CU_ASSERT_EQUAL(post_notice(p, 7), 0);
    CU_ASSERT_EQUAL(channel_probe(ch, PWC_ANY, PWC_REMOTE, &event), 0);
    expect_published(p, 0, 2, 2);
    CU_ASSERT_EQUAL(r->left, 0);
    CU_ASSERT_EQUAL(channel_probe(ch, PWC_ANY, PWC_NOTIFICATION, &event), 1);
    expect_published(p, 0, 1, 2);
    CU_ASSERT_EQUAL(channel_start_request(ch, r), 0);
    CU_ASSERT_EQUAL(channel_notify_start(ch, r), 0);
    expect_published(p, 1, 1, 2);
    channel_notify_stop(ch, r);
    channel_end_request(ch, r, -ECANCELED);
    expect_published(p, 0, 1, 2);
    CU_ASSERT_EQUAL(request_pool_give(r), 0);
    pair_free(p);
}

/* An end that the daemon has no right to report ends the session; it ends no request. */
static void test_hostile_ends(void)
{
    static const uint8_t id[8];

    for (int row = 0; row < 6; row++) {
        struct pair *p = pair_new();
        struct pwc_request *plain, *idle, *other;
        struct pwc_event event;
        uint64_t ids[6];

        CU_ASSERT_EQUAL_FATAL(request_pool_take(&p->channel.requests, REQUEST_PLAIN, &plain), 0);
        CU_ASSERT_EQUAL_FATAL(request_pool_take(&p->channel.requests, REQUEST_PLAIN, &idle), 0);
        other = persistent(p, PWC_CID_NONE);
        CU_ASSERT_EQUAL(channel_start_request(&p->channel, other), 0);
        request_begin(plain);
        ids[0] = request_cid(idle).value;
        ids[1] = request_cid(other).value;
        ids[2] = REQUEST_IDS; /* number 0, which the pool's head has */
        ids[3] = REQUEST_IDS + REQUESTS_A_CHUNK;
        ids[4] = UINT64_MAX;
        ids[5] = request_cid(plain).value; /* valid, but in an event with an id of bytes */
        CU_ASSERT_EQUAL(fake_session_post(&p->daemon, EVENT_LOCAL, SUBMIT_PUT | EVENT_SLOT, 1, 0, 0,
                                          ids[row], id, row == 5 ? sizeof(id) : 0),
                        0);
        CU_ASSERT_EQUAL(probe_local(p, &event), -EPROTO);
        CU_ASSERT_EQUAL(plain->left, 1);
        CU_ASSERT_EQUAL(other->left, 2);
        pair_free(p);
    }
}

/* The list of a wait holds exactly the marked requests that have ended, in the order of their ends.
 * A request on the list cannot be freed. */
static void test_wait_list(void)
{
    enum { COUNT = 200 };
    struct pair *p = pair_new();
    struct request_pool *pool = &p->channel.requests;
    struct pwc_request *r[COUNT];

    for (uint32_t i = 0; i < COUNT; i++)
        CU_ASSERT_EQUAL_FATAL(request_pool_take(pool, REQUEST_PLAIN, &r[i]), 0);
    pool->wait = UINT32_MAX - 3; /* so that the number of the wait wraps */
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            request_begin(r[i]);
        request_wait_begin(pool);
        CU_ASSERT_EQUAL(pool->wait % 2, 1);
        for (uint32_t i = 0; i < COUNT; i += 2)
            request_mark(pool, r[i], i);
        CU_ASSERT_PTR_NULL(request_pop(pool));
        for (uint32_t i = COUNT; i-- > 0;)
            CU_ASSERT_EQUAL(request_end_one(pool, request_cid(r[i]).value, 0, 1, 2), 0);
        CU_ASSERT_EQUAL(pool->ended, COUNT / 2);
        CU_ASSERT_EQUAL(request_pool_give(r[0]), -EBUSY);
        /* A request that begins and ends again before the wait looks is on the list once. */
        request_begin(r[0]);
        CU_ASSERT_EQUAL(request_end_one(pool, request_cid(r[0]).value, 0, 1, 2), 0);
        CU_ASSERT_EQUAL(pool->ended, COUNT / 2);
        for (uint32_t i = COUNT; i > 0; i -= 2) {
            struct pwc_request *popped = request_pop(pool);

            CU_ASSERT_PTR_EQUAL_FATAL(popped, r[i - 2]);
            CU_ASSERT_EQUAL(popped->position, i - 2);
        }
        CU_ASSERT_PTR_NULL(request_pop(pool));
        pool->awaited = r[1]; /* awaited by a single wait */
        CU_ASSERT_EQUAL(request_pool_give(r[1]), -EBUSY);
        pool->awaited = NULL;
        request_wait_end(pool);

        /* Outside a wait no request is put on the list. */
        request_begin(r[0]);
        CU_ASSERT_EQUAL(request_end_one(pool, request_cid(r[0]).value, 0, 1, 2), 0);
        CU_ASSERT_EQUAL(pool->ended, 0);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        CU_ASSERT_EQUAL(request_pool_give(r[i]), 0);
    pair_free(p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"the event of each round", test_events},       {"room for the event", test_event_room},
        {"ends that make no sense", test_hostile_ends}, {"the list of a wait", test_wait_list},
        {"published counts", test_published_counts},    CU_TEST_INFO_NULL,
    };

    return suite_run("request_rounds", tests);
}
