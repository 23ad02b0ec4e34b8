/*
 * Neighbours through the public calls: contexts of one client between which the daemon, on a
 * thread, has made pairs. Announcements of pairs are lost, late or out of order here, and rings are
 * full.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "shm_ring/doorbell.h"
#include "proto/pair_abi.h"
#include "pwc/am.h"
#include "tests/suite.h"

enum { ASK = 3, ANSWER = 4, NOBODY = 5 };

/* A daemon that reports the end of a pair's target just before the library looks into the wake
 * socket again. */
static struct {
    struct session_shared *origin;
    struct pair_shared *pair;
    unsigned looks; /* looks of the library since the report */
} reported;

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (reported.pair) {
        uint32_t handle = 1; /* handle of the remote to b; the world's own remote has 0 */

        atomic_fetch_or(&reported.pair->gone, PAIR_TARGET_GONE);
        atomic_fetch_or(&reported.origin->ended_remotes[0], UINT64_C(1) << handle);
        atomic_fetch_add(&reported.origin->neighbours, 1);
        reported.pair = NULL;
        reported.looks = 0;
    } else {
        reported.looks++;
    }
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* Two contexts of one client, `to_b` bound by `a`. */
struct two {
    struct world *w;
    pwc_ctx *a, *b;
    pwc_peer peer_a, peer_b;
    pwc_remote *to_b;
};

static pwc_remote *bind_region(struct two *t, pwc_ctx *from, pwc_peer to)
{
    pwc_remote *remote = NULL;
    struct pwc_key key;

    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(from, to, &key, &remote), 0);
    return remote;
}

static void open_two(struct two *t, bool pairs)
{
    t->w = world_new();
    t->a = t->w->ctx;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &t->b), 0);
    t->peer_a = pwc_ctx_peer(t->a);
    t->peer_b = pwc_ctx_peer(t->b);
    t->w->daemon.pairs = pairs;
    t->to_b = bind_region(t, t->a, t->peer_b);
}

/* b reads the daemon's announcements and maps its pairs; it takes no remote event. */
static void map_pairs(struct two *t)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_LOCAL, &event), 0);
}

static int put_to_b(struct two *t, uint64_t id, unsigned flags)
{
    return pwc_put(t->to_b, 0, &id, sizeof(id), pwc_cid_u64(id), pwc_cid_u64(id), flags);
}

