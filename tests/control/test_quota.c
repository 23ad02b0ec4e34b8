/*
 * Quotas of clients and users, against a daemon with small ones. Each quota is filled to its limit,
 * by one client and by two clients of a user together; one more is refused, and the error names
 * limit and key. Status shows the count, and the end of a client gives everything back.
 *
 *     test_quota PWCD ODD-PWCD
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/lib/raw/ask.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/program.h"
#include "tests/suite.h"

#define JOB     "quota"
#define PAGE    4096u
#define TOO_FEW 64u

#define ALICE 61002u /* users that exist on no machine */
#define BOB   61003u

enum { PAIRS = 8, PAIRS_OF_USER = 7, CONTEXTS = 3 }; /* of the odd daemon */

static const char *program, *odd_program;

/* Kinds of things that a client can take one more of. */
enum thing { CONTEXT, SEGMENT, REGION, BIND, CLIENT, PROGRAM, OFFLOAD };

struct row {
    const char *key, *value;
    enum thing thing;
    uint32_t limit;   /* so many fit */
    uint32_t clients; /* clients that take them in turn */
    const char *says;
};

static const struct row rows[] = {
    {"--client-contexts", "3", CONTEXT, 3, 1,
     "1 beside the 3 contexts of this client: the quota (client-contexts) is 3"},
    {"--user-contexts", "3", CONTEXT, 3, 2,
     "1 beside the 3 contexts of this user: the quota (user-contexts) is 3"},
    {"--client-segments", "3", SEGMENT, 3, 1,
     "1 beside the 3 segments of this client: the quota (client-segments) is 3"},
    {"--user-segments", "3", SEGMENT, 3, 2,
     "1 beside the 3 segments of this user: the quota (user-segments) is 3"},
    {"--client-regions", "3", REGION, 3, 1,
     "1 beside the 3 regions of this client: the quota (client-regions) is 3"},
    {"--user-regions", "5", REGION, 5, 2,
     "1 beside the 5 regions of this user: the quota (user-regions) is 5"},
    {"--client-memory", "12288", SEGMENT, 3, 1,
     "4096 beside the 12288 bytes of this client: the quota (client-memory) is 12288"},
    {"--user-memory", "16384", SEGMENT, 4, 2,
     "4096 beside the 16384 bytes of this user: the quota (user-memory) is 16384"},
    {"--user-memory", "16383", SEGMENT, 3, 2,
     "4096 beside the 12288 bytes of this user: the quota (user-memory) is 16383"},
    {"--user-memory", "204800", CONTEXT, 2, 2,
     "102400 beside the 204800 bytes of this user: the quota (user-memory) is 204800"},
    {"--user-clients", "3", CLIENT, 3, 1,
     "1 beside the 3 clients of this user: the quota (user-clients) is 3"},
    {"--client-programs", "3", PROGRAM, 3, 1,
     "1 beside the 3 programs of this client: the quota (client-programs) is 3"},
    {"--user-programs", "3", PROGRAM, 3, 2,
     "1 beside the 3 programs of this user: the quota (user-programs) is 3"},
    {"--client-program-bytes", "8K", PROGRAM, 4, 1,
     "2048 beside the 8192 bytes of programs of this client: the quota (client-program-bytes) is "
     "8192"},
    {"--user-program-bytes", "8191", PROGRAM, 3, 2,
     "2048 beside the 6144 bytes of programs of this user: the quota (user-program-bytes) is 8191"},
    {"--client-offloads", "3", OFFLOAD, 3, 1,
     "1 beside the 3 offloads of this client: the quota (client-offloads) is 3"},
    {"--user-offloads", "3", OFFLOAD, 3, 2,
     "1 beside the 3 offloads of this user: the quota (user-offloads) is 3"},
    {"--client-binds", "3", BIND, 3, 1, "client-binds 3"},
    {"--user-binds", "3", BIND, 3, 2, "user-binds 3"},
    {"--client-pairs", "3", BIND, 3, 1, "client-pairs 3"},
    {"--user-pairs", "3", BIND, 3, 2, "user-pairs 3"},
    {"--binds", "64", BIND, 56, 1, "client-binds 56, user-binds 64"},
    {"--pairs", "64", BIND, 56, 1, "of binds 65536 and pairs 64"},
};

/* A client, with the objects that it needs to take one more thing. */
struct taker {
    int socket;
    struct answer context, segment, program;
};

/* Loads a program with 1 KiB of constants and a few instructions; it takes 2 KiB. */
static int load_program(int socket, struct answer *out)
{
    struct raw_image image;

    raw_image_plain(&image, 1024);
    return ask_program_load(socket, image.words, image.size, out);
}

