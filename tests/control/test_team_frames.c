/*
 * Frames that form teams, with each field out of range, and in the wrong order: a daemon as a
 * process, and another daemon, played by the test, that knows the secret. A frame without a gather
 * ends the link; all other frames are answered or ignored; the daemon works on, and keeps nothing.
 *
 *     test_team_frames PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/peering/directory.h"
#include "proto/session_abi.h"
#include "tests/control/lib/field.h"
#include "tests/control/lib/plan.h"
#include "tests/control/lib/raw_peer.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/team.h"

#define WE     0u /* the number of the node that the test plays */
#define COOKIE UINT64_C(77)

static struct daemon d; /* node 1 */
static struct plan plan;
static char job[16];     /* a job whose home is the daemon */
static char our_job[16]; /* a job whose home we are */

/* ---- frames that are good -------------------------------------------------------------------- */

static Pwc__TeamGather gather;
static Pwc__TeamRun run, *runs[] = {&run};
static Pwc__TeamCall call;
static Pwc__TeamAsk asking;
static Pwc__TeamMembers members;
static Pwc__TeamGone gone;
static Pwc__TeamGroup group;
static Pwc__TeamReady ready;
static Pwc__TeamStart start;

/* Frames to a home name a job whose home is the daemon; frames from a home name one whose home we
 * are. */
static const struct {
    const char *name;
    void *body;
    const char *job;
} bodies[] = {
    {"team_call", &call, job},       {"team_ask", &asking, our_job},
    {"team_members", &members, job}, {"team_gone", &gone, job},
    {"team_group", &group, our_job}, {"team_ready", &ready, job},
    {"team_start", &start, our_job},
};
#define BODIES (sizeof(bodies) / sizeof(bodies[0]))

static Pwc__PeerFrame fill(size_t body)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;

    pwc__team_gather__init(&gather);
    gather.uid = getuid();
    gather.job = (char *)(uintptr_t)bodies[body].job;
    gather.parent = 5;
    pwc__team_run__init(&run);
    run.count = 1;
    pwc__team_call__init(&call);
    call.size = 1;
    call.window = 64;
    pwc__team_ask__init(&asking);
    pwc__team_members__init(&members);
    members.n_runs = 1;
    members.runs = runs;
    members.last = true;
    pwc__team_gone__init(&gone);
    gone.uid = getuid();
    gone.job = job;
    gone.parent = 5;
    pwc__team_group__init(&group);
    group.number = group.first = 9;
    group.window = 64;
    group.n_runs = 1;
    group.runs = runs;
    group.last = true;
    pwc__team_ready__init(&ready);
    pwc__team_start__init(&start);
    call.gather = asking.gather = members.gather = group.gather = ready.gather = start.gather =
        &gather;
    frame.body_case = (Pwc__PeerFrame__BodyCase)protobuf_c_message_descriptor_get_field_by_name(
                          frame.base.descriptor, bodies[body].name)
                          ->id;
    frame.team_call = bodies[body].body; /* all bodies are one union of pointers */
    return frame;
}

/* ---- the daemon goes on ---------------------------------------------------------------------- */

/* Announces a rank of ours, and checks that the daemon answers. */
static void expect_alive(struct raw_peer *p)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT, *back;
    Pwc__RankAt at = PWC__RANK_AT__INIT;
    bool answered = false;

    at.uid = getuid();
    at.job = job;
    at.size = 1;
    at.cookie = COOKIE;
    frame.body_case = PWC__PEER_FRAME__BODY_RANK_AT;
    frame.rank_at = &at;
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
    while (!answered && (back = raw_peer_next(p)) != NULL) {
        answered =
            back->body_case == PWC__PEER_FRAME__BODY_RANK_IS && back->rank_is->cookie == COOKIE;
        pwc__peer_frame__free_unpacked(back, NULL);
    }
    CU_ASSERT_TRUE(answered);
}

