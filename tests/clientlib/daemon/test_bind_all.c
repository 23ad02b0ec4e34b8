/*
 * pwc_bind_all through the public calls, against a daemon on a thread: remotes that are bound at
 * their first use, by each kind of operation, and what goes wrong there.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/memory/region.h"
#include "clientlib/memory/window.h"
#include "pwc/am.h"
#include "tests/clientlib/daemon/operations.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/suite.h"

/* ---- the daemon's part ----------------------------------------------------------------------- */

/* A rank's contribution, as the library exchanges it. */
struct member {
    pwc_peer peer;
    struct pwc_key key;
    uint64_t length;
    uint32_t rights;
    int32_t regions;
};

/* Orders to the hook below, and its counts. */
static struct {
    _Atomic unsigned binds, unbinds;
    _Atomic int refuse;   /* the next bind: a negative errno; 0: nothing */
    _Atomic bool late;    /* the next bind waits for its answer until this is false again */
    _Atomic int delay_ms; /* delay of each bind */
    size_t no_memory;     /* allocating an array of elements of this size fails; 0: none fails */
    _Atomic unsigned exchanges;
    _Atomic int exchanged; /* the number that this rank has given as `regions` */
    int32_t other_regions; /* `regions` of rank 1 */
    uint64_t longer;       /* by so many bytes rank 1 exaggerates its region's length */
} script;

static void answer_exchange(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Exchanged piece = PWC__EXCHANGED__INIT;
    struct member members[2];

    memcpy(&members[0], request->exchange->data.data, sizeof(members[0]));
    script.exchanged = members[0].regions;
    members[1] = members[0];
    members[1].peer = pwc_peer_of(0, 1); /* the second context stands for rank 1 */
    members[1].regions = script.other_regions;
    members[1].length += script.longer;
    piece.data.len = sizeof(members);
    piece.data.data = (uint8_t *)members;
    piece.last = true;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_EXCHANGED;
    reply.exchanged = &piece;
    fake_daemon_reply(daemon, &reply, NULL, 0);
}

static bool hook(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    int refuse;

    switch (request->body_case) {
    case PWC__CLIENT_REQUEST__BODY_EXCHANGE:
        script.exchanges++;
        if (request->exchange->data.len != sizeof(struct member))
            return false;
        answer_exchange(daemon, request);
        return true;
    case PWC__CLIENT_REQUEST__BODY_BIND:
        refuse = atomic_exchange(&script.refuse, 0);
        if (refuse < 0)
            fake_daemon_error(daemon, request->id, refuse, "");
        script.binds += refuse == 0;
        while (script.late)
            usleep(100);
        usleep((useconds_t)script.delay_ms * 1000);
        return refuse < 0;
    case PWC__CLIENT_REQUEST__BODY_UNBIND:
        script.unbinds++;
        return false;
    default:
        return false;
    }
}

#ifndef __SANITIZE_ADDRESS__
void *__libc_calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
    return size > 0 && size == script.no_memory ? NULL : __libc_calloc(count, size);
}
#endif

static bool says(struct world *w, const char *words)
{
    char text[256] = "";

    pwc_error_text(w->client, text, sizeof(text));
    if (!strstr(text, words))
        fprintf(stderr, "\"%s\" has no \"%s\"\n", text, words);
    return strstr(text, words);
}

/* A world with a second context, and a remote of each rank, in the first context. */
struct all {
    struct world *w;
    pwc_ctx *b;
    pwc_remote *remotes[2];
    unsigned handled;
};

static void count_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    ++*(unsigned *)argument;
    (void)ctx;
    (void)am;
}

static struct all *all_new(bool pairs)
{
    struct all *a = calloc(1, sizeof(*a));

    memset(&script, 0, sizeof(script));
    script.other_regions = 1;
    a->w = world_new_sized(0, hook);
    a->w->daemon.pairs = pairs;
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(a->w->client, NULL, &a->b), 0);
    CU_ASSERT_EQUAL(pwc_am_register(a->b, HANDLER, count_message, &a->handled), 0);
    script.binds = 0;
    return a;
}

static void all_free(struct all *a)
{
    world_free(a->w);
    free(a);
}

