/* Teams between engines: every small collective, compared with a plain loop, over teams of many
 * shapes; deaths, lost peers, calls that differ; floors; memory. One thread. */
#include "tests/count.h"
#include "tests/engine/world/teams.h"
#include "tests/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 200000u

struct shape {
    uint32_t nodes;
    uint32_t most; /* most members of an engine */
    uint32_t window;
};

static struct world *begin(uint64_t seed, uint32_t nodes, const struct coll_choices *choices)
{
    struct world_options options = {
        .seed = seed, .nodes = nodes, .limits = {.team_bytes = 64u << 20, .collectives = *choices}};
    struct world *w = NULL;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    return w;
}

/* Opens clients 0, 1, ... on the nodes, at least one on each. Returns the number of clients. */
static uint32_t populate(struct world *w, const struct shape *shape, struct sim_random *random,
                         uint32_t *fullest)
{
    uint32_t left[WORLD_NODES_MAX], ranks = 0;

    *fullest = 0;
    for (uint32_t n = 0; n < shape->nodes; n++) {
        left[n] = (uint32_t)sim_random_range(random, 1, shape->most);
        *fullest = left[n] > *fullest ? left[n] : *fullest;
        ranks += left[n];
    }
    for (uint32_t r = 0; r < ranks;) {
        uint32_t n = (uint32_t)sim_random_below(random, shape->nodes);

        if (left[n] == 0)
            continue;
        left[n]--;
        if (world_client_open(w, n, r, 1) < 0)
            break;
        r++;
    }
    return ranks;
}

static void end(struct world *w)
{
    world_leave(w);
    if (w->failed)
        printf("seed %llu: %s\n", (unsigned long long)w->options.seed, w->failure);
    CU_ASSERT_FALSE(w->failed);
    world_close(w);
}

/* ---- every kind ---------------------------------------------------------------------------- */

/* Lengths up to the longest slice, around those at which schedules or letters change. */
static const uint32_t lengths[] = {0,     1,     8,     40,    41,     320,   1023,
                                   1024,  1025,  4096,  8192,  8193,   16383, 16384,
                                   32767, 32768, 65535, 65536, 126975, 126976};
static_assert(TEAM_DATA_BYTES == 126976, "the last of these lengths");
static const struct coll_choices by_table;

/* How many numbers of engines a loop skips. With a sanitizer it skips some, because the release
 * build runs all. */
#ifdef __SANITIZE_ADDRESS__
enum { ENGINES_STEP = 3 };
#else
enum { ENGINES_STEP = 1 };
#endif

/* Lists calls of one length, of this kind or of all kinds, with every root for kinds that have one.
 */
static uint64_t list_all(struct teams_spec *list, uint32_t ranks, uint32_t fullest, uint32_t length,
                         uint32_t only)
{
    uint64_t count = 0;

    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++) {
        bool rooted = kind == TEAM_BCAST || kind == TEAM_REDUCE || kind == TEAM_GATHER ||
                      kind == TEAM_SCATTER;
        uint32_t bytes = kind == TEAM_BARRIER ? 0 : length;

        if ((only != 0 && kind != only) ||
            team_way((enum team_kind)kind, bytes, ranks, fullest) == TEAM_LARGE)
            continue;
        for (uint32_t root = 0; root < (rooted ? ranks : 1); root++)
            list[count++] = (struct teams_spec){kind, root, bytes};
    }
    return count;
}

/* Runs calls of all kinds, or of one kind. */
static void run_shape(uint64_t seed, const struct shape *shape, const struct coll_choices *choices,
                      uint32_t kind)
{
    static struct teams_spec list[8192];
    struct sim_random random = {.state = seed};
    struct world *w = begin(seed, shape->nodes, choices);
    uint32_t fullest, ranks = populate(w, shape, &random, &fullest);
    struct teams t;
    uint64_t count = 0;

    for (size_t i = 0; i < COUNT(lengths); i++)
        count += list_all(list + count, ranks, fullest, lengths[i], kind);
    teams_open(&t, w, 77, ranks, shape->window, list, count, seed);
    teams_run(&t, ROUNDS);
    teams_close(&t);
    end(w);
}

static void test_kinds(void)
{
    for (uint32_t nodes = 2; nodes <= 9; nodes += ENGINES_STEP)
        run_shape(nodes, &(struct shape){nodes, nodes > 4 ? 3 : 5, 16}, &by_table, 0);
}

/* Guards schedules for much data, which need engines with one member each, whose slices are the
 * longest. */
static void test_one_each(void)
{
    for (uint32_t nodes = 2; nodes <= 9; nodes += ENGINES_STEP)
        run_shape(nodes, &(struct shape){nodes, 1, 4}, &by_table, 0);
}

