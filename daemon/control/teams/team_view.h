/* Makes rows of teams for pwcctl. Thread: control. */
#ifndef PWC_CONTROL_TEAM_VIEW_H
#define PWC_CONTROL_TEAM_VIEW_H

#include "daemon/control/teams/team.h"
#include "views/rows.h"

#define TEAM_BROKEN_MAX 128u

/* Fills in a row; `broken` is room for its text. Words of the area, which members write, are shown
 * as they are. */
void team_part_view(const struct team_part *part, struct view_team *out,
                    char broken[TEAM_BROKEN_MAX]);

#endif
