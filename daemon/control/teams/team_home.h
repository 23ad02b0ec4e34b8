/*
 * Forms teams as a job's home: it gives frames to the gathers of peering/teams.h, and sends what
 * they decide. Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_HOME_H
#define PWC_CONTROL_TEAM_HOME_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

/* Call this after directory_client_open. */
int team_home_open(struct control *control);
void team_home_close(struct control *control);
/* Handles TeamCall, TeamMembers, TeamGone and TeamReady. -EPROTO: the frame makes no sense. */
int team_home_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* Ends calls that wait for a rank that has left its job. The directory knows it already. */
void team_home_rank_left(struct control *control, const struct directory_id *id, uint32_t rank);
/* Sends over a new link what the node may have lost. */
void team_home_node_up(struct control *control, uint32_t node);
/* Ends calls that wait for a node that is given up, after its ranks have left. */
void team_home_node_lost(struct control *control, uint32_t node);

#endif
