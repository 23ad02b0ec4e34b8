/* Teams at their home: gathers that complete, gathers that fail, calls that are repeated, and
 * hostile arguments. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/peering/teams/teams.h"
#include "tests/suite.h"

#define NODES 4u
#define HOME  2u
#define SIZE  6u /* ranks of the job: rank r on node r / 2, with engine r % 2 */

static int taken; /* number of allocated pieces of memory */
static int refuse_after = -1;

/* A piece of memory, with bytes after it that nobody may write. */
struct piece {
    size_t size;
    _Alignas(16) uint8_t bytes[];
};
enum { BEHIND = 128, UNWRITTEN = 0xff };

static void *take(void *context, size_t size)
{
    struct piece *p;

    if (refuse_after == 0)
        return NULL;
    if (refuse_after > 0)
        refuse_after--;
    p = calloc(1, sizeof(*p) + size + BEHIND);
    if (!p)
        return NULL;
    taken++;
    p->size = size;
    memset(p->bytes + size, UNWRITTEN, BEHIND);
    return p->bytes;
}

static void give(void *context, void *memory)
{
    struct piece *p = (struct piece *)(void *)((uint8_t *)memory - offsetof(struct piece, bytes));

    for (size_t i = 0; i < BEHIND; i++)
        CU_ASSERT_EQUAL_FATAL(p->bytes[p->size + i], UNWRITTEN);
    taken--;
    free(p);
}

static const struct directory_memory memory = {.take = take, .give = give};
static struct directory d;
static struct teams t;
static const struct directory_id job = {.uid = 1000, .job = "job"};
static const struct teams_key world = {.id = {.uid = 1000, .job = "job"}};
static const struct teams_key team = {.id = {.uid = 1000, .job = "job"}, .parent = 77};

static const struct teams_answer unanswered = {0};

static uint32_t node_of(uint32_t rank)
{
    return rank / 2;
}

static void begin_as(bool alone)
{
    directory_init(&d, &memory, NODES, &(struct directory_shares){.alone = alone});
    for (uint32_t rank = 0; rank < SIZE; rank++)
        directory_attach(&d, &job, rank, SIZE, node_of(rank), rank % 2);
    teams_init(&t, &memory, &d, HOME, 0);
}

static void begin(void)
{
    begin_as(true);
}

/* Checks that everything is given back. */
static void finish(void)
{
    teams_clear(&t);
    CU_ASSERT_EQUAL(t.gathers, 0);
    CU_ASSERT_EQUAL(t.bytes, 0);
    directory_clear(&d);
    CU_ASSERT_EQUAL(taken, 0);
}

static struct teams_call by(uint32_t rank)
{
    return (struct teams_call){
        .from = node_of(rank), .size = SIZE, .at = rank, .rank = rank, .window = 64};
}

/* The number of this key's gather; 0: there is none. */
static uint64_t number_of(const struct teams_key *key)
{
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (const struct teams_gather *g = t.first[i]; g; g = g->next)
            if (g->parent == key->parent && g->call == key->call)
                return g->number;
    return 0;
}

static int call(const struct teams_key *key, const struct teams_call *c)
{
    struct teams_gather *g;

    return teams_call(&t, key, c, &g);
}

static struct teams_gather *due(enum teams_due expected)
{
    enum teams_due what;
    struct teams_gather *g = teams_take_due(&t, &what);

    CU_ASSERT_EQUAL(what, expected);
    return g;
}

/* Checks that a gather has ended with this status for all members. */
static void ends(int status)
{
    const struct teams_gather *g = due(TEAMS_START);

    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(g->status, status);
    CU_ASSERT_EQUAL(g->phase, TEAMS_ENDED);
}

static void ready_on(const struct teams_key *key, uint32_t nodes, int status, bool ended)
{
    for (uint32_t node = 0; node < nodes; node++)
        teams_ready(&t, key, node, number_of(key), status, "no memory", ended);
}

/* A gather's teams as text, each as "3@1.1 0@0.0 |": ranks with node and engine, in the order of
 * team ranks. */
