/*
 * Neighbours: the contexts of this node that a context reaches, or that reach it, without the
 * daemon, each by a pair (pair_abi.h). A `struct neighbour` is a pair of which we are the target, a
 * `struct direct_pair` one of which we are the origin. Here they are listed, and their bells armed;
 * what comes by them is taken in channel_direct.c, what goes in direct.c and direct_am.c.
 *
 * Of many that reach us most are silent. Those that were for a while are left quiet: they stand
 * behind the active ones in the list, and their rings are not looked at; who writes to his then
 * says so on our board (board_abi.h), of which a probe looks at one line. Before we sleep all are
 * active again. neighbours_quiet.c has that.
 *
 * A neighbour is hostile memory: what makes no sense ends its pair, and nobody else's.
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

/* With fewer the board is not worth its look. */
#define QUIET_FROM 4u

struct neighbour {
    struct pair_reader ring; /* of requests */
    struct pair_writer answers;
    uint64_t peer;
    uint32_t slot;      /* on our board, or BOARD_NONE */
    uint64_t rested_at; /* its ring's position when we last looked who is silent */
    uint64_t until;     /* the remote ring's position that goes before the record at the head */
    bool waits;         /* for that */
    bool over;     /* it made no sense, or its origin is gone: to be forgotten once it is empty */
    bool wake_due; /* it sleeps, and the daemon could not be asked yet to wake it */
    uint64_t am_ops, am_bytes;
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
    uint64_t refused_at; /* what the target had read when a call last found no room */
    bool refused;        /* that is not answered yet: nothing more has been read */
    bool wants_room;     /* a call has ever been refused: by pwc_fd we sleep for room, too */
    uint32_t remotes;    /* that lead to it */
    bool over;           /* its target is gone */
    bool lies;           /* what it answered made no sense: it is asked for no more */
    bool by_daemon;      /* the path now */
    bool after;          /* the next record is the first behind what went by the daemon */
    bool wake_due;       /* as a neighbour's */
    uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
};

struct neighbours {
    struct neighbour *list;
    uint32_t active, count, room; /* the quiet ones stand behind the active ones */
    uint32_t turn, run;           /* whose of the active ones, and how many records it has had */
    struct mapping board;
    uint32_t board_words; /* in which our neighbours have bits */
    uint32_t looks;       /* at active neighbours, or the board, since all were looked at */
    int64_t rested;       /* when some were last left quiet */
    struct direct_pair *ours;
    uint32_t awaited;            /* answers, of all of ours */
    bool wakes_due;              /* of some */
    struct neighbour *answering; /* to a request of this one a handler may reply now */
    /* A struct event_record, and room for the id of what comes: EVENT_BYTES_MAX, or what a message
     * takes. The channel's own, until messages may come. */
    uint8_t *event;
    uint32_t block_max;  /* the longest message that is taken; 0: none */
    uint32_t answer_max; /* lines of the longest answer; 0: too long for the ring */
    uint64_t handlers[SESSION_HANDLERS / 64];
};

/* `event` has EVENT_BYTES_MAX bytes; no block of a message is longer than `message_max`. */
void neighbours_init(struct neighbours *n, uint8_t *event, uint32_t message_max);
void neighbours_destroy(struct neighbours *n);

/* A new pair, and our board where it is still unknown, or -1. Takes the descriptors, whatever
 * happens. */
void neighbours_add(struct neighbours *n, const struct pair_note *note, int descriptor, int board);
/* Looks which are gone. */
void neighbours_check(struct neighbours *n);
void neighbours_forget(struct neighbours *n, uint32_t i);
/* One of ours. It is freed by neighbours_drop. */
void neighbours_adopt(struct neighbours *n, struct direct_pair *pair);
void neighbours_drop(struct neighbours *n, struct direct_pair *pair);
/* Each look at those that are active, where some are silent or may be. */
static inline bool neighbours_may_rest(const struct neighbours *n)
{
    return n->count >= QUIET_FROM || n->active < n->count;
}
/* Activates those that call. Now and then: all that have written without calling, for the board is
 * hostile memory too; and leaves quiet who is silent. */
void neighbours_listen(struct neighbours *n);
/* All are active, and looked at. */
void neighbours_listen_to_all(struct neighbours *n);
/* It is looked at again. */
void neighbours_activate(struct neighbours *n, uint32_t i);
/* No more answers will come from it. */
void neighbours_await_none(struct neighbours *n, struct direct_pair *pair);

/* From now on messages are taken, with blocks of up to so many bytes: 0 or -ENOMEM. */
int neighbours_take_messages(struct neighbours *n, uint32_t block_max);
/* Tells all of them of a word of handlers that has changed. */
void neighbours_tell_handlers(struct neighbours *n, uint32_t word, uint64_t value);
static inline bool neighbours_handles(const struct pair_side *other, uint32_t index)
{
    return atomic_load_explicit(&other->handlers[index / 64], memory_order_relaxed) >> index % 64 &
           1;
}

/* Before a last look and sleep: they shall have us woken. `mode` is enum doorbell_mode. */
void neighbours_arm(struct neighbours *n, uint32_t mode);
void neighbours_disarm(struct neighbours *n);
/* A call has found no room in the ring of one of ours, or something in it to be read first. */
static inline void neighbours_refuse(struct direct_pair *pair)
{
    pair->refused_at = pair->writer.consumed_seen;
    pair->refused = pair->wants_room = true;
}
/* By a fresh look: one of ours that has refused a call has had more read since: it may be tried
 * again. */
bool neighbours_have_room(struct neighbours *n);

#endif
