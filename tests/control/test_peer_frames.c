/*
 * A daemon as a process, and another one made up, that knows the secret: each field of each frame
 * between daemons out of range. What the daemon refuses it refuses in words, to the other side and
 * in its log; what makes no sense ends the link; and it goes on.
 *
 *     test_peer_frames PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/daemon.h"
#include "daemon/peering/directory.h"
#include "daemon/fabric/fabric.h"
#include "tests/control/lib/field.h"
#include "tests/lib/raw/look.h"
#include "tests/control/lib/plan.h"
#include "tests/control/lib/raw_peer.h"
#include "tests/suite.h"

#define WE     0u /* the made-up one: its dial goes before the other's */
#define COOKIE UINT64_C(77)
#define LONG_NAME                                                                                  \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"

static struct daemon d; /* node 1 */
static struct plan plan;
static char job[16]; /* its directory is at the daemon */
static char our_job[16];
static char pair_job[16]; /* of two ranks of ours, its directory too */
static uint8_t their_address[FABRIC_ADDRESS_MAX];
static size_t their_address_size;

/* ---- frames that are good -------------------------------------------------------------------- */

static Pwc__Greeting greeting;
static Pwc__Proof proof;
static Pwc__Refusal refusal;
static Pwc__RankAt rank_at;
static Pwc__WhereIs where_is;
static Pwc__RankIs rank_is;
static Pwc__Contribution contribution;
static Pwc__Gathered gathered;
static Pwc__Offer offer;
static Pwc__Ping ping;
static Pwc__Roll roll;

static void fill(struct raw_peer *p)
{
    static uint8_t data[8];

    raw_peer_greeting(p, &greeting);
    raw_peer_proof(p, &proof);
    pwc__refusal__init(&refusal);
    refusal.status = -ESHUTDOWN;
    pwc__rank_at__init(&rank_at);
    rank_at.uid = getuid();
    rank_at.job = job;
    rank_at.size = 1;
    rank_at.cookie = COOKIE;
    pwc__where_is__init(&where_is);
    where_is.cookie = COOKIE;
    where_is.uid = getuid();
    where_is.job = job;
    pwc__rank_is__init(&rank_is);
    rank_is.cookie = COOKIE;
    pwc__contribution__init(&contribution);
    contribution.uid = getuid();
    contribution.job = job;
    contribution.size = 1;
    contribution.data = (ProtobufCBinaryData){.len = sizeof(data), .data = data};
    pwc__gathered__init(&gathered);
    gathered.uid = getuid();
    gathered.job = our_job;
    pwc__offer__init(&offer);
    offer.incarnation = 1;
    offer.state_id = 77;
    offer.ring_bytes = 16384;
    offer.address = (ProtobufCBinaryData){.len = their_address_size, .data = their_address};
    pwc__ping__init(&ping);
    ping.answer = true;
    pwc__roll__init(&roll);
}

/* The frame that "rank_at.job" belongs to. */
static Pwc__PeerFrame frame_of(const char *path)
{
    const struct {
        const char *name;
        void *body;
    } bodies[] = {
        {"greeting", &greeting}, {"proof", &proof},       {"refusal", &refusal},
        {"rank_at", &rank_at},   {"where_is", &where_is}, {"rank_is", &rank_is},
        {"offer", &offer},       {"gathered", &gathered}, {"contribution", &contribution},
        {"ping", &ping},         {"roll", &roll},
    };
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    size_t length = strcspn(path, ".");

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (strlen(bodies[i].name) == length && memcmp(bodies[i].name, path, length) == 0) {
            frame.greeting = bodies[i].body; /* one pointer for all bodies */
            frame.body_case =
                (Pwc__PeerFrame__BodyCase)protobuf_c_message_descriptor_get_field_by_name(
                    frame.base.descriptor, bodies[i].name)
                    ->id;
        }
    return frame;
}

