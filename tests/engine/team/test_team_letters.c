/*
 * Letters of teams in one engine: what they bring, which ones break the team, and which ones the
 * link; random letters. One thread.
 */
#include "tests/suite.h"
#include <stdio.h>
#include "tests/engine/team/pair.h"

#define MUTATIONS 100000u

/* ---- good letters ---------------------------------------------------------------------------- */

static void early_letters_are_kept(void)
{
    struct pair p = new_pair();

    send_letter(&p, letter(1, 50));
    send_letter(&p, letter(0, 40));
    CU_ASSERT_FALSE(p.b->broken);
    CU_ASSERT_EQUAL(team_ended(&p.area, 0), 0);
    CU_ASSERT_FALSE(has_left(&p, WIRE_COLL));
    call(&p, 0, 2);
    CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
    CU_ASSERT_TRUE(ended(&p, 0, 42));
    call(&p, 1, 3);
    CU_ASSERT_TRUE(ended(&p, 1, 53));
    CU_ASSERT_FALSE(p.b->quarantined);
    free_pair(&p);
}

/* Guards that all rows of the table are listed, and count the calls that used them. For a kind that
 * the configuration decides, only the row that it chose is listed. */
static void calls_and_letters_are_counted(void)
{
    struct pair p = new_pair();
    struct view_collective rows[COLL_ROWS];
    uint32_t from = 0, row = schedule_of(TEAM_ALLREDUCE);

    CU_ASSERT_EQUAL(engine_view_collectives(p.b->engine, &from, rows, COLL_ROWS), COLL_ROWS);
    CU_ASSERT_EQUAL(rows[row].calls, 0);
    call(&p, 0, 2);
    call(&p, 1, 3);
    send_letter(&p, letter(1, 50));
    from = 0;
    CU_ASSERT_EQUAL_FATAL(engine_view_collectives(p.b->engine, &from, rows, COLL_ROWS), COLL_ROWS);
    CU_ASSERT_STRING_EQUAL(rows[row].kind, "allreduce");
    CU_ASSERT_STRING_EQUAL(rows[row].algorithm, "doubling");
    CU_ASSERT(rows[row].from == 0 && rows[row].least == 0 && rows[row].most == 0);
    CU_ASSERT(rows[row].calls == 1 && rows[row].bytes == 8);
    CU_ASSERT(rows[row].letters == 2 && rows[row].letter_bytes == 16);
    CU_ASSERT_STRING_EQUAL(rows[row - 2].algorithm, "ring");
    CU_ASSERT(rows[row - 2].from == 32768);
    CU_ASSERT(rows[row - 2].least == 3 && rows[row - 2].most == 9);
    CU_ASSERT(rows[row - 2].calls == 0 && rows[row - 2].letters == 0);
    free_pair(&p);
}

static struct engine_teams_view teams_of(const struct pair *p)
{
    struct engine_teams_view v;

    engine_view_teams(p->b->engine, p->b->now, &v);
    CU_ASSERT_EQUAL(v.oldest_ns, engine_view_oldest_call(p->b->engine, p->handle, p->b->now));
    return v;
}

/* Guards the view of calls under way: a call counts when the last member here has called, the age
 * is that of the call with the lowest number, and a break ends all calls. */
static void calls_under_way_are_counted(void)
{
    struct pair p = new_pair();
    struct engine_teams_view v = teams_of(&p);

    CU_ASSERT(v.teams == 1 && v.under_way == 0 && v.oldest_ns == 0);
    bench_steps(p.b, 200); /* the clock of the bench is not at 0 */
    send_letter(&p, letter(0, 50));
    CU_ASSERT_EQUAL(teams_of(&p).under_way, 0);
    call(&p, 2, 1);
    bench_steps(p.b, 1000); /* 10 ms */
    call(&p, 1, 1);
    v = teams_of(&p);
    CU_ASSERT(v.under_way == 2 && v.calls == 0 && v.oldest_ns <= 1000000);
    send_letter(&p, letter(1, 1));
    v = teams_of(&p);
    CU_ASSERT(v.under_way == 1 && v.calls == 1 && v.bytes == 8);
    CU_ASSERT(v.oldest_ns >= 8000000 && v.oldest_ns <= 12000000);
    call(&p, 0, 1);
    CU_ASSERT_EQUAL(teams_of(&p).under_way, 1);
    engine_team_break(p.b->engine, p.handle);
    v = teams_of(&p);
    CU_ASSERT(v.under_way == 0 && v.oldest_ns == 0 && v.broken == 1 && v.failed == 1);
    CU_ASSERT_EQUAL(v.calls, 2);
    free_pair(&p);
}