static void taker_open(struct taker *t, const struct daemon *d, enum thing thing, uint32_t rank)
{
    memset(t, 0, sizeof(*t));
    t->socket = raw_connect(d);
    CU_ASSERT_FATAL(t->socket >= 0);
    if (thing == CLIENT)
        return;
    CU_ASSERT_EQUAL_FATAL(raw_hello(t->socket, JOB, rank, TOO_FEW), 0);
    if (thing == BIND || thing == OFFLOAD)
        CU_ASSERT_EQUAL_FATAL(ask_context(t->socket, 8192, &t->context), 0);
    if (thing == OFFLOAD)
        CU_ASSERT_EQUAL_FATAL(load_program(t->socket, &t->program), 0);
    if (thing == REGION)
        CU_ASSERT_EQUAL_FATAL(ask_segment(t->socket, PAGE, &t->segment), 0);
    answer_close(&t->context);
    answer_close(&t->segment);
}

/* Takes one more thing: for the taker, or, if the thing is a client, by another connection, which
 * stays open in `extra`. */
static int take(struct taker *t, const struct daemon *d, enum thing thing, uint32_t number,
                int *extra, struct answer *out)
{
    memset(out, 0, sizeof(*out));
    switch (thing) {
    case CONTEXT:
        ask_context(t->socket, 8192, out);
        break;
    case SEGMENT:
        ask_segment(t->socket, PAGE, out);
        break;
    case REGION:
        return ask_region(t->socket, t->segment.handle, 0, PAGE, 3, out);
    case BIND: /* each to another context, so each takes a pair, too */
        return ask_bind(t->socket, t->context.handle, (uint64_t)number << 32 | 63, NULL, out);
    case PROGRAM:
        return load_program(t->socket, out);
    case OFFLOAD:
        return ask_offload(t->socket, t->context.handle, t->program.handle, number, out);
    case CLIENT:
        *extra = raw_connect(d);
        CU_ASSERT_FATAL(*extra >= 0);
        CU_ASSERT_TRUE(raw_ask_hello(*extra, "many", number, TOO_FEW));
        return ask_nothing(*extra, out);
    }
    answer_close(out);
    return out->status;
}

/* Reads the count of a quota from status, or of the first user. */
static int64_t counted(const struct daemon *d, bool user)
{
    json_t *document = look_at(d, user ? "clients" : "status");
    const json_t *row = user ? json_array_get(json_object_get(document, "users"), 0) : document;
    int64_t value = json_integer_value(json_object_get(row, "refused"));

    json_decref(document);
    return value;
}

static void limits(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const char *arguments[] = {row->key, row->value, NULL};
        struct taker takers[2], target = {.socket = -1};
        int extra[16] = {0}, count = 0;
        struct answer out;
        struct daemon d;

        CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, arguments), 0);
        if (row->thing == BIND) { /* needs contexts to bind to */
            taker_open(&target, &d, BIND, 63);
            for (uint32_t n = 0; n < row->limit; n++) {
                CU_ASSERT_EQUAL_FATAL(ask_context(target.socket, 8192, &out), 0);
                answer_close(&out);
            }
        }
        for (uint32_t n = 0; n < row->clients; n++)
            taker_open(&takers[n], &d, row->thing, n);
        for (uint32_t n = 0; n < row->limit; n++) {
            int rc = take(&takers[n % row->clients], &d, row->thing, n, &extra[count], &out);

            if (rc < 0)
                printf("\n  %s, the %uth: %s\n", row->key, n + 1, out.text);
            CU_ASSERT_EQUAL(rc, 0);
            count += row->thing == CLIENT;
        }
        CU_ASSERT_EQUAL(counted(&d, false), 0);
        CU_ASSERT_EQUAL(
            take(&takers[row->clients - 1], &d, row->thing, row->limit, &extra[count], &out),
            -EDQUOT);
        if (!strstr(out.text, row->says))
            printf("\n  %s: \"%s\"\n", row->key, out.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(out.text, row->says));
        count += row->thing == CLIENT;
        CU_ASSERT_EQUAL(counted(&d, false), 1);
        CU_ASSERT_EQUAL(counted(&d, true), 1);
        for (int n = 0; n < count; n++)
            close(extra[n]);
        for (uint32_t n = 0; n < row->clients; n++)
            close(takers[n].socket);
        if (target.socket >= 0)
            close(target.socket);
        CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    }
}

/* When a client ends, its user's quota gets back what it held, however often. */
static void given_back(void)
{
    static const char *const arguments[] = {"--user-segments",
                                            "3",
                                            "--user-regions",
                                            "3",
                                            "--user-contexts",
                                            "3",
                                            "--user-clients",
                                            "2",
                                            NULL};
    struct holdings quiet;
    struct daemon d;

    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, arguments), 0);
    CU_ASSERT_TRUE(look_holdings(&d, &quiet));
    for (uint32_t round = 0; round < 10; round++) {
        struct answer contexts[3], segments[3], regions[3];
        struct taker t;

        taker_open(&t, &d, CONTEXT, round);
        for (int i = 0; i < 3; i++) {
            CU_ASSERT_EQUAL(ask_context(t.socket, 8192, &contexts[i]), 0);
            CU_ASSERT_EQUAL(ask_segment(t.socket, PAGE, &segments[i]), 0);
            CU_ASSERT_EQUAL(ask_region(t.socket, segments[i].handle, 0, PAGE, 3, &regions[i]), 0);
            answer_close(&contexts[i]);
            answer_close(&segments[i]);
        }
        CU_ASSERT_EQUAL(ask_context(t.socket, 8192, &contexts[0]), -EDQUOT);
        close(t.socket);
        CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
    }
    CU_ASSERT_EQUAL(counted(&d, false), 10);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* The value in use of a key of the configuration, or -1. */
