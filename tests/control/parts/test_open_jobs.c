/* The directory of a home node: open jobs, instances, and the names that ranks publish. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "daemon/control/nodes/job_view.h"
#include "daemon/peering/directory.h"
#include "daemon/peering/names.h"
#include "tests/suite.h"

#define NODES 4u

static int taken; /* number of allocated pieces of memory */
static uint64_t drawn;

static void *take(void *context, size_t size)
{
    taken++;
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    taken--;
    free(memory);
}

static uint64_t draw(void *context)
{
    return drawn++; /* the first value, 0, is not an instance */
}

static void empty(struct directory_table *table, uint32_t job, uint32_t size)
{
    memset(table->places[job], 0, size * sizeof(table->places[0][0]));
}

static struct directory_memory memory = {.take = take, .give = give, .empty = empty, .draw = draw};
static const struct directory_shares alone = {.alone = true};
static struct directory d;
static const struct directory_id job = {.uid = 1000, .job = "open"};

static void begin(void)
{
    drawn = 0;
    memory.table = NULL;
    directory_init(&d, &memory, NODES, &alone);
}

static void begin_with_table(void)
{
    begin();
    memory.table = mmap(NULL, sizeof(*memory.table), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(memory.table, MAP_FAILED);
}

/* Another process takes over with the table. */
static void next_process(void)
{
    directory_clear(&d);
    CU_ASSERT_EQUAL(taken, 0);
    directory_init(&d, &memory, NODES, &alone);
    directory_inherit(&d);
}

static void end(void)
{
    directory_clear(&d);
    CU_ASSERT_EQUAL(taken, 0);
    CU_ASSERT_EQUAL(d.bytes, 0);
    if (memory.table)
        munmap(memory.table, sizeof(*memory.table));
}

static uint32_t join(uint32_t node)
{
    uint32_t rank = UINT32_MAX;

    CU_ASSERT_EQUAL(directory_join(&d, &job, node, 0, &rank), 0);
    return rank;
}

static void leave(uint32_t rank, uint32_t node)
{
    struct directory_job *of;
    uint32_t failed;

    CU_ASSERT_EQUAL(directory_detach(&d, &job, rank, node, &of, &failed), 0);
}

static int claim(uint32_t rank, uint32_t node, uint64_t instance)
{
    return directory_claim(
        &d, &job,
        &(struct directory_claim){
            .rank = rank, .size = DIRECTORY_OPEN, .node = node, .instance = instance});
}

/* Ranks are given in ascending order, and none is given twice while the job lives, also when a rank
 * has left. */
static void ranks_count_up(void)
{
    uint32_t engine, rank;

    begin();
    CU_ASSERT_EQUAL(join(1), 0);
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 1);
    CU_ASSERT_TRUE(directory_is_open(&d, &job));
    CU_ASSERT_EQUAL(join(2), 1);
    leave(0, 1);
    CU_ASSERT_EQUAL(join(1), 2);
    leave(2, 1);
    for (uint32_t i = 3; i < 5000; i++)
        CU_ASSERT_EQUAL_FATAL(join(i % NODES), i);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 4999, &engine), 4999 % NODES);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 2, &engine), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 5000, &engine), -EHOSTUNREACH);
    CU_ASSERT_TRUE(directory_has_left(&d, &job, 2));
    CU_ASSERT_EQUAL(directory_join(&d, &job, NODES, 0, &rank), -EINVAL);
    CU_ASSERT_EQUAL(directory_join(&d, &job, 0, DIRECTORY_ENGINES, &rank), -EINVAL);
    CU_ASSERT_EQUAL(directory_join(&d, &(struct directory_id){1000, ""}, 0, 0, &rank), -EINVAL);
    end();
}

/* An open job's table grows by pages, with the number of ranks given. */
static void memory_grows_with_use(void)
{
    begin();
    (void)join(0);
    CU_ASSERT_EQUAL(d.bytes, 4096);
    for (uint32_t i = 1; i < 1024; i++)
        (void)join(0);
    CU_ASSERT_EQUAL(d.bytes, 4096);
    (void)join(0);
    CU_ASSERT_EQUAL(d.bytes, 8192);
    end();
}

/* When all ranks have been given, no more are, also after one has left. */
static void exhausted(void)
{
    uint32_t rank = 77;

    begin();
    d.ranks_max = 3;
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(join(0), i);
    CU_ASSERT_EQUAL(directory_join(&d, &job, 0, 0, &rank), -ENOSPC);
    leave(1, 0);
    CU_ASSERT_EQUAL(directory_join(&d, &job, 0, 0, &rank), -ENOSPC);
    CU_ASSERT_EQUAL(rank, 77);
    leave(0, 0);
    leave(2, 0); /* the job ends, and another instance begins */
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 0);
    CU_ASSERT_EQUAL(join(0), 0);
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 2);
    end();
}