/* A record with a part of a bcast's data, which has 2500 bytes in all. */
struct data_record {
    struct wire_coll coll;
    uint8_t data[1536];
};

static bool send_data(struct pair *p, uint32_t at, uint32_t bytes, char fill)
{
    struct data_record d = {.coll = letter(0, 0).coll};

    d.coll.kind = TEAM_BCAST;
    d.coll.schedule = schedule_of(TEAM_BCAST);
    d.coll.root = 1;
    d.coll.length = d.coll.bytes = 2500;
    d.coll.row = 3;
    d.coll.at = at;
    memset(d.data, fill, bytes);
    d.coll.head.words = (uint16_t)((sizeof(d.coll) + abi_pad8(bytes)) / 8);
    return bench_send(p->b, &d, d.coll.head.words * 8u) && !p->b->broken;
}

/* Guards that a bcast's data goes into the result as soon as the last member has called. */
static void data_comes_in_records(void)
{
    struct pair p = new_pair();
    struct submit_record r = submission(&p, 0);

    r.code = TEAM_BCAST;
    r.root = 1;
    r.length = 2500;
    r.data_row = 3;
    CU_ASSERT_TRUE(send_data(&p, 0, 1536, 'a'));
    CU_ASSERT_TRUE(send_data(&p, 1536, 64, 'b'));
    bench_submit(p.b, &r);
    CU_ASSERT_EQUAL(team_ended(&p.area, 0), 0);
    CU_ASSERT_TRUE(send_data(&p, 1600, 900, 'c'));
    CU_ASSERT_EQUAL(team_ended(&p.area, 0), 1);
    CU_ASSERT_EQUAL(team_row(&p.area, 0)->result.length, 2500);
    CU_ASSERT_EQUAL(p.area.data[3].result[1535], 'a');
    CU_ASSERT_EQUAL(p.area.data[3].result[1599], 'b');
    CU_ASSERT_EQUAL(p.area.data[3].result[2499], 'c');
    free_pair(&p);
}

/* Guards the second of two records of one letter: unless it continues the first, it breaks the
 * link. */
