/* Owns the descriptor of pwc_fd (descriptor.h). Thread: the one that owns the context. */
#include "clientlib/attach/descriptor.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "clientlib/attach/context.h"

static int watch(int descriptor, int fd)
{
    struct epoll_event readable = {.events = EPOLLIN};

    return epoll_ctl(descriptor, EPOLL_CTL_ADD, fd, &readable) == 0 ? 0 : -errno;
}

int descriptor_watch_answers(struct pwc_ctx *ctx)
{
    int link = ctx->client->link.frames.fd;
    int rc;

    if (ctx->descriptor < 0 || ctx->binds.watched)
        return 0;
    rc = watch(ctx->descriptor, link);
    if (rc == 0) {
        rc = watch(ctx->descriptor, ctx->binds.mailbox.bell);
        if (rc < 0)
            (void)epoll_ctl(ctx->descriptor, EPOLL_CTL_DEL, link, NULL);
    }
    ctx->binds.watched = rc == 0;
    return rc;
}

void descriptor_forget_answers(struct pwc_ctx *ctx)
{
    if (!ctx->binds.watched)
        return;
    (void)epoll_ctl(ctx->descriptor, EPOLL_CTL_DEL, ctx->client->link.frames.fd, NULL);
    (void)epoll_ctl(ctx->descriptor, EPOLL_CTL_DEL, ctx->binds.mailbox.bell, NULL);
    ctx->binds.watched = false;
}

int descriptor_of(struct pwc_ctx *ctx)
{
    int rc;

    if (ctx->descriptor >= 0)
        return ctx->descriptor;
    ctx->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (ctx->descriptor < 0)
        return -errno;
    rc = watch(ctx->descriptor, ctx->wake_fd);
    if (rc == 0 && ctx->binds.first)
        rc = descriptor_watch_answers(ctx);
    if (rc == 0)
        return ctx->descriptor;
    close(ctx->descriptor);
    ctx->descriptor = -1;
    return rc;
}
