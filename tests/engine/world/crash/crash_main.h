/*
 * The main function of tests in which a daemon may die anywhere. For each scenario, for node 0 and
 * for node 1, and for every n: the node stops before its n-th store to its arena or to a session,
 * everything except arena and client memory is dropped, a new process takes over, and the scenario
 * checks how its operations ended. After some of the crashes the new process dies too.
 *
 *     test_X [--every K] [--first F] [--again M]    all
 *     test_X [--every K] [--first F] [--again M] --scenario S --victim V [--store N [--trace]]
 *
 * With --every, the node dies only before one store in K: in each eighth of the engine's calls (K
 * below 8: each K-th), before some of its stores (K a multiple of 8, else somewhat more). Which
 * ones follows from the day, or from --first, so that all stores have their turn in K days. With
 * --again, each second death is M stores after the first. With --store, one death is run again; the
 * number counts the stores of the calls that
 * --every and --first choose.
 *
 * Thread: one in each process.
 */
#ifndef PWC_TESTS_ENGINE_CRASH_MAIN_H
#define PWC_TESTS_ENGINE_CRASH_MAIN_H

#include <stddef.h>
#include <stdio.h>
#include "tests/engine/world/crash/crash_guard.h"

/* Rounds after which a node that died opens again. */
#define CRASH_REOPEN_ROUNDS 20u

struct crash_suite {
    size_t count; /* number of scenarios */
    const char *(*name)(size_t number);
    /* Runs one scenario: opens a world, installs the guard and arms it while nodes may die. Returns
     * NULL, or what failed, for which `failure` has room. A child (guard.child) need not close the
     * world. */
    const char *(*run)(size_t number, struct crash_guard *guard, FILE *trace, char failure[400]);
};

int crash_main(const struct crash_suite *suite, int argc, char **argv);

#endif
