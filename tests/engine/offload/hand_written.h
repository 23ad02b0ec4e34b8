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

/* Creates an offload of client `client`, which takes puts to the client's region (OFFLOAD_PUTS), or
 * messages at `index` (OFFLOAD_MESSAGES). The region is the host window. `target` is a remote of
 * the client, or UINT32_MAX for no target. Returns the offload's handle; if the engine refuses the
 * offload, the world fails. */
uint32_t hand_written_offload(struct world *w, uint32_t client, const struct hand_written *program,
                              uint32_t takes, uint32_t index, uint32_t target);
/* Binds client `from` to client `to`, with a key of that client's, or NULL. Returns the remote. */
uint32_t hand_written_bind(struct world *w, uint32_t from, uint32_t to,
                           const struct engine_key *key);

#endif
