/* Teams at their home: the members of a parent, which their nodes name, and members that have ended
 * or left. Thread: one. */
#include <errno.h>
#include "tests/control/parts/team_home.h"
#include "tests/suite.h"

static struct team_home h;

/* For a team's parent, the home asks a node for the parent's members, and then all nodes for
 * members that have ended. */
static void parents(void)
{
    struct teams_call c = home_call_of(0);
    struct teams_gather *g;
    uint32_t at = 0;

    home_begin(&h);
    c.size = 4;
    CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    g = home_due(&h, TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 0);
    home_name_all(&h, &home_team, 1, 4); /* node 1 was not asked */
    home_due(&h, TEAMS_NOTHING);
    home_name_all(&h, &home_team, 0, 4);
    g = home_due(&h, TEAMS_ASK_ENDED);
    teams_ready(&h.teams, &home_team, 2, 0, 0, NULL, true); /* no member on node 2 */
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), 0); /* rank 1; next: 2 and 3 */
    CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), TEAMS_NONE);
    teams_member_gone(&h.teams, &home_job, 77, 3, 0, home_unanswered); /* not its node */
    teams_member_gone(&h.teams, &home_job, 78, 3, 1, home_unanswered); /* not of this team */
    teams_member_gone(&h.teams, &home_job, 77, 5, 2, home_unanswered); /* no member */
    teams_member_gone(&h.teams, &home_job, 0, 3, 1, home_unanswered);
    home_due(&h, TEAMS_NOTHING);
    teams_member_gone(&h.teams, &home_job, 77, 3, 1, home_unanswered);
    home_ends(&h, -EHOSTDOWN);
    CU_ASSERT_EQUAL(g->gone, 1);
    teams_member_gone(&h.teams, &home_job, 77, TEAMS_NONE, 1,
                      home_unanswered); /* all members of node 1 */
    CU_ASSERT_EQUAL(g->gone, 2);
    home_finish(&h);
}

/* A node reports that an earlier process of this home has ended the gather: the gather ends with
 * the same status for all others. */
static void ended_before(void)
{
    static const int statuses[] = {0, -EHOSTDOWN};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct teams_call c = home_call_of(0);

        home_begin(&h);
        c.size = 4;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        home_due(&h, TEAMS_ASK_MEMBERS);
        home_name_all(&h, &home_team, 0, 4);
        home_due(&h, TEAMS_ASK_ENDED);
        teams_ready(&h.teams, &home_team, 1, 0, statuses[i], NULL, true);
        home_ends(&h, statuses[i]);
        home_finish(&h);
    }
}

/* A member has its answer, leaves the parent, and its node reports that before it answers the
 * home's question. The call ends for the others as it has ended for this member; so does a shrink,
 * which otherwise would continue without the member. */
