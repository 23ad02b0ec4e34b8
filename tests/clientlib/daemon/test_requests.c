/*
 * Operations that were given a request, through the public calls, against a daemon on a thread:
 * each operation on both paths, groups, refusals, handlers, and the daemon's death.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pwc/am.h"
#include "pwc/request.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/lib/message.h"
#include "tests/suite.h"

/* ---- every operation ------------------------------------------------------------------------- */

/* Submits one operation from context a to context b with this local id. */
typedef int operate(struct two *t, pwc_cid lid, unsigned flags);

static int do_put(struct two *t, pwc_cid lid, unsigned flags)
{
    return pwc_put(t->to_b, 0, "12345678", 8, lid, pwc_cid_u64(1), flags);
}

static int do_big_put(struct two *t, pwc_cid lid, unsigned flags)
{
    return pwc_put(t->to_b, 0, t->w->memory + BIG, BIG, lid, pwc_cid_u64(1), flags);
}

static int do_put_long_rid(struct two *t, pwc_cid lid, unsigned flags)
{
    return pwc_put(t->to_b, 0, "12345678", 8, lid, pwc_cid_bytes("rid", 4), flags);
}

static int do_note(struct two *t, pwc_cid lid, unsigned flags)
{
    return pwc_put(t->to_b, 0, NULL, 0, lid, pwc_cid_u64(1), flags);
}

static int do_get(struct two *t, pwc_cid lid, unsigned flags)
{
    return pwc_get(t->to_b, 0, t->w->memory + BIG, 16, lid, pwc_cid_u64(1), flags);
}

static int do_message(struct two *t, int kind, size_t len, pwc_cid lid, unsigned flags)
{
    return message_request(kind, t->to_b, 64,
                           (struct pwc_am_send){.index = HANDLER,
                                                .src = "12345678",
                                                .len = len,
                                                .lid = lid,
                                                .flags = flags | PWC_AM_NO_REPLY});
}

static int do_short(struct two *t, pwc_cid lid, unsigned flags)
{
    return do_message(t, PWC_AM_SHORT, 0, lid, flags);
}

static int do_medium(struct two *t, pwc_cid lid, unsigned flags)
{
    return do_message(t, PWC_AM_MEDIUM, 8, lid, flags);
}

static int do_long(struct two *t, pwc_cid lid, unsigned flags)
{
    return do_message(t, PWC_AM_LONG, 8, lid, flags);
}

static int do_prepared(struct two *t, pwc_cid lid, unsigned flags)
{
    void *payload;
    int rc = pwc_am_prepare(t->to_b, 8, 0, lid, flags | PWC_AM_NO_REPLY, &payload);

    if (rc < 0)
        return rc;
    memcpy(payload, "12345678", 8);
    return pwc_am_commit(t->a, HANDLER, 8, NULL);
}

static const struct verb {
    const char *name;
    operate *run;
    uint64_t bytes; /* as the request's status reports them */
    bool by_daemon; /* on both paths */
} verbs[] = {
    {"put", do_put, 8, false},
    {"big put", do_big_put, BIG, false},
    {"put with a long rid", do_put_long_rid, 8, false},
    {"notification", do_note, 0, false},
    {"get", do_get, 16, false},
    {"short", do_short, 0, false},
    {"medium", do_medium, 0, false},
    {"long", do_long, 8, false},
    {"prepared medium", do_prepared, 0, true},
};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* While the daemon holds, the operation is under way. Its end is only a status: there is no local
 * event, whatever the flags are. */
static void test_through_the_daemon(void)
{
    static const unsigned flags[] = {0, PWC_NO_LCE, PWC_LCE_SOURCE, PWC_UNORDERED};

    for (unsigned v = 0; v < VERBS; v++) {
        struct two *t = two_new(false);

        for (unsigned f = 0; f < 4; f++) {
            struct pwc_status status;

            hold(t, true);
            CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_request(t->request), flags[f]), 0);
            CU_ASSERT_EQUAL(pwc_test(t->request, &status), 0);
            CU_ASSERT_EQUAL(pwc_request_wait(t->request, &status, 2), 0);
            CU_ASSERT_EQUAL(pwc_request_free(t->request), -EBUSY);
            hold(t, false);
            status = expect_end(t->request, 0, 1);
            CU_ASSERT_EQUAL(status.peer, pwc_ctx_peer(t->b));
            CU_ASSERT_EQUAL(status.bytes, verbs[v].bytes);
            expect_no_event(t);
        }
        two_free(t);
    }
}

