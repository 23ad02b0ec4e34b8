/*
 * Owns nothing: the less frequent calls on a pair's rings (pair.h says how they work and which
 * barriers pair).
 *
 * Thread: each view belongs to one thread; the two sides meet only in the mapping.
 */
#include "shm_ring/pair.h"

#include <errno.h>
#include <string.h>

void pair_format(void *base)
{
    struct pair_shared *shared = base;

    shared->magic = PAIR_MAGIC;
    shared->lines = PAIR_LINES;
    atomic_init(&shared->requests.bell.armed, DOORBELL_FUTEX);
}

static bool header_valid(const struct pair_shared *shared, size_t size)
{
    return size >= PAIR_BYTES && shared->magic == PAIR_MAGIC && shared->lines == PAIR_LINES;
}

int pair_writer_init(struct pair_writer *w, void *base, size_t size, enum pair_direction direction)
{
    struct pair_shared *shared = base;
    uint32_t at = PAIR_DATA_OFFSET + (direction == PAIR_ANSWERS ? PAIR_RING_BYTES : 0);

    if (!header_valid(shared, size))
        return -EPROTO;
    *w = (struct pair_writer){
        .shared = shared,
        .ring = direction == PAIR_ANSWERS ? &shared->answers : &shared->requests,
        .lines = (struct pair_line *)(void *)((uint8_t *)base + at),
        .mask = PAIR_LINES - 1,
    };
    return 0;
}

int pair_reader_init(struct pair_reader *r, void *base, size_t size, enum pair_direction direction)
{
    struct pair_writer w;
    int rc = pair_writer_init(&w, base, size, direction);

    if (rc == 0)
        *r = (struct pair_reader){
            .shared = w.shared, .ring = w.ring, .lines = w.lines, .mask = w.mask};
    return rc;
}

/* ---- writer ---------------------------------------------------------------------------------- */

int pair_look_at_consumed(struct pair_writer *w)
{
    uint64_t consumed = atomic_load_explicit(&w->ring->consumed, memory_order_acquire); /* F */

    if (consumed - w->consumed_seen > w->tail - w->consumed_seen)
        return -EPROTO;
    w->consumed_seen = consumed;
    return 0;
}

/* A further line of a record, after its first: marks it so, and returns it for writing. */
static struct pair_line *next_line(struct pair_writer *w, uint64_t at)
{
    struct pair_line *line = &w->lines[at & w->mask];

    /* The head has the new sequence, so that the line's earlier contents cannot pass for a
     * record. */
    atomic_store_explicit(&line->head, pair_head(at, PAIR_MORE, 0, 0), memory_order_relaxed);
    return line;
}

void pair_write_more(struct pair_writer *w, const uint8_t *id, uint32_t left)
{
    for (uint64_t at = w->tail + 1; left > 0; at++) {
        uint32_t take = left < PAIR_ID_MORE ? left : PAIR_ID_MORE;

        memcpy(&next_line(w, at)->bytes, id, take);
        id += take;
        left -= take;
    }
}

void pair_id_add(struct pair_id *id, const void *bytes, uint32_t n)
{
    const uint8_t *from = bytes;

    while (n > 0) {
        uint32_t take;

        if (id->left == 0) {
            id->at = (uint8_t *)&next_line(id->to, ++id->position)->bytes;
            id->left = PAIR_ID_MORE;
        }
        take = n < id->left ? n : id->left;
        memcpy(id->at, from, take);
        id->at += take;
        id->left -= take;
        from += take;
        n -= take;
    }
}

bool pair_ring_bell(struct pair_writer *w)
{
    /* One wake-up is enough: the reader looks at everything before it arms again. The mode may be
     * newer than the one that we saw: a reader whose bell was QUIET may sleep meanwhile. */
    uint32_t mode =
        atomic_exchange_explicit(&w->ring->bell.armed, DOORBELL_AWAKE, memory_order_acq_rel);

    FAULT(PAIR_BELL);
    if (mode != DOORBELL_QUIET || !w->called)
        return mode != DOORBELL_AWAKE;
    atomic_fetch_or_explicit(w->called, w->bit, memory_order_release); /* I */
    return false;
}

bool pair_drained(struct pair_writer *w)
{
    uint32_t gone = atomic_load_explicit(&w->shared->gone, memory_order_relaxed);

    return gone & PAIR_TARGET_GONE || pair_look_at_consumed(w) < 0 || w->consumed_seen == w->tail;
}

/* ---- reader ---------------------------------------------------------------------------------- */

void pair_copy_id(const struct pair_reader *r, uint8_t *to, uint32_t left)
{
    uint32_t take = left < PAIR_ID_FIRST ? left : PAIR_ID_FIRST;

    memcpy(to, r->lines[r->head & r->mask].more, take);
    for (uint64_t at = r->head + 1; (left -= take) > 0; at++) {
        to += take;
        take = left < PAIR_ID_MORE ? left : PAIR_ID_MORE;
        memcpy(to, &r->lines[at & r->mask].bytes, take);
    }
}
