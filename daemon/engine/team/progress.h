/*
 * Progress of instances, round by round, and the end of teams that break.
 *
 * Each step is a transaction: the letters of a round are written; what has arrived is put in place,
 * which ends the round; the result is shown. Where a process dies between two steps, or in the
 * middle of one, the next process continues from there. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_PROGRESS_H
#define PWC_ENGINE_PROGRESS_H

#include "daemon/engine/state/state.h"

/* After a commit: does what e->teams.call asks for. */
void team_go_on(struct engine *e);
/* Within a transaction: breaks the team from the commit on, for e->teams.call.reason; after that
 * team_go_on shows it to the members here. So the members learn of it even if this process dies
 * between the two. No effect on a team that is broken already. */
void team_condemn(struct engine *e, uint32_t team);
/* Within a transaction, which it commits: a record of a letter is acknowledged. */
void team_acknowledged(struct engine *e, uint64_t slot);
/* Breaks a team that is not broken yet, and owes BREAK to its neighbours; no transaction may be
 * open. */
void team_fail(struct engine *e, uint32_t team, const struct team_reason *reason);
/* Breaks all teams with a peer whose state is gone. In transactions of its own. */
void teams_forget_peer(struct engine *e, uint32_t peer);
/* A member cannot take part any more: breaks the team, which the member then leaves. No effect on a
 * team that the session is not a member of, or has left. */
void team_forget_session(struct engine *e, uint32_t team, uint32_t session);
/* A context has ended: breaks every team that it has not left. */
void teams_forget_session(struct engine *e, uint32_t session);
/* Breaks the teams whose areas have faulted, and quarantines their members here: after the fault
 * the area is the daemon's own memory, so nothing written there reaches them. */
void teams_find_faults(struct engine *e);
/* The first step after a restart: teams without their area break, the others continue. */
void teams_resume(struct engine *e);

#endif
