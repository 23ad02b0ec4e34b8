/* Teams at their home: calls that form teams, calls that fail for all members, calls that are
 * repeated, and the bounds. Thread: one. */
#include <errno.h>
#include "tests/control/parts/team_home.h"
#include "tests/suite.h"

static struct team_home h;

static void the_world(void)
{
    const struct teams_gather *g;

    home_begin(&h);
    for (uint32_t rank = HOME_SIZE; rank-- > 0;) {
        struct teams_call c = home_call_of(rank);

        home_due(&h, TEAMS_NOTHING);
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
        if (rank == HOME_SIZE - 1)
            home_due(&h, TEAMS_ASK_ENDED);
    }
    g = home_due(&h, TEAMS_GROUP);
    CU_ASSERT_STRING_EQUAL(home_groups(g), "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |");
    home_ready(&h, &home_world, 2, 0, false);
    home_ready(&h, &home_world, 2, 0, false); /* a second report does not count */
    home_due(&h, TEAMS_NOTHING);
    home_ready(&h, &home_world, 3, 0, false);
    home_ends(&h, 0);
    home_ready(&h, &home_world, 2, 0, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 1);
    home_ready(&h, &home_world, 3, 0, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 0);
    home_finish(&h);
}

/* The teams that colors, keys and kinds lead to. */
static void splits(void)
{
    static const struct {
        uint32_t kind;
        int32_t colors[HOME_SIZE], keys[HOME_SIZE];
        const char *teams;
    } rows[] = {
        {TEAMS_SPLIT, {0}, {0}, "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |"},
        {TEAMS_SPLIT, {0}, {5, 4, 3, 2, 1, 0}, "5@2.1 4@2.0 3@1.1 2@1.0 1@0.1 0@0.0 |"},
        {TEAMS_SPLIT,
         {0},
         {0, -1, 0, INT32_MIN, INT32_MAX, 0},
         "3@1.1 1@0.1 0@0.0 2@1.0 5@2.1 4@2.0 |"},
        {TEAMS_SPLIT, {1, 0, 1, 0, 1, 0}, {0}, "1@0.1 3@1.1 5@2.1 |0@0.0 2@1.0 4@2.0 |"},
        {TEAMS_SPLIT,
         {-1, 0, -1, INT32_MAX, INT32_MIN, 0},
         {0, 1, 0, 0, 0, 0},
         "5@2.1 1@0.1 |3@1.1 |"},
        {TEAMS_SPLIT, {-1, -1, -1, -1, -1, -1}, {0}, ""},
        {TEAMS_BY_NODE, {-1, 3, 0, 9, 0, 0}, {1, 0}, "1@0.1 0@0.0 |2@1.0 3@1.1 |4@2.0 5@2.1 |"},
    };
    uint64_t last = 0;

    home_begin(&h);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct teams_key key = {.id = home_job, .call = (uint32_t)i};
        struct teams_gather *g;

        for (uint32_t rank = 0; rank < HOME_SIZE; rank++) {
            struct teams_call c = home_call_of(rank);

            c.kind = rows[i].kind;
            c.color = rows[i].colors[rank];
            c.key = rows[i].keys[rank];
            CU_ASSERT_EQUAL(home_call(&h, &key, &c), 0);
        }
        g = home_due(&h, TEAMS_GROUP);
        CU_ASSERT_STRING_EQUAL(home_groups(g), rows[i].teams);
        CU_ASSERT(g->number > last);
        last = *rows[i].teams ? g->number : last;
        home_ready(&h, &key, HOME_NODES, 0, false);
        home_ends(&h, 0);
        home_ready(&h, &key, HOME_NODES, 0, true);
    }
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.counted, 10);
    home_finish(&h);
}

