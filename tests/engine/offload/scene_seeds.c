/* Runs seeds of a scene (scene_seeds.h). Thread: one. */
#include "tests/engine/offload/scene_seeds.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"

uint32_t scene_run_seeds(const struct scene_seeds *seeds, uint64_t first, uint64_t count)
{
    uint32_t failed = 0;

    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *wrong = seeds->run(seed, NULL);

        if (!wrong)
            continue;
        printf("\n  seed %" PRIu64 ": %s\n  again: test_%s --seed %" PRIu64 " --trace\n", seed,
               wrong, seeds->name, seed);
        failed++;
    }
    return failed;
}

static int run_one(const struct scene_seeds *seeds, uint64_t seed, bool trace)
{
    const char *wrong = seeds->run(seed, trace ? stdout : NULL);

    printf("seed %" PRIu64 ": %s\n", seed, wrong ? wrong : "passed");
    return wrong != NULL;
}

int scene_main(const struct scene_seeds *seeds, CU_TestInfo *tests, int argc, char **argv)
{
    uint64_t first = 1, count = 0;
    bool trace = false, one = false;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (more && strcmp(argv[i], "--seeds") == 0) {
            count = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--first") == 0) {
            first = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[++i], NULL, 0);
            one = true;
        } else {
            fprintf(stderr, "usage: %s [--seeds N [--first S] | --seed S [--trace]]\n", argv[0]);
            return 2;
        }
    }
    if (one)
        return run_one(seeds, first, trace);
    return count > 0 ? scene_run_seeds(seeds, first, count) > 0 : suite_run(seeds->name, tests);
}
