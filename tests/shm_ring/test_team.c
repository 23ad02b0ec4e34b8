/*
 * The team area: members on threads of their own over many laps, sleepers, and wrong values in its
 * words.
 */
#include "shm_ring/team.h"
#include "shm_ring/mapping.h"
#include "tests/suite.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 3, WINDOW = 4, INSTANCES = 30000 };

struct shared_area {
    struct mapping mapping;
    struct team_area area;
};

static void open_area(struct shared_area *s, uint32_t members, uint32_t window)
{
    CU_ASSERT_EQUAL_FATAL(
        mapping_create(&s->mapping, "test-area", team_area_bytes(members, window)), 0);
    team_area_format(s->mapping.base, members, window);
    CU_ASSERT_EQUAL_FATAL(
        team_area_view(&s->area, s->mapping.base, s->mapping.size, members, window), 0);
}

/* ---- formats -------------------------------------------------------------------------------- */

static void views(void)
{
    static const uint32_t bad[][2] = {{0, 64},   {1025, 64}, {4, 0},
                                      {4, 8192}, {4, 48},    {UINT32_MAX, 1}};
    struct shared_area s;
    struct team_area a;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CU_ASSERT_EQUAL(team_area_bytes(bad[i][0], bad[i][1]), 0);
    CU_ASSERT_EQUAL(team_area_bytes(1024, 4096) % 4096, 0);
    open_area(&s, 5, 8);
    CU_ASSERT_EQUAL(team_area_view(&a, s.mapping.base, s.mapping.size, 4, 8), -EPROTO);
    CU_ASSERT_EQUAL(team_area_view(&a, s.mapping.base, s.mapping.size, 5, 16), -EPROTO);
    CU_ASSERT_EQUAL(team_area_view(&a, s.mapping.base, s.mapping.size, 5, 7), -EPROTO);
    CU_ASSERT_EQUAL(team_area_view(&a, s.mapping.base, team_area_bytes(5, 8) - 1, 5, 8), -EPROTO);
    s.area.shared->magic++;
    CU_ASSERT_EQUAL(team_area_view(&a, s.mapping.base, s.mapping.size, 5, 8), -EPROTO);
    /* The last data row ends within the mapping. */
    CU_ASSERT_TRUE((uint8_t *)(s.area.data + TEAM_DATA_ROWS) <=
                   (uint8_t *)s.mapping.base + s.mapping.size);
    CU_ASSERT_TRUE((uint8_t *)&team_row(&s.area, 7)->lines[5] <= (uint8_t *)s.area.data_counts);
    mapping_destroy(&s.mapping);
}

