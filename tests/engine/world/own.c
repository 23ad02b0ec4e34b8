/* The owner of the tests (own.h). Thread: one. */
#include "tests/engine/world/own.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/ops/submit.h"
#include "daemon/engine/peer/bind.h"
#include "tests/engine/bench/peek.h"

#define ROUNDS_MAX 100000u

/* The word of the owner's bind (own.h) has a bit for each operation that has ended, and above these
 * a bit for each that was submitted. */
static uint64_t bit_ended(uint32_t number)
{
    return UINT64_C(1) << number;
}

static uint64_t bit_submitted(uint32_t number)
{
    return UINT64_C(1) << 32 << number;
}

static struct own *own_of(const struct engine *e)
{
    const struct world_node *n = peek_host_context(e);

    return n->world->options.owner_context;
}

/* ---- the row --------------------------------------------------------------------------------- */

static void identify(const struct engine *e, uint32_t handle, struct owner_identity *out)
{
    *out = (struct owner_identity){.uid = 1000, .origin = OWN_ORIGIN, .job = WORLD_JOB};
}

static void bound(struct engine *e, uint32_t remote, int32_t status)
{
    own_of(e)->bound = status;
}

static void ended(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    uint64_t word = peek_word(e, op->remote);
    struct own *o = own_of(e);

    if (op->lid >= OWN_OPS || !(word & bit_submitted((uint32_t)op->lid)) ||
        word & bit_ended((uint32_t)op->lid)) {
        world_fail(o->world, "operation %llu of the engine's own ends, by the word %llx",
                   (unsigned long long)op->lid, (unsigned long long)word);
        return;
    }
    o->status[op->lid] = op->status;
    poke_word(e, op->remote, word | bit_ended((uint32_t)op->lid));
}

static void ended_silently(struct engine *e, uint32_t handle, uint32_t count, uint64_t reserve)
{
    own_of(e)->silent += count;
}

const struct owner_kind own_row = {
    .identify = identify, .bound = bound, .ended = ended, .ended_silently = ended_silently};

/* ---- calls into the engine, in which it may die ---------------------------------------------- */

struct own_call {
    struct own *own;
    uint32_t number;
    uint16_t flags;
    bool data;
    int result;
};

static void call_bind(void *argument)
{
    struct own_call *c = argument;
    struct world *w = c->own->world;
    const struct world_client *to = &w->clients[c->own->target];

    c->result = 0;
    if (peek_remote_of(w->nodes[0].engine, OWN_OWNER) != UINT32_MAX)
        return; /* the bind was begun before the last death */
    c->result = bind_begin(w->nodes[0].engine, OWN_OWNER, to->node,
                           world_peer_of(w, c->own->target, c->own->context),
                           &to->contexts[c->own->context].key, 0);
}

static void call_submit(void *argument)
{
    struct own_call *c = argument;
    struct engine *e = c->own->world->nodes[0].engine;
    uint32_t remote = peek_remote_of(e, OWN_OWNER);
    uint64_t word = remote == UINT32_MAX ? 0 : peek_word(e, remote);
    struct {
        struct submit_record record;
        uint64_t payload;
    } draft = {
        .record = {.size = sizeof(draft.record) + (c->data ? 8 : 0),
                   .kind = SUBMIT_PUT,
                   .flags = (uint16_t)(c->flags | (c->data ? SUBMIT_INLINE : 0)),
                   .remote = remote,
                   .offset = UINT64_C(8) * c->number,
                   .length = c->data ? 8 : 0,
                   .lid = c->number,
                   .rid = c->number},
        .payload = c->number + 1,
    };

    c->result = 0;
    if (word & bit_submitted(c->number))
        return; /* the operation was submitted before the last death */
    if (remote != UINT32_MAX)
        poke_word(e, remote, word | bit_submitted(c->number));
    c->result = op_submit(e, peek_flow_of(e, remote), &draft.record);
}

static void call_leave(void *argument)
{
    struct own_call *c = argument;
    struct engine *e = c->own->world->nodes[0].engine;

    bind_forget_owner(e, OWN_OWNER);
    flows_detach(e, OWN_OWNER);
}

/* Makes rounds until the call has been made while the node lives. */
static int insist(struct own *o, struct own_call *c, void (*call)(void *))
{
    for (uint32_t i = 0; !world_call(o->world, &o->world->nodes[0], call, c); i++) {
        world_round(o->world);
        if (o->world->failed || i > ROUNDS_MAX)
            return -ETIMEDOUT;
    }
    return c->result;
}

/* ---- for tests ------------------------------------------------------------------------------- */

/* Whether the owner's bind in node 0 is over; *remote is its remote, UINT32_MAX without one. */
static bool bind_over(struct own *o, uint32_t *remote)
{
    const struct world_node *n = &o->world->nodes[0];

    if (!n->alive)
        return false;
    *remote = peek_remote_of(n->engine, OWN_OWNER);
    return *remote == UINT32_MAX || peek_remote(n->engine, *remote).state != REMOTE_BINDING;
}

int own_bind(struct own *o, struct world *w, uint32_t target, uint32_t context)
{
    uint32_t remote = UINT32_MAX;

    *o = (struct own){.world = w, .target = target, .context = context};
    for (uint32_t i = 0; i < ROUNDS_MAX && !w->failed; i++) {
        bool over = bind_over(o, &remote);

        if (over && remote != UINT32_MAX)
            return 0;
        if (over && o->bound < 0)
            return o->bound;
        if (over) {
            int r = insist(o, &(struct own_call){.own = o}, call_bind);

            if (r < 0)
                return r;
        }
        world_round(w);
    }
    return -ETIMEDOUT;
}

int own_submit(struct own *o, uint32_t number, bool data, uint16_t flags)
{
    return insist(o, &(struct own_call){.own = o, .number = number, .data = data, .flags = flags},
                  call_submit);
}

/* Takes the events that the engine's own operations have brought to the target; each must come
 * once. */
static void take_events(struct own *o)
{
    struct world_context *x = &o->world->clients[o->target].contexts[o->context];
    struct pwc_event event;

    while (x->channel_open && channel_probe(&x->channel, OWN_ORIGIN, PWC_REMOTE, &event) == 1) {
        if (event.id >= OWN_OPS || o->arrived >> event.id & 1)
            world_fail(o->world, "event %llu of the engine's own comes again",
                       (unsigned long long)event.id);
        else
            o->arrived |= 1u << event.id;
    }
}

static uint32_t bits(uint32_t word)
{
    return (uint32_t)__builtin_popcount(word);
}

void own_finish(struct own *o, uint32_t rounds)
{
    const struct world_node *n = &o->world->nodes[0];

    for (uint32_t i = 0; i < rounds && !o->world->failed; i++) {
        uint32_t remote = n->alive ? peek_remote_of(n->engine, OWN_OWNER) : UINT32_MAX;
        uint64_t word = remote == UINT32_MAX ? UINT64_MAX : peek_word(n->engine, remote);

        take_events(o);
        o->ended = (uint32_t)word;
        if (remote != UINT32_MAX && bits(o->ended) + o->silent >= bits((uint32_t)(word >> 32)))
            break;
        world_round(o->world);
    }
    take_events(o);
}

void own_leave(struct own *o)
{
    (void)insist(o, &(struct own_call){.own = o}, call_leave);
}
