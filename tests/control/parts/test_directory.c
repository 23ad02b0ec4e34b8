/* The directory of a home node: ranks that come and go, and shares of users, with hostile
 * arguments. Exchanges: test_exchanges.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/peering/directory.h"
#include "daemon/control/nodes/job_view.h"
#include "tests/control/parts/counted.h"
#include "tests/suite.h"

#define NODES 4u

static struct counted counted = {.refuse_after = -1};
static struct directory_memory memory; /* set by main */
static const struct directory_shares alone = {.alone = true};
static struct directory d;
static const struct directory_id job = {.uid = 1000, .job = "job"};

static void ranks(void)
{
    static char long_name[DIRECTORY_NAME_MAX + 1];
    static const struct {
        const char *name;
        uint32_t uid, rank, size, node, engine;
        int expected;
    } rows[] = {
        {"job", 1000, 0, 4, 0, 0, 0},
        {"job", 1000, 0, 4, 0, 0, 0},           /* the same rank again */
        {"job", 1000, 0, 4, 1, 0, -EADDRINUSE}, /* the rank lives on another node */
        {"job", 1001, 0, 4, 1, 0, 0},           /* another user's job */
        {"job2", 1000, 0, 4, 1, 0, 0},          /* another job */
        {"job", 1000, 1, 5, 1, 0, -EINVAL},     /* another size */
        {"job", 1000, 4, 4, 1, 0, -EINVAL},     /* beyond the size */
        {"job", 1000, UINT32_MAX, 4, 1, 0, -EINVAL},
        {"job", 1000, 1, 4, NODES, 0, -EINVAL}, /* no such node */
        {"job", 1000, 1, 4, 1, DIRECTORY_ENGINES, -EINVAL},
        {"job", 1000, 2, 4, 2, DIRECTORY_ENGINES - 1, 0},
        {"job", 1000, 2, 4, 2, 1, 0}, /* its node has started anew */
        {"job", 1000, 2, 4, 3, 1, -EADDRINUSE},
        {"other", 1000, 0, 0, 0, 0, -EINVAL},
        {"other", 1000, 0, DIRECTORY_RANKS_MAX + 1, 0, 0, -EINVAL},
        {"", 1000, 0, 4, 0, 0, -EINVAL},
        {long_name, 1000, 0, 4, 0, 0, -EINVAL},
        {"big", 1000, DIRECTORY_RANKS_MAX - 1, DIRECTORY_RANKS_MAX, 3, 0, 0},
    };
    uint32_t engine;

    memset(long_name, 'x', DIRECTORY_NAME_MAX);
    directory_init(&d, &memory, NODES, &alone);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct directory_id id = {.uid = rows[i].uid, .job = rows[i].name};

        CU_ASSERT_EQUAL(
            directory_attach(&d, &id, rows[i].rank, rows[i].size, rows[i].node, rows[i].engine),
            rows[i].expected);
        if (rows[i].expected == 0) {
            CU_ASSERT_EQUAL(directory_where(&d, &id, rows[i].rank, &engine), (int)rows[i].node);
            CU_ASSERT_EQUAL(engine, rows[i].engine);
        }
    }
    CU_ASSERT_EQUAL(directory_where(&d, &job, 1, &engine), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 99, &engine), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(counted.taken, 4);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

static uint32_t emptied; /* number of ranks that `empty` was called for */

static void empty(struct directory_table *table, uint32_t job_index, uint32_t size)
{
    memset(table->places[job_index], 0, size * sizeof(table->places[0][0]));
    emptied += size;
}

/* A process takes over with the table that an earlier one has left: which ranks are where, which
 * have left, and nothing of jobs that have ended. */