/* Which way a call takes, for kinds, lengths and members around each threshold. */
static void ways(void)
{
    static const struct {
        uint8_t kind;
        uint64_t length;
        uint32_t size, fullest;
        enum team_way way;
    } table[] = {
        {TEAM_BARRIER, 0, 1000000, 1024, TEAM_BY_LINES},
        {TEAM_BCAST, 40, 9, 9, TEAM_BY_LINES},
        {TEAM_BCAST, 41, 9, 9, TEAM_BY_DATA},
        {TEAM_BCAST, 126976, 9, 1024, TEAM_BY_DATA},
        {TEAM_BCAST, 126977, 9, 1, TEAM_LARGE},
        {TEAM_SCAN, 63488, 9, 1, TEAM_BY_DATA},
        {TEAM_SCAN, 63489, 9, 1, TEAM_LARGE},
        {TEAM_EXSCAN, 63489, 9, 1, TEAM_LARGE},
        {TEAM_ALLREDUCE, 126976, 2, 1, TEAM_BY_DATA},
        {TEAM_ALLREDUCE, 126977, 2, 1, TEAM_LARGE},
        {TEAM_ALLREDUCE, 40, 1000, 1000, TEAM_BY_LINES},
        {TEAM_ALLREDUCE, 7936, 16, 16, TEAM_BY_DATA},
        {TEAM_ALLREDUCE, 7936, 17, 17, TEAM_LARGE},
        {TEAM_ALLREDUCE, 64, 1024, 1024, TEAM_BY_DATA},
        {TEAM_ALLREDUCE, 65, 1024, 1024, TEAM_LARGE},
        {TEAM_ALLGATHER, 8, 5, 1, TEAM_BY_LINES},
        {TEAM_ALLGATHER, 8, 6, 1, TEAM_BY_DATA},
        {TEAM_ALLGATHER, 4096, 31, 1, TEAM_BY_DATA},
        {TEAM_ALLGATHER, 4096, 32, 1, TEAM_LARGE},
        {TEAM_GATHER, 0, 100, 10, TEAM_BY_LINES},
        {TEAM_ALLTOALL, 8, 2, 2, TEAM_BY_LINES},
        {TEAM_ALLTOALL, 8, 3, 2, TEAM_BY_DATA},
        {TEAM_ALLTOALL, 1984, 8, 8, TEAM_BY_DATA},
        {TEAM_ALLTOALL, 1985, 8, 8, TEAM_LARGE},
        {TEAM_REDUCE_SCATTER, 8, 5, 5, TEAM_BY_LINES},
        {TEAM_REDUCE_SCATTER, 8, 6, 5, TEAM_BY_DATA},
        {TEAM_SCATTER, 3968, 32, 32, TEAM_BY_DATA},
        {TEAM_SCATTER, 3969, 32, 32, TEAM_LARGE},
        {TEAM_SCATTER, UINT64_MAX, 2, 1, TEAM_LARGE},
        {TEAM_ALLTOALLV, 0, 2, 1, TEAM_LARGE},
        {TEAM_GATHERV, 8, 2, 1, TEAM_LARGE},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        CU_ASSERT_EQUAL(team_way((enum team_kind)table[i].kind, table[i].length, table[i].size,
                                 table[i].fullest),
                        table[i].way);
    CU_ASSERT_EQUAL(team_small_max(1), 126976);
    CU_ASSERT_EQUAL(team_small_max(16), 7936);
    CU_ASSERT_EQUAL(team_small_max(17), 7424);
    CU_ASSERT_EQUAL(team_small_max(1024), 64);
}

static void signatures(void)
{
    uint64_t s = team_signature(TEAM_REDUCE, 15, 14, TEAM_SIZE_MAX - 1, 0x7fff);

    CU_ASSERT_EQUAL(team_signature_kind(s), TEAM_REDUCE);
    CU_ASSERT_EQUAL(team_signature_op(s), 15);
    CU_ASSERT_EQUAL(team_signature_type(s), 14);
    CU_ASSERT_EQUAL(team_signature_root(s), TEAM_SIZE_MAX - 1);
    CU_ASSERT_EQUAL(team_signature_count(s), 0x7fff);
    CU_ASSERT_TRUE(team_signature_count(team_signature(TEAM_BCAST, 0, 0, 0, 0x8000)) & 0x8000);
    CU_ASSERT_NOT_EQUAL(team_signature(TEAM_BCAST, 0, 0, 0, 100000),
                        team_signature(TEAM_BCAST, 0, 0, 0, 100001));
}

/* ---- one thread: counts --------------------------------------------------------------------- */

static void laps(void)
{
    struct shared_area s;
    struct team_area *a = &s.area;

    open_area(&s, 2, 2);
    for (uint64_t i = 0; i < 9; i++) {
        CU_ASSERT_EQUAL(team_row_room(a, i), 0);
        CU_ASSERT_EQUAL(team_data_room(a, i, i >= 8 ? i - 8 : 0), 0);
        CU_ASSERT_EQUAL(team_arrive(a, i), 0);
        CU_ASSERT_EQUAL(team_ended(a, i), 0);
        CU_ASSERT_EQUAL(team_row_room(a, i + 2), -EAGAIN);
        CU_ASSERT_EQUAL(team_arrive(a, i), 1);
        team_end(a, i, 0, 0);
        CU_ASSERT_EQUAL(team_ended(a, i), 1);
        CU_ASSERT_FALSE(team_take(a, i));
        CU_ASSERT_FALSE(team_take_data(a, i));
        CU_ASSERT_EQUAL(team_row_room(a, i + 2), -EAGAIN);
        CU_ASSERT_EQUAL(team_data_room(a, i + 8, i), -EAGAIN);
        CU_ASSERT_TRUE(team_take(a, i));
        CU_ASSERT_TRUE(team_take_data(a, i));
        CU_ASSERT_EQUAL(team_row_room(a, i + 2), 0);
        CU_ASSERT_EQUAL(team_ended(a, i + 2), 0);
    }
    mapping_destroy(&s.mapping);
}

/* All members have taken the result, but the instance is not ended yet: the row is not free,
 * because the member that ends the instance still reads it. */
static void taken_before_the_end(void)
{
    struct shared_area s;

    open_area(&s, 1, 1);
    CU_ASSERT_EQUAL(team_arrive(&s.area, 0), 1);
    (void)team_take(&s.area, 0);
    for (unsigned i = 0; i < TEAM_DATA_ROWS; i++)
        (void)team_take_data(&s.area, i);
    CU_ASSERT_EQUAL(team_row_room(&s.area, 1), -EAGAIN);
    CU_ASSERT_EQUAL(team_data_room(&s.area, TEAM_DATA_ROWS, 0), -EAGAIN);
    team_end(&s.area, 0, 0, 0);
    CU_ASSERT_EQUAL(team_row_room(&s.area, 1), 0);
    CU_ASSERT_EQUAL(team_data_room(&s.area, TEAM_DATA_ROWS, 0), 0);
    mapping_destroy(&s.mapping);
}

static void words_that_make_no_sense(void)
{
    static const uint64_t counts[] = {7, 100, UINT64_MAX, UINT64_C(1) << 63};
    struct shared_area s;
    struct team_row *row;
    uint32_t member = 9;
    uint64_t other = 9;

    open_area(&s, 3, 2);
    row = team_row(&s.area, 2);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        atomic_store(&row->counts.taken, counts[i]);
        CU_ASSERT_EQUAL(team_row_room(&s.area, 2), -EPROTO);
        atomic_store(&s.area.data_counts[1].taken, counts[i]);
        CU_ASSERT_EQUAL(team_data_room(&s.area, 9, 0), -EPROTO);
        atomic_store(&row->counts.arrived, counts[i]);
        CU_ASSERT_EQUAL(team_arrive(&s.area, 2), -EPROTO);
        atomic_store(&row->result.done, counts[i]);
        CU_ASSERT_EQUAL(team_ended(&s.area, 2), -EPROTO);
    }
    atomic_store(&row->counts.arrived, 2);
    CU_ASSERT_EQUAL(team_arrive(&s.area, 2), -EPROTO); /* the count is of the lap before */
    for (uint32_t m = 0; m < 3; m++)
        team_line_write(&s.area, 2, m, 77, NULL, 0);
    CU_ASSERT_EQUAL(team_compare(&s.area, 2, 77, &member, &other), 0);
    row->lines[1].signature = 78;
    CU_ASSERT_EQUAL(team_compare(&s.area, 2, 77, &member, &other), -EBADMSG);
    CU_ASSERT_EQUAL(member, 1);
    CU_ASSERT_EQUAL(other, 78);
    atomic_store(&row->lines[0].sequence, 2);
    CU_ASSERT_EQUAL(team_compare(&s.area, 2, 77, &member, &other), -EPROTO);
    mapping_destroy(&s.mapping);
}

