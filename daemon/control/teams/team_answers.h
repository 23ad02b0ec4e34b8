/*
 * Notes how each member's last call over each of its parents has ended, in memory that outlives the
 * process (answer_word.h): in the roll of the parent, or, where this is the world, in the caller's
 * session.
 *
 * All answers of a call are noted before the first member is answered. So the next process gives a
 * member that asks again the same answer as the other members got, and can report to a home that
 * was restarted how the call has ended. Only a member that gives up has its answer, -ETIMEDOUT,
 * before the call ends for the others. Clients may write into their sessions: a client that changes
 * the answer for the world, or gives up calls that it has not made, damages the teams of its own
 * job only.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_ANSWERS_H
#define PWC_CONTROL_TEAM_ANSWERS_H

#include "daemon/control/teams/team.h"

/* Notes that the call of this client ends with this status, unless it has ended before. */
void team_answers_note(const struct control *control, const struct teams_key *key,
                       const struct client *c, int status);
/* Whether this call of the client has ended; *status: how. */
bool team_answers_find(const struct control *control, const struct teams_key *key,
                       const struct client *c, int *status);
/* Whether this call of the client has ended with an error. A client that was refused takes no part
 * in the call's team: where the team starts, the client had given up. */
bool team_answers_refused(const struct control *control, const struct teams_key *key,
                          const struct client *c);
/* Whether this call has ended for some member on this node, or a member has made a later call;
 * *status: what all members get. */
bool team_answers_any(const struct control *control, const struct teams_key *key, int *status);

#endif