static const char *groups_of(const struct teams_gather *g)
{
    static char text[512];
    struct teams_group group = {0};
    int n = 0;

    text[0] = '\0';
    while (teams_next_group(g, &group)) {
        struct teams_run runs[2];
        uint32_t at = 0, count;

        CU_ASSERT_EQUAL(group.number >> 48, HOME);
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

static void the_world(void)
{
    const struct teams_gather *g;

    begin();
    for (uint32_t rank = SIZE; rank-- > 0;) {
        struct teams_call c = by(rank);

        due(TEAMS_NOTHING);
        CU_ASSERT_EQUAL(call(&world, &c), 0);
        if (rank == SIZE - 1)
            due(TEAMS_ASK_ENDED);
    }
    g = due(TEAMS_GROUP);
    CU_ASSERT_STRING_EQUAL(groups_of(g), "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |");
    ready_on(&world, 2, 0, false);
    ready_on(&world, 2, 0, false); /* a second report does not count */
    due(TEAMS_NOTHING);
    ready_on(&world, 3, 0, false);
    ends(0);
    ready_on(&world, 2, 0, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 1);
    ready_on(&world, 3, 0, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 0);
    finish();
}

/* The teams that colors, keys and kinds lead to. */
static void splits(void)
{
    static const struct {
        uint32_t kind;
        int32_t colors[SIZE], keys[SIZE];
        const char *teams;
    } rows[] = {
        {TEAMS_SPLIT, {0}, {0}, "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |"},
        {TEAMS_SPLIT, {0}, {5, 4, 3, 2, 1, 0}, "5@2.1 4@2.0 3@1.1 2@1.0 1@0.1 0@0.0 |"},
        {TEAMS_SPLIT,
         {0},
         {0, -1, 0, INT32_MIN, INT32_MAX, 0},
         "3@1.1 1@0.1 0@0.0 2@1.0 5@2.1 4@2.0 |"},
        {TEAMS_SPLIT, {1, 0, 1, 0, 1, 0}, {0}, "1@0.1 3@1.1 5@2.1 |0@0.0 2@1.0 4@2.0 |"},
        {TEAMS_SPLIT,
         {-1, 0, -1, INT32_MAX, INT32_MIN, 0},
         {0, 1, 0, 0, 0, 0},
         "5@2.1 1@0.1 |3@1.1 |"},
        {TEAMS_SPLIT, {-1, -1, -1, -1, -1, -1}, {0}, ""},
        {TEAMS_BY_NODE, {-1, 3, 0, 9, 0, 0}, {1, 0}, "1@0.1 0@0.0 |2@1.0 3@1.1 |4@2.0 5@2.1 |"},
    };
    uint64_t last = 0;

    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct teams_key key = {.id = job, .call = (uint32_t)i};
        struct teams_gather *g;

        for (uint32_t rank = 0; rank < SIZE; rank++) {
            struct teams_call c = by(rank);

            c.kind = rows[i].kind;
            c.color = rows[i].colors[rank];
            c.key = rows[i].keys[rank];
            CU_ASSERT_EQUAL(call(&key, &c), 0);
        }
        g = due(TEAMS_GROUP);
        CU_ASSERT_STRING_EQUAL(groups_of(g), rows[i].teams);
        CU_ASSERT(g->number > last);
        last = *rows[i].teams ? g->number : last;
        ready_on(&key, NODES, 0, false);
        ends(0);
        ready_on(&key, NODES, 0, true);
    }
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.counted, 10);
    finish();
}

/* Calls that no member of this job may make. */
static void refused_calls(void)
{
    static const struct {
        struct teams_key key;
        struct teams_call call;
        int expected;
    } rows[] = {
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1}, 0},
        {{.id = {1000, "job"}}, {.from = 1, .size = 6, .window = 1}, -EPERM},
        {{.id = {1001, "job"}}, {.from = 0, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "other"}}, {.from = 0, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = 0, .rank = 6, .at = 6, .size = 7, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = NODES, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = 0, .size = 5, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 7, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .at = 1, .size = 6, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 3}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 8192}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .kind = 3}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .kind = TEAMS_SHRINK}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .status = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .size = 0, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .size = 7, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .at = 2, .size = 2, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5, .context = 1},
         {.from = 0, .size = 2, .window = 1},
         -EINVAL},
        {{.id = {1000, "job"}, .parent = 5},
         {.from = 0, .at = 1, .size = 2, .window = TEAMS_WINDOW_MAX},
         0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin();
        CU_ASSERT_EQUAL(call(&rows[i].key, &rows[i].call), rows[i].expected);
        CU_ASSERT_EQUAL(t.gathers, rows[i].expected == 0);
        finish();
    }
}

