/*
 * Vectors in one engine over a fabric that only remembers; the test is the client and the peer. At
 * the target: what a record of short pieces may say. At the origin: what a client may submit, and
 * that a vector of which a record has failed brings no event. One thread.
 */
#include "tests/count.h"
#include "tests/suite.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "proto/word_abi.h"

#define REGION                4096u
#define PLACE(offset, length) ((uint64_t)(offset) << VECTOR_LENGTH_BITS | (length))

/* ---- at the target --------------------------------------------------------------------------- */

struct vector_record {
    struct wire_vector vector;
    struct {
        struct vector_piece piece;
        uint8_t bytes[8];
    } pieces[2];
};

/* The last record of a vector of 20 bytes, with 11 of them in it. */
static struct vector_record good_vector(const struct bench *b)
{
    return (struct vector_record){
        .vector = {.op = {.head = {.words = sizeof(struct vector_record) / 8, .kind = WIRE_VECTOR},
                          .flow = bench_inflow(b),
                          .rid = 9,
                          .length = 20},
                   .slot = b->key.slot,
                   .generation = b->key.generation},
        .pieces = {{{PLACE(64, 8)}, "1234567"}, {{PLACE(4093, 3)}, "abc"}}};
}

/* The first event in the remote ring. */
static const struct event_record *first_event(const struct bench *b)
{
    return (const struct event_record *)((const uint8_t *)b->session + SESSION_DATA_OFFSET +
                                         2 * RING);
}

/* Guards that the pieces are placed, and that the one event names the bytes of the whole vector. */
static void good_vector_is_taken(void)
{
    struct bench *b = linked_bench();
    struct vector_record v = good_vector(b);

    bench_send(b, &v, sizeof(v));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(memcmp(b->segment + 64, "1234567", 8), 0);
    CU_ASSERT_EQUAL(memcmp(b->segment + 4093, "abc", 3), 0);
    CU_ASSERT_EQUAL(bench_events(b), 48);
    CU_ASSERT(first_event(b)->bytes == 20 && first_event(b)->id == 9 &&
              first_event(b)->op == SUBMIT_PUT && first_event(b)->kind == EVENT_REMOTE);
    v.vector.op.head.flags = WIRE_NO_EVENT;
    v.pieces[0].bytes[0] = 'x';
    bench_send(b, &v, sizeof(v));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(b->segment[64], 'x');
    CU_ASSERT_EQUAL(bench_events(b), 48);
    bench_free(b);
}

/* Guards that a last record without pieces brings the event only if the region is still there: a
 * region that was withdrawn after an earlier record gets no event. */
static void end_names_the_region(void)
{
    for (uint32_t later = 0; later < 2; later++) {
        struct bench *b = linked_bench();
        struct vector_record v = good_vector(b);

        v.vector.op.head.words = sizeof(v.vector) / 8;
        v.vector.generation += later;
        bench_send(b, &v, sizeof(v.vector));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(bench_events(b), later ? 0 : 48);
        bench_free(b);
    }
}