static struct all *all_bound(bool pairs)
{
    struct all *a = all_new(pairs);

    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), 0);
    CU_ASSERT_EQUAL(script.binds, 0);
    return a;
}

/* ---- every operation ------------------------------------------------------------------------- */

/* The first use of a remote binds it, the second does not; both operations complete. */
static void use_each(bool pairs)
{
    for (unsigned v = 0; v < OPERATIONS; v++) {
        struct all *a = all_bound(pairs);
        pwc_remote *to = a->remotes[1];
        struct pwc_event event;

        for (uint64_t i = 1; i <= 2; i++) {
            CU_ASSERT_EQUAL(operations[v].run(a->w, to, 0, pwc_cid_u64(i)), 0);
            CU_ASSERT_EQUAL(script.binds, 1);
            CU_ASSERT_EQUAL_FATAL(pwc_wait(a->w->ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
            CU_ASSERT_EQUAL(event.status, 0);
            CU_ASSERT_EQUAL(event.id, i);
            CU_ASSERT_EQUAL(event.peer, pwc_ctx_peer(a->b));
        }
        CU_ASSERT_EQUAL(pwc_unbind(to), 0);
        CU_ASSERT_EQUAL(script.unbinds, 1);
        all_free(a);
    }
}

static void test_through_the_daemon(void)
{
    use_each(false);
}

static void test_without_the_daemon(void)
{
    use_each(true);
}

/* Operations through the bound remotes reach the region, and a program's own context is a rank like
 * others. */
static void test_data(void)
{
    struct all *a = all_bound(false);
    uint64_t word = 0;

    CU_ASSERT_EQUAL(pwc_put_wait(a->remotes[1], 64, "1234567", 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_STRING_EQUAL(a->w->memory + 64, "1234567");
    CU_ASSERT_EQUAL(pwc_get_wait(a->remotes[0], 64, &word, 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(memcmp(&word, "1234567", 8), 0);
    CU_ASSERT_EQUAL(script.binds, 2);
    all_free(a);
}

/* ---- checks before the bind ------------------------------------------------------------------ */

static void test_ranges(void)
{
    struct all *a = all_bound(false);
    size_t length = pwc_region_len(a->w->region);

    CU_ASSERT_EQUAL(pwc_remote_len(a->remotes[0]), length);
    CU_ASSERT_EQUAL(pwc_remote_len(a->remotes[1]), length);
    for (unsigned v = 0; v < OPERATIONS; v++)
        if (operations[v].ranged)
            CU_ASSERT_EQUAL(operations[v].run(a->w, a->remotes[1], length + 8, PWC_CID_NONE),
                            -ERANGE);
    CU_ASSERT_EQUAL(script.binds, 0);
    CU_ASSERT_EQUAL(pwc_unbind(a->remotes[1]), 0); /* never used */
    CU_ASSERT_EQUAL(pwc_unbind(a->remotes[0]), 0);
    CU_ASSERT_EQUAL(script.unbinds, 0);
    all_free(a);
}

/* Ranks without a region: their remotes lead to the peer alone. */
static void test_no_region(void)
{
    struct all *a = all_new(false);

    script.other_regions = 0;
    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(a->w->ctx, NULL, a->remotes), 0);
    CU_ASSERT_EQUAL(pwc_remote_len(a->remotes[1]), 0);
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], 0, PWC_CID_NONE), -ERANGE);
    CU_ASSERT_EQUAL(pwc_put_wait(a->remotes[1], 0, NULL, 0, PWC_CID_NONE, 0), 0);
    all_free(a);
}

static void test_refusals(void)
{
    struct all *a = all_new(false);
    pwc_remote *before = a->remotes[0] = (pwc_remote *)(uintptr_t)8;
    pwc_region foreign = {.client = NULL}, *local;

    CU_ASSERT_EQUAL(pwc_bind_all(NULL, a->w->region, a->remotes), -EINVAL);
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, a->w->region, NULL), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(a->w->client, 64, 0, &local), 0);
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, local, a->remotes), -ENOTSUP);
    CU_ASSERT_TRUE(says(a->w, "local only"));
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, &foreign, a->remotes), -EINVAL);
    CU_ASSERT_TRUE(says(a->w, "another client"));
    script.other_regions = -ENOTSUP;
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), -ECANCELED);
    CU_ASSERT_TRUE(says(a->w, "rank 1 of the job cannot take part"));
    CU_ASSERT_PTR_EQUAL(a->remotes[0], before);
    all_free(a);
}