/* Towards a neighbour an operation ends within its call. */
static void test_without_the_daemon(void)
{
    for (unsigned v = 0; v < VERBS; v++) {
        struct two *t = two_new(true);
        struct pwc_status status;

        if (!verbs[v].by_daemon)
            hold(t, true);
        for (unsigned flags = 0; flags <= PWC_NO_LCE; flags++) {
            CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_request(t->request), flags), 0);
            status = expect_end(t->request, 0, 1);
            CU_ASSERT_EQUAL(status.peer, pwc_ctx_peer(t->b));
            CU_ASSERT_EQUAL(status.bytes, verbs[v].bytes);
            expect_no_event(t);
        }
        two_free(t);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Operations of all kinds given to one request end it together. */
static void test_group(void)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        struct two *t = two_new(pairs);

        for (int round = 0; round < 3; round++) {
            for (unsigned v = 0; v < VERBS; v++) {
                int rc;

                while ((rc = verbs[v].run(t, pwc_cid_request(t->request), 0)) == -EAGAIN)
                    (void)pwc_probe(t->b, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0});
                CU_ASSERT_EQUAL(rc, 0);
            }
            (void)expect_end(t->request, 0, VERBS);
            expect_no_event(t);
        }
        two_free(t);
    }
}

/* A message that finds no handler, which the daemon reports as -ENOSYS. */
static int do_unhandled(struct two *t, pwc_cid lid, unsigned flags)
{
    const struct pwc_am_send m = {
        .index = HANDLER + 1, .lid = lid, .flags = flags | PWC_AM_NO_REPLY};

    return pwc_am_short(t->to_b, &m);
}

/* A request keeps the first error of its group until a call has reported it: also where operations
 * before and after succeed, and where for a moment no operation was under way. */
static void test_first_error(void)
{
    struct two *t = two_new(false);
    pwc_remote *stale = stale_remote(t);
    pwc_cid lid = pwc_cid_request(t->request);
    struct pwc_status status;

    for (unsigned flags = 0; flags <= PWC_NO_LCE; flags++) {
        CU_ASSERT_EQUAL(do_put(t, lid, flags), 0);
        CU_ASSERT_EQUAL(pwc_put(stale, 0, "1", 1, lid, PWC_CID_NONE, PWC_NO_RCE | flags), 0);
        CU_ASSERT_EQUAL(do_unhandled(t, lid, flags), 0); /* another error */
        CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
        CU_ASSERT_EQUAL(do_get(t, lid, flags), 0);
        status = expect_end(t->request, -EKEYREJECTED, 4);
        CU_ASSERT_EQUAL(status.bytes, 16);
        CU_ASSERT_EQUAL(do_put(t, lid, flags), 0);
        (void)expect_end(t->request, 0, 1);
    }
    expect_no_event(t);
    two_free(t);
}

/* Operations with ids of their own keep their events, in order, beside those of a request. */
static void test_beside_events(void)
{
    enum { COUNT = 300 };
    struct two *t = two_new(false);
    struct pwc_event event;

    for (uint64_t i = 0; i < COUNT; i++) {
        CU_ASSERT_EQUAL(do_put(t, pwc_cid_u64(i), 0), 0);
        CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(t->request), 0), 0);
        CU_ASSERT_EQUAL(do_get(t, pwc_cid_bytes(&i, sizeof(i)), 0), 0);
    }
    (void)expect_end(t->request, 0, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.id, i);
        CU_ASSERT_EQUAL(event.op, PWC_OP_PUT);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.op, PWC_OP_GET);
        CU_ASSERT_EQUAL(memcmp(event.data, &i, sizeof(i)), 0);
    }
    expect_no_event(t);
    two_free(t);
}

