/* Owns the daemon's start, its loop, and its end (control.h). */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "client.h"
#include "clock.h"
#include "delay.h"
#include "jobs.h"
#include "loop.h"
#include "ofi.h"
#include "peers.h"
#include "publisher.h"
#include "router.h"
#include "secret.h"
#include "session_abi.h"
#include "sigbus.h"

enum { WHY_MAX = 512, ACCEPT_PAUSE_MS = 100 };

/* ---- notices --------------------------------------------------------------------------------- */

static void client_closed(struct control *control, uint32_t handle)
{
    struct client *c = handle < control->engine.clients_max ? control->by_handle[handle] : NULL;

    if (!c)
        return;
    control->by_handle[handle] = NULL;
    c->in_engine = false;
    client_settle(c);
}

static void quarantined(struct control *control, const struct engine_notice *notice)
{
    struct client *c =
        notice->handle < control->engine.clients_max ? control->by_handle[notice->handle] : NULL;

    if (c)
        client_end(c, notice->reason ? notice->reason : "it broke the protocol");
}

static void on_notice(void *context, const struct engine_notice *notice)
{
    struct control *control = context;

    switch (notice->kind) {
    case ENGINE_WANT_PEER:
    case ENGINE_OFFER_READY:
    case ENGINE_PEER_BROKEN:
        peers_notice(control, notice);
        break;
    case ENGINE_SEGMENT_READY:
        segment_ready(control, notice->handle, notice->status);
        break;
    case ENGINE_SEGMENT_CLOSED:
        segment_closed(control, notice->handle);
        break;
    case ENGINE_REGION_CLOSED:
        region_closed(control, notice->cookie);
        break;
    case ENGINE_BOUND:
        bind_ended(control, notice);
        break;
    case ENGINE_SESSION_CLOSED:
        session_closed(control, notice->handle);
        break;
    case ENGINE_CLIENT_CLOSED:
        client_closed(control, notice->handle);
        break;
    case ENGINE_QUARANTINED:
        quarantined(control, notice);
        break;
    default:
        log_line(&control->log, LOG_LEVEL_ERROR, "the engine gives a notice of unknown kind %u",
                 notice->kind);
        break;
    }
}

/* ---- listening ------------------------------------------------------------------------------- */

static void on_connection(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer)
{
    struct control *control = timer->data;

    uv_poll_start(&control->listener, UV_READABLE, on_connection);
}

/* Whoever knocks stays at the door, which would wake us without end. */
static void stop_accepting(struct control *control, int error)
{
    log_hostile(&control->log,
                "a connection cannot be accepted: %s. More descriptors (LimitNOFILE) or fewer "
                "clients would help",
                strerror(error));
    uv_poll_stop(&control->listener);
    uv_timer_start(&control->pause, accept_again, ACCEPT_PAUSE_MS, 0);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct control *control = poll->data;

    /* A few at a time: others have their turn. */
    for (int i = 0; i < 8; i++) {
        int fd = accept4(control->place.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                stop_accepting(control, errno);
            return;
        }
        client_accept(control, fd);
    }
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct control *control = handle->data;

    if (control->stopping)
        return;
    control->stopping = true;
    log_line(&control->log, LOG_LEVEL_INFO, "signal %d: ending", number);
    sd_notify(0, "STOPPING=1");
    uv_stop(&control->loop);
}

/* ---- opening, one thing a function ----------------------------------------------------------- */

/* Says what is wrong, in one place. */
static int explain(struct control *control, int rc, const char *why)
{
    if (rc < 0)
        log_line(&control->log, LOG_LEVEL_ERROR, "%s", *why ? why : strerror(-rc));
    return rc;
}

static int open_nodes(struct control *control)
{
    const struct config *config = control->config;
    char why[WHY_MAX] = "";
    int rc = 0;

    if (config->nodes && config->nodes_file) {
        snprintf(why, sizeof(why), "both nodes and nodes-file are given: give one of them");
        rc = -EINVAL;
    } else if (config->nodes) {
        rc = node_list_parse(&control->nodes, config->nodes, ',', why, sizeof(why));
    } else if (config->nodes_file) {
        rc = node_list_load(&control->nodes, config->nodes_file, why, sizeof(why));
    }
    control->engine.nodes = control->nodes.count ? control->nodes.count : 1;
    control->engine.node = config->node == UINT64_MAX ? 0 : (uint32_t)config->node;
    if (rc == 0 && control->engine.nodes > 1 && config->node == UINT64_MAX) {
        snprintf(why, sizeof(why), "the list has %u nodes: say with --node which one this is",
                 control->engine.nodes);
        rc = -EINVAL;
    } else if (rc == 0 && control->engine.node >= control->engine.nodes) {
        snprintf(why, sizeof(why), "node %u is not in the list, which has %u: nodes count from 0",
                 control->engine.node, control->engine.nodes);
        rc = -EINVAL;
    }
    return explain(control, rc, why);
}

