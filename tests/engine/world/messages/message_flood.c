/* Messages in all directions, and their model (message_flood.h). Thread: one. */
#include "tests/engine/world/messages/message_flood.h"

#include <errno.h>
#include <string.h>
#include "proto/wire_abi.h"

#define ROUNDS_MAX 400000u

/* ---- numbers and bytes ----------------------------------------------------------------------- */

static uint32_t below(struct flood *f, uint32_t limit)
{
    return (uint32_t)sim_random_below(&f->random, limit);
}

static uint8_t byte_of(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 31 + at * 7 + (at >> 8) + 1);
}

static uint64_t argument_of(uint32_t number, uint32_t i)
{
    return i == 0 ? number : (uint64_t)number * 1000003 + i;
}

static uint32_t slot_bytes(const struct flood *f)
{
    return (uint32_t)(f->world->clients[0].contexts[0].length / (4 * FLOOD_CLIENTS * FLOOD_SLOTS));
}

/* The offset of slot `slot` for messages with `other`, in a quarter of a client's memory. */
static uint64_t slot_at(const struct flood *f, uint32_t quarter, uint32_t other, uint32_t slot)
{
    return ((uint64_t)(quarter * FLOOD_CLIENTS + other) * FLOOD_SLOTS + slot) * slot_bytes(f);
}

static uint32_t packed_max(const struct flood *f)
{
    return f->world->nodes[0].config.packed_max;
}

void flood_open(struct flood *f, struct world *w, uint32_t clients, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    f->world = w;
    f->clients = clients;
    f->random.state = seed ^ UINT64_C(0xa11ce);
    f->short_of = 30;
    for (uint32_t i = 0; i < clients; i++)
        message_client_open(&f->client[i], w, i);
    for (uint32_t from = 0; from < clients; from++)
        for (uint32_t to = 0; to < clients; to++) {
            int request = world_bind(w, from, 0, to, 0, &w->clients[to].contexts[0].key);

            if (request < 0 || world_await(w, request) != 0) {
                world_fail(w, "bind %u->%u fails", from, to);
                return;
            }
            f->pairs[from][to].remote = w->requests[request].handle;
            f->pairs[from][to].bound = true;
            world_request_free(w, request);
        }
}

/* ---- sending --------------------------------------------------------------------------------- */

static uint32_t take_slot(struct flood *f, struct flood_pair *p, bool reply)
{
    uint32_t slot = 0;

    while (slot < FLOOD_SLOTS && p->slots[reply] >> slot & 1)
        slot++;
    if (slot < FLOOD_SLOTS)
        p->slots[reply] |= 1u << slot;
    return slot;
}

/* Frees the message's place, once its handler has run and its source may be used again. */
static void maybe_free_slot(struct flood *f, struct flood_message *m)
{
    if (m->slot < FLOOD_SLOTS && m->ended && m->seen && !m->shaken) {
        f->pairs[m->from][m->to].slots[m->reply] &= ~(1u << m->slot);
        m->slot = FLOOD_SLOTS;
    }
}

static uint32_t send_one(struct flood *f, struct flood_message m, uint64_t token)
{
    struct flood_pair *p = &f->pairs[m.from][m.to];
    struct world_client *from = &f->world->clients[m.from];
    uint32_t number = f->count;
    uint8_t payload[4096];
    struct message_send s;
    int rc;

    if (f->count == FLOOD_MESSAGES || !f->world->nodes[from->node].alive)
        return FLOOD_MESSAGES;
    m.slot = FLOOD_SLOTS;
    m.index = number % SESSION_HANDLERS;
    m.count = m.silent ? 0 : 1 + number % SESSION_ARGUMENTS_MAX;
    m.ended = m.flags & SUBMIT_NO_LCE;
    m.seen = m.silent;
    if (m.kind == SUBMIT_LONG && m.length > 0) {
        m.slot = take_slot(f, p, m.reply);
        if (m.slot == FLOOD_SLOTS)
            return FLOOD_MESSAGES;
        if (m.length <= packed_max(f) && number % 2)
            m.flags |= SUBMIT_INLINE;
    }
    s = (struct message_send){.kind = m.kind,
                              .flags = m.flags,
                              .index = m.index,
                              .remote = p->remote,
                              .token = token,
                              .lid = number,
                              .count = m.count,
                              .payload = payload,
                              .length = m.kind == SUBMIT_SHORT ? 0 : m.length};
    if (m.reply && m.kind != SUBMIT_LONG)
        s.remote = UINT32_MAX;
    for (uint32_t i = 0; i < m.count; i++)
        s.arguments[i] = argument_of(number, i);
    for (uint32_t i = 0; i < m.length && i < sizeof payload; i++)
        payload[i] = byte_of(number, i);
    if (m.slot < FLOOD_SLOTS) {
        s.offset = slot_at(f, m.reply, m.from, m.slot);
        s.local_offset = slot_at(f, 2 + m.reply, m.to, m.slot);
        memcpy(from->contexts[0].memory + s.local_offset, payload, m.length);
    }
    m.shaken |= f->dead[m.to] || p->broken;
    rc = m.reply ? message_reply(&f->client[m.from], &s) : message_request(&f->client[m.from], &s);
    if (rc < 0) {
        if (m.slot < FLOOD_SLOTS)
            p->slots[m.reply] &= ~(1u << m.slot);
        if (rc != -EAGAIN)
            world_fail(f->world, "message %u is not taken: %s", number, strerror(-rc));
        f->busy++;
        return FLOOD_MESSAGES;
    }
    f->messages[number] = m;
    f->count++;
    return number;
}

