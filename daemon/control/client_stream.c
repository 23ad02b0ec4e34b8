/*
 * Owns the bytes of clients' connections: frames in, replies with descriptors out (client.h).
 *
 * libuv only polls: descriptors travel by SCM_RIGHTS, which it passes for streams alone. A client
 * cannot make the daemon read without end (a few reads a wake), hold memory (its output is bounded,
 * and it is not read from while it does not read), or take a descriptor (none is received).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"
#include "fault.h"

enum { READS_A_WAKE = 4, FRAMES_A_WAKE = 64 };

static void on_socket(uv_poll_t *poll, int status, int events);

int client_stream_open(struct client *c)
{
    int rc = uv_poll_init(&c->control->loop, &c->socket, c->descriptor);

    if (rc < 0)
        return rc;
    frame_parser_init(&c->frames, CLIENT_FRAME_MAX);
    c->socket.data = c;
    c->uv_handles++;
    c->reading = true;
    uv_poll_start(&c->socket, UV_READABLE | UV_DISCONNECT, on_socket);
    return 0;
}

static void output_free(struct client_output *o)
{
    for (uint32_t i = 0; i < o->descriptor_count; i++)
        close(o->descriptors[i]);
    free(o);
}

void client_stream_free(struct client *c)
{
    while (c->output) {
        struct client_output *o = c->output;

        c->output = o->next;
        output_free(o);
    }
    c->output_tail = &c->output;
    c->output_bytes = 0;
    frame_parser_destroy(&c->frames);
}

/* What to wait for now. */
static void poll_again(struct client *c)
{
    int events = c->output ? UV_WRITABLE : 0;

    if (c->reading)
        events |= UV_READABLE;
    if (c->state != CLIENT_ENDING)
        events |= UV_DISCONNECT;
    if (events == 0)
        uv_poll_stop(&c->socket);
    else
        uv_poll_start(&c->socket, events, on_socket);
}

/* ---- out ------------------------------------------------------------------------------------- */