/* ---- each field out of range ----------------------------------------------------------------- */

enum outcome {
    REFUSED,  /* with status and words, and it closes */
    ANSWERED, /* with a status; the link stays */
    PASSED,   /* over; the link stays */
    CLOSED,   /* with words in its log, where it does not limit them as a stranger's */
};

struct row {
    const char *path;
    uint64_t number;
    const char *text;
    enum outcome outcome;
    int status;
    const char *says;
};

#define SENSELESS "a frame that makes no sense here"
#define REFUSES   "the engine refuses its offer"

static const struct row rows[] = {
    {"greeting.version_min", 1000, NULL, REFUSED, -EPROTO, "malformed greeting"},
    {"greeting.version_max", 0, NULL, REFUSED, -EPROTO, "malformed greeting"},
    {"greeting.node", 1, NULL, REFUSED, -EADDRINUSE, "two daemons claim node number 1"},
    {"greeting.node", 2, NULL, REFUSED, -EINVAL, "node number 2 is not below 2"},
    {"greeting.node", UINT32_MAX, NULL, REFUSED, -EINVAL, "node number 4294967295"},
    {"greeting.target", 0, NULL, REFUSED, -EADDRNOTAVAIL, "was looking for node 0"},
    {"greeting.target", UINT32_MAX, NULL, REFUSED, -EADDRNOTAVAIL, "node 4294967295"},
    {"greeting.nodes", 0, NULL, REFUSED, -EINVAL, "node 0 counts 0 nodes"},
    {"greeting.nodes", 3, NULL, REFUSED, -EINVAL, "node 0 counts 3 nodes"},
    {"greeting.nonce", 0, NULL, REFUSED, -EPROTO, "nonce of 0 bytes"},
    {"greeting.nonce", 31, NULL, REFUSED, -EPROTO, "nonce of 31 bytes"},
    {"greeting.nonce", 33, NULL, REFUSED, -EPROTO, "nonce of 33 bytes"},
    {"greeting.provider", 0, "", REFUSED, -EXDEV, "provider \"\""},
    {"greeting.provider", 0, "verbs", REFUSED, -EXDEV, "provider \"verbs\""},
    {"greeting.provider", 0, LONG_NAME, REFUSED, -EXDEV, "same --provider"},
    {"greeting.rails", 2, NULL, REFUSED, -EXDEV, "2 rails"},
    {"greeting.rails", UINT32_MAX, NULL, REFUSED, -EXDEV, "4294967295 rails"},
    {"greeting.engines", 17, NULL, REFUSED, -EPROTO, "claims 17 progress threads"},
    {"greeting.engines", UINT32_MAX, NULL, REFUSED, -EPROTO, "4294967295 progress threads"},
    {"greeting.boot_id", 0, NULL, REFUSED, -EPROTO, "boot id of 0 bytes"},
    {"greeting.boot_id", 17, NULL, REFUSED, -EPROTO, "boot id of 17 bytes"},
    {"greeting.auth", 1, NULL, REFUSED, -EXDEV, "node 0 authenticates by munge"},
    {"greeting.auth", UINT32_MAX, NULL, REFUSED, -EXDEV, "by something unknown"},
    {"greeting.nonce", 5000, NULL, CLOSED, 0, NULL},
    {"proof.mac", 0, NULL, REFUSED, -EACCES, "does not know the secret"},
    {"proof.mac", 31, NULL, REFUSED, -EACCES, "does not know the secret"},
    {"proof.mac", 32, NULL, REFUSED, -EACCES, "does not know the secret"},
    {"proof.mac", 33, NULL, REFUSED, -EACCES, "does not know the secret"},
    {"refusal.status", 0, NULL, CLOSED, 0, "it ends"},
    {"refusal.status", (uint32_t)INT32_MIN, NULL, CLOSED, 0, "it ends"},
    {"refusal.text", 0, "\033[2J", CLOSED, 0, "it ends"},

    {"offer.state_id", 0, NULL, CLOSED, 0, REFUSES},
    {"offer.ring_bytes", 0, NULL, CLOSED, 0, REFUSES},
    {"offer.ring_bytes", 8192, NULL, CLOSED, 0, REFUSES},
    {"offer.ring_bytes", 16392, NULL, CLOSED, 0, REFUSES},
    {"offer.ring_bytes", 1u << 31, NULL, CLOSED, 0, REFUSES},
    {"offer.ring_bytes", UINT32_MAX, NULL, CLOSED, 0, REFUSES},
    {"offer.engine", 1, NULL, CLOSED, 0, SENSELESS}, /* each has one */
    {"offer.engine", UINT32_MAX, NULL, CLOSED, 0, SENSELESS},
    {"offer.peer_engine", 1, NULL, CLOSED, 0, SENSELESS},
    {"offer.peer_engine", UINT32_MAX, NULL, CLOSED, 0, SENSELESS},
    {"offer.address", FABRIC_ADDRESS_MAX + 1, NULL, CLOSED, 0, SENSELESS},
    {"offer.address", 60000, NULL, CLOSED, 0, SENSELESS},
    {"offer.address", 0, NULL, CLOSED, 0, REFUSES},
    {"offer.address", 1, NULL, CLOSED, 0, REFUSES},
    {"offer.address", FABRIC_ADDRESS_MAX, NULL, CLOSED, 0, REFUSES},

    {"rank_at.job", 0, "", CLOSED, 0, SENSELESS},
    {"rank_at.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"rank_at.job", 0, "a\nb", CLOSED, 0, SENSELESS},
    {"rank_at.rank", 1, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.rank", UINT32_MAX, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.size", 0, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.size", 2, NULL, ANSWERED, -EINVAL, NULL}, /* it is 1 */
    {"rank_at.size", 65537, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.size", UINT32_MAX, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.engine", 16, NULL, ANSWERED, -EINVAL, NULL},
    {"rank_at.engine", UINT32_MAX, NULL, ANSWERED, -EINVAL, NULL},
    {"where_is.job", 0, "", CLOSED, 0, SENSELESS},
    {"where_is.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"where_is.job", 0, "unheard-of", ANSWERED, -EHOSTUNREACH, NULL},
    {"where_is.uid", UINT32_MAX, NULL, ANSWERED, -EHOSTUNREACH, NULL},
    {"where_is.rank", 1, NULL, ANSWERED, -EHOSTUNREACH, NULL},
    {"where_is.rank", UINT32_MAX, NULL, ANSWERED, -EHOSTUNREACH, NULL},
    {"rank_is.cookie", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"rank_is.cookie", 0, NULL, PASSED, 0, NULL},
    {"rank_is.cookie", UINT32_MAX, NULL, PASSED, 0, NULL},

    {"contribution.job", 0, "", CLOSED, 0, SENSELESS},
    {"contribution.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"contribution.job", 0, "unheard-of", ANSWERED, -EPERM, NULL},
    {"contribution.uid", UINT32_MAX, NULL, ANSWERED, -EPERM, NULL},
    {"contribution.rank", 1, NULL, ANSWERED, -EPERM, NULL},
    {"contribution.rank", UINT32_MAX, NULL, ANSWERED, -EPERM, NULL},
    {"contribution.size", 0, NULL, ANSWERED, -EINVAL, NULL},
    {"contribution.size", UINT32_MAX, NULL, ANSWERED, -EINVAL, NULL},
    {"contribution.data", 4097, NULL, ANSWERED, -EMSGSIZE, NULL},
    {"contribution.data", 65000, NULL, ANSWERED, -EMSGSIZE, NULL},
    {"gathered.job", 0, "", CLOSED, 0, SENSELESS},
    {"gathered.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"gathered.job", 0, "unheard-of", PASSED, 0, NULL},
    {"gathered.uid", UINT32_MAX, NULL, PASSED, 0, NULL},
    {"gathered.sequence", UINT32_MAX, NULL, PASSED, 0, NULL},
    {"gathered.status", (uint32_t)INT32_MIN, NULL, PASSED, 0, NULL},
    {"gathered.offset", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"ping.answer", 0, NULL, PASSED, 0, NULL}, /* before there is a link between the engines */
    {"ping.pings", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"ping.bytes", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"ping.engine", 1, NULL, CLOSED, 0, SENSELESS},
    {"ping.peer_engine", 1, NULL, CLOSED, 0, SENSELESS},
};

/* Fields of which every value means something, or which have a test of their own below. */
static const char *const elsewhere[] = {
    "counter",          /* seals_that_do_not_fit */
    "mac",              /* seals_that_do_not_fit */
    "greeting.share",   /* test_handshake */
    "proof.credential", /* test_peers: refused by munge */
    "rank_is.status",   /* answers_out_of_range */
    "rank_is.node",     /* answers_out_of_range, places_out_of_range */
    "rank_is.engine",   /* places_out_of_range */
    "gathered.data",    /* answers_out_of_range; the client's library checks it, with the offset */
    "gathered.last",    /* either */
    "rank_at.uid",      /* whose job it is: any */
    "rank_at.gone",     /* either */
    "rank_at.cookie",   /* any number, which the answer repeats */
    "where_is.cookie",  /* any number, which the answer repeats */
    "contribution.sequence", /* names an exchange, whichever it is */
    "greeting.release",      /* words for a message: versions */
    "offer.incarnation",     /* compared only */
    "offer.consumed",        /* of a state that both know: tests/engine */
    "offer.peer_state_id",   /* compared only */
    "offer.ring_address",    /* theirs: named back to them */
    "offer.ring_key",        /* theirs: named back to them */
    "offer.flags",           /* none is known yet */
};

static bool is_covered(const char *path)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].path, path) == 0)
            return true;
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        if (strcmp(elsewhere[i], path) == 0)
            return true;
    return strncmp(path, "team_", 5) == 0; /* test_team_frames */
}

static void visit(void *context, const char *path)
{
    if (!is_covered(path))
        fprintf(stderr, "no row puts a bad value into %s\n", path);
    CU_ASSERT_TRUE(is_covered(path));
}

static void each_field_has_a_row(void)
{
    field_walk(&pwc__peer_frame__descriptor, visit, NULL);
}

static void expect_refusal(struct raw_peer *p, int status, const char *says)
{
    Pwc__PeerFrame *back = raw_peer_next(p);

    CU_ASSERT_PTR_NOT_NULL_FATAL(back);
    CU_ASSERT_EQUAL_FATAL(back->body_case, PWC__PEER_FRAME__BODY_REFUSAL);
    CU_ASSERT_EQUAL(back->refusal->status, status);
    CU_ASSERT_PTR_NOT_NULL(strstr(back->refusal->text, says));
    if (!strstr(back->refusal->text, says))
        fprintf(stderr, "    \"%s\" instead of \"...%s\"\n", back->refusal->text, says);
    pwc__peer_frame__free_unpacked(back, NULL);
    CU_ASSERT_TRUE(raw_hangs_up(p->socket));
}

/* Reads the status of the next answer, and passes over what the daemon sends by itself. */
static int answer_of(struct raw_peer *p)
{
    Pwc__PeerFrame *back;
    int status = 1;

    while (status == 1 && (back = raw_peer_next(p)) != NULL) {
        if (back->body_case == PWC__PEER_FRAME__BODY_RANK_IS && back->rank_is->cookie == COOKIE)
            status = back->rank_is->status;
        else if (back->body_case == PWC__PEER_FRAME__BODY_GATHERED)
            status = back->gathered->status;
        pwc__peer_frame__free_unpacked(back, NULL);
    }
    return status == 1 ? -ECONNRESET : status;
}

/* The daemon answers for a rank of ours whose directory it keeps. */
static void expect_alive(struct raw_peer *p)
{
    Pwc__PeerFrame frame;

    fill(p);
    frame = frame_of("rank_at");
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
    CU_ASSERT_EQUAL(answer_of(p), 0);
}

/* The frames that must come before the one that a row is about. */
static void prepare(struct raw_peer *p, const struct row *row)
{
    Pwc__PeerFrame frame;

    if (strncmp(row->path, "greeting", 8) != 0 && strncmp(row->path, "proof", 5) != 0) {
        CU_ASSERT_TRUE_FATAL(raw_peer_link(p, &plan, WE));
        expect_alive(p);
        fill(p);
        return;
    }
    CU_ASSERT_TRUE_FATAL(raw_peer_dial(p, &plan, WE));
    fill(p);
    if (strncmp(row->path, "proof", 5) == 0) {
        Pwc__PeerFrame *back;

        frame = frame_of("greeting");
        CU_ASSERT_TRUE(raw_peer_send(p, &frame));
        back = raw_peer_next(p);
        CU_ASSERT_PTR_NOT_NULL_FATAL(back);
        pwc__peer_frame__free_unpacked(back, NULL);
        raw_peer_proof(p, &proof);
    }
}

static void fields_out_of_range(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct field_value value = {row->number, row->text};
        unsigned failures = CU_get_number_of_failures();
        struct raw_peer p;
        Pwc__PeerFrame frame;

        prepare(&p, row);
        frame = frame_of(row->path);
        CU_ASSERT_TRUE_FATAL(field_set(&frame.base, row->path, &value));
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        switch (row->outcome) {
        case REFUSED:
            expect_refusal(&p, row->status, row->says);
            break;
        case ANSWERED:
            CU_ASSERT_EQUAL(answer_of(&p), row->status);
            expect_alive(&p);
            break;
        case PASSED:
            expect_alive(&p);
            break;
        case CLOSED:
            CU_ASSERT_TRUE(raw_hangs_up(p.socket));
            CU_ASSERT_TRUE(!row->says || daemon_says(&d, row->says));
            break;
        }
        raw_peer_close(&p);
        if (CU_get_number_of_failures() != failures)
            field_print(row->path, &value);
    }
}

