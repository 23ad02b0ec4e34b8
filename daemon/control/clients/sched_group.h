/*
 * Scheduler groups: Linux divides a processor first between groups, then within each group, and a
 * yield lets only threads of the yielder's group run. A process is in the group of its control
 * group with the `cpu` controller. In the root control group each session (setsid) has a group of
 * its own where kernel.sched_autogroup_enabled is 1.
 *
 * Thread: any. Reads files of /proc and /sys/fs/cgroup.
 */
#ifndef PWC_CONTROL_SCHED_GROUP_H
#define PWC_CONTROL_SCHED_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sched_group {
    bool known;
    bool own;            /* the process is in the control group of `path`, not in one below it */
    char path[PATH_MAX]; /* of the control group with the cpu controller */
    uint64_t session;    /* number of the session's group; 0: none */
};

/* A process and we: in one group, or apart. */
enum sched_relation { SCHED_UNKNOWN, SCHED_BESIDE, SCHED_APART };

/* Finds the group of a process. `root` stands before all names of files: "", except in tests.
 * Returns 0, or -errno: the group is not known, because a file cannot be read or understood. */
int sched_group_find(const char *root, pid_t pid, struct sched_group *out);
/* How a process is related to this one, whose group is `ours`. A process that /proc hides is
 * another user's, so it is in no session of ours; nor in a control group of our own, but perhaps in
 * one that we share with others. A process of which not even the number is known has pid 0. */
enum sched_relation sched_group_relation(const char *root, pid_t pid,
                                         const struct sched_group *ours);

#endif
