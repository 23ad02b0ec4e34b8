/* Sending active messages through the public calls, against a daemon on a thread. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "pwc/am.h"
#include "pwc/tuning.h"
#include "tests/suite.h"
#include "tests/lib/message.h"

enum {
    REQUEST = 3, /* indices */
    REPLY = 255,
    OTHER = 64, /* an index without a handler */
    COUNT = PWC_AM_ARGUMENTS_MAX,
    AT = 1 << 19,             /* where Longs land in the region */
    REPLY_AT = 3 * (1 << 18), /* where replies land in the region */
};

static const pwc_cid none;

/* The arguments of the last handler of each kind. */
struct seen {
    struct world *world;
    unsigned requests, replies;
    struct pwc_am last;
    uint64_t arguments[COUNT];
    uint8_t payload[BIG];
    bool aligned;
};

static void record(struct seen *seen, const struct pwc_am *am)
{
    seen->last = *am;
    seen->aligned = (uintptr_t)am->arguments % 8 == 0 &&
                    (am->kind != PWC_AM_MEDIUM || (uintptr_t)am->payload % 8 == 0);
    memcpy(seen->arguments, am->arguments, am->count * 8);
    if (am->length > 0)
        memcpy(seen->payload, am->payload, am->length);
}

/* Replies with a message of the same kind, with the same arguments and bytes. */
static void on_request(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct seen *seen = argument;
    struct pwc_am_send reply = {.index = REPLY,
                                .arguments = am->arguments,
                                .count = am->count,
                                .src = am->payload,
                                .len = am->length,
                                .flags = PWC_NO_LCE};

    seen->requests++;
    record(seen, am);
    CU_ASSERT_EQUAL(am->is_reply, 0);
    CU_ASSERT_NOT_EQUAL(am->token, 0);
    CU_ASSERT_EQUAL(message_reply(am->kind, ctx, am->token, seen->world->remote, REPLY_AT, reply),
                    0);
}

static void on_reply(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct seen *seen = argument;

    seen->replies++;
    record(seen, am);
    CU_ASSERT_EQUAL(am->is_reply, 1);
    CU_ASSERT_EQUAL(am->token, 0);
    (void)ctx;
}

static struct seen *seen_new(struct world *w)
{
    struct seen *seen = calloc(1, sizeof(*seen));

    seen->world = w;
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, REQUEST, on_request, seen), 0);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, REPLY, on_reply, seen), 0);
    return seen;
}

static int send(struct world *w, int kind, const void *src, size_t len, const uint64_t *arguments,
                unsigned count, pwc_cid lid, unsigned flags)
{
    return message_request(kind, w->remote, AT,
                           (struct pwc_am_send){.index = REQUEST,
                                                .arguments = arguments,
                                                .count = count,
                                                .src = src,
                                                .len = len,
                                                .lid = lid,
                                                .flags = flags});
}

static void expect_message(struct world *w, unsigned index, size_t len)
{
    struct pwc_event event = expect(w, PWC_MESSAGE, index, 0);

    CU_ASSERT_EQUAL(event.peer, pwc_ctx_peer(w->ctx));
    CU_ASSERT_EQUAL(event.length, len);
}

static void expect_seen(const struct seen *seen, unsigned index, int kind, const uint8_t *payload,
                        size_t len, const uint64_t *arguments, unsigned count)
{
    const struct pwc_am *am = &seen->last;

    CU_ASSERT_EQUAL(am->index, index);
    CU_ASSERT_EQUAL((int)am->kind, kind);
    CU_ASSERT_EQUAL(am->from, pwc_ctx_peer(seen->world->ctx));
    CU_ASSERT_EQUAL(am->count, count);
    CU_ASSERT_EQUAL(am->length, len);
    CU_ASSERT_TRUE(seen->aligned);
    if (count > 0)
        CU_ASSERT_EQUAL(memcmp(seen->arguments, arguments, count * 8), 0);
    CU_ASSERT_EQUAL(memcmp(seen->payload, payload, len), 0);
}

