#include "tests/fabric/far.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAR_COOKIE (END_COOKIES - 1) /* not one of near's: a loop's ends share the log */

/* ---- serving -------------------------------------------------------------------------------- */

static int sleep_until(struct end *end, uint32_t arrivals, int socket, uint32_t *slept)
{
    struct far_reply asleep = {.status = 0};
    int descriptor, rc = 0;

    while (end->log->arrivals < arrivals && rc == 0) {
        if (end_pump(end) > 0)
            continue;
        rc = fabric_arm(end->fabric, &descriptor);
        if (rc == -EAGAIN) {
            rc = 0;
            continue;
        }
        if (rc)
            break;
        if ((*slept)++ == 0 && send(socket, &asleep, sizeof(asleep), 0) < 0)
            return -errno;
        rc = end_sleep(descriptor);
    }
    return rc;
}

static int write_back(struct end *end, const struct far_request *q)
{
    struct fabric_write w = {
        .peer = OTHER,
        .memory = end->registered.index,
        .source = end->memory + q->offset,
        .length = q->length,
        .remote_address = q->target,
        .remote_key = q->key,
        .cookie = FAR_COOKIE,
        .immediate = q->immediate,
        .announce = true,
    };

    end->log->ended[FAR_COOKIE] = 0;

    int rc = end_write(end, &w);

    if (rc)
        return rc;
    return end_await_ended(end, FAR_COOKIE, 1) ? end->log->status[FAR_COOKIE] : -ETIMEDOUT;
}

static void serve(struct end *end, const struct far_request *q, int socket, struct far_reply *reply)
{
    *reply = (struct far_reply){0};
    switch (q->kind) {
    case FAR_HELLO:
        reply->target = end->registered.address;
        reply->key = end->registered.key;
        reply->status = fabric_address_of(end->fabric, &reply->address);
        break;
    case FAR_CONNECT:
        reply->status = fabric_connect(end->fabric, OTHER, &q->address);
        break;
    case FAR_DISCONNECT:
        reply->status = fabric_disconnect(end->fabric, OTHER);
        break;
    case FAR_EXPECT:
        end_expect(end, q->immediate, end->memory + q->offset, q->length, q->seed);
        break;
    case FAR_AWAIT:
        reply->status = end_await_arrivals(end, q->count) ? 0 : -ETIMEDOUT;
        reply->count = end->log->violations;
        break;
    case FAR_FILL:
        pattern_fill(end->memory + q->offset, q->length, q->seed);
        break;
    case FAR_CHECK:
        reply->status = pattern_holds(end->memory + q->offset, q->length, q->seed) ? 0 : -EBADMSG;
        break;
    case FAR_WRITE:
        reply->status = write_back(end, q);
        break;
    case FAR_SLEEP:
        reply->status = sleep_until(end, q->count, socket, &reply->count);
        break;
    case FAR_PAUSE:
    case FAR_QUIT:
        break;
    default:
        reply->status = -EINVAL;
    }
}

static int serve_all(struct end *end, int socket)
{
    struct far_request q = {0};
    struct far_reply reply;

    while (q.kind != FAR_QUIT) {
        int flags = q.kind == FAR_PAUSE ? 0 : MSG_DONTWAIT;
        ssize_t got = recv(socket, &q, sizeof(q), flags);

        if (got == sizeof(q)) {
            serve(end, &q, socket, &reply);
            if (send(socket, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
                return 1;
        } else if (got >= 0 || errno != EAGAIN) {
            return 1; /* the near end has ended */
        } else {
            (void)end_pump(end);
        }
    }
    return 0;
}

int far_main(const char *rig_name, const char *role, int socket)
{
    static struct end_log log;
    const struct rig *rig = rig_find(rig_name);
    struct fabric *fabric;
    struct end end;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!rig || rig_open(rig, role, &fabric))
        return 1;
    if (end_open(&end, fabric, &log))
        return 1;

    int rc = serve_all(&end, socket);

    end_close(&end, true);
    return rc;
}

/* ---- asking --------------------------------------------------------------------------------- */

int far_again(struct far *far, struct end *near, struct far_reply *reply)
{
    int64_t limit = milliseconds() + 2 * END_PATIENCE;

    while (milliseconds() < limit) {
        ssize_t got = recv(far->socket, reply, sizeof(*reply), MSG_DONTWAIT);

        if (got == sizeof(*reply))
            return 0;
        if (got >= 0 || errno != EAGAIN)
            return -EPIPE;
        (void)end_pump(near);
    }
    return -ETIMEDOUT;
}

int far_call(struct far *far, struct end *near, const struct far_request *request,
             struct far_reply *reply)
{
    if (far->pid == 0) {
        serve(&far->end, request, -1, reply);
        return 0;
    }
    if (send(far->socket, request, sizeof(*request), MSG_NOSIGNAL) < 0)
        return -errno;
    return far_again(far, near, reply);
}

/* Starts the far process as a new program, because libfabric does not survive a fork. */
static int spawn(struct far *far, const struct rig *rig)
{
    char role[32], descriptor[16];
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
        return -errno;
    (void)snprintf(role, sizeof(role), "%d.far", (int)getpid());
    (void)snprintf(descriptor, sizeof(descriptor), "%d", pair[1]);
    far->pid = fork();
    if (far->pid == 0) {
        close(pair[0]);
        execl("/proc/self/exe", "far", rig->name, role, descriptor, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    far->socket = pair[0];
    return far->pid < 0 ? -errno : 0;
}

int far_start(struct far *far, struct end *near, const struct rig *rig, struct far_reply *hello)
{
    struct far_request q = {.kind = FAR_HELLO};
    int rc;

    *far = (struct far){.socket = -1};
    rc = rig->provider ? spawn(far, rig) : end_open(&far->end, near->fabric, near->log);
    if (rc)
        return rc;
    rc = far_call(far, near, &q, hello);
    return rc ? rc : hello->status;
}

static void reap(struct far *far)
{
    close(far->socket);
    (void)waitpid(far->pid, NULL, 0);
}

void far_stop(struct far *far, struct end *near)
{
    struct far_request q = {.kind = FAR_QUIT};
    struct far_reply reply;

    if (far->pid == 0) {
        end_close(&far->end, false);
        return;
    }
    if (far_call(far, near, &q, &reply))
        (void)kill(far->pid, SIGKILL);
    reap(far);
}

void far_kill(struct far *far)
{
    (void)kill(far->pid, SIGKILL);
    reap(far);
}
