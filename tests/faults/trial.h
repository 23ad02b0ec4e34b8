/*
 * Two daemons and a job of three ranks (player.h). One rank, the victim, is a process that may die
 * or fail; the others are threads of the test, and check what they see. Afterwards the daemons must
 * hold what they held before.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_FAULTS_TRIAL_H
#define PWC_TESTS_FAULTS_TRIAL_H

#include "tests/lib/raw/look.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/cluster.h"
#include "tests/faults/player.h"

struct trial {
    struct cluster cluster;
    struct holdings quiet[2];
    struct stage *stage;
    int stage_fd;
    const char *victim; /* path of the program */
    unsigned runs;
};

/* How operations of the survivors that do not concern the dead rank may fail. */
enum trial_failure {
    TRIAL_NONE,
    TRIAL_IN_TIME,
    TRIAL_LATE, /* also by a timeout, because a daemon permanently lacks a resource */
};

struct trial_plan {
    enum role role;
    unsigned call_ms; /* timeout of calls that wait for the daemon; 0: the default */
    enum trial_failure may_fail;
    void *context;
    void (*in_victim)(void *context); /* in the victim's process, before it becomes the program */
    void (*bound)(void *context); /* in the test, when the victim has bound the others; or NULL */
};

/* Starts the daemons and waits until they serve. Returns false after printing the reason. */
bool trial_open(struct trial *t, const struct cluster_options *options, const char *victim);
bool trial_close(struct trial *t);

/* Runs the job, and stores the victim's wait status in *status. Returns false if a check of a
 * survivor has failed, or a process does not end; the reason was printed. */
bool trial_run(struct trial *t, const struct trial_plan *plan, int *status);
/* Waits until the daemons, which must be alive, hold what trial_note_quiet noted; prints a
 * difference. Returns whether they do. */
bool trial_settles(struct trial *t);
/* Notes what the daemons hold now, as the value for trial_settles. */
bool trial_note_quiet(struct trial *t);
/* Whether two new ranks can put to each other for some rounds. */
bool trial_serves(struct trial *t);

#endif
