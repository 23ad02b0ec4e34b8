/*
 * Teams of clients without a library: each member asks, then all answers are read. Thread: one at a
 * time for each socket.
 */
#ifndef PWC_TESTS_LIB_RAW_TEAM_H
#define PWC_TESTS_LIB_RAW_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"

/* The answer to one member. */
struct raw_team {
    int status;     /* 0, the status of an Error, or -ECONNRESET without an answer */
    char text[512]; /* text of the Error */
    uint64_t number;
    uint32_t handle, rank, member, window, small_max;
    uint32_t size;     /* number of members */
    uint32_t ranks[8]; /* ranks in the job of the first members */
    int area;          /* the caller closes it; -1: none */
};

/* Returns a good call over this parent by this session: a split in which all members have one
 * color. */
Pwc__TeamJoin raw_team_call(uint32_t session, uint64_t parent, uint32_t call);
bool raw_team_join(int socket, const Pwc__TeamJoin *join);
/* Reads the answer. Returns its status. */
int raw_team_formed(int socket, struct raw_team *out);
int raw_team_leave(int socket, uint32_t session, uint64_t number);
/* Reports that this call's member no longer waits. Its answer is an Error or Done. */
bool raw_team_withdraw(int socket, const Pwc__TeamJoin *join);
void raw_team_close(struct raw_team *team);

#endif
