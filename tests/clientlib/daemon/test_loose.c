/*
 * Operations over loose memory, which is in no region: every kind of operation, on both paths, with
 * lengths around all bounds, and from every kind of memory. Against a daemon on a thread.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "clientlib/channel/grains.h"
#include "pwc/am.h"
#include "pwc/request.h"
#include "pwc/signal.h"
#include "tests/count.h"
#include "tests/clientlib/daemon/client_path.h"
#include "tests/suite.h"

enum {
    HANDLER = 3,
    WORD = 8, /* offset of the word that is signalled */
    THERE = 64,
    PIECE = GRAINS_PIECE * GRAIN_BYTES,
    STAGING = (GRAINS - GRAINS_SHORT) * GRAIN_BYTES,
    MOST = 1000000, /* bytes of the region from THERE on */
};

static const size_t lengths[] = {
    FAKE_PACKED_MAX, FAKE_PACKED_MAX + 1, 3 * GRAIN_BYTES,  PIECE - 1, PIECE,
    PIECE + 1,       3 * PIECE,           STAGING - 1,      STAGING,   STAGING + 1,
    2 * STAGING - 1, 2 * STAGING,         2 * STAGING + 77, MOST,
};

/* The message that b's handler has seen last. */
struct seen {
    const void *payload;
    size_t length;
    uint64_t argument;
    unsigned count;
};

