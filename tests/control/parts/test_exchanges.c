/* Exchanges at a home node: contributions, failures, and processes that come again with a rank. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/peering/directory.h"
#include "tests/control/parts/counted.h"
#include "tests/suite.h"

#define NODES 4u

static struct counted counted = {.refuse_after = -1};
static struct directory_memory memory; /* set by main */
static const struct directory_shares alone = {.alone = true};
static struct directory d;
static const struct directory_id job = {.uid = 1000, .job = "job"};

static void exchange(void)
{
    static const char *const given[] = {"aaaa", "bbbb", "cccc"};
    static const uint32_t nodes[] = {0, 1, 1};
    struct directory_job *at;
    struct directory_gather *g;
    uint8_t seen[NODES] = {0};
    uint32_t from = 0;

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, nodes[i], 0), 0);
    for (uint32_t i = 0; i < 3; i++) { /* in any order */
        uint32_t rank = 2 - i;
        struct directory_part part = {.rank = rank,
                                      .size = 3,
                                      .sequence = 7,
                                      .node = nodes[rank],
                                      .data = (const uint8_t *)given[rank],
                                      .length = 4};

        CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), i == 2);
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    for (uint64_t begin = 0; begin < 12; begin++) { /* in pieces of every size */
        uint8_t copy[12];

        directory_gather_copy(g, begin, copy, 12 - begin);
        CU_ASSERT_EQUAL(memcmp(copy, &"aaaabbbbcccc"[begin], 12 - begin), 0);
    }
    CU_ASSERT_EQUAL(directory_next_node(at, &from, seen), 0);
    CU_ASSERT_EQUAL(directory_next_node(at, &from, seen), 1);
    CU_ASSERT_EQUAL(directory_next_node(at, &from, seen), DIRECTORY_NOWHERE);
    directory_gather_close(&d, at, g);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

static void contributions_refused(void)
{
    static const uint8_t data[DIRECTORY_DATA_MAX + 1];
    static const struct {
        struct directory_part part;
        int expected;
    } rows[] = {
        {{.rank = 0, .size = 3, .node = 0, .length = 8}, 0},
        {{.rank = 0, .size = 3, .node = 0, .length = 8}, -EALREADY},
        {{.rank = 1, .size = 3, .node = 0, .length = 8}, -EPERM}, /* rank 1 lives on node 1 */
        {{.rank = 2, .size = 3, .node = 2, .length = 8}, -EPERM}, /* rank 2 has not attached */
        {{.rank = 3, .size = 3, .node = 0, .length = 8}, -EPERM},
        {{.rank = 1, .size = 2, .node = 1, .length = 8}, -EINVAL},
        {{.rank = 1, .size = 3, .node = 1, .length = 9}, -EINVAL},
        {{.rank = 1, .size = 3, .node = 1, .length = DIRECTORY_DATA_MAX + 1}, -EMSGSIZE},
        {{.rank = 1, .size = 3, .node = 1, .length = 8}, 0},
    };
    struct directory_job *at;
    struct directory_gather *g;

    directory_init(&d, &memory, NODES, &alone);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 3, 0, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 3, 1, 0), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct directory_part part = rows[i].part;

        part.data = data;
        CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), rows[i].expected);
    }
    CU_ASSERT_EQUAL(at->gathers[0].odd_rank, 1); /* a rank with another length is named */
    CU_ASSERT_EQUAL(at->gathers[0].odd_length, 9);
    /* Several exchanges may be under way at once, up to a limit. */
    for (uint32_t i = 1; i <= DIRECTORY_OPEN_MAX; i++) {
        struct directory_part part = {.size = 3, .sequence = i, .data = data, .length = 1};

        CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g),
                        i < DIRECTORY_OPEN_MAX ? 0 : -ENOSPC);
    }
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* The ranks that are missing are named as runs, cut where the text ends. */
static void missing_ranks(void)
{
    static const struct {
        uint32_t size, have[4]; /* ends with UINT32_MAX, if there is room */
        size_t room;
        const char *text;
    } rows[] = {
        {2, {0, UINT32_MAX}, 64, "1"},
        {9, {0, 2, 8, UINT32_MAX}, 64, "1, 3-7"},
        {9, {4, UINT32_MAX}, 64, "0-3, 5-8"},
        {9, {1, 3, 5, 7}, 64, "0, 2, 4, 6, 8"},
        {9, {1, 3, 5, 7}, 22, "0, 2 and 3 more"},
        {9, {1, 3, 5, 7}, 18, " and 5 more"},
        {1, {0, UINT32_MAX}, 64, ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t there = 1, *parts[9] = {NULL};
        struct directory_gather g = {.open = true, .parts = parts};
        const struct directory_job of = {.size = rows[i].size};
        char text[64];

        for (; g.have < 4 && rows[i].have[g.have] != UINT32_MAX; g.have++)
            parts[rows[i].have[g.have]] = &there;
        directory_missing(&of, &g, text, rows[i].room);
        CU_ASSERT_STRING_EQUAL(text, rows[i].text);
    }
}

/* A rank may give up an open exchange only from its own node, even one that it has not joined yet;
 * ranks that attach later for the first time find it failed. */
static void giving_up(void)
{
    const struct directory_part first = {.size = 3, .length = 0}, late = {.rank = 2, .size = 3};
    struct directory_part part = first;
    struct directory_job *at;
    struct directory_gather *g;

    directory_init(&d, &memory, NODES, &alone);
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 3, 0, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 3, 1, 0), 0);
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &first, &at, &g), 0);
    part.node = 1; /* where rank 0 does not live */
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    part.rank = 3;
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    part.rank = 1;
    part.sequence = 1;
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    part.sequence = 0;
    CU_ASSERT_PTR_EQUAL(directory_give_up(&d, &job, &part, &at), g);
    directory_gather_fail(&d, at, g, -ETIMEDOUT);
    CU_ASSERT_PTR_NULL(directory_give_up(&d, &job, &part, &at));
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 2, 3, 0, 0), 0);
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &late, &at, &g), -ETIMEDOUT);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* A rank that joins an exchange after it has failed gets the error at once, and does not wait for
 * the ranks that have given up. */