#ifndef __SANITIZE_ADDRESS__
/* A rank without memory takes part in the exchange, so that the others do not wait for it. */
static void test_no_memory(void)
{
    struct all *a = all_new(false);

    script.no_memory = sizeof(struct member);
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), -ENOMEM);
    script.no_memory = 0;
    CU_ASSERT_EQUAL(script.exchanges, 1);
    CU_ASSERT_EQUAL(script.exchanged, -ENOMEM);
    CU_ASSERT_EQUAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), 0);
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], 0, PWC_CID_NONE), 0);
    all_free(a);
}

/* A rank without memory for a window takes part in the exchange, too. */
static void test_no_memory_for_window(void)
{
    struct all *a = all_new(false);
    pwc_window *window;

    script.no_memory = sizeof(struct window_member);
    CU_ASSERT_EQUAL(pwc_window_create(a->w->ctx, NULL, a->w->region, &window), -ENOMEM);
    script.no_memory = 0;
    CU_ASSERT_EQUAL(script.exchanges, 1);
    all_free(a);
}
#endif

/* ---- the first use fails --------------------------------------------------------------------- */

static void test_refused_bind(void)
{
    for (unsigned v = 0; v < OPERATIONS; v++) {
        struct all *a = all_bound(false);

        script.refuse = -EHOSTDOWN;
        CU_ASSERT_EQUAL(operations[v].run(a->w, a->remotes[1], 0, pwc_cid_u64(1)), -EHOSTDOWN);
        CU_ASSERT_EQUAL(script.binds, 0);
        CU_ASSERT_EQUAL(pwc_flush(a->w->ctx, PWC_ANY, 0), 0); /* nothing was submitted */
        CU_ASSERT_EQUAL(operations[v].run(a->w, a->remotes[1], 0, pwc_cid_u64(1)), 0);
        CU_ASSERT_EQUAL(script.binds, 1);
        (void)expect(a->w, PWC_LOCAL, 1, 0);
        all_free(a);
    }
}

/* The daemon restarts while it is asked for a bind: the library asks again. */
static void test_started_anew(void)
{
    struct all *a = all_bound(false);
    uint64_t here;

    script.refuse = -ECONNABORTED;
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], 0, pwc_cid_u64(1)), 0);
    CU_ASSERT_EQUAL(script.binds, 1);
    (void)expect(a->w, PWC_LOCAL, 1, 0);
    script.refuse = -ECONNABORTED;
    CU_ASSERT_EQUAL(pwc_get_wait(a->remotes[0], 0, &here, 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    all_free(a);
}

/* A bind that the daemon makes after the call's time was up is given back. */
static void test_late_answer(void)
{
    struct all *a = all_new(false);

    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), 0);
    world_limit(a->w, 50);
    script.late = true;
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], 0, PWC_CID_NONE), -ETIMEDOUT);
    CU_ASSERT_EQUAL(script.unbinds, 0);
    script.late = false;
    while (operation_put(a->w, a->remotes[1], 0, PWC_CID_NONE) != 0) /* the daemon is busy */
        continue;
    for (unsigned i = 0; i < WAIT_MS && script.unbinds + 1 < script.binds; i++)
        usleep(1000);
    CU_ASSERT_EQUAL(script.unbinds + 1, script.binds);
    CU_ASSERT_TRUE(script.unbinds > 0);
    all_free(a);
}

enum { TIMEOUT_MS = 1000, BIND_MS = 700 };

/* Returns how long a call takes until it gives up: pwc_put_wait, or pwc_put where the ring is full.
 * Both bind first, and the daemon takes nothing from the ring. */
