/*
 * Owns nothing: what is rarely needed of the calls on a pair's ring (pair.h tells how it works,
 * which barriers pair, and has the rest).
 *
 * Thread: each view belongs to one thread; the two sides meet only in the mapping.
 */
#include "pair.h"
#include "doorbell.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void pair_format(void *base)
{
    struct pair_shared *shared = base;

    shared->magic = PAIR_MAGIC;
    shared->lines = PAIR_LINES;
    atomic_init(&shared->bell.armed, DOORBELL_FUTEX);
}

static bool header_valid(const struct pair_shared *shared, size_t size)
{
    return size >= PAIR_BYTES && shared->magic == PAIR_MAGIC && shared->lines == PAIR_LINES;
}

int pair_writer_init(struct pair_writer *w, void *base, size_t size)
{
    struct pair_shared *shared = base;

    if (!header_valid(shared, size))
        return -EPROTO;
    *w = (struct pair_writer){
        .shared = shared,
        .lines = (struct pair_line *)(void *)((uint8_t *)base + PAIR_DATA_OFFSET),
        .mask = PAIR_LINES - 1,
    };
    return 0;
}

int pair_reader_init(struct pair_reader *r, void *base, size_t size)
{
    struct pair_writer w;
    int rc = pair_writer_init(&w, base, size);

    if (rc == 0)
        *r = (struct pair_reader){.shared = w.shared, .lines = w.lines, .mask = w.mask};
    return rc;
}

/* ---- origin --------------------------------------------------------------------------------- */

int pair_look_at_consumed(struct pair_writer *w)
{
    uint64_t consumed = atomic_load_explicit(&w->shared->consumed, memory_order_acquire); /* F */

    if (consumed - w->consumed_seen > w->tail - w->consumed_seen)
        return -EPROTO;
    w->consumed_seen = consumed;
    return 0;
}

void pair_write_more(struct pair_writer *w, const uint8_t *id, uint32_t left)
{
    for (uint64_t at = w->tail + 1; left > 0; at++) {
        struct pair_line *line = &w->lines[at & w->mask];
        uint32_t take = left < PAIR_ID_MORE ? left : PAIR_ID_MORE;

        /* Its sequence too: what stood there must not pass for a record. */
        atomic_store_explicit(&line->head, pair_head(at, PAIR_MORE, 0, 0), memory_order_relaxed);
        memcpy(&line->bytes, id, take);
        id += take;
        left -= take;
    }
}

bool pair_drained(struct pair_writer *w)
{
    uint32_t gone = atomic_load_explicit(&w->shared->gone, memory_order_relaxed);

    return gone & PAIR_TARGET_GONE || pair_look_at_consumed(w) < 0 || w->consumed_seen == w->tail;
}

/* ---- target --------------------------------------------------------------------------------- */

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

int pair_barrier_register(void)
{
    long rc = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);

    return rc == 0 ? 0 : -errno;
}

void pair_barrier(void)
{
    /* Registered: it cannot fail. */
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); /* G */
}