static void inherited(void)
{
    struct directory_memory kept = counted_map(&counted);
    const struct directory_id ended = {.uid = 1000, .job = "ended"}, next = {.uid = 7, .job = "n"};
    struct directory_job *of;
    uint32_t engine, failed, at = 0, rank = 0;

    kept.empty = empty;
    emptied = 0;
    for (int round = 0; round < 3; round++) {
        directory_init(&d, &kept, NODES, &alone);
        directory_inherit(&d);
        CU_ASSERT_EQUAL(directory_size(&d, &job), round == 0 ? 0 : 4);
        CU_ASSERT_EQUAL(directory_size(&d, &ended), 0);
        if (round == 0) {
            CU_ASSERT_EQUAL(directory_attach(&d, &ended, 0, 3, 1, 0), 0);
            for (uint32_t i = 0; i < 3; i++)
                CU_ASSERT_EQUAL(directory_attach(&d, &job, i, 4, i + 1, i), 0);
            CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 2, &of, &failed), 0);
            CU_ASSERT_EQUAL(directory_detach(&d, &ended, 0, 1, &of, &failed), 0);
            CU_ASSERT_EQUAL(emptied, 3);
        }
        CU_ASSERT_EQUAL(directory_attach(&d, &next, 0, 2, 0, 0), 0);
        CU_ASSERT_EQUAL(directory_where(&d, &job, 0, &engine), 1);
        CU_ASSERT_EQUAL(directory_where(&d, &job, 2, &engine), 3);
        CU_ASSERT_EQUAL(engine, 2);
        CU_ASSERT_TRUE(directory_has_left(&d, &job, 1));
        CU_ASSERT_FALSE(directory_has_left(&d, &job, 3));
        CU_ASSERT_EQUAL(directory_where(&d, &job, 3, &engine), -EHOSTUNREACH);
        CU_ASSERT_EQUAL(d.bytes, (4 + 2) * sizeof(uint32_t));
        directory_clear(&d);
        CU_ASSERT_EQUAL(counted.taken, 0);
    }
    /* Both ranks that are left were on nodes that are not in the list any more. */
    directory_init(&d, &kept, 1, &alone);
    directory_inherit(&d);
    CU_ASSERT_EQUAL(directory_size(&d, &job), 0);
    CU_ASSERT_EQUAL(directory_size(&d, &next), 2);
    CU_ASSERT_EQUAL(emptied, 3 + 4);
    directory_doubt(&d, 0);
    CU_ASSERT_TRUE(directory_next_doubted(&d, 0, &at, &rank));
    directory_clear(&d);
    counted_unmap(&kept);
}

/* The largest job that pwcd is made for: all ranks attach, give a key each, and leave. */
static void ten_thousand_nodes(void)
{
    enum { MANY = 10000, EACH = 128, KEY = 32 };
    const uint32_t size = MANY * EACH;
    uint8_t key[KEY] = {0};
    struct directory_job *of;
    struct directory_gather *all = NULL;
    uint32_t engine, failed;
    int last = 0;

    counted.bytes = 0;
    directory_init(&d, &memory, MANY, &alone);
    for (uint32_t rank = 0; rank < size; rank++)
        if (directory_attach(&d, &job, rank, size, rank / EACH, 0) != 0)
            CU_FAIL_FATAL("a rank cannot attach");
    CU_ASSERT_EQUAL(counted.bytes, (size_t)size * 4);
    CU_ASSERT_EQUAL(directory_where(&d, &job, size - 1, &engine), MANY - 1);
    for (uint32_t rank = 0; rank < size; rank++) {
        struct directory_part part = {
            .rank = rank, .size = size, .node = rank / EACH, .data = key, .length = KEY};

        memcpy(key, &rank, sizeof(rank));
        last = directory_contribute(&d, &job, &part, &of, &all);
        if (last != (rank + 1 == size))
            CU_FAIL_FATAL("a rank cannot give its part");
    }
    directory_gather_copy(all, (uint64_t)(size - 1) * KEY, key, KEY);
    CU_ASSERT_EQUAL(memcmp(key, &(uint32_t){size - 1}, 4), 0);
    printf("\n  1,280,000 ranks: %.1f MiB of the home's memory, with an exchange of keys %.1f\n",
           (double)size * 4 / (1 << 20), (double)d.bytes / (1 << 20));
    directory_gather_close(&d, of, all);
    for (uint32_t rank = 0; rank < size; rank++)
        if (directory_detach(&d, &job, rank, rank / EACH, &of, &failed) != 0)
            CU_FAIL_FATAL("a rank cannot leave");
    CU_ASSERT_EQUAL(counted.taken, 0);
    directory_clear(&d);
}

