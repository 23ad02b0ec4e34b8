/*
 * Requests of clients to a daemon as a process: each field of each message out of range. The daemon
 * answers with the right error, whose text has the value or says what to do. Two ranks that put to
 * each other meanwhile notice nothing, and the daemon keeps nothing.
 *
 *     test_requests PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "proto/team_abi.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/daemon.h"
#include "tests/control/lib/field.h"
#include "tests/lib/raw/look.h"
#include "tests/suite.h"

#define JOB     "requests"
#define SEGMENT 12288u
#define LONG_NAME                                                                                  \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"

static struct daemon d;
static struct bystanders others;
static struct holdings quiet;

/* ---- requests that are good ------------------------------------------------------------------ */

/* A rank with one object of each kind, and a good request of each kind. */
struct client {
    int socket;
    struct answer session, segment, region, remote;
    Pwc__Hello hello;
    Pwc__Rings rings;
    Pwc__ContextOpen context_open;
    Pwc__ContextClose context_close;
    Pwc__SegmentOpen segment_open;
    Pwc__SegmentClose segment_close;
    Pwc__RegionOpen region_open;
    Pwc__RegionClose region_close;
    Pwc__Key key;
    Pwc__Bind bind;
    Pwc__Unbind unbind;
    Pwc__Exchange exchange;
    Pwc__Inspect inspect;
    Pwc__Upgrade upgrade;
    Pwc__Publish publish;
    Pwc__Lookup lookup;
};

static void fill(struct client *c)
{
    pwc__hello__init(&c->hello);
    c->hello.version_min = c->hello.version_max = 1;
    c->hello.rings = SESSION_VERSION;
    c->hello.job = "another";
    c->hello.size = 2;
    pwc__rings__init(&c->rings);
    pwc__context_open__init(&c->context_open);
    c->context_open.rings = &c->rings;
    pwc__context_close__init(&c->context_close);
    c->context_close.session = c->session.handle;
    pwc__segment_open__init(&c->segment_open);
    c->segment_open.length = SEGMENT;
    pwc__segment_close__init(&c->segment_close);
    c->segment_close.segment = c->segment.handle;
    pwc__region_open__init(&c->region_open);
    c->region_open.segment = c->segment.handle;
    c->region_open.length = SEGMENT;
    c->region_open.rights = 3;
    pwc__region_close__init(&c->region_close);
    c->region_close.slot = c->region.key.slot;
    c->region_close.generation = c->region.key.generation;
    pwc__key__init(&c->key);
    c->key.slot = c->region.key.slot;
    c->key.generation = c->region.key.generation;
    c->key.secret.data = c->region.key.secret;
    c->key.secret.len = sizeof(c->region.key.secret);
    pwc__bind__init(&c->bind);
    c->bind.session = c->session.handle;
    c->bind.key = &c->key;
    pwc__unbind__init(&c->unbind);
    c->unbind.session = c->session.handle;
    c->unbind.remote = c->remote.handle;
    pwc__exchange__init(&c->exchange);
    pwc__inspect__init(&c->inspect);
    c->inspect.what = "status";
    pwc__upgrade__init(&c->upgrade);
    pwc__publish__init(&c->publish);
    c->publish.name = "name";
    pwc__lookup__init(&c->lookup);
    c->lookup.name = "name";
}

static int connected(void)
{
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    return s;
}

static void open_client(struct client *c, uint32_t rank)
{
    memset(c, 0, sizeof(*c));
    c->socket = connected();
    CU_ASSERT_EQUAL_FATAL(raw_hello(c->socket, JOB, rank, 2), 0);
    CU_ASSERT_EQUAL_FATAL(ask_context(c->socket, 8192, &c->session), 0);
    answer_close(&c->session);
    CU_ASSERT_EQUAL_FATAL(ask_segment(c->socket, SEGMENT, &c->segment), 0);
    answer_close(&c->segment);
    CU_ASSERT_EQUAL_FATAL(ask_region(c->socket, c->segment.handle, 0, SEGMENT, 3, &c->region), 0);
    CU_ASSERT_EQUAL_FATAL(ask_bind(c->socket, c->session.handle, rank, &c->region, &c->remote), 0);
    fill(c);
}

