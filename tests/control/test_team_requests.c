/*
 * Teams of clients without a library, on one daemon: the answers to good requests, to requests with
 * a field out of range, at quotas, and when a member dies in between.
 *
 *     test_team_requests PWCD [THREADS]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "proto/team_abi.h"
#include "tests/control/lib/field.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/team.h"
#include "tests/suite.h"

#define SIZE 3u

static struct daemon d;
static struct holdings quiet;
static const char *program, *threads = "1";

/* Starts the daemon, and notes what it holds. With several engines the number of descriptors is not
 * compared later: engines of a node link when they first need each other, and keep those
 * descriptors. */
static bool start(const char *const *options)
{
    if (daemon_start(&d, program, options) < 0 || !look_holdings(&d, &quiet))
        return false;
    if (strcmp(threads, "1") != 0)
        quiet.descriptors = HOLDINGS_ANY;
    return true;
}

/* A job of three ranks with one context each. */
struct rank {
    int socket;
    uint32_t session;
    struct raw_team team;
};
static struct rank ranks[SIZE];

static void open_job(void)
{
    for (uint32_t i = 0; i < SIZE; i++) {
        struct answer context;

        ranks[i] = (struct rank){.socket = raw_connect(&d), .team = {.area = -1}};
        CU_ASSERT_FATAL(ranks[i].socket >= 0);
        CU_ASSERT_EQUAL_FATAL(raw_hello(ranks[i].socket, "teams", i, SIZE), 0);
        CU_ASSERT_EQUAL_FATAL(ask_context(ranks[i].socket, 8192, &context), 0);
        ranks[i].session = context.handle;
        answer_close(&context);
    }
}

static void leave_job(uint32_t rank)
{
    if (ranks[rank].socket >= 0)
        close(ranks[rank].socket);
    ranks[rank].socket = -1;
    raw_team_close(&ranks[rank].team);
}

static void close_job(void)
{
    for (uint32_t i = 0; i < SIZE; i++)
        leave_job(i);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* All ranks that are left make this call, with these colors and keys, and keep their answers. */
static void all_join(uint64_t parent, uint32_t call, Pwc__TeamKind kind, const int colors[SIZE],
                     const int keys[SIZE])
{
    for (uint32_t i = 0; i < SIZE; i++) {
        Pwc__TeamJoin join = raw_team_call(ranks[i].session, parent, call);

        join.kind = kind;
        join.color = colors ? colors[i] : 0;
        join.key = keys ? keys[i] : 0;
        if (ranks[i].socket >= 0)
            CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
    }
    for (uint32_t i = 0; i < SIZE; i++)
        if (ranks[i].socket >= 0) {
            raw_team_close(&ranks[i].team);
            (void)raw_team_formed(ranks[i].socket, &ranks[i].team);
        }
}

static void expect_all(int status, const char *says)
{
    for (uint32_t i = 0; i < SIZE; i++) {
        if (ranks[i].socket < 0)
            continue;
        CU_ASSERT_EQUAL(ranks[i].team.status, status);
        CU_ASSERT_PTR_NOT_NULL(strstr(ranks[i].team.text, says));
        if (ranks[i].team.status != status || !strstr(ranks[i].team.text, says))
            fprintf(stderr, "    rank %u: %d \"%s\" instead of %d \"...%s\"\n", i,
                    ranks[i].team.status, ranks[i].team.text, status, says);
    }
}

static uint64_t make_world(uint32_t call)
{
    all_join(0, call, PWC__TEAM_KIND__TEAM_SPLIT, NULL, NULL);
    expect_all(0, "");
    return ranks[0].team.number;
}

/* ---- teams ----------------------------------------------------------------------------------- */

static void the_world(void)
{
    uint32_t fullest = 0;

    open_job();
    CU_ASSERT_NOT_EQUAL(make_world(0), 0);
    for (uint32_t i = 0; i < SIZE; i++) {
        const struct raw_team *t = &ranks[i].team;
        const struct team_shared *area;

        CU_ASSERT_EQUAL(t->number, ranks[0].team.number);
        CU_ASSERT_EQUAL(t->rank, i);
        CU_ASSERT_EQUAL(t->size, SIZE);
        CU_ASSERT_EQUAL(t->window, 64);
        CU_ASSERT_FATAL(t->area >= 0);
        area = mmap(NULL, 4096, PROT_READ, MAP_SHARED, t->area, 0);
        CU_ASSERT_FATAL(area != MAP_FAILED);
        CU_ASSERT_EQUAL(area->magic, TEAM_MAGIC);
        CU_ASSERT_EQUAL(area->window, 64);
        CU_ASSERT(t->member < area->members);
        fullest = area->members > fullest ? area->members : fullest;
        munmap((void *)(uintptr_t)area, 4096);
    }
    for (uint32_t i = 0; i < SIZE; i++)
        CU_ASSERT_EQUAL(ranks[i].team.small_max, TEAM_DATA_BYTES / fullest / 64 * 64);
    for (uint32_t i = 0; i < SIZE; i++)
        CU_ASSERT_EQUAL(raw_team_leave(ranks[i].socket, ranks[i].session, ranks[i].team.number), 0);
    CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, ranks[0].session, ranks[0].team.number),
                    -EINVAL);
    close_job();
}

