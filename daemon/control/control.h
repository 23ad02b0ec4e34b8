/*
 * Everything that the control thread owns, in one struct.
 *
 *     clients (Unix socket) --> requests  --> calls ----> workers: progress thread, engine, fabric
 *     peers (TCP)           --> directory --> calls --/        |
 *          ^------------------------------ notices, results ---+
 *
 * Thread: the control thread (libuv) owns all of it, unless a struct says otherwise.
 */
#ifndef PWC_CONTROL_CONTROL_H
#define PWC_CONTROL_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "daemon/control/clients/accepts.h"
#include "daemon/control/clients/admission.h"
#include "daemon/control/start/config.h"
#include "daemon/control/watch/counters.h"
#include "daemon/peering/directory.h"
#include "shm_ring/mapping.h"
#include "daemon/peering/handshake.h"
#include "daemon/peering/teams/teams.h"
#include "daemon/control/survive/inflight.h"
#include "daemon/control/survive/membership.h"
#include "daemon/control/watch/log.h"
#include "daemon/control/nodes/nodes.h"
#include "daemon/control/nodes/own_frames.h"
#include "daemon/control/clients/pending.h"
#include "daemon/control/signals.h"
#include "daemon/control/start/socket_path.h"
#include "daemon/control/clients/quota.h"
#include "daemon/control/clients/sched_group.h"
#include "daemon/control/watch/service.h"
#include "daemon/control/survive/store.h"
#include "daemon/control/threads/worker.h"

struct client;
struct inspection;
struct link;
struct pair;
struct peers;
struct team;
struct team_gather;

#define QUARANTINE_HISTORY  32u
#define CONTROL_PAIR_HASHES 16384u /* a power of two */

/* A client that broke the protocol and is gone: kept for pwcctl. */
struct quarantined {
    uint32_t engine, client, uid, pid, rank;
    char job[ENGINE_JOB_MAX];
    char reason[128];
    uint64_t at_ns;
};

/* The counters file, and when it is written (publisher.h). */
struct publisher {
    struct counters counters;
    uv_async_t nudge; /* asks the control thread to write the file soon */
    uv_timer_t timer;
    uint64_t interval_ms; /* until the next writing, by how long the last one took */
};

/* A hand-over to another process (handover.h). */
struct handover {
    uint32_t state; /* enum handover_state */
    int socket;     /* to the next process */
    pid_t next;     /* the next process: a child of our parent, as we are */
    int process;    /* pidfd of the next process */
    uint64_t deadline_ns;
    struct client *client; /* the client that asked for it, or NULL */
    uint32_t request;
    bool again; /* a signal has asked for another hand-over meanwhile */
    bool ends;  /* SIGTERM or SIGINT came when this process could not end orderly any more */
    uv_poll_t poll;
    uv_timer_t timer;
    const char *failure; /* the answer when the next process is gone */
};

/* Changes of offloads that the engine cannot complete yet (request_offload.h). */
struct offload_changes {
    struct offload_change *paused; /* list */
    uv_timer_t timer;              /* asks the engine again for all of them */
};

struct control {
    uv_loop_t loop;
    struct log log;
    const struct config *config;
    struct engine_config engine; /* of each worker's engine; only the engine's number differs */
    struct node_list nodes;
    uint32_t node;       /* our own number */
    uint32_t node_count; /* of the cluster */
    struct handshake_identity identity;
    struct admission admission;
    struct socket_path socket;
    uint64_t started_ns, served_ns; /* when everything was open */
    uint64_t started_day_ns;        /* time of day at the start: it identifies this run */
    uint64_t message_max;
    char provider[HANDSHAKE_PROVIDER_MAX];

    struct store store;       /* descriptors that outlive this process */
    struct inflight inflight; /* requests of clients under way */
    struct memberships memberships;
    bool was_next;  /* this process was started by the daemon whose place it takes */
    bool inherited; /* the state of an earlier process is inherited */
    bool leaving;   /* the next process is to take over: do not begin requests any more */
    struct handover handover;
    char *const *argv;  /* our arguments, for the next process */
    char program[4096]; /* the path of our program at the start */
    int lifeline;       /* hangs up when the keeper dies; -1: there is none */
    uv_poll_t keeper;

    struct publisher publisher;
    struct inspection *inspections; /* list (request_inspect.h) */
    struct service service;
    struct worker *workers; /* NULL: not opened */
    uint32_t worker_count;

    /* clients */
    uv_poll_t listener;
    uv_timer_t pause; /* at its end the loop looks at the listener again */
    struct accepts accepts;
    uv_async_t resume;      /* some client has a doom (client.h) */
    uv_timer_t again;       /* looks again at frames that are not whole */
    uint8_t *frame;         /* room for the frame that is being checked */
    struct client *clients; /* list */
    uint32_t client_count;
    struct quota_user *users; /* list */
    uint64_t user_limits[QUOTA_KINDS];
    uint32_t user_connections; /* the most connections that one user may have */
    uv_timer_t paying;         /* a line waits until its user has paid (turns.h) */
    struct account *charged;   /* the account that the thread's time is charged to; NULL: none */
    uint64_t charged_from;     /* when this began, on the thread's CPU clock, ns */
    struct sched_group group;  /* of this daemon, found at the time below; 0: never */
    uint64_t group_found_ns;
    struct account strangers; /* the account of processes outside this node */
    uv_check_t turn_end;
    uint64_t turn;    /* number of this turn of the loop */
    uint32_t in_line; /* connections whose user has had its turn (turns.h) */
    struct offload_changes changes;
    struct pair *pairs[CONTROL_PAIR_HASHES]; /* lists, by both sessions (pairs.h) */
    uint64_t pairs_made, pairs_live;
    uint64_t pairs_most;              /* of all users together (quota.h) */
    struct team *node_teams;          /* list (team.h) */
    struct team_gather *team_gathers; /* list (team_client.h) */
    uint32_t segments_shared;         /* segments with descriptors kept for neighbours */
    struct pending_table pending;
    struct quarantined history[QUARANTINE_HISTORY];
    uint32_t history_count; /* clients put into quarantine so far */

    /* other nodes */
    struct peers *peers; /* NULL with one node and one engine */
    struct link *links;  /* all connections, also those that are closing */
    uint32_t lookups;    /* lookups of names and credentials under way on libuv's threads */
    struct directory_memory directory_memory;
    struct mapping directory_table; /* directory_table.h */
    struct directory *directory;
    struct teams *teams; /* teams that form here, because their jobs' home is here */
    struct own_frames own_frames;
    uint8_t *sent; /* by node: whether the piece that is being sent to all nodes was sent to this
                    * node */

    struct signals signals;
    bool stopping;
};

/* Opens everything and serves until a signal. Returns the exit status. */
struct control_options {
    const struct config *config;
    int ready_fd;      /* -1: none */
    char *const *argv; /* of main */
};
int control_run(const struct control_options *options);
/* Checks whether a start with this configuration would succeed, as far as that can be known in
 * advance. Prints on stderr everything that would prevent it. */
int control_check(const struct config *config);

#endif