/* ---- versions -------------------------------------------------------------------------------- */

static void versions(void)
{
    static const struct {
        uint32_t min, max;
    } ranges[] = {{0, 0},
                  {0, HANDSHAKE_VERSION_MIN - 1},
                  {HANDSHAKE_VERSION_MAX + 1, HANDSHAKE_VERSION_MAX + 1},
                  {HANDSHAKE_VERSION_MAX + 1, UINT32_MAX}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct raw_peer p;
        Pwc__PeerFrame frame;
        char says[160];

        CU_ASSERT_TRUE_FATAL(raw_peer_dial(&p, &plan, WE));
        fill(&p);
        greeting.release = (char *)(uintptr_t) "9.8.7";
        greeting.version_min = ranges[i].min;
        greeting.version_max = ranges[i].max;
        frame = frame_of("greeting");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        snprintf(
            says, sizeof(says),
            "node 0 speaks control versions %u to %u, node 1 speaks %u to %u; they are pwcd 9.8.7 "
            "and ",
            ranges[i].min, ranges[i].max, HANDSHAKE_VERSION_MIN, HANDSHAKE_VERSION_MAX);
        expect_refusal(&p, -EPROTONOSUPPORT, says);
        raw_peer_close(&p);
    }
}

/* ---- the order of frames --------------------------------------------------------------------- */

