/*
 * pwc_bind_start through the public calls, against a daemon on a thread. The test says when and in
 * which order this daemon answers binds, and which of them it refuses.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "pwc/am.h"
#include "pwc/counter.h"
#include "shm_ring/counts.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/daemon/operations.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/suite.h"

enum { BATCH = 8, MANY = 900 };

/* ---- the daemon's part ---------------------------------------------------------------------- */

/* Orders to the hook below, and its counts. */
static struct {
    _Atomic unsigned binds, unbinds;
    _Atomic bool shut;       /* the daemon waits in the next bind until this is false */
    _Atomic int delay_us;    /* delay of each bind */
    _Atomic int refuse;      /* the next bind: a negative errno; 0: nothing */
    _Atomic unsigned batch;  /* answers so many binds at once, last one first */
    uint8_t *kept[BATCH];    /* packed requests of these binds */
    size_t kept_size[BATCH]; /* lengths of these requests */
    unsigned kept_count;
} script;

static void answer_batch(struct fake_daemon *daemon)
{
    while (script.kept_count > 0) {
        unsigned i = --script.kept_count;
        Pwc__ClientRequest *request =
            pwc__client_request__unpack(NULL, script.kept_size[i], script.kept[i]);

        fake_daemon_handle(daemon, request);
        pwc__client_request__free_unpacked(request, NULL);
        free(script.kept[i]);
    }
}

static bool keep(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    unsigned i = script.kept_count;

    script.kept_size[i] = pwc__client_request__get_packed_size(request);
    script.kept[i] = malloc(script.kept_size[i]);
    pwc__client_request__pack(request, script.kept[i]);
    if (++script.kept_count == script.batch)
        answer_batch(daemon);
    return true;
}

static bool hook(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    int refuse;

    if (request->body_case == PWC__CLIENT_REQUEST__BODY_UNBIND)
        script.unbinds++;
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_BIND)
        return false;
    script.binds++;
    while (script.shut)
        usleep(100);
    usleep((useconds_t)script.delay_us);
    refuse = atomic_exchange(&script.refuse, 0);
    if (refuse < 0)
        fake_daemon_error(daemon, request->id, refuse, "the test refuses it");
    return refuse < 0 || (script.batch > 0 && keep(daemon, request));
}

/* ---- a world with a second context, which is bound ------------------------------------------- */

struct stage {
    struct world *w;
    pwc_ctx *a, *b;
    struct pwc_key key; /* key of the world's region */
    unsigned handled;
};

static void count_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    ++*(unsigned *)argument;
    (void)ctx;
    (void)am;
}

static struct stage *stage_new(bool pairs)
{
    struct stage *s = calloc(1, sizeof(*s));

    memset(&script, 0, sizeof(script));
    s->w = world_new_sized(0, hook);
    s->w->daemon.pairs = pairs;
    s->a = s->w->ctx;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(s->w->client, NULL, &s->b), 0);
    CU_ASSERT_EQUAL(pwc_am_register(s->b, HANDLER, count_message, &s->handled), 0);
    CU_ASSERT_EQUAL(pwc_region_key(s->w->region, &s->key), 0);
    script.binds = 0;
    return s;
}

static void stage_free(struct stage *s)
{
    script.shut = false;
    world_free(s->w);
    free(s);
}

static pwc_remote *start(struct stage *s, uint64_t lid)
{
    pwc_remote *remote = NULL;

    CU_ASSERT_EQUAL_FATAL(
        pwc_bind_start(s->a, pwc_ctx_peer(s->b), &s->key, pwc_cid_u64(lid), &remote), 0);
    return remote;
}

static struct pwc_event expect_bind(struct stage *s, uint64_t lid, int status)
{
    struct pwc_event event = expect(s->w, PWC_LOCAL, lid, status);

    CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
    CU_ASSERT_EQUAL(event.peer, pwc_ctx_peer(s->b));
    CU_ASSERT_EQUAL(event.length, status == 0 ? pwc_region_len(s->w->region) : 0);
    return event;
}

