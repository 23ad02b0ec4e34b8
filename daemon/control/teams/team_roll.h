/*
 * The roll of a team: its members, and the answers to calls of the members here, in memory that
 * outlives the process.
 *
 *     offset 0                             128             a multiple of 8
 *     +----------------------------------+-------+-----  +----------+----------+-----
 *     | magic, number, gather, window,   | run 0 | ...   | answer 0 | answer 1 | ...
 *     | started, user, job, sizes        |       |       |          |          |
 *     +----------------------------------+-------+-----  +----------+----------+-----
 *
 * Each run has 20 bytes, each answer 8 (answer_word.h). There is one answer for each member here,
 * engine by engine, in order of team rank.
 *
 * Only the processes of this daemon, one after the other, read a roll. Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_ROLL_H
#define PWC_CONTROL_TEAM_ROLL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include "daemon/peering/teams/teams.h"
#include "shm_ring/mapping.h"

#define TEAM_ROLL_MAGIC UINT64_C(0x324c4c5254435750) /* "PWCTRLL2" */

struct team_roll {
    uint64_t magic;
    uint64_t number;
    uint64_t parent; /* parent, context and call name the gather that made the team */
    uint32_t context, call;
    uint32_t window;
    uint32_t started; /* its members were answered, or may have been */
    uint32_t uid;
    uint32_t run_count;
    char job[64];
    uint64_t first;        /* number of that gather's first team */
    uint32_t member_count; /* members on this node */
    uint8_t unused[4];
    struct teams_run runs[];
};
static_assert(sizeof(struct team_roll) == 128, "team_roll");
static_assert(sizeof(struct teams_run) == 20, "teams_run");
static_assert(DIRECTORY_NAME_MAX <= 64, "a job's name fits");

/* Makes a roll with these runs and this number of members here; all other fields are zero. */
int team_roll_make(struct mapping *m, const struct teams_run *runs, uint32_t count,
                   uint32_t members);
/* Maps the roll of an earlier process; on success, takes the descriptor over. -EPROTO: the memory
 * is no roll. */
int team_roll_inherit(struct mapping *m, int descriptor);
/* The answers of the members here. */
_Atomic uint64_t *team_roll_answers(const struct mapping *m);

#endif
