/*
 * Unexpected notifications, more than a context keeps: they fill its ring, spill into the daemon,
 * and hold their sender. Each wait that cannot succeed returns an error; operations that do not
 * depend on them continue; and once requests are started, all notifications are taken, in order.
 *
 * This process has both ranks: rank 0, on node 0, sends; rank 1, on the last node, is the target.
 *
 *     test_unexpected PWCD PROVIDER NODES [--KEY VALUE]...
 */
#include <errno.h>
#include <pthread.h>
#include <pwc/notify.h>
#include <pwc/signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/lib/raw/look.h"
#include "proto/session_abi.h"

enum {
    UNEXPECTED = 64,
    RINGS = 32 << 10,
    REGION = 64 << 10,
    TAGS = 8,
    NEVER = TAGS, /* no notification has this tag */
    WORD = 4096,  /* offset of a word that nobody else writes to */
    PLAIN = 10,   /* every tenth event is a plain remote event */
    MORE = 3000,  /* sent while the target drains */
};

/* Set by main before the tests run. */
static struct cluster cluster;
static bool direct; /* the ranks are neighbours, on the direct path */

struct end {
    uint32_t number;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_window *window;
    uint8_t *memory;
    int rc;
};

static const char *socket_of(const struct end *e)
{
    return cluster.nodes[e->number == 0 ? 0 : cluster.options.nodes - 1].socket;
}

/* Runs on a thread of its own, because the last step waits for the other rank. */
static void *attach(void *argument)
{
    struct end *e = argument;
    const struct pwc_attr attr = {
        .socket = socket_of(e), .job = "unexpected", .rank = e->number, .size = 2};
    const struct pwc_ctx_attr sizes = {.submit_bytes = RINGS,
                                       .local_bytes = RINGS,
                                       .remote_bytes = RINGS,
                                       .unexpected = UNEXPECTED};

    e->rc = pwc_init(&attr, &e->client);
    if (e->rc == 0)
        e->rc = pwc_ctx_create(e->client, &sizes, &e->ctx);
    if (e->rc == 0)
        e->rc = pwc_alloc(e->client, REGION, PWC_REMOTE_RW, &e->region);
    if (e->rc == 0)
        e->rc = pwc_window_create(e->ctx, NULL, e->region, &e->window);
    e->memory = e->region ? pwc_region_addr(e->region) : NULL;
    return NULL;
}

struct flow {
    pwc_request *request;
    uint64_t next; /* number of its next notification */
};

struct both {
    struct end from, to;
    pwc_remote *remote; /* remote of `from` that leads to `to` */
    pwc_request *never;
    uint64_t sent;
    uint64_t plain_seen; /* plain remote events */
    struct flow flows[TAGS];
};

static void both_open(struct both *b)
{
    pthread_t thread;

    *b = (struct both){.from.number = 0, .to.number = 1};
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, attach, &b->from), 0);
    (void)attach(&b->to);
    CU_ASSERT_EQUAL_FATAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(b->from.rc, 0);
    CU_ASSERT_EQUAL_FATAL(b->to.rc, 0);
    CU_ASSERT_EQUAL_FATAL(pwc_window_remote(b->from.window, 1, &b->remote), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_notify_init(b->to.window, 0, NEVER, 1, PWC_CID_NONE, &b->never), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_start(b->never), 0);
    CU_ASSERT_EQUAL(pwc_test(b->never, NULL), 0); /* also maps the pair */
}

/* A field of the daemon's view of a rank's context. */
static json_int_t shown(const struct end *e, const char *field)
{
    int s = raw_connect_to(socket_of(e));
    json_t *document = look_on(s, "queues"), *row;
    json_int_t value = -1;
    size_t i;

    json_array_foreach(json_object_get(document, "queues"), i,
                       row) if (json_integer_value(json_object_get(row, "rank")) == e->number)
        value = json_integer_value(json_object_get(row, field));
    json_decref(document);
    close(s);
    return value;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The length for each number, by which the target checks the order; two thirds of the lengths
 * travel packed. */
static size_t bytes_of(uint64_t number)
{
    return (size_t)(number * 37 % 6000);
}

static bool is_plain(uint64_t number)
{
    return number % PLAIN == 0;
}

static int send_next(struct both *b)
{
    uint64_t number = b->sent;
    const uint8_t *source = b->from.memory;
    int rc = is_plain(number) ? pwc_put(b->remote, 0, source, bytes_of(number), PWC_CID_NONE,
                                        pwc_cid_u64(number), PWC_NO_LCE)
                              : pwc_put_notify(b->from.window, 1, 0, source, bytes_of(number),
                                               (uint32_t)(number % TAGS), PWC_CID_NONE, PWC_NO_LCE);

    b->sent += rc == 0;
    return rc;
}

/* A probe of the sender makes room for its submissions. It must find no event: no operation has
 * failed. */
static void expect_no_event(const struct end *e)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(pwc_probe(e->ctx, PWC_ANY, PWC_LOCAL, &event), 0);
}

