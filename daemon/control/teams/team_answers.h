/*
 * How the last call of each member over each of its parents has ended, in memory that outlives the
 * process (answer_word.h): of a team that is a parent in its roll, of the world in the caller's
 * session.
 *
 * All answers of a call are noted before the first of them leaves. So the next process answers a
 * member that asks once more as its neighbours were answered, and says to a home that was restarted
 * how the call has ended. Clients may write into their sessions: one that lies about the world
 * spoils the teams of its own job.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_ANSWERS_H
#define PWC_CONTROL_TEAM_ANSWERS_H

#include "daemon/control/teams/team.h"

/* The call of this client, which is member `at` of the parent, ends with this status. */
void team_answers_note(const struct control *control, const struct teams_key *key,
                       const struct client *c, uint32_t at, int status);
/* Whether this call of the client's has ended; with its status. */
bool team_answers_find(const struct control *control, const struct teams_key *key,
                       const struct client *c, uint32_t at, int *status);
/* Whether this call has ended for some member here, or a member has gone on to a later one; with
 * the status that all members get. */
bool team_answers_any(const struct control *control, const struct teams_key *key, int *status);

#endif
