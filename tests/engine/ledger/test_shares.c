/*
 * The memory for ledgers, shared by the links of a node: links that grow leave enough for links
 * that begin, for the first time or again after a break. One thread.
 */
#include <stdio.h>
#include "tests/suite.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/world/paths/driver.h"
#include "tests/engine/world/paths/world_path.h"

#define UNIT  4096u
#define UNITS 64u /* of a node's memory for ledgers */
#define NODES 7u
#define PUTS  1000

static struct world_path path;
static struct driver driver;

/* Each end sends to the other, so that the ledgers of both directions grow. */
static void flood(uint32_t a, uint32_t b)
{
    for (int i = 0; i < PUTS && !driver.failed; i++)
        driver_submit(&driver, (struct model_op){.from = i % 2 ? a : b,
                                                 .to = i % 2 ? b : a,
                                                 .kind = PATH_PUT,
                                                 .length = 200});
}

/* Guards that a node whose ledgers have grown still gets links with other nodes, and each link
 * again after a break. */
static void test_links_begin(void)
{
    const struct world_options options = {
        .seed = 6,
        .nodes = NODES,
        .submit_bytes = 1u << 16,
        .segment_bytes = 1u << 22, /* for all puts: none waits for one over a link that is cut */
        .limits = {.packed_max = 256,
                   .chunks_max = 256,
                   .ledger_start = UNIT,
                   .ledger_max = UNITS / 4 * UNIT,
                   .ledger_bytes = UNITS * UNIT},
    };
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, NODES, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    flood(0, 1);
    CU_ASSERT(peek_peer(path.world->nodes[0].engine, 1).ledger_bytes > UNIT);
    for (uint32_t peer = 2; peer < NODES; peer++)
        flood(0, peer);
    for (uint32_t peer = 1; peer < NODES; peer++) {
        world_link_cut(path.world, 0, peer);
        flood(0, peer % (NODES - 1) + 1); /* takes what the link gives back */
        world_link_restore(path.world, 0, peer);
        flood(0, peer);
    }
    driver_finish(&driver);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    driver_close(&driver);
    world_path_close(&path);
}

int main(void)
{
    CU_TestInfo tests[] = {{"links begin", test_links_begin}, CU_TEST_INFO_NULL};

    return suite_run("shares", tests);
}
