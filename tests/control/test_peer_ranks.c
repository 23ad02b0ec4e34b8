/*
 * A daemon as a process, and another one made up, that knows the secret: where ranks are. The
 * made-up one answers the daemon's questions with values out of range, and announces ranks on a new
 * link.
 *
 *     test_peer_ranks PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "tests/control/lib/good_frames.h"
#include "tests/control/lib/plan.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"

static struct daemon d; /* node 1 */
static struct plan plan;
static struct good_frames f;

/* ---- answers to the daemon's questions ------------------------------------------------------- */

/* Reads the cookie with which the daemon asks where a rank of our job is. 0: it does not ask. */
static uint64_t asked(struct raw_peer *p)
{
    Pwc__PeerFrame *frame;
    uint64_t cookie = 0;

    while (cookie == 0 && (frame = raw_peer_next(p)) != NULL) {
        if (frame->body_case == PWC__PEER_FRAME__BODY_RANK_AT)
            cookie = frame->rank_at->cookie;
        else if (frame->body_case == PWC__PEER_FRAME__BODY_CONTRIBUTION)
            cookie = frame->contribution->sequence + 1;
        else if (frame->body_case == PWC__PEER_FRAME__BODY_WHERE_IS)
            cookie = frame->where_is->cookie;
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    return cookie;
}

/* Waits until the client is gone and its rank is free. Connections of this test's own come and go.
 */
static void leave(int s, const struct holdings *before)
{
    struct holdings then = *before;

    close(s);
    then.descriptors = HOLDINGS_ANY;
    CU_ASSERT_TRUE(look_returns_to(&d, &then));
}

/* A client of a job whose directory we keep sends Hello. */
static int begin_hello(void)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    hello.version_min = hello.version_max = 1;
    hello.rings = SESSION_VERSION;
    hello.job = f.our_job;
    hello.size = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    CU_ASSERT_TRUE(raw_request(s, 3, &request));
    return s;
}

