/*
 * Nonces of payloads that travel ahead of their records: a flow that is held, or that ends, gives
 * its nonces back, also in the middle of a payload's pieces, so that it does not stop the large
 * puts of others; and operations that find no nonce do not stop operations that need none. One
 * thread.
 */
#include "tests/suite.h"
#include "tests/engine/world/paths/driver.h"
#include "daemon/engine/ops/flow.h"
#include "tests/engine/world/paths/world_path.h"
#include "tests/engine/bench/peek.h"

static struct world_path path;
static struct driver driver;

/* Guards that held flows give their nonces back. Contexts 1, 5 and 7 take no events, so the twelve
 * flows to them are held; each flow has payloads whose records find no room in the small ledger. */
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
    CU_ASSERT_EQUAL(peek_peer(path.world->nodes[0].engine, 1).nonces_free, NONCE_WINDOW);
    /* No new link gave the nonces back: an engine without any nonce begins a link when nothing else
     * moves. */
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

/* Guards that clients which end while their payloads are ahead of their records give the nonces
 * back. */
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
    const struct engine *e;
    uint32_t generation, ahead = 0;
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 8, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    path.world->nodes[0].budget_max = 1000;
    driver_finish_one(
        &driver, driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT}));
    e = path.world->nodes[0].engine;
    generation = world_link_of(path.world, 0, 1)->generation;
    for (uint32_t from = 2; from < 8; from += 2) {
        for (int i = 0; i < 60; i++)
            driver_submit(
                &driver,
                (struct model_op){
                    .from = from, .to = 1, .kind = PATH_PUT, .length = 512, .rid_len = 48});
        /* Makes turns until more payloads are under way than records fit into the ledger. */
        for (int i = 0; i < 2000 && peek_peer(e, 1).nonces_free > NONCE_WINDOW - 50; i++)
            driver_turn(&driver);
        ahead += NONCE_WINDOW - peek_peer(e, 1).nonces_free;
        CU_ASSERT_EQUAL(path.path.calls->kill(path.path.context, from), 0);
        model_dead(&driver.model, from);
        driver_finish_one(
            &driver,
            driver_submit(&driver,
                          (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 512}));
    }
    world_settle(path.world, 10000);
    CU_ASSERT(ahead >= 150);
    CU_ASSERT_EQUAL(peek_peer(e, 1).nonces_free, NONCE_WINDOW);
    CU_ASSERT_EQUAL(world_link_of(path.world, 0, 1)->generation, generation);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    driver_close(&driver);
    world_path_close(&path);
}

/* ---- in the middle of a payload's pieces ----------------------------------------------------- */

enum end { ORIGIN_ENDS, TARGET_ENDS, KEY_ENDS };

static int bind(struct world *w, uint32_t from, uint32_t to)
{
    int request = world_bind(w, from, 0, to, 0, &w->clients[to].contexts[0].key), handle;

    CU_ASSERT_EQUAL_FATAL(world_await(w, request), 0);
    handle = (int)w->requests[request].handle;
    world_request_free(w, request);
    return handle;
}

static bool put(struct world *w, uint32_t from, int remote)
{
    const struct submit_record record = {.kind = SUBMIT_PUT,
                                         .flags = SUBMIT_NO_LCE | SUBMIT_NO_RCE,
                                         .remote = (uint32_t)remote,
                                         .length = 4096,
                                         .segment = w->clients[from].segments[WORLD_MAIN].handle};

    return world_submit(w, from, 0, &record, NULL, NULL, NULL) >= 0;
}

/* The flow from client 1 to client 3 ends when this many pieces of a put have left. Returns how
 * many nonces are missing then. */