static int64_t in_use(const struct daemon *d, const char *key)
{
    json_t *document = look_at(d, "config"), *row;
    int64_t value = -1;
    size_t i;

    json_array_foreach(json_object_get(document, "config"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "key"));

        if (name && strcmp(name, key) == 0)
            value = json_integer_value(json_object_get(row, "value"));
    }
    json_decref(document);
    return value;
}

/* A bound of queues counts in chunks of 16 KiB, and each begun chunk is one: the smallest bound is
 * one chunk, and only 0 leaves the bound to the daemon. */
static void queues(void)
{
    static const struct {
        const char *given;
        int64_t used;
    } queue_rows[] = {{"1", 16384},     {"8K", 16384},       {"16K", 16384},
                      {"16385", 32768}, {"64M", 64ll << 20}, {"0", 64ll << 20}};

    for (size_t i = 0; i < sizeof(queue_rows) / sizeof(queue_rows[0]); i++) {
        const char *given = queue_rows[i].given;
        const char *arguments[] = {"--client-queue", given, "--user-queue", given, NULL};
        struct daemon d;

        CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, arguments), 0);
        CU_ASSERT_EQUAL(in_use(&d, "client-queue"), queue_rows[i].used);
        CU_ASSERT_EQUAL(in_use(&d, "user-queue"), queue_rows[i].used);
        CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    }
}

/* A client of some user, whose contexts take part in pairs. */
struct neighbours {
    int socket;
    struct answer contexts[CONTEXTS];
};

static void neighbours_open(struct neighbours *n, const struct daemon *d, uid_t uid)
{
    n->socket = raw_connect_as(d, uid);
    CU_ASSERT_FATAL(n->socket >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(n->socket, JOB, 0, 1), 0);
    for (uint32_t i = 0; i < CONTEXTS; i++)
        CU_ASSERT_EQUAL_FATAL(ask_direct_context(n->socket, 8192, &n->contexts[i]), 0);
}

static void neighbours_close(struct neighbours *n)
{
    for (uint32_t i = 0; i < CONTEXTS; i++)
        answer_close(&n->contexts[i]);
    close(n->socket);
}

/* Binds each context to each one, and unbinds. Returns how many pairs were made. */
static uint32_t pairs_made(const struct neighbours *n)
{
    uint32_t made = 0;

    for (uint64_t i = 0; i < CONTEXTS * CONTEXTS; i++) {
        uint32_t context = n->contexts[i / CONTEXTS].handle;
        struct answer remote;

        CU_ASSERT_EQUAL(ask_bind(n->socket, context, i % CONTEXTS << 32, NULL, &remote), 0);
        made += remote.pair != 0;
        answer_close(&remote);
        CU_ASSERT_EQUAL(ask_unbind(n->socket, context, remote.handle), 0);
    }
    return made;
}

/* Pairs outlive their binds. Beyond a bound for all users, and for each user, binds succeed and
 * give no pair, so that the daemon can still map what other users need. The pairs of a client that
 * ends count no more. */
static void pairs(void)
{
    static const char *const users[] = {"--allow-users", "61002,61003", NULL};
    struct neighbours alice, bob;
    struct holdings quiet;
    struct daemon d;

    if (geteuid() != 0) {
        printf("as root alone ");
        return;
    }
    setenv("PWCD_ODD", "crowded", 1);
    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, odd_program, users), 0);
    CU_ASSERT_EQUAL_FATAL(chmod(d.directory, 0755), 0);
    CU_ASSERT_TRUE(look_holdings(&d, &quiet));
    neighbours_open(&alice, &d, ALICE);
    neighbours_open(&bob, &d, BOB);
    CU_ASSERT_EQUAL(pairs_made(&alice), PAIRS_OF_USER);
    CU_ASSERT_EQUAL(pairs_made(&bob), PAIRS - PAIRS_OF_USER);
    CU_ASSERT_EQUAL(pairs_made(&bob), 0);
    neighbours_close(&alice);
    neighbours_close(&bob);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
    neighbours_open(&bob, &d, BOB);
    CU_ASSERT_EQUAL(pairs_made(&bob), PAIRS_OF_USER);
    neighbours_close(&bob);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    unsetenv("PWCD_ODD");
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {{"at the limit, and one over", limits},
                                  {"given back at the end", given_back},
                                  {"queues", queues},
                                  {"pairs of all and of a user", pairs},
                                  CU_TEST_INFO_NULL};

    if (argc != 3) {
        fprintf(stderr, "usage: test_quota PWCD ODD-PWCD\n");
        return 2;
    }
    program = argv[1];
    odd_program = argv[2];
    return suite_run("quota", tests);
}
