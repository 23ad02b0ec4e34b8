/*
 * The home of a job, for tests of teams: a directory, the gathers of its teams, and memory that
 * notices a write past its end. The job has six ranks: rank r on node r / 2, with engine r % 2.
 * Thread: one.
 */
#ifndef PWC_TESTS_CONTROL_TEAM_HOME_H
#define PWC_TESTS_CONTROL_TEAM_HOME_H

#include "daemon/peering/teams/teams.h"

#define HOME_NODES 4u
#define HOME_NODE  2u /* the home's own number */
#define HOME_SIZE  6u /* ranks of the job */

/* A test owns one; home_begin fills it in. */
struct team_home {
    struct directory_memory memory;
    struct directory directory;
    struct teams teams;
    int taken;        /* number of allocated pieces of memory */
    int refuse_after; /* allocations that still succeed; -1: all */
};

extern const struct directory_id home_job;
/* A call over the world, and a call over the team 77. */
extern const struct teams_key home_world, home_team;
extern const struct teams_answer home_unanswered;

/* Begins with all ranks attached; the user is alone, or has to leave room for other users. */
void home_begin(struct team_home *h);
void home_begin_shared(struct team_home *h);
/* Checks that everything is given back. */
void home_finish(struct team_home *h);

uint32_t home_node(uint32_t rank);
/* A call by this rank over the world. */
struct teams_call home_call_of(uint32_t rank);
int home_call(struct team_home *h, const struct teams_key *key, const struct teams_call *c);
/* The first `size` ranks call. */
void home_all_call(struct team_home *h, const struct teams_key *key, uint32_t size, uint32_t kind);
/* The node names the first `size` ranks as the members of the parent. */
void home_name_all(struct team_home *h, const struct teams_key *key, uint32_t node, uint32_t size);
/* The first `nodes` nodes report that they are ready, or have ended the call. */
void home_ready(struct team_home *h, const struct teams_key *key, uint32_t nodes, int status,
                bool ended);

/* The number of this key's gather; 0: there is none. */
uint64_t home_number(const struct team_home *h, const struct teams_key *key);
/* Checks which step is due next, and returns its gather. */
struct teams_gather *home_due(struct team_home *h, enum teams_due expected);
/* Checks that a gather has ended with this status for all members. */
void home_ends(struct team_home *h, int status);
/* A gather's teams as text, each as "3@1.1 0@0.0 |": ranks with node and engine, in the order of
 * team ranks. The text stays until the next call. */
const char *home_groups(const struct teams_gather *g);

#endif
