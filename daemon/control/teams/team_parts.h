/* Finds which engine has which members of a team: from the runs that the home names it makes
 * participants, and the parts of this node's engines. Thread: control. */
#ifndef PWC_CONTROL_TEAM_PARTS_H
#define PWC_CONTROL_TEAM_PARTS_H

#include "daemon/control/teams/team.h"

/* Takes the names of more members; `from` is how many were named before. -EPROTO, -ENOMEM. */
int team_name(struct team *t, uint32_t from, const struct teams_run *runs, uint32_t count);
/* Makes the participants and the parts, without sessions, after all members have been named.
 * -ENOMEM. */
int team_parts_make(struct team *t);
/* How many members are on this node. */
uint32_t team_members_here(const struct team *t);
/* Gives each member here the place of its answer in the roll. The roll must have been made. */
void team_parts_answers(struct team *t);

#endif