static void broken(void)
{
    const struct team_reason why = {-EBADMSG, {3, 4}, 17, {5, 6}};
    struct team_reason got;
    struct shared_area s;

    open_area(&s, 3, 2);
    CU_ASSERT_FALSE(team_is_broken(&s.area));
    team_break(&s.area, &why);
    CU_ASSERT_TRUE(team_is_broken(&s.area));
    team_reason(&s.area, &got);
    CU_ASSERT_EQUAL(got.status, -EBADMSG);
    CU_ASSERT_EQUAL(got.rank[0], 3);
    CU_ASSERT_EQUAL(got.rank[1], 4);
    CU_ASSERT_EQUAL(got.sequence, 17);
    CU_ASSERT_EQUAL(got.signature[0], 5);
    CU_ASSERT_EQUAL(got.signature[1], 6);
    atomic_store(&s.area.shared->broken.status, 1);
    team_reason(&s.area, &got);
    CU_ASSERT_EQUAL(got.status, -EPROTO);
    mapping_destroy(&s.mapping);
}

static void sleeping_bits(void)
{
    struct shared_area s;

    open_area(&s, 130, 1);
    CU_ASSERT_FALSE(team_others_sleep(&s.area, 0));
    for (uint32_t m = 0; m < 130; m += 43) {
        team_sleep(&s.area, m);
        CU_ASSERT_FALSE(team_others_sleep(&s.area, m));
        CU_ASSERT_TRUE(team_others_sleep(&s.area, m + 1 < 130 ? m + 1 : 0));
        CU_ASSERT_EQUAL(team_take_sleepers(&s.area, m / 64), UINT64_C(1) << m % 64);
        CU_ASSERT_EQUAL(team_take_sleepers(&s.area, m / 64), 0);
        team_sleep(&s.area, m);
        team_awake(&s.area, m);
        CU_ASSERT_FALSE(team_others_sleep(&s.area, 129 - m));
    }
    mapping_destroy(&s.mapping);
}