uint32_t flood_send(struct flood *f, uint32_t from, uint32_t to, uint8_t kind, uint16_t flags,
                    uint32_t length)
{
    return send_one(f,
                    (struct flood_message){.from = from,
                                           .to = to,
                                           .kind = kind,
                                           .flags = flags,
                                           .wants_reply = !(flags & SUBMIT_NO_REPLY),
                                           .length = length},
                    0);
}

static uint32_t some_length(struct flood *f, uint8_t kind)
{
    static const uint32_t limits[] = {1, 9, 100, 100000};
    uint32_t max = kind == SUBMIT_MEDIUM ? packed_max(f) : slot_bytes(f);
    uint32_t limit = limits[below(f, 4)];

    return kind == SUBMIT_SHORT ? 0 : below(f, (limit < max ? limit : max) + 1);
}

static uint16_t some_flags(struct flood *f)
{
    static const uint16_t flags[] = {0, 0, 0, SUBMIT_NO_LCE, SUBMIT_LCE_SOURCE, SUBMIT_UNORDERED};
    static const uint16_t protocols[] = {0, 0, 0, SUBMIT_ORDERED, SUBMIT_REASSEMBLE, SUBMIT_CHAIN};

    return flags[below(f, 6)] | protocols[below(f, 6)];
}

uint32_t flood_some(struct flood *f)
{
    uint32_t from = below(f, f->clients), to = below(f, f->clients);
    uint8_t kind = (uint8_t)(SUBMIT_SHORT + below(f, 3));
    uint16_t flags = some_flags(f);

    if (f->dead[from])
        return FLOOD_MESSAGES;
    if (below(f, 100) < f->short_of)
        flags |= SUBMIT_NO_REPLY;
    if (below(f, 16) == 0)
        flags |= SUBMIT_FENCE;
    return flood_send(f, from, to, kind, flags, some_length(f, kind));
}