/* ---- fields out of range --------------------------------------------------------------------- */

static struct raw_peer peer;
static size_t at_body;

/* Sends the frame with this field at several values. The runs are a list, which field_set does not
 * go through: they have a test of their own. */
static void try_field(void *context, const char *path)
{
    static const uint64_t values[] = {0, 1, 4097, 65536, INT32_MAX, UINT32_MAX, UINT64_MAX};
    unsigned failures = CU_get_number_of_failures();

    if (strncmp(path, "runs.", 5) == 0 || strstr(path, "job") != NULL)
        return;
    if (strcmp(path, "gather.uid") == 0 && bodies[at_body].job == our_job)
        return; /* with another user the home may be another */
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        Pwc__PeerFrame frame = fill(at_body);
        const struct field_value value = {.number = values[i], .text = "\033[2J"};

        CU_ASSERT_TRUE(field_set((ProtobufCMessage *)bodies[at_body].body, path, &value));
        CU_ASSERT_TRUE(raw_peer_send(&peer, &frame));
    }
    expect_alive(&peer);
    if (CU_get_number_of_failures() != failures)
        fprintf(stderr, "%s.%s\n", bodies[at_body].name, path);
}

static void fields_out_of_range(void)
{
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&peer, &plan, WE));
    expect_alive(&peer);
    for (at_body = 0; at_body < BODIES; at_body++) {
        const Pwc__PeerFrame frame = fill(at_body);

        field_walk(frame.team_call->base.descriptor, try_field, NULL);
    }
    raw_peer_close(&peer);
}

static void runs_out_of_range(void)
{
    static const Pwc__TeamRun rows[] = {
        {.count = 0},
        {.count = UINT32_MAX},
        {.rank = UINT32_MAX, .count = 1},
        {.rank = UINT32_MAX, .count = UINT32_MAX},
        {.count = 1, .node = UINT32_MAX},
        {.count = 1, .engine = UINT32_MAX},
        {.count = 1, .context = UINT32_MAX, .node = 1},
    };

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&peer, &plan, WE));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t body = 0; body < BODIES; body++) {
            Pwc__PeerFrame frame = fill(body);

            run.rank = rows[i].rank;
            run.count = rows[i].count;
            run.context = rows[i].context;
            run.node = rows[i].node;
            run.engine = rows[i].engine;
            gather.call = 100 + (uint32_t)i; /* a different gather for each row */
            CU_ASSERT_TRUE(raw_peer_send(&peer, &frame));
        }
    expect_alive(&peer);
    raw_peer_close(&peer);
}

/* A frame without a gather, with a wrong job, or about a job that the sender may not speak for. */
static void senseless(void)
{
    for (size_t body = 0; body < BODIES; body++)
        for (int i = 0; i < 3; i++) {
            bool is_gone = bodies[body].body == &gone;
            bool from_home = bodies[body].job == our_job;
            Pwc__PeerFrame frame;

            if (i == 2 && !from_home)
                continue;
            CU_ASSERT_TRUE_FATAL(raw_peer_link(&peer, &plan, WE));
            frame = fill(body);
            if (i == 0 && !is_gone)
                call.gather = asking.gather = members.gather = group.gather = ready.gather =
                    start.gather = NULL;
            else if (i < 2)
                gather.job = gone.job = (char *)(uintptr_t) "a\nb";
            else
                gather.job = job;
            CU_ASSERT_TRUE(raw_peer_send(&peer, &frame));
            CU_ASSERT_TRUE(raw_hangs_up(peer.socket));
            CU_ASSERT_TRUE(daemon_says(&d, "a frame that makes no sense here"));
            raw_peer_close(&peer);
        }
}

/* ---- a home that repeats a frame ------------------------------------------------------------- */

