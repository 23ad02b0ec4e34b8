/*
 * Puts and gets that wait for their end, through the public calls, against a daemon on a thread: on
 * both paths, what they refuse, a full ring, the timeout, and the daemon's death.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pwc/am.h"
#include "pwc/atomic.h"
#include "pwc/signal.h"
#include "pwc/tuning.h"
#include "pwc/vector.h"
#include "clientlib/attach/deadline.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "proto/pair_abi.h"
#include "tests/suite.h"

enum { SHORT_MS = 50 };

static const pwc_cid none; /* PWC_CID_NONE */

/* ---- operations of the threads --------------------------------------------------------------- */

static const struct {
    size_t len;
    unsigned flags;
} operations[] = {
    {0, 0},
    {1, 0},
    {8, PWC_NO_LCE},
    {FAKE_PACKED_MAX, PWC_NO_RCE},
    {FAKE_PACKED_MAX + 1, PWC_LCE_SOURCE},
    {BIG, PWC_FENCE},
    {BIG, PWC_UNORDERED},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* The target has the same remote event as after pwc_put; the origin has no local event. */
static void expect_remote(struct two *t, size_t len, unsigned flags)
{
    struct pwc_event event;

    if (flags & PWC_NO_RCE) {
        CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_REMOTE, &event), 0);
    } else {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(t->b, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.id, 9);
        CU_ASSERT_EQUAL(event.length, len);
    }
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 0);
}

static void run_all(bool pairs)
{
    struct two *t = two_new(pairs);
    uint8_t *here = t->w->memory + BIG, *there = t->w->memory;

    for (unsigned i = 0; i < OPERATIONS; i++) {
        size_t len = operations[i].len;
        unsigned flags = operations[i].flags;

        fill(here, BIG, 2 * i);
        memset(there, 0, BIG);
        CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, here, len, pwc_cid_u64(9), flags), 0);
        CU_ASSERT_EQUAL(memcmp(there, here, len), 0);
        expect_remote(t, len, flags);
        fill(there, BIG, 2 * i + 1);
        CU_ASSERT_EQUAL(pwc_get_wait(t->to_b, 0, here, len, pwc_cid_u64(9), flags), 0);
        CU_ASSERT_EQUAL(memcmp(there, here, len), 0);
        expect_remote(t, len, flags);
    }
    two_free(t);
}

static void test_through_the_daemon(void)
{
    run_all(false);
}

static void test_without_the_daemon(void)
{
    run_all(true);
}

/* ---- gets into any memory -------------------------------------------------------------------- */

