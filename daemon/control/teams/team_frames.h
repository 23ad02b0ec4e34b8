/*
 * Packs and parses names of gathers and runs of members in frames, for members' nodes and for
 * homes. Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_FRAMES_H
#define PWC_CONTROL_TEAM_FRAMES_H

#include <stdbool.h>
#include "daemon/peering/teams/teams.h"
#include "proto/control.pb-c.h"

#define TEAM_FRAME_RUNS 512u /* runs in one frame, which a socket takes completely */

/* Runs in the form that a frame has. */
struct team_frame_runs {
    Pwc__TeamRun runs[TEAM_FRAME_RUNS];
    Pwc__TeamRun *list[TEAM_FRAME_RUNS];
};

/* Packs the gather's name, with pointers into `key`. */
Pwc__TeamGather team_gather_pack(const struct teams_key *key);
/* Parses a gather's name; `key` points into the frame. False: there is none, or its job's name is
 * not valid. */
bool team_gather_parse(const Pwc__TeamGather *gather, struct teams_key *key);
/* Packs `count` runs, at most TEAM_FRAME_RUNS. */
void team_runs_pack(struct team_frame_runs *out, const struct teams_run *runs, uint32_t count);
struct teams_run team_run_parse(const Pwc__TeamRun *run);

#endif
