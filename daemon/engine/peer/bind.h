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
/* Within a transaction: the origin has closed its end. */
int bind_inflow_closed(struct engine *e, uint32_t peer, uint32_t inflow);
/* The owner's registrations are new: all remotes there are resolved again. */
void bind_refresh_node(struct engine *e, uint32_t peer);
/* The peer is lost: binds under way fail, remotes and inflows go. */
void bind_forget_node(struct engine *e, uint32_t peer);
/* Shows an inherited session which of its remotes have ended. */
void bind_show_ended(struct engine *e, uint32_t session);
/* Binds of a session on its way out end without a notice. */
void bind_forget_session(struct engine *e, uint32_t session);

#endif
