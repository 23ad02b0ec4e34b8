/* Owns the planned hand-over from this process of the daemon to the next (handover.h). Thread:
 * control. */
#include "daemon/control/survive/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/fatal.h"

enum {
    START_MS = 60000,   /* time for the next process to open its fabric */
    REAP_MS = 10,       /* between looks whether a killed process is gone */
    LOOK_MS = 1,        /* between looks whether requests are under way */
    PATIENCE_MS = 2000, /* time for requests under way to end; after it their outcome is unknown */
    NEXT_SOCKET = 3,
    NEXT_STACK = 65536,
};

static const char variable[] = "PWCD_PREDECESSOR";

/* How to start the next process: its program, arguments and environment. */
struct next_start {
    const char *program;
    char *const *argv;
    char **environment;
    int socket;
    volatile int error; /* why it did not start */
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* Makes the next process's environment: ours, with the number of the descriptor that leads to us,
 * and without WATCHDOG_PID, so that the next process also feeds the watchdog. */
static char **make_environment(void)
{
    static const char watched[] = "WATCHDOG_PID=";
    static char place[sizeof(variable) + 16];
    size_t count = 0, kept = 0;
    char **out;

    while (environ[count])
        count++;
    out = calloc(count + 2, sizeof(*out));
    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], watched, sizeof(watched) - 1) != 0)
            out[kept++] = environ[i];
    snprintf(place, sizeof(place), "%s=%d", variable, NEXT_SOCKET);
    out[kept] = place;
    return out;
}

/* Runs in the next process, in our memory and on a stack of its own, while this process waits until
 * the next one has executed its program. */
static int become_next(void *argument)
{
    struct next_start *start = argument;
    struct sigaction none = {.sa_handler = SIG_DFL};
    sigset_t empty;

    sigemptyset(&empty);
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &none, NULL); /* no signal handler of ours may run in the next
                                               * process */
    if (dup2(start->socket, NEXT_SOCKET) == NEXT_SOCKET &&
        (start->socket != NEXT_SOCKET || fcntl(NEXT_SOCKET, F_SETFD, 0) == 0) &&
        sigprocmask(SIG_SETMASK, &empty, NULL) == 0)
        execve(start->program, start->argv, start->environment);
    start->error = errno;
    _exit(127);
}

/* Starts the next process as a child of our parent. Where the main process is not a child of
 * systemd, systemd kills it at once instead of waiting for its end. */
static int spawn(struct control *control, const char *program, int socket)
{
    struct next_start start = {.program = program,
                               .argv = control->argv,
                               .environment = make_environment(),
                               .socket = socket};
    uint8_t *stack = malloc(NEXT_STACK);
    sigset_t all, before;
    int rc = -ENOMEM;

    if (stack && start.environment) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        control->handover.next =
            clone(become_next, stack + NEXT_STACK,
                  CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD | SIGCHLD, &start,
                  &control->handover.process);
        rc = control->handover.next < 0 ? -errno : -start.error;
        if (control->handover.next >= 0 && rc < 0)
            close(control->handover.process);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    free(stack);
    free(start.environment);
    return rc;
}

static void signal_next(const struct handover *h, int number)
{
    (void)syscall(SYS_pidfd_send_signal, h->process, number, NULL, 0);
}

static void answer(struct control *control, int status, const char *text)
{
    struct handover *h = &control->handover;

    if (h->client && status == 0)
        reply_done_by(h->client, h->request, h->next);
    else if (h->client)
        reply_error(h->client, h->request, status, "%s", text);
    if (h->client && h->client->state != CLIENT_SERVED)
        client_await_question(h->client);
    h->client = NULL;
}

static void begin_by_signal(struct control *control)
{
    char why[512] = "";
    int rc;

    control->handover.again = false;
    rc = handover_begin(control, NULL, NULL, 0, why, sizeof(why));
    if (rc < 0)
        log_line(&control->log, LOG_LEVEL_ERROR, "no hand-over: %s", *why ? why : strerror(-rc));
}

