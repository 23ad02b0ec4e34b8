/*
 * Neighbours: the contexts of this node that a context reaches, or that reach it, without the
 * daemon, each by a pair (pair_abi.h). A `struct neighbour` is a pair of which this context is the
 * target, a `struct direct_pair` one of which it is the origin. This module lists the pairs and
 * arms their bells. channel_direct.c reads from them, direct.c and direct_am.c write to them.
 *
 * Most neighbours are silent at any time. A neighbour that was silent for a while is made quiet:
 * its entry moves behind the active entries of the list, and no probe looks at its ring. When a
 * quiet origin writes, it sets its bit on our board (board_abi.h), and a probe looks at that one
 * line of bits. Before this context sleeps, all neighbours become active again. neighbours_quiet.c
 * does this.
 *
 * A neighbour may be hostile: a record that makes no sense ends its pair, and no other pair.
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
    uint64_t rested_at; /* position of `ring` at the last search for silent neighbours */
    uint64_t until;     /* position of the remote ring that must be read before the record at the
                           head */
    bool waits;         /* `until` is set */
    bool over;     /* a record made no sense, or the origin is gone: forget the pair once its ring
                      is empty */
    bool wake_due; /* the neighbour sleeps, and its wake-up could not be submitted yet */
    uint64_t am_ops, am_bytes;
    uint64_t arrived; /* the highest value read of the origin's count */
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
    bool wants_room;  /* a call was refused once: from then on each read of the target ends a sleep
                         by pwc_fd */
    uint32_t remotes; /* remotes that use the pair */
    bool over;        /* its target is gone */
    bool broken;      /* an answer made no sense: no request with a reply is sent any more */
    bool by_daemon;   /* the path is the daemon's now */
    bool after;       /* the next record is the first after operations through the daemon */
    bool wake_due;    /* as in struct neighbour */
    uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
    uint64_t arrived; /* operations that have changed the target's memory */
};

struct neighbours {
    uint64_t self; /* this context as a peer */
    struct neighbour *list;
    uint32_t active, count, room; /* quiet entries are after the active ones */
    uint32_t turn, run;           /* the active entry to read next, and its records so far in this
                                     turn */
    struct mapping board;
    uint32_t board_words; /* words of the board in which our neighbours have bits */
    uint32_t looks;       /* number of looks at active neighbours, or at the board */
    int64_t rested;       /* the time when neighbours were last made quiet */
    struct direct_pair *ours;
    uint32_t awaited; /* answers awaited, in all pairs of `ours` */
    union {
        struct {
            bool wakes_due;  /* at least one wake-up is due */
            bool pieces_due; /* records of a series are due (calls/series.h), to any peer */
        };
        uint16_t due; /* both at once, for one check at the end of a call */
    };
    struct neighbour *answering; /* the neighbour whose request's handler is running; or NULL */
    /* A struct event_record with room for the id of a record: EVENT_BYTES_MAX, or more for
     * messages. The channel owns it until messages are accepted. */
    uint8_t *event;
    uint32_t block_max;               /* the longest message that is accepted; 0: none */
    uint32_t answer_max;              /* lines of the longest answer; 0: too long for the ring */
    _Atomic uint64_t *arrived_before; /* the word that counts arrivals by pairs that are gone; or
                                         NULL */
    bool counts_awaited;              /* a sleeper waits for a count of arrivals */
    bool polled; /* the program may poll the descriptor of pwc_fd: the bells stay armed for it */
    uint64_t handlers[SESSION_HANDLERS / 64];
};

/* `event` has EVENT_BYTES_MAX bytes; no block of a message is longer than `message_max`. */
void neighbours_init(struct neighbours *n, uint64_t self, uint8_t *event, uint32_t message_max);
void neighbours_destroy(struct neighbours *n);

/* Adds a pair, and maps our board if it is not mapped yet (-1: the note has none). Owns both
 * descriptors from now on. */
void neighbours_add(struct neighbours *n, const struct pair_note *note, int descriptor, int board);
/* Finds pairs whose other side is gone, and ends them. */
void neighbours_check(struct neighbours *n);
void neighbours_forget(struct neighbours *n, uint32_t i);
/* Adds a pair of which we are the origin. neighbours_drop frees it. */
void neighbours_add_ours(struct neighbours *n, struct direct_pair *pair);
void neighbours_drop(struct neighbours *n, struct direct_pair *pair);
/* Whether neighbours are quiet, or so many exist that the board saves time. If so, each probe calls
 * neighbours_listen. */
static inline bool neighbours_may_rest(const struct neighbours *n)
{
    return n->count >= QUIET_FROM || n->active < n->count;
}
/* Activates the neighbours whose bit on the board is set. Now and then it also activates neighbours
 * that have written without their bit, because others may have cleared it, and makes silent ones
 * quiet. */
void neighbours_listen(struct neighbours *n);
/* Makes all neighbours active. */
void neighbours_listen_to_all(struct neighbours *n);
/* Makes a quiet neighbour active. */
void neighbours_activate(struct neighbours *n, uint32_t i);
/* Called when no more answers will come through the pair. */
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

/* How many operations of all neighbours have changed our memory. The number never shrinks, whatever
 * the neighbours write. */
uint64_t neighbours_arrived(struct neighbours *n);
/* Sets whether from now on an armed bell rings also for operations without a record. */
void neighbours_await_counts(struct neighbours *n, bool awaited);

/* Arms all bells, before a last look and sleep. `mode` is enum doorbell_mode. */
void neighbours_arm(struct neighbours *n, uint32_t mode);
void neighbours_disarm(struct neighbours *n);
/* Called when a call has found no room in the ring, or records in it that the target must read
 * first. */
static inline void neighbours_refuse(struct direct_pair *pair)
{
    pair->refused_at = pair->writer.consumed_seen;
    pair->refused = pair->wants_room = true;
}
/* Whether a target has read more since its ring refused a call, so that the call may be tried
 * again. Reads shared memory.
 */
bool neighbours_have_room(struct neighbours *n);

#endif
