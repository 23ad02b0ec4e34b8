/* The directory of a home node: ranks that come and go, and exchanges, with hostile arguments. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "daemon/peering/directory.h"
#include "daemon/control/nodes/job_view.h"
#include "tests/suite.h"

#define NODES 4u

static int taken; /* number of allocated pieces of memory */
static int refuse_after = -1;

static void *take(void *context, size_t size)
{
    if (refuse_after == 0)
        return NULL;
    if (refuse_after > 0)
        refuse_after--;
    taken++;
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    taken--;
    free(memory);
}

static size_t bytes_taken; /* bytes allocated since it was set to 0 */

static void *take_counted(void *context, size_t size)
{
    bytes_taken += size;
    return take(context, size);
}

static const struct directory_memory memory = {.take = take, .give = give};
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
    CU_ASSERT_EQUAL(taken, 4);
    directory_clear(&d);
    CU_ASSERT_EQUAL(taken, 0);
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
    struct directory_memory kept = {.take = take, .give = give, .empty = empty};
    const struct directory_id ended = {.uid = 1000, .job = "ended"}, next = {.uid = 7, .job = "n"};
    struct directory_job *of;
    uint32_t engine, failed, at = 0, rank = 0;

    kept.table = mmap(NULL, sizeof(*kept.table), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(kept.table, MAP_FAILED);
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
        CU_ASSERT_EQUAL(taken, 0);
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
    munmap(kept.table, sizeof(*kept.table));
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
    struct directory_memory kept = {.take = take, .give = give, .empty = empty};
    static uint8_t data[DIRECTORY_DATA_MAX];

    kept.table = mmap(NULL, sizeof(*kept.table), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(kept.table, MAP_FAILED);
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
        CU_ASSERT_EQUAL(taken, 0);
    }
    munmap(kept.table, sizeof(*kept.table));
}

/* The largest job that pwcd is made for: all ranks attach, give a key each, and leave. */
static void ten_thousand_nodes(void)
{
    enum { MANY = 10000, EACH = 128, KEY = 32 };
    static const struct directory_memory counted = {.take = take_counted, .give = give};
    const uint32_t size = MANY * EACH;
    uint8_t key[KEY] = {0};
    struct directory_job *of;
    struct directory_gather *all = NULL;
    uint32_t engine, failed;
    int last = 0;

    bytes_taken = 0;
    directory_init(&d, &counted, MANY, &alone);
    for (uint32_t rank = 0; rank < size; rank++)
        if (directory_attach(&d, &job, rank, size, rank / EACH, 0) != 0)
            CU_FAIL_FATAL("a rank cannot attach");
    CU_ASSERT_EQUAL(bytes_taken, (size_t)size * 4);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    refuse_after = 0;
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 1, 0, 0), -ENOMEM);
    refuse_after = 2; /* the third allocation fails: the second half of a gather */
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 1, 0, 0), 0);
    struct directory_part part = {.size = 1, .data = (const uint8_t *)"x", .length = 1};
    struct directory_job *at;
    struct directory_gather *g;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -ENOMEM);
    refuse_after = -1;
    directory_clear(&d);
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
    CU_ASSERT_EQUAL(d.used + d.bytes, 0);
}

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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    refuse_after = 0;
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &at, &g), -ENOMEM);
    refuse_after = -1;
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    struct directory_memory kept = {.take = take, .give = give, .empty = empty};

    kept.table = mmap(NULL, sizeof(*kept.table), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(kept.table, MAP_FAILED);
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
        CU_ASSERT_EQUAL(taken, 0);
    }
    munmap(kept.table, sizeof(*kept.table));
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
    CU_ASSERT_EQUAL(taken, 0);
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
                           {"results are inherited", results_are_inherited},
                           {"ten thousand nodes of 128 ranks", ten_thousand_nodes},
                           {"comings and goings", comings_and_goings},
                           {"bounded", bounded},
                           {"shares of jobs", shares_of_jobs},
                           {"shares of bytes", shares_of_bytes},
                           {"exchange", exchange},
                           {"contributions refused", contributions_refused},
                           {"rows of jobs", rows_of_jobs},
                           {"missing ranks", missing_ranks},
                           {"giving up", giving_up},
                           {"a failure is remembered", a_failure_is_remembered},
                           {"a rank leaves", a_rank_leaves},
                           {"a new life", a_new_life},
                           {"a new life asks again", a_new_life_asks_again},
                           {"the same life", the_same_life},
                           {"a node is lost", a_node_is_lost},
                           {"a node comes back", a_node_comes_back},
                           {"homes", homes},
                           CU_TEST_INFO_NULL};

    return suite_run("directory", tests);
}
