/*
 * The structures that hold the engine's state: transactions of the arena, queues over chunks,
 * ledger memory, and peers ordered by time. One thread.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/state/arena.h"
#include "daemon/engine/state/due.h"
#include "daemon/engine/state/heap.h"
#include "daemon/engine/state/queue.h"
#include "daemon/engine/state/ready_list.h"

#define CHUNKS 64u

struct ground {
    struct arena_header header;
    struct chunk_pool_state pool_state;
    uint32_t stack[CHUNKS];
    struct queue queue;
    struct queue other;
    uint64_t numbers[8];
    uint8_t chunks[CHUNKS][CHUNK_BYTES];
};

static struct ground *ground;
static struct arena arena;
static struct chunk_pool pool;

static void ground_open(void)
{
    int r = arena_open(&arena, ground, sizeof(*ground), 42);

    pool = (struct chunk_pool){.arena = &arena,
                               .state = &ground->pool_state,
                               .stack = ground->stack,
                               .chunks = ground->chunks[0]};
    if (r == 1) {
        chunk_pool_init(&pool, CHUNKS);
        ground->header.magic = ARENA_MAGIC;
    }
}

static int ground_new(void)
{
    ground = calloc(1, sizeof(*ground));
    if (!ground)
        return -1;
    ground_open();
    return 0;
}

static int ground_drop(void)
{
    free(ground);
    return 0;
}

static void test_rollback_restores_every_width(void)
{
    uint32_t *n32 = (uint32_t *)&ground->numbers[1];
    uint8_t *n8 = (uint8_t *)&ground->numbers[2];

    memset(ground->numbers, 0x11, sizeof(ground->numbers));
    arena_set64(&arena, &ground->numbers[0], 1);
    arena_set64(&arena, &ground->numbers[0], 2);
    arena_set32(&arena, n32, 3);
    arena_set8(&arena, n8, 4);
    CU_ASSERT_EQUAL(ground->header.undo_count, 4);
    ground_open(); /* as after a crash */
    CU_ASSERT_EQUAL(ground->header.undo_count, 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(ground->numbers[i], UINT64_C(0x1111111111111111));
}

static void test_commit_keeps(void)
{
    arena_set64(&arena, &ground->numbers[0], 7);
    arena_commit(&arena);
    ground_open();
    CU_ASSERT_EQUAL(ground->numbers[0], 7);
}

static void test_another_layout_is_refused(void)
{
    struct arena other;

    CU_ASSERT_EQUAL(arena_open(&other, ground, sizeof(*ground), 43), -EUCLEAN);
    CU_ASSERT_EQUAL(arena_open(&other, ground, sizeof(*ground) - 8, 42), -EUCLEAN);
    ground->header.version++;
    CU_ASSERT_EQUAL(arena_open(&other, ground, sizeof(*ground), 42), -EUCLEAN);
    ground->header.version--;
}

static void test_queue_follows_a_model(void)
{
    static const uint32_t steps[] = {1, 127, 128, 129, 3, 500, 1, 1000, 64};
    uint64_t head = 0, tail = 0;

    queue_init(&ground->queue, 7);
    for (int round = 0; round < 200; round++) {
        uint32_t n = steps[round % 9];

        if (queue_push(&pool, &ground->queue, n, 0) == 0) {
            for (uint64_t i = tail; i < tail + n; i++)
                *(uint64_t *)queue_at(&pool, &ground->queue, i) = i;
            tail += n;
        }
        arena_commit(&arena);
        for (uint64_t i = head; i < tail; i++)
            CU_ASSERT_EQUAL_FATAL(*(uint64_t *)queue_at(&pool, &ground->queue, i), i);
        n = steps[(round * 7 + 3) % 9];
        if (n > tail - head)
            n = (uint32_t)(tail - head);
        queue_pop(&pool, &ground->queue, n);
        arena_commit(&arena);
        head += n;
    }
    queue_clear(&pool, &ground->queue);
    CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS);
}

