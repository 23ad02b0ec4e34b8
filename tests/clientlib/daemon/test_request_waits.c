/*
 * Waits and tests of one or several requests, through the public calls, against a daemon on a
 * thread: what they report, what they refuse, and that a waiter that sleeps is woken.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include "clientlib/channel/request.h"
#include "pwc/counter.h"
#include "pwc/request.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/suite.h"

enum { SEVERAL = 5 };

/* Makes requests of context a, which puts to b are given to; the last entry is NULL. */
static void make_several(struct two *t, pwc_request **r)
{
    for (unsigned i = 0; i + 1 < SEVERAL; i++)
        CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->a, &r[i]), 0);
    r[SEVERAL - 1] = NULL;
}

static void free_several(pwc_request **r)
{
    for (unsigned i = 0; i < SEVERAL; i++)
        if (r[i])
            CU_ASSERT_EQUAL(pwc_request_free(r[i]), 0);
}

/* Each end is reported once, by whichever call; -ENOENT where no request is under way or has an end
 * to report. */
static void test_wait_any(void)
{
    struct two *t = two_new(false);
    pwc_request *r[SEVERAL];
    struct pwc_status status;
    size_t which = 77;
    unsigned seen = 0;

    make_several(t, r);
    CU_ASSERT_EQUAL(pwc_wait_any(NULL, 0, &which, NULL, -1), -ENOENT);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, -1), -ENOENT);
    hold(t, true);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(put_request(t, r[i], i), 0);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, 2), 0);
    CU_ASSERT_EQUAL(which, 77);
    hold(t, false);
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait_any(r, SEVERAL, &which, &status, WAIT_MS), 1);
        CU_ASSERT_EQUAL(status.status, 0);
        CU_ASSERT_EQUAL(status.bytes, which);
        seen |= 1u << which;
    }
    CU_ASSERT_EQUAL(seen, 7);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, -1), -ENOENT);
    CU_ASSERT_EQUAL(put_request(t, r[1], 8), 0);
    (void)expect_end(r[1], 0, 1);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, -1), -ENOENT);
    /* A request that stands in the array twice ends once. */
    r[SEVERAL - 1] = r[0];
    CU_ASSERT_EQUAL(put_request(t, r[0], 8), 0);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, WAIT_MS), 1);
    CU_ASSERT_TRUE(which == 0 || which == SEVERAL - 1);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, -1), -ENOENT);
    r[SEVERAL - 1] = NULL;
    free_several(r);
    two_free(t);
}

static void test_wait_some(void)
{
    struct two *t = two_new(false);
    pwc_request *r[SEVERAL];
    struct pwc_status status[SEVERAL];
    size_t which[SEVERAL], ends = 0;
    unsigned seen = 0;

    make_several(t, r);
    CU_ASSERT_EQUAL(pwc_wait_some(r, SEVERAL, which, status, -1), -ENOENT);
    for (size_t i = 0; i + 1 < SEVERAL; i++)
        CU_ASSERT_EQUAL(put_request(t, r[i], i), 0);
    while (ends < SEVERAL - 1) {
        int n = pwc_wait_some(r, SEVERAL, which, status, WAIT_MS);

        CU_ASSERT_FATAL(n >= 1 && (size_t)n <= SEVERAL - 1 - ends);
        for (int i = 0; i < n; i++) {
            CU_ASSERT_EQUAL(status[i].bytes, which[i]);
            seen |= 1u << which[i];
        }
        ends += (size_t)n;
    }
    CU_ASSERT_EQUAL(seen, 15);
    /* One call reports all requests that have ended. */
    for (size_t i = 0; i + 1 < SEVERAL; i++)
        CU_ASSERT_EQUAL(put_request(t, r[i], i), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0}), 0);
    CU_ASSERT_EQUAL(pwc_wait_some(r, SEVERAL, which, NULL, 0), SEVERAL - 1);
    CU_ASSERT_EQUAL(pwc_wait_some(r, SEVERAL, which, NULL, 0), -ENOENT);
    free_several(r);
    two_free(t);
}

