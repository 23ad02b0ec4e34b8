/*
 * Owns an endpoint's posted buffers and unexpected messages. Thread: the one that holds the
 * endpoint's lock; the handler runs inside its calls of libpwc.
 */
#include "providers/libfabric/transfers/receive.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"

struct posted {
    struct posted *next;
    void *context;
    pwc_peer source; /* PWC_ANY, or the only one that matches */
    bool reported;
    size_t pieces;
    struct iovec iov[INFO_IOV_LIMIT];
};

struct unexpected {
    struct unexpected *next;
    pwc_peer source;
    uint64_t flags, data;
    size_t length;
    unsigned char bytes[];
};

void receives_init(struct receives *receives)
{
    receives->last_posted = &receives->posted;
    receives->last_unexpected = &receives->unexpected;
}

void receives_free(struct endpoint *endpoint)
{
    struct receives *receives = &endpoint->receives;

    while (receives->posted) {
        struct posted *next = receives->posted->next;

        if (receives->posted->reported)
            cq_release(endpoint->rx_cq);
        free(receives->posted);
        receives->posted = next;
    }
    while (receives->free) {
        struct posted *next = receives->free->next;

        free(receives->free);
        receives->free = next;
    }
    assemblies_free(&receives->assemblies);
    while (receives->unexpected) {
        struct unexpected *next = receives->unexpected->next;

        free(receives->unexpected);
        receives->unexpected = next;
    }
}

static void take_posted(struct receives *receives, struct posted **at)
{
    struct posted *posted = *at;

    *at = posted->next;
    if (!*at)
        receives->last_posted = at;
    posted->next = receives->free;
    receives->free = posted;
    receives->count--;
}

/* Copies the message into the buffer. Returns the bytes that fit. */
static size_t scatter(const struct posted *posted, const unsigned char *bytes, size_t length)
{
    size_t done = 0;

    for (size_t i = 0; i < posted->pieces && done < length; i++) {
        size_t n = posted->iov[i].iov_len < length - done ? posted->iov[i].iov_len : length - done;

        memcpy(posted->iov[i].iov_base, bytes + done, n);
        done += n;
    }
    return done;
}

static void end_receive(struct endpoint *endpoint, const struct posted *posted, pwc_peer source,
                        uint64_t flags, uint64_t data, const unsigned char *bytes, size_t length)
{
    size_t fits = scatter(posted, bytes, length);
    uint64_t entry_flags = FI_MSG | FI_RECV | (flags & RECEIVE_HAS_DATA ? FI_REMOTE_CQ_DATA : 0);
    struct cntr *cntr = endpoint->cntrs[CLASS_RECV];

    if (fits < length) {
        struct fi_cq_err_entry error = {
            .op_context = posted->context,
            .flags = entry_flags,
            .len = fits,
            .buf = posted->pieces ? posted->iov[0].iov_base : NULL,
            .data = data,
            .olen = length - fits,
            .err = FI_ETRUNC,
            .prov_errno = -FI_ETRUNC,
        };

        if (endpoint->rx_cq)
            cq_add_error(endpoint->rx_cq, &error, posted->reported);
        if (cntr)
            cntr_count_failure(cntr);
        return;
    }
    if (posted->reported) {
        struct cq_completion completion = {
            .entry = {.op_context = posted->context,
                      .flags = entry_flags,
                      .len = length,
                      .buf = posted->pieces ? posted->iov[0].iov_base : NULL,
                      .data = data},
            .source = av_number(endpoint->av, source),
        };

        cq_add(endpoint->rx_cq, &completion, true);
    }
    if (cntr)
        cntr_count(cntr);
}

/* Takes a whole message, whose arguments are those of its only or last part. */
static void take_message(struct endpoint *endpoint, const struct pwc_am *message,
                         const unsigned char *bytes, size_t length)
{
    struct receives *receives = &endpoint->receives;
    struct unexpected *unexpected;

    for (struct posted **at = &receives->posted; *at; at = &(*at)->next) {
        struct posted *posted = *at;

        if (posted->source != PWC_ANY && posted->source != message->from)
            continue;
        end_receive(endpoint, posted, message->from, message->arguments[0], message->arguments[1],
                    bytes, length);
        take_posted(receives, at);
        return;
    }
    unexpected = malloc(sizeof(*unexpected) + length);
    if (!unexpected) {
        info_warn("a message of %zu bytes is lost: no memory", length);
        return;
    }
    *unexpected = (struct unexpected){.source = message->from,
                                      .flags = message->arguments[0],
                                      .data = message->arguments[1],
                                      .length = length};
    if (length)
        memcpy(unexpected->bytes, bytes, length);
    *receives->last_unexpected = unexpected;
    receives->last_unexpected = &unexpected->next;
}