static void wait_for(const _Atomic unsigned *count, unsigned wanted)
{
    for (unsigned i = 0; i < WAIT_MS && *count < wanted; i++)
        usleep(1000);
    CU_ASSERT_EQUAL(*count, wanted);
}

/* ---- before the end, and after --------------------------------------------------------------- */

/* Operations over the remote are refused until the bind has ended, and accepted afterwards. */
static void use_each(bool pairs)
{
    for (unsigned v = 0; v < OPERATIONS; v++) {
        struct stage *s = stage_new(pairs);
        struct pwc_event event;
        pwc_remote *to;

        script.shut = true;
        to = start(s, 7);
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), -EAGAIN);
        CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
        CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, 0, &event), 0);
        CU_ASSERT_EQUAL(pwc_flush(s->a, PWC_ANY, 0), -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_flush(s->a, pwc_ctx_peer(s->b), 0), -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_flush(s->a, pwc_peer_of(0, 9), 0), 0); /* another peer */
        script.shut = false;
        (void)expect_bind(s, 7, 0);
        CU_ASSERT_EQUAL(pwc_remote_len(to), pwc_region_len(s->w->region));
        if (operations[v].ranged)
            CU_ASSERT_EQUAL(operations[v].run(s->w, to, pwc_remote_len(to) + 8, PWC_CID_NONE),
                            -ERANGE);
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), 0);
        (void)expect(s->w, PWC_LOCAL, 1, 0);
        CU_ASSERT_EQUAL(pwc_unbind(to), 0);
        CU_ASSERT_EQUAL(script.unbinds, 1);
        stage_free(s);
    }
}

static void test_through_the_daemon(void)
{
    use_each(false);
}

static void test_without_the_daemon(void)
{
    use_each(true);
}

/* A refused bind: operations over its remote return the reason, and no unbind is sent for it. */
static void test_refused(void)
{
    struct stage *s = stage_new(false);
    char text[128];
    pwc_remote *to;

    script.refuse = -EHOSTDOWN;
    to = start(s, 3);
    (void)expect_bind(s, 3, -EHOSTDOWN);
    (void)pwc_error_text(s->w->client, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "the test refuses it");
    for (unsigned v = 0; v < OPERATIONS; v++)
        CU_ASSERT_EQUAL(operations[v].run(s->w, to, 0, pwc_cid_u64(1)), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, PWC_CID_NONE, PWC_CID_NONE, PWC_WAIT), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
    expect_silence(s->w);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    CU_ASSERT_EQUAL(script.unbinds, 0);
    stage_free(s);
}

/* An operation with PWC_WAIT right after the start waits for the end of the bind, good or bad. */
static void test_wait_behind_start(void)
{
    static const unsigned flags = PWC_WAIT | PWC_FENCE | PWC_NO_RCE;

    for (unsigned pairs = 0; pairs < 2; pairs++) {
        struct stage *s = stage_new(pairs);
        uint64_t here = 0;
        pwc_remote *to;

        script.delay_us = 2000;
        to = start(s, 1);
        CU_ASSERT_EQUAL(pwc_put(to, 64, "1234567", 8, pwc_cid_u64(2), PWC_CID_NONE, flags), 0);
        (void)expect_bind(s, 1, 0);
        (void)expect(s->w, PWC_LOCAL, 2, 0);
        CU_ASSERT_STRING_EQUAL(s->w->memory + 64, "1234567");
        to = start(s, 3);
        CU_ASSERT_EQUAL(pwc_get_wait(to, 64, &here, 8, PWC_CID_NONE, 0), 0);
        CU_ASSERT_EQUAL(memcmp(&here, "1234567", 8), 0);
        (void)expect_bind(s, 3, 0);
        to = start(s, 4);
        CU_ASSERT_EQUAL(
            pwc_am_short(to, &(struct pwc_am_send){.index = HANDLER,
                                                   .lid = pwc_cid_u64(5),
                                                   .flags = PWC_WAIT | PWC_AM_NO_REPLY}),
            0);
        (void)expect_bind(s, 4, 0);
        (void)expect(s->w, PWC_LOCAL, 5, 0);
        script.refuse = -EKEYREJECTED;
        to = start(s, 6);
        CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, pwc_cid_u64(7), PWC_CID_NONE, flags), -EKEYREJECTED);
        (void)expect_bind(s, 6, -EKEYREJECTED);
        expect_silence(s->w);
        stage_free(s);
    }
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* Events of binds come in the order of the answers, each with its own id. */
static void test_order(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[BATCH];

    script.batch = BATCH;
    for (unsigned i = 0; i < BATCH; i++)
        to[i] = start(s, 10 + i);
    for (unsigned i = BATCH; i-- > 0;)
        (void)expect_bind(s, 10 + i, 0);
    for (unsigned i = 0; i < BATCH; i++)
        CU_ASSERT_EQUAL(operation_put(s->w, to[i], 0, PWC_CID_NONE), 0);
    CU_ASSERT_EQUAL(pwc_flush(s->a, PWC_ANY, WAIT_MS), 0);
    stage_free(s);
}

