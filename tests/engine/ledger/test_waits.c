/*
 * Changes while an operation waits: its memory is closed, or becomes another client's; its target
 * is withdrawn; the fabric takes only a part of it. The operation ends with an error that says so,
 * what the target waits for is sent anyway, and no other client's memory is touched. One engine;
 * the test is its client, its peer, and the fabric (record_bench.h). One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/ops/op.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define BYTES 8192u /* bytes of the second segment */
#define FLOW  0u
#define WAITS 1u /* number of the second segment */

struct waiting {
    struct bench *b;
    uint8_t *memory; /* the second segment */
};

static void begin(struct waiting *w)
{
    w->b = unbound_bench(false);
    w->memory = calloc(1, BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->memory);
    bench_remote(w->b);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(w->b->engine, 0, w->memory, BYTES), WAITS);
    bench_steps(w->b, 2);
}

static void end(struct waiting *w)
{
    bench_free(w->b);
    free(w->memory);
}

/* An operation that reads from, or writes to, the second half of the second segment. */
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

/* Submits these puts so that the engine sees all of them at the same time. */
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

/* ---- memory of an operation ----------------------------------------------------------------- */

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
    CU_ASSERT_EQUAL_FATAL(peek_segment(e, WAITS), SEGMENT_FREE);
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

/* ---- operations that wait -------------------------------------------------------------------- */

/* Guards operations that wait when their region is withdrawn: each gets its error. An operation
 * that the target has refused, and still waits for, is sent as an empty note. */
static void withdrawn_for_what_waits(void)
{
    static const struct {
        uint32_t count; /* number of packed puts in a row; 0: one large put */
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

/* Guards that a put without a key fails, because it has no place; unless it has no bytes, and needs
 * none. */
static void without_a_key(void)
{
    static const struct {
        uint8_t kind;
        uint64_t length;
        int status;
    } rows[] = {{SUBMIT_PUT, 0, 0},
                {SUBMIT_PUT, 1, -EKEYREJECTED},
                {SUBMIT_GET, 0, 0},
                {SUBMIT_GET, 1, -EKEYREJECTED}};

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

/* Guards that the place of a Long of no bytes is checked too, if the Long has a key. */
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
        if (rows[i].length == 0)
            message.record.placed = 0; /* the Long ends no series */
        bench_submit(w.b, &message.record);
        bench_ack(w.b);
        expect_events(w.b, 1, rows[i].status);
        end(&w);
    }
}

/* Guards the length of a message: the greatest is taken, a longer one quarantines its client. */
static void blocks_too_long(void)
{
    for (uint32_t more = 0; more <= 8; more += 8) {
        struct {
            struct submit_record record;
            struct message block;
            uint64_t rest[1000];
        } message = {.record = operation(SUBMIT_MEDIUM), .block = {.kind = SUBMIT_MEDIUM}};
        struct waiting w;

        begin(&w);
        message.block.arguments = SESSION_ARGUMENTS_MAX;
        message.block.payload_len = w.b->config.packed_max + more;
        message.record.flags = SUBMIT_NO_REPLY;
        message.record.length = 0;
        message.record.rid_len = (uint16_t)(w.b->session->message_max + more);
        message.record.size += message.record.rid_len;
        bench_submit(w.b, &message.record);
        CU_ASSERT_EQUAL(w.b->quarantined, more > 0);
        end(&w);
    }
}

/* ---- the fabric ------------------------------------------------------------------------------ */

static struct submit_record reassembled(void)
{
    struct submit_record put = operation(SUBMIT_PUT);

    put.flags = SUBMIT_REASSEMBLE;
    put.length = 4096;
    return put;
}

/* Guards a payload of which the fabric takes only a part: what the target waits for is sent with
 * the next try, or the link begins again. */
static void pieces_that_do_not_leave(void)
{
    static const struct {
        uint32_t after;
        int status;
        bool broken;
        int event; /* status of the operation's event; 1: the operation waits */
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
        poke_rails(w.b->engine, 1, 512);
        w.b->fabric.post_status = rows[i].status;
        w.b->fabric.post_after = rows[i].after;
        bench_submit(w.b, &put);
        CU_ASSERT_EQUAL(w.b->broken, rows[i].broken);
        if (!rows[i].broken)
            bench_ack(w.b);
        if (rows[i].event == 1) {
            CU_ASSERT_FALSE(bench_local_event(w.b, &event));
        } else {
            CU_ASSERT_TRUE_FATAL(bench_local_event(w.b, &event));
            CU_ASSERT_EQUAL(event.status, rows[i].event);
        }
        end(&w);
    }
}

/* Guards that a post which the fabric refuses for long, for example while no connection can be
 * made, costs few steps: the pauses between tries grow. The first pause is short, also after a
 * success and on a new link. Where the fabric finds room only when it is polled, the tries are more
 * frequent. */
static void refused_for_long(void)
{
    static const struct {
        bool success, can_sleep;
        int least, most; /* steps in 100 ms */
    } rows[] = {{false, true, 90, 150}, {true, true, 90, 150}, {false, false, 3000, 3300}};
    const struct submit_record put = reassembled();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t until, deadline;
        struct waiting w;
        int steps = 0;

        begin(&w);
        w.b->fabric.base.traits.can_sleep = rows[i].can_sleep;
        w.b->fabric.post_status = -EAGAIN;
        bench_submit(w.b, &put);
        if (rows[i].success) { /* the engine forgets the pause that it had learnt */
            bench_steps(w.b, 1000);
            w.b->fabric.post_status = 0;
            bench_steps(w.b, 1);
            bench_ack(w.b);
            w.b->fabric.post_status = -EAGAIN;
            bench_submit(w.b, &put);
        }
        for (until = w.b->now + 100000000; w.b->now < until; steps++) {
            engine_step(w.b->engine, w.b->now, 64, &deadline);
            CU_ASSERT_FATAL(deadline > w.b->now);
            if (steps < 3)
                CU_ASSERT(deadline <= w.b->now + (UINT64_C(8000) << steps));
            w.b->now = deadline;
        }
        CU_ASSERT(steps > rows[i].least && steps < rows[i].most);
        if (!(steps > rows[i].least && steps < rows[i].most))
            printf("row %zu: %d steps\n", i, steps);
        CU_ASSERT_FALSE(w.b->broken);
        engine_peer_lost(w.b->engine, 1); /* a new link makes the engine forget the pause, too */
        CU_ASSERT(peek_peer(w.b->engine, 1).pause_ns > 0);
        CU_ASSERT_EQUAL(bench_link(w.b), 0);
        CU_ASSERT_EQUAL(peek_peer(w.b->engine, 1).pause_ns, 0);
        end(&w);
    }
}