/* Whether the sender is held: the target's events spill, and the sender's operations under way no
 * longer end. */
static bool is_held(const struct both *b)
{
    return direct || (shown(&b->to, "spill_bytes") > 0 &&
                      shown(&b->from, "in_flight") > RINGS / 2 / (json_int_t)event_bytes(0));
}

static void send_until_full(struct both *b)
{
    time_t limit = time(NULL) + RANK_WAIT_MS / 1000;
    int rc;

    do {
        while ((rc = send_next(b)) == 0)
            ;
        CU_ASSERT_EQUAL_FATAL(rc, -EAGAIN);
        expect_no_event(&b->from);
    } while (!is_held(b) && time(NULL) < limit);
    CU_ASSERT_FATAL(is_held(b));
}

/* Tests a request until the target can keep no more; each call takes some notifications that have
 * arrived. */
static int test_until_full(const struct both *b)
{
    time_t limit = time(NULL) + RANK_WAIT_MS / 1000;
    int rc = 0;

    while (rc == 0 && time(NULL) < limit)
        rc = pwc_test(b->never, NULL);
    return rc;
}

/* ---- full ------------------------------------------------------------------------------------ */

static void check_shown(const struct both *b)
{
    CU_ASSERT_EQUAL(shown(&b->to, "requests_started"), 1);
    CU_ASSERT_EQUAL(shown(&b->to, "notices_unexpected"), UNEXPECTED);
    CU_ASSERT_EQUAL(shown(&b->to, "notices_matched"), 0);
    CU_ASSERT(is_held(b));
    CU_ASSERT_EQUAL(shown(&b->to, "spilled") > 0, !direct);
}

static void take_plain(struct both *b)
{
    struct pwc_event event;
    int rc;

    while ((rc = pwc_probe(b->to.ctx, PWC_ANY, PWC_REMOTE, &event)) == 1) {
        CU_ASSERT_EQUAL_FATAL(event.id, b->plain_seen);
        CU_ASSERT_EQUAL_FATAL(event.length, bytes_of(b->plain_seen));
        b->plain_seen += PLAIN;
    }
    CU_ASSERT_FATAL(rc == 0 || rc == -ENOBUFS);
}

/* Waits for events that stand after the unexpected ones return -ENOBUFS at once. */
static void check_waits(struct both *b)
{
    pwc_ctx *ctx = b->to.ctx;
    struct pwc_event event;
    size_t which;

    CU_ASSERT_EQUAL(pwc_test(b->never, NULL), -ENOBUFS);
    CU_ASSERT_EQUAL(pwc_request_wait(b->never, NULL, RANK_WAIT_MS), -ENOBUFS);
    CU_ASSERT_EQUAL(pwc_wait_any(&b->never, 1, &which, NULL, RANK_WAIT_MS), -ENOBUFS);
    CU_ASSERT_EQUAL(pwc_wait_all(&b->never, 1, RANK_WAIT_MS), -ENOBUFS);
    CU_ASSERT_EQUAL(pwc_probe(ctx, PWC_ANY, PWC_LOCAL, &event), 0);
    take_plain(b);
    CU_ASSERT_EQUAL(pwc_wait(ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), -ENOBUFS);
}

/* A wait for a word that has its value already succeeds. A wait for a change returns -ENOBUFS,
 * because the change may depend on operations that are held. */
static void check_words(const struct both *b)
{
    volatile uint64_t *word = (volatile uint64_t *)(void *)(b->to.memory + WORD);

    *word = 7;
    CU_ASSERT_EQUAL(pwc_wait_word(b->to.ctx, (const uint64_t *)word, PWC_EQ, 7, RANK_WAIT_MS), 1);
    /* With a pair, puts change words directly, so the wait times out. */
    CU_ASSERT_EQUAL(
        pwc_wait_word(b->to.ctx, (const uint64_t *)word, PWC_EQ, 8, direct ? 1 : RANK_WAIT_MS),
        direct ? 0 : -ENOBUFS);
}

