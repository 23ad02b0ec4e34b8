/*
 * Calls for teams whose daemons were killed and restarted after some members had their answers:
 * members that ask again, and members that call later, get the same answer at once. Members that
 * have given up stay out of the team. And teams that end after that.
 *
 *     test_team_answers PWCD NODES [THREADS]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "daemon/peering/directory.h"
#include "tests/lib/cluster.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/team.h"
#include "tests/lib/process.h"
#include "tests/suite.h"

#define SIZE  3u /* ranks; the last is on the last node, others on node 0 */
#define WAITS 20000

static struct cluster cluster;
static unsigned nodes;
static char name[32]; /* of the job */

static struct rank {
    int socket;
    uint32_t session;
    struct raw_team team;
} ranks[SIZE];

/* ---- a job ----------------------------------------------------------------------------------- */

/* Attaches all ranks of a new job whose home is this node. */
static void open_job(unsigned home)
{
    static unsigned jobs;
    const struct directory_id id = {.uid = getuid(), .job = name};

    do
        snprintf(name, sizeof(name), "answers%u", jobs++);
    while (directory_home(&id, nodes) != home);
    for (uint32_t i = 0; i < SIZE; i++) {
        const struct cluster_node *node = &cluster.nodes[i == SIZE - 1 ? nodes - 1 : 0];
        struct answer context;

        ranks[i] = (struct rank){.socket = raw_connect_to(node->socket), .team = {.area = -1}};
        CU_ASSERT_FATAL(ranks[i].socket >= 0);
        CU_ASSERT_EQUAL_FATAL(raw_hello(ranks[i].socket, name, i, SIZE), 0);
        CU_ASSERT_EQUAL_FATAL(ask_context(ranks[i].socket, 8192, &context), 0);
        ranks[i].session = context.handle;
        answer_close(&context);
    }
}

static void close_job(void)
{
    for (uint32_t i = 0; i < SIZE; i++) {
        close(ranks[i].socket);
        raw_team_close(&ranks[i].team);
    }
}

static bool is_served(unsigned node)
{
    struct daemon d = {0};

    snprintf(d.socket, sizeof(d.socket), "%s", cluster.nodes[node].socket);
    return raw_is_served(&d);
}

/* Kills this node's daemon, calls `meanwhile`, and waits until the next daemon serves. */
static void start_anew_behind(unsigned node, void (*meanwhile)(void))
{
    pid_t daemon = cluster_kept(&cluster, node), keeper = cluster.nodes[node].pid;

    CU_ASSERT_FATAL(daemon > 0);
    for (unsigned i = 0; i < nodes; i++)
        CU_ASSERT_TRUE(is_served(i)); /* each daemon has noted the answers that it sent */
    CU_ASSERT_TRUE(process_stop(keeper));
    kill(daemon, SIGKILL);
    if (meanwhile)
        meanwhile();
    kill(keeper, SIGCONT);
    CU_ASSERT_FATAL(cluster_next(&cluster, node, daemon) > 0);
}

static void start_anew(unsigned node)
{
    start_anew_behind(node, NULL);
}

/* Ends the last rank. */
static void last_leaves(void)
{
    close(ranks[SIZE - 1].socket);
    ranks[SIZE - 1].socket = -1;
}

