/*
 * Owns endpoints: opens, binds, enables and closes them. Thread: the application's; the endpoint's
 * lock keeps threads apart.
 */
#include "providers/libfabric/objects/endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/transfers/atomic.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/refuse.h"
#include "providers/libfabric/transfers/rma.h"
#include "providers/libfabric/transfers/send.h"

static struct endpoint *endpoint_of_fid(struct fid *fid)
{
    return container_of(fid, struct endpoint, fid.fid);
}

static int bind_av(struct endpoint *endpoint, struct av *av)
{
    if (endpoint->av)
        return endpoint->av == av ? 0 : -FI_EBUSY;
    if (av->domain != endpoint->domain)
        return -FI_EINVAL;
    endpoint->av = av;
    atomic_fetch_add(&av->users, 1);
    return 0;
}

static int bind_cq(struct endpoint *endpoint, struct cq *cq, uint64_t flags)
{
    int rc;

    if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
        (flags & (FI_TRANSMIT | FI_RECV)) == 0)
        return -FI_EBADFLAGS;
    if ((flags & FI_TRANSMIT && endpoint->tx_cq) || (flags & FI_RECV && endpoint->rx_cq))
        return -FI_EBUSY;
    rc = members_add(cq->members, endpoint);
    if (rc < 0)
        return rc;
    if (flags & FI_TRANSMIT) {
        endpoint->tx_cq = cq;
        endpoint->tx_selective = flags & FI_SELECTIVE_COMPLETION;
        atomic_fetch_add(&cq->users, 1);
    }
    if (flags & FI_RECV) {
        endpoint->rx_cq = cq;
        endpoint->rx_selective = flags & FI_SELECTIVE_COMPLETION;
        atomic_fetch_add(&cq->users, 1);
    }
    return 0;
}

static const uint64_t class_flags[CLASSES] = {
    [CLASS_SEND] = FI_SEND,
    [CLASS_RECV] = FI_RECV,
    [CLASS_READ] = FI_READ,
    [CLASS_WRITE] = FI_WRITE,
    [CLASS_ARRIVED] = FI_REMOTE_WRITE,
};

/* Whether the endpoint has this counter for some class. */
static bool has_counter(const struct endpoint *endpoint, const struct cntr *cntr)
{
    for (unsigned i = 0; i < CLASSES; i++)
        if (endpoint->cntrs[i] == cntr)
            return true;
    return false;
}

/* No counter counts peers' reads, because nothing reports them to their target; a counter for these
 * alone is refused. */
static int check_cntr(const struct endpoint *endpoint, uint64_t flags)
{
    if (flags == 0)
        return -FI_EINVAL;
    if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))
        return -FI_EBADFLAGS;
    if (flags == FI_REMOTE_READ)
        return -FI_ENOSYS;
    for (unsigned i = 0; i < CLASSES; i++)
        if (flags & class_flags[i] && endpoint->cntrs[i])
            return -FI_EBUSY;
    return 0;
}

/* After a refusal the counter must not have the endpoint, which may close before it. */
static int bind_cntr(struct endpoint *endpoint, struct cntr *cntr, uint64_t flags)
{
    int rc = check_cntr(endpoint, flags);

    if (rc < 0)
        return rc;
    rc = members_add(cntr->members, endpoint);
    if (rc < 0)
        return rc;
    if (flags & FI_REMOTE_WRITE)
        rc = cntr_count_arrivals(cntr, endpoint);
    if (rc < 0 && !has_counter(endpoint, cntr))
        members_drop(cntr->members, endpoint);
    for (unsigned i = 0; rc == 0 && i < CLASSES; i++) {
        if ((flags & class_flags[i]) == 0)
            continue;
        endpoint->cntrs[i] = cntr;
        atomic_fetch_add(&cntr->users, 1);
    }
    return rc;
}

static int endpoint_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct endpoint *endpoint = endpoint_of_fid(fid);

    switch (other->fclass) {
    case FI_CLASS_AV:
        return bind_av(endpoint, container_of(other, struct av, fid.fid));
    case FI_CLASS_CQ:
        return bind_cq(endpoint, container_of(other, struct cq, fid.fid), flags);
    case FI_CLASS_CNTR:
        return bind_cntr(endpoint, container_of(other, struct cntr, fid.fid), flags);
    case FI_CLASS_EQ:
        return 0;
    default:
        return -FI_EINVAL;
    }
}

static int enable(struct endpoint *endpoint)
{
    int rc;

    if (endpoint->enabled)
        return 0;
    if (!endpoint->av)
        return -FI_ENOAV;
    rc = pwc_am_register(endpoint->ctx, RECEIVE_HANDLER, receive_message, endpoint);
    if (rc < 0)
        return rc;
    if (endpoint->caps & (FI_REMOTE_WRITE | FI_REMOTE_READ))
        rc = members_add(endpoint->domain->targets, endpoint);
    if (rc == 0)
        endpoint->enabled = true;
    return rc;
}

