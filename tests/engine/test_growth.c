/*
 * Memory as a node grows: what a client, a context, a bind, a pair of contexts and a peer take of
 * the daemon's state, by the sizes of its tables; and an engine with ten thousand peers, whose
 * resident memory must be what the table says. Prints the table (docs/lab/growth.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/still_fabric.h"

#define PEERS  10000u
#define LINKED 500u

static const struct engine_config plain = {.peers = PEERS};

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

/* What one more of something takes, by the difference that a thousand make. */
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

/* Memory as the kernel gives it: only what is touched is there. */
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

/* The peer's word of a handshake: it offers a ring of the size that ours has at first. */
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

static void test_ten_thousand_peers(void)
{
    static struct still_fabric fabric;
    struct engine_config config = plain;
    double before, idle, linked, computed = each_peer() * PEERS;
    size_t arena_bytes, private_bytes;
    void *arena, *private;
    struct engine *e;
    uint64_t now = 1;

    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    arena_bytes = engine_arena_bytes(&config);
    private_bytes = engine_private_bytes(&config);
    arena = pages(arena_bytes);
    private = pages(private_bytes);
    still_open(&fabric);
    before = resident(arena, arena_bytes) + resident(private, private_bytes);
    CU_ASSERT_EQUAL_FATAL(engine_open(&config, arena, private, &fabric.base, &host, now, &e), 0);
    step(e, &now, 3);
    idle = resident(arena, arena_bytes) + resident(private, private_bytes) - before;
    for (uint32_t node = 1; node <= LINKED; node++)
        CU_ASSERT_EQUAL_FATAL(link_to(e, node, &now), 0);
    step(e, &now, 3);
    linked = resident(arena, arena_bytes) + resident(private, private_bytes) - before - idle;
    printf("\n\n  %u peers: %.1f MB by the table, %.1f MB resident with all other tables\n"
           "  %u of them linked: %.0f bytes more each, besides two ledgers of %u\n",
           PEERS, computed / 1e6, idle / 1e6, LINKED, linked / LINKED, config.ledger_start);
    /* Not more than what the tables of peers and of all else have; and all of them are touched. */
    CU_ASSERT(idle <= (double)(arena_bytes + private_bytes));
    CU_ASSERT(idle >= computed / 2);
    CU_ASSERT(linked / LINKED <= 2.0 * config.ledger_start + 4096);
    munmap(arena, arena_bytes);
    munmap(private, private_bytes);
}

int main(void)
{
    CU_TestInfo tests[] = {{"what each takes", test_table},
                           {"ten thousand peers", test_ten_thousand_peers},
                           CU_TEST_INFO_NULL};

    return suite_run("growth", tests);
}