/* Guards that a put without a nonce waits for one; when nothing will give a nonce back, the link
 * begins again, with all nonces free. */
static void without_a_nonce(void)
{
    static const struct {
        bool outstanding, sent, broken;
    } rows[] = {{false, false, true}, {true, false, false}, {false, true, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct submit_record put = reassembled(), get = operation(SUBMIT_GET);
        struct waiting w;

        begin(&w);
        bench_ack(w.b);
        w.b->fabric.holds = rows[i].outstanding;
        if (rows[i].outstanding)
            bench_submit(w.b, &get);
        if (rows[i].sent)
            submit_inline(w.b, 1);
        poke_nonces(w.b->engine, 1, NONCES_FOR_REPLIES);
        bench_submit(w.b, &put);
        CU_ASSERT_EQUAL(w.b->broken, rows[i].broken);
        end(&w);
    }
}

/* Guards a put that waits for a nonce while a VOID is to give one back: the nonce of another flow,
 * which was held after its payload had left. Then the link does not begin again. */
static void a_nonce_on_its_way_back(void)
{
    const struct engine_key key = BENCH_KEY;
    struct submit_record put = reassembled();
    struct waiting w;

    begin(&w);
    CU_ASSERT_EQUAL_FATAL(engine_bind(w.b->engine, 0, 1, 2, &key, 1), 0);
    bench_bound(w.b, 1, 0, 3);
    poke_switching(w.b->engine, 1, true); /* no record can be staged */
    bench_submit(w.b, &put);
    CU_ASSERT_EQUAL_FATAL(peek_flow(w.b->engine, FLOW).started, 1);
    CU_ASSERT_EQUAL_FATAL(peek_flow(w.b->engine, FLOW).staged, 0);
    poke_nonces(w.b->engine, 1, NONCES_FOR_REPLIES);
    put.remote = 1;
    bench_submit(w.b, &put);
    bench_note(w.b, WIRE_STOP, FLOW, 0);
    CU_ASSERT_EQUAL(peek_peer(w.b->engine, 1).voids, 1);
    CU_ASSERT_FALSE(w.b->broken);
    poke_switching(w.b->engine, 1, false);
    bench_steps(w.b, 2);
    CU_ASSERT_EQUAL(peek_peer(w.b->engine, 1).voids, 0);
    CU_ASSERT_TRUE(w.b->fabric.kinds & 1u << WIRE_VOID);
    bench_ack(w.b);
    bench_steps(w.b, 2);
    CU_ASSERT_EQUAL(peek_flow(w.b->engine, 1).staged, 1); /* with the nonce that came back */
    CU_ASSERT_FALSE(w.b->broken);
    end(&w);
}

/* ---- puts in a row --------------------------------------------------------------------------- */

/* Guards that puts which differ from the first in anything leave on their own, and that no put is
 * lost by that. */
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
        {FIELD(length), 16, false, true}, /* more bytes than the record has */
        {FIELD(kind), SUBMIT_PAD, false, true},
        {FIELD(kind), SUBMIT_GET, false, true}, /* a get whose bytes are in its record */
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

/* Guards rows of about as many puts as one batch may have: all puts leave, in a batch and a put, or
 * in two batches. */
static void rows_of_all_lengths(void)
{
    for (uint32_t count = 63; count <= 66; count++) { /* BATCH_PUTS_MAX is 64 */
        struct packed puts[66];
        struct waiting w;

        begin(&w);
        for (uint32_t i = 0; i < count; i++)
            puts[i] = packed();
        submit_packed(w.b, puts, count);
        CU_ASSERT_TRUE(w.b->fabric.kinds & 1u << WIRE_BATCH);
        CU_ASSERT_EQUAL((w.b->fabric.kinds & 1u << WIRE_PUT) != 0, count == 65);
        bench_ack(w.b);
        expect_events(w.b, count, 0);
        end(&w);
    }
}

/* Guards that a wrong first put gets its error, and does not begin a batch. */
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

/* Guards that a row of puts begins no batch, and quarantines its client, when the local ring has a
 * senseless head or room for one event only. */
static void a_row_without_event_room(void)
{
    static const struct {
        uint64_t reserved, head;
    } rows[] = {{RING - EVENT_BYTES_MAX - sizeof(struct event_record), 0},
                {RING - EVENT_BYTES_MAX, 0},
                {RING, 0},
                {0, 8}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct waiting w;

        begin(&w);
        poke_reserved(w.b->engine, 0, rows[i].reserved);
        atomic_store(&w.b->session->local.head, rows[i].head);
        submit_inline(w.b, 2);
        CU_ASSERT_EQUAL(w.b->fabric.kinds & 1u << WIRE_BATCH, 0);
        CU_ASSERT_TRUE(w.b->quarantined);
        end(&w);
    }
}

/* ---- wake-ups -------------------------------------------------------------------------------- */

/* Guards that wakes are no operations: a wake has no other field than its target. A target that has
 * gone does no harm, because the client may not know of its end. */
static void wakes(void)
{
    static const struct {
        const char *what;
        uint32_t at, bytes;
        uint64_t value;
        bool refused;
    } rows[] = {
#define FIELD(name)                                                                                \
#name, offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)
        {FIELD(remote), 0, false},
        {FIELD(remote), 1, false}, /* not bound */
        {FIELD(remote), 7, false},
        {FIELD(remote), 8, true},
        {FIELD(remote), UINT32_MAX - 1, true},
        {FIELD(remote), SUBMIT_NO_REMOTE, false},
        {FIELD(flags), SUBMIT_NO_LCE, true},
        {FIELD(lid_len), 8, true},
        {FIELD(rid_len), 8, true},
        {FIELD(reserve), 8, true},
        {FIELD(size), sizeof(struct submit_record) + 8, true},
#undef FIELD
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct packed wake = {.record = {.size = sizeof(wake.record), .kind = SUBMIT_WAKE}};
        struct waiting w;

        begin(&w);
        memcpy((uint8_t *)&wake.record + rows[i].at, &rows[i].value, rows[i].bytes);
        bench_submit(w.b, &wake.record);
        if (w.b->quarantined != rows[i].refused)
            printf("%s %llu\n", rows[i].what, (unsigned long long)rows[i].value);
        CU_ASSERT_EQUAL(w.b->quarantined, rows[i].refused);
        CU_ASSERT_EQUAL(atomic_load(&w.b->session->submit.head) > 0, !rows[i].refused);
        end(&w);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"memory of what waits", memory_of_what_waits},
                           {"withdrawn for what waits", withdrawn_for_what_waits},
                           {"without a key", without_a_key},
                           {"places of a Long", places_of_a_long},
                           {"blocks too long", blocks_too_long},
                           {"pieces that do not leave", pieces_that_do_not_leave},
                           {"refused for long", refused_for_long},
                           {"without a nonce", without_a_nonce},
                           {"a nonce on its way back", a_nonce_on_its_way_back},
                           {"what goes together", what_goes_together},
                           {"rows of all lengths", rows_of_all_lengths},
                           {"a row that begins badly", a_row_that_begins_badly},
                           {"a row without event room", a_row_without_event_room},
                           {"wakes", wakes},
                           CU_TEST_INFO_NULL};

    return suite_run("waits", tests);
}