static void splits(void)
{
    static const int colors[SIZE] = {0, -1, 0}, keys[SIZE] = {2, 0, 1};
    uint64_t world;

    open_job();
    world = make_world(0);
    all_join(world, 0, PWC__TEAM_KIND__TEAM_SPLIT, colors, keys);
    expect_all(0, "");
    CU_ASSERT_EQUAL(ranks[1].team.number, 0);
    CU_ASSERT_EQUAL(ranks[1].team.area, -1);
    CU_ASSERT_EQUAL(ranks[0].team.rank, 1);
    CU_ASSERT_EQUAL(ranks[2].team.rank, 0);
    CU_ASSERT_EQUAL(ranks[0].team.ranks[0], 2);
    CU_ASSERT_EQUAL(ranks[0].team.size, 2);
    CU_ASSERT_NOT_EQUAL(ranks[0].team.number, world);
    all_join(world, 1, PWC__TEAM_KIND__TEAM_BY_NODE, colors, NULL);
    expect_all(0, "");
    CU_ASSERT_EQUAL(ranks[1].team.size, SIZE);
    close_job();
}

/* A call names a second context that shall be the member in the new team. */
static void another_context(void)
{
    struct answer contexts[SIZE];
    uint64_t world;

    open_job();
    world = make_world(0);
    for (uint32_t i = 0; i < SIZE; i++) {
        Pwc__TeamJoin join = raw_team_call(ranks[i].session, world, 0);

        CU_ASSERT_EQUAL_FATAL(ask_context(ranks[i].socket, 8192, &contexts[i]), 0);
        answer_close(&contexts[i]);
        join.session = contexts[i].handle;
        CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
    }
    for (uint32_t i = 0; i < SIZE; i++) {
        raw_team_close(&ranks[i].team);
        CU_ASSERT_EQUAL(raw_team_formed(ranks[i].socket, &ranks[i].team), 0);
        CU_ASSERT_EQUAL(raw_team_leave(ranks[i].socket, contexts[i].handle, ranks[i].team.number),
                        0);
    }
    close_job();
}

/* ---- errors, the same at all members --------------------------------------------------------- */

/* All ranks call for the world, rank 1 with another window or version of the area: all get this
 * error, and the next call works. */
static void one_differs(uint32_t window, uint32_t area, int status, const char *says)
{
    open_job();
    for (uint32_t i = 0; i < SIZE; i++) {
        Pwc__TeamJoin join = raw_team_call(ranks[i].session, 0, 0);

        join.window = i == 1 ? window : join.window;
        join.area = i == 1 ? area : join.area;
        CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
    }
    for (uint32_t i = 0; i < SIZE; i++)
        (void)raw_team_formed(ranks[i].socket, &ranks[i].team);
    expect_all(status, says);
    CU_ASSERT_NOT_EQUAL(make_world(1), 0);
    close_job();
}