/* The request that a path as "bind.key.slot" belongs to. */
static Pwc__ClientRequest request_of(struct client *c, const char *path)
{
    const struct {
        const char *name;
        void *body;
    } bodies[] = {
        {"hello", &c->hello},
        {"context_open", &c->context_open},
        {"context_close", &c->context_close},
        {"segment_open", &c->segment_open},
        {"segment_close", &c->segment_close},
        {"region_open", &c->region_open},
        {"region_close", &c->region_close},
        {"bind", &c->bind},
        {"unbind", &c->unbind},
        {"exchange", &c->exchange},
        {"inspect", &c->inspect},
        {"upgrade", &c->upgrade},
        {"publish", &c->publish},
        {"lookup", &c->lookup},
    };
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    size_t length = strcspn(path, ".");

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (strlen(bodies[i].name) == length && memcmp(bodies[i].name, path, length) == 0) {
            r.hello = bodies[i].body; /* all bodies are one union of pointers */
            r.body_case =
                (Pwc__ClientRequest__BodyCase)protobuf_c_message_descriptor_get_field_by_name(
                    r.base.descriptor, bodies[i].name)
                    ->id;
        }
    return r;
}

static void good_requests(void)
{
    static const char *const rows[] = {"inspect",       "bind",        "unbind",
                                       "region_close",  "region_open", "segment_open",
                                       "context_close", "context_open"};
    struct client c;

    open_client(&c, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Pwc__ClientRequest r = request_of(&c, rows[i]);
        struct answer a;

        CU_ASSERT_EQUAL(ask(c.socket, &r, &a), 0);
        answer_close(&a);
    }
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* ---- each field out of range ----------------------------------------------------------------- */

struct row {
    const char *path;
    uint64_t number; /* the value: a number, or the length of bytes */
    const char *text;
    int status;
    const char *says;
};

#define RING_OVER ((64u << 20) + 1)

static const struct row rows[] = {
    {"hello.version_min", 2, NULL, -EPROTONOSUPPORT, "versions 2 to 1 with rings"},
    {"hello.version_max", 0, NULL, -EPROTONOSUPPORT, "versions 1 to 0 with rings"},
    {"hello.rings", 0, NULL, -EPROTONOSUPPORT, "library 0.1 speaks versions 1 to 1 with rings 4"},
    {"hello.rings", SESSION_VERSION - 1, NULL, -EPROTONOSUPPORT, "upgrade the library, and build"},
    {"hello.rings", SESSION_VERSION + 1, NULL, -EPROTONOSUPPORT, "upgrade the daemon, pwcd"},
    {"hello.job", 0, "", -EINVAL, "job \"\": give a name"},
    {"hello.job", 0, "a b", -EINVAL, "job \"a b\""},
    {"hello.job", 0, "a\nb", -EINVAL, "job \"a?b\""},
    {"hello.job", 0, "\x7f", -EINVAL, "printable characters"},
    {"hello.job", 0, "\xc3\xa4", -EINVAL, "printable characters"},
    {"hello.job", 0, LONG_NAME, -EINVAL, "1 to "},
    {"hello.rank", 2, NULL, -EINVAL, "rank 2 of 2"},
    {"hello.rank", UINT32_MAX, NULL, -EINVAL, "rank 4294967295 of 2"},
    {"hello.size", 0, NULL, -EINVAL, "rank 0 of 0"},
    {"hello.size", 2097153, NULL, -EINVAL, "rank 0 of 2097153"},
    {"hello.size", UINT32_MAX - 1, NULL, -EINVAL, "rank 0 of 4294967294"},

    {"context_open.rings.submit", RING_OVER, NULL, -EINVAL, "67108865"},
    {"context_open.rings.local", RING_OVER, NULL, -EINVAL, "67108865"},
    {"context_open.rings.remote", RING_OVER, NULL, -EINVAL, "67108865"},
    {"context_open.rings.reply_submit", RING_OVER, NULL, -EINVAL, "67108865"},
    {"context_open.rings.reply_event", RING_OVER, NULL, -EINVAL, "67108865"},
    {"context_open.rings.submit", UINT32_MAX, NULL, -EINVAL, "4294967295"},
    {"context_close.session", 1000, NULL, -EINVAL, "session 1000 is not yours"},
    {"context_close.session", UINT32_MAX, NULL, -EINVAL, "session 4294967295 is not yours"},

    {"segment_open.length", 0, NULL, -EINVAL, "a segment of 0 bytes: give 1 to 2^46"},
    {"segment_open.length", (UINT64_C(1) << 46) + 1, NULL, -EINVAL, "70368744177665 bytes"},
    {"segment_open.length", UINT64_MAX, NULL, -EINVAL, "18446744073709551615 bytes"},
    {"segment_open.length", UINT64_C(4) << 30, NULL, -EDQUOT,
     "the quota (client-memory) is 4294967296"},
    {"segment_close.segment", 1000, NULL, -EINVAL, "segment 1000 is not yours"},
    {"segment_close.segment", UINT32_MAX, NULL, -EINVAL, "segment 4294967295 is not yours"},

    {"region_open.segment", 1000, NULL, -EINVAL, "segment 1000 is not yours"},
    {"region_open.segment", UINT32_MAX, NULL, -EINVAL, "segment 4294967295 is not yours"},
    {"region_open.offset", 1, NULL, -ERANGE, "12288 bytes at 1: segment"},
    {"region_open.offset", SEGMENT, NULL, -ERANGE, "12288 bytes at 12288: segment"},
    {"region_open.offset", UINT64_MAX, NULL, -ERANGE, "at 18446744073709551615: segment"},
    {"region_open.length", 0, NULL, -ERANGE, "a region of 0 bytes"},
    {"region_open.length", SEGMENT + 1, NULL, -ERANGE, "a region of 12289 bytes"},
    {"region_open.length", UINT64_MAX, NULL, -ERANGE, "has 12288"},
    {"region_open.rights", 0, NULL, -EINVAL, "rights 0x0: give 1 (write), 2 (read) or 3"},
    {"region_open.rights", 4, NULL, -EINVAL, "rights 0x4"},
    {"region_open.rights", UINT32_MAX, NULL, -EINVAL, "rights 0xffffffff"},
    {"region_close.slot", 1000, NULL, -EINVAL, "region 1000 is not yours"},
    {"region_close.slot", UINT32_MAX, NULL, -EINVAL, "region 4294967295 is not yours"},
    {"region_close.generation", UINT32_MAX, NULL, -EINVAL, "is not yours, or not open"},

    {"bind.session", 1000, NULL, -EINVAL, "session 1000 is not yours"},
    {"bind.session", UINT32_MAX, NULL, -EINVAL, "session 4294967295 is not yours"},
    {"bind.peer", 7, NULL, -EHOSTUNREACH, "rank 7, context 0: no such rank or context"},
    {"bind.peer", UINT64_C(5) << 32, NULL, -EHOSTUNREACH, "rank 0, context 5: no such"},
    {"bind.peer", UINT64_MAX, NULL, -EHOSTUNREACH, "rank 4294967295, context 4294967295"},
    {"bind.key.node", 1, NULL, -EKEYREJECTED, "the key is unknown, stale, or not for this job"},
    {"bind.key.node", UINT32_MAX, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.slot", 1000, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.slot", UINT32_MAX, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.generation", UINT32_MAX, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.secret", 0, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.secret", 15, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.secret", 16, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.secret", 17, NULL, -EKEYREJECTED, "the key is unknown"},
    {"bind.key.secret", 4096, NULL, -EKEYREJECTED, "the key is unknown"},
    {"unbind.session", 1000, NULL, -EINVAL, "session 1000 is not yours"},
    {"unbind.session", UINT32_MAX, NULL, -EINVAL, "session 4294967295 is not yours"},
    {"unbind.remote", 1000, NULL, -EINVAL, "remote 1000 is not bound here"},
    {"unbind.remote", UINT32_MAX, NULL, -EINVAL, "remote 4294967295 is not bound here"},

    {"exchange.data", 4097, NULL, -EINVAL, "4097 bytes for an exchange: a rank may give 4096"},

    {"inspect.what", 0, "", -EINVAL, "nothing is called \"\": ask for status"},
    {"inspect.what", 0, "Status", -EINVAL, "nothing is called \"Status\""},
    {"inspect.what", 0, "a\033[2J", -EINVAL, "nothing is called \"a?[2J\""},
    {"inspect.what", 0, LONG_NAME, -EINVAL, "ask for status"},

    {"publish.name", 0, "", -EINVAL, "name \"\": give 1 to 63 printable characters"},
    {"publish.name", 0, "a b", -EINVAL, "name \"a b\""},
    {"publish.name", 0, "a\nb", -EINVAL, "name \"a?b\""},
    {"publish.name", 0, LONG_NAME, -EINVAL, "give 1 to 63"},
    {"publish.data", 1025, NULL, -EINVAL, "1025 bytes under name name: a name may have 1024"},
    {"publish.data", 60000, NULL, -EINVAL, "60000 bytes under name name"},
    {"publish.gone", 1, NULL, -ENOENT, "this process has not published it"},
    {"lookup.name", 0, "", -EINVAL, "name \"\": give 1 to 63 printable characters"},
    {"lookup.name", 0, "\x7f", -EINVAL, "printable characters"},
    {"lookup.name", 0, LONG_NAME, -EINVAL, "give 1 to 63"},
    {"lookup.name", 0, "nobody's", -ENOENT, "nobody has published it"},

    {"upgrade.program", 0, "pwcd", -ENOENT, "\"pwcd\": give the absolute path of a program"},
    {"upgrade.program", 0, "/no/pwcd", -ENOENT, "give the absolute path of a program"},
    {"upgrade.program", 0, "/proc/self/exe", -ENOTSUP, "nobody watches over this daemon"},
};

/* Fields for which every value is valid, and why. */
static const struct {
    const char *path, *why;
} unbounded[] = {
    {"id", "the client's own; 0 ends the connection (test_daemon)"},
    {"context_open.direct", "yes or no"},
    {"hello.release", "words for a message"},
    {"exchange.sequence", "names an exchange, whichever it is"},
    {"exchange.give_up", "yes or no"},
    {"unbind.pair", "a pair of the session's own, or no pair: the pairs of given_up_pairs"},
    {"lookup.wait", "yes or no: the names of open_jobs"},
    {"lookup.give_up", "a request of the client's own, or none: the names of open_jobs"},
};

/* Whether a row tests this field. Requests for teams, programs and offloads are left to
 * test_team_requests, test_program_requests and test_offload_requests. */
static bool is_row(const char *path)
{
    if (strncmp(path, "team_", 5) == 0 || strncmp(path, "program_", 8) == 0 ||
        strncmp(path, "offload_", 8) == 0)
        return true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].path, path) == 0)
            return true;
    for (size_t i = 0; i < sizeof(unbounded) / sizeof(unbounded[0]); i++)
        if (strcmp(unbounded[i].path, path) == 0)
            return true;
    return false;
}

