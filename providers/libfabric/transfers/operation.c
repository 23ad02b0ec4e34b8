/*
 * Owns the operations of an endpoint. Thread: the one that holds the endpoint's lock.
 */
#include "providers/libfabric/transfers/operation.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include "providers/libfabric/objects/endpoint.h"

#define CHUNK 256

struct operation_chunk {
    struct operation_chunk *next;
    struct operation operations[CHUNK];
};

static void end_part(struct endpoint *endpoint, struct operation *operation, int status)
{
    if (status < 0 && operation->status == 0)
        operation->status = status;
    if (--operation->parts == 0)
        operation_end(endpoint, operation, operation->status);
}

static void part_ended(struct endpoint *endpoint, struct pending *pending,
                       const struct pwc_event *event)
{
    struct operation *operation = container_of(pending, struct operation, pending);

    if (event->status < 0 && again_wait(endpoint, operation, event->status))
        return;
    end_part(endpoint, operation, event->status);
}

void operation_part_failed(struct endpoint *endpoint, struct operation *operation, int status)
{
    end_part(endpoint, operation, status);
}

static bool add_chunk(struct operations *operations)
{
    struct operation_chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        return false;
    chunk->next = operations->chunks;
    operations->chunks = chunk;
    for (unsigned i = 0; i < CHUNK; i++) {
        chunk->operations[i].next = operations->free;
        operations->free = &chunk->operations[i];
    }
    return true;
}

struct operation *operation_new(struct endpoint *endpoint, const struct operation_start *start,
                                struct peer *peer, struct remote *remote)
{
    struct operations *all = &endpoint->operations;
    bool reported = endpoint->tx_cq && !start->injected &&
                    (!endpoint->tx_selective || start->op_flags & FI_COMPLETION);
    struct operation *operation;

    if (!all->free && !add_chunk(all))
        return NULL;
    if (reported && !cq_promise(endpoint->tx_cq))
        return NULL;
    operation = all->free;
    all->free = operation->next;
    operation->pending.end = part_ended;
    operation->next = all->under_way;
    operation->at = &all->under_way;
    operation->context = start->context;
    operation->flags = start->class_flags;
    operation->promised = reported;
    operation->reported = reported;
    operation->parts = 1;
    operation->status = 0;
    operation->peer = peer;
    operation->remote = remote;
    operation->copy = NULL;
    operation->waits = false;
    operation->marked = false;
    operation->again.submit = NULL;
    if (operation->next)
        operation->next->at = &operation->next;
    all->under_way = operation;
    all->count++;
    if (peer) {
        peer->users++;
        peer->fences += (start->op_flags & FI_FENCE) != 0;
        operation->fences = peer->fences;
    }
    return operation;
}

static void put_back(struct endpoint *endpoint, struct operation *operation)
{
    struct operations *all = &endpoint->operations;

    *operation->at = operation->next;
    if (operation->next)
        operation->next->at = operation->at;
    if (operation->waits) {
        operation->peer->waiting--;
        all->waiting--;
    } else if (operation->peer)
        operation->peer->users--;
    free(operation->copy);
    operation->next = all->free;
    all->free = operation;
    all->count--;
    all->marked -= operation->marked;
}

void operation_drop(struct endpoint *endpoint, struct operation *operation)
{
    if (operation->promised)
        cq_release(endpoint->tx_cq);
    put_back(endpoint, operation);
}

static struct cntr *counter_of(struct endpoint *endpoint, uint64_t flags)
{
    if (flags & FI_READ)
        return endpoint->cntrs[CLASS_READ];
    if (flags & FI_WRITE)
        return endpoint->cntrs[CLASS_WRITE];
    return endpoint->cntrs[CLASS_SEND];
}

static void report(struct endpoint *endpoint, struct operation *operation, int status)
{
    if (status < 0) {
        struct fi_cq_err_entry entry = {
            .op_context = operation->context,
            .flags = operation->flags,
            .err = -status,
            .prov_errno = status,
        };

        if (endpoint->tx_cq)
            cq_add_error(endpoint->tx_cq, &entry, operation->promised);
    } else if (operation->reported) {
        struct cq_completion completion = {
            .entry = {.op_context = operation->context, .flags = operation->flags},
            .source = FI_ADDR_NOTAVAIL,
        };

        cq_add(endpoint->tx_cq, &completion, operation->promised);
    }
}

void operation_end(struct endpoint *endpoint, struct operation *operation, int status)
{
    struct cntr *cntr = counter_of(endpoint, operation->flags);

    report(endpoint, operation, status);
    if (cntr && status < 0)
        cntr_count_failure(cntr);
    else if (cntr)
        cntr_count(cntr);
    if (status < 0 && operation->remote && !operation->waits)
        remote_failed(operation->remote, status);
    put_back(endpoint, operation);
}

void operations_mark(struct operations *operations)
{
    for (struct operation *one = operations->under_way; one; one = one->next)
        one->marked = true;
    operations->marked = operations->count;
}

void operations_end_all(struct endpoint *endpoint, int status)
{
    while (endpoint->operations.under_way)
        operation_end(endpoint, endpoint->operations.under_way, status);
}

void operations_free(struct endpoint *endpoint)
{
    struct operations *operations = &endpoint->operations;

    while (operations->under_way)
        operation_drop(endpoint, operations->under_way);
    while (operations->chunks) {
        struct operation_chunk *next = operations->chunks->next;

        free(operations->chunks);
        operations->chunks = next;
    }
}