static void ended_for_a_member_that_left(void)
{
    static const struct {
        struct teams_answer last;
        uint32_t kind;
        int ends; /* 1: forms a team of the members that are left */
    } rows[] = {
        {{.calls = 3}, TEAMS_SHRINK, 0},
        {{.calls = 3}, TEAMS_SPLIT, 0},
        {{.calls = 3, .status = -EDQUOT}, TEAMS_SHRINK, -EDQUOT},
        {{.calls = 4}, TEAMS_SHRINK, -EBADMSG},
        {{.calls = 4, .status = -EDQUOT}, TEAMS_SHRINK, -EDQUOT},
        {{.calls = 2}, TEAMS_SHRINK, 1},
        {{.calls = 2, .status = -EDQUOT}, TEAMS_SHRINK, 1},
        {{.calls = 0}, TEAMS_SHRINK, 1},
        {{.calls = 2}, TEAMS_SPLIT, -EHOSTDOWN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct teams_key third = home_team;
        struct teams_call c = home_call_of(0);

        third.call = 2;
        c.size = 2;
        c.kind = rows[i].kind;
        home_begin(&h);
        CU_ASSERT_EQUAL(home_call(&h, &third, &c), 0);
        home_due(&h, TEAMS_ASK_MEMBERS);
        home_name_all(&h, &third, 0, 2);
        home_due(&h, TEAMS_ASK_ENDED);
        teams_member_gone(&h.teams, &home_job, 77, 1, 1, rows[i].last); /* not its node */
        home_due(&h, TEAMS_NOTHING);
        teams_member_gone(&h.teams, &home_job, 77, 1, 0, rows[i].last);
        if (rows[i].ends == 1)
            home_due(&h, TEAMS_GROUP);
        else
            home_ends(&h, rows[i].ends);
        home_finish(&h);
    }
}

/* A node that has given up the home ends calls of its own members itself. Such an end does not end
 * a shrink for the others, which continue without the member. In one case the member had called; in
 * the other the home knew already that it is gone. */
static void answered_by_its_own_node(void)
{
    const struct teams_answer lost = {.calls = 1, .status = -EHOSTDOWN};

    for (int called = 0; called < 2; called++) {
        struct teams_call c = home_call_of(0);

        home_begin(&h);
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        home_due(&h, TEAMS_ASK_MEMBERS);
        home_name_all(&h, &home_team, 0, 3);
        home_due(&h, TEAMS_ASK_ENDED);
        c = home_call_of(1);
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        if (called) {
            CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        } else {
            teams_member_gone(&h.teams, &home_job, 77, 1, 0, home_unanswered);
        }
        teams_member_gone(&h.teams, &home_job, 77, 1, 0, lost);
        home_due(&h, TEAMS_NOTHING);
        c = home_call_of(2);
        c.size = 3;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        home_due(&h, TEAMS_GROUP);
        home_finish(&h);
    }
}

/* As long as teams form, no member can have been answered. A node that claims so reports in fact
 * only that the member has left. */
static void left_while_teams_form(void)
{
    struct teams_call c = home_call_of(0);

    home_begin(&h);
    c.size = 2;
    CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    home_due(&h, TEAMS_ASK_MEMBERS);
    home_name_all(&h, &home_team, 0, 2);
    home_due(&h, TEAMS_ASK_ENDED);
    c = home_call_of(1);
    c.size = 2;
    CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    home_due(&h, TEAMS_GROUP);
    teams_member_gone(&h.teams, &home_job, 77, 1, 0, (struct teams_answer){.calls = 1});
    home_ends(&h, -EHOSTDOWN);
    home_finish(&h);
}

/* As ended_before, for the world, whose members the directory knows. */
static void the_world_ended_before(void)
{
    static const int statuses[] = {0, -EDQUOT};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct teams_call c = home_call_of(0);
        struct teams_gather *g;
        uint32_t at = 0;

        home_begin(&h);
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
        g = home_due(&h, TEAMS_ASK_ENDED);
        CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), 0); /* rank 1 */
        for (uint32_t rank = 2; rank < HOME_SIZE; rank++)
            CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), home_node(rank));
        CU_ASSERT_EQUAL(teams_next_expected(&h.teams, g, &at), TEAMS_NONE);
        CU_ASSERT_PTR_EQUAL(teams_next_of_node(&h.teams, 3, NULL),
                            g); /* its ranks may still attach */
        teams_ready(&h.teams, &home_world, 3, 0, statuses[i], NULL,
                    true); /* node 3 has no member */
        home_due(&h, TEAMS_NOTHING);
        c = home_call_of(1);
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
        teams_ready(&h.teams, &home_world, 0, 0, statuses[i], NULL,
                    true); /* its ranks have called */
        home_due(&h, TEAMS_NOTHING);
        teams_ready(&h.teams, &home_world, 1, 0, statuses[i], NULL, true);
        home_ends(&h, statuses[i]);
        c = home_call_of(4);
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 1); /* the others get the same status */
        CU_ASSERT_PTR_NULL(teams_next_of_node(&h.teams, 3, NULL));
        home_finish(&h);
    }
}

/* A node names the parent's members with senseless runs. */
static void hostile_names(void)
{
    static const struct teams_run rows[] = {
        {.rank = 0, .count = 0},
        {.rank = 0, .count = 5},
        {.rank = 5, .count = 2},
        {.rank = HOME_SIZE, .count = 1},
        {.rank = UINT32_MAX, .count = 2},
        {.rank = 0, .count = UINT32_MAX},
        {.rank = 0, .count = 4, .node = HOME_NODES},
        {.rank = 1, .count = 4}, /* the run calls member 0 rank 1 */
        {.rank = 0, .count = 3}, /* one member is missing */
        {.rank = 3, .count = 4}, /* the last member is no rank */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct teams_call c = home_call_of(rows[i].rank == 3 ? 3 : 0);

        home_begin(&h);
        c.size = 4;
        c.at = 0;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        home_due(&h, TEAMS_ASK_MEMBERS);
        teams_name(&h.teams, &home_team, c.from, 1, &rows[i], 1, true); /* not the next members */
        home_due(&h, TEAMS_NOTHING);
        teams_name(&h.teams, &home_team, c.from, 0, &rows[i], 1, true);
        home_ends(&h, -EBADMSG);
        home_finish(&h);
    }
}