/* An open job and a fixed one cannot have the same name. An exchange needs a job with a size. */
static void open_or_fixed(void)
{
    const struct directory_id fixed = {.uid = 1000, .job = "fixed"};
    const struct directory_part part = {.rank = 0, .size = 1, .node = 0};
    struct directory_gather *gather;
    struct directory_job *of;
    uint32_t rank;

    begin();
    CU_ASSERT_EQUAL(directory_attach(&d, &fixed, 0, 4, 0, 0), 0);
    CU_ASSERT_FALSE(directory_is_open(&d, &fixed));
    CU_ASSERT_EQUAL(directory_join(&d, &fixed, 0, 0, &rank), -EINVAL);
    CU_ASSERT_EQUAL(directory_attach(&d, &fixed, 0, DIRECTORY_OPEN, 0, 0), -EINVAL);
    (void)join(0);
    CU_ASSERT_EQUAL(directory_attach(&d, &job, 0, 1, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(directory_contribute(&d, &job, &part, &of, &gather), -ENOTSUP);
    CU_ASSERT_PTR_NULL(gather);
    end();
}

/* A node announces its ranks again: ranks of this instance are accepted, others refused. */
static void announced_again(void)
{
    uint32_t engine;

    begin();
    (void)join(1);
    (void)join(2);
    CU_ASSERT_EQUAL(claim(0, 1, 1), 0);
    CU_ASSERT_EQUAL(claim(0, 1, 2), -ESTALE);
    CU_ASSERT_EQUAL(claim(0, 1, 0), -ESTALE);
    CU_ASSERT_EQUAL(claim(0, 3, 1), -EADDRINUSE);
    CU_ASSERT_EQUAL(claim(2, 1, 1), -EINVAL); /* never given */
    CU_ASSERT_EQUAL(claim(DIRECTORY_ANY_RANK, 1, 1), -EINVAL);
    leave(0, 1);
    CU_ASSERT_EQUAL(claim(0, 1, 1), 0); /* had left meanwhile, and is back */
    CU_ASSERT_EQUAL(directory_where(&d, &job, 0, &engine), 1);
    end();
}

/* A home that has lost its table accepts ranks of the earlier instance when their nodes announce
 * them. It gives no new ranks until these have left, because it does not know which were given. */
static void adopted(void)
{
    uint32_t engine, rank;

    begin();
    CU_ASSERT_EQUAL(claim(5, 1, 0), -ESTALE);
    CU_ASSERT_EQUAL(claim(5, 1, 99), 0);
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 99);
    CU_ASSERT_EQUAL(claim(2000, 2, 99), 0);
    CU_ASSERT_EQUAL(claim(7, 2, 98), -ESTALE);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 5, &engine), 1);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 2000, &engine), 2);
    CU_ASSERT_EQUAL(directory_where(&d, &job, 6, &engine), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(directory_join(&d, &job, 0, 0, &rank), -ESTALE);
    leave(5, 1);
    leave(2000, 2);
    CU_ASSERT_EQUAL(join(0), 0);
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 1);
    end();
}

/* The home's next process knows the instance, where each rank is, and which ranks have been
 * given. */
static void inherited(void)
{
    uint32_t engine;

    begin_with_table();
    (void)join(1);
    (void)join(2);
    (void)join(3);
    leave(2, 3); /* the last rank that was given */
    next_process();
    CU_ASSERT_EQUAL(directory_instance(&d, &job), 1);
    CU_ASSERT_TRUE(directory_is_open(&d, &job));
    CU_ASSERT_EQUAL(directory_where(&d, &job, 1, &engine), 2);
    CU_ASSERT_TRUE(directory_has_left(&d, &job, 2));
    CU_ASSERT_EQUAL(d.bytes, 4096);
    CU_ASSERT_EQUAL(join(3), 3);
    for (uint32_t i = 4; i <= 1024; i++)
        (void)join(0);
    next_process();
    CU_ASSERT_EQUAL(d.bytes, 8192);
    CU_ASSERT_EQUAL(join(0), 1025);
    end();
}

/* ---- names ----------------------------------------------------------------------------------- */

static int publish(uint32_t rank, uint32_t node, const char *name, const char *data)
{
    const struct names_item item = {.rank = rank,
                                    .node = node,
                                    .name = name,
                                    .data = (const uint8_t *)data,
                                    .length = (uint32_t)strlen(data)};

    return names_publish(&d, &job, &item);
}

