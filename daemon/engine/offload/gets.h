/*
 * Gets of handlers: a table in the arena, with an entry for each get from its handler's return
 * until its completion handler has run; and lists of gets that have come, which is to say
 * completed, in the order in which their completion handlers run.
 *
 *     handler returns --> sent --the operation ends--> come --> completion handler --> free
 *                           |                            |
 *                           the flow's, over broken      lists: contexts take turns, and each has
 *                           links and restarts           its gets in the order they came
 *
 * Each client has some entries of its own. A user may have as many of the shared ones as stay free.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_GETS_H
#define PWC_ENGINE_GETS_H

#include "daemon/engine/state/state.h"

struct get_draft {
    uint32_t remote, length;
    uint64_t place; /* in the offload's region */
    uint64_t id;
};

/* Before the first step: empties the lists. */
void gets_open(struct engine *e);
/* How many more gets the handlers of this context may send now; walks all clients if its client
 * uses more than its own entries. */
uint32_t gets_room(const struct engine *e, uint32_t session);
/* Within a transaction, after gets_room: takes an entry for a get that enters its flow. */
uint32_t gets_take(struct engine *e, uint32_t offload, const struct get_draft *draft);
/* Within a transaction: the get's operation has ended; its completion handler is to run. */
void gets_ended(struct engine *e, uint32_t get, uint32_t offload, int32_t status);
/* Within a transaction: frees the entry. */
void gets_give(struct engine *e, uint32_t get);

/* Takes the first context off the list of contexts with completed gets. */
uint32_t gets_next_session(struct engine *e);
/* Takes the first get off the context's list of completed gets. */
uint32_t gets_next(struct engine *e, uint32_t session);
/* Puts the get at the end of its context's list, and calls gets_session_back. */
void gets_put_back(struct engine *e, uint32_t get);
/* Puts the context at the end of the list of contexts, unless it is on that list. */
void gets_session_back(struct engine *e, uint32_t session);
static inline bool gets_has(const struct engine *e, uint32_t session)
{
    return e->offloads.gets.of[session].first != NONE;
}

/* The context has no offload any more: frees its gets. Flows may still have their operations. */
void gets_forget(struct engine *e, uint32_t session);
/* After a restart, after offloads_inherit: lists the gets that have come, and frees the gets of
 * offloads that have gone. */
void gets_inherit(struct engine *e);

#endif