/* The home may know the end of a rank before that rank's last call arrives: the call is not refused
 * as a stranger's. */
static void call_of_a_rank_that_left(void)
{
    const struct teams_key key = {.id = {1000, "job"}};
    struct directory_job *at;
    uint32_t failed;

    begin();
    directory_detach(&d, &key.id, 5, node_of(5), &at, &failed);
    CU_ASSERT_EQUAL(
        call(&key,
             &(struct teams_call){.from = node_of(5), .rank = 5, .at = 5, .size = 6, .window = 1}),
        -EHOSTDOWN);
    CU_ASSERT_EQUAL(t.gathers, 0);
    finish();
}

/* Calls that do not fit together end the gather for all members. */
static void different_calls(void)
{
    static const struct teams_call seconds[] = {
        {.from = 0, .size = 2, .at = 1, .rank = 1, .window = 32}, /* -EINVAL; other rows -EBADMSG */
        {.from = 0, .size = 2, .at = 1, .rank = 1, .window = 64, .kind = TEAMS_BY_NODE},
        {.from = 0, .size = 2, .at = 0, .rank = 1, .window = 64},
        {.from = 0, .size = 3, .at = 1, .rank = 1, .window = 64},
    };

    for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
        const struct teams_call first = {.from = 0, .size = 2, .window = 64};

        begin();
        CU_ASSERT_EQUAL(call(&team, &first), 0);
        due(TEAMS_ASK_MEMBERS);
        (void)call(&team, &seconds[i]);
        ends(i == 0 ? -EINVAL : -EBADMSG);
        CU_ASSERT_EQUAL(call(&team, &first), 1); /* a rank that asks again is answered again */
        finish();
    }
}

/* A node that cannot let its member take part ends the call, also for members that call later. */
static void a_refusing_node(void)
{
    struct teams_call c = by(0);

    begin();
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    c = by(1);
    c.status = -EDQUOT;
    c.why = "client-teams is 64";
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    ends(-EDQUOT);
    ready_on(&world, 1, 0, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 1); /* the ranks of the other nodes have not called yet */
    for (uint32_t rank = 2; rank < SIZE; rank++) {
        c = by(rank);
        CU_ASSERT_EQUAL(call(&world, &c), 1);
    }
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 1);
    ready_on(&world, NODES, 0, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 0);
    finish();
}

static void all_call(const struct teams_key *key, uint32_t size, uint32_t kind)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        struct teams_call c = by(rank);

        c.size = size;
        c.kind = kind;
        CU_ASSERT_EQUAL(call(key, &c), 0);
    }
}

static void a_node_that_is_not_ready(void)
{
    begin();
    all_call(&world, SIZE, TEAMS_SPLIT);
    due(TEAMS_GROUP);
    teams_ready(&t, &world, 3, number_of(&world), -EDQUOT, "", false);     /* not in this gather */
    teams_ready(&t, &world, NODES, number_of(&world), -EDQUOT, "", false); /* no such node */
    teams_ready(&t, &world, 0, number_of(&world), 0, NULL, true); /* the gather has not ended */
    teams_ready(&t, &world, 1, number_of(&world) - 1, -EDQUOT, "", false); /* an earlier home's */
    due(TEAMS_NOTHING);
    teams_ready(&t, &world, 0, number_of(&world), 0, NULL, false);
    teams_ready(&t, &world, 1, number_of(&world), -EDQUOT, "no memory", false);
    ends(-EDQUOT);
    finish();
}

