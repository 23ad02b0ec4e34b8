/* Sends and handles messages. */
#include "tools/pwcperf/message.h"
#include <errno.h>
#include <pwc/am.h>
#include "tools/pwcperf/pattern.h"

#define HANDLER 1u

/* Both sides send messages of equal numbers, but with different bytes. */
static uint64_t seed_of(const struct messages *m, uint64_t number, bool from_initiator)
{
    return pattern_mix(pattern_mix(m->size << 1 | from_initiator) + number);
}

static size_t slot_of(const struct messages *m, uint64_t number)
{
    return (number & (m->slots - 1)) * m->size; /* a division would be in the measured time */
}

void messages_fill(const struct messages *m, uint64_t number)
{
    pattern_fill(m->pair->departures + slot_of(m, number), m->size,
                 seed_of(m, number, m->pair->initiates), 0);
}

/* Fills in message `number`: the number is its only argument; a Short's size is 0. */
static struct pwc_am_send message(const struct messages *m, const uint64_t *number)
{
    return (struct pwc_am_send){.index = HANDLER,
                                .arguments = number,
                                .count = 1,
                                .src =
                                    m->size > 0 ? m->pair->departures + slot_of(m, *number) : NULL,
                                .len = m->size,
                                .flags = PWC_NO_LCE};
}

int messages_send(const struct messages *m, uint64_t number, uint64_t lid, unsigned flags)
{
    const struct pair *pair = m->pair;
    const struct options *options = pair->world->options;
    size_t at = slot_of(m, number);
    struct pwc_am_send send = message(m, &number);
    send.lid = pwc_cid_u64(lid);
    send.flags = flags | (options->kind == KIND_LONG ? options->protocol : 0);
    switch (options->kind) {
    case KIND_PUT:
        return pwc_put(pair->remote, at, pair->departures + at, m->size, send.lid,
                       pwc_cid_u64(number), flags | options->protocol);
    case KIND_SHORT:
        return pwc_am_short(pair->remote, &send);
    case KIND_MEDIUM:
        return pwc_am_medium(pair->remote, &send);
    case KIND_LONG:
        return pwc_am_long(pair->remote, at, &send);
    case KIND_FETCH:
        break;
    }
    return -EINVAL;
}

static int reply(const struct messages *m, uint64_t token, uint64_t number)
{
    const struct options *options = m->pair->world->options;
    pwc_ctx *ctx = m->pair->world->ctx;
    struct pwc_am_send send = message(m, &number);
    switch (options->kind) {
    case KIND_PUT:
    case KIND_FETCH:
        break;
    case KIND_SHORT:
        return pwc_am_reply_short(ctx, token, &send);
    case KIND_MEDIUM:
        return pwc_am_reply_medium(ctx, token, &send);
    case KIND_LONG:
        send.flags |= options->protocol;
        return pwc_am_reply_long(ctx, token, m->pair->remote, slot_of(m, number), &send);
    }
    return -EINVAL;
}

static int check(const struct messages *m, const struct pwc_am *message)
{
    const struct world *world = m->pair->world;
    if (message->count != 1 || message->arguments[0] != m->handled || message->length != m->size)
        return world_wrong(world, "%u arguments and %zu bytes came where message %llu was due",
                           message->count, message->length, (unsigned long long)m->handled);
    if (!world->options->check)
        return 0;
    size_t same =
        pattern_check(message->payload, m->size, seed_of(m, m->handled, !m->pair->initiates), 0);
    if (same != m->size)
        return world_wrong(world, "byte %zu of %zu of message %llu is wrong", same, (size_t)m->size,
                           (unsigned long long)m->handled);
    return 0;
}

static void handle(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    struct messages *m = argument;
    int rc = m->rc;
    (void)ctx;
    if (rc == 0)
        rc = check(m, message);
    if (rc == 0 && message->token != 0) {
        rc = reply(m, message->token, m->handled);
        if (rc < 0)
            (void)world_error(m->pair->world, rc, "replying with %zu bytes", (size_t)m->size);
        /* The next request may be handled before the wait for this one returns. */
        else if (m->pair->world->options->check)
            messages_fill(m, m->handled + 1);
    }
    m->rc = rc;
    m->handled++;
}

int messages_open(struct messages *m, struct pair *pair, uint64_t size, uint64_t slots)
{
    struct world *world = pair->world;
    *m = (struct messages){.pair = pair, .size = size, .slots = 1};
    while (m->slots * 2 <= slots)
        m->slots *= 2;
    if (world->options->kind == KIND_PUT)
        return 0;
    if (world->options->check)
        messages_fill(m, 0);
    int rc = pwc_am_register(world->ctx, HANDLER, handle, m);
    if (rc == 0)
        rc = pwc_barrier(world->ctx);
    return rc < 0 ? world_error(world, rc, "putting the handler in place") : 0;
}

int messages_await(struct messages *m, uint64_t handled)
{
    struct pwc_event event;
    int rc = m->rc;
    while (rc == 0 && m->handled < handled) {
        /* Wait for local events, too: a message that failed has one. */
        rc = world_wait(m->pair->world, m->pair->peer, PWC_MESSAGE | PWC_LOCAL, &event);
        if (rc == 0)
            rc = m->rc;
    }
    return rc;
}
