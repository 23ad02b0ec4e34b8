/* Owns the child process and the raw connections (daemon.h). */
#include "tests/control/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32, WAIT_MS = 20000, READY_FD = 3, STUCK_MAX = 20 };

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void become(const struct daemon *d, const char *program, const char *const *arguments,
                   int ready, int log)
{
    const char *argv[ARGUMENTS_MAX] = {program,      "--config", "none",  "--socket", d->socket,
                                       "--ready-fd", "3",        "--log", "info"};
    int n = 9, exe;

    for (; arguments && *arguments && n < ARGUMENTS_MAX - 1; arguments++)
        argv[n++] = *arguments;
    /* Neither may be closed on exec, nor sit where the other goes. */
    ready = fcntl(ready, F_DUPFD, 10);
    log = fcntl(log, F_DUPFD, 10);
    dup2(ready, READY_FD);
    dup2(log, STDERR_FILENO);
    close(ready);
    close(log);
    if (d->uid == 0)
        execv(program, (char *const *)(uintptr_t)argv);
    /* By descriptor: the way to it may not be that user's to go. */
    exe = open(program, O_RDONLY | O_CLOEXEC);
    if (setgroups(0, NULL) == 0 && setresgid(d->uid, d->uid, d->uid) == 0 &&
        setresuid(d->uid, d->uid, d->uid) == 0)
        fexecve(exe, (char *const *)(uintptr_t)argv, environ);
    _exit(127);
}

static int start(struct daemon *d, const char *program, const char *const *arguments, bool *ready)
{
    int ready_pipe[2], log_pipe[2];
    struct pollfd wait = {.events = POLLIN};
    char text[16];

    if (pipe2(ready_pipe, O_CLOEXEC) != 0 || pipe2(log_pipe, O_CLOEXEC) != 0)
        return -errno;
    d->pid = fork();
    if (d->pid == 0)
        become(d, program, arguments, ready_pipe[1], log_pipe[1]);
    close(ready_pipe[1]);
    close(log_pipe[1]);
    d->log = log_pipe[0];
    wait.fd = ready_pipe[0];
    /* Then it closes the pipe: from here on it has the descriptors that it serves with. */
    *ready = poll(&wait, 1, WAIT_MS) == 1 && read(ready_pipe[0], text, sizeof(text)) == 6 &&
             read(ready_pipe[0], text, sizeof(text)) == 0;
    close(ready_pipe[0]);
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

/* More of its log; false: it has ended, or `until` has passed. Of what is too much the end goes. */
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
    int status = -1;

    if (d->pid <= 0)
        return -ESRCH;
    kill(d->pid, SIGTERM);
    while (listen_to(d, until)) /* its log ends when it does */
        continue;
    if (now_ms() >= until)
        kill(d->pid, SIGKILL);
    waitpid(d->pid, &status, 0);
    close(d->log);
    d->pid = 0;
    if (d->directory[0] && rmdir(d->directory) != 0)
        fprintf(stderr, "%s: %s: something was left there\n", d->directory, strerror(errno));
    if (!WIFEXITED(status) || strstr(d->said, "Sanitizer") || strstr(d->said, "runtime error"))
        fprintf(stderr, "%s\n", d->said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
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

int daemon_descriptors(const struct daemon *d)
{
    char path[64];
    DIR *directory;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)d->pid);
    directory = opendir(path);
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

/* ---- connections ----------------------------------------------------------------------------- */

int raw_connect(const struct daemon *d)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(name.sun_path, d->socket, sizeof(d->socket));
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(s, (struct sockaddr *)&name, sizeof(name)) != 0) {
        int rc = -errno;

        close(s);
        return rc;
    }
    return s;
}

bool raw_send(int s, const void *body, size_t size, int fd)
{
    uint8_t head[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                       (uint8_t)(size >> 24)};
    struct iovec parts[] = {{head, sizeof(head)}, {(void *)(uintptr_t)body, size}};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    if (fd >= 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(s, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof(head) + size);
}

bool raw_request(int s, uint32_t id, Pwc__ClientRequest *request)
{
    uint8_t bytes[8192];
    size_t size;

    request->id = id;
    size = pwc__client_request__get_packed_size(request);
    if (size > sizeof(bytes))
        return false;
    pwc__client_request__pack(request, bytes);
    return raw_send(s, bytes, size, -1);
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

/* ---- what well-behaved clients do ------------------------------------------------------------ */

bool raw_ask_hello(int s, const char *job, uint32_t rank, uint32_t size)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;

    hello.version_min = hello.version_max = 1;
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

/* By one question. */
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

    /* Where the machine is busy, its progress thread may take more than a second to answer. */
    for (int i = 0; i < STUCK_MAX && !running && stuck; i++)
        running = says_running(d, &stuck);
    return running;
}