static void see(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct seen *seen = argument;

    seen->payload = am->payload;
    seen->length = am->length;
    seen->argument = am->count > 0 ? am->arguments[0] : 0;
    seen->count++;
    (void)ctx;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Runs one operation of `len` bytes between b's region and `here` until it has ended. The operation
 * has the ids `number` (local) and `number` + 1 (remote). */
typedef void run(struct path *p, uint8_t *here, size_t len, uint64_t number, struct seen *seen);

static void run_put(struct path *p, uint8_t *here, size_t len, uint64_t number, struct seen *seen)
{
    CU_ASSERT_EQUAL(
        pwc_put(p->to_b, THERE, here, len, pwc_cid_u64(number), pwc_cid_u64(number + 1), 0), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_PUT, number, 0, len);
    expect_op(p->b, PWC_REMOTE, PWC_OP_PUT, number + 1, 0, len);
    (void)seen;
}

static void run_get(struct path *p, uint8_t *here, size_t len, uint64_t number, struct seen *seen)
{
    CU_ASSERT_EQUAL(
        pwc_get(p->to_b, THERE, here, len, pwc_cid_u64(number), pwc_cid_u64(number + 1), 0), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_GET, number, 0, len);
    expect_op(p->b, PWC_REMOTE, PWC_OP_GET, number + 1, 0, len);
    (void)seen;
}

static void run_put_wait(struct path *p, uint8_t *here, size_t len, uint64_t number,
                         struct seen *seen)
{
    CU_ASSERT_EQUAL(pwc_put_wait(p->to_b, THERE, here, len, pwc_cid_u64(number), 0), 0);
    expect_op(p->b, PWC_REMOTE, PWC_OP_PUT, number, 0, len);
    (void)seen;
}

static void run_get_wait(struct path *p, uint8_t *here, size_t len, uint64_t number,
                         struct seen *seen)
{
    CU_ASSERT_EQUAL(pwc_get_wait(p->to_b, THERE, here, len, PWC_CID_NONE, PWC_NO_RCE), 0);
    (void)number;
    (void)seen;
}

static void run_signal(struct path *p, uint8_t *here, size_t len, uint64_t number,
                       struct seen *seen)
{
    uint64_t before = p->words[WORD / 8];

    CU_ASSERT_EQUAL(
        pwc_put_signal(p->to_b, THERE, here, len, WORD, 5, PWC_ADD, pwc_cid_u64(number), 0), 0);
    expect_op(p->a, PWC_LOCAL, PWC_OP_SIGNAL, number, 0, len);
    CU_ASSERT_EQUAL(p->words[WORD / 8], before + 5);
    (void)seen;
}

static void run_long(struct path *p, uint8_t *here, size_t len, uint64_t number, struct seen *seen)
{
    const struct pwc_am_send message = {.index = HANDLER,
                                        .count = 1,
                                        .arguments = &number,
                                        .src = here,
                                        .len = len,
                                        .lid = pwc_cid_u64(number),
                                        .flags = number % 2 ? PWC_AM_NO_REPLY : 0};
    struct pwc_event event;

    seen->count = 0;
    CU_ASSERT_EQUAL(pwc_am_long(p->to_b, THERE, &message), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_flush(p->a, pwc_ctx_peer(p->b), WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_wait(p->b, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT(seen->count == 1 && seen->length == len && seen->argument == number &&
              seen->payload == p->w->memory + THERE);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(p->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
    CU_ASSERT(event.op == PWC_OP_LONG && event.id == number && event.status == 0);
    CU_ASSERT_EQUAL(event.length, len);
}

static void run_requests(struct path *p, uint8_t *here, size_t len, uint64_t number,
                         struct seen *seen)
{
    struct pwc_status status = {.status = 1};
    pwc_request *r;
    int rc;

    CU_ASSERT_EQUAL_FATAL(pwc_request_create(p->a, &r), 0);
    CU_ASSERT_EQUAL(
        pwc_put(p->to_b, THERE, here, len, pwc_cid_request(r), PWC_CID_NONE, PWC_NO_RCE), 0);
    rc = pwc_put_signal(p->to_b, THERE, here, len, WORD, 1, PWC_SET, pwc_cid_request(r), PWC_WAIT);
    CU_ASSERT_EQUAL(rc, 0);
    CU_ASSERT_EQUAL_FATAL(pwc_request_wait(r, &status, WAIT_MS), 1);
    CU_ASSERT(status.status == 0 && status.count == 2 && status.bytes == len);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    (void)number;
    (void)seen;
}

static const struct {
    run *run;
    bool gets;
} kinds[] = {{run_put, false},    {run_get, true},   {run_put_wait, false}, {run_get_wait, true},
             {run_signal, false}, {run_long, false}, {run_requests, false}};

/* ---- lengths --------------------------------------------------------------------------------- */

/* Runs an operation, and compares the bytes on both sides, and the bytes beside them. */
static void run_one(struct path *p, size_t kind, uint8_t *here, size_t len, uint64_t number,
                    struct seen *seen)
{
    uint8_t *there = p->w->memory + THERE;
    uint8_t *from = kinds[kind].gets ? there : here, *to = kinds[kind].gets ? here : there;

    fill(from, len, (unsigned)number);
    memset(to, 0xee, len);
    there[len] = 0x5a;
    kinds[kind].run(p, here, len, number, seen);
    if (memcmp(here, there, len) != 0 || there[len] != 0x5a) {
        printf("\n    kind %zu, %zu bytes, %s ", kind, len,
               p->direct ? "directly" : "by the daemon");
        CU_FAIL("bytes differ");
    }
}

static void every_length(struct path *p)
{
    uint8_t *block = malloc(MOST + 16);
    struct seen seen = {0};
    uint64_t number = 1;

    CU_ASSERT_EQUAL(pwc_am_register(p->b, HANDLER, see, &seen), 0);
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (size_t i = 0; i < COUNT(lengths); i++, number += 3) {
            unsigned executed = fake_executed(&p->w->daemon);

            block[lengths[i] + number % 16] = 0x77;
            run_one(p, kind, block + number % 16, lengths[i], number, &seen);
            CU_ASSERT_EQUAL(block[lengths[i] + number % 16], 0x77);
            check_path(p, executed);
        }
    expect_nothing(p->a);
    expect_nothing(p->b);
    free(block);
}

static void test_every_length(void)
{
    on_both(every_length);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const uint8_t constant[3 * PIECE] = {1, 2, 3};
static uint8_t global[3 * PIECE];

/* Maps a file: shared, or private and read-only. */
static void *map_file(size_t len, bool shared)
{
    FILE *file = tmpfile();
    void *at;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (size_t i = 0; i < len; i++)
        (void)!fputc((int)(i % 251), file);
    fflush(file);
    at = mmap(NULL, len, shared ? PROT_READ | PROT_WRITE : PROT_READ,
              shared ? MAP_SHARED : MAP_PRIVATE, fileno(file), 0);
    CU_ASSERT_NOT_EQUAL_FATAL(at, MAP_FAILED);
    fclose(file);
    return at;
}

static void every_memory(struct path *p)
{
    uint8_t stack[3 * PIECE];
    uint8_t *file = map_file(3 * PIECE, false), *shared = map_file(3 * PIECE, true);
    const struct {
        const uint8_t *at;
        uint8_t *writable;
    } rows[] = {{constant, NULL}, {global, global}, {stack, stack}, {file, NULL}, {shared, shared}};
    struct seen seen = {0};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const uint8_t *at = rows[i].at + 1;
        size_t len = 3 * PIECE - 1;

        if (rows[i].writable) {
            run_one(p, 0, rows[i].writable, len, i, &seen);
            run_one(p, 1, rows[i].writable + 1, len, i, &seen);
        }
        memset(p->w->memory + THERE, 0xee, len);
        CU_ASSERT_EQUAL(pwc_put_wait(p->to_b, THERE, at, len, PWC_CID_NONE, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL(memcmp(p->w->memory + THERE, at, len), 0);
    }
    munmap(file, 3 * PIECE);
    munmap(shared, 3 * PIECE);
}

static void test_every_memory(void)
{
    on_both(every_memory);
}

/* ---- ids and flags --------------------------------------------------------------------------- */

static void long_ids(struct path *p)
{
    uint8_t *here = calloc(1, MOST), id[PWC_CID_MAX];
    struct pwc_event event;

    fill(id, sizeof(id), 3);
    for (int get = 0; get < 2; get++)
        for (size_t len = PIECE; len <= MOST; len += MOST - PIECE) {
            pwc_cid lid = pwc_cid_bytes(id, 333), rid = pwc_cid_bytes(id, PWC_CID_MAX);

            CU_ASSERT_EQUAL(get ? pwc_get(p->to_b, THERE, here, len, lid, rid, 0)
                                : pwc_put(p->to_b, THERE, here, len, lid, rid, 0),
                            0);
            CU_ASSERT_EQUAL_FATAL(pwc_wait(p->a, PWC_ANY, PWC_LOCAL, &event, WAIT_MS), 1);
            CU_ASSERT(event.id_size == 333 && memcmp(event.data, id, 333) == 0);
            CU_ASSERT_EQUAL(event.length, len);
            CU_ASSERT_EQUAL_FATAL(pwc_wait(p->b, PWC_ANY, PWC_REMOTE, &event, WAIT_MS), 1);
            CU_ASSERT(event.id_size == PWC_CID_MAX && memcmp(event.data, id, PWC_CID_MAX) == 0);
            CU_ASSERT_EQUAL(event.length, len);
        }
    free(here);
}

static void test_long_ids(void)
{
    on_both(long_ids);
}

static int go(struct path *p, bool get, uint8_t *here, pwc_cid lid, pwc_cid rid, unsigned flags)
{
    return get ? pwc_get(p->to_b, THERE, here, MOST, lid, rid, flags)
               : pwc_put(p->to_b, THERE, here, MOST, lid, rid, flags);
}

/* Each flag has its usual meaning for a long operation, too. */
static void flags(struct path *p)
{
    uint8_t *here = calloc(1, MOST);
    struct pwc_event event;

    for (int get = 0; get < 2; get++) {
        int op = get ? PWC_OP_GET : PWC_OP_PUT;

        CU_ASSERT_EQUAL(go(p, get, here, pwc_cid_u64(1), pwc_cid_u64(2), PWC_NO_LCE | PWC_FENCE),
                        0);
        expect_nothing(p->a);
        expect_op(p->b, PWC_REMOTE, op, 2, 0, MOST);
        CU_ASSERT_EQUAL(p->w->daemon.fences, p->direct ? 0 : get + 1);
        CU_ASSERT_EQUAL(go(p, get, here, pwc_cid_u64(3), pwc_cid_u64(4),
                           PWC_NO_RCE | PWC_UNORDERED | PWC_LCE_SOURCE),
                        0);
        expect_op(p->a, PWC_LOCAL, op, 3, 0, MOST);
        expect_nothing(p->b);
        CU_ASSERT_EQUAL(go(p, get, here, pwc_cid_u64(5), pwc_cid_u64(6), PWC_NOTIFY), 0);
        expect_op(p->a, PWC_LOCAL, op, 5, 0, MOST);
        expect_op(p->b, PWC_NOTIFICATION, op, 6, 0, MOST);
        CU_ASSERT_EQUAL(go(p, get, here, PWC_CID_NONE, PWC_CID_NONE, 1u << 14), -EINVAL);
    }
    CU_ASSERT_EQUAL(pwc_probe(p->b, PWC_ANY, PWC_REMOTE | PWC_NOTIFICATION, &event), 0);
    free(here);
}

static void test_flags(void)
{
    on_both(flags);
}

/* A small ring: a payload that is short enough to be packed does not fit beside the longest ids, so
 * it is not packed; long payloads work as with large rings. */
static void test_small_rings(void)
{
    struct world *w = world_new_sized(SESSION_RING_MIN, NULL);
    uint8_t *here = malloc(MOST), id[PWC_CID_MAX] = {1};
    pwc_cid long_id = pwc_cid_bytes(id, sizeof(id));
    static const size_t sizes[] = {FAKE_PACKED_MAX, FAKE_PACKED_MAX + 1, MOST};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        fill(here, sizes[i], (unsigned)i);
        CU_ASSERT_EQUAL(pwc_put(w->remote, 0, here, sizes[i], long_id, long_id, PWC_NO_LCE), 0);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
        CU_ASSERT_EQUAL(memcmp(w->memory, here, sizes[i]), 0);
        memset(here, 0, sizes[i]);
        CU_ASSERT_EQUAL(pwc_get(w->remote, 0, here, sizes[i], long_id, long_id, PWC_NO_LCE), 0);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, WAIT_MS), 0);
        CU_ASSERT_EQUAL(memcmp(w->memory, here, sizes[i]), 0);
    }
    free(here);
    world_free(w);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Ranges and rights are checked before staging is asked for. */
static void test_checks(void)
{
    struct world *w = world_new();
    uint8_t *here = calloc(1, MOST);
    pwc_remote *read_only;
    pwc_region *region;
    struct pwc_key key;
    struct pwc_am_send message = {.index = HANDLER, .src = here, .len = MOST};

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, 64, PWC_REMOTE_READ, &region), 0);
    CU_ASSERT_EQUAL(pwc_region_key(region, &key), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 0, &key, &read_only), 0);
    CU_ASSERT_EQUAL(put(w, (1 << 20) - MOST + 1, here, MOST, 0, 0), -ERANGE);
    CU_ASSERT_EQUAL(get(w, (1 << 20) - MOST + 1, here, MOST, 0, 0), -ERANGE);
    CU_ASSERT_EQUAL(pwc_am_long(w->remote, (1 << 20) - MOST + 1, &message), -ERANGE);
    CU_ASSERT_EQUAL(put(w, 0, here, FAKE_MESSAGE_MAX + 1, 0, 0), -EMSGSIZE);
    CU_ASSERT_EQUAL(pwc_put(read_only, 0, here, 64, PWC_CID_NONE, PWC_CID_NONE, 0), -EKEYREJECTED);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 0);
    expect_silence(w);
    free(here);
    world_free(w);
}

static bool refuse_segments(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN || daemon->segments_open == 0)
        return false;
    fake_daemon_error(daemon, request->id, -EDQUOT, "over the quota");
    return true;
}

