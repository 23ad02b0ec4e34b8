/*
 * Binds: resolving a peer and its key, once, off the hot path.
 *
 * The origin sends BIND; the target finds the context, checks the key, opens (or finds) its end of
 * the flow and grants the region; BOUND brings the flow's number, and the fabric's address and key,
 * which no client ever sees. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_BIND_H
#define PWC_ENGINE_BIND_H

#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/state/state.h"

int bind_asked(struct engine *e, uint32_t peer, const struct ledger_record *record);
int bind_answered(struct engine *e, uint32_t peer, const struct ledger_record *record);
/* Within a transaction: the origin has closed its end: because its context has ended (WIRE_ENDED or
 * an error), which our client then learns, or (0) because it has unbound. */
int bind_inflow_closed(struct engine *e, uint32_t peer, uint32_t inflow, int32_t end);
/* Within a transaction: the origin was lost, and what its parting inflow holds is cut. */
void bind_origin_gone(struct engine *e, uint32_t inflow);
/* The owner's registrations are new: all remotes at that owner are resolved again. */
void bind_refresh_node(struct engine *e, uint32_t peer);
/* The peer is lost: binds under way fail, remotes and inflows go. */
void bind_forget_node(struct engine *e, uint32_t peer);
/* Shows an inherited session which of its remotes have ended. */
void bind_show_ended(struct engine *e, uint32_t session);
/* Begins a bind, whose end the owner's row gets (ops/owner.h): the number of the remote, -ENOSPC,
 * -ENOBUFS. engine_bind is this for a session. */
int bind_begin(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint,
               const struct engine_key *key, uint64_t cookie);
/* Binds of an owner on its way out end without a report. */
void bind_forget_owner(struct engine *e, uint64_t owner);

#endif