static int unpublish(uint32_t rank, uint32_t node, const char *name)
{
    return names_unpublish(&d, &job,
                           &(struct names_item){.rank = rank, .node = node, .name = name});
}

static bool says(const char *name, const char *data)
{
    const struct directory_published *p = names_find(&d, &job, name);

    if (!p || !data)
        return !p && !data;
    return names_data_length(p) == strlen(data) && memcmp(p->data, data, strlen(data)) == 0;
}

/* A name belongs to its publisher until the publisher withdraws it or leaves. */
static void names_have_owners(void)
{
    static uint8_t large[DIRECTORY_PUBLISHED_DATA + 1];
    char longest[DIRECTORY_PUBLISHED_NAME], longer[DIRECTORY_PUBLISHED_NAME + 1];
    struct names_item item = {.node = 1, .name = "large", .data = large};

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    begin();
    (void)join(1);
    (void)join(2);
    CU_ASSERT_TRUE(says("server", NULL));
    CU_ASSERT_EQUAL(publish(0, 1, "server", "one"), 0);
    CU_ASSERT_TRUE(says("server", "one"));
    CU_ASSERT_EQUAL(publish(1, 2, "server", "two"), -EADDRINUSE);
    CU_ASSERT_EQUAL(unpublish(1, 2, "server"), -ENOENT);
    CU_ASSERT_EQUAL(publish(0, 1, "server", ""), 0); /* replaces the data */
    CU_ASSERT_TRUE(says("server", ""));
    CU_ASSERT_EQUAL(publish(0, 2, "other", "x"), -ESTALE); /* rank 0 lives on node 1 */
    CU_ASSERT_EQUAL(publish(2, 1, "other", "x"), -ESTALE); /* there is no rank 2 */
    CU_ASSERT_EQUAL(publish(0, 1, "", "x"), -EINVAL);
    CU_ASSERT_EQUAL(publish(0, 1, "a name", "x"), -EINVAL);
    CU_ASSERT_EQUAL(publish(0, 1, longer, "x"), -EINVAL);
    CU_ASSERT_EQUAL(publish(0, 1, longest, "x"), 0);
    item.length = sizeof(large);
    CU_ASSERT_EQUAL(names_publish(&d, &job, &item), -EINVAL);
    item.length--;
    CU_ASSERT_EQUAL(names_publish(&d, &job, &item), 0);
    CU_ASSERT_EQUAL(unpublish(0, 1, "large"), 0);
    CU_ASSERT_EQUAL(unpublish(0, 1, "large"), -ENOENT);
    CU_ASSERT_EQUAL(names_count(&d.jobs[0]), 2);
    leave(0, 1);
    CU_ASSERT_TRUE(says("server", NULL));
    CU_ASSERT_EQUAL(names_count(&d.jobs[0]), 0);
    CU_ASSERT_EQUAL(publish(1, 2, "server", "two"), 0);
    end();
}

/* An open job in pwcctl's view: no number of ranks, but its names. */
static void view(void)
{
    char list[JOB_VIEW_RANKS_MAX];
    struct view_job v;

    begin();
    (void)join(1);
    (void)join(2);
    (void)join(2);
    leave(1, 2);
    CU_ASSERT_EQUAL(publish(0, 1, "server", "x"), 0);
    v = job_view(&d.jobs[0], list);
    CU_ASSERT_EQUAL(v.size, DIRECTORY_OPEN);
    CU_ASSERT(v.live == 2 && v.left == 1 && v.names == 1);
    CU_ASSERT_STRING_EQUAL(v.gone, "1");
    end();
}

/* The number of names in a job is bounded, and each is charged to the job's user as long as it
 * exists. */
static void names_are_bounded(void)
{
    char name[16];
    uint64_t before;

    begin();
    (void)join(0);
    CU_ASSERT_EQUAL(publish(0, 0, "first", "x"), 0);
    before = d.bytes;
    for (uint32_t i = 1; i < DIRECTORY_PUBLISHED_MAX; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        CU_ASSERT_EQUAL_FATAL(publish(0, 0, name, "x"), 0);
    }
    CU_ASSERT_EQUAL(d.bytes - before,
                    (DIRECTORY_PUBLISHED_MAX - 1) * sizeof(struct directory_published));
    CU_ASSERT_EQUAL(publish(0, 0, "more", "x"), -ENOSPC);
    for (uint32_t i = 1; i < DIRECTORY_PUBLISHED_MAX; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        CU_ASSERT_EQUAL(unpublish(0, 0, name), 0);
    }
    CU_ASSERT_EQUAL(d.bytes, before);
    d.users[0].bytes = DIRECTORY_BYTES_MAX - 100;
    d.bytes = DIRECTORY_BYTES_MAX - 100;
    CU_ASSERT_EQUAL(publish(0, 0, "more", "x"), -EDQUOT);
    d.users[0].bytes = d.bytes = before;
    end();
}