/* The target's own operations end, and their local events come. */
static void check_own(const struct both *b)
{
    struct pwc_event event = {0};

    CU_ASSERT_EQUAL(
        pwc_put_notify(b->to.window, 0, REGION / 2, b->to.memory, 8, NEVER, pwc_cid_u64(5), 0), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(b->to.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT(event.id == 5 && event.status == 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(b->from.ctx, PWC_ANY, PWC_NOTIFICATION, &event, RANK_WAIT_MS),
                          1);
    CU_ASSERT(event.peer == pwc_peer_of(1, 0) && event.length == 8);
}

/* ---- draining -------------------------------------------------------------------------------- */

/* The next number from `number` on, of the same tag, that is a notification. */
static uint64_t notice_from(uint64_t number)
{
    return is_plain(number) ? number + TAGS : number;
}

/* Tests a tag's request: if it has ended, it has the tag's next notification. Starts it again. */
static void look(struct both *b, uint32_t tag)
{
    struct flow *f = &b->flows[tag];
    struct pwc_status status;
    int rc = pwc_test(f->request, &status);

    /* -ENOBUFS: a notification of another tag blocks the ring. */
    CU_ASSERT_FATAL(rc == 0 || rc == 1 || rc == -ENOBUFS);
    if (rc != 1)
        return;
    CU_ASSERT_EQUAL_FATAL(status.status, 0);
    CU_ASSERT_EQUAL_FATAL((uint32_t)status.id, tag);
    CU_ASSERT_EQUAL_FATAL(status.bytes, bytes_of(f->next));
    f->next = notice_from(f->next + TAGS);
    CU_ASSERT_EQUAL_FATAL(pwc_start(f->request), 0);
}

static bool all_came(const struct both *b)
{
    bool all = b->plain_seen >= b->sent;

    for (uint32_t tag = 0; tag < TAGS; tag++)
        all = all && b->flows[tag].next >= b->sent;
    return all;
}

/* Takes all notifications while the sender continues. */
static void drain(struct both *b, uint64_t total)
{
    time_t limit = time(NULL) + RANK_WAIT_MS / 1000;

    for (uint32_t tag = 0; tag < TAGS; tag++) {
        b->flows[tag].next = notice_from(tag);
        CU_ASSERT_EQUAL_FATAL(
            pwc_notify_init(b->to.window, 0, tag, 1, PWC_CID_NONE, &b->flows[tag].request), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_start(b->flows[tag].request), 0);
    }
    while ((b->sent < total || !all_came(b)) && time(NULL) < limit) {
        while (b->sent < total && send_next(b) == 0)
            ;
        expect_no_event(&b->from);
        for (uint32_t tag = 0; tag < TAGS; tag++)
            look(b, tag);
        take_plain(b);
    }
    CU_ASSERT_FATAL(all_came(b));
}

static void test_nothing_is_lost(void)
{
    struct both b;
    struct pwc_event event;
    uint64_t full;

    both_open(&b);
    send_until_full(&b);
    CU_ASSERT_EQUAL(test_until_full(&b), -ENOBUFS);
    send_until_full(&b);
    full = b.sent;
    CU_ASSERT_EQUAL(test_until_full(&b), -ENOBUFS);
    check_shown(&b);
    check_waits(&b);
    check_words(&b);
    check_own(&b);
    drain(&b, full + MORE);
    printf("\n    held after %llu ", (unsigned long long)full);
    CU_ASSERT_EQUAL(pwc_flush(b.from.ctx, PWC_ANY, RANK_WAIT_MS), 0);
    expect_no_event(&b.from);
    CU_ASSERT_EQUAL(pwc_test(b.never, NULL), 0);
    CU_ASSERT_EQUAL(pwc_probe(b.to.ctx, PWC_ANY, PWC_REMOTE | PWC_NOTIFICATION, &event), 0);
    CU_ASSERT_EQUAL(shown(&b.to, "notices_unexpected"), 0);
    CU_ASSERT_EQUAL(shown(&b.to, "notices_matched"), (json_int_t)(b.sent - b.plain_seen / PLAIN));
    CU_ASSERT_EQUAL(shown(&b.to, "requests_started"), TAGS + 1);
    CU_ASSERT_EQUAL(pwc_finalize(b.from.client), 0);
    CU_ASSERT_EQUAL(pwc_finalize(b.to.client), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"nothing is lost", test_nothing_is_lost}, CU_TEST_INFO_NULL};
    static const char *const keys[] = {"--spill-max", "32768", NULL};
    struct cluster_options options = {.more = keys, .nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    direct = options.nodes == 1 && argc == 4;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("unexpected", tests);
    return cluster_end(&cluster, status);
}
