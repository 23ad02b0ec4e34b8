/*
 * Two ranks that load their daemons with all kinds of operations, and account for each operation:
 * it ends once, in order, and the other side sees it once, in order, with the right bytes. (This
 * ledger has nothing to do with the ledgers between engines.)
 *
 * A slot of the target is written again only when its earlier bytes were checked: each operation's
 * remote id says how many operations of the other side its origin has checked.
 *
 * Threads: one for each rank, from start to stop; fields that other threads read are atomic.
 */
#ifndef PWC_TESTS_SYSTEM_LEDGER_H
#define PWC_TESTS_SYSTEM_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/rank.h"

#define LEDGER_SLOTS 16u

struct ledger_rank {
    struct rank rank;
    struct ledger_rank *other;
    pthread_t thread;
    bool runs;
    uint32_t last_ack;     /* number of checked operations that our last operation has reported */
    uint32_t peer_checked; /* of our operations, how many the other rank has checked */
    uint32_t messages;     /* messages handled, of `other->messages_sent` */
    uint32_t messages_sent;
    bool kinds_failed;
    _Atomic uint32_t submitted, ended; /* numbers of operations */
    _Atomic uint32_t shown;            /* operations with an event at the other side */
    _Atomic uint32_t seen;             /* events of the other rank's operations */
    _Atomic uint64_t aborted;          /* operations that ended with -ECONNABORTED */
    _Atomic int64_t gap_ns;            /* longest time between two ends, since it was set to 0 */
    int64_t end_ns;
    _Atomic bool *stop;
    _Atomic bool stopped; /* the thread has seen `stop`, and submits no more */
    _Atomic bool *failed;
    uint8_t kinds[1u << 16]; /* kinds of operations under way, by number */
};

struct ledger {
    struct ledger_rank ranks[2];
    _Atomic bool stop;
    _Atomic bool failed; /* the failure was printed on standard error */
};

int ledger_start(struct ledger *l, const char *job, const char *const sockets[2]);
/* Waits for operations under way, and stops. Returns whether all went well and every operation is
 * accounted for. */
bool ledger_stop(struct ledger *l);
/* Operations that have ended so far. */
uint64_t ledger_ended(const struct ledger *l);
uint64_t ledger_aborted(const struct ledger *l);
/* The longest time between two ends of either rank, since the last call. */
int64_t ledger_gap_ns(struct ledger *l);

#endif