static void unlike_calls(void)
{
    one_differs(128, TEAM_VERSION, -EINVAL, "rank 1 gives a window of 128, another member 64");
}

static void an_older_library(void) /* 0.6 sends no version */
{
    one_differs(64, 0, -EPROTONOSUPPORT, "the library has team areas of version 1");
}

static void a_member_dies(void)
{
    uint64_t world;

    open_job();
    world = make_world(0);
    for (uint32_t i = 0; i < 2; i++) {
        Pwc__TeamJoin join = raw_team_call(ranks[i].session, world, 0);

        CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
    }
    leave_job(2); /* rank 2 has not called */
    for (uint32_t i = 0; i < 2; i++) {
        raw_team_close(&ranks[i].team);
        (void)raw_team_formed(ranks[i].socket, &ranks[i].team);
    }
    expect_all(-EHOSTDOWN, "rank 2 has left");
    /* A rank that calls later gets the error too. */
    all_join(world, 1, PWC__TEAM_KIND__TEAM_SPLIT, NULL, NULL);
    expect_all(-EHOSTDOWN, "rank 2 has left");
    all_join(world, 2, PWC__TEAM_KIND__TEAM_SHRINK, NULL, NULL);
    expect_all(0, "");
    CU_ASSERT_EQUAL(ranks[1].team.rank, 1);
    CU_ASSERT_EQUAL(ranks[1].team.size, 2);
    close_job();
}

/* A member's context is closed while its rank lives on: only its node knows that the member has
 * left. */
static void a_context_is_closed(void)
{
    uint64_t world;

    open_job();
    world = make_world(0);
    CU_ASSERT_EQUAL(ask_context_close(ranks[1].socket, ranks[1].session), 0);
    for (uint32_t call = 0; call < 2; call++) {
        for (uint32_t i = 0; i < SIZE; i += 2) {
            Pwc__TeamJoin join = raw_team_call(ranks[i].session, world, call);

            join.kind = call == 0 ? PWC__TEAM_KIND__TEAM_SPLIT : PWC__TEAM_KIND__TEAM_SHRINK;
            CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
        }
        for (uint32_t i = 0; i < SIZE; i += 2) {
            raw_team_close(&ranks[i].team);
            CU_ASSERT_EQUAL(raw_team_formed(ranks[i].socket, &ranks[i].team),
                            call == 0 ? -EHOSTDOWN : 0);
        }
    }
    CU_ASSERT_EQUAL(ranks[2].team.size, 2);
    close_job();
}

/* Returns the status of rank 0's next answer. */
static int answer_to_first(void)
{
    struct answer answer;

    ask_nothing(ranks[0].socket, &answer);
    answer_close(&answer);
    return answer.status;
}

/* Ranks 1 and 2 shrink the team that they have with rank 0, who is no member any more. */
static void others_shrink(void)
{
    for (int made = 0; made < 2; made++)
        for (uint32_t i = 1; i < SIZE; i++) {
            Pwc__TeamJoin join = raw_team_call(ranks[i].session, ranks[i].team.number, 0);

            join.kind = PWC__TEAM_KIND__TEAM_SHRINK;
            if (made == 0) {
                CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &join));
                continue;
            }
            raw_team_close(&ranks[i].team);
            CU_ASSERT_EQUAL(raw_team_formed(ranks[i].socket, &ranks[i].team), 0);
            CU_ASSERT_EQUAL(ranks[i].team.size, SIZE - 1);
        }
}

/* Guards that a member which no longer waits for its call leaves the team that the others get,
 * whether it gives up before they call or after the team has started, and that nothing of the
 * member stays in its quota. */
