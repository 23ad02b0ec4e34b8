/*
 * The offload of a player (player.h): examples/handlers/counter.c, which counts puts to the region
 * and has them placed as usual.
 *
 * Thread: the player's.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_OFFLOAD_H
#define PWC_TESTS_FAULTS_PLAYER_OFFLOAD_H

#include <stdbool.h>
#include "pwc/offload.h"

/* Zeroed: there is none. */
struct player_offload {
    pwc_program *program;
    pwc_region *state;
    pwc_offload *offload;
    bool kept; /* there is an offload, without a handle here: it ends with its client */
};

/* Makes an offload for puts to the region. 0, or a negative errno. */
int player_offload_open(struct player_offload *o, pwc_client *client, pwc_ctx *ctx,
                        pwc_region *region);
/* Gives back what is there, one thing after another. 0, or a negative errno. */
int player_offload_close(struct player_offload *o);

#endif