/* A get into memory that is registered through a copy: the destination is filled when the request
 * has ended. */
static void test_get_through_a_copy(void)
{
    static uint8_t destination[8192];
    struct two *t = two_new(false);
    pwc_region *region;

    CU_ASSERT_EQUAL_FATAL(
        pwc_register(t->w->client, destination, sizeof(destination), 0, 0, &region), 0);
    fill(t->w->memory, sizeof(destination), 9);
    CU_ASSERT_EQUAL(pwc_get(t->to_b, 0, destination, sizeof(destination),
                            pwc_cid_request(t->request), PWC_CID_NONE, PWC_NO_RCE | PWC_NO_LCE),
                    0);
    CU_ASSERT_EQUAL(expect_end(t->request, 0, 1).bytes, sizeof(destination));
    CU_ASSERT_EQUAL(memcmp(destination, t->w->memory, sizeof(destination)), 0);
    expect_no_event(t);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    two_free(t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* An operation that is refused leaves its request as it was. */
static void test_refusals(void)
{
    struct two *t = two_new(false);
    pwc_request *of_b;
    struct pwc_status status;
    void *payload;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->b, &of_b), 0);
    for (unsigned v = 0; v < VERBS; v++) {
        CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_request(of_b), 0), -EINVAL);
        CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_request(NULL), 0), -EINVAL);
        CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_bytes(&payload, PWC_CID_MAX + 1), 0), -EINVAL);
        CU_ASSERT_EQUAL(verbs[v].run(t, pwc_cid_request(t->request), 1u << 9), -EINVAL);
    }
    CU_ASSERT_EQUAL(
        pwc_put(t->to_b, 0, NULL, 0, pwc_cid_request(t->request), pwc_cid_request(t->request), 0),
        -EINVAL);
    CU_ASSERT_EQUAL(
        pwc_put(t->to_b, UINT64_MAX, "1", 1, pwc_cid_request(t->request), PWC_CID_NONE, 0),
        -ERANGE);
    (void)expect_end(t->request, 0, 0);

    /* A message that is prepared counts, until it is cancelled. */
    CU_ASSERT_EQUAL(pwc_am_prepare(t->to_b, 8, 0, pwc_cid_request(t->request), 0, &payload), 0);
    CU_ASSERT_EQUAL(pwc_test(t->request, &status), 0);
    CU_ASSERT_EQUAL(pwc_request_free(t->request), -EBUSY);
    CU_ASSERT_EQUAL(pwc_am_cancel(t->a), 0);
    (void)expect_end(t->request, 0, 0);
    CU_ASSERT_EQUAL(pwc_request_free(of_b), 0);
    two_free(t);
}

/* A full ring refuses an operation; the request counts only the operations that were accepted. */
static void test_back_pressure(void)
{
    struct two *t = two_new(false);
    uint32_t count = 0;
    int rc;

    hold(t, true);
    while ((rc = do_put(t, pwc_cid_request(t->request), 0)) == 0)
        count++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_TRUE(count > 1000);
    hold(t, false);
    (void)expect_end(t->request, 0, count);
    CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(t->request), 0), 0);
    (void)expect_end(t->request, 0, 1);
    two_free(t);
}

/* ---- many, and the pool's memory ------------------------------------------------------------- */

static void test_many(void)
{
    enum { COUNT = 500 }; /* more requests than one chunk of the pool has */
    struct two *t = two_new(false);
    pwc_request *r[COUNT];

    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->a, &r[i]), 0);
            CU_ASSERT_EQUAL(pwc_put(t->to_b, 0, t->w->memory + BIG, i, pwc_cid_request(r[i]),
                                    PWC_CID_NONE, PWC_NO_RCE),
                            0);
        }
        for (unsigned i = COUNT; i-- > 0;) {
            CU_ASSERT_EQUAL(expect_end(r[i], 0, 1).bytes, i);
            if (round == 0) /* in the last round they are freed with the context */
                CU_ASSERT_EQUAL(pwc_request_free(r[i]), 0);
        }
    }
    two_free(t);
}

