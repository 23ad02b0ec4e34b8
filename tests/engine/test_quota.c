/*
 * The quotas of one client and one user, each at its limit and one over it, and that everything is
 * given back. Then clients that cost others: one that floods, one that does not drain, one that
 * stops in the middle; their cost is counted in rounds and chunks, not in time. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/engine/world/world.h"
#include "tests/suite.h"
#include "tests/engine/bench/peek.h"

enum { LIMIT = 6, TARGETS = 5, ROUNDS_MAX = 100000 };

static struct world *world;

/* Opens a world with clients 0 and 1 on node 0, and on node 1 the targets, which have two contexts
 * each, and their neighbours. */
static void open_world(const struct engine_config *limits)
{
    const struct world_options options = {.seed = 3,
                                          .nodes = 2,
                                          .submit_bytes = 1u << 16,
                                          .local_bytes = 1u << 20,
                                          .remote_bytes = 1u << 14,
                                          .limits = *limits,
                                          .sim = {.ordered_write_max = UINT64_MAX}};

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &world), 0);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(world_client_open(world, 0, i, 1), (int)i);
    for (uint32_t i = 2; i < 2 + TARGETS; i++)
        CU_ASSERT_EQUAL_FATAL(world_client_open(world, 1, i, 2), (int)i);
    CU_ASSERT_FATAL(world_settle(world, 10000));
}

/* Closes the world, and checks that everything has been given back. */
static void close_world(void)
{
    world_leave(world);
    if (world->failed)
        printf("\n  %s\n", world->failure);
    CU_ASSERT_FALSE(world->failed);
    world_close(world);
}

static int bind(uint32_t from, uint32_t to, uint32_t context, uint32_t *remote)
{
    int request =
        world_bind(world, from, 0, to, context, &world->clients[to].contexts[context].key);
    int rc;

    if (request < 0)
        return request;
    rc = world_await(world, request);
    *remote = world->requests[request].handle;
    world_request_free(world, request);
    return rc;
}

static struct peek_census census(uint32_t node)
{
    struct peek_census c;

    world_settle(world, 10000);
    c = peek_census(world->nodes[node].engine);
    CU_ASSERT_EQUAL(c.miscounted, 0);
    return c;
}

/* ---- binds and pairs ------------------------------------------------------------------------- */

/* Guards each limit: `clients` clients bind in turn until LIMIT is reached; one more bind is
 * refused, and an unbind makes room. */
