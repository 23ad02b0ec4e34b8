/*
 * Submissions for teams in one engine, from members that keep the rules and from members that do
 * not, and the memory that teams take. One thread.
 */
#include "tests/suite.h"
#include <stdio.h>
#include "daemon/engine/team/rooms.h"
#include "daemon/engine/team/table.h"
#include "tests/engine/team/pair.h"

/* ---- submissions ----------------------------------------------------------------------------- */

/* Makes senseless submission `number`. Returns false if there are no more. */
static bool make_bad_submission(struct submit_record *r, size_t number)
{
    switch (number) {
    case 0:
        r->flags = SUBMIT_NO_LCE;
        return true;
    case 1:
        r->lid_len = 8;
        return true;
    case 2:
        r->reserve = 48;
        return true;
    case 3:
        r->local_offset = 1;
        return true;
    case 4:
        r->code = TEAM_GATHERV;
        return true;
    case 5:
        r->root = 1;
        return true;
    case 6:
        r->data_row = TEAM_DATA_ROWS;
        return true;
    case 7:
        r->length = 48;
        return true;
    case 8:
        r->length = UINT64_C(1) << 32 | 8;
        return true;
    case 9:
        r->signature = team_signature(TEAM_ALLREDUCE, WORD_AND, WORD_F64, 0, 1);
        return true;
    default:
        return false;
    }
}

static void bad_submissions_are_quarantined(void)
{
    struct submit_record r;

    for (size_t i = 0;; i++) {
        struct pair p = new_pair();
        bool more;

        r = submission(&p, 0);
        more = make_bad_submission(&r, i);
        bench_submit(p.b, &r);
        if (p.b->quarantined != more)
            printf("submission %zu: quarantined %d\n", i, p.b->quarantined);
        CU_ASSERT_EQUAL(p.b->quarantined, more);
        free_pair(&p);
        if (!more)
            return;
    }
}

/* Guards that each of these submissions breaks the team, and does not quarantine its client: a
 * member that lies in the team area can make an honest member submit it. */
static void submissions_out_of_turn_break_the_team(void)
{
    static const struct {
        uint64_t first, second;
        uint32_t length;
    } rows[] = {
        {0, 0, 8},          /* the same instance twice */
        {0, 2 * WINDOW, 8}, /* beyond any window */
        {0, UINT64_MAX, 8}, /* after the floor */
        {0, WINDOW, 8},     /* in a row whose instance has not ended */
        {0, 1, 48},         /* in a data row whose instance has not ended */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p = new_pair();
        struct submit_record r = submission(&p, rows[i].first);
        struct team_reason reason;

        r.length = rows[i].length;
        r.data_row = r.length > TEAM_LINE_BYTES ? 3 : TEAM_LINES;
        bench_submit(p.b, &r);
        CU_ASSERT_EQUAL(broken(&p, &reason), 0);
        r.instance = rows[i].second;
        bench_submit(p.b, &r);
        expect_forged(&p, rows[i].second, 0);
        free_pair(&p);
    }
}

/* Guards that submissions of a member that has left are dropped: a member may leave before its ring
 * is empty, and another team may have its handle soon. */