static void out_of_place(void)
{
    static const char *const first[] = {"proof", "rank_at",      "where_is", "rank_is",
                                        "offer", "contribution", "gathered", "roll"};
    static const char *const later[] = {"greeting", "proof"};
    struct raw_peer p;
    Pwc__PeerFrame frame;

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        CU_ASSERT_TRUE_FATAL(raw_peer_dial(&p, &plan, WE));
        fill(&p);
        frame = frame_of(first[i]);
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        expect_refusal(&p, -EPROTO, "out of place");
        raw_peer_close(&p);
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        fill(&p);
        frame = frame_of(later[i]);
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_TRUE(raw_hangs_up(p.socket));
        raw_peer_close(&p);
    }
    /* The other daemon makes two offers on one link. */
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    fill(&p);
    frame = frame_of("offer");
    CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
    CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
    CU_ASSERT_TRUE(raw_hangs_up(p.socket));
    raw_peer_close(&p);
}

static void seals_that_do_not_fit(void)
{
    enum { SKIPPED, REPLAYED, REFLECTED, ALTERED, CASES };

    for (int i = SKIPPED; i < CASES; i++) {
        struct raw_peer p;
        Pwc__PeerFrame frame;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        expect_alive(&p);
        p.seal.sent += i == SKIPPED ? 1 : i == REPLAYED ? UINT64_MAX : 0;
        p.seal.role = i == REFLECTED ? HANDSHAKE_RESPONDER : HANDSHAKE_INITIATOR;
        p.seal.key[0] ^= i == ALTERED;
        frame = frame_of("where_is");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_TRUE(raw_hangs_up(p.socket));
        CU_ASSERT_TRUE(daemon_says(&d, "a frame whose seal does not fit"));
        raw_peer_close(&p);
    }
}