/* Sends the handler's reply, which must be sent at once. */
static void reply(struct flood *f, uint32_t from, uint32_t to, uint64_t token)
{
    struct flood_message m = {.from = from,
                              .to = to,
                              .kind = (uint8_t)(SUBMIT_SHORT + below(f, 3)),
                              .flags = some_flags(f),
                              .reply = true};

    m.length = some_length(f, m.kind);
    if (below(f, 16) == 0)
        m.flags |= SUBMIT_FENCE;
    if (below(f, 6) == 0) {
        m = (struct flood_message){.from = from,
                                   .to = to,
                                   .kind = SUBMIT_SHORT,
                                   .flags = SUBMIT_NO_RCE | SUBMIT_NO_LCE,
                                   .reply = true,
                                   .silent = true};
    }
    f->replies++;
    if (send_one(f, m, token) < FLOOD_MESSAGES)
        return;
    m.kind = SUBMIT_SHORT;
    m.length = 0;
    if (send_one(f, m, token) == FLOOD_MESSAGES)
        world_fail(f->world, "no room for a reply that a handler was promised");
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool check_block(struct flood *f, uint32_t number, const struct flood_message *m,
                        const struct message_event *event)
{
    uint64_t arguments[SESSION_ARGUMENTS_MAX];
    const uint8_t *payload = event->rest + 8u * m->count;

    if (event->message.kind != m->kind || event->message.arguments != m->count ||
        event->message.index != m->index || event->message.deferred != 0 ||
        event->head.op != m->kind || event->head.status != 0)
        return false;
    if (event->head.peer != world_peer_of(f->world, m->from, 0) ||
        (event->message.token != WIRE_NONE) != m->wants_reply)
        return false;
    memcpy(arguments, event->rest, 8u * m->count);
    for (uint32_t i = 0; i < m->count; i++)
        if (arguments[i] != argument_of(number, i))
            return false;
    if (m->kind == SUBMIT_MEDIUM && event->message.payload_len != m->length)
        return false;
    if (m->kind == SUBMIT_LONG) {
        const struct world_client *to = &f->world->clients[m->to];

        if (event->head.bytes != m->length || event->message.slot != to->contexts[0].key.slot ||
            event->message.generation != to->contexts[0].key.generation)
            return false;
        if (m->length > 0 && event->message.offset != slot_at(f, m->reply, m->from, m->slot))
            return false;
        payload = to->contexts[0].memory + event->message.offset;
    }
    for (uint32_t i = 0; m->kind != SUBMIT_SHORT && i < m->length; i++)
        if (payload[i] != byte_of(number, i))
            return false;
    return true;
}

/* Checks that numbers of one pair come in order, except for those that may be missing. */
static bool in_order(struct flood *f, uint32_t number, const struct flood_message *m, bool local)
{
    struct flood_pair *p = &f->pairs[m->from][m->to];
    uint32_t *next = local ? &p->ended_next[m->reply] : &p->next[m->reply];

    if (local && m->flags & SUBMIT_UNORDERED)
        return true;
    if (number < *next)
        return false;
    for (uint32_t i = *next; i < number; i++) {
        const struct flood_message *before = &f->messages[i];

        if (before->from != m->from || before->to != m->to || before->reply != m->reply ||
            before->shaken || before->status < 0)
            continue;
        if (local ? !before->ended && !(before->flags & SUBMIT_UNORDERED) : !before->seen)
            return false;
    }
    *next = number;
    return true;
}

static void on_message(struct flood *f, uint32_t at, bool is_reply, const struct message_event *e)
{
    uint64_t number;
    struct flood_message *m;

    memcpy(&number, e->rest, sizeof number);
    m = number < f->count ? &f->messages[number] : NULL;
    f->events++;
    if (!m || m->to != at || m->reply != is_reply || m->seen || (m->status < 0 && !m->shaken)) {
        world_fail(f->world, "client %u sees a message that is not for it, or twice: %llu", at,
                   (unsigned long long)number);
        return;
    }
    if (!check_block(f, (uint32_t)number, m, e))
        world_fail(f->world, "message %llu (%u->%u, kind %u, %u bytes) is not what was sent",
                   (unsigned long long)number, m->from, m->to, m->kind, m->length);
    if (!in_order(f, (uint32_t)number, m, false))
        world_fail(f->world, "message %llu comes out of order", (unsigned long long)number);
    m->seen = true;
    maybe_free_slot(f, m);
    if (m->wants_reply)
        reply(f, at, m->from, e->message.token);
}

static void on_local(struct flood *f, uint32_t at, const struct event_record *e)
{
    struct flood_message *m = e->id < f->count ? &f->messages[e->id] : NULL;
    bool forced;

    if (!m || m->from != at) {
        world_fail(f->world, "client %u gets an end of message %llu, which is not its own", at,
                   (unsigned long long)e->id);
        return;
    }
    forced = m->flags & SUBMIT_NO_LCE && e->status < 0; /* errors have an event anyway */
    if ((m->ended && !forced) || (e->status != m->status && !m->shaken))
        world_fail(f->world, "message %llu (%u->%u, kind %u) ends with %d%s",
                   (unsigned long long)e->id, m->from, m->to, m->kind, e->status,
                   m->ended ? ", and has ended" : "");
    if (!forced && !in_order(f, (uint32_t)e->id, m, true))
        world_fail(f->world, "the end of message %llu comes out of order",
                   (unsigned long long)e->id);
    f->failed += e->status < 0;
    m->ended = true;
    if (e->status < 0)
        m->seen |= !m->shaken;
    /* The event was of the source alone; the payload may still land. */
    maybe_free_slot(f, m);
}

uint32_t flood_probe(struct flood *f)
{
    static struct message_event event;
    uint32_t count = 0;
    int rc = 0;

    for (uint32_t i = 0; i < f->clients; i++) {
        struct message_client *c = &f->client[i];

        if (f->dead[i] || f->silent >> i & 1 || !f->world->nodes[f->world->clients[i].node].alive)
            continue;
        while (!f->world->failed && (rc = message_probe(c, MESSAGE_LOCAL, &event)) == 1) {
            on_local(f, i, &event.head);
            count++;
        }
        while (!f->world->failed && rc >= 0 &&
               (rc = message_probe(c, MESSAGE_REPLY, &event)) == 1) {
            on_message(f, i, true, &event);
            count++;
        }
        while (!f->world->failed && rc >= 0 && message_reply_room(c) &&
               (rc = message_probe(c, MESSAGE_REMOTE, &event)) == 1) {
            on_message(f, i, false, &event);
            count++;
        }
        if (rc < 0)
            world_fail(f->world, "client %u finds an event that makes no sense", i);
    }
    return count;
}

/* ---- until the end --------------------------------------------------------------------------- */

bool flood_turn(struct flood *f)
{
    bool more = world_round(f->world);

    return flood_probe(f) > 0 || more;
}

static bool all_over(const struct flood *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct flood_message *m = &f->messages[i];

        if (!f->dead[m->from] && !m->ended)
            return false;
        if (!m->seen && !m->shaken && m->status == 0)
            return false;
    }
    for (uint32_t i = 0; i < f->clients; i++)
        if (!f->dead[i] && !message_at_rest(&f->client[i]))
            return false;
    return true;
}

