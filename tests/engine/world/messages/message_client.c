/* Active messages over raw rings (message_client.h). Thread: one. */
#include "tests/engine/world/messages/message_client.h"

#include <errno.h>
#include <string.h>
#include "shm_ring/doorbell.h"

void message_client_open(struct message_client *c, struct world *w, uint32_t client)
{
    struct session_shared *shared = w->clients[client].contexts[0].base;
    const struct session_sizes sizes = shared->sizes;
    uint8_t *data = (uint8_t *)shared + SESSION_DATA_OFFSET;

    *c = (struct message_client){.world = w, .client = client, .shared = shared};
    ring_producer_init(&c->submit, &shared->submit, data, sizes.submit, 0);
    data += sizes.submit;
    ring_consumer_init(&c->events[MESSAGE_LOCAL], &shared->local, data, sizes.local, 0);
    data += sizes.local;
    ring_consumer_init(&c->events[MESSAGE_REMOTE], &shared->remote, data, sizes.remote, 0);
    data += sizes.remote;
    ring_producer_init(&c->answer, &shared->reply_submit, data, sizes.reply_submit, 0);
    data += sizes.reply_submit;
    ring_consumer_init(&c->events[MESSAGE_REPLY], &shared->reply_event, data, sizes.reply_event, 0);
    message_handlers(c, true);
}

void message_handlers(struct message_client *c, bool there)
{
    for (uint32_t i = 0; i < SESSION_HANDLERS / 64; i++)
        atomic_store(&c->shared->handlers[i], there ? UINT64_MAX : 0);
}

/* ---- submission ---------------------------------------------------------------------------- */

uint32_t message_build(const struct message_client *c, const struct message_send *send, bool answer,
                       uint8_t *to)
{
    bool medium = send->kind == SUBMIT_MEDIUM;
    struct submit_record *r = (struct submit_record *)(void *)to;
    struct message *m = (struct message *)(void *)(r + 1);
    uint8_t *at = (uint8_t *)(m + 1);

    *r = (struct submit_record){
        .kind = send->kind,
        .flags = send->flags,
        .remote = send->remote,
        .reserve = event_bytes(0),
        .offset = send->offset,
        .length = medium ? 0 : send->length,
        .lid = send->lid,
        .rid = answer ? send->token : 0,
        .segment = c->world->clients[c->client].segments[WORLD_MAIN].handle,
        .local_offset = c->world->clients[c->client].contexts[0].offset + send->local_offset,
    };
    *m = (struct message){
        .index = (uint16_t)send->index,
        .kind = send->kind,
        .arguments = (uint8_t)send->count,
        .slot = 0xdead, /* slot and token are words of the daemons */
        .token = 0xbeef,
        .payload_len = medium ? send->length : 0,
    };
    memcpy(at, send->arguments, 8u * send->count);
    at += 8u * send->count;
    if (medium && send->length) {
        memset(at, 0, abi_pad8(send->length));
        memcpy(at, send->payload, send->length);
        at += abi_pad8(send->length);
    }
    r->rid_len = (uint16_t)(at - (uint8_t *)m);
    if (send->flags & SUBMIT_INLINE) {
        memcpy(at, send->payload, send->length);
        at += abi_pad8(send->length);
    }
    r->size = (uint32_t)(at - to);
    return r->size;
}

int message_raw(struct message_client *c, bool answer, const void *record, uint32_t size)
{
    struct world *w = c->world;
    struct world_node *n = &w->nodes[w->clients[c->client].node];
    struct ring_producer *ring = answer ? &c->answer : &c->submit;
    void *room;
    int rc = ring_reserve(ring, size, &room);

    if (rc < 0)
        return rc;
    memcpy(room, record, size);
    ring_advance(ring, size);
    ring_publish(ring);
    rc = doorbell_ring(&c->shared->submit_bell) != DOORBELL_AWAKE;
    if (n->alive && n->armed && !n->rung && !rc)
        world_fail(w, "node %u sleeps and client %u was not asked to ring", n->number, c->client);
    n->rung |= rc == 1;
    w->idle = 0;
    return 0;
}

static uint64_t local_held(const struct message_client *c)
{
    return c->local_reserved - c->local_returned - atomic_load(&c->shared->released);
}

uint64_t message_reply_held(const struct message_client *c)
{
    return c->reply_reserved - c->reply_returned - atomic_load(&c->shared->reply_released);
}

bool message_room(const struct message_client *c)
{
    return local_held(c) + event_bytes(0) <= session_local_limit(c->shared->sizes.local);
}

void message_submitted(struct message_client *c)
{
    c->local_reserved += event_bytes(0);
    c->submitted++;
}

static int submit(struct message_client *c, const struct message_send *send, bool answer)
{
    _Alignas(8) uint8_t record[MESSAGE_EVENT_MAX];
    uint32_t size = message_build(c, send, answer, record);
    int rc;

    if (!message_room(c))
        return -EAGAIN;
    rc = message_raw(c, answer, record, size);
    if (rc < 0)
        return rc;
    message_submitted(c);
    return 0;
}

int message_request(struct message_client *c, const struct message_send *send)
{
    uint32_t each = event_bytes(c->shared->message_max);
    bool awaited = !(send->flags & SUBMIT_NO_REPLY);
    int rc;

    if (awaited && message_reply_held(c) + each >
                       session_reply_limit(c->shared->sizes.reply_event, c->shared->message_max))
        return -EAGAIN;
    rc = submit(c, send, false);
    if (rc == 0 && awaited)
        c->reply_reserved += each;
    return rc;
}

int message_reply(struct message_client *c, const struct message_send *send)
{
    return submit(c, send, true);
}

bool message_reply_room(struct message_client *c)
{
    uint32_t longest = (uint32_t)sizeof(struct submit_record) + c->shared->message_max;
    void *room;

    return message_room(c) && ring_reserve(&c->answer, longest, &room) == 0;
}

/* ---- events -------------------------------------------------------------------------------- */

/* Takes the next event, except for those of peers that end. */
static int copy_next(struct ring_consumer *ring, struct message_event *out, uint32_t *size)
{
    int rc;

    while ((rc = ring_copy(ring, out, sizeof(*out), size)) == 1 && out->head.kind == EVENT_PEER &&
           *size == event_bytes(0)) {
        ring_consume(ring, *size);
        ring_release(ring);
    }
    return rc;
}

int message_probe(struct message_client *c, enum message_ring ring, struct message_event *out)
{
    static const uint8_t first[] = {EVENT_LOCAL, EVENT_REMOTE, EVENT_REPLY};
    static const uint8_t last[] = {EVENT_LOCAL, EVENT_OFFLOAD, EVENT_REPLY};
    uint32_t size;
    int rc = copy_next(&c->events[ring], out, &size);

    if (rc <= 0)
        return rc;
    if (out->head.kind < first[ring] || out->head.kind > last[ring] ||
        size != event_bytes(out->head.id_len))
        return -EPROTO;
    ring_consume(&c->events[ring], size);
    ring_release(&c->events[ring]);
    if (ring == MESSAGE_LOCAL)
        c->local_returned += size;
    if (ring == MESSAGE_REPLY)
        c->reply_returned += event_bytes(c->shared->message_max);
    return 1;
}

bool message_at_rest(const struct message_client *c)
{
    return atomic_load(&c->shared->ended) == c->submitted && local_held(c) == 0 &&
           message_reply_held(c) == 0;
}