static void comings_and_goings(void)
{
    struct directory_job *at;
    uint32_t failed;

    directory_init(&d, &memory, NODES, &alone);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 2, 0, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 2, 1, 0), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 0, &at, &failed), -ENOENT); /* not its node */
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 2, 0, &at, &failed), -ENOENT);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 1, &at, &failed), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 1, &at, &failed), -ENOENT);
    /* The rank may come back elsewhere. */
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 2, 3, 0), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 0, 0, &at, &failed), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 1, 3, &at, &failed), 0);
    CU_ASSERT_PTR_NULL(at); /* the job has ended with its last rank */
    CU_ASSERT_EQUAL(counted.taken, 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 7, 0, 0), 0); /* and may have another size */
    directory_clear(&d);
}

static void bounded(void)
{
    char name[16];
    struct directory_id id = {.uid = 1, .job = name};

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i <= DIRECTORY_JOBS_MAX; i++) {
        snprintf(name, sizeof(name), "j%u", i);
        CU_ASSERT_EQUAL(directory_attach(&d, &id, 0, 1, 0, 0),
                        i < DIRECTORY_JOBS_MAX ? 0 : -ENOSPC);
    }
    directory_clear(&d);
    counted.refuse_after = 0;
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 1, 0, 0), -ENOMEM);
    counted.refuse_after = 2; /* the third allocation fails: the second half of a gather */
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 1, 0, 0), 0);
    struct directory_part part = {.size = 1, .data = (const uint8_t *)"x", .length = 1};
    struct directory_job *at;
    struct directory_gather *g;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -ENOMEM);
    counted.refuse_after = -1;
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* Attaches jobs of this user until one is refused. Returns how many were attached. */
static uint32_t fill_jobs(uint32_t uid, uint32_t size, int *rc)
{
    char name[32];
    struct directory_id id = {.uid = uid, .job = name};
    uint32_t count = 0;

    do {
        snprintf(name, sizeof(name), "j%u", count);
        *rc = directory_attach(&d, &id, 0, size, 0, 0);
        count++;
    } while (*rc == 0);
    return count - 1;
}

/* A user may take as many entries as he leaves free. So some entries stay free however many users
 * take what they can. */
static void shares_of_jobs(void)
{
    static const struct directory_shares others = {0}, few = {.jobs = 3};
    uint32_t left = DIRECTORY_JOBS_MAX, failed;
    struct directory_job *at;
    int rc;

    directory_init(&d, &memory, NODES, &others);
    for (uint32_t uid = 1; uid <= 10; uid++) {
        uint32_t got = fill_jobs(uid, 1, &rc);

        CU_ASSERT_EQUAL(rc, -EDQUOT);
        CU_ASSERT_EQUAL(got, left / 2);
        left -= got;
    }
    CU_ASSERT_EQUAL(left, 1);
    /* The entry of a job that has ended does not help another user who has his share already. */
    CU_ASSERT_EQUAL(directory_detach(&d, &(struct directory_id){1, "j7"}, 0, 0, &at, &failed), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &(struct directory_id){2, "new"}, 0, 1, 0, 0), -EDQUOT);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
    CU_ASSERT_EQUAL(d.used + d.bytes, 0);

    directory_init(&d, &memory, NODES, &few);
    CU_ASSERT_EQUAL(fill_jobs(1, 1, &rc), 3);
    CU_ASSERT_EQUAL(rc, -EDQUOT);
    CU_ASSERT_EQUAL(fill_jobs(2, 1, &rc), 3);
    /* With a fixed share, a user whose job has ended may have another one, under a new name. */
    CU_ASSERT_EQUAL(directory_detach(&d, &(struct directory_id){1, "j1"}, 0, 0, &at, &failed), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &(struct directory_id){1, "new"}, 0, 1, 0, 0), 0);
    directory_clear(&d);
}