/* A long id is copied at the call: the program may change its bytes afterwards. */
static void test_long_id(void)
{
    struct stage *s = stage_new(false);
    char id[] = "twenty-four bytes long!!";
    struct pwc_event event;
    pwc_remote *to;

    script.shut = true;
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, pwc_cid_bytes(id, 24), &to), 0);
    memset(id, 'x', 24);
    script.shut = false;
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.op, PWC_OP_BIND);
    CU_ASSERT_EQUAL(event.id_size, 24);
    CU_ASSERT_EQUAL(memcmp(event.data, "twenty-four bytes long!!", 24), 0);
    CU_ASSERT_EQUAL(pwc_remote_len(to), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(to, 0, NULL, 0, PWC_CID_NONE, 0), 0);
    stage_free(s);
}

/* A request that was given to binds counts their ends and keeps the first error; no event is
 * posted. */
static void test_requests(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[BATCH];
    pwc_request *r;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &r), 0);
    script.shut = true;
    for (unsigned i = 0; i < BATCH; i++)
        CU_ASSERT_EQUAL(
            pwc_bind_start(s->a, pwc_ctx_peer(s->b), &s->key, pwc_cid_request(r), &to[i]), 0);
    CU_ASSERT_EQUAL(pwc_test(r, NULL), 0);
    CU_ASSERT_EQUAL(pwc_cancel(r), -EALREADY);
    CU_ASSERT_EQUAL(pwc_request_free(r), -EBUSY);
    script.refuse = -ENOSPC;
    script.shut = false;
    (void)expect_end(r, -ENOSPC, BATCH);
    expect_silence(s->w);
    CU_ASSERT_EQUAL(operation_put(s->w, to[0], 0, PWC_CID_NONE), -ENOSPC);
    CU_ASSERT_EQUAL(operation_put(s->w, to[1], 0, PWC_CID_NONE), 0);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    stage_free(s);
}

/* A program starts many binds, then waits: all of them end. */
static void test_many(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *to[MANY];
    bool ended[MANY] = {false};

    for (unsigned i = 0; i < MANY; i++)
        to[i] = start(s, i);
    for (unsigned i = 0; i < MANY; i++) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_TRUE_FATAL(event.op == PWC_OP_BIND && event.status == 0 && event.id < MANY);
        CU_ASSERT_FALSE(ended[event.id]);
        ended[event.id] = true;
    }
    CU_ASSERT_EQUAL(script.binds, MANY);
    for (unsigned i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(pwc_unbind(to[i]), 0);
    CU_ASSERT_EQUAL(script.unbinds, MANY);
    stage_free(s);
}

/* The daemon restarts meanwhile: the bind is asked again. */
static void test_started_anew(void)
{
    struct stage *s = stage_new(false);

    script.refuse = -ECONNABORTED;
    (void)start(s, 1);
    (void)expect_bind(s, 1, 0);
    CU_ASSERT_EQUAL(script.binds, 2);
    stage_free(s);
}

