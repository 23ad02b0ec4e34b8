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
        {"submissions wait for acknowledgements", submissions_wait_for_acknowledgements},
        CU_TEST_INFO_NULL,
    };

    return suite_run("team_floors", tests);
}