static void bad_records_break_the_link(void)
{
    static const struct {
        uint32_t at, bytes;
        const char *what;
    } rows[] = {{0, 64, "data that has come"},
                {1024, 64, "data before its turn"},
                {512, 100, "half a unit"},
                {512, 1536, "all but the end, and less than a unit"},
                {512, 0, "no data"},
                {UINT32_MAX - 63, 64, "data behind the end of all"},
                {UINT32_MAX, 1536, "no such place"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p = new_pair();
        bool good = i == 3;

        CU_ASSERT_TRUE(send_data(&p, 0, 512, 'a'));
        if (send_data(&p, rows[i].at, rows[i].bytes, 'b') != good)
            printf("%s: %s\n", rows[i].what, good ? "is not taken" : "is taken");
        CU_ASSERT_EQUAL(p.b->broken, !good);
        free_pair(&p);
    }
}

static void sleepers_are_woken(void)
{
    struct pair p = new_pair();
    uint32_t before;

    call(&p, 0, 1);
    team_sleep(&p.area, 0);
    atomic_store(&p.b->session->event_bell.armed, 1);
    before = p.b->woken;
    send_letter(&p, letter(0, 1));
    CU_ASSERT_EQUAL(p.b->woken, before + 1);
    CU_ASSERT_EQUAL(atomic_load(&p.area.shared->sleepers[0]), 0);
    free_pair(&p);
}

/* Guards that the engine says when it has published a result: the progress thread then yields to
 * members that poll on its core. */
static void a_result_is_published(void)
{
    struct pair p = new_pair();
    struct letter_record l = letter(0, 5);

    call(&p, 0, 1);
    CU_ASSERT_TRUE(bench_send_unseen(p.b, &l, sizeof(l)));
    bench_steps(p.b, 1);
    CU_ASSERT_TRUE(ended(&p, 0, 6));
    CU_ASSERT_TRUE(engine_published(p.b->engine));
    bench_steps(p.b, 1);
    CU_ASSERT_FALSE(engine_published(p.b->engine));
    free_pair(&p);
}

/* ---- bad letters ----------------------------------------------------------------------------- */

/* Makes senseless letter `number`. Returns what is wrong with it; NULL: there are no more. */
static const char *make_bad(struct letter_record *l, size_t number)
{
    switch (number) {
    case 0:
        l->coll.from = 0;
        return "from ourselves";
    case 1:
        l->coll.from = 2;
        return "from nobody";
    case 2:
        l->coll.sequence = WINDOW;
        return "beyond the window";
    case 3:
        l->coll.root = 1;
        return "a root where there is none";
    case 4:
        l->coll.kind = TEAM_USER;
        return "no kind";
    case 5:
        l->coll.round = 1;
        return "no such round";
    case 6:
        l->coll.at = 8;
        return "data behind its end";
    case 7:
        l->coll.bytes = 16;
        return "more bytes than the round has";
    case 8:
        l->coll.length = l->coll.bytes = TEAM_INPUT_MAX + 8;
        return "longer than a data row";
    case 9:
        l->coll.length = l->coll.bytes = 48;
        return "longer than a line";
    case 10:
        l->coll.row = TEAM_DATA_ROWS;
        return "no such data row";
    case 11:
        l->coll.length = l->coll.bytes = 7;
        return "half an element";
    case 12:
        l->coll.signature = team_signature(TEAM_ALLREDUCE, WORD_AND, WORD_F64, 0, 1);
        return "no fold";
    case 13:
        l->coll.signature = team_signature(TEAM_ALLREDUCE, 16 | WORD_ADD, WORD_I8, 0, 1);
        return "no type";
    case 14:
        l->coll.head.words--;
        return "less data than it says";
    default:
        return NULL;
    }
}

static void bad_letters_break_the_link(void)
{
    struct letter_record l = letter(0, 5);
    struct team_reason reason;
    const char *what;

    for (size_t i = 0; (what = make_bad(&l, i)) != NULL; i++, l = letter(0, 5)) {
        struct pair p = new_pair();

        bench_send(p.b, &l, l.coll.head.words * 8u);
        if (!p.b->broken)
            printf("%s is taken\n", what);
        CU_ASSERT_TRUE(p.b->broken);
        CU_ASSERT_EQUAL(broken(&p, &reason), 0);
        free_pair(&p);
    }
}

static void no_letter_comes_twice(void)
{
    struct pair p = new_pair();

    send_letter(&p, letter(0, 5));
    CU_ASSERT_FALSE(p.b->broken);
    send_letter(&p, letter(0, 5));
    CU_ASSERT_TRUE(p.b->broken);
    free_pair(&p);
}

/* Guards that a floor never moves back. */
static void floors_only_grow(void)
{
    struct pair p = new_pair();
    struct letter_record l = letter(0, 5);

    l.coll.floor = 3;
    send_letter(&p, l);
    CU_ASSERT_FALSE(p.b->broken);
    l = letter(1, 5);
    l.coll.floor = 2;
    send_letter(&p, l);
    CU_ASSERT_TRUE(p.b->broken);
    free_pair(&p);
}

/* ---- breaks ---------------------------------------------------------------------------------- */

/* Guards a break by calls that differ: whichever call comes first, the break names the other one
 * second. */
static void other_calls_break_the_team(void)
{
    for (int first = 0; first < 2; first++) {
        struct pair p = new_pair();
        struct letter_record l = letter(0, 5);
        struct team_reason reason;

        l.coll.signature = team_signature(TEAM_ALLREDUCE, WORD_XOR, WORD_U64, 0, 1);
        if (first == 0)
            send_letter(&p, l);
        call(&p, 0, 1);
        if (first == 1)
            send_letter(&p, l);
        CU_ASSERT_FALSE(p.b->broken);
        CU_ASSERT_EQUAL(broken(&p, &reason), -EBADMSG);
        CU_ASSERT_EQUAL(reason.sequence, 0);
        CU_ASSERT_EQUAL(reason.rank[first == 0], 0);
        CU_ASSERT_EQUAL(reason.rank[first == 1], 1);
        CU_ASSERT_EQUAL(reason.signature[first == 0], sum_signature());
        CU_ASSERT_EQUAL(reason.signature[first == 1], l.coll.signature);
        CU_ASSERT_TRUE(has_left(&p, WIRE_BREAK));
        CU_ASSERT_EQUAL(team_ended(&p.area, 0), 0);
        free_pair(&p);
    }
}

/* Guards that engines which choose by different tables notice that by the first letter, also before
 * the call. */
static void other_schedules_break_the_team(void)
{
    for (int called = 0; called < 2; called++) {
        struct pair p = new_pair();
        struct letter_record l = letter(0, 1);
        struct team_reason reason;

        if (called)
            call(&p, 0, 1);
        l.coll.schedule++;
        send_letter(&p, l);
        CU_ASSERT_EQUAL(broken(&p, &reason), -EBADMSG);
        CU_ASSERT(reason.rank[0] == 0 && reason.rank[1] == 1 && reason.sequence == 0);
        CU_ASSERT_EQUAL(reason.signature[0], sum_signature());
        CU_ASSERT_EQUAL(reason.signature[1], sum_signature());
        CU_ASSERT_FALSE(p.b->broken);
        free_pair(&p);
    }
}

static void members_that_differ_break_the_team(void)
{
    struct pair p = new_pair();
    struct submit_record r = submission(&p, 2);
    struct team_reason reason;

    r.code = TEAM_MISMATCH;
    r.root = 3;
    r.local_offset = 9;
    r.data_row = 6;
    bench_submit(p.b, &r);
    CU_ASSERT_EQUAL(broken(&p, &reason), -EBADMSG);
    CU_ASSERT(reason.sequence == 2 && reason.rank[0] == 3 && reason.rank[1] == 9 &&
              reason.signature[0] == sum_signature() && reason.signature[1] == 6);
    CU_ASSERT_FALSE(p.b->quarantined);
    free_pair(&p);
}

static void breaks_are_passed_on_and_answered(void)
{
    struct pair p = new_pair();
    struct wire_break w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_BREAK},
                           .team = NUMBER,
                           .status = -EHOSTDOWN,
                           .rank = {1, UINT32_MAX},
                           .from = 1};
    struct team_reason reason;

    call(&p, 0, 1);
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_FALSE(p.b->broken);
    CU_ASSERT_EQUAL(broken(&p, &reason), -EHOSTDOWN);
    CU_ASSERT_EQUAL(reason.rank[0], 1);
    CU_ASSERT_TRUE(has_left(&p, WIRE_BREAK));
    bench_ack(p.b);
    p.b->fabric.kinds = 0;
    bench_steps(p.b, 4);
    CU_ASSERT_FALSE(has_left(&p, WIRE_BREAK)); /* BREAK is sent only once */
    send_letter(&p, letter(0, 5));
    CU_ASSERT_FALSE(p.b->broken);
    CU_ASSERT_TRUE(has_left(&p, WIRE_BREAK));
    CU_ASSERT_EQUAL(team_ended(&p.area, 0), 0);
    call(&p, 1, 1); /* from a member that has not seen the break */
    CU_ASSERT_FALSE(p.b->quarantined);
    free_pair(&p);
}

