/* Handlers of active messages, through the public calls, against a daemon on a thread: when they
 * run, what they may call, and their replies. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "proto/clock.h"
#include "pwc/am.h"
#include "pwc/counter.h"
#include "pwc/signal.h"
#include "tests/suite.h"
#include "tests/lib/message.h"

enum {
    NOTE = 1, /* indices */
    TRY = 2,
    ANSWER = 3,
    NOTES_MAX = 4096,
    ALL = PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE,
};

static const pwc_cid none;

/* The first argument of each message, in the order in which the handlers ran. */
struct notes {
    uint64_t seen[NOTES_MAX];
    unsigned count;
};

static void note(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct notes *notes = argument;

    if (notes->count < NOTES_MAX)
        notes->seen[notes->count++] = am->count > 0 ? am->arguments[0] : 0;
    (void)ctx;
}

static struct notes *notes_new(struct world *w)
{
    struct notes *notes = calloc(1, sizeof(*notes));

    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, NOTE, note, notes), 0);
    return notes;
}

static int send_to(pwc_ctx *ctx, pwc_remote *remote, unsigned index, uint64_t value, unsigned flags)
{
    struct pwc_am_send m = message_of(index, &value);

    m.flags |= flags;
    return pwc_am_short(remote, &m);
}

static int send(struct world *w, unsigned index, uint64_t value, unsigned flags)
{
    return send_to(w->ctx, w->remote, index, value, flags);
}

static int put_event(struct world *w, uint64_t id)
{
    return pwc_put(w->remote, 0, NULL, 0, none, pwc_cid_u64(id), PWC_NO_LCE);
}

static void settle(struct world *w, unsigned executed)
{
    while (fake_executed(&w->daemon) < executed)
        usleep(100);
}

static int probe(struct world *w, unsigned kinds)
{
    return pwc_probe(w->ctx, PWC_ANY, kinds, &(struct pwc_event){0});
}

/* Messages and remote events of puts come in the order of submission. */
static void test_order(void)
{
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    struct pwc_event event;

    for (uint64_t i = 0; i < 50; i++) {
        CU_ASSERT_EQUAL(put_event(w, i), 0);
        CU_ASSERT_EQUAL(send(w, NOTE, i, PWC_AM_NO_REPLY), 0);
    }
    for (uint64_t i = 0; i < 50; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, ALL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.kind, PWC_REMOTE);
        CU_ASSERT_EQUAL(event.id, i);
        CU_ASSERT_EQUAL(notes->count, i);
        CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, ALL, &event, WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.kind, PWC_MESSAGE);
        CU_ASSERT_EQUAL(event.id, NOTE);
        CU_ASSERT_EQUAL(notes->count, i + 1);
        CU_ASSERT_EQUAL(notes->seen[i], i);
    }
    expect_silence(w);
    world_free(w);
    free(notes);
}

/* ---- replies --------------------------------------------------------------------------------- */

/* How often the handler `try` replies, and what its calls returned. */
struct trial {
    struct world *world;
    pwc_remote *elsewhere; /* bound to another peer */
    pwc_remote *of_other;  /* bound to the requester, in another context */
    unsigned replies;
    int results[8];
    unsigned ran;
    uint64_t token; /* of the last request */
    struct pwc_am last;
};

static void try(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct trial *t = argument;
    int *result = t->results;
    uint64_t value = 77;
    struct pwc_am_send good = message_of(NOTE, &value), long_one = good, fenced = good;

    long_one.count = 17;
    fenced.flags = PWC_FENCE;
    t->ran++;
    t->last = *am;
    if (t->replies > 0) {
        *result++ = pwc_am_reply_short(ctx, am->token + 1, &good);
        *result++ = t->token ? pwc_am_reply_short(ctx, t->token, &good) : 0;
        *result++ = pwc_am_reply_short(ctx, am->token, &long_one);
        *result++ = pwc_am_reply_short(ctx, am->token, &fenced);
    }
    for (unsigned i = 0; i < t->replies; i++)
        *result++ = pwc_am_reply_short(ctx, am->token, &good);
    t->token = am->token;
}

