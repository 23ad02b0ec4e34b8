/*
 * Records of equal elements at equal distances, in one engine over a fabric that only remembers;
 * the test is the client and the peer. At the target: which elements are placed, and what a record
 * may say. At the origin: what a client may submit, when its source is read, and memory that is
 * gone or faults. One thread.
 */
#include "tests/count.h"
#include "tests/suite.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define REGION 4096u

/* ---- at the target --------------------------------------------------------------------------- */

struct strided_record {
    struct wire_strided strided;
    uint8_t bytes[72];
};

/* The last record of a vector of 100 bytes: three elements of 20 bytes, the first one the last in
 * memory. */
static struct strided_record good_strided(const struct bench *b)
{
    struct strided_record r = {
        .strided = {
            .op = {.head = {.words = (sizeof(struct wire_strided) + 64) / 8, .kind = WIRE_STRIDED},
                   .flow = bench_inflow(b),
                   .rid = 9,
                   .length = 100},
            .slot = b->key.slot,
            .generation = b->key.generation,
            .offset = 2000,
            .stride = -100,
            .element = 20,
            .count = 3}};

    for (size_t i = 0; i < sizeof(r.bytes); i++)
        r.bytes[i] = (uint8_t)(i + 1);
    return r;
}

static bool sent(struct bench *b, const struct strided_record *r)
{
    return bench_send(b, r, r->strided.op.head.words * 8u);
}

/* Guards that each element is placed, no other byte changes, and the one event names the bytes of
 * the whole vector. */
static void good_record_is_taken(void)
{
    static const uint32_t elements[] = {1, 2, 4, 8, 16, 20, 21};

    for (size_t row = 0; row < COUNT(elements); row++) {
        struct bench *b = linked_bench();
        struct strided_record r = good_strided(b);
        uint8_t expected[REGION] = {0};
        uint32_t element = elements[row], bytes = 3 * element;

        r.strided.element = element;
        r.strided.op.head.words = (uint16_t)((sizeof(r.strided) + (bytes + 7) / 8 * 8) / 8);
        CU_ASSERT_TRUE(sent(b, &r));
        for (uint32_t i = 0; i < 3; i++)
            memcpy(expected + 2000 - i * 100, r.bytes + i * element, element);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(memcmp(b->segment, expected, REGION), 0);
        CU_ASSERT_EQUAL(bench_events(b), 48);
        bench_free(b);
    }
}