/* When the daemon dies, binds under way end. */
static void test_daemon_gone(void)
{
    struct stage *s = stage_new(false);
    struct pwc_event event;
    pwc_remote *to, *other;

    script.batch = BATCH; /* the answer never comes */
    to = start(s, 1);
    wait_for(&script.binds, 1);
    fake_daemon_stop(&s->w->daemon);
    CU_ASSERT_EQUAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_TRUE(event.op == PWC_OP_BIND && event.status == -ESHUTDOWN);
    CU_ASSERT_TRUE(operation_put(s->w, to, 0, PWC_CID_NONE) < 0);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, NULL, PWC_CID_NONE, &other), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    CU_ASSERT_EQUAL(pwc_abort(s->w->client), 0);
    free(script.kept[0]);
    free(s->w);
    free(s);
}

/* ---- time ----------------------------------------------------------------------------------- */

/* No answer in time: the call that waits reports the end by itself, and a remote that the daemon
 * binds later is given back. */
static void test_timeout(void)
{
    struct stage *s = stage_new(false);
    int64_t begun = clock_now();
    struct pwc_event event;
    pwc_remote *to;

    world_limit(s->w, 100);
    script.shut = true;
    to = start(s, 1);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_TRUE(event.op == PWC_OP_BIND && event.status == -ETIMEDOUT && event.id == 1);
    CU_ASSERT_TRUE(clock_now() - begun >= 100 * INT64_C(1000000));
    CU_ASSERT_EQUAL(operation_put(s->w, to, 0, PWC_CID_NONE), -ETIMEDOUT);
    script.shut = false;
    while (script.unbinds == 0 && clock_now() - begun < WAIT_MS * INT64_C(1000000)) {
        pwc_remote *other = start(s, 2); /* this call reads the socket */

        CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        if (event.status == 0)
            continue;
        CU_ASSERT_EQUAL(pwc_unbind(other), 0);
    }
    wait_for(&script.unbinds, 1);
    CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    stage_free(s);
}

/* A call that sleeps wakes up when a bind's timeout is over. */
static void test_timeouts_wake(void)
{
    enum { ROUNDS = 6, TIMEOUT_MS = 50 };
    struct stage *s = stage_new(false);
    int64_t begun = clock_now();
    struct pwc_event event;
    pwc_remote *to;

    world_limit(s->w, TIMEOUT_MS);
    script.shut = true;
    for (unsigned i = 0; i < ROUNDS; i++) {
        to = start(s, i);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.status, -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_unbind(to), 0);
    }
    CU_ASSERT_TRUE(clock_now() - begun < ROUNDS * INT64_C(500000000));
    stage_free(s);
}

/* A call that sleeps is woken by the answer to a bind, not by its own timer, which is much
 * slower. */
static void test_sleepers(void)
{
    enum { ROUNDS = 40, ANSWER_US = 5000 };
    struct stage *s = stage_new(false);
    int64_t begun = clock_now();
    pwc_request *r;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &r), 0);
    script.delay_us = ANSWER_US;
    for (unsigned i = 0; i < ROUNDS; i++) {
        pwc_remote *to;

        (void)start(s, i);
        (void)expect_bind(s, i, 0);
        CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), &s->key, pwc_cid_request(r), &to),
                        0);
        (void)expect_end(r, 0, 1);
    }
    /* Without the wake-up each round would take a second: that long a call naps before it checks
     * whether the daemon lives. */
    CU_ASSERT_TRUE(clock_now() - begun < ROUNDS * INT64_C(500000000));
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    stage_free(s);
}

/* Waits until the first context sleeps, then counts one more arrived operation, and rings the
 * bell. */
static void *arrive(void *stage)
{
    struct fake_context *context = &((struct stage *)stage)->w->daemon.contexts[0];
    struct session_shared *shared = context->session.shared;

    while (atomic_load(&shared->waits.asleep_since) == 0)
        usleep(100);
    count_up(&shared->counts.arrived, 1);
    fake_wake_client(context);
    return NULL;
}

