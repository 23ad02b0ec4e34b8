/*
 * Random runs of a scene, each from its seed: within a suite, or on their own.
 *
 *     test_NAME                                 the suite
 *     test_NAME --seeds N [--first S]           N random runs alone
 *     test_NAME --seed S [--trace]              one of them again
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_SCENE_SEEDS_H
#define PWC_TESTS_ENGINE_SCENE_SEEDS_H

#include <CUnit/CUnit.h>
#include <stdint.h>
#include <stdio.h>

struct scene_seeds {
    const char *name; /* name of the suite, and of the program after "test_" */
    /* Makes one random run. Returns NULL, or what went wrong. `trace` is NULL, or gets a line for
     * each event. */
    const char *(*run)(uint64_t seed, FILE *trace);
};

/* Returns how many of these runs fail. Prints each seed that fails, and how to run it again. */
uint32_t scene_run_seeds(const struct scene_seeds *seeds, uint64_t first, uint64_t count);
/* The main function of a test with such runs. */
int scene_main(const struct scene_seeds *seeds, CU_TestInfo *tests, int argc, char **argv);

#endif
