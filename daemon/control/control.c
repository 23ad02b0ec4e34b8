/* Owns the daemon's start, its loop, and its end (control.h). Thread: control. */
#include "daemon/control/control.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/start/check.h"
#include "daemon/control/start/collectives.h"
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "daemon/control/nodes/frame.h"
#include "daemon/control/survive/handover.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/nodes/names_client.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/watch/publisher.h"
#include "daemon/control/start/secret.h"
#include "shm_ring/mapping.h"
#include "shm_ring/sigbus.h"
#include "daemon/control/survive/takeover.h"
#include "daemon/control/nodes/munge_async.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_context.h"
#include "daemon/control/requests/request_memory.h"
#include "daemon/control/requests/request_offload.h"
#include "daemon/control/requests/requests.h"
#include "daemon/control/fatal.h"
#include "daemon/control/notices.h"
#include "daemon/control/teams/team_client.h"
#include "daemon/control/teams/team_home.h"
#include "daemon/control/watch/request_inspect.h"
#include "daemon/control/watch/tracing.h"

enum { WHY_MAX = 512, NO_DESCRIPTOR_MS = 100 };

/* ---- listening ------------------------------------------------------------------------------- */

static void on_connection(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer)
{
    struct control *control = timer->data;

    uv_poll_start(&control->listener, UV_READABLE, on_connection);
}

/* Takes the listener out of the loop for `ms`: as long as connections wait, the listener is
 * readable, and the loop would call us without end. */
