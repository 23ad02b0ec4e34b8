/*
 * The progress thread: it alone touches the engine and the fabric.
 *
 *     +----------------------------------------------------------------+
 *     | commands, a few -> engine_step -> notices, a few               |
 *     |    work done: again at once, where patience.h lets us yield    |
 *     |    none: poll, yield or sleep, as it says                      |
 *     |    sleep: arm sessions, look once more, arm fabric, epoll_wait |
 *     +----------------------------------------------------------------+
 *
 * The thread sleeps on one epoll set: the fabric's descriptor, the mailbox's eventfd, and each
 * session's doorbell eventfd (edge-triggered, never read: a client shares it). Where the fabric has
 * no descriptor that it always makes readable, the thread looks every millisecond. After 128 looks
 * that found nothing, it looks so seldom that the looks cost a 400th of a core.
 */
#ifndef PWC_CONTROL_PROGRESS_H
#define PWC_CONTROL_PROGRESS_H

#include <stdint.h>
#include <uv.h>
#include "daemon/control/threads/command.h"
#include "daemon/control/threads/step_watch.h"
#include "daemon/engine/engine.h"
#include "shm_ring/patience.h"

struct progress;

/* Called on the control thread, from its loop. */
typedef void (*progress_notice)(void *context, const struct engine_notice *notice);
/* Called on the progress thread now and then, and before it sleeps. */
typedef void (*progress_observe)(void *context, struct engine *engine);

struct progress_config {
    struct engine_config engine;
    struct fabric *fabric;          /* taken over, and closed at the end */
    const struct engine_host *host; /* called on the progress thread */
    void *arena;                    /* engine_arena_bytes, page aligned */
    enum patience_mode mode;
    void *context;
    void (*opened)(void *context, struct engine *engine); /* before the engine's first step; may be
                                                           * NULL */
    progress_notice notice;
    progress_observe observe;     /* may be NULL */
    bool (*apart)(void *context); /* called on the progress thread after commands and before it
                                   * sleeps: whether clients are apart, and none is in the thread's
                                   * scheduler group; may be NULL */
    progress_observe errand; /* called on the progress thread, each round and after a kick; may be
                              * NULL */
};

/* Counters that other threads may read while the thread runs; relaxed atomics. */
struct progress_stats {
    uint64_t rounds;
    uint64_t sleeps;
    uint64_t work;
};

int progress_start(const struct progress_config *config, uv_loop_t *loop, struct progress **out);
/* Wakes the thread for its errand. Any thread. */
void progress_kick(struct progress *p);
/* Ends the thread, and waits until it has ended. Returns 0, or -ETIMEDOUT as progress_stop does.
 * Control thread. */
int progress_halt(struct progress *p, uint64_t limit_ms);
/* Halts the thread, runs `done` of the posted commands, and frees. -ETIMEDOUT: the thread has not
 * returned from a call in this time. Then everything is left as it is, and the process can only
 * exit. Control thread. */
int progress_stop(struct progress *p, uint64_t limit_ms);
/* Posts a command; commands run in the order of their posts. Control thread. */
void progress_post(struct progress *p, struct command *command);
/* Adds a session's doorbell to, or removes it from, what the thread sleeps on. Any thread. */
int progress_watch(struct progress *p, int eventfd);
void progress_unwatch(struct progress *p, int eventfd);
/* Processor time of the thread so far, from the system. Called by that thread or the control
 * thread. */
uint64_t progress_cpu_ns(const struct progress *p);
void progress_stats(const struct progress *p, struct progress_stats *out);
/* Any thread. */
void progress_longest_step(const struct progress *p, struct step_longest *out);
/* The engine, for the views of engine.h, which other threads may read while the thread runs. */
const struct engine *progress_engine(const struct progress *p);

#endif