/* Every kind, number of arguments and size; and lids of every kind. */
static void test_shapes(void)
{
    static const struct {
        int kind;
        size_t len;
    } rows[] = {
        {PWC_AM_SHORT, 0},
        {PWC_AM_MEDIUM, 0},
        {PWC_AM_MEDIUM, 1},
        {PWC_AM_MEDIUM, 7},
        {PWC_AM_MEDIUM, 8},
        {PWC_AM_MEDIUM, 9},
        {PWC_AM_MEDIUM, 4095},
        {PWC_AM_MEDIUM, FAKE_PACKED_MAX},
        {PWC_AM_LONG, 0},
        {PWC_AM_LONG, 1},
        {PWC_AM_LONG, 4095},
        {PWC_AM_LONG, FAKE_PACKED_MAX},
        {PWC_AM_LONG, FAKE_PACKED_MAX + 1},
        {PWC_AM_LONG, BIG},
    };
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    uint8_t *source = w->memory, id[PWC_CID_MAX];
    uint64_t arguments[COUNT];

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (unsigned count = 0; count <= COUNT; count++) {
            pwc_cid lid = pwc_cid_bytes(id, count * 64);
            struct pwc_event event;
            size_t len = rows[r].len;

            fill(source, BIG, (unsigned)r * 20 + count);
            fill((uint8_t *)arguments, sizeof(arguments), count);
            fill(id, sizeof(id), (unsigned)r);
            CU_ASSERT_EQUAL_FATAL(send(w, rows[r].kind, source, len, arguments, count, lid, 0), 0);
            expect_message(w, REQUEST, len);
            expect_seen(seen, REQUEST, rows[r].kind, source, len, arguments, count);
            if (rows[r].kind == PWC_AM_LONG)
                CU_ASSERT_PTR_EQUAL(seen->last.payload, w->memory + AT);
            expect_message(w, REPLY, len);
            expect_seen(seen, REPLY, rows[r].kind, source, len, arguments, count);
            if (rows[r].kind == PWC_AM_LONG)
                CU_ASSERT_PTR_EQUAL(seen->last.payload, w->memory + REPLY_AT);
            CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
            CU_ASSERT_EQUAL(event.status, 0);
            CU_ASSERT_EQUAL(event.id_size, count * 64);
            if (event.id_size > 0)
                CU_ASSERT_EQUAL(memcmp(event.data, id, event.id_size), 0);
        }
    }
    CU_ASSERT_EQUAL(seen->requests, seen->replies);
    expect_silence(w);
    world_free(w);
    free(seen);
}

