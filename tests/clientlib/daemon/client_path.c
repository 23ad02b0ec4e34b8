/* The paths that client_path.h describes. */
#include "tests/clientlib/daemon/client_path.h"

#include <CUnit/CUnit.h>
#include <string.h>

pwc_remote *bind_to_b(struct path *p, const pwc_region *region)
{
    pwc_remote *remote = NULL;
    struct pwc_key key;

    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(p->a, pwc_ctx_peer(p->b), &key, &remote), 0);
    return remote;
}

static void path_open(struct path *p, bool direct)
{
    struct pwc_event event;

    *p = (struct path){.w = world_new(), .direct = direct};
    p->a = p->w->ctx;
    p->words = (uint64_t *)(void *)p->w->memory;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(p->w->client, NULL, &p->b), 0);
    p->w->daemon.pairs = direct;
    p->to_b = bind_to_b(p, p->w->region);
    CU_ASSERT_EQUAL(pwc_probe(p->b, PWC_ANY, PWC_LOCAL, &event), 0); /* b maps the pair */
}

void on_both(void (*test)(struct path *p))
{
    for (int direct = 0; direct < 2; direct++) {
        struct path p;

        path_open(&p, direct);
        test(&p);
        world_free(p.w);
    }
}

void expect_op(pwc_ctx *ctx, unsigned kind, int op, uint64_t id, int status, uint64_t length)
{
    struct pwc_event event;

    memset(&event, 0xee, sizeof(event));
    CU_ASSERT_EQUAL_FATAL(pwc_wait(ctx, PWC_ANY, kind, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL((int)event.op, op);
    CU_ASSERT_EQUAL(event.id, id);
    CU_ASSERT_EQUAL(event.status, status);
    CU_ASSERT_EQUAL(event.length, length);
    CU_ASSERT_EQUAL(event.id_size, 0);
}

void expect_nothing(pwc_ctx *ctx)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_flush(ctx, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(ctx, PWC_ANY, 0, &event), 0);
}

void check_path(struct path *p, unsigned executed_before)
{
    CU_ASSERT_EQUAL(fake_executed(&p->w->daemon) == executed_before, p->direct);
}
