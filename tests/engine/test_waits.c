/*
 * What changes while an operation waits: its memory goes, or becomes another's; what it is for is
 * withdrawn; the fabric takes a part of it and no more. It ends with an error that says so, what
 * the target waits for goes all the same, and nobody else's memory is touched. One engine; the test
 * is its client, its peer, and the fabric (record_bench.h). One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "engine.h"
#include "op.h"
#include "record_bench.h"
#include "session_abi.h"
#include "state.h"
#include "wire_abi.h"

#define RING  8192u /* of each of the session's rings */
#define BYTES 8192u /* of the second segment */
#define FLOW  0u
#define WAITS 1u /* the second segment */

struct waiting {
    struct bench *b;
    uint8_t *memory; /* the second segment */
};

static void begin(struct waiting *w)
{
    static const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096};

    w->b = bench_new(&shape);
    w->memory = calloc(1, BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->memory);
    CU_ASSERT_EQUAL_FATAL(bench_link(w->b), 0);
    bench_remote(w->b);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(w->b->engine, 0, w->memory, BYTES), WAITS);
    bench_steps(w->b, 2);
}

static void end(struct waiting *w)
{
    bench_free(w->b);
    free(w->memory);
}

/* From or into the second half of the second segment. */
static struct submit_record operation(uint8_t kind)
{
    return (struct submit_record){.size = sizeof(struct submit_record),
                                  .kind = kind,
                                  .reserve = event_bytes(0),
                                  .length = 64,
                                  .segment = WAITS,
                                  .local_offset = BYTES / 2};
}

struct packed {
    struct submit_record record;
    uint64_t payload;
};

static struct packed packed(void)
{
    struct packed put = {.record = operation(SUBMIT_PUT)};

    put.record.flags = SUBMIT_INLINE;
    put.record.length = sizeof(put.payload);
    put.record.size = sizeof(put);
    return put;
}

/* All of them are shown at once. */
static void submit_packed(struct bench *b, const struct packed *puts, uint32_t count)
{
    struct ring_control *ring = &b->session->submit;
    uint64_t tail = atomic_load(&ring->tail);

    memcpy(b->submit + tail, puts, count * sizeof(*puts));
    atomic_store(&ring->tail, tail + count * sizeof(*puts));
    bench_steps(b, 4);
}

static void submit_inline(struct bench *b, uint32_t count)
{
    const struct packed puts[] = {packed(), packed(), packed()};

    submit_packed(b, puts, count);
}

static void revoke(struct bench *b)
{
    const struct engine_key key = BENCH_KEY;
    const struct wire_region record = {.head = {.words = sizeof(record) / 8, .kind = WIRE_REVOKE},
                                       .slot = key.slot,
                                       .generation = key.generation};

    bench_send(b, &record, sizeof(record));
}

static void expect_events(struct bench *b, uint32_t count, int status)
{
    struct event_record event;

    for (; count > 0; count--) {
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, status);
    }
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_FALSE(b->quarantined);
}

/* ---- its memory -------------------------------------------------------------------------------
 */

enum memory { AS_IT_WAS, GONE, ANOTHERS, ENDS_BEFORE, ENDS_WITHIN, UNREGISTERED };

static void change(struct waiting *w, enum memory to)
{
    const struct engine_client_info info = {.rank = 1, .size = 2, .job = "j"};
    struct engine *e = w->b->engine;
    uint64_t length = to == ENDS_BEFORE ? BYTES / 4 : to == ENDS_WITHIN ? BYTES / 2 + 32 : BYTES;

    if (to == AS_IT_WAS)
        return;
    CU_ASSERT_EQUAL_FATAL(engine_segment_close(e, 0, WAITS), 0);
    bench_steps(w->b, 4);
    CU_ASSERT_EQUAL_FATAL(e->segments[WAITS].state, SEGMENT_FREE);
    if (to == GONE)
        return;
    if (to == ANOTHERS)
        CU_ASSERT_EQUAL_FATAL(engine_client_open(e, &info), 1);
    w->b->fabric.add_status = to == UNREGISTERED ? -EIO : 0;
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(e, to == ANOTHERS, w->memory, length), WAITS);
    bench_steps(w->b, 2);
}