/* Guards that a queue takes few chunks, wherever head and tail stand in their chunks: one for
 * entries that fit in it, one more for the links if the entries need two, and none for an empty
 * queue. */
static void test_queue_takes_few_chunks(void)
{
    uint64_t head = 0;

    queue_init(&ground->queue, 7);
    memset(ground->chunks, 0xff, sizeof(ground->chunks)); /* no chunk has links */
    for (uint32_t round = 0; round < 300; round++, head += 3) {
        bool two = head % 128 > 125;

        CU_ASSERT_EQUAL(queue_growth(&ground->queue, 3), two ? 3 : 1);
        CU_ASSERT_EQUAL_FATAL(queue_push(&pool, &ground->queue, 3, 0), 0);
        CU_ASSERT_EQUAL(queue_chunks(&ground->queue), two ? 3 : 1);
        CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS - (two ? 3 : 1));
        for (uint64_t i = head; i < head + 3; i++)
            *(uint64_t *)queue_at(&pool, &ground->queue, i) = i;
        arena_commit(&arena);
        queue_pop(&pool, &ground->queue, 2);
        if (round % 2) {
            arena_rollback(&arena);
            CU_ASSERT_EQUAL(*(uint64_t *)queue_at(&pool, &ground->queue, head), head);
            queue_pop(&pool, &ground->queue, 2);
        }
        arena_commit(&arena);
        CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS - 1);
        CU_ASSERT_EQUAL(*(uint64_t *)queue_at(&pool, &ground->queue, head + 2), head + 2);
        queue_pop(&pool, &ground->queue, 1);
        arena_commit(&arena);
        CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS);
    }
}

static void test_queue_rolls_back_whole(void)
{
    queue_init(&ground->queue, 7);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->queue, 300, 0), 0);
    arena_commit(&arena);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->queue, 300, 0), 0);
    queue_pop(&pool, &ground->queue, 10);
    arena_rollback(&arena);
    CU_ASSERT_EQUAL(ground->queue.head, 0);
    CU_ASSERT_EQUAL(ground->queue.tail, 300);
    CU_ASSERT_EQUAL(ground->pool_state.free,
                    CHUNKS - 4); /* three chunks of entries, one of links */
    queue_unpush(&pool, &ground->queue, 300);
    arena_commit(&arena);
    CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS);
}

static void test_queue_leaves_a_share(void)
{
    queue_init(&ground->queue, 7);
    queue_init(&ground->other, 5);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->queue, 128 * (CHUNKS - 1), 1), -ENOBUFS);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->queue, 128 * (CHUNKS - 3), 2), 0);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->queue, 1, 2), -ENOBUFS);
    CU_ASSERT_EQUAL(queue_push(&pool, &ground->other, 1, 0), 0);
    arena_commit(&arena);
    queue_clear(&pool, &ground->queue);
    queue_clear(&pool, &ground->other);
    CU_ASSERT_EQUAL(ground->pool_state.free, CHUNKS);
}

static void test_heap_gives_aligned_pieces(void)
{
    static uint8_t base[16 * 64], used[16];
    struct heap heap = {.base = base, .used = used, .unit = 64, .units = 16};
    uint8_t *a = heap_take(&heap, 64), *b = heap_take(&heap, 256), *c = heap_take(&heap, 128);

    CU_ASSERT_PTR_EQUAL(a, base);
    CU_ASSERT_PTR_EQUAL(b, base + 256);
    CU_ASSERT_PTR_EQUAL(c, base + 128);
    CU_ASSERT_PTR_NULL(heap_take(&heap, 1024));
    heap_give(&heap, a, 64);
    heap_give(&heap, b, 256);
    heap_give(&heap, c, 128);
    CU_ASSERT_PTR_EQUAL(heap_take(&heap, 1024), base);
    heap_give(&heap, base, 1024);
    CU_ASSERT_PTR_EQUAL(heap_take(&heap, 64), base);
    CU_ASSERT_PTR_NULL(heap_take_above(&heap, 512, 8));
    CU_ASSERT_PTR_NOT_NULL(heap_take_above(&heap, 512, 7));
}

