/*
 * The users of the control thread take turns: one user has many connections, another has a single
 * one. The test is pure: it calls the functions that the loop would call.
 */
#include <string.h>
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/turns.h"
#include "tests/suite.h"

enum { MANY = 3 * TURN_REQUESTS };

static struct control control;
static struct quota_user crowd, single;
static struct client many[MANY], one;

static void begin(void)
{
    memset(&control, 0, sizeof(control));
    memset(many, 0, sizeof(many));
    memset(&one, 0, sizeof(one));
    crowd = (struct quota_user){.uid = 1, .next = &single};
    single = (struct quota_user){.uid = 2};
    control.users = &crowd;
    control.turn = 1;
    for (int i = 0; i < MANY; i++)
        many[i] = (struct client){.control = &control, .user = &crowd};
    one = (struct client){.control = &control, .user = &single};
}

/* In this turn of the loop each of these connections gets through as many requests as it can.
 * Returns their number. */
static uint32_t take_all(struct client *clients, uint32_t count)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < count; i++)
        for (; !clients[i].in_line && turns_may(&clients[i]); taken++)
            turns_count(&clients[i]);
    return taken;
}

static uint32_t next_turn(void)
{
    uint32_t called = 0;

    control.turn++;
    while (turns_next(&control))
        called++;
    return called;
}

/* However many connections ask, a turn of the loop takes a bounded number of their user's requests,
 * so that another user's requests get through. */
static void a_share_each(void)
{
    begin();
    CU_ASSERT_EQUAL(take_all(many, MANY), TURN_REQUESTS);
    CU_ASSERT_EQUAL(control.in_line, MANY);
    CU_ASSERT_EQUAL(take_all(&one, 1), TURN_REQUESTS);
    CU_ASSERT_EQUAL(next_turn(), TURN_REQUESTS + 1);
    CU_ASSERT_FALSE(one.in_line);
    CU_ASSERT_EQUAL(take_all(many, MANY), TURN_REQUESTS);
}

/* The connection that has waited longest is served first. */
static void first_in_line(void)
{
    begin();
    crowd.taken = TURN_REQUESTS;
    crowd.turn = control.turn;
    CU_ASSERT_EQUAL(take_all(many, MANY), 0);
    for (int turn = 0; turn < 3; turn++) {
        CU_ASSERT_EQUAL(next_turn(), TURN_REQUESTS);
        for (uint32_t i = 0; i < MANY; i++)
            CU_ASSERT_EQUAL(many[i].in_line, i >= (turn + 1) * TURN_REQUESTS);
    }
    CU_ASSERT_EQUAL(control.in_line, 0);
}

/* A user with enough requests under way, in the engines or at other nodes, waits until one has
 * returned. */
static void enough_under_way(void)
{
    uint32_t *const counts[] = {&crowd.calls, &crowd.pending};
    static const uint32_t limits[] = {TURN_CALLS_MAX, TURN_PENDING_MAX};

    for (int i = 0; i < 2; i++) {
        begin();
        *counts[i] = limits[i];
        CU_ASSERT_EQUAL(take_all(many, MANY), 0);
        CU_ASSERT_EQUAL(next_turn(), 0);
        CU_ASSERT_EQUAL(take_all(&one, 1), TURN_REQUESTS);
        (*counts[i])--;
        CU_ASSERT_EQUAL(next_turn(), TURN_REQUESTS + 1);
    }
}

/* A connection that ends leaves the line, from any place. */
static void leaves_the_line(void)
{
    static const uint32_t order[] = {MANY - 1, 0, MANY / 2};

    begin();
    crowd.calls = TURN_CALLS_MAX;
    (void)take_all(many, MANY);
    for (uint32_t i = 0; i < 3; i++)
        turns_leave(&many[order[i]]);
    turns_leave(&many[0]); /* a client that has left may leave again */
    CU_ASSERT_EQUAL(control.in_line, MANY - 3);
    crowd.calls = 0;
    for (uint32_t called = 0; called < MANY - 3;)
        called += next_turn();
    CU_ASSERT_EQUAL(control.in_line, 0);
    CU_ASSERT_PTR_NULL(crowd.line);
    crowd.calls = TURN_CALLS_MAX;
    CU_ASSERT_FALSE(turns_may(&many[0]));
    CU_ASSERT_PTR_EQUAL(crowd.line, &many[0]);
}

/* A user's connections are counted when they arrive, look, and become ranks. */
static void states_are_counted(void)
{
    begin();
    for (int i = 0; i < MANY; i++)
        client_becomes(&many[i], CLIENT_STRANGER);
    CU_ASSERT_EQUAL(crowd.strangers, MANY);
    client_becomes(&many[0], CLIENT_LOOKING);
    client_becomes(&many[1], CLIENT_OPENING);
    CU_ASSERT_EQUAL(crowd.strangers, MANY - 2);
    CU_ASSERT_EQUAL(crowd.lookers, 1);
    client_becomes(&many[0], CLIENT_ENDING);
    CU_ASSERT_EQUAL(crowd.lookers, 0);
    CU_ASSERT_EQUAL(single.strangers, 0);
}

int main(void)
{
    CU_TestInfo tests[] = {{"a share each", a_share_each},
                           {"the first in line", first_in_line},
                           {"enough under way", enough_under_way},
                           {"leaves the line", leaves_the_line},
                           {"states are counted", states_are_counted},
                           CU_TEST_INFO_NULL};

    return suite_run("turns", tests);
}