static int64_t time_to_give_up(bool full)
{
    struct all *a = all_new(false);
    int64_t begun, took;
    int rc;

    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), 0);
    fake_hold(&a->w->daemon, true);
    script.delay_ms = 0;
    while (full && operation_put(a->w, a->remotes[0], 0, PWC_CID_NONE) == 0)
        continue;
    world_limit(a->w, TIMEOUT_MS);
    script.delay_ms = BIND_MS;
    begun = clock_now();
    rc = full ? pwc_put(a->remotes[1], 0, "1", 1, PWC_CID_NONE, PWC_CID_NONE, PWC_NO_RCE | PWC_WAIT)
              : pwc_put_wait(a->remotes[1], 0, "1", 1, PWC_CID_NONE, PWC_NO_RCE);
    took = clock_now() - begun;
    CU_ASSERT_EQUAL(rc, -ETIMEDOUT);
    fake_hold(&a->w->daemon, false);
    all_free(a);
    return took;
}

/* The timeout of a call covers the bind, too. A busy machine may delay an attempt; a call that does
 * not count the bind takes too long in each. */
static void test_time(void)
{
    enum { TRIES = 5 };

    for (int full = 0; full < 2; full++) {
        bool in_time = false;

        for (int i = 0; i < TRIES && !in_time; i++)
            in_time = time_to_give_up(full) < (TIMEOUT_MS + BIND_MS) * INT64_C(1000000);
        CU_ASSERT_TRUE(in_time);
    }
}

/* A rank that exaggerates its region's length: operations towards it are refused, others work. */
static void test_wrong_length(void)
{
    struct all *a = all_new(true);
    size_t length = pwc_region_len(a->w->region);

    script.longer = 4096;
    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(a->w->ctx, a->w->region, a->remotes), 0);
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], length + 8, PWC_CID_NONE), -EKEYREJECTED);
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[1], 0, PWC_CID_NONE), -EKEYREJECTED);
    CU_ASSERT_EQUAL(script.binds, 2);
    CU_ASSERT_EQUAL(script.unbinds, 2);
    CU_ASSERT_EQUAL(operation_put(a->w, a->remotes[0], 0, PWC_CID_NONE), 0);
    all_free(a);
}

struct attempt {
    struct all *a;
    int rc[OPERATIONS];
    int reply;
};

static void try_in_handler(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct attempt *attempt = argument;
    const struct pwc_am_send send = {.index = HANDLER, .src = "1", .len = 1};

    for (unsigned v = 0; v < OPERATIONS; v++)
        attempt->rc[v] = operations[v].run(attempt->a->w, attempt->a->remotes[1], 0, PWC_CID_NONE);
    attempt->reply = pwc_am_reply_long(ctx, am->token, attempt->a->remotes[0], 0, &send);
}

/* Inside a handler nothing is bound: operations over late remotes are refused with -EDEADLK. */
static void test_inside_a_handler(void)
{
    struct all *a = all_bound(false);
    struct attempt attempt = {.a = a};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_am_register(a->w->ctx, HANDLER, try_in_handler, &attempt), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(a->w->remote, &(struct pwc_am_send){.index = HANDLER, .flags = PWC_NO_LCE}),
        0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(a->w->ctx, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    for (unsigned v = 0; v < OPERATIONS; v++)
        CU_ASSERT_EQUAL(attempt.rc[v], -EDEADLK);
    CU_ASSERT_EQUAL(attempt.reply, -EDEADLK);
    CU_ASSERT_EQUAL(script.binds, 0);
    all_free(a);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every operation, through the daemon", test_through_the_daemon},
        {"every operation, without the daemon", test_without_the_daemon},
        {"data", test_data},
        {"ranges, lengths, remotes that are never used", test_ranges},
        {"no region", test_no_region},
        {"what is refused", test_refusals},
#ifndef __SANITIZE_ADDRESS__
        {"no memory", test_no_memory},
        {"no memory for a window", test_no_memory_for_window},
#endif
        {"a bind that is refused", test_refused_bind},
        {"a daemon that was started anew", test_started_anew},
        {"an answer that comes too late", test_late_answer},
        {"time", test_time},
        {"a wrong length", test_wrong_length},
        {"inside a handler", test_inside_a_handler},
        CU_TEST_INFO_NULL,
    };

    return suite_run("bind all", tests);
}
