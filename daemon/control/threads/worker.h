/*
 * A worker: one engine with its progress thread, its fabric and its arena, and the control thread's
 * tables by this engine's handles. A client belongs to one worker from Hello to its end.
 *
 *     control thread --calls--> progress thread 0 (engine 0, fabric, arena)  <--+ fabric, as
 *           |        --calls--> progress thread 1 (engine 1, fabric, arena)  <--+ between nodes
 *           +<------ notices, results
 *
 * Engines of one node are peers of each other, like engines of other nodes. In addition, an engine
 * may ask a sibling to wake a client (wake_sibling): by a bit for the flow, and a kick.
 *
 * Thread: control, except where a comment says otherwise.
 */
#ifndef PWC_CONTROL_WORKER_H
#define PWC_CONTROL_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/threads/host_table.h"
#include "daemon/control/threads/call.h"
#include "daemon/control/watch/counters.h"
#include "daemon/control/threads/progress.h"

struct client;
struct client_session;
struct client_segment;
struct control;
struct tracing;

/* Ends of flows whose clients are to be woken; the siblings' progress threads set the bits. */
struct wakes {
    _Atomic bool due;
    uint32_t words;
    _Atomic uint64_t *flows; /* two bits each, by enum engine_flow_end; NULL: no siblings */
    _Atomic uint64_t *some;  /* a bit for each word of `flows` that has a bit set */
};

/* Decides when the worker's counters are written (publisher.h). */
struct worker_counters {
    _Atomic(const struct progress *) progress; /* NULL: not started yet */
    struct counters_share share;
    uint64_t seen_work; /* the progress thread's: the work done when the thread was last observed */
    _Atomic uint64_t calls, quarantined, refused;
    _Atomic bool due; /* the control thread knows that there is something to write */
};

struct worker {
    struct control *control;
    uint32_t engine;  /* number among this node's engines */
    uint32_t number;  /* the engine's number as a peer (nodes.h) */
    uint32_t clients; /* clients in its engine, or being opened there */

    struct engine_config config;
    struct host_table host_table; /* the progress thread's */
    struct engine_host host;
    struct wakes wakes;
    struct worker_counters counters;
    struct call_target target;
    struct tracing *tracing;           /* NULL: no connection reads the trace */
    struct fabric *fabric;             /* until the thread owns it */
    struct progress *progress;         /* NULL: the thread has ended, and calls are dropped */
    _Atomic(struct progress *) thread; /* `progress` for the siblings, also while threads are being
                                        * ended */
    void *arena;
    size_t arena_bytes;
    int arena_fd;

    struct client **by_handle;        /* engine.clients_max */
    struct client_session **sessions; /* by the engine's handle */
    struct client_segment **segments;
};

/* The functions of the control thread's modules that workers call; the context is the worker. */
struct worker_hooks {
    void (*opened)(void *context, struct engine *engine); /* before the engine's first step */
    progress_notice notice;                               /* on the control thread */
    progress_observe observe;                             /* on the progress thread */
};

/* Makes control->worker_count workers, with their fabrics; control->engine is the configuration of
 * each engine. */
int workers_open(struct control *control);
/* Gives each worker its arena. If all arenas of an earlier process fit, the workers inherit them,
 * and control->inherited stays true; otherwise they get new ones. */
int workers_open_arenas(struct control *control);
/* Starts the workers' progress threads. */
int workers_start(struct control *control, const struct worker_hooks *hooks);
/* Ends the workers' progress threads, and runs `done` of calls. -ETIMEDOUT: a thread does not
 * return. */
int workers_stop(struct control *control);
/* Frees the workers, after the loop is closed. */
void workers_close(struct control *control);

/* Finds an object by the handle that the worker's engine gave it; NULL: there is none. */
struct client *worker_client(const struct worker *w, uint32_t handle);
struct client_session *worker_session(const struct worker *w, uint32_t handle);
struct client_segment *worker_segment(const struct worker *w, uint32_t handle);

#endif