static void accept_in(struct control *control, uint64_t ms)
{
    uv_poll_stop(&control->listener);
    uv_timer_start(&control->pause, accept_again, ms, 0);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct control *control = poll->data;

    while (accepts_more(&control->accepts, uv_now(&control->loop))) {
        int fd = accept4(control->socket.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            control->accepts.count++;
            client_accept(control, fd, request_handle);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_hostile(&control->log, LOG_SOURCE_CONNECTION, NULL,
                        "a connection cannot be accepted: %s. More descriptors (LimitNOFILE) or "
                        "fewer clients would help",
                        strerror(errno));
            accept_in(control, NO_DESCRIPTOR_MS);
        }
        return;
    }
    accept_in(control, 1);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void end(struct control *control, const char *why)
{
    if (control->stopping)
        return;
    control->stopping = true;
    log_line(&control->log, LOG_LEVEL_INFO, "%s: ending", why);
    service_ending(control);
    uv_stop(&control->loop);
}

static void take_signal(void *context, int number)
{
    struct control *control = context;

    if (number == SIGUSR2)
        handover_ask(control);
    else if (control->stopping && control->handover.state == HANDOVER_GOES)
        control->handover.ends = true;
    else
        end(control, number == SIGTERM ? "signal 15" : "signal 2");
}

/* ---- opening, one thing a function ----------------------------------------------------------- */

static int open_nodes(struct control *control)
{
    const struct config *config = control->config;
    char why[WHY_MAX] = "";
    int rc = 0;
    /* Each source overrides the lower ones, so the key of the higher source counts. In one source,
     * only one of the two keys may be given. */
    enum config_source list = config_source_of(config, "nodes"),
                       file = config_source_of(config, "nodes-file");

    if (config->nodes && config->nodes_file && list == file) {
        snprintf(why, sizeof(why), "both nodes and nodes-file are given: give one of them");
        rc = -EINVAL;
    } else if (config->nodes && list >= file) {
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

/* Chooses how nodes authenticate each other, if there are several: by a secret or by MUNGE. */
static int open_auth(struct control *control, char *why, size_t why_size)
{
    struct handshake_identity *self = &control->identity;
    const struct config *config = control->config;
    const char *text = getenv("PWCD_SECRET");
    char munge[WHY_MAX / 2] = "";
    int rc;

    if (config->auth != CONFIG_AUTH_MUNGE && config->secret)
        return secret_load(config->secret, self->secret, why, why_size);
    if (config->auth != CONFIG_AUTH_MUNGE && text)
        return secret_from_text(text, self->secret, why, why_size);
    if (self->nodes == 1)
        return 0;
    if (config->auth == CONFIG_AUTH_SECRET) {
        snprintf(why, why_size,
                 "%u nodes need a secret that they share: give --secret FILE (mode 0600, 32 bytes "
                 "or more, the same on all nodes) or PWCD_SECRET",
                 self->nodes);
        return -EINVAL;
    }
    rc = munge_works(munge, sizeof(munge));
    self->auth = HANDSHAKE_AUTH_MUNGE;
    /* Clients of an earlier process are still attached: serve them, and try to link other nodes
     * until MUNGE answers. */
    if (rc == -ECONNREFUSED && control->inherited) {
        log_line(&control->log, LOG_LEVEL_WARNING, "no other node is linked before MUNGE runs: %s",
                 munge);
        rc = 0;
    }
    if (rc < 0)
        snprintf(why, why_size,
                 "%u nodes need a secret that they share, or MUNGE (%s): give --secret FILE (mode "
                 "0600, 32 to 4096 bytes, the same on all nodes) or PWCD_SECRET, or start munged",
                 self->nodes, munge);
    return rc;
}

static int open_identity(struct control *control)
{
    struct handshake_identity *self = &control->identity;
    char why[WHY_MAX] = "";

    *self = (struct handshake_identity){
        .node = control->node,
        .nodes = control->node_count,
        .version_min = HANDSHAKE_VERSION_MIN,
        .version_max = HANDSHAKE_VERSION_MAX,
        .release = PWC_VERSION,
    };
    randombytes_buf(self->boot_id, sizeof(self->boot_id));
    return control_explain(control, open_auth(control, why, sizeof(why)), why);
}

static bool serves_others(const struct config *config)
{
    return config->allow_users || config->allow_groups;
}

/* A user's share of an engine's table. The value 0 means the engine's default if other users are
 * served, else no limit. */
static uint32_t of_user(const struct config *config, uint64_t value)
{
    return value == 0 && !serves_others(config) ? UINT32_MAX : (uint32_t)value;
}

/* A bound of queues in chunks; each begun chunk counts, so that only a bound of 0 is 0. */
static uint32_t chunks_of(uint64_t bytes)
{
    return (uint32_t)((bytes + ENGINE_CHUNK_BYTES - 1) / ENGINE_CHUNK_BYTES);
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
    /* Other nodes may have more engines than this one. */
    engine->peers = control->node_count > 1
                        ? control->node_count * nodes_engines_max(control->node_count)
                        : control->worker_count;
    engine->stride = control->node_count;
    engine->clients_max = (uint32_t)config->clients_max;
    engine->flows_max = (uint32_t)config->pairs;
    engine->remotes_max = (uint32_t)config->binds;
    engine->ledger_bytes = config->ledger_bytes;
    engine->ledger_start = (uint32_t)config->ledger_start;
    engine->ledger_max = (uint32_t)config->ledger_max;
    engine->packed_max = (uint32_t)config->packed_max;
    engine->spill_max = (uint32_t)config->spill_max;
    engine->binds_client = (uint32_t)config->client_binds;
    engine->binds_user = of_user(config, config->user_binds);
    engine->pairs_client = (uint32_t)config->client_pairs;
    engine->pairs_user = of_user(config, config->user_pairs);
    engine->chunks_client = chunks_of(config->client_queue);
    engine->chunks_user = of_user(config, chunks_of(config->user_queue));
    engine->teams_user = of_user(config, 0);
    engine->team_bytes_user = of_user(config, 0);
    engine->handler_units = (uint32_t)config->handler_units;
    engine->handler_us = (uint32_t)config->handler_us;
    engine->handler_turn = (uint32_t)config->handler_turn;
    engine->handler_share = (uint32_t)config->handler_share;
    engine->stripe_min = (uint32_t)config->stripe_min;
    engine->protocol = (uint32_t)config->protocol;
    engine->keepalive_ns = config->keepalive_ms * UINT64_C(1000000);
    engine->peer_deadline_ns = config->peer_deadline_ms * UINT64_C(1000000);
    if (config->collective) {
        rc = collectives_parse(config->collective, &engine->collectives, why, sizeof(why));
        if (rc < 0)
            return control_explain(control, rc, why);
    }
    rc = engine_config_check(engine);
    quota_open(control, serves_others(config));
    return control_explain(
        control, rc,
        "the sizes do not fit each other: ledger-start and ledger-max are powers of two, "
        "packed-max is at most 256 with ledger-start 4K and may be a quarter of a larger one, "
        "stripe-min is 256 or more; leave them out for the defaults");
}

/* Opens the table of requests under way, which also keeps our boot id. */
static int open_inflight(struct control *control)
{
    uint32_t connections = 2u * control->engine.clients_max;
    int rc = inflight_open(&control->inflight, &control->store, connections);

    control->inherited = rc == 0;
    return control_explain(control, rc < 0 ? rc : 0,
                           "no memory for the table of requests under way");
}

/* Takes over the boot id of an earlier process: by it, other nodes recognise this process as the
 * same daemon. */
static int inherit_identity(struct control *control)
{
    uint8_t *kept = control->inflight.header->boot_id;

    if (control->inherited) {
        memcpy(control->identity.boot_id, kept, sizeof(control->identity.boot_id));
        return 0;
    }
    memcpy(kept, control->identity.boot_id, sizeof(control->identity.boot_id));
    inflight_clear(&control->inflight);
    return 0;
}

static int open_tables(struct control *control)
{
    int rc;

    pending_init(&control->pending);
    control->frame = malloc(FRAME_HEAD_BYTES + CLIENT_FRAME_MAX);
    if (!control->frame)
        return control_explain(control, -ENOMEM, "");
    rc = directory_client_open(control);
    if (rc == 0)
        rc = team_home_open(control);
    if (rc == 0)
        rc = memberships_open(&control->memberships, &control->store,
                              control->inflight.header->entries, control->inherited);
    return control_explain(control, rc, "");
}

static int open_socket(struct control *control)
{
    const struct config *config = control->config;
    char why[WHY_MAX] = "";
    bool system;
    int rc = admission_open(&control->admission, config->allow_users, config->allow_groups,
                            config->inspect_groups, why, sizeof(why));

    system = admission_is_open(&control->admission);
    if (rc == 0)
        rc = socket_path_find(&control->socket, config->socket, why, sizeof(why));
    if (rc == 0)
        rc = socket_path_open(&control->socket, &control->store, system, why, sizeof(why));
    return control_explain(control, rc, why);
}

/* Ends this daemon when the keeper was killed: nothing would start the daemon again after a
 * crash. */
static void keeper_gone(uv_poll_t *poll, int status, int events)
{
    struct control *control = poll->data;

    uv_poll_stop(poll);
    end(control, "the keeper is gone");
}

static int open_lifeline(struct control *control)
{
    int rc = 0;

    control->lifeline = store_take(&control->store, "keeper");
    if (control->lifeline >= 0)
        rc = uv_poll_init(&control->loop, &control->keeper, control->lifeline);
    control->keeper.data = control;
    if (rc == 0 && control->lifeline >= 0)
        rc = uv_poll_start(&control->keeper, UV_READABLE | UV_DISCONNECT, keeper_gone);
    return control_explain(control, rc, "");
}

static int open_listener(struct control *control)
{
    int rc = uv_poll_init(&control->loop, &control->listener, control->socket.listen_fd);

    control->listener.data = control;
    if (rc == 0)
        rc = uv_poll_start(&control->listener, UV_READABLE, on_connection);
    return control_explain(control, rc, "");
}

static int take_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame)
{
    switch (frame->body_case) {
    case PWC__PEER_FRAME__BODY_TEAM_CALL:
    case PWC__PEER_FRAME__BODY_TEAM_MEMBERS:
    case PWC__PEER_FRAME__BODY_TEAM_GONE:
    case PWC__PEER_FRAME__BODY_TEAM_READY:
        return team_home_frame(control, from, frame);
    case PWC__PEER_FRAME__BODY_TEAM_ASK:
    case PWC__PEER_FRAME__BODY_TEAM_GROUP:
    case PWC__PEER_FRAME__BODY_TEAM_START:
        return team_client_frame(control, from, frame);
    case PWC__PEER_FRAME__BODY_PUBLICATION:
    case PWC__PEER_FRAME__BODY_LOOK_FOR:
    case PWC__PEER_FRAME__BODY_NAME_IS:
        return names_client_frame(control, from, frame);
    default:
        return directory_client_frame(control, from, frame);
    }
}

static void node_up(struct control *control, uint32_t node)
{
    directory_client_node_up(control, node);
    names_client_node_up(control, node);
    team_client_node_up(control, node);
    team_home_node_up(control, node);
}

static void node_lost(struct control *control, uint32_t node)
{
    directory_client_node_lost(control, node);
    team_home_node_lost(control, node);
    team_client_node_lost(control, node);
}

static int open_peers(struct control *control)
{
    static const struct peers_events events = {
        .frame = take_frame, .up = node_up, .down = directory_client_node_down, .lost = node_lost};
    char why[WHY_MAX] = "";

    if (control->node_count == 1 && control->worker_count == 1)
        return 0;
    return control_explain(control, peers_open(control, &events, why, sizeof(why)), why);
}

static void open_loop(struct control *control)
{
    uv_loop_init(&control->loop);
    uv_async_init(&control->loop, &control->resume, clients_resume);
    uv_timer_init(&control->loop, &control->again);
    control->again.data = control;
    uv_timer_init(&control->loop, &control->changes.timer);
    control->changes.timer.data = control;
    uv_timer_init(&control->loop, &control->pause);
    uv_timer_init(&control->loop, &control->paying);
    control->paying.data = control;
    uv_check_init(&control->loop, &control->turn_end);
    control->turn_end.data = control;
    uv_check_start(&control->turn_end, clients_next_turn);
    control->resume.data = control;
    control->pause.data = control;
    handover_open(control);
    own_frames_open(control, take_frame);
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
            log_line(&control->log, LOG_LEVEL_ERROR, "cannot write \"ready\" to descriptor %d: %s",
                     ready_fd, strerror(errno));
        close(ready_fd);
    }
    service_ready(control);
    /* A user who starts the daemon by hand can see that it serves, and where. */
    log_start(&control->log, ready_fd < 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "node %u of %u serves at %s, provider %s", control->node, control->node_count,
              control->socket.path, control->provider);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Frees all clients, after the progress threads have ended. Each client learns of the end from the
 * state in its sessions and from the hang-up. */
static void free_clients(struct control *control)
{
    while (control->clients) {
        struct client *c = control->clients;

        while (c->sessions) {
            session_mark_closed(c->sessions);
            c->sessions->watched = false;
            session_free(c->sessions);
        }
        while (c->segments)
            segment_free(c->segments);
        control->clients = c->next;
        client_stream_free(c);
        quota_leave(c);
        store_remove(&control->store, "client.%u", c->slot);
        store_remove(&control->store, "process.%u", c->slot);
        if (c->pidfd >= 0)
            close(c->pidfd);
        if (c->descriptor >= 0)
            close(c->descriptor);
        free(c);
    }
}

/* Closes everything in reverse order. Parts that were not opened are skipped. */
static void control_close(struct control *control)
{
    control->stopping = true;
    store_clear(&control->store);
    peers_close(control);
    for (struct client *c = control->clients; c; c = c->next)
        if (c->state != CLIENT_ENDING)
            reply_error(c, 0, -ESHUTDOWN, "this daemon ends");
    if (workers_stop(control) < 0)
        control_end_at_once(control, CONTROL_STUCK);
    publisher_close(control);
    inspections_close(control);
    /* Run the callbacks of handles that are being closed, then close all other handles. */
    for (int i = 0; i < 100 && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    uv_walk(&control->loop, close_handle, NULL);
    for (int i = 0; i < 100 && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    offload_changes_close(&control->changes);
    free_clients(control);
    quota_close(control);
    peers_free(control);
    team_client_close(control);
    node_teams_free(control);
    team_home_close(control);
    directory_client_close(control);
    own_frames_close(control);
    (void)uv_loop_close(&control->loop);
    signals_close(&control->signals);
    pending_destroy(&control->pending);
    tracing_close(control);
    workers_close(control);
    if (control->lifeline >= 0)
        close(control->lifeline);
    memberships_close(&control->memberships);
    inflight_close(&control->inflight);
    free(control->frame);
    store_close(&control->store);
    socket_path_close(&control->socket);
    admission_close(&control->admission);
    node_list_free(&control->nodes);
    sodium_memzero(&control->identity, sizeof(control->identity));
}

/* Checks early the texts of the configuration that are used only after an earlier process has
 * handed over. Where a text is wrong, the earlier process must go on serving. */
static int check_words(struct control *control)
{
    const struct config *config = control->config;
    char why[WHY_MAX] = "";
    int rc = admission_open(&control->admission, config->allow_users, config->allow_groups,
                            config->inspect_groups, why, sizeof(why));

    admission_close(&control->admission);
    return control_explain(control, rc, why);
}

static int check_entry_of_ours(struct control *control)
{
    char why[WHY_MAX] = "";

    if (control->nodes.count <= 1 || control->node >= control->nodes.count)
        return 0;
    return control_explain(control, check_entry(&control->nodes, control->node, why, sizeof(why)),
                           why);
}

static int start_workers(struct control *control)
{
    static const struct worker_hooks hooks = {
        .opened = takeover_inherit, .notice = notice_take, .observe = publisher_observe};
    int rc = publisher_open(control);

    return rc < 0 ? rc : workers_start(control, &hooks);
}

/* Where clients of other users can give back pages that the daemon touches, it waits for them. */
static void report_unmarked(struct control *control)
{
    int rc = mapping_probe_mark();

    if (rc == -EPERM)
        log_line(&control->log, LOG_LEVEL_WARNING,
                 "a client can hold this node up by holes in shared memory: give the daemon the "
                 "capability CAP_LINUX_IMMUTABLE, with which it forbids them");
    else if (rc < 0)
        log_line(&control->log, LOG_LEVEL_WARNING,
                 "a client can hold this node up by holes in shared memory, which this kernel "
                 "cannot forbid (%s): Linux 6.0 and later can",
                 strerror(-rc));
}

static int open_signals(struct control *control)
{
    return control_explain(
        control, signals_open(&control->signals, &control->loop, take_signal, control), "");
}

static int control_open(struct control *control)
{
    static int (*const steps[])(struct control * control) = {
        open_nodes,          open_identity, open_engine_config,  check_words,
        check_entry_of_ours, workers_open,  handover_await,      open_lifeline,
        open_socket,         open_inflight, workers_open_arenas, inherit_identity,
        open_tables,         start_workers, open_peers,          open_listener};
    int rc = open_signals(control);

    if (rc == 0)
        rc = control_explain(control, store_open(&control->store), "");
    /* Where several users are served, their processes must not read our memory. Do this before
     * there is a secret in it. */
    if (serves_others(control->config)) {
        (void)prctl(PR_SET_DUMPABLE, 0);
        report_unmarked(control);
    }
    /* Assume that there is state to inherit until the arenas have been looked at. A failure before
     * then leaves this state to the next process. */
    control->inherited = store_has(&control->store, "inflight");
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        rc = steps[i](control);
    if (rc < 0)
        return rc;
    uv_update_time(&control->loop); /* opening took a while: timers count from now */
    control->served_ns = clock_ns();
    takeover_resume(control);
    directory_client_resume(control);
    store_drop_rest(&control->store);
    return 0;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check_place(struct control *control)
{
    char why[WHY_MAX] = "";

    return control_explain(
        control, socket_path_find(&control->socket, control->config->socket, why, sizeof(why)),
        why);
}

static int check_provider(struct control *control)
{
    char why[WHY_MAX] = "";

    if (control->node_count == 1 && control->worker_count <= 1 && !control->config->provider)
        return 0;
    return control_explain(control, check_fabric(control->config, why, sizeof(why)), why);
}

int control_check(const struct config *config)
{
    static int (*const steps[])(struct control * control) = {
        open_nodes,          open_identity, open_engine_config, check_words,
        check_entry_of_ours, check_place,   check_provider};
    struct control *control = calloc(1, sizeof(*control));
    int rc = 0;

    if (!control || sodium_init() < 0) {
        free(control);
        return -ENOMEM;
    }
    control->config = config;
    log_open(&control->log, STDERR_FILENO, (enum log_level)config->log);
    /* Report all errors, not only the first. */
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int wrong = steps[i](control);

        rc = rc < 0 ? rc : wrong;
    }
    admission_close(&control->admission);
    node_list_free(&control->nodes);
    sodium_memzero(&control->identity, sizeof(control->identity));
    free(control);
    return rc;
}

int control_run(const struct control_options *options)
{
    struct control *control = calloc(1, sizeof(*control));
    bool was_next = handover_is_next();
    int rc;

    if (!control || sodium_init() < 0 || sigbus_install() < 0) {
        fprintf(stderr, "pwcd: error: no memory, or no random numbers, to start with\n");
        free(control);
        return EXIT_FAILURE;
    }
    control->config = options->config;
    control->was_next = was_next;
    control->started_ns = clock_ns();
    control->started_day_ns = clock_of(CLOCK_REALTIME);
    control->socket.lock_fd = control->socket.listen_fd = -1;
    control->inflight.descriptor = control->lifeline = control->signals.descriptor = -1;
    control->argv = options->argv;
    (void)!readlink("/proc/self/exe", control->program, sizeof(control->program) - 1);
    log_open(&control->log, STDERR_FILENO, (enum log_level)options->config->log);
    signal(SIGPIPE, SIG_IGN);
    open_loop(control);
    rc = control_open(control);
    if (rc < 0 && (control->inherited || was_next))
        _exit(EXIT_FAILURE); /* the store's descriptors stay, for the next process */
    if (rc == 0) {
        say_ready(control, options->ready_fd);
        uv_run(&control->loop, UV_RUN_DEFAULT);
        if (control->handover.state == HANDOVER_GOES && !control->stopping)
            handover_finish(control);
    }
    control_close(control);
    log_end(&control->log);
    free(control);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
