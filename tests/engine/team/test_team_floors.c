/*
 * Floors, and the ACKs that hold them: when letters and submissions wait for a floor, when late
 * ACKs are hastened, and what waiting costs. The test is the other engine (pair.h). One thread.
 */
#include "tests/engine/team/pair.h"
#include "tests/suite.h"

/* Guards that no letter is sent for an instance that is a window ahead of the other engine's floor.
 */
static void floors_hold_letters(void)
{
    struct letter_record l = letter(WINDOW, 1);
    struct pair p = new_pair();
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = NUMBER,
                           .floor = 1,
                           .from = 1};

    for (uint64_t s = 0; s < WINDOW; s++) {
        send_letter(&p, letter(s, 1));
        call(&p, s, 1);
        CU_ASSERT_TRUE(ended(&p, s, 2));
    }
    bench_ack(p.b);
    bench_ack(p.b); /* two FLOORs hasten ACKs; the second leaves after the first is acknowledged */
    p.b->fabric.kinds = 0;
    call(&p, WINDOW, 1);
    CU_ASSERT_FALSE(p.b->quarantined);
    CU_ASSERT_FALSE(has_left(&p, WIRE_COLL));
    CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR)); /* FLOOR asks for the other engine's floor */
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
    l.coll.floor = 1;
    send_letter(&p, l);
    CU_ASSERT_TRUE(ended(&p, WINDOW, 2));
    free_pair(&p);
}

/* Guards the count of what waits for a peer, which keepalive looks at: the peer's letters of the
 * round under way, or else the floor that holds our letters back. A letter that no member here
 * waits for does not count. */
static void what_waits_for_a_peer_is_counted(void)
{
    struct pair p = new_pair();
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = NUMBER,
                           .floor = 1,
                           .from = 1};

    call(&p, 0, 1);
    CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 1);
    send_letter(&p, letter(1, 1));
    CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 1);
    for (uint64_t s = 0; s < WINDOW; s++) {
        if (s != 1)
            send_letter(&p, letter(s, 1));
        CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 0);
        if (s > 0)
            call(&p, s, 1);
    }
    bench_ack(p.b);
    call(&p, WINDOW, 1);
    CU_ASSERT_FALSE(has_left(&p, WIRE_BREAK));
    CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 1); /* waits for the peer's floor */
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 1);
    CU_ASSERT_EQUAL(peek_census(p.b->engine).miscounted, 0);
    engine_team_break(p.b->engine, p.handle);
    CU_ASSERT_EQUAL(peek_awaited(p.b->engine, 1), 0);
    free_pair(&p);
}

/* Both engines make call `sequence`, and nothing is acknowledged. */
static void end_unacknowledged(struct pair *p, uint64_t sequence)
{
    struct letter_record l = letter(sequence, 1);

    l.coll.floor = sequence;
    send_letter(p, l);
    call(p, sequence, 1);
}

/* As before, and all letters are acknowledged: the floor moves. */
static void end_call(struct pair *p, uint64_t sequence)
{
    end_unacknowledged(p, sequence);
    bench_ack(p->b);
}

/* Guards that the ACK of a letter may be late, and that a FLOOR is acknowledged at once, together
 * with the letters before it. */
static void floors_are_acknowledged_at_once(void)
{
    struct pair p = new_pair();
    struct wire_floor w = {
        .head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR}, .team = NUMBER, .from = 1};

    bench_steps(p.b, 2);
    p.b->fabric.kinds = 0;
    send_letter(&p, letter(0, 1));
    p.b->now += 15000000;
    bench_steps(p.b, 2);
    CU_ASSERT_FALSE(has_left(&p, WIRE_ACK));
    p.b->now += 1000000;
    bench_steps(p.b, 2);
    CU_ASSERT_TRUE(has_left(&p, WIRE_ACK));
    send_letter(&p, letter(1, 1));
    bench_steps(p.b, 2);
    p.b->fabric.kinds = 0;
    bench_send(p.b, &w, sizeof(w));
    bench_steps(p.b, 2);
    CU_ASSERT_TRUE(has_left(&p, WIRE_ACK));
    free_pair(&p);
}

/* Guards that the engine asks for late ACKs by one FLOOR when half a window of calls has ended
 * without them, and does not ask where ACKs come in time. */