static void a_failure_is_remembered(void)
{
    struct directory_part part = {.size = 3, .sequence = 1, .length = 1};
    struct directory_job *at;
    struct directory_gather *g;

    part.data = (const uint8_t *)"x";
    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, 0, 0), 0);
    counted.refuse_after = 0;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -ENOMEM);
    counted.refuse_after = -1;
    part.rank = 1;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -ENOMEM);
    CU_ASSERT_PTR_NULL(g);
    part.sequence = 2;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    directory_gather_fail(&d, at, g, -EBADMSG);
    part.rank = 2;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -EBADMSG);
    for (part.sequence = 3; part.sequence < 3 + DIRECTORY_OPEN_MAX; part.sequence++) {
        CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
        directory_gather_fail(&d, at, g, -EBADMSG);
    }
    part.sequence = 2; /* a later exchange is not refused */
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* A rank that leaves before it has given its part ends the exchanges that wait for it, and no
 * others. */
static void a_rank_leaves(void)
{
    struct directory_job *at;
    struct directory_gather *g;
    uint32_t failed;

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, i, 0), 0);
    struct directory_part part = {.rank = 1, .size = 3, .sequence = 0, .node = 1};
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    part = (struct directory_part){.rank = 0, .size = 3, .sequence = 1, .node = 0};
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 1, &at, &failed), 0);
    CU_ASSERT_EQUAL(failed, 1u << (g - at->gathers));
    CU_ASSERT_EQUAL(g->odd_rank, 1);
    /* An exchange that begins after that rank has left fails as well; when the rank is back,
     * exchanges succeed. */
    part = (struct directory_part){.rank = 2, .size = 3, .sequence = 2, .node = 2};
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -EHOSTDOWN);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(g->odd_rank, 1); /* the rank that has left */
    directory_gather_close(&d, at, g);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 3, 3, 0), 0);
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    directory_clear(&d);
}

static struct directory_part part_of(uint32_t rank, uint32_t sequence, const char *data)
{
    return (struct directory_part){.rank = rank,
                                   .size = 3,
                                   .sequence = sequence,
                                   .node = rank,
                                   .data = (const uint8_t *)data,
                                   .length = 1};
}

static int contribute(uint32_t rank, uint32_t sequence, const char *data, struct directory_job **at,
                      struct directory_gather **g)
{
    const struct directory_part part = part_of(rank, sequence, data);

    return directory_contribute(&d, &job, &part, at, g);
}

static bool gets_kept(uint32_t rank, uint32_t sequence)
{
    const struct directory_part part = part_of(rank, sequence, "x");
    struct directory_job *at;

    return directory_kept(&d, &job, &part, &at) != NULL;
}

/* Rank 1 leaves, and a new process has the rank; or (`again`) its node had only been given up. */
static void comes_again(bool again)
{
    const struct directory_claim claim = {.rank = 1, .size = 3, .node = 1, .again = again};
    struct directory_job *at;
    uint32_t failed;

    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 1, &at, &failed), 0);
    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        if (failed & 1u << i)
            directory_gather_fail(&d, at, &at->gathers[i], -EHOSTDOWN);
    CU_ASSERT_EQUAL(directory_claim(&d, &job, &claim), 0);
}

