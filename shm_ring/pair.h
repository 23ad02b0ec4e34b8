/*
 * The two sides of a pair's rings of lines (pair_abi.h): the writer, which produces, and the
 * reader, which consumes. The origin writes requests and the target reads them; the target writes
 * answers and the origin reads them.
 *
 * Each side keeps its position in private memory. The writer derives the free space from the
 * reader's count as it last read it. The reader sees in the line itself that a record has arrived,
 * so only one cache line moves between the processors for each record.
 *
 * Paired barriers (each atomic here, in pair.c and in clientlib/neighbours/neighbours.c cites its
 * letter):
 *
 *     E  writer: payload placed, lines written, then the first head stored (release)
 *        reader: head loaded (acquire), then lines and payload read
 *     F  reader: lines read, then `consumed` stored (release)
 *        writer: `consumed` loaded (acquire), then the lines written again
 *     G  reader: `bell` armed, then a barrier of all processes (doorbell_fence_others), then a look
 *          into rings
 *        writer: head stored, then `bell` loaded, in the order of the program
 *     H  writer: `room_bell` armed, then the same barrier, then a look at `consumed`
 *        reader: `consumed` stored, then `room_bell` loaded, in the order of the program
 *     I  writer: head stored, then its bit on the reader's board set (release)
 *        reader: bits taken (acquire), then the heads of their pairs loaded. Before, as in G,
 *          `bell` set to DOORBELL_QUIET, then the barrier, then a look at the head
 *
 * For G and H only the sleeper needs a barrier, on its slow path. A barrier on the other side would
 * make every put wait until its processor owns the cache line. Between arming and looking, the
 * kernel runs a full barrier on each processor that runs a registered process. So either the look
 * sees the head (the count), or the later load sees the bell. Both processes of a pair have
 * registered for that (doorbell_register); where the kernel cannot do it, there are no pairs.
 *
 * Thread: one thread a side; nothing here blocks, allocates or makes a system call.
 */
#ifndef PWC_SHM_RING_PAIR_H
#define PWC_SHM_RING_PAIR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "proto/pair_abi.h"

/* Distances in lines, as measured: a smaller distance hides less of the latency between processors,
 * a larger one takes away lines that the reader still reads. */
#define PAIR_FETCH_AHEAD 4u
#define PAIR_READ_AHEAD  2u

struct pair_writer {
    struct pair_shared *shared;
    struct pair_ring *ring;
    struct pair_line *lines;
    uint64_t tail;            /* lines written */
    uint64_t consumed_seen;   /* the consumer's count when it was last read and valid */
    _Atomic uint64_t *called; /* the word on the reader's board, and our bit there; or NULL */
    uint64_t bit;
    uint32_t mask;
};

struct pair_reader {
    struct pair_shared *shared;
    struct pair_ring *ring;
    const struct pair_line *lines;
    uint64_t head;     /* lines read */
    uint64_t released; /* lines given back to the writer */
    uint32_t mask;
    uint32_t block_max; /* the longest message that is accepted; 0: none */
};

/* The contents of a record, in private memory. */
struct pair_record {
    uint8_t kind; /* enum pair_kind, except for PAIR_MORE */
    uint8_t flags;
    uint16_t id_len; /* bytes of the id; 0: the id is `id`, by value */
    uint32_t lines;  /* lines that the record takes */
    uint64_t bytes;  /* moved */
    uint64_t id;
};

/* Writes the header of a new, zeroed mapping of PAIR_BYTES. */
void pair_format(void *base);
enum pair_direction { PAIR_REQUESTS, PAIR_ANSWERS };
/* Views over a mapping of `size` bytes whose rings are new. -EPROTO: its header is not sound. */
int pair_writer_init(struct pair_writer *w, void *base, size_t size, enum pair_direction direction);
int pair_reader_init(struct pair_reader *r, void *base, size_t size, enum pair_direction direction);

static inline uint32_t pair_lines(uint32_t id_len)
{
    uint32_t lines = 1;

    for (uint32_t have = PAIR_ID_FIRST; have < id_len; have += PAIR_ID_MORE)
        lines++;
    return lines;
}

/* ---- writer ---------------------------------------------------------------------------------- */

/* Reads the consumer's count, which only grows and never passes our tail, else -EPROTO. */
int pair_look_at_consumed(struct pair_writer *w);
/* Writes the lines of a record after its first: the rest of its id. */
void pair_write_more(struct pair_writer *w, const uint8_t *id, uint32_t left);

/* 0 when there is room for this many lines, -EAGAIN, or -EPROTO when the consumer's count is out of
 * range. */
static inline int pair_room(struct pair_writer *w, uint32_t lines)
{
    uint64_t after = w->tail + lines;

    if (after - w->consumed_seen <= PAIR_LINES)
        return 0;
    if (pair_look_at_consumed(w) < 0)
        return -EPROTO;
    return after - w->consumed_seen <= PAIR_LINES ? 0 : -EAGAIN;
}

/* Asks the processor for a line that will be written, so that a later record need not wait for the
 * line. */
