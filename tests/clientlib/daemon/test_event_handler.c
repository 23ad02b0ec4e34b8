/*
 * pwc_set_handler, through the public calls, against a daemon on a thread: which calls give events
 * to the function, which do not, what the function may do, and that many events do not pile up.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/context.h"
#include "pwc/counter.h"
#include "pwc/signal.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/suite.h"

static const pwc_cid none; /* PWC_CID_NONE */

struct taken {
    struct two *t;
    unsigned count, local;
    uint64_t last;
    int probe, flush, wait, put;
};

static void take(pwc_ctx *ctx, const struct pwc_event *event, void *argument)
{
    struct taken *taken = argument;

    CU_ASSERT_EQUAL(event->status, 0);
    taken->count++;
    taken->local += event->kind == PWC_LOCAL;
    taken->last = event->id;
    (void)ctx;
}

static int put_id(struct two *t, uint64_t id)
{
    return pwc_put(t->to_b, 0, "1", 1, pwc_cid_u64(id), pwc_cid_u64(id), 0);
}

/* ---- the calls that wait -------------------------------------------------------------------- */

typedef int wait_somehow(struct two *t);

static int by_flush(struct two *t)
{
    return pwc_flush(t->a, PWC_ANY, WAIT_MS);
}

static int by_flush_of_one(struct two *t)
{
    return pwc_flush(t->a, pwc_ctx_peer(t->b), WAIT_MS);
}

static int by_put(struct two *t)
{
    return pwc_put_wait(t->to_b, 8, "2", 1, none, PWC_NO_RCE);
}

static int by_get(struct two *t)
{
    uint8_t byte;

    return pwc_get_wait(t->to_b, 8, &byte, 1, none, PWC_NO_RCE);
}

static int by_barrier(struct two *t)
{
    int rc = pwc_flush(t->a, PWC_ANY, WAIT_MS);

    return rc < 0 ? rc : pwc_barrier(t->a);
}

static wait_somehow *const ways[] = {by_flush, by_flush_of_one, by_put, by_get, by_barrier};

static void take_by_each(bool pairs)
{
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct two *t = two_new(pairs);
        struct taken taken = {.t = t};
        struct pwc_event event;

        CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &taken), 0);
        hold(t, !pairs);
        CU_ASSERT_EQUAL(put_id(t, 5), 0);
        hold(t, false);
        CU_ASSERT_EQUAL(ways[i](t), 0);
        if (taken.count == 0) /* the call did not have to wait, so the event stays for a probe */
            CU_ASSERT_EQUAL_FATAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 1);
        CU_ASSERT_TRUE(pairs || (ways[i] != by_put && ways[i] != by_get) || taken.count == 1);
        CU_ASSERT_TRUE(taken.count == 0 || (taken.count == 1 && taken.last == 5));
        CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 0);
        two_free(t);
    }
}

static void test_waiting_calls(void)
{
    take_by_each(false);
    take_by_each(true);
}

/* pwc_wait gives its caller the kind of event that was asked for, and the other events to the
 * function. */
static void test_wait(void)
{
    struct two *t = two_new(false);
    struct taken taken = {.t = t};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, 0, take, &taken), 0);
    CU_ASSERT_EQUAL(put_id(t, 1), 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, 1);
    CU_ASSERT_EQUAL(taken.count, 0);
    CU_ASSERT_EQUAL(put_id(t, 2), 0);
    for (unsigned i = 0; i < WAIT_MS && taken.count == 0; i++)
        CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_REMOTE, &event, 1), 0);
    CU_ASSERT_EQUAL(taken.count, 1);
    CU_ASSERT_EQUAL(taken.last, 2);
    CU_ASSERT_EQUAL(put_id(t, 3), 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, 3);
    two_free(t);
}

/* A wait for a counter gives events to the function. */
static void test_counter_wait(void)
{
    struct two *t = two_new(false);
    struct taken taken = {.t = t};

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, 0, take, &taken), 0);
    CU_ASSERT_EQUAL(put_id(t, 1), 0);
    for (unsigned i = 0; i < WAIT_MS && taken.count == 0; i++)
        CU_ASSERT_EQUAL(pwc_counter_wait(t->a, PWC_COUNT_ENDED, UINT64_MAX, 1), -ETIMEDOUT);
    CU_ASSERT_EQUAL(taken.count, 1);
    CU_ASSERT_EQUAL(taken.last, 1);
    two_free(t);
}