static void visit(void *context, const char *path)
{
    if (!is_row(path))
        fprintf(stderr, "no row puts a bad value into %s\n", path);
    CU_ASSERT_TRUE(is_row(path));
}

static void each_field_has_a_row(void)
{
    field_walk(&pwc__client_request__descriptor, visit, NULL);
}

static void check(int socket, Pwc__ClientRequest *request, const struct row *row)
{
    struct answer a;
    int status = ask(socket, request, &a);
    bool says = strstr(a.text, row->says) != NULL;

    CU_ASSERT_EQUAL(status, row->status);
    CU_ASSERT_TRUE(says);
    CU_ASSERT_EQUAL(a.fd_count, 0);
    if (status == row->status && says)
        return;
    field_print(row->path, &(struct field_value){row->number, row->text});
    fprintf(stderr, "    %d \"%s\" instead of %d \"...%s\"\n", status, a.text, row->status,
            row->says);
    answer_close(&a);
}

static void fields_out_of_range(void)
{
    struct client c;
    struct holdings held;

    open_client(&c, 0);
    CU_ASSERT_TRUE(look_holdings(&d, &held));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool greets = strncmp(rows[i].path, "hello.", 6) == 0;
        Pwc__ClientRequest r = request_of(&c, rows[i].path);
        int s = greets ? connected() : c.socket;

        CU_ASSERT_TRUE_FATAL(
            field_set(&r.base, rows[i].path, &(struct field_value){rows[i].number, rows[i].text}));
        check(s, &r, &rows[i]);
        fill(&c);
        if (greets)
            close(s);
    }
    CU_ASSERT_TRUE(look_returns_to(&d, &held));
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* ---- requests out of place ------------------------------------------------------------------- */

