/*
 * Owns nothing: looks keys up again for operations that were refused, and submits these once more.
 * Thread: the one that holds the endpoint's lock.
 */
#include "providers/libfabric/transfers/again.h"

#include <errno.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/transfers/submit.h"

bool again_wait(struct endpoint *endpoint, struct operation *operation, int status)
{
    /* After a fence the operation would come too late: fenced operations have started. */
    if (status != -EKEYREJECTED || !operation->again.submit ||
        operation->fences != operation->peer->fences)
        return false;
    operation->again.key = operation->remote->key;
    remote_failed(operation->remote, status);
    operation->waits = true;
    operation->peer->users--;
    operation->peer->waiting++;
    endpoint->operations.waiting++;
    return true;
}

static void submit_one(struct endpoint *endpoint, struct operation *operation)
{
    struct submission s = {.endpoint = endpoint, .peer = operation->peer, .operation = operation};
    const struct fi_rma_iov range = {operation->again.address, operation->again.length,
                                     operation->again.key};
    int rc = remote_of_peer(endpoint, operation->peer, &range, &s.remote, &s.offset);

    if (rc == 0)
        rc = operation->again.submit(&s);
    if (rc == -EAGAIN)
        return;
    operation->waits = false;
    operation->remote = s.remote;
    operation->again.submit = NULL;
    operation->peer->users++;
    operation->peer->waiting--;
    endpoint->operations.waiting--;
    if (rc < 0)
        operation_end(endpoint, operation, rc);
    else
        s.remote->used = true;
}

void again_submit(struct endpoint *endpoint)
{
    struct operation *operation = endpoint->operations.under_way;

    while (operation && endpoint->operations.waiting > 0) {
        struct operation *next = operation->next;

        if (operation->waits)
            submit_one(endpoint, operation);
        operation = next;
    }
}
