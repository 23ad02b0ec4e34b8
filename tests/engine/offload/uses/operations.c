/* Submits the operations of a run's clients, and counts their ends and events (uses.h). Thread:
 * one. */
#include "tests/engine/offload/uses/uses.h"

#include <errno.h>
#include <string.h>

/* ---- submission ------------------------------------------------------------------------------ */

void uses_fill(uint8_t *to, uint32_t number, uint32_t length)
{
    uint64_t value = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (uint32_t i = 0; i < length; i++) {
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        to[i] = (uint8_t)(value >> 56);
    }
}

uint8_t *uses_room(struct uses *u, uint32_t client, uint32_t length)
{
    struct use_client *c = &u->client[client];

    if (u->count == USES_OPS || c->dead || !message_room(&c->channel) ||
        c->source_at + length > USES_PART)
        return NULL;
    return u->world->clients[client].contexts[1].memory + c->source_at;
}

/* Notes the operation, for the checks at the end. */
static bool note(struct uses *u, const struct use_op *op)
{
    u->client[op->from].source_at += (op->length + 7u) & ~7u;
    u->op[u->count++] = *op;
    return true;
}

bool uses_put(struct uses *u, const struct use_op *op, const uint8_t *bytes, uint64_t id)
{
    struct use_client *c = &u->client[op->from];
    const struct world_client *w = &u->world->clients[op->from];
    bool copied = op->length > 0 && op->length <= u->packet && uses_below(u, 2);
    struct {
        struct submit_record record;
        uint8_t bytes[1024];
    } put = {.record = {.size = sizeof(put.record),
                        .kind = SUBMIT_PUT,
                        .flags = copied ? SUBMIT_INLINE : 0,
                        .remote = c->remote[op->to],
                        .reserve = event_bytes(0),
                        .offset = op->place,
                        .length = op->length,
                        .lid = u->count,
                        .rid = id,
                        .segment = w->segments[WORLD_MAIN].handle,
                        .local_offset = w->contexts[1].offset + c->source_at}};

    if (copied) {
        memcpy(put.bytes, bytes, op->length);
        put.record.size += abi_pad8(op->length);
    }
    if (message_raw(&c->channel, false, &put, put.record.size) < 0)
        return false;
    message_submitted(&c->channel);
    return note(u, op);
}