static void before_welcome(void)
{
    static const char *const kinds[] = {"context_open",  "context_close", "segment_open",
                                        "segment_close", "region_open",   "region_close",
                                        "bind",          "unbind",        "exchange"};
    struct client c;
    int s;

    open_client(&c, 0);
    s = connected();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        Pwc__ClientRequest r = request_of(&c, kinds[i]);

        check(s, &r, &(struct row){kinds[i], 0, NULL, -EPERM, "say Hello and wait"});
    }
    close(s);
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

static void twice_and_unknown(void)
{
    static const uint8_t none[] = {0x08, 0x05};                    /* id 5, no body */
    static const uint8_t later[] = {0x08, 0x05, 0xfa, 0x01, 0x00}; /* an empty field 31 */
    struct client c;
    struct answer a;
    Pwc__ClientRequest r;

    open_client(&c, 0);
    r = request_of(&c, "hello");
    check(c.socket, &r, &(struct row){"hello", 0, NULL, -EALREADY, "a second Hello"});
    CU_ASSERT_TRUE(raw_send(c.socket, none, sizeof(none), -1));
    CU_ASSERT_EQUAL(ask_nothing(c.socket, &a), -ENOSYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "request 5 has a kind that this daemon does not know"));
    CU_ASSERT_TRUE(raw_send(c.socket, later, sizeof(later), -1));
    CU_ASSERT_EQUAL(ask_nothing(c.socket, &a), -ENOSYS);
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* A library that offers only versions that the daemon does not speak. */
static void versions(void)
{
    static const struct {
        uint32_t min, max;
        const char *says;
    } ranges[] = {{0, 0, "library 0.1 speaks versions 0 to 0 with rings"},
                  {2, 2, "upgrade the daemon, pwcd"},
                  {2, UINT32_MAX, "versions 2 to 4294967295 with rings"}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct client c = {.socket = connected()};
        Pwc__ClientRequest r;

        fill(&c);
        c.hello.version_min = ranges[i].min;
        c.hello.version_max = ranges[i].max;
        r = request_of(&c, "hello");
        check(
            c.socket, &r,
            &(struct row){"hello.version", ranges[i].min, NULL, -EPROTONOSUPPORT, ranges[i].says});
        close(c.socket);
    }
}