/* Deaths before, between and after calls. */
static void ranks_that_leave(void)
{
    struct directory_job *at;
    uint32_t failed;
    struct teams_call c = by(0);

    begin();
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    directory_detach(&d, &job, 5, 2, &at, &failed);
    teams_rank_gone(&t, &job, 5); /* rank 5 has not called */
    ends(-EHOSTDOWN);
    /* Rank 5 had left before this call. */
    CU_ASSERT_EQUAL(call(&(struct teams_key){.id = job, .call = 1}, &c), 0);
    ends(-EHOSTDOWN);
    finish();

    begin();
    all_call(&world, SIZE, TEAMS_SPLIT);
    due(TEAMS_GROUP);
    directory_detach(&d, &job, 5, 2, &at, &failed);
    teams_rank_gone(&t, &job, 5); /* while the teams form */
    ends(-EHOSTDOWN);
    for (uint32_t rank = 0; rank < 5; rank++) {
        directory_detach(&d, &job, rank, node_of(rank), &at, &failed);
        teams_rank_gone(&t, &job, rank);
    }
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 0); /* no rank is left that could ask for it */
    finish();
}

static void name_all(const struct teams_key *key, uint32_t node, uint32_t size)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        const struct teams_run run = {.rank = rank, .count = 1, .node = node_of(rank)};

        teams_name(&t, key, node, rank, &run, 1, rank == size - 1);
    }
}

/* For a team's parent, the home asks a node for the parent's members, and then all nodes for
 * members that have ended. */
static void parents(void)
{
    struct teams_call c = by(0);
    struct teams_gather *g;
    uint32_t at = 0;

    begin();
    c.size = 4;
    CU_ASSERT_EQUAL(call(&team, &c), 0);
    g = due(TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 0);
    name_all(&team, 1, 4); /* node 1 was not asked */
    due(TEAMS_NOTHING);
    name_all(&team, 0, 4);
    g = due(TEAMS_ASK_ENDED);
    teams_ready(&t, &team, 2, 0, 0, NULL, true); /* no member on node 2 */
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), 0); /* rank 1; next: 2 and 3 */
    CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), TEAMS_NONE);
    teams_member_gone(&t, &job, 77, 3, 0, unanswered); /* not its node */
    teams_member_gone(&t, &job, 78, 3, 1, unanswered); /* not of this team */
    teams_member_gone(&t, &job, 77, 5, 2, unanswered); /* no member */
    teams_member_gone(&t, &job, 0, 3, 1, unanswered);
    due(TEAMS_NOTHING);
    teams_member_gone(&t, &job, 77, 3, 1, unanswered);
    ends(-EHOSTDOWN);
    CU_ASSERT_EQUAL(g->gone, 1);
    teams_member_gone(&t, &job, 77, TEAMS_NONE, 1, unanswered); /* all members of node 1 */
    CU_ASSERT_EQUAL(g->gone, 2);
    finish();
}

/* A node reports that an earlier process of this home has ended the gather: the gather ends with
 * the same status for all others. */
static void ended_before(void)
{
    static const int statuses[] = {0, -EHOSTDOWN};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct teams_call c = by(0);

        begin();
        c.size = 4;
        CU_ASSERT_EQUAL(call(&team, &c), 0);
        due(TEAMS_ASK_MEMBERS);
        name_all(&team, 0, 4);
        due(TEAMS_ASK_ENDED);
        teams_ready(&t, &team, 1, 0, statuses[i], NULL, true);
        ends(statuses[i]);
        finish();
    }
}

/* A member has its answer, leaves the parent, and its node reports that before it answers the
 * home's question. The call ends for the others as it has ended for this member; so does a shrink,
 * which otherwise would continue without the member. */