static void late_acknowledgements_are_hastened(void)
{
    struct pair p = new_pair();
    uint64_t s;

    p.b->fabric.kinds = 0;
    for (s = 0; s < 2 * WINDOW; s++)
        end_call(&p, s);
    for (; s < 2 * WINDOW + WINDOW / 2; s++) {
        CU_ASSERT_FALSE(has_left(&p, WIRE_FLOOR));
        end_unacknowledged(&p, s);
    }
    CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR));
    end_unacknowledged(&p, s);
    p.b->fabric.kinds = 0;
    bench_ack(p.b);
    CU_ASSERT_FALSE(has_left(&p, WIRE_FLOOR));
    free_pair(&p);
}

/* Guards that the engine asks for late ACKs as soon as another engine waits for its floor, and does
 * so, too, when the instance at the floor ends after that engine has asked. */
static void acknowledgements_are_hastened_for_others(void)
{
    const struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                                 .team = NUMBER,
                                 .wanted = 1,
                                 .from = 1};

    for (int ends_first = 0; ends_first < 2; ends_first++) {
        struct pair p = new_pair();

        if (ends_first)
            end_unacknowledged(&p, 0);
        p.b->fabric.kinds = 0;
        bench_send(p.b, &w, sizeof(w));
        CU_ASSERT_EQUAL(has_left(&p, WIRE_FLOOR), ends_first);
        if (!ends_first)
            end_unacknowledged(&p, 0);
        CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR));
        free_pair(&p);
    }
}

/* Guards that the ACKs of an instance are hastened that ends after those of later ones were. */
static void late_ends_are_hastened(void)
{
    struct pair p = new_pair();

    for (uint64_t s = 1; s <= 2; s++) {
        send_letter(&p, letter(s, 1));
        call(&p, s, 1);
        bench_ack(p.b);
    }
    bench_ack(p.b);
    p.b->fabric.kinds = 0;
    send_letter(&p, letter(0, 1));
    call(&p, 0, 1);
    CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR));
    free_pair(&p);
}

/* Guards that the engine looks at all participants only when the floor has reached what one of them
 * waits for, and not each time that the floor moves: a peer that asks for an instance that never
 * comes costs nothing. */
static void far_floors_cost_nothing(void)
{
    struct pair p = new_pair();
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = NUMBER,
                           .wanted = UINT64_MAX,
                           .from = 1};

    bench_send(p.b, &w, sizeof(w));
    end_call(&p, 0);
    CU_ASSERT_EQUAL(peek_team_wanted(p.b->engine, p.handle), UINT64_MAX);
    w.wanted = 3;
    bench_send(p.b, &w, sizeof(w));
    CU_ASSERT_EQUAL(peek_team_wanted(p.b->engine, p.handle), 3);
    end_call(&p, 1);
    CU_ASSERT_EQUAL(peek_team_wanted(p.b->engine, p.handle), 3);
    p.b->fabric.kinds = 0;
    end_call(&p, 2);
    CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR));
    CU_ASSERT_EQUAL(peek_team_wanted(p.b->engine, p.handle), UINT64_MAX);
    CU_ASSERT_FALSE(p.b->broken);
    free_pair(&p);
}

/* A pair whose team has this window. Both engines have ended `window` bcasts of ours, and the other
 * engine has not sent its floor; then as many more bcasts wait for that floor. */
static struct pair waiting_pair(uint32_t window)
{
    uint64_t bytes = team_area_bytes(1, window), often = window < 32 ? window : 32;
    struct pair p = new_pair();
    struct submit_record r;
    int handle;

    free(p.base);
    p.base = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p.base);
    memset(p.base, 0, bytes);
    team_area_format(p.base, 1, window);
    handle = open_team(&p, NUMBER + 1, window);
    CU_ASSERT_FATAL(handle >= 0);
    p.handle = (uint32_t)handle;
    r = submission(&p, 0);
    r.code = TEAM_BCAST;
    for (; r.instance < 2ull * window; r.instance++) {
        bench_submit(p.b, &r);
        if (r.instance % often == often - 1)
            bench_ack(p.b);
    }
    bench_ack(p.b);
    CU_ASSERT_FALSE(p.b->quarantined);
    return p;
}

/* Sends the other engine's floor of a team. Returns for how many bytes of the step's work that
 * counts. */
static uint64_t send_floor_of(struct pair *p, uint64_t team, uint64_t floor)
{
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = team,
                           .floor = floor,
                           .from = 1};
    uint64_t before = peek_teams_moved(p->b->engine);

    bench_send(p->b, &w, sizeof(w));
    return peek_teams_moved(p->b->engine) - before;
}

/* As before, for the team of waiting_pair. */
static uint64_t send_floor(struct pair *p, uint64_t floor)
{
    return send_floor_of(p, NUMBER + 1, floor);
}