static inline void pair_fetch(const struct pair_line *line)
{
#if defined(__x86_64__)
    /* On a processor without this instruction it does nothing. The compiler's builtin emits
     * prefetchw only for processors that are known to have it. */
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Shows the record whose lines have been written (E). */
static inline void pair_show(struct pair_writer *w, const struct pair_record *record)
{
    struct pair_line *line = &w->lines[w->tail & w->mask];

    line->bytes = record->bytes;
    line->id = record->id;
    FAULT(PAIR_HALF);
    atomic_store_explicit(&line->head,
                          pair_head(w->tail, record->kind, record->flags, record->id_len),
                          memory_order_release); /* E */
    w->tail += record->lines;
    pair_fetch(&w->lines[(w->tail + PAIR_FETCH_AHEAD) & w->mask]);
}

/* Writes a record after pair_room, and shows it. `id` points to id_len bytes, if there are any. */
static inline void pair_write(struct pair_writer *w, const struct pair_record *record,
                              const void *id)
{
    uint32_t id_len = record->id_len;

    if (id_len > 0) {
        uint32_t first = id_len < PAIR_ID_FIRST ? id_len : PAIR_ID_FIRST;

        memcpy(w->lines[w->tail & w->mask].more, id, first);
        pair_write_more(w, (const uint8_t *)id + first, id_len - first);
    }
    pair_show(w, record);
}

/*
 * pair_write with an id in pieces: call pair_id_begin, pair_id_add for each piece, then pair_show.
 * All pieces but the last are multiples of 8 bytes; together they have id_len bytes, or less by the
 * padding.
 */
struct pair_id {
    struct pair_writer *to;
    uint8_t *at;       /* where the next byte goes */
    uint32_t left;     /* bytes left in the line that `at` points into */
    uint64_t position; /* position of that line in the ring */
};

static inline struct pair_id pair_id_begin(struct pair_writer *w)
{
    return (struct pair_id){
        .to = w,
        .at = w->lines[w->tail & w->mask].more,
        .left = PAIR_ID_FIRST,
        .position = w->tail,
    };
}
void pair_id_add(struct pair_id *id, const void *bytes, uint32_t n);

/* Takes an armed bell. True: the reader sleeps, and must be woken; false: our bit on its board is
 * now set, or the reader was already awake. */
bool pair_ring_bell(struct pair_writer *w);

/* After a record: true once for a reader that sleeps; the caller then wakes it. No fence: see
 * above. */
static inline bool pair_reader_sleeps(struct pair_writer *w)
{
    _Atomic uint32_t *armed = &w->ring->bell.armed;

    atomic_signal_fence(memory_order_seq_cst);                               /* G */
    if (atomic_load_explicit(armed, memory_order_relaxed) == DOORBELL_AWAKE) /* G */
        return false;
    return pair_ring_bell(w);
}

/* Whether nothing is left to wait for: the reader has read everything, is gone, or its count makes
 * no sense. Looks afresh. */
bool pair_drained(struct pair_writer *w);

/* ---- reader ---------------------------------------------------------------------------------- */

void pair_copy_id(const struct pair_reader *r, uint8_t *to, uint32_t left);

static inline bool pair_arrived(uint64_t head, uint64_t position)
{
    return (uint32_t)head == (uint32_t)(position + 1);
}

static inline void pair_release(struct pair_reader *r)
{
    r->released = r->head;
    atomic_store_explicit(&r->ring->consumed, r->head, memory_order_release); /* F */
}

/* After lines were given back: true once for a writer that sleeps until there is room. */
static inline bool pair_writer_sleeps(struct pair_reader *r)
{
    _Atomic uint32_t *armed = &r->ring->room_bell;

    atomic_signal_fence(memory_order_seq_cst);                               /* H */
    if (atomic_load_explicit(armed, memory_order_relaxed) == DOORBELL_AWAKE) /* H */
        return false;
    atomic_store_explicit(armed, DOORBELL_AWAKE, memory_order_relaxed);
    FAULT(PAIR_BELL);
    return true;
}

/*
 * Copies the next record to *out, and its id's bytes to `id`, which has room for SESSION_ID_MAX,
 * and for block_max. 1; 0 when there is none (pair_pass has given all earlier lines back then);
 * -EPROTO when the record makes no sense. The record stays in the ring until pair_pass.
 */
static inline int pair_look(struct pair_reader *r, struct pair_record *out, void *id)
{
    const struct pair_line *line = &r->lines[r->head & r->mask];
    uint64_t head = atomic_load_explicit(&line->head, memory_order_acquire); /* E */

    if (!pair_arrived(head, r->head))
        return 0;
    out->kind = (uint8_t)(head >> 32);
    out->flags = (uint8_t)(head >> 40);
    out->id_len = (uint16_t)(head >> 48);
    out->bytes = line->bytes;
    out->id = line->id;
    if (out->kind < PAIR_PUT || out->kind > PAIR_UNANSWERED ||
        out->flags & ~(PAIR_AFTER | PAIR_NOTIFY) ||
        out->id_len > (out->kind == PAIR_MESSAGE ? r->block_max : SESSION_ID_MAX))
        return -EPROTO;
    if (out->flags & PAIR_NOTIFY && (out->kind > PAIR_ATOMIC || out->id_len > 0))
        return -EPROTO;
    if (out->id_len > 0)
        pair_copy_id(r, id, out->id_len);
    out->lines = pair_lines(out->id_len);
    /* Keeps the compiler from reading the shared line again in place of the copy. */
    atomic_signal_fence(memory_order_seq_cst);
    return 1;
}

/* Whether a record has arrived. */
static inline bool pair_pending(const struct pair_reader *r)
{
    uint64_t head =
        atomic_load_explicit(&r->lines[r->head & r->mask].head, memory_order_acquire); /* E */

    return pair_arrived(head, r->head);
}

static inline void pair_pass(struct pair_reader *r, const struct pair_record *record)
{
    bool more;

    r->head += record->lines;
    more = pair_pending(r);
    /* Also after the last record: a writer that waits for room may wait for just these lines. */
    if (r->head - r->released >= PAIR_LINES / 4 || !more)
        pair_release(r);
    /* A writer that is ahead does not wait for us: its next lines may come while we work. */
    if (more)
        __builtin_prefetch(&r->lines[(r->head + PAIR_READ_AHEAD) & r->mask]);
}

#endif