static void say_what_is_stuck(struct flood *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct flood_message *m = &f->messages[i];

        if ((!f->dead[m->from] && !m->ended) || (!m->seen && !m->shaken && m->status == 0))
            world_fail(f->world, "message %u (%u->%u, kind %u, flags %x, %u bytes%s) is stuck:%s%s",
                       i, m->from, m->to, m->kind, m->flags, m->length, m->reply ? ", reply" : "",
                       m->ended ? "" : " not ended", m->seen ? "" : " not seen");
    }
    for (uint32_t i = 0; i < f->clients; i++)
        if (!f->dead[i] && !message_at_rest(&f->client[i]))
            world_fail(f->world,
                       "client %u does not come to rest: %llu of %llu ended, %llu bytes "
                       "of reply space held",
                       i, (unsigned long long)atomic_load(&f->client[i].shared->ended),
                       (unsigned long long)f->client[i].submitted,
                       (unsigned long long)message_reply_held(&f->client[i]));
}

/* Checks that, by the daemons' accounts too, nothing is outstanding. */
static void check_accounts(struct flood *f)
{
    struct counters_session v;

    for (uint32_t node = 0; node < f->world->options.nodes; node++) {
        uint32_t from = 0;

        if (!f->world->nodes[node].alive)
            continue;
        while (engine_view_sessions(f->world->nodes[node].engine, 0, &from, &v, 1) == 1)
            if (v.rank < f->clients && !f->dead[v.rank] &&
                (v.replies_expected || v.replies_owed || v.in_flight))
                world_fail(f->world, "client %u: %llu replies expected, %llu owed, %llu in flight",
                           (unsigned)v.rank, (unsigned long long)v.replies_expected,
                           (unsigned long long)v.replies_owed, (unsigned long long)v.in_flight);
    }
}

void flood_finish(struct flood *f)
{
    f->silent = 0;
    for (uint32_t i = 0; !f->world->failed && !all_over(f); i++)
        if ((!flood_turn(f) && !all_over(f)) || i == ROUNDS_MAX) {
            say_what_is_stuck(f);
            return;
        }
    /* Nothing more may come now. */
    for (uint32_t i = 0; i < 16 && !f->world->failed; i++)
        flood_turn(f);
    if (!f->world->failed && !all_over(f))
        say_what_is_stuck(f);
    if (!f->world->failed)
        check_accounts(f);
}

void flood_dies(struct flood *f, uint32_t client)
{
    f->dead[client] = true;
    for (uint32_t i = 0; i < f->count; i++)
        if (f->messages[i].from == client || f->messages[i].to == client)
            f->messages[i].shaken = true;
    world_client_close(f->world, client);
}

void flood_link_lost(struct flood *f, uint32_t a, uint32_t b)
{
    for (uint32_t x = 0; x < f->clients; x++)
        for (uint32_t y = 0; y < f->clients; y++) {
            uint32_t nx = f->world->clients[x].node, ny = f->world->clients[y].node;

            if ((nx == a && ny == b) || (nx == b && ny == a))
                f->pairs[x][y].broken = true;
        }
    for (uint32_t i = 0; i < f->count; i++)
        f->messages[i].shaken |= f->pairs[f->messages[i].from][f->messages[i].to].broken;
    world_link_lost(f->world, a, b);
}