/* A client cannot name an object of another client. */
static void handles_of_others(void)
{
    static const struct row kinds[] = {
        {"context_close", 0, NULL, -EINVAL, "is not yours"},
        {"segment_close", 0, NULL, -EINVAL, "is not yours"},
        {"region_open", 0, NULL, -EINVAL, "is not yours"},
        {"region_close", 0, NULL, -EINVAL, "is not yours"},
        {"bind", 0, NULL, -EINVAL, "is not yours"},
        {"unbind", 0, NULL, -EINVAL, "is not yours"},
    };
    struct client owner, other;

    open_client(&owner, 0);
    open_client(&other, 1);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        Pwc__ClientRequest r = request_of(&owner, kinds[i].path);

        check(other.socket, &r, &kinds[i]);
    }
    /* A context cannot name a remote of another context. */
    other.unbind.remote = owner.remote.handle;
    {
        Pwc__ClientRequest r = request_of(&other, "unbind");

        check(other.socket, &r, &(struct row){"unbind", 0, NULL, -EINVAL, "is not bound here"});
    }
    close(owner.socket);
    close(other.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* A context that takes part in pairs. Its descriptors stay open, because the daemon announces pairs
 * by one of them. */
static void open_direct(struct client *c, struct answer *context)
{
    Pwc__ClientRequest r;

    c->context_open.direct = true;
    r = request_of(c, "context_open");
    CU_ASSERT_EQUAL_FATAL(ask(c->socket, &r, context), 0);
}

/* The number of the pair that is made for this bind, or 0. */
static uint64_t pair_made(struct client *c, const struct answer *context, uint64_t peer)
{
    CU_ASSERT_EQUAL_FATAL(ask_bind(c->socket, context->handle, peer, NULL, &c->remote), 0);
    answer_close(&c->remote);
    c->unbind.session = context->handle;
    c->unbind.remote = c->remote.handle;
    return c->remote.pair;
}

static void unbind(struct client *c, uint64_t pair)
{
    Pwc__ClientRequest r = request_of(c, "unbind");
    struct answer a;

    c->unbind.pair = pair;
    CU_ASSERT_EQUAL(ask(c->socket, &r, &a), 0);
}

/* An Unbind ends the pair that it names, so that the next bind gets a new one. It ends no pair of
 * which its session is not the origin. */
static void given_up_pairs(void)
{
    uint64_t peer = UINT64_C(1) << 32, first, of_other, next; /* context 1 of rank 0 */
    struct answer one, other;
    struct client c;

    open_client(&c, 0);
    open_direct(&c, &one);
    open_direct(&c, &other);
    first = pair_made(&c, &one, peer);
    CU_ASSERT_NOT_EQUAL_FATAL(first, 0);
    unbind(&c, 0);
    CU_ASSERT_EQUAL(pair_made(&c, &one, peer), 0);
    unbind(&c, first + 1000);
    CU_ASSERT_EQUAL(pair_made(&c, &one, peer), 0);
    unbind(&c, UINT64_MAX);
    of_other = pair_made(&c, &other, peer);
    CU_ASSERT_NOT_EQUAL(of_other, 0);
    unbind(&c, first);
    CU_ASSERT_EQUAL(pair_made(&c, &one, peer), 0);
    unbind(&c, of_other);
    CU_ASSERT_EQUAL(pair_made(&c, &other, peer), 0);
    unbind(&c, of_other);
    next = pair_made(&c, &other, peer);
    CU_ASSERT(next > of_other);
    unbind(&c, of_other);
    CU_ASSERT_EQUAL(pair_made(&c, &other, peer), 0);
    CU_ASSERT_EQUAL(pair_made(&c, &one, peer), 0);
    unbind(&c, first);
    CU_ASSERT(pair_made(&c, &one, peer) > next);
    answer_close(&one);
    answer_close(&other);
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

static void in_use_and_gone(void)
{
    struct client c;
    Pwc__ClientRequest close_segment, close_context, unbind;
    struct answer a;

    open_client(&c, 0);
    close_segment = request_of(&c, "segment_close");
    close_context = request_of(&c, "context_close");
    unbind = request_of(&c, "unbind");
    check(c.socket, &close_segment,
          &(struct row){"segment_close", 0, NULL, -EBUSY,
                        "regions of it are open: close them first"});
    CU_ASSERT_EQUAL(ask(c.socket, &unbind, &a), 0);
    check(c.socket, &unbind, &(struct row){"unbind", 0, NULL, -EINVAL, "is not bound here"});
    CU_ASSERT_EQUAL(ask(c.socket, &close_context, &a), 0);
    check(c.socket, &close_context, &(struct row){"context_close", 0, NULL, -EINVAL, "not open"});
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* A context closes while a bind of it is under way: both requests are answered, and nothing of the
 * client's share of requests under way is lost, however often this happens. */
static void closes_while_it_binds(void)
{
    enum { ROUNDS = 300 }; /* more than a client may have under way */
    Pwc__ClientRequest both[2];
    struct answer a;
    struct client c;
    int i;

    memset(&c, 0, sizeof(c));
    c.socket = connected();
    CU_ASSERT_EQUAL_FATAL(raw_hello(c.socket, JOB, 0, 2), 0);
    for (i = 0; i < ROUNDS; i++) {
        if (ask_context(c.socket, 8192, &c.session) != 0)
            break;
        answer_close(&c.session);
        fill(&c);
        c.bind.key = NULL;
        both[0] = request_of(&c, "bind");
        both[1] = request_of(&c, "context_close");
        if (!raw_requests(c.socket, both, 2) || ask_nothing(c.socket, &a) == -ECONNRESET ||
            ask_nothing(c.socket, &a) == -ECONNRESET)
            break;
    }
    CU_ASSERT_EQUAL(i, ROUNDS);
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* So many ranks take part that the sum of the largest parts is more than the limit of an exchange,
 * 64 MiB. A part of exactly its share of that is taken; the exchange then waits for the others,
 * until it is given up. */
static void exchange_of_too_many(void)
{
    enum { RANKS = 65536, SHARE = 1024 };
    static const struct row too_long = {"exchange.data", SHARE + 1, NULL, -EMSGSIZE,
                                        "1025 bytes from each of 65536 ranks: all may be 67108864"};
    Pwc__ClientRequest r;
    struct client c = {0};
    struct answer a;
    int s = connected();

    CU_ASSERT_EQUAL(raw_hello(s, "wide", 0, RANKS), 0);
    fill(&c);
    r = request_of(&c, "exchange");
    field_set(&r.base, "exchange.data", &(struct field_value){.number = SHARE + 1});
    check(s, &r, &too_long);
    field_set(&r.base, "exchange.data", &(struct field_value){.number = SHARE});
    CU_ASSERT_TRUE(raw_request(s, 1, &r));
    fill(&c);
    c.exchange.give_up = true;
    CU_ASSERT_EQUAL(ask(s, &r, &a), -ETIMEDOUT); /* the exchange is answered first */
    CU_ASSERT_EQUAL(ask_nothing(s, &a), 0);
    close(s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* ---- open jobs ------------------------------------------------------------------------------- */

/* A request that needs a fixed number of ranks is refused in an open job. A client may publish only
 * a few names. */
static void open_jobs(void)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamJoin team = PWC__TEAM_JOIN__INIT;
    struct client c;
    struct answer a;
    char name[8];

    memset(&c, 0, sizeof(c));
    fill(&c);
    c.socket = connected();
    CU_ASSERT_EQUAL_FATAL(raw_hello(c.socket, "open", 5, UINT32_MAX), 0); /* rank 5 is ignored */
    CU_ASSERT_EQUAL_FATAL(ask_context(c.socket, 8192, &c.session), 0);
    r = request_of(&c, "exchange");
    check(c.socket, &r, &(struct row){"exchange", 0, NULL, -ENOTSUP, "no fixed number of ranks"});
    team.session = team.member = c.session.handle;
    team.window = 64;
    team.area = TEAM_VERSION;
    r.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_JOIN;
    r.team_join = &team;
    check(c.socket, &r, &(struct row){"team", 0, NULL, -ENOTSUP, "a team in open job open"});
    for (int i = 0; i <= 16; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        c.publish.name = name;
        r = request_of(&c, "publish");
        CU_ASSERT_EQUAL(ask(c.socket, &r, &a), i < 16 ? 0 : -EDQUOT);
    }
    c.publish.name = "n3";
    c.publish.gone = true;
    r = request_of(&c, "publish");
    CU_ASSERT_EQUAL(ask(c.socket, &r, &a), 0);
    /* A lookup waits until it is given up; to give up another number has no effect. */
    c.lookup.name = "n3";
    c.lookup.wait = true;
    r = request_of(&c, "lookup");
    CU_ASSERT_TRUE(raw_request(c.socket, 77, &r));
    c.lookup.give_up = 78;
    r = request_of(&c, "lookup");
    CU_ASSERT_EQUAL(ask(c.socket, &r, &a), 0);
    c.lookup.give_up = 77;
    r = request_of(&c, "lookup");
    CU_ASSERT_EQUAL(ask(c.socket, &r, &a), -ENOENT); /* the lookup is answered first */
    CU_ASSERT_EQUAL(ask_nothing(c.socket, &a), 0);
    /* Lookups that wait may take half of the requests under way; the rest is for other requests. */
    c.lookup.give_up = 0;
    for (uint32_t id = 100; id < 228; id++) {
        r = request_of(&c, "lookup");
        CU_ASSERT_TRUE(raw_request(c.socket, id, &r));
    }
    r = request_of(&c, "lookup");
    CU_ASSERT_EQUAL(ask(c.socket, &r, &a), -ENOBUFS);
    r = request_of(&c, "inspect");
    CU_ASSERT_EQUAL(ask(c.socket, &r, &a), 0);
    answer_close(&c.session);
    close(c.socket);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* Many clients start lookups that wait, and hang up. */
static void lookups_of_the_gone(void)
{
    Pwc__ClientRequest r;
    struct client c;

    memset(&c, 0, sizeof(c));
    fill(&c);
    c.lookup.wait = true;
    for (int i = 0; i < 20; i++) {
        c.socket = connected();
        CU_ASSERT_EQUAL_FATAL(raw_hello(c.socket, "waits", 0, UINT32_MAX), 0);
        r = request_of(&c, "lookup");
        for (uint32_t id = 1; id <= 200; id++)
            CU_ASSERT_TRUE(raw_request(c.socket, id, &r));
        close(c.socket);
    }
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

static void others_go_on(void)
{
    CU_ASSERT_TRUE(bystanders_go_on(&others));
}

static bool start(const char *program)
{
    if (daemon_start(&d, program, NULL) < 0)
        return false;
    return bystanders_start_on(&others, d.socket, "bystanders") == 0 && look_holdings(&d, &quiet);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"good requests", good_requests},
                           {"each field has a row", each_field_has_a_row},
                           {"fields out of range", fields_out_of_range},
                           {"before Welcome", before_welcome},
                           {"twice and unknown", twice_and_unknown},
                           {"versions", versions},
                           {"handles of others", handles_of_others},
                           {"pairs that are given up", given_up_pairs},
                           {"in use and gone", in_use_and_gone},
                           {"closes while it binds", closes_while_it_binds},
                           {"exchange of too many", exchange_of_too_many},
                           {"open jobs", open_jobs},
                           {"lookups of clients that are gone", lookups_of_the_gone},
                           {"others go on", others_go_on},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    if (start(argv[1]))
        failed = suite_run("requests", tests);
    if (others.runs && !bystanders_stop(&others))
        failed = 1;
    return daemon_end(&d, failed);
}
