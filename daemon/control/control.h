/*
 * The control room: everything that the control thread owns, in one place.
 *
 *     clients (Unix socket) --> requests --> calls ----> workers: progress thread, engine, fabric
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
#include "daemon/control/clients/admission.h"
#include "daemon/control/start/config.h"
#include "daemon/control/watch/counters.h"
#include "daemon/peering/directory.h"
#include "daemon/peering/handshake.h"
#include "daemon/control/survive/inflight.h"
#include "daemon/control/watch/log.h"
#include "daemon/control/nodes/nodes.h"
#include "daemon/control/clients/pending.h"
#include "daemon/control/start/socket_path.h"
#include "daemon/control/clients/quota.h"
#include "daemon/control/watch/service.h"
#include "daemon/control/survive/store.h"
#include "daemon/control/threads/worker.h"

struct client;
struct link;
struct pair;
struct peers;
struct scrape;

#define QUARANTINE_HISTORY 32u

/* A client that broke the protocol and is gone: kept to be shown. */
struct quarantined {
    uint32_t engine, client, uid, pid, rank;
    char job[ENGINE_JOB_MAX];
    char reason[128];
    uint64_t at_ns;
};

/* The counters file, and when it is written (publisher.h). */
struct publisher {
    struct counters counters;
    uv_async_t nudge; /* to the control thread: have it written soon */
    uv_timer_t timer;
};

/* The change of the process (handover.h). */
struct handover {
    uint32_t state; /* enum handover_state */
    int socket;     /* to the next one */
    pid_t next;     /* our parent's child, like us */
    int process;    /* its pidfd */
    uint64_t deadline_ns;
    struct client *client; /* that asked for it, or NULL */
    uint32_t request;
    bool again; /* a signal has asked for one more meanwhile */
    uv_signal_t signal;
    uv_poll_t poll;
    uv_timer_t timer;
    const char *failure; /* that is answered when the next one is gone */
};

struct control {
    uv_loop_t loop;
    struct log log;
    const struct config *config;
    struct engine_config engine; /* of each worker's engine, but for its number */
    struct node_list nodes;
    uint32_t node;       /* which we are */
    uint32_t node_count; /* how many there are */
    struct handshake_identity identity;
    struct admission admission;
    struct socket_path socket;
    uint64_t started_ns, served_ns; /* when all was open */
    uint64_t started_day_ns; /* by the time of day; noted once, for it is a name of this run */
    uint64_t message_max;
    char provider[HANDSHAKE_PROVIDER_MAX];

    struct store store;       /* what outlives this process */
    struct inflight inflight; /* what is under way of clients */
    bool was_next;            /* started by the daemon whose place it takes */
    bool inherited;           /* another process's state is taken over */
    bool leaving;             /* the next one is to take over: nothing new is begun */
    struct handover handover;
    char *const *argv;  /* our arguments, for the next one */
    char program[4096]; /* our path when we were started */
    int lifeline;       /* hangs up when the keeper dies; -1: there is none */
    uv_poll_t keeper;

    struct publisher publisher;
    struct service service;
    struct worker *workers; /* NULL: not opened */
    uint32_t worker_count;

    /* clients */
    uv_poll_t listener;
    uv_timer_t pause;       /* of accepting, when there is no descriptor left */
    uv_async_t resume;      /* clients to be ended from the loop */
    uv_timer_t again;       /* frames that are not whole */
    uint8_t *frame;         /* room for the one that is looked at */
    struct client *clients; /* list */
    uint32_t client_count;
    struct quota_user *users; /* list */
    uint64_t user_limits[QUOTA_KINDS];
    uint32_t user_connections; /* that a user may have */
    struct pair *pairs;        /* list (pairs.h) */
    uint64_t pairs_made;
    uint32_t segments_shared; /* whose descriptors are kept for neighbours */
    struct pending_table pending;
    struct quarantined history[QUARANTINE_HISTORY];
    uint32_t history_count; /* so far */

    /* other nodes */
    struct peers *peers; /* NULL with one node and one engine */
    struct link *links;  /* all that stand, also those on their way out */
    uint32_t lookups;    /* of names and credentials, under way on threads of libuv's */
    struct directory_memory directory_memory;
    struct directory *directory;
    struct deferred_where *deferred; /* list (deferred_where.h) */
    uint32_t deferred_count;
    uv_timer_t deferred_timer;
    uint8_t *told; /* by node: has been told, in one telling of all */

    struct scrape *scrape; /* metrics over HTTP; NULL: none */

    uv_signal_t terminate, interrupt;
    bool stopping;
};

/* Opens everything and serves until a signal; the process's exit status. */
struct control_options {
    const struct config *config;
    int ready_fd;      /* -1: none */
    char *const *argv; /* of main */
};
int control_run(const struct control_options *options);
/* Whether a start would come as far as serving, as far as can be known before: what would stop it
 * is said on stderr, all of it. */
int control_check(const struct config *config);

#endif
