/*
 * Teams in the library, over engines of the test's own: how many calls may be under way, how their
 * ends are reported, sleepers, and teams that break. Areas that make no sense: test_team_words.c.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/memory/window.h"
#include "clientlib/teams/teams.h"
#include "tests/clientlib/teams/team_hall.h"
#include "tests/suite.h"

enum { WINDOW = 16 };

static unsigned gave_way; /* how often a call gave the processor to the daemon */

void __real_give_way(struct pwc_ctx *ctx);
void __wrap_give_way(struct pwc_ctx *ctx);
void __wrap_give_way(struct pwc_ctx *ctx)
{
    gave_way++;
    __real_give_way(ctx);
}

/* The first of many calls gives the processor to the daemon, so that its letters leave before the
 * program computes. The calls behind it wait for it anyway. */
static void first_of_many(void)
{
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, WINDOW);
    struct pwc_event event;

    for (unsigned lap = 1; lap <= 2; lap++) {
        gave_way = 0;
        CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, 0), PWC_CID_NONE, 0), 0);
        CU_ASSERT_EQUAL(gave_way, 1);
        CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, 0), PWC_CID_NONE, 0), 0);
        CU_ASSERT_EQUAL(gave_way, 1);
        for (int i = 0; i < 2; i++)
            CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, 1), PWC_CID_NONE, 0), 0);
        hall_run(h);
        for (uint32_t rank = 0; rank < 2; rank++)
            for (int i = 0; i < 2; i++)
                CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 1);
    }
    hall_free(h);
}

/* As many calls as the window allows are under way, and they end in the order of calls. */
static void window(uint32_t engines)
{
    struct hall *h = hall_new(4, engines, HALL_BLOCKS, WINDOW);
    uint64_t in[4], out[4][WINDOW];
    struct pwc_event event;

    for (uint32_t lap = 0; lap < 5; lap++) {
        for (uint32_t rank = 0; rank < 4; rank++) {
            in[rank] = rank + lap;
            for (uint64_t i = 0; i < WINDOW; i++) {
                CU_ASSERT_EQUAL_FATAL(
                    hall_sum(h, rank, &in[rank], &out[rank][i], 1, pwc_cid_u64(100 + i)), 0);
                in[rank] *= 3; /* the input may be used again */
            }
            if (engines > 1 ||
                rank < 3) /* where the last to come makes an end, its calls are over */
                CU_ASSERT_EQUAL(hall_sum(h, rank, &in[rank], &out[rank][0], 1, PWC_CID_NONE),
                                -EAGAIN);
        }
        hall_run(h);
        for (uint32_t rank = 0; rank < 4; rank++) {
            uint64_t wanted = 6 + 4 * lap;

            for (uint64_t i = 0; i < WINDOW; i++, wanted *= 3) {
                CU_ASSERT_EQUAL_FATAL(hall_probe(h, rank, &event), 1);
                CU_ASSERT_EQUAL(event.id, 100 + i);
                CU_ASSERT_EQUAL(event.length, 8);
                CU_ASSERT_EQUAL(event.peer, rank);
                CU_ASSERT_EQUAL(out[rank][i], wanted);
            }
            CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 0);
        }
    }
    hall_free(h);
}

static void windows(void)
{
    window(1);
    window(2);
    window(4);
}

/* Takes the ends of the calls from..to - 1 at all three ranks, in order. */
static void take_ends(struct hall *h, uint64_t out[3][WINDOW][10], uint64_t from, uint64_t to)
{
    struct pwc_event event;

    hall_run(h);
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint64_t i = from; i < to; i++) {
            CU_ASSERT_EQUAL_FATAL(hall_probe(h, rank, &event), 1);
            CU_ASSERT_EQUAL(event.id, i);
            CU_ASSERT_EQUAL(out[rank][i][4], 15);
        }
}

/* Eight calls with more than 40 bytes may be under way. A ninth waits for its turn, and a short
 * call waits behind it. */
