/*
 * The suite of the operations' meaning over the simulated world: ordered and unordered fabrics,
 * each protocol, several seeds.
 *
 *     test_operations [--case N] [--way N] [--seed S] [--trace]
 *
 * Thread: one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/world/paths/suite_operations.h"
#include "tests/engine/world/paths/world_path.h"

/* Seeds of each case on each fabric: only a few with a sanitizer, because the release build runs
 * them all. */
#ifdef __SANITIZE_ADDRESS__
#define SEEDS 2u
#else
#define SEEDS 10u
#endif

struct way {
    const char *name;
    uint64_t ordered_write_max;
    uint32_t protocol;
    uint32_t rails;
};

static const struct way ways[] = {
    {"ordered fabric, back to back", UINT64_MAX, ENGINE_PROTOCOL_ORDERED, 1},
    {"fabric ordered for short writes, automatic", 4096, ENGINE_PROTOCOL_AUTO, 1},
    {"ordered fabric, reassembly", UINT64_MAX, ENGINE_PROTOCOL_REASSEMBLE, 1},
    {"ordered fabric, chain", UINT64_MAX, ENGINE_PROTOCOL_CHAIN, 1},
    {"unordered fabric, reassembly", 0, ENGINE_PROTOCOL_REASSEMBLE, 1},
    {"unordered fabric, chain", 0, ENGINE_PROTOCOL_CHAIN, 1},
    {"four rails", 0, ENGINE_PROTOCOL_AUTO, 4},
    {"four rails, chain", 0, ENGINE_PROTOCOL_CHAIN, 4},
    {"two rails", UINT64_MAX, ENGINE_PROTOCOL_ORDERED, 2},
};
#define WAYS (sizeof ways / sizeof *ways)

static struct world_options options_of(const struct way *way, uint64_t seed, FILE *trace)
{
    return (struct world_options){
        .seed = seed,
        .protocol = way->protocol,
        .submit_bytes = 16384,
        .local_bytes = 16384,
        .remote_bytes = 16384,
        .trace = trace,
        .limits = {.stripe_min = 512,
                   .piece_bytes = 64u << seed % 3 * 3,
                   .window_bytes = 256u << seed % 2 * 10},
        .sim = {.ordered_write_max = way->ordered_write_max,
                .rails = way->rails,
                .message_max = 1u << 20,
                .refuse_per_mille = seed % 3 * 50,
                .silent_per_mille = 300,
                .outstanding_max = seed % 2 ? 64 : 6,
                .call_ns = seed % 4 * 20},
    };
}

/* Returns NULL, or `room` with a text that says what failed. */
static const char *run(size_t way, size_t number, uint64_t seed, FILE *trace, char room[400])
{
    static struct driver driver;
    static struct world_path path;
    struct world_options options = options_of(&ways[way], seed, trace);
    const char *failure;

    bool contexts = suite_cases[number].needs & PATH_HAS_CONTEXTS;

    options.second_contexts = contexts ? WORLD_SECOND_NOW : WORLD_SECOND_NONE;
    if (world_path_open(&path, &options, contexts ? 8 : 4, room) != 0)
        return room;
    failure = suite_run(&driver, &suite_cases[number], &path.path, seed);
    if (!failure && world_path_leave(&path)) {
        memcpy(room, path.world->failure, sizeof path.world->failure);
        failure = room;
    }
    world_path_close(&path);
    return failure;
}

/* Returns how many cases have failed. */
static int run_way(size_t way)
{
    char room[400];
    int failed = 0;

    for (size_t number = 0; number < suite_case_count; number++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const char *failure = run(way, number, seed, NULL, room);

            if (failure) {
                printf("  %s: %s\n  again: test_operations --way %zu --case %zu --seed %llu "
                       "--trace\n",
                       suite_cases[number].name, failure, way, number, (unsigned long long)seed);
                failed++;
                break;
            }
        }
    printf("%s: %d of %zu cases failed\n", ways[way].name, failed, suite_case_count);
    return failed;
}

static int run_all(void)
{
    int failed = 0;

    for (size_t way = 0; way < WAYS; way++)
        failed += run_way(way);
    return failed != 0;
}

int main(int argc, char **argv)
{
    size_t way = 0, number = 0;
    uint64_t seed = 0;
    FILE *trace = NULL;
    char room[400];
    const char *failure;

    if (argc == 1)
        return run_all();
    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "--way") == 0)
            way = strtoul(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--case") == 0)
            number = strtoul(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--trace") == 0)
            trace = stdout;
        else
            way = WAYS;
    if (way >= WAYS || number >= suite_case_count) {
        fprintf(stderr, "usage: %s [--way 0-%zu] [--case 0-%zu] [--seed S] [--trace]\n", argv[0],
                WAYS - 1, suite_case_count - 1);
        return 2;
    }
    failure = run(way, number, seed, trace, room);
    printf("%s, %s, seed %llu: %s\n", ways[way].name, suite_cases[number].name,
           (unsigned long long)seed, failure ? failure : "passed");
    return failure != NULL;
}
