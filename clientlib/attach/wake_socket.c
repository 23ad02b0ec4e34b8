/*
 * Owns nothing: reads the wake socket. A plain byte only wakes the context; a note announces a new
 * neighbour, and has the descriptors of its pair and board. Thread: the one that owns the context.
 */
#include "clientlib/attach/wake_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/neighbours/direct.h"

enum { PAIR_FD, BOARD_FD, NOTE_FDS };

/* The descriptors that came with a message, or -1. */
static void take_descriptors(struct msghdr *message, int *fds)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);

    fds[PAIR_FD] = fds[BOARD_FD] = -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(head),
               head->cmsg_len - CMSG_LEN(0)); /* at most as many as `room` holds */
}

/* Reads one message: the result of recvmsg. */
static ssize_t read_one(struct pwc_ctx *ctx)
{
    _Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(NOTE_FDS * sizeof(int))];
    struct pair_note note;
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = room,
        .msg_controllen = sizeof(room),
    };
    ssize_t got = recvmsg(ctx->wake_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int fds[NOTE_FDS] = {-1, -1};

    if (got > 0)
        take_descriptors(&message, fds);
    /* A note without its descriptor (this process can open no more) is dropped, and the origin
     * continues through the daemon. */
    if (fds[PAIR_FD] >= 0 && got == sizeof(note)) {
        neighbours_add(&ctx->channel.neighbours, &note, fds[PAIR_FD], fds[BOARD_FD]);
        channel_peer_is_back(&ctx->channel, note.peer);
        return got;
    }
    for (int i = 0; i < NOTE_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return got;
}

void wake_socket_read(struct pwc_ctx *ctx)
{
    ssize_t got;

    do
        got = read_one(ctx);
    while (got > 0 || (got < 0 && errno == EINTR));
    if (got == 0 || (got < 0 && errno != EAGAIN))
        channel_end(&ctx->channel, -ESHUTDOWN);
}

static void forget_gone(struct pwc_ctx *ctx, uint32_t changes)
{
    ctx->neighbour_changes_checked = changes;
    neighbours_check(&ctx->channel.neighbours);
    direct_check(ctx);
}

void neighbours_update(struct pwc_ctx *ctx, uint32_t changes)
{
    ctx->neighbour_changes_seen = changes;
    wake_socket_read(ctx);
    forget_gone(ctx, changes);
}

void neighbours_update_beside_poll(struct pwc_ctx *ctx)
{
    uint32_t changes = neighbour_changes(ctx);

    if (!ctx->channel.neighbours.polled)
        neighbours_update(ctx, changes);
    else if (changes != ctx->neighbour_changes_checked)
        forget_gone(ctx, changes);
}
