/* Puts with signal and waits for a word through the public calls: the puts on both paths, against a
 * daemon on a thread, and without it between two contexts. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pwc/request.h"
#include "pwc/signal.h"
#include "tests/count.h"
#include "tests/clientlib/daemon/client_path.h"
#include "tests/lib/message.h"
#include "tests/suite.h"

enum {
    HANDLER = 3,
    WORD = 16,         /* offset of the word that is signalled */
    THERE = 64,        /* offset of the payload */
    HERE = 512 * 1024, /* where the payload comes from */
};

static int signal_put(struct path *p, size_t len, uint64_t value, pwc_cid lid, unsigned flags)
{
    return pwc_put_signal(p->to_b, THERE, p->w->memory + HERE, len, WORD, value, PWC_ADD, lid,
                          flags);
}

static int wait_until(struct path *p, enum pwc_compare compare, uint64_t value)
{
    return pwc_wait_word(p->b, &p->words[WORD / 8], compare, value, WAIT_MS);
}

/* ---- puts ------------------------------------------------------------------------------------ */

/* Payload and word are there when the local event comes, and the target has no event. */
static void signals(struct path *p)
{
    static const struct {
        size_t len;
        enum pwc_atomic_op op;
        uint64_t old, value, after;
    } rows[] = {
        {0, PWC_SET, 5, 7, 7},
        {0, PWC_ADD, 5, 7, 12},
        {8, PWC_ADD, UINT64_MAX, 2, 1},
        {100, PWC_SET, 1, UINT64_MAX, UINT64_MAX},
        {FAKE_PACKED_MAX, PWC_ADD, 0, 1, 1},
        {BIG, PWC_SET, 9, 0, 0},
        {BIG, PWC_ADD, 0, UINT64_C(1) << 63, UINT64_C(1) << 63},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned executed = fake_executed(&p->w->daemon);

        fill(p->w->memory + HERE, BIG, (unsigned)i);
        memset(p->w->memory + THERE, 0xee, BIG + 1);
        p->words[WORD / 8] = rows[i].old;
        CU_ASSERT_EQUAL(pwc_put_signal(p->to_b, THERE, rows[i].len ? p->w->memory + HERE : NULL,
                                       rows[i].len, WORD, rows[i].value, rows[i].op, pwc_cid_u64(i),
                                       0),
                        0);
        CU_ASSERT_EQUAL(wait_until(p, PWC_EQ, rows[i].after), 1);
        CU_ASSERT_EQUAL(memcmp(p->w->memory + THERE, p->w->memory + HERE, rows[i].len), 0);
        expect_op(p->a, PWC_LOCAL, PWC_OP_SIGNAL, i, 0, rows[i].len);
        CU_ASSERT_EQUAL(p->w->memory[THERE + rows[i].len], 0xee);
        CU_ASSERT_EQUAL(p->words[WORD / 8], rows[i].after);
        CU_ASSERT(p->words[WORD / 8 - 1] == 0 && p->words[WORD / 8 + 1] == 0);
        expect_nothing(p->b);
        check_path(p, executed);
    }
}

static void test_signals(void)
{
    on_both(signals);
}