/* The home's next process has the names of ranks that are still there. */
static void names_are_inherited(void)
{
    begin_with_table();
    (void)join(1);
    (void)join(2);
    CU_ASSERT_EQUAL(publish(0, 1, "kept", "data"), 0);
    CU_ASSERT_EQUAL(publish(1, 2, "gone", "data"), 0);
    CU_ASSERT_EQUAL(publish(1, 2, "torn", "data"), 0);
    atomic_store(&memory.table->published[0][2].state, DIRECTORY_PUBLISHED_DATA + 2);
    next_process();
    CU_ASSERT_TRUE(says("kept", "data"));
    CU_ASSERT_TRUE(says("gone", "data"));
    CU_ASSERT_TRUE(says("torn", NULL));
    CU_ASSERT_EQUAL(publish(1, 2, "kept", "mine"), -EADDRINUSE);
    leave(1, 2);
    next_process();
    CU_ASSERT_TRUE(says("gone", NULL));
    leave(0, 1); /* the job ends; a later one in its place has no names */
    (void)join(1);
    next_process();
    CU_ASSERT_TRUE(says("kept", NULL));
    end();
}

static int wait_for(uint32_t rank, uint32_t node, uint64_t cookie, const char *name)
{
    struct names_waiter waiter = {.rank = rank, .node = node, .cookie = cookie};

    snprintf(waiter.name, sizeof(waiter.name), "%s", name);
    return names_wait(&d, &job, &waiter);
}

/* Each waiter is found once, and no longer after its rank, its node or its question is gone. */
static void waiters(void)
{
    struct names_waiter w;
    uint64_t before;

    begin();
    (void)join(1);
    (void)join(2);
    (void)join(2);
    CU_ASSERT_EQUAL(publish(0, 1, "x", ""), 0);
    before = d.bytes;
    CU_ASSERT_EQUAL(wait_for(0, 2, 1, "a"), -ESTALE);
    CU_ASSERT_EQUAL(wait_for(0, 1, 1, "a"), 0);
    CU_ASSERT_EQUAL(wait_for(0, 1, 1, "a"), 0); /* the same question again */
    CU_ASSERT_EQUAL(wait_for(1, 2, 1, "a"), 0);
    CU_ASSERT_EQUAL(wait_for(1, 2, 2, "b"), 0);
    CU_ASSERT_TRUE(names_next_waiter(&d, &job, "a", &w));
    CU_ASSERT(w.node == 1 && w.cookie == 1);
    CU_ASSERT_TRUE(names_next_waiter(&d, &job, "a", &w));
    CU_ASSERT(w.node == 2 && w.cookie == 1);
    CU_ASSERT_FALSE(names_next_waiter(&d, &job, "a", &w));
    names_waits_no_longer(&d, &job, 2, 2);
    CU_ASSERT_FALSE(names_next_waiter(&d, &job, "b", &w));
    CU_ASSERT_EQUAL(wait_for(1, 2, 3, "c"), 0);
    leave(1, 2);
    CU_ASSERT_FALSE(names_next_waiter(&d, &job, "c", &w));
    CU_ASSERT_EQUAL(wait_for(2, 2, 4, "c"), 0);
    CU_ASSERT_EQUAL(wait_for(0, 1, 4, "c"), 0);
    names_node_waits_no_longer(&d, 2);
    CU_ASSERT_TRUE(names_next_waiter(&d, &job, "c", &w));
    CU_ASSERT_EQUAL(w.node, 1);
    CU_ASSERT_FALSE(names_next_waiter(&d, &job, "c", &w));
    CU_ASSERT_EQUAL(d.bytes, before);
    for (uint32_t i = 0; i < NAMES_WAITERS_MAX; i++)
        CU_ASSERT_EQUAL_FATAL(wait_for(0, 1, 10 + i, "e"), 0);
    CU_ASSERT_EQUAL(wait_for(0, 1, 9, "e"), -ENOSPC);
    end();
}

int main(void)
{
    CU_TestInfo tests[] = {{"ranks count up", ranks_count_up},
                           {"memory grows with use", memory_grows_with_use},
                           {"exhausted", exhausted},
                           {"open or fixed", open_or_fixed},
                           {"announced again", announced_again},
                           {"adopted", adopted},
                           {"inherited", inherited},
                           {"names have owners", names_have_owners},
                           {"view", view},
                           {"names are bounded", names_are_bounded},
                           {"names are inherited", names_are_inherited},
                           {"waiters", waiters},
                           CU_TEST_INFO_NULL};

    return suite_run("open jobs", tests);
}
