/*
 * Queues in the arena: circular tables of fixed entries, indexed directly, that grow and shrink by
 * chunks.
 *
 * An index only grows; entry i stands in chunk links[(i / per_chunk) % CHUNK_LINKS]. The links are
 * a chunk themselves, there only while the entries take more than one chunk. So an idle queue takes
 * no memory, a queue of a few entries takes a chunk, and in a queue of half a million entries each
 * is reached in two steps.
 *
 *     queue {head, tail, first} --> 16 KiB of entries               one chunk of entries
 *
 *     queue {head, tail, first} --> [ c0 | c1 | c2 | ... ]          more: 4096 links
 *                                     |    |
 *                                     v    v
 *                                   16 KiB of entries each
 *
 * All changes of head, tail and the pool go through the arena's transaction; entries past the tail
 * are written freely before the push that makes them visible is committed. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_QUEUE_H
#define PWC_ENGINE_QUEUE_H

#include <errno.h>
#include <stdint.h>
#include "daemon/engine/state/arena.h"

#define CHUNK_BYTES 16384u
#define CHUNK_LINKS (CHUNK_BYTES / 4u)
#define CHUNK_NONE  UINT32_MAX

/* A stack of free chunks, in the arena. */
struct chunk_pool_state {
    uint32_t count; /* of all chunks */
    uint32_t free;  /* on the stack */
};

struct chunk_pool {
    struct arena *arena;
    struct chunk_pool_state *state; /* in the arena */
    uint32_t *stack;                /* in the arena */
    uint8_t *chunks;                /* in the arena */
};

struct queue {
    uint64_t head;
    uint64_t tail;
    uint32_t first; /* chunk: of the entries, or of links to theirs; meaningless while empty */
    uint32_t shift; /* log2 of the entry's bytes */
};

void chunk_pool_init(struct chunk_pool *pool, uint32_t count);

static inline void queue_init(struct queue *q, uint32_t shift)
{
    q->head = q->tail = 0;
    q->first = CHUNK_NONE;
    q->shift = shift;
}

static inline uint64_t queue_count(const struct queue *q)
{
    return q->tail - q->head;
}

/* Whether both indices stand in one chunk. */
static inline bool queue_one_chunk(const struct queue *q, uint64_t a, uint64_t b)
{
    return ((a ^ b) >> (14 - q->shift)) == 0;
}

/* An entry between head and tail. The caller knows that the queue's entries have 1 << shift
 * bytes. */
static inline void *queue_entry(const struct chunk_pool *pool, const struct queue *q,
                                uint32_t shift, uint64_t index)
{
    uint32_t per_chunk = 14 - shift, chunk = q->first;
    uint64_t in_chunk = index & ((UINT64_C(1) << per_chunk) - 1);

    if ((q->head ^ (q->tail - 1)) >> per_chunk != 0) {
        const uint32_t *links = (const uint32_t *)(pool->chunks + (uint64_t)chunk * CHUNK_BYTES);

        chunk = links[(index >> per_chunk) & (CHUNK_LINKS - 1)];
    }
    return pool->chunks + (uint64_t)chunk * CHUNK_BYTES + (in_chunk << shift);
}

static inline void *queue_at(const struct chunk_pool *pool, const struct queue *q, uint64_t index)
{
    return queue_entry(pool, q, q->shift, index);
}

/* How many entries stand side by side from this one on: those of its chunk. */
static inline uint32_t queue_side_by_side(const struct queue *q, uint64_t index)
{
    uint32_t per_chunk = CHUNK_BYTES >> q->shift;

    return per_chunk - ((uint32_t)index & (per_chunk - 1));
}

/* The parts of queue_push and queue_pop that take chunks, or give them back. */
int queue_push_chunks(struct chunk_pool *pool, struct queue *q, uint32_t n, uint32_t keep);
void queue_pop_chunks(struct chunk_pool *pool, struct queue *q, uint32_t n);

/* Whether a push of n entries takes no chunk, or a pop of n entries gives none back. */
static inline bool queue_push_stays(const struct queue *q, uint32_t n)
{
    return q->head != q->tail && queue_one_chunk(q, q->tail - 1, q->tail + n - 1);
}

static inline bool queue_pop_stays(const struct queue *q, uint32_t n)
{
    return q->head + n != q->tail && queue_one_chunk(q, q->head, q->head + n);
}

/*
 * Within a transaction: makes entries [tail, tail + n) exist and moves the tail after them; the
 * caller fills them before the commit. At least `keep` chunks stay free: a push that must not fail
 * keeps 0, a push that can wait leaves a share to the others. Returns -ENOBUFS, with nothing
 * changed, when the pool or the links are full.
 */
static inline int queue_push(struct chunk_pool *pool, struct queue *q, uint32_t n, uint32_t keep)
{
    if (!queue_push_stays(q, n))
        return queue_push_chunks(pool, q, n, keep);
    arena_set64(pool->arena, &q->tail, q->tail + n);
    return 0;
}

/* Within a transaction: drops n entries at the head. queue_unpush drops them at the tail. */
static inline void queue_pop(struct chunk_pool *pool, struct queue *q, uint32_t n)
{
    if (queue_pop_stays(q, n))
        arena_set64(pool->arena, &q->head, q->head + n);
    else
        queue_pop_chunks(pool, q, n);
}

/* The number of chunks that the queue holds, with those for links. */
uint32_t queue_chunks(const struct queue *q);
/* How many more chunks n more entries would take. */
uint32_t queue_growth(const struct queue *q, uint32_t n);
/* Whether queue_push of n entries would find room, with `keep` 0. Returns 0 or -ENOBUFS. */
int queue_room(const struct chunk_pool *pool, const struct queue *q, uint32_t n);
void queue_unpush(struct chunk_pool *pool, struct queue *q, uint32_t n);
/* Drops all entries, chunk by chunk, each in a transaction of its own. No transaction may be
 * open. */
void queue_clear(struct chunk_pool *pool, struct queue *q);

#endif