static void test_wait_all(void)
{
    struct two *t = two_new(false);
    pwc_remote *stale = stale_remote(t);
    pwc_request *r[SEVERAL];
    size_t which;

    make_several(t, r);
    CU_ASSERT_EQUAL(pwc_wait_all(NULL, 0, -1), 1);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, -1), 1);
    CU_ASSERT_EQUAL(put_request(t, r[0], 1), 0);
    (void)expect_end(r[0], 0, 1);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, r[1], 8), 0);
    CU_ASSERT_EQUAL(pwc_put(stale, 0, "1", 1, pwc_cid_request(r[1]), PWC_CID_NONE, 0), 0);
    CU_ASSERT_EQUAL(pwc_put(stale, 0, "1", 1, pwc_cid_request(r[2]), PWC_CID_NONE, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, 2), 0);
    hold(t, false);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, WAIT_MS), 1);
    (void)expect_end(r[1], -EKEYREJECTED, 2);
    (void)expect_end(r[2], -EKEYREJECTED, 1);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, 0), -ENOENT);

    /* A call that has timed out has reported nothing. */
    CU_ASSERT_EQUAL(put_request(t, r[0], 1), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0}), 0);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, r[1], 8), 0);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait_any(r, SEVERAL, &which, NULL, 0), 1);
    CU_ASSERT_EQUAL(which, 0);
    hold(t, false);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, WAIT_MS), 1);
    free_several(r);
    two_free(t);
}

struct late_start {
    pwc_remote *remote;
    pwc_request *request;
    unsigned started;
};

static void start_late(pwc_ctx *ctx, const struct pwc_event *event, void *argument)
{
    struct late_start *late = argument;

    late->started++;
    CU_ASSERT_EQUAL(
        pwc_put(late->remote, 0, "1", 1, pwc_cid_request(late->request), PWC_CID_NONE, 0), 0);
    (void)ctx;
    (void)event;
}

/* Guards that a wait for all also waits for a request that a handler starts meanwhile, although the
 * request was not under way when the wait began. */
static void test_wait_all_started_late(void)
{
    struct two *t = two_new(false);
    pwc_request *r[SEVERAL];
    struct late_start late = {.remote = stale_remote(t)};

    make_several(t, r);
    late.request = r[0];
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, start_late, &late), 0);
    CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, NULL, 0, pwc_cid_u64(5), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(put_request(t, r[1], 1), 0);
    CU_ASSERT_EQUAL(pwc_wait_all(r, SEVERAL, WAIT_MS), 1);
    CU_ASSERT_EQUAL(late.started, 1);
    CU_ASSERT_EQUAL(r[0]->left, 0);
    (void)expect_end(r[0], -EKEYREJECTED, 1);
    (void)expect_end(r[1], 0, 1);
    free_several(r);
    two_free(t);
}

/* Requests of two contexts in one call are refused: contexts may belong to two threads, so no call
 * may wait for both. */
static void test_two_contexts(void)
{
    struct two *t = two_new(false);
    pwc_request *r[2] = {t->request, NULL};
    size_t which[2];

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->b, &r[1]), 0);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, r[0], 1), 0);
    CU_ASSERT_EQUAL(pwc_wait_any(r, 2, which, NULL, 10), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_some(r, 2, which, NULL, 10), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_all(r, 2, 10), -EINVAL);
    hold(t, false);
    CU_ASSERT_EQUAL(pwc_wait_all(r, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_request_free(r[1]), 0);
    two_free(t);
}

/* A plain request is neither started nor cancelled. */
static void test_plain_is_not_persistent(void)
{
    struct two *t = two_new(false);

    CU_ASSERT_EQUAL(pwc_start(t->request), -EINVAL);
    CU_ASSERT_EQUAL(pwc_cancel(t->request), -EALREADY);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, t->request, 1), 0);
    CU_ASSERT_EQUAL(pwc_start(t->request), -EINVAL);
    CU_ASSERT_EQUAL(pwc_cancel(t->request), -EALREADY);
    hold(t, false);
    (void)expect_end(t->request, 0, 1);
    two_free(t);
}

