/*
 * Memory as a node grows: what a client, a context, a bind, a pair of contexts and a peer take of
 * the daemon's state, by the sizes of its tables; and an engine with ten thousand peers, where only
 * peers that were named may take memory. Prints the table (docs/lab/growth.md). Thread: one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/still_fabric.h"

#define PEERS        10000u
#define LINKED       500u
#define LEDGER_START 16384u /* by default */

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    memset(to, 7, size);
}

static const struct engine_host host = {.wake = host_wake, .random = host_random};

static size_t bytes_of(struct engine_config config)
{
    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    return engine_arena_bytes(&config) + engine_private_bytes(&config);
}

/* The memory that one more object takes, computed from a thousand more of them. */
static double each(uint32_t *field, struct engine_config *config)
{
    size_t few = bytes_of(*config);

    *field += 1000;
    return (double)(bytes_of(*config) - few) / 1000;
}

static double each_peer(void)
{
    struct engine_config config = {.peers = 2};

    return each(&config.peers, &config);
}

static void test_table(void)
{
    struct engine_config clients = {.clients_max = 100}, sessions = {.sessions_max = 100},
                         segments = {.segments_max = 100}, regions = {.regions_max = 100},
                         remotes = {.remotes_max = 100}, flows = {.flows_max = 100};
    const struct {
        const char *what;
        double bytes;
    } rows[] = {
        {"a client", each(&clients.clients_max, &clients)},
        {"a context, besides its rings", each(&sessions.sessions_max, &sessions)},
        {"a segment, besides its memory", each(&segments.segments_max, &segments)},
        {"a region", each(&regions.regions_max, &regions)},
        {"a bind", each(&remotes.remotes_max, &remotes)},
        {"a pair of contexts", each(&flows.flows_max, &flows)},
        {"a peer, idle", each_peer()},
    };

    printf("\n\n  | each of | bytes in the daemon |\n  |---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("  | %s | %.0f |\n", rows[i].what, rows[i].bytes);
        CU_ASSERT(rows[i].bytes > 0 && rows[i].bytes < 8192);
    }
}

/* Memory as the kernel gives it: only touched pages exist. */
static void *pages(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
    madvise(at, size, MADV_NOHUGEPAGE);
    return at;
}

static double resident(void *at, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (size + page - 1) / page, there = 0;
    unsigned char *map = malloc(count);

    CU_ASSERT_PTR_NOT_NULL_FATAL(map);
    CU_ASSERT_EQUAL(mincore(at, size, map), 0);
    for (size_t i = 0; i < count; i++)
        there += map[i] & 1;
    free(map);
    return (double)(there * page);
}

static void step(struct engine *e, uint64_t *now, int times)
{
    uint64_t deadline;
    struct engine_notice notice;

    while (times-- > 0) {
        *now += 10000;
        engine_step(e, *now, 64, &deadline);
        while (engine_notice(e, &notice))
            continue;
    }
}

/* Plays the peer in a handshake: offers a ring as large as the engine's is at first. */
static int link_to(struct engine *e, uint32_t node, uint64_t *now)
{
    struct engine_offer ours, theirs = {.peer = node, .incarnation = 1, .state_id = 1 + node};
    int r;

    step(e, now, 1);
    while ((r = engine_offer(e, node, &ours)) == -EAGAIN)
        step(e, now, 1);
    theirs.ring_bytes = ours.ring_bytes;
    return r < 0 ? r : engine_peer_up(e, node, &theirs);
}

/* An engine with this many peers, and its memory. */
struct grown {
    struct still_fabric fabric;
    struct engine *engine;
    void *arena, *private;
    size_t arena_bytes, private_bytes;
    uint64_t now;
};

static void grow(struct grown *g, uint32_t peers)
{
    struct engine_config config = {.peers = peers};

    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    CU_ASSERT_EQUAL(config.ledger_start, LEDGER_START);
    g->now = 1;
    g->arena_bytes = engine_arena_bytes(&config);
    g->private_bytes = engine_private_bytes(&config);
    g->arena = pages(g->arena_bytes);
    g->private = pages(g->private_bytes);
    still_open(&g->fabric);
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&config, g->arena, g->private, &g->fabric.base, &host, g->now, &g->engine), 0);
    step(g->engine, &g->now, 3);
}

static double grown_bytes(const struct grown *g)
{
    return resident(g->arena, g->arena_bytes) + resident(g->private, g->private_bytes);
}

static void shrink(struct grown *g)
{
    munmap(g->arena, g->arena_bytes);
    munmap(g->private, g->private_bytes);
}

static void test_ten_thousand_peers(void)
{
    static struct grown few, many;
    double idle, linked;

    grow(&few, 2);
    grow(&many, PEERS);
    idle = grown_bytes(&many);
    for (uint32_t node = 1; node <= LINKED; node++)
        CU_ASSERT_EQUAL_FATAL(link_to(many.engine, node, &many.now), 0);
    step(many.engine, &many.now, 3);
    linked = grown_bytes(&many) - idle;
    printf("\n\n  %u peers: %.1f MB by the table, %.2f MB resident with all other tables; 2 peers: "
           "%.2f MB\n  %u of them linked: %.0f bytes more each, besides two ledgers of %u\n",
           PEERS, each_peer() * PEERS / 1e6, idle / 1e6, grown_bytes(&few) / 1e6, LINKED,
           linked / LINKED, LEDGER_START);
    /* A peer that is not named takes no memory, except for a few pages at the borders of tables. */
    CU_ASSERT(idle <= grown_bytes(&few) + 65536);
    CU_ASSERT(linked / LINKED <= 2.0 * LEDGER_START + 8192);
    shrink(&few);
    shrink(&many);
}

int main(void)
{
    CU_TestInfo tests[] = {{"what each takes", test_table},
                           {"ten thousand peers", test_ten_thousand_peers},
                           CU_TEST_INFO_NULL};

    return suite_run("growth", tests);
}