static void get_anywhere(bool pairs)
{
    static const size_t sizes[] = {1, 7, 64, FAKE_PACKED_MAX - 1, FAKE_PACKED_MAX};
    struct two *t = two_new(pairs);
    uint8_t here[FAKE_PACKED_MAX + 1];
    struct pwc_event event;

    fill(t->w->memory, BIG, 1);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(here, 0, sizeof(here));
        CU_ASSERT_EQUAL(pwc_get_wait(t->to_b, i, here, sizes[i], none, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL(memcmp(here, t->w->memory + i, sizes[i]), 0);
        CU_ASSERT_EQUAL(here[sizes[i]], 0);
        memset(here, 0, sizeof(here));
        CU_ASSERT_EQUAL(pwc_get(t->to_b, i, here, sizes[i], pwc_cid_u64(3), none, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.id, 3);
        CU_ASSERT_EQUAL(memcmp(here, t->w->memory + i, sizes[i]), 0);
    }
    two_free(t);
}

static void test_get_anywhere(void)
{
    get_anywhere(false);
    get_anywhere(true);
}

/* Each grain of staging serves one get at a time, and is free again after the get's end, also after
 * a failure. */
static void test_staging_full(void)
{
    enum { PLACES = 128 };
    struct two *t = two_new(false);
    pwc_remote *stale = stale_remote(t);
    uint64_t here[PLACES + 1];

    CU_ASSERT_EQUAL(t->w->daemon.segments_open, 1);
    for (unsigned round = 0; round < 3; round++) {
        pwc_remote *from = round == 1 ? stale : t->to_b;

        fill(t->w->memory, sizeof(here), round);
        memset(here, 0, sizeof(here));
        hold(t, true);
        for (unsigned i = 0; i < PLACES; i++)
            CU_ASSERT_EQUAL(pwc_get(from, round == 1 ? 0 : 8 * i, &here[i], 8, none, none,
                                    PWC_NO_LCE | PWC_NO_RCE),
                            0);
        CU_ASSERT_EQUAL(pwc_get(t->to_b, 0, &here[PLACES], 8, none, none, PWC_NO_LCE), -EAGAIN);
        hold(t, false);
        CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
        if (round != 1)
            CU_ASSERT_EQUAL(memcmp(here, t->w->memory, 8 * PLACES), 0);
    }
    two_free(t);
}

/* A get that has timed out does not write into the caller's memory later. */
static void test_given_up(void)
{
    struct world *w = world_new();
    uint64_t here = 1;

    fake_hold(&w->daemon, true);
    world_limit(w, SHORT_MS);
    CU_ASSERT_EQUAL(pwc_get_wait(w->remote, 0, &here, 8, none, PWC_NO_RCE), -ETIMEDOUT);
    world_limit(w, WAIT_MS);
    fake_hold(&w->daemon, false);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(here, 1);
    CU_ASSERT_EQUAL(pwc_get_wait(w->remote, 0, &here, 8, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(here, 0);
    world_free(w);
}

/* Events of other operations stay for later probes. */
static void test_beside_events(void)
{
    struct two *t = two_new(false);
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, "1", 1, pwc_cid_u64(7), none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, "2", 1, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(event.id, 7);
    two_free(t);
}

/* ---- refusals and failures ------------------------------------------------------------------- */

struct attempt {
    struct two *t;
    int put, get, room;
};

static void try_in_handler(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct attempt *attempt = argument;

    attempt->put = pwc_put_wait(attempt->t->to_b, 0, "x", 1, none, 0);
    attempt->get = pwc_get_wait(attempt->t->to_b, 0, attempt->t->w->memory, 1, none, 0);
    attempt->room = pwc_put(attempt->t->to_b, 0, "x", 1, none, none, PWC_WAIT);
    (void)ctx;
    (void)am;
}

static void test_refusals(void)
{
    struct two *t = two_new(false);
    pwc_remote *stale = stale_remote(t);
    struct attempt attempt = {.t = t};
    size_t end = pwc_remote_len(t->to_b);
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_put_wait(NULL, 0, "x", 1, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_get_wait(NULL, 0, t->w->memory, 1, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, "x", 1, none, 1u << 30), -EINVAL);
    CU_ASSERT_EQUAL(pwc_get_wait(t->to_b, 0, t->w->memory, 1, none, PWC_PROTOCOL_CHAIN), -EINVAL);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, end, "x", 1, none, 0), -ERANGE);
    CU_ASSERT_EQUAL(pwc_get_wait(t->to_b, end - 1, t->w->memory, 2, none, 0), -ERANGE);
    CU_ASSERT_EQUAL(pwc_put_wait(stale, 0, "x", 1, none, 0), -EKEYREJECTED);
    CU_ASSERT_EQUAL(pwc_get_wait(stale, 0, t->w->memory, 1, none, 0), -EKEYREJECTED);
    CU_ASSERT_EQUAL(pwc_am_register(t->a, HANDLER, try_in_handler, &attempt), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(stale, &(struct pwc_am_send){.index = HANDLER, .flags = PWC_NO_LCE}), 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(attempt.put, -EDEADLK);
    CU_ASSERT_EQUAL(attempt.get, -EDEADLK);
    CU_ASSERT_EQUAL(attempt.room, -EDEADLK);
    two_free(t);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits until the first context waits in a call, lets the daemon continue, and returns the kind of
 * call. */
static void *let_go_of_a_call(void *two)
{
    struct two *t = two;
    const struct session_waits *waits = &t->w->daemon.contexts[0].session.shared->waits;
    uint64_t call;

    while ((call = atomic_load(&waits->call)) == SESSION_WAITS_NOT)
        usleep(100);
    hold(two, false);
    return (void *)(uintptr_t)call;
}

/* The ring is full while the daemon holds: the call first waits for room, which its session's words
 * show to observers, and then for the operation's end. */
static void test_full_ring(void)
{
    struct two *t = two_new(false);
    pthread_t thread;
    void *call;
    int rc;

    hold(t, true);
    while ((rc = pwc_put(t->to_b, 0, "x", 1, none, none, PWC_NO_LCE | PWC_NO_RCE)) == 0)
        continue;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_a_call, t), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, "last", 4, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(memcmp(t->w->memory, "last", 4), 0);
    pthread_join(thread, &call);
    CU_ASSERT_EQUAL((uintptr_t)call, SESSION_WAITS_ROOM);
    two_free(t);
}

/* ---- PWC_WAIT -------------------------------------------------------------------------------- */

typedef int submit(struct two *t, pwc_remote *to, unsigned flags);

static int wait_put(struct two *t, pwc_remote *to, unsigned flags)
{
    (void)t;
    return pwc_put(to, 0, "x", 1, pwc_cid_u64(1), none, flags | PWC_NO_RCE);
}

static int wait_put_request(struct two *t, pwc_remote *to, unsigned flags)
{
    return pwc_put(to, 0, "x", 1, pwc_cid_request(t->request), none, flags | PWC_NO_RCE);
}

static int wait_get(struct two *t, pwc_remote *to, unsigned flags)
{
    return pwc_get(to, 0, t->w->memory + BIG, 8, pwc_cid_u64(1), none, flags | PWC_NO_RCE);
}

static int wait_get_request(struct two *t, pwc_remote *to, unsigned flags)
{
    return pwc_get(to, 0, t->w->memory + BIG, 8, pwc_cid_request(t->request), none,
                   flags | PWC_NO_RCE);
}

static int wait_putv(struct two *t, pwc_remote *to, unsigned flags)
{
    const struct pwc_piece pieces[] = {{0, t->w->memory + BIG, 4}, {8, t->w->memory + BIG, 4}};

    return pwc_putv(to, pieces, 2, pwc_cid_u64(1), none, flags | PWC_NO_RCE);
}

static int wait_getv(struct two *t, pwc_remote *to, unsigned flags)
{
    const struct pwc_piece pieces[] = {{0, t->w->memory + BIG, 4}, {8, t->w->memory + BIG + 8, 4}};

    return pwc_getv(to, pieces, 2, pwc_cid_u64(1), none, flags | PWC_NO_RCE);
}

static int wait_atomic(struct two *t, pwc_remote *to, unsigned flags)
{
    const uint64_t one = 1;

    (void)t;
    return pwc_atomic(to, 0, PWC_ADD, PWC_U64, &one, 1, pwc_cid_u64(1), none, flags | PWC_NO_RCE);
}

static int wait_signal(struct two *t, pwc_remote *to, unsigned flags)
{
    (void)t;
    return pwc_put_signal(to, 8, "x", 1, 0, 1, PWC_ADD, pwc_cid_u64(1), flags);
}

static int wait_message(struct two *t, pwc_remote *to, unsigned flags)
{
    const struct pwc_am_send send = {.index = HANDLER,
                                     .src = "1",
                                     .len = 1,
                                     .lid = pwc_cid_u64(1),
                                     .flags = flags | PWC_AM_NO_REPLY};

    (void)t;
    return pwc_am_medium(to, &send);
}

static submit *const submits[] = {wait_put,         wait_put_request, wait_get,
                                  wait_get_request, wait_putv,        wait_getv,
                                  wait_atomic,      wait_signal,      wait_message};
enum { SUBMITS = sizeof(submits) / sizeof(submits[0]) };

/* The ring is full, and the call waits until the daemon continues. */
static void test_room(void)
{
    for (unsigned i = 0; i < SUBMITS; i++) {
        struct two *t = two_new(false);
        pthread_t thread;
        int rc;

        hold(t, true);
        while ((rc = submits[i](t, t->to_b, 0)) == 0)
            continue;
        CU_ASSERT_EQUAL(rc, -EAGAIN);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
        CU_ASSERT_EQUAL(submits[i](t, t->to_b, PWC_WAIT), 0);
        pthread_join(thread, NULL);
        CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
        CU_ASSERT_EQUAL(pwc_request_wait(t->request, NULL, WAIT_MS), 1);
        two_free(t);
    }
}

/* Local events of puts to a neighbour fill the room, and the caller alone could take them: the call
 * returns -ENOBUFS, unless a function of pwc_set_handler takes the events. */
static void take(pwc_ctx *ctx, const struct pwc_event *event, void *count)
{
    ++*(unsigned *)count;
    (void)ctx;
    (void)event;
}

static void test_room_for_ends(void)
{
    struct two *t = two_new(true);
    unsigned taken = 0, put = 0;
    int rc;

    while ((rc = wait_put(t, t->to_b, PWC_WAIT)) == 0)
        put++;
    CU_ASSERT_EQUAL(rc, -ENOBUFS);
    CU_ASSERT_TRUE(put > 1000);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &taken), 0);
    for (unsigned i = 0; i < 10000; i++)
        CU_ASSERT_EQUAL_FATAL(wait_put(t, t->to_b, PWC_WAIT), 0);
    CU_ASSERT_TRUE(taken > 1000);
    two_free(t);
}

/* Local events of a neighbour's puts fill the room. An atomic needs room for its end even without
 * an event, so it is refused. A put through the daemon does not: it waits for room in the submit
 * ring. */
static void test_other_room(void)
{
    struct two *t = two_new(true);
    const uint64_t one = 1;
    pthread_t thread;
    int rc;

    while ((rc = wait_put(t, t->to_b, 0)) == 0)
        continue;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(pwc_atomic(t->to_b, 0, PWC_ADD, PWC_U64, &one, 1, none, none,
                               PWC_NO_LCE | PWC_NO_RCE | PWC_WAIT),
                    -ENOBUFS);
    hold(t, true);
    while ((rc = pwc_put(t->w->remote, 0, "x", 1, none, none, PWC_NO_LCE | PWC_NO_RCE)) == 0)
        continue;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
    CU_ASSERT_EQUAL(wait_put(t, t->w->remote, PWC_WAIT), 0);
    pthread_join(thread, NULL);
    two_free(t);
}

/* ---- ids that stand in an event -------------------------------------------------------------- */

/* Returns how many events the call has taken while it waited. */
static unsigned reuse_ids_of_an_event(void)
{
    static const char id[] = "an id that is tried again", other[] = "another one, of other events";
    struct two *t = two_new(false);
    struct pwc_event event;
    unsigned taken = 0;
    pthread_t thread;
    int rc;

    CU_ASSERT_EQUAL(
        pwc_put(t->w->remote, 0, "x", 1, none, pwc_cid_bytes(id, sizeof(id)), PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
    CU_ASSERT_STRING_EQUAL(event.data, id);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &taken), 0);
    hold(t, true);
    while ((rc = pwc_put(t->to_b, 0, "x", 1, pwc_cid_bytes(other, sizeof(other)), none,
                         PWC_NO_RCE)) == 0)
        continue;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, "x", 1, none, pwc_cid_bytes(event.data, event.id_size),
                            PWC_NO_LCE | PWC_WAIT),
                    0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id_size, sizeof(id));
    CU_ASSERT_STRING_EQUAL(event.data, id);
    pthread_join(thread, NULL);
    two_free(t);
    return taken;
}