static void data_rows(uint32_t engines)
{
    struct hall *h = hall_new(3, engines, HALL_BLOCKS, WINDOW);
    uint64_t in[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static uint64_t out[3][WINDOW][10];

    for (uint64_t lap = 1; lap <= 4; lap++) {
        memset(out, 0, sizeof(out));
        for (uint32_t rank = 0; rank < 3; rank++) {
            for (uint64_t i = 0; i <= TEAM_DATA_ROWS; i++)
                CU_ASSERT_EQUAL_FATAL(hall_sum(h, rank, in, out[rank][i], 10, pwc_cid_u64(i)), 0);
            CU_ASSERT_EQUAL(hall_sum(h, rank, in, out[rank][TEAM_DATA_ROWS + 1], 5,
                                     pwc_cid_u64(TEAM_DATA_ROWS + 1)),
                            0);
        }
        CU_ASSERT_EQUAL(hall_team(h, 0)->begun, lap * (TEAM_DATA_ROWS + 2) - 2);
        take_ends(h, out, 0, TEAM_DATA_ROWS);
        for (uint32_t rank = 0; rank < 3; rank++) /* the others' rows are free now */
            team_progress(hall_team(h, rank));
        take_ends(h, out, TEAM_DATA_ROWS, TEAM_DATA_ROWS + 2);
    }
    hall_free(h);
}

static void data_rows_in_turn(void)
{
    data_rows(1);
    data_rows(3);
}

/* As long as an engine has not taken its members' inputs, no further call may overwrite these. */
static void givers_wait_for_the_engine(void)
{
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, WINDOW);
    static uint64_t in[20];
    pwc_team *giver = hall_team(h, 1);

    for (unsigned i = 0; i < TEAM_DATA_ROWS; i++)
        CU_ASSERT_EQUAL(
            pwc_team_reduce(giver, in, NULL, 20, PWC_U64, PWC_ADD, 0, PWC_CID_NONE, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(
        pwc_team_reduce(giver, in, NULL, 20, PWC_U64, PWC_ADD, 0, PWC_CID_NONE, PWC_NO_LCE), 0);
    for (unsigned i = 1; i < WINDOW; i++)
        CU_ASSERT_EQUAL(
            pwc_team_reduce(giver, in, NULL, 1, PWC_U64, PWC_ADD, 0, PWC_CID_NONE, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(giver->begun, TEAM_DATA_ROWS);
    CU_ASSERT_FALSE(teams_await_members(giver->ctx)); /* only the engine makes room */
    CU_ASSERT_EQUAL(
        pwc_team_reduce(giver, in, NULL, 1, PWC_U64, PWC_ADD, 0, PWC_CID_NONE, PWC_NO_LCE),
        -EAGAIN);
    hall_free(h);
}

/* A call ends with an event whose id has many bytes, without an event, or with a request. */
static void ends(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    uint8_t long_id[PWC_CID_MAX];
    uint64_t in = 4, out[2] = {0, 0};
    struct pwc_status status;
    struct pwc_event event;
    pwc_request *r;

    memset(long_id, 9, sizeof(long_id));
    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, out, 1, pwc_cid_bytes(long_id, sizeof(long_id))), 0);
    memset(long_id, 0, sizeof(long_id));
    CU_ASSERT_EQUAL(pwc_team_allreduce(hall_team(h, 1), &in, out + 1, 1, PWC_U64, PWC_ADD,
                                       PWC_CID_NONE, PWC_NO_LCE),
                    0);
    CU_ASSERT_EQUAL(out[1], 8);
    CU_ASSERT_EQUAL(hall_probe(h, 1, &event), 0);
    CU_ASSERT_EQUAL_FATAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL_FATAL(event.id_size, PWC_CID_MAX);
    CU_ASSERT_EQUAL(((const uint8_t *)event.data)[PWC_CID_MAX - 1], 9);

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(h->members[0].ctx, &r), 0);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(hall_sum(h, 0, &in, out, 1, pwc_cid_request(r)), 0);
    CU_ASSERT_EQUAL(pwc_test(r, &status), 0);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(hall_sum(h, 1, &in, out + 1, 1, pwc_cid_u64(i)), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_test(r, &status), 1);
    CU_ASSERT_EQUAL(status.count, 3);
    CU_ASSERT_EQUAL(status.status, 0);
    CU_ASSERT_EQUAL(status.bytes, 8);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    /* A request of another context is refused. */
    CU_ASSERT_EQUAL_FATAL(pwc_request_create(h->members[0].ctx, &r), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, out, 1, pwc_cid_request(r)), -EINVAL);
    hall_free(h);
}

