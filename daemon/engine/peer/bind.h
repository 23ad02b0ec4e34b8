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
/* Shows that an origin is back before the answer to its bind leaves. */
int bind_asked_after(struct engine *e, uint32_t peer);
int bind_answered(struct engine *e, uint32_t peer, const struct ledger_record *record);
/* Within a transaction: the origin has closed its end of the flow. `end`: its context has ended
 * (WIRE_ENDED or an error), which is reported to our client; 0: it has unbound. */
int bind_inflow_closed(struct engine *e, uint32_t peer, uint32_t inflow, int32_t end);
/* Within a transaction: closes a parting inflow whose origin was lost, and cuts the put that it
 * holds. */
void bind_origin_gone(struct engine *e, uint32_t inflow);
/* The peer's registrations are new: resolves all remotes at that peer again. */
void bind_refresh_node(struct engine *e, uint32_t peer);
/* The peer is lost: fails binds under way, and lets go of remotes and inflows. */
void bind_forget_node(struct engine *e, uint32_t peer);
/* Shows an inherited session which of its remotes have ended. */
void bind_show_ended(struct engine *e, uint32_t session);
/* Begins a bind, whose end is reported to the owner's row (ops/owner.h). Returns the number of the
 * remote, -ENOSPC, -ENOBUFS. engine_bind is this for a session. */
int bind_begin(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint,
               const struct engine_key *key, uint64_t cookie);
/* The flow's owner is on its way out: the flow's binds under way end with -ESHUTDOWN. Goes through
 * up to *left remotes, and takes them off *left. False: the next call continues. */
bool bind_forget_flow(struct engine *e, uint32_t flow, uint32_t *left);
/* As bind_forget_flow, for all flows of an owner that is no session. */
void bind_forget_owner(struct engine *e, uint64_t owner);

#endif
