/*
 * Where ranks are: a daemon as a process, and another daemon, played by the test, that knows the
 * secret. The test answers the daemon's questions with values out of range, and announces ranks on
 * a new link. One test runs again with a service manager, which the test plays, too.
 *
 *     test_peer_ranks PWCD
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "tests/control/lib/good_frames.h"
#include "tests/control/lib/manager.h"
#include "tests/control/lib/plan.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"

static struct daemon d; /* node 1 */
static struct plan plan;
static struct good_frames f;
static struct manager manager = {.socket = -1}; /* opened for the last tests */

/* ---- answers to the daemon's questions ------------------------------------------------------- */

/* Reads frames up to the daemon's next question or note about our job. Returns its cookie, for a
 * contribution to an exchange its sequence + 1; 0: no such frame comes. */
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
        else if (frame->body_case == PWC__PEER_FRAME__BODY_PUBLICATION)
            cookie = frame->publication->cookie;
        else if (frame->body_case == PWC__PEER_FRAME__BODY_LOOK_FOR && !frame->look_for->gone)
            cookie = frame->look_for->cookie;
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    return cookie;
}

static void say(struct raw_peer *p, const char *name)
{
    Pwc__PeerFrame frame = good_frames_of(&f, name);

    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

/* Closes the client's connection, and waits until the daemon holds no more than before. Descriptors
 * do not count, because each look at the daemon has a connection of its own. */
static void leave(int s, const struct holdings *before)
{
    struct holdings then = *before;

    close(s);
    then.descriptors = HOLDINGS_ANY;
    CU_ASSERT_TRUE(look_returns_to(&d, &then));
}

/* A client of a job whose home we are sends Hello. */
static int begin_hello_of(uint32_t size)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    hello.version_min = hello.version_max = 1;
    hello.rings = SESSION_VERSION;
    hello.job = f.our_job;
    hello.size = size;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    CU_ASSERT_TRUE(raw_request(s, 3, &request));
    return s;
}

static int begin_hello(void)
{
    return begin_hello_of(1);
}

/* The home answers where a rank is, or why there is none. */
static void place_rank(struct raw_peer *p, uint64_t cookie, int32_t status, uint32_t node,
                       uint32_t engine)
{
    Pwc__PeerFrame frame;

    good_frames_fill(&f, p);
    f.rank_is.cookie = cookie;
    f.rank_is.status = status;
    f.rank_is.node = node;
    f.rank_is.engine = engine;
    frame = good_frames_of(&f, "rank_is");
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

static void answer_rank(struct raw_peer *p, uint64_t cookie, int32_t status, uint32_t node)
{
    place_rank(p, cookie, status, node, 0);
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
        answer_rank(&p, cookie, 1, 0);          /* no valid status: passed over */
        answer_rank(&p, cookie + 1, -EPERM, 0); /* a wrong cookie */
        answer_rank(&p, cookie, answers[i].status, UINT32_MAX);
        answer_rank(&p, cookie, -EPERM, 0); /* a second answer */
        CU_ASSERT_EQUAL(ask_nothing(s, &a), answers[i].expected);
        CU_ASSERT(a.status == 0 || strlen(a.text) > 10);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* The client's context asks for a bind; the answer has not come yet. */
static void begin_bind(int s, const struct answer *context)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;

    bind.session = context->handle;
    request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    request.bind = &bind;
    CU_ASSERT_TRUE(raw_request(s, 5, &request));
}

/* A client binds a rank. The home answers that the rank is at a node or an engine that cannot
 * exist, or is not there. */
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
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = attach(&p);
        CU_ASSERT_EQUAL_FATAL(ask_context(s, 4096, &context), 0);
        begin_bind(s, &context);
        place_rank(&p, asked(&p), 0, places[i].node, places[i].engine);
        CU_ASSERT_EQUAL(ask_nothing(s, &a), places[i].expected);
        answer_close(&context);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* A node links, and its engine never offers a link: the bind ends after the deadline, the log says
 * which side is missing, and the service manager learns that the node is linked no more. */
static void offers_no_link(void)
{
    struct holdings before;
    struct raw_peer p;
    struct answer context, a;
    int s;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    s = attach(&p);
    CU_ASSERT_EQUAL_FATAL(ask_context(s, 4096, &context), 0);
    begin_bind(s, &context);
    answer_rank(&p, asked(&p), 0, WE);
    CU_ASSERT_EQUAL(ask_nothing(s, &a), -EHOSTDOWN);
    CU_ASSERT_TRUE(daemon_says(&d, "its engine offers no link"));
    if (manager.socket >= 0)
        CU_ASSERT_TRUE(manager_is_notified(&manager, "1 client, 0 of 1 other nodes linked"));
    answer_close(&context);
    leave(s, &before);
    raw_peer_close(&p);
}

/* A client contributes to its first exchange. */
static void begin_exchange(struct raw_peer *p, int s)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;

    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    CU_ASSERT_TRUE(raw_request(s, 4, &request));
    CU_ASSERT_EQUAL(asked(p), 1);
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
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = attach(&p);
        begin_exchange(&p, s);
        good_frames_fill(&f, &p);
        f.gathered.last = true;
        f.gathered.offset = UINT64_MAX; /* not the next piece: passed over */
        say(&p, "gathered");
        f.gathered.offset = 0;
        f.gathered.status = results[i].status;
        say(&p, "gathered");
        CU_ASSERT_EQUAL(ask_nothing(s, &a), results[i].expected);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* A rank contributes again while the result that another rank has asked for again arrives: it takes
 * no part of that series of pieces, and then its own series as a whole. */
static void joins_no_series(void)
{
    static const struct {
        uint64_t offset;
        bool last;
    } pieces[] = {{4, false}, {8, true}, {0, false}, {4, false}, {4, false}, {8, true}};
    const uint64_t expected[] = {0, 4, 8};
    struct holdings before;
    struct raw_peer p;
    int s;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    s = attach(&p);
    begin_exchange(&p, s);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        good_frames_fill(&f, &p);
        f.gathered.data = (ProtobufCBinaryData){.len = 4, .data = (uint8_t *)f.our_job};
        f.gathered.offset = pieces[i].offset;
        f.gathered.last = pieces[i].last;
        say(&p, "gathered");
    }
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        int fds[3], count;
        Pwc__ClientReply *reply = raw_reply(s, fds, &count);

        CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
        CU_ASSERT_EQUAL_FATAL(reply->body_case, PWC__CLIENT_REPLY__BODY_EXCHANGED);
        CU_ASSERT_EQUAL(reply->exchanged->offset, expected[i]);
        CU_ASSERT_EQUAL(reply->exchanged->last, i == 2);
        pwc__client_reply__free_unpacked(reply, NULL);
    }
    leave(s, &before);
    raw_peer_close(&p);
}