/* Guards that pwc_wait for one peer sleeps while a neighbour's ring holds an event of another peer:
 * neither the caller nor the function has asked for that event. */
static void test_wait_sleeps(void)
{
    struct two *t = two_new(true);
    struct taken taken = {.t = t};
    struct pwc_event event;
    pwc_remote *to_a;

    CU_ASSERT_EQUAL_FATAL(pwc_bind(t->b, pwc_ctx_peer(t->a), NULL, &to_a), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, 0, &event), 0); /* a maps the pair */
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &taken), 0);
    CU_ASSERT_EQUAL(pwc_put(to_a, 0, NULL, 0, none, pwc_cid_u64(1), PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, pwc_ctx_peer(t->a), PWC_REMOTE, &event, 50), 0);
    CU_ASSERT(atomic_load(&t->a->channel.shared->waits.asleep_ns) > 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, pwc_ctx_peer(t->b), PWC_REMOTE, &event, WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, 1);
    /* An event for the function ends the sleep, whatever its peer is. */
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_REMOTE, take, &taken), 0);
    CU_ASSERT_EQUAL(pwc_put(to_a, 0, NULL, 0, none, pwc_cid_u64(2), PWC_NO_LCE), 0);
    t->a->channel.asked_peer = pwc_ctx_peer(t->a);
    CU_ASSERT_EQUAL(channel_arm_drained(&t->a->channel, DOORBELL_FUTEX, PWC_LOCAL, PWC_REMOTE), 1);
    CU_ASSERT_EQUAL(channel_arm_drained(&t->a->channel, DOORBELL_FUTEX, PWC_REMOTE, PWC_LOCAL), 0);
    channel_disarm(&t->a->channel);
    CU_ASSERT_EQUAL(pwc_wait(t->a, pwc_ctx_peer(t->a), PWC_LOCAL, &event, 1), 0);
    CU_ASSERT_EQUAL(taken.count, 1);
    CU_ASSERT_EQUAL(taken.last, 2);
    two_free(t);
}

/* No function, another function, and another kind of event. */
static void test_setting(void)
{
    struct two *t = two_new(false);
    struct taken first = {.t = t}, second = {.t = t};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_set_handler(NULL, 0, take, &first), -EINVAL);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, 1u << 9, take, &first), -EINVAL);
    /* Messages have handlers of their own. */
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL | PWC_MESSAGE, take, &first), -EINVAL);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &first), 0);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, take, &second), 0);
    CU_ASSERT_EQUAL(put_id(t, 1), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 8, "2", 1, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(second.count, 1);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_REMOTE, take, &second), 0);
    CU_ASSERT_EQUAL(put_id(t, 2), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, NULL, NULL), 0);
    CU_ASSERT_EQUAL(put_id(t, 3), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(event.id, 3);
    CU_ASSERT_EQUAL(first.count, 0);
    CU_ASSERT_EQUAL(second.count, 1);
    two_free(t);
}

static void set_word(pwc_ctx *ctx, const struct pwc_event *event, void *word)
{
    __atomic_store_n((uint64_t *)word, event->id, __ATOMIC_RELEASE);
    (void)ctx;
}

/* A wait for a word gives events to the function, which may write the word. */
static void test_word(void)
{
    struct two *t = two_new(false);
    uint64_t word = 0;

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, set_word, &word), 0);
    CU_ASSERT_EQUAL(put_id(t, 6), 0);
    CU_ASSERT_EQUAL(pwc_wait_word(t->a, &word, PWC_EQ, 6, WAIT_MS), 1);
    two_free(t);
}

/* A probe gives nothing to the function. Events for the function neither keep the probe busy nor
 * make the descriptor readable, and none is lost. */
