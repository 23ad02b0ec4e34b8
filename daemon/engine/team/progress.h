/*
 * Progress of instances, round by round, and the end of teams that break.
 *
 * Each step is a transaction: the letters of a round are written, what has arrived is put in place
 * and the round is behind us, the result is shown. A process that dies between two of them, or in
 * the middle of one, leaves what the next one goes on with. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_PROGRESS_H
#define PWC_ENGINE_PROGRESS_H

#include "daemon/engine/state/state.h"

/* After a commit: does what e->teams.call asks for. */
void team_go_on(struct engine *e);
/* Within a transaction: the team is broken from its commit on, for e->teams.call.reason; after it
 * team_go_on lets the members here know. So the end of this process between the two is not the end
 * of the news. Nothing where the team is broken already. */
void team_condemn(struct engine *e, uint32_t team);
/* Within a transaction, which it commits: a letter's part is acknowledged. */
void team_acknowledged(struct engine *e, uint32_t peer, uint64_t slot);
/* Breaks a team that is not broken yet, and has its neighbours know; no transaction may be open. */
void team_fail(struct engine *e, uint32_t team, const struct team_reason *reason);
/* A peer's state is gone: so are teams with it. Transactions of its own. */
void teams_forget_peer(struct engine *e, uint32_t peer);
/* A context has ended: so breaks every team in which it has not left. */
void teams_forget_session(struct engine *e, uint32_t session);
/* The first step after a restart: teams without their area break, the others continue. */
void teams_resume(struct engine *e);

#endif
