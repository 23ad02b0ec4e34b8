/*
 * Guards that a member trusts no word of a team's area: what makes no sense ends the calls of all
 * members with an error, and each call returns (proto/team_abi.h).
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/teams/teams.h"
#include "tests/clientlib/teams/team_hall.h"
#include "tests/suite.h"

enum { WINDOW = 16 };

/* How the last member that has freed its team has left it. */
static struct {
    unsigned count;
    bool broken;
} left;

void __wrap_team_leave(struct pwc_ctx *ctx, uint64_t number, bool broken);
void __wrap_team_leave(struct pwc_ctx *ctx, uint64_t number, bool broken)
{
    (void)ctx;
    (void)number;
    left.count++;
    left.broken = broken;
}

/* Checks that member 0, whose call has ended with -EPROTO, has reported this to its daemon: so the
 * other members' calls end, too. */
static void expect_reported(struct hall *h, uint32_t under_way)
{
    hall_run(h);
    CU_ASSERT_EQUAL(h->mismatches, 1);
    CU_ASSERT_TRUE(hall_text_has(h, 0, "makes no sense"));
    for (uint32_t rank = 1; rank < h->size; rank++) {
        hall_expect_broken(h, rank, under_way, -EBADMSG);
        CU_ASSERT_TRUE(
            hall_text_has(h, rank, under_way > 0 ? "does not fit the others'" : "makes no sense"));
    }
}

/* A forged result says that the longest block is shorter than our own, or longer than any may be:
 * the call ends with -EPROTO. */
static void longest_that_lies_by(uint64_t forged_length)
{
    static const size_t lens[2] = {8, 8}, offsets[2] = {0, 8}, huge[2] = {8, SIZE_MAX / 4};
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, 4);
    struct team_area *a = &h->engine[0].area;
    uint64_t in[2] = {1, 2}, out[2] = {3, 3};
    pwc_team *t = hall_team(h, 0);
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_team_alltoallv(t, in, huge, offsets, out, lens, offsets, PWC_CID_NONE, 0),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_team_alltoallv(t, in, lens, offsets, out, huge, offsets, PWC_CID_NONE, 0),
                    -EMSGSIZE);
    for (uint32_t rank = 0; rank < 2; rank++)
        CU_ASSERT_EQUAL(pwc_team_alltoallv(hall_team(h, rank), in, lens, offsets, out, lens,
                                           offsets, pwc_cid_u64(1), 0),
                        0);
    memcpy(team_row(a, 0)->result.data, &forged_length, 8);
    team_end(a, 0, 0, 8);
    CU_ASSERT_EQUAL_FATAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL(event.status, -EPROTO);
    CU_ASSERT_EQUAL(out[0], 3);
    h->held = true; /* the test's engines do not check what they read */
    expect_reported(h, 1);
    hall_free(h);
}

static void longest_that_lies(void)
{
    longest_that_lies_by(7);
    longest_that_lies_by(UINT64_MAX);
}

/* Forged counts and words that make no sense to member 0, when it calls or while it waits, end the
 * calls of all. */
static void reported(void)
{
    enum { ARRIVED, LINE, TAKEN, DONE, BROKEN, FORGERIES };
    uint64_t in = 1, out[4];

    for (int forgery = ARRIVED; forgery < FORGERIES; forgery++) {
        struct hall *h = hall_new(4, 2, HALL_BLOCKS, WINDOW);
        struct team_row *row = team_row(&h->engine[0].area, 0);
        struct pwc_event event;

        h->held = true;
        for (uint32_t rank = 1; rank < 4 && forgery != BROKEN; rank++)
            CU_ASSERT_EQUAL(hall_sum(h, rank, &in, &out[rank], 1, pwc_cid_u64(1)), 0);
        if (forgery == ARRIVED)
            atomic_store(&row->counts.arrived, 9);
        if (forgery == LINE)
            atomic_store(&row->lines[1].sequence, 9);
        if (forgery == TAKEN)
            atomic_store(&row->counts.taken, 99);
        if (forgery == BROKEN)
            atomic_store(&h->engine[0].area.shared->broken.status, 99);
        CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out[0], 1, pwc_cid_u64(1)),
                        forgery == BROKEN ? -EPROTO : 0);
        if (forgery == DONE)
            atomic_store(&row->result.done, 99);
        CU_ASSERT_EQUAL(hall_probe(h, 0, &event), forgery != BROKEN);
        CU_ASSERT_TRUE(forgery == BROKEN || event.status == -EPROTO);
        atomic_store(&row->result.done, 0); /* else member 1 would see these, too */
        atomic_store(&h->engine[0].area.shared->broken.status, 0);
        expect_reported(h, forgery != BROKEN);
        hall_free(h);
    }
}

