/* Opens teams in the engines: areas for their members, and a roll for the next process. Thread:
 * control. */
#ifndef PWC_CONTROL_TEAM_OPEN_H
#define PWC_CONTROL_TEAM_OPEN_H

#include "daemon/control/teams/team.h"

/* Bytes of a part's area; 0: it has more members than an area can have. */
uint64_t team_area_size(const struct team_part *part);
/* Opens the team, whose members have all been named, in the engines. Then `opened` is called;
 * t->status has the result. */
void team_open(struct team *t, void (*opened)(struct team *team));
/* After a takeover, when all workers run, opens the team in the engines that do not have it yet. */
void team_open_rest(struct team *t, void (*on_opened)(struct team *team));

#endif
