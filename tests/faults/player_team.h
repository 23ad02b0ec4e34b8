/*
 * A player's part as a member of teams. Each survivor checks that every call ends once, with the
 * right result or with -EHOSTDOWN, and that the ranks that are left can make a working team.
 *
 * Thread: one for each player.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_TEAM_H
#define PWC_TESTS_FAULTS_PLAYER_TEAM_H

#include "tests/faults/player.h"

/* Makes a team of all ranks (p->world) and a team of this node's ranks, takes part in collectives
 * of both, and frees the node's team. Returns 0, or a negative errno with an explanation in p->why.
 */
int player_team_work(struct player *p);
/* For a survivor, after the victim's end: shrinks p->world, and makes collectives with the ranks
 * that are left. */
int player_team_go_on(struct player *p);

#endif