/* A persistent collective makes the same call at each start, and cannot be cancelled. */
static void persistent(void)
{
    struct hall *h = hall_new(3, 1, HALL_BLOCKS, WINDOW);
    uint64_t in[3], out[3];
    pwc_request *r[3];
    struct pwc_event event;
    struct pwc_status status;

    for (uint32_t rank = 0; rank < 3; rank++)
        CU_ASSERT_EQUAL_FATAL(
            pwc_team_allreduce_init(hall_team(h, rank), &in[rank], &out[rank], 1, PWC_U64, PWC_MAX,
                                    rank == 2 ? pwc_cid_u64(77) : PWC_CID_NONE, &r[rank]),
            0);
    for (uint32_t lap = 0; lap < 3 * WINDOW; lap++) {
        for (uint32_t rank = 0; rank < 3; rank++) {
            in[rank] = lap * 10 + rank;
            CU_ASSERT_EQUAL(pwc_start(r[rank]), 0);
        }
        CU_ASSERT_EQUAL(pwc_start(r[0]), -EBUSY);
        CU_ASSERT_EQUAL(pwc_cancel(r[0]), -EALREADY);
        CU_ASSERT_EQUAL(pwc_request_free(r[0]), -EBUSY);
        for (uint32_t rank = 0; rank < 3; rank++) {
            CU_ASSERT_EQUAL_FATAL(pwc_request_wait(r[rank], &status, 1000), 1);
            CU_ASSERT_EQUAL(status.count, 1);
            CU_ASSERT_EQUAL(status.bytes, 8);
            CU_ASSERT_EQUAL(out[rank], lap * 10 + 2);
        }
        CU_ASSERT_EQUAL_FATAL(hall_probe(h, 2, &event), 1);
        CU_ASSERT_EQUAL(event.op, PWC_OP_REQUEST);
        CU_ASSERT_EQUAL(event.id, 77);
        CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 0);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(pwc_team_free(hall_team(h, rank)), -EBUSY);
        CU_ASSERT_TRUE(hall_text_has(h, rank, "persistent"));
        CU_ASSERT_EQUAL(pwc_request_free(r[rank]), 0);
    }
    hall_free(h);
}

/* The function x -> a x + b. To chain two of them is an operation that is not commutative. */
struct line {
    uint64_t a, b;
};

static void follow(void *into, const void *from, size_t count, void *arg)
{
    struct line *f = into;
    const struct line *g = from;

    for (size_t i = 0; i < count; i++)
        f[i] = (struct line){g[i].a * f[i].a, g[i].a * f[i].b + g[i].b};
    ++*(unsigned *)arg;
}

static void own_operation(uint32_t engines, enum hall_layout layout)
{
    struct hall *h = hall_new(6, engines, layout, WINDOW);
    struct line in[6][3], out[6][3], wanted[3];
    struct pwc_event event;
    unsigned runs = 0;

    for (uint32_t rank = 0; rank < 6; rank++)
        for (unsigned i = 0; i < 3; i++)
            in[rank][i] = (struct line){rank + 2, rank * rank + i};
    memcpy(wanted, in[0], sizeof(wanted));
    for (uint32_t rank = 1; rank < 6; rank++)
        follow(wanted, in[rank], 3, &runs);
    runs = 0;
    for (uint32_t rank = 6; rank-- > 0;)
        CU_ASSERT_EQUAL(pwc_team_allreduce_user(hall_team(h, rank), in[rank], out[rank], 3,
                                                sizeof(struct line), follow, &runs, pwc_cid_u64(1),
                                                0),
                        0);
    hall_run(h);
    for (uint32_t rank = 0; rank < 6; rank++) {
        CU_ASSERT_EQUAL_FATAL(hall_probe(h, rank, &event), 1);
        CU_ASSERT_EQUAL(memcmp(out[rank], wanted, sizeof(wanted)), 0);
    }
    CU_ASSERT_EQUAL(runs, 6 * 5);
    CU_ASSERT_EQUAL(pwc_team_allreduce_user(hall_team(h, 0), in[0], out[0], 11000,
                                            sizeof(struct line), follow, &runs, PWC_CID_NONE, 0),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_team_allreduce_user(hall_team(h, 0), in[0], out[0], 1, 0, follow, &runs,
                                            PWC_CID_NONE, 0),
                    -EINVAL);
    hall_free(h);
}

static void own_operations(void)
{
    own_operation(1, HALL_BLOCKS);
    own_operation(3, HALL_BLOCKS);
    own_operation(3, HALL_ROUND);
}

/* Contexts whose calls inside an operation of the program's own must fail. */
struct inside {
    struct pwc_ctx *ctx;
    unsigned runs;
};

