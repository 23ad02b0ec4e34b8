/* Requests to join a team that is formed, and to leave a team. Thread: control. */
#ifndef PWC_CONTROL_REQUEST_TEAM_H
#define PWC_CONTROL_REQUEST_TEAM_H

#include "daemon/control/clients/client.h"

void request_team_join(struct client *c, uint32_t request, const Pwc__TeamJoin *join);
void request_team_leave(struct client *c, uint32_t request, const Pwc__TeamLeave *leave);

#endif
