/*
 * Two daemons and a job of three ranks (player.h), one of which is a process that may die or fail;
 * the others live here, each in a thread, and check what they see. After it the daemons must hold
 * what they held before.
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
    const char *victim; /* the program */
    unsigned runs;
};

/* How operations of the survivors fail, other than those towards the dead rank. */
enum trial_failure {
    TRIAL_NONE,
    TRIAL_IN_TIME,
    TRIAL_LATE, /* also "no answer in time": of a daemon that lacks something forever */
};

struct trial_plan {
    enum role role;
    unsigned call_ms; /* of calls that wait for the daemon; 0: the usual */
    enum trial_failure may_fail;
    void *context;
    void (*in_victim)(void *context); /* before it becomes the program */
    void (*bound)(void *context);     /* here, when it has bound the others, and waits; or NULL */
};

/* Starts the daemons and waits until they serve. Prints what is wrong. */
bool trial_open(struct trial *t, const struct cluster_options *options, const char *victim);
bool trial_close(struct trial *t);

/* Runs the job, and puts the victim's status, as wait(2) gives it, into *status. Returns false if a
 * survivor has seen what it should not, or if a process does not end; the reason has been printed.
 */
bool trial_run(struct trial *t, const struct trial_plan *plan, int *status);
/* Waits until the daemons, which must live, hold what they did; prints the difference. */
bool trial_settles(struct trial *t);
/* Notes what the daemons hold now; they must hold the same later. */
bool trial_note_quiet(struct trial *t);
/* Lets two other ranks put to each other for some rounds. */
bool trial_serves(struct trial *t);

#endif
