/* Owns the connection of a look (source.h). */
#include "tools/pwcctl/top/source.h"
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "proto/control.pb-c.h"
#include "proto/job_socket.h"

enum { QUESTION_MAX = 64, READ_BYTES = 65536, FRAME_HEAD = 4 };

#define ANSWER_MAX (1u << 20) /* of control.proto */

static const char *const questions[TOP_QUESTIONS] = {"status", "clients", "queues", "ledgers",
                                                     "nodes",  "ops",     "jobs"};

void top_source_init(struct top_source *s, const char *socket)
{
    *s = (struct top_source){.socket = socket, .fd = -1};
}

void top_source_end(struct top_source *s, const char *why)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->size = 0;
    s->answers = 0;
    for (int i = 0; i < TOP_QUESTIONS; i++) {
        json_decref(s->documents[i]);
        s->documents[i] = NULL;
    }
    snprintf(s->why, sizeof(s->why), "%s", why);
}

void top_source_free(struct top_source *s)
{
    top_source_end(s, "");
    free(s->bytes);
    s->bytes = NULL;
}

static int fail(struct top_source *s, int rc)
{
    top_source_end(s, strerror(-rc));
    return rc;
}

/* All questions together are small enough for one write to a socket. */
static int ask(int fd)
{
    uint8_t bytes[TOP_QUESTIONS * QUESTION_MAX];
    size_t size = 0;
    for (int i = 0; i < TOP_QUESTIONS; i++) {
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
        Pwc__Inspect inspect = PWC__INSPECT__INIT;
        uint32_t length;
        inspect.what = (char *)(uintptr_t)questions[i];
        request.id = (uint32_t)i + 1;
        request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
        request.inspect = &inspect;
        length = htole32((uint32_t)pwc__client_request__pack(&request, bytes + size + FRAME_HEAD));
        memcpy(bytes + size, &length, sizeof(length));
        size += FRAME_HEAD + le32toh(length);
    }
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    return sent < 0 ? -errno : (size_t)sent < size ? -EAGAIN : 0;
}

int top_source_begin(struct top_source *s)
{
    struct sockaddr_un name;
    socklen_t size = job_socket_address(s->socket, &name);
    top_source_end(s, "");
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&name, size) < 0)
        return fail(s, -errno);
    if (!job_socket_trusted(s->socket, job_socket_peer(s->fd)))
        return fail(s, -EACCES);
    int rc = ask(s->fd);
    return rc < 0 ? fail(s, rc) : 0;
}

static int take_answer(struct top_source *s, const uint8_t *bytes, uint32_t length)
{
    Pwc__ClientReply *reply = pwc__client_reply__unpack(NULL, length, bytes);
    int rc = reply == NULL ? -EBADMSG : 0;
    if (rc == 0 && reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR && reply->id > TOP_NEEDED &&
        reply->id <= TOP_QUESTIONS && s->documents[reply->id - 1] == NULL) {
        s->answers++;
    } else if (rc == 0 && reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR) {
        rc = reply->error->status < 0 ? reply->error->status : -EIO;
        top_source_end(s, reply->error->text);
    } else if (rc == 0 && (reply->body_case != PWC__CLIENT_REPLY__BODY_INSPECTED || reply->id < 1 ||
                           reply->id > TOP_QUESTIONS || s->documents[reply->id - 1] != NULL)) {
        rc = fail(s, -EBADMSG);
    } else if (rc == 0) {
        s->documents[reply->id - 1] = json_loads(reply->inspected->json, 0, NULL);
        rc = s->documents[reply->id - 1] ? 0 : fail(s, -EBADMSG);
        s->answers++;
    } else {
        (void)fail(s, rc);
    }
    if (reply)
        pwc__client_reply__free_unpacked(reply, NULL);
    return rc;
}

/* Takes the whole frames out of what has arrived, and keeps the rest. */
static int take_frames(struct top_source *s)
{
    size_t at = 0;
    while (s->size - at >= FRAME_HEAD) {
        uint32_t length;
        memcpy(&length, s->bytes + at, sizeof(length));
        length = le32toh(length);
        if (length > ANSWER_MAX)
            return fail(s, -EMSGSIZE);
        if (s->size - at - FRAME_HEAD < length)
            break;
        int rc = take_answer(s, s->bytes + at + FRAME_HEAD, length);
        if (rc < 0)
            return rc;
        at += FRAME_HEAD + length;
    }
    memmove(s->bytes, s->bytes + at, s->size - at);
    s->size -= at;
    return 0;
}

int top_source_read(struct top_source *s, struct top_look *out)
{
    if (s->room - s->size < READ_BYTES) {
        size_t room = s->size + 2 * READ_BYTES;
        uint8_t *bytes = realloc(s->bytes, room);
        if (bytes == NULL)
            return fail(s, -ENOMEM);
        s->bytes = bytes;
        s->room = room;
    }
    ssize_t got = recv(s->fd, s->bytes + s->size, s->room - s->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return fail(s, got < 0 ? -errno : -ECONNRESET);
    s->size += (size_t)got;
    int rc = take_frames(s);
    if (rc < 0 || s->answers < TOP_QUESTIONS)
        return rc;
    *out = (struct top_look){s->documents[0], s->documents[1], s->documents[2], s->documents[3],
                             s->documents[4], s->documents[5], s->documents[6]};
    memset(s->documents, 0, sizeof(s->documents));
    top_source_end(s, "");
    return 1;
}