static void test_limits(void)
{
    static const struct {
        const char *what;
        struct engine_config limits;
        uint32_t clients;
        bool pairs; /* every bind is to another context */
    } rows[] = {
        {"binds of a client", {.binds_client = LIMIT}, 1, false},
        {"binds of a user", {.binds_user = LIMIT}, 2, false},
        {"pairs of a client", {.pairs_client = LIMIT}, 1, true},
        {"pairs of a user", {.pairs_user = LIMIT}, 2, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t remotes[LIMIT], more, clients = rows[i].clients;

        open_world(&rows[i].limits);
        for (uint32_t n = 0; n < LIMIT; n++) {
            int rc = bind(n % clients, rows[i].pairs ? 2 + n / 2 : 2, rows[i].pairs ? n % 2 : 0,
                          &remotes[n]);

            if (rc < 0)
                printf("\n  %s: the %uth is refused\n", rows[i].what, n + 1);
            CU_ASSERT_EQUAL(rc, 0);
        }
        CU_ASSERT_EQUAL(bind(clients - 1, 5, 1, &more), -EDQUOT);
        /* A client's limit does not bind another client of the same user; a user's limit does. */
        CU_ASSERT_EQUAL(bind(clients % 2, 5, 1, &more), clients == 1 ? 0 : -EDQUOT);
        CU_ASSERT_EQUAL(world_unbind(world, 0, 0, remotes[0]), 0);
        (void)census(0); /* the other end of a user's flow must close first */
        CU_ASSERT_EQUAL(bind(0, 5, 1, &more), 0);
        CU_ASSERT_EQUAL(bind(0, 6, 1, &more), -EDQUOT);
        /* The user has the client's share again when the client has gone. */
        world_client_close(world, clients - 1);
        (void)census(0);
        if (clients == 2)
            CU_ASSERT_EQUAL(bind(0, 6, 0, &more), 0);
        close_world();
    }
}

/* Guards the limit of a client, and of a user, on regions that another node has resolved. */
static void test_grants(void)
{
    for (int of_client = 0; of_client < 2; of_client++) {
        uint32_t remote, granted = 0;

        open_world(&(struct engine_config){0});
        if (of_client)
            poke_config(world->nodes[1].engine)->binds_client = 1;
        else
            poke_config(world->nodes[1].engine)->binds_user = LIMIT;
        for (uint32_t n = 0; n < 2 * TARGETS; n++) {
            int rc = bind(0, 2 + n / 2, n % 2, &remote);

            CU_ASSERT(rc == ((of_client ? n % 2 == 0 : n < LIMIT) ? 0 : -EDQUOT));
            granted += rc == 0;
        }
        CU_ASSERT_EQUAL(granted, of_client ? TARGETS : LIMIT);
        world_client_close(world, 2);
        (void)census(0);
        CU_ASSERT_EQUAL(bind(0, 6, 0, &remote), 0);
        close_world();
    }
}

/* Guards the limit of a client, and of a user, on contexts that are bound to it. */
static void test_inbound(void)
{
    static const struct engine_config rows[] = {{.pairs_client = LIMIT}, {.pairs_user = LIMIT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t remote, bound = 0;

        open_world(&rows[i]);
        /* The targets bind client 0, whose node counts them; all are clients of one user. */
        for (uint32_t n = 0; n < 2 * TARGETS; n++) {
            int request = world_bind(world, 2 + n / 2, n % 2, 0, 0, NULL);
            int rc = request < 0 ? request : world_await(world, request);

            CU_ASSERT(rc == (n < LIMIT ? 0 : -EDQUOT));
            bound += rc == 0;
            if (request >= 0)
                world_request_free(world, request);
        }
        CU_ASSERT_EQUAL(bound, LIMIT);
        CU_ASSERT_EQUAL(census(0).inflows, LIMIT);
        world_client_close(world, 2);
        CU_ASSERT_EQUAL(census(0).inflows, LIMIT - 2);
        CU_ASSERT_EQUAL(bind(6, 0, 0, &remote), 0);
        close_world();
    }
}

/* Guards that binds to contexts that do not exist count only until they are answered. */
static void test_failed_binds(void)
{
    struct peek_census before[2];

    open_world(&(struct engine_config){.pairs_client = LIMIT});
    for (uint32_t n = 0; n < 2; n++)
        before[n] = census(n);
    for (uint32_t i = 0; i < 20; i++) {
        struct world_client *nobody = &world->clients[6];
        uint32_t rank = nobody->rank;
        int request;

        nobody->rank = 100 + i;
        request = world_bind(world, 0, 0, 6, 0, NULL);
        nobody->rank = rank;
        CU_ASSERT_EQUAL(world_await(world, request), -EHOSTUNREACH);
        world_request_free(world, request);
    }
    CU_ASSERT_EQUAL(census(0).flows, before[0].flows);
    CU_ASSERT_EQUAL(census(0).remotes, before[0].remotes);
    CU_ASSERT_EQUAL(census(1).inflows, before[1].inflows);
    close_world();
}

/* Guards that an unbound remote is given back at both ends, whether its target lives or not. */
static void test_unbound(void)
{
    for (int dies = 0; dies < 2; dies++) {
        struct peek_census before[2];
        uint32_t remotes[4];

        open_world(&(struct engine_config){0});
        for (uint32_t n = 0; n < 2; n++)
            before[n] = census(n);
        for (uint32_t i = 0; i < 4; i++)
            CU_ASSERT_EQUAL_FATAL(bind(0, 2 + i, 0, &remotes[i]), 0);
        CU_ASSERT_EQUAL(census(0).flows, before[0].flows + 4);
        CU_ASSERT_EQUAL(census(1).inflows, before[1].inflows + 4);
        for (uint32_t i = 0; dies && i < 4; i++)
            world_client_close(world, 2 + i);
        if (dies) /* the flows stay as long as remotes lead to them */
            CU_ASSERT_EQUAL(census(0).flows, before[0].flows + 4);
        for (uint32_t i = 0; i < 4; i++)
            CU_ASSERT_EQUAL(world_unbind(world, 0, 0, remotes[i]), 0);
        CU_ASSERT_EQUAL(census(0).flows, before[0].flows);
        CU_ASSERT_EQUAL(census(0).remotes, before[0].remotes);
        CU_ASSERT_EQUAL(census(1).inflows, before[1].inflows);
        close_world();
    }
}

/* Guards that a step frees only a few of the entries that a client leaves behind, so that others go
 * on meanwhile. */
static void test_ends_in_turns(void)
{
    enum { MANY = 1200, STEP = 512 };
    uint32_t remote, left, before, most = 0, rounds = 0;

    open_world(&(struct engine_config){.remotes_max = 4096});
    before = census(0).remotes;
    for (uint32_t i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL_FATAL(bind(0, 2, 0, &remote), 0);
    left = census(0).remotes;
    CU_ASSERT_EQUAL(left, before + MANY);
    world_client_close(world, 0);
    while (left > before && rounds++ < ROUNDS_MAX && world_round(world)) {
        uint32_t now = peek_census(world->nodes[0].engine).remotes;

        most = left - now > most ? left - now : most;
        left = now;
    }
    CU_ASSERT_EQUAL(left, before);
    CU_ASSERT(most <= STEP);
    close_world();
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static bool put(uint32_t from, uint32_t remote, uint64_t number)
{
    static const uint8_t payload[256];
    const struct submit_record record = {.kind = SUBMIT_PUT,
                                         .flags = SUBMIT_INLINE | SUBMIT_NO_LCE,
                                         .remote = remote,
                                         .length = sizeof(payload),
                                         .rid = number};

    return world_submit(world, from, 0, &record, NULL, NULL, payload) >= 0;
}

static uint32_t probe(uint32_t client, uint32_t context)
{
    struct world_context *x = &world->clients[client].contexts[context];
    struct pwc_event event;
    uint32_t events = 0;

    while (x->channel_open && channel_probe(&x->channel, PWC_ANY, 0, &event) == 1)
        events += event.kind == PWC_REMOTE;
    return events;
}

/* Returns the rounds that a modest client needs for PUTS puts, one after the other, to a target
 * that takes its events. Meanwhile a greedy client puts as much as is accepted to `greedy_targets`
 * targets, which take no events. */
static uint64_t rounds_of_modest(uint32_t greedy_targets, bool cut, uint32_t *greedy_chunks)
{
    enum { PUTS = 200 };
    uint32_t remotes[2 * TARGETS], mine = 0, seen = 0, sent = 0;
    uint64_t begun, rounds = 0;

    open_world(&(struct engine_config){
        .chunks_max = 128, .spill_max = 1u << 20, .ops_max = 262144, .packed_max = 1024});
    CU_ASSERT_EQUAL_FATAL(bind(1, 6, 0, &mine), 0);
    for (uint32_t i = 0; i < greedy_targets; i++)
        CU_ASSERT_EQUAL_FATAL(bind(0, 2 + i / 2, i % 2, &remotes[i]), 0);
    if (cut)
        world_link_cut(world, 0, 1);
    /* Submits until the client has all that it may have. */
    for (uint32_t i = 0, refused = 0; greedy_targets > 0 && refused < 2000; i++) {
        bool taken = put(0, remotes[i % greedy_targets], i);

        refused = taken ? 0 : refused + 1;
        if (!taken)
            world_round(world);
    }
    *greedy_chunks = 0;
    for (uint32_t n = 0; n < 2; n++) {
        struct peek_census c = peek_census(world->nodes[n].engine);

        *greedy_chunks = c.chunks > *greedy_chunks ? c.chunks : *greedy_chunks;
    }
    if (cut)
        world_link_restore(world, 0, 1);
    begun = world->rounds;
    for (uint64_t i = 0; seen < PUTS && rounds < ROUNDS_MAX; i++) {
        if (sent == seen)
            sent += put(1, mine, i);
        for (uint32_t k = 0; k < greedy_targets; k++)
            put(0, remotes[k], i);
        world_round(world);
        seen += probe(6, 0);
        rounds = world->rounds - begun;
    }
    CU_ASSERT_EQUAL(seen, PUTS);
    close_world();
    return rounds;
}

/* Guards a client against a neighbour that floods eight contexts which take no events: that
 * neighbour holds its full quota at both ends, and the client, towards another client of the same
 * node, is about as fast as alone. */
static void test_deaf_targets(void)
{
    uint32_t chunks;
    uint64_t alone = rounds_of_modest(0, false, &chunks), beside;

    CU_ASSERT(chunks <= 8);
    beside = rounds_of_modest(8, false, &chunks);
    if (beside > 3 * alone)
        printf("\n  %llu rounds alone, %llu beside one that does not drain\n",
               (unsigned long long)alone, (unsigned long long)beside);
    CU_ASSERT(beside <= 3 * alone);
    /* Control keeps an eighth of 128 places; a client gets half of the rest, and a few for each
     * context. */
    CU_ASSERT(chunks > 16 && chunks <= (128 - 16) / 2 + 8 * 4);
}

/* Guards that while the link is away, and one client queues as much as it may, the other client's
 * first put gets its room. */
static void test_flood_while_away(void)
{
    uint32_t chunks;
    uint64_t rounds = rounds_of_modest(8, true, &chunks);

    CU_ASSERT(rounds < ROUNDS_MAX);
    CU_ASSERT(chunks <= (128 - 16) / 2 + 8 * 4);
}

/* Guards the limits of queues: exactly so many chunks are taken; later operations wait, and are
 * sent when there is room. */
static void test_queue_limits(void)
{
    static const struct {
        struct engine_config limits;
        uint32_t clients, chunks;
        uint32_t notes; /* chunks of notes that another client of the user has waiting */
    } rows[] = {
        {{.chunks_client = 9}, 1, 9, 0},
        {{.chunks_user = 9}, 2, 9, 0},
        {{.chunks_client = 9, .chunks_user = 14}, 2, 14, 0},
        {{.chunks_user = 14}, 1, 10, 4},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct engine_config limits = rows[i].limits;
        uint32_t remotes[2], sent = 0, seen = 0, held = 0;
        const struct engine *e;
        uint32_t sessions;

        limits.chunks_max = 128;
        limits.ops_max = 262144;
        open_world(&limits);
        for (uint32_t n = 0; n < 2; n++)
            CU_ASSERT_EQUAL_FATAL(bind(n, 2, n, &remotes[n]), 0);
        world_link_cut(world, 0, 1);
        poke_notes(world->nodes[0].engine, 1, rows[i].notes);
        for (uint32_t k = 0, refused = 0; refused < 2000; k++) {
            bool taken = put(k % rows[i].clients, remotes[k % rows[i].clients], k);

            refused = taken ? 0 : refused + 1;
            sent += taken;
            if (!taken)
                world_round(world);
        }
        e = world->nodes[0].engine;
        sessions = world->nodes[0].config.sessions_max;
        for (uint32_t s = 0; s < sessions; s++)
            held += peek_session(e, s).chunks;
        /* A client may take its last two chunks, a directory's and the first one, together. */
        if (held > rows[i].chunks || held + 1 < rows[i].chunks)
            printf("\n  row %zu: %u chunks of %u\n", i, held, rows[i].chunks);
        CU_ASSERT(held <= rows[i].chunks && held + 1 >= rows[i].chunks);
        poke_notes(world->nodes[0].engine, 1, 0);
        world_link_restore(world, 0, 1);
        for (uint32_t r = 0; seen < sent && r < ROUNDS_MAX; r++) {
            world_round(world);
            seen += probe(2, 0) + probe(2, 1);
        }
        CU_ASSERT_EQUAL(seen, sent);
        (void)world_settle(world, 10000); /* the last acknowledgements */
        for (uint32_t s = 0; s < sessions; s++)
            CU_ASSERT(peek_session(e, s).chunks <= 2 * 2);
        close_world();
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"binds and pairs, at the limit and over", test_limits},
                           {"pairs towards one client and one user", test_inbound},
                           {"regions that another node has resolved", test_grants},
                           {"binds that fail leave nothing", test_failed_binds},
                           {"what is unbound is given back", test_unbound},
                           {"an end in turns", test_ends_in_turns},
                           {"queues, at the limit", test_queue_limits},
                           {"a neighbour of one that does not drain", test_deaf_targets},
                           {"a neighbour of one that floods a cut link", test_flood_while_away},
                           CU_TEST_INFO_NULL};

    return suite_run("quota", tests);
}
