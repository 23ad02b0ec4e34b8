/* Which puts of a client form one batch (session_batch.c), and the contents of its record. One
 * engine over a fabric that only remembers; the test is the client and the peer. One thread. */
#include "tests/suite.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/ledger/ledger.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "daemon/engine/kinds/batch_format.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "proto/word_abi.h"

#define REGION 4096u /* bytes of the region that the remote of bench_remote leads to */
#define RID    UINT64_C(100)

struct put {
    struct submit_record record;
    uint8_t payload[256];
};

static struct bench *submitting_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    CU_ASSERT_FALSE_FATAL(b->quarantined || b->broken);
    return b;
}

/* Put number `i`, with `length` bytes (at most 256). */
static struct put put_of(uint32_t i, uint32_t length)
{
    struct put put = {.record = {.size = sizeof(put.record) + abi_pad8(length),
                                 .kind = SUBMIT_PUT,
                                 .flags = SUBMIT_INLINE | SUBMIT_NO_LCE,
                                 .reserve = event_bytes(0),
                                 .offset = UINT64_C(8) * i,
                                 .length = length,
                                 .lid = 7,
                                 .rid = RID + i}};

    memset(put.payload, 'a' + (int)(i % 26), sizeof(put.payload));
    return put;
}

/* Submits `size` bytes, whatever the record states, without a step. */
static void submit(struct bench *b, const struct put *put, uint32_t size)
{
    struct ring_control *ring = &b->session->submit;
    uint32_t ring_size = b->session->sizes.submit;
    uint64_t tail = atomic_load(&ring->tail), to_end = ring_size - tail % ring_size;

    if (to_end < size) {
        const struct submit_record pad = {.size = (uint32_t)to_end};

        memcpy(b->submit + tail % ring_size, &pad, 8);
        tail += to_end;
    }
    memcpy(b->submit + tail % ring_size, put, size);
    atomic_store(&ring->tail, tail + size);
}

/* Checks that the record has the contents of this put. */
static void expect_put(const struct put *put, uint64_t rid, uint64_t offset, uint32_t length,
                       const uint8_t *payload)
{
    CU_ASSERT_EQUAL(rid, put->record.rid);
    CU_ASSERT_EQUAL(offset, put->record.offset);
    CU_ASSERT_EQUAL_FATAL(length, put->record.length);
    CU_ASSERT_EQUAL(memcmp(payload, put->payload, length), 0);
}

/* Checks the records from `at` on: `expected` says how many puts each has, and these are the next
 * ones of `puts`, `count` at most. */
static void expect(struct bench *b, uint64_t at, const struct put *puts, uint32_t count,
                   const char *expected)
{
    char said[64] = "";
    uint32_t seen = 0;

    for (size_t used = 0; at < peek_peer(b->engine, 1).staged;) {
        const uint8_t *record = peek_record(b->engine, 1, at);
        const struct wire_record *head = (const void *)record;
        const struct wire_batch *batch = (const void *)record;
        const struct wire_put *put = (const void *)record;
        const uint8_t *block = record + sizeof(*batch);
        uint32_t n = head->kind == WIRE_BATCH ? (uint32_t)batch->op.rid : head->kind == WIRE_PUT;
        uint32_t next = 0;

        at += head->words * 8u;
        if (n == 0)
            continue;
        used += (size_t)snprintf(said + used, sizeof(said) - used, "%s%u", used ? " " : "", n);
        CU_ASSERT_FATAL(seen + n <= count);
        if (head->kind == WIRE_PUT)
            expect_put(&puts[seen++], put->op.rid, put->offset, put->op.length,
                       record + sizeof(*put));
        for (uint32_t i = 0; head->kind == WIRE_BATCH && i < n; i++) {
            const uint8_t *payload = block + next + sizeof(struct wire_batch_put);
            uint64_t rid, offset;
            uint32_t length;

            next = batch_step(block, next, &rid, &offset, &length);
            expect_put(&puts[seen++], rid, offset, length, payload);
        }
    }
    CU_ASSERT_STRING_EQUAL(said, expected);
    if (strcmp(said, expected) != 0)
        printf("\"%s\", not \"%s\"\n", said, expected);
}

/* Guards which puts form one batch: of three puts, the second differs from the others in one field.
 */
