/*
 * Owns event queues. Any thread may call; the queue's lock keeps threads apart.
 */
#include "providers/libfabric/objects/eq.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "providers/libfabric/members/members.h"
#include "providers/libfabric/refuse.h"

struct eq_event {
    struct eq_event *next;
    uint32_t event;
    size_t length;
    unsigned char data[];
};

static struct eq *eq_of(struct fid_eq *fid)
{
    return container_of(fid, struct eq, fid);
}

int eq_add(struct eq *eq, uint32_t event, const void *data, size_t length)
{
    struct eq_event *e = malloc(sizeof(*e) + length);
    uint64_t one = 1;
    int rc;

    if (!e)
        return -FI_ENOMEM;
    e->next = NULL;
    e->event = event;
    e->length = length;
    memcpy(e->data, data, length);
    lock_take(&eq->lock);
    *eq->last = e;
    eq->last = &e->next;
    rc = write(eq->fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
    lock_give(&eq->lock);
    return rc;
}

static void take_first(struct eq *eq)
{
    struct eq_event *e = eq->first;
    uint64_t count;

    eq->first = e->next;
    if (!eq->first) {
        eq->last = &eq->first;
        if (read(eq->fd, &count, sizeof(count)) < 0)
            count = 0;
    }
    free(e);
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
    struct eq *eq = eq_of(fid);
    ssize_t rc = -FI_EAGAIN;

    lock_take(&eq->lock);
    if (eq->first) {
        if (eq->first->length > len)
            rc = -FI_ETOOSMALL;
        else {
            *event = eq->first->event;
            memcpy(buf, eq->first->data, eq->first->length);
            rc = (ssize_t)eq->first->length;
            if ((flags & FI_PEEK) == 0)
                take_first(eq);
        }
    }
    lock_give(&eq->lock);
    return rc;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
    return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
                        uint64_t flags)
{
    int rc = eq_add(eq_of(fid), event, buf, len);

    return rc < 0 ? rc : (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
                        uint64_t flags)
{
    struct pollfd pollfd = {.fd = eq_of(fid)->fd, .events = POLLIN};
    int64_t end = timeout < 0 ? INT64_MAX : members_now() + timeout;

    /* Another thread may take the event that has ended the sleep. */
    for (;;) {
        ssize_t rc = eq_read(fid, event, buf, len, flags);
        int64_t left = end - members_now();

        if (rc != -FI_EAGAIN || left <= 0)
            return rc;
        if (poll(&pollfd, 1, left > INT32_MAX ? -1 : (int)left) < 0)
            return -errno;
    }
}

static const char *eq_strerror(struct fid_eq *fid, int error, const void *data, char *buf,
                               size_t len)
{
    if (buf && len)
        snprintf(buf, len, "%s", fi_strerror(error));
    return fi_strerror(error);
}

static int eq_close(struct fid *fid)
{
    struct eq *eq = container_of(fid, struct eq, fid.fid);

    while (eq->first)
        take_first(eq);
    close(eq->fd);
    lock_destroy(&eq->lock);
    atomic_fetch_sub(&eq->fabric->users, 1);
    free(eq);
    return 0;
}

static int eq_control(struct fid *fid, int command, void *argument)
{
    if (command != FI_GETWAIT)
        return -FI_ENOSYS;
    *(int *)argument = container_of(fid, struct eq, fid.fid)->fd;
    return 0;
}

int eq_trywait(struct eq *eq)
{
    int rc;

    lock_take(&eq->lock);
    rc = eq->first ? -FI_EAGAIN : 0;
    lock_give(&eq->lock);
    return rc;
}

static struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = eq_close,
    .bind = refuse_bind,
    .control = eq_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = eq_write,
    .sread = eq_sread,
    .strerror = eq_strerror,
};

int eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
    struct fabric *fabric = fabric_of(fid);
    struct eq *eq;

    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
        attr->wait_obj != FI_WAIT_FD)
        return -FI_ENOSYS;
    eq = calloc(1, sizeof(*eq));
    if (!eq)
        return -FI_ENOMEM;
    eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (eq->fd < 0) {
        free(eq);
        return -errno;
    }
    lock_init(&eq->lock, true);
    eq->last = &eq->first;
    eq->fabric = fabric;
    eq->fid.fid.fclass = FI_CLASS_EQ;
    eq->fid.fid.context = context;
    eq->fid.fid.ops = &eq_fid_ops;
    eq->fid.ops = &eq_ops;
    atomic_fetch_add(&fabric->users, 1);
    *out = &eq->fid;
    return 0;
}