/* ---- open jobs ------------------------------------------------------------------------------- */

/* As the home of an open job, gives a rank. */
static void give_rank(struct raw_peer *p, uint64_t cookie, uint32_t rank, uint64_t instance)
{
    Pwc__PeerFrame frame;

    good_frames_fill(&f, p);
    f.rank_is.cookie = cookie;
    f.rank_is.node = 1;
    f.rank_is.rank = rank;
    f.rank_is.instance = instance;
    f.rank_is.uid = getuid();
    f.rank_is.job = f.our_job;
    frame = good_frames_of(&f, "rank_is");
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

/* Reads up to the next frame about a rank. Returns the rank if the frame gives one back, else
 * UINT32_MAX. */
static uint32_t given_back(struct raw_peer *p)
{
    Pwc__PeerFrame *frame = raw_peer_next(p);
    uint32_t rank = UINT32_MAX;

    while (frame && frame->body_case != PWC__PEER_FRAME__BODY_RANK_AT &&
           frame->body_case != PWC__PEER_FRAME__BODY_RANK_IS) {
        pwc__peer_frame__free_unpacked(frame, NULL);
        frame = raw_peer_next(p);
    }
    if (frame && frame->body_case == PWC__PEER_FRAME__BODY_RANK_AT && frame->rank_at->gone)
        rank = frame->rank_at->rank;
    if (frame)
        pwc__peer_frame__free_unpacked(frame, NULL);
    return rank;
}

/* A home may give senseless ranks, which are refused. The daemon gives back a rank that no client
 * waits for, but keeps the rank of a client that lives, whatever the home claims. */
static void ranks_given(void)
{
    static const struct {
        uint32_t rank;
        uint64_t instance;
        int expected;
    } given[] = {{0, 0, -EPROTO},
                 {UINT32_MAX, 1, -EPROTO},
                 {1u << 21, 1, -EPROTO},
                 {(1u << 21) - 1, 1, 0},
                 {7, UINT64_MAX, 0}};
    struct holdings before;
    struct raw_peer p;
    struct answer a;
    uint64_t cookie;
    int s;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = begin_hello_of(UINT32_MAX);
        cookie = asked(&p);
        CU_ASSERT_NOT_EQUAL_FATAL(cookie, 0);
        give_rank(&p, cookie, given[i].rank, given[i].instance);
        CU_ASSERT_EQUAL(ask_nothing(s, &a), given[i].expected);
        if (given[i].expected == 0) {
            give_rank(&p, cookie, given[i].rank, given[i].instance); /* the client's own: stays */
            give_rank(&p, cookie, given[i].rank - 1, given[i].instance);
            CU_ASSERT_EQUAL(given_back(&p), given[i].rank - 1);
        }
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* A home of an earlier release answers a question for a new rank with -EINVAL, as for a rank out of
 * range. */
static void home_is_older(void)
{
    struct holdings before;
    struct raw_peer p;
    struct answer a;
    int s;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    s = begin_hello_of(UINT32_MAX);
    answer_rank(&p, asked(&p), -EINVAL, 0);
    CU_ASSERT_EQUAL(ask_nothing(s, &a), -ENOTSUP);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "older than 0.6"));
    leave(s, &before);
    /* Such a home gives a job of fixed size no instance, and keeps no names. */
    s = attach(&p);
    CU_ASSERT_TRUE(raw_request(
        s, 4,
        &(Pwc__ClientRequest){.base.descriptor = &pwc__client_request__descriptor,
                              .body_case = PWC__CLIENT_REQUEST__BODY_PUBLISH,
                              .publish = &(Pwc__Publish){
                                  .base.descriptor = &pwc__publish__descriptor, .name = "name"}}));
    CU_ASSERT_EQUAL(ask_nothing(s, &a), -ENOTSUP);
    leave(s, &before);
    raw_peer_close(&p);
}

