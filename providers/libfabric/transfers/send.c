/*
 * Owns nothing: makes active messages out of fi_send. Thread: the application's; the endpoint's
 * lock keeps threads apart.
 */
#include "providers/libfabric/transfers/send.h"

#include <pwc/am.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/transfers/submit.h"

/* Joins a message's pieces in `room`; one piece stays where it is. -FI_EMSGSIZE: it is too long. */
static ssize_t gather(const struct fi_msg *message, unsigned char room[INFO_INJECT_SIZE],
                      const void **out)
{
    size_t length = 0;

    for (size_t i = 0; i < message->iov_count; i++) {
        const struct iovec *piece = &message->msg_iov[i];

        if (piece->iov_len > INFO_INJECT_SIZE - length)
            return -FI_EMSGSIZE;
        if (message->iov_count > 1 && piece->iov_len)
            memcpy(room + length, piece->iov_base, piece->iov_len);
        length += piece->iov_len;
    }
    *out = message->iov_count == 1 ? message->msg_iov[0].iov_base : room;
    return (ssize_t)length;
}

/* A message that is longer than a Medium: its whole, and the bytes of each part. */
struct long_message {
    const struct pwc_am_send *whole;
    size_t part;
};

static int send_part(struct submission *s, const void *argument, size_t index)
{
    const struct long_message *m = argument;
    struct pwc_am_send part = *m->whole;
    size_t from = index * m->part, left = m->whole->len - from;
    uint64_t arguments[ASSEMBLY_ARGUMENTS] = {
        m->whole->arguments[0],
        m->whole->arguments[1],
        [ASSEMBLY_OFFSET] = from,
        [ASSEMBLY_LENGTH] = m->whole->len,
    };

    part.count = ASSEMBLY_ARGUMENTS;
    part.arguments = arguments;
    part.src = (const char *)m->whole->src + from;
    part.len = left < m->part ? left : m->part;
    if (index > 0)
        part.flags &= ~(unsigned)PWC_FENCE;
    return pwc_am_medium(s->peer->table, &part);
}

static int send_all(struct submission *s, const struct pwc_am_send *am)
{
    struct long_message message = {am, pwc_am_max_medium(s->endpoint->domain->client)};

    if (am->len <= message.part)
        return pwc_am_medium(s->peer->table, am);
    return submit_parts(s, (am->len + message.part - 1) / message.part, send_part, &message);
}

static ssize_t send_any(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags,
                        bool injected)
{
    struct endpoint *endpoint = endpoint_of(ep);
    unsigned char room[INFO_INJECT_SIZE];
    uint64_t arguments[RECEIVE_ARGUMENTS] = {flags & FI_REMOTE_CQ_DATA ? RECEIVE_HAS_DATA : 0,
                                             message->data};
    struct operation_start start = {.context = message->context,
                                    .class_flags = FI_MSG | FI_SEND,
                                    .op_flags = flags,
                                    .injected = injected};
    struct pwc_am_send am = {.index = RECEIVE_HANDLER,
                             .count = RECEIVE_ARGUMENTS,
                             .arguments = arguments,
                             .flags = submit_flags(flags) | PWC_AM_NO_REPLY};
    struct submission submission;
    ssize_t length, rc;

    if (message->iov_count > INFO_IOV_LIMIT)
        return -FI_EINVAL;
    length = gather(message, room, &am.src);
    if (length < 0)
        return length;
    am.len = (size_t)length;
    rc = submit_begin_message(&submission, endpoint, message->addr, &start);
    if (rc != SUBMIT_GOES_ON)
        return rc;
    am.lid = operation_id(submission.operation);
    return submit_finish(&submission, send_all(&submission, &am));
}

static ssize_t send_plain(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
                          fi_addr_t dest, void *context, uint64_t flags, bool injected)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    struct fi_msg message = {
        .msg_iov = &iov, .iov_count = 1, .addr = dest, .context = context, .data = data};

    return send_any(ep, &message, flags | endpoint_of(ep)->tx_flags, injected);
}

static ssize_t send_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
                         void *context)
{
    return send_plain(ep, buf, len, 0, dest, context, 0, false);
}

static ssize_t send_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                          fi_addr_t dest, void *context)
{
    struct fi_msg message = {.msg_iov = iov, .iov_count = count, .addr = dest, .context = context};

    return send_any(ep, &message, endpoint_of(ep)->tx_flags, false);
}

static ssize_t send_sendmsg(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags)
{
    return send_any(ep, message, flags, false);
}

static ssize_t send_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
    return send_plain(ep, buf, len, 0, dest, NULL, 0, true);
}

static ssize_t send_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
                             uint64_t data, fi_addr_t dest, void *context)
{
    return send_plain(ep, buf, len, data, dest, context, FI_REMOTE_CQ_DATA, false);
}

static ssize_t send_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
                               fi_addr_t dest)
{
    return send_plain(ep, buf, len, data, dest, NULL, FI_REMOTE_CQ_DATA, true);
}

struct fi_ops_msg send_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = receive_recv,
    .recvv = receive_recvv,
    .recvmsg = receive_recvmsg,
    .send = send_send,
    .sendv = send_sendv,
    .sendmsg = send_sendmsg,
    .inject = send_inject,
    .senddata = send_senddata,
    .injectdata = send_injectdata,
};
