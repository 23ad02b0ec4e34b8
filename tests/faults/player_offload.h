/*
 * The offload of a player (player.h): examples/handlers/counter.c, which counts puts to the region
 * and lets them be placed as usual.
 *
 * Thread: the player's.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_OFFLOAD_H
#define PWC_TESTS_FAULTS_PLAYER_OFFLOAD_H

#include <stdbool.h>
#include "pwc/offload.h"

/* A zeroed struct has no offload. */
struct player_offload {
    pwc_program *program;
    pwc_region *state;
    pwc_offload *offload;
    bool kept; /* an offload without a handle here, which ends with its client */
};

/* Makes an offload for puts to the region. Returns 0, or a negative errno. */
int player_offload_open(struct player_offload *o, pwc_client *client, pwc_ctx *ctx,
                        pwc_region *region);
/* Gives back all objects, one after another. Returns 0, or a negative errno. */
int player_offload_close(struct player_offload *o);

#endif
