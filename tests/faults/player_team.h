/*
 * The part of a rank as a member of teams. Each survivor checks that every call ends once, with the
 * right result or with -EHOSTDOWN, and that the ranks that are left make a team that works.
 *
 * Thread: one a player.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_TEAM_H
#define PWC_TESTS_FAULTS_PLAYER_TEAM_H

#include "tests/faults/player.h"

/* Makes the world and a team a node, takes part in collectives of both, and leaves the second one.
 * 0, or a negative errno with an explanation in p->why. */
int player_team_work(struct player *p);
/* A survivor, after the victim's end: shrinks the world, and works with the ranks that are
 * left. */
int player_team_go_on(struct player *p);

#endif