/* Calls that no member of this job may make. */
static void refused_calls(void)
{
    static const struct {
        struct teams_key key;
        struct teams_call call;
        int expected;
    } rows[] = {
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1}, 0},
        {{.id = {1000, "job"}}, {.from = 1, .size = 6, .window = 1}, -EPERM},
        {{.id = {1001, "job"}}, {.from = 0, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "other"}}, {.from = 0, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = 0, .rank = 6, .at = 6, .size = 7, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = HOME_NODES, .size = 6, .window = 1}, -EPERM},
        {{.id = {1000, "job"}}, {.from = 0, .size = 5, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 7, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .at = 1, .size = 6, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 3}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 8192}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .kind = 3}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .kind = TEAMS_SHRINK}, -EINVAL},
        {{.id = {1000, "job"}}, {.from = 0, .size = 6, .window = 1, .status = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .size = 0, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .size = 7, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5}, {.from = 0, .at = 2, .size = 2, .window = 1}, -EINVAL},
        {{.id = {1000, "job"}, .parent = 5, .context = 1},
         {.from = 0, .size = 2, .window = 1},
         -EINVAL},
        {{.id = {1000, "job"}, .parent = 5},
         {.from = 0, .at = 1, .size = 2, .window = TEAMS_WINDOW_MAX},
         0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        home_begin(&h);
        CU_ASSERT_EQUAL(home_call(&h, &rows[i].key, &rows[i].call), rows[i].expected);
        CU_ASSERT_EQUAL(h.teams.gathers, rows[i].expected == 0);
        home_finish(&h);
    }
}

/* The home may know the end of a rank before that rank's last call arrives: the call is not refused
 * as a stranger's. */
static void call_of_a_rank_that_left(void)
{
    const struct teams_key key = {.id = {1000, "job"}};
    struct directory_job *at;
    uint32_t failed;

    home_begin(&h);
    directory_detach(&h.directory, &key.id, 5, home_node(5), &at, &failed);
    CU_ASSERT_EQUAL(
        home_call(
            &h, &key,
            &(struct teams_call){.from = home_node(5), .rank = 5, .at = 5, .size = 6, .window = 1}),
        -EHOSTDOWN);
    CU_ASSERT_EQUAL(h.teams.gathers, 0);
    home_finish(&h);
}

/* Calls that do not fit together end the gather for all members. */
static void different_calls(void)
{
    static const struct teams_call seconds[] = {
        {.from = 0, .size = 2, .at = 1, .rank = 1, .window = 32}, /* -EINVAL; other rows -EBADMSG */
        {.from = 0, .size = 2, .at = 1, .rank = 1, .window = 64, .kind = TEAMS_BY_NODE},
        {.from = 0, .size = 2, .at = 0, .rank = 1, .window = 64},
        {.from = 0, .size = 3, .at = 1, .rank = 1, .window = 64},
    };

    for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
        const struct teams_call first = {.from = 0, .size = 2, .window = 64};

        home_begin(&h);
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &first), 0);
        home_due(&h, TEAMS_ASK_MEMBERS);
        (void)home_call(&h, &home_team, &seconds[i]);
        home_ends(&h, i == 0 ? -EINVAL : -EBADMSG);
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &first),
                        1); /* a rank that asks again is answered again */
        home_finish(&h);
    }
}

/* A node that cannot let its member take part ends the call, also for members that call later. */
static void a_refusing_node(void)
{
    struct teams_call c = home_call_of(0);

    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    c = home_call_of(1);
    c.status = -EDQUOT;
    c.why = "client-teams is 64";
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    home_ends(&h, -EDQUOT);
    home_ready(&h, &home_world, 1, 0, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 1); /* the ranks of the other nodes have not called yet */
    for (uint32_t rank = 2; rank < HOME_SIZE; rank++) {
        c = home_call_of(rank);
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 1);
    }
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 1);
    home_ready(&h, &home_world, HOME_NODES, 0, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 0);
    home_finish(&h);
}

static void a_node_that_is_not_ready(void)
{
    home_begin(&h);
    home_all_call(&h, &home_world, HOME_SIZE, TEAMS_SPLIT);
    home_due(&h, TEAMS_GROUP);
    teams_ready(&h.teams, &home_world, 3, home_number(&h, &home_world), -EDQUOT, "",
                false); /* not in this gather */
    teams_ready(&h.teams, &home_world, HOME_NODES, home_number(&h, &home_world), -EDQUOT, "",
                false); /* no such node */
    teams_ready(&h.teams, &home_world, 0, home_number(&h, &home_world), 0, NULL,
                true); /* the gather has not ended */
    teams_ready(&h.teams, &home_world, 1, home_number(&h, &home_world) - 1, -EDQUOT, "",
                false); /* an earlier home's */
    home_due(&h, TEAMS_NOTHING);
    teams_ready(&h.teams, &home_world, 0, home_number(&h, &home_world), 0, NULL, false);
    teams_ready(&h.teams, &home_world, 1, home_number(&h, &home_world), -EDQUOT, "no memory",
                false);
    home_ends(&h, -EDQUOT);
    home_finish(&h);
}

