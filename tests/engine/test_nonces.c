/*
 * Nonces of payloads that travel ahead of their records: flows that are held give theirs back, so
 * that they do not stop the large puts of others.
 */
#include "../suite.h"
#include "driver.h"
#include "state.h"
#include "world_path.h"

static struct world_path path;
static struct driver driver;

/* Ends 1, 5 and 7 do not drain: twelve flows to them are held, each with payloads that are ahead of
 * their records, which a small ledger has no room for. */
static void held_flows(uint32_t rails)
{
    const struct world_options options = {
        .seed = 4,
        .protocol = ENGINE_PROTOCOL_REASSEMBLE,
        .second_contexts = WORLD_SECOND_NOW,
        .submit_bytes = 65536,
        .local_bytes = 65536,
        .segment_bytes = 1u << 22,
        /* A ledger too small for the records of what has been started. */
        .limits = {.spill_max = 2048,
                   .stripe_min = 256,
                   .chunks_max = 256,
                   .packed_max = 256,
                   .ledger_start = 4096,
                   .ledger_max = 4096},
        .sim = {.rails = rails, .outstanding_max = 2048},
    };
    static const uint32_t froms[] = {0, 2, 4, 6}, slow[] = {1, 5, 7};
    uint32_t generation;
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 8, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    path.world->nodes[0].budget_max = 1000;
    driver.silent = 1u << 1 | 1u << 5 | 1u << 7;
    driver_finish_one(
        &driver, driver_submit(&driver, (struct model_op){.from = 0, .to = 3, .kind = PATH_PUT}));
    generation = world_link_of(path.world, 0, 1)->generation;
    for (uint32_t f = 0; f < 12; f++) {
        for (int i = 0; i < 100; i++)
            driver_submit(&driver, (struct model_op){.from = froms[f % 4],
                                                     .to = slow[f / 4],
                                                     .kind = PATH_PUT,
                                                     .length = 512,
                                                     .rid_len = 48});
        for (int i = 0; i < 2000; i++)
            driver_turn(&driver);
    }
    for (int i = 0; i < 20; i++)
        driver_finish_one(
            &driver,
            driver_submit(&driver,
                          (struct model_op){.from = 0, .to = 3, .kind = PATH_PUT, .length = 512}));
    CU_ASSERT_EQUAL(path.world->nodes[0].engine->peer_live[1].out.nonces_free, NONCE_WINDOW);
    /* Nor by a new link, which an engine without any nonce begins when nothing else goes. */
    CU_ASSERT_EQUAL(world_link_of(path.world, 0, 1)->generation, generation);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    driver.silent = 0;
    driver_finish(&driver);
    CU_ASSERT_FALSE(driver.failed);
    driver_close(&driver);
    world_path_close(&path);
}

/* Clients that end while their payloads are ahead of their records give the nonces back. */
static void ended_clients(void)
{
    const struct world_options options = {
        .seed = 5,
        .protocol = ENGINE_PROTOCOL_REASSEMBLE,
        .submit_bytes = 65536,
        .local_bytes = 65536,
        .segment_bytes = 1u << 22,
        .limits = {.chunks_max = 256, .packed_max = 256, .ledger_start = 4096, .ledger_max = 4096},
        .sim = {.outstanding_max = 2048},
    };
    const struct ledger_out *out;
    uint32_t generation, ahead = 0;
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 8, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    path.world->nodes[0].budget_max = 1000;
    driver_finish_one(
        &driver, driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT}));
    out = &path.world->nodes[0].engine->peer_live[1].out;
    generation = world_link_of(path.world, 0, 1)->generation;
    for (uint32_t from = 2; from < 8; from += 2) {
        for (int i = 0; i < 60; i++)
            driver_submit(
                &driver,
                (struct model_op){
                    .from = from, .to = 1, .kind = PATH_PUT, .length = 512, .rid_len = 48});
        /* Until so many payloads are under way that not all can have their records. */
        for (int i = 0; i < 2000 && out->nonces_free > NONCE_WINDOW - 50; i++)
            driver_turn(&driver);
        ahead += NONCE_WINDOW - out->nonces_free;
        CU_ASSERT_EQUAL(path.path.calls->kill(path.path.context, from), 0);
        model_dead(&driver.model, from);
        driver_finish_one(
            &driver,
            driver_submit(&driver,
                          (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 512}));
    }
    world_settle(path.world, 10000);
    CU_ASSERT(ahead >= 150);
    CU_ASSERT_EQUAL(out->nonces_free, NONCE_WINDOW);
    CU_ASSERT_EQUAL(world_link_of(path.world, 0, 1)->generation, generation);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    driver_close(&driver);
    world_path_close(&path);
}

static void one_rail(void)
{
    held_flows(1);
}

static void four_rails(void)
{
    held_flows(4);
}

int main(void)
{
    CU_TestInfo tests[] = {{"held flows", one_rail},
                           {"held flows, four rails", four_rails},
                           {"clients that end", ended_clients},
                           CU_TEST_INFO_NULL};

    return suite_run("nonces", tests);
}