static void test_replies(void)
{
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    struct trial t = {.world = w};

    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, TRY, try, &t), 0);
    CU_ASSERT_EQUAL(pwc_am_reply_short(w->ctx, 0, &(struct pwc_am_send){.index = NOTE}), -ESTALE);
    CU_ASSERT_EQUAL(pwc_am_reply_medium(w->ctx, 1, &(struct pwc_am_send){.index = NOTE}), -ESTALE);
    CU_ASSERT_EQUAL(
        pwc_am_reply_long(w->ctx, 1, w->remote, 0, &(struct pwc_am_send){.index = NOTE}), -ESTALE);
    /* The handler does not reply: the requester gets its reserved room back anyway. */
    for (unsigned i = 0; i < 500; i++) {
        CU_ASSERT_EQUAL_FATAL(send(w, TRY, 0, 0), 0);
        (void)expect(w, PWC_MESSAGE, TRY, 0);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    }
    CU_ASSERT_EQUAL(notes->count, 0);
    /* A reply after the handler has returned is refused. */
    CU_ASSERT_EQUAL(pwc_am_reply_short(w->ctx, t.token, &(struct pwc_am_send){.index = NOTE}),
                    -ESTALE);

    /* The handler replies twice, and with wrong arguments. */
    t.replies = 2;
    CU_ASSERT_EQUAL(send(w, TRY, 0, 0), 0);
    (void)expect(w, PWC_MESSAGE, TRY, 0);
    CU_ASSERT_EQUAL(t.results[0], -ESTALE);
    CU_ASSERT_EQUAL(t.results[1], -ESTALE);
    CU_ASSERT_EQUAL(t.results[2], -E2BIG);
    CU_ASSERT_EQUAL(t.results[3], -EINVAL);
    CU_ASSERT_EQUAL(t.results[4], 0);
    CU_ASSERT_EQUAL(t.results[5], -EALREADY);
    (void)expect(w, PWC_MESSAGE, NOTE, 0);
    CU_ASSERT_EQUAL(notes->count, 1);
    CU_ASSERT_EQUAL(notes->seen[0], 77);

    /* A reply to a request that asked for none is an error. */
    CU_ASSERT_EQUAL(send(w, TRY, 0, PWC_AM_NO_REPLY), 0);
    (void)expect(w, PWC_MESSAGE, TRY, 0);
    CU_ASSERT_EQUAL(t.last.token, 0);
    CU_ASSERT_EQUAL(t.results[4], -EPERM);
    CU_ASSERT_EQUAL(t.results[5], -EPERM);
    expect_silence(w);
    CU_ASSERT_EQUAL(w->daemon.contexts[0].session.shared->reply_released,
                    500 * (uint64_t)event_bytes(message_bytes_max(FAKE_PACKED_MAX)));
    world_free(w);
    free(notes);
}

/* Replies to the request with a message to TRY. That handler runs on a reply, so it may not reply
 * itself. */
static void answer(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct trial *t = argument;
    pwc_remote *right = t->world->remote;
    const struct {
        int kind;
        pwc_remote *to;
        struct pwc_am_send message;
        int expected;
    } rows[] = {
        {PWC_AM_LONG, t->elsewhere, {.index = TRY}, -EINVAL},
        {PWC_AM_LONG, t->of_other, {.index = TRY}, -EINVAL},
        {PWC_AM_LONG, right, {.index = TRY, .src = am, .len = BIG}, -EFAULT},
        {PWC_AM_MEDIUM, right, {.index = TRY, .src = am, .len = FAKE_PACKED_MAX + 1}, -EMSGSIZE},
        {PWC_AM_SHORT, right, {.index = TRY, .flags = PWC_AM_NO_REPLY}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = TRY, .flags = PWC_NO_RCE}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = TRY, .flags = PWC_NOTIFY}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = TRY, .flags = PWC_FENCE}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = TRY, .flags = PWC_WAIT}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = 256}, -EINVAL},
        {PWC_AM_SHORT, right, {.index = TRY, .lid = pwc_cid_u64(4)}, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CU_ASSERT_EQUAL(message_reply(rows[i].kind, ctx, am->token, rows[i].to, 0, rows[i].message),
                        rows[i].expected);
}

static void test_reply_to_reply(void)
{
    struct world *w = world_new();
    struct trial t = {.world = w, .replies = 1};
    pwc_ctx *other;

    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 1, NULL, &t.elsewhere), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &other), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(other, 0, NULL, &t.of_other), 0);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, TRY, try, &t), 0);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, ANSWER, answer, &t), 0);
    CU_ASSERT_EQUAL(send(w, ANSWER, 0, 0), 0);
    (void)expect(w, PWC_MESSAGE, ANSWER, 0);
    (void)expect(w, PWC_MESSAGE, TRY, 0);
    (void)expect(w, PWC_LOCAL, 4, 0);
    CU_ASSERT_EQUAL(t.last.is_reply, 1);
    CU_ASSERT_EQUAL(t.last.token, 0);
    CU_ASSERT_EQUAL(t.results[4], -EPERM);
    expect_silence(w);
    world_free(w);
}