/* A process dies between the answers to two ranks. The next process inherits the result: its bytes,
 * where they are few enough, else only the error for ranks that ask for a result that is gone. A
 * later job in the same place has no result. */
static void results_are_inherited(void)
{
    static const struct {
        uint32_t length;
        bool noted, kept;
    } rows[] = {
        {0, true, true},
        {5, true, true},
        {DIRECTORY_LAST_MAX / 512, true, true},
        {DIRECTORY_LAST_MAX / 512 + 1, true, false}, /* 512 ranks: too large */
        {5, false, false},                           /* the process died earlier */
    };
    const struct directory_memory kept = counted_map(&counted);
    static uint8_t data[DIRECTORY_DATA_MAX];

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        const uint32_t size = 512;
        struct directory_part part = {
            .size = size, .sequence = 7, .node = 1, .data = data, .length = rows[row].length};
        struct directory_job *of;
        struct directory_gather *all = NULL;
        const struct directory_gather *last;
        uint8_t got[DIRECTORY_DATA_MAX];
        uint32_t failed;
        int rc = 0;

        directory_init(&d, &kept, NODES, &alone);
        for (uint32_t i = 0; i < size; i++)
            CU_ASSERT_EQUAL(directory_attach(&d, &job, i, size, 1, 0), 0);
        for (part.rank = 0; part.rank < size; part.rank++) {
            memset(data, (int)part.rank, sizeof(data));
            rc = directory_contribute(&d, &job, &part, &of, &all);
        }
        CU_ASSERT_EQUAL_FATAL(rc, 1);
        if (rows[row].noted)
            directory_gather_note(&d, of, all);
        directory_clear(&d);

        directory_init(&d, &kept, NODES, &alone);
        directory_inherit(&d);
        part.rank = 3;
        last = directory_kept(&d, &job, &part, &of);
        CU_ASSERT_EQUAL(last != NULL, rows[row].kept);
        if (last) {
            directory_gather_copy(last, (uint64_t)300 * part.length, got, part.length);
            memset(data, 300 & 0xff, sizeof(data));
            CU_ASSERT_EQUAL(memcmp(got, data, part.length), 0);
        } else {
            rc = directory_contribute(&d, &job, &part, &of, &all);
            CU_ASSERT_EQUAL(rc, rows[row].noted ? -EHOSTDOWN : 0);
        }
        for (uint32_t i = 0; i < size; i++)
            CU_ASSERT_EQUAL(directory_detach(&d, &job, i, 1, &of, &failed), 0);
        CU_ASSERT_EQUAL(directory_attach(&d, &job, 3, size, 1, 0), 0);
        directory_clear(&d);
        directory_init(&d, &kept, NODES, &alone);
        directory_inherit(&d);
        CU_ASSERT_PTR_NULL(directory_kept(&d, &job, &part, &of));
        CU_ASSERT_PTR_NOT_NULL_FATAL(of);
        CU_ASSERT_EQUAL(directory_detach(&d, &job, 3, 1, &of, &failed), 0);
        directory_clear(&d);
        CU_ASSERT_EQUAL(counted.taken, 0);
    }
    counted_unmap(&kept);
}

/* A new process with a rank takes part anew: what the earlier one has given to the first exchange,
 * or got from it, is not its own. Others still get what the earlier one has given to a later
 * exchange. */
static void a_new_life(void)
{
    struct directory_job *at;
    struct directory_gather *g;
    uint8_t all[3];

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, i, 0), 0);
    CU_ASSERT_EQUAL(contribute(1, 0, "a", &at, &g), 0);
    comes_again(false);
    CU_ASSERT_EQUAL(contribute(0, 0, "0", &at, &g), 0);
    CU_ASSERT_EQUAL(contribute(1, 0, "b", &at, &g), 0);
    comes_again(false);
    CU_ASSERT_EQUAL(contribute(1, 0, "c", &at, &g), 0);
    CU_ASSERT_EQUAL_FATAL(contribute(2, 0, "2", &at, &g), 1);
    directory_gather_copy(g, 0, all, 3);
    CU_ASSERT_EQUAL(memcmp(all, "0c2", 3), 0);
    directory_gather_note(&d, at, g);
    directory_gather_keep(&d, at, g);

    CU_ASSERT_TRUE(gets_kept(1, 0));
    comes_again(false);
    CU_ASSERT_FALSE(gets_kept(1, 0));
    CU_ASSERT_EQUAL(contribute(1, 0, "d", &at, &g), 0);
    CU_ASSERT_FALSE(gets_kept(1, 0)); /* the process asks again */
    CU_ASSERT_TRUE(gets_kept(0, 0));

    CU_ASSERT_EQUAL(contribute(0, 4, "0", &at, &g), 0);
    CU_ASSERT_EQUAL(contribute(1, 4, "e", &at, &g), 0);
    comes_again(false);
    CU_ASSERT_EQUAL(contribute(2, 4, "2", &at, &g), 1);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* Completes the exchange 0 of three ranks, and keeps its result. */
