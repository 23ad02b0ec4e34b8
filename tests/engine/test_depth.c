/*
 * Depth: two hundred thousand operations queued towards a peer that cannot be reached are taken as
 * quickly at the end as at the beginning, and leave as quickly once it is back. Speed is counted in
 * steps of the engine, not in time. Thread: one.
 */
#include <stdio.h>
#include "tests/suite.h"
#include "tests/engine/world/paths/driver.h"
#include "tests/engine/world/paths/world_path.h"

#define DEPTH    200000u
#define QUARTERS 4u
#define QUARTER  (DEPTH / QUARTERS)

static struct world_path path;
static struct driver driver;

/* Makes steps of the origin's engine until `done` has reached the target. Returns false if nothing
 * moves any more. */
static bool steps_until(uint64_t (*done)(void), uint64_t target, uint64_t *steps)
{
    uint64_t before = path.world->nodes[0].steps;

    while (done() < target && !driver.failed)
        if (!driver_turn(&driver) && done() < target)
            return false;
    *steps = path.world->nodes[0].steps - before;
    return !driver.failed;
}

static uint64_t ops_arrived(void)
{
    return driver.model.ends[1].remote_events;
}

static uint64_t highest(const uint64_t *counts)
{
    uint64_t max = 0;

    for (uint32_t i = 0; i < QUARTERS; i++)
        max = counts[i] > max ? counts[i] : max;
    return max;
}

static uint64_t lowest(const uint64_t *counts)
{
    uint64_t min = UINT64_MAX;

    for (uint32_t i = 0; i < QUARTERS; i++)
        min = counts[i] < min ? counts[i] : min;
    return min;
}

static void test_depth(void)
{
    const struct world_options options = {
        .seed = 5,
        .submit_bytes = 1u << 20,
        .local_bytes = 1u << 24,
        .limits = {.ops_max = 262144,
                   .chunks_max = 4096,
                   .ledger_max = 1u << 20,
                   .ledger_bytes = 8u << 20},
        .sim = {.ordered_write_max = UINT64_MAX},
    };
    const struct model_op op = {.from = 0, .to = 1, .kind = PATH_PUT};
    uint64_t taken[QUARTERS], left[QUARTERS];
    char failure[400];
    uint32_t remote;

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 4, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    path.world->nodes[0].budget_max = path.world->nodes[1].budget_max = 256;
    remote = driver_remote(&driver, 0, 1);
    world_link_cut(path.world, 0, 1);
    for (uint32_t q = 0; q < QUARTERS; q++) {
        uint64_t before = path.world->nodes[0].steps;

        for (uint32_t i = 0; i < QUARTER && !driver.failed; i++)
            driver_submit_over(&driver, remote, &op);
        taken[q] = path.world->nodes[0].steps - before;
    }
    CU_ASSERT_EQUAL(ops_arrived(), 0);
    world_link_restore(path.world, 0, 1);
    for (uint32_t q = 0; q < QUARTERS; q++)
        CU_ASSERT_FATAL(steps_until(ops_arrived, (q + 1) * (uint64_t)QUARTER, &left[q]));
    driver_finish(&driver);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    for (uint32_t q = 0; q < QUARTERS; q++)
        printf("\n  quarter %u: taken in %llu steps, left in %llu", q, (unsigned long long)taken[q],
               (unsigned long long)left[q]);
    /* The first quarter is left out: the link and the ledger still grow while it leaves. */
    CU_ASSERT(highest(taken) <= 2 * lowest(taken));
    CU_ASSERT(left[QUARTERS - 1] <= 2 * left[1]);
    driver_close(&driver);
    world_path_close(&path);
}

int main(void)
{
    CU_TestInfo tests[] = {{"200000 operations towards a peer that is away", test_depth},
                           CU_TEST_INFO_NULL};

    return suite_run("depth", tests);
}