/* A program may pass an id that stands in its last event, even where the call takes further events.
 * The trial is repeated where the ring had room before the call took an event. */
static void test_ids_of_an_event(void)
{
    unsigned taken = 0;

    for (int i = 0; i < 20 && taken == 0; i++)
        taken = reuse_ids_of_an_event();
    CU_ASSERT_TRUE(taken > 0);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

enum { NOTES = 4 * PAIR_LINES };

/* One side of two that send each other more than a ring holds, before either takes an event. */
struct side {
    pwc_ctx *ctx;
    pwc_remote *to;
    int rc;
    uint64_t received, wrong;
};

static void *send_then_take(void *argument)
{
    struct side *s = argument;
    struct pwc_event event;

    for (uint64_t i = 0; i < NOTES && s->rc == 0; i++)
        s->rc = pwc_put(s->to, 0, NULL, 0, none, pwc_cid_u64(i), PWC_NO_LCE | PWC_WAIT);
    while (s->rc == 0 && s->received < NOTES &&
           pwc_wait(s->ctx, PWC_ANY, PWC_REMOTE, &event, WAIT_MS) == 1)
        s->wrong += event.id != s->received++;
    return NULL;
}

static pwc_remote *bind_to(const struct two *t, pwc_ctx *from, const pwc_ctx *to)
{
    pwc_remote *remote = NULL;
    struct pwc_key key;

    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(from, pwc_ctx_peer(to), &key, &remote), 0);
    return remote;
}

