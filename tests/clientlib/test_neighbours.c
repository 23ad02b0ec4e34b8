/*
 * Neighbours through the public calls: contexts of one client between which the daemon, on a
 * thread, has made pairs; what is lost, late, refused or out of order on the way to them.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "client_world.h"
#include "doorbell.h"
#include "pair_abi.h"
#include "pwc/am.h"
#include "suite.h"

enum { ASK = 3, ANSWER = 4, NOBODY = 5 };

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

/* b learns of what the daemon has told, and takes no event of a put. */
static void meet(struct two *t)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_probe(t->b, PWC_ANY, PWC_LOCAL, &event), 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answering {
    pwc_remote *to; /* of a Long */
    unsigned index; /* to which */
    unsigned flags;
    int rc;
    unsigned asked;
};

static void answer(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    struct answering *a = argument;

    a->asked++;
    a->rc = a->to ? pwc_am_reply_long(ctx, m->token, a->to, 0, a->index, "long", 5, NULL, 0,
                                      pwc_cid_u64(9), a->flags)
                  : pwc_am_reply_short(ctx, m->token, a->index, NULL, 0, pwc_cid_u64(9), a->flags);
}

static void count_answer(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    ++*(unsigned *)argument;
}

static void ask_b(struct two *t, struct answering *a)
{
    unsigned executed = t->w->daemon.executed;
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(pwc_am_short(t->a, t->to_b, ASK, NULL, 0, pwc_cid_u64(1), PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(t->w->daemon.executed, executed); /* it went directly */
    CU_ASSERT_EQUAL(pwc_wait(t->b, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(a->asked, 1);
    CU_ASSERT_EQUAL(a->rc, 0);
    CU_ASSERT_EQUAL(event.id, 9);
    a->rc = event.status;
}

/* Who has bound nobody answers all the same, and its answers end. */
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
        meet(&t);
        ask_b(&t, &a);
        CU_ASSERT_EQUAL(a.rc, a.index == NOBODY ? -ENOSYS : 0);
        CU_ASSERT_EQUAL(pwc_probe(t.a, PWC_ANY, PWC_LOCAL, &event), 0);
        CU_ASSERT_EQUAL(answers, a.index == ANSWER);
        world_free(t.w);
    }
}

int main(void)
{
    static const struct suite_test tests[] = {
        {"a replier that binds nobody", test_replier_binds_nobody},
    };

    if (doorbell_register() < 0) {
        printf("no membarrier here, so no pairs\n");
        return 77;
    }
    return suite_run("neighbours", tests, sizeof(tests) / sizeof(tests[0]));
}