static void test_descriptor(void)
{
    struct two *t = two_new(false);
    struct taken taken = {.t = t};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_REMOTE, take, &taken), 0);
    CU_ASSERT_TRUE(pwc_fd(t->a) >= 0);
    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, "1", 1, none, pwc_cid_u64(4), PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_put(t->w->remote, 0, "1", 1, none, pwc_cid_u64(5), PWC_NO_LCE), 0);
    while (fake_executed(&t->w->daemon) < 2)
        usleep(100);
    CU_ASSERT_EQUAL(pwc_probe(t->a, PWC_ANY, PWC_LOCAL, &event), 0);
    CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, 1), 0);
    for (unsigned i = 0; i < WAIT_MS && taken.count < 2; i++)
        CU_ASSERT_EQUAL(pwc_wait(t->a, PWC_ANY, PWC_LOCAL, &event, 1), 0);
    CU_ASSERT_EQUAL(taken.last, 5);
    CU_ASSERT_EQUAL(taken.count, 2);
    two_free(t);
}

/* ---- the function --------------------------------------------------------------------------- */

static void try_all(pwc_ctx *ctx, const struct pwc_event *event, void *argument)
{
    struct taken *taken = argument;
    struct pwc_event other;

    if (taken->count++ > 0)
        return;
    taken->probe = pwc_probe(ctx, PWC_ANY, 0, &other);
    taken->flush = pwc_flush(ctx, PWC_ANY, 0);
    taken->wait = pwc_put_wait(taken->t->to_b, 0, "1", 1, none, 0);
    taken->put = pwc_put(taken->t->to_b, 64, "again", 6, none, none, PWC_NO_LCE | PWC_NO_RCE);
    CU_ASSERT_EQUAL(pwc_set_handler(ctx, PWC_LOCAL, NULL, NULL), 0);
    (void)event;
}

static void test_inside(void)
{
    struct two *t = two_new(false);
    struct taken taken = {.t = t};

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL, try_all, &taken), 0);
    CU_ASSERT_EQUAL(put_id(t, 1), 0);
    CU_ASSERT_EQUAL(put_id(t, 2), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(t->to_b, 8, "2", 1, none, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(taken.count, 1);
    CU_ASSERT_EQUAL(taken.probe, -EDEADLK);
    CU_ASSERT_EQUAL(taken.flush, -EDEADLK);
    CU_ASSERT_EQUAL(taken.wait, -EDEADLK);
    CU_ASSERT_EQUAL(taken.put, 0);
    CU_ASSERT_STRING_EQUAL(t->w->memory + 64, "again");
    two_free(t);
}

/* There are more events than the library keeps: a call that waits for another event gives them to
 * the function. */
static void test_flood(void)
{
    enum { ROUNDS = 200, PUTS = 500 };
    struct two *t = two_new(false);
    struct taken taken = {.t = t};

    CU_ASSERT_EQUAL(pwc_set_handler(t->a, PWC_LOCAL | PWC_REMOTE, take, &taken), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned j = 0; j < PUTS; j++)
            CU_ASSERT_EQUAL_FATAL(
                pwc_put(t->w->remote, 0, "1", 1, pwc_cid_u64(j), pwc_cid_u64(j), 0), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_flush(t->a, PWC_ANY, WAIT_MS), 0);
        while (taken.count < 2 * PUTS * (i + 1))
            CU_ASSERT_EQUAL_FATAL(pwc_put_wait(t->to_b, 0, "1", 1, none, PWC_NO_RCE), 0);
    }
    CU_ASSERT_EQUAL(taken.local, ROUNDS * PUTS);
    CU_ASSERT_EQUAL(taken.count, 2 * ROUNDS * PUTS);
    two_free(t);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"calls that wait", test_waiting_calls},
        {"a wait for other kinds", test_wait},
        {"waits for a counter", test_counter_wait},
        {"a wait for one peer sleeps", test_wait_sleeps},
        {"a wait for a word", test_word},
        {"a descriptor", test_descriptor},
        {"setting", test_setting},
        {"inside the function", test_inside},
        {"a flood", test_flood},
        CU_TEST_INFO_NULL,
    };

    return suite_run("event handler", tests);
}