static int endpoint_control(struct fid *fid, int command, void *argument)
{
    struct endpoint *endpoint = endpoint_of_fid(fid);
    uint64_t *flags = argument;

    switch (command) {
    case FI_ENABLE:
        return enable(endpoint);
    case FI_GETOPSFLAG:
        *flags = *flags & FI_RECV ? endpoint->rx_flags : endpoint->tx_flags;
        return 0;
    case FI_SETOPSFLAG:
        if (*flags & FI_RECV)
            endpoint->rx_flags = *flags & ~FI_RECV;
        else
            endpoint->tx_flags = *flags & ~FI_TRANSMIT;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

/* From here on no queue, counter or memory region makes progress here. */
static void leave_queues(struct endpoint *endpoint)
{
    struct cq *queues[] = {endpoint->tx_cq, endpoint->rx_cq};

    members_drop(endpoint->domain->endpoints, endpoint);
    members_retire(endpoint->domain->targets, endpoint, endpoint_arrived(endpoint));
    for (unsigned i = 0; i < 2; i++)
        if (queues[i])
            members_drop(queues[i]->members, endpoint);
    for (unsigned i = 0; i < CLASSES; i++) {
        if (!endpoint->cntrs[i])
            continue;
        members_drop(endpoint->cntrs[i]->members, endpoint);
        cntr_keep_arrivals(endpoint->cntrs[i], endpoint);
    }
}

/* Gives the queues, the counters and the vector back, which may close before the domain. */
static void give_back(struct endpoint *endpoint)
{
    if (endpoint->tx_cq)
        atomic_fetch_sub(&endpoint->tx_cq->users, 1);
    if (endpoint->rx_cq)
        atomic_fetch_sub(&endpoint->rx_cq->users, 1);
    for (unsigned i = 0; i < CLASSES; i++)
        if (endpoint->cntrs[i])
            atomic_fetch_sub(&endpoint->cntrs[i]->users, 1);
    if (endpoint->av)
        atomic_fetch_sub(&endpoint->av->users, 1);
}

/* Operations and posted buffers that are left have no entry, and their promises end. */
static int endpoint_close(struct fid *fid)
{
    struct endpoint *endpoint = endpoint_of_fid(fid);

    leave_queues(endpoint);
    pwc_ctx_destroy(endpoint->ctx);
    receives_free(endpoint);
    operations_free(endpoint);
    remotes_free(&endpoint->remotes);
    give_back(endpoint);
    lock_destroy(&endpoint->lock);
    atomic_fetch_sub(&endpoint->domain->users, 1);
    free(endpoint);
    return 0;
}

static int endpoint_getname(fid_t fid, void *out, size_t *length)
{
    struct endpoint *endpoint = endpoint_of_fid(fid);
    size_t room = *length;
    struct address address = {.keys = *keys_region(endpoint->domain->keys)};
    int rc = client_address(endpoint->ctx, address.context);

    if (rc < 0)
        return rc;
    *length = sizeof(address);
    if (room)
        memcpy(out, &address, room < sizeof(address) ? room : sizeof(address));
    return room < sizeof(address) ? -FI_ETOOSMALL : 0;
}

static int no_setname(fid_t fid, void *address, size_t length)
{
    return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *ep, void *address, size_t *length)
{
    return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *address, const void *data, size_t length)
{
    return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
    return -FI_ENOSYS;
}

static int endpoint_getopt(fid_t fid, int level, int name, void *value, size_t *length)
{
    return -FI_ENOPROTOOPT;
}

static int endpoint_setopt(fid_t fid, int level, int name, const void *value, size_t length)
{
    return -FI_ENOPROTOOPT;
}

static int no_context(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **out,
                      void *context)
{
    return -FI_ENOSYS;
}

static int no_receive_context(struct fid_ep *ep, int index, struct fi_rx_attr *attr,
                              struct fid_ep **out, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t size_left(struct fid_ep *ep)
{
    return -FI_ENOSYS;
}

static struct fi_ops endpoint_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = endpoint_close,
    .bind = endpoint_bind,
    .control = endpoint_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_ep endpoint_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = receive_cancel,
    .getopt = endpoint_getopt,
    .setopt = endpoint_setopt,
    .tx_ctx = no_context,
    .rx_ctx = no_receive_context,
    .rx_size_left = size_left,
    .tx_size_left = size_left,
};

static struct fi_ops_cm endpoint_cm = {
    .size = sizeof(struct fi_ops_cm),
    .setname = no_setname,
    .getname = endpoint_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .shutdown = no_shutdown,
};

int endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
    struct domain *domain = domain_of(fid);
    struct endpoint *endpoint;
    int rc;

    if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
        return -FI_EINVAL;
    if (info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT ||
        info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
        return -FI_ENOSYS;
    endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return -FI_ENOMEM;
    rc = pwc_ctx_create(domain->client, NULL, &endpoint->ctx);
    if (rc < 0) {
        info_warn("open an endpoint: %s", pwc_strerror(rc));
        goto no_context;
    }
    endpoint->domain = domain;
    endpoint->caps = info->caps;
    endpoint->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    lock_init(&endpoint->lock, domain->locked);
    receives_init(&endpoint->receives);
    endpoint->fid.fid.fclass = FI_CLASS_EP;
    endpoint->fid.fid.context = context;
    endpoint->fid.fid.ops = &endpoint_fid_ops;
    endpoint->fid.ops = &endpoint_ops;
    endpoint->fid.cm = &endpoint_cm;
    endpoint->fid.msg = &send_ops;
    endpoint->fid.rma = &rma_ops;
    endpoint->fid.tagged = &refuse_tagged;
    endpoint->fid.atomic = &atomic_ops;
    rc = members_add(domain->endpoints, endpoint);
    if (rc < 0)
        goto no_member;
    atomic_fetch_add(&domain->users, 1);
    *out = &endpoint->fid;
    return 0;
no_member:
    lock_destroy(&endpoint->lock);
    pwc_ctx_destroy(endpoint->ctx);
no_context:
    free(endpoint);
    return rc;
}