/* ---- answers to what the daemon has asked ---------------------------------------------------- */

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
    hello.job = our_job;
    hello.size = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    CU_ASSERT_TRUE(raw_request(s, 3, &request));
    return s;
}

static void answer_rank(struct raw_peer *p, uint64_t cookie, int32_t status, uint32_t node)
{
    Pwc__PeerFrame frame;

    fill(p);
    rank_is.cookie = cookie;
    rank_is.status = status;
    rank_is.node = node;
    frame = frame_of("rank_is");
    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
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
        expect_alive(&p);
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
        s = begin_hello();
        answer_rank(&p, asked(&p), 0, 1);
        CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
        CU_ASSERT_EQUAL_FATAL(ask_context(s, 4096, &context), 0);
        bind.session = context.handle;
        request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
        request.bind = &bind;
        CU_ASSERT_TRUE(raw_request(s, 5, &request));
        fill(&p);
        rank_is.cookie = asked(&p);
        rank_is.node = places[i].node;
        rank_is.engine = places[i].engine;
        frame = frame_of("rank_is");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_EQUAL(ask_nothing(s, &a), places[i].expected);
        answer_close(&context);
        leave(s, &before);
        expect_alive(&p);
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
        s = begin_hello();
        answer_rank(&p, asked(&p), 0, 1);
        CU_ASSERT_EQUAL_FATAL(ask_nothing(s, &a), 0);
        request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
        request.exchange = &exchange;
        CU_ASSERT_TRUE(raw_request(s, 4, &request));
        CU_ASSERT_EQUAL(asked(&p), 1);
        fill(&p);
        gathered.status = results[i].status;
        gathered.offset = UINT64_MAX;
        gathered.last = true;
        frame = frame_of("gathered");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_EQUAL(ask_nothing(s, &a), results[i].expected);
        leave(s, &before);
        expect_alive(&p);
        raw_peer_close(&p);
    }
}

