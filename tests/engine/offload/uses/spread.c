/* The use as a broadcast, with all clients alive, or past clients that have died (uses.h). Thread:
 * one. */
#include "tests/engine/offload/uses/uses.h"

#include <string.h>

enum { BROADCASTS = 8 };

/* The state of the handlers, as in examples/handlers/broadcast.c. */
struct broadcast {
    uint64_t last, targets;
};

struct spreading {
    uint64_t number;    /* number of the broadcast that has begun last, from 1 on */
    uint32_t next;      /* target of client 0 that gets the broadcast next */
    uint32_t length;    /* length of its bytes */
    uint32_t dead, may; /* how many clients have died, and may die */
};

static struct spreading *spreading_of(struct uses *u)
{
    return (struct spreading *)u->own;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Replaces the client's offload: the first ones, without targets, are there while the clients bind
 * one another. */
static void renew(struct uses *u, uint32_t client)
{
    const struct broadcast state = {.targets = u->client[client].targets};

    uses_offload_end(u, client);
    memcpy(uses_state(u, client), &state, sizeof(state));
    if (!u->world->failed)
        uses_offload(u, client, true, sizeof(state));
}

static void broadcast_open(struct uses *u)
{
    static struct uses_pair pairs[WORLD_NODES_MAX * 6];
    uint32_t count = 0;

    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++) {
        uses_offload(u, i, true, sizeof(struct broadcast));
        for (uint32_t step = 1; step < u->nodes; step *= 2)
            pairs[count++] = (struct uses_pair){i, (i + step) % u->nodes};
    }
    uses_bind(u, pairs, count, true);
    for (uint32_t i = 0; i < count; i++) {
        struct use_client *c = &u->client[pairs[i].from];

        c->target[c->targets++] = pairs[i].to;
    }
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        renew(u, i);
    u->wanted = u->client[0].targets * (1 + uses_below(u, BROADCASTS));
}

/* Lets as many clients die as the example survives: fewer than log2 of all. */
static void past_dead_open(struct uses *u)
{
    struct spreading *s = spreading_of(u);

    broadcast_open(u);
    for (uint32_t n = u->nodes; n >= 4; n /= 2)
        s->may++;
}

/* ---- broadcasts ------------------------------------------------------------------------------ */

/* Whether all clients that live have had the last broadcast, and have passed it on. */
static bool is_over(const struct uses *u, uint64_t number)
{
    for (uint32_t i = 1; i < u->nodes; i++) {
        if (!u->world->nodes[i].alive)
            return false;
        if (!u->client[i].dead && uses_counted(u, i, HANDLER_PAYLOAD) < number)
            return false;
    }
    return true;
}

/* Submits one more put of client 0, to the next of its targets. */
static bool broadcast_submit(struct uses *u)
{
    struct spreading *s = spreading_of(u);
    const struct use_client *root = &u->client[0];
    struct broadcast *state = uses_state(u, 0);
    struct use_op op = {.length = s->length};
    uint8_t *bytes;

    if (s->next == root->targets || s->number == 0) {
        if (!is_over(u, s->number))
            return false;
        s->number++;
        s->next = 0;
        op.length = s->length = 8 + uses_below(u, u->packet - 8);
        state->last = s->number; /* copies that come back to the root are dropped */
    }
    bytes = uses_room(u, 0, op.length);
    if (!bytes)
        return false;
    op.to = root->target[s->next];
    uses_fill(bytes, (uint32_t)s->number, op.length);
    if (!uses_put(u, &op, bytes, s->number))
        return false;
    s->next++;
    return true;
}

/* Now and then kills a client other than client 0, until as many have died as may die. */
static void broadcast_turn(struct uses *u)
{
    struct spreading *s = spreading_of(u);
    uint32_t client = 1 + uses_below(u, u->nodes - 1);

    if (s->dead == s->may || u->client[client].dead || uses_below(u, u->dies ? 10 : 200) != 0)
        return;
    s->dead++;
    uses_kill(u, client);
}

/* ---- results --------------------------------------------------------------------------------- */

static void check_client(struct uses *u, uint32_t client)
{
    const struct spreading *s = spreading_of(u);
    static uint8_t bytes[1024];
    struct broadcast state;
    /* This client is a target of as many clients as it has targets. */
    uint64_t copies = s->number * u->client[client].targets;
    uint64_t passed = client > 0 ? s->number : 0, more;

    if (u->client[client].dead)
        return;
    memcpy(&state, uses_state(u, client), sizeof(state));
    uses_fill(bytes, (uint32_t)s->number, s->length);
    if (state.last != s->number)
        world_fail(u->world, "client %u has had broadcast %llu, not %llu", client,
                   (unsigned long long)state.last, (unsigned long long)s->number);
    else if (client > 0 && memcmp(uses_region(u, client), bytes, s->length) != 0)
        world_fail(u->world, "client %u has other bytes", client);
    /* After a daemon's death a client may pass a second copy on as if this were the first. */
    more = uses_counted(u, client, HANDLER_HEADER) - copies;
    if (more <= u->doubts || s->dead > 0) /* some of the dead have passed it on, others not */
        copies += more;
    more = uses_counted(u, client, HANDLER_PAYLOAD) - passed;
    passed += more <= u->doubts ? more : 0;
    uses_expect(u, client, copies, passed);
    uses_expect_events(u, client, OFFLOAD_ENDED,
                       u->flags & ENGINE_OFFLOAD_QUIET ? 0 : (uint32_t)passed);
}

/* The status that a put must end with: a put to a client that has died may fail, any other must
 * not. */
static int broadcast_status(const struct uses *u, const struct use_op *op)
{
    return u->client[op->to].dead ? op->status : 0;
}

static void broadcast_check(struct uses *u)
{
    uses_expect_ends(u, broadcast_status);
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        check_client(u, i);
}

const struct use use_broadcast = {.name = "broadcast",
                                  .object = "broadcast",
                                  .flows = 6,
                                  .least = 2,
                                  .open = broadcast_open,
                                  .submit = broadcast_submit,
                                  .check = broadcast_check};

const struct use use_broadcast_past_dead = {.name = "broadcast past dead clients",
                                            .object = "broadcast",
                                            .flows = 6,
                                            .least = 4,
                                            .open = past_dead_open,
                                            .submit = broadcast_submit,
                                            .turn = broadcast_turn,
                                            .check = broadcast_check};