static void ended_for_a_member_that_left(void)
{
    static const struct {
        struct teams_answer last;
        uint32_t kind;
        int ends; /* 1: forms a team of the members that are left */
    } rows[] = {
        {{.calls = 3}, TEAMS_SHRINK, 0},
        {{.calls = 3}, TEAMS_SPLIT, 0},
        {{.calls = 3, .status = -EDQUOT}, TEAMS_SHRINK, -EDQUOT},
        {{.calls = 4}, TEAMS_SHRINK, -EBADMSG},
        {{.calls = 4, .status = -EDQUOT}, TEAMS_SHRINK, -EDQUOT},
        {{.calls = 2}, TEAMS_SHRINK, 1},
        {{.calls = 2, .status = -EDQUOT}, TEAMS_SHRINK, 1},
        {{.calls = 0}, TEAMS_SHRINK, 1},
        {{.calls = 2}, TEAMS_SPLIT, -EHOSTDOWN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct teams_key third = team;
        struct teams_call c = by(0);

        third.call = 2;
        c.size = 2;
        c.kind = rows[i].kind;
        begin();
        CU_ASSERT_EQUAL(call(&third, &c), 0);
        due(TEAMS_ASK_MEMBERS);
        name_all(&third, 0, 2);
        due(TEAMS_ASK_ENDED);
        teams_member_gone(&t, &job, 77, 1, 1, rows[i].last); /* not its node */
        due(TEAMS_NOTHING);
        teams_member_gone(&t, &job, 77, 1, 0, rows[i].last);
        if (rows[i].ends == 1)
            due(TEAMS_GROUP);
        else
            ends(rows[i].ends);
        finish();
    }
}

/* A node that has given up the home ends calls of its own members itself. Such an end does not end
 * a shrink for the others, which continue without the member. In one case the member had called; in
 * the other the home knew already that it is gone. */
static void answered_by_its_own_node(void)
{
    const struct teams_answer lost = {.calls = 1, .status = -EHOSTDOWN};

    for (int called = 0; called < 2; called++) {
        struct teams_call c = by(0);

        begin();
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(call(&team, &c), 0);
        due(TEAMS_ASK_MEMBERS);
        name_all(&team, 0, 3);
        due(TEAMS_ASK_ENDED);
        c = by(1);
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        if (called) {
            CU_ASSERT_EQUAL(call(&team, &c), 0);
        } else {
            teams_member_gone(&t, &job, 77, 1, 0, unanswered);
        }
        teams_member_gone(&t, &job, 77, 1, 0, lost);
        due(TEAMS_NOTHING);
        c = by(2);
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(call(&team, &c), 0);
        due(TEAMS_GROUP);
        finish();
    }
}

/* As long as teams form, no member can have been answered. A node that claims so reports in fact
 * only that the member has left. */
static void left_while_teams_form(void)
{
    struct teams_call c = by(0);

    begin();
    c.size = 2;
    CU_ASSERT_EQUAL(call(&team, &c), 0);
    due(TEAMS_ASK_MEMBERS);
    name_all(&team, 0, 2);
    due(TEAMS_ASK_ENDED);
    c = by(1);
    c.size = 2;
    CU_ASSERT_EQUAL(call(&team, &c), 0);
    due(TEAMS_GROUP);
    teams_member_gone(&t, &job, 77, 1, 0, (struct teams_answer){.calls = 1});
    ends(-EHOSTDOWN);
    finish();
}

/* As ended_before, for the world, whose members the directory knows. */
static void the_world_ended_before(void)
{
    static const int statuses[] = {0, -EDQUOT};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct teams_call c = by(0);
        struct teams_gather *g;
        uint32_t at = 0;

        begin();
        CU_ASSERT_EQUAL(call(&world, &c), 0);
        g = due(TEAMS_ASK_ENDED);
        CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), 0); /* rank 1 */
        for (uint32_t rank = 2; rank < SIZE; rank++)
            CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), node_of(rank));
        CU_ASSERT_EQUAL(teams_next_expected(&t, g, &at), TEAMS_NONE);
        CU_ASSERT_PTR_EQUAL(teams_next_of_node(&t, 3, NULL), g); /* its ranks may still attach */
        teams_ready(&t, &world, 3, 0, statuses[i], NULL, true);  /* node 3 has no member */
        due(TEAMS_NOTHING);
        c = by(1);
        CU_ASSERT_EQUAL(call(&world, &c), 0);
        teams_ready(&t, &world, 0, 0, statuses[i], NULL, true); /* its ranks have called */
        due(TEAMS_NOTHING);
        teams_ready(&t, &world, 1, 0, statuses[i], NULL, true);
        ends(statuses[i]);
        c = by(4);
        CU_ASSERT_EQUAL(call(&world, &c), 1); /* the others get the same status */
        CU_ASSERT_PTR_NULL(teams_next_of_node(&t, 3, NULL));
        finish();
    }
}

