/* The two contexts that two_contexts.h describes. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pwc/am.h"
#include "pwc/request.h"
#include "tests/clientlib/daemon/two_contexts.h"

static void count_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    ++*(unsigned *)argument;
    (void)ctx;
    (void)am;
}

struct two *two_new(bool pairs)
{
    struct two *t = calloc(1, sizeof(*t));
    struct pwc_event event;
    struct pwc_key key;

    t->w = world_new();
    t->a = t->w->ctx;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(t->w->client, NULL, &t->b), 0);
    CU_ASSERT_EQUAL(pwc_am_register(t->b, HANDLER, count_message, &t->handled), 0);
    t->w->daemon.pairs = pairs;
    CU_ASSERT_EQUAL(pwc_region_key(t->w->region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->b), &key, &t->to_b), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_LOCAL, &event), 0); /* b maps the pair */
    CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->a, &t->request), 0);
    return t;
}

void two_free(struct two *t)
{
    CU_ASSERT_EQUAL(pwc_request_free(t->request), 0);
    world_free(t->w);
    free(t);
}

void hold(struct two *t, bool hold)
{
    fake_hold(&t->w->daemon, hold);
}

static bool sleeps(const struct fake_context *context)
{
    return context->open && atomic_load(&context->session.shared->waits.asleep_since) != 0;
}

void *let_go_of_sleeper(void *two)
{
    const struct fake_context *contexts = ((struct two *)two)->w->daemon.contexts;

    for (unsigned i = 0; !sleeps(&contexts[i]); i = (i + 1) % FAKE_SESSIONS)
        usleep(100);
    hold(two, false);
    return NULL;
}

void expect_no_event(struct two *t)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 0);
}

struct pwc_status expect_end(pwc_request *r, int status, uint32_t count)
{
    struct pwc_status found, again;

    memset(&found, 0xee, sizeof(found));
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(r, &found, WAIT_MS), 1);
    CU_ASSERT_EQUAL(found.status, status);
    CU_ASSERT_EQUAL(found.count, count);
    CU_ASSERT_EQUAL(found.id, 0);
    CU_ASSERT_EQUAL(pwc_test(r, &again), 1); /* every further test finds the end, too */
    CU_ASSERT_EQUAL(memcmp(&found, &again, sizeof(found)), 0);
    CU_ASSERT_EQUAL(pwc_test(r, NULL), 1);
    return found;
}

pwc_remote *stale_remote(struct two *t)
{
    pwc_remote *stale = NULL;
    pwc_region *region;
    struct pwc_key key;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(t->w->client, 64, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->a, pwc_ctx_peer(t->a), &key, &stale), 0);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    return stale;
}

int put_request(struct two *t, pwc_request *r, size_t len)
{
    return pwc_put(t->to_b, 0, t->w->memory + BIG, len, pwc_cid_request(r), PWC_CID_NONE,
                   PWC_NO_RCE);
}