/* Deaths before, between and after calls. */
static void ranks_that_leave(void)
{
    struct directory_job *at;
    uint32_t failed;
    struct teams_call c = home_call_of(0);

    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    directory_detach(&h.directory, &home_job, 5, 2, &at, &failed);
    teams_rank_gone(&h.teams, &home_job, 5); /* rank 5 has not called */
    home_ends(&h, -EHOSTDOWN);
    /* Rank 5 had left before this call. */
    CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = home_job, .call = 1}, &c), 0);
    home_ends(&h, -EHOSTDOWN);
    home_finish(&h);

    home_begin(&h);
    home_all_call(&h, &home_world, HOME_SIZE, TEAMS_SPLIT);
    home_due(&h, TEAMS_GROUP);
    directory_detach(&h.directory, &home_job, 5, 2, &at, &failed);
    teams_rank_gone(&h.teams, &home_job, 5); /* while the teams form */
    home_ends(&h, -EHOSTDOWN);
    for (uint32_t rank = 0; rank < 5; rank++) {
        directory_detach(&h.directory, &home_job, rank, home_node(rank), &at, &failed);
        teams_rank_gone(&h.teams, &home_job, rank);
    }
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 0); /* no rank is left that could ask for it */
    home_finish(&h);
}

/* A member makes its next call without the previous one: the previous call ends with an error for
 * the members that wait in it. */
static void calls_out_of_step(void)
{
    const struct teams_key next = {.id = home_job, .call = 1};
    struct teams_call c = home_call_of(0);

    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    c = home_call_of(1);
    CU_ASSERT_EQUAL(home_call(&h, &next, &c), 0);
    home_ends(&h, -EBADMSG);
    home_due(&h, TEAMS_ASK_ENDED);
    CU_ASSERT_EQUAL(h.teams.gathers, 2);
    home_finish(&h);

    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &next, &c), 0);
    home_due(&h, TEAMS_ASK_ENDED);
    c = home_call_of(0);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    home_ends(&h, -EBADMSG);
    home_due(&h, TEAMS_NOTHING);
    home_finish(&h);
}

/* A node that was started anew repeats its calls, and gets its frames again. */
static void asked_again(void)
{
    struct teams_call c = home_call_of(2);
    struct teams_gather *g;
    uint32_t at = 0;

    home_begin(&h);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    home_all_call(&h, &home_world, HOME_SIZE, TEAMS_SPLIT);
    g = home_due(&h, TEAMS_GROUP);
    CU_ASSERT_EQUAL(g->called, HOME_SIZE);
    CU_ASSERT_STRING_EQUAL(home_groups(g), "0@0.0 1@0.1 2@1.0 3@1.1 4@2.0 5@2.1 |");
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 1);
    CU_ASSERT_EQUAL(teams_next_node(&h.teams, g, &at), 0);
    CU_ASSERT_EQUAL(teams_next_node(&h.teams, g, &at), 1);
    CU_ASSERT_EQUAL(teams_next_node(&h.teams, g, &at), 2);
    CU_ASSERT_EQUAL(teams_next_node(&h.teams, g, &at), TEAMS_NONE);
    home_ready(&h, &home_world, HOME_NODES, 0, false);
    home_ends(&h, 0);
    teams_ready(&h.teams, &home_world, 1, home_number(&h, &home_world), 0, NULL, true);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 1); /* its node has lost the answer */
    teams_ready(&h.teams, &home_world, 0, home_number(&h, &home_world), 0, NULL, true);
    teams_ready(&h.teams, &home_world, 2, home_number(&h, &home_world), 0, NULL, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_PTR_EQUAL(teams_next_of_node(&h.teams, 1, NULL), g);
    CU_ASSERT_PTR_NULL(teams_next_of_node(&h.teams, 1, g));
    CU_ASSERT_PTR_NULL(teams_next_of_node(&h.teams, 3, NULL));
    teams_ready(&h.teams, &home_world, 1, home_number(&h, &home_world), 0, NULL, true);
    home_due(&h, TEAMS_NOTHING);
    CU_ASSERT_EQUAL(h.teams.gathers, 0);
    home_finish(&h);
}

