/*
 * Binds that do not block (pwc_bind_start), over daemons: a thousand of one context at once, with
 * events and with requests, a put right after each start, and a daemon that dies meanwhile.
 *
 * This process has both ranks: rank 0, on node 0, binds; rank 1, on the last node, is bound.
 *
 *     test_bind_start PWCD PROVIDER NODES [--KEY VALUE]...
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pwc/request.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

enum {
    BINDS = 1000,
    CONTEXTS = 8, /* contexts of the target */
    LENGTH = 8 * BINDS,
};

/* Set by main before the tests run. */
static struct cluster cluster;

struct scene {
    struct rank origin, target;
    pwc_peer peers[CONTEXTS];
    struct pwc_key key;
    pwc_remote *remotes[BINDS];
};

static void scene_open(struct scene *s, const char *job)
{
    const char *far = cluster.nodes[cluster.options.nodes - 1].socket;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&s->origin, cluster.nodes[0].socket, job, 0, 2, LENGTH), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&s->target, far, job, 1, 2, LENGTH), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(s->target.region, &s->key), 0);
    s->peers[0] = pwc_ctx_peer(s->target.ctx);
    for (unsigned i = 1; i < CONTEXTS; i++) {
        pwc_ctx *ctx;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(s->target.client, NULL, &ctx), 0);
        s->peers[i] = pwc_ctx_peer(ctx);
    }
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

static void scene_close(struct scene *s)
{
    CU_ASSERT_TRUE(cluster_runs(&cluster));
    rank_detach(&s->origin);
    rank_detach(&s->target);
}

static int start(struct scene *s, unsigned i, pwc_cid lid)
{
    return pwc_bind_start(s->origin.ctx, s->peers[i % CONTEXTS], &s->key, lid, &s->remotes[i]);
}

static void start_all(struct scene *s)
{
    for (unsigned i = 0; i < BINDS; i++)
        CU_ASSERT_EQUAL_FATAL(start(s, i, pwc_cid_u64(i)), 0);
}

