/*
 * Operations over loose memory whose records are submitted in several calls: which calls continue
 * them, which operations must wait for them, how they end where a piece has failed, and what
 * happens when their context ends. Against a daemon on a thread.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/grains.h"
#include "pwc/am.h"
#include "pwc/atomic.h"
#include "pwc/request.h"
#include "pwc/signal.h"
#include "pwc/vector.h"
#include "tests/count.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/suite.h"

enum {
    SHORT_MS = 50,
    PIECE = GRAINS_PIECE * GRAIN_BYTES,
    PIECES = 15,
    LONG = PIECES * PIECE, /* the world's region has 1 MiB */
    WORD = LONG,
};

static const pwc_cid none; /* PWC_CID_NONE */

static int put_long(struct two *t, const void *src, uint64_t id, unsigned flags)
{
    return pwc_put(t->to_b, 0, src, LONG, pwc_cid_u64(id), pwc_cid_u64(~id), flags);
}

/* Checks that all staging is free: there is room for as many short gets as it has grains. */
static void expect_free_staging(struct two *t)
{
    uint8_t here[GRAINS];

    hold(t, true);
    for (unsigned i = 0; i < GRAINS; i++)
        CU_ASSERT_EQUAL(pwc_get(t->to_b, 0, &here[i], 1, none, none, PWC_NO_LCE | PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_get(t->to_b, 0, here, 1, none, none, PWC_NO_LCE), -EAGAIN);
    hold(t, false);
    expect_no_event(t);
}

static void expect_event(pwc_ctx *ctx, unsigned kind, uint64_t id, int status)
{
    struct pwc_event event = {.id = ~id};

    CU_ASSERT_EQUAL_FATAL(pwc_wait(ctx, PWC_ANY, kind, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, id);
    CU_ASSERT_EQUAL(event.status, status);
}

/* ---- a peer that is held --------------------------------------------------------------------- */

enum { SUBMITS = 9 };

/* Every way to submit something to the peer of a remote. */
static int submit(struct two *t, pwc_remote *to, unsigned which)
{
    static uint64_t one = 1, old;
    static uint8_t bytes[16];
    const struct pwc_piece pieces[] = {{0, bytes, 4}, {8, bytes + 4, 4}};
    const struct pwc_am_send message = {.index = HANDLER, .flags = PWC_NO_LCE | PWC_AM_NO_REPLY};
    void *payload;
    int rc;

    switch (which) {
    case 0:
        return pwc_put(to, WORD, &one, 8, none, none, PWC_NO_LCE | PWC_NO_RCE);
    case 1:
        return pwc_put(to, 0, NULL, 0, none, none, PWC_NO_LCE | PWC_NO_RCE);
    case 2:
        return pwc_put(to, WORD, t->w->memory + WORD, 8, none, none, PWC_NO_LCE | PWC_NO_RCE);
    case 3:
        return pwc_get(to, 0, t->w->memory + WORD, 8, none, none, PWC_NO_LCE | PWC_NO_RCE);
    case 4:
        return pwc_fetch_atomic(to, WORD, PWC_ADD, PWC_U64, &one, 1, &old, none, none,
                                PWC_NO_LCE | PWC_NO_RCE);
    case 5:
        return pwc_put_signal(to, 0, NULL, 0, WORD, 1, PWC_ADD, none, PWC_NO_LCE);
    case 6:
        return pwc_putv(to, pieces, 2, none, none, PWC_NO_LCE | PWC_NO_RCE);
    case 7:
        return pwc_am_short(to, &message);
    default:
        rc = pwc_am_prepare(to, 8, 0, none, PWC_NO_LCE | PWC_AM_NO_REPLY, &payload);
        if (rc == 0)
            CU_ASSERT_EQUAL(pwc_am_cancel(t->a), 0);
        return rc;
    }
    return 1;
}

static void ignore(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    (void)ctx;
    (void)am;
    (void)argument;
}

/* No operation to the same peer passes a series that is not wholly submitted, over whichever
 * remote, bound before or meanwhile. Operations to other peers are accepted. */
static void test_held_peer(void)
{
    struct two *t = two_new(false);
    uint8_t *here = malloc(LONG);
    pwc_remote *before, *meanwhile, *other = t->w->remote;
    struct pwc_key key;

    CU_ASSERT_EQUAL(pwc_am_register(t->a, HANDLER, ignore, NULL), 0);
    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->b), NULL, &before), 0);
    fill(here, LONG, 1);
    hold(t, true);
    CU_ASSERT_EQUAL(put_long(t, here, 1, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->b), &key, &meanwhile), 0);
    for (unsigned i = 0; i < SUBMITS; i++) {
        CU_ASSERT_EQUAL(submit(t, t->to_b, i), -EAGAIN);
        CU_ASSERT_EQUAL(submit(t, meanwhile, i), -EAGAIN);
        CU_ASSERT_EQUAL(submit(t, other, i), 0);
    }
    CU_ASSERT_EQUAL(submit(t, before, 1), -EAGAIN);
    CU_ASSERT_EQUAL(pwc_flush(t->a, pwc_ctx_peer(t->b), 0), -ETIMEDOUT);
    hold(t, false);
    expect_event(t->a, PWC_LOCAL, 1, 0);
    for (unsigned i = 0; i < SUBMITS; i++)
        CU_ASSERT_EQUAL(submit(t, i % 2 ? t->to_b : meanwhile, i), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, pwc_ctx_peer(t->b), WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_unbind(meanwhile), 0);
    CU_ASSERT_EQUAL(pwc_unbind(before), 0);
    CU_ASSERT_EQUAL(memcmp(t->w->memory + 16, here + 16, LONG - 16), 0);
    two_free(t);
    free(here);
}