/* A wait for a counter, too, is woken by its bell while a bind is under way. */
static void test_counter_wakes(void)
{
    enum { ROUNDS = 6 };
    struct stage *s = stage_new(false);
    int64_t begun = clock_now();
    pthread_t thread;

    script.shut = true;
    (void)start(s, 1);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, arrive, s), 0);
        CU_ASSERT_EQUAL(pwc_counter_wait(s->a, PWC_COUNT_ARRIVED, i, WAIT_MS), 0);
        pthread_join(thread, NULL);
    }
    /* A nap that no bell ends takes a second. */
    CU_ASSERT_TRUE(clock_now() - begun < ROUNDS * INT64_C(500000000));
    script.shut = false;
    (void)expect_bind(s, 1, 0);
    stage_free(s);
}

/* The descriptor of pwc_fd becomes readable for the answer to a bind, whether it was made before
 * the start of the bind or after it. Without an answer it is not readable. */
static void test_descriptor(void)
{
    for (unsigned before = 0; before < 2; before++) {
        struct stage *s = stage_new(false);
        struct pollfd readable = {.fd = -1, .events = POLLIN};
        struct pwc_event event;
        pwc_ctx *other;
        pwc_remote *to;

        if (before)
            readable.fd = pwc_fd(s->a);
        script.shut = true;
        for (uint64_t i = 1; i <= 3; i++) {
            to = start(s, i);
            readable.fd = pwc_fd(s->a);
            CU_ASSERT_TRUE_FATAL(readable.fd >= 0);
            CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &event), 0);
            CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
            script.shut = false;
            CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS), 1);
            CU_ASSERT_EQUAL_FATAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &event), 1);
            CU_ASSERT_TRUE(event.op == PWC_OP_BIND && event.id == i);
            CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &event), 0);
            CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
            script.shut = true;
        }
        /* Without a bind under way, answers to other requests do not make the descriptor
         * readable. */
        script.shut = false;
        CU_ASSERT_EQUAL(pwc_ctx_create(s->w->client, NULL, &other), 0);
        CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
        CU_ASSERT_EQUAL(operation_put(s->w, to, 0, PWC_CID_NONE), 0);
        stage_free(s);
    }
}

/* ---- given up ------------------------------------------------------------------------------- */

static void test_unbind_under_way(void)
{
    struct stage *s = stage_new(false);
    pwc_remote *first, *second, *third;
    struct pwc_status status;
    pwc_request *r;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &r), 0);
    script.shut = true;
    first = start(s, 1);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, pwc_cid_request(r), &second), 0);
    third = start(s, 3);
    CU_ASSERT_EQUAL(pwc_unbind(first), 0);
    CU_ASSERT_EQUAL(pwc_unbind(second), 0);
    (void)expect_bind(s, 1, -ECANCELED);
    CU_ASSERT_EQUAL(pwc_test(r, &status), 1);
    CU_ASSERT_EQUAL(status.status, -ECANCELED);
    script.shut = false;
    (void)expect_bind(s, 3, 0); /* so the answers to the first two have been read as well */
    wait_for(&script.unbinds, 2);
    CU_ASSERT_EQUAL(pwc_unbind(third), 0);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    stage_free(s);
}

/* A context is destroyed with binds under way, answered or not. The client works on. */
static void test_context_destroyed(void)
{
    for (unsigned answered = 0; answered < 2; answered++) {
        struct stage *s = stage_new(true);
        pwc_remote *to;
        pwc_ctx *c;

        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(s->w->client, NULL, &c), 0);
        CU_ASSERT_TRUE(pwc_fd(c) >= 0);
        script.delay_us = answered ? 0 : 1000;
        for (unsigned i = 0; i < 300; i++)
            CU_ASSERT_EQUAL(pwc_bind_start(c, pwc_ctx_peer(s->b), &s->key, PWC_CID_NONE, &to), 0);
        if (answered) /* this call reads all answers */
            CU_ASSERT_EQUAL(pwc_bind(s->a, pwc_ctx_peer(s->b), NULL, &to), 0);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(c), 0);
        script.delay_us = 0;
        (void)start(s, 1);
        (void)expect_bind(s, 1, 0);
        stage_free(s);
    }
}

