/* Owns the child process and the raw connections (daemon.h). Thread: one. */
#include "tests/lib/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "tests/lib/program.h"
#include "daemon/control/clients/message.h"
#include "proto/clock.h"

enum { ARGUMENTS_MAX = 32, WAIT_MS = 20000, STUCK_MAX = 20 };

/* ---- the process ----------------------------------------------------------------------------- */

static int start(struct daemon *d, const char *program, const char *const *arguments, bool *ready)
{
    const char *argv[ARGUMENTS_MAX] = {program,      "--config", "none",  "--socket", d->socket,
                                       "--ready-fd", "3",        "--log", "info"};
    const struct program_options options = {.uid = d->uid,
                                            .streams = 1u << PROGRAM_ERR | 1u << PROGRAM_READY};
    int from[PROGRAM_STREAMS], n = 9;
    char end;

    for (; arguments && *arguments && n < ARGUMENTS_MAX - 1; arguments++)
        argv[n++] = *arguments;
    d->pid = program_start(argv, &options, from);
    if (d->pid < 0)
        return d->pid;
    d->log = from[PROGRAM_ERR];
    /* The daemon closes the pipe when it has the descriptors with which it serves. */
    *ready = program_is_ready(from[PROGRAM_READY]) && read(from[PROGRAM_READY], &end, 1) == 0;
    close(from[PROGRAM_READY]);
    return 0;
}

int daemon_start(struct daemon *d, const char *program, const char *const *arguments)
{
    return daemon_start_as(d, 0, program, arguments);
}

int daemon_start_as(struct daemon *d, uid_t uid, const char *program, const char *const *arguments)
{
    bool ready = false;
    int rc;

    memset(d, 0, sizeof(*d));
    d->uid = uid;
    strcpy(d->directory, "/tmp/pwc-daemon-XXXXXX");
    if (!mkdtemp(d->directory))
        return -errno;
    if (uid != 0 && chown(d->directory, uid, uid) != 0)
        return -errno;
    snprintf(d->socket, sizeof(d->socket), "%s/pwcd.sock", d->directory);
    rc = start(d, program, arguments, &ready);
    return rc == 0 && !ready ? -ETIMEDOUT : rc;
}

int daemon_start_beside(struct daemon *d, const struct daemon *first, const char *socket,
                        const char *program, const char *const *arguments, bool *ready)
{
    memset(d, 0, sizeof(*d));
    snprintf(d->socket, sizeof(d->socket), "%s/%s", first->directory, socket);
    return start(d, program, arguments, ready);
}

/* Reads more of the daemon's log. Returns false if the daemon has ended, or `until` has passed.
 * Text beyond the room is dropped. */
static bool listen_to(struct daemon *d, int64_t until)
{
    struct pollfd wait = {.fd = d->log, .events = POLLIN};
    int64_t left = until - now_ms();
    size_t room = sizeof(d->said) - 1 - d->said_bytes;
    char spare[4096];
    ssize_t got;

    if (left <= 0 || poll(&wait, 1, (int)left) != 1)
        return false;
    got = read(d->log, room ? d->said + d->said_bytes : spare, room ? room : sizeof(spare));
    if (got > 0 && room)
        d->said_bytes += (size_t)got;
    return got > 0;
}

bool daemon_says(struct daemon *d, const char *text)
{
    int64_t until = now_ms() + WAIT_MS;

    while (!strstr(d->said, text))
        if (!listen_to(d, until))
            return false;
    return true;
}

int daemon_stop(struct daemon *d)
{
    int64_t until = now_ms() + WAIT_MS;
    int status = -1, rc;

    if (d->pid <= 0)
        return -ESRCH;
    kill(d->pid, SIGTERM);
    while (listen_to(d, until)) /* the log ends with the daemon */
        continue;
    if (now_ms() >= until)
        kill(d->pid, SIGKILL);
    waitpid(d->pid, &status, 0);
    close(d->log);
    d->pid = 0;
    rc = WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
    if (d->directory[0] && rmdir(d->directory) != 0) {
        int why = -errno;

        fprintf(stderr, "%s: %s: something was left there\n", d->directory, strerror(-why));
        rc = rc == 0 ? why : rc;
    }
    if (!WIFEXITED(status) || strstr(d->said, "Sanitizer") || strstr(d->said, "runtime error"))
        fprintf(stderr, "%s\n", d->said);
    return rc;
}

int daemon_end(struct daemon *d, int failed)
{
    int rc = daemon_stop(d);

    if (rc != 0)
        fprintf(stderr, "the daemon ended with %d\n", rc);
    return failed || rc != 0;
}

void daemon_kill(struct daemon *d)
{
    static const char *const names[] = {"pwcd.sock", "pwcd.counters", "pwcd.lock"};
    char path[128];

    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
    close(d->log);
    d->pid = 0;
    for (size_t i = 0; d->directory[0] && i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", d->directory, names[i]);
        (void)unlink(path);
    }
    if (d->directory[0])
        (void)rmdir(d->directory);
}

/* ---- connections ----------------------------------------------------------------------------- */

int raw_connect(const struct daemon *d)
{
    return raw_connect_to(d->socket);
}

int raw_connect_as(const struct daemon *d, uid_t uid)
{
    int s;

    if (seteuid(uid) != 0)
        return -errno;
    s = raw_connect(d);
    return seteuid(0) != 0 ? -errno : s;
}