/* Where the daemon gives no memory for staging, a call returns the error and has submitted nothing.
 * The call works once there is memory. */
static void test_no_staging(void)
{
    struct world *w = world_new_sized(0, refuse_segments);
    uint8_t *here = calloc(1, MOST);
    pwc_region *rest;
    int rc;

    CU_ASSERT_EQUAL_FATAL(pwc_alloc(w->client, (3 << 20) - 4096, 0, &rest), 0);
    CU_ASSERT_EQUAL(put(w, 0, here, MOST, 0, 0), -EDQUOT);
    CU_ASSERT_EQUAL(get(w, 0, here, 8, 0, 0), -EDQUOT);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 0);
    CU_ASSERT_EQUAL(pwc_region_free(rest), 0);
    rc = put(w, 0, here, MOST, 1, PWC_NO_RCE);
    CU_ASSERT_EQUAL(rc, 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    free(here);
    world_free(w);
}

/* Inside a handler the library does not ask for staging, because that blocks; with staging, a
 * handler may put. */
struct inside {
    struct world *w;
    uint8_t *here;
    int put, get, reply;
};

static void put_inside(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct inside *in = argument;
    struct pwc_am_send message = {.index = HANDLER, .src = in->here, .len = MOST};

    in->put = put(in->w, 0, in->here, MOST, 1, PWC_NO_RCE);
    in->get = get(in->w, 0, in->here, 8, 2, PWC_NO_RCE);
    in->reply = pwc_am_reply_long(ctx, am->token, in->w->remote, 0, &message);
}