static void probe_inside(void *into, const void *from, size_t count, void *arg)
{
    struct inside *inside = arg;
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_probe(inside->ctx, PWC_ANY, PWC_LOCAL, &event), -EDEADLK);
    CU_ASSERT_EQUAL(pwc_wait(inside->ctx, PWC_ANY, PWC_LOCAL, &event, 0), -EDEADLK);
    *(uint64_t *)into += *(const uint64_t *)from;
    inside->runs++;
}

/* An operation of the program's own makes no call that runs handlers or other operations. After it,
 * such calls work again, except where the collective is itself called by a handler. */
static void guarded_operations(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    uint64_t in[2] = {1, 2}, out[2] = {0, 0};
    struct inside inside[2];
    struct pwc_event event;

    for (unsigned lap = 0; lap < 2; lap++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            inside[rank] = (struct inside){.ctx = h->members[rank].ctx};
            if (lap == 1)
                handler_enter();
            CU_ASSERT_EQUAL(pwc_team_allreduce_user(hall_team(h, rank), &in[rank], &out[rank], 1, 8,
                                                    probe_inside, &inside[rank], pwc_cid_u64(1), 0),
                            0);
            CU_ASSERT_EQUAL(handler_on_this_thread(), lap == 1);
            if (lap == 1)
                handler_leave();
        }
        for (uint32_t rank = 0; rank < 2; rank++) {
            CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 1);
            CU_ASSERT_EQUAL(inside[rank].runs, 1);
            CU_ASSERT_EQUAL(out[rank], 3);
        }
    }
    hall_free(h);
}

