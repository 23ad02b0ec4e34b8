/* Owns the workers: their start, the wakes between them, their end (worker.h). Thread: control,
 * except for wakes. */
#include "daemon/control/threads/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "daemon/control/control.h"
#include "daemon/fabric/delay.h"
#include "daemon/fabric/loop.h"
#include "daemon/control/nodes/nodes.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/fabric/provider.h"
#include "daemon/fabric/router.h"
#include "daemon/control/survive/takeover.h"
#include "daemon/control/watch/tracing.h"
#include "daemon/control/fatal.h"

enum { WHY_MAX = 512 };

/* ---- by handle ------------------------------------------------------------------------------- */

struct client *worker_client(const struct worker *w, uint32_t handle)
{
    return handle < w->config.clients_max ? w->by_handle[handle] : NULL;
}

struct client_session *worker_session(const struct worker *w, uint32_t handle)
{
    return handle < w->config.sessions_max ? w->sessions[handle] : NULL;
}

struct client_segment *worker_segment(const struct worker *w, uint32_t handle)
{
    return handle < w->config.segments_max ? w->segments[handle] : NULL;
}

static bool is_apart(void *context)
{
    const struct worker *w = context;

    return host_table_is_apart(&w->host_table);
}

/* ---- wakes between siblings: on the progress threads ------------------------------------------
 */

/* A hook of struct engine_host: asks a sibling to wake a flow's end. One kick serves many wakes. */
static void wake_sibling(void *context, uint32_t number, uint32_t flow, enum engine_flow_end end)
{
    const struct worker *from =
        (const void *)((const char *)context - offsetof(struct worker, host_table));
    const struct control *control = from->control;
    struct worker *to = &control->workers[number / control->node_count];
    uint64_t bit = 2 * (uint64_t)flow + end;
    struct progress *thread;

    if (bit / 64 >= to->wakes.words)
        return;
    /* Release: a thread that takes the word's bit in `some` also sees the flow's bit in the
     * word. */
    atomic_fetch_or_explicit(&to->wakes.flows[bit / 64], UINT64_C(1) << bit % 64,
                             memory_order_relaxed);
    atomic_fetch_or_explicit(&to->wakes.some[bit / 4096], UINT64_C(1) << bit / 64 % 64,
                             memory_order_release);
    if (atomic_exchange_explicit(&to->wakes.due, true, memory_order_acq_rel))
        return;
    thread = atomic_load_explicit(&to->thread, memory_order_acquire);
    if (thread) /* else workers_start kicks the thread */
        progress_kick(thread);
}

static void wake_of_word(struct wakes *wakes, uint32_t word, struct engine *engine)
{
    for (uint64_t bits = atomic_exchange_explicit(&wakes->flows[word], 0, memory_order_relaxed);
         bits != 0; bits &= bits - 1) {
        uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(bits);

        engine_wake(engine, bit / 2, bit % 2 ? ENGINE_FLOW_ORIGIN : ENGINE_FLOW_TARGET);
    }
}

/* A hook of struct progress_config: passes the wakes that siblings asked for to the engine. */
static void wake_asked(void *context, struct engine *engine)
{
    struct wakes *wakes = &((struct worker *)context)->wakes;

    if (!atomic_load_explicit(&wakes->due, memory_order_relaxed))
        return;
    atomic_exchange_explicit(&wakes->due, false, memory_order_acq_rel);
    for (uint32_t i = 0; i < (wakes->words + 63) / 64; i++) {
        uint64_t words = atomic_load_explicit(&wakes->some[i], memory_order_relaxed);

        if (words != 0)
            words = atomic_exchange_explicit(&wakes->some[i], 0, memory_order_acquire);
        for (; words != 0; words &= words - 1)
            wake_of_word(wakes, i * 64 + (uint32_t)__builtin_ctzll(words), engine);
    }
}