/* Without a local event only the word shows the end. A long local id comes back whole. */
static void local_ids(struct path *p)
{
    uint8_t id[PWC_CID_MAX + 1];
    struct pwc_event event;

    CU_ASSERT_EQUAL(signal_put(p, 8, 1, PWC_CID_NONE, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(wait_until(p, PWC_EQ, 1), 1);
    expect_nothing(p->a);
    fill(id, sizeof(id), 1);
    CU_ASSERT_EQUAL(signal_put(p, 8, 1, pwc_cid_bytes(id, PWC_CID_MAX), 0), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(p->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT(event.id_size == PWC_CID_MAX && memcmp(event.data, id, PWC_CID_MAX) == 0);
    CU_ASSERT_EQUAL(signal_put(p, 8, 1, pwc_cid_bytes(id, PWC_CID_MAX + 1), 0), -EINVAL);
    CU_ASSERT_EQUAL(p->words[WORD / 8], 2);
}

static void test_local_ids(void)
{
    on_both(local_ids);
}

/* A request counts signals, and shows the bytes of the last one's payload. */
static void requests(struct path *p)
{
    pwc_request *request;
    struct pwc_status status;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(p->a, &request), 0);
    CU_ASSERT_EQUAL(signal_put(p, 0, 1, pwc_cid_request(request), 0), 0);
    CU_ASSERT_EQUAL(signal_put(p, 100, 1, pwc_cid_request(request), 0), 0);
    CU_ASSERT_EQUAL(signal_put(p, BIG, 1, pwc_cid_request(request), PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(request, &status, WAIT_MS), 1);
    CU_ASSERT(status.status == 0 && status.count == 3 && status.bytes == BIG);
    CU_ASSERT_EQUAL(status.peer, pwc_ctx_peer(p->b));
    CU_ASSERT_EQUAL(p->words[WORD / 8], 3);
    CU_ASSERT_EQUAL(
        pwc_put_signal(p->to_b, 0, NULL, 0, WORD + 4, 1, PWC_ADD, pwc_cid_request(request), 0),
        -EINVAL);
    /* The request counts no operation after a refusal. */
    CU_ASSERT_EQUAL(pwc_request_free(request), 0);
    expect_nothing(p->a);
}

static void test_requests(void)
{
    on_both(requests);
}

/* ---- checks of puts -------------------------------------------------------------------------- */

/* An operation that is refused changes nothing. */
static void checks(struct path *p)
{
    enum { END = 1 << 20 };
    static const struct {
        uint64_t off, len, word;
        unsigned op, flags;
        int result;
    } rows[] = {
        {0, 8, 8, PWC_ADD, PWC_FENCE | PWC_UNORDERED, 0},
        {0, 8, 8, PWC_ADD, PWC_LCE_SOURCE, 0},
        {0, 8, 8, PWC_ADD, PWC_NO_RCE, -EINVAL},
        {0, 8, 8, PWC_ADD, PWC_NOTIFY, -EINVAL},
        {0, 8, 8, PWC_ADD, 1u << 15, -EINVAL},
        {0, 8, 8, PWC_PROD, 0, -EINVAL},
        {0, 8, 8, PWC_READ, 0, -EINVAL},
        {0, 8, 8, UINT32_MAX, 0, -EINVAL},
        {0, 8, 4, PWC_ADD, 0, -EINVAL},
        {0, 8, 9, PWC_ADD, 0, -EINVAL},
        {0, 8, END - 8, PWC_ADD, 0, 0},
        {0, 8, END, PWC_ADD, 0, -ERANGE},
        {0, 0, END, PWC_ADD, 0, -ERANGE},
        {0, 8, UINT64_MAX - 7, PWC_ADD, 0, -ERANGE},
        {END - 8, 8, 8, PWC_ADD, 0, 0},
        {END - 7, 8, 8, PWC_ADD, 0, -ERANGE},
        {END + 1, 0, 8, PWC_ADD, 0, -ERANGE},
        {UINT64_MAX - 7, 8, 8, PWC_ADD, 0, -ERANGE},
        {0, FAKE_MESSAGE_MAX + 1, 8, PWC_ADD, 0, -EMSGSIZE},
    };
    static const uint8_t zeros[8];
    uint64_t sum = 0;

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t before = p->words[1] + p->words[END / 8 - 1];

        CU_ASSERT_EQUAL(pwc_put_signal(p->to_b, rows[i].off, zeros, rows[i].len, rows[i].word, 1,
                                       (enum pwc_atomic_op)rows[i].op, PWC_CID_NONE,
                                       rows[i].flags | PWC_NO_LCE),
                        rows[i].result);
        CU_ASSERT_EQUAL(pwc_flush(p->a, PWC_ANY, WAIT_MS), 0);
        sum = p->words[1] + p->words[END / 8 - 1];
        if (rows[i].result < 0)
            CU_ASSERT_EQUAL(sum, before);
    }
    CU_ASSERT(sum > 0);
    expect_nothing(p->a);
}

static void test_checks(void)
{
    on_both(checks);
}

/* The word needs the right to write, also where there is no payload. */
static void rights(struct path *p)
{
    static const struct {
        unsigned rights;
        int result;
    } rows[] = {{PWC_REMOTE_READ, -EKEYREJECTED}, {PWC_REMOTE_WRITE, 0}, {PWC_REMOTE_RW, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        pwc_region *region;
        uint64_t *word;
        pwc_remote *to;

        CU_ASSERT_EQUAL_FATAL(pwc_alloc(p->w->client, 64, rows[i].rights, &region), 0);
        to = bind_to_b(p, region);
        word = pwc_region_addr(region);
        for (size_t len = 0; len <= 8; len += 8)
            CU_ASSERT_EQUAL(
                pwc_put_signal(to, 32, p->w->memory, len, 0, 3, PWC_ADD, PWC_CID_NONE, PWC_NO_LCE),
                rows[i].result);
        expect_nothing(p->a);
        CU_ASSERT_EQUAL(*word, rows[i].result == 0 ? 6 : 0);
    }
}

static void test_rights(void)
{
    on_both(rights);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Each comparison, for each pair of values, as unsigned numbers. With a timeout of 0 the call looks
 * once. */
static void test_comparisons(void)
{
    static const uint64_t values[] = {0, 1, 2, (uint64_t)INT64_MAX, UINT64_MAX};
    struct world *w = world_new();

    for (size_t i = 0; i < COUNT(values); i++)
        for (size_t j = 0; j < COUNT(values); j++) {
            const uint64_t word = values[i];
            const int expected[] = {[PWC_EQ] = i == j, [PWC_NE] = i != j, [PWC_GT] = i > j,
                                    [PWC_GE] = i >= j, [PWC_LT] = i < j,  [PWC_LE] = i <= j};

            for (unsigned c = 0; c < COUNT(expected); c++)
                CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, &word, (enum pwc_compare)c, values[j], 0),
                                expected[c]);
        }
    world_free(w);
}

/* A wait for a word times out although events stand in the rings, and leaves these events there. */
static void test_timeouts(void)
{
    struct world *w = world_new();
    const uint64_t words[2] = {1, 1};
    const uint8_t *odd = (const uint8_t *)words + 4;

    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, words, PWC_EQ, 0, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, words, PWC_EQ, 0, 20), 0);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, words, PWC_EQ, 1, -1), 1);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, words, (enum pwc_compare)(PWC_LE + 1), 1, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, words, (enum pwc_compare) - 1, 1, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, (const void *)odd, PWC_NE, 5, 0), -EINVAL);
    (void)expect(w, PWC_LOCAL, 1, 0);
    (void)expect(w, PWC_REMOTE, ~UINT64_C(1), 0);
    expect_silence(w);
    world_free(w);
}

