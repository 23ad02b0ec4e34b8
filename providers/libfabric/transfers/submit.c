/*
 * Owns nothing: the steps before and after the submission of each operation. Thread: the
 * application's, which holds the endpoint's lock from submit_begin to submit_finish.
 */
#include "providers/libfabric/transfers/submit.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include "providers/libfabric/objects/endpoint.h"

unsigned submit_flags(uint64_t flags)
{
    return PWC_UNORDERED | (flags & FI_FENCE ? PWC_FENCE : 0);
}

/* Whether another thread sleeps until an operation of the endpoint ends. */
static bool is_awaited(const struct endpoint *endpoint)
{
    if (!endpoint->lock.used)
        return false;
    if (endpoint->tx_cq && members_asleep(endpoint->tx_cq->members))
        return true;
    for (unsigned i = 0; i < CLASSES; i++)
        if (endpoint->cntrs[i] && members_asleep(endpoint->cntrs[i]->members))
            return true;
    return false;
}

static ssize_t leave(struct endpoint *endpoint, ssize_t rc)
{
    unsigned refused = rc == -FI_EAGAIN ? endpoint->refused + 1 : 0;

    /* A caller may only try again, and never read a queue: so each try must make progress. */
    if (refused > 0)
        endpoint_progress_held(endpoint);
    /* On one node an operation may have ended at once, which makes no descriptor readable. */
    if (rc == 0 && is_awaited(endpoint))
        endpoint_progress_held(endpoint);
    endpoint->refused = refused;
    if (rc == 0)
        atomic_store_explicit(&endpoint->submitted, true, memory_order_relaxed);
    lock_give(&endpoint->lock);
    if (refused > 0)
        endpoint_yield(endpoint, refused);
    return rc;
}

/* `found` is the result of the search for the remote or peer. */
static ssize_t begin(struct submission *submission, int found, const struct operation_start *start)
{
    struct endpoint *endpoint = submission->endpoint;

    if (found == -FI_EAGAIN || found == -FI_EINVAL || found == -FI_ENOMEM)
        return leave(endpoint, found);
    /* A fence is also for operations that libpwc does not have at the moment. */
    if (found == 0 && start->op_flags & FI_FENCE && submission->peer->waiting > 0)
        return leave(endpoint, -FI_EAGAIN);
    submission->operation =
        found == 0 ? operation_new(endpoint, start, submission->peer, submission->remote)
                   : operation_new(endpoint, start, NULL, NULL);
    if (!submission->operation)
        return leave(endpoint, -FI_EAGAIN);
    if (found == 0)
        return SUBMIT_GOES_ON;
    operation_end(endpoint, submission->operation, found);
    return leave(endpoint, 0);
}

ssize_t submit_begin(struct submission *submission, struct endpoint *endpoint, fi_addr_t number,
                     const struct fi_rma_iov *range, const struct operation_start *start)
{
    int rc;

    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    lock_take(&endpoint->lock);
    *submission = (struct submission){.endpoint = endpoint};
    if (endpoint->over < 0)
        return begin(submission, endpoint->over, start);
    rc = remote_find(endpoint, number, range, &submission->remote, &submission->offset);
    if (rc == 0)
        submission->peer = submission->remote->peer;
    return begin(submission, rc, start);
}

ssize_t submit_begin_message(struct submission *submission, struct endpoint *endpoint,
                             fi_addr_t number, const struct operation_start *start)
{
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    lock_take(&endpoint->lock);
    *submission = (struct submission){.endpoint = endpoint};
    if (endpoint->over < 0)
        return begin(submission, endpoint->over, start);
    return begin(submission, remote_peer(endpoint, number, &submission->peer), start);
}

int submit_parts(struct submission *submission, size_t count,
                 int (*one)(struct submission *submission, const void *call, size_t index),
                 const void *call)
{
    struct operation *operation = submission->operation;

    for (size_t i = 0; i < count; i++) {
        unsigned looks = 0;
        int rc;

        if (i > 0)
            operation->parts++;
        while ((rc = one(submission, call, i)) == -EAGAIN && i > 0) {
            /* At the end of the session all operations have ended, this one too. */
            if (endpoint_progress_held(submission->endpoint) < 0)
                return 0;
            endpoint_yield_held(submission->endpoint, ++looks);
        }
        if (rc < 0 && i == 0)
            return rc;
        if (rc < 0) {
            operation_part_failed(submission->endpoint, operation, rc);
            return 0;
        }
    }
    return 0;
}

struct part_end submit_part_end(uint64_t flags, uint64_t data, size_t index, bool last)
{
    bool with_data = flags & FI_REMOTE_CQ_DATA && last;
    uint64_t fence = with_data && index > 0 ? FI_FENCE : index == 0 ? flags & FI_FENCE : 0;

    return (struct part_end){
        .flags = submit_flags(fence) | (with_data ? 0 : PWC_NO_RCE),
        .rid = with_data ? pwc_cid_u64(data) : PWC_CID_NONE,
    };
}

/* Whether this error ends the operation, with an error completion, rather than the call: a provider
 * over a network finds such errors only after the call has returned. */
static bool of_operation(int rc)
{
    return rc == -ERANGE || rc == -EKEYREJECTED || rc == -ESHUTDOWN || rc == -EPROTO ||
           rc == -EHOSTDOWN || rc == -EHOSTUNREACH;
}

ssize_t submit_finish(struct submission *submission, int result)
{
    struct endpoint *endpoint = submission->endpoint;
    struct remote *remote = submission->remote;

    if (result == 0 && remote)
        remote->used = true;
    if (result == -EKEYREJECTED && remote && remote_refused(remote))
        result = -FI_EAGAIN;
    if (result < 0 && of_operation(result)) {
        operation_end(endpoint, submission->operation, result);
        result = 0;
    } else if (result < 0)
        operation_drop(endpoint, submission->operation);
    return leave(endpoint, result);
}