/* The bounds of memory, of gathers and of a user's share. A call that is refused is refused to all
 * members. */
static void bounded(void)
{
    struct teams_call c = {.from = 0, .size = 1, .window = 64};
    uint32_t opened = 0;

    for (int after = 0; after < 3; after++) {
        home_begin(&h);
        h.refuse_after = after;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), -ENOMEM);
        h.refuse_after = -1;
        CU_ASSERT_EQUAL(home_call(&h, &home_team, &c), -ENOMEM); /* as for the member before */
        CU_ASSERT_EQUAL(h.teams.gathers, 0);
        home_finish(&h);
    }

    home_begin(&h);
    for (uint64_t parent = 1; parent <= TEAMS_GATHERS_MAX + 1; parent++)
        CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = home_job, .parent = parent}, &c),
                        parent <= TEAMS_GATHERS_MAX ? 0 : -ENOSPC);
    home_finish(&h);

    home_begin_shared(&h);
    h.teams.bytes = TEAMS_BYTES_MAX - 4096; /* other users have the rest */
    while (home_call(&h, &(struct teams_key){.id = home_job, .parent = opened + 1}, &c) == 0)
        opened++;
    CU_ASSERT(opened > 0);
    CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = home_job, .parent = opened + 1}, &c),
                    -EDQUOT);
    CU_ASSERT(TEAMS_BYTES_MAX - h.teams.bytes >= 2048);
    h.teams.bytes -= TEAMS_BYTES_MAX - 4096;
    home_finish(&h);
}

/* Guards that one user leaves as many gathers free as the user then has, where others are served.
 */
static void gathers_are_shared(void)
{
    const struct teams_call c = {.from = 0, .size = 1, .window = 64};

    home_begin_shared(&h);
    for (uint64_t parent = 1; parent <= TEAMS_GATHERS_MAX / 2 + 1; parent++)
        CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = home_job, .parent = parent}, &c),
                        parent <= TEAMS_GATHERS_MAX / 2 ? 0 : -EDQUOT);
    CU_ASSERT_EQUAL(h.teams.gathers, TEAMS_GATHERS_MAX / 2);
    home_finish(&h);
}

/* A refusal ends with its job: the next job of the same name makes the same call. */
static void a_job_of_the_same_name(void)
{
    const struct directory_id other = {.uid = 1000, .job = "other"};
    const struct teams_call c = home_call_of(0), one = {.size = 1, .window = 64};
    struct directory_job *at;
    uint32_t failed;

    home_begin(&h);
    directory_attach(&h.directory, &other, 0, 1, 0, 0);
    h.refuse_after = 0;
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), -ENOMEM);
    CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = other}, &one), -ENOMEM);
    h.refuse_after = -1;
    for (uint32_t rank = 0; rank < HOME_SIZE; rank++) {
        CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), rank == 0 ? -ENOMEM : -EHOSTDOWN);
        directory_detach(&h.directory, &home_job, rank, home_node(rank), &at, &failed);
        teams_rank_gone(&h.teams, &home_job, rank);
    }
    for (uint32_t rank = 0; rank < HOME_SIZE; rank++)
        directory_attach(&h.directory, &home_job, rank, HOME_SIZE, home_node(rank), rank % 2);
    CU_ASSERT_EQUAL(home_call(&h, &home_world, &c), 0);
    CU_ASSERT_EQUAL(home_call(&h, &(struct teams_key){.id = other}, &one), -ENOMEM);
    home_finish(&h);
}

int main(void)
{
    CU_TestInfo tests[] = {{"the world", the_world},
                           {"splits", splits},
                           {"refused calls", refused_calls},
                           {"a call of a rank that has left", call_of_a_rank_that_left},
                           {"different calls", different_calls},
                           {"a refusing node", a_refusing_node},
                           {"a node that is not ready", a_node_that_is_not_ready},
                           {"ranks that leave", ranks_that_leave},
                           {"calls out of step", calls_out_of_step},
                           {"asked again", asked_again},
                           {"bounded", bounded},
                           {"gathers are shared", gathers_are_shared},
                           {"a job of the same name", a_job_of_the_same_name},
                           CU_TEST_INFO_NULL};

    return suite_run("teams", tests);
}