/* Waits until this home's view of jobs shows a rank that has left. */
static void await_left(unsigned home)
{
    struct daemon d = {0};
    json_int_t left = 0;

    snprintf(d.socket, sizeof(d.socket), "%s", cluster.nodes[home].socket);
    for (int i = 0; i < WAITS && left == 0; i++) {
        json_t *document = look_at(&d, "jobs"), *row;
        size_t at;

        json_array_foreach(json_object_get(document, "jobs"), at, row) left +=
            json_integer_value(json_object_get(row, "left"));
        json_decref(document);
    }
    CU_ASSERT_NOT_EQUAL_FATAL(left, 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void join(uint32_t rank, uint64_t parent, uint32_t call, int color, uint32_t window)
{
    Pwc__TeamJoin asked = raw_team_call(ranks[rank].session, parent, call);

    asked.color = color;
    asked.window = window;
    CU_ASSERT_TRUE(raw_team_join(ranks[rank].socket, &asked));
}

static const struct raw_team *formed(uint32_t rank)
{
    raw_team_close(&ranks[rank].team);
    (void)raw_team_formed(ranks[rank].socket, &ranks[rank].team);
    return &ranks[rank].team;
}

static uint64_t make_world(uint32_t call)
{
    for (uint32_t i = 0; i < SIZE; i++)
        join(i, 0, call, 0, 64);
    for (uint32_t i = 0; i < SIZE; i++)
        CU_ASSERT_EQUAL(formed(i)->status, 0);
    return ranks[0].team.number;
}

/* Ranks 0 and 1 make calls that do not fit together. The last rank does not call. */
static void fail(uint64_t parent, uint32_t call)
{
    for (uint32_t i = 0; i < 2; i++)
        join(i, parent, call, 0, i == 0 ? 64 : 128);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(formed(i)->status, -EINVAL);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* One member asks again, alone: the others have their answers, and do not call again. */
static void once_more(void)
{
    for (unsigned home = 0; home < nodes; home++) {
        uint64_t world, pair;

        open_job(home);
        world = make_world(0);
        for (uint32_t i = 0; i < SIZE; i++)
            join(i, world, 0, i == 1 ? -1 : 0, 64);
        for (uint32_t i = 0; i < SIZE; i++)
            CU_ASSERT_EQUAL(formed(i)->status, 0);
        pair = ranks[0].team.number;
        fail(world, 1);
        start_anew(0);
        join(1, world, 1, 0, 128);
        CU_ASSERT_EQUAL(formed(1)->status, -EINVAL);
        join(0, world, 0, 0, 64);
        CU_ASSERT_EQUAL(formed(0)->status, 0);
        CU_ASSERT_EQUAL(ranks[0].team.number, pair);
        close_job();
    }
}

/* As above, for a member that is in no team. */
static void once_more_in_no_team(void)
{
    for (unsigned home = 0; home < nodes; home++) {
        uint64_t world;

        open_job(home);
        world = make_world(0);
        for (uint32_t i = 0; i < SIZE; i++)
            join(i, world, 0, i == 1 ? -1 : 0, 64);
        for (uint32_t i = 0; i < SIZE; i++)
            CU_ASSERT_EQUAL(formed(i)->status, 0);
        for (int again = 0; again < 2; again++) {
            start_anew(0);
            join(1, world, 0, -1, 64);
            CU_ASSERT_EQUAL(formed(1)->status, 0);
            CU_ASSERT_EQUAL(ranks[1].team.number, 0);
        }
        close_job();
    }
}

/* The home is restarted after some members got an error: the last member gets it, too. */
static void later(uint64_t parent, uint32_t call, unsigned home)
{
    fail(parent, call);
    start_anew(home);
    join(SIZE - 1, parent, call, 0, 64);
    CU_ASSERT_EQUAL(formed(SIZE - 1)->status, -EINVAL);
}

static void an_error_for_who_calls_later(void)
{
    for (unsigned home = 0; home < nodes; home++) {
        open_job(home);
        later(make_world(0), 0, home);
        close_job();
    }
}

static void an_error_of_the_world(void)
{
    for (unsigned home = 0; home < nodes; home++) {
        open_job(home);
        later(0, 0, home);
        CU_ASSERT_NOT_EQUAL(make_world(1), 0); /* does not get the answer of call 0 */
        later(0, 2, home);
        close_job();
    }
}

/* The two ranks that are left make this call over the parent, and get this status. */
static void call_without(uint64_t parent, uint32_t call, Pwc__TeamKind kind, int status)
{
    for (uint32_t i = 0; i < SIZE - 1; i++) {
        Pwc__TeamJoin asked = raw_team_call(ranks[i].session, parent, call);

        asked.kind = kind;
        CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &asked));
    }
    for (uint32_t i = 0; i < SIZE - 1; i++) {
        CU_ASSERT_EQUAL(formed(i)->status, status);
        CU_ASSERT_EQUAL(ranks[i].team.size, status == 0 ? SIZE - 1 : 0);
        CU_ASSERT(status == 0 || strstr(ranks[i].team.text, "rank 2 has left") != NULL);
    }
}

/* The last rank leaves, and the job's home is restarted, before or after. Calls of the other ranks
 * then end with an error that names the missing rank; a shrink succeeds without it. */
static void without_the_last(unsigned home, bool before)
{
    uint64_t world;

    open_job(home);
    world = make_world(0);
    if (before) {
        last_leaves();
        await_left(home);
        start_anew(home);
    } else {
        start_anew_behind(home, last_leaves);
    }
    call_without(0, 1, PWC__TEAM_KIND__TEAM_SPLIT, -EHOSTDOWN);
    call_without(world, 0, PWC__TEAM_KIND__TEAM_SPLIT, -EHOSTDOWN);
    call_without(world, 1, PWC__TEAM_KIND__TEAM_SHRINK, 0);
    close_job();
}

static void a_rank_that_left_before(void)
{
    for (unsigned home = 0; home < nodes; home++)
        without_the_last(home, true);
}

static void a_rank_that_left_meanwhile(void)
{
    for (unsigned home = 0; home < nodes; home++)
        without_the_last(home, false);
}

/* ---- members that give up -------------------------------------------------------------------- */

static Pwc__TeamJoin given_up; /* the call that rank 0 no longer waits for */

/* Returns the status of rank 0's next answer. */
static int answer_to_first(void)
{
    struct answer answer;

    ask_nothing(ranks[0].socket, &answer);
    answer_close(&answer);
    return answer.status;
}

static void first_withdraws(void)
{
    CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &given_up));
}