/* A Long's payload comes from where a put's may: any memory, and regions. */
static void test_long_sources(void)
{
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    uint8_t *mine = malloc(BIG);
    uint8_t *moved;
    pwc_region *region;

    fill(mine, BIG, 5);
    CU_ASSERT_EQUAL(send(w, PWC_AM_LONG, mine, FAKE_PACKED_MAX, NULL, 0, none, PWC_NO_LCE), 0);
    expect_message(w, REQUEST, FAKE_PACKED_MAX);
    expect_seen(seen, REQUEST, PWC_AM_LONG, mine, FAKE_PACKED_MAX, NULL, 0);
    expect_message(w, REPLY, FAKE_PACKED_MAX); /* not ordered with the next request */
    CU_ASSERT_EQUAL(send(w, PWC_AM_LONG, mine, BIG, NULL, 0, none, PWC_NO_LCE), 0);
    expect_message(w, REQUEST, BIG);
    expect_seen(seen, REQUEST, PWC_AM_LONG, mine, BIG, NULL, 0);
    expect_message(w, REPLY, BIG);

    /* The payload of registered memory is copied at submission, so later changes do not matter. */
    CU_ASSERT_EQUAL_FATAL(pwc_register(w->client, mine, BIG, 0, 0, &region), 0);
    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(
        send(w, PWC_AM_LONG, mine, BIG, NULL, 0, none, PWC_NO_LCE | PWC_PROTOCOL_CHAIN | PWC_FENCE),
        0);
    moved = malloc(BIG);
    memcpy(moved, mine, BIG);
    memset(mine, 0, BIG);
    fake_hold(&w->daemon, false);
    expect_message(w, REQUEST, BIG);
    expect_seen(seen, REQUEST, PWC_AM_LONG, moved, BIG, NULL, 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    world_free(w);
    free(moved);
    free(mine);
    free(seen);
}

static void test_checks(void)
{
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    pwc_region *read_only;
    pwc_remote *peer_alone, *no_right;
    struct pwc_key key;
    uint64_t arguments[COUNT + 1] = {0};
    void *payload;
    pwc_cid long_id = pwc_cid_bytes(w->memory, PWC_CID_MAX + 1);
    pwc_ctx *other;

    CU_ASSERT_EQUAL(pwc_am_max_medium(w->client), FAKE_PACKED_MAX);
    CU_ASSERT_EQUAL(pwc_am_max_long(w->client), FAKE_MESSAGE_MAX);
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, 256, on_reply, NULL), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, NULL, &peer_alone), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, PWC_REMOTE_READ, &read_only), 0);
    CU_ASSERT_EQUAL(pwc_region_key(read_only, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &no_right), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &other), 0);

    for (int kind = PWC_AM_SHORT; kind <= PWC_AM_LONG; kind++) {
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, COUNT + 1, none, 0), -E2BIG);
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, UINT32_MAX, none, 0), -E2BIG);
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, 0, long_id, 0), -EINVAL);
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, 0, none, PWC_NO_RCE), -EINVAL);
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, 0, none, 1u << 15), -EINVAL);
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, arguments, 0, none, PWC_NOTIFY), -EINVAL);
    }
    CU_ASSERT_EQUAL(pwc_am_short(w->remote, &(struct pwc_am_send){.index = 256}), -EINVAL);
    for (unsigned i = 0; i < 3; i++) {
        struct pwc_am_send odd = {.index = REQUEST};

        odd.reserved[i] = 1u << 31;
        CU_ASSERT_EQUAL(pwc_am_short(w->remote, &odd), -EINVAL);
    }
    CU_ASSERT_EQUAL(pwc_am_short(w->remote, &(struct pwc_am_send){.src = arguments, .len = 8}),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_short(NULL, &(struct pwc_am_send){0}), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_long(NULL, 0, &(struct pwc_am_send){0}), -EINVAL);
    CU_ASSERT_EQUAL(send(w, PWC_AM_MEDIUM, w->memory, FAKE_PACKED_MAX + 1, NULL, 0, none, 0),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(send(w, PWC_AM_MEDIUM, w->memory, SIZE_MAX, NULL, 0, none, 0), -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_am_prepare(w->remote, 8, 0, none, PWC_WAIT, &payload), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_prepare(w->remote, FAKE_PACKED_MAX + 1, 0, none, 0, &payload),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_am_prepare(w->remote, 0, COUNT + 1, none, 0, &payload), -E2BIG);
    CU_ASSERT_EQUAL(send(w, PWC_AM_LONG, w->memory, FAKE_MESSAGE_MAX + 1, NULL, 0, none, 0),
                    -EMSGSIZE);
    CU_ASSERT_EQUAL(send(w, PWC_AM_LONG, w->memory, 1 << 20, NULL, 0, none, 0), -ERANGE);
    CU_ASSERT_EQUAL(pwc_am_long(no_right, 0, &(struct pwc_am_send){.src = w->memory, .len = 8}),
                    -EKEYREJECTED);
    CU_ASSERT_EQUAL(pwc_am_long(peer_alone, 0, &(struct pwc_am_send){.src = w->memory, .len = 8}),
                    -ERANGE);
    CU_ASSERT_EQUAL(pwc_am_long(peer_alone, 0, &(struct pwc_am_send){0}), -EKEYREJECTED);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 0);

    /* Short and Medium need only a remote without a key. */
    CU_ASSERT_EQUAL(
        pwc_am_short(peer_alone, &(struct pwc_am_send){.index = REQUEST, .flags = PWC_NO_LCE}), 0);
    expect_message(w, REQUEST, 0);
    expect_message(w, REPLY, 0);
    /* The local event carries a status that only the target knows (no handler), whatever the flags
     * are. */
    for (unsigned flags = 0; flags <= PWC_NO_LCE; flags++) {
        CU_ASSERT_EQUAL(pwc_am_short(w->remote, &(struct pwc_am_send){.index = OTHER,
                                                                      .lid = pwc_cid_u64(9),
                                                                      .flags = flags}),
                        0);
        (void)expect(w, PWC_LOCAL, 9, -ENOSYS);
    }
    /* A handler that was removed: the status is that of an index without a handler. */
    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, REPLY, NULL, NULL), 0);
    CU_ASSERT_EQUAL(
        pwc_am_short(w->remote, &(struct pwc_am_send){.index = REPLY, .lid = pwc_cid_u64(9)}), 0);
    (void)expect(w, PWC_LOCAL, 9, -ENOSYS);
    CU_ASSERT_EQUAL(pwc_am_register(other, 0, NULL, NULL), 0);
    for (int error = E2BIG; error <= EKEYREJECTED; error++)
        CU_ASSERT_PTR_NOT_NULL(pwc_strerror(-error));
    world_free(w);
    free(seen);
}

