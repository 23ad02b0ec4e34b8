/* The control thread's code without a progress thread (room.h). Thread: one. */
#include "tests/fuzz/room.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/nodes/frame.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/teams/team_home.h"
#include "daemon/fabric/loop.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/quota.h"
#include "daemon/control/requests/requests.h"
#include "daemon/control/notices.h"
#include "daemon/control/watch/publisher.h"
#include "daemon/control/watch/request_inspect.h"

#define TURNS  64
#define MEMORY (UINT64_C(16) << 20) /* memory of a client */

struct room {
    struct control control;
    struct worker worker; /* the only worker */
    struct config config;
    struct fabric *fabric;
    struct engine *engine;
    void *memory;
    struct call *first, **last; /* carried-out calls whose callbacks have not run yet */
    uint64_t now;
};

/* ---- in place of the progress thread --------------------------------------------------------- */

void __wrap_call_post(struct progress *progress, struct call *call);
int __wrap_progress_watch(struct progress *p, int fd);
void __wrap_progress_unwatch(struct progress *p, int fd);
const struct engine *__wrap_progress_engine(const struct progress *p);

/* The pointer to the progress thread, which no code here dereferences, points to the room. */
void __wrap_call_post(struct progress *progress, struct call *call)
{
    struct room *room = (struct room *)progress;

    call->command.run(&call->command, room->engine);
    call->command.next = NULL;
    *room->last = call;
    room->last = (struct call **)&call->command.next;
}

int __wrap_progress_watch(struct progress *p, int fd)
{
    return 0;
}

void __wrap_progress_unwatch(struct progress *p, int fd)
{
}

const struct engine *__wrap_progress_engine(const struct progress *p)
{
    return ((const struct room *)p)->engine;
}

static int results(struct room *room)
{
    int count = 0;

    while (room->first) {
        struct call *call = room->first;

        room->first = (struct call *)call->command.next;
        if (!room->first)
            room->last = &room->first;
        call->command.done(&call->command);
        count++;
    }
    return count;
}

static int notices(struct room *room)
{
    struct engine_notice notice;
    int count = 0;

    while (engine_notice(room->engine, &notice)) {
        notice_take(&room->worker, &notice);
        count++;
    }
    return count;
}

void room_turn(struct room *room)
{
    for (int i = 0, quiet = 0; i < TURNS && quiet < 3; i++) {
        uint64_t deadline;
        int work;

        room->now += 20000;
        work = engine_step(room->engine, room->now, 64, &deadline);
        work += results(room) + notices(room);
        uv_run(&room->control.loop, UV_RUN_NOWAIT);
        work += results(room);
        quiet = work > 0 ? 0 : quiet + 1;
    }
}

/* ---- opening and ending ---------------------------------------------------------------------- */

static bool open_engine(struct room *room)
{
    struct worker *w = &room->worker;
    struct engine_config *engine = &w->config;

    *engine = (struct engine_config){.peers = 1,
                                     .clients_max = 4,
                                     .sessions_max = 4,
                                     .segments_max = 4,
                                     .regions_max = 8,
                                     .remotes_max = 8,
                                     .flows_max = 8,
                                     .chunks_max = 16,
                                     .program_bytes = 64u << 10,
                                     .ledger_bytes = 1u << 18,
                                     .ledger_max = 32768};
    if (engine_config_check(engine) < 0 ||
        loop_open(&(struct loop_config){256, 64}, &room->fabric) < 0 ||
        host_table_open(&w->host_table, engine) < 0)
        return false;
    host_table_host(&w->host_table, &w->host);
    w->arena = calloc(1, engine_arena_bytes(engine) + 4096);
    room->memory = calloc(1, engine_private_bytes(engine) + 4096);
    return w->arena && room->memory &&
           engine_open(engine, w->arena, room->memory, room->fabric, &w->host, 1, &room->engine) ==
               0;
}

static bool open_control(struct room *room)
{
    struct control *control = &room->control;
    struct worker *w = &room->worker;
    char why[256];

    config_init(&room->config);
    room->config.clients_max = 4;
    room->config.client_memory = MEMORY;
    room->config.handlers = CONFIG_HANDLERS_ON;
    control->config = &room->config;
    control->engine = w->config;
    quota_open(control, false);
    control->node_count = 1;
    control->workers = w;
    control->worker_count = 1;
    w->control = control;
    w->arena_fd = -1;
    w->progress = (struct progress *)(void *)room;
    w->thread = w->progress;
    w->target = (struct call_target){
        .host_table = &w->host_table, .fabric = room->fabric, .calls = &w->counters.calls};
    log_open(&control->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG);
    uv_loop_init(&control->loop);
    uv_async_init(&control->loop, &control->resume, clients_resume);
    uv_timer_init(&control->loop, &control->again);
    uv_check_init(&control->loop, &control->turn_end);
    uv_check_start(&control->turn_end, clients_next_turn);
    control->resume.data = control->again.data = control->turn_end.data = control;
    control->frame = malloc(FRAME_HEAD_BYTES + CLIENT_FRAME_MAX);
    pending_init(&control->pending);
    w->by_handle = calloc(w->config.clients_max, sizeof(*w->by_handle));
    w->sessions = calloc(w->config.sessions_max, sizeof(*w->sessions));
    w->segments = calloc(w->config.segments_max, sizeof(*w->segments));
    return control->frame && w->by_handle && w->sessions && w->segments &&
           inflight_open(&control->inflight, &control->store, 2 * w->config.clients_max) == 1 &&
           memberships_open(&control->memberships, &control->store, 2 * w->config.clients_max,
                            false) == 0 &&
           directory_client_open(control) == 0 && team_home_open(control) == 0 &&
           publisher_open(control) == 0 &&
           admission_open(&control->admission, NULL, NULL, NULL, why, sizeof(why)) == 0;
}

struct room *room_new(void)
{
    struct room *room = calloc(1, sizeof(*room));

    if (!room)
        return NULL;
    room->last = &room->first;
    room->now = 1;
    return open_engine(room) && open_control(room) ? room : NULL;
}

int room_connect(struct room *room)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    client_accept(&room->control, ends[0], request_handle);
    return ends[1];
}

static void close_handle(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void room_free(struct room *room)
{
    struct control *control = &room->control;
    struct worker *w = &room->worker;

    for (int i = 0; i < TURNS && control->clients; i++) {
        for (struct client *c = control->clients; c; c = c->next)
            client_end(c, NULL);
        room_turn(room);
    }
    if (control->clients)
        abort();
    for (uint32_t i = 0; i < control->engine.sessions_max; i++)
        if (w->sessions[i] || w->segments[i])
            abort();
    publisher_close(control);
    inspections_close(control);
    uv_walk(&control->loop, close_handle, NULL);
    for (int i = 0; i < TURNS && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    if (uv_loop_close(&control->loop) != 0)
        abort();
    team_home_close(control);
    directory_client_close(control);
    pending_destroy(&control->pending);
    memberships_close(&control->memberships);
    inflight_close(&control->inflight);
    store_close(&control->store);
    free(control->frame);
    free(w->by_handle);
    free(w->sessions);
    free(w->segments);
    host_table_close(&w->host_table);
    quota_close(control);
    admission_close(&control->admission);
    fabric_close(room->fabric);
    close(control->log.descriptor);
    config_free(&room->config);
    free(w->arena);
    free(room->memory);
    free(room);
}