static void answer_rank(struct raw_peer *p, uint64_t cookie, int32_t status, uint32_t node)
{
    Pwc__PeerFrame frame;

    good_frames_fill(&f, p);
    f.rank_is.cookie = cookie;
    f.rank_is.status = status;
    f.rank_is.node = node;
    frame = good_frames_of(&f, "rank_is");
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

/* Attaches a client of that job: the test, as the job's home, confirms its rank. */
static int attach(struct raw_peer *p)
{
    struct answer a;
    int s = begin_hello();

    answer_rank(p, asked(p), 0, 1);
    CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
    return s;
}

static void answers_out_of_range(void)
{
    static const struct {
        int32_t status, expected;
    } answers[] = {
        {INT32_MIN, -EPROTO},       {-100000, -EPROTO}, {-4096, -EPROTO},
        {-EADDRINUSE, -EADDRINUSE}, {-EINVAL, -EINVAL}, {0, 0},
    };

    struct holdings before;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct raw_peer p;
        struct answer a;
        uint64_t cookie;
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = begin_hello();
        cookie = asked(&p);
        CU_ASSERT_NOT_EQUAL_FATAL(cookie, 0);
        answer_rank(&p, cookie, 1, 0);          /* no status at all: passed over */
        answer_rank(&p, cookie + 1, -EPERM, 0); /* another's, or nobody's */
        answer_rank(&p, cookie, answers[i].status, UINT32_MAX);
        answer_rank(&p, cookie, -EPERM, 0); /* a second time */
        CU_ASSERT_EQUAL(ask_nothing(s, &a), answers[i].expected);
        CU_ASSERT(a.status == 0 || strlen(a.text) > 10);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* The place of a rank that a client binds: nodes and engines that cannot exist, or that are not
 * there. */
static void places_out_of_range(void)
{
    static const struct {
        uint32_t node, engine;
        int expected;
    } places[] = {
        {2, 0, -EHOSTUNREACH},   {UINT32_MAX, 0, -EHOSTUNREACH},  {1, 1, -EHOSTUNREACH},
        {WE, 16, -EHOSTUNREACH}, {WE, UINT32_MAX, -EHOSTUNREACH}, {WE, 1, -EHOSTDOWN},
        {WE, 15, -EHOSTDOWN},
    };
    struct holdings before;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct raw_peer p;
        struct answer context, a;
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
        Pwc__Bind bind = PWC__BIND__INIT;
        Pwc__PeerFrame frame;
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = attach(&p);
        CU_ASSERT_EQUAL_FATAL(ask_context(s, 4096, &context), 0);
        bind.session = context.handle;
        request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
        request.bind = &bind;
        CU_ASSERT_TRUE(raw_request(s, 5, &request));
        good_frames_fill(&f, &p);
        f.rank_is.cookie = asked(&p);
        f.rank_is.node = places[i].node;
        f.rank_is.engine = places[i].engine;
        frame = good_frames_of(&f, "rank_is");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_EQUAL(ask_nothing(s, &a), places[i].expected);
        answer_close(&context);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* The result of an exchange, in which the other node may claim anything. */
static void results_out_of_range(void)
{
    static const struct {
        int32_t status, expected;
    } results[] = {
        {INT32_MIN, -EPROTO}, {-4096, -EPROTO}, {-EHOSTDOWN, -EHOSTDOWN}, {1, 0}, {0, 0}};

    struct holdings before;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        struct raw_peer p;
        struct answer a;
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
        Pwc__Exchange exchange = PWC__EXCHANGE__INIT;
        Pwc__PeerFrame frame;
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = attach(&p);
        request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
        request.exchange = &exchange;
        CU_ASSERT_TRUE(raw_request(s, 4, &request));
        CU_ASSERT_EQUAL(asked(&p), 1);
        good_frames_fill(&f, &p);
        f.gathered.status = results[i].status;
        f.gathered.offset = UINT64_MAX;
        f.gathered.last = true;
        frame = good_frames_of(&f, "gathered");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_EQUAL(ask_nothing(s, &a), results[i].expected);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* ---- a link is new --------------------------------------------------------------------------- */

static void say(struct raw_peer *p, const char *name)
{
    Pwc__PeerFrame frame = good_frames_of(&f, name);

    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

/* Asks where a rank of the pair is; the daemon knows that we have both. */
static int where(struct raw_peer *p, uint32_t rank)
{
    good_frames_fill(&f, p);
    f.where_is.job = f.pair_job;
    f.where_is.rank = rank;
    say(p, "where_is");
    return good_frames_status(p);
}

static void announce(struct raw_peer *p, uint32_t rank)
{
    good_frames_fill(&f, p);
    f.rank_at.job = f.pair_job;
    f.rank_at.size = 2;
    f.rank_at.rank = rank;
    say(p, "rank_at");
    CU_ASSERT_EQUAL(good_frames_status(p), 0);
}

/* The frame that reports that a rank has gone may be lost with a link: a rank that is not announced
 * on the next link counts as gone. */
static void not_announced_again(void)
{
    struct raw_peer p;

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    announce(&p, 0);
    announce(&p, 1);
    good_frames_fill(&f, &p);
    say(&p, "roll");
    CU_ASSERT_EQUAL(where(&p, 0), 0);
    CU_ASSERT_EQUAL(where(&p, 1), 0);
    raw_peer_close(&p);
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    announce(&p, 1);
    good_frames_fill(&f, &p);
    say(&p, "roll");
    CU_ASSERT_EQUAL(where(&p, 0), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(where(&p, 1), 0);
    raw_peer_close(&p);
}

/* The daemon names its own ranks, then the one that attaches, then the end of the list. */
static void announces_its_ranks(void)
{
    struct holdings before;
    struct raw_peer p;
    struct answer a;
    int s, names = 0;
    bool all = false;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    s = begin_hello();
    answer_rank(&p, asked(&p), 0, 1);
    CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
    raw_peer_close(&p);
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    while (!all) {
        Pwc__PeerFrame *frame = raw_peer_next(&p);

        CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
        names += frame->body_case == PWC__PEER_FRAME__BODY_RANK_AT && !frame->rank_at->gone &&
                 strcmp(frame->rank_at->job, f.our_job) == 0;
        all = frame->body_case == PWC__PEER_FRAME__BODY_ROLL;
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    CU_ASSERT_EQUAL(names, 1);
    leave(s, &before);
    raw_peer_close(&p);
}

static void still_served(void)
{
    CU_ASSERT_TRUE(raw_is_served(&d));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"answers out of range", answers_out_of_range},
                           {"places out of range", places_out_of_range},
                           {"results out of range", results_out_of_range},
                           {"ranks not announced again are gone", not_announced_again},
                           {"announces its ranks on a new link", announces_its_ranks},
                           {"still served", still_served},
                           CU_TEST_INFO_NULL};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    good_frames_init(&f);
    return plan_run(&plan, &d, argv[1], "peer ranks", tests);
}