/* Users share bytes in the same way: the bytes of tables, and the bytes that exchanges gather,
 * which are charged when a rank contributes them. */
static void shares_of_bytes(void)
{
    static const struct directory_shares others = {0};
    static const uint8_t data[DIRECTORY_DATA_MAX];
    struct directory_part part = {.size = 65536, .data = data, .length = 1024};
    struct directory_gather *g;
    struct directory_job *at;
    uint64_t bytes;
    int rc = 0;

    directory_init(&d, &memory, NODES, &others);
    for (uint32_t i = 0; rc == 0 && i < 400; i++) {
        char name[32];
        struct directory_id id = {.uid = 1, .job = name};

        snprintf(name, sizeof(name), "j%u", i);
        rc = directory_attach(&d, &id, 0, part.size, 0, 0);
        for (part.sequence = 0; rc == 0 && part.sequence < DIRECTORY_OPEN_MAX; part.sequence++)
            rc = directory_contribute(&d, &id, &part, &at, &g);
    }
    CU_ASSERT_EQUAL(rc, -EDQUOT);
    CU_ASSERT(d.bytes <= DIRECTORY_BYTES_MAX / 2);
    CU_ASSERT(d.bytes > DIRECTORY_BYTES_MAX / 2 - (1u << 20));
    bytes = d.bytes;
    /* Another user still has room, and what an exchange gathers for that user is counted when it is
     * given. */
    CU_ASSERT_EQUAL(directory_attach(&d, &(struct directory_id){2, "theirs"}, 0, 2, 0, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &(struct directory_id){2, "theirs"}, 1, 2, 0, 0), 0);
    part = (struct directory_part){.size = 2, .data = data, .length = sizeof(data)};
    CU_ASSERT_EQUAL(directory_contribute(&d, &(struct directory_id){2, "theirs"}, &part, &at, &g),
                    0);
    CU_ASSERT(d.bytes - bytes > sizeof(data) && d.bytes - bytes < 2 * sizeof(data));
    part.rank = 1;
    CU_ASSERT_EQUAL(directory_contribute(&d, &(struct directory_id){2, "theirs"}, &part, &at, &g),
                    1);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
    CU_ASSERT_EQUAL(d.used + d.bytes, 0);
}

/* The rows of pwcctl jobs: which ranks an exchange waits for and which are gone, as lists within
 * their bounds. */
static void rows_of_jobs(void)
{
    struct directory_part part = {.size = 200, .sequence = 3};
    char list[JOB_VIEW_RANKS_MAX];
    struct directory_job *at;
    struct directory_gather *g;
    struct view_exchange e;
    struct view_job j;
    uint32_t failed;

    directory_init(&d, &memory, NODES, &alone);
    for (uint32_t i = 0; i < 200; i++)
        CU_ASSERT_EQUAL_FATAL(directory_attach(&d, &job, i, 200, 0, 0), 0);
    for (part.rank = 8; part.rank < 200; part.rank++)
        CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    part.rank = 2;
    CU_ASSERT_EQUAL_FATAL(directory_contribute(&d, &job, &part, &at, &g), 0);
    g->since_ns = 1000;
    e = job_view_exchange(at, g, 1500, list);
    CU_ASSERT_STRING_EQUAL(e.kind, "barrier");
    CU_ASSERT_STRING_EQUAL(e.missing, "0-1, 3-7");
    CU_ASSERT_EQUAL(e.have, 193);
    CU_ASSERT_EQUAL(e.size, 200);
    CU_ASSERT_EQUAL(e.exchange, 3);
    CU_ASSERT_EQUAL(e.age_ns, 500);
    j = job_view(at, list);
    CU_ASSERT_PTR_NULL(j.gone);
    for (uint32_t i = 0; i < 200; i += 2)
        CU_ASSERT_EQUAL(directory_detach(&d, &job, i, 0, &at, &failed), 0);
    j = job_view(at, list);
    CU_ASSERT_EQUAL(j.left, 100);
    CU_ASSERT_EQUAL(j.live, 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(j.gone);
    CU_ASSERT_EQUAL(strncmp(j.gone, "0, 2, 4, 6, ", 12), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(j.gone, " more"));
    CU_ASSERT_TRUE(strlen(j.gone) < JOB_VIEW_RANKS_MAX);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

static void a_node_is_lost(void)
{
    const struct directory_id other = {.uid = 5, .job = "other"};
    uint32_t at_job = 0, at_rank = 0, found = 0, engine;
    struct directory_job *at;
    uint32_t failed;

    directory_init(&d, &memory, NODES, &alone);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 3, 2, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 3, 1, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 2, 3, 2, 3), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &other, 0, 1, 2, 0), 0);
    while (directory_next_rank_of(&d, 2, &at_job, &at_rank)) {
        const struct directory_id id = at_job == 0 ? job : other;

        CU_ASSERT_EQUAL_FATAL(directory_detach(&d, &id, at_rank, 2, &at, &failed), 0);
        found++;
    }
    CU_ASSERT_EQUAL(found, 3);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 1, &engine), 1);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* When a node has a new link, the ranks that it announces again stay, and all others count as left.
 */