static void expect_at_b(struct two *t, uint64_t id)
{
    struct pwc_event event;

    memset(&event, 0xee, sizeof(event));
    CU_ASSERT_EQUAL_FATAL(pwc_wait(t->b, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.op, PWC_OP_PUT);
    CU_ASSERT_EQUAL(event.reserved[0] | event.reserved[1], 0);
    CU_ASSERT_EQUAL(event.id, id);
    CU_ASSERT_EQUAL(event.peer, t->peer_a);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answering {
    pwc_remote *to; /* the remote for a Long as reply; NULL: replies with a Short */
    unsigned index; /* index of the reply's handler */
    unsigned flags;
    int rc;
    unsigned asked;
};

static void answer(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    struct answering *a = argument;

    a->asked++;
    a->rc = a->to ? pwc_am_reply_long(ctx, m->token, a->to, 0,
                                      &(struct pwc_am_send){.index = a->index,
                                                            .src = "long",
                                                            .len = 5,
                                                            .lid = pwc_cid_u64(9),
                                                            .flags = a->flags})
                  : pwc_am_reply_short(ctx, m->token,
                                       &(struct pwc_am_send){.index = a->index,
                                                             .lid = pwc_cid_u64(9),
                                                             .flags = a->flags});
}

static void count_answer(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    ++*(unsigned *)argument;
}

static void ask_b(struct two *t, struct answering *a)
{
    unsigned executed = fake_executed(&t->w->daemon);
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(pwc_am_short(t->to_b, &(struct pwc_am_send){.index = ASK,
                                                                      .lid = pwc_cid_u64(1),
                                                                      .flags = PWC_NO_LCE}),
                          0);
    CU_ASSERT_EQUAL(fake_executed(&t->w->daemon), executed); /* the message went directly */
    CU_ASSERT_EQUAL(pwc_wait(t->b, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(a->asked, 1);
    CU_ASSERT_EQUAL(a->rc, 0);
    CU_ASSERT_EQUAL(event.id, 9);
    a->rc = event.status;
}

/* A handler may reply in a context without any remote, and its replies end. */
static void test_replier_binds_nobody(void)
{
    static const struct answering rows[] = {
        {.index = ANSWER},
        {.index = NOBODY, .flags = PWC_NO_LCE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct answering a = rows[i];
        unsigned answers = 0;
        struct pwc_event event;
        struct two t;

        open_two(&t, true);
        CU_ASSERT_EQUAL(pwc_am_register(t.a, ANSWER, count_answer, &answers), 0);
        CU_ASSERT_EQUAL(pwc_am_register(t.b, ASK, answer, &a), 0);
        map_pairs(&t);
        ask_b(&t, &a);
        CU_ASSERT_EQUAL(a.rc, a.index == NOBODY ? -ENOSYS : 0);
        CU_ASSERT_EQUAL(pwc_probe(t.a, PWC_ANY, PWC_LOCAL, &event), 0);
        CU_ASSERT_EQUAL(answers, a.index == ANSWER);
        world_free(t.w);
    }
}

/* A Long replies to a request that came directly, over a remote without a pair whose handle is
 * beyond the bits in the session. The library must not read past these bits. */
static void test_handle_without_a_bit(void)
{
    struct answering a = {.index = ANSWER};
    unsigned answers = 0;
    struct two t;

    open_two(&t, true);
    CU_ASSERT_EQUAL(pwc_am_register(t.a, ANSWER, count_answer, &answers), 0);
    CU_ASSERT_EQUAL(pwc_am_register(t.b, ASK, answer, &a), 0);
    t.w->daemon.pairs = false;
    t.w->daemon.handles = SESSION_REMOTES;
    a.to = bind_region(&t, t.b, t.peer_a);
    memset((uint8_t *)t.w->daemon.contexts[1].session.shared + sizeof(struct session_shared), 0xff,
           SESSION_DATA_OFFSET - sizeof(struct session_shared));
    map_pairs(&t);
    ask_b(&t, &a);
    CU_ASSERT_EQUAL(a.rc, -EHOSTUNREACH);
    world_free(t.w);
}

/* ---- pairs that the target has not mapped ---------------------------------------------------- */

/* The target misses the announcement of a pair: all puts take the way through the daemon, and none
 * is lost. */
static void test_lost_note(void)
{
    struct two t;

    open_two(&t, false);
    t.w->daemon.lose_notes = true;
    t.w->daemon.pairs = true;
    CU_ASSERT_EQUAL(pwc_unbind(t.to_b), 0);
    t.to_b = bind_region(&t, t.a, t.peer_b);
    for (uint64_t n = 0; n < 10; n++)
        CU_ASSERT_EQUAL(put_to_b(&t, n, PWC_NO_LCE), 0);
    for (uint64_t n = 0; n < 10; n++)
        expect_at_b(&t, n);
    CU_ASSERT_EQUAL(put_to_b(&t, 10, PWC_NO_LCE), 0);
    expect_at_b(&t, 10);
    world_free(t.w);
}

/* Operations without a remote event need no line of the pair's ring, so they are direct from the
 * start. The others are direct once the target has mapped the pair. */
static void test_mapped(void)
{
    unsigned executed;
    uint64_t found;
    struct two t;

    open_two(&t, true);
    executed = fake_executed(&t.w->daemon);
    for (uint64_t n = 1; n < 4; n++) {
        CU_ASSERT_EQUAL(put_to_b(&t, n, PWC_NO_RCE | PWC_NO_LCE), 0);
        memcpy(&found, t.w->memory, sizeof(found));
        CU_ASSERT_EQUAL(found, n);
    }
    CU_ASSERT_EQUAL(fake_executed(&t.w->daemon), executed);
    CU_ASSERT_EQUAL(put_to_b(&t, 4, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(put_to_b(&t, 5, PWC_NO_RCE | PWC_NO_LCE), 0); /* ordered after the put before */
    CU_ASSERT_EQUAL(pwc_flush(t.a, t.peer_b, -1), 0);
    CU_ASSERT(fake_executed(&t.w->daemon) >= executed + 2);
    executed = fake_executed(&t.w->daemon);
    expect_at_b(&t, 4);
    for (uint64_t n = 6; n < 9; n++) {
        CU_ASSERT_EQUAL(put_to_b(&t, n, PWC_NO_LCE), 0);
        expect_at_b(&t, n);
    }
    CU_ASSERT_EQUAL(fake_executed(&t.w->daemon), executed);
    world_free(t.w);
}

/* The first bind of a peer brings no pair, and is undone; the second bind brings one. */
static void test_pair_comes_later(void)
{
    struct two t;

    open_two(&t, false);
    CU_ASSERT_EQUAL(put_to_b(&t, 1, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_unbind(t.to_b), 0);
    t.w->daemon.pairs = true;
    t.to_b = bind_region(&t, t.a, t.peer_b);
    map_pairs(&t);
    CU_ASSERT_EQUAL(put_to_b(&t, 2, PWC_NO_LCE), 0);
    expect_at_b(&t, 1);
    expect_at_b(&t, 2);
    world_free(t.w);
}

/* ---- sleep ----------------------------------------------------------------------------------- */

static int fill_ring(struct two *t)
{
    int rc = 0;

    for (uint64_t n = 0; rc == 0 && n <= PAIR_LINES; n++)
        rc = put_to_b(t, n, PWC_NO_LCE);
    return rc;
}

static void take_at_b(struct two *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_probe(t->b, PWC_ANY, PWC_REMOTE, &event), 1);
    }
}

static void probe_until_empty(pwc_ctx *ctx)
{
    struct pwc_event event;
    int rc;

    do
        rc = pwc_probe(ctx, PWC_ANY, 0, &event);
    while (rc == 1);
    CU_ASSERT_EQUAL(rc, 0);
}

/* Two operations of different sizes wait for room: the context wakes for each of them, although a
 * wake-up came between the two refusals. */
static void test_room_for_two(void)
{
    struct pollfd readable = {.events = POLLIN};
    void *payload;
    struct two t;

    open_two(&t, true);
    map_pairs(&t);
    readable.fd = pwc_fd(t.a);
    CU_ASSERT_EQUAL_FATAL(fill_ring(&t), -EAGAIN);
    CU_ASSERT_EQUAL(pwc_am_prepare(t.to_b, 8, 0, pwc_cid_u64(1), 0, &payload), -EAGAIN);
    CU_ASSERT_EQUAL(put_to_b(&t, 0, PWC_NO_LCE), -EAGAIN);
    probe_until_empty(t.a);
    CU_ASSERT_EQUAL(put_to_b(&t, 0, PWC_NO_LCE), -EAGAIN);
    CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
    take_at_b(&t, PAIR_LINES / 2);
    CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS), 1);
    probe_until_empty(t.a);
    CU_ASSERT_EQUAL(pwc_am_prepare(t.to_b, 8, 0, pwc_cid_u64(1), 0, &payload), -EAGAIN);
    CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
    take_at_b(&t, PAIR_LINES / 2);
    CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS / 10), 1);
    probe_until_empty(t.a);
    CU_ASSERT_EQUAL(pwc_am_prepare(t.to_b, 8, 0, pwc_cid_u64(1), 0, &payload), 0);
    CU_ASSERT_EQUAL(pwc_am_cancel(t.a), 0);
    world_free(t.w);
}

/* The daemon reports a dead neighbour after a probe has found nothing and before the bell is
 * armed. */
static void test_reported_while_arming(void)
{
    struct two t;

    open_two(&t, true);
    map_pairs(&t);
    (void)pwc_fd(t.a);
    CU_ASSERT_EQUAL_FATAL(fill_ring(&t), -EAGAIN);
    reported.origin = t.w->daemon.contexts[0].session.shared;
    reported.pair = t.w->daemon.pair_list[0].ring.base;
    probe_until_empty(t.a);
    CU_ASSERT_PTR_NULL(reported.pair);
    CU_ASSERT(reported.looks > 0);
    CU_ASSERT_EQUAL(put_to_b(&t, 0, PWC_NO_LCE), 0); /* the daemon reports the error */
    world_free(t.w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a replier that binds nobody", test_replier_binds_nobody},
        {"a handle past the bits of ended remotes", test_handle_without_a_bit},
        {"the note of a pair is lost", test_lost_note},
        {"a pair that its target has mapped", test_mapped},
        {"a pair that comes with a later bind", test_pair_comes_later},
        {"two calls that wait for room", test_room_for_two},
        {"a death reported while the descriptor is armed", test_reported_while_arming},
        CU_TEST_INFO_NULL,
    };

    if (doorbell_register() < 0) {
        printf("no membarrier here, so no pairs\n");
        return 77;
    }
    return suite_run("neighbours", tests);
}
