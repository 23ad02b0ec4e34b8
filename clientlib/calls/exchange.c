/*
 * Exchange and barrier: collective over the job's ranks, through the control connection.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "clientlib/attach/wake_socket.h"
#include "shm_ring/fault.h"

enum { EXCHANGE_MAX = 4096 };

struct gathering {
    uint8_t *all;
    uint64_t total;
    uint64_t received;
};

static int accept_piece(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__Exchanged *piece = reply->exchanged;
    struct gathering *gathering = context;

    if (piece->offset > gathering->total || piece->data.len > gathering->total - piece->offset)
        return -EPROTO;
    if (piece->data.len > 0)
        memcpy(gathering->all + piece->offset, piece->data.data, piece->data.len);
    gathering->received += piece->data.len;
    FAULT(EXCHANGE_PIECE);
    if (!piece->last)
        return 0;
    return gathering->received == gathering->total ? 1 : -EPROTO;
}

int pwc_exchange(pwc_ctx *ctx, const void *mine, size_t len, void *all)
{
    struct pwc_client *client = ctx->client;
    struct gathering gathering = {.all = all, .total = (uint64_t)len * client->size};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;
    int rc = client_may_block(client);

    if (rc < 0)
        return rc;
    if (len > EXCHANGE_MAX)
        return -EINVAL;
    exchange.sequence = atomic_fetch_add_explicit(&client->exchanges, 1, memory_order_relaxed);
    exchange.data.len = len;
    exchange.data.data = (uint8_t *)(uintptr_t)mine;
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    /* A daemon that is started anew knows nothing of it, and the same once more does no harm. */
    do {
        gathering.received = 0;
        rc = daemon_call(&client->link, &request, PWC__CLIENT_REPLY__BODY_EXCHANGED, accept_piece,
                         &gathering);
    } while (rc == -ECONNABORTED);
    /* Origins may have bound us before they came here too. */
    if (neighbours_have_changed(ctx))
        neighbours_update(ctx, neighbour_changes(ctx));
    return rc;
}

int pwc_barrier(pwc_ctx *ctx)
{
    return pwc_exchange(ctx, NULL, 0, NULL);
}