/* The direct path to a neighbour is used only when the series is over: a direct put would pass the
 * series. */
static void test_way_that_opens(void)
{
    struct two *t = two_new(false);
    uint8_t *here = malloc(LONG);
    pwc_remote *direct;
    struct pwc_event event;
    struct pwc_key key;
    uint64_t one = 1;
    int rc;

    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    fill(here, LONG, 1);
    hold(t, true);
    CU_ASSERT_EQUAL(put_long(t, here, 1, 0), 0);
    t->w->daemon.pairs = true;
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->b), &key, &direct), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_LOCAL, &event), 0); /* b maps the pair */
    CU_ASSERT_EQUAL(pwc_put(direct, WORD, &one, 8, none, none, PWC_NO_LCE), -EAGAIN);
    CU_ASSERT_EQUAL(pwc_put(t->to_b, WORD, &one, 8, none, none, PWC_NO_LCE), -EAGAIN);
    hold(t, false);
    while ((rc = pwc_put(direct, WORD, &one, 8, none, pwc_cid_u64(2), PWC_NO_LCE)) == -EAGAIN)
        (void)pwc_flush(t->a, PWC_ANY, 0);
    CU_ASSERT_EQUAL(rc, 0);
    expect_event(t->b, PWC_REMOTE, ~UINT64_C(1), 0);
    CU_ASSERT_EQUAL(memcmp(t->w->memory, here, LONG), 0);
    expect_event(t->b, PWC_REMOTE, 2, 0);
    CU_ASSERT_EQUAL(pwc_unbind(direct), 0);
    two_free(t);
    free(here);
}

/* Long and short puts in a row to one peer: with PWC_WAIT a put waits until the long one before it
 * is submitted, and the events at both sides are in order. */
static void test_order(void)
{
    enum { ROUNDS = 24 };
    struct two *t = two_new(false);
    uint8_t *here = malloc(LONG);

    fill(here, LONG, 9);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        size_t len = i % 3 == 0 ? LONG : i % 3 == 1 ? 8 : PIECE + 1;

        CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, here, len, pwc_cid_u64(i), pwc_cid_u64(i), PWC_WAIT),
                        0);
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        expect_event(t->a, PWC_LOCAL, i, 0);
        expect_event(t->b, PWC_REMOTE, i, 0);
    }
    two_free(t);
    free(here);
}

/* ---- how they go on -------------------------------------------------------------------------- */

enum { GOERS = 9 };

/* Makes one kind of call, number `how`, which continues the context's series, until the put of id 1
 * has reached b. Returns whether a call has taken the put's local event. `done` is a byte of the
 * payload that is not 0 once it has arrived. */