/* Calls with wrong arguments are refused and do not count: the next good call is the first one. */
static void refusals(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    pwc_team *t = hall_team(h, 0);
    struct pwc_event event;
    uint64_t in[2] = {1, 2}, out[2];
    pwc_peer peer;

    CU_ASSERT_EQUAL(pwc_team_bcast(t, in, 8, 2, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_bcast(t, in, 8, 0, PWC_CID_NONE, PWC_FENCE), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_bcast(t, NULL, 8, 1, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_alltoall(t, NULL, out, 8, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_scatter(t, NULL, out, 8, 0, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_reduce(t, NULL, NULL, 1, PWC_U64, PWC_ADD, 1, PWC_CID_NONE, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_allreduce(t, in, out, 1, PWC_U64, PWC_SET, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_allreduce(t, in, out, 1, PWC_F64, PWC_XOR, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_allreduce(t, in, out, 1, (enum pwc_type)200, PWC_ADD, PWC_CID_NONE, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_team_allreduce(t, in, out, 1, PWC_U64, PWC_ADD, pwc_cid_bytes(in, PWC_CID_MAX + 1), 0),
        -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_allreduce(t, in, out, SIZE_MAX, PWC_U64, PWC_ADD, PWC_CID_NONE, 0),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_team_allgatherv(t, in, 8, out, NULL, NULL, PWC_CID_NONE, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_peer(t, 2, &peer), -EINVAL);
    CU_ASSERT_EQUAL(pwc_team_peer(t, 1, &peer), 0);
    CU_ASSERT_EQUAL(peer, 1);
    CU_ASSERT_EQUAL(pwc_team_rank(t), 0);
    CU_ASSERT_EQUAL(pwc_team_size(t), 2);
    CU_ASSERT_EQUAL(pwc_team_small_max(t), TEAM_DATA_BYTES / 2);

    CU_ASSERT_EQUAL(hall_sum(h, 0, in, out, 1, pwc_cid_u64(3)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, in, out, 1, pwc_cid_u64(3)), 0);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL(event.status, 0);
    hall_free(h);
}

static void mismatch(uint32_t engines)
{
    struct hall *h = hall_new(3, engines, HALL_BLOCKS, WINDOW);
    uint64_t in[2] = {1, 2}, out[3][2];
    struct pwc_event event;

    for (uint32_t rank = 0; rank < 3; rank++)
        CU_ASSERT_EQUAL(hall_sum(h, rank, in, out[rank], 1, pwc_cid_u64(0)), 0);
    hall_run(h);
    for (uint32_t rank = 0; rank < 3; rank++)
        CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 1);
    CU_ASSERT_EQUAL(hall_sum(h, 0, in, out[0], 2, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, in, out[1], 1, pwc_cid_u64(0)), 0);
    if (engines == 1) /* else it came last on its engine, and has noticed */
        CU_ASSERT_EQUAL(hall_sum(h, 1, in, out[1], 1, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 2, in, out[2], 2, pwc_cid_u64(0)), 0);
    hall_run(h);
    CU_ASSERT_EQUAL(h->mismatches, 1);
    hall_expect_broken(h, 0, 1, -EBADMSG);
    hall_expect_broken(h, 1, engines == 1 ? 2 : 1, -EBADMSG);
    hall_expect_broken(h, 2, 1, -EBADMSG);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_TRUE(hall_text_has(h, rank, "call 1 of the team"));
        CU_ASSERT_TRUE(hall_text_has(h, rank, "allreduce of 2 u64 by add"));
        CU_ASSERT_TRUE(hall_text_has(h, rank, "allreduce of 1 u64 by add at member 1"));
    }
    hall_free(h);
}

static void mismatches(void)
{
    mismatch(1);
    mismatch(2);
}

/* A call of pwc_team_free is no barrier of the program. */
static void free_is_no_barrier(void)
{
    const struct team_spec freeing = {.kind = TEAM_BARRIER, .count = TEAM_FREEING};
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    struct pwc_event event;

    CU_ASSERT_EQUAL(team_call_unshown(hall_team(h, 0), &freeing), 0);
    CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, 1), pwc_cid_u64(1), 0), 0);
    hall_run(h);
    CU_ASSERT_EQUAL_FATAL(hall_probe(h, 1, &event), 1);
    CU_ASSERT_EQUAL(event.status, -EBADMSG);
    CU_ASSERT_TRUE(hall_text_has(h, 1, "was barrier at member 1, and pwc_team_free at member 0"));
    hall_free(h);
}

/* A window keeps its team from being freed. Where the team is broken, the end of the window waits
 * for nobody. */
static void window_over_a_broken_team(void)
{
    const struct team_reason reason = {.status = -EHOSTDOWN, .rank = {1, UINT32_MAX}};
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, WINDOW);
    struct pwc_ctx *ctx = h->members[0].ctx;
    struct pwc_window *w = calloc(1, sizeof(*w));

    w->ctx = ctx;
    w->team = hall_team(h, 0);
    channel_space_open(&ctx->channel, &w->space);
    ctx->windows = w;
    CU_ASSERT_EQUAL(pwc_team_free(hall_team(h, 0)), -EBUSY);
    CU_ASSERT_TRUE(hall_text_has(h, 0, "1 windows over the team are left"));
    hall_break(h, &reason);
    CU_ASSERT_EQUAL(pwc_team_free(hall_team(h, 0)), -EBUSY);
    CU_ASSERT_EQUAL(pwc_window_free(w), 0);
    CU_ASSERT_PTR_NULL(ctx->windows);
    hall_free(h);
}

/* The daemon reports a call that does not fit the others. */
static void forged(void)
{
    const struct team_reason reason = {.status = -EBADMSG,
                                       .rank = {1, UINT32_MAX},
                                       .sequence = 5,
                                       .signature = {team_signature(TEAM_BARRIER, 0, 0, 0, 0), 0}};
    struct hall *h = hall_new(3, 2, HALL_BLOCKS, WINDOW);

    hall_break(h, &reason);
    hall_expect_broken(h, 0, 0, -EBADMSG);
    CU_ASSERT_TRUE(hall_text_has(h, 0, "call 5 of the team, barrier, does not fit the others'"));
    hall_free(h);
}

/* Checks status and text where a member has ended, or, if the reason names none, a node was
 * lost. */
static void death_of(uint32_t rank, const char *text)
{
    const struct team_reason reason = {.status = -EHOSTDOWN, .rank = {rank, 0}};
    struct hall *h = hall_new(3, 2, HALL_BLOCKS, WINDOW);
    uint64_t in = 1, out;
    pwc_request *r;
    struct pwc_status status;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(h->members[0].ctx, &r), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out, 1, pwc_cid_request(r)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out, 1, pwc_cid_u64(1)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out, 1, pwc_cid_u64(1)), 0);
    hall_break(h, &reason);
    CU_ASSERT_EQUAL(teams_arm(h->members[1].ctx), 1);
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(r, &status, 1000), 1);
    CU_ASSERT_EQUAL(status.status, -EHOSTDOWN);
    hall_expect_broken(h, 0, 0, -EHOSTDOWN);
    hall_expect_broken(h, 1, 2, -EHOSTDOWN);
    CU_ASSERT_TRUE(hall_text_has(h, 0, text));
    CU_ASSERT_TRUE(hall_text_has(h, 1, "pwc_team_shrink"));
    hall_free(h);
}