static void a_member_gives_up(void)
{
    for (int started = 0; started < 2; started++) {
        Pwc__TeamJoin calls[SIZE];

        open_job();
        for (uint32_t i = 0; i < SIZE; i++)
            calls[i] = raw_team_call(ranks[i].session, 0, 0);
        CU_ASSERT_TRUE(raw_team_join(ranks[0].socket, &calls[0]));
        if (!started) {
            CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &calls[0]));
            CU_ASSERT_EQUAL(answer_to_first(), 0);
        }
        for (uint32_t i = 1; i < SIZE; i++)
            CU_ASSERT_TRUE(raw_team_join(ranks[i].socket, &calls[i]));
        for (uint32_t i = 1; i < SIZE; i++)
            CU_ASSERT_EQUAL_FATAL(raw_team_formed(ranks[i].socket, &ranks[i].team), 0);
        CU_ASSERT_EQUAL(answer_to_first(), started ? 0 : -ETIMEDOUT);
        CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &calls[0]));
        CU_ASSERT_EQUAL(answer_to_first(), 0);
        CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &calls[0]));
        CU_ASSERT_EQUAL(answer_to_first(), started ? -EINVAL : 0); /* the answer was a team */
        CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, ranks[0].session, ranks[1].team.number),
                        -EINVAL);
        others_shrink();
        CU_ASSERT_NOT_EQUAL(make_world(1), 0);
        close_job();
    }
}

/* Guards that a call which is given up before this daemon has read it is over: the daemon answers
 * at once. No call has the last number. */
static void a_call_given_up_before(void)
{
    Pwc__TeamJoin call;

    open_job();
    call = raw_team_call(ranks[0].session, 0, 0);
    CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &call));
    CU_ASSERT_EQUAL(answer_to_first(), 0);
    CU_ASSERT_TRUE(raw_team_join(ranks[0].socket, &call));
    CU_ASSERT_EQUAL(answer_to_first(), -ETIMEDOUT);
    call.call = UINT32_MAX;
    CU_ASSERT_TRUE(raw_team_withdraw(ranks[0].socket, &call));
    CU_ASSERT_EQUAL(answer_to_first(), -EINVAL);
    CU_ASSERT_NOT_EQUAL(make_world(1), 0);
    close_job();
}

/* Each field of a TeamJoin out of range. */
static void fields_out_of_range(void)
{
    static const struct {
        const char *path;
        uint64_t number;
        int status;
        const char *says;
    } rows[] = {
        {"session", 1000, -EINVAL, "session 1000 is not yours"},
        {"session", UINT32_MAX, -EINVAL, "session 4294967295 is not yours"},
        {"member", 1000, -EINVAL, "session 1000 is not yours"},
        {"parent", 1, -EINVAL, "is no member of team 1"},
        {"parent", UINT64_MAX, -EINVAL, "is no member of team 18446744073709551615"},
        {"kind", 3, -EINVAL, "kind 3 with a window of 64"},
        {"kind", UINT32_MAX, -EINVAL, "kinds are 0 to 2"},
        {"kind", 2, -EINVAL, "the world does not shrink"},
        {"window", 0, -EINVAL, "a window of 0"},
        {"window", 3, -EINVAL, "a window of 3"},
        {"window", 8192, -EINVAL, "powers of two to 4096"},
        {"window", UINT32_MAX, -EINVAL, "a window of 4294967295"},
        {"call", UINT32_MAX, -EINVAL, "and call 4294967295 is below"},
        /* This row is the last, because it ends the call at all ranks. */
        {"area", TEAM_VERSION + 1, -EPROTONOSUPPORT, "upgrade the daemon, pwcd"},
    };
    static const char *const unbounded[] = {"call", "color", "key"};
    struct raw_team t;

    open_job();
    for (unsigned i = 0; i < pwc__team_join__descriptor.n_fields; i++) {
        const char *name = pwc__team_join__descriptor.fields[i].name;
        bool covered = false;

        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
            covered = covered || strcmp(rows[j].path, name) == 0;
        for (size_t j = 0; j < sizeof(unbounded) / sizeof(unbounded[0]); j++)
            covered = covered || strcmp(unbounded[j], name) == 0;
        CU_ASSERT_TRUE(covered);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Pwc__TeamJoin join = raw_team_call(ranks[0].session, 0, 0);

        CU_ASSERT_TRUE(
            field_set(&join.base, rows[i].path, &(struct field_value){.number = rows[i].number}));
        CU_ASSERT_TRUE(raw_team_join(ranks[0].socket, &join));
        CU_ASSERT_EQUAL(raw_team_formed(ranks[0].socket, &t), rows[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(t.text, rows[i].says));
        if (!strstr(t.text, rows[i].says))
            fprintf(stderr, "    \"%s\" instead of \"...%s\"\n", t.text, rows[i].says);
    }
    CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, ranks[0].session, 7), -EINVAL);
    CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, 1000, 7), -EINVAL);
    close_job();
}