/* Reads frames up to the next one of this kind, which the caller frees. NULL: none comes. */
static Pwc__PeerFrame *next_of(struct raw_peer *p, Pwc__PeerFrame__BodyCase kind)
{
    Pwc__PeerFrame *frame;

    while ((frame = raw_peer_next(p)) != NULL && frame->body_case != kind)
        pwc__peer_frame__free_unpacked(frame, NULL);
    return frame;
}

/* Attaches the only rank of a job whose home we are, with one context. */
static int attach_ours(uint32_t *session)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT, *question;
    Pwc__RankIs is = PWC__RANK_IS__INIT;
    struct answer answer;
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_TRUE(raw_ask_hello(s, our_job, 0, 1));
    question = next_of(&peer, PWC__PEER_FRAME__BODY_RANK_AT);
    CU_ASSERT_PTR_NOT_NULL_FATAL(question);
    is.cookie = question->rank_at->cookie;
    is.node = 1;
    is.instance = 1;
    pwc__peer_frame__free_unpacked(question, NULL);
    frame.body_case = PWC__PEER_FRAME__BODY_RANK_IS;
    frame.rank_is = &is;
    CU_ASSERT_TRUE(raw_peer_send(&peer, &frame));
    CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &answer), 0);
    answer_close(&answer);
    CU_ASSERT_EQUAL_FATAL(ask_context(s, 8192, &answer), 0);
    answer_close(&answer);
    *session = answer.handle;
    return s;
}

/* Ends a call as its home, and expects that the node confirms the end. */
static void end_call(uint32_t number, int32_t status)
{
    Pwc__PeerFrame frame = fill(BODIES - 1), *back;

    gather.parent = 0;
    gather.call = number;
    start.status = status;
    CU_ASSERT_TRUE(raw_peer_send(&peer, &frame));
    back = next_of(&peer, PWC__PEER_FRAME__BODY_TEAM_READY);
    CU_ASSERT_PTR_NOT_NULL_FATAL(back);
    CU_ASSERT_TRUE(back->team_ready->ended);
    CU_ASSERT_EQUAL(back->team_ready->gather->call, number);
    pwc__peer_frame__free_unpacked(back, NULL);
}

/* Guards that a node confirms the end of a failed call again when its home repeats it: the first
 * TeamReady may have been lost with the link, and the home keeps the call until it comes. */
static void a_failure_that_is_repeated(void)
{
    Pwc__PeerFrame *called;
    struct raw_team team;
    Pwc__TeamJoin join;
    uint32_t session;
    int s;

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&peer, &plan, WE));
    s = attach_ours(&session);
    for (uint32_t number = 0; number < 2; number++) {
        join = raw_team_call(session, 0, number);
        CU_ASSERT_TRUE(raw_team_join(s, &join));
        called = next_of(&peer, PWC__PEER_FRAME__BODY_TEAM_CALL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(called);
        pwc__peer_frame__free_unpacked(called, NULL);
        end_call(number, -EDQUOT);
        CU_ASSERT_EQUAL(raw_team_formed(s, &team), -EDQUOT);
        for (uint32_t again = 0; again <= number; again++)
            end_call(again, -EDQUOT);
    }
    close(s);
    raw_peer_close(&peer);
}

static void still_served(void)
{
    CU_ASSERT_TRUE(raw_is_served(&d));
}

static void name_job(char name[16], const char *stem, uint32_t home)
{
    const struct directory_id id = {.uid = getuid(), .job = name};

    for (int i = 0; i == 0 || directory_home(&id, 2) != home; i++)
        snprintf(name, 16, "%s%d", stem, i);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"fields out of range", fields_out_of_range},
                           {"runs out of range", runs_out_of_range},
                           {"senseless", senseless},
                           {"a failure that is repeated", a_failure_that_is_repeated},
                           {"still served", still_served},
                           CU_TEST_INFO_NULL};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    name_job(job, "job", 1);
    name_job(our_job, "job", WE);
    return plan_run(&plan, &d, argv[1], "team frames", tests);
}
