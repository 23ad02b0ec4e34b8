/* Inherits teams from an earlier process. Thread: control. */
#ifndef PWC_CONTROL_TEAM_INHERIT_H
#define PWC_CONTROL_TEAM_INHERIT_H

#include "daemon/control/teams/team.h"

/* Inherits the parts that a worker's engine has, before the engine's first step. */
void node_teams_inherit(struct worker *w, struct engine *e);

#endif
