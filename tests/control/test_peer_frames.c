/*
 * A daemon as a process, and another daemon, played by the test, that knows the secret: each field
 * of each frame between daemons out of range. The daemon states the reason of each refusal, to the
 * other side and in its log; a senseless frame ends the link; and the daemon works on.
 *
 *     test_peer_frames PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "tests/lib/daemon.h"
#include "tests/control/lib/field.h"
#include "tests/control/lib/plan.h"
#include "tests/control/lib/good_frames.h"

#define LONG_NAME                                                                                  \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"

static struct daemon d; /* node 1 */
static struct plan plan;
static struct good_frames f;

/* ---- each field out of range ----------------------------------------------------------------- */

enum outcome {
    REFUSED,  /* with a status and a text; the daemon closes the link */
    ANSWERED, /* with a status; the link stays */
    PASSED,   /* the frame is ignored; the link stays */
    CLOSED,   /* with a line in the log, if the limit for strangers' lines allows one */
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
#define RING      "ledger-start there is more than ledger-max here"

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
    {"offer.ring_bytes", 0, NULL, CLOSED, 0, RING},
    {"offer.ring_bytes", 8192, NULL, CLOSED, 0, RING},
    {"offer.ring_bytes", 16392, NULL, CLOSED, 0, RING},
    {"offer.ring_bytes", 1u << 31, NULL, CLOSED, 0, RING},
    {"offer.ring_bytes", UINT32_MAX, NULL, CLOSED, 0, RING},
    {"offer.engine", 1, NULL, CLOSED, 0, SENSELESS}, /* each node has only engine 0 */
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
    {"rank_at.size", 2, NULL, ANSWERED, -EINVAL, NULL}, /* the job's size is 1 */
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
    {"gathered.why", 0, "a\nb", PASSED, 0, NULL}, /* cleaned before a client gets the text */
    {"publication.job", 0, "", CLOSED, 0, SENSELESS},
    {"publication.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"publication.job", 0, "unheard-of", ANSWERED, -ESTALE, NULL},
    {"publication.uid", UINT32_MAX, NULL, ANSWERED, -ESTALE, NULL},
    {"publication.rank", 1, NULL, ANSWERED, -ESTALE, NULL},
    {"publication.rank", UINT32_MAX, NULL, ANSWERED, -ESTALE, NULL},
    {"publication.name", 0, "", CLOSED, 0, SENSELESS},
    {"publication.name", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"publication.name", 0, "a b", CLOSED, 0, SENSELESS},
    {"publication.data", 1025, NULL, ANSWERED, -EINVAL, NULL},
    {"publication.data", 60000, NULL, ANSWERED, -EINVAL, NULL},
    {"publication.gone", 1, NULL, ANSWERED, -ENOENT, NULL},
    {"look_for.job", 0, "", CLOSED, 0, SENSELESS},
    {"look_for.job", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"look_for.job", 0, "unheard-of", ANSWERED, -ESTALE, NULL},
    {"look_for.uid", UINT32_MAX, NULL, ANSWERED, -ESTALE, NULL},
    {"look_for.rank", 1, NULL, ANSWERED, -ESTALE, NULL},
    {"look_for.rank", UINT32_MAX, NULL, ANSWERED, -ESTALE, NULL},
    {"look_for.name", 0, "", CLOSED, 0, SENSELESS},
    {"look_for.name", 0, LONG_NAME, CLOSED, 0, SENSELESS},
    {"look_for.name", 0, "nobody's", ANSWERED, -ENOENT, NULL},
    {"look_for.wait", 1, NULL, PASSED, 0, NULL},
    {"look_for.gone", 1, NULL, PASSED, 0, NULL},
    {"name_is.cookie", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"name_is.status", (uint32_t)INT32_MIN, NULL, PASSED, 0, NULL},
    {"name_is.data", 1025, NULL, PASSED, 0, NULL},
    {"rank_is.job", 0, "a\nb", PASSED, 0, NULL}, /* about a rank that nobody waits for */
    {"rank_is.job", 0, LONG_NAME, PASSED, 0, NULL},
    {"ping.answer", 0, NULL, PASSED, 0, NULL}, /* before there is a link between the engines */
    {"ping.pings", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"ping.bytes", UINT64_MAX, NULL, PASSED, 0, NULL},
    {"ping.engine", 1, NULL, CLOSED, 0, SENSELESS},
    {"ping.peer_engine", 1, NULL, CLOSED, 0, SENSELESS},
};

/* Fields for which every value is valid, or which have a test of their own below. */
static const char *const elsewhere[] = {
    "counter",               /* seals_that_do_not_fit */
    "mac",                   /* seals_that_do_not_fit */
    "greeting.share",        /* test_handshake */
    "proof.credential",      /* test_peers, by munge */
    "rank_is.status",        /* test_peer_ranks */
    "rank_is.node",          /* test_peer_ranks */
    "rank_is.engine",        /* test_peer_ranks */
    "gathered.data",         /* test_peer_ranks; the client's library checks it, with the offset */
    "gathered.last",         /* either */
    "rank_is.rank",          /* test_peer_ranks */
    "rank_is.instance",      /* test_peer_ranks */
    "rank_is.uid",           /* test_peer_ranks */
    "rank_at.instance",      /* only open jobs have one: test_peer_ranks */
    "publication.cookie",    /* any number, which the answer repeats */
    "look_for.cookie",       /* any number, which the answer repeats */
    "rank_at.uid",           /* the user whose job it is: any */
    "rank_at.gone",          /* either */
    "rank_at.cookie",        /* any number, which the answer repeats */
    "where_is.cookie",       /* any number, which the answer repeats */
    "contribution.sequence", /* the number of any exchange */
    "contribution.give_up",  /* either */
    "greeting.release",      /* text for a message: versions */
    "offer.incarnation",     /* compared only */
    "offer.consumed",        /* matters for a state that both sides know: tests/engine */
    "offer.peer_state_id",   /* compared only */
    "offer.ring_address",    /* theirs, given back to them */
    "offer.ring_key",        /* theirs, given back to them */
    "offer.flags",           /* no flag is defined yet */
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

/* Sends the frames that must come before the frame of a row. */
static void prepare(struct raw_peer *p, const struct row *row)
{
    Pwc__PeerFrame frame;

    if (strncmp(row->path, "greeting", 8) != 0 && strncmp(row->path, "proof", 5) != 0) {
        CU_ASSERT_TRUE_FATAL(raw_peer_link(p, &plan, WE));
        CU_ASSERT_TRUE(good_frames_alive(&f, p));
        good_frames_fill(&f, p);
        return;
    }
    CU_ASSERT_TRUE_FATAL(raw_peer_dial(p, &plan, WE));
    good_frames_fill(&f, p);
    if (strncmp(row->path, "proof", 5) == 0) {
        Pwc__PeerFrame *back;

        frame = good_frames_of(&f, "greeting");
        CU_ASSERT_TRUE(raw_peer_send(p, &frame));
        back = raw_peer_next(p);
        CU_ASSERT_PTR_NOT_NULL_FATAL(back);
        pwc__peer_frame__free_unpacked(back, NULL);
        raw_peer_proof(p, &f.proof);
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
        frame = good_frames_of(&f, row->path);
        CU_ASSERT_TRUE_FATAL(field_set(&frame.base, row->path, &value));
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        switch (row->outcome) {
        case REFUSED:
            expect_refusal(&p, row->status, row->says);
            break;
        case ANSWERED:
            CU_ASSERT_EQUAL(good_frames_status(&p), row->status);
            CU_ASSERT_TRUE(good_frames_alive(&f, &p));
            break;
        case PASSED:
            CU_ASSERT_TRUE(good_frames_alive(&f, &p));
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
        good_frames_fill(&f, &p);
        f.greeting.release = (char *)(uintptr_t) "9.8.7";
        f.greeting.version_min = ranges[i].min;
        f.greeting.version_max = ranges[i].max;
        frame = good_frames_of(&f, "greeting");
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
        good_frames_fill(&f, &p);
        frame = good_frames_of(&f, first[i]);
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        expect_refusal(&p, -EPROTO, "out of place");
        raw_peer_close(&p);
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
        good_frames_fill(&f, &p);
        frame = good_frames_of(&f, later[i]);
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_TRUE(raw_hangs_up(p.socket));
        raw_peer_close(&p);
    }
    /* The other daemon makes two offers on one link. */
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    good_frames_fill(&f, &p);
    frame = good_frames_of(&f, "offer");
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
        CU_ASSERT_TRUE(good_frames_alive(&f, &p));
        p.seal.sent += i == SKIPPED ? 1 : i == REPLAYED ? UINT64_MAX : 0;
        p.seal.role = i == REFLECTED ? HANDSHAKE_RESPONDER : HANDSHAKE_INITIATOR;
        p.seal.key[0] ^= i == ALTERED;
        frame = good_frames_of(&f, "where_is");
        CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
        CU_ASSERT_TRUE(raw_hangs_up(p.socket));
        CU_ASSERT_TRUE(daemon_says(&d, "a frame whose seal does not fit"));
        raw_peer_close(&p);
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Reads the fabric address that the daemon sends, which is a good one to offer back. */
static void good_offer(void)
{
    struct raw_peer p;
    Pwc__PeerFrame frame, *back;

    CU_ASSERT_TRUE_FATAL(raw_peer_link(&p, &plan, WE));
    good_frames_fill(&f, &p);
    frame = good_frames_of(&f, "offer");
    CU_ASSERT_TRUE(raw_peer_send(&p, &frame));
    while ((back = raw_peer_next(&p)) && back->body_case == PWC__PEER_FRAME__BODY_ROLL)
        pwc__peer_frame__free_unpacked(back, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(back);
    CU_ASSERT_EQUAL_FATAL(back->body_case, PWC__PEER_FRAME__BODY_OFFER);
    CU_ASSERT_FATAL(back->offer->address.len <= sizeof(f.address));
    f.address_size = back->offer->address.len;
    memcpy(f.address, back->offer->address.data, f.address_size);
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
                           {"still served", still_served},
                           CU_TEST_INFO_NULL};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    good_frames_init(&f);
    return plan_run(&plan, &d, argv[1], "peer frames", tests);
}
