/*
 * Peers that end, over a session whose daemon side is the test itself: one event for each end,
 * after the events that the peer has caused, and only where a probe asks for it. Also new contexts
 * with the number of an ended peer.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include "clientlib/channel/channel.h"
#include "tests/clientlib/session/fake_channel.h"
#include "proto/wire_abi.h"
#include "tests/suite.h"

enum { RING = SESSION_RING_MIN, P = 5, Q = 6, SAME_BIT = P + 64, MANY = 200 };
enum { ALL = PWC_LOCAL | PWC_REMOTE | PWC_PEER };

struct pair {
    struct fake_session daemon;
    struct mapping mapping;
    struct channel channel;
};

static struct pair *pair_new(void)
{
    static const struct session_sizes rings = {RING, 4 * RING, 4 * RING, RING, RING};
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

static void post(struct pair *p, uint8_t kind, uint64_t peer, int status, uint64_t id)
{
    CU_ASSERT_EQUAL_FATAL(fake_session_post(&p->daemon, kind, kind == EVENT_PEER ? 0 : SUBMIT_PUT,
                                            peer, status, 0, id, NULL, 0),
                          0);
}

static void post_end(struct pair *p, uint64_t peer, int status)
{
    post(p, EVENT_PEER, peer, status, 0);
}

/* Posts the daemon's event that a context with this number has bound ours. */
static void post_back(struct pair *p, uint64_t peer)
{
    CU_ASSERT_EQUAL_FATAL(
        fake_session_post(&p->daemon, EVENT_PEER, PEER_BACK, peer, 0, 0, 0, NULL, 0), 0);
}

/* Checks kind and peer of the next event among `kinds`. Returns its status, or its id. */
static int64_t next(struct pair *p, uint64_t peer, unsigned kinds, unsigned kind, uint64_t from)
{
    struct pwc_event event = {0};
    int rc = channel_probe(&p->channel, peer, kinds, &event);

    if (rc == 0 && channel_arm(&p->channel, DOORBELL_FUTEX, kinds) == 1)
        rc = channel_probe(&p->channel, peer, kinds, &event);
    CU_ASSERT_EQUAL_FATAL(rc, 1);
    CU_ASSERT_EQUAL(event.kind, kind);
    CU_ASSERT_EQUAL(event.peer, from);
    CU_ASSERT_EQUAL(event.reserved[0] | event.reserved[1] | event.length | event.id_size, 0);
    return kind == PWC_PEER ? event.status : (int64_t)event.id;
}

static void expect_none(struct pair *p, uint64_t peer, unsigned kinds)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(channel_probe(&p->channel, peer, kinds, &event), 0);
    CU_ASSERT_EQUAL(channel_arm(&p->channel, DOORBELL_FUTEX, kinds), 0);
    channel_disarm(&p->channel);
}

/* An end is one event, with a status, after the peer's other events. Only probes that ask for ends
 * report it, and a second report of the daemon adds none. */
static void test_shown_once(void)
{
    struct pair *p = pair_new();

    post(p, EVENT_REMOTE, P, 0, 1);
    post(p, EVENT_REMOTE, Q, 0, 2);
    post_end(p, P, -EHOSTDOWN);
    post_end(p, Q, 0);
    post_end(p, P, -EHOSTDOWN);
    post(p, EVENT_REMOTE, SAME_BIT, 0, 3);
    CU_ASSERT_EQUAL(next(p, SAME_BIT, ALL, PWC_REMOTE, SAME_BIT), 3);
    expect_none(p, SAME_BIT, ALL);
    CU_ASSERT_EQUAL(next(p, P, ALL, PWC_REMOTE, P), 1);
    expect_none(p, P, PWC_LOCAL | PWC_REMOTE);
    CU_ASSERT_EQUAL(next(p, Q, PWC_PEER, PWC_PEER, Q), 0);
    CU_ASSERT_EQUAL(next(p, P, ALL, PWC_PEER, P), -EHOSTDOWN);
    CU_ASSERT_EQUAL(next(p, PWC_ANY, ALL, PWC_REMOTE, Q), 2);
    expect_none(p, PWC_ANY, ALL);
    expect_none(p, PWC_ANY, PWC_PEER);
    pair_free(p);
}