static void test_inside_a_handler(void)
{
    struct world *w = world_new();
    struct inside in = {.w = w, .here = calloc(1, MOST), .put = 1, .get = 1, .reply = 1};
    const struct pwc_am_send message = {.index = HANDLER, .flags = PWC_NO_LCE};
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_am_register(w->ctx, HANDLER, put_inside, &in), 0);
    CU_ASSERT_EQUAL(pwc_am_short(w->remote, &message), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT(in.put == -EDEADLK && in.get == -EDEADLK && in.reply == -EFAULT);
    CU_ASSERT_EQUAL(pwc_put_wait(w->remote, 0, in.here, MOST, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_am_short(w->remote, &message), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(w->ctx, PWC_ANY, PWC_MESSAGE, &event, WAIT_MS), 1);
    CU_ASSERT(in.put == 0 && in.get == -EAGAIN && in.reply == -EFAULT);
    (void)expect(w, PWC_LOCAL, 1, 0);
    expect_silence(w);
    free(in.here);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every kind and length", test_every_length},
        {"every sort of memory", test_every_memory},
        {"long ids", test_long_ids},
        {"flags", test_flags},
        {"small rings", test_small_rings},
        {"what is checked at once", test_checks},
        {"no memory for staging", test_no_staging},
        {"inside a handler", test_inside_a_handler},
        CU_TEST_INFO_NULL,
    };

    return suite_run("loose", tests);
}
