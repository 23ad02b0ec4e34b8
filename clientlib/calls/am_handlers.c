/*
 * Owns the table of handlers, and runs them. Thread: the one that owns the context.
 */
#include "clientlib/calls/am_handlers.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/attach/guard.h"
#include "clientlib/calls/am_send.h"
#include "clientlib/neighbours/direct.h"
#include "proto/wire_abi.h"

static_assert(PWC_AM_MEDIUM - PWC_AM_SHORT == SUBMIT_MEDIUM - SUBMIT_SHORT &&
                  PWC_AM_LONG - PWC_AM_SHORT == SUBMIT_LONG - SUBMIT_SHORT,
              "the kinds have one order");

void handlers_destroy(struct handlers *handlers)
{
    free(handlers->table);
}

int pwc_am_register(pwc_ctx *ctx, unsigned index, pwc_am_handler handler, void *argument)
{
    struct handlers *handlers = &ctx->handlers;
    _Atomic uint64_t *word;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (index >= PWC_AM_HANDLERS)
        return -EINVAL;
    if (!handlers->table) {
        if (!handler)
            return 0;
        handlers->table = calloc(PWC_AM_HANDLERS, sizeof(handlers->table[0]));
        if (!handlers->table || channel_set_deliver(&ctx->channel, handlers_deliver, ctx) < 0) {
            free(handlers->table);
            handlers->table = NULL;
            return -ENOMEM;
        }
    }
    handlers->table[index] = (struct handler){.run = handler, .argument = argument};
    word = &ctx->channel.shared->handlers[index / 64];
    if (handler)
        atomic_fetch_or_explicit(word, UINT64_C(1) << index % 64, memory_order_release);
    else
        atomic_fetch_and_explicit(word, ~(UINT64_C(1) << index % 64), memory_order_release);
    neighbours_show_handlers(&ctx->channel.neighbours, index / 64,
                             atomic_load_explicit(word, memory_order_relaxed));
    return 0;
}

/* Fills in what the handler gets: 0; -EKEYREJECTED: the target region of a Long is gone;
 * -ENOMEM. */
static int describe(struct pwc_ctx *ctx, const struct event_record *event, struct pwc_am *am)
{
    const struct message *block = (const struct message *)(event + 1);
    const uint64_t *arguments = (const uint64_t *)(block + 1);
    uint8_t *at = NULL;
    int rc = 0;

    *am = (struct pwc_am){
        .from = event->peer,
        .index = block->index,
        .kind = block->kind - SUBMIT_SHORT + PWC_AM_SHORT,
        .is_reply = event->kind == EVENT_REPLY,
        .count = block->arguments,
        .arguments = arguments,
    };
    if (block->kind == SUBMIT_MEDIUM) {
        /* The payload is in the ring, and the library may write there until the record is consumed;
         * for a neighbour's message it is in the library's copy. */
        am->payload = (void *)(uintptr_t)(arguments + block->arguments);
        am->length = block->payload_len;
    } else if (block->kind == SUBMIT_LONG) {
        am->length = event->bytes;
        rc = landing_view_find(&ctx->landings, &ctx->client->landings, block->slot,
                               block->generation, block->offset, event->bytes, &at);
        am->payload = at;
    }
    return rc;
}

/* Shows the requester's library that no reply will come. There is always room for this. It can fail
 * only when the session is over, and then no answer is needed; a neighbour gets the answer in any
 * case. */
static void reply_nothing(struct pwc_ctx *ctx, uint32_t token)
{
    static const struct pwc_am_send empty = {.flags = PWC_NO_RCE | PWC_NO_LCE};
    static const struct am_outgoing nothing = {.kind = SUBMIT_SHORT, .send = &empty};

    if (ctx->channel.neighbours.answering)
        (void)direct_reply(ctx, NULL);
    else
        (void)am_send(ctx, &ctx->channel.reply_submit, &nothing, token);
}

static void run(struct pwc_ctx *ctx, const struct handler *handler, const struct pwc_am *am)
{
    handler_enter();
    handler->run(ctx, am, handler->argument);
    handler_leave();
}

int handlers_deliver(void *context, const struct event_record *event, int32_t *status)
{
    struct pwc_ctx *ctx = context;
    struct handlers *handlers = &ctx->handlers;
    const struct message *block = (const struct message *)(event + 1);
    const struct handler handler = handlers->table[block->index];
    bool replied_to = event->kind == EVENT_REQUEST && block->token != WIRE_NONE;
    struct pwc_am am;
    int rc = describe(ctx, event, &am);

    if (rc == -ENOMEM)
        return rc;
    if (!handler.run) /* taken away while the message was on its way */
        rc = -ENOSYS;
    *status = rc;
    handlers->running = replied_to ? RUNNING_REQUEST : RUNNING_ONE_WAY;
    handlers->from = event->peer;
    handlers->token = 0;
    if (replied_to) {
        handlers->serial = handlers->serial == UINT32_MAX ? 1 : handlers->serial + 1;
        handlers->token = (uint64_t)handlers->serial << 32 | block->token;
    }
    am.token = handlers->token;
    if (rc == 0)
        run(ctx, &handler, &am);
    if (handlers->running == RUNNING_REQUEST)
        reply_nothing(ctx, (uint32_t)handlers->token);
    handlers->running = RUNNING_NONE;
    return 0;
}