static void memory_of_what_waits(void)
{
    static const struct {
        enum memory memory;
        int status;
    } rows[] = {{AS_IT_WAS, 0},         {GONE, -EFAULT},        {ANOTHERS, -EFAULT},
                {ENDS_BEFORE, -EFAULT}, {ENDS_WITHIN, -EFAULT}, {UNREGISTERED, -EIO}};
    static const uint8_t kinds[] = {SUBMIT_PUT, SUBMIT_GET};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t k = 0; k < sizeof(kinds); k++) {
            const struct submit_record record = operation(kinds[k]);
            struct waiting w;

            begin(&w);
            bench_note(w.b, WIRE_STOP, FLOW, 0);
            bench_submit(w.b, &record);
            expect_events(w.b, 0, 0);
            change(&w, rows[i].memory);
            bench_note(w.b, WIRE_GO, FLOW, 0);
            bench_ack(w.b);
            expect_events(w.b, 1, rows[i].status);
            end(&w);
        }
}

/* ---- what it is for ---------------------------------------------------------------------------
 */

/* What waits is told; what its target has refused, and waits for, goes as a note of nothing. */
static void withdrawn_for_what_waits(void)
{
    static const struct {
        uint32_t count; /* of packed puts in a row; 0: a large one */
        bool refused;
    } rows[] = {{0, false}, {1, false}, {2, false}, {3, false}, {1, true}, {2, true}, {3, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct submit_record put = operation(SUBMIT_PUT);
        uint32_t events = rows[i].count > 0 ? rows[i].count : 1;
        struct waiting w;

        begin(&w);
        if (!rows[i].refused)
            bench_note(w.b, WIRE_STOP, FLOW, 0);
        if (rows[i].count > 0)
            submit_inline(w.b, rows[i].count);
        else
            bench_submit(w.b, &put);
        if (rows[i].refused)
            bench_note(w.b, WIRE_REFUSE, FLOW, 0);
        revoke(w.b);
        w.b->fabric.kinds = 0;
        bench_note(w.b, WIRE_GO, FLOW, 0);
        bench_ack(w.b);
        CU_ASSERT_EQUAL((w.b->fabric.kinds & 1u << WIRE_NOTE) != 0, rows[i].refused);
        CU_ASSERT_EQUAL(w.b->fabric.kinds & (1u << WIRE_PUT | 1u << WIRE_BATCH), 0);
        expect_events(w.b, events, -EKEYREJECTED);
        end(&w);
    }
}

/* A put without a key has nowhere to go; one of no bytes needs none. */
static void without_a_key(void)
{
    static const struct {
        uint8_t kind;
        uint64_t length, offset;
        int status;
    } rows[] = {{SUBMIT_PUT, 0, 0, 0},
                {SUBMIT_PUT, 1, 0, -EKEYREJECTED},
                {SUBMIT_GET, 0, 0, 0},
                {SUBMIT_GET, 1, 0, -EKEYREJECTED}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct submit_record record = operation(rows[i].kind);
        struct waiting w;

        begin(&w);
        CU_ASSERT_EQUAL_FATAL(engine_bind(w.b->engine, 0, 1, 1, NULL, 1), 0);
        bench_bound(w.b, 1, 0, 3);
        record.remote = 1;
        record.length = rows[i].length;
        bench_submit(w.b, &record);
        bench_ack(w.b);
        expect_events(w.b, 1, rows[i].status);
        end(&w);
    }
}

/* A Long of no bytes has a place too, where it has a key. */
static void places_of_a_long(void)
{
    static const struct {
        bool key;
        uint64_t offset, length;
        int status;
    } rows[] = {{true, 0, 0, 0},          {true, 4096, 0, 0},       {true, 4097, 0, -ERANGE},
                {true, 4095, 1, 0},       {true, 4096, 1, -ERANGE}, {false, 0, 0, 0},
                {false, UINT64_MAX, 0, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct {
            struct submit_record record;
            struct message block;
        } message = {.record = operation(SUBMIT_LONG), .block = {.kind = SUBMIT_LONG}};
        struct waiting w;

        begin(&w);
        CU_ASSERT_EQUAL_FATAL(engine_bind(w.b->engine, 0, 1, 1, NULL, 1), 0);
        bench_bound(w.b, 1, 0, 3);
        message.record.size = sizeof(message);
        message.record.flags = SUBMIT_NO_REPLY;
        message.record.remote = rows[i].key ? 0 : 1;
        message.record.rid_len = sizeof(message.block);
        message.record.offset = rows[i].offset;
        message.record.length = rows[i].length;
        bench_submit(w.b, &message.record);
        bench_ack(w.b);
        expect_events(w.b, 1, rows[i].status);
        end(&w);
    }
}

/* ---- the fabric -------------------------------------------------------------------------------
 */

static struct submit_record reassembled(void)
{
    struct submit_record put = operation(SUBMIT_PUT);

    put.flags = SUBMIT_REASSEMBLE;
    put.length = 4096;
    return put;
}

/* A payload of which the fabric takes a part: what the target waits for comes with the next try, or
 * the link begins anew. */
static void stripes_that_do_not_leave(void)
{
    static const struct {
        uint32_t after;
        int status;
        bool broken;
        int told; /* 1: it waits */
    } rows[] = {{0, -EAGAIN, false, 1},
                {1, -EAGAIN, false, 1},
                {0, -EIO, false, -EIO},
                {1, -EIO, true, 1},
                {2, -EIO, false, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct submit_record put = reassembled();
        struct event_record event;
        struct waiting w;

        begin(&w);
        w.b->engine->stripe_shift = 1;
        w.b->engine->config.stripe_min = 512;
        w.b->fabric.post_status = rows[i].status;
        w.b->fabric.post_after = rows[i].after;
        bench_submit(w.b, &put);
        CU_ASSERT_EQUAL(w.b->broken, rows[i].broken);
        if (!rows[i].broken)
            bench_ack(w.b);
        if (rows[i].told == 1) {
            CU_ASSERT_FALSE(bench_local_event(w.b, &event));
        } else {
            CU_ASSERT_TRUE_FATAL(bench_local_event(w.b, &event));
            CU_ASSERT_EQUAL(event.status, rows[i].told);
        }
        end(&w);
    }
}

/* Without a nonce a put waits for one; where nothing will give one back, a new link has all. */
static void without_a_nonce(void)
{
    static const struct {
        bool outstanding, voids, sent, broken;
    } rows[] = {{false, false, false, true},
                {true, false, false, false},
                {false, true, false, false},
                {false, false, true, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct submit_record put = reassembled(), get = operation(SUBMIT_GET);
        struct ledger_out *out;
        struct waiting w;

        begin(&w);
        bench_ack(w.b);
        out = &w.b->engine->peer_live[1].out;
        w.b->fabric.holds = rows[i].outstanding;
        if (rows[i].outstanding)
            bench_submit(w.b, &get);
        if (rows[i].sent)
            submit_inline(w.b, 1);
        out->nonces_free = NONCES_FOR_REPLIES;
        out->voids = rows[i].voids;
        bench_submit(w.b, &put);
        out->voids = 0;
        CU_ASSERT_EQUAL(w.b->broken, rows[i].broken);
        end(&w);
    }
}

/* ---- puts in a row ----------------------------------------------------------------------------
 */

/* Those that differ from the first in anything go by themselves, and no put is lost by it. */
static void what_goes_together(void)
{
    enum { FIRST_REMOTE, SECOND_REMOTE };
    static const struct {
        const char *what;
        uint32_t at, bytes;
        uint64_t value;
        bool together, refused;
    } rows[] = {
#define FIELD(name)                                                                                \
#name, offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)
        {FIELD(rid), 9, true, false},
        {FIELD(length), 7, true, false},
        {FIELD(offset), 4088, true, false},
        {FIELD(offset), 4089, false, false}, /* ends with an error */
        {FIELD(offset), 4096, false, false},
        {FIELD(offset), 4097, false, false},
        {FIELD(offset), UINT64_C(1) << BATCH_OFFSET_BITS, false, false},
        {FIELD(flags), SUBMIT_INLINE | SUBMIT_NO_RCE, false, false},
        {FIELD(flags), SUBMIT_INLINE | SUBMIT_UNORDERED, false, false},
        {FIELD(remote), SECOND_REMOTE, false, false},
        {FIELD(reserve), sizeof(struct event_record) + 8, false, true},
        {FIELD(length), 16, false, true}, /* more than there is */
        {FIELD(size), 64, false, true},
        {FIELD(size), 8, false, true},
        {FIELD(size), 4, false, true},
#undef FIELD
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct engine_key key = BENCH_KEY;
        struct packed puts[] = {packed(), packed()};
        struct waiting w;

        begin(&w);
        CU_ASSERT_EQUAL_FATAL(engine_bind(w.b->engine, 0, 1, 1, &key, 1), 0);
        bench_bound(w.b, SECOND_REMOTE, 0, 3);
        memcpy((uint8_t *)&puts[1].record + rows[i].at, &rows[i].value, rows[i].bytes);
        submit_packed(w.b, puts, 2);
        if (((w.b->fabric.kinds & 1u << WIRE_BATCH) != 0) != rows[i].together ||
            w.b->quarantined != rows[i].refused)
            printf("row %zu, %s\n", i, rows[i].what);
        CU_ASSERT_EQUAL((w.b->fabric.kinds & 1u << WIRE_BATCH) != 0, rows[i].together);
        CU_ASSERT_EQUAL(w.b->quarantined, rows[i].refused);
        end(&w);
    }
}

/* A first that is not in order is told so, and not taken for one of a row. */
static void a_row_that_begins_badly(void)
{
    static const struct {
        uint32_t remote;
        uint64_t offset;
        bool refused;
    } rows[] = {{0, 0, false}, {0, 4096, false}, {7, 0, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct packed puts[] = {packed(), packed()};
        struct waiting w;

        begin(&w);
        for (int n = 0; n < 2; n++) {
            puts[n].record.remote = rows[i].remote;
            puts[n].record.offset = rows[i].offset;
        }
        submit_packed(w.b, puts, 2);
        CU_ASSERT_EQUAL((w.b->fabric.kinds & 1u << WIRE_BATCH) != 0, i == 0);
        CU_ASSERT_EQUAL(w.b->quarantined, rows[i].refused);
        end(&w);
    }
}

/* Its event ring says nothing that can be, or has room for one event only. */
static void a_row_without_event_room(void)
{
    for (int full = 0; full < 2; full++) {
        struct waiting w;
        struct session *s;

        begin(&w);
        s = &w.b->engine->sessions[0];
        if (full)
            s->reserved = RING - EVENT_BYTES_MAX - event_bytes(0);
        else
            atomic_store(&w.b->session->local.head, 8);
        submit_inline(w.b, 2);
        CU_ASSERT_EQUAL(w.b->fabric.kinds & 1u << WIRE_BATCH, 0);
        CU_ASSERT_TRUE(w.b->quarantined);
        end(&w);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"memory of what waits", memory_of_what_waits},
                           {"withdrawn for what waits", withdrawn_for_what_waits},
                           {"without a key", without_a_key},
                           {"places of a Long", places_of_a_long},
                           {"stripes that do not leave", stripes_that_do_not_leave},
                           {"without a nonce", without_a_nonce},
                           {"what goes together", what_goes_together},
                           {"a row that begins badly", a_row_that_begins_badly},
                           {"a row without event room", a_row_without_event_room},
                           CU_TEST_INFO_NULL};

    return suite_run("waits", tests);
}
