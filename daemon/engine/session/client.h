/* Clients and their segments: opening and the way out. Thread: the progress thread. */
#ifndef PWC_ENGINE_CLIENT_H
#define PWC_ENGINE_CLIENT_H

#include "daemon/engine/state/state.h"

/* After a restart, before anything is attached: posts again the notices that may have died with the
 * old process. */
void client_inherit(struct engine *e);
/* The session begins to end, if it is open: its client is lost, or (engine_session_close) has
 * closed it. */
void session_begin_close(struct engine *e, uint32_t session);
/* The fabric's answers about segments. */
void segment_added(struct engine *e, uint32_t segment, int status,
                   const struct fabric_memory *memory);
void segment_dropped(struct engine *e, uint32_t segment, int status);

#endif