static bool go_on(struct two *t, pwc_request *r, unsigned how, const uint8_t *done)
{
    struct pollfd fd = {.fd = how == 8 ? pwc_fd(t->a) : -1, .events = POLLIN};
    struct pwc_event events[4];
    uint64_t never = 0;
    unsigned naps = 0;

    while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
        switch (how) {
        case 0: /* a probe for an event that does not come */
            CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_REMOTE, events), 0);
            break;
        case 1:
            CU_ASSERT_EQUAL(pwc_probe_n(t->a, PWC_ANY, PWC_NOTIFICATION, events, 4), 0);
            break;
        case 2: /* a wait that sleeps, because its kind of event does not come */
            CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_REMOTE, events, 20), 0);
            break;
        case 3:
            CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
            CU_ASSERT_NOT_EQUAL(__atomic_load_n(done, __ATOMIC_ACQUIRE), 0);
            break;
        case 4:
            CU_ASSERT_EQUAL(pwc_flush(t->a, pwc_ctx_peer(t->b), WAIT_MS), 0);
            CU_ASSERT_NOT_EQUAL(__atomic_load_n(done, __ATOMIC_ACQUIRE), 0);
            break;
        case 5:
            (void)pwc_test(r, NULL);
            break;
        case 6:
            CU_ASSERT_EQUAL(pwc_request_wait(r, NULL, WAIT_MS), 1);
            break;
        case 7:
            CU_ASSERT_EQUAL(pwc_wait_word(t->a, &never, PWC_NE, 0, 20), 0);
            break;
        default:
            if (pwc_probe(t->a, PWC_ANY, PWC_LOCAL, events) == 1)
                return true;
            CU_ASSERT_EQUAL_FATAL(poll(&fd, 1, WAIT_MS), 1);
            naps++;
        }
    }
    CU_ASSERT(naps < 10000);
    return false;
}

static void test_every_call_goes_on(void)
{
    uint8_t *here = malloc(LONG);

    memset(here, 0x11, LONG);
    for (unsigned how = 0; how < GOERS; how++) {
        struct two *t = two_new(false);
        bool by_request = how == 5 || how == 6, taken;
        pwc_cid lid = by_request ? pwc_cid_request(t->request) : pwc_cid_u64(1);

        CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, here, LONG, lid, none, PWC_NO_RCE), 0);
        taken = go_on(t, t->request, how, t->w->memory + LONG - 1);
        if (!by_request && !taken)
            expect_event(t->a, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(memcmp(t->w->memory, here, LONG), 0);
        expect_no_event(t);
        two_free(t);
    }
    free(here);
}

/* A wait for a remote event continues the series, returns the remote event, and keeps the local
 * one. */
static void test_wait_for_the_target(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG);

    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, here, LONG, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    expect_event(t->a, PWC_REMOTE, 2, 0);
    expect_event(t->a, PWC_LOCAL, 1, 0);
    two_free(t);
    free(here);
}

/* The function of pwc_set_handler gets the events that are kept meanwhile. */
static void count_event(pwc_ctx *ctx, const struct pwc_event *event, void *count)
{
    *(unsigned *)count += event->kind == PWC_LOCAL;
    (void)ctx;
}

static void test_event_function(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG);
    unsigned count = 0;

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, count_event, &count), 0);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(
            pwc_put(t->to_b, 0, here, LONG, pwc_cid_u64(1), none, PWC_NO_RCE | PWC_WAIT), 0);
    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, here, 8, none, pwc_cid_u64(2), PWC_NO_LCE), 0);
    expect_event(t->a, PWC_REMOTE, 2, 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(count, 3);
    two_free(t);
    free(here);
}

/* While a message is prepared nothing is submitted: the series continues after the commit or the
 * cancel. */
static void test_beside_a_prepared_message(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG);
    void *payload;

    hold(t, true);
    CU_ASSERT_EQUAL(put_long(t, here, 1, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(
        pwc_am_prepare(t->w->remote, 8, 0, none, PWC_NO_LCE | PWC_AM_NO_REPLY, &payload), 0);
    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, here, LONG, none, none, PWC_NO_LCE), -EBUSY);
    hold(t, false);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, SHORT_MS), -ETIMEDOUT);
    CU_ASSERT_EQUAL(pwc_am_cancel(t->a), 0);
    expect_event(t->a, PWC_LOCAL, 1, 0);
    two_free(t);
    free(here);
}