/* Neighbours that wait for room in each other's rings keep the events that arrive meanwhile, in
 * order. */
static void test_neighbours_wait_for_each_other(void)
{
    struct two *t = two_new(true);
    struct side a = {.ctx = t->a}, c = {0};
    struct pwc_event event;
    pthread_t thread;

    /* No handler is registered: with one, the library would look into the rings in any case. */
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &c.ctx), 0);
    a.to = bind_to(t, a.ctx, c.ctx);
    c.to = bind_to(t, c.ctx, a.ctx);
    CU_ASSERT_EQUAL(pwc_probe(a.ctx, PWC_ANY, PWC_LOCAL, &event), 0); /* each maps its pair */
    CU_ASSERT_EQUAL(pwc_probe(c.ctx, PWC_ANY, PWC_LOCAL, &event), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, send_then_take, &c), 0);
    (void)send_then_take(&a);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(a.rc, 0);
    CU_ASSERT_EQUAL(c.rc, 0);
    CU_ASSERT_EQUAL(a.received, NOTES);
    CU_ASSERT_EQUAL(c.received, NOTES);
    CU_ASSERT_EQUAL(a.wrong + c.wrong, 0);
    two_free(t);
}

/* Whether the context begins a sleep later than `after`. */
static bool sleeps_again(const struct session_waits *waits, uint64_t after)
{
    bool yes = false;

    for (unsigned i = 0; i < 10 * WAIT_MS && !yes; i++) {
        yes = atomic_load(&waits->asleep_since) > after;
        usleep(100);
    }
    return yes;
}

