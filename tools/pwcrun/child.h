/*
 * Starting a child that does not outlive pwcrun: it is killed by the kernel when pwcrun dies, and
 * leads a process group of its own, so that what it starts can be ended with it.
 */
#ifndef PWCRUN_CHILD_H
#define PWCRUN_CHILD_H

#include <sched.h>
#include <sys/types.h>
#include "tools/pwcrun/reaper.h"

#define CHILD_EXTRA_FD 3

struct child_spec {
    char *const *argv;
    char *const *envp;
    const char *netns;           /* network namespace to live in; NULL: ours */
    const cpu_set_t *processors; /* to stay on; NULL: ours */
    int out;                     /* becomes stdout; -1: ours */
    int err;                     /* becomes stderr; -1: ours */
    int extra;                   /* becomes descriptor CHILD_EXTRA_FD; -1: none */
    const struct reaper *reaper; /* gets the child's group before its program runs */
};

/* Starts a child. 0 when the program runs; otherwise a negative errno of the step that failed. */
int child_start(const struct child_spec *spec, pid_t *out);

/* Runs `argv` and waits. The program keeps the descriptor `kept` as CHILD_EXTRA_FD; -1: none.
 * Returns its exit status (128+n for signal n), or a negative errno. */
int child_run(char *const *argv, int kept);

/* Turns the status that waitpid reported into a shell's exit status. */
int child_status(int wait_status);

#endif
