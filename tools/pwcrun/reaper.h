/*
 * The reaper: a process that cleans up after pwcrun, however pwcrun ends. It holds the reading end
 * of a pipe, and starts to clean when the pipe closes: pwcrun has finished, or has been killed.
 * Every run ends this way, so each run tests it.
 */
#ifndef PWCRUN_REAPER_H
#define PWCRUN_REAPER_H

#include <sys/types.h>
#include "tools/pwcrun/network.h"
#include "tools/pwcrun/workdir.h"

struct reaper {
    pid_t pid;
    int pipe; /* writing end */
};

/* Start the reaper before anything that it is to clean exists, except the folder. */
int reaper_start(struct reaper *out, const struct workdir *dir, const struct network *network);

/* Reports that a child's process group has begun (its leader does so itself), or has ended and been
 * swept. */
void reaper_began(const struct reaper *reaper, pid_t group);
void reaper_ended(const struct reaper *reaper, pid_t group);

/* Closes the pipe and waits until all is clean. */
void reaper_finish(struct reaper *reaper);

/* Removes files that the fabric of a dead process has left in /dev/shm. */
void reaper_sweep_shm(pid_t pid);

#endif
