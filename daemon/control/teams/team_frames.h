/*
 * Shared by both sides of forming teams: names of gathers, and runs of members, in frames.
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_FRAMES_H
#define PWC_CONTROL_TEAM_FRAMES_H

#include <stdbool.h>
#include "daemon/peering/teams/teams.h"
#include "proto/control.pb-c.h"

#define TEAM_FRAME_RUNS 512u /* in one frame: sockets take it whole */

/* Runs as they stand in a frame. */
struct team_frame_runs {
    Pwc__TeamRun runs[TEAM_FRAME_RUNS];
    Pwc__TeamRun *list[TEAM_FRAME_RUNS];
};

/* The gather's name, which points into `key`. */
Pwc__TeamGather team_gather_pack(const struct teams_key *key);
/* False: it is none, or its job has no fit name. The key points into the frame. */
bool team_gather_parse(const Pwc__TeamGather *gather, struct teams_key *key);
/* Packs at most TEAM_FRAME_RUNS. */
void team_runs_pack(struct team_frame_runs *out, const struct teams_run *runs, uint32_t count);
struct teams_run team_run_parse(const Pwc__TeamRun *run);

#endif
