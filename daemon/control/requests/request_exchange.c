/* Owns a rank's part in an exchange among all ranks of its job (request_exchange.h). Thread:
 * control. */
#include "daemon/control/requests/request_exchange.h"

#include <errno.h>
#include "daemon/control/clients/reply.h"
#include "daemon/control/nodes/directory_client.h"

void request_exchange(struct client *c, uint32_t request, const Pwc__Exchange *exchange)
{
    struct pending *p;
    uint64_t cookie;

    if (exchange->give_up) {
        directory_client_give_up(c, exchange->sequence);
        reply_done(c, request);
        return;
    }
    if (c->size == DIRECTORY_OPEN) {
        reply_error(c, request, -ENOTSUP,
                    "an exchange or a barrier in open job %s: it has no fixed number of ranks to "
                    "wait for",
                    c->job);
        return;
    }
    if (exchange->data.len > DIRECTORY_DATA_MAX) {
        reply_error(c, request, -EINVAL, "%zu bytes for an exchange: a rank may give %u",
                    exchange->data.len, DIRECTORY_DATA_MAX);
        return;
    }
    if ((uint64_t)exchange->data.len * c->size > DIRECTORY_TOTAL_MAX) {
        reply_error(c, request, -EMSGSIZE, "%zu bytes from each of %u ranks: all may be %u bytes",
                    exchange->data.len, c->size, DIRECTORY_TOTAL_MAX);
        return;
    }
    p = pending_add(&c->control->pending, PENDING_EXCHANGE, c, request, &cookie);
    if (!p) {
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->sequence = exchange->sequence;
    directory_client_contribute(c, cookie, exchange->data.data, (uint32_t)exchange->data.len);
}