/* The other ranks have a team with rank 0, who is no member any more: they shrink it. */
static void others_shrink(void)
{
    uint64_t number = ranks[1].team.number;

    CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, ranks[0].session, number), -EINVAL);
    for (uint32_t i = 1; i < SIZE; i++) {
        Pwc__TeamJoin asked = raw_team_call(ranks[i].session, number, 0);

        asked.kind = PWC__TEAM_KIND__TEAM_SHRINK;
        CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &asked));
    }
    for (uint32_t i = 1; i < SIZE; i++) {
        CU_ASSERT_EQUAL(formed(i)->status, 0);
        CU_ASSERT_EQUAL(ranks[i].team.size, SIZE - 1);
    }
}

/* Ranks 0 and 1 call. Rank 0 withdraws its call, and the daemon of both is killed before or after
 * it has read this. Then rank 1 asks again, and the last rank calls. Where the home has died, too,
 * nobody knows rank 0's call, and all calls end. */
static void give_up(unsigned home, uint64_t parent, uint32_t call, bool before)
{
    int status = home == 0 ? -ETIMEDOUT : 0;

    given_up = raw_team_call(ranks[0].session, parent, call);
    join(0, parent, call, 0, 64);
    join(1, parent, call, 0, 64);
    if (before) {
        first_withdraws();
        CU_ASSERT_EQUAL(answer_to_first(), 0);
        start_anew(0);
    } else {
        start_anew_behind(0, first_withdraws);
    }
    CU_ASSERT_EQUAL(answer_to_first(), -ECONNABORTED);
    if (!before)
        CU_ASSERT_EQUAL(answer_to_first(), 0);
    CU_ASSERT_EQUAL(formed(1)->status, -ECONNABORTED);
    join(1, parent, call, 0, 64);
    join(SIZE - 1, parent, call, 0, 64);
    for (uint32_t i = 1; i < SIZE; i++)
        CU_ASSERT_EQUAL_FATAL(formed(i)->status, status);
    if (status == 0)
        others_shrink();
    join(0, parent, call, 0, 64);
    CU_ASSERT_EQUAL(formed(0)->status, -ETIMEDOUT);
}

/* Guards that a daemon which is started anew knows which calls were withdrawn. Otherwise the others
 * wait for ever for a member that does not know that it is one. */
static void a_member_that_gave_up(void)
{
    for (unsigned home = 0; home < nodes; home++) {
        open_job(home);
        give_up(home, 0, 0, true);
        give_up(home, 0, 1, false);
        give_up(home, make_world(2), 0, true);
        give_up(home, make_world(3), 0, false);
        CU_ASSERT_NOT_EQUAL(make_world(4), 0);
        close_job();
    }
}

