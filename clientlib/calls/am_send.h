/*
 * Sending active messages: the common part of requests and replies.
 *
 * Thread: the one that owns the context; as operation.h.
 */
#ifndef PWC_CLIENTLIB_AM_SEND_H
#define PWC_CLIENTLIB_AM_SEND_H

#include <stdint.h>
#include "clientlib/attach/context.h"
#include "clientlib/calls/operation.h"
#include "pwc/am.h"

/* An active message to send, as the caller of pwc_am_* gave it. */
struct am_outgoing {
    uint8_t kind;           /* SUBMIT_SHORT, SUBMIT_MEDIUM or SUBMIT_LONG */
    struct pwc_remote *dst; /* NULL: a reply that is not a Long */
    uint64_t off;           /* where a Long's payload goes in the remote region */
    const struct pwc_am_send *send;
    struct pwc_request *request; /* the request given in place of the local id, or NULL */
};

enum {
    REPLY_FLAGS = PWC_NO_LCE | PWC_LCE_SOURCE | PWC_UNORDERED | SUBMIT_PROTOCOL,
    REQUEST_FLAGS = REPLY_FLAGS | PWC_FENCE | PWC_AM_NO_REPLY,
};

/* Bytes of a message's block. */
static inline uint16_t am_block_bytes(const struct message *block)
{
    return (uint16_t)(sizeof(*block) + 8u * block->arguments + abi_pad8(block->payload_len));
}

/* Called first. If the local id is a request of this context, the message gets that request's id,
 * and no local event of its own: `m` then points to `own`, a changed copy of the caller's
 * struct. */
void am_take_request(struct pwc_ctx *ctx, struct am_outgoing *m, struct pwc_am_send *own);
/* Checks everything of a message except its memory: 0 or an error. */
int am_check(const struct pwc_ctx *ctx, const struct am_outgoing *m, unsigned flags_allowed);
/* The operation of a message that has been checked; `block` holds its head and must outlive it. */
struct operation am_operation(struct channel_outbox *outbox, const struct am_outgoing *m,
                              struct message *block);
/* Submits a message that has been checked, with its request under way; `token` is the token of the
 * request that it answers, or 0. */
int am_send(struct pwc_ctx *ctx, struct channel_outbox *outbox, const struct am_outgoing *m,
            uint32_t token);

#endif