/* ---- a link is new --------------------------------------------------------------------------- */

static void say(struct raw_peer *p, const char *name)
{
    Pwc__PeerFrame frame = frame_of(name);

    CU_ASSERT_TRUE(raw_peer_send(p, &frame));
}

/* Asks where a rank of the pair is; the daemon knows that we have both. */
static int where(struct raw_peer *p, uint32_t rank)
{
    fill(p);
    where_is.job = pair_job;
    where_is.rank = rank;
    say(p, "where_is");
    return answer_of(p);
}

static void tell_rank(struct raw_peer *p, uint32_t rank)
{
    fill(p);
    rank_at.job = pair_job;
    rank_at.size = 2;
    rank_at.rank = rank;
    say(p, "rank_at");
    CU_ASSERT_EQUAL(answer_of(p), 0);
}

/* The frame that says that a rank has gone may be lost with a link: a rank that is not announced
 * again on the next link is gone. */
static void ranks_not_told_again(void)
{
    struct raw_peer p;

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    tell_rank(&p, 0);
    tell_rank(&p, 1);
    fill(&p);
    say(&p, "roll");
    CU_ASSERT_EQUAL(where(&p, 0), 0);
    CU_ASSERT_EQUAL(where(&p, 1), 0);
    raw_peer_close(&p);
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    tell_rank(&p, 1);
    fill(&p);
    say(&p, "roll");
    CU_ASSERT_EQUAL(where(&p, 0), -EHOSTUNREACH);
    CU_ASSERT_EQUAL(where(&p, 1), 0);
    raw_peer_close(&p);
}

