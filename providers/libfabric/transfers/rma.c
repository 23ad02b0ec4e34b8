/*
 * Owns nothing: makes puts and gets of libpwc out of fi_write and fi_read. Thread: the
 * application's; the endpoint's lock keeps threads apart.
 */
#include "providers/libfabric/transfers/rma.h"

#include <errno.h>
#include <pwc/vector.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/transfers/submit.h"

static size_t length_of(const struct iovec *iov, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += iov[i].iov_len;
    return length;
}

/* A transfer, and where it goes. */
struct transfer {
    const struct fi_msg_rma *message;
    uint64_t flags;
};

/* Returns the offset at the peer of the piece with this index. */
static uint64_t offset_of(const struct submission *s, const struct transfer *t, size_t index)
{
    return s->offset + length_of(t->message->msg_iov, index);
}

/* Puts one piece. Only the last piece has a remote event, which carries the data of
 * FI_REMOTE_CQ_DATA. A fence orders this piece after all others. */
static int write_piece(struct submission *s, const void *argument, size_t index)
{
    const struct transfer *t = argument;
    const struct iovec *piece = &t->message->msg_iov[index];
    struct part_end end =
        submit_part_end(t->flags, t->message->data, index, index + 1 == t->message->iov_count);

    return pwc_put(s->remote->handle, offset_of(s, t, index), piece->iov_base, piece->iov_len,
                   operation_id(s->operation), end.rid, end.flags);
}

static int read_piece(struct submission *s, const void *argument, size_t index)
{
    const struct transfer *t = argument;
    const struct iovec *piece = &t->message->msg_iov[index];

    return pwc_get(s->remote->handle, offset_of(s, t, index), piece->iov_base, piece->iov_len,
                   operation_id(s->operation), PWC_CID_NONE,
                   submit_flags(index == 0 ? t->flags : 0) | PWC_NO_RCE);
}

/* Submits an operation of one piece again. */
static int piece_again(struct submission *s)
{
    const struct again *again = &s->operation->again;
    const struct iovec iov = {again->to, again->length};
    const struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .data = again->data};
    const struct transfer t = {.message = &message, .flags = again->flags};

    return s->operation->flags & FI_READ ? read_piece(s, &t, 0) : write_piece(s, &t, 0);
}

/* Notes how to submit the only piece again. The bytes of other injected writes are gone. */
static void note_again(struct operation *operation, const struct transfer *t, bool inject)
{
    const struct fi_msg_rma *message = t->message;

    if (message->iov_count != 1 || (inject && !operation->copy))
        return;
    operation->again.submit = piece_again;
    operation->again.address = message->rma_iov->addr;
    operation->again.length = message->rma_iov->len;
    operation->again.flags = t->flags;
    operation->again.to = message->msg_iov->iov_base;
    if (t->flags & FI_REMOTE_CQ_DATA)
        operation->again.data = message->data;
}

/* Copies the pieces of an injected write into memory of its operation, if libpwc would read them
 * later: it takes adjacent pieces as one. 0, or -FI_EAGAIN: there is no memory now. */
static int own_pieces(struct submission *s, struct fi_msg_rma *message, struct iovec *copy)
{
    size_t length = length_of(message->msg_iov, message->iov_count), done = 0;

    if (length <= pwc_packed_max(s->endpoint->domain->client))
        return 0;
    copy->iov_base = malloc(length);
    if (!copy->iov_base)
        return -FI_EAGAIN;
    s->operation->copy = copy->iov_base;
    for (size_t i = 0; i < message->iov_count; i++) {
        const struct iovec *piece = &message->msg_iov[i];

        if (piece->iov_len)
            memcpy((char *)copy->iov_base + done, piece->iov_base, piece->iov_len);
        done += piece->iov_len;
    }
    copy->iov_len = done;
    message->msg_iov = copy;
    message->iov_count = 1;
    return 0;
}

/* Puts all pieces as one operation, which arrives once. -EFAULT, -E2BIG: libpwc takes each piece
 * only alone. */
static int write_together(struct submission *s, const struct transfer *t)
{
    const struct fi_msg_rma *message = t->message;
    struct part_end end = submit_part_end(t->flags, message->data, 0, true);
    struct pwc_piece pieces[INFO_IOV_LIMIT];

    for (size_t i = 0; i < message->iov_count; i++)
        pieces[i] = (struct pwc_piece){.off = offset_of(s, t, i),
                                       .local = message->msg_iov[i].iov_base,
                                       .len = message->msg_iov[i].iov_len};
    return pwc_putv(s->remote->handle, pieces, message->iov_count, operation_id(s->operation),
                    end.rid, end.flags);
}

typedef int (*piece_function)(struct submission *submission, const void *call, size_t index);

static int submit_pieces(struct submission *s, const struct transfer *t, piece_function piece)
{
    size_t count = t->message->iov_count;
    int rc = count > 1 && piece == write_piece ? write_together(s, t) : -EFAULT;

    return rc == -EFAULT || rc == -E2BIG ? submit_parts(s, count, piece, t) : rc;
}

static ssize_t transfer(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t class_flags,
                        uint64_t flags, bool injected, piece_function piece)
{
    struct endpoint *endpoint = endpoint_of(ep);
    static const struct iovec nothing;
    const struct fi_rma_iov *target = message->rma_iov;
    struct fi_msg_rma plain = *message;
    struct transfer t = {.message = &plain, .flags = flags};
    size_t length = length_of(message->msg_iov, message->iov_count);
    struct operation_start start = {.context = message->context,
                                    .class_flags = class_flags,
                                    .op_flags = flags,
                                    .injected = injected};
    bool inject = flags & FI_INJECT && class_flags & FI_WRITE;
    struct submission submission;
    struct iovec copy;
    ssize_t rc;

    if (message->iov_count > INFO_IOV_LIMIT || message->rma_iov_count != 1 || target->len != length)
        return -FI_EINVAL;
    if (inject && length > INFO_INJECT_SIZE)
        return -FI_EMSGSIZE;
    if (plain.iov_count == 0) {
        plain.msg_iov = &nothing;
        plain.iov_count = 1;
    }
    rc = submit_begin(&submission, endpoint, message->addr, target, &start);
    if (rc != SUBMIT_GOES_ON)
        return rc;
    if (inject)
        rc = own_pieces(&submission, &plain, &copy);
    if (rc >= 0)
        rc = submit_pieces(&submission, &t, piece);
    if (rc == 0)
        note_again(submission.operation, &t, inject);
    return submit_finish(&submission, (int)rc);
}

static ssize_t write_message(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags,
                             bool injected)
{
    return transfer(ep, message, FI_RMA | FI_WRITE, flags, injected, write_piece);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    return write_message(ep, message, flags, false);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    return transfer(ep, message, FI_RMA | FI_READ, flags, false, read_piece);
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