/* ---- handlers, and the end of a session ------------------------------------------------------ */

struct inside {
    pwc_request *request;
    int test, wait, any, all, create;
    unsigned runs;
};

static void use_inside(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct inside *in = argument;
    pwc_request *own;
    size_t which;

    in->runs++;
    in->test = pwc_test(in->request, NULL);
    in->wait = pwc_request_wait(in->request, NULL, -1);
    in->any = pwc_wait_any(&in->request, 1, &which, NULL, -1);
    in->all = pwc_wait_all(&in->request, 1, -1);
    in->create = pwc_request_create(ctx, &own);
    if (in->create == 0)
        in->create = pwc_request_free(own);
    (void)am;
}

/* Inside a handler a test makes no progress, and a wait is refused. */
static void test_inside_a_handler(void)
{
    struct two *t = two_new(false);
    struct inside in = {.request = t->request};
    uint64_t none = 0;
    struct pwc_am_send m = message_of(HANDLER, &none);

    m.flags |= PWC_AM_NO_REPLY | PWC_NO_LCE;
    CU_ASSERT_EQUAL(pwc_am_register(t->a, HANDLER, use_inside, &in), 0);
    CU_ASSERT_EQUAL(pwc_am_short(t->w->remote, &m), 0);
    while (fake_executed(&t->w->daemon) < 1)
        usleep(100);
    hold(t, true);
    CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(t->request), 0), 0);
    CU_ASSERT_EQUAL(pwc_request_wait(t->request, NULL, 20), 0); /* runs the handler */
    CU_ASSERT_EQUAL(in.runs, 1);
    CU_ASSERT_EQUAL(in.test, 0);
    CU_ASSERT_EQUAL(in.wait, -EDEADLK);
    CU_ASSERT_EQUAL(in.any, -EDEADLK);
    CU_ASSERT_EQUAL(in.all, -EDEADLK);
    CU_ASSERT_EQUAL(in.create, 0);
    hold(t, false);
    (void)expect_end(t->request, 0, 1);
    two_free(t);
}

static void *stop_daemon(void *daemon)
{
    usleep(100000);
    fake_daemon_stop(daemon);
    return NULL;
}

/* When the daemon dies, operations under way end, once each. */
static void test_daemon_dies(void)
{
    struct two *t = two_new(false);
    pwc_request *second;
    pthread_t thread;
    void *payload;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(t->a, &second), 0);
    CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(second), 0), 0);
    (void)expect_end(second, 0, 1);
    hold(t, true);
    CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(t->request), 0), 0);
    CU_ASSERT_EQUAL(do_get(t, pwc_cid_request(t->request), 0), 0);
    CU_ASSERT_EQUAL(pwc_am_prepare(t->to_b, 8, 0, pwc_cid_request(second), 0, &payload), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_daemon, &t->w->daemon), 0);
    (void)expect_end(t->request, -ESHUTDOWN, 0);
    (void)expect_end(second, -ESHUTDOWN, 0);
    CU_ASSERT_EQUAL(pwc_am_commit(t->a, HANDLER, 8, NULL), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_am_cancel(t->a), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(do_put(t, pwc_cid_request(t->request), 0), -ESHUTDOWN);
    (void)expect_end(t->request, -ESHUTDOWN, 0);
    CU_ASSERT_EQUAL(pwc_request_free(second), 0);
    CU_ASSERT_EQUAL(pwc_request_free(t->request), 0);
    CU_ASSERT_EQUAL(pwc_abort(t->w->client), 0);
    free(t->w);
    free(t);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every operation, through the daemon", test_through_the_daemon},
        {"every operation, without the daemon", test_without_the_daemon},
        {"a group of operations", test_group},
        {"the first error of a group", test_first_error},
        {"beside events", test_beside_events},
        {"a get through a copy", test_get_through_a_copy},
        {"what is refused", test_refusals},
        {"back-pressure", test_back_pressure},
        {"many requests", test_many},
        {"inside a handler", test_inside_a_handler},
        {"the daemon dies", test_daemon_dies},
        CU_TEST_INFO_NULL,
    };

    return suite_run("requests", tests);
}
