/*
 * Two ranks that load their daemons with all kinds of operations, and keep a ledger of each: every
 * operation ends once, in order, and is seen once at the other side, in order, with the right
 * bytes.
 *
 * A slot of the target is written again only when its last bytes have been checked: each operation
 * says by its remote id how far its origin has checked what came.
 *
 * Thread: one of its own for each rank, from start to stop; what others read is atomic.
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
    uint32_t last_ack;     /* named by the last operation */
    uint32_t peer_checked; /* as the other rank has reported */
    uint32_t messages;     /* handled, of `other->messages_sent` */
    uint32_t messages_sent;
    bool kinds_failed;
    _Atomic uint32_t submitted, ended; /* operations */
    _Atomic uint32_t shown;            /* how many of them have had an event at the other side */
    _Atomic uint32_t seen;             /* events of the other's */
    _Atomic uint64_t aborted;          /* ended with -ECONNABORTED */
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
/* Lets what is under way end. Whether all went well, and every operation is accounted for. */
bool ledger_stop(struct ledger *l);
/* Operations that have ended so far. */
uint64_t ledger_ended(const struct ledger *l);
uint64_t ledger_aborted(const struct ledger *l);
/* The longest time without an end, of both, since the last call. */
int64_t ledger_gap_ns(struct ledger *l);

#endif