static void one_differs(void)
{
    static const struct {
        const char *what;
        size_t offset, bytes;
        uint64_t value;
        const char *records; /* NULL: the second fails, and the others go on their own */
        bool quarantined;
    } rows[] = {
#define FIELD(name) offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)
        {"nothing", FIELD(lid), 7, "3", false},
        {"remote id", FIELD(rid), UINT64_MAX, "3", false},
        {"its place", FIELD(offset), 4000, "3", false},
        {"the last place", FIELD(offset), REGION - 8, "3", false},
        {"a place past the end", FIELD(offset), REGION - 7, NULL, false},
        {"the last place there is", FIELD(offset), UINT64_MAX, NULL, false},
        {"fewer bytes", FIELD(length), 3, "3", false},
        {"more bytes than it has", FIELD(length), 9, "1", true},
        {"no bytes", FIELD(length), 0, "1", true},
        {"no event at its target", FIELD(flags), SUBMIT_INLINE | SUBMIT_NO_LCE | SUBMIT_NO_RCE,
         "1 1 1", false},
        {"an event at its origin", FIELD(flags), SUBMIT_INLINE, "1 1 1", false},
        {"a flag that is none", FIELD(flags), UINT16_MAX, "1", true},
        {"another remote", FIELD(remote), 1, "1", true},
        {"no event space", FIELD(reserve), 0, "1", true},
        {"a size that is none", FIELD(size), 71, "1", true},
        {"another size", FIELD(size), 80, "1", true},
        {"a local id of bytes", FIELD(lid_len), 8, "1", true},
        {"a remote id of bytes", FIELD(rid_len), 8, "1", true},
        {"a kind that is none", FIELD(kind), 0xff, "1", true},
        {"another code", FIELD(code), 1, "1 1 1", false},
        {"a segment that nobody reads", FIELD(segment), 1, "3", false},
        {"an offset that nobody reads", FIELD(local_offset), 1, "3", false},
#undef FIELD
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = submitting_bench();
        struct put puts[3] = {put_of(0, 8), put_of(1, 8), put_of(2, 8)};
        uint32_t size = puts[1].record.size;
        uint64_t from = peek_peer(b->engine, 1).staged;

        memcpy((uint8_t *)&puts[1] + rows[i].offset, &rows[i].value, rows[i].bytes);
        for (uint32_t n = 0; n < 3; n++)
            submit(b, &puts[n], size);
        bench_steps(b, 2);
        if (!rows[i].records)
            puts[1] = puts[2];
        expect(b, from, puts, rows[i].records ? 3 : 2, rows[i].records ? rows[i].records : "1 1");
        CU_ASSERT_EQUAL(b->quarantined, rows[i].quarantined);
        if (b->quarantined != rows[i].quarantined)
            printf("%s\n", rows[i].what);
        bench_free(b);
    }
}

/* Guards that puts to offsets which a batch cannot name leave on their own. */
static void far_places(void)
{
    static const struct {
        uint64_t offset;
        const char *records;
    } rows[] = {{(UINT64_C(1) << BATCH_OFFSET_BITS) - 1, "3"},
                {UINT64_C(1) << BATCH_OFFSET_BITS, "1 1 1"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = submitting_bench();
        struct put puts[3] = {put_of(0, 8), put_of(1, 8), put_of(2, 8)};
        uint64_t from = peek_peer(b->engine, 1).staged;

        poke_remote_length(b->engine, 0, UINT64_MAX);
        puts[1].record.offset = rows[i].offset;
        for (uint32_t n = 0; n < 3; n++)
            submit(b, &puts[n], puts[n].record.size);
        bench_steps(b, 2);
        expect(b, from, puts, 3, rows[i].records);
        bench_free(b);
    }
}

/* Guards that each put of a batch has its own local event, whether all are as long as the first or
 * not, and whether the id is the program's or the library's. */
static void local_ids(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t longer = i % 2 * 8;
        uint16_t slot = i / 2 ? SUBMIT_SLOT : 0;
        struct bench *b = submitting_bench();
        uint64_t from = peek_peer(b->engine, 1).staged;
        struct event_record event;
        struct put puts[3];

        for (uint32_t n = 0; n < 3; n++) {
            puts[n] = put_of(n, 8 + n * longer);
            puts[n].record.flags = SUBMIT_INLINE | slot;
            puts[n].record.lid = 10 + n;
            submit(b, &puts[n], puts[n].record.size);
        }
        bench_steps(b, 2);
        expect(b, from, puts, 3, "3");
        bench_ack(b);
        for (uint32_t n = 0; n < 3; n++) {
            CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
            CU_ASSERT(event.id == 10 + n && event.bytes == 8 + n * longer && event.status == 0);
            CU_ASSERT_EQUAL(event.op, event_op(SUBMIT_PUT, slot));
        }
        CU_ASSERT_FALSE(bench_local_event(b, &event));
        bench_free(b);
    }
}

/* Guards how many puts in a row form one batch: as many as the ring, the record, the queue's chunk
 * and the client's shares allow. */
