/*
 * Teams of clients without a library: each member asks, then all answers are read.
 * Thread: one at a time a socket.
 */
#ifndef PWC_TESTS_LIB_RAW_TEAM_H
#define PWC_TESTS_LIB_RAW_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"

/* The answer to a member. */
struct raw_team {
    int status;     /* 0, the Error's, or -ECONNRESET: no answer */
    char text[512]; /* of the Error */
    uint64_t number;
    uint32_t handle, rank, member, window, small_max;
    uint32_t size;     /* members in all runs */
    uint32_t ranks[8]; /* of the job, of the first */
    int area;          /* the caller's to close, or -1 */
};

/* A good call over this parent, by this session: a split where all have one color. */
Pwc__TeamJoin raw_team_call(uint32_t session, uint64_t parent, uint32_t call);
bool raw_team_join(int socket, const Pwc__TeamJoin *join);
/* Reads the answer. Returns its status. */
int raw_team_formed(int socket, struct raw_team *out);
int raw_team_leave(int socket, uint32_t session, uint64_t number);
void raw_team_close(struct raw_team *team);

#endif