static bool next_is_gone(const struct handover *h)
{
    struct pollfd gone = {.fd = h->process, .events = POLLIN};

    return poll(&gone, 1, 0) > 0;
}

/* Looks whether the killed process is gone, without blocking: a process in a call of the kernel may
 * take long to end. */
static void reap(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct handover *h = &control->handover;

    if (!next_is_gone(h))
        return;
    uv_timer_stop(timer);
    close(h->process);
    h->state = HANDOVER_NONE;
    service_stays(control);
    answer(control, -EPIPE, h->failure);
    if (h->again)
        begin_by_signal(control);
}

static void poll_closed(uv_handle_t *poll)
{
    struct control *control = poll->data;

    uv_timer_start(&control->handover.timer, reap, 0, REAP_MS);
}

/* Kills the next process, which does not take over: this process stays. */
static void give_up(struct control *control, const char *text)
{
    struct handover *h = &control->handover;

    log_line(&control->log, LOG_LEVEL_ERROR, "%s: this daemon stays", text);
    uv_timer_stop(&h->timer);
    uv_close((uv_handle_t *)&h->poll, poll_closed);
    close(h->socket);
    signal_next(h, SIGKILL);
    h->failure = text;
    h->state = HANDOVER_FAILED;
}

static void too_late(uv_timer_t *timer)
{
    give_up(timer->data, "the new daemon has not come up within 60 s");
}

/* Whether a request may wait for other ranks without end. The library repeats such requests. */
static bool may_last(const struct pending *p)
{
    return p->kind == PENDING_EXCHANGE || p->kind == PENDING_TEAM ||
           (p->kind == PENDING_LOOKUP && p->how == PENDING_WAITS);
}

/* Counts the client's requests for which the hand-over does not wait. */
static uint32_t lasting(struct control *control, const struct client *c)
{
    uint32_t count = 0;

    for (const struct pending *p = pending_of(&control->pending, c); p;
         p = pending_after(&control->pending, p))
        count += may_last(p);
    return count;
}

static bool quiet(struct control *control)
{
    for (const struct client *c = control->clients; c; c = c->next)
        if (c->state != CLIENT_ENDING && client_inflight(c)->count > lasting(control, c))
            return false;
    return true;
}

static void look(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct handover *h = &control->handover;

    if (!quiet(control) && clock_ns() < h->deadline_ns)
        return;
    uv_timer_stop(timer);
    h->state = HANDOVER_GOES;
    uv_stop(&control->loop);
}

static void next_speaks(uv_poll_t *poll, int status, int events)
{
    struct control *control = poll->data;
    struct handover *h = &control->handover;
    char ready;

    if (h->state != HANDOVER_STARTED)
        return;
    if (status < 0 || recv(h->socket, &ready, 1, MSG_DONTWAIT) != 1) {
        give_up(control, "the new daemon has not come up");
        return;
    }
    uv_poll_stop(poll);
    answer(control, 0, "");
    h->state = HANDOVER_WAITS;
    h->deadline_ns = clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    control->leaving = true;
    uv_timer_start(&h->timer, look, 0, LOOK_MS);
}