/* ---- teams that end later -------------------------------------------------------------------- */

/* Returns a view of node 0, which the caller releases. */
static json_t *view(const char *what)
{
    int s = raw_connect_to(cluster.nodes[0].socket);
    json_t *document = look_on(s, what);

    close(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    return document;
}

/* Returns the engine that serves a rank on node 0. */
static json_int_t engine_of(json_int_t rank)
{
    json_t *document = view("clients"), *row;
    json_int_t engine = -1;
    size_t at;

    json_array_foreach(json_object_get(document, "clients"), at, row)
    {
        const char *job = json_string_value(json_object_get(row, "job"));

        if (job && strcmp(job, name) == 0 &&
            json_integer_value(json_object_get(row, "rank")) == rank)
            engine = json_integer_value(json_object_get(row, "engine"));
    }
    json_decref(document);
    CU_ASSERT_FATAL(engine >= 0);
    return engine;
}

/* Waits until node 0 shows so many parts of teams, of which so many are open in their engines. */
static void await_parts(size_t parts, size_t open)
{
    size_t shown = 0, in_engines = 0;

    for (int i = 0; i < WAITS && (i == 0 || shown != parts || in_engines != open); i++) {
        json_t *document = view("teams"), *rows = json_object_get(document, "teams"), *row;
        size_t at;

        shown = json_array_size(rows);
        in_engines = 0;
        json_array_foreach(rows, at, row) in_engines +=
            json_integer_value(json_object_get(row, "handle")) != UINT32_MAX;
        json_decref(document);
    }
    if (shown != parts || in_engines != open)
        fprintf(stderr, "    %zu parts, %zu open, instead of %zu, %zu\n", shown, in_engines, parts,
                open);
    CU_ASSERT_FATAL(shown == parts && in_engines == open);
}

static void leave_world(uint32_t rank)
{
    CU_ASSERT_EQUAL(
        raw_team_leave(ranks[rank].socket, ranks[rank].session, ranks[rank].team.number), 0);
}

/* Guards that a daemon which takes over forgets a team when its last members leave, although the
 * members of one of its engines had left before. */
static void a_part_that_closed_before(void)
{
    json_int_t engines[SIZE];

    open_job(0);
    (void)make_world(0);
    for (uint32_t i = 0; i < SIZE; i++)
        engines[i] = engine_of(i);
    CU_ASSERT_FATAL(engines[1] != engines[0] || engines[2] != engines[0]);
    await_parts(2, 2);
    for (uint32_t i = 0; i < SIZE; i++)
        if (engines[i] == engines[0])
            leave_world(i);
    await_parts(2, 1);
    start_anew(0);
    await_parts(2, 1);
    for (uint32_t i = 0; i < SIZE; i++)
        if (engines[i] != engines[0])
            leave_world(i);
    await_parts(0, 0);
    close_job();
}

int main(int argc, char **argv)
{
    /* The first test needs a daemon with two engines. */
    CU_TestInfo tests[] = {{"a part that closed before", a_part_that_closed_before},
                           {"once more", once_more},
                           {"once more, in no team", once_more_in_no_team},
                           {"an error, for who calls later", an_error_for_who_calls_later},
                           {"an error of the world", an_error_of_the_world},
                           {"a rank that left before", a_rank_that_left_before},
                           {"a rank that left meanwhile", a_rank_that_left_meanwhile},
                           {"a member that gave up", a_member_that_gave_up},
                           CU_TEST_INFO_NULL};
    const char *more[] = {"--keep", NULL, NULL, NULL};
    struct cluster_options options = {.provider = "stream", .more = more};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    nodes = (unsigned)strtoul(argv[2], NULL, 10);
    if (argc > 3) {
        more[1] = "--progress-threads";
        more[2] = argv[3];
    }
    options.pwcd = argv[1];
    options.nodes = nodes;
    if (cluster_open(&cluster, &options) < 0) {
        fprintf(stderr, "%s\n", cluster.failure);
        return 1;
    }
    return cluster_end(&cluster, suite_run("team answers", argc > 3 ? tests : tests + 1));
}
