/* Calls that wait while binds of pwc_bind_start are under way, and the end of their time
 * (bind_stage.h). */
#include "tests/clientlib/daemon/bind_stage.h"
#include "tests/suite.h"

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
    world_limit(s->w, WAIT_MS); /* else a busy machine gives up other binds, too */
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

/* A test of another request, between a probe that has found nothing and the poll, takes the answer
 * to a bind. The descriptor stays readable up to the next probe, whether the bind ends with an
 * event or with a request, and whether or not another bind is under way. */
static void test_descriptor_after_test(void)
{
    for (unsigned row = 0; row < 4; row++) {
        bool event = row & 1, more = row & 2;
        struct stage *s = stage_new(false);
        struct pollfd readable = {.fd = pwc_fd(s->a), .events = POLLIN};
        pwc_request *held, *ended;
        struct pwc_event got;
        pwc_remote *to;

        CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &held), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_request_create(s->a, &ended), 0);
        fake_hold(&s->w->daemon, true);
        CU_ASSERT_EQUAL(operation_put(s->w, s->w->remote, 0, pwc_cid_request(held)), 0);
        script.shut = true;
        CU_ASSERT_EQUAL(pwc_bind_start(s->a, pwc_ctx_peer(s->b), NULL,
                                       event ? pwc_cid_u64(7) : pwc_cid_request(ended), &to),
                        0);
        wait_for(&script.binds, 1);
        CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &got), 0);
        CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
        script.shut = false;
        CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS), 1);
        script.shut = true;
        if (more)
            (void)start(s, 8);
        for (unsigned i = 0; i < 2; i++)
            CU_ASSERT_EQUAL(pwc_test(held, NULL), 0);
        CU_ASSERT_EQUAL(poll(&readable, 1, 0), 1);
        CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &got), event);
        CU_ASSERT_TRUE(!event || (got.op == PWC_OP_BIND && got.id == 7));
        CU_ASSERT_EQUAL(pwc_test(ended, NULL), 1);
        CU_ASSERT_EQUAL(pwc_probe(s->a, PWC_ANY, PWC_LOCAL, &got), 0);
        CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
        script.shut = false;
        fake_hold(&s->w->daemon, false);
        if (more)
            (void)expect_bind(s, 8, 0);
        (void)expect_end(held, 0, 1);
        stage_free(s);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"no answer in time", test_timeout},
        {"sleepers, and the end of the time", test_timeouts_wake},
        {"sleepers", test_sleepers},
        {"a wait for a counter", test_counter_wakes},
        {"the descriptor", test_descriptor},
        {"the descriptor after a test", test_descriptor_after_test},
        CU_TEST_INFO_NULL,
    };

    return suite_run("bind waits", tests);
}