static void complete_first(void)
{
    struct directory_job *at;
    struct directory_gather *g;

    CU_ASSERT_EQUAL(contribute(0, 0, "a", &at, &g), 0);
    CU_ASSERT_EQUAL(contribute(1, 0, "b", &at, &g), 0);
    CU_ASSERT_EQUAL_FATAL(contribute(2, 0, "c", &at, &g), 1);
    directory_gather_note(&d, at, g);
    directory_gather_keep(&d, at, g);
}

/* A new process with a rank has contributed to its first exchange, and asks again because that
 * exchange was lost with the home's process, or has failed: the process does not get an earlier
 * process's result, until an exchange with it is completed. */
static void a_new_life_asks_again(void)
{
    static const struct {
        bool restarts; /* the home's process dies; otherwise rank 0 leaves */
        int expected;  /* for the repeated contribution */
    } rows[] = {{true, 0}, {false, -EHOSTDOWN}};
    const struct directory_memory kept = counted_map(&counted);

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct directory_job *at;
        struct directory_gather *g;
        uint32_t failed;

        directory_init(&d, &kept, NODES, &alone);
        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, i, 0), 0);
        complete_first();
        comes_again(false);
        CU_ASSERT_EQUAL(contribute(1, 0, "B", &at, &g), 0);
        if (rows[row].restarts) {
            directory_clear(&d);
            directory_init(&d, &kept, NODES, &alone);
            directory_inherit(&d);
        } else {
            CU_ASSERT_EQUAL(directory_detach(&d, &job, 0, 0, &at, &failed), 0);
            CU_ASSERT_EQUAL(failed, 1u << (g - at->gathers));
            directory_gather_fail(&d, at, g, -EHOSTDOWN);
        }
        CU_ASSERT_FALSE(gets_kept(1, 0));
        CU_ASSERT_EQUAL(contribute(1, 0, "B", &at, &g), rows[row].expected);
        if (rows[row].restarts) {
            CU_ASSERT_TRUE(gets_kept(2, 0)); /* that process took part in the earlier exchange */
            CU_ASSERT_EQUAL(contribute(0, 0, "A", &at, &g), 0);
            CU_ASSERT_EQUAL_FATAL(contribute(2, 0, "C", &at, &g), 1);
            directory_gather_note(&d, at, g);
            directory_clear(&d);
            directory_init(&d, &kept, NODES, &alone);
            directory_inherit(&d);
            CU_ASSERT_TRUE(gets_kept(1, 0)); /* the result is this process's own */
        }
        for (uint32_t i = 0; i < 3; i++)
            directory_detach(&d, &job, i, i, &at, &failed);
        directory_clear(&d);
        CU_ASSERT_EQUAL(counted.taken, 0);
    }
    counted_unmap(&kept);
}

/* A node that was given up comes back with the same process: the exchanges that its rank has missed
 * have failed, and what it has given stays. */
static void the_same_life(void)
{
    struct directory_job *at;
    struct directory_gather *g;

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 3, i, 0), 0);
    CU_ASSERT_EQUAL(contribute(1, 0, "1", &at, &g), 0);
    CU_ASSERT_EQUAL(contribute(0, 1, "0", &at, &g), 0);
    comes_again(true);
    CU_ASSERT_EQUAL(contribute(1, 1, "1", &at, &g), -EHOSTDOWN);
    CU_ASSERT_EQUAL(contribute(1, 0, "1", &at, &g), -EALREADY);
    comes_again(false);
    CU_ASSERT_EQUAL(contribute(1, 1, "1", &at, &g), 0);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

int main(void)
{
    CU_TestInfo tests[] = {{"exchange", exchange},
                           {"contributions refused", contributions_refused},
                           {"missing ranks", missing_ranks},
                           {"giving up", giving_up},
                           {"a failure is remembered", a_failure_is_remembered},
                           {"a rank leaves", a_rank_leaves},
                           {"results are inherited", results_are_inherited},
                           {"a new life", a_new_life},
                           {"a new life asks again", a_new_life_asks_again},
                           {"the same life", the_same_life},
                           CU_TEST_INFO_NULL};

    memory = counted_memory(&counted);
    return suite_run("exchanges", tests);
}