static void ask_publish(int s, uint32_t id, const char *name, const char *bytes)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Publish publish = PWC__PUBLISH__INIT;

    publish.name = (char *)(uintptr_t)name;
    publish.data = (ProtobufCBinaryData){.len = strlen(bytes), .data = (uint8_t *)(uintptr_t)bytes};
    request.body_case = PWC__CLIENT_REQUEST__BODY_PUBLISH;
    request.publish = &publish;
    CU_ASSERT_TRUE(raw_request(s, id, &request));
}

/* On a new link the daemon announces a rank of an open job with its instance, and then its
 * names. */
static void announces_its_names(void)
{
    struct holdings before;
    struct raw_peer p;
    struct answer a;
    int s, ranks = 0, names = 0;
    bool all = false;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    s = begin_hello_of(UINT32_MAX);
    give_rank(&p, asked(&p), 5, 99);
    CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
    ask_publish(s, 4, "kept", "");
    answer_rank(&p, asked(&p), 0, 0);
    CU_ASSERT_EQUAL(ask_nothing(s, &a), 0);
    ask_publish(s, 5, "refused", "");
    answer_rank(&p, asked(&p), -EADDRINUSE, 0);
    CU_ASSERT_EQUAL(ask_nothing(s, &a), -EADDRINUSE);
    raw_peer_close(&p);
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    while (!all) {
        Pwc__PeerFrame *frame = raw_peer_next(&p);

        CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
        if (frame->body_case == PWC__PEER_FRAME__BODY_RANK_AT)
            ranks += frame->rank_at->rank == 5 && frame->rank_at->size == UINT32_MAX &&
                     frame->rank_at->instance == 99;
        if (frame->body_case == PWC__PEER_FRAME__BODY_PUBLICATION) {
            CU_ASSERT_STRING_EQUAL(frame->publication->name, "kept");
            CU_ASSERT_EQUAL(frame->publication->rank, 5);
            all = true;
            names++;
        }
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    CU_ASSERT_EQUAL(ranks, 1);
    CU_ASSERT_EQUAL(names, 1);
    leave(s, &before);
    raw_peer_close(&p);
}

/* Reads frames up to the daemon's next publication, and checks its bytes. */
static void expect_published(struct raw_peer *p, const char *bytes)
{
    Pwc__PeerFrame *frame;
    bool found = false;

    while (!found && (frame = raw_peer_next(p)) != NULL) {
        const Pwc__Publication *publication = frame->publication;

        found = frame->body_case == PWC__PEER_FRAME__BODY_PUBLICATION;
        if (found)
            CU_ASSERT_TRUE(publication->data.len == strlen(bytes) &&
                           memcmp(publication->data.data, bytes, strlen(bytes)) == 0);
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    CU_ASSERT_TRUE(found);
}

/* A name keeps its bytes where new ones were refused: the daemon announces the old ones on the next
 * link. Two requests are under way, which are answered in either order. */
static void names_not_replaced(void)
{
    static const struct {
        int32_t first, second; /* answers */
        bool reversed;         /* the second is answered first */
        bool had;              /* the name has bytes already: "one" */
        const char *kept;
    } rows[] = {{-ESTALE, -ESTALE, false, true, "one"}, {-ESTALE, -ESTALE, true, true, "one"},
                {0, -ESTALE, false, true, "two"},       {-ESTALE, 0, false, true, "three"},
                {-EDQUOT, 0, false, false, "three"},    {-EADDRINUSE, 0, false, true, "three"},
                {0, -EDQUOT, false, false, "two"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct holdings before;
        uint64_t cookies[2];
        struct raw_peer p;
        struct answer a;
        int s;

        CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = begin_hello_of(UINT32_MAX);
        give_rank(&p, asked(&p), 5, 99);
        CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
        if (rows[i].had) {
            ask_publish(s, 4, "name", "one");
            answer_rank(&p, asked(&p), 0, 0);
            CU_ASSERT_EQUAL(ask_nothing(s, &a), 0);
        }
        ask_publish(s, 5, "name", "two");
        ask_publish(s, 6, "name", "three");
        cookies[0] = asked(&p);
        cookies[1] = asked(&p);
        if (rows[i].reversed)
            answer_rank(&p, cookies[1], rows[i].second, 0);
        answer_rank(&p, cookies[0], rows[i].first, 0);
        if (!rows[i].reversed)
            answer_rank(&p, cookies[1], rows[i].second, 0);
        for (int n = 0; n < 2; n++)
            CU_ASSERT_NOT_EQUAL(ask_nothing(s, &a), -ECONNRESET);
        raw_peer_close(&p);
        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        expect_published(&p, rows[i].kept);
        leave(s, &before);
        raw_peer_close(&p);
    }
}

/* A home's answers about a name, with values out of range. */
static void names_out_of_range(void)
{
    static uint8_t bytes[2000];
    static const struct {
        int32_t status;
        size_t length;
        int expected;
    } rows[] = {{INT32_MIN, 0, -EPROTO}, {-4096, 0, -EPROTO}, {-ENOENT, 0, -ENOENT},
                {0, 1025, -EPROTO},      {0, 2000, -EPROTO},  {0, 1024, 0}};
    struct holdings before;

    CU_ASSERT_TRUE_FATAL(look_holdings(&d, &before));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
        Pwc__Lookup lookup = PWC__LOOKUP__INIT;
        Pwc__PeerFrame frame;
        struct raw_peer p;
        struct answer a;
        int s;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        s = begin_hello_of(UINT32_MAX);
        give_rank(&p, asked(&p), 5, 99);
        CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
        lookup.name = "name";
        lookup.wait = true;
        request.body_case = PWC__CLIENT_REQUEST__BODY_LOOKUP;
        request.lookup = &lookup;
        CU_ASSERT_TRUE(raw_request(s, 4, &request));
        good_frames_fill(&f, &p);
        f.name_is.cookie = asked(&p);
        f.name_is.status = 1; /* no valid status: passed over */
        frame = good_frames_of(&f, "name_is");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        f.name_is.status = rows[i].status;
        f.name_is.data = (ProtobufCBinaryData){.len = rows[i].length, .data = bytes};
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame)); /* a second answer */
        CU_ASSERT_EQUAL(ask_nothing(s, &a), rows[i].expected);
        leave(s, &before);
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        raw_peer_close(&p);
    }
}

/* ---- a link is new --------------------------------------------------------------------------- */

/* Asks the daemon where this rank of pair_job is. Returns the status of the daemon's answer. */
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

/* The frame that reports a rank's end may be lost with a link. So a rank that is not announced on
 * the next link counts as gone. */
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

/* On a new link the daemon announces its own ranks, and then the end of the list. */
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
                           {"joins no series", joins_no_series},
                           {"ranks not announced again are gone", not_announced_again},
                           {"announces its ranks on a new link", announces_its_ranks},
                           {"ranks given", ranks_given},
                           {"offers no link", offers_no_link},
                           {"a home that is older", home_is_older},
                           {"announces its names on a new link", announces_its_names},
                           {"names that are not replaced", names_not_replaced},
                           {"names out of range", names_out_of_range},
                           {"still served", still_served},
                           CU_TEST_INFO_NULL},
                managed[] = {{"offers no link", offers_no_link}, CU_TEST_INFO_NULL};
    int failed;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    good_frames_init(&f);
    failed = plan_run(&plan, &d, argv[1], "peer ranks", tests);
    if (!manager_open(&manager))
        return 1;
    return plan_run(&plan, &d, argv[1], "peer ranks, with a manager", managed) || failed;
}