/* Checks that each bind ends once, with success. */
static void expect_all(struct scene *s)
{
    static bool ended[BINDS];
    struct pwc_event event;

    memset(ended, 0, sizeof(ended));
    for (unsigned i = 0; i < BINDS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(s->origin.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
        CU_ASSERT_EQUAL_FATAL(event.status, 0);
        CU_ASSERT_TRUE_FATAL(event.id < BINDS && !ended[event.id]);
        CU_ASSERT_EQUAL(event.length, LENGTH);
        ended[event.id] = true;
    }
}

/* Checks that each remote leads to the region. */
static void expect_use(struct scene *s)
{
    const uint64_t *words = (const uint64_t *)(const void *)s->target.memory;

    for (uint64_t i = 0; i < BINDS; i++) {
        uint64_t value = i + 1;

        CU_ASSERT_EQUAL_FATAL(pwc_put(s->remotes[i], 8 * i, &value, 8, PWC_CID_NONE, PWC_CID_NONE,
                                      PWC_NO_LCE | PWC_NO_RCE | PWC_WAIT),
                              0);
    }
    CU_ASSERT_EQUAL(pwc_flush(s->origin.ctx, PWC_ANY, RANK_WAIT_MS), 0);
    for (uint64_t i = 0; i < BINDS; i++)
        CU_ASSERT_EQUAL_FATAL(words[i], i + 1);
}

static void test_thousand(void)
{
    static struct scene s;

    scene_open(&s, "thousand");
    start_all(&s);
    expect_all(&s);
    expect_use(&s);
    for (unsigned i = 0; i < BINDS; i++)
        CU_ASSERT_EQUAL(pwc_unbind(s.remotes[i]), 0);
    scene_close(&s);
}

static void test_put_behind(void)
{
    static struct scene s;

    scene_open(&s, "behind");
    start_all(&s);
    expect_use(&s);
    expect_all(&s);
    scene_close(&s);
}

static void test_requests(void)
{
    static pwc_request *requests[BINDS];
    static struct scene s;

    scene_open(&s, "requests");
    for (unsigned i = 0; i < BINDS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_request_create(s.origin.ctx, &requests[i]), 0);
        CU_ASSERT_EQUAL_FATAL(start(&s, i, pwc_cid_request(requests[i])), 0);
    }
    for (unsigned i = 0; i < BINDS; i++) {
        struct pwc_status status;

        CU_ASSERT_EQUAL_FATAL(pwc_request_wait(requests[i], &status, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(status.status, 0);
        CU_ASSERT_EQUAL(status.bytes, LENGTH);
    }
    expect_use(&s);
    scene_close(&s);
}

/* A program that only sleeps on the descriptor sees each end. */
static void test_descriptor(void)
{
    static struct scene s;
    struct pollfd readable = {.events = POLLIN};
    struct pwc_event event;
    unsigned ended = 0;

    scene_open(&s, "descriptor");
    readable.fd = pwc_fd(s.origin.ctx);
    start_all(&s);
    while (ended < BINDS) {
        int rc = pwc_probe(s.origin.ctx, PWC_ANY, PWC_LOCAL, &event);

        CU_ASSERT_TRUE_FATAL(rc >= 0);
        ended += rc == 1 && event.op == PWC_OP_BIND && event.status == 0;
        if (rc == 0)
            CU_ASSERT_EQUAL_FATAL(poll(&readable, 1, RANK_WAIT_MS), 1);
    }
    scene_close(&s);
}

/* Most binds are under way, or not yet sent, when the origin's daemon dies: they are asked of the
 * next daemon. */
static void test_daemon_dies(void)
{
    static struct scene s;

    scene_open(&s, "dies");
    start_all(&s);
    CU_ASSERT_EQUAL(kill(cluster_kept(&cluster, 0), SIGKILL), 0);
    expect_all(&s);
    expect_use(&s);
    scene_close(&s);
}

/* The first bind of a neighbour is given up at once. The next one has the direct path: after a put
 * the bytes are there. */
static void test_pair_given_up(void)
{
    static struct scene s;
    const uint64_t value = 77;
    pwc_remote *remote;

    if (cluster.options.nodes > 1)
        return;
    scene_open(&s, "given-up");
    for (unsigned i = 0; i < CONTEXTS; i++) {
        CU_ASSERT_EQUAL_FATAL(start(&s, i, pwc_cid_u64(i)), 0);
        CU_ASSERT_EQUAL(pwc_unbind(s.remotes[i]), 0);
    }
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s.origin.ctx, s.peers[0], &s.key, &remote), 0);
    CU_ASSERT_EQUAL(pwc_probe(s.target.ctx, PWC_ANY, 0, &(struct pwc_event){0}), 0);
    CU_ASSERT_EQUAL(
        pwc_put(remote, 0, &value, 8, PWC_CID_NONE, PWC_CID_NONE, PWC_NO_LCE | PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(memcmp(s.target.memory, &value, 8), 0);
    scene_close(&s);
}

/* Binds to peers that do not exist fail, and so do their puts. */
static void test_nobody(void)
{
    static struct scene s;
    struct pwc_event event;

    scene_open(&s, "nobody");
    for (unsigned i = 0; i < CONTEXTS; i++)
        s.peers[i] = pwc_peer_of(1, CONTEXTS + i);
    start_all(&s);
    for (unsigned i = 0; i < BINDS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(s.origin.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL_FATAL(event.status, -EHOSTUNREACH);
    }
    CU_ASSERT_EQUAL(pwc_put(s.remotes[0], 0, "1", 1, PWC_CID_NONE, PWC_CID_NONE, PWC_WAIT),
                    -EHOSTUNREACH);
    scene_close(&s);
}

int main(int argc, char **argv)
{
    static const char *const keep[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    struct cluster_options options = {.more = keep};
    CU_TestInfo tests[] = {
        {"a thousand", test_thousand},
        {"a put right behind", test_put_behind},
        {"a request for each", test_requests},
        {"the descriptor", test_descriptor},
        {"a pair that is given up", test_pair_given_up},
        {"nobody there", test_nobody},
        {"a daemon that dies", test_daemon_dies},
        CU_TEST_INFO_NULL,
    };

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) < 0) {
        fprintf(stderr, "%s\n", cluster.failure);
        return 1;
    }
    return cluster_end(&cluster, suite_run("bind start", tests));
}