/* The descriptor becomes readable for the end of an operation that was given a request. */
static void test_descriptor(void)
{
    struct two *t = two_new(false);
    struct pollfd fd = {.fd = pwc_fd(t->a), .events = POLLIN};
    struct pwc_event event;

    CU_ASSERT_TRUE_FATAL(fd.fd >= 0);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, t->request, 1), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(pwc_test(t->request, NULL), 0);
    CU_ASSERT_EQUAL(poll(&fd, 1, 0), 0);
    hold(t, false);
    CU_ASSERT_EQUAL(poll(&fd, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(pwc_test(t->request, NULL), 1);
    two_free(t);
}

/* Guards that a descriptor that is readable stays so until the next probe: a test of a request and
 * a look at a counter leave the note of a new neighbour in the wake socket. */
static void test_descriptor_stays_readable(void)
{
    struct two *t = two_new(false);
    struct pollfd fd = {.fd = pwc_fd(t->a), .events = POLLIN};
    struct pwc_event event;
    pwc_remote *to_a;
    uint64_t ended;

    CU_ASSERT_TRUE_FATAL(fd.fd >= 0);
    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, t->request, 1), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0);
    t->w->daemon.pairs = true;
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->b, pwc_ctx_peer(t->a), NULL, &to_a), 0);
    CU_ASSERT_EQUAL(poll(&fd, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_test(t->request, NULL), 0);
    CU_ASSERT_EQUAL(poll(&fd, 1, 0), 1);
    CU_ASSERT_EQUAL(pwc_counter_read(t->a, PWC_COUNT_ENDED, &ended), 0);
    CU_ASSERT_EQUAL(poll(&fd, 1, 0), 1);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(poll(&fd, 1, 0), 0);
    hold(t, false);
    CU_ASSERT_EQUAL(poll(&fd, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(pwc_test(t->request, NULL), 1);
    two_free(t);
}

/* A call that sleeps is woken by the end. */
static void test_wait_sleeps(void)
{
    struct two *t = two_new(false);
    pthread_t thread;

    hold(t, true);
    CU_ASSERT_EQUAL(put_request(t, t->request, 1), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go_of_sleeper, t), 0);
    CU_ASSERT_EQUAL(pwc_request_wait(t->request, NULL, -1), 1);
    pthread_join(thread, NULL);
    two_free(t);
}

/* Where the library can keep no more events, a wait returns an error; after the program has taken
 * some, the wait works again. */
static void test_too_many_events(void)
{
    enum { EVENTS = 100, ROUNDS_MAX = 100 };
    static const uint8_t id[PWC_CID_MAX];
    struct two *t = two_new(false);
    struct pwc_event event;
    unsigned rounds = 0, taken = 0;
    int rc = 1;

    for (; rc == 1; rounds++) {
        CU_ASSERT_FATAL(rounds < ROUNDS_MAX);
        for (unsigned i = 0; i < EVENTS; i++)
            CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, NULL, 0, pwc_cid_bytes(id, sizeof(id)),
                                    PWC_CID_NONE, PWC_NO_RCE),
                            0);
        CU_ASSERT_EQUAL(put_request(t, t->request, 1), 0);
        rc = pwc_request_wait(t->request, NULL, WAIT_MS);
    }
    CU_ASSERT_EQUAL(rc, -ENOBUFS);
    CU_ASSERT_EQUAL(pwc_test(t->request, NULL), -ENOBUFS);
    for (; (rc = pwc_request_wait(t->request, NULL, WAIT_MS)) == -ENOBUFS; taken++)
        CU_ASSERT_EQUAL_FATAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_TRUE(taken > 0 && taken <= EVENTS);
    for (; pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event) == 1; taken++)
        CU_ASSERT_EQUAL(event.id_size, sizeof(id));
    CU_ASSERT_EQUAL(taken, rounds * EVENTS);
    two_free(t);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"wait for any", test_wait_any},
        {"wait for some", test_wait_some},
        {"wait for all", test_wait_all},
        {"wait for all, one of which starts late", test_wait_all_started_late},
        {"requests of two contexts", test_two_contexts},
        {"a plain one is not persistent", test_plain_is_not_persistent},
        {"the descriptor", test_descriptor},
        {"the descriptor stays readable", test_descriptor_stays_readable},
        {"a wait sleeps and is woken", test_wait_sleeps},
        {"too many events are kept", test_too_many_events},
        CU_TEST_INFO_NULL,
    };

    return suite_run("request waits", tests);
}
