/* Teams over the end of a process. Thread: control. */
#ifndef PWC_CONTROL_TEAM_INHERIT_H
#define PWC_CONTROL_TEAM_INHERIT_H

#include "daemon/control/teams/team.h"

/* Inherits the parts of a worker's engine, before its first step. */
void node_teams_inherit(struct worker *w, struct engine *e);

#endif
