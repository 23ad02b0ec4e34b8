/* The daemon of fake_daemon.h: accepts one connection, reads one request, sends one answer, and
 * hangs up. */
#include "tests/tools/fake_daemon.h"
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "proto/control.pb-c.h"

static int read_whole(int fd, void *to, size_t size)
{
    return recv(fd, to, size, MSG_WAITALL) == (ssize_t)size ? 0 : -1;
}

static void *serve(void *argument)
{
    struct fake_daemon *daemon = argument;
    uint8_t bytes[1024];
    uint32_t length;
    int fd = accept(daemon->listener, NULL, NULL);
    if (fd < 0)
        return NULL;
    if (read_whole(fd, &length, sizeof(length)) == 0 && le32toh(length) <= sizeof(bytes) &&
        read_whole(fd, bytes, le32toh(length)) == 0) {
        Pwc__ClientRequest *request = pwc__client_request__unpack(NULL, le32toh(length), bytes);
        if (request != NULL && request->body_case == PWC__CLIENT_REQUEST__BODY_INSPECT)
            snprintf(daemon->asked, sizeof(daemon->asked), "%s", request->inspect->what);
        if (request != NULL)
            pwc__client_request__free_unpacked(request, NULL);
        send(fd, daemon->answer, daemon->answer_size, MSG_NOSIGNAL);
    }
    close(fd);
    return NULL;
}

int fake_daemon_start(struct fake_daemon *daemon, const char *path, const void *answer, size_t size)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *daemon = (struct fake_daemon){.answer = answer, .answer_size = size};
    snprintf(daemon->path, sizeof(daemon->path), "%s", path);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    daemon->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (daemon->listener < 0 ||
        bind(daemon->listener, (struct sockaddr *)&name, sizeof(name)) < 0 ||
        listen(daemon->listener, 4) < 0)
        return -errno;
    return -pthread_create(&daemon->thread, NULL, serve, daemon);
}

void fake_daemon_finish(struct fake_daemon *daemon)
{
    shutdown(daemon->listener, SHUT_RDWR); /* ends the accept, if no client came */
    pthread_join(daemon->thread, NULL);
    close(daemon->listener);
    unlink(daemon->path);
}

static void *frame(const Pwc__ClientReply *reply, size_t *size)
{
    size_t body = pwc__client_reply__get_packed_size(reply);
    uint32_t length = htole32((uint32_t)body);
    uint8_t *bytes = malloc(sizeof(length) + body);
    memcpy(bytes, &length, sizeof(length));
    pwc__client_reply__pack(reply, bytes + sizeof(length));
    *size = sizeof(length) + body;
    return bytes;
}

void *fake_inspected(const char *json, size_t *size)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Inspected inspected = PWC__INSPECTED__INIT;
    inspected.json = (char *)json;
    reply.id = 1;
    reply.body_case = PWC__CLIENT_REPLY__BODY_INSPECTED;
    reply.inspected = &inspected;
    return frame(&reply, size);
}

void *fake_error(int status, const char *text, size_t *size)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;
    error.status = status;
    error.text = (char *)text;
    reply.id = 1;
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    reply.error = &error;
    return frame(&reply, size);
}