/* The daemon names its own ranks, then the one that attaches, then the end of the list. */
static void tells_its_ranks(void)
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
                 strcmp(frame->rank_at->job, our_job) == 0;
        all = frame->body_case == PWC__PEER_FRAME__BODY_ROLL;
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    CU_ASSERT_EQUAL(names, 1);
    leave(s, &before);
    raw_peer_close(&p);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void name_job(char name[16], const char *stem, uint32_t home)
{
    const struct directory_id id = {.uid = getuid(), .job = name};

    for (int i = 0; i == 0 || directory_home(&id, 2) != home; i++)
        snprintf(name, 16, "%s%d", stem, i);
}

/* Reads the fabric address that the daemon sends, which is a good one to offer back. */
static void good_offer(void)
{
    struct raw_peer p;
    Pwc__PeerFrame frame, *back;

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    fill(&p);
    frame = frame_of("offer");
    CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
    while ((back = raw_peer_next(&p)) && back->body_case == PWC__PEER_FRAME__BODY_ROLL)
        pwc__peer_frame__free_unpacked(back, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(back);
    CU_ASSERT_EQUAL_FATAL(back->body_case, PWC__PEER_FRAME__BODY_OFFER);
    CU_ASSERT_FATAL(back->offer->address.len <= sizeof(their_address));
    their_address_size = back->offer->address.len;
    memcpy(their_address, back->offer->address.data, their_address_size);
    pwc__peer_frame__free_unpacked(back, NULL);
    raw_peer_close(&p);
}

static void still_served(void)
{
    CU_ASSERT_TRUE(raw_is_served(&d));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"each field has a row", each_field_has_a_row},
                           {"good offer", good_offer},
                           {"fields out of range", fields_out_of_range},
                           {"versions", versions},
                           {"out of place", out_of_place},
                           {"seals that do not fit", seals_that_do_not_fit},
                           {"answers out of range", answers_out_of_range},
                           {"places out of range", places_out_of_range},
                           {"results out of range", results_out_of_range},
                           {"ranks not told again are gone", ranks_not_told_again},
                           {"tells its ranks on a new link", tells_its_ranks},
                           {"still served", still_served},
                           CU_TEST_INFO_NULL};
    int failed = 1, rc = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    name_job(job, "job", 1);
    name_job(pair_job, "pair", 1);
    name_job(our_job, "job", WE);
    if (plan_open(&plan) && plan_start(&d, argv[1], "1", plan.secrets[0], plan.nodes)) {
        failed = suite_run("peer frames", tests);
        rc = daemon_stop(&d);
    }
    plan_close(&plan);
    if (rc != 0)
        fprintf(stderr, "the daemon ended with %d\n", rc);
    return failed || rc != 0;
}