static int open_identity(struct control *control)
{
    struct handshake_identity *self = &control->identity;
    char why[WHY_MAX] = "";
    int rc = 0;

    *self = (struct handshake_identity){
        .node = control->engine.node,
        .nodes = control->engine.nodes,
        .version_min = HANDSHAKE_VERSION_MIN,
        .version_max = HANDSHAKE_VERSION_MAX,
    };
    randombytes_buf(self->boot_id, sizeof(self->boot_id));
    if (control->config->secret) {
        rc = secret_load(control->config->secret, self->secret, why, sizeof(why));
    } else if (self->nodes > 1) {
        snprintf(why, sizeof(why),
                 "%u nodes need a secret that they share: give --secret FILE (mode 0600, 32 bytes "
                 "or more, the same on all nodes)",
                 self->nodes);
        rc = -EINVAL;
    }
    return explain(control, rc, why);
}

static int open_engine_config(struct control *control)
{
    const struct config *config = control->config;
    struct engine_config *engine = &control->engine;
    int rc;

    engine->clients_max = (uint32_t)config->clients_max;
    engine->ledger_bytes = config->ledger_bytes;
    engine->ledger_start = (uint32_t)config->ledger_start;
    engine->ledger_max = (uint32_t)config->ledger_max;
    engine->packed_max = (uint32_t)config->packed_max;
    engine->spill_max = (uint32_t)config->spill_max;
    engine->stripe_min = (uint32_t)config->stripe_min;
    engine->protocol = (uint32_t)config->protocol;
    rc = engine_config_check(engine);
    return explain(
        control, rc,
        "the sizes do not fit each other: ledger-start and ledger-max are powers of two, "
        "packed-max fits a quarter of ledger-start, stripe-min is 256 or more; leave them out for "
        "the defaults");
}

/* A longer wire, for measuring: between nodes only. */
static int delay_net(const struct config *config, struct fabric **net)
{
    const struct delay_config delay = {
        .least_ns = config->delay_ns, .most_ns = config->delay_ns, .clock = clock_ns};

    return config->delay_ns > 0 ? delay_open(*net, &delay, net) : 0;
}

static int open_fabric(struct control *control, struct fabric **out)
{
    const struct config *config = control->config;
    const struct router_config router = {.node = control->engine.node};
    struct fabric *loop, *net;
    char why[WHY_MAX] = "";
    int rc = loop_open(&(struct loop_config){0}, &loop);

    if (rc < 0)
        return explain(control, rc, why);
    if (control->engine.nodes == 1 && !config->provider) {
        snprintf(control->provider, sizeof(control->provider), "loop");
        *out = loop;
        return 0;
    }
    rc = ofi_open(&(struct ofi_config){.provider = config->provider,
                                       .bind = config->address,
                                       .rails = 1u << config->rails,
                                       .peers_max = control->engine.nodes,
                                       .message = why,
                                       .message_size = sizeof(why)},
                  &net);
    if (rc < 0) {
        fabric_close(loop);
        return explain(control, rc, why);
    }
    snprintf(control->provider, sizeof(control->provider), "%s", ofi_provider_name(net));
    rc = delay_net(config, &net);
    if (rc < 0) {
        fabric_close(net);
        fabric_close(loop);
        return explain(control, rc, why);
    }
    rc = router_open(&router, net, loop, out);
    return explain(control, rc, why);
}

/* The engine's state is in memory that has a descriptor, so that it can outlive the process. */
static int open_arena(struct control *control)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int rc = 0;

    control->arena_bytes = (engine_arena_bytes(&control->engine) + page - 1) & ~(page - 1);
    control->arena_fd = memfd_create("pwcd-arena", MFD_CLOEXEC);
    if (control->arena_fd < 0 || fchmod(control->arena_fd, 0) != 0 ||
        ftruncate(control->arena_fd, (off_t)control->arena_bytes) != 0)
        rc = -errno;
    if (rc == 0) {
        control->arena = mmap(NULL, control->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                              control->arena_fd, 0);
        rc = control->arena == MAP_FAILED ? -errno : 0;
    }
    if (rc < 0)
        control->arena = NULL;
    return explain(control, rc, rc < 0 ? "no memory for the engine's state" : "");
}

