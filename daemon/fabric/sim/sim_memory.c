/* Owns the simulated fabric's registered memory, which has random addresses and keys, and is added
 * and dropped after a delay. Thread: the owner of the sim_world. */
#include "daemon/fabric/sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sim_memory *sim_memory_of(struct sim_node *n, uint32_t index)
{
    uint32_t slot = index & ((1u << SIM_SLOT_BITS) - 1);

    if (slot >= n->memory_room || !n->memories[slot].used || n->memories[slot].index != index)
        return NULL;
    return &n->memories[slot];
}

static struct sim_memory *memory_new(struct sim_world *w, struct sim_node *n)
{
    uint32_t slot = 0;

    while (slot < n->memory_room && n->memories[slot].used)
        slot++;
    if (slot == n->memory_room) {
        uint32_t room = n->memory_room ? 2 * n->memory_room : 16;
        struct sim_memory *grown = realloc(n->memories, room * sizeof *grown);

        if (!grown)
            return NULL;
        memset(grown + slot, 0, (room - slot) * sizeof *grown);
        n->memories = grown;
        n->memory_room = room;
    }
    n->memories[slot] = (struct sim_memory){
        .used = true,
        .generation = n->memories[slot].generation + 1,
        .address = sim_random_next(&w->random) & SIM_ADDRESS_MASK,
        .key = sim_random_next(&w->random),
    };
    n->memories[slot].index = slot | n->memories[slot].generation << SIM_SLOT_BITS;
    return &n->memories[slot];
}

int sim_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                uint64_t cookie)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_memory *m;

    if (!base || length == 0)
        return -EINVAL;
    m = memory_new(w, &w->nodes[node]);
    if (!m)
        return -ENOMEM;
    m->base = base;
    m->length = length;
    m->access = access;
    m->cookie = cookie;
    sim_schedule(w, w->now + sim_some_delay(w), STEP_ADDED, node, w->nodes[node].instance,
                 m->index);
    return 0;
}

int sim_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_memory *m = sim_memory_of(&w->nodes[node], memory);

    if (!m || !m->live || m->dropping) {
        sim_fail(w, "node %u drops memory %u, which it does not have", node, memory);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < w->op_room; i++) {
        const struct sim_op *op = &w->ops[i];

        if (op->used && op->source_node == node && op->memory == memory && op->length &&
            !op->reported)
            sim_fail(w, "node %u drops memory %u, which its operation towards %u still uses", node,
                     memory, op->target_node);
    }
    m->live = false;
    m->dropping = true;
    m->cookie = cookie;
    sim_schedule(w, w->now + sim_some_delay(w), STEP_DROPPED, node, w->nodes[node].instance,
                 m->index);
    return 0;
}

void sim_memory_step(struct sim_world *w, const struct sim_entry *entry)
{
    struct sim_node *n = &w->nodes[entry->subject];
    struct sim_memory *m = sim_memory_of(n, (uint32_t)entry->b);
    struct fabric_event event;

    if (!n->open || n->instance != entry->a || !m)
        return;
    event = (struct fabric_event){
        .kind = entry->what == STEP_ADDED ? FABRIC_ADDED : FABRIC_DROPPED,
        .cookie = m->cookie,
        .memory = {.index = m->index, .address = m->address, .key = m->key},
    };
    m->live = entry->what == STEP_ADDED;
    if (entry->what == STEP_DROPPED)
        m->used = false;
    sim_push(w, entry->subject, &event);
}