/* pwc_finalize waits for binds, pwc_abort does not. */
static void test_client_ends(void)
{
    struct stage *s = stage_new(false);

    script.refuse = -EHOSTUNREACH;
    script.delay_us = 2000;
    (void)start(s, 1);
    (void)start(s, 2);
    CU_ASSERT_EQUAL(pwc_finalize(s->w->client), 1); /* one bind has failed */
    CU_ASSERT_EQUAL(script.binds, 2);
    fake_daemon_stop(&s->w->daemon);
    free(s->w);
    free(s);

    s = stage_new(false);
    script.batch = BATCH;
    for (unsigned i = 0; i < BATCH - 1; i++)
        (void)start(s, 1);
    CU_ASSERT_EQUAL(pwc_abort(s->w->client), 0);
    fake_daemon_stop(&s->w->daemon);
    while (script.kept_count > 0)
        free(script.kept[--script.kept_count]);
    free(s->w);
    free(s);
}

/* ---- others -----------------------------------------------------------------------------------
 */

static void test_refusals(void)
{
    struct stage *s = stage_new(false);
    struct pwc_key odd = s->key;
    pwc_remote *to = NULL;
    char id[PWC_CID_MAX + 1];

    odd.reserved = 1;
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, &odd, PWC_CID_NONE, &to), -EINVAL);
    CU_ASSERT_EQUAL(pwc_bind_start(s->a, 0, NULL, pwc_cid_bytes(id, sizeof(id)), &to), -EINVAL);
    CU_ASSERT_EQUAL(script.binds, 0);
    CU_ASSERT_PTR_NULL(to);
    stage_free(s);
}

/* Where no descriptor can be opened, the start is refused; later binds work. */
static void test_no_descriptor(void)
{
    struct stage *s = stage_new(false);
    struct rlimit limit, none;
    pwc_remote *to;
    int free_number;

    /* The daemon closes its descriptor for the last context only after its answer. After one more
     * answer no number becomes free any more. */
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), NULL, &to), 0);
    script.binds = 0;
    free_number = dup(s->w->daemon.listen_fd);
    CU_ASSERT_EQUAL_FATAL(close(free_number), 0);
    CU_ASSERT_FATAL(free_number >= 16);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)free_number; /* not 0: the daemon's poll needs a limit, too */
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to), -EMFILE);
    CU_ASSERT_EQUAL(pwc_fd(s->a), -EMFILE);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CU_ASSERT_EQUAL(script.binds, 0);
    (void)start(s, 1);
    (void)expect_bind(s, 1, 0);
    stage_free(s);
}

/* A bind reserves the room for its event at its start. */
static void test_room(void)
{
    struct stage *s = stage_new(false);
    struct pwc_event event;
    unsigned count = 0;
    pwc_remote *to;
    pwc_ctx *c;
    int rc;

    CU_ASSERT_EQUAL_FATAL(
        pwc_ctx_create(s->w->client, &(struct pwc_ctx_attr){.local_bytes = 16384}, &c), 0);
    while ((rc = pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to)) == 0 &&
           count < MANY)
        count++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT_EQUAL(pwc_wait(c, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, PWC_CID_NONE, &to), 0);
    stage_free(s);
}

/* Only the first answer for a peer carries the pair. pwc_bind's answer comes second, but its caller
 * takes it first: the remote must use the pair nevertheless. */
static void test_pair_comes_first(void)
{
    struct stage *s;
    struct pwc_event event;
    pwc_remote *to;
    unsigned executed;

    if (doorbell_register() < 0) /* there are no pairs without it */
        return;
    s = stage_new(true);
    (void)start(s, 1);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(s->a, pwc_ctx_peer(s->b), &s->key, &to), 0);
    (void)expect_bind(s, 1, 0);
    CU_ASSERT_EQUAL(pwc_probe(s->b, PWC_ANY, PWC_LOCAL, &event), 0); /* b maps the pair */
    executed = s->w->daemon.executed;
    CU_ASSERT_EQUAL(pwc_put(to, 0, "1", 1, pwc_cid_u64(2), PWC_CID_NONE, 0), 0);
    (void)expect(s->w, PWC_LOCAL, 2, 0);
    CU_ASSERT_EQUAL(s->w->daemon.executed, executed);
    stage_free(s);
}

