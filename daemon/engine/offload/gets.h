/*
 * Gets of handlers: a table in the arena, with an entry for each from its handler's return until
 * its completion handler has run; and which of those that have come runs next.
 *
 *     handler returns --> sent --the operation ends--> come --> completion handler --> free
 *                           |                            |
 *                           the flow's, over broken      lists: contexts take turns, and each has
 *                           links and restarts           its gets in the order they came
 *
 * A client has some entries of its own; of the others a user may have as many as stay free.
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

/* Before the first step: no list has an entry. */
void gets_open(struct engine *e);
/* How many gets more the handlers of this context may send now; linear in the clients where its
 * client uses more than its own entries. */
uint32_t gets_room(const struct engine *e, uint32_t session);
/* Within a transaction, behind gets_room: an entry for a get that enters its flow. */
uint32_t gets_take(struct engine *e, uint32_t offload, const struct get_draft *draft);
/* Within a transaction: the get's operation has ended; its completion handler is to run. */
void gets_ended(struct engine *e, uint32_t get, uint32_t offload, int32_t status);
/* Within a transaction: the entry is free. */
void gets_give(struct engine *e, uint32_t get);

/* Takes the next context off the list of those that have gets which have come, and the first one
 * off its own. */
uint32_t gets_next_session(struct engine *e);
uint32_t gets_next(struct engine *e, uint32_t session);
/* The get is the last one of its context; the context stands behind all others. */
void gets_put_back(struct engine *e, uint32_t get);
void gets_session_back(struct engine *e, uint32_t session);
static inline bool gets_has(const struct engine *e, uint32_t session)
{
    return e->offloads.gets.of[session].first != NONE;
}

/* The context has no offload any more, and no gets. Flows may still have their operations. */
void gets_forget(struct engine *e, uint32_t session);
/* After a restart, behind offloads_inherit: gets that have come run, those of offloads that have
 * gone are free. */
void gets_inherit(struct engine *e);

#endif
