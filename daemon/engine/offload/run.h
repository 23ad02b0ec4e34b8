/*
 * One run: a handler of an offload's program on one packet, by the interpreter (daemon/handlers).
 * Windows are made anew for each run from the entries of the client's regions, which may have
 * changed. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_RUN_H
#define PWC_ENGINE_OFFLOAD_RUN_H

#include "daemon/engine/state/state.h"
#include "daemon/handlers/run.h"

/* The bytes of a record that handlers may read: its id or arguments, then its data. The data of a
 * put that is stored stands in the region. */
struct packet_bytes {
    const uint8_t *at;              /* in the ledger: a hostile peer may change them meanwhile */
    uint32_t header, data_at, data; /* lengths, and where the data begins */
};

/* Called before the client's first offload: an earlier client may have had the entry. Clears the
 * stack, and has a barrier stand before the next run. */
void offload_new_client(struct engine *e, uint32_t client);

/* The first handler from `stage` on that the offload's program has, or HANDLER_STAGES. */
uint32_t offload_stage(const struct engine *e, const struct offload *o, uint32_t stage);

/* Runs a handler. Its sends go to e->offloads.collected; collect_begin comes first (collect.h).
 * Fills in the packet's addresses. Returns 0 with the run's result, or -EHOSTDOWN: memory of the
 * client is not there. */
int offload_run(struct engine *e, uint32_t offload, enum handler_stage stage,
                struct handler_packet *packet, const struct packet_bytes *bytes, struct run *run);

/* The bytes of a range, which must lie in a region of the client's; NULL: they are not there. */
uint8_t *offload_memory(const struct engine *e, uint32_t session, const struct engine_range *range);

#endif
