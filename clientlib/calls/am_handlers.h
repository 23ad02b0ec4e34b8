/*
 * A context's handlers of active messages, and the state of the one that is running.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_AM_HANDLERS_H
#define PWC_CLIENTLIB_AM_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>
#include "pwc/am.h"
#include "proto/session_abi.h"

struct handler {
    pwc_am_handler run;
    void *argument;
};

enum running {
    RUNNING_NONE = 0,
    RUNNING_ONE_WAY, /* for a reply, or a request without a reply */
    RUNNING_REQUEST, /* for a request whose handler has not replied yet */
    RUNNING_REPLIED,
};

struct handlers {
    struct handler *table; /* PWC_AM_HANDLERS; NULL before the first is registered */
    enum running running;
    uint32_t serial; /* of the last request; never 0 */
    uint64_t token; /* the token of the running request: its serial, and the daemon's token; or 0 */
    pwc_peer from;
};

void handlers_destroy(struct handlers *handlers);

/* Runs the handler of a message, a channel_deliver; `context` is the struct pwc_ctx. */
int handlers_deliver(void *context, const struct event_record *event, int32_t *status);

#endif