/* Several series at once, each to another peer, puts and gets: they take turns. */
static void test_many_peers(void)
{
    enum { PEERS = 4 };
    struct two *t = two_new(false);
    pwc_remote *to[PEERS];
    uint8_t *here[PEERS];
    pwc_ctx *ctx[PEERS];
    struct pwc_key key;
    unsigned seen = 0;

    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    ctx[0] = t->a;
    ctx[1] = t->b;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &ctx[2]), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &ctx[3]), 0);
    fill(t->w->memory, LONG, 1);
    for (unsigned i = 0; i < PEERS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(ctx[i]), &key, &to[i]), 0);
        here[i] = malloc(LONG);
        memcpy(here[i], t->w->memory, LONG);
    }
    hold(t, true);
    for (unsigned i = 0; i < PEERS; i++)
        CU_ASSERT_EQUAL(i % 2 ? pwc_get(to[i], 0, here[i], LONG, pwc_cid_u64(i), none, PWC_NO_RCE)
                              : pwc_put(to[i], 0, here[i], LONG, pwc_cid_u64(i), none, PWC_NO_RCE),
                        0);
    hold(t, false);
    while (seen != (1u << PEERS) - 1) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT(event.status == 0 && event.length == LONG);
        CU_ASSERT_FALSE(seen & 1u << event.id);
        seen |= 1u << event.id;
    }
    for (unsigned i = 0; i < PEERS; i++) {
        CU_ASSERT_EQUAL(memcmp(here[i], t->w->memory, LONG), 0);
        free(here[i]);
    }
    expect_free_staging(t);
    two_free(t);
}

/* Short gets from other peers find room beside a long operation. */
static void test_short_gets_beside(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG), there[GRAINS_SHORT];

    hold(t, true);
    CU_ASSERT_EQUAL(put_long(t, here, 1, PWC_NO_RCE), 0);
    for (unsigned i = 0; i < GRAINS_SHORT; i++)
        CU_ASSERT_EQUAL(
            pwc_get(t->w->remote, WORD, &there[i], 1, none, none, PWC_NO_LCE | PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_get(t->w->remote, WORD, there, 1, none, none, PWC_NO_LCE), -EAGAIN);
    hold(t, false);
    expect_event(t->a, PWC_LOCAL, 1, 0);
    expect_free_staging(t);
    two_free(t);
    free(here);
}

/* ---- how they end ---------------------------------------------------------------------------- */

/* Each record of a series fails once: then there is one local event with the error, no remote
 * event, no signal and no message; the peer is no longer held, and staging is free. */
static void test_every_failure(void)
{
    uint8_t *here = calloc(1, LONG);

    for (unsigned at = 1; at <= PIECES + 1; at++) {
        struct two *t = two_new(false);
        const struct pwc_am_send message = {
            .index = HANDLER, .src = here, .len = LONG, .lid = pwc_cid_u64(4)};
        uint64_t *word = (uint64_t *)(void *)(t->w->memory + WORD);
        struct pwc_event event;

        for (uint64_t kind = 1; kind <= 4; kind++) {
            CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
            t->w->daemon.fail_at = fake_executed(&t->w->daemon) + at;
            CU_ASSERT_EQUAL(kind == 1   ? put_long(t, here, 1, PWC_NO_LCE)
                            : kind == 2 ? pwc_get(t->to_b, 0, here, LONG, pwc_cid_u64(2), none, 0)
                            : kind == 3 ? pwc_put_signal(t->to_b, 0, here, LONG, WORD, 1, PWC_SET,
                                                         pwc_cid_u64(3), 0)
                                        : pwc_am_long(t->to_b, 0, &message),
                            0);
            if (kind == 4 && at == PIECES + 1) { /* fail_at does not count messages: succeeds */
                expect_event(t->a, PWC_LOCAL, kind, 0);
                continue;
            }
            expect_event(t->a, PWC_LOCAL, kind, -EKEYREJECTED);
        }
        CU_ASSERT_EQUAL(*word, 0);
        t->w->daemon.fail_at = 0;
        CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_REMOTE | PWC_MESSAGE, &event),
                        at == PIECES + 1);
        CU_ASSERT_EQUAL(t->handled, at == PIECES + 1);
        CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, here, LONG, none, PWC_NO_RCE), 0);
        expect_free_staging(t);
        two_free(t);
    }
    free(here);
}

/* A request gets the error of the series, once. */
static void test_failure_of_a_request(void)
{
    struct two *t = two_new(false);
    pwc_remote *stale;
    pwc_region *region;
    struct pwc_key key;
    uint8_t *here = calloc(1, LONG);
    pwc_cid lid = pwc_cid_request(t->request);

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(t->w->client, LONG, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->b), &key, &stale), 0);
    hold(t, true);
    CU_ASSERT_EQUAL(pwc_put(stale, 0, here, LONG, lid, none, 0), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0); /* while the series is under way */
    hold(t, false);
    (void)expect_end(t->request, -EKEYREJECTED, 1);
    CU_ASSERT_EQUAL(pwc_get_wait(stale, 0, here, LONG, none, 0), -EKEYREJECTED);
    expect_free_staging(t);
    two_free(t);
    free(here);
}

