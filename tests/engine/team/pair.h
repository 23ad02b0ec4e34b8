/*
 * A pair: an engine over a fabric that only remembers, with a team of two engines. The test is the
 * other engine, the library of this engine's member, and the sender of letters that make no sense.
 * One thread.
 */
#ifndef PWC_TESTS_ENGINE_TEAM_PAIR_H
#define PWC_TESTS_ENGINE_TEAM_PAIR_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/coll/table.h"
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "proto/word_abi.h"
#include "shm_ring/team.h"
#include "tests/count.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

#define NUMBER 77u
#define WINDOW 4u

/* A bench whose client is rank 0 of two; the test is rank 1. */
struct pair {
    struct bench *b;
    void *base;
    struct team_area area;
    uint32_t handle;
};

static inline uint64_t sum_signature(void)
{
    return team_signature(TEAM_ALLREDUCE, WORD_ADD, WORD_U64, 0, 1);
}

static inline int open_team(struct pair *p, uint64_t number, uint32_t window)
{
    static const struct engine_team_participant list[] = {{0, 1}, {1, 1}};
    static const struct engine_team_member local[] = {{0, 0}};
    const struct engine_team_info info = {.number = number,
                                          .size = 2,
                                          .window = window,
                                          .participants = 2,
                                          .members = 1,
                                          .list = list,
                                          .local = local};

    return engine_team_open(p->b->engine, &info, p->base);
}

static inline struct pair new_pair(void)
{
    uint64_t bytes = team_area_bytes(1, WINDOW);
    struct pair p = {.b = unbound_bench(false)};
    int handle;

    p.base = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p.base);
    memset(p.base, 0, bytes);
    team_area_format(p.base, 1, WINDOW);
    CU_ASSERT_EQUAL_FATAL(team_area_view(&p.area, p.base, bytes, 1, WINDOW), 0);
    handle = open_team(&p, NUMBER, WINDOW);
    CU_ASSERT_FATAL(handle >= 0);
    p.handle = (uint32_t)handle;
    return p;
}

static inline void free_pair(struct pair *p)
{
    bench_free(p->b);
    free(p->base);
}

/* Returns the schedule of small calls of two engines. */
static inline uint32_t schedule_of(enum team_kind kind)
{
    static const struct coll_choices by_table;

    return coll_choose(&by_table, kind, 8, 2);
}

struct letter_record {
    struct wire_coll coll;
    uint64_t data;
};

/* The test's letter for instance `sequence`, an allreduce. */
static inline struct letter_record letter(uint64_t sequence, uint64_t value)
{
    return (struct letter_record){
        .coll = {.head = {.words = sizeof(struct letter_record) / 8, .kind = WIRE_COLL},
                 .team = NUMBER,
                 .sequence = sequence,
                 .signature = sum_signature(),
                 .from = 1,
                 .rank = 1,
                 .length = 8,
                 .bytes = 8,
                 .kind = TEAM_ALLREDUCE,
                 .row = WIRE_COLL_LINES,
                 .schedule = schedule_of(TEAM_ALLREDUCE)},
        .data = value};
}

static inline struct submit_record submission(const struct pair *p, uint64_t sequence)
{
    return (struct submit_record){.size = sizeof(struct submit_record),
                                  .kind = SUBMIT_COLLECTIVE,
                                  .code = TEAM_ALLREDUCE,
                                  .remote = p->handle,
                                  .instance = sequence,
                                  .length = 8,
                                  .signature = sum_signature(),
                                  .data_row = TEAM_LINES};
}

static inline void call(struct pair *p, uint64_t sequence, uint64_t value)
{
    struct submit_record r = submission(p, sequence);

    memcpy(team_row(&p->area, sequence)->node.data, &value, 8);
    bench_submit(p->b, &r);
}

static inline void send_letter(struct pair *p, struct letter_record l)
{
    CU_ASSERT_TRUE(bench_send(p->b, &l, sizeof(l)));
}

/* Whether the instance has ended with this sum. */
static inline bool ended(const struct pair *p, uint64_t sequence, uint64_t value)
{
    const struct team_row *row = team_row(&p->area, sequence);

    return team_ended(&p->area, sequence) == 1 && row->result.status == 0 &&
           row->result.length == 8 && memcmp(row->result.data, &value, 8) == 0;
}

static inline int32_t broken(const struct pair *p, struct team_reason *reason)
{
    team_reason(&p->area, reason);
    return reason->status;
}

/* Whether a record of this kind has left. */
static inline bool has_left(const struct pair *p, enum wire_kind kind)
{
    return p->b->fabric.kinds >> kind & 1;
}

/* Checks that the team is broken because a letter or a call of rank `rank` is forged, and that
 * neither the member nor the link is to blame. */
static inline void expect_forged(const struct pair *p, uint64_t sequence, uint32_t rank)
{
    struct team_reason reason;

    CU_ASSERT_EQUAL(broken(p, &reason), -EBADMSG);
    CU_ASSERT(reason.sequence == sequence && reason.rank[0] == rank &&
              reason.rank[1] == UINT32_MAX);
    CU_ASSERT_TRUE(has_left(p, WIRE_BREAK));
    CU_ASSERT_FALSE(p->b->quarantined);
    CU_ASSERT_FALSE(p->b->broken);
}

#endif
