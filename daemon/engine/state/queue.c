/* Queues in the arena and the pool of chunks under them. Thread: the progress thread. */
#include "daemon/engine/state/queue.h"

void chunk_pool_init(struct chunk_pool *pool, uint32_t count)
{
    pool->state->count = count;
    pool->state->free = count;
    for (uint32_t i = 0; i < count; i++)
        pool->stack[i] = count - 1 - i;
}

static uint32_t chunk_take(struct chunk_pool *pool)
{
    uint32_t free = pool->state->free - 1;

    arena_set32(pool->arena, &pool->state->free, free);
    return pool->stack[free];
}

static void chunk_give(struct chunk_pool *pool, uint32_t chunk)
{
    uint32_t free = pool->state->free;

    arena_set32(pool->arena, &pool->stack[free], chunk);
    arena_set32(pool->arena, &pool->state->free, free + 1);
}

static uint32_t *links_in(const struct chunk_pool *pool, uint32_t chunk)
{
    return (uint32_t *)(pool->chunks + (uint64_t)chunk * CHUNK_BYTES);
}

/* Chunks that [head, tail) touches. */
static uint64_t chunks_between(uint64_t head, uint64_t tail, uint32_t per_chunk)
{
    return head == tail ? 0 : ((tail - 1) >> per_chunk) - (head >> per_chunk) + 1;
}

uint32_t queue_chunks(const struct queue *q)
{
    uint64_t chunks = chunks_between(q->head, q->tail, 14 - q->shift);

    return (uint32_t)chunks + (chunks > 1);
}

uint32_t queue_growth(const struct queue *q, uint32_t n)
{
    struct queue more = *q;

    more.tail += n;
    return queue_chunks(&more) - queue_chunks(q);
}

int queue_room(const struct chunk_pool *pool, const struct queue *q, uint32_t n)
{
    uint32_t per_chunk = 14 - q->shift;

    return queue_growth(q, n) <= pool->state->free &&
                   chunks_between(q->head, q->tail + n, per_chunk) <= CHUNK_LINKS
               ? 0
               : -ENOBUFS;
}

/* Within a transaction: makes the queue's one chunk the first entry of a new chunk of links. */
static void links_begin(struct chunk_pool *pool, struct queue *q)
{
    uint32_t chunk = chunk_take(pool);

    links_in(pool, chunk)[(q->head >> (14 - q->shift)) & (CHUNK_LINKS - 1)] = q->first;
    arena_set32(pool->arena, &q->first, chunk);
}

int queue_push_chunks(struct chunk_pool *pool, struct queue *q, uint32_t n, uint32_t keep)
{
    uint32_t per_chunk = 14 - q->shift, need = queue_growth(q, n);
    uint64_t have = chunks_between(q->head, q->tail, per_chunk);
    uint64_t want = chunks_between(q->head, q->tail + n, per_chunk);
    uint64_t first = q->head >> per_chunk;

    if ((need > 0 && need + keep > pool->state->free) || want > CHUNK_LINKS)
        return -ENOBUFS;
    if (have == 0 && want > 0) {
        arena_set32(pool->arena, &q->first, chunk_take(pool));
        have = 1;
    }
    if (have == 1 && want > 1)
        links_begin(pool, q);
    for (; have < want; have++)
        links_in(pool, q->first)[(first + have) & (CHUNK_LINKS - 1)] = chunk_take(pool);
    arena_set64(pool->arena, &q->tail, q->tail + n);
    return 0;
}

/* Gives back the chunks that the queue does not need when it shrinks to [head, tail), and the links
 * where at most one chunk is left. */
static void queue_shrink(struct chunk_pool *pool, struct queue *q, uint64_t head, uint64_t tail)
{
    uint32_t per_chunk = 14 - q->shift;
    uint64_t old_first = q->head >> per_chunk;
    uint64_t old_end = old_first + chunks_between(q->head, q->tail, per_chunk);
    uint64_t new_first = head == tail ? old_end : head >> per_chunk;
    uint64_t new_end = head == tail ? old_end : ((tail - 1) >> per_chunk) + 1;
    uint32_t whole = q->first;
    const uint32_t *links = links_in(pool, whole);

    if (old_end - old_first <= 1) {
        if (old_end > old_first && head == tail)
            chunk_give(pool, whole);
        return;
    }
    for (uint64_t i = old_first; i < old_end; i++)
        if (i < new_first || i >= new_end)
            chunk_give(pool, links[i & (CHUNK_LINKS - 1)]);
    if (new_end - new_first > 1)
        return;
    if (new_end > new_first)
        arena_set32(pool->arena, &q->first, links[new_first & (CHUNK_LINKS - 1)]);
    chunk_give(pool, whole);
}

void queue_pop_chunks(struct chunk_pool *pool, struct queue *q, uint32_t n)
{
    queue_shrink(pool, q, q->head + n, q->tail);
    arena_set64(pool->arena, &q->head, q->head + n);
}

void queue_unpush(struct chunk_pool *pool, struct queue *q, uint32_t n)
{
    queue_shrink(pool, q, q->head, q->tail - n);
    arena_set64(pool->arena, &q->tail, q->tail - n);
}

void queue_clear(struct chunk_pool *pool, struct queue *q)
{
    while (queue_count(q) > 0) {
        uint64_t per_chunk = UINT64_C(1) << (14 - q->shift);
        uint64_t here = per_chunk - (q->head & (per_chunk - 1));
        uint64_t n = queue_count(q) < here ? queue_count(q) : here;

        queue_pop(pool, q, (uint32_t)n);
        arena_commit(pool->arena);
    }
}