/* A reported end is not reported again while the end of another peer is still to be reported. */
static void test_one_after_another(void)
{
    static const uint64_t peers[] = {P, Q};

    for (int first = 0; first < 2; first++) {
        struct pair *p = pair_new();

        post_end(p, P, -EHOSTDOWN);
        post_end(p, Q, -EHOSTDOWN);
        CU_ASSERT_EQUAL(next(p, peers[first], PWC_PEER, PWC_PEER, peers[first]), -EHOSTDOWN);
        CU_ASSERT_EQUAL(next(p, PWC_ANY, PWC_PEER, PWC_PEER, peers[!first]), -EHOSTDOWN);
        expect_none(p, PWC_ANY, PWC_PEER);
        pair_free(p);
    }
}

/* Many ends at once, with events that earlier probes have kept. */
static void test_many(void)
{
    struct pair *p = pair_new();
    struct pwc_event events[MANY];
    unsigned ends = 0;

    for (uint64_t i = 0; i < MANY; i++)
        post_end(p, i, -EHOSTDOWN);
    expect_none(p, PWC_ANY, PWC_REMOTE);
    for (int n; (n = channel_probe_n(&p->channel, PWC_ANY, PWC_PEER, events, 7)) > 0;)
        for (int i = 0; i < n; i++)
            ends += events[i].kind == PWC_PEER && events[i].status == -EHOSTDOWN;
    CU_ASSERT_EQUAL(ends, MANY);
    pair_free(p);
}

/* Guards that each end among many is found, also after others are gone from the list, and that a
 * peer which has not ended is found in no case. */
static void test_each_is_found(void)
{
    struct pair *p = pair_new();
    struct channel_ends *ends = &p->channel.ends;

    for (uint64_t i = 0; i < MANY; i++) {
        post_end(p, 3 * i, -EHOSTDOWN);
        CU_ASSERT_EQUAL(next(p, PWC_ANY, PWC_PEER, PWC_PEER, 3 * i), -EHOSTDOWN);
    }
    for (uint64_t gone = 0; gone < MANY; gone++) {
        for (uint64_t i = 0; i < 3 * MANY; i++)
            CU_ASSERT_EQUAL(channel_has_ended(ends, i), i % 3 == 0 && i / 3 >= gone);
        channel_peer_is_back(&p->channel, 3 * gone);
    }
    CU_ASSERT_EQUAL(ends->count, 0);
    CU_ASSERT_EQUAL(ends->seen, 0);
    pair_free(p);
}

/* A peer counts as over once it has ended, whether or not a probe has reported that. The peer is
 * back when another context with its number shows up, by an event or a bind; this context may end
 * again. */
static void test_over_and_back(void)
{
    struct pair *p = pair_new();

    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    post_end(p, P, -EHOSTDOWN);
    CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, SAME_BIT));
    post(p, EVENT_REMOTE, P, 0, 1);
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    CU_ASSERT_EQUAL(next(p, P, PWC_PEER, PWC_PEER, P), -EHOSTDOWN); /* the first context's end */
    CU_ASSERT_EQUAL(next(p, P, ALL, PWC_REMOTE, P), 1);
    post_end(p, P, 0);
    CU_ASSERT_EQUAL(next(p, PWC_ANY, ALL, PWC_PEER, P), 0);
    CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
    channel_peer_is_back(&p->channel, P);
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    expect_none(p, PWC_ANY, ALL);
    post_end(p, P, 0);
    CU_ASSERT_EQUAL(next(p, PWC_ANY, ALL, PWC_PEER, P), 0);
    post(p, EVENT_REMOTE, P, 0, 4); /* a probe for remote events only finds it */
    CU_ASSERT_EQUAL(next(p, P, PWC_REMOTE, PWC_REMOTE, P), 4);
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    pair_free(p);
}

/* A second context with the same number ends before a probe has reported the first end: the peer is
 * over, and both ends are one event. */