/* A get that has timed out writes nothing any more, and ends soon. */
static void test_given_up(void)
{
    struct world *w = world_new();
    uint8_t *here = malloc(LONG);

    world_limit(w, SHORT_MS);
    for (size_t len = PIECE; len <= LONG; len += LONG - PIECE) {
        memset(here, 0x33, len);
        fake_hold(&w->daemon, true);
        CU_ASSERT_EQUAL(pwc_get_wait(w->remote, 0, here, len, none, PWC_NO_RCE), -ETIMEDOUT);
        fake_hold(&w->daemon, false);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
        for (size_t i = 0; i < len; i++)
            CU_ASSERT_EQUAL_FATAL(here[i], 0x33);
    }
    CU_ASSERT(fake_executed(&w->daemon) < PIECES);
    world_limit(w, WAIT_MS);
    CU_ASSERT_EQUAL(pwc_get_wait(w->remote, 0, here, LONG, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(here[LONG - 1], 0);
    free(here);
    world_free(w);
}

/* A context that ends during a series gives its staging back. Otherwise the staging of so many
 * contexts would not fit into the client's first segment. */
static void test_context_that_ends(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG);

    for (unsigned i = 0; i < 10; i++) {
        pwc_remote *remote;
        struct pwc_key key;
        pthread_t thread;
        pwc_ctx *ctx;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &ctx), 0);
        CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_bind(ctx, pwc_ctx_peer(t->a), &key, &remote), 0);
        hold(t, true);
        CU_ASSERT_EQUAL(i % 2 ? pwc_put(remote, 0, here, LONG, none, none, PWC_NO_LCE)
                              : pwc_get(remote, 0, here, LONG, none, none, PWC_NO_LCE),
                        0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(ctx), 0);
        pthread_join(thread, NULL);
    }
    CU_ASSERT_EQUAL(t->w->daemon.segments_open, 1);
    two_free(t);
    free(here);
}

/* pwc_finalize completes series that are under way, and counts those that it could not complete. */
static void test_finalize(void)
{
    uint8_t *here = malloc(LONG);

    fill(here, LONG, 4);
    for (int holds = 0; holds < 2; holds++) {
        struct world *w = world_new();

        fake_hold(&w->daemon, holds);
        world_limit(w, holds ? SHORT_MS : WAIT_MS);
        CU_ASSERT_EQUAL(put(w, 0, here, LONG, 1, 0), 0);
        CU_ASSERT_EQUAL(pwc_finalize(w->client) > 0, holds);
        fake_daemon_stop(&w->daemon);
        CU_ASSERT_EQUAL(fake_executed(&w->daemon) == PIECES + 1, !holds);
        free(w);
    }
    free(here);
}

/* The daemon dies during a series: calls return an error, the request ends, and nothing hangs. */
static void test_daemon_dies(void)
{
    struct two *t = two_new(false);
    uint8_t *here = calloc(1, LONG);
    struct pwc_event event;

    hold(t, true);
    CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, here, LONG, pwc_cid_request(t->request), none, 0), 0);
    fake_daemon_stop(&t->w->daemon);
    CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, 0, &event, WAIT_MS), -ESHUTDOWN);
    (void)expect_end(t->request, -ESHUTDOWN, 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, here, LONG, none, none, 0), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_request_free(t->request), 0);
    (void)pwc_unbind(t->to_b);
    CU_ASSERT_EQUAL(pwc_abort(t->w->client), 0);
    free(t->w);
    free(t);
    free(here);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a peer that is held", test_held_peer},
        {"a way that opens meanwhile", test_way_that_opens},
        {"order", test_order},
        {"every call goes on", test_every_call_goes_on},
        {"a wait for the target's event", test_wait_for_the_target},
        {"the function for events", test_event_function},
        {"beside a prepared message", test_beside_a_prepared_message},
        {"many peers", test_many_peers},
        {"short gets beside", test_short_gets_beside},
        {"every failure", test_every_failure},
        {"a failure of a request", test_failure_of_a_request},
        {"a get that was given up", test_given_up},
        {"a context that ends", test_context_that_ends},
        {"finalize", test_finalize},
        {"a daemon that dies", test_daemon_dies},
        CU_TEST_INFO_NULL,
    };

    return suite_run("series", tests);
}
