/* The world that client_world.h describes. */
#include "tests/clientlib/daemon/client_world.h"

#include <string.h>

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include "clientlib/attach/client.h"

static int attach(struct fake_daemon *daemon, pwc_client **out)
{
    struct pwc_attr attr = {.socket = daemon->path, .job = "test", .rank = 0, .size = 2};

    return pwc_init(&attr, out);
}

struct world *world_new_sized(uint32_t ring_bytes, fake_hook *hook)
{
    struct pwc_ctx_attr sizes = {
        .submit_bytes = ring_bytes,
        .local_bytes = ring_bytes,
        .remote_bytes = ring_bytes,
    };
    struct world *w = calloc(1, sizeof(*w));
    struct pwc_key key;

    CU_ASSERT_EQUAL_FATAL(fake_daemon_start(&w->daemon, hook), 0);
    CU_ASSERT_EQUAL_FATAL(attach(&w->daemon, &w->client), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, &sizes, &w->ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 1 << 20, PWC_REMOTE_RW, &w->region), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(w->region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, pwc_ctx_peer(w->ctx), &key, &w->remote), 0);
    w->memory = pwc_region_addr(w->region);
    return w;
}

void world_limit(struct world *w, int timeout_ms)
{
    w->client->link.timeout_ms = timeout_ms;
}

struct world *world_new(void)
{
    return world_new_sized(0, NULL);
}

void world_free(struct world *w)
{
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    fake_daemon_stop(&w->daemon);
    free(w);
}

struct pwc_event expect(struct world *w, int kind, uint64_t id, int status)
{
    struct pwc_event event;

    memset(&event, 0xee, sizeof(event));
    CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, (unsigned)kind, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL((int)event.kind, kind);
    CU_ASSERT_EQUAL(event.id, id);
    CU_ASSERT_EQUAL(event.status, status);
    CU_ASSERT_EQUAL(event.id_size, 0);
    CU_ASSERT_PTR_NULL(event.data);
    CU_ASSERT_EQUAL(event.reserved[0] | event.reserved[1], 0);
    return event;
}

void expect_silence(struct world *w)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, 0, &event), 0);
}

int put(struct world *w, uint64_t off, const void *src, size_t len, uint64_t id, unsigned flags)
{
    return pwc_put(w->remote, off, src, len, pwc_cid_u64(id), pwc_cid_u64(~id), flags);
}

int get(struct world *w, uint64_t off, void *dst, size_t len, uint64_t id, unsigned flags)
{
    return pwc_get(w->remote, off, dst, len, pwc_cid_u64(id), pwc_cid_u64(~id), flags);
}

void fill(uint8_t *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}