/* Guards that a record with a piece which the region does not allow fails as a whole. */
static void refused_vectors_touch_nothing(void)
{
    static const struct {
        uint64_t offset;
        uint32_t slot, generation;
    } rows[] = {{4094, 0, 0}, {4096, 0, 0},          {(UINT64_C(1) << 48) - 1, 0, 0},
                {4093, 1, 0}, {4093, UINT32_MAX, 0}, {4093, 0, 1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = linked_bench();
        struct vector_record v = good_vector(b);
        uint8_t before[BENCH_SEGMENT];

        memcpy(before, b->segment, BENCH_SEGMENT);
        v.pieces[1].piece.place = PLACE(rows[i].offset, 3);
        v.vector.slot += rows[i].slot;
        v.vector.generation += rows[i].generation;
        bench_send(b, &v, sizeof(v));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(memcmp(before, b->segment, BENCH_SEGMENT), 0);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that a field of a good record that is set to a senseless value breaks the link. */
static void senseless_vectors_break_the_link(void)
{
    static const struct {
        uint32_t offset, bytes;
        uint64_t value;
    } rows[] = {
        {0, 2, 4},           {0, 2, 6},
        {0, 2, 8}, /* words */
        {3, 1, WIRE_NONCE},  {3, 1, WIRE_MESSAGE},
        {3, 1, WIRE_REPLY},  {8, 4, 8},
        {8, 4, UINT32_MAX}, /* flow */
        {24, 2, 8},          {24, 2, 40},
        {24, 2, UINT16_MAX},             /* bytes of the id */
        {28, 4, 10},         {28, 4, 0}, /* less than its pieces */
        {40, 2, 9},          {40, 2, 21},
        {40, 2, UINT16_MAX}, /* a piece's length */
        {56, 2, 0},          {56, 2, 9},
        {56, 2, UINT16_MAX},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = linked_bench();
        struct vector_record v = good_vector(b);

        memcpy((uint8_t *)&v + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_send(b, &v, sizeof(v));
        if (!b->broken)
            printf("row %zu was taken\n", i);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that the longest block that a node may send is taken, whatever packed_max is here. A
 * longer one breaks the link, and nothing of it is placed. */
static void longest_block(void)
{
    enum { PIECES = (8 + ENGINE_PACKED_MAX) / 16 };
    struct long_record {
        struct wire_vector vector;
        struct {
            struct vector_piece piece;
            uint8_t bytes[8];
        } pieces[PIECES + 1];
    } *record = calloc(1, sizeof(*record));
    const struct bench_shape shape = {
        .ring_bytes = RING, .region_bytes = REGION, .ledger_bytes = 1u << 18};

    CU_ASSERT_PTR_NOT_NULL_FATAL(record);
    for (uint32_t more = 0; more < 2; more++) {
        struct bench *b = bench_new(&shape);
        uint32_t size = (uint32_t)(sizeof(*record) - (1 - more) * sizeof(record->pieces[0]));

        CU_ASSERT_PTR_NOT_NULL_FATAL(b);
        CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        bench_bind(b, 5);
        record->vector = good_vector(b).vector;
        record->vector.op.head.words = (uint16_t)(size / 8);
        record->vector.op.length = 8 * (PIECES + more);
        for (uint32_t i = 0; i < PIECES + more; i++) {
            record->pieces[i].piece.place = PLACE(64, 8);
            memset(record->pieces[i].bytes, 'x', 8);
        }
        CU_ASSERT_TRUE(bench_send(b, record, size));
        CU_ASSERT_EQUAL(b->broken, more > 0);
        CU_ASSERT_EQUAL(b->segment[64], more ? 0 : 'x');
        CU_ASSERT_EQUAL(bench_events(b), more ? 0 : 48);
        bench_free(b);
    }
    free(record);
}

/* ---- at the origin --------------------------------------------------------------------------- */

struct block {
    struct submit_record record;
    struct {
        struct vector_piece piece;
        uint8_t bytes[8];
    } pieces[2];
};

static struct bench *submitting_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    CU_ASSERT_FALSE_FATAL(b->quarantined || b->broken);
    return b;
}

/* The last record of a vector of puts, with two short pieces. */
static struct block last_block(void)
{
    return (struct block){.record = {.size = sizeof(struct block),
                                     .kind = SUBMIT_VECTOR,
                                     .code = SUBMIT_PUT,
                                     .flags = SUBMIT_INLINE,
                                     .reserve = event_bytes(0),
                                     .total = 80,
                                     .length = 32,
                                     .lid = 3,
                                     .rid = 9},
                          .pieces = {{{PLACE(64, 8)}, "1234567"}, {{PLACE(4093, 3)}, "abc"}}};
}

/* A long piece before the last record. */
static struct submit_record long_piece(uint64_t offset, uint64_t lid)
{
    return (struct submit_record){.size = sizeof(struct submit_record),
                                  .kind = SUBMIT_PUT,
                                  .flags = SUBMIT_NO_RCE | SUBMIT_MORE,
                                  .reserve = event_bytes(0),
                                  .offset = offset,
                                  .length = 32,
                                  .lid = lid};
}

/* Guards the fields of a block: a submission that no honest library makes ends in quarantine; a
 * submission that may be a mistake fails. */
static void fields_of_a_block(void)
{
    static const struct {
        const char *what;
        size_t offset, bytes;
        uint64_t value;
        int status; /* status of the local event; 1: quarantined */
    } rows[] = {
#define FIELD(name) offsetof(struct block, name), sizeof(((struct block *)0)->name)
        {"nothing", FIELD(record.lid), 3, 0},
        {"a code that is none", FIELD(record.code), SUBMIT_FLUSH, 1},
        {"a block of gets", FIELD(record.code), SUBMIT_GET, 1},
        {"fewer bytes than its pieces", FIELD(record.total), 10, 1},
        {"as many bytes as its pieces", FIELD(record.total), 11, 0},
        {"more bytes than a record can say", FIELD(record.total), UINT64_C(1) << 32, -EMSGSIZE},
        {"a block that is shorter", FIELD(record.length), 24, 1},
        {"a block that is longer", FIELD(record.length), 40, 1},
        {"a block that is not there", FIELD(record.flags), 0, 1},
        {"a piece that is longer", FIELD(pieces[1].piece), PLACE(0, 9), 1},
        {"a piece past the block", FIELD(pieces[0].piece), PLACE(0, UINT16_MAX), 1},
        {"a piece at the end", FIELD(pieces[1].piece), PLACE(REGION - 8, 8), 0},
        {"a piece past the end", FIELD(pieces[1].piece), PLACE(REGION - 7, 8), -ERANGE},
        {"a piece far past the end", FIELD(pieces[1].piece), UINT64_MAX << 16 | 8, -ERANGE},
#undef FIELD
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = submitting_bench();
        struct block block = last_block();
        struct event_record event = {.status = 1};

        memcpy((uint8_t *)&block + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_submit(b, &block.record);
        bench_ack(b);
        CU_ASSERT_EQUAL(b->quarantined, rows[i].status == 1);
        if (!b->quarantined)
            CU_ASSERT_TRUE(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        if (event.status != rows[i].status)
            printf("%s: %d\n", rows[i].what, event.status);
        bench_free(b);
    }
}

/* Guards that a block needs a key, and the right to write. */
static void rights_of_a_block(void)
{
    static const struct {
        bool key;
        uint32_t rights;
        int status;
    } rows[] = {
        {true, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, 0},
        {true, ENGINE_REMOTE_WRITE, 0},
        {true, ENGINE_REMOTE_READ, -EKEYREJECTED},
        {true, 0, -EKEYREJECTED},
        {false, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, -EKEYREJECTED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = BENCH_KEY;
        struct block block = last_block();
        struct event_record event = {.status = 1};

        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 1, rows[i].key ? &key : NULL, 1), 0);
        bench_bound(b, 0, 0, rows[i].rights);
        bench_submit(b, &block.record);
        bench_ack(b);
        CU_ASSERT_FALSE(b->quarantined);
        CU_ASSERT_TRUE(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        CU_ASSERT_EQUAL((b->fabric.kinds & 1u << WIRE_VECTOR) != 0, rows[i].status == 0);
        bench_free(b);
    }
}

/* Guards that a record without a block has no length. */
static void length_without_a_block(void)
{
    struct bench *b = submitting_bench();
    struct submit_record end = last_block().record;

    end.size = sizeof(end);
    end.flags = 0;
    bench_submit(b, &end);
    CU_ASSERT_TRUE(b->quarantined);
    bench_free(b);
}

/* Guards that only puts, gets and blocks may have SUBMIT_MORE. */
static void more_of_other_kinds(void)
{
    struct bench *b = submitting_bench();
    const struct submit_record flush = {.size = sizeof(flush),
                                        .kind = SUBMIT_FLUSH,
                                        .flags = SUBMIT_MORE,
                                        .reserve = event_bytes(0)};

    bench_submit(b, &flush);
    CU_ASSERT_TRUE(b->quarantined);
    bench_free(b);
}

static void expect_end(struct bench *b, uint64_t id, int status)
{
    struct event_record event;

    CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
    CU_ASSERT_EQUAL(event.id, id);
    CU_ASSERT_EQUAL(event.status, status);
}

/* Checks that each record ends, the pieces with these statuses, and that the flow continues with
 * the next operation. */
static void expect_failed_vector(struct bench *b, int first, int second)
{
    struct block block = last_block();

    bench_ack(b);
    expect_end(b, 1, first);
    expect_end(b, 2, second);
    expect_end(b, 3, second);
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_VECTOR, 0);
    bench_submit(b, &block.record);
    bench_ack(b);
    expect_end(b, 3, 0);
    CU_ASSERT_NOT_EQUAL(b->fabric.kinds & 1u << WIRE_VECTOR, 0);
}

/* Guards that a record which fails at its submission makes the last one fail. */
static void fails_at_submission(void)
{
    struct bench *b = submitting_bench();
    struct submit_record first = long_piece(0, 1), second = long_piece(REGION, 2);
    struct block block = last_block();

    bench_submit(b, &first);
    bench_submit(b, &second);
    bench_submit(b, &block.record);
    expect_failed_vector(b, 0, -ERANGE);
    bench_free(b);
}

/* Guards that a payload which the fabric refuses makes the last record fail, whether the last
 * record is submitted before the refusal or after it. The payload of the first piece is under way.
 */
static void fails_at_start(void)
{
    for (int later = 0; later < 2; later++) {
        struct bench *b = submitting_bench();
        struct submit_record first = long_piece(0, 1), second = long_piece(64, 2);
        struct block block = last_block();
        struct ring_control *ring = &b->session->submit;
        uint64_t tail = atomic_load(&ring->tail);

        b->fabric.post_status = -EIO;
        b->fabric.post_after = 1;
        if (!later) {
            memcpy(b->submit + tail, &first, sizeof(first));
            memcpy(b->submit + tail + 64, &second, sizeof(second));
            memcpy(b->submit + tail + 128, &block, sizeof(block));
            atomic_store(&ring->tail, tail + 128 + sizeof(block));
            bench_steps(b, 2);
        } else {
            bench_submit(b, &first);
            bench_submit(b, &second);
            bench_submit(b, &block.record);
        }
        b->fabric.post_status = 0;
        expect_failed_vector(b, 0, -EIO);
        bench_free(b);
    }
}

/* Guards that a first piece which fails at once makes the second one fail too, which has not
 * started. */
static void fails_all_that_follow(void)
{
    struct bench *b = submitting_bench();
    struct submit_record first = long_piece(0, 1), second = long_piece(64, 2);
    struct block block = last_block();
    struct ring_control *ring = &b->session->submit;
    uint64_t tail = atomic_load(&ring->tail);

    b->fabric.post_status = -EIO;
    memcpy(b->submit + tail, &first, sizeof(first));
    memcpy(b->submit + tail + 64, &second, sizeof(second));
    memcpy(b->submit + tail + 128, &block, sizeof(block));
    atomic_store(&ring->tail, tail + 128 + sizeof(block));
    bench_steps(b, 2);
    b->fabric.post_status = 0;
    expect_failed_vector(b, -EIO, -EIO);
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_PLACED, 0);
    bench_free(b);
}

/* ---- other ends of a series ------------------------------------------------------------------ */

struct other_end {
    struct submit_record record;
    union {
        struct message message;
        struct signal signal;
    };
};

/* A Long whose 64 bytes the records before it have placed. */
static struct other_end long_end(void)
{
    return (struct other_end){.record = {.size = sizeof(struct other_end),
                                         .kind = SUBMIT_LONG,
                                         .flags = SUBMIT_NO_REPLY,
                                         .reserve = event_bytes(0),
                                         .placed = 64,
                                         .lid = 3,
                                         .rid_len = sizeof(struct message)},
                              .message = {.index = 3, .kind = SUBMIT_LONG}};
}

static struct other_end signal_end(void)
{
    return (struct other_end){.record = {.size = sizeof(struct other_end),
                                         .kind = SUBMIT_SIGNAL,
                                         .reserve = event_bytes(0),
                                         .lid = 3,
                                         .rid_len = sizeof(struct signal)},
                              .signal = {.value = 7, .code = word_code(WORD_SET, WORD_U64)}};
}

/* Guards that a Long or a signal of no bytes ends a series of puts, and fails with it when a record
 * has failed before. */
static void other_ends(void)
{
    for (int row = 0; row < 4; row++) {
        bool is_long = row & 1, fails = row & 2;
        struct other_end end = is_long ? long_end() : signal_end();
        uint32_t kind = 1u << (is_long ? WIRE_NOTE : WIRE_SIGNAL_PLACED);
        struct submit_record first = long_piece(fails ? REGION : 0, 1), second = long_piece(64, 2);
        struct bench *b = submitting_bench();
        int status = fails ? -ERANGE : 0;

        bench_submit(b, &first);
        bench_submit(b, &second);
        bench_ack(b);
        expect_end(b, 1, status);
        expect_end(b, 2, status);
        bench_submit(b, &end.record);
        bench_ack(b);
        CU_ASSERT_FALSE(b->quarantined);
        expect_end(b, 3, status);
        CU_ASSERT_EQUAL((b->fabric.kinds & kind) != 0, !fails);
        /* The flow continues with the next operation. */
        bench_submit(b, &end.record);
        bench_ack(b);
        expect_end(b, 3, 0);
        bench_free(b);
    }
}

/* Guards that the bytes which a Long says to be placed lie in the region. */
static void bytes_that_are_placed(void)
{
    static const struct {
        uint64_t offset, placed;
        int status;
    } rows[] = {
        {0, REGION, 0},
        {1, REGION, -ERANGE},
        {REGION - 1, 1, 0},
        {REGION, 1, -ERANGE},
        {UINT64_MAX, 1, -ERANGE},
        {1, UINT64_MAX, -EMSGSIZE},
        {0, UINT64_C(1) << 32, -EMSGSIZE},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = submitting_bench();
        struct other_end end = long_end();

        end.record.offset = rows[i].offset;
        end.record.placed = rows[i].placed;
        bench_submit(b, &end.record);
        bench_ack(b);
        CU_ASSERT_FALSE(b->quarantined);
        expect_end(b, 3, rows[i].status);
        bench_free(b);
    }
}

/* Guards that a Long with placed bytes needs a key, and the right to write. */
static void rights_of_a_long_end(void)
{
    static const struct {
        bool key;
        uint32_t rights;
        int status;
    } rows[] = {
        {true, ENGINE_REMOTE_WRITE, 0},
        {true, ENGINE_REMOTE_READ, -EKEYREJECTED},
        {false, ENGINE_REMOTE_WRITE, -EKEYREJECTED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = BENCH_KEY;
        struct other_end end = long_end();

        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 1, rows[i].key ? &key : NULL, 1), 0);
        bench_bound(b, 0, 0, rows[i].rights);
        bench_submit(b, &end.record);
        bench_ack(b);
        expect_end(b, 3, rows[i].status);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a good vector is taken", good_vector_is_taken},
        {"an end names the region", end_names_the_region},
        {"refused vectors touch nothing", refused_vectors_touch_nothing},
        {"senseless vectors break the link", senseless_vectors_break_the_link},
        {"the longest block", longest_block},
        {"fields of a block", fields_of_a_block},
        {"rights of a block", rights_of_a_block},
        {"a length without a block", length_without_a_block},
        {"MORE of other kinds", more_of_other_kinds},
        {"fails at submission", fails_at_submission},
        {"fails at start", fails_at_start},
        {"fails all that follow", fails_all_that_follow},
        {"a Long and a signal as ends", other_ends},
        {"bytes that a Long says to be placed", bytes_that_are_placed},
        {"rights of a Long that ends a series", rights_of_a_long_end},
        CU_TEST_INFO_NULL,
    };

    return suite_run("vectors", tests);
}
