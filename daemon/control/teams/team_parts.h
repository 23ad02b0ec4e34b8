/* Which engine has which members of a team: runs of them as the home names them, participants, and
 * the parts of this node's engines. Thread: control. */
#ifndef PWC_CONTROL_TEAM_PARTS_H
#define PWC_CONTROL_TEAM_PARTS_H

#include "daemon/control/teams/team.h"

/* Names further members: `from` is the number of members named before. -EPROTO, -ENOMEM. */
int team_name(struct team *t, uint32_t from, const struct teams_run *runs, uint32_t count);
/* All members have been named: makes the participants and the parts, without sessions. -ENOMEM. */
int team_parts_make(struct team *t);
/* Members on this node. */
uint32_t team_members_here(const struct team *t);
/* The roll exists now: each member here has its place in it. */
void team_parts_answers(struct team *t);

#endif
