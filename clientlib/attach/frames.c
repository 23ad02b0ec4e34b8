/*
 * Owns the control socket, the frame that is being received, and its descriptors. Threads: one
 * reader and one writer at a time.
 */
#include "clientlib/attach/frames.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "shm_ring/fault.h"

enum {
    LENGTH_BYTES = 4,
    BUFFER_START = 4096,
};

void frames_init(struct frames *frames, int fd)
{
    *frames = (struct frames){.fd = fd};
}

static void drop_descriptors(struct frames *frames)
{
    for (int i = 0; i < frames->fd_count; i++)
        if (frames->fds[i] >= 0)
            close(frames->fds[i]);
    frames->fd_count = 0;
}

void frames_close(struct frames *frames)
{
    drop_descriptors(frames);
    free(frames->buffer);
    if (frames->fd >= 0)
        close(frames->fd);
    *frames = (struct frames){.fd = -1};
}

/* 0 when the socket is ready, or has hung up (the next call on it fails then); -ETIMEDOUT. */
static int wait_ready(int fd, short events, int64_t deadline)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    for (;;) {
        int rc = poll(&poll_fd, 1, deadline_poll_ms(deadline));

        if (rc > 0)
            return 0;
        if (rc == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

static void put_length(uint8_t *at, uint32_t length)
{
    for (int i = 0; i < LENGTH_BYTES; i++)
        at[i] = (uint8_t)(length >> 8 * i);
}

static uint32_t get_length(const uint8_t *at)
{
    uint32_t length = 0;

    for (int i = 0; i < LENGTH_BYTES; i++)
        length |= (uint32_t)at[i] << 8 * i;
    return length;
}

int frames_send(struct frames *frames, const uint8_t *body, size_t length, int64_t deadline)
{
    uint8_t head[LENGTH_BYTES];
    struct iovec parts[2] = {
        {.iov_base = head, .iov_len = sizeof(head)},
        {.iov_base = (void *)(uintptr_t)body, .iov_len = length},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    size_t left = sizeof(head) + length;
    bool begun = false;

    if (length > FRAME_SEND_MAX)
        return -EMSGSIZE;
    put_length(head, (uint32_t)length);
    while (left > 0) {
        ssize_t sent = sendmsg(frames->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            if (wait_ready(frames->fd, POLLOUT, deadline) == 0)
                continue;
            if (!begun)
                return -ETIMEDOUT;
            shutdown(frames->fd, SHUT_WR); /* after half a frame the daemon cannot find the next
                                              one */
            return -ESHUTDOWN;
        }
        if (sent < 0)
            return -ESHUTDOWN;
        begun = true;
        FAULT(REQUEST_SENT);
        left -= (size_t)sent;
        for (int i = 0; i < 2; i++) {
            size_t part = (size_t)sent < parts[i].iov_len ? (size_t)sent : parts[i].iov_len;

            parts[i].iov_base = (uint8_t *)parts[i].iov_base + part;
            parts[i].iov_len -= part;
            sent -= (ssize_t)part;
        }
    }
    return 0;
}

/* Takes a message's descriptors into the frame: 0; -EPROTO: there are too many, and the rest is
 * closed. The kernel drops descriptors that this process has no room for, so fewer may arrive than
 * were sent. */
static int take_descriptors(struct frames *frames, struct msghdr *message)
{
    int rc = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (frames->fd_count < FRAME_FDS_MAX) {
                frames->fds[frames->fd_count++] = fd;
            } else {
                close(fd);
                rc = -EPROTO;
            }
        }
    }
    return rc;
}

static int grow(struct frames *frames, size_t want)
{
    size_t capacity = frames->capacity ? frames->capacity : BUFFER_START;
    uint8_t *buffer;

    if (want <= frames->capacity)
        return 0;
    while (capacity < want)
        capacity *= 2;
    buffer = realloc(frames->buffer, capacity);
    if (!buffer)
        return -ENOMEM;
    frames->buffer = buffer;
    frames->capacity = capacity;
    return 0;
}

/* Reads until `want` bytes of the frame are there. */
static int read_to(struct frames *frames, size_t want, int64_t deadline)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE((FRAME_FDS_MAX + 1) * sizeof(int))];
    int rc = grow(frames, want);

    while (rc == 0 && frames->have < want) {
        struct iovec part = {
            .iov_base = frames->buffer + frames->have,
            .iov_len = want - frames->have,
        };
        struct msghdr message = {
            .msg_iov = &part,
            .msg_iovlen = 1,
            .msg_control = control,
            .msg_controllen = sizeof(control),
        };
        ssize_t got = recvmsg(frames->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

        if (got > 0) {
            frames->have += (size_t)got;
            rc = take_descriptors(frames, &message);
            FAULT(REPLY_RECEIVED);
        } else if (got < 0 && errno == EAGAIN) {
            rc = deadline > 0 ? wait_ready(frames->fd, POLLIN, deadline) : -ETIMEDOUT;
        } else if (got == 0 || errno != EINTR) {
            rc = -ESHUTDOWN;
        }
    }
    return rc;
}

int frames_receive(struct frames *frames, const uint8_t **body, size_t *length, int64_t deadline)
{
    uint32_t announced;
    int rc;

    if (frames->have == 0)
        drop_descriptors(frames);
    rc = read_to(frames, LENGTH_BYTES, deadline);
    if (rc < 0)
        return rc;
    announced = get_length(frames->buffer);
    if (announced > FRAME_RECEIVE_MAX)
        return -EPROTO;
    rc = read_to(frames, LENGTH_BYTES + announced, deadline);
    if (rc < 0)
        return rc;
    frames->have = 0;
    *body = frames->buffer + LENGTH_BYTES;
    *length = announced;
    return 0;
}
