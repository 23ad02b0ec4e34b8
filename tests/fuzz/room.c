/* Owns a control room without a progress thread (room.h). Thread: one. */
#include "room.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"
#include "jobs.h"
#include "loop.h"

#define TURNS  64
#define MEMORY (UINT64_C(16) << 20) /* of a client */

struct room {
    struct control control; /* first: context of its notices */
    struct config config;
    struct fabric *fabric;
    struct engine *engine;
    void *memory;
    struct call *first, **last; /* carried out, not come back yet */
    uint64_t now;
};

/* ---- in place of the progress thread --------------------------------------------------------- */

void __wrap_call_post(struct progress *progress, struct call *call);
int __wrap_progress_watch(struct progress *p, int fd);
void __wrap_progress_unwatch(struct progress *p, int fd);

/* The pointer to the progress thread, which nobody looks behind, is the room. */
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
        control_notice(&room->control, &notice);
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
    struct control *control = &room->control;
    struct engine_config *engine = &control->engine;

    *engine = (struct engine_config){.nodes = 1,
                                     .clients_max = 4,
                                     .sessions_max = 4,
                                     .segments_max = 4,
                                     .regions_max = 8,
                                     .remotes_max = 8,
                                     .flows_max = 8,
                                     .chunks_max = 16,
                                     .ledger_bytes = 1u << 18,
                                     .ledger_max = 32768};
    if (engine_config_check(engine) < 0 ||
        loop_open(&(struct loop_config){256, 64}, &room->fabric) < 0 ||
        attachments_open(&control->attachments, engine) < 0)
        return false;
    attachments_host(&control->attachments, &control->host);
    control->arena = calloc(1, engine_arena_bytes(engine) + 4096);
    room->memory = calloc(1, engine_private_bytes(engine) + 4096);
    return control->arena && room->memory &&
           engine_open(engine, control->arena, room->memory, room->fabric, &control->host, 1,
                       &room->engine) == 0;
}

static bool open_control(struct room *room)
{
    struct control *control = &room->control;
    char why[256];

    config_init(&room->config);
    room->config.clients_max = 4;
    room->config.client_memory = MEMORY;
    control->config = &room->config;
    control->arena_fd = -1;
    control->progress = (struct progress *)(void *)room;
    control->target = (struct call_target){.attachments = &control->attachments,
                                           .fabric = room->fabric,
                                           .calls = &control->publisher.calls};
    log_open(&control->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG);
    uv_loop_init(&control->loop);
    uv_async_init(&control->loop, &control->resume, clients_resume);
    control->resume.data = control;
    pending_init(&control->pending);
    control->by_handle = calloc(control->engine.clients_max, sizeof(*control->by_handle));
    control->sessions = calloc(control->engine.sessions_max, sizeof(*control->sessions));
    control->segments = calloc(control->engine.segments_max, sizeof(*control->segments));
    return control->by_handle && control->sessions && control->segments &&
           jobs_open(control) == 0 &&
           admission_open(&control->admission, NULL, NULL, why, sizeof(why)) == 0;
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
    client_accept(&room->control, ends[0]);
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

    for (int i = 0; i < TURNS && control->clients; i++) {
        for (struct client *c = control->clients; c; c = c->next)
            client_end(c, NULL);
        room_turn(room);
    }
    if (control->clients)
        abort();
    for (uint32_t i = 0; i < control->engine.sessions_max; i++)
        if (control->sessions[i] || control->segments[i])
            abort();
    uv_walk(&control->loop, close_handle, NULL);
    for (int i = 0; i < TURNS && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    if (uv_loop_close(&control->loop) != 0)
        abort();
    jobs_close(control);
    pending_destroy(&control->pending);
    free(control->by_handle);
    free(control->sessions);
    free(control->segments);
    attachments_close(&control->attachments);
    admission_close(&control->admission);
    fabric_close(room->fabric);
    close(control->log.descriptor);
    config_free(&room->config);
    free(control->arena);
    free(room->memory);
    free(room);
}
