/*
 * Offloads whose programs a test writes by hand (assemble.h), for clients of the simulated world.
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_OFFLOAD_HAND_WRITTEN_H
#define PWC_TESTS_ENGINE_OFFLOAD_HAND_WRITTEN_H

#include "proto/handler_abi.h"
#include "tests/engine/world/world.h"

enum { HAND_WRITTEN_MOST = 64 };

struct hand_written {
    uint32_t count; /* instructions */
    struct handler_instruction code[HAND_WRITTEN_MOST];
    uint32_t entry[HANDLER_STAGES]; /* HANDLER_NONE: there is no such handler */
};

/* Creates an offload of client `client`: of what is put to its region, or of its messages at
 * `index`. The region is the host window. `target` is a remote of the client, or UINT32_MAX for no
 * target. Returns the offload's handle; if the engine refuses the offload, the world fails. */
uint32_t hand_written_offload(struct world *w, uint32_t client, const struct hand_written *program,
                              bool puts, uint32_t index, uint32_t target);
/* Binds client `from` to client `to`, with the key to its region or without. Returns the remote. */
uint32_t hand_written_bind(struct world *w, uint32_t from, uint32_t to, bool key);

#endif
