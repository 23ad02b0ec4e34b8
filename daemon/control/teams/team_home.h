/*
 * The home's side of forming teams: frames to and from the gathers of peering/teams.h.
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_HOME_H
#define PWC_CONTROL_TEAM_HOME_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

/* To be called after directory_client_open. */
int team_home_open(struct control *control);
void team_home_close(struct control *control);
/* TeamCall, TeamMembers, TeamGone, TeamReady. -EPROTO: it makes no sense. */
int team_home_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* A rank has left its job, as the directory knows by now. */
void team_home_rank_left(struct control *control, const struct directory_id *id, uint32_t rank);
/* A link is new: sends again what the node may have lost. */
void team_home_node_up(struct control *control, uint32_t node);
/* A node is given up, and its ranks have left. */
void team_home_node_lost(struct control *control, uint32_t node);

#endif
