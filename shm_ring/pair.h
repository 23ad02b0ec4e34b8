/*
 * The two sides of a pair's ring of lines (pair_abi.h).
 *
 * A side keeps its position in private memory. The producer knows of space by its last sight of the
 * consumer's count; the consumer sees arrival in the line itself, so that one line moves between
 * the processors for each record.
 *
 * Paired barriers (each atomic in pair.c and in clientlib/neighbours.c cites its letter):
 *
 *     E  origin: payload placed, lines written, then the first head stored (release)
 *        target: head loaded (acquire), then lines and payload read
 *     F  target: lines read, then `consumed` stored (release)
 *        origin: `consumed` loaded (acquire), then the lines written again
 *     G  target: bell armed, then a barrier of all processes (membarrier), then a look into rings
 *        origin: head stored, then the bell loaded, in the order of the program
 *
 * G pairs a barrier in the sleeper alone, which is on its slow path, with none in the origin, which
 * would otherwise wait in every put until the line is its own: the kernel runs a full barrier on
 * each processor that runs an origin, between arming and looking. So either the look sees the head,
 * or the origin's load, which comes after, sees the bell.
 *
 * Thread: one thread a side; nothing here blocks, allocates or makes a system call, but for
 * pair_barrier.
 */
#ifndef PWC_SHM_RING_PAIR_H
#define PWC_SHM_RING_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pair_abi.h"

struct pair_writer {
    struct pair_shared *shared;
    struct pair_line *lines;
    uint64_t tail;          /* lines written */
    uint64_t consumed_seen; /* last valid sight of the consumer's count */
    uint32_t mask;
};

struct pair_reader {
    struct pair_shared *shared;
    const struct pair_line *lines;
    uint64_t head;     /* lines read */
    uint64_t released; /* of these, given back */
    uint32_t mask;
};

/* What a record says, in private memory. */
struct pair_record {
    uint8_t kind; /* PAIR_PUT or PAIR_GET */
    uint8_t flags;
    uint16_t id_len; /* 0: `id` by value; else so many bytes, up to SESSION_ID_MAX */
    uint32_t lines;  /* that it takes */
    uint64_t bytes;  /* moved */
    uint64_t id;
};

/* Writes the header of a new, zeroed mapping of PAIR_BYTES. */
void pair_format(void *base);
/* Views over a mapping of `size` bytes whose ring is new. -EPROTO: its header is not sound. */
int pair_writer_init(struct pair_writer *w, void *base, size_t size);
int pair_reader_init(struct pair_reader *r, void *base, size_t size);

/* 0 when there is room for a record with an id of so many bytes, -EAGAIN, or -EPROTO when the
 * consumer's count is out of range. */
int pair_room(struct pair_writer *w, uint32_t id_len);
/* Writes a record after pair_room, and shows it (E). `id` points to id_len bytes, or to eight. */
void pair_write(struct pair_writer *w, const struct pair_record *record, const void *id);
/* The consumer has read everything, by a fresh look; also where it is gone or lies. */
bool pair_drained(struct pair_writer *w);

/*
 * The next record, copied; its id's bytes to `id`, which has room for SESSION_ID_MAX. 1; 0 when
 * there is none (then what was read has been given back); -EPROTO when it makes no sense. The
 * record stays until pair_pass.
 */
int pair_look(struct pair_reader *r, struct pair_record *out, void *id);
void pair_pass(struct pair_reader *r, const struct pair_record *record);
/* Something is there. */
bool pair_pending(const struct pair_reader *r);

/* Once in a process that may be an origin or a target: 0, or a negative errno where the kernel has
 * no such barrier; then there must be no pairs. */
int pair_barrier_register(void);
/* The target's half of G. */
void pair_barrier(void);

#endif