/* Finds the first free place by a look at each unit; UINT32_MAX: there is none. */
static uint32_t place_by_units(const uint8_t *used, uint32_t units, uint32_t n)
{
    for (uint32_t at = 0; at + n <= units; at += n) {
        uint32_t i = 0;

        while (i < n && !used[at + i])
            i++;
        if (i == n)
            return at;
    }
    return UINT32_MAX;
}

/* Guards that a piece of any number of units stands at the first multiple of its size that is free.
 */
static void test_heap_gives_the_first_place(void)
{
    static uint8_t base[64], used[64], model[64];
    struct heap heap = {.base = base, .used = used, .unit = 1, .units = 64};
    struct {
        uint32_t at, n;
    } pieces[16] = {{0, 0}};
    uint32_t random = 1, refused = 0;

    for (int i = 0; i < 20000; i++) {
        uint32_t which = (random = random * 1664525u + 1013904223u) >> 28;
        uint32_t n = 1 + (random >> 8) % 23;
        const uint8_t *got;

        if (pieces[which].n > 0) {
            heap_give(&heap, base + pieces[which].at, pieces[which].n);
            memset(model + pieces[which].at, 0, pieces[which].n);
            pieces[which].n = 0;
        }
        pieces[which].at = place_by_units(model, 64, n);
        got = heap_take(&heap, n);
        CU_ASSERT_PTR_EQUAL(got, pieces[which].at == UINT32_MAX ? NULL : base + pieces[which].at);
        refused += got == NULL;
        if (!got)
            continue;
        pieces[which].n = n;
        memset(model + pieces[which].at, 1, n);
    }
    CU_ASSERT_EQUAL(memcmp(used, model, 64), 0);
    CU_ASSERT(refused > 100 && refused < 19000);
}

#define PEERS 37u

/* Returns the earliest time of all peers in the model; UINT64_MAX: there is none. */
static uint64_t earliest(const uint64_t *at)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < PEERS; i++)
        first = at[i] < first ? at[i] : first;
    return first;
}

/* Guards that a later time leaves a peer where it is, that an earlier one brings it forward, and
 * that each peer is taken once. */
static void test_due_follows_a_model(void)
{
    static struct due_entry entries[PEERS];
    static uint32_t places[PEERS];
    struct due due = {.entries = entries, .places = places};
    uint64_t at[PEERS], now = 0;

    memset(at, 0xff, sizeof(at));
    srand(5);
    for (int i = 0; i < 20000; i++) {
        uint32_t peer = (uint32_t)rand() % PEERS;

        if (rand() % 3 > 0) {
            uint64_t time = now + (uint64_t)rand() % 100;

            due_by(&due, peer, time);
            at[peer] = time < at[peer] ? time : at[peer];
        } else {
            uint64_t first = earliest(at);

            now += (uint64_t)rand() % 20;
            if (first <= now) {
                peer = due_take(&due);
                CU_ASSERT_EQUAL_FATAL(at[peer], first);
                at[peer] = UINT64_MAX;
            }
        }
        CU_ASSERT_EQUAL_FATAL(due_next(&due), earliest(at));
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"rollback restores every width", test_rollback_restores_every_width},
        {"commit keeps", test_commit_keeps},
        {"another layout is refused", test_another_layout_is_refused},
        {"a queue follows a model", test_queue_follows_a_model},
        {"a queue takes few chunks", test_queue_takes_few_chunks},
        {"a queue rolls back whole", test_queue_rolls_back_whole},
        {"a queue leaves a share", test_queue_leaves_a_share},
        {"ledger memory is aligned", test_heap_gives_aligned_pieces},
        {"memory is given from the first place", test_heap_gives_the_first_place},
        {"peers by time follow a model", test_due_follows_a_model},
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{"state", ground_new, ground_drop, NULL, NULL, tests},
                             CU_SUITE_INFO_NULL};
    unsigned failed;

    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return 1;
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
