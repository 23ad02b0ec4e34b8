/* Windows of the job, through the public calls, against a daemon on a thread: a window that is
 * freed in several calls, and a rank that cannot take part. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/clientlib/daemon/client_world.h"
#include "clientlib/memory/region.h"
#include "clientlib/memory/window.h"
#include "pwc/am.h"
#include "pwc/notify.h"

enum { SHORT_MS = 50 };

static _Atomic unsigned exchanges; /* that the daemon has answered */
static _Atomic int other_regions;  /* `regions` of the other rank; 0: that of ours */

/* Answers each exchange at once: the other rank gives what ours gives. */
static bool exchange_alike(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Exchanged piece = PWC__EXCHANGED__INIT;
    struct window_member other;

    if (request->body_case != PWC__CLIENT_REQUEST__BODY_EXCHANGE)
        return false;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_EXCHANGED;
    reply.exchanged = &piece;
    piece.data = request->exchange->data;
    fake_daemon_reply(daemon, &reply, NULL, 0);
    piece.offset = piece.data.len;
    piece.last = true;
    if (piece.data.len == sizeof(other) && other_regions != 0) {
        memcpy(&other, piece.data.data, sizeof(other));
        other.regions = other_regions;
        piece.data.data = (uint8_t *)&other;
    }
    exchanges++;
    fake_daemon_reply(daemon, &reply, NULL, 0);
    return true;
}

/* A world with a window of which rank 0 is bound. */
static struct world *window_new(pwc_window **out)
{
    struct world *w = world_new_sized(0, exchange_alike);
    pwc_remote *remote;

    CU_ASSERT_EQUAL_FATAL(pwc_window_create(w->ctx, NULL, w->region, out), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_window_remote(*out, 0, &remote), 0);
    exchanges = 0;
    return w;
}

/* While a message is prepared, no remote can be unbound: the ranks have not met yet. */
static void test_refused_before_the_barrier(void)
{
    pwc_window *window;
    struct world *w = window_new(&window);
    void *payload;

    CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(w->remote, 8, 0, PWC_CID_NONE, PWC_NO_LCE, &payload), 0);
    CU_ASSERT_EQUAL(pwc_window_free(window), -EBUSY);
    CU_ASSERT_EQUAL(exchanges, 0);
    CU_ASSERT_EQUAL(pwc_am_cancel(w->ctx), 0);
    CU_ASSERT_EQUAL(pwc_window_free(window), 0);
    CU_ASSERT_EQUAL(exchanges, 1);
    world_free(w);
}

/* The ranks have met, and then a remote cannot be unbound in time: the next call does not wait for
 * the other ranks again, which have left. */
static void test_unbound_after_the_barrier(void)
{
    pwc_window *window;
    struct world *w = window_new(&window);

    fake_hold(&w->daemon, true);
    world_limit(w, SHORT_MS);
    CU_ASSERT_EQUAL(pwc_window_free(window), -ETIMEDOUT);
    CU_ASSERT_EQUAL(exchanges, 1);
    world_limit(w, WAIT_MS);
    fake_hold(&w->daemon, false);
    CU_ASSERT_EQUAL(pwc_window_free(window), 0);
    CU_ASSERT_EQUAL(exchanges, 1);
    world_free(w);
}

static void expect_refusal(struct world *w, pwc_region *mine, int error, const char *words)
{
    pwc_window *window = NULL;
    char text[256] = "";

    exchanges = 0;
    CU_ASSERT_EQUAL(pwc_window_create(w->ctx, NULL, mine, &window), error);
    CU_ASSERT_EQUAL(exchanges, 1); /* no other rank waits */
    pwc_error_text(w->client, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, words));
    if (!strstr(text, words))
        fprintf(stderr, "\"%s\" has no \"%s\"\n", text, words);
}

/* A rank that cannot take part has the reason in words, and so have the other ranks. */
static void test_refusals(void)
{
    struct world *w = world_new_sized(0, exchange_alike);
    pwc_region foreign = {.client = NULL}, *local;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, 0, &local), 0);
    expect_refusal(w, local, -ENOTSUP, "local only");
    expect_refusal(w, &foreign, -EINVAL, "another client");
    other_regions = -ENOTSUP;
    expect_refusal(w, w->region, -ECANCELED, "rank 1 of the job cannot take part");
    other_regions = 0;
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"refused before the barrier", test_refused_before_the_barrier},
        {"unbound after the barrier", test_unbound_after_the_barrier},
        {"refusals", test_refusals},
        CU_TEST_INFO_NULL,
    };

    return suite_run("windows", tests);
}
