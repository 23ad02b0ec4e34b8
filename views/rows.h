/*
 * The rows that the daemon shows, beside those of the counters file (counters_abi.h): each
 * describes one client, region, team, operation ... at a moment. The tables of fields.h describe
 * each word.
 *
 * Thread: a row belongs to its owner's thread; the strings that it points to are constants, or
 * outlive it.
 */
#ifndef PWC_VIEWS_ROWS_H
#define PWC_VIEWS_ROWS_H

#include <stdint.h>
#include "proto/counters_abi.h"

/* An attached process. */
struct view_client {
    uint64_t client, rank, size, uid, pid;
    char job[64];
    const char *quarantine;                      /* reason of its quarantine; NULL: none */
    uint64_t sessions, segments, regions, bytes; /* held by the client, as the control thread
                                                    counts */
};

/* A client that broke the protocol and is gone. */
struct view_quarantined {
    uint64_t client, rank, uid, pid, age_ns;
    const char *job, *quarantine;
};

/* A user's holdings of each thing that has a quota. */
struct view_user {
    uint64_t uid, connections, clients, contexts, segments, regions, bytes, refused;
};

/* Memory that peers may reach. */
struct view_region {
    uint64_t slot, generation, client, segment, offset, length;
    uint64_t rights, state; /* 1 open, 2 revoking */
    uint64_t grants;
};

/* A program of handlers that a client has loaded. */
struct view_program {
    uint64_t program; /* its handle */
    uint64_t client;
    uint64_t instructions, constants; /* constants: in bytes */
    uint64_t bytes;                   /* of memory that the program takes */
    uint64_t offloads;                /* offloads that run the program */
};

/* An offload: a program joined with an index of a context's messages, or with a region. Counts live
 * as long as the offload; the units of single runs live as long as the daemon's process. */
struct view_offload {
    uint64_t offload; /* its handle */
    uint64_t client, session;
    uint64_t takes;   /* 0 messages, 1 puts, 2 placed puts; 3, 4: as 1, 2, and gets */
    uint64_t index;   /* for messages: their index; else 0 */
    uint64_t region;  /* for puts: the slot of their region; else 0 */
    uint64_t program; /* its handle */
    uint64_t state;   /* 1 binding, 2 open, 3 disabled */
    uint64_t messages, bytes, dropped, deferred, failed;
    uint64_t faults;
    const char *fault;                   /* the last fault; NULL: none */
    uint64_t fault_handler, fault_place; /* 0 none, 1 header, 2 payload, 3 completion */
    uint64_t fault_address;
    uint64_t units, units_p50, units_p99, units_max; /* of all runs; of one run (the rest) */
    uint64_t sends, sends_failed;
    uint64_t gets;         /* of its handlers under way now, until the completion handler has run */
    uint64_t queued, held; /* entries now in the flows of its context's sends; how many of these
                              flows wait for their target */
    uint64_t counters[8];
};

/* A team, as one engine has it. */
struct view_team {
    uint64_t number, handle, uid;
    char job[64];
    uint64_t size, participants;
    uint64_t members, left; /* members here, and how many of them have left */
    uint64_t window, under_way;
    uint64_t oldest_ns; /* how long the oldest call has waited for other engines; 0: none waits */
    uint64_t phase;     /* 1 coming, 2 opening, 3 ready, 4 started, 5 dropped */
    const char *broken; /* why the team is broken; NULL: it is not */
};

/* A row of the engine's table of algorithms that calls may use, and the work done by it since the
 * process began. */
struct view_collective {
    const char *kind, *algorithm;
    uint64_t from;                  /* bytes of data that a node gives or gets, at least */
    uint64_t least, most;           /* engines, at least and at most; 0: any number */
    uint64_t calls, bytes;          /* ended calls; the sum of one member's bytes in each */
    uint64_t letters, letter_bytes; /* sent to other engines; bytes of their data */
};

/* A job whose directory this node keeps. */
struct view_job {
    const char *job;
    uint64_t uid, size;  /* UINT32_MAX: open */
    uint64_t live, left; /* ranks that are attached; ranks that have left */
    uint64_t names;      /* published */
    const char *gone;    /* the ranks that have left, as a list; NULL: none */
};

/* An exchange or a barrier that some ranks of a job have called, and others have not. */
struct view_exchange {
    const char *job, *kind;
    uint64_t uid, exchange; /* exchange: its number in the job, from 0 */
    uint64_t size, have;    /* ranks that take part, and those that have called */
    const char *missing;    /* the ranks that have not called, as a list */
    uint64_t age_ns;
};

/* An operation in flight. */
struct view_op {
    uint64_t client, session, sequence;
    const char *kind;
    uint64_t state; /* 0 queued, 1 ready, 2 placed */
    uint64_t flags, node, rank, context, length, age_ns;
};

/* A progress thread. */
struct view_engine {
    uint64_t engine, responding, clients, heartbeat, work, sleeps, commands, progress_cpu_ns;
    uint64_t longest_step_ns, longest_step_part, recent_step_ns; /* as in counters_header */
};

/* A node. */
struct view_node {
    uint64_t node, ledgers, incarnation, runs_out, runs_in;
    const char *address, *state, *reason; /* reason NULL: the link is up, or is not wanted */
};

/* A step of the operations towards a peer: how long it took. */
struct view_latency {
    const char *step;
    uint64_t count, sum_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};

#endif