/* ---- threads -------------------------------------------------------------------------------- */

struct member {
    struct team_area area;
    uint32_t me;
    uint64_t wrong;
};

/* The input of member `m` to an instance. */
static uint64_t gives(uint32_t m, uint64_t sequence)
{
    return (m + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ sequence;
}

static void combine(const struct member *me, uint64_t sequence)
{
    struct team_row *row = team_row(&me->area, sequence);
    uint64_t sum = 0, one;

    for (uint32_t m = 0; m < MEMBERS; m++) {
        memcpy(&one, row->lines[m].data, 8);
        sum += one;
        memcpy(&one, team_data(&me->area, sequence)->inputs + m * 64, 8);
        sum += one;
    }
    memcpy(row->result.data, &sum, 8);
    team_end(&me->area, sequence, 0, 8);
}

static void call(struct member *me, uint64_t sequence)
{
    uint64_t mine = gives(me->me, sequence);
    uint32_t other;
    uint64_t signature;

    while (team_row_room(&me->area, sequence) != 0 ||
           team_data_room(&me->area, sequence,
                          sequence >= TEAM_DATA_ROWS ? sequence - TEAM_DATA_ROWS : 0) != 0)
        sched_yield();
    team_line_write(&me->area, sequence, me->me, 5, &mine, 8);
    memcpy(team_data(&me->area, sequence)->inputs + me->me * 64, &mine, 8);
    if (team_arrive(&me->area, sequence) != 1)
        return;
    if (team_compare(&me->area, sequence, 5, &other, &signature) != 0)
        me->wrong++;
    combine(me, sequence);
}

static void take(struct member *me, uint64_t sequence)
{
    uint64_t wanted = 0, got;

    while (team_ended(&me->area, sequence) != 1)
        sched_yield();
    memcpy(&got, team_row(&me->area, sequence)->result.data, 8);
    (void)team_take_data(&me->area, sequence);
    (void)team_take(&me->area, sequence);
    for (uint32_t m = 0; m < MEMBERS; m++)
        wanted += 2 * gives(m, sequence);
    me->wrong += got != wanted;
}

/* A member's thread, which runs ahead of the others by as many calls as its number. */
static void *run_member(void *argument)
{
    struct member *me = argument;
    uint64_t ahead = me->me, taken = 0;

    for (uint64_t s = 0; s < INSTANCES; s++) {
        call(me, s);
        while (s - taken >= ahead && taken <= s)
            take(me, taken++);
    }
    while (taken < INSTANCES)
        take(me, taken++);
    return NULL;
}

static void threads(void)
{
    struct member members[MEMBERS];
    pthread_t threads[MEMBERS];
    struct shared_area s;

    open_area(&s, MEMBERS, WINDOW);
    for (uint32_t m = 0; m < MEMBERS; m++) {
        members[m] = (struct member){.area = s.area, .me = m};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[m], NULL, run_member, &members[m]), 0);
    }
    for (uint32_t m = 0; m < MEMBERS; m++) {
        pthread_join(threads[m], NULL);
        CU_ASSERT_EQUAL(members[m].wrong, 0);
    }
    mapping_destroy(&s.mapping);
}

int main(void)
{
    CU_TestInfo tests[] = {{"views", views},
                           {"ways", ways},
                           {"signatures", signatures},
                           {"laps", laps},
                           {"taken before the end", taken_before_the_end},
                           {"words that make no sense", words_that_make_no_sense},
                           {"broken", broken},
                           {"sleeping bits", sleeping_bits},
                           {"threads", threads},
                           CU_TEST_INFO_NULL};

    return suite_run("team", tests);
}