/* Guards that a participant which sends a letter for a team that this engine does not know gets
 * BREAK: one of the two has lost its state. */
static void unknown_teams_are_answered(void)
{
    struct pair p = new_pair();
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = NUMBER + 1,
                           .wanted = 1,
                           .from = 1};
    struct letter_record l = letter(0, 5);

    l.coll.team = NUMBER + 1;
    send_letter(&p, l);
    CU_ASSERT_TRUE(has_left(&p, WIRE_BREAK));
    p.b->fabric.kinds = 0;
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_TRUE(has_left(&p, WIRE_BREAK));
    p.b->fabric.kinds = 0;
    w.wanted = 0;
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_FALSE(has_left(&p, WIRE_BREAK));
    CU_ASSERT_FALSE(p.b->broken);
    free_pair(&p);
}

/* Guards that each of these letters breaks the team and not the link: members that lie to the other
 * engine can make it send them, and the link carries others' operations. */
static void letters_out_of_turn_break_the_team(void)
{
    static const struct {
        uint64_t ended, held, sent; /* instances; UINT64_MAX: none */
    } rows[] = {
        {0, UINT64_MAX, 0}, /* after the floor */
        {1, UINT64_MAX, 1}, /* the instance is over, although an earlier one is not */
        {UINT64_MAX, 0, 1}, /* its data row is in use */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair p = new_pair();
        struct {
            struct wire_coll coll;
            uint64_t data[6];
        } l = {.coll = letter(rows[i].held, 1).coll};
        struct team_reason reason;

        if (rows[i].ended != UINT64_MAX) {
            call(&p, rows[i].ended, 1);
            send_letter(&p, letter(rows[i].ended, 1));
            bench_ack(p.b);
        } else {
            l.coll.head.words = sizeof(l) / 8;
            l.coll.row = 3;
            l.coll.kind = TEAM_BCAST;
            l.coll.schedule = schedule_of(TEAM_BCAST);
            l.coll.root = 1;
            l.coll.length = l.coll.bytes = sizeof(l.data);
            CU_ASSERT_TRUE(bench_send(p.b, &l, sizeof(l)));
        }
        CU_ASSERT_FALSE(p.b->broken);
        CU_ASSERT_EQUAL(broken(&p, &reason), 0);
        l.coll.sequence = rows[i].sent;
        CU_ASSERT_TRUE(bench_send(p.b, &l, l.coll.head.words * 8u));
        expect_forged(&p, rows[i].sent, 1);
        free_pair(&p);
    }
}