static ssize_t send_output(struct client *c, struct client_output *o)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(CLIENT_DESCRIPTORS * sizeof(int))] = {0};
    struct iovec part = {.iov_base = o->bytes + o->sent, .iov_len = o->size - o->sent};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    /* They ride on the first byte. */
    if (o->descriptor_count > 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(o->descriptor_count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(o->descriptor_count * sizeof(int));
        memcpy(CMSG_DATA(header), o->descriptors, o->descriptor_count * sizeof(int));
    }
    return sendmsg(c->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends what the socket takes. */
static int flush(struct client *c)
{
    while (c->output) {
        struct client_output *o = c->output;
        ssize_t sent = send_output(c, o);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == ETOOMANYREFS ? 0 : -errno;
        o->sent += (size_t)sent;
        c->output_bytes -= (size_t)sent;
        for (uint32_t i = 0; i < o->descriptor_count; i++)
            close(o->descriptors[i]);
        o->descriptor_count = 0;
        if (o->sent < o->size)
            return 0;
        c->output = o->next;
        if (!c->output)
            c->output_tail = &c->output;
        free(o);
    }
    return 0;
}

void client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                  uint32_t descriptor_count)
{
    size_t size = pwc__client_reply__get_packed_size(reply);
    struct client_output *o = NULL;

    if (c->state != CLIENT_ENDING && !c->overfull && size <= CLIENT_REPLY_MAX)
        o = malloc(sizeof(*o) + FRAME_HEAD_BYTES + size);
    if (!o) {
        if (c->state != CLIENT_ENDING && !c->overfull) {
            c->unanswered = true; /* ended from the loop, as below: it would wait for nothing */
            uv_async_send(&c->control->resume);
        }
        for (uint32_t i = 0; i < descriptor_count; i++)
            close(descriptors[i]);
        return;
    }
    *o = (struct client_output){.size = FRAME_HEAD_BYTES + size,
                                .descriptor_count = descriptor_count};
    if (descriptor_count > 0)
        memcpy(o->descriptors, descriptors, descriptor_count * sizeof(int));
    frame_head_write(o->bytes, (uint32_t)size);
    pwc__client_reply__pack(reply, o->bytes + FRAME_HEAD_BYTES);
    *c->output_tail = o;
    c->output_tail = &o->next;
    c->output_bytes += o->size;
    FAULT(REPLY_QUEUED);
    if (c->output_bytes > CLIENT_OUTPUT_MAX) {
        c->overfull = true; /* ended from the loop: the caller may be in the middle of its tables */
        uv_async_send(&c->control->resume);
        return;
    }
    (void)flush(c); /* an error shows again as hang-up */
    client_stream_resume(c);
}

/* ---- in -------------------------------------------------------------------------------------- */

static bool held_back(const struct client *c)
{
    return c->state == CLIENT_ENDING || c->output_bytes > CLIENT_OUTPUT_PAUSE ||
           c->waiting + c->calls >= CLIENT_PENDING_MAX;
}

/* Takes whole frames out; the rest stays for when there is room for what comes of them. */
static void take_frames(struct client *c)
{
    const uint8_t *body;
    size_t size;
    int rc = 0;

    for (int n = 0; n < FRAMES_A_WAKE && !held_back(c); n++) {
        rc = frame_next(&c->frames, &body, &size);
        if (rc <= 0)
            break;
        request_handle(c, body, size);
    }
    if (rc < 0 && c->state != CLIENT_ENDING)
        client_end(c, "a frame of more than 65536 bytes was announced");
}

/* 1: read something, 0: nothing more now, or a negative errno with the client ended. */
static int read_once(struct client *c)
{
    struct iovec part;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    uint8_t *to;
    ssize_t got;

    if (frame_space(&c->frames, &to, &part.iov_len) < 0) {
        client_end(c, "there is no memory for its frame");
        return -ENOMEM;
    }
    part.iov_base = to;
    do {
        got = recvmsg(c->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0) {
        client_end(c, NULL);
        return -ECONNRESET;
    }
    /* Without room for them the kernel has closed them, and says so. */
    if (message.msg_flags & MSG_CTRUNC) {
        client_end(c, "it sent descriptors: the daemon takes none");
        return -EPROTO;
    }
    frame_fed(&c->frames, (size_t)got);
    return 1;
}

/* A frame that was begun has to end. Waiting for ourselves does not count. */
static void watch_frame(struct client *c)
{
    if (c->state == CLIENT_ENDING || c->state == CLIENT_STRANGER || c->state == CLIENT_LOOKING)
        return; /* these have a deadline anyway */
    if (!frame_is_partial(&c->frames) || held_back(c))
        uv_timer_stop(&c->deadline);
    else if (!uv_is_active((uv_handle_t *)&c->deadline))
        uv_timer_start(&c->deadline, c->deadline.timer_cb, CLIENT_DEADLINE_MS, 0);
}

static void read_frames(struct client *c)
{
    int got = 1;

    for (int i = 0; i < READS_A_WAKE && got == 1 && !held_back(c); i++) {
        got = read_once(c);
        if (got == 1)
            take_frames(c);
    }
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct client *c = poll->data;

    if (uv_is_closing((uv_handle_t *)poll))
        return;
    if (c->state == CLIENT_ENDING) {
        if (status < 0 || flush(c) < 0 || !c->output)
            uv_poll_stop(poll);
        return;
    }
    if (status < 0 || (events & UV_WRITABLE && flush(c) < 0)) {
        client_end(c, NULL);
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT))
        read_frames(c);
    /* A hang-up cannot be read from a client that is held back. */
    if (events & UV_DISCONNECT && held_back(c))
        client_end(c, NULL);
    client_stream_resume(c);
}

void client_stream_resume(struct client *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    c->reading = !held_back(c);
    watch_frame(c);
    poll_again(c);
    /* Frames that have been read do not make the socket readable. */
    if (c->reading && frame_is_ready(&c->frames))
        uv_async_send(&c->control->resume);
}

void clients_resume(uv_async_t *async)
{
    struct control *control = async->data;

    for (struct client *c = control->clients; c; c = c->next) {
        if (c->overfull)
            client_end(c, "it does not read its replies");
        if (c->unanswered && c->state != CLIENT_ENDING) {
            log_line(&control->log, LOG_LEVEL_ERROR,
                     "out of memory: pid %d cannot be answered, it is hung up on", (int)c->pid);
            client_end(c, NULL);
        }
        if (c->state == CLIENT_ENDING || held_back(c) || !frame_is_ready(&c->frames))
            continue;
        take_frames(c);
        client_stream_resume(c);
    }
}
