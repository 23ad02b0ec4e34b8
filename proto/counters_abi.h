/*
 * The counters file: pwcd writes its counts to a file beside its socket. pwcctl maps the file
 * read-only, so that counts can be read while the daemon is stuck or stopped.
 *
 *     header and global counters | session rows | peer rows
 *
 * The control thread writes the file by relaxed stores: some ten times a second while the daemon
 * works, once more after the last work, and before it answers a view. Each value is whole, but a
 * row is not a snapshot: its values may be some microseconds apart. The header has the sizes and
 * offsets by which readers find rows, so that later versions can append fields to rows and to the
 * header. Each progress thread has its part of the rows, and the header has the sums over all
 * threads. Values only grow unless said otherwise; views/fields.c describes them.
 */
#ifndef PWC_PROTO_COUNTERS_ABI_H
#define PWC_PROTO_COUNTERS_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define COUNTERS_MAGIC   UINT64_C(0x3130304343435750) /* "PWCCC001" */
#define COUNTERS_VERSION 2u

struct counters_header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* of the file */
    uint32_t session_offset, session_row_bytes, session_rows;
    uint32_t peer_offset, peer_row_bytes, peer_rows;
    uint32_t node, nodes;
    uint32_t pid;
    uint32_t engines;    /* progress threads; 0 counts as 1 */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    char provider[64];

    _Atomic uint64_t updated_ns; /* CLOCK_MONOTONIC of the last writing */
    _Atomic uint64_t heartbeat;  /* rounds of the progress threads */
    _Atomic uint64_t cpu_ns;     /* CPU time of the progress threads */
    _Atomic uint64_t work;       /* records and events handled */
    _Atomic uint64_t sleeps;
    _Atomic uint64_t commands;
    _Atomic uint64_t quarantined; /* clients so far */
    _Atomic uint64_t clients;     /* now */
    _Atomic uint64_t sessions;    /* now */
    _Atomic uint64_t refused;     /* requests beyond a quota, so far */

    /* of all contexts since the start, closed contexts included */
    _Atomic uint64_t put_ops, get_ops, am_ops, put_bytes, get_bytes, am_bytes;
    _Atomic uint64_t errors, delivered, spilled;

    _Atomic uint64_t started_day_ns;            /* by the time of day; one value for a whole run */
    _Atomic uint64_t segments, regions, memory; /* held by clients now; memory in bytes */

    /* The longest step of a progress thread: since the start, in which part of it (enum engine_part
     * of engine.h), and in the last second. */
    _Atomic uint64_t longest_step_ns, longest_step_part, recent_step_ns;

    _Atomic uint64_t atomic_ops, atomic_bytes; /* of all contexts, as put_ops and put_bytes */

    /* Teams; collectives of teams that several engines share. */
    _Atomic uint64_t teams;             /* parts of teams that engines have now */
    _Atomic uint64_t teams_broken;      /* teams that broke, so far */
    _Atomic uint64_t collectives;       /* calls that have ended */
    _Atomic uint64_t collective_bytes;  /* bytes of one member's operand, summed over the calls */
    _Atomic uint64_t collective_errors; /* calls under way when their team broke */
    _Atomic uint64_t collectives_under_way; /* now */
    _Atomic uint64_t collective_oldest_ns;  /* when the oldest call under way began */

    /* Offloads now; then counts of handlers' work, which include offloads that are gone. */
    _Atomic uint64_t offloads, offloads_disabled;
    _Atomic uint64_t handler_runs, handler_units;
    _Atomic uint64_t handler_messages, handler_bytes,
        handler_dropped;                               /* bytes of payload, and how many of them
                                                          were dropped */
    _Atomic uint64_t handler_deferred, handler_failed; /* messages */
    _Atomic uint64_t handler_faults;
    _Atomic uint64_t handler_sends, handler_sends_failed;
};

/* Rows are read and written in words of 64 bits (counters_word). */

/* One context. A row is in use while `session` is not 0; a later session may use it again. */
struct counters_session {
    uint64_t session; /* engine << 32 | handle + 1; 0: the row is free */
    uint64_t client, rank, context;
    uint64_t submit_used, local_used, remote_used; /* bytes now */
    uint64_t submit_high, local_high, remote_high;
    uint64_t submitted, ended, in_flight, delivered;
    uint64_t put_ops, get_ops, put_bytes, get_bytes, errors, spilled, spill_bytes;
    uint64_t am_ops, am_bytes;               /* active messages sent, replies included */
    uint64_t reply_used, reply_high;         /* bytes now, and at most */
    uint64_t replies_expected, replies_owed; /* now */
    uint64_t waits;                          /* enum session_wait, as the client reports it */
    uint64_t submit_size, local_size, remote_size, reply_size;
    uint64_t pairs; /* now */
    /* Operations through these pairs, as the client counts them (pair_abi.h). */
    uint64_t direct_put_ops, direct_put_bytes, direct_get_ops, direct_get_bytes;
    uint64_t direct_am_ops, direct_am_bytes;
    uint64_t atomic_ops, atomic_bytes; /* through the daemon; bytes of the words */
    /* Counted by the client: started requests and unexpected notifications now, and matched
     * notifications so far. */
    uint64_t requests_started, notices_unexpected, notices_matched;
    uint64_t handler_units; /* used by handlers of its offloads */
    /* The fullest ring that a neighbour writes for the context: its size and the bytes in use now,
     * and the neighbour's rank. */
    uint64_t pair_size, pair_used, pair_rank;
    /* Time in calls that wait, and the part of it asleep, up to now, as the client reports it. */
    uint64_t waited_ns, asleep_ns;
    /* The counts of pwc/counter.h, as far as the daemon sees them; the client reports a part of
     * them. */
    uint64_t ops_ended, ops_failed, ops_arrived;
};

/* One peer of an engine. A peer's number is its node + nodes * its engine. */
struct counters_peer {
    uint64_t node;  /* engine << 32 | number + 1; 0: the row is free */
    uint64_t state; /* 0 none, 1 wanted, 2 up, 3 down */
    uint64_t tx_bytes, rx_bytes;
    uint64_t tx_tail, tx_sent, tx_consumed, tx_credit;
    uint64_t rx_consumed, rx_acked;
    uint64_t runs_out, runs_in, records_out, records_in, starved, grown, sent_pending;
    uint64_t incarnation;
    /* For each step of an operation: how many operations were timed, and the sum of the times. */
    uint64_t queued_count, queued_ns, fabric_count, fabric_ns, local_count, local_ns;
    /* Bytes that have gone through the ledgers. The positions above go back when a link begins
     * again; these counts do not, and count what is sent again once more. */
    uint64_t bytes_out, bytes_in;
    uint64_t paused;
};

static inline uint64_t counters_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static_assert(sizeof(struct counters_header) % 8 == 0, "counters_header");
static_assert(sizeof(struct counters_session) == 53 * 8, "counters_session");
static_assert(sizeof(struct counters_peer) == 27 * 8, "counters_peer");

#endif