static void how_many(void)
{
    static const struct {
        /* The puts counted by `before` have been taken, and have ended. */
        uint32_t before, count, length;
        uint32_t ops_max, events; /* 0: no limit but the bench's */
        uint32_t last_length;     /* the length of the last put, if it differs */
        bool quarantined;
        const char *records;
    } rows[] = {
        {.count = 1, .length = 8, .records = "1"},
        {.count = 2, .length = 8, .records = "2"},
        {.count = BATCH_PUTS_MAX - 1, .length = 8, .records = "63"},
        {.count = BATCH_PUTS_MAX, .length = 8, .records = "64"},
        {.count = BATCH_PUTS_MAX + 1, .length = 8, .records = "64 1"},
        {.count = 100, .length = 8, .records = "64 36"},
        /* 113 records fit before the end of the ring. */
        {.before = 100, .count = 12, .length = 8, .records = "12"},
        {.before = 100, .count = 13, .length = 8, .records = "13"},
        {.before = 100, .count = 14, .length = 8, .records = "14"},
        {.before = 100, .count = 30, .length = 8, .records = "30"},
        /* The padding before the end of the ring is longer than a record. */
        {.before = 110, .count = 2, .length = 8, .last_length = 256, .records = "2"},
        {.before = 110, .count = 2, .length = 8, .last_length = 3, .records = "2"},
        {.count = 64, .length = 1, .records = "64"},
        {.count = 20, .length = 256, .records = "7 7 6"},
        {.before = 7 * 64, .count = 64, .length = 8, .records = "32 32"},
        {.count = 20, .length = 8, .ops_max = 10, .records = "10"},
        {.count = 20, .length = 8, .ops_max = 1, .records = "1"},
        {.count = 5, .length = 8, .events = 5, .records = "5"},
        {.count = 6, .length = 8, .events = 5, .records = "5", .quarantined = true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = submitting_bench();
        struct put puts[BATCH_PUTS_MAX + 36], put;
        uint64_t from;

        for (uint32_t n = 0; n < rows[i].before; n++) {
            put = put_of(n, 8);
            submit(b, &put, put.record.size);
            if ((n + 1) % BATCH_PUTS_MAX == 0 || n + 1 == rows[i].before)
                bench_ack(b);
        }
        bench_steps(b, 2);
        from = peek_peer(b->engine, 1).staged;
        if (rows[i].ops_max > 0)
            poke_config(b->engine)->ops_max = rows[i].ops_max;
        if (rows[i].events > 0)
            poke_reserved(b->engine, 0, RING - EVENT_BYTES_MAX - rows[i].events * event_bytes(0));
        for (uint32_t n = 0; n < rows[i].count; n++) {
            bool last = n + 1 == rows[i].count && rows[i].last_length > 0;

            puts[n] = put_of(n, last ? rows[i].last_length : rows[i].length);
            submit(b, &puts[n], puts[n].record.size);
        }
        bench_steps(b, 2);
        expect(b, from, puts, rows[i].count, rows[i].records);
        CU_ASSERT_EQUAL(b->quarantined, rows[i].quarantined);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Submits two puts, which form one batch, and makes a step. Returns how many runs left. */
static uint32_t runs_with_batch(struct bench *b)
{
    uint32_t runs = b->fabric.runs;

    for (uint32_t i = 0; i < 2; i++) {
        struct put put = put_of(i, 8);

        submit(b, &put, put.record.size);
    }
    bench_steps(b, 1);
    return b->fabric.runs - runs;
}

/* The peer acknowledges all that was posted. Returns how many runs leave in that step. */
static uint32_t runs_with_ack(struct bench *b)
{
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    uint32_t runs = b->fabric.runs;

    ack.consumed = peek_peer(b->engine, 1).posted;
    bench_send_unseen(b, &ack, sizeof(ack));
    bench_steps(b, 1);
    return b->fabric.runs - runs;
}

/* Guards that a batch which follows one under way waits for the ACK, and takes along what the
 * client submits until then; where the client submits nothing, this happens only a few times. */
static void test_short_runs_wait(void)
{
    struct bench *b = submitting_bench();
    struct peek_peer peer;
    uint32_t waited = 0;

    bench_steps(b, 110); /* longer than any ACK waits */
    (void)runs_with_ack(b);
    CU_ASSERT_EQUAL(runs_with_batch(b), 1);
    CU_ASSERT_EQUAL(runs_with_batch(b), 0);
    CU_ASSERT_EQUAL(runs_with_batch(b), 0);
    CU_ASSERT_EQUAL(runs_with_ack(b), 0);
    CU_ASSERT_EQUAL(runs_with_batch(b), 1);
    peer = peek_peer(b->engine, 1);
    CU_ASSERT_EQUAL(peer.posted, peer.staged);
    while (waited < 64 && runs_with_batch(b) == 0) {
        waited++;
        CU_ASSERT_EQUAL(runs_with_ack(b), 0);
        bench_steps(b, 1);
        peer = peek_peer(b->engine, 1);
        CU_ASSERT_EQUAL(peer.posted, peer.staged);
    }
    CU_ASSERT(waited > 0 && waited < 8);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a batch does not wait where the thread will sleep soon. */
static void test_short_runs_hastened(void)
{
    struct bench *b = submitting_bench();

    bench_steps(b, 110);
    (void)runs_with_ack(b);
    CU_ASSERT_EQUAL(runs_with_batch(b), 1);
    CU_ASSERT_EQUAL(runs_with_batch(b), 0);
    engine_hasten(b->engine, true);
    CU_ASSERT_EQUAL(runs_with_batch(b), 1);
    bench_free(b);
}

/* Guards that a batch that waits keeps the link nudged: nothing leaves meanwhile, so the other side
 * may stop looking, as it may when the ledger is empty. */
static void test_short_runs_nudged(void)
{
    struct bench *b = submitting_bench();
    uint64_t deadline = UINT64_MAX;

    bench_steps(b, 110);
    (void)runs_with_ack(b);
    CU_ASSERT_EQUAL(runs_with_batch(b), 1);
    CU_ASSERT_EQUAL(runs_with_batch(b), 0);
    poke_outstanding(b->engine, 1, RUN_WINDOW + 1); /* a payload is under way */
    CU_ASSERT_FALSE(ledger_nudge(b->engine, 1, &deadline));
    CU_ASSERT_NOT_EQUAL(deadline, UINT64_MAX);
    poke_outstanding(b->engine, 1, 0);
    bench_free(b);
}

/* Submits 64 atomics without local events, and answers each record of them that its last atomic has
 * found its word busy. Returns how many records there were. */
static uint32_t nearly_all_done(struct bench *b)
{
    struct {
        struct submit_record record;
        uint64_t operand;
    } add = {.record = {.size = sizeof(add),
                        .kind = SUBMIT_ATOMIC,
                        .code = word_code(WORD_ADD, WORD_U64),
                        .flags = SUBMIT_INLINE | SUBMIT_NO_LCE,
                        .remote = b->remote,
                        .reserve = event_bytes(0),
                        .length = 8}};
    struct wire_flow fail = {.head = {.words = sizeof(fail) / 8, .kind = WIRE_FAIL},
                             .status = -EBUSY};
    uint64_t at = peek_peer(b->engine, 1).staged;
    uint32_t records = 0;

    for (uint32_t i = 0; i < BATCH_PUTS_MAX; i++)
        bench_submit_unseen(b, &add.record);
    bench_steps(b, 2);
    while (at < peek_peer(b->engine, 1).staged) {
        const struct wire_op *w = peek_record(b->engine, 1, at);

        at += w->head.words * 8u;
        if (w->head.kind != WIRE_ATOMICS)
            continue;
        fail.sequence = w->sequence;
        fail.done = (uint32_t)w->count - 1;
        CU_ASSERT_TRUE(bench_send(b, &fail, sizeof(fail)));
        records++;
    }
    bench_ack(b);
    return records;
}

/* Guards that many batches can end in one transaction, however many of their operations end without
 * an event: here they wait for an earlier put, whose payload is under way. */
static void test_many_ends(void)
{
    enum { BATCHES = 24 };
    const struct bench_shape shape = {.ring_bytes = 131072, .region_bytes = REGION};
    struct bench *b = bench_new(&shape);
    struct event_record event;
    uint32_t failed = 0;

    CU_ASSERT_FATAL(b && bench_link(b) == 0);
    bench_remote(b);
    engine_hasten(b->engine, true);
    b->fabric.holds = true;
    bench_submit(b, &(struct submit_record){.size = sizeof(struct submit_record),
                                            .kind = SUBMIT_PUT,
                                            .flags = SUBMIT_NO_LCE,
                                            .remote = b->remote,
                                            .reserve = event_bytes(0),
                                            .length = REGION});
    for (uint32_t i = 0; i < BATCHES; i++)
        failed += nearly_all_done(b);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended), 0);
    still_release(&b->fabric);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended), 1 + BATCHES * BATCH_PUTS_MAX);
    CU_ASSERT_EQUAL(atomic_load(&b->session->released),
                    (1 + BATCHES * BATCH_PUTS_MAX - failed) * event_bytes(0));
    for (uint32_t i = 0; i < failed; i++)
        CU_ASSERT(bench_local_event(b, &event) && event.status == -EBUSY);
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"one differs", one_differs},
        {"far places", far_places},
        {"local ids", local_ids},
        {"how many", how_many},
        {"short runs wait for an ACK", test_short_runs_wait},
        {"short runs where the thread sleeps", test_short_runs_hastened},
        {"a nudge beside short runs that wait", test_short_runs_nudged},
        {"many ends at once", test_many_ends},
        CU_TEST_INFO_NULL,
    };

    return suite_run("batches", tests);
}