int handover_begin(struct control *control, const char *program, struct client *client,
                   uint32_t request, char *why, size_t why_size)
{
    struct handover *h = &control->handover;
    int ends[2], rc;

    program = program && *program ? program : control->program;
    if (*program != '/' || access(program, X_OK) != 0) {
        snprintf(why, why_size, "\"%s\": give the absolute path of a program", program);
        return -ENOENT;
    }
    if (!control->store.kept) {
        snprintf(why, why_size,
                 "nobody watches over this daemon: start it by systemd, or with "
                 "--keep");
        return -ENOTSUP;
    }
    if (h->state != HANDOVER_NONE || control->stopping) {
        snprintf(why, why_size, "this daemon is about to end or to be handed over already");
        return -EALREADY;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    rc = spawn(control, program, ends[1]);
    close(ends[1]);
    if (rc == 0) {
        rc = uv_poll_init(&control->loop, &h->poll, ends[0]);
        if (rc < 0) {
            signal_next(h, SIGKILL);
            close(h->process);
        }
    }
    if (rc < 0) {
        close(ends[0]);
        snprintf(why, why_size, "\"%s\" cannot be started: %s", program, strerror(-rc));
        return rc;
    }
    h->socket = ends[0];
    h->poll.data = control;
    h->client = client;
    h->request = request;
    h->state = HANDOVER_STARTED;
    uv_poll_start(&h->poll, UV_READABLE | UV_DISCONNECT, next_speaks);
    uv_timer_start(&h->timer, too_late, START_MS, 0);
    service_leaving(control);
    log_line(&control->log, LOG_LEVEL_INFO, "\"%s\" is to take over", program);
    return 0;
}

void handover_forget(struct control *control, const struct client *client)
{
    if (control->handover.client == client)
        control->handover.client = NULL;
}

void handover_ask(struct control *control)
{
    if (control->handover.state == HANDOVER_NONE)
        begin_by_signal(control);
    else
        control->handover.again = true;
}

void handover_open(struct control *control)
{
    struct handover *h = &control->handover;

    uv_timer_init(&control->loop, &h->timer);
    h->timer.data = control;
}

/* ---- handing over ---------------------------------------------------------------------------- */

static void send_guests(struct control *control)
{
    for (const struct client *c = control->clients; c; c = c->next) {
        char name[STORE_NAME_MAX];

        if (c->state != CLIENT_STRANGER)
            continue;
        snprintf(name, sizeof(name), "guest.%u", c->slot);
        (void)store_send_one(control->handover.socket, name, c->descriptor);
    }
}

_Noreturn void handover_finish(struct control *control)
{
    int socket = control->handover.socket, rc;

    (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    control->stopping = true;
    if (workers_stop(control) < 0)
        control_end_at_once(control, CONTROL_STUCK);
    peers_close(control);
    for (int i = 0; i < 100 && uv_run(&control->loop, UV_RUN_NOWAIT); i++)
        continue;
    if (next_is_gone(&control->handover))
        control_end_at_once(control, "the new daemon has ended: another is started");
    service_handed_over(control, control->handover.next);
    (void)uv_run(&control->loop,
                 UV_RUN_NOWAIT); /* handles signals that arrived before MAINPID was sent */
    rc = store_send(&control->store, socket);
    if (rc < 0) {
        char why[128];

        snprintf(why, sizeof(why), "the new daemon cannot take over: %s: another is started",
                 strerror(-rc));
        control_end_at_once(control, why);
    }
    send_guests(control);
    /* The next process has handled signals since it said that it is ready. */
    if (control->handover.ends)
        signal_next(&control->handover, SIGTERM);
    else if (control->handover.again)
        signal_next(&control->handover, SIGUSR2);
    log_end(&control->log);
    (void)store_send_end(socket);
    /* Where the keeper has not taken the next process, it judges by our status. */
    _exit(next_is_gone(&control->handover) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- the next one ---------------------------------------------------------------------------- */

bool handover_is_next(void)
{
    return getenv(variable) != NULL;
}

int handover_await(struct control *control)
{
    const char *place = getenv(variable);
    int socket, rc;

    if (!place)
        return 0;
    socket = (int)strtol(place, NULL, 10);
    unsetenv(variable);
    (void)fcntl(socket, F_SETFD, FD_CLOEXEC);
    if (send(socket, "", 1, MSG_NOSIGNAL) != 1)
        return -EPIPE;
    rc = store_receive(&control->store, socket);
    close(socket);
    uv_update_time(&control->loop);
    return rc;
}