int raw_connect_to(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(s, (struct sockaddr *)&name, sizeof(name)) != 0) {
        int rc = -errno;

        close(s);
        return rc;
    }
    return s;
}

#define HEAD_BYTES 4u /* the length in front of a frame's body */

static void head_write(uint8_t head[HEAD_BYTES], size_t size)
{
    for (uint32_t i = 0; i < HEAD_BYTES; i++)
        head[i] = (uint8_t)(size >> 8 * i);
}

bool raw_send(int s, const void *body, size_t size, int fd)
{
    uint8_t head[HEAD_BYTES];
    struct iovec parts[] = {{head, sizeof(head)}, {(void *)(uintptr_t)body, size}};
    _Alignas(struct cmsghdr) char control[MESSAGE_ROOM(1)] = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    head_write(head, size);
    if (fd >= 0)
        message_attach(&message, control, &fd, 1);
    return sendmsg(s, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof(head) + size);
}

bool raw_request(int s, uint32_t id, Pwc__ClientRequest *request)
{
    uint8_t bytes[65536];
    size_t size;

    request->id = id;
    size = pwc__client_request__get_packed_size(request);
    if (size > sizeof(bytes))
        return false;
    pwc__client_request__pack(request, bytes);
    return raw_send(s, bytes, size, -1);
}

bool raw_requests(int s, Pwc__ClientRequest *requests, uint32_t count)
{
    uint8_t bytes[4096];
    size_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        size_t size;

        requests[i].id = i + 1;
        size = pwc__client_request__get_packed_size(&requests[i]);
        if (used + HEAD_BYTES + size > sizeof(bytes))
            return false;
        head_write(bytes + used, size);
        pwc__client_request__pack(&requests[i], bytes + used + HEAD_BYTES);
        used += HEAD_BYTES + size;
    }
    return send(s, bytes, used, MSG_NOSIGNAL) == (ssize_t)used;
}

static bool read_all(int s, uint8_t *to, size_t size, int fds[3], int *fd_count)
{
    for (size_t have = 0; have < size;) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
        struct iovec part = {to + have, size - have};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        ssize_t got = recvmsg(s, &message, MSG_CMSG_CLOEXEC);

        if (got <= 0)
            return false;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
            *fd_count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fds, CMSG_DATA(c), (size_t)*fd_count * sizeof(int));
        }
        have += (size_t)got;
    }
    return true;
}

Pwc__ClientReply *raw_reply(int s, int fds[3], int *fd_count)
{
    static uint8_t body[1 << 20];
    uint8_t head[4];
    size_t size;

    *fd_count = 0;
    if (!read_all(s, head, sizeof(head), fds, fd_count))
        return NULL;
    size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (size > sizeof(body) || !read_all(s, body, size, fds, fd_count))
        return NULL;
    return pwc__client_reply__unpack(NULL, size, body);
}

bool raw_hangs_up(int s)
{
    int64_t until = now_ms() + WAIT_MS;
    char bytes[4096];

    for (;;) {
        struct pollfd wait = {.fd = s, .events = POLLIN | POLLRDHUP};
        int64_t left = until - now_ms();

        if (left <= 0 || poll(&wait, 1, (int)left) != 1)
            return false;
        if (recv(s, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
            return true;
    }
}

/* ---- well-behaved clients ------------------------------------------------------------------- */

bool raw_ask_hello(int s, const char *job, uint32_t rank, uint32_t size)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;

    hello.version_min = hello.version_max = 1;
    hello.rings = SESSION_VERSION;
    hello.job = (char *)(uintptr_t)job;
    hello.rank = rank;
    hello.size = size;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    return raw_request(s, 1, &request);
}

int raw_hello(int s, const char *job, uint32_t rank, uint32_t size)
{
    Pwc__ClientReply *reply;
    int fds[3], count, status = -ECONNRESET;

    if (!raw_ask_hello(s, job, rank, size))
        return status;
    reply = raw_reply(s, fds, &count);
    if (reply && reply->body_case == PWC__CLIENT_REPLY__BODY_WELCOME)
        status = 0;
    else if (reply && reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR)
        status = reply->error->status;
    if (reply)
        pwc__client_reply__free_unpacked(reply, NULL);
    return status;
}

/* Asks the daemon once whether its progress threads run. */
static bool says_running(const struct daemon *d, bool *stuck)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    Pwc__ClientReply *reply = NULL;
    int fds[3], count, s = raw_connect(d);
    bool running = false;

    *stuck = false;
    if (s < 0)
        return false;
    inspect.what = "status";
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    if (raw_request(s, 7, &request))
        reply = raw_reply(s, fds, &count);
    if (reply && reply->body_case == PWC__CLIENT_REPLY__BODY_INSPECTED && reply->id == 7) {
        running = strstr(reply->inspected->json, "\"progress\":\"running\"");
        *stuck = strstr(reply->inspected->json, "\"progress\":\"stuck\"");
    }
    if (reply)
        pwc__client_reply__free_unpacked(reply, NULL);
    close(s);
    return running;
}

bool raw_is_served(const struct daemon *d)
{
    bool running = false, stuck = true;

    /* On a busy machine the progress thread may take more than a second to answer. */
    for (int i = 0; i < STUCK_MAX && !running && stuck; i++)
        running = says_running(d, &stuck);
    return running;
}
