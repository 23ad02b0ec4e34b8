/* Asks the daemon for a tool: connects, sends the request, and reads the answer. The time and size
 * of each step are bounded. */
#include "tools/request.h"
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "proto/control.pb-c.h"
#include "proto/job_socket.h"

#define ANSWER_SECONDS  5
#define UPGRADE_SECONDS 70 /* the next daemon opens its fabric, and is given 60 s for that */
#define WHY_MAX         768
#define REQUEST_MAX     65536u     /* of control.proto */
#define ANSWER_MAX      (1u << 20) /* of control.proto */

/* The reason why a daemon could not be asked goes to `why`. */
struct reason {
    char *why;
    size_t size;
};

static int explain(const struct reason *reason, const char *path, int rc)
{
    const char *advice = "";
    switch (rc) {
    case -ENOENT:
    case -ECONNREFUSED:
        advice = REQUEST_NO_DAEMON;
        break;
    case -EACCES:
    case -EPERM:
        advice = ": ask as the user that the daemon runs as, or as one that it admits";
        break;
    case -EAGAIN:
        rc = -ETIMEDOUT;
        advice = ": the daemon does not answer; \"pwcctl counters\" needs no answer";
        break;
    case -EPIPE:
    case -ECONNRESET:
        advice = ": the daemon closed the connection; its log says why";
        break;
    default:
        break;
    }
    snprintf(reason->why, reason->size, "%s: %s%s", path, strerror(-rc), advice);
    return rc;
}

static int open_connection(const char *path, int seconds)
{
    struct sockaddr_un name;
    socklen_t size = job_socket_address(path, &name);
    struct timeval limit = {.tv_sec = seconds};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (struct sockaddr *)&name, size) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

/* Connects to a daemon that runs as this user, as root or as the user in the socket's name, as the
 * library does; else writes the reason. */
static int connect_to(const char *path, int seconds, const struct reason *reason)
{
    int fd = open_connection(path, seconds);
    if (fd < 0)
        return explain(reason, path, fd);
    uid_t owner = job_socket_peer(fd);
    if (job_socket_trusted(path, owner))
        return fd;
    close(fd);
    snprintf(reason->why, reason->size,
             "%s is served by user %d, neither this user nor root nor the one in its name: "
             "--socket names another",
             path, (int)owner);
    return -EACCES;
}

static int send_all(int fd, const void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        bytes = (const char *)bytes + sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = recv(fd, bytes, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        bytes = (char *)bytes + got;
        size -= (size_t)got;
    }
    return 0;
}

static int send_request(int fd, Pwc__ClientRequest *request)
{
    request->id = 1;
    size_t size = pwc__client_request__get_packed_size(request);
    if (size > REQUEST_MAX)
        return -EMSGSIZE;
    uint8_t *frame = malloc(size + sizeof(uint32_t));
    if (frame == NULL)
        return -ENOMEM;
    uint32_t length = htole32((uint32_t)size);
    memcpy(frame, &length, sizeof(length));
    pwc__client_request__pack(request, frame + sizeof(length));
    int rc = send_all(fd, frame, sizeof(length) + size);
    free(frame);
    return rc;
}

static int receive_answer(int fd, Pwc__ClientReply **out)
{
    uint32_t length;
    int rc = receive_all(fd, &length, sizeof(length));
    if (rc < 0)
        return rc;
    length = le32toh(length);
    if (length > ANSWER_MAX)
        return -EMSGSIZE;
    uint8_t *bytes = malloc(length + 1);
    if (bytes == NULL)
        return -ENOMEM;
    rc = receive_all(fd, bytes, length);
    *out = rc == 0 ? pwc__client_reply__unpack(NULL, length, bytes) : NULL;
    free(bytes);
    return rc < 0 ? rc : *out == NULL ? -EBADMSG : 0;
}

/* Checks that the answer is of this kind; if not, writes why and frees it. */
static int check_answer(const char *path, Pwc__ClientReply__BodyCase expected,
                        Pwc__ClientReply *reply, const struct reason *reason)
{
    int rc;
    if (reply->body_case == expected)
        return 0;
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR) {
        snprintf(reason->why, reason->size, "%s: the daemon says: %s", path, reply->error->text);
        rc = reply->error->status < 0 ? reply->error->status : -EIO;
    } else {
        rc = explain(reason, path, -EBADMSG);
    }
    pwc__client_reply__free_unpacked(reply, NULL);
    return rc;
}

