/* Connects, asks, and reads the answer; each step bounded in time and size. */
#include "request.h"
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
#include "control.pb-c.h"

#define ANSWER_SECONDS 5
#define ANSWER_MAX     (1u << 20) /* of control.proto */

static int explain(const char *path, int rc)
{
    const char *advice = "";
    switch (rc) {
    case -ENOENT:
    case -ECONNREFUSED:
        advice = ": no daemon serves there (--socket tells where it does)";
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
    fprintf(stderr, "pwcctl: %s: %s%s\n", path, strerror(-rc), advice);
    return rc;
}

static int connect_to(const char *path, int *out)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
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

static int send_question(int fd, const char *what)
{
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    uint8_t frame[128];
    inspect.what = (char *)what;
    request.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    size_t size = pwc__client_request__get_packed_size(&request);
    if (size + 4 > sizeof(frame))
        return -EMSGSIZE;
    uint32_t length = htole32((uint32_t)size);
    memcpy(frame, &length, sizeof(length));
    pwc__client_request__pack(&request, frame + sizeof(length));
    return send_all(fd, frame, sizeof(length) + size);
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

static int take_json(const char *path, const Pwc__ClientReply *reply, char **out)
{
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR) {
        fprintf(stderr, "pwcctl: %s: the daemon says: %s\n", path, reply->error->text);
        return reply->error->status < 0 ? reply->error->status : -EIO;
    }
    if (reply->body_case != PWC__CLIENT_REPLY__BODY_INSPECTED)
        return explain(path, -EBADMSG);
    *out = strdup(reply->inspected->json);
    return *out != NULL ? 0 : explain(path, -ENOMEM);
}

int request_inspect(const char *socket_path, const char *what, char **out)
{
    Pwc__ClientReply *reply = NULL;
    int fd = -1;
    int rc = connect_to(socket_path, &fd);
    if (rc < 0)
        return explain(socket_path, rc);
    rc = send_question(fd, what);
    if (rc == 0)
        rc = receive_answer(fd, &reply);
    rc = rc < 0 ? explain(socket_path, rc) : take_json(socket_path, reply, out);
    if (reply != NULL)
        pwc__client_reply__free_unpacked(reply, NULL);
    close(fd);
    return rc;
}