struct in_handler {
    struct stage *s;
    pwc_remote *to;
    int started, put;
};

static void start_in_handler(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct in_handler *h = argument;

    (void)am;
    h->started = pwc_bind_start(ctx, pwc_ctx_peer(h->s->b), &h->s->key, pwc_cid_u64(9), &h->to);
    h->put = operation_put(h->s->w, h->to, 0, PWC_CID_NONE);
}

static void test_inside_a_handler(void)
{
    struct stage *s = stage_new(false);
    struct in_handler h = {.s = s};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_am_register(s->a, HANDLER, start_in_handler, &h), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(s->w->remote, &(struct pwc_am_send){.index = HANDLER, .flags = PWC_NO_LCE}),
        0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(s->a, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(h.started, 0);
    CU_ASSERT_EQUAL(h.put, -EAGAIN);
    (void)expect_bind(s, 9, 0);
    CU_ASSERT_EQUAL(operation_put(s->w, h.to, 0, PWC_CID_NONE), 0);
    stage_free(s);
}

/* ---- several threads --------------------------------------------------------------------------
 */

enum { THREADS = 3, EACH = 200 };

static void *start_and_wait(void *context)
{
    struct stage *s = context;
    struct pwc_event event;
    unsigned ended = 0;
    pwc_remote *to;
    pwc_ctx *c;

    if (pwc_ctx_create(s->w->client, NULL, &c) < 0)
        return NULL;
    for (unsigned i = 0; i < EACH; i++) {
        if (pwc_bind_start(c, pwc_ctx_peer(s->b), NULL, pwc_cid_u64(i), &to) < 0)
            return NULL;
        /* A call that waits reads the answers to binds, too, of this and other threads. */
        if (i % 50 == 0 && pwc_bind(c, pwc_ctx_peer(s->b), NULL, &to) < 0)
            return NULL;
    }
    while (ended < EACH && pwc_wait(c, PWC_ANY, PWC_LOCAL, &event, WAIT_MS) == 1)
        ended += event.op == PWC_OP_BIND && event.status == 0;
    return ended == EACH ? s : NULL;
}

static void test_threads(void)
{
    struct stage *s = stage_new(false);
    pthread_t threads[THREADS - 1];
    void *result;

    CU_ASSERT_EQUAL(pwc_ctx_destroy(s->a), 0);
    for (unsigned i = 0; i < THREADS - 1; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, start_and_wait, s), 0);
    CU_ASSERT_PTR_EQUAL(start_and_wait(s), s);
    for (unsigned i = 0; i < THREADS - 1; i++) {
        pthread_join(threads[i], &result);
        CU_ASSERT_PTR_EQUAL(result, s);
    }
    stage_free(s);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every operation, through the daemon", test_through_the_daemon},
        {"every operation, without the daemon", test_without_the_daemon},
        {"a bind that is refused", test_refused},
        {"a wait right behind the start", test_wait_behind_start},
        {"order", test_order},
        {"a long id", test_long_id},
        {"requests", test_requests},
        {"many", test_many},
        {"a daemon that was started anew", test_started_anew},
        {"a daemon that is gone", test_daemon_gone},
        {"no answer in time", test_timeout},
        {"sleepers, and the end of the time", test_timeouts_wake},
        {"sleepers", test_sleepers},
        {"a wait for a counter", test_counter_wakes},
        {"the descriptor", test_descriptor},
        {"unbound under way", test_unbind_under_way},
        {"a context that is destroyed", test_context_destroyed},
        {"the client's end", test_client_ends},
        {"what is refused", test_refusals},
        {"no descriptor", test_no_descriptor},
        {"room for events", test_room},
        {"the pair comes with the first answer", test_pair_comes_first},
        {"inside a handler", test_inside_a_handler},
        {"several threads", test_threads},
        CU_TEST_INFO_NULL,
    };

    return suite_run("bind start", tests);
}
