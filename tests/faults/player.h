/*
 * A player is a rank in a job of three, one of which may die at any moment: rank 0, the victim, on
 * node 0; rank 1, called far, on node 1; rank 2, called near, on node 0. Each survivor checks that
 * every operation ends once and in order, that the only errors are those for a lost rank, and that
 * all bytes are right once their event has come.
 *
 * Memory: each rank's region has STAGE_RANKS areas of ROUNDS places. From the area with its own
 * number others get, and it puts from there; into the area with another rank's number that rank
 * puts.
 *
 * Thread: one for each player.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_H
#define PWC_TESTS_FAULTS_PLAYER_H

#include "pwc/team.h"
#include "tests/faults/player_offload.h"
#include "tests/faults/stage.h"

#define PLAYER_ROUNDS 8u
#define PLAYER_WINDOW 4u

enum { VICTIM, FAR, NEAR };

/* The part that the victim plays; the other ranks act to match. */
enum role {
    ROLE_ORIGIN,    /* puts, gets and sends to both other ranks */
    ROLE_TARGET,    /* both other ranks put, get and send to the victim */
    ROLE_LARGE,     /* large puts arrive in the victim's memory through the fabric */
    ROLE_NEIGHBOUR, /* victim and near put to each other directly, and sleep in between */
    ROLE_OWNER,     /* both other ranks get from the victim's memory */
    ROLE_GATHER,    /* all three exchange */
    ROLE_MEMBER,    /* all three are a team, and those on node 0 another one (player_team.h) */
    ROLE_HANDLERS,  /* both others put to the victim, whose offload handles that (player_offload.h)
                     */
    ROLES,
    ROLE_ALL = ROLES, /* all three exchange, then the victim is an origin */
};

struct player {
    struct stage *stage;
    uint32_t number;
    enum role role;
    bool may_lose; /* operations towards the victim may fail */
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    uint8_t *memory;
    pwc_remote *remotes[STAGE_RANKS];
    uint64_t begun[STAGE_RANKS], ended[STAGE_RANKS]; /* operations towards each rank */
    uint64_t heard[STAGE_RANKS];                     /* remote events from each rank */
    bool lost;                                       /* an operation has failed so */
    pwc_team *world;                                 /* in ROLE_MEMBER: the team of all, or NULL */
    struct player_offload offload;                   /* the victim's offload, in ROLE_HANDLERS */
    char why[200];                                   /* the first error that was found, or "" */
};

const char *player_role(enum role role);
/* Notes the first error in p->why. Returns rc. */
__attribute__((format(printf, 3, 4))) int player_wrong(struct player *p, int rc, const char *format,
                                                       ...);
/* Plays a part from attaching to leaving. Returns 0, or a negative errno with an explanation in
 * p->why. */
int player_run(struct player *p, struct stage *stage, enum role role, uint32_t number,
               const char *socket, const char *job);

#endif
