/* Hostile clients of a random run: what they write into shared memory, and submit (chaos_state.h).
 * Thread: one. */
#include "tests/engine/world/chaos/chaos_state.h"

static void meddle_with(struct chaos *c, struct world_client *h)
{
    struct world_context *x = &h->contexts[0];
    uint8_t *bytes = x->base;
    struct session_shared *shared = x->base;

    if (!x->open || !h->live)
        return;
    switch (below(c, 6)) {
    case 0: /* anywhere in the header */
        bytes[below(c, sizeof *shared)] = (uint8_t)below(c, 256);
        break;
    case 1: /* indices close to the right ones */
        if (below(c, 2))
            shared->submit.tail += 8 * below(c, 16);
        else
            shared->reply_submit.tail += 8 * below(c, 16);
        break;
    case 2:
        shared->local.head += 8 * below(c, 4);
        shared->remote.head -= 8 * below(c, 4);
        shared->reply_event.head += 8 * below(c, 4);
        break;
    case 3: /* records */
        for (uint32_t i = 0; i < 64; i++)
            bytes[SESSION_DATA_OFFSET + below(c, 512)] ^= (uint8_t)(1u << below(c, 8));
        break;
    case 4:
        h->contexts[0].memory[below(c, (uint32_t)h->contexts[0].length)] = (uint8_t)below(c, 256);
        break;
    case 5:
        h->faulted = below(c, 20) == 0;
        break;
    }
}

static void meddle(void *context, struct world *w, uint32_t node)
{
    struct chaos *c = context;

    for (uint32_t i = 0; i < c->plan.hostile; i++) {
        struct world_client *h = &w->clients[c->hostiles[i]];

        if (h->node == node && below(c, 4) == 0)
            meddle_with(c, h);
    }
}

/* A hostile client also submits plausible operations, to other hostile clients and to honest ends.
 */
void chaos_hostile_turn(struct chaos *c, uint32_t i)
{
    struct world_client *h = &c->world->clients[c->hostiles[i]];
    struct submit_record record;

    if (!h->live || !c->world->nodes[h->node].alive || !h->contexts[0].channel_open)
        return;
    if (below(c, 3) == 0) {
        meddle_with(c, h);
        return;
    }
    record = (struct submit_record){
        .kind = (uint8_t)below(c, 8),
        .flags = (uint16_t)(below(c, 2) ? below(c, 32) : below(c, 65536)),
        .remote = below(c, 4),
        .offset = below(c, 2) ? below(c, 1000) : sim_random_next(&c->random),
        .length = below(c, 2) ? below(c, 300) : sim_random_next(&c->random),
        .lid_len = (uint16_t)below(c, 20),
        .rid_len = (uint16_t)below(c, 20),
        .segment = below(c, 8) ? h->segments[WORLD_MAIN].handle : below(c, 100),
        .local_offset = below(c, 2) ? 0 : sim_random_next(&c->random),
    };
    if (record.length > 300)
        record.flags &= (uint16_t)~SUBMIT_INLINE;
    channel_submit(&h->contexts[0].channel, &record, "twenty bytes of an id",
                   "and twenty of another", h->contexts[0].memory);
    c->world->idle = 0;
}

void chaos_hostiles_open(struct chaos *c)
{
    for (uint32_t i = 0; i < c->plan.hostile && !c->world->failed; i++) {
        int client = world_client_open(c->world, below(c, c->nodes), c->clients + i, 1);

        if (client < 0)
            return;
        c->hostiles[i] = (uint32_t)client;
        c->world->clients[client].hostile = true;
    }
    for (uint32_t i = 0; i < c->plan.hostile && !c->world->failed; i++) {
        uint32_t other = c->hostiles[(i + 1) % HOSTILE_MAX];

        world_bind(c->world, c->hostiles[i], 0, other, 0,
                   &c->world->clients[other].contexts[0].key);
        world_bind(c->world, c->hostiles[i], 0, below(c, c->clients), 0, NULL);
    }
    c->world->meddle = meddle;
    c->world->meddle_context = c;
}