/* Returns the answer if it is of this kind, to be freed; or writes why not. */
static int ask(const char *path, int seconds, Pwc__ClientRequest *request,
               Pwc__ClientReply__BodyCase expected, Pwc__ClientReply **out,
               const struct reason *reason)
{
    int fd = connect_to(path, seconds, reason);
    if (fd < 0)
        return fd;
    int rc = send_request(fd, request);
    if (rc == 0)
        rc = receive_answer(fd, out);
    close(fd);
    return rc < 0 ? explain(reason, path, rc) : check_answer(path, expected, *out, reason);
}

int request_try(const char *socket_path, const char *what, char **out, char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    Pwc__ClientReply *reply;
    inspect.what = (char *)what;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    int rc = ask(socket_path, ANSWER_SECONDS, &request, PWC__CLIENT_REPLY__BODY_INSPECTED, &reply,
                 &reason);
    if (rc < 0)
        return rc;
    *out = strdup(reply->inspected->json);
    pwc__client_reply__free_unpacked(reply, NULL);
    return *out != NULL ? 0 : explain(&reason, socket_path, -ENOMEM);
}

int request_document(const char *socket_path, const char *what, json_t **out, char *why,
                     size_t why_size)
{
    char *text;
    int rc = request_try(socket_path, what, &text, why, why_size);
    if (rc < 0)
        return rc;
    json_t *document = json_loads(text, 0, NULL);
    free(text);
    if (json_is_object(document)) {
        *out = document;
        return 0;
    }
    snprintf(why, why_size, "%s: the answer for \"%s\" is no JSON object", socket_path, what);
    json_decref(document);
    return -EBADMSG;
}

int request_inspect(const char *socket_path, const char *what, char **out)
{
    char why[WHY_MAX];
    int rc = request_try(socket_path, what, out, why, sizeof(why));
    if (rc < 0)
        fprintf(stderr, "pwcctl: %s\n", why);
    return rc;
}

int request_connect(const char *socket_path, char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    return connect_to(socket_path, ANSWER_SECONDS, &reason);
}

int request_trace(int connection, const char *socket_path, Pwc__ClientReply **out, char *why,
                  size_t why_size)
{
    const struct reason reason = {why, why_size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Trace trace = PWC__TRACE__INIT;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TRACE;
    request.trace = &trace;
    int rc = send_request(connection, &request);
    if (rc == 0)
        rc = receive_answer(connection, out);
    return rc < 0 ? explain(&reason, socket_path, rc)
                  : check_answer(socket_path, PWC__CLIENT_REPLY__BODY_TRACED, *out, &reason);
}

int request_check(const char *socket_path, const void *image, size_t size, char *why,
                  size_t why_size)
{
    const struct reason reason = {why, why_size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramCheck check = PWC__PROGRAM_CHECK__INIT;
    Pwc__ClientReply *reply;
    check.image.data = (uint8_t *)image;
    check.image.len = size;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_CHECK;
    request.program_check = &check;
    int rc =
        ask(socket_path, ANSWER_SECONDS, &request, PWC__CLIENT_REPLY__BODY_DONE, &reply, &reason);
    if (rc == 0)
        pwc__client_reply__free_unpacked(reply, NULL);
    return rc;
}

int request_program(const char *socket_path, uint32_t engine, uint32_t program, void **image,
                    size_t *size, char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramRead read = PWC__PROGRAM_READ__INIT;
    Pwc__ClientReply *reply;
    read.engine = engine;
    read.program = program;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_READ;
    request.program_read = &read;
    int rc = ask(socket_path, ANSWER_SECONDS, &request, PWC__CLIENT_REPLY__BODY_PROGRAM_IMAGE,
                 &reply, &reason);
    if (rc < 0)
        return rc;
    *size = reply->program_image->image.len;
    *image = malloc(*size + 1);
    if (*image != NULL && *size > 0)
        memcpy(*image, reply->program_image->image.data, *size);
    pwc__client_reply__free_unpacked(reply, NULL);
    return *image != NULL ? 0 : explain(&reason, socket_path, -ENOMEM);
}

int request_upgrade(const char *socket_path, const char *program, unsigned *pid)
{
    char why[WHY_MAX];
    const struct reason reason = {why, sizeof(why)};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Upgrade upgrade = PWC__UPGRADE__INIT;
    Pwc__ClientReply *reply;
    upgrade.program = program ? (char *)program : upgrade.program;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UPGRADE;
    request.upgrade = &upgrade;
    int rc =
        ask(socket_path, UPGRADE_SECONDS, &request, PWC__CLIENT_REPLY__BODY_DONE, &reply, &reason);
    if (rc < 0) {
        fprintf(stderr, "pwcctl: %s\n", why);
        return rc;
    }
    *pid = reply->done->pid;
    pwc__client_reply__free_unpacked(reply, NULL);
    return 0;
}
