/* Finds the sessions of teams' members, and lets members leave. Thread: control. */
#ifndef PWC_CONTROL_TEAM_MEMBER_H
#define PWC_CONTROL_TEAM_MEMBER_H

#include "daemon/control/teams/team.h"

/* Finds the session that is to be this member, among the sessions of the worker's clients; NULL: it
 * has ended. */
struct client_session *team_member_session(const struct team *t, const struct worker *w,
                                           const struct team_member *m);
/* Finds the member that this session is, and its part; NULL: it is no member, or has left. */
struct team_member *team_member_of(const struct team *t, const struct client_session *s,
                                   struct team_part **part);
/* Removes a member, and gives its client back what it was charged for. */
void team_member_leaves(struct team_part *part, struct team_member *m);
/* Lets a member leave at its client's request. `left` is called with the client as the call's
 * owner, and the request as its cookie; NULL: nothing is called. */
void team_leave(struct team_part *part, struct team_member *m, uint32_t request,
                void (*left)(struct call *call));
/* As team_leave, for a member that could not take part: the team breaks. */
void team_abandon(struct team_part *part, struct team_member *m, uint32_t request,
                  void (*left)(struct call *call));
/* Removes an ended session from its teams, which its engine breaks. */
void node_teams_session_gone(struct client_session *s);

#endif