/* Guards what a floor costs where many calls wait for it: the engine looks only at calls that may
 * go on, however many wait, and what it looks at counts as work of the floor's sender. */
static void a_floor_costs_what_it_lets_go(void)
{
    static const uint32_t windows[] = {64, 4096};

    for (size_t i = 0; i < COUNT(windows); i++) {
        struct pair p = waiting_pair(windows[i]);
        uint64_t one, many;

        p.b->fabric.kinds = 0;
        one = send_floor(&p, 1);
        CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
        CU_ASSERT_TRUE(has_left(&p, WIRE_FLOOR)); /* asks for the floor of the next call */
        CU_ASSERT(one >= 64 && one < 64 * (2 + TEAM_DATA_ROWS));
        many = send_floor(&p, 33);
        CU_ASSERT(many >= 32 * 64 && many < 64 * (64 + TEAM_DATA_ROWS));
        one = send_floor(&p, 34); /* does not look at the calls again that have gone on */
        CU_ASSERT(one >= 64 && one < 64 * (2 + TEAM_DATA_ROWS));
        CU_ASSERT(send_floor(&p, windows[i]) >= 64 * (windows[i] - 34));
        CU_ASSERT_FALSE(p.b->broken);
        free_pair(&p);
    }
}

/* Submits a bcast of ours with data in row 3. */
static void call_with_data(struct pair *p, uint64_t sequence)
{
    struct submit_record r = submission(p, sequence);

    r.code = TEAM_BCAST;
    r.length = 2500;
    r.data_row = 3;
    bench_submit(p->b, &r);
}

/* Guards that a floor costs nothing where no call waits for one, also while one is under way. */
static void a_floor_for_nobody_costs_nothing(void)
{
    struct pair p = waiting_pair(WINDOW);

    send_floor(&p, WINDOW + 1);
    bench_ack(p.b);
    p.b->fabric.kinds = 0;
    call_with_data(&p, 2 * WINDOW);
    CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
    CU_ASSERT_EQUAL(send_floor(&p, WINDOW + 2), 0);
    CU_ASSERT_FALSE(p.b->quarantined);
    free_pair(&p);
}

/* Guards that a call which waits until the other engine has finished with the call before it in its
 * data row continues when that engine's floor says so. */
static void floors_free_data_rows(void)
{
    struct pair p = new_pair();

    call_with_data(&p, 0);
    bench_ack(p.b);
    bench_ack(p.b);
    p.b->fabric.kinds = 0;
    call_with_data(&p, 1);
    CU_ASSERT_FALSE(has_left(&p, WIRE_COLL));
    CU_ASSERT(send_floor_of(&p, NUMBER, 1) >= 64);
    CU_ASSERT_TRUE(has_left(&p, WIRE_COLL));
    free_pair(&p);
}

/* Guards that a row is not free before its letters are acknowledged: a submission that needs the
 * row waits in the ring. */
static void submissions_wait_for_acknowledgements(void)
{
    struct pair p = new_pair();

    for (uint64_t s = 0; s < WINDOW; s++) {
        send_letter(&p, letter(s, 1));
        call(&p, s, 1);
    }
    p.b->fabric.kinds = 0;
    call(&p, WINDOW, 1);
    CU_ASSERT_FALSE(p.b->quarantined);
    CU_ASSERT_NOT_EQUAL(atomic_load(&p.b->session->submit.head),
                        atomic_load(&p.b->session->submit.tail));
    bench_ack(p.b);
    bench_steps(p.b, 2);
    CU_ASSERT_EQUAL(atomic_load(&p.b->session->submit.head),
                    atomic_load(&p.b->session->submit.tail));
    free_pair(&p);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"the other engine's floor holds letters", floors_hold_letters},
        {"a FLOOR is acknowledged at once", floors_are_acknowledged_at_once},
        {"late acknowledgements are hastened", late_acknowledgements_are_hastened},
        {"acknowledgements are hastened for others", acknowledgements_are_hastened_for_others},
        {"late ends are hastened", late_ends_are_hastened},
        {"floors that never come cost nothing", far_floors_cost_nothing},
        {"what waits for a peer is counted", what_waits_for_a_peer_is_counted},
        {"a floor costs what it lets go", a_floor_costs_what_it_lets_go},
        {"a floor for nobody costs nothing", a_floor_for_nobody_costs_nothing},
        {"floors free data rows", floors_free_data_rows},
        {"submissions wait for acknowledgements", submissions_wait_for_acknowledgements},
        CU_TEST_INFO_NULL,
    };

    return suite_run("team_floors", tests);
}