static void test_ends_twice(void)
{
    struct pair *p = pair_new();

    post_end(p, P, -EHOSTDOWN);
    post(p, EVENT_REMOTE, P, 0, 1);
    post_end(p, P, 0);
    CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
    CU_ASSERT_EQUAL(next(p, P, ALL, PWC_REMOTE, P), 1);
    CU_ASSERT_EQUAL(next(p, P, ALL, PWC_PEER, P), 0);
    expect_none(p, PWC_ANY, ALL);
    CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
    pair_free(p);
}

static int deliver(void *context, const struct event_record *event, int32_t *status)
{
    (void)context;
    (void)event;
    *status = 0;
    return 0;
}

/* A new context with the number of an ended one that only sends messages: the peer is back, and may
 * end again. */
static void test_back_by_message(void)
{
    const struct message block = {.kind = SUBMIT_SHORT, .token = WIRE_NONE};
    struct pair *p = pair_new();

    channel_set_deliver(&p->channel, deliver, NULL);
    for (int round = 0; round < 2; round++) {
        post_end(p, P, -EHOSTDOWN);
        CU_ASSERT_EQUAL(next(p, P, PWC_PEER, PWC_PEER, P), -EHOSTDOWN);
        CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
        CU_ASSERT_EQUAL_FATAL(fake_session_post(&p->daemon, EVENT_REQUEST, SUBMIT_SHORT, P, 0, 0, 0,
                                                &block, sizeof(block)),
                              0);
        CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    }
    pair_free(p);
}

/* A new context with the number of an ended one that only binds us: the peer is back, and may end
 * again. An end that was not reported before is still reported. A bind by another peer changes
 * nothing. */
static void test_back_by_bind(void)
{
    struct pair *p = pair_new();

    for (int shown = 0; shown < 2; shown++) {
        post_end(p, P, -EHOSTDOWN);
        if (shown)
            CU_ASSERT_EQUAL(next(p, P, PWC_PEER, PWC_PEER, P), -EHOSTDOWN);
        CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
        post_back(p, Q);
        post_back(p, SAME_BIT);
        CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
        post_back(p, P);
        CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
        if (!shown)
            CU_ASSERT_EQUAL(next(p, P, PWC_PEER, PWC_PEER, P), -EHOSTDOWN);
        CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
        expect_none(p, PWC_ANY, ALL);
    }
    pair_free(p);
}

/* Guards that a peer is not over while events wait in the daemon: they may say that the peer is
 * back. */
static void test_not_over_before_spill(void)
{
    struct pair *p = pair_new();

    post_end(p, P, -EHOSTDOWN);
    atomic_store(&p->daemon.shared->spilled, 1);
    CU_ASSERT_FALSE(channel_peer_is_over(&p->channel, P));
    atomic_store(&p->daemon.shared->spilled, 0);
    CU_ASSERT_TRUE(channel_peer_is_over(&p->channel, P));
    pair_free(p);
}

/* A reported end costs later probes nothing: a probe for remote events only looks into one ring. */
static void test_one_ring(void)
{
    struct pair *p = pair_new();
    struct pwc_event events[2];
    unsigned turn;

    post_end(p, P, -EHOSTDOWN);
    CU_ASSERT_EQUAL(next(p, P, PWC_PEER, PWC_PEER, P), -EHOSTDOWN);
    turn = p->channel.turn;
    for (uint64_t i = 0; i < 3; i++)
        post(p, EVENT_REMOTE, Q, 0, i);
    CU_ASSERT_EQUAL(next(p, PWC_ANY, PWC_REMOTE, PWC_REMOTE, Q), 0);
    CU_ASSERT_EQUAL(channel_probe_n(&p->channel, PWC_ANY, PWC_REMOTE, events, 2), 2);
    CU_ASSERT_EQUAL(p->channel.turn, turn);
    pair_free(p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"shown once, last", test_shown_once},
        {"one after another", test_one_after_another},
        {"many at once", test_many},
        {"each of many is found", test_each_is_found},
        {"over, and back", test_over_and_back},
        {"ends twice", test_ends_twice},
        {"back by a message", test_back_by_message},
        {"back by a bind", test_back_by_bind},
        {"not over before the spill is read", test_not_over_before_spill},
        {"one ring", test_one_ring},
        CU_TEST_INFO_NULL,
    };

    return suite_run("peer ends", tests);
}
