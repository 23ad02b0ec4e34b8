/*
 * Fuzzes the forming of teams at a job's home. An input is a sequence of (what, four words of 16
 * bits), each a call into the home with these fields. After each call everything that is due is
 * taken, as the daemon does to make frames of it. At the end the home must hold nothing.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/peering/teams/teams.h"

enum { NODES = 4, HOME = 2, RANKS = 6 };
enum what { CALL, NAME, READY, GONE, RANK_GONE, NODE_LOST, ATTACH, WHATS };

struct unit {
    uint8_t what, node;
    uint16_t a, b, c, d;
};
static_assert(sizeof(struct unit) == 10, "unit");

static uint64_t held;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *take(void *context, size_t size)
{
    held++;
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    held -= memory != NULL;
    free(memory);
}

static const struct directory_memory memory = {.take = take, .give = give};
static const struct directory_id job = {.uid = 1000, .job = "job"};

struct home {
    struct directory directory;
    struct teams teams;
};

static void begin(struct home *h)
{
    directory_init(&h->directory, &memory, NODES, &(struct directory_shares){.alone = true});
    for (uint32_t rank = 0; rank < RANKS; rank++)
        directory_attach(&h->directory, &job, rank, RANKS, rank / 2, rank % 2);
    teams_init(&h->teams, &memory, &h->directory, HOME, 0);
}

static void finish(struct home *h)
{
    teams_clear(&h->teams);
    if (h->teams.gathers != 0 || h->teams.bytes != 0)
        abort();
    directory_clear(&h->directory);
    if (held != 0)
        abort();
}

/* Checks that all members of a gather's teams are in its list, each once. */
static void look(const struct home *h, const struct teams_gather *g, enum teams_due due)
{
    struct teams_group group = {0};
    uint32_t at = 0, members = 0;

    while (due == TEAMS_ASK_ENDED && teams_next_expected(&h->teams, g, &at) != TEAMS_NONE)
        continue;
    for (at = 0; teams_next_node(&h->teams, g, &at) != TEAMS_NONE;)
        continue;
    if (due != TEAMS_GROUP)
        return;
    while (teams_next_group(g, &group)) {
        struct teams_run runs[3];
        uint32_t count, all = 0;

        for (at = 0; (count = teams_runs(g, &group, &at, runs, 3)) > 0;)
            for (uint32_t i = 0; i < count; i++)
                all += runs[i].count;
        if (all != group.count || group.first + group.count > g->size)
            abort();
        members += all;
    }
    if (members > g->size)
        abort();
}

static void take_due(struct home *h)
{
    struct teams_gather *g;
    enum teams_due due;

    for (uint32_t i = 0; (g = teams_take_due(&h->teams, &due)) != NULL; i++) {
        look(h, g, due);
        if (i == 10000)
            abort(); /* something is due again and again */
    }
}

/* Makes a 32-bit number: often one that may be valid, otherwise any. */
static uint32_t wide(uint16_t value)
{
    return value & 0x8000 ? value * 0x10001u : value & 7;
}

static void call(struct home *h, const struct unit *u, const struct teams_key *key)
{
    struct teams_gather *g;
    const struct teams_call c = {.from = u->node % 5,
                                 .size = wide(u->b),
                                 .at = wide(u->c),
                                 .rank = u->d & 7,
                                 .context = u->d >> 3 & 1,
                                 .kind = u->d >> 4 & 3,
                                 .color = (int32_t)(u->d >> 6 & 3) - 1,
                                 .key = (int32_t)(u->d >> 8 & 3) - 2,
                                 .window = u->d & 0x400 ? 64 : u->d >> 3,
                                 .status = u->d & 0x800 ? -(int32_t)(u->d >> 12) : 0,
                                 .why = u->d & 0x1000 ? "why" : NULL};

    (void)teams_call(&h->teams, key, &c, &g);
}

static void step(struct home *h, const struct unit *u)
{
    const struct teams_key key = {
        .id = job, .parent = u->a & 3, .context = u->a >> 2 & 1, .call = u->a >> 3 & 3};
    const struct teams_run runs[2] = {
        {.rank = wide(u->b), .count = wide(u->c), .node = u->d & 7, .engine = u->d >> 3 & 3},
        {.rank = wide(u->c), .count = wide(u->d), .node = u->b & 7, .engine = u->d >> 5 & 3}};

    switch (u->what % WHATS) {
    case CALL:
        call(h, u, &key);
        break;
    case NAME:
        teams_name(&h->teams, &key, u->node % 5, wide(u->d >> 4), runs, 1 + (u->a >> 14 & 1),
                   u->a >> 15);
        break;
    case READY:
        teams_ready(&h->teams, &key, u->node % 5, h->teams.counted - u->b % 4,
                    u->c & 1 ? -(int32_t)(u->c >> 8) : 0, u->c & 2 ? "why" : NULL, u->c & 4);
        break;
    case GONE:
        teams_member_gone(&h->teams, &job, key.parent, u->b & 8 ? TEAMS_NONE : u->b & 7,
                          u->node % 5,
                          (struct teams_answer){.calls = u->c & 7,
                                                .status = u->d & 1 ? -(int32_t)(u->d >> 8) : 0});
        break;
    case RANK_GONE:
        teams_rank_gone(&h->teams, &job, u->b & 7);
        break;
    case NODE_LOST:
        teams_node_lost(&h->teams, u->node % 4);
        break;
    default:
        directory_attach(&h->directory, &job, u->b & 7, RANKS, u->node % NODES, u->c & 1);
    }
}

/* Checks the target itself: a complete split of the world must become due. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const struct teams_key world = {.id = job};
    struct teams_gather *g;
    enum teams_due due;
    struct home h;

    begin(&h);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const struct teams_call c = {
            .from = rank / 2, .size = RANKS, .at = rank, .rank = rank, .window = 64};

        if (teams_call(&h.teams, &world, &c, &g) != 0)
            abort();
    }
    do
        g = teams_take_due(&h.teams, &due);
    while (g && due != TEAMS_GROUP);
    if (!g)
        abort();
    finish(&h);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unit u;
    struct home h;

    begin(&h);
    for (; size >= sizeof(u); size -= sizeof(u)) {
        memcpy(&u, data, sizeof(u));
        data += sizeof(u);
        step(&h, &u);
        take_due(&h);
    }
    finish(&h);
    return 0;
}