bool uses_message(struct uses *u, const struct use_op *op, uint32_t words, const uint8_t *bytes,
                  bool wants_reply)
{
    struct use_client *c = &u->client[op->from];
    struct message_send send = {.kind = op->length > 0 ? SUBMIT_MEDIUM : SUBMIT_SHORT,
                                .flags = wants_reply ? 0 : SUBMIT_NO_REPLY,
                                .index = USES_INDEX,
                                .remote = c->remote[op->to],
                                .lid = u->count,
                                .count = words,
                                .payload = bytes,
                                .length = op->length};

    memcpy(send.arguments, op->word, sizeof(op->word));
    return message_request(&c->channel, &send) == 0 && note(u, op);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void ended(struct uses *u, uint32_t client, const struct message_event *event)
{
    struct use_op *op;

    if (event->head.id >= u->count || u->op[event->head.id].from != client) {
        world_fail(u->world, "client %u: an end of no operation of its own", client);
        return;
    }
    op = &u->op[event->head.id];
    op->ends++;
    op->status = event->head.status;
}

static void replied(struct uses *u, uint32_t client, const struct message_event *event)
{
    struct use_reply *r = &u->reply[u->replies++];

    if (u->replies > USES_OPS || event->message.arguments > 3 ||
        event->message.payload_len > USES_REPLY) {
        world_fail(u->world, "client %u: a reply that nobody has given", client);
        return;
    }
    *r = (struct use_reply){.from = client,
                            .to = pwc_peer_rank(event->head.peer),
                            .count = event->message.arguments,
                            .length = event->message.payload_len};
    memcpy(r->argument, event->rest, 8u * r->count);
    memcpy(r->bytes, event->rest + 8u * r->count, r->length);
}

/* The client's own handler has a request: it replies with all ones and the last argument. */
static void requested(struct uses *u, uint32_t client, const struct message_event *event)
{
    struct message_send send = {.kind = SUBMIT_SHORT,
                                .flags = SUBMIT_NO_LCE,
                                .token = event->message.token,
                                .count = 2,
                                .arguments = {UINT64_MAX}};

    u->client[client].requests++;
    memcpy(&send.arguments[1], event->rest + 8u * (event->message.arguments - 1), 8);
    if (u->use->replies && message_reply(&u->client[client].channel, &send) < 0)
        world_fail(u->world, "client %u: no room for a reply", client);
    if (u->use->arrived)
        u->use->arrived(u, client, event);
}

static void came(struct uses *u, uint32_t client, enum message_ring ring,
                 const struct message_event *event)
{
    if (ring == MESSAGE_LOCAL) {
        ended(u, client, event);
    } else if (ring == MESSAGE_REPLY) {
        replied(u, client, event);
    } else if (event->head.kind == EVENT_REQUEST) {
        requested(u, client, event);
    } else if (event->head.kind == EVENT_REMOTE) {
        u->client[client].events[0]++;
        if (u->use->arrived)
            u->use->arrived(u, client, event);
    } else if (event->head.kind == EVENT_OFFLOAD) {
        u->client[client].events[event->head.op & 15]++;
    } else {
        world_fail(u->world, "client %u: an event of kind %u", client, event->head.kind);
    }
}

/* A request for the client's own handler is only taken when there is room for the reply. */
static bool may_take(struct uses *u, uint32_t client, int ring)
{
    return ring != MESSAGE_REMOTE || !u->use->replies ||
           message_reply_room(&u->client[client].channel);
}

static bool look(struct uses *u, uint32_t client)
{
    struct message_client *c = &u->client[client].channel;
    bool found = false;

    for (int ring = 0; ring < MESSAGE_RINGS; ring++) {
        struct message_event event;
        int rc;

        while (may_take(u, client, ring) &&
               (rc = message_probe(c, (enum message_ring)ring, &event)) != 0) {
            found = true;
            if (rc < 0)
                world_fail(u->world, "client %u: ring %d: %s", client, ring, strerror(-rc));
            else
                came(u, client, (enum message_ring)ring, &event);
            if (u->world->failed)
                return true;
        }
    }
    return found;
}

bool uses_look(struct uses *u)
{
    bool found = false;

    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        if (!u->client[i].silent && !u->client[i].dead)
            found |= look(u, i);
    return found;
}

/* ---- results --------------------------------------------------------------------------------- */

bool uses_in_doubt(const struct uses *u, const struct use_op *op)
{
    return u->doubts > 0 && !(u->more_flags & ENGINE_OFFLOAD_REPEATABLE) &&
           op->status == -ECONNABORTED;
}

void uses_expect_ends(struct uses *u, int (*status)(const struct uses *u, const struct use_op *op))
{
    uint32_t doubts = 0;

    for (uint32_t i = 0; i < u->count && !u->world->failed; i++) {
        const struct use_op *op = &u->op[i];
        int expected = status ? status(u, op) : 0;

        if (u->client[op->from].dead)
            continue;
        if (uses_in_doubt(u, op) && op->ends == 1) {
            doubts++;
            continue;
        }
        if (op->ends != 1)
            world_fail(u->world, "operation %u of client %u has ended %u times", i, op->from,
                       op->ends);
        else if (op->status != expected)
            world_fail(u->world, "operation %u of client %u ends with %s, not %s", i, op->from,
                       strerror(-op->status), strerror(-expected));
    }
    if (doubts > u->doubts)
        world_fail(u->world, "%u operations in doubt, and %u deaths", doubts, u->doubts);
}

const struct use_reply *uses_reply(const struct uses *u, uint32_t from, uint32_t to, uint32_t n)
{
    for (uint32_t i = 0; i < u->replies; i++) {
        const struct use_reply *r = &u->reply[i];

        if (r->from == from && r->to == to && r->argument[0] != UINT64_MAX && n-- == 0)
            return r;
    }
    return NULL;
}