void receive_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    struct endpoint *endpoint = argument;
    struct assembly *whole;

    if (message->count == RECEIVE_ARGUMENTS)
        take_message(endpoint, message, message->payload, message->length);
    if (message->count != ASSEMBLY_ARGUMENTS)
        return;
    whole = assembly_take(&endpoint->receives.assemblies, message);
    if (whole)
        take_message(endpoint, message, whole->bytes, whole->length);
    free(whole);
}

/* Fills a buffer with a message that came before it, if there is one that matches. */
static bool match_unexpected(struct endpoint *endpoint, const struct posted *posted)
{
    struct receives *receives = &endpoint->receives;

    for (struct unexpected **at = &receives->unexpected; *at; at = &(*at)->next) {
        struct unexpected *u = *at;

        if (posted->source != PWC_ANY && posted->source != u->source)
            continue;
        *at = u->next;
        if (!*at)
            receives->last_unexpected = at;
        end_receive(endpoint, posted, u->source, u->flags, u->data, u->bytes, u->length);
        free(u);
        return true;
    }
    return false;
}

static struct posted *new_posted(struct receives *receives)
{
    struct posted *posted = receives->free;

    if (posted)
        receives->free = posted->next;
    else
        posted = malloc(sizeof(*posted));
    return posted;
}

static ssize_t post(struct endpoint *endpoint, const struct fi_msg *message, uint64_t flags)
{
    struct receives *receives = &endpoint->receives;
    bool reported = endpoint->rx_cq && (!endpoint->rx_selective || flags & FI_COMPLETION);
    struct posted *posted;
    pwc_peer source = PWC_ANY;
    int rc = 0;

    if (message->iov_count > INFO_IOV_LIMIT || flags & ~INFO_RX_OP_FLAGS)
        return -FI_EINVAL;
    if (endpoint->caps & FI_DIRECTED_RECV && message->addr != FI_ADDR_UNSPEC)
        rc = av_peer(endpoint->av, message->addr, &source);
    if (rc < 0)
        return rc;
    if (receives->count >= INFO_QUEUE_SIZE)
        return -FI_EAGAIN;
    posted = new_posted(receives);
    if (!posted)
        return -FI_ENOMEM;
    if (reported && !cq_promise(endpoint->rx_cq)) {
        posted->next = receives->free;
        receives->free = posted;
        return -FI_EAGAIN;
    }
    posted->next = NULL;
    posted->context = message->context;
    posted->source = source;
    posted->reported = reported;
    posted->pieces = message->iov_count;
    if (message->iov_count)
        memcpy(posted->iov, message->msg_iov, message->iov_count * sizeof(*posted->iov));
    if (match_unexpected(endpoint, posted)) {
        posted->next = receives->free;
        receives->free = posted;
        return 0;
    }
    *receives->last_posted = posted;
    receives->last_posted = &posted->next;
    receives->count++;
    return 0;
}

ssize_t receive_recvmsg(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags)
{
    struct endpoint *endpoint = endpoint_of(ep);
    ssize_t rc;

    if ((endpoint->caps & FI_RECV) == 0 || !endpoint->enabled)
        return -FI_EOPBADSTATE;
    lock_take(&endpoint->lock);
    rc = post(endpoint, message, flags);
    lock_give(&endpoint->lock);
    return rc;
}

ssize_t receive_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t source, void *context)
{
    struct fi_msg message = {
        .msg_iov = iov, .iov_count = count, .addr = source, .context = context};

    return receive_recvmsg(ep, &message, endpoint_of(ep)->rx_flags);
}

ssize_t receive_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
                     void *context)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};

    return receive_recvv(ep, &iov, NULL, 1, source, context);
}

ssize_t receive_cancel(fid_t fid, void *context)
{
    struct endpoint *endpoint = container_of(fid, struct endpoint, fid.fid);
    ssize_t rc = -FI_ENOENT;

    lock_take(&endpoint->lock);
    for (struct posted **at = &endpoint->receives.posted; *at; at = &(*at)->next) {
        if ((*at)->context != context)
            continue;
        if (endpoint->rx_cq) {
            struct fi_cq_err_entry error = {.op_context = context,
                                            .flags = FI_MSG | FI_RECV,
                                            .err = FI_ECANCELED,
                                            .prov_errno = -FI_ECANCELED};

            cq_add_error(endpoint->rx_cq, &error, (*at)->reported);
        }
        take_posted(&endpoint->receives, at);
        rc = 0;
        break;
    }
    lock_give(&endpoint->lock);
    return rc;
}