static void change_word(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    uint64_t *word = argument;

    *word += am->arguments[0];
    (void)ctx;
}

/* A wait for a word runs handlers, one of which changes the word. Events stay in their rings. */
static void handlers(struct path *p)
{
    uint64_t word = 0, amount = 5;
    struct pwc_am_send m = message_of(HANDLER, &amount);

    CU_ASSERT_EQUAL(pwc_am_register(p->b, HANDLER, change_word, &word), 0);
    CU_ASSERT_EQUAL(pwc_put(p->to_b, 0, NULL, 0, PWC_CID_NONE, pwc_cid_u64(8), PWC_NO_LCE), 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(pwc_am_short(p->to_b, &m), 0);
    CU_ASSERT_EQUAL(pwc_wait_word(p->b, &word, PWC_EQ, 10, WAIT_MS), 1);
    expect_op(p->b, PWC_REMOTE, PWC_OP_PUT, 8, 0, 0);
}

static void test_handlers(void)
{
    on_both(handlers);
}

/* ---- sleeps ---------------------------------------------------------------------------------- */

/* An act on another thread, once the context that waits sleeps or is about to sleep. */
struct later {
    struct path *p;
    void (*act)(struct path *p);
};

static void *act_later(void *argument)
{
    struct later *l = argument;
    struct doorbell_word *bell = &l->p->w->daemon.contexts[1].session.shared->event_bell;

    while (atomic_load(&bell->armed) == 0)
        usleep(100);
    l->act(l->p);
    return NULL;
}

static void release(struct path *p)
{
    fake_hold(&p->w->daemon, false);
}

static void store(struct path *p)
{
    __atomic_fetch_add(&p->words[WORD / 8], 1, __ATOMIC_RELEASE);
}

static void sleep_until(struct path *p, void (*act)(struct path *p), uint64_t value)
{
    struct later l = {p, act};
    pthread_t thread;
    int rc;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, act_later, &l), 0);
    rc = wait_until(p, PWC_GE, value);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL_FATAL(rc, 1);
}

/* A wait that sleeps ends after the daemon's signal, and also after a store that rings no bell. */
static void sleeps(struct path *p)
{
    for (uint64_t round = 0; round < 40; round += 2) {
        if (!p->direct) {
            fake_hold(&p->w->daemon, true);
            CU_ASSERT_EQUAL(signal_put(p, 8, 1, PWC_CID_NONE, PWC_NO_LCE), 0);
        }
        sleep_until(p, p->direct ? store : release, round + 1);
        sleep_until(p, store, round + 2);
    }
    expect_nothing(p->a);
}

static void test_sleeps(void)
{
    on_both(sleeps);
}

/* After the daemon's end a wait succeeds where the word has its value already, and is refused
 * otherwise. */
static void test_end(void)
{
    struct world *w = world_new();
    const uint64_t word = 1;

    fake_daemon_stop(&w->daemon);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, &word, PWC_EQ, 0, WAIT_MS), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_wait_word(w->ctx, &word, PWC_EQ, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"payload, word and events", test_signals},
        {"local ids", test_local_ids},
        {"requests", test_requests},
        {"checks", test_checks},
        {"rights", test_rights},
        {"comparisons", test_comparisons},
        {"timeouts", test_timeouts},
        {"handlers run while a word is waited for", test_handlers},
        {"sleeps", test_sleeps},
        {"the daemon's end", test_end},
        CU_TEST_INFO_NULL,
    };

    return suite_run("signals", tests);
}