/* The report waits until there is room for it. */
static void report_without_room(void)
{
    struct hall *h = hall_new(2, 2, HALL_BLOCKS, WINDOW);
    struct pwc_ctx *ctx = h->members[0].ctx;
    const struct submit_record any = {.kind = SUBMIT_TEAM_WAKE};
    uint64_t in = 1, out[2];
    struct pwc_event event;
    uint8_t *at;

    h->held = true;
    for (uint32_t rank = 0; rank < 2; rank++)
        CU_ASSERT_EQUAL(hall_sum(h, rank, &in, &out[rank], 1, pwc_cid_u64(1)), 0);
    atomic_store(&team_row(&h->engine[0].area, 0)->result.done, 99);
    CU_ASSERT_EQUAL_FATAL(channel_begin(&ctx->channel, &ctx->channel.submit, &any, &at), 0);
    team_progress(hall_team(h, 0));
    CU_ASSERT_EQUAL(hall_team(h, 0)->status, -EPROTO);
    CU_ASSERT_EQUAL(teams_arm(ctx), 0);
    teams_disarm(ctx);
    channel_cancel(&ctx->channel, &ctx->channel.submit);
    CU_ASSERT_EQUAL(teams_arm(ctx), 1);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL(event.status, -EPROTO);
    expect_reported(h, 1);
    hall_free(h);
}

/* A member that frees a team whose area makes no sense, before there was room for its report,
 * leaves it as one that cannot take part, so that the daemon breaks the team for the others. While
 * a message is prepared nothing can be reported, and the team stays. */
static void freed_before_the_report(void)
{
    for (unsigned full = 0; full < 2; full++) {
        struct hall *h = hall_new(2, 2, HALL_BLOCKS, WINDOW);
        struct pwc_ctx *ctx = h->members[0].ctx;
        const struct submit_record any = {.kind = SUBMIT_TEAM_WAKE};
        uint64_t in = 1, out;
        struct pwc_event event;
        uint8_t *at;

        memset(&left, 0, sizeof(left));
        h->held = true;
        CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out, 1, pwc_cid_u64(1)), 0);
        atomic_store(&team_row(&h->engine[0].area, 0)->result.done, 99);
        while (full && channel_note(&ctx->channel, &any) >= 0)
            continue;
        team_progress(hall_team(h, 0));
        CU_ASSERT_EQUAL(hall_team(h, 0)->status, -EPROTO);
        CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 1);
        if (!full) {
            CU_ASSERT_EQUAL_FATAL(channel_begin(&ctx->channel, &ctx->channel.submit, &any, &at), 0);
            CU_ASSERT_EQUAL_FATAL(pwc_team_free(hall_team(h, 0)), -EBUSY);
            CU_ASSERT_TRUE(hall_text_has(h, 0, "message is prepared"));
            CU_ASSERT_EQUAL(left.count, 0);
            channel_cancel(&ctx->channel, &ctx->channel.submit);
        }
        CU_ASSERT_EQUAL(pwc_team_free(hall_team(h, 0)), 0);
        CU_ASSERT_EQUAL(left.count, 1);
        CU_ASSERT_EQUAL(left.broken, full);
        hall_free(h);
    }
}