static void submissions_of_who_has_left_are_dropped(void)
{
    struct pair p = new_pair();
    uint32_t old = p.handle;

    engine_team_leave(p.b->engine, p.handle, 0);
    bench_steps(p.b, 2);
    CU_ASSERT_EQUAL(peek_census(p.b->engine).teams, 0);
    call(&p, 0, 1);
    CU_ASSERT_FALSE(p.b->quarantined);
    p.handle = (uint32_t)open_team(&p, NUMBER, WINDOW);
    CU_ASSERT_NOT_EQUAL(p.handle, old);
    old ^= p.handle;
    p.handle ^= old;
    call(&p, 0, 1); /* a submission by the old handle */
    CU_ASSERT_FALSE(has_left(&p, WIRE_COLL));
    p.handle ^= old;
    call(&p, 0, 1);
    CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
    free_pair(&p);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void teams_take_what_memory_there_is(void)
{
    struct pair p = new_pair();
    int opened = 0, r;

    CU_ASSERT_EQUAL(open_team(&p, NUMBER, WINDOW), -EADDRINUSE);
    CU_ASSERT_EQUAL(open_team(&p, 0, WINDOW), -EINVAL);
    CU_ASSERT_EQUAL(open_team(&p, 5, WINDOW - 1), -EINVAL);
    while ((r = open_team(&p, NUMBER + 1 + (uint32_t)opened, WINDOW)) >= 0 && opened < 2000)
        opened++;
    CU_ASSERT_EQUAL(r, -ENOBUFS);
    CU_ASSERT(opened > 0 && peek_census(p.b->engine).teams == (uint32_t)opened + 1);
    engine_client_close(p.b->engine, 0);
    for (int i = 0; i < 50; i++) {
        bench_ack(p.b);
        bench_steps(p.b, 10);
    }
    CU_ASSERT_EQUAL(peek_census(p.b->engine).teams, 0);
    CU_ASSERT_EQUAL(peek_census(p.b->engine).letters, 0);
    free_pair(&p);
}

/* Opens a team whose only member here is a context of one client. */
static int open_for(struct pair *p, uint64_t number, uint32_t window, uint32_t participants,
                    uint32_t session)
{
    static const struct engine_team_participant list[] = {{0, 1}, {1, 1}};
    const struct engine_team_member local[] = {{0, session}};
    const struct engine_team_info info = {.number = number,
                                          .size = participants,
                                          .window = window,
                                          .participants = participants,
                                          .members = 1,
                                          .list = list,
                                          .local = local};

    return engine_team_open(p->b->engine, &info, p->base);
}

/* Guards that one user leaves an eighth of an engine's teams, and of their memory, to others: the
 * first opens teams until the engine refuses one, also for another client of the same user, and
 * then a client of another user still opens one. */
static void a_user_leaves_teams_to_others(void)
{
    static const struct {
        uint32_t participants;
        int refused;
    } rows[] = {{1, -EDQUOT}, {2, -ENOBUFS}};
    const struct engine_client_info others[] = {{.rank = 1, .size = 2, .job = BENCH_JOB},
                                                {.size = 2, .uid = 7, .job = BENCH_JOB}};
    const struct session_sizes sizes = {RING, RING, RING, RING, RING};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p = new_pair();
        void *sessions[COUNT(others)];
        uint64_t number = NUMBER;
        int r;

        for (uint32_t k = 0; k < COUNT(others); k++) {
            sessions[k] = calloc(1, p.b->session_bytes);
            CU_ASSERT_EQUAL_FATAL(engine_client_open(p.b->engine, &others[k]), (int)k + 1);
            CU_ASSERT_EQUAL_FATAL(
                engine_session_open(p.b->engine, k + 1, 0, sessions[k], &sizes, 0), (int)k + 1);
        }
        while ((r = open_for(&p, ++number, WINDOW, rows[i].participants, 0)) >= 0)
            ;
        CU_ASSERT_EQUAL(r, rows[i].refused);
        CU_ASSERT_EQUAL(open_for(&p, number, WINDOW, rows[i].participants, 1), rows[i].refused);
        CU_ASSERT(open_for(&p, number, WINDOW, rows[i].participants, 2) >= 0);
        bench_free(p.b);
        for (uint32_t k = 0; k < COUNT(others); k++)
            free(sessions[k]);
        free(p.base);
    }
}

/* Guards that a member which is alone on its engine is quarantined when it submits: it never needs
 * to, so the submission is a lie. */
static void alone_there_are_no_letters(void)
{
    static const struct engine_team_participant list[] = {{0, 1}};
    static const struct engine_team_member local[] = {{0, 0}};
    struct engine_team_info info = {.number = NUMBER + 1,
                                    .size = 1,
                                    .window = WINDOW,
                                    .participants = 1,
                                    .members = 1,
                                    .list = list,
                                    .local = local};
    struct pair p = new_pair();
    struct letter_record l = letter(0, 1);
    int handle = engine_team_open(p.b->engine, &info, p.base);

    CU_ASSERT_FATAL(handle >= 0);
    CU_ASSERT_EQUAL(peek_team_bytes(p.b->engine, (uint32_t)handle), 4096);
    for (uint32_t i = 0; i < 64; i++) {
        info.number++;
        CU_ASSERT(engine_team_open(p.b->engine, &info, p.base) >= 0);
    }
    p.handle = (uint32_t)handle;
    call(&p, 0, 1);
    CU_ASSERT_TRUE(p.b->quarantined);
    l.coll.team = NUMBER + 1;
    bench_send(p.b, &l, sizeof(l));
    CU_ASSERT_TRUE(p.b->broken);
    free_pair(&p);
}

/* Guards that a client may have 64 teams of 1,024 engines, with the window of teams that ask for no
 * other, in the memory that its user has beside other users. */
static void teams_of_a_client_fit(void)
{
    struct participant *list = calloc(1024, sizeof(*list));
    struct team t = {.size = 1024,
                     .window = TEAM_WINDOW,
                     .participants = 1024,
                     .members = 1,
                     .fullest = 1,
                     .me = 5};
    uint64_t bytes = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    for (uint32_t i = 0; i < 1024; i++)
        list[i] = (struct participant){.peer = i, .members = 1, .first = i};
    CU_ASSERT_EQUAL(rooms_measure(&t, list), 0);
    bytes += 1024 * sizeof(*list) + TEAM_WINDOW * sizeof(struct instance);
    bytes += team_slots(&t) * (sizeof(struct arrival_slot) + sizeof(struct letter));
    bytes += TEAM_WINDOW * 2ull * (t.lines.work + t.lines.mail);
    bytes += TEAM_DATA_ROWS * 2ull * (t.data.work + t.data.mail);
    CU_ASSERT(64 * bytes < UINT64_C(7) << 27);
    free(list);
}

/* Guards that a team with too many slots is refused: opening a team clears its slots on the
 * progress thread. */