static void *flush_all(void *two)
{
    return (void *)(intptr_t)pwc_flush(((struct two *)two)->a, PWC_ANY, WAIT_MS);
}

/* A call that sleeps takes note of a neighbour that appears meanwhile, and sleeps again. */
static void test_neighbour_comes(void)
{
    struct two *t = two_new(false);
    const struct session_waits *waits = &t->w->daemon.contexts[0].session.shared->waits;
    pthread_t thread;
    uint64_t bound;
    void *rc;

    hold(t, true);
    CU_ASSERT_EQUAL(wait_put(t, t->to_b, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, flush_all, t), 0);
    while (atomic_load(&waits->asleep_since) == 0)
        usleep(100);
    t->w->daemon.pairs = true;
    (void)bind_to(t, t->b, t->a);
    bound = (uint64_t)clock_now();
    CU_ASSERT_TRUE(sleeps_again(waits, bound));
    hold(t, false);
    pthread_join(thread, &rc);
    CU_ASSERT_EQUAL((intptr_t)rc, 0);
    two_free(t);
}

/* ---- requests and contexts that end ---------------------------------------------------------- */

/* After a flush no request is under way, also where its operation had ended before the flush. */
static void test_flushed_request(void)
{
    struct two *t = two_new(false);
    const struct session_shared *a = t->w->daemon.contexts[0].session.shared;

    for (uint64_t i = 1; i <= 20; i++) {
        pwc_request *r;

        CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->a, &r), 0);
        CU_ASSERT_EQUAL(put_request(t, r, 8), 0);
        while (atomic_load(&a->ended) < i)
            usleep(100);
        CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, 0), 0);
        CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    }
    two_free(t);
}

/* A context that ends during a get through staging gives its staging back. Otherwise the staging of
 * 20 contexts would not fit into the client's first segment. */