/* A forged row seems to be free although our own call in it has not been taken: no new call begins
 * there. */
static void row_that_lies(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, 1);
    struct team_row *row = team_row(&h->engine[0].area, 0);
    uint64_t in = 1, out;
    struct pwc_event event;

    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out, 1, pwc_cid_u64(1)), 0);
    atomic_store(&row->result.done, 1);
    atomic_store(&row->counts.taken, 2);
    CU_ASSERT_EQUAL(hall_sum(h, 0, &in, &out, 1, pwc_cid_u64(2)), -EAGAIN);
    CU_ASSERT_EQUAL(hall_probe(h, 0, &event), 1);
    CU_ASSERT_EQUAL(event.id, 1);
    hall_free(h);
}

/* As above with slices: no slice begins in the row of a slice whose result was not taken. */
static void row_of_a_slice_that_lies(void)
{
    struct hall *h = hall_new(2, 1, HALL_BLOCKS, 2);
    struct team_area *a = &h->engine[0].area;
    static uint64_t in[HALL_SLICE + 100], out[HALL_SLICE + 100]; /* three slices with two members */
    pwc_team *t = hall_team(h, 0);

    CU_ASSERT_EQUAL(hall_sum(h, 0, in, out, HALL_SLICE + 100, pwc_cid_u64(1)), 0);
    CU_ASSERT_EQUAL(t->begun, 2);
    memset(a->data[0].result, 1, sizeof(a->data[0].result));
    atomic_store(&team_row(a, 0)->result.done, 1);
    atomic_store(&team_row(a, 0)->counts.taken, 2);
    CU_ASSERT_EQUAL(pwc_team_barrier(t, pwc_cid_u64(2), 0), 0);
    CU_ASSERT_EQUAL(out[0], UINT64_C(0x0101010101010101));
    CU_ASSERT_EQUAL(out[HALL_SLICE], 0);
    hall_free(h);
}

/*
 * A hostile member writes anything anywhere into the area, between and during calls: other members
 * may get wrong data or errors, but each call returns, and no memory outside the area is touched.
 */
static void hostile_words(void)
{
    unsigned seed = 11;
    unsigned rounds = 300;

    for (unsigned round = 0; round < rounds; round++) {
        uint32_t engines = 1 + round % 2;
        struct hall *h = hall_new(4, engines, HALL_BLOCKS, 4);
        static uint64_t in[64], out[64];
        struct pwc_event event;

        h->held = true; /* the test's engines do not check what they read */
        for (unsigned step = 0; step < 60; step++) {
            uint64_t n = (unsigned)rand_r(&seed) % 3 == 0 ? 20 : 1;

            for (uint32_t rank = 0; rank < 4; rank++) {
                struct hall_engine *e = &h->engine[h->members[rank].engine];
                uint64_t words = team_data_offset(e->members, 4) / 8;
                uint64_t *area = e->mapping.base;

                (void)hall_sum(h, rank, in, out, n, pwc_cid_u64(0));
                if (rand_r(&seed) % 4 == 0)
                    area[3 + (uint64_t)rand_r(&seed) % (words - 3)] =
                        rand_r(&seed) % 2 ? (uint64_t)rand_r(&seed) % 9
                                          : (uint64_t)rand_r(&seed) << 33 | 1;
                (void)teams_arm(h->members[rank].ctx);
                teams_disarm(h->members[rank].ctx);
                while (hall_probe(h, rank, &event) == 1)
                    ;
            }
            hall_run(h);
        }
        hall_free(h);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"longest that lies", longest_that_lies},
                           {"areas that make no sense are reported", reported},
                           {"a report without room", report_without_room},
                           {"freed before the report", freed_before_the_report},
                           {"row that lies", row_that_lies},
                           {"row of a slice that lies", row_of_a_slice_that_lies},
                           {"hostile words", hostile_words},
                           CU_TEST_INFO_NULL};

    return suite_run("team words", tests);
}