/* Guards each algorithm for all lengths of its kind, as a configuration may choose it. */
static void test_choices(void)
{
    for (uint32_t row = 0; row < COLL_ROWS; row++) {
        struct coll_choices choices = {{0}};

        choices.by_kind[coll_row(row)->kind] = (uint8_t)(row + 1);
        for (uint32_t nodes = 3; nodes <= 9; nodes += 2 * ENGINES_STEP)
            run_shape(row * 16 + nodes, &(struct shape){nodes, 1 + row % 3, 4}, &choices,
                      coll_row(row)->kind);
    }
}

/* ---- acknowledgements that are late --------------------------------------------------------- */

/* The longest time, in ns, in which nothing happened while a team of four engines made its calls,
 * each as early as the window allows. */
static uint64_t longest_wait(uint64_t seed, uint32_t window, const struct teams_spec *list,
                             uint64_t count)
{
    struct world *w = begin(seed, 4, &by_table);
    uint64_t longest = 0;
    struct teams t;

    for (uint32_t n = 0; n < 4; n++)
        CU_ASSERT_FATAL(world_client_open(w, n, n, 1) >= 0);
    teams_open(&t, w, 77, 4, window, list, count, seed);
    for (teams_hurry(&t); !teams_over(&t) && !w->failed; teams_hurry(&t)) {
        uint64_t began = sim_now(w->sim);

        world_round(w);
        if (sim_now(w->sim) - began > longest)
            longest = sim_now(w->sim) - began;
    }
    teams_close(&t);
    end(w);
    return longest;
}

/* Guards that nobody waits for an engine's floor while that engine waits for ACKs that may be late.
 * With roots that change, engines send letters to others that send none back. Each fourth seed has
 * calls with data rows, too. In the last list barriers, whose letters go round, come before more
 * scatters than there are data rows, in which only the root sends. */
static void late_acknowledgements_hold_nobody(void)
{
    static const uint32_t windows[] = {1, 2, 4, 16, 64};
    static struct teams_spec list[256];

    for (size_t i = 0; i < COUNT(windows); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct sim_random random = {.state = seed};

            for (size_t n = 0; n < COUNT(list); n++)
                list[n] = (struct teams_spec){
                    .kind = TEAM_BCAST,
                    .root = (uint32_t)sim_random_below(&random, 4),
                    .length = seed % 4 == 0 && sim_random_below(&random, 4) == 0 ? 1024 : 8};
            CU_ASSERT(longest_wait(seed, windows[i], list, COUNT(list)) < 1000000);
        }
    for (uint32_t barriers = 1; barriers <= 3; barriers++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            for (uint32_t n = 0; n < COUNT(list); n++) {
                bool barrier = n % (3 * TEAM_DATA_ROWS) < barriers;

                list[n] = (struct teams_spec){.kind = barrier ? TEAM_BARRIER : TEAM_SCATTER,
                                              .length = barrier ? 0 : 1024};
            }
            CU_ASSERT(longest_wait(seed, 64, list, COUNT(list)) < 1000000);
        }
}

/* ---- many ---------------------------------------------------------------------------------- */

/* Guards that a client's 64 teams, with the default window, fit on each of two engines with the
 * memory of a daemon. */
static void as_many_teams_as_a_client_may_have(void)
{
    static const struct engine_team_participant list[] = {{0, 1}, {1, 1}};
    const struct world_options options = {
        .seed = 5, .nodes = 2, .limits = {.team_bytes = UINT64_C(1) << 30}};
    uint64_t bytes = team_area_bytes(1, TEAM_WINDOW);
    void *area = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    struct world *w;

    CU_ASSERT_PTR_NOT_NULL_FATAL(area);
    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    for (uint32_t n = 0; n < 2; n++) {
        int session = world_client_open(w, n, n, 1);
        const struct engine_team_member local = {.rank = n, .session = 0};

        CU_ASSERT_FATAL(session >= 0);
        for (uint32_t number = 1; number <= 64; number++) {
            const struct engine_team_info info = {.number = number,
                                                  .size = 2,
                                                  .window = TEAM_WINDOW,
                                                  .me = n,
                                                  .participants = 2,
                                                  .members = 1,
                                                  .list = list,
                                                  .local = &local};

            memset(area, 0, bytes);
            team_area_format(area, 1, TEAM_WINDOW);
            CU_ASSERT(engine_team_open(w->nodes[n].engine, &info, area) >= 0);
        }
    }
    end(w);
    free(area);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every small kind, root and threshold, 2 to 9 engines", test_kinds},
        {"each of them with one member an engine", test_one_each},
        {"every algorithm, by configuration", test_choices},
        {"late acknowledgements hold nobody", late_acknowledgements_hold_nobody},
        {"as many teams as a client may have", as_many_teams_as_a_client_may_have},
        CU_TEST_INFO_NULL,
    };

    return suite_run("teams", tests);
}