/* Guards that a record with an element which the region does not have fails as a whole. */
static void refused_records_touch_nothing(void)
{
    static const struct {
        uint64_t offset;
        int64_t stride;
        uint32_t slot, generation;
        bool taken;
    } rows[] = {
        {REGION - 20, -100, 0, 0, true},
        {REGION - 19, -100, 0, 0, false},
        {200, -100, 0, 0, true},
        {199, -100, 0, 0, false},
        {REGION - 220, 100, 0, 0, true},
        {REGION - 219, 100, 0, 0, false},
        {UINT64_MAX - 9, -100, 0, 0, false},
        {UINT64_MAX - 9, 10, 0, 0, false},
        {2000, INT64_MAX, 0, 0, false},
        {2000, INT64_MIN, 0, 0, false},
        {2000, INT64_MIN / 2, 0, 0, false},
        {2000, -100, 1, 0, false},
        {2000, -100, UINT32_MAX, 0, false},
        {2000, -100, 0, 1, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = linked_bench();
        struct strided_record r = good_strided(b);
        uint8_t before[BENCH_SEGMENT];

        memcpy(before, b->segment, BENCH_SEGMENT);
        r.strided.offset = rows[i].offset;
        r.strided.stride = rows[i].stride;
        r.strided.slot += rows[i].slot;
        r.strided.generation += rows[i].generation;
        CU_ASSERT_TRUE(sent(b, &r));
        CU_ASSERT_FALSE(b->broken);
        if ((memcmp(before, b->segment, BENCH_SEGMENT) != 0) != rows[i].taken ||
            bench_events(b) != (rows[i].taken ? 48 : 0)) {
            printf("row %zu\n", i);
            CU_FAIL("a record was taken or refused wrongly");
        }
        bench_free(b);
    }
}

/* Guards that a field of a good record that is set to a senseless value breaks the link. */
static void senseless_records_break_the_link(void)
{
    static const struct {
        size_t offset, bytes;
        uint64_t value;
    } rows[] = {
#define FIELD(name) offsetof(struct wire_strided, name), sizeof(((struct wire_strided *)0)->name)
        {FIELD(op.head.words), 8},
        {FIELD(op.head.words), 15},
        {FIELD(op.head.words), 17},
        {FIELD(op.head.flags), WIRE_NONCE},
        {FIELD(op.head.flags), WIRE_MESSAGE},
        {FIELD(op.rid_len), 8},
        {FIELD(op.rid_len), UINT16_MAX},
        {FIELD(op.flow), 8},
        {FIELD(op.length), 59}, /* less than its elements */
        {FIELD(op.length), 0},
        {FIELD(element), 0},
        {FIELD(element), 19}, /* 57 bytes fill the record as 60 do */
        {FIELD(element), 22},
        {FIELD(element), UINT32_MAX},
        {FIELD(count), 0},
        {FIELD(count), 2},
        {FIELD(count), 4},
        {FIELD(count), UINT32_MAX},
#undef FIELD
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = linked_bench();
        struct strided_record r = good_strided(b);
        bool fits = rows[i].offset == offsetof(struct wire_strided, element) && rows[i].value == 19;

        memcpy((uint8_t *)&r + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_send(b, &r, sizeof(r.strided) + 64);
        if (b->broken == fits)
            printf("row %zu: broken %d\n", i, b->broken);
        CU_ASSERT_EQUAL(b->broken, !fits);
        bench_free(b);
    }
}

/* Guards that a single element may have any stride: sanitizers notice an address behind it. */
static void any_stride_of_one_element(void)
{
    static const int64_t strides[] = {INT64_MIN, INT64_MAX};
    static const uint32_t elements[] = {8, 20};

    for (size_t i = 0; i < COUNT(strides) * COUNT(elements); i++) {
        struct bench *b = linked_bench();
        struct strided_record r = good_strided(b);

        r.strided.stride = strides[i % 2];
        r.strided.element = elements[i / 2];
        r.strided.count = 1;
        r.strided.op.head.words =
            (uint16_t)((sizeof(r.strided) + (elements[i / 2] + 7) / 8 * 8) / 8);
        CU_ASSERT_TRUE(sent(b, &r));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(memcmp(b->segment + 2000, r.bytes, r.strided.element), 0);
        bench_free(b);
    }
}

/* Guards that a record without elements breaks the link, also where no byte follows. */
static void no_elements_break_the_link(void)
{
    struct bench *b = linked_bench();
    struct strided_record r = good_strided(b);

    r.strided.op.head.words = sizeof(r.strided) / 8;
    r.strided.element = 0;
    CU_ASSERT_TRUE(sent(b, &r));
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* Guards that many short elements cost as much of a step as if each had 64 bytes: each is an access
 * to memory of its own. */
static void short_elements_count_as_long_ones(void)
{
    static const struct {
        uint32_t element, count;
        uint32_t records; /* that a step takes */
    } rows[] = {{1, 1024, 1}, {8, 128, 1}, {16, 64, 1}, {64, 16, 4}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = linked_bench();
        struct {
            struct wire_strided strided;
            uint8_t bytes[1024];
        } records[8] = {0};
        struct peek_peer before;

        for (size_t j = 0; j < COUNT(records); j++) {
            records[j].strided = good_strided(b).strided;
            records[j].strided.op.head.words = sizeof(records[0]) / 8;
            records[j].strided.op.length = sizeof(records[0].bytes);
            records[j].strided.offset = 0;
            records[j].strided.stride = 4096 / rows[i].count;
            records[j].strided.element = rows[i].element;
            records[j].strided.count = rows[i].count;
        }
        before = peek_peer(b->engine, 1);
        CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, records, sizeof(records)));
        bench_steps(b, 1);
        CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed - before.consumed,
                        rows[i].records * sizeof(records[0]));
        bench_steps(b, 8);
        CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed - before.consumed, sizeof(records));
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that a record has at most as many elements as a vector may have pieces. */
static void most_elements_of_a_record(void)
{
    for (uint32_t more = 0; more < 2; more++) {
        struct bench *b = linked_bench();
        struct {
            struct wire_strided strided;
            uint8_t bytes[VECTOR_PIECES_MAX + 8];
        } r = {.strided = good_strided(b).strided};

        r.strided.offset = 0;
        r.strided.stride = 1;
        r.strided.element = 1;
        r.strided.count = VECTOR_PIECES_MAX + more;
        r.strided.op.length = r.strided.count;
        r.strided.op.head.words = (uint16_t)(sizeof(r.strided) / 8 + (r.strided.count + 7) / 8);
        CU_ASSERT_TRUE(bench_send(b, &r, r.strided.op.head.words * 8u));
        CU_ASSERT_EQUAL(b->broken, more > 0);
        bench_free(b);
    }
}

/* ---- at the origin --------------------------------------------------------------------------- */

struct submission {
    struct submit_record record;
    struct submit_strided elements;
};

static struct bench *submitting_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    CU_ASSERT_FALSE_FATAL(b->quarantined || b->broken);
    return b;
}