static int open_tables(struct control *control)
{
    const struct engine_config *engine = &control->engine;

    pending_init(&control->pending);
    control->by_handle = calloc(engine->clients_max, sizeof(*control->by_handle));
    control->sessions = calloc(engine->sessions_max, sizeof(*control->sessions));
    control->segments = calloc(engine->segments_max, sizeof(*control->segments));
    if (!control->by_handle || !control->sessions || !control->segments)
        return explain(control, -ENOMEM, "");
    return explain(control, jobs_open(control), "");
}

/* The progress thread takes no signals, but for the faults that it raises itself. */
static int open_progress(struct control *control)
{
    struct progress_config config = {
        .engine = control->engine,
        .host = &control->host,
        .arena = control->arena,
        .mode = (enum patience_mode)control->config->progress,
        .context = control,
        .notice = on_notice,
        .observe = publisher_observe,
    };
    sigset_t blocked, before;
    int rc = open_fabric(control, &config.fabric);

    if (rc < 0)
        return rc;
    snprintf(control->identity.provider, sizeof(control->identity.provider), "%s",
             control->provider);
    control->identity.rails = config.fabric->traits.rails;
    control->message_max = config.fabric->traits.message_max;
    rc = attachments_open(&control->attachments, &control->engine);
    attachments_host(&control->attachments, &control->host);
    if (rc == 0)
        rc = publisher_open(control);
    control->target = (struct call_target){.attachments = &control->attachments,
                                           .fabric = config.fabric,
                                           .calls = &control->publisher.calls,
                                           .count_context = control,
                                           .count = publisher_count};
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (rc == 0)
        rc = progress_start(&config, &control->loop, &control->progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store_explicit(&control->publisher.progress, control->progress, memory_order_release);
    if (rc < 0)
        fabric_close(config.fabric);
    return explain(control, rc, "");
}

static int open_place(struct control *control)
{
    const struct config *config = control->config;
    char why[WHY_MAX] = "";
    bool system;
    int rc = admission_open(&control->admission, config->allow_users, config->allow_groups, why,
                            sizeof(why));

    system = admission_is_open(&control->admission);
    /* Where several users are served, none may look into us. */
    if (rc == 0 && system)
        (void)prctl(PR_SET_DUMPABLE, 0);
    if (rc == 0)
        rc = place_path(&control->place, config->socket, why, sizeof(why));
    if (rc == 0)
        rc = place_open(&control->place, admission_is_open(&control->admission), why, sizeof(why));
    return explain(control, rc, why);
}

static int open_listener(struct control *control)
{
    int rc = uv_poll_init(&control->loop, &control->listener, control->place.listen_fd);

    control->listener.data = control;
    if (rc == 0)
        rc = uv_poll_start(&control->listener, UV_READABLE, on_connection);
    return explain(control, rc, "");
}

static int open_peers(struct control *control)
{
    char why[WHY_MAX] = "";

    if (control->engine.nodes == 1)
        return 0;
    return explain(control, peers_open(control, why, sizeof(why)), why);
}

static void open_loop(struct control *control)
{
    uv_loop_init(&control->loop);
    uv_signal_init(&control->loop, &control->terminate);
    uv_signal_init(&control->loop, &control->interrupt);
    uv_async_init(&control->loop, &control->resume, clients_resume);
    uv_timer_init(&control->loop, &control->pause);
    control->terminate.data = control->interrupt.data = control->resume.data = control;
    control->pause.data = control;
    uv_signal_start(&control->terminate, on_signal, SIGTERM);
    uv_signal_start(&control->interrupt, on_signal, SIGINT);
}

/* Segments and sessions are descriptors for a moment each; connections are for long. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- serving --------------------------------------------------------------------------------- */

static void say_ready(struct control *control, int ready_fd)
{
    if (ready_fd >= 0) {
        ssize_t said;

        do {
            said = write(ready_fd, "ready\n", 6);
        } while (said < 0 && errno == EINTR);
        if (said < 0)
            log_line(&control->log, LOG_LEVEL_ERROR, "nobody could be told on descriptor %d: %s",
                     ready_fd, strerror(errno));
        close(ready_fd);
    }
    sd_notifyf(0, "READY=1\nSTATUS=node %u of %u, provider %s, socket %s", control->engine.node,
               control->engine.nodes, control->provider, control->place.socket);
    log_line(&control->log, LOG_LEVEL_INFO, "node %u of %u serves at %s, provider %s",
             control->engine.node, control->engine.nodes, control->place.socket, control->provider);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Clients learn by the session's word and by the hang-up. The progress thread has ended. */
static void free_clients(struct control *control)
{
    while (control->clients) {
        struct client *c = control->clients;

        while (c->sessions) {
            session_say_closed(c->sessions);
            c->sessions->watched = false;
            session_free(c->sessions);
        }
        while (c->segments)
            segment_free(c->segments);
        control->clients = c->next;
        client_stream_free(c);
        if (c->pidfd >= 0)
            close(c->pidfd);
        if (c->descriptor >= 0)
            close(c->descriptor);
        free(c);
    }
}

/* The progress thread stands still, in the provider most likely, and what it works on with it. */
static void end_at_once(struct control *control)
{
    log_line(&control->log, LOG_LEVEL_ERROR,
             "the progress thread does not come back from a call: this daemon ends without it");
    if (control->publisher.counters.path)
        (void)unlink(control->publisher.counters.path);
    place_close(&control->place);
    _exit(EXIT_FAILURE);
}

/* Ends all in reverse. What was not opened is passed over. */
static void control_close(struct control *control)
{
    struct progress *progress;

    control->stopping = true;
    peers_close(control);
    for (struct client *c = control->clients; c; c = c->next)
        if (c->state != CLIENT_ENDING)
            reply_error(c, 0, -ESHUTDOWN, "this daemon ends");
    progress = control->progress;
    control->progress = NULL; /* what results still ask for is not posted any more */
    if (progress && progress_stop(progress, control->config->peer_deadline_ms) < 0)
        end_at_once(control);
    atomic_store_explicit(&control->publisher.progress, NULL, memory_order_relaxed);
    publisher_close(control);
    /* Let what closes close, then take down what is left. */
    for (int i = 0; i < 100 && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    uv_walk(&control->loop, close_handle, NULL);
    for (int i = 0; i < 100 && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    free_clients(control);
    peers_free(control);
    jobs_close(control);
    (void)uv_loop_close(&control->loop);
    pending_destroy(&control->pending);
    free(control->by_handle);
    free(control->sessions);
    free(control->segments);
    attachments_close(&control->attachments);
    if (control->arena)
        munmap(control->arena, control->arena_bytes);
    if (control->arena_fd >= 0)
        close(control->arena_fd);
    place_close(&control->place);
    admission_close(&control->admission);
    node_list_free(&control->nodes);
    sodium_memzero(&control->identity, sizeof(control->identity));
}

static int control_open(struct control *control)
{
    int rc = open_nodes(control);

    if (rc == 0)
        rc = open_identity(control);
    if (rc == 0)
        rc = open_engine_config(control);
    if (rc == 0)
        rc = open_place(control);
    if (rc == 0)
        rc = open_tables(control);
    if (rc == 0)
        rc = open_arena(control);
    if (rc == 0)
        rc = open_progress(control);
    if (rc == 0)
        rc = open_peers(control);
    if (rc == 0)
        rc = open_listener(control);
    return rc;
}

int control_run(const struct control_options *options)
{
    struct control *control = calloc(1, sizeof(*control));
    int rc;

    if (!control || sodium_init() < 0 || sigbus_install() < 0) {
        fprintf(stderr, "pwcd: error: no memory, or no random numbers, to start with\n");
        free(control);
        return EXIT_FAILURE;
    }
    control->config = options->config;
    control->started_ns = clock_ns();
    control->arena_fd = control->place.lock_fd = control->place.listen_fd = -1;
    log_open(&control->log, STDERR_FILENO, (enum log_level)options->config->log);
    raise_limits();
    signal(SIGPIPE, SIG_IGN);
    open_loop(control);
    rc = control_open(control);
    if (rc == 0) {
        say_ready(control, options->ready_fd);
        uv_run(&control->loop, UV_RUN_DEFAULT);
    }
    control_close(control);
    free(control);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
