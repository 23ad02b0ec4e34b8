/*
 * Scheduler groups: Linux divides a processor first between groups, then within each group, and a
 * yield lets only threads of the yielder's group run. A process is in the group of its control
 * group with the `cpu` controller. In the root control group each session (setsid) has a group of
 * its own where kernel.sched_autogroup_enabled is 1.
 *
 * Thread: any. Reads files of /proc and /sys/fs/cgroup, 0.1 ms.
 */
#ifndef PWC_CONTROL_SCHED_GROUP_H
#define PWC_CONTROL_SCHED_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sched_group {
    bool known;
    char path[PATH_MAX]; /* of the control group with the cpu controller */
    uint64_t session;    /* number of the session's group; 0: none */
};

/* Finds the group of a process. `root` stands before all names of files: "", except in tests.
 * Returns 0, or -errno: the group is not known, because a file cannot be read or understood. */
int sched_group_find(const char *root, pid_t pid, struct sched_group *out);
/* Whether a process is in another group than `ours`; false where that is not known. A process that
 * /proc hides is another user's, and so in none of our sessions and control groups. A process of
 * which not even the number is known has pid 0. */
bool sched_group_is_other(const char *root, pid_t pid, const struct sched_group *ours);

#endif
