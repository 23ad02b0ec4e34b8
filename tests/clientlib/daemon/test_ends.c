/*
 * The last calls of a client: which of its accepted operations pwc_finalize completes, and which it
 * counts as failed. Also a barrier that a timeout ends.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "tests/suite.h"
#include "tests/clientlib/daemon/client_world.h"
#include "pwc/am.h"
#include "pwc/request.h"

enum { PUTS = 100, SHORT_MS = 50 };

static void put_some(struct world *w)
{
    for (uint64_t i = 0; i < PUTS; i++)
        CU_ASSERT_EQUAL_FATAL(put(w, 8 * i, &i, 8, i, i % 2 ? PWC_NO_LCE : 0), 0);
}

static void close_daemon(struct world *w)
{
    fake_daemon_stop(&w->daemon);
    free(w);
}

static void *let_go(void *argument)
{
    struct fake_daemon *daemon = argument;

    fake_hold(daemon, false);
    return NULL;
}

/* pwc_finalize completes accepted operations, with and without events, although nobody probes. */
static void test_completes(void)
{
    struct world *w = world_new();
    pthread_t thread;
    pwc_ctx *second;
    pwc_remote *remote;

    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &second), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(second, pwc_ctx_peer(w->ctx), NULL, &remote), 0);
    fake_hold(&w->daemon, true);
    put_some(w);
    CU_ASSERT_EQUAL(pwc_put(remote, 0, NULL, 0, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    CU_ASSERT_EQUAL(get(w, 0, w->memory + BIG, BIG, 3, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_go, &w->daemon), 0);
    CU_ASSERT_EQUAL(pwc_finalize(w->client), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), PUTS + 2);
    close_daemon(w);
}

/* The client's timeout bounds the wait, and pwc_abort does not wait at all. */
static void test_gives_up(void)
{
    struct world *w = world_new();

    fake_hold(&w->daemon, true);
    put_some(w);
    world_limit(w, SHORT_MS);
    CU_ASSERT_EQUAL(pwc_finalize(w->client), PUTS);
    close_daemon(w);

    w = world_new();
    fake_hold(&w->daemon, true);
    put_some(w);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 0);
    close_daemon(w);
}

/* pwc_finalize counts a failure that no probe has reported. It does not count a failure that a
 * probe has reported, or a message that was only prepared. */
static void test_failures(void)
{
    struct world *w = world_new();
    void *payload;

    CU_ASSERT_EQUAL_FATAL(pwc_region_free(w->region), 0);
    CU_ASSERT_EQUAL(put(w, 0, "12345678", 8, 1, 0), 0);
    (void)expect(w, PWC_LOCAL, 1, -EKEYREJECTED);
    CU_ASSERT_EQUAL(put(w, 0, "12345678", 8, 2, 0), 0);
    CU_ASSERT_EQUAL(put(w, 0, "12345678", 8, 3, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_put(w->remote, 0, NULL, 0, pwc_cid_u64(4), pwc_cid_u64(5), 0), 0);
    CU_ASSERT_EQUAL(pwc_am_prepare(w->remote, 1, 0, PWC_CID_NONE, 0, &payload), 0);
    CU_ASSERT_EQUAL(pwc_finalize(w->client), 2);
    close_daemon(w);
}

/* A request whose operations failed counts once, until a call has reported its end. */
static void test_failed_requests(void)
{
    struct world *w = world_new();
    pwc_request *some[3];

    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL_FATAL(pwc_request_create(w->ctx, &some[i]), 0);
    CU_ASSERT_EQUAL(
        pwc_put(w->remote, 0, "1", 1, pwc_cid_request(some[0]), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0); /* succeeds: does not count */
    CU_ASSERT_EQUAL_FATAL(pwc_region_free(w->region), 0);
    for (int i = 1; i < 3; i++)
        for (int puts = 0; puts < 2; puts++)
            CU_ASSERT_EQUAL(
                pwc_put(w->remote, 0, "1", 1, pwc_cid_request(some[i]), PWC_CID_NONE, PWC_NO_RCE),
                0);
    CU_ASSERT_EQUAL(pwc_request_wait(some[1], NULL, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_finalize(w->client), 1);
    close_daemon(w);
}

/* When the daemon dies, pwc_finalize stops to wait, and counts all operations that were left. */
static void test_daemon_dies(void)
{
    struct world *w = world_new();

    fake_hold(&w->daemon, true);
    put_some(w);
    fake_daemon_stop(&w->daemon);
    CU_ASSERT_EQUAL(pwc_finalize(w->client), PUTS);
    free(w);
}

/* Leaves the exchange unanswered until its client gives it up. */
static bool until_given_up(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    static uint32_t waits;

    if (request->body_case != PWC__CLIENT_REQUEST__BODY_EXCHANGE)
        return false;
    if (request->exchange->give_up)
        fake_daemon_error(daemon, waits, -ETIMEDOUT, "not there: 1");
    else
        waits = request->id;
    return true;
}

/* A rank whose timeout is over asks the daemon to end the exchange; the error's text is the
 * daemon's. */
static void test_barrier_given_up(void)
{
    struct world *w = world_new_sized(0, until_given_up);
    char text[64];

    world_limit(w, SHORT_MS);
    CU_ASSERT_EQUAL(pwc_barrier(w->ctx), -ETIMEDOUT);
    pwc_error_text(w->client, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "not there: 1");
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"what was accepted is completed", test_completes},
        {"what does not end in time is counted", test_gives_up},
        {"failures are counted", test_failures},
        {"failures of requests are counted", test_failed_requests},
        {"a daemon that dies", test_daemon_dies},
        {"a barrier that is given up", test_barrier_given_up},
        CU_TEST_INFO_NULL,
    };

    return suite_run("ends", tests);
}
