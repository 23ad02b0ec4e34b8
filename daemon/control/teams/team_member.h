/* Members of teams: their sessions, and how they leave. Thread: control. */
#ifndef PWC_CONTROL_TEAM_MEMBER_H
#define PWC_CONTROL_TEAM_MEMBER_H

#include "daemon/control/teams/team.h"

/* The session that is to be this member, among those of the worker's clients; NULL: it has ended.
 */
struct client_session *team_member_session(const struct team *t, const struct worker *w,
                                           const struct team_member *m);
/* The member of this session, and its part; NULL: it is none, or has left. */
struct team_member *team_member_of(const struct team *t, const struct client_session *s,
                                   struct team_part **part);
/* A member has left: its client gets back what it was charged with. */
void team_member_leaves(struct team_part *part, struct team_member *m);
/* A member leaves in order: `left` is called with the session's client as the call's owner, and the
 * request as its cookie. */
void team_leave(struct team_part *part, struct team_member *m, uint32_t request,
                void (*left)(struct call *call));
/* A session has ended: it leaves its teams, which its engine breaks. */
void node_teams_session_gone(struct client_session *s);

#endif