static void test_prepare(void)
{
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    uint64_t arguments[COUNT];
    uint8_t bytes[FAKE_PACKED_MAX];
    void *payload, *second;
    pwc_remote *remote;

    fill((uint8_t *)arguments, sizeof(arguments), 1);
    fill(bytes, sizeof(bytes), 2);
    CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, REQUEST, 0, NULL), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_cancel(w->ctx), -EINVAL);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, NULL, &remote), 0);

    for (unsigned count = 0; count <= COUNT; count += 4) {
        for (size_t len = 0; len <= FAKE_PACKED_MAX; len = len * 3 + 1) {
            CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(remote, FAKE_PACKED_MAX, count,
                                                 pwc_cid_bytes("id", 2), PWC_NO_LCE, &payload),
                                  0);
            CU_ASSERT_EQUAL((uintptr_t)payload % 8, 0);
            memset(payload, 0xff, FAKE_PACKED_MAX);
            memcpy(payload, bytes, len);
            CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, REQUEST, len, arguments), 0);
            expect_message(w, REQUEST, len);
            expect_seen(seen, REQUEST, PWC_AM_MEDIUM, bytes, len, arguments, count);
            expect_message(w, REPLY, len);
        }
    }

    /* Between prepare and commit nothing else may be submitted, except for replies. */
    CU_ASSERT_EQUAL(send(w, PWC_AM_SHORT, NULL, 0, NULL, 0, none, PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(remote, 64, 1, none, 0, &payload), 0);
    CU_ASSERT_EQUAL(pwc_am_prepare(remote, 64, 1, none, 0, &second), -EBUSY);
    for (int kind = PWC_AM_SHORT; kind <= PWC_AM_LONG; kind++)
        CU_ASSERT_EQUAL(send(w, kind, w->memory, 8, NULL, 0, none, 0), -EBUSY);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), -EBUSY);
    CU_ASSERT_EQUAL(get(w, 0, w->memory, 8, 1, 0), -EBUSY);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, -1), -EBUSY);
    CU_ASSERT_EQUAL(pwc_unbind(remote), -EBUSY);
    expect_message(w, REQUEST, 0);
    expect_message(w, REPLY, 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    /* After a refused commit the message can still be committed. */
    CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, 256, 0, arguments), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, REQUEST, 65, arguments), -EMSGSIZE);
    memcpy(payload, bytes, 64);
    CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, REQUEST, 64, arguments), 0);
    expect_message(w, REQUEST, 64);
    expect_seen(seen, REQUEST, PWC_AM_MEDIUM, bytes, 64, arguments, 1);
    expect_message(w, REPLY, 64);
    (void)expect(w, PWC_LOCAL, 0, 0);

    CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(remote, 64, 1, none, 0, &payload), 0);
    CU_ASSERT_EQUAL(pwc_am_cancel(w->ctx), 0);
    CU_ASSERT_EQUAL(pwc_am_cancel(w->ctx), -EINVAL);
    expect_silence(w);
    CU_ASSERT_EQUAL(pwc_unbind(remote), 0);
    world_free(w);
    free(seen);
}