static void test_staging_given_back(void)
{
    struct two *t = two_new(false);
    uint64_t here[20] = {0};

    for (unsigned i = 0; i < 20; i++) {
        pwc_remote *remote;
        struct pwc_key key;
        pthread_t thread;
        pwc_ctx *ctx;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &ctx), 0);
        CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_bind(ctx, pwc_ctx_peer(t->a), &key, &remote), 0);
        hold(t, true);
        CU_ASSERT_EQUAL(pwc_get(remote, 0, &here[i], 8, none, none, PWC_NO_LCE | PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(ctx), 0);
        pthread_join(thread, NULL);
    }
    CU_ASSERT_EQUAL(t->w->daemon.segments_open, 1);
    two_free(t);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void test_no_room(void)
{
    struct world *w = world_new();
    struct two t = {.w = w, .a = w->ctx};
    int rc;

    world_limit(w, SHORT_MS);
    CU_ASSERT_EQUAL(wait_put(&t, NULL, PWC_WAIT), -EINVAL);
    CU_ASSERT_EQUAL(wait_put(&t, w->remote, PWC_WAIT | 1u << 30), -EINVAL);
    fake_hold(&w->daemon, true);
    for (unsigned i = 0; i < SUBMITS; i++) {
        if (submits[i] == wait_put_request || submits[i] == wait_get_request)
            continue;
        while ((rc = submits[i](&t, w->remote, 0)) == 0)
            continue;
        CU_ASSERT_EQUAL(rc, -EAGAIN);
        CU_ASSERT_EQUAL(submits[i](&t, w->remote, PWC_WAIT), -ETIMEDOUT);
    }
    fake_hold(&w->daemon, false);
    world_free(w);
}

/* An operation whose call has timed out is still carried out where it was submitted; the library
 * gets its internal request back. */
static void test_timeout(void)
{
    struct world *w = world_new();
    uint8_t *here = w->memory + BIG;
    int rc;

    fake_hold(&w->daemon, true);
    world_limit(w, SHORT_MS);
    memcpy(w->memory, "there", 6);
    CU_ASSERT_EQUAL(pwc_put_wait(w->remote, 8, "late", 5, none, PWC_NO_RCE), -ETIMEDOUT);
    CU_ASSERT_EQUAL(pwc_get_wait(w->remote, 0, here, 6, none, PWC_NO_RCE), -ETIMEDOUT);
    while ((rc = pwc_put(w->remote, 16, "x", 1, none, none, PWC_NO_LCE | PWC_NO_RCE)) == 0)
        continue;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(pwc_put_wait(w->remote, 0, "never", 6, none, PWC_NO_RCE), -ETIMEDOUT);
    world_limit(w, WAIT_MS);
    fake_hold(&w->daemon, false);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_STRING_EQUAL(w->memory, "there");
    CU_ASSERT_STRING_EQUAL(w->memory + 8, "late");
    CU_ASSERT_STRING_EQUAL(here, "there");
    for (unsigned i = 0; i < 200; i++)
        CU_ASSERT_EQUAL(pwc_put_wait(w->remote, 0, &i, sizeof(i), none, PWC_NO_RCE), 0);
    expect_silence(w);
    world_free(w);
}

static void *stop_daemon(void *daemon)
{
    usleep(50000);
    fake_daemon_stop(daemon);
    return NULL;
}

static void test_daemon_dies(void)
{
    struct two *t = two_new(false);
    pthread_t thread;

    hold(t, true);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_daemon, &t->w->daemon), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 0, "x", 1, none, 0), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_get_wait(t->to_b, 0, t->w->memory, 1, none, 0), -ESHUTDOWN);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(pwc_abort(t->w->client), 0);
    free(t->w);
    free(t);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"through the daemon", test_through_the_daemon},
        {"without the daemon", test_without_the_daemon},
        {"gets into any memory", test_get_anywhere},
        {"staging that is full", test_staging_full},
        {"a get that was given up", test_given_up},
        {"beside events", test_beside_events},
        {"what is refused, what fails", test_refusals},
        {"a full ring", test_full_ring},
        {"room for each operation", test_room},
        {"room for ends", test_room_for_ends},
        {"room of others", test_other_room},
        {"ids of an event", test_ids_of_an_event},
        {"neighbours that wait for each other", test_neighbours_wait_for_each_other},
        {"a neighbour that comes", test_neighbour_comes},
        {"a request that was flushed", test_flushed_request},
        {"staging of a context that ends", test_staging_given_back},
        {"no room in time", test_no_room},
        {"the timeout", test_timeout},
        {"the daemon dies", test_daemon_dies},
        CU_TEST_INFO_NULL,
    };

    return suite_run("blocking", tests);
}
