/*
 * Neighbours: the contexts of this node that a context reaches, or that reach it, without the
 * daemon, each by a pair (pair_abi.h). A `struct neighbour` is a pair of which we are the target, a
 * `struct direct_pair` one of which we are the origin. This module lists them and arms their bells.
 * channel_direct.c reads what they send, direct.c and direct_am.c write to them.
 *
 * Most of many neighbours are silent at any time. A neighbour that was silent for a while is left
 * quiet: its entry stands after the active ones in the list, and no probe looks at its ring. An
 * origin that is quiet and writes sets its bit on our board (board_abi.h), and a probe looks at one
 * line of bits. Before we sleep all neighbours are active again. neighbours_quiet.c does this.
 *
 * A neighbour is hostile memory: a record that makes no sense ends its pair, and no other pair.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_NEIGHBOURS_H
#define PWC_CLIENTLIB_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/board_abi.h"
#include "shm_ring/mapping.h"
#include "shm_ring/pair.h"

/* With fewer neighbours than this, a look at the board costs more than it saves. */
#define QUIET_FROM 4u

struct neighbour {
    struct pair_reader ring; /* of requests */
    struct pair_writer answers;
    uint64_t peer;
    uint32_t slot;      /* on our board, or BOARD_NONE */
    uint64_t rested_at; /* its ring's position when we last looked for silent neighbours */
    uint64_t until;     /* the remote ring's position that goes before the record at the head */
    bool waits;         /* `until` is set */
    bool over;     /* a record made no sense, or the origin is gone: forget it once it is empty */
    bool wake_due; /* the neighbour sleeps, and the daemon could not be asked yet to wake it */
    uint64_t am_ops, am_bytes;
    uint64_t arrived; /* the highest sight of the origin's count */
    struct mapping mapping;
};

struct direct_pair {
    struct direct_pair *next; /* of the context */
    uint64_t number;          /* the daemon's */
    uint64_t peer;
    struct mapping ring;
    struct mapping board;      /* the target's, or none */
    struct pair_writer writer; /* of requests */
    struct pair_reader answers;
    uint32_t awaited;    /* answers */
    uint64_t refused_at; /* how far the target had read when a call last found no room */
    bool refused;        /* a call found no room, and the target has read nothing more since */
    bool wants_room;     /* a call has ever been refused: a sleep by pwc_fd waits for room too */
    uint32_t remotes;    /* that lead to it */
    bool over;           /* its target is gone */
    bool broken;         /* an answer made no sense: no request asks for another one */
    bool by_daemon;      /* the path now */
    bool after;          /* the next record is the first after operations through the daemon */
    bool wake_due;       /* as a neighbour's */
    uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
    uint64_t arrived; /* of these, operations that have changed the target's memory */
};

struct neighbours {
    struct neighbour *list;
    uint32_t active, count, room; /* the quiet ones stand after the active ones */
    uint32_t turn, run;           /* the active one to read next, and its records in this turn */
    struct mapping board;
    uint32_t board_words; /* in which our neighbours have bits */
    uint32_t looks;       /* at active neighbours, or the board */
    int64_t rested;       /* the time when some were last left quiet */
    struct direct_pair *ours;
    uint32_t awaited; /* answers, of all of ours */
    union {
        struct {
            bool wakes_due;  /* at least one wake-up is due */
            bool pieces_due; /* so are records of a series (calls/series.h), to any peer */
        };
        uint16_t due; /* both, for one look at the end of a call */
    };
    struct neighbour *answering; /* the running handler may reply to a request of this one */
    /* A struct event_record with room for the id of a record: EVENT_BYTES_MAX, or what a message
     * takes. It is the channel's until messages may come. */
    uint8_t *event;
    uint32_t block_max;               /* the longest message that is taken; 0: none */
    uint32_t answer_max;              /* lines of the longest answer; 0: too long for the ring */
    _Atomic uint64_t *arrived_before; /* the count by pairs that are gone; or NULL */
    bool counts_awaited;              /* a sleeper waits for what arrives */
    uint64_t handlers[SESSION_HANDLERS / 64];
};

/* `event` has EVENT_BYTES_MAX bytes; no block of a message is longer than `message_max`. */
void neighbours_init(struct neighbours *n, uint8_t *event, uint32_t message_max);
void neighbours_destroy(struct neighbours *n);

/* Adds a pair, and takes our board where it is still unknown (-1: none came). Takes both
 * descriptors in any case. */
void neighbours_add(struct neighbours *n, const struct pair_note *note, int descriptor, int board);
/* Finds the pairs whose other side is gone. */
void neighbours_check(struct neighbours *n);
void neighbours_forget(struct neighbours *n, uint32_t i);
/* Adds a pair of which we are the origin. neighbours_drop frees it. */
void neighbours_add_ours(struct neighbours *n, struct direct_pair *pair);
void neighbours_drop(struct neighbours *n, struct direct_pair *pair);
/* Some neighbours are quiet, or there are enough for that: call neighbours_listen in each probe. */
static inline bool neighbours_may_rest(const struct neighbours *n)
{
    return n->count >= QUIET_FROM || n->active < n->count;
}
/* Activates the neighbours that call. Now and then it also activates those that have written
 * without calling, since the board is hostile memory, and leaves the silent ones quiet. */
void neighbours_listen(struct neighbours *n);
/* Makes all neighbours active. */
void neighbours_listen_to_all(struct neighbours *n);
/* Makes a quiet neighbour active. */
void neighbours_activate(struct neighbours *n, uint32_t i);
/* No more answers will come from it. */
void neighbours_await_none(struct neighbours *n, struct direct_pair *pair);

/* From now on pairs accept messages, with blocks of up to `block_max` bytes: 0 or -ENOMEM. */
int neighbours_take_messages(struct neighbours *n, uint32_t block_max);
/* Shows a changed word of handlers in all pairs. */
void neighbours_show_handlers(struct neighbours *n, uint32_t word, uint64_t value);
static inline bool neighbours_handles(const struct pair_side *other, uint32_t index)
{
    return atomic_load_explicit(&other->handlers[index / 64], memory_order_relaxed) >> index % 64 &
           1;
}

/* The operations of all neighbours that have changed our memory. Only grows, whatever they write.
 */
uint64_t neighbours_arrived(struct neighbours *n);
/* From now on an armed bell rings also for operations without a record; or no longer. */
void neighbours_await_counts(struct neighbours *n, bool awaited);

/* Arms all bells, before a last look and sleep. `mode` is enum doorbell_mode. */
void neighbours_arm(struct neighbours *n, uint32_t mode);
void neighbours_disarm(struct neighbours *n);
/* A call has found no room in the ring, or records in it that the target must read first. */
static inline void neighbours_refuse(struct direct_pair *pair)
{
    pair->refused_at = pair->writer.consumed_seen;
    pair->refused = pair->wants_room = true;
}
/* By a fresh look: a target has read more since its ring refused a call, which may be tried again.
 */
bool neighbours_have_room(struct neighbours *n);

#endif
