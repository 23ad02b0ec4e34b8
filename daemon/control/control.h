/*
 * The control room: everything that the control thread owns, in one place.
 *
 *     clients (Unix socket) --> requests --> calls ----> progress thread (engine, fabric)
 *     peers (TCP)           --> jobs     --> calls --/        |
 *          ^-------------------------------- notices, results-+
 *
 * Thread: the control thread (libuv) owns all of it, unless a struct says otherwise.
 */
#ifndef PWC_CONTROL_CONTROL_H
#define PWC_CONTROL_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "admission.h"
#include "attachments.h"
#include "call.h"
#include "config.h"
#include "counters.h"
#include "directory.h"
#include "handshake.h"
#include "log.h"
#include "nodes.h"
#include "pending.h"
#include "place.h"
#include "progress.h"

struct client;
struct client_session;
struct client_segment;
struct link;
struct pair;
struct peers;

#define QUARANTINE_HISTORY 32u

/* A client that broke the protocol and is gone: kept to be shown. */
struct quarantined {
    uint32_t client, uid, pid, rank;
    char job[ENGINE_JOB_MAX];
    char reason[128];
    uint64_t at_ns;
};

/* When counters are written (publisher.h). */
struct publisher {
    struct counters counters;
    _Atomic(const struct progress *) progress; /* NULL: not started yet */
    uint64_t written_ns;                       /* the progress thread's */
    uint64_t written_work;                     /* the progress thread's: what had been done then */
    _Atomic uint64_t calls, quarantined;
    _Atomic bool due; /* work that has not been written */
    uv_async_t nudge; /* to the control thread: have it written soon */
    uv_timer_t timer;
};

struct control {
    uv_loop_t loop;
    struct log log;
    const struct config *config;
    struct engine_config engine;
    struct node_list nodes;
    struct handshake_identity identity;
    struct admission admission;
    struct place place;
    uint64_t started_ns;
    uint64_t message_max;
    char provider[HANDSHAKE_PROVIDER_MAX];

    struct attachments attachments; /* the progress thread's */
    struct engine_host host;
    struct publisher publisher;
    struct call_target target;
    struct progress *progress;
    void *arena;
    size_t arena_bytes;
    int arena_fd;

    /* clients */
    uv_poll_t listener;
    uv_timer_t pause;       /* of accepting, when there is no descriptor left */
    uv_async_t resume;      /* frames that wait in memory */
    struct client *clients; /* list */
    uint32_t client_count;
    struct client **by_handle;        /* engine.clients_max */
    struct client_session **sessions; /* by the engine's handle */
    struct client_segment **segments;
    struct pair *pairs; /* list (pairs.h) */
    uint64_t pairs_made;
    uint32_t segments_shared; /* whose descriptors are kept for neighbours */
    struct pending_table pending;
    struct quarantined history[QUARANTINE_HISTORY];
    uint32_t history_count; /* so far */

    /* other nodes */
    struct peers *peers; /* NULL with one node */
    struct link *links;  /* all that stand, also those on their way out */
    uint32_t lookups;    /* of names, under way */
    struct directory_memory directory_memory;
    struct directory *directory;
    uint8_t *told; /* by node: has been told, in one telling of all */

    uv_signal_t terminate, interrupt;
    bool stopping;
};

/* Opens everything and serves until a signal; the process's exit status. */
struct control_options {
    const struct config *config;
    int ready_fd; /* -1: none */
};
int control_run(const struct control_options *options);

#endif