/* ---- calls that handlers may make ------------------------------------------------------------ */

struct forbidden {
    struct world *world;
    pwc_ctx *other;
    int results[24];
    unsigned count;
    int allowed;
};

static void call_all(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct forbidden *f = argument;
    pwc_client *client = f->world->client, *attached;
    struct pwc_attr attr = {.socket = f->world->daemon.path, .job = "test", .size = 2};
    struct pwc_event event;
    struct pwc_key key;
    pwc_region *region;
    pwc_remote *remote;
    pwc_ctx *created;
    const uint64_t word = 0;
    const int results[] = {
        pwc_probe(ctx, PWC_ANY, 0, &event),
        pwc_wait(ctx, PWC_ANY, 0, &event, 0),
        pwc_probe_n(ctx, PWC_ANY, 0, &event, 1),
        pwc_yield(ctx, 0, 2),
        pwc_flush(ctx, PWC_ANY, -1),
        pwc_flush(ctx, 0, -1),
        pwc_wait_word(ctx, &word, PWC_EQ, word, 0),
        pwc_counter_wait(ctx, PWC_COUNT_ENDED, 0, 0),
        pwc_put(f->world->remote, 0, &word, 8, PWC_CID_NONE, PWC_CID_NONE, PWC_WAIT),
        pwc_put_wait(f->world->remote, 0, &word, 8, PWC_CID_NONE, 0),
        pwc_bind(ctx, 0, NULL, &remote),
        pwc_unbind(f->world->remote),
        pwc_alloc(client, 64, PWC_REMOTE_RW, &region),
        pwc_register(client, &event, sizeof(event), 0, 0, &region),
        pwc_region_free(f->world->region),
        pwc_exchange(ctx, NULL, 0, NULL),
        pwc_barrier(ctx),
        pwc_ctx_create(client, NULL, &created),
        pwc_ctx_destroy(ctx),
        pwc_finalize(client),
        pwc_abort(client),
        pwc_probe(f->other, PWC_ANY, 0, &event), /* a probe of another context is refused, too */
        pwc_ctx_destroy(f->other),
        pwc_init(&attr, &attached),
    };

    f->count = sizeof(results) / sizeof(results[0]);
    memcpy(f->results, results, sizeof(results));
    /* All other calls do not block, so they are allowed. */
    f->allowed = pwc_put(f->world->remote, 0, "12345678", 8, none, none, PWC_NO_LCE | PWC_NO_RCE);
    if (f->allowed == 0)
        f->allowed =
            pwc_get(f->world->remote, 0, f->world->memory, 8, none, none, PWC_NO_LCE | PWC_NO_RCE);
    if (f->allowed == 0)
        f->allowed = send_to(ctx, f->world->remote, NOTE, 8, 0);
    if (f->allowed == 0)
        f->allowed = pwc_am_register(ctx, 200, note, NULL);
    CU_ASSERT_EQUAL(pwc_region_key(f->world->region, &key), 0);
    CU_ASSERT_TRUE(pwc_fd(f->other) >= 0);
    (void)am;
}

static void test_forbidden(void)
{
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    struct forbidden f = {.world = w};

    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &f.other), 0);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, TRY, call_all, &f), 0);
    CU_ASSERT_EQUAL(send(w, TRY, 0, 0), 0);
    (void)expect(w, PWC_MESSAGE, TRY, 0);
    CU_ASSERT_EQUAL(f.count, 24);
    for (unsigned i = 0; i < f.count; i++)
        CU_ASSERT_EQUAL(f.results[i], -EDEADLK);
    CU_ASSERT_EQUAL(f.allowed, 0);
    (void)expect(w, PWC_MESSAGE, NOTE, 0);
    CU_ASSERT_EQUAL(notes->seen[0], 8);
    /* Once the handler has returned, these calls work again. */
    CU_ASSERT_EQUAL(pwc_ctx_destroy(f.other), 0);
    expect_silence(w);
    world_free(w);
    free(notes);
}

/* ---- requests that wait, and messages that come to nothing ----------------------------------- */

