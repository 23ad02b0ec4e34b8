/* Clients and their segments: opening, quarantine, and the way out. Thread: the progress thread. */
#ifndef PWC_ENGINE_CLIENT_H
#define PWC_ENGINE_CLIENT_H

#include "daemon/engine/state/state.h"

/* The client broke the protocol: nothing of it is taken any more; the caller is told to end it. */
void client_quarantine(struct engine *e, uint32_t client, enum quarantine_reason reason);
const char *quarantine_text(uint32_t reason);
/* After a restart, before anything is attached: notices that may have died with the old process
 * come again. */
void client_inherit(struct engine *e);
/* The fabric's answers about segments. */
void segment_added(struct engine *e, uint32_t segment, int status,
                   const struct fabric_memory *memory);
void segment_dropped(struct engine *e, uint32_t segment, int status);
/* Clients, sessions, flows, regions and segments on their way out, one step further. */
void client_sweep(struct engine *e);

#endif