static uint32_t end_half_way(uint64_t seed, enum end end, uint32_t pieces)
{
    const struct world_options options = {
        .seed = seed,
        .nodes = 2,
        .protocol = ENGINE_PROTOCOL_REASSEMBLE,
        .submit_bytes = 65536,
        .limits = {.stripe_min = 1024, .packed_max = 256},
        .sim = {.rails = 4, .outstanding_max = 10},
    };
    struct world *w;
    struct engine *e;
    uint32_t generation, missing;
    int remote, rounds = 0;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL_FATAL(world_client_open(w, i / 2, i, 1), (int)i);
    CU_ASSERT_FATAL(world_settle(w, 10000));
    bind(w, 0, 2);
    remote = bind(w, 1, 3);
    e = w->nodes[0].engine;
    generation = world_link_of(w, 0, 1)->generation;
    for (; peek_pieces_posted(e, (uint32_t)remote) != pieces && rounds < 10000; rounds++) {
        put(w, 1, remote);
        world_round(w);
    }
    CU_ASSERT_FATAL(rounds < 10000);
    if (end == KEY_ENDS)
        world_withdraw(w, 3, 0);
    else
        world_client_close(w, end == ORIGIN_ENDS ? 1 : 3);
    CU_ASSERT(world_settle(w, 10000));
    missing = NONCE_WINDOW - peek_peer(e, 1).nonces_free;
    CU_ASSERT_EQUAL(world_link_of(w, 0, 1)->generation, generation);
    world_leave(w);
    if (w->failed)
        printf("\n  %s\n", w->failure);
    CU_ASSERT_FALSE(w->failed);
    world_close(w);
    return missing;
}

static void half_way(void)
{
    static const char *const ends[] = {"origin", "target", "key"};

    for (uint32_t i = 0; i < 3 * 3; i++) {
        uint32_t missing = 0;

        for (uint64_t seed = 1; seed <= 10; seed++)
            missing += end_half_way(seed, (enum end)(i / 3), 1 + i % 3);
        if (missing > 0)
            printf("\n  %s ends after %u of 4 pieces: %u nonces are lost\n", ends[i / 3], 1 + i % 3,
                   missing);
        CU_ASSERT_EQUAL(missing, 0);
    }
}

/* ---- flows that need no nonce ---------------------------------------------------------------- */

static uint64_t staged(uint32_t from, uint32_t to)
{
    const struct engine *e = path.world->nodes[0].engine;

    return peek_flow(e, peek_flow_of(e, (uint32_t)driver.remotes[from][to].handle)).staged;
}

/* Guards that a flow which needs no nonce is served while no nonce is free: it is queued after two
 * flows of the same client that need one, and after a flow of another client, and one step stages
 * its put. */
static void others_go_on(void)
{
    const struct world_options options = {
        .seed = 6,
        .protocol = ENGINE_PROTOCOL_REASSEMBLE,
        .limits = {.packed_max = 256, .chunks_max = 256},
    };
    static const struct {
        uint32_t from, to, length;
    } puts[] = {{0, 1, 512}, {2, 1, 512}, {2, 3, 512}, {2, 5, 0}};
    struct engine *e;
    uint64_t deadline, before;
    uint32_t free;
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 8, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    for (int i = 0; i < 4; i++)
        driver_remote(&driver, puts[i].from, puts[i].to);
    driver_remote(&driver, 4, 7);
    driver_finish(&driver);
    e = path.world->nodes[0].engine;
    /* Something is under way, because otherwise an engine without any nonce begins a new link. */
    driver_submit(&driver, (struct model_op){.from = 4, .to = 7, .kind = PATH_PUT});
    engine_step(e, sim_now(path.world->sim), 64, &deadline);
    free = poke_nonces(e, 1, 0);
    before = staged(2, 5);
    for (int i = 0; i < 4; i++)
        driver_submit(&driver, (struct model_op){.from = puts[i].from,
                                                 .to = puts[i].to,
                                                 .kind = PATH_PUT,
                                                 .length = puts[i].length});
    engine_step(e, sim_now(path.world->sim), 64, &deadline);
    CU_ASSERT_EQUAL(staged(2, 5), before + 1);
    CU_ASSERT_EQUAL(peek_peer(e, 1).nonces_free, 0);
    poke_nonces(e, 1, free);
    driver_finish(&driver);
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
                           {"ends half way through the pieces", half_way},
                           {"who needs none goes on", others_go_on},
                           CU_TEST_INFO_NULL};

    return suite_run("nonces", tests);
}