static void death(void)
{
    death_of(2, "member 2 of the team has ended");
    death_of(UINT32_MAX, "a node of the team is lost");
}

/* The member that ends an instance asks for a wake-up, but only where a member sleeps. */
static void sleepers(void)
{
    struct hall *h = hall_new(3, 1, HALL_BLOCKS, WINDOW);
    uint64_t in = 1, out[3];
    struct pwc_event event;

    for (unsigned lap = 0; lap < 3; lap++) {
        h->wakes = 0;
        for (uint32_t rank = 0; rank < 2; rank++)
            CU_ASSERT_EQUAL(hall_sum(h, rank, &in, &out[rank], 1, pwc_cid_u64(0)), 0);
        if (lap > 0)
            CU_ASSERT_EQUAL(teams_arm(h->members[0].ctx), 0);
        if (lap == 2)
            teams_disarm(h->members[0].ctx);
        CU_ASSERT_EQUAL(hall_sum(h, 2, &in, &out[2], 1, pwc_cid_u64(0)), 0);
        hall_run(h);
        CU_ASSERT_EQUAL(h->wakes, lap == 1);
        CU_ASSERT_EQUAL(teams_arm(h->members[1].ctx), 1); /* an instance has ended */
        for (uint32_t rank = 0; rank < 3; rank++)
            CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 1);
        hall_run(h);
        teams_disarm(h->members[0].ctx);
    }
    hall_free(h);
}

/* A member does not sleep while a wake-up is due, for which there was no room, and now is. */
static void a_wake_up_is_due(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    struct pwc_ctx *ctx = h->members[0].ctx;
    const struct submit_record any = {.kind = SUBMIT_TEAM_WAKE};
    uint8_t *at;

    CU_ASSERT_EQUAL_FATAL(channel_begin(&ctx->channel, &ctx->channel.submit, &any, &at), 0);
    team_wake(hall_team(h, 0));
    CU_ASSERT_EQUAL(teams_arm(ctx), 0);
    teams_disarm(ctx);
    channel_cancel(&ctx->channel, &ctx->channel.submit);
    CU_ASSERT_EQUAL(teams_arm(ctx), 1);
    team_progress(hall_team(h, 0));
    hall_run(h);
    CU_ASSERT_EQUAL(h->wakes, 1);
    CU_ASSERT_EQUAL(teams_arm(ctx), 0);
    teams_disarm(ctx);
    hall_free(h);
}

/* The library's own calls need no room for an event, which the program may have left to none, and
 * show none, also when they fail. */
static void unshown(void)
{
    const struct team_spec barrier = {.kind = TEAM_BARRIER};
    const struct team_reason reason = {.status = -EHOSTDOWN, .rank = {1, 0}};
    struct hall *h = hall_new(1, 1, HALL_BLOCKS, WINDOW);
    struct pwc_event event;
    unsigned ends = 0;
    int rc;

    while ((rc = pwc_team_barrier(hall_team(h, 0), PWC_CID_NONE, 0)) == 0 && ends < 100000)
        ends++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(team_call_unshown(hall_team(h, 0), &barrier), 0);
    CU_ASSERT_EQUAL(hall_team(h, 0)->over, ends + 1);
    for (unsigned i = 0; i < ends; i++)
        CU_ASSERT_EQUAL_FATAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 0);
    hall_free(h);

    h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    CU_ASSERT_EQUAL(team_call_unshown(hall_team(h, 0), &barrier), 0);
    hall_break(h, &reason);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 0);
    CU_ASSERT_EQUAL(hall_team(h, 0)->status, -EHOSTDOWN);
    hall_free(h);
}

/* A wait is for a member as long as one of the same engine has not called, and then for the daemon.
 * Without another engine it is always for a member. */