/* The last record of a vector, with three elements of 20 bytes. */
static struct submission last_record(void)
{
    return (struct submission){
        .record = {.size = sizeof(struct submission),
                   .kind = SUBMIT_STRIDED,
                   .code = SUBMIT_PUT,
                   .flags = SUBMIT_INLINE,
                   .reserve = event_bytes(0),
                   .total = 100,
                   .length = sizeof(struct submit_strided),
                   .lid = 3,
                   .rid = 9,
                   .local_offset = 1000},
        .elements = {
            .offset = 2000, .local_stride = -100, .remote_stride = 50, .element = 20, .count = 3}};
}

static bool was_sent(const struct bench *b)
{
    return b->fabric.kinds >> WIRE_STRIDED & 1;
}

/* Guards the fields of a record: a submission that no honest library makes ends in quarantine; a
 * submission that may be a mistake fails. */
static void fields_of_a_record(void)
{
    static const struct {
        const char *what;
        size_t offset, bytes;
        uint64_t value;
        int status; /* status of the local event; 1: quarantined */
    } rows[] = {
#define FIELD(name) offsetof(struct submission, name), sizeof(((struct submission *)0)->name)
        {"nothing", FIELD(record.lid), 3, 0},
        {"of gets", FIELD(record.code), SUBMIT_GET, 1},
        {"not inline", FIELD(record.flags), 0, 1},
        {"shorter", FIELD(record.length), 24, 1},
        {"fewer bytes than its elements", FIELD(record.total), 59, 1},
        {"as many bytes as its elements", FIELD(record.total), 60, 0},
        {"more bytes than a record can say", FIELD(record.total), UINT64_C(1) << 32, -EMSGSIZE},
        {"a segment that is none", FIELD(record.segment), 1, 1},
        {"a segment far away", FIELD(record.segment), UINT32_MAX, 1},
        {"no element", FIELD(elements.count), 0, 1},
        {"elements of no bytes", FIELD(elements.element), 0, 1},
        {"more bytes than packed", FIELD(elements.count), UINT32_MAX, 1},
        {"down to the start", FIELD(record.local_offset), 200, 0},
        {"below the start", FIELD(record.local_offset), 199, 1},
        {"up to the end", FIELD(record.local_offset), BENCH_SEGMENT - 20, 0},
        {"past the end", FIELD(record.local_offset), BENCH_SEGMENT - 19, 1},
        {"far past the end", FIELD(record.local_offset), UINT64_MAX - 19, 1},
        {"a stride far down", FIELD(elements.local_stride), (uint64_t)INT64_MIN, 1},
        {"a stride far up", FIELD(elements.local_stride), (uint64_t)INT64_MAX, 1},
        {"up to the region's end", FIELD(elements.offset), REGION - 120, 0},
        {"past the region's end", FIELD(elements.offset), REGION - 119, -ERANGE},
        {"far past the region's end", FIELD(elements.offset), UINT64_MAX - 9, -ERANGE},
        {"below the region", FIELD(elements.remote_stride), (uint64_t)-1001, -ERANGE},
        {"far below the region", FIELD(elements.remote_stride), (uint64_t)INT64_MIN, -ERANGE},
#undef FIELD
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = submitting_bench();
        struct submission s = last_record();
        struct event_record event = {.status = 1};

        memcpy((uint8_t *)&s + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_submit(b, &s.record);
        bench_ack(b);
        CU_ASSERT_EQUAL(b->quarantined, rows[i].status == 1);
        if (!b->quarantined)
            CU_ASSERT_TRUE(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        CU_ASSERT_EQUAL(was_sent(b), rows[i].status == 0);
        if (event.status != rows[i].status)
            printf("%s: %d\n", rows[i].what, event.status);
        bench_free(b);
    }
}

/* Guards sizes that agree with each other and are wrong: a description of another length, and more
 * bytes than a packed payload in a longer vector. */
static void sizes_of_a_record(void)
{
    for (int row = 0; row < 4; row++) {
        struct bench *b = submitting_bench();
        struct submission good = last_record();
        struct {
            struct submission s;
            uint64_t more;
        } r = {last_record(), 0};

        bench_submit(b, &good.record); /* so the bytes behind a shorter description make sense */
        if (row < 3) {
            static const int other[] = {0, -8, 8};

            r.s.record.length += (uint64_t)other[row];
            r.s.record.size += (uint32_t)other[row];
        } else {
            r.s.elements.element = b->config.packed_max / 2 + 1;
            r.s.elements.count = 2;
            r.s.record.total = 2 * b->config.packed_max;
        }
        bench_submit(b, &r.s.record);
        CU_ASSERT_EQUAL(b->quarantined, row > 0);
        bench_free(b);
    }
}

/* Guards that a description is taken although it is longer than what it describes: packed_max is as
 * small as it may be. */
static void least_packed_max(void)
{
    struct bench *b = submitting_bench();
    struct submission s = last_record();

    poke_config(b->engine)->packed_max = 16;
    s.elements.element = 5;
    bench_submit(b, &s.record);
    CU_ASSERT_FALSE(b->quarantined);
    CU_ASSERT_TRUE(was_sent(b));
    bench_free(b);
}

/* Guards that a submission describes at most as many elements as a vector may have pieces, and that
 * a step which copies many short ones stages only a few records. */
static void many_short_elements(void)
{
    enum { RECORDS = 10, STEP_MOST = 8 }; /* a step looks at its peers twice */

    for (uint32_t more = 0; more < 2; more++) {
        struct bench *b = submitting_bench();
        struct submission s = last_record();
        struct event_record event;
        uint64_t before = peek_peer(b->engine, 1).staged;

        s.record.total = VECTOR_PIECES_MAX + more;
        s.record.local_offset = s.elements.offset = 0;
        s.elements.local_stride = s.elements.remote_stride = 2;
        s.elements.element = 1;
        s.elements.count = VECTOR_PIECES_MAX + more;
        for (int i = 0; i < RECORDS; i++)
            bench_submit_unseen(b, &s.record);
        bench_steps(b, 1);
        CU_ASSERT_EQUAL(b->quarantined, more > 0);
        CU_ASSERT_TRUE(peek_peer(b->engine, 1).staged - before <
                       (STEP_MOST + 1) * (sizeof(struct wire_strided) + VECTOR_PIECES_MAX));
        bench_ack(b);
        for (int i = 0; more == 0 && i < RECORDS; i++)
            CU_ASSERT_TRUE(bench_local_event(b, &event) && event.status == 0);
        bench_free(b);
    }
}

/* Guards that the record needs a key, and the right to write. */
static void rights_of_a_record(void)
{
    static const struct {
        bool key;
        uint32_t rights;
        int status;
    } rows[] = {
        {true, ENGINE_REMOTE_WRITE, 0},
        {true, ENGINE_REMOTE_READ, -EKEYREJECTED},
        {false, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, -EKEYREJECTED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = BENCH_KEY;
        struct submission s = last_record();
        struct event_record event = {.status = 1};

        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 1, rows[i].key ? &key : NULL, 1), 0);
        bench_bound(b, 0, 0, rows[i].rights);
        bench_submit(b, &s.record);
        bench_ack(b);
        CU_ASSERT_TRUE(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        CU_ASSERT_EQUAL(was_sent(b), rows[i].status == 0);
        bench_free(b);
    }
}

/* Guards that the source counts as in use until the record has ended, also with
 * SUBMIT_LCE_SOURCE: after a break of the link it is read again. */
static void source_is_in_use(void)
{
    struct bench *b = submitting_bench();
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    struct submission s = last_record();
    struct event_record event = {0};

    bench_submit(b, &s.record);
    ack.consumed = peek_peer(b->engine, 1).posted;
    s.record.flags |= SUBMIT_LCE_SOURCE;
    s.record.lid = 4;
    bench_submit(b, &s.record);
    CU_ASSERT_TRUE(was_sent(b));
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    bench_send(b, &ack, sizeof(ack)); /* the first one has ended: the engine looks at the second */
    CU_ASSERT_TRUE(bench_local_event(b, &event));
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    CU_ASSERT_EQUAL(event.id, 3);
    bench_ack(b);
    CU_ASSERT_TRUE(bench_local_event(b, &event));
    CU_ASSERT(event.id == 4 && event.status == 0);
    bench_free(b);
}

static bool memory_faulted(void *context, uint32_t client)
{
    return true;
}

/* Guards a client that has cut its memory short: the client is quarantined, and nothing of its
 * vector leaves, also not the end, which would bring an event. */
static void memory_that_faults(void)
{
    struct bench *b = submitting_bench();
    struct submission s = last_record();
    struct submit_record end = {.size = sizeof(end),
                                .kind = SUBMIT_VECTOR,
                                .code = SUBMIT_PUT,
                                .reserve = event_bytes(0),
                                .total = 100};

    s.record.flags |= SUBMIT_MORE | SUBMIT_NO_RCE;
    bench_submit_unseen(b, &s.record);
    bench_submit_unseen(b, &end);
    b->host.faulted = memory_faulted;
    bench_steps(b, 4);
    CU_ASSERT_TRUE(b->quarantined);
    CU_ASSERT_EQUAL(b->fabric.kinds & (UINT64_C(1) << WIRE_STRIDED | 1u << WIRE_VECTOR), 0);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a good record is taken", good_record_is_taken},
        {"refused records touch nothing", refused_records_touch_nothing},
        {"senseless records break the link", senseless_records_break_the_link},
        {"any stride of one element", any_stride_of_one_element},
        {"no elements break the link", no_elements_break_the_link},
        {"short elements count as long ones", short_elements_count_as_long_ones},
        {"most elements of a record", most_elements_of_a_record},
        {"fields of a record", fields_of_a_record},
        {"sizes of a record", sizes_of_a_record},
        {"the least packed_max", least_packed_max},
        {"many short elements", many_short_elements},
        {"rights of a record", rights_of_a_record},
        {"the source is in use", source_is_in_use},
        {"memory that faults", memory_that_faults},
        CU_TEST_INFO_NULL,
    };

    return suite_run("strided", tests);
}
