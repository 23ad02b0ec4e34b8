/*
 * A rank of a job of three of which one may die at any moment: rank 0, the victim, on node 0; rank
 * 1 far from it, on node 1; rank 2 near it, on node 0. Each survivor checks that every operation
 * ends once and in order, that an error says that a rank is lost, and that every byte with an event
 * is right.
 *
 * Memory: each rank's region is cut into STAGE_RANKS areas of ROUNDS places. The area of its own
 * number is what others get and what it puts from; that of another number is where that one puts.
 *
 * Thread: one a player.
 */
#ifndef PWC_TESTS_FAULTS_PLAYER_H
#define PWC_TESTS_FAULTS_PLAYER_H

#include "pwc/team.h"
#include "tests/faults/player_offload.h"
#include "tests/faults/stage.h"

#define PLAYER_ROUNDS 8u
#define PLAYER_WINDOW 4u

enum { VICTIM, FAR, NEAR };

/* The part of the victim; the other ranks play what goes with it. */
enum role {
    ROLE_ORIGIN,    /* puts, gets and sends to both */
    ROLE_TARGET,    /* both put, get and send to it */
    ROLE_LARGE,     /* large puts by the fabric come into its memory */
    ROLE_NEIGHBOUR, /* this rank and the near one put to each other through memory, and sleep in
                       between */
    ROLE_OWNER,     /* both get from its memory */
    ROLE_GATHER,    /* all exchange */
    ROLE_MEMBER,    /* all are a team, the two of node 0 another one (player_team.h) */
    ROLE_HANDLERS,  /* both put to it, and its offload handles that (player_offload.h) */
    ROLES,
    ROLE_ALL = ROLES, /* all exchange, then the victim is an origin */
};

struct player {
    struct stage *stage;
    uint32_t number;
    enum role role;
    bool may_lose; /* operations towards the victim */
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    uint8_t *memory;
    pwc_remote *remotes[STAGE_RANKS];
    uint64_t begun[STAGE_RANKS], ended[STAGE_RANKS]; /* operations towards each */
    uint64_t heard[STAGE_RANKS];                     /* remote events of each */
    bool lost;                                       /* an operation has ended so */
    pwc_team *world;                                 /* in ROLE_MEMBER; NULL: none was made */
    struct player_offload offload;                   /* the victim's, in ROLE_HANDLERS */
    char why[200];                                   /* the fault that was found, or "" */
};

const char *player_role(enum role role);
/* Notes the first thing that is wrong. Returns rc. */
__attribute__((format(printf, 3, 4))) int player_wrong(struct player *p, int rc, const char *format,
                                                       ...);
/* Plays a part from attaching to leaving. 0, or a negative errno with an explanation in p->why. */
int player_run(struct player *p, struct stage *stage, enum role role, uint32_t number,
               const char *socket, const char *job);

#endif
