/*
 * Owns what comes by the wake socket: bytes that only wake, and notes of new neighbours with a
 * descriptor each. Thread: the one that owns the context.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "context.h"

/* The descriptor that came with a message, or -1. */
static int take_descriptor(struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int descriptor = -1;

    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(&descriptor, CMSG_DATA(head), sizeof(descriptor));
    return descriptor;
}

/* One message: what recvmsg gives. */
static ssize_t read_one(struct pwc_ctx *ctx)
{
    _Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(int))];
    struct pair_note note;
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = room,
        .msg_controllen = sizeof(room),
    };
    ssize_t got = recvmsg(ctx->wake_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int descriptor = got > 0 ? take_descriptor(&message) : -1;

    /* A note whose descriptor found no room here is none: the origin goes on by the daemon. */
    if (descriptor >= 0 && got == sizeof(note))
        neighbours_add(&ctx->channel.neighbours, note.peer, descriptor);
    else if (descriptor >= 0)
        close(descriptor);
    return got;
}

void context_read_wake(struct pwc_ctx *ctx)
{
    ssize_t got;

    do
        got = read_one(ctx);
    while (got > 0 || (got < 0 && errno == EINTR));
    if (got == 0 || (got < 0 && errno != EAGAIN))
        channel_end(&ctx->channel, -ESHUTDOWN);
}

void context_meet_neighbours(struct pwc_ctx *ctx, uint32_t told)
{
    ctx->neighbours_told = told;
    context_read_wake(ctx);
    neighbours_check(&ctx->channel.neighbours);
    direct_check(ctx);
}