static int open_wakes(struct worker *w)
{
    w->wakes.words = (2 * w->config.flows_max + 63) / 64;
    w->wakes.flows = calloc(w->wakes.words, sizeof(*w->wakes.flows));
    w->wakes.some = calloc((w->wakes.words + 63) / 64, sizeof(*w->wakes.some));
    return w->wakes.flows && w->wakes.some ? 0 : -ENOMEM;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Delays the traffic with other engines, for measuring. */
static int delay_net(const struct config *config, struct fabric **net)
{
    const struct delay_config delay = {
        .least_ns = config->delay_ns, .most_ns = config->delay_ns, .clock = clock_ns};

    return config->delay_ns > 0 ? delay_open(*net, &delay, net) : 0;
}

static_assert(sizeof(((struct control *)0)->provider) >= PROVIDER_NAME_MAX,
              "room for the name of any provider");

/* Makes a fabric of two fabrics: the loop to the engine itself, and the net to other engines. A
 * single engine needs no net. */
static int open_fabric(struct worker *w)
{
    struct control *control = w->control;
    const struct config *config = control->config;
    const uint32_t memories = engine_memories_max(&w->config);
    const struct router_config router = {.node = w->number, .memories_max = memories};
    struct fabric *loop, *net;
    char why[WHY_MAX] = "";
    int rc = loop_open(&(struct loop_config){.memories_max = memories}, &loop);

    if (rc < 0)
        return control_explain(control, rc, why);
    if (control->node_count == 1 && control->worker_count == 1 && !config->provider) {
        snprintf(control->provider, sizeof(control->provider), "loop");
        w->fabric = loop;
        return 0;
    }
    rc = provider_open(&(struct provider_config){.name = config->provider,
                                                 .bind = config->address,
                                                 .rails = 1u << config->rails,
                                                 .peers_max = w->config.peers,
                                                 .memories_max = memories,
                                                 .message = why,
                                                 .message_size = sizeof(why)},
                       &net, control->provider);
    if (rc < 0) {
        fabric_close(loop);
        return control_explain(control, rc, why);
    }
    rc = delay_net(config, &net);
    if (rc < 0) {
        fabric_close(net);
        fabric_close(loop);
        return control_explain(control, rc, why);
    }
    rc = router_open(&router, net, loop, &w->fabric);
    return control_explain(control, rc, why);
}

/* Maps an earlier process's state. False: there is none, or it has another layout. */
static bool inherit_arena(struct worker *w)
{
    int descriptor = store_take(&w->control->store, "%u.arena", w->engine);
    struct stat st;
    void *arena = MAP_FAILED;

    w->arena_fd = descriptor;
    if (descriptor >= 0 && fstat(descriptor, &st) == 0 && (uint64_t)st.st_size == w->arena_bytes)
        arena = mmap(NULL, w->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    w->arena = arena == MAP_FAILED ? NULL : arena;
    return w->arena && engine_arena_fits(&w->config, w->arena);
}

/* Logs why an earlier process's state is not taken over. */
static void log_why_anew(struct control *control)
{
    const struct engine_config *config = &control->workers[0].config;
    int descriptor = control->workers[0].arena_fd;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *head =
        descriptor < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_SHARED, descriptor, 0);
    uint32_t pairs = config->flows_max, binds = config->remotes_max;

    if (head != MAP_FAILED) {
        (void)engine_arena_sizes(head, &pairs, &binds);
        munmap(head, page);
    }
    if (pairs != config->flows_max || binds != config->remotes_max)
        log_line(&control->log, LOG_LEVEL_WARNING,
                 "what an earlier process has left has pairs %u and binds %u, and the "
                 "configuration says pairs %u and binds %u: beginning anew, its clients end",
                 pairs, binds, config->flows_max, config->remotes_max);
    else
        log_line(&control->log, LOG_LEVEL_WARNING,
                 "what an earlier process has left is of another version or configuration: "
                 "beginning anew, its clients end");
}

static void drop_arena(struct worker *w)
{
    if (w->arena)
        munmap(w->arena, w->arena_bytes);
    if (w->arena_fd >= 0)
        close(w->arena_fd);
    w->arena = NULL;
    w->arena_fd = -1;
    store_remove(&w->control->store, "%u.arena", w->engine);
}

/* Makes memory for the engine's state. The memory has a descriptor, so that it can outlive the
 * process. */
static int open_arena(struct worker *w)
{
    int rc = 0;

    w->arena_fd = memfd_create("pwcd-arena", MFD_CLOEXEC);
    if (w->arena_fd < 0 || fchmod(w->arena_fd, 0) != 0 ||
        ftruncate(w->arena_fd, (off_t)w->arena_bytes) != 0)
        rc = -errno;
    if (rc == 0) {
        w->arena = mmap(NULL, w->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->arena_fd, 0);
        rc = w->arena == MAP_FAILED ? -errno : 0;
    }
    if (rc < 0)
        w->arena = NULL;
    else
        (void)store_add(&w->control->store, w->arena_fd, "%u.arena", w->engine);
    return control_explain(w->control, rc, rc < 0 ? "no memory for the engine's state" : "");
}

static int open_tables(struct worker *w)
{
    const struct engine_config *config = &w->config;
    int rc;

    w->by_handle = calloc(config->clients_max, sizeof(*w->by_handle));
    w->sessions = calloc(config->sessions_max, sizeof(*w->sessions));
    w->segments = calloc(config->segments_max, sizeof(*w->segments));
    rc = w->by_handle && w->sessions && w->segments ? 0 : -ENOMEM;
    if (rc == 0 && w->control->worker_count > 1)
        rc = open_wakes(w);
    return control_explain(w->control, rc, "");
}

static int worker_prepare(struct worker *w)
{
    int rc = open_tables(w);

    if (rc == 0)
        rc = open_fabric(w);
    if (rc < 0)
        return rc;
    rc = host_table_open(&w->host_table, &w->config);
    host_table_host(&w->host_table, &w->host);
    if (w->wakes.flows)
        w->host.wake_sibling = wake_sibling;
    w->target = (struct call_target){.host_table = &w->host_table,
                                     .fabric = w->fabric,
                                     .number = w->number,
                                     .calls = &w->counters.calls};
    return control_explain(w->control, rc, "");
}

/* Starts the progress thread. The thread takes no signals except for its own faults. */
static int worker_start(struct worker *w, const struct worker_hooks *hooks)
{
    struct control *control = w->control;
    const struct progress_config config = {
        .engine = w->config,
        .fabric = w->fabric,
        .host = &w->host,
        .arena = w->arena,
        .mode = (enum patience_mode)control->config->progress,
        .context = w,
        .opened = hooks->opened,
        .notice = hooks->notice,
        .observe = hooks->observe,
        .apart = is_apart,
        .errand = w->wakes.flows ? wake_asked : NULL,
    };
    sigset_t blocked, before;
    int rc;

    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    rc = progress_start(&config, &control->loop, &w->progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->thread = w->progress;
    if (rc == 0)
        w->fabric = NULL; /* the thread owns it now */
    atomic_store_explicit(&w->counters.progress, w->progress, memory_order_release);
    return control_explain(control, rc, "");
}

int workers_open(struct control *control)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int rc = 0;

    control->workers = calloc(control->worker_count, sizeof(*control->workers));
    if (!control->workers)
        return control_explain(control, -ENOMEM, "");
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct worker *w = &control->workers[i];

        w->control = control;
        w->engine = i;
        w->number = nodes_number(control->node_count, control->node, i);
        w->config = control->engine;
        w->config.self = w->number;
        w->arena_fd = -1;
        w->arena_bytes = (engine_arena_bytes(&w->config) + page - 1) & ~(page - 1);
    }
    for (uint32_t i = 0; rc == 0 && i < control->worker_count; i++)
        rc = worker_prepare(&control->workers[i]);
    if (rc < 0)
        return rc;
    snprintf(control->identity.provider, sizeof(control->identity.provider), "%s",
             control->provider);
    control->identity.rails = control->workers[0].fabric->traits.rails;
    control->message_max = control->workers[0].fabric->traits.message_max;
    return 0;
}