/* A node names the parent's members with senseless runs. */
static void hostile_names(void)
{
    static const struct teams_run rows[] = {
        {.rank = 0, .count = 0},
        {.rank = 0, .count = 5},
        {.rank = 5, .count = 2},
        {.rank = SIZE, .count = 1},
        {.rank = UINT32_MAX, .count = 2},
        {.rank = 0, .count = UINT32_MAX},
        {.rank = 0, .count = 4, .node = NODES},
        {.rank = 1, .count = 4}, /* the run calls member 0 rank 1 */
        {.rank = 0, .count = 3}, /* one member is missing */
        {.rank = 3, .count = 4}, /* the last member is no rank */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct teams_call c = by(rows[i].rank == 3 ? 3 : 0);

        begin();
        c.size = 4;
        c.at = 0;
        CU_ASSERT_EQUAL(call(&team, &c), 0);
        due(TEAMS_ASK_MEMBERS);
        teams_name(&t, &team, c.from, 1, &rows[i], 1, true); /* not the next members */
        due(TEAMS_NOTHING);
        teams_name(&t, &team, c.from, 0, &rows[i], 1, true);
        ends(-EBADMSG);
        finish();
    }
}

/* A shrink forms a team of the members that call, once all others are known to be gone. */
static void shrinks(void)
{
    struct directory_job *at;
    struct teams_gather *g;
    uint32_t failed;

    begin();
    directory_detach(&d, &job, 1, 0, &at, &failed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct teams_call c = by(rank);

        c.size = 4;
        c.kind = TEAMS_SHRINK;
        c.color = -1;
        c.key = -(int)rank;
        if (rank != 1)
            CU_ASSERT_EQUAL(call(&team, &c), 0);
    }
    due(TEAMS_ASK_MEMBERS);
    name_all(&team, 0, 4);
    due(TEAMS_ASK_ENDED);
    teams_member_gone(&t, &job, 77, 3, 1, unanswered);
    teams_member_gone(&t, &job, 77, 3, 1, unanswered);
    g = due(TEAMS_GROUP);
    CU_ASSERT_STRING_EQUAL(groups_of(g), "0@0.0 2@1.0 |");
    teams_member_gone(&t, &job, 77, 2, 1, unanswered);
    ends(-EHOSTDOWN); /* the survivors must shrink again */
    finish();
}

/* The node that was asked for the members is lost: another one is asked. */
static void an_asked_node_is_lost(void)
{
    struct teams_gather *g;

    begin();
    for (uint32_t rank = 3; rank-- > 1;) {
        struct teams_call c = by(rank);

        c.size = 4;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(call(&team, &c), 0);
    }
    g = due(TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 1);
    teams_node_lost(&t, 1);
    g = due(TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 0);
    name_all(&team, 0, 4);
    due(TEAMS_ASK_ENDED);
    teams_node_lost(&t, 1); /* node 1 had member 3, which has not called */
    due(TEAMS_NOTHING);
    teams_node_lost(&t, 0);
    CU_ASSERT_PTR_NULL(teams_next_of_node(&t, 0, NULL));
    finish();
}

/* A member makes its next call without the previous one: the previous call ends with an error for
 * the members that wait in it. */
static void calls_out_of_step(void)
{
    const struct teams_key next = {.id = job, .call = 1};
    struct teams_call c = by(0);

    begin();
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    c = by(1);
    CU_ASSERT_EQUAL(call(&next, &c), 0);
    ends(-EBADMSG);
    due(TEAMS_ASK_ENDED);
    CU_ASSERT_EQUAL(t.gathers, 2);
    finish();

    begin();
    CU_ASSERT_EQUAL(call(&next, &c), 0);
    due(TEAMS_ASK_ENDED);
    c = by(0);
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    ends(-EBADMSG);
    due(TEAMS_NOTHING);
    finish();
}