/* A shrink forms a team of the members that call, once all others are known to be gone. */
static void shrinks(void)
{
    struct directory_job *at;
    struct teams_gather *g;
    uint32_t failed;

    home_begin(&h);
    directory_detach(&h.directory, &home_job, 1, 0, &at, &failed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct teams_call c = home_call_of(rank);

        c.size = 4;
        c.kind = TEAMS_SHRINK;
        c.color = -1;
        c.key = -(int)rank;
        if (rank != 1)
            CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    }
    home_due(&h, TEAMS_ASK_MEMBERS);
    home_name_all(&h, &home_team, 0, 4);
    home_due(&h, TEAMS_ASK_ENDED);
    teams_member_gone(&h.teams, &home_job, 77, 3, 1, home_unanswered);
    teams_member_gone(&h.teams, &home_job, 77, 3, 1, home_unanswered);
    g = home_due(&h, TEAMS_GROUP);
    CU_ASSERT_STRING_EQUAL(home_groups(g), "0@0.0 2@1.0 |");
    teams_member_gone(&h.teams, &home_job, 77, 2, 1, home_unanswered);
    home_ends(&h, -EHOSTDOWN); /* the survivors must shrink again */
    home_finish(&h);
}

/* The node that was asked for the members is lost: another one is asked. */
static void an_asked_node_is_lost(void)
{
    struct teams_gather *g;

    home_begin(&h);
    for (uint32_t rank = 3; rank-- > 1;) {
        struct teams_call c = home_call_of(rank);

        c.size = 4;
        c.kind = TEAMS_SHRINK;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    }
    g = home_due(&h, TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 1);
    teams_node_lost(&h.teams, 1);
    g = home_due(&h, TEAMS_ASK_MEMBERS);
    CU_ASSERT_EQUAL(g->asked, 0);
    home_name_all(&h, &home_team, 0, 4);
    home_due(&h, TEAMS_ASK_ENDED);
    teams_node_lost(&h.teams, 1); /* member 3 of node 1, known only now, is gone */
    home_due(&h, TEAMS_NOTHING);
    teams_node_lost(&h.teams, 0);
    CU_ASSERT_PTR_NULL(teams_next_of_node(&h.teams, 0, NULL));
    home_finish(&h);
}

/* The member whose node was asked for the members ends before its node has named them: it no longer
 * knows the team. A node from which another member has called is asked. */
static void an_asked_member_ends(void)
{
    static const struct {
        uint32_t second; /* a rank that has called as well */
        uint32_t asked;  /* the node that is asked then */
    } rows[] = {{2, 1}, {1, TEAMS_NONE}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct teams_call c = home_call_of(0), second = home_call_of(rows[i].second);
        struct teams_gather *g;

        c.size = second.size = 4;
        c.kind = second.kind = TEAMS_SHRINK;
        home_begin(&h);
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &second), 0);
        CU_ASSERT_EQUAL(home_due(&h, TEAMS_ASK_MEMBERS)->asked, 0);
        teams_rank_gone(&h.teams, &home_job, 0);
        if (rows[i].asked == TEAMS_NONE) {
            home_due(&h, TEAMS_NOTHING); /* a member on this node still knows the team */
        } else {
            g = home_due(&h, TEAMS_ASK_MEMBERS);
            CU_ASSERT_EQUAL(g->asked, rows[i].asked);
            home_name_all(&h, &home_team, rows[i].asked, 4);
            home_due(&h, TEAMS_ASK_ENDED);
        }
        home_finish(&h);
    }
}

/* The only member that has called ends: the next one to call has its node asked. */
static void the_only_caller_ends(void)
{
    struct teams_call c = home_call_of(0);

    c.size = 4;
    c.kind = TEAMS_SHRINK;
    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    home_due(&h, TEAMS_ASK_MEMBERS);
    teams_rank_gone(&h.teams, &home_job, 0);
    home_due(&h, TEAMS_NOTHING);
    c = home_call_of(2);
    c.size = 4;
    c.kind = TEAMS_SHRINK;
    CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), 0);
    CU_ASSERT_EQUAL(home_due(&h, TEAMS_ASK_MEMBERS)->asked, 1);
    home_finish(&h);
}

int main(void)
{
    CU_TestInfo tests[] = {{"parents", parents},
                           {"ended before", ended_before},
                           {"ended for one that left", ended_for_a_member_that_left},
                           {"answered by its own node", answered_by_its_own_node},
                           {"left while teams form", left_while_teams_form},
                           {"the world ended before", the_world_ended_before},
                           {"hostile names", hostile_names},
                           {"shrinks", shrinks},
                           {"an asked node is lost", an_asked_node_is_lost},
                           {"an asked member ends", an_asked_member_ends},
                           {"the only caller ends", the_only_caller_ends},
                           CU_TEST_INFO_NULL};

    return suite_run("team members", tests);
}