/* A client cannot call for a context of another client. */
static void sessions_of_others(void)
{
    uint64_t world;
    Pwc__TeamJoin join;
    struct raw_team t;

    open_job();
    world = make_world(0);
    join = raw_team_call(ranks[1].session, world, 0);
    if (ranks[0].session != ranks[1].session) { /* numbers are per engine, so they may be equal */
        CU_ASSERT_TRUE(raw_team_join(ranks[0].socket, &join));
        CU_ASSERT_EQUAL(raw_team_formed(ranks[0].socket, &t), -EINVAL);
        CU_ASSERT_EQUAL(raw_team_leave(ranks[0].socket, ranks[1].session, world), -EINVAL);
    }
    close_job();
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static void beyond_quotas(void)
{
    static const struct {
        const char *key, *value;
        uint32_t fit; /* number of teams of three members that fit */
        const char *says;
    } rows[] = {
        {"--client-teams", "2", 2, "the quota (client-teams) is 2"},
        {"--user-teams", "7", 2, "the quota (user-teams) is 7"},
        {"--client-memory", "400000", 0, "the quota (client-memory) is 400000"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const options[] = {"--progress-threads", threads, rows[i].key, rows[i].value,
                                       NULL};
        uint32_t call = 0;

        CU_ASSERT_EQUAL(daemon_stop(&d), 0);
        CU_ASSERT_TRUE_FATAL(start(options));
        open_job();
        for (; call < rows[i].fit; call++)
            make_world(call);
        all_join(0, call++, PWC__TEAM_KIND__TEAM_SPLIT, NULL, NULL);
        expect_all(-EDQUOT, rows[i].says);
        all_join(0, call, PWC__TEAM_KIND__TEAM_SPLIT, NULL, NULL); /* nothing was kept of it */
        expect_all(-EDQUOT, rows[i].says);
        close_job();
        open_job(); /* all was given back */
        for (call = 0; call < rows[i].fit; call++)
            make_world(call);
        close_job();
    }
}

static void still_served(void)
{
    CU_ASSERT_TRUE(raw_is_served(&d));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"the world", the_world},
                           {"splits", splits},
                           {"another context", another_context},
                           {"unlike calls", unlike_calls},
                           {"a library with team areas of another version", an_older_library},
                           {"a member dies", a_member_dies},
                           {"a context is closed", a_context_is_closed},
                           {"a member gives up", a_member_gives_up},
                           {"a call given up before", a_call_given_up_before},
                           {"fields out of range", fields_out_of_range},
                           {"sessions of others", sessions_of_others},
                           {"beyond quotas", beyond_quotas},
                           {"still served", still_served},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    threads = argc > 2 ? argv[2] : threads;
    if (start((const char *const[]){"--progress-threads", threads, NULL}))
        failed = suite_run("team requests", tests);
    return daemon_end(&d, failed);
}
