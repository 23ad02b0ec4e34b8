/* The home of a job, for tests of teams (team_home.h). Thread: one. */
#include "tests/control/parts/team_home.h"

#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"

const struct directory_id home_job = {.uid = 1000, .job = "job"};
const struct teams_key home_world = {.id = {.uid = 1000, .job = "job"}};
const struct teams_key home_team = {.id = {.uid = 1000, .job = "job"}, .parent = 77};
const struct teams_answer home_unanswered = {0};

/* ---- memory ---------------------------------------------------------------------------------- */

/* A piece of memory, with bytes after it that nobody may write. */
struct piece {
    size_t size;
    _Alignas(16) uint8_t bytes[];
};
enum { BEHIND = 128, UNWRITTEN = 0xff };

static void *take(void *context, size_t size)
{
    struct team_home *h = context;
    struct piece *p;

    if (h->refuse_after == 0)
        return NULL;
    if (h->refuse_after > 0)
        h->refuse_after--;
    p = calloc(1, sizeof(*p) + size + BEHIND);
    if (!p)
        return NULL;
    h->taken++;
    p->size = size;
    memset(p->bytes + size, UNWRITTEN, BEHIND);
    return p->bytes;
}

static void give(void *context, void *memory)
{
    struct team_home *h = context;
    struct piece *p = (struct piece *)(void *)((uint8_t *)memory - offsetof(struct piece, bytes));

    for (size_t i = 0; i < BEHIND; i++)
        CU_ASSERT_EQUAL_FATAL(p->bytes[p->size + i], UNWRITTEN);
    h->taken--;
    free(p);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

uint32_t home_node(uint32_t rank)
{
    return rank / 2;
}

static void begin(struct team_home *h, const struct directory_shares *shares)
{
    h->memory = (struct directory_memory){.context = h, .take = take, .give = give};
    h->taken = 0;
    h->refuse_after = -1;
    directory_init(&h->directory, &h->memory, HOME_NODES, shares);
    for (uint32_t rank = 0; rank < HOME_SIZE; rank++)
        directory_attach(&h->directory, &home_job, rank, HOME_SIZE, home_node(rank), rank % 2);
    teams_init(&h->teams, &h->memory, &h->directory, HOME_NODE, 0);
}

void home_begin(struct team_home *h)
{
    begin(h, &(struct directory_shares){.alone = true});
}

void home_begin_shared(struct team_home *h)
{
    begin(h, &(struct directory_shares){.alone = false});
}

void home_finish(struct team_home *h)
{
    teams_clear(&h->teams);
    CU_ASSERT_EQUAL(h->teams.gathers, 0);
    CU_ASSERT_EQUAL(h->teams.bytes, 0);
    directory_clear(&h->directory);
    CU_ASSERT_EQUAL(h->taken, 0);
}

/* ---- calls and answers ----------------------------------------------------------------------- */

struct teams_call home_call_of(uint32_t rank)
{
    return (struct teams_call){
        .from = home_node(rank), .size = HOME_SIZE, .at = rank, .rank = rank, .window = 64};
}

int home_call(struct team_home *h, const struct teams_key *key, const struct teams_call *c)
{
    struct teams_gather *g;

    return teams_call(&h->teams, key, c, &g);
}

void home_all_call(struct team_home *h, const struct teams_key *key, uint32_t size, uint32_t kind)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        struct teams_call c = home_call_of(rank);

        c.size = size;
        c.kind = kind;
        CU_ASSERT_EQUAL(home_call(h, key, &c), 0);
    }
}

void home_name_all(struct team_home *h, const struct teams_key *key, uint32_t node, uint32_t size)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        const struct teams_run run = {.rank = rank, .count = 1, .node = home_node(rank)};

        teams_name(&h->teams, key, node, rank, &run, 1, rank == size - 1);
    }
}

void home_ready(struct team_home *h, const struct teams_key *key, uint32_t nodes, int status,
                bool ended)
{
    for (uint32_t node = 0; node < nodes; node++)
        teams_ready(&h->teams, key, node, home_number(h, key), status, "no memory", ended);
}

/* ---- what the home holds --------------------------------------------------------------------- */

uint64_t home_number(const struct team_home *h, const struct teams_key *key)
{
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (const struct teams_gather *g = h->teams.first[i]; g; g = g->next)
            if (g->parent == key->parent && g->call == key->call)
                return g->number;
    return 0;
}

struct teams_gather *home_due(struct team_home *h, enum teams_due expected)
{
    enum teams_due what;
    struct teams_gather *g = teams_take_due(&h->teams, &what);

    CU_ASSERT_EQUAL(what, expected);
    return g;
}

void home_ends(struct team_home *h, int status)
{
    const struct teams_gather *g = home_due(h, TEAMS_START);

    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(g->status, status);
    CU_ASSERT_EQUAL(g->phase, TEAMS_ENDED);
}

const char *home_groups(const struct teams_gather *g)
{
    static char text[512];
    struct teams_group group = {0};
    int n = 0;

    text[0] = '\0';
    while (teams_next_group(g, &group)) {
        struct teams_run runs[2];
        uint32_t at = 0, count;

        CU_ASSERT_EQUAL(group.number >> 48, HOME_NODE);
        CU_ASSERT_NOT_EQUAL(group.number & UINT64_C(0xffffffffffff), 0);
        while ((count = teams_runs(g, &group, &at, runs, 2)) > 0)
            for (uint32_t i = 0; i < count; i++)
                for (uint32_t j = 0; j < runs[i].count; j++)
                    n += snprintf(text + n, sizeof(text) - (size_t)n, "%u@%u.%u ", runs[i].rank + j,
                                  runs[i].node, runs[i].engine);
        n += snprintf(text + n, sizeof(text) - (size_t)n, "|");
    }
    return text;
}
