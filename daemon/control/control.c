/* Owns the daemon's start, its loop, and its end (control.h). */
#include "control.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "client.h"
#include "clock.h"
#include "jobs.h"
#include "peers.h"
#include "publisher.h"
#include "secret.h"
#include "sigbus.h"

enum { WHY_MAX = 512, ACCEPT_PAUSE_MS = 100 };

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
int control_explain(struct control *control, int rc, const char *why)
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
    control->node_count = control->nodes.count ? control->nodes.count : 1;
    control->node = config->node == UINT64_MAX ? 0 : (uint32_t)config->node;
    if (rc == 0 && control->node_count > 1 && config->node == UINT64_MAX) {
        snprintf(why, sizeof(why), "the list has %u nodes: say with --node which one this is",
                 control->node_count);
        rc = -EINVAL;
    } else if (rc == 0 && control->node >= control->node_count) {
        snprintf(why, sizeof(why), "node %u is not in the list, which has %u: nodes count from 0",
                 control->node, control->node_count);
        rc = -EINVAL;
    }
    return control_explain(control, rc, why);
}

static int open_identity(struct control *control)
{
    struct handshake_identity *self = &control->identity;
    char why[WHY_MAX] = "";
    int rc = 0;

    *self = (struct handshake_identity){
        .node = control->node,
        .nodes = control->node_count,
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
    return control_explain(control, rc, why);
}

static int open_engine_config(struct control *control)
{
    const struct config *config = control->config;
    struct engine_config *engine = &control->engine;
    char why[WHY_MAX];
    int rc;

    control->worker_count = (uint32_t)config->progress_threads;
    control->identity.engines = control->worker_count;
    if (control->worker_count > nodes_engines_max(control->node_count)) {
        snprintf(why, sizeof(why), "progress-threads %u: with %u nodes give at most %u",
                 control->worker_count, control->node_count,
                 nodes_engines_max(control->node_count));
        return control_explain(control, -EINVAL, why);
    }
    /* Others may have more engines than we. */
    engine->nodes = control->node_count > 1
                        ? control->node_count * nodes_engines_max(control->node_count)
                        : control->worker_count;
    engine->stride = control->node_count;
    engine->clients_max = (uint32_t)config->clients_max;
    engine->ledger_bytes = config->ledger_bytes;
    engine->ledger_start = (uint32_t)config->ledger_start;
    engine->ledger_max = (uint32_t)config->ledger_max;
    engine->packed_max = (uint32_t)config->packed_max;
    engine->spill_max = (uint32_t)config->spill_max;
    engine->stripe_min = (uint32_t)config->stripe_min;
    engine->protocol = (uint32_t)config->protocol;
    engine->keepalive_ns = config->keepalive_ms * UINT64_C(1000000);
    engine->peer_deadline_ns = config->peer_deadline_ms * UINT64_C(1000000);
    rc = engine_config_check(engine);
    return control_explain(
        control, rc,
        "the sizes do not fit each other: ledger-start and ledger-max are powers of two, "
        "packed-max fits a quarter of ledger-start, stripe-min is 256 or more; leave them out for "
        "the defaults");
}

static int open_tables(struct control *control)
{
    pending_init(&control->pending);
    return control_explain(control, jobs_open(control), "");
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
    return control_explain(control, rc, why);
}

static int open_listener(struct control *control)
{
    int rc = uv_poll_init(&control->loop, &control->listener, control->place.listen_fd);

    control->listener.data = control;
    if (rc == 0)
        rc = uv_poll_start(&control->listener, UV_READABLE, on_connection);
    return control_explain(control, rc, "");
}

static int open_peers(struct control *control)
{
    char why[WHY_MAX] = "";

    if (control->node_count == 1 && control->worker_count == 1)
        return 0;
    return control_explain(control, peers_open(control, why, sizeof(why)), why);
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
    sd_notifyf(0, "READY=1\nSTATUS=node %u of %u, provider %s, socket %s", control->node,
               control->node_count, control->provider, control->place.socket);
    log_line(&control->log, LOG_LEVEL_INFO, "node %u of %u serves at %s, provider %s",
             control->node, control->node_count, control->place.socket, control->provider);
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
    control->stopping = true;
    peers_close(control);
    for (struct client *c = control->clients; c; c = c->next)
        if (c->state != CLIENT_ENDING)
            reply_error(c, 0, -ESHUTDOWN, "this daemon ends");
    if (workers_stop(control) < 0)
        end_at_once(control);
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
    workers_close(control);
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
        rc = workers_open(control);
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
    control->place.lock_fd = control->place.listen_fd = -1;
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
