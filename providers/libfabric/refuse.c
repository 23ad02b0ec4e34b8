/*
 * Owns nothing: returns -FI_ENOSYS for calls that this provider does not have. Thread: any.
 */
#include "providers/libfabric/refuse.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

int refuse_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    return -FI_ENOSYS;
}

int refuse_control(struct fid *fid, int command, void *argument)
{
    return -FI_ENOSYS;
}

int refuse_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
    return -FI_ENOSYS;
}

int refuse_passive(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
                   void *context)
{
    return -FI_ENOSYS;
}

int refuse_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait)
{
    return -FI_ENOSYS;
}

int refuse_scalable(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                    void *context)
{
    return -FI_ENOSYS;
}

int refuse_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll)
{
    return -FI_ENOSYS;
}

int refuse_shared_transmit(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
                           void *context)
{
    return -FI_ENOSYS;
}

int refuse_shared_receive(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
                          void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
                       uint64_t tag, uint64_t ignore, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                        fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_message(struct fid_ep *ep, const struct fi_msg_tagged *message, uint64_t flags)
{
    return -FI_ENOSYS;
}

static ssize_t no_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
                       uint64_t tag, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                        fi_addr_t dest, uint64_t tag, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
                         uint64_t tag)
{
    return -FI_ENOSYS;
}

static ssize_t no_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
                           uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
    return -FI_ENOSYS;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
                             fi_addr_t dest, uint64_t tag)
{
    return -FI_ENOSYS;
}

struct fi_ops_tagged refuse_tagged = {
    .size = sizeof(struct fi_ops_tagged),
    .recv = no_recv,
    .recvv = no_recvv,
    .recvmsg = no_message,
    .send = no_send,
    .sendv = no_sendv,
    .sendmsg = no_message,
    .inject = no_inject,
    .senddata = no_senddata,
    .injectdata = no_injectdata,
};
