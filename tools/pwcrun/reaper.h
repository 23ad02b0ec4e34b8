/*
 * The reaper: a process that cleans up after pwcrun, however pwcrun ends. The reaper holds the
 * reading end of a pipe, and starts to clean when the pipe closes: pwcrun has finished, or has been
 * killed. Every run ends this way, so every run tests the reaper.
 */
#ifndef PWCRUN_REAPER_H
#define PWCRUN_REAPER_H

#include <stdbool.h>
#include <sys/types.h>
#include "tools/pwcrun/network.h"
#include "tools/pwcrun/workdir.h"

struct reaper {
    pid_t pid; /* 0: somebody has killed the reaper */
    int pipe;  /* writing end */
};

/* Starts the reaper. Call this before anything exists that the reaper is to clean, except the
 * folder. */
int reaper_start(struct reaper *out, const struct workdir *dir, const struct network *network);

/* Reports that a child's process group has begun (the group's leader calls this itself), or that
 * all its processes were killed. */
void reaper_began(const struct reaper *reaper, pid_t group);
void reaper_ended(const struct reaper *reaper, pid_t group);

/* Collects a reaper that has ended too early. The run goes on without it. */
void reaper_lost(struct reaper *reaper);

/* Closes the pipe and waits until all is clean. False: the reaper was killed, and the caller has to
 * remove namespaces and folder itself. */
bool reaper_finish(struct reaper *reaper);

/* Removes files that the fabrics of a dead process group have left in /dev/shm. */
void reaper_sweep_shm(pid_t group);

#endif
