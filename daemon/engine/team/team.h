/* Teams: opening, leaving, the way out (engine.h). Thread: the progress thread. */
#ifndef PWC_ENGINE_TEAM_H
#define PWC_ENGINE_TEAM_H

#include "daemon/engine/state/state.h"

/* For the sweep: whether a team stays on its way out. */
bool team_leaves(struct engine *e, uint32_t team);
/* After a restart: inherits the table, and the letters that wait. */
void teams_inherit(struct engine *e);

#endif