/* The smallest rings that can be had carry the longest messages. */
static void test_small_rings(void)
{
    struct world *w = world_new_sized(SESSION_RING_MIN, NULL);
    struct seen *seen = seen_new(w);

    fill(w->memory, BIG, 4);
    for (unsigned i = 0; i < 200; i++) {
        /* A Medium may take a quarter of the submit ring, so less than FAKE_PACKED_MAX here. */
        CU_ASSERT_EQUAL(send(w, PWC_AM_MEDIUM, w->memory, 3900, NULL, 0, none, PWC_NO_LCE), 0);
        expect_message(w, REQUEST, 3900);
        expect_message(w, REPLY, 3900);
        CU_ASSERT_EQUAL(send(w, PWC_AM_LONG, w->memory, FAKE_PACKED_MAX, NULL, 0, none, PWC_NO_LCE),
                        0);
        expect_message(w, REQUEST, FAKE_PACKED_MAX);
        expect_message(w, REPLY, FAKE_PACKED_MAX);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    }
    CU_ASSERT_EQUAL(send(w, PWC_AM_MEDIUM, w->memory, FAKE_PACKED_MAX, NULL, 0, none, 0),
                    -EMSGSIZE);
    world_free(w);
    free(seen);
}

static void test_fork(void)
{
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    void *payload;
    int status;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(w->remote, 8, 0, none, 0, &payload), 0);
    child = fork();
    if (child == 0) {
        bool dead = send(w, PWC_AM_SHORT, NULL, 0, NULL, 0, none, 0) == -EOWNERDEAD &&
                    send(w, PWC_AM_MEDIUM, NULL, 0, NULL, 0, none, 0) == -EOWNERDEAD &&
                    send(w, PWC_AM_LONG, NULL, 0, NULL, 0, none, 0) == -EOWNERDEAD &&
                    pwc_am_register(w->ctx, 0, on_reply, NULL) == -EOWNERDEAD &&
                    pwc_am_prepare(w->remote, 8, 0, none, 0, &payload) == -EOWNERDEAD &&
                    pwc_am_commit(w->ctx, 0, 0, NULL) == -EOWNERDEAD &&
                    pwc_am_cancel(w->ctx) == -EOWNERDEAD &&
                    pwc_am_reply_short(w->ctx, 1, &(struct pwc_am_send){0}) == -EOWNERDEAD;

        _exit(dead ? 0 : 1);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    world_free(w);
    free(seen);
}

static void test_session_over(void)
{
    struct world *w = world_new();
    struct seen *seen = seen_new(w);
    void *payload;

    CU_ASSERT_EQUAL_FATAL(pwc_am_prepare(w->remote, 8, 0, none, 0, &payload), 0);
    fake_daemon_stop(&w->daemon);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &(struct pwc_event){0}, WAIT_MS), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_am_commit(w->ctx, REQUEST, 8, NULL), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_am_cancel(w->ctx), 0);
    CU_ASSERT_EQUAL(send(w, PWC_AM_SHORT, NULL, 0, NULL, 0, none, 0), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
    free(seen);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"messages of every shape, and their replies", test_shapes},
        {"where a Long's payload comes from", test_long_sources},
        {"what is checked at once", test_checks},
        {"payloads written in place", test_prepare},
        {"small rings", test_small_rings},
        {"a forked child", test_fork},
        {"the session is over", test_session_over},
        CU_TEST_INFO_NULL,
    };

    return suite_run("messages", tests);
}
