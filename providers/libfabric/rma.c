/*
 * Owns nothing: makes puts and gets of libpwc out of fi_write and fi_read. Thread: the
 * application's; the endpoint's lock keeps threads apart.
 */
#include "providers/libfabric/rma.h"

#include <errno.h>
#include <pwc/vector.h>
#include <rdma/fi_errno.h>
#include "providers/libfabric/endpoint.h"
#include "providers/libfabric/info.h"
#include "providers/libfabric/submit.h"

static size_t length_of(const struct iovec *iov, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += iov[i].iov_len;
    return length;
}

/* Fills the list of a vector: pieces of ours that stand side by side at the peer. */
static void list_pieces(const struct fi_msg_rma *message, uint64_t offset, struct pwc_piece *out)
{
    for (size_t i = 0; i < message->iov_count; i++) {
        out[i] = (struct pwc_piece){.off = offset,
                                    .local = message->msg_iov[i].iov_base,
                                    .len = message->msg_iov[i].iov_len};
        offset += message->msg_iov[i].iov_len;
    }
}

static int submit_write(struct remote *remote, const struct fi_msg_rma *message, uint64_t offset,
                        size_t length, pwc_cid lid, uint64_t flags)
{
    bool with_data = flags & FI_REMOTE_CQ_DATA;
    unsigned pwc_flags = submit_flags(flags) | (with_data ? 0 : PWC_NO_RCE);
    pwc_cid rid = with_data ? pwc_cid_u64(message->data) : PWC_CID_NONE;
    struct pwc_piece pieces[INFO_IOV_LIMIT];

    if (message->iov_count <= 1)
        return pwc_put(remote->handle, offset, length ? message->msg_iov[0].iov_base : NULL, length,
                       lid, rid, pwc_flags);
    list_pieces(message, offset, pieces);
    return pwc_putv(remote->handle, pieces, message->iov_count, lid, rid, pwc_flags);
}

static int submit_read(struct remote *remote, const struct fi_msg_rma *message, uint64_t offset,
                       size_t length, pwc_cid lid, uint64_t flags)
{
    unsigned pwc_flags = submit_flags(flags) | PWC_NO_RCE;
    struct pwc_piece pieces[INFO_IOV_LIMIT];

    if (message->iov_count <= 1)
        return pwc_get(remote->handle, offset, length ? message->msg_iov[0].iov_base : NULL, length,
                       lid, PWC_CID_NONE, pwc_flags);
    list_pieces(message, offset, pieces);
    return pwc_getv(remote->handle, pieces, message->iov_count, lid, PWC_CID_NONE, pwc_flags);
}

typedef int (*submit_function)(struct remote *remote, const struct fi_msg_rma *message,
                               uint64_t offset, size_t length, pwc_cid lid, uint64_t flags);

static ssize_t transfer(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t class_flags,
                        uint64_t flags, bool injected, submit_function submit)
{
    struct endpoint *endpoint = endpoint_of(ep);
    const struct fi_rma_iov *target = message->rma_iov;
    size_t length = length_of(message->msg_iov, message->iov_count);
    struct operation_start start = {.context = message->context,
                                    .class_flags = class_flags,
                                    .op_flags = flags,
                                    .injected = injected};
    struct submission submission;
    uint64_t offset;
    ssize_t rc;

    if (message->iov_count > INFO_IOV_LIMIT || message->rma_iov_count != 1 || target->len != length)
        return -FI_EINVAL;
    if (flags & FI_INJECT && length > INFO_INJECT_SIZE)
        return -FI_EMSGSIZE;
    rc = submit_begin(&submission, endpoint, message->addr, target->key, &start);
    if (rc != SUBMIT_GOES_ON)
        return rc;
    rc = remote_offset(submission.remote, target->addr, length, &offset);
    if (rc == 0)
        rc = submit(submission.remote, message, offset, length, operation_id(submission.operation),
                    flags);
    return submit_finish(&submission, (int)rc);
}

static ssize_t write_message(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags,
                             bool injected)
{
    return transfer(ep, message, FI_RMA | FI_WRITE, flags, injected, submit_write);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    return write_message(ep, message, flags, false);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    return transfer(ep, message, FI_RMA | FI_READ, flags, false, submit_read);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                         fi_addr_t source, uint64_t addr, uint64_t key, void *context)
{
    struct fi_rma_iov target = {.addr = addr, .len = length_of(iov, count), .key = key};
    struct fi_msg_rma message = {.msg_iov = iov,
                                 .iov_count = count,
                                 .addr = source,
                                 .rma_iov = &target,
                                 .rma_iov_count = 1,
                                 .context = context};

    return rma_readmsg(ep, &message, endpoint_of(ep)->tx_flags);
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
                        uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};

    return rma_readv(ep, &iov, NULL, 1, source, addr, key, context);
}

static ssize_t write_any(struct fid_ep *ep, const struct iovec *iov, size_t count, uint64_t data,
                         fi_addr_t dest, uint64_t addr, uint64_t key, void *context, uint64_t flags,
                         bool injected)
{
    struct fi_rma_iov target = {.addr = addr, .len = length_of(iov, count), .key = key};
    struct fi_msg_rma message = {.msg_iov = iov,
                                 .iov_count = count,
                                 .addr = dest,
                                 .rma_iov = &target,
                                 .rma_iov_count = 1,
                                 .context = context,
                                 .data = data};

    return write_message(ep, &message, flags | endpoint_of(ep)->tx_flags, injected);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                          fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
    return write_any(ep, iov, count, 0, dest, addr, key, context, 0, false);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
                         uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return write_any(ep, &iov, 1, 0, dest, addr, key, context, 0, false);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
                             uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
                             void *context)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return write_any(ep, &iov, 1, data, dest, addr, key, context, FI_REMOTE_CQ_DATA, false);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
                          uint64_t addr, uint64_t key)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return write_any(ep, &iov, 1, 0, dest, addr, key, NULL, FI_INJECT, true);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
                              fi_addr_t dest, uint64_t addr, uint64_t key)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return write_any(ep, &iov, 1, data, dest, addr, key, NULL, FI_INJECT | FI_REMOTE_CQ_DATA, true);
}

struct fi_ops_rma rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};