static void too_many_slots_are_refused(void)
{
    struct participant *list = calloc(1024, sizeof(*list));
    struct team t = {.window = TEAM_WINDOW_MAX, .members = 1, .fullest = 1};

    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    for (uint32_t i = 0; i < 1024; i++)
        list[i] = (struct participant){.peer = i, .members = 1, .first = i};
    t.size = t.participants = 1024;
    CU_ASSERT_EQUAL(rooms_measure(&t, list), 0);
    for (uint32_t row = 0; row < COLL_ROWS; row++)
        if (strcmp(coll_row(row)->algorithm->name, "ring") == 0)
            t.choices.by_kind[coll_row(row)->kind] = (uint8_t)(row + 1);
    CU_ASSERT_EQUAL(rooms_measure(&t, list), -ENOMEM);
    t.window = TEAM_WINDOW;
    t.size = t.participants = 256;
    CU_ASSERT_EQUAL(rooms_measure(&t, list), 0);
    free(list);
}

/* Guards that a process which continues with a team opens it by the algorithms that the team began
 * with, whatever its own configuration says, and finds these algorithms in the engine. */
static void a_team_keeps_its_algorithms(void)
{
    static const struct engine_team_participant list[] = {{0, 1}, {1, 1}};
    static const struct engine_team_member local[] = {{0, 0}};
    struct coll_choices rings = {.by_kind = {0}};
    struct engine_team_info info = {.number = NUMBER + 1,
                                    .size = 2,
                                    .window = WINDOW,
                                    .participants = 2,
                                    .members = 1,
                                    .list = list,
                                    .local = local,
                                    .choices = &rings};
    struct pair p = new_pair();
    struct letter_record l = letter(0, 1);
    struct engine_team_found found = {0};

    for (uint32_t row = 0; row < COLL_ROWS; row++)
        if (coll_row(row)->kind == TEAM_ALLREDUCE &&
            strcmp(coll_row(row)->algorithm->name, "ring") == 0)
            rings.by_kind[TEAM_ALLREDUCE] = (uint8_t)(row + 1);
    CU_ASSERT_NOT_EQUAL_FATAL(rings.by_kind[TEAM_ALLREDUCE], 0);
    CU_ASSERT_FATAL(engine_team_open(p.b->engine, &info, p.base) >= 0);
    for (uint32_t i = 0; engine_team_find(p.b->engine, i, &found) == 0; i++)
        CU_ASSERT_EQUAL(found.choices.by_kind[TEAM_ALLREDUCE],
                        found.number == NUMBER ? 0 : rings.by_kind[TEAM_ALLREDUCE]);
    l.coll.team = NUMBER + 1;
    l.coll.schedule = rings.by_kind[TEAM_ALLREDUCE] - 1u;
    send_letter(&p, l);
    CU_ASSERT_FALSE(p.b->broken);
    CU_ASSERT_FALSE(has_left(&p, WIRE_BREAK));
    free_pair(&p);
}

/* Guards that a step takes only a few calls from a context whose calls move much data, so that
 * other contexts need not wait until all of these have begun; calls that move little data are all
 * taken. */
static void large_calls_take_turns(void)
{
    static const struct {
        uint32_t length, in_a_step;
    } rows[] = {{0, WINDOW}, {8, WINDOW}, {40, WINDOW}, {512, WINDOW}, {126968, 1}, {126976, 1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p = new_pair();
        uint32_t count = rows[i].length / 8;
        struct engine_teams_view teams;

        for (uint32_t n = 0; n < WINDOW; n++) {
            struct submit_record r = submission(&p, n);

            r.length = rows[i].length;
            r.signature = team_signature(TEAM_ALLREDUCE, WORD_ADD, WORD_U64, 0, count);
            r.data_row = r.length > TEAM_LINE_BYTES ? n : TEAM_LINES;
            bench_submit_unseen(p.b, &r);
        }
        for (uint32_t begun = rows[i].in_a_step; begun <= WINDOW; begun += rows[i].in_a_step) {
            bench_steps(p.b, 1);
            engine_view_teams(p.b->engine, p.b->now, &teams);
            CU_ASSERT_EQUAL(teams.under_way, begun);
        }
        CU_ASSERT_FALSE(p.b->quarantined);
        free_pair(&p);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"submissions that make no sense", bad_submissions_are_quarantined},
        {"submissions out of turn break the team", submissions_out_of_turn_break_the_team},
        {"submissions for a team that was left", submissions_of_who_has_left_are_dropped},
        {"opening, and memory", teams_take_what_memory_there_is},
        {"a user leaves teams to others", a_user_leaves_teams_to_others},
        {"a participant that is alone has no letters", alone_there_are_no_letters},
        {"a client's teams fit", teams_of_a_client_fit},
        {"too many slots", too_many_slots_are_refused},
        {"a team keeps its algorithms", a_team_keeps_its_algorithms},
        {"large calls take turns", large_calls_take_turns},
        CU_TEST_INFO_NULL,
    };

    return suite_run("team_calls", tests);
}