/* Replies with the longest message and id, so that few of them fill the ring. */
static void reply_long_id(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct notes *notes = argument;
    static const uint8_t bytes[FAKE_PACKED_MAX];
    static const uint64_t arguments[PWC_AM_ARGUMENTS_MAX];
    int rc = pwc_am_reply_medium(ctx, am->token,
                                 &(struct pwc_am_send){.index = NOTE,
                                                       .arguments = arguments,
                                                       .count = PWC_AM_ARGUMENTS_MAX,
                                                       .src = bytes,
                                                       .len = sizeof(bytes),
                                                       .lid = pwc_cid_bytes(bytes, PWC_CID_MAX)});

    CU_ASSERT_EQUAL(rc, 0);
    note(ctx, am, notes);
}

static void *let_answers_go(void *argument)
{
    struct world *w = argument;
    struct doorbell_word *bell = &w->daemon.contexts[1].session.shared->event_bell;

    while (atomic_load(&bell->armed) == 0) /* waits until the main thread sleeps, or is about to */
        usleep(100);
    fake_hold_answers(&w->daemon, false);
    return NULL;
}

static void test_reply_ring_full(void)
{
    enum { SENT = 40 };
    struct pwc_ctx_attr small = {.answer_bytes = 1, .reply_bytes = 1 << 20};
    struct world *w = world_new();
    struct notes notes = {0}, back = {0};
    unsigned before, ran;
    struct pwc_event event;
    pwc_remote *remote;
    pthread_t thread;
    pwc_ctx *ctx;

    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, &small, &ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(ctx, pwc_ctx_peer(ctx), NULL, &remote), 0);
    CU_ASSERT_EQUAL(pwc_am_register(ctx, TRY, reply_long_id, &notes), 0);
    CU_ASSERT_EQUAL(pwc_am_register(ctx, NOTE, note, &back), 0);
    fake_hold_answers(&w->daemon, true);
    before = fake_executed(&w->daemon);
    for (unsigned i = 0; i < SENT; i++)
        CU_ASSERT_EQUAL_FATAL(send_to(ctx, remote, TRY, i, 0), 0);
    CU_ASSERT_EQUAL(pwc_put(remote, 0, NULL, 0, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
    settle(w, before + SENT + 1);

    /* Local events are still reported; the remote one stands after the requests, so it is not. */
    CU_ASSERT_EQUAL(pwc_wait(ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, 1);
    CU_ASSERT_EQUAL(pwc_wait(ctx, PWC_ANY, PWC_REMOTE, &event, 5), 0);
    ran = notes.count;
    CU_ASSERT_TRUE(ran > 0 && ran < SENT);
    CU_ASSERT_EQUAL(pwc_wait(ctx, PWC_ANY, 0, &event, 5), 0);
    CU_ASSERT_EQUAL(notes.count, ran);

    /* A sleeper continues when there is room again. */
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_answers_go, w), 0);
    CU_ASSERT_EQUAL(pwc_wait(ctx, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(event.id, 2);
    CU_ASSERT_EQUAL(notes.count, SENT);
    for (unsigned i = 0; i < SENT; i++)
        CU_ASSERT_EQUAL(notes.seen[i], i);
    CU_ASSERT_EQUAL(pwc_flush(ctx, PWC_ANY, -1), 0);
    while (back.count < SENT)
        CU_ASSERT_EQUAL_FATAL(pwc_wait(ctx, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    world_free(w);
}

/* A Long whose region was freed, and a message whose handler was removed: no handler runs, but the
 * library sends an empty reply. */
static void test_come_to_nothing(void)
{
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    pwc_region *region;
    struct pwc_key key;
    pwc_remote *remote;
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 8192, PWC_REMOTE_RW, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &remote), 0);
    CU_ASSERT_EQUAL(
        pwc_am_long(remote, 100,
                    &(struct pwc_am_send){
                        .index = NOTE, .src = w->memory, .len = 5000, .flags = PWC_NO_LCE}),
        0);
    settle(w, 1);
    CU_ASSERT_EQUAL(pwc_region_free(region), 0);
    event = expect(w, PWC_MESSAGE, NOTE, -EKEYREJECTED);
    CU_ASSERT_EQUAL(event.length, 5000);
    CU_ASSERT_EQUAL(event.peer, 0);
    settle(w, 2); /* the empty reply */

    CU_ASSERT_EQUAL(send(w, NOTE, 1, 0), 0);
    settle(w, 3);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, NOTE, NULL, NULL), 0);
    (void)expect(w, PWC_MESSAGE, NOTE, -ENOSYS);
    settle(w, 4);

    /* Where the daemon knows already that the region was freed, the sender gets an error. */
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, NOTE, note, notes), 0);
    CU_ASSERT_EQUAL(
        pwc_am_long(remote, 100,
                    &(struct pwc_am_send){
                        .index = NOTE, .src = w->memory, .len = 5000, .flags = PWC_NO_LCE}),
        0);
    (void)expect(w, PWC_LOCAL, 0, -EKEYREJECTED);
    CU_ASSERT_EQUAL(notes->count, 0);
    expect_silence(w);
    CU_ASSERT_EQUAL(w->daemon.contexts[0].session.shared->reply_released,
                    3 * (uint64_t)event_bytes(message_bytes_max(FAKE_PACKED_MAX)));
    world_free(w);
    free(notes);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void *release_later(void *argument)
{
    struct world *w = argument;
    struct doorbell_word *bell = &w->daemon.contexts[0].session.shared->event_bell;

    while (atomic_load(&bell->armed) == 0) /* waits until the main thread sleeps, or is about to */
        usleep(100);
    fake_hold(&w->daemon, false);
    return NULL;
}

