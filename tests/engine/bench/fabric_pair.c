/* Two nodes of the simulated fabric (fabric_pair.h). One thread. */
#include "tests/engine/bench/fabric_pair.h"

#include <CUnit/CUnit.h>
#include <string.h>

int pair_poll(struct fabric_pair *p, int node, struct fabric_event *event)
{
    return fabric_poll(p->fabric[node], event, 1);
}

bool pair_await(struct fabric_pair *p, int node, struct fabric_event *event)
{
    for (;;) {
        if (pair_poll(p, node, event) == 1)
            return true;
        if (sim_next(p->world) == UINT64_MAX)
            return false;
        sim_advance(p->world, sim_next(p->world));
    }
}

void pair_link(struct fabric_pair *p)
{
    struct fabric_address address[2];

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(fabric_address_of(p->fabric[i], &address[i]), 0);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(fabric_connect(p->fabric[i], 1 - i, &address[1 - i]), 0);
}

void pair_open(struct fabric_pair *p, const struct sim_options *options, unsigned target_access)
{
    struct fabric_event event;

    memset(p, 0, sizeof *p);
    CU_ASSERT_EQUAL_FATAL(sim_world_open(options, &p->world), 0);
    for (uint32_t i = 0; i < 2; i++) {
        unsigned access = i == TARGET ? target_access : FABRIC_LOCAL;

        CU_ASSERT_EQUAL_FATAL(sim_fabric_open(p->world, i, &p->fabric[i]), 0);
        CU_ASSERT_EQUAL_FATAL(fabric_mem_add(p->fabric[i], p->bytes[i], PAIR_BYTES, access, 77 + i),
                              0);
        CU_ASSERT_FATAL(pair_await(p, (int)i, &event));
        CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ADDED);
        CU_ASSERT_EQUAL(event.cookie, 77 + i);
        p->memory[i] = event.memory;
    }
    pair_link(p);
}

void pair_close(struct fabric_pair *p)
{
    sim_world_close(p->world);
}

struct fabric_write pair_write(struct fabric_pair *p, uint64_t offset, uint64_t length,
                               uint64_t cookie)
{
    return (struct fabric_write){
        .peer = TARGET,
        .memory = p->memory[ORIGIN].index,
        .source = p->bytes[ORIGIN] + offset,
        .length = length,
        .remote_address = p->memory[TARGET].address + offset,
        .remote_key = p->memory[TARGET].key,
        .cookie = cookie,
        .immediate = (uint32_t)cookie,
        .announce = true,
    };
}

struct fabric_read pair_read(struct fabric_pair *p, uint64_t offset, uint64_t length,
                             uint64_t cookie)
{
    return (struct fabric_read){
        .peer = TARGET,
        .memory = p->memory[ORIGIN].index,
        .destination = p->bytes[ORIGIN] + offset,
        .length = length,
        .remote_address = p->memory[TARGET].address + offset,
        .remote_key = p->memory[TARGET].key,
        .cookie = cookie,
    };
}