/* ---- mutations ------------------------------------------------------------------------------- */

static uint64_t random_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Makes a letter of any kind that is nearly right. */
static uint32_t random_letter(uint64_t number, uint64_t *state, uint64_t *words)
{
    struct letter_record l = letter(random_word(state) % (WINDOW + 1), 1);
    struct wire_floor f = {.head = {.words = sizeof(f) / 8, .kind = WIRE_FLOOR},
                           .team = number,
                           .wanted = random_word(state) % 3,
                           .from = 1};
    struct wire_break b = {.head = {.words = sizeof(b) / 8, .kind = WIRE_BREAK},
                           .team = number,
                           .status = -EHOSTDOWN,
                           .from = 1};
    uint32_t size, which = (uint32_t)(random_word(state) % 40);

    l.coll.team = number;
    if (which == 0) {
        size = sizeof(b);
        memcpy(words, &b, size);
    } else if (which < 4) {
        size = sizeof(f);
        memcpy(words, &f, size);
    } else {
        static const uint32_t lengths[] = {0, 8, 40, 41, 1024, 1500, 4096};

        l.coll.kind = (uint8_t)(1 + random_word(state) % TEAM_ALLTOALL);
        l.coll.length = l.coll.bytes = lengths[random_word(state) % COUNT(lengths)];
        if (l.coll.length > 40)
            l.coll.row = (uint8_t)(random_word(state) % TEAM_DATA_ROWS);
        l.coll.at = (uint32_t)(random_word(state) % 3 * 1024);
        size = sizeof(l.coll) + abi_pad8(l.coll.bytes < 1024 ? l.coll.bytes : 1024);
        l.coll.head.words = (uint16_t)(size / 8);
        memset(words, 0, size);
        memcpy(words, &l, sizeof(l.coll));
    }
    if (random_word(state) % 2) {
        uint32_t at = 2 + (uint32_t)(random_word(state) % (sizeof(l.coll) / 2 - 4));
        uint16_t *half = (uint16_t *)(void *)words + 2 * at;

        if (at * 4 < size)
            *half = (uint16_t)(random_word(state) >> (random_word(state) % 16));
    }
    return size;
}