static void a_node_comes_back(void)
{
    uint32_t at_job = 0, at_rank = 0, engine, failed;
    struct directory_job *at;

    directory_init(&d, &memory, NODES, &alone);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 4, 2, 5), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 4, 2, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 2, 4, 1, 0), 0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 3, 4, 2, 0), 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 3, 2, &at, &failed), 0);
    CU_ASSERT_FALSE(directory_next_doubted(&d, 2, &at_job, &at_rank));
    directory_doubt(&d, 2);
    /* Ranks of a node whose link is in doubt stay where they are. */
    CU_ASSERT_EQUAL(directory_where(&d, &job, 0, &engine), 2);
    CU_ASSERT_EQUAL(engine, 5);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 4, 3, 0), -EADDRINUSE);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 1, 4, 2, 0), 0);
    at_job = at_rank = 0;
    CU_ASSERT_TRUE(directory_next_doubted(&d, 2, &at_job, &at_rank));
    CU_ASSERT_EQUAL(at_rank, 0);
    CU_ASSERT_EQUAL(directory_detach(&d, &job, 0, 2, &at, &failed), 0);
    CU_ASSERT_FALSE(directory_next_doubted(&d, 2, &at_job, &at_rank));
    CU_ASSERT_EQUAL(directory_where(&d, &job, 1, &engine), 2);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 2, &engine), 1);
    directory_clear(&d);
    CU_ASSERT_EQUAL(counted.taken, 0);
}

/* Jobs are spread over their homes, and every node computes the same home. */
static void homes(void)
{
    uint32_t count[NODES] = {0};
    char name[16];

    for (uint32_t i = 0; i < 4000; i++) {
        struct directory_id id = {.uid = i % 7, .job = name};

        snprintf(name, sizeof(name), "job-%u", i);
        count[directory_home(&id, NODES)]++;
        CU_ASSERT_EQUAL(directory_home(&id, 1), 0);
    }
    for (uint32_t i = 0; i < NODES; i++)
        CU_ASSERT(count[i] > 700);
}

int main(void)
{
    CU_TestInfo tests[] = {{"ranks", ranks},
                           {"inherited", inherited},
                           {"ten thousand nodes of 128 ranks", ten_thousand_nodes},
                           {"comings and goings", comings_and_goings},
                           {"bounded", bounded},
                           {"shares of jobs", shares_of_jobs},
                           {"shares of bytes", shares_of_bytes},
                           {"rows of jobs", rows_of_jobs},
                           {"a node is lost", a_node_is_lost},
                           {"a node comes back", a_node_comes_back},
                           {"homes", homes},
                           CU_TEST_INFO_NULL};

    memory = counted_memory(&counted);
    return suite_run("directory", tests);
}
