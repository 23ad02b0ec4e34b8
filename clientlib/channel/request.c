/*
 * Owns the requests of a context, and their memory. Thread: the one that owns the context.
 */
#include "clientlib/channel/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void request_pool_init(struct request_pool *pool)
{
    *pool = (struct request_pool){.wait = REQUEST_NO_WAIT + 1};
}

static void drop_lid(struct pwc_request *r)
{
    if (r->lid_size > 0)
        free((void *)(uintptr_t)r->lid);
}

void request_pool_destroy(struct request_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count * REQUESTS_A_CHUNK; i++) {
        struct pwc_request *r = request_at(pool, i);

        if (r)
            drop_lid(r);
    }
    for (uint32_t i = 0; i < pool->chunk_count; i++)
        free(pool->chunks[i]);
    free(pool->chunks);
    request_pool_init(pool);
}

uint64_t request_pool_failed(const struct request_pool *pool)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < pool->chunk_count * REQUESTS_A_CHUNK; i++) {
        const struct pwc_request *r = request_at(pool, i);

        count += r && r->kind == REQUEST_PLAIN && !r->reported && r->status.status < 0;
    }
    return count;
}

static void put_free(struct request_pool *pool, struct pwc_request *r)
{
    *r = (struct pwc_request){.kind = REQUEST_FREE, .next = pool->free};
    pool->free = request_number(r);
}

static int add_chunk(struct request_pool *pool)
{
    struct pwc_request **chunks =
        realloc(pool->chunks, (pool->chunk_count + 1) * sizeof(chunks[0]));
    struct pwc_request *chunk;

    if (!chunks)
        return -ENOMEM;
    pool->chunks = chunks;
    chunk = aligned_alloc(REQUEST_CHUNK_BYTES, REQUEST_CHUNK_BYTES);
    if (!chunk)
        return -ENOMEM;
    *(struct request_chunk_head *)(void *)chunk = (struct request_chunk_head){
        .pool = pool,
        .first = pool->chunk_count * REQUESTS_A_CHUNK,
    };
    chunks[pool->chunk_count++] = chunk;
    for (uint32_t i = REQUESTS_A_CHUNK - 1; i > 0; i--)
        put_free(pool, &chunk[i]);
    return 0;
}

int request_pool_take(struct request_pool *pool, enum request_kinds kind, struct pwc_request **out)
{
    struct pwc_request *r;
    int rc = pool->free == REQUEST_NONE ? add_chunk(pool) : 0;

    if (rc < 0)
        return rc;
    r = request_at(pool, pool->free);
    pool->free = r->next;
    *r = (struct pwc_request){.kind = (uint8_t)kind, .reported = true, .waiter = REQUEST_NO_WAIT};
    *out = r;
    return 0;
}

/* Whether the running wait waits for this request alone, has marked it, or has it on its list. */
static bool is_awaited(const struct request_pool *pool, const struct pwc_request *r)
{
    uint32_t listed = pool->ended > 0 ? pool->ended_first : REQUEST_NONE;

    while (listed != REQUEST_NONE && listed != request_number(r))
        listed = request_at(pool, listed)->next;
    return r == pool->awaited || listed != REQUEST_NONE || r->waiter == pool->wait;
}

int request_pool_give(struct pwc_request *r)
{
    struct request_pool *pool = request_head(r)->pool;

    if (r->left > 0 || is_awaited(pool, r))
        return -EBUSY;
    drop_lid(r);
    put_free(pool, r);
    return 0;
}

int request_end_one(struct request_pool *pool, uint64_t id, int status, pwc_peer peer,
                    uint64_t bytes)
{
    struct pwc_request *r = request_at(pool, id - REQUEST_IDS);

    if (!r || r->kind != REQUEST_PLAIN || r->left == 0)
        return -EPROTO;
    request_note(r, status, peer, bytes);
    if (--r->left == 0)
        request_show(pool, r);
    return 0;
}

void request_end_at_once(struct pwc_request *r, int status, pwc_peer peer, uint64_t bytes)
{
    request_renew(r);
    request_note(r, status, peer, bytes);
}

int request_set_lid(struct pwc_request *r, const pwc_cid *lid)
{
    void *copy;

    if (lid->size > PWC_CID_MAX)
        return -EINVAL;
    if (lid->size == 0) {
        r->lid = lid->value;
        return 0;
    }
    copy = malloc(lid->size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, lid->data, lid->size);
    r->lid = (uintptr_t)copy;
    r->lid_size = (uint16_t)lid->size;
    return 0;
}

/* ---- waits ---------------------------------------------------------------------------------- */

/* Removes the marks of earlier waits from all requests, before numbers of waits are used again. */
static void begin_anew(struct request_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count * REQUESTS_A_CHUNK; i++) {
        struct pwc_request *r = request_at(pool, i);

        if (r)
            r->waiter = REQUEST_NO_WAIT;
    }
    pool->wait = REQUEST_NO_WAIT + 1;
}

void request_wait_begin(struct request_pool *pool)
{
    if (pool->wait == UINT32_MAX - 1)
        begin_anew(pool);
    pool->wait++;
}

void request_wait_end(struct request_pool *pool)
{
    pool->wait++;
    pool->ended = 0;
}

struct pwc_request *request_pop(struct request_pool *pool)
{
    struct pwc_request *r;

    if (pool->ended == 0)
        return NULL;
    r = request_at(pool, pool->ended_first);
    pool->ended_first = r->next;
    pool->ended--;
    return r;
}