static void test_wait(void)
{
    enum { SHORT_MS = 200 };
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    struct pwc_event event;
    pthread_t thread;

    for (unsigned round = 0; round < 10; round++) {
        fake_hold(&w->daemon, true);
        CU_ASSERT_EQUAL(send(w, NOTE, round, 0), 0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, release_later, w), 0);
        (void)expect(w, PWC_MESSAGE, NOTE, 0);
        pthread_join(thread, NULL);
    }
    /* A wait for another kind of event runs the handler, and waits on. */
    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(send(w, NOTE, 10, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, release_later, w), 0);
    for (int i = 0; notes->count < 11 && i < WAIT_MS / SHORT_MS; i++) {
        int64_t begun = now_ns();

        CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &event, SHORT_MS), 0);
        CU_ASSERT(now_ns() - begun >= SHORT_MS * INT64_C(1000000));
    }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(notes->count, 11);
    CU_ASSERT_EQUAL(notes->seen[10], 10);
    world_free(w);
    free(notes);
}

static void test_descriptor(void)
{
    struct world *w = world_new();
    struct notes *notes = notes_new(w);
    struct pollfd readable = {.fd = pwc_fd(w->ctx), .events = POLLIN};

    CU_ASSERT_EQUAL(probe(w, PWC_LOCAL), 0);
    for (unsigned round = 0; round < 50; round++) {
        CU_ASSERT_EQUAL(send(w, NOTE, round, 0), 0);
        while (notes->count <= round) {
            CU_ASSERT_EQUAL_FATAL(poll(&readable, 1, WAIT_MS), 1);
            CU_ASSERT_EQUAL(probe(w, PWC_LOCAL), 0);
        }
    }
    world_free(w);
    free(notes);
}

/* A flush runs handlers, and waits for what they submit. */
static void test_flush(void)
{
    struct world *w = world_new();
    struct notes notes = {0}, back = {0};

    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, TRY, reply_long_id, &notes), 0);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, NOTE, note, &back), 0);
    for (unsigned i = 0; i < 40; i++) {
        CU_ASSERT_EQUAL(put_event(w, i), 0);
        CU_ASSERT_EQUAL(send(w, TRY, i, 0), 0);
    }
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, -1), 0);
    CU_ASSERT_EQUAL(notes.count, 40);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 40 + 40 + 40 + 1);
    for (unsigned i = 0; i < 40; i++)
        (void)expect(w, PWC_REMOTE, i, 0);
    for (unsigned i = 0; i < 40; i++)
        CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0}, WAIT_MS), 1);
    expect_silence(w);
    CU_ASSERT_EQUAL(back.count, 40);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"in order with events", test_order},
        {"replies: none, one, two, late", test_replies},
        {"replies to replies", test_reply_to_reply},
        {"what a handler must not do", test_forbidden},
        {"a full ring of replies", test_reply_ring_full},
        {"messages that come to nothing", test_come_to_nothing},
        {"wait runs handlers", test_wait},
        {"the descriptor", test_descriptor},
        {"flush runs handlers", test_flush},
        CU_TEST_INFO_NULL,
    };

    return suite_run("handlers", tests);
}