static void members_are_awaited(uint32_t engines)
{
    struct hall *h = hall_new(4, engines, HALL_BLOCKS, WINDOW);
    const struct pwc_ctx *ctx = h->members[0].ctx;
    uint64_t in = 1, out[4];
    struct pwc_event event;

    CU_ASSERT_FALSE(teams_await_members(ctx));
    for (unsigned lap = 0; lap < 2 * WINDOW; lap++) {
        CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out[0], 1, pwc_cid_u64(0)), 0);
        CU_ASSERT_TRUE(teams_await_members(ctx));
        CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out[1], 1, pwc_cid_u64(0)), 0);
        CU_ASSERT_EQUAL(teams_await_members(ctx), engines == 1);
        CU_ASSERT_EQUAL(hall_sum(h, 2, &in, &out[2], 1, pwc_cid_u64(0)), 0);
        CU_ASSERT_EQUAL(hall_sum(h, 3, &in, &out[3], 1, pwc_cid_u64(0)), 0);
        hall_run(h);
        for (uint32_t rank = 0; rank < 4; rank++)
            CU_ASSERT_EQUAL(hall_probe(h, rank, &event), 1);
        hall_run(h);
        CU_ASSERT_FALSE(teams_await_members(ctx));
    }
    hall_free(h);
}

static void awaited(void)
{
    members_are_awaited(1);
    members_are_awaited(2);
}

/* A sleeper whose call has found no room is woken when the last member has taken its result. */
static void sleepers_for_room(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, 1);
    uint64_t in = 1, out[2];
    struct pwc_event event;

    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out[0], 1, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out[1], 1, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_probe(h, 1, &event), 1);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out[1], 1, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 1, &in, &out[1], 1, pwc_cid_u64(0)), -EAGAIN); /* the window is 1 */
    CU_ASSERT_TRUE(h->members[1].ctx->give_way.refused); /* so a probe that finds nothing yields */
    CU_ASSERT_EQUAL(teams_arm(h->members[1].ctx), 0);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 1);
    hall_run(h);
    CU_ASSERT_EQUAL(h->wakes, 1);
    CU_ASSERT_EQUAL(teams_arm(h->members[1].ctx), 1);
    CU_ASSERT_EQUAL(hall_probe(h, 1, &event), 0); /* the call begins */
    CU_ASSERT_EQUAL(teams_arm(h->members[1].ctx), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out[0], 1, pwc_cid_u64(0)), 0);
    CU_ASSERT_EQUAL(hall_probe(h, 1, &event), 1);
    CU_ASSERT_EQUAL(out[1], 2);
    hall_free(h);
}

/* The end of the session ends requests. */
static void shutdown(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    uint64_t in = 1, out;
    struct pwc_status status;
    pwc_request *plain, *again;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(h->members[0].ctx, &plain), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_team_barrier_init(hall_team(h, 0), PWC_CID_NONE, &again), 0);
    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out, 1, pwc_cid_request(plain)), 0);
    CU_ASSERT_EQUAL(pwc_start(again), 0);
    atomic_store(&h->members[0].daemon.shared->state, SESSION_CLOSED);
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(plain, &status, 1000), 1);
    CU_ASSERT_EQUAL(status.status, -ESHUTDOWN);
    CU_ASSERT_EQUAL_FATAL(pwc_test(again, &status), 1);
    CU_ASSERT_EQUAL(status.status, -ESHUTDOWN);
    hall_free(h);
}

/* Guards that a test of a collective's request, after the end of the session, ends no operation
 * whose event has arrived: the event still counts, and the channel does not break over it. */
static void shutdown_after_an_end(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    struct fake_session *daemon = &h->members[0].daemon;
    struct channel *ch = &h->members[0].ctx->channel;
    pwc_request *put, *again;
    struct pwc_status status;
    struct submit_record record = {.kind = SUBMIT_PUT, .flags = SUBMIT_SLOT};
    const struct submit_record *taken;
    int rc = 0;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(h->members[0].ctx, &put), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_team_barrier_init(hall_team(h, 0), PWC_CID_NONE, &again), 0);
    record.lid = request_cid(put).value;
    CU_ASSERT_EQUAL(channel_submit(ch, &record, NULL, NULL, NULL), 0);
    request_begin(put);
    taken = fake_session_read(daemon);
    CU_ASSERT_PTR_NOT_NULL_FATAL(taken);
    CU_ASSERT_EQUAL(fake_session_end(daemon, taken, 1, 0), 0);
    CU_ASSERT_EQUAL(pwc_start(again), 0);
    atomic_store(&daemon->shared->state, SESSION_CLOSED);
    for (int i = 0; i < 10 && rc == 0; i++)
        rc = pwc_test(again, &status);
    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_EQUAL(status.status, -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_test(put, &status), 1);
    CU_ASSERT_EQUAL(status.status, 0);
    CU_ASSERT_EQUAL(status.count, 1);
    CU_ASSERT_EQUAL(channel_collect(ch), 0);
    CU_ASSERT_EQUAL(channel_state(ch), -ESHUTDOWN);
    hall_free(h);
}