/* Begins the link again; the test has consumed all that was sent to it. */
static bool relink(struct bench *b)
{
    b->position = peek_peer(b->engine, 1).posted;
    return bench_link(b) == 0;
}

/* Makes the link and the team work again, or new ones. Returns the team's number. */
static uint64_t renew(struct pair *p, uint64_t number)
{
    bool linked = !p->b->broken || relink(p->b);
    struct team_reason reason;
    int handle = -EPROTO;

    if (linked && broken(p, &reason) == 0 && !p->b->quarantined)
        return number;
    if (linked && !p->b->quarantined) {
        engine_team_leave(p->b->engine, p->handle, 0);
        bench_ack(p->b);
        memset(p->base, 0, team_area_bytes(1, WINDOW));
        team_area_format(p->base, 1, WINDOW);
        handle = open_team(p, number + 1, WINDOW);
    }
    if (handle >= 0) {
        p->handle = (uint32_t)handle;
        return number + 1;
    }
    free_pair(p);
    *p = new_pair();
    return NUMBER;
}

/* Guards that an engine stays well, whatever letters it gets. */
static void mutations(void)
{
    uint64_t words[(sizeof(struct wire_coll) + 1024) / 8 + 1], state = 1, calls = 0;
    uint64_t number = NUMBER, before, taken = 0;
    struct pair p = new_pair();

    for (uint32_t i = 0; i < MUTATIONS; i++) {
        uint32_t size = random_letter(number, &state, words);

        if (!bench_send(p.b, words, size))
            p.b->broken = true; /* its ring is full: begin a new link */
        taken += !p.b->broken;
        before = number;
        number = renew(&p, number);
        calls = number == before ? calls : 0;
        if (random_word(&state) % 4 == 0 && calls < WINDOW)
            call(&p, calls++, 1);
        if (random_word(&state) % 8 == 0)
            bench_ack(p.b);
    }
    CU_ASSERT(taken > MUTATIONS / 8 && taken < MUTATIONS - MUTATIONS / 8);
    CU_ASSERT(number > NUMBER + 100); /* teams that broke */
    free_pair(&p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"letters that come before the call are kept", early_letters_are_kept},
        {"calls and letters are counted", calls_and_letters_are_counted},
        {"calls under way are counted", calls_under_way_are_counted},
        {"data comes in several records", data_comes_in_records},
        {"records that make no sense break the link", bad_records_break_the_link},
        {"sleepers are woken", sleepers_are_woken},
        {"a result is published", a_result_is_published},
        {"letters that make no sense break the link", bad_letters_break_the_link},
        {"no letter comes twice", no_letter_comes_twice},
        {"floors only grow", floors_only_grow},
        {"calls that differ break the team", other_calls_break_the_team},
        {"members that differ break the team", members_that_differ_break_the_team},
        {"schedules that differ break the team", other_schedules_break_the_team},
        {"breaks are passed on once, and are the answer to letters",
         breaks_are_passed_on_and_answered},
        {"letters for a team that is not known are answered", unknown_teams_are_answered},
        {"letters out of turn break the team", letters_out_of_turn_break_the_team},
        {"10^5 mutations", mutations},
        CU_TEST_INFO_NULL,
    };

    return suite_run("team_letters", tests);
}
