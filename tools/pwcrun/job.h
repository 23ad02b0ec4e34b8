/*
 * A run from its first daemon to its last: a small state machine over the children's ends, signals,
 * and one deadline.
 */
#ifndef PWCRUN_JOB_H
#define PWCRUN_JOB_H

#include "tools/pwcrun/network.h"
#include "tools/pwcrun/options.h"
#include "tools/pwcrun/reaper.h"
#include "tools/pwcrun/workdir.h"

/* Runs a job, and returns the exit status of pwcrun. Takes blocked signals (job_block_signals) from
 * here. */
int job_run(const struct options *options, const struct workdir *dir, const struct network *network,
            struct reaper *reaper);

/* Blocks the signals that a job forwards, for pwcrun's whole life. */
int job_block_signals(void);

#endif