/* A node that was started anew repeats its calls, and gets its frames again. */
static void asked_again(void)
{
    struct teams_call c = by(2);
    struct teams_gather *g;
    uint32_t at = 0;

    begin();
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    CU_ASSERT_EQUAL(call(&world, &c), 0);
    all_call(&world, SIZE, TEAMS_SPLIT);
    g = due(TEAMS_GROUP);
    CU_ASSERT_EQUAL(g->called, SIZE);
    CU_ASSERT_STRING_EQUAL(groups_of(g), "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |");
    CU_ASSERT_EQUAL(call(&world, &c), 1);
    CU_ASSERT_EQUAL(teams_next_node(&t, g, &at), 0);
    CU_ASSERT_EQUAL(teams_next_node(&t, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_node(&t, g, &at), 2);
    CU_ASSERT_EQUAL(teams_next_node(&t, g, &at), TEAMS_NONE);
    ready_on(&world, NODES, 0, false);
    ends(0);
    teams_ready(&t, &world, 1, number_of(&world), 0, NULL, true);
    CU_ASSERT_EQUAL(call(&world, &c), 1); /* its node has lost the answer */
    teams_ready(&t, &world, 0, number_of(&world), 0, NULL, true);
    teams_ready(&t, &world, 2, number_of(&world), 0, NULL, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_PTR_EQUAL(teams_next_of_node(&t, 1, NULL), g);
    CU_ASSERT_PTR_NULL(teams_next_of_node(&t, 1, g));
    CU_ASSERT_PTR_NULL(teams_next_of_node(&t, 3, NULL));
    teams_ready(&t, &world, 1, number_of(&world), 0, NULL, true);
    due(TEAMS_NOTHING);
    CU_ASSERT_EQUAL(t.gathers, 0);
    finish();
}

/* The bounds of memory, of gathers and of a user's share. A call that is refused is refused to all
 * members. */
static void bounded(void)
{
    struct teams_call c = {.from = 0, .size = 1, .window = 64};
    uint32_t opened = 0;

    for (int after = 0; after < 3; after++) {
        begin();
        refuse_after = after;
        CU_ASSERT_EQUAL(call(&team, &c), -ENOMEM);
        refuse_after = -1;
        CU_ASSERT_EQUAL(call(&team, &c), -ENOMEM); /* as for the member before */
        CU_ASSERT_EQUAL(t.gathers, 0);
        finish();
    }

    begin();
    for (uint64_t parent = 1; parent <= TEAMS_GATHERS_MAX + 1; parent++)
        CU_ASSERT_EQUAL(call(&(struct teams_key){.id = job, .parent = parent}, &c),
                        parent <= TEAMS_GATHERS_MAX ? 0 : -ENOSPC);
    finish();

    begin_as(false);
    t.bytes = TEAMS_BYTES_MAX - 4096; /* other users have the rest */
    while (call(&(struct teams_key){.id = job, .parent = opened + 1}, &c) == 0)
        opened++;
    CU_ASSERT(opened > 0);
    CU_ASSERT_EQUAL(call(&(struct teams_key){.id = job, .parent = opened + 1}, &c), -EDQUOT);
    CU_ASSERT(TEAMS_BYTES_MAX - t.bytes >= 2048);
    t.bytes -= TEAMS_BYTES_MAX - 4096;
    finish();
}

int main(void)
{
    CU_TestInfo tests[] = {{"the world", the_world},
                           {"splits", splits},
                           {"refused calls", refused_calls},
                           {"a call of a rank that has left", call_of_a_rank_that_left},
                           {"different calls", different_calls},
                           {"a refusing node", a_refusing_node},
                           {"a node that is not ready", a_node_that_is_not_ready},
                           {"ranks that leave", ranks_that_leave},
                           {"parents", parents},
                           {"ended before", ended_before},
                           {"ended for one that left", ended_for_a_member_that_left},
                           {"answered by its own node", answered_by_its_own_node},
                           {"left while teams form", left_while_teams_form},
                           {"the world ended before", the_world_ended_before},
                           {"hostile names", hostile_names},
                           {"shrinks", shrinks},
                           {"an asked node is lost", an_asked_node_is_lost},
                           {"calls out of step", calls_out_of_step},
                           {"asked again", asked_again},
                           {"bounded", bounded},
                           CU_TEST_INFO_NULL};

    return suite_run("teams", tests);
}