/* True: each engine has inherited an arena, and none is left over. */
static bool inherit_arenas(struct control *control)
{
    uint32_t fit = 0;

    for (uint32_t i = 0; i < control->worker_count; i++)
        fit += inherit_arena(&control->workers[i]);
    return fit == control->worker_count &&
           !store_has(&control->store, "%u.arena", control->worker_count);
}

int workers_open_arenas(struct control *control)
{
    bool left = store_has(&control->store, "0.arena");
    int rc = 0;

    control->inherited = control->inherited && left && inherit_arenas(control);
    if (control->inherited)
        return 0;
    if (left)
        log_why_anew(control);
    for (uint32_t i = 0; i < control->worker_count; i++)
        drop_arena(&control->workers[i]);
    for (uint32_t i = 0; rc == 0 && i < control->worker_count; i++)
        rc = open_arena(&control->workers[i]);
    return rc;
}

int workers_start(struct control *control, const struct worker_hooks *hooks)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < control->worker_count; i++)
        rc = worker_start(&control->workers[i], hooks);
    /* An engine with an inherited arena may have asked for wakes before its siblings ran. */
    for (uint32_t i = 0; rc == 0 && control->inherited && i < control->worker_count; i++)
        progress_kick(control->workers[i].thread);
    return rc;
}

/* ---- ending ---------------------------------------------------------------------------------- */

int workers_stop(struct control *control)
{
    uint64_t limit = control->config->peer_deadline_ms;
    int rc = 0;

    if (!control->workers)
        return 0;
    /* Halt all threads first: a running thread may kick another one. */
    for (uint32_t i = 0; rc == 0 && i < control->worker_count; i++)
        if (control->workers[i].thread)
            rc = progress_halt(control->workers[i].thread, limit);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < control->worker_count; i++)
        control->workers[i].progress = NULL; /* a call that a result gives rise to is dropped */
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct worker *w = &control->workers[i];

        if (w->thread)
            (void)progress_stop(w->thread, limit);
        w->thread = NULL;
        atomic_store_explicit(&w->counters.progress, NULL, memory_order_relaxed);
    }
    return 0;
}

static void worker_close(struct worker *w)
{
    free(w->by_handle);
    free(w->sessions);
    free(w->segments);
    free(w->wakes.flows);
    free(w->wakes.some);
    host_table_close(&w->host_table);
    if (w->fabric)
        fabric_close(w->fabric);
    if (w->arena)
        munmap(w->arena, w->arena_bytes);
    if (w->arena_fd >= 0)
        close(w->arena_fd);
}

void workers_close(struct control *control)
{
    for (uint32_t i = 0; control->workers && i < control->worker_count; i++)
        worker_close(&control->workers[i]);
    free(control->workers);
    control->workers = NULL;
}