/* Guards that a wait for a collective's request sleeps, although events that the program has not
 * taken are in both rings. */
static void sleeps_beside_events(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, WINDOW);
    struct fake_session *daemon = &h->members[0].daemon;
    struct pwc_ctx *ctx = h->members[0].ctx;
    const struct submit_record record = {.kind = SUBMIT_PUT, .lid = 5};
    const struct submit_record *taken;
    struct pwc_event event;
    pwc_request *again;

    CU_ASSERT_EQUAL(channel_submit(&ctx->channel, &record, NULL, NULL, NULL), 0);
    taken = fake_session_read(daemon);
    CU_ASSERT_PTR_NOT_NULL_FATAL(taken);
    CU_ASSERT_EQUAL(fake_session_end(daemon, taken, 1, 0), 0);
    CU_ASSERT_EQUAL(fake_session_post(daemon, EVENT_REMOTE, PWC_OP_PUT, 1, 0, 0, 6, NULL, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_team_barrier_init(hall_team(h, 0), PWC_CID_NONE, &again), 0);
    CU_ASSERT_EQUAL(pwc_start(again), 0);
    CU_ASSERT_EQUAL(pwc_request_wait(again, NULL, 50), 0);
    CU_ASSERT(atomic_load(&daemon->shared->waits.asleep_ns) > 0);
    CU_ASSERT_EQUAL(pwc_probe(ctx, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(pwc_probe(ctx, PWC_ANY, PWC_REMOTE, &event), 1);
    hall_free(h);
}

/* A member that only gives a long operand begins further slices as the engine ends earlier ones.
 * Later calls wait for their turn, as many as the window allows. */
static void slices_of_a_giver(void)
{
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, 4);
    static uint64_t in[2][10 * HALL_SLICE], out[10 * HALL_SLICE];
    struct pwc_ctx *ctx = h->members[1].ctx;
    struct pwc_event event;
    unsigned ended = 0;

    for (uint32_t rank = 0; rank < 2; rank++)
        CU_ASSERT_EQUAL(pwc_team_reduce(hall_team(h, rank), in[rank], out, 10 * HALL_SLICE, PWC_U64,
                                        PWC_ADD, 0, pwc_cid_u64(0), 0),
                        0);
    for (uint64_t i = 1; i < 4; i++)
        for (uint32_t rank = 0; rank < 2; rank++)
            CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, rank), pwc_cid_u64(i), 0), 0);
    CU_ASSERT_EQUAL(pwc_team_barrier(hall_team(h, 1), PWC_CID_NONE, 0), -EAGAIN);
    CU_ASSERT_EQUAL(teams_arm(ctx), 0);
    CU_ASSERT_EQUAL(hall_probe(h, 1, &event), 0);
    hall_run(h);
    CU_ASSERT_EQUAL(teams_arm(ctx), 1);
    for (unsigned round = 0; round < 100; round++) {
        (void)hall_probe(h, 0, &event);
        if (hall_probe(h, 1, &event) == 1)
            CU_ASSERT_EQUAL(event.id, ended++);
        hall_run(h);
    }
    CU_ASSERT_EQUAL(ended, 4);
    CU_ASSERT_EQUAL(teams_arm(ctx), 0);
    hall_free(h);
}

int main(void)
{
    CU_TestInfo tests[] = {{"windows", windows},
                           {"the first of many", first_of_many},
                           {"data rows in turn", data_rows_in_turn},
                           {"givers wait for the engine", givers_wait_for_the_engine},
                           {"ends", ends},
                           {"persistent", persistent},
                           {"own operations", own_operations},
                           {"guarded operations", guarded_operations},
                           {"refusals", refusals},
                           {"mismatches", mismatches},
                           {"a free is no barrier", free_is_no_barrier},
                           {"a window over a broken team", window_over_a_broken_team},
                           {"a call that fits no other", forged},
                           {"death", death},
                           {"sleepers", sleepers},
                           {"members or the daemon are awaited", awaited},
                           {"sleepers for room", sleepers_for_room},
                           {"a wake-up is due", a_wake_up_is_due},
                           {"unshown", unshown},
                           {"shutdown", shutdown},
                           {"the session ends after an operation", shutdown_after_an_end},
                           {"a wait sleeps beside events", sleeps_beside_events},
                           {"slices of a giver", slices_of_a_giver},
                           CU_TEST_INFO_NULL};

    return suite_run("teams", tests);
}
