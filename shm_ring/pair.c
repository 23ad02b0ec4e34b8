/*
 * Owns nothing: the origin's and the target's calls on a pair's ring (pair.h tells how it works and
 * which barriers pair).
 *
 * Thread: each view belongs to one thread; the two sides meet only in the mapping.
 */
#include "pair.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Give lines back when so many have been read, a power of two times the ring. */
enum { RELEASE_SHIFT = 2 };

void pair_format(void *base)
{
    struct pair_shared *shared = base;

    shared->magic = PAIR_MAGIC;
    shared->lines = PAIR_LINES;
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

static uint32_t lines_of(uint32_t id_len)
{
    uint32_t lines = 1;

    for (uint32_t have = PAIR_ID_FIRST; have < id_len; have += PAIR_ID_MORE)
        lines++;
    return lines;
}

/* ---- origin --------------------------------------------------------------------------------- */

/* Looks at the consumer's count: it only grows, and never passes our tail. */
static int look_at_consumed(struct pair_writer *w)
{
    uint64_t consumed = atomic_load_explicit(&w->shared->consumed, memory_order_acquire); /* F */

    if (consumed - w->consumed_seen > w->tail - w->consumed_seen)
        return -EPROTO;
    w->consumed_seen = consumed;
    return 0;
}

int pair_room(struct pair_writer *w, uint32_t id_len)
{
    uint64_t after = w->tail + lines_of(id_len);
    int rc = 0;

    if (after - w->consumed_seen > PAIR_LINES)
        rc = look_at_consumed(w);
    if (rc == 0 && after - w->consumed_seen > PAIR_LINES)
        rc = -EAGAIN;
    return rc;
}

/* The lines behind the first. */
static void write_more(struct pair_writer *w, const uint8_t *id, uint32_t left)
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

void pair_write(struct pair_writer *w, const struct pair_record *record, const void *id)
{
    struct pair_line *line = &w->lines[w->tail & w->mask];
    uint32_t id_len = record->id_len;

    line->bytes = record->bytes;
    line->id = record->id;
    if (id_len > 0) {
        uint32_t first = id_len < PAIR_ID_FIRST ? id_len : PAIR_ID_FIRST;

        memcpy(line->more, id, first);
        write_more(w, (const uint8_t *)id + first, id_len - first);
    }
    atomic_store_explicit(&line->head, pair_head(w->tail, record->kind, record->flags, id_len),
                          memory_order_release); /* E */
    w->tail += lines_of(id_len);
}

bool pair_drained(struct pair_writer *w)
{
    uint32_t gone = atomic_load_explicit(&w->shared->gone, memory_order_relaxed);

    return gone & PAIR_TARGET_GONE || look_at_consumed(w) < 0 || w->consumed_seen == w->tail;
}

/* ---- target --------------------------------------------------------------------------------- */

static void release(struct pair_reader *r)
{
    r->released = r->head;
    atomic_store_explicit(&r->shared->consumed, r->head, memory_order_release); /* F */
}

static bool arrived(uint64_t head, uint64_t position)
{
    return (uint32_t)head == (uint32_t)(position + 1);
}

static void copy_id(const struct pair_reader *r, uint8_t *to, uint32_t left)
{
    uint32_t take = left < PAIR_ID_FIRST ? left : PAIR_ID_FIRST;

    memcpy(to, r->lines[r->head & r->mask].more, take);
    for (uint64_t at = r->head + 1; (left -= take) > 0; at++) {
        to += take;
        take = left < PAIR_ID_MORE ? left : PAIR_ID_MORE;
        memcpy(to, &r->lines[at & r->mask].bytes, take);
    }
}

int pair_look(struct pair_reader *r, struct pair_record *out, void *id)
{
    const struct pair_line *line = &r->lines[r->head & r->mask];
    uint64_t head = atomic_load_explicit(&line->head, memory_order_acquire); /* E */

    if (!arrived(head, r->head)) {
        if (r->released != r->head)
            release(r);
        return 0;
    }
    *out = (struct pair_record){
        .kind = (uint8_t)(head >> 32),
        .flags = (uint8_t)(head >> 40),
        .id_len = (uint16_t)(head >> 48),
        .bytes = line->bytes,
        .id = line->id,
    };
    if ((out->kind != PAIR_PUT && out->kind != PAIR_GET) || out->flags & ~PAIR_AFTER ||
        out->id_len > SESSION_ID_MAX)
        return -EPROTO;
    if (out->id_len > 0)
        copy_id(r, id, out->id_len);
    out->lines = lines_of(out->id_len);
    /* Keeps the compiler from reading the shared line again in place of the copy. */
    atomic_signal_fence(memory_order_seq_cst);
    return 1;
}

void pair_pass(struct pair_reader *r, const struct pair_record *record)
{
    r->head += record->lines;
    if (r->head - r->released >= PAIR_LINES >> RELEASE_SHIFT)
        release(r);
}

bool pair_pending(const struct pair_reader *r)
{
    uint64_t head =
        atomic_load_explicit(&r->lines[r->head & r->mask].head, memory_order_acquire); /* E */

    return arrived(head, r->head);
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
