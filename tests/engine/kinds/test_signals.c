/*
 * Puts with signal, at their origin and at their target: what is checked, what is staged, that a
 * record that is refused changes neither payload nor word, and that the target's sleeper is woken.
 * One engine; the test is its client and its peer (record_bench.h). One thread.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "proto/word_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

#define PEER    1u /* node of the peer */
#define LENGTH  4096u
#define WORD_AT 1024u

#define SET 0x70u /* SET of a U64, as the codes travel */
#define ADD 0x71u

/* ---- at the target --------------------------------------------------------------------------- */

struct packed {
    struct wire_put put;
    struct signal signal;
    uint64_t payload[2];
};

struct placed {
    struct wire_op op;
    struct signal signal;
};

static struct signal good_signal(const struct bench *b)
{
    return (struct signal){.offset = WORD_AT,
                           .value = 7,
                           .slot = b->key.slot,
                           .generation = b->key.generation,
                           .code = ADD};
}

static struct packed good_packed(const struct bench *b)
{
    return (struct packed){
        .put = {.op = {.head = {.words = sizeof(struct packed) / 8, .kind = WIRE_SIGNAL},
                       .flow = bench_inflow(b),
                       .rid_len = sizeof(struct signal),
                       .length = 16},
                .slot = b->key.slot,
                .generation = b->key.generation},
        .signal = good_signal(b),
        .payload = {11, 12}};
}

static struct placed good_placed(const struct bench *b)
{
    return (struct placed){
        .op = {.head = {.words = sizeof(struct placed) / 8, .kind = WIRE_SIGNAL_PLACED},
               .flow = bench_inflow(b),
               .rid_len = sizeof(struct signal)},
        .signal = good_signal(b)};
}

static uint64_t *words(const struct bench *b)
{
    return (uint64_t *)(void *)b->segment;
}

static uint64_t *word(const struct bench *b)
{
    return words(b) + WORD_AT / 8;
}

static void placed_then_signalled(void)
{
    struct bench *b = linked_bench();
    struct packed packed = good_packed(b);
    struct placed placed = good_placed(b);

    *word(b) = 100;
    bench_send(b, &packed, sizeof(packed));
    CU_ASSERT_EQUAL(words(b)[0], 11);
    CU_ASSERT_EQUAL(words(b)[1], 12);
    CU_ASSERT_EQUAL(*word(b), 107);
    placed.op.sequence = 1;
    bench_send(b, &placed, sizeof(placed));
    CU_ASSERT_EQUAL(*word(b), 114);
    placed.op.sequence = 2;
    placed.signal.code = SET;
    bench_send(b, &placed, sizeof(placed));
    CU_ASSERT_EQUAL(*word(b), 7);
    placed.op.sequence = 3;
    placed.signal.code = ADD;
    placed.signal.value = UINT64_MAX - 6;
    bench_send(b, &placed, sizeof(placed));
    CU_ASSERT_EQUAL(*word(b), 0);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_FALSE(b->fabric.kinds & 1u << WIRE_FAIL);
    bench_free(b);
}

/* Guards that a put with signal wakes a context that sleeps, although no event comes: nothing else
 * would make the thread look at the word. */
static void wakes_its_context(void)
{
    struct bench *b = linked_bench();
    struct placed placed = good_placed(b);
    struct packed silent = good_packed(b);
    uint32_t before;

    atomic_store(&b->session->event_bell.armed, 1);
    before = b->woken;
    bench_send(b, &placed, sizeof(placed));
    CU_ASSERT_EQUAL(b->woken, before + 1);
    CU_ASSERT_EQUAL(atomic_load(&b->session->event_bell.armed), 0);
    /* A put without event wakes nobody. */
    atomic_store(&b->session->event_bell.armed, 1);
    silent.put.op.head =
        (struct wire_record){.words = sizeof(struct wire_put) / 8 + 2, .kind = WIRE_PUT};
    silent.put.op.head.flags = WIRE_NO_EVENT;
    silent.put.op.rid_len = 0;
    silent.put.op.sequence = 1;
    bench_send(b, &silent, sizeof(struct wire_put) + 16);
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(b->woken, before + 1);
    bench_free(b);
}

enum field { OFFSET, SLOT, GENERATION, PUT_OFFSET, PUT_SLOT };

/* Guards that a record which the region does not allow fails for the origin, and changes neither
 * payload nor word. */
static void failed_without_effect(void)
{
    static const struct {
        enum field field;
        uint64_t value;
        int status;
    } rows[] = {
        {OFFSET, LENGTH, -ERANGE},
        {OFFSET, LENGTH - 7, -ERANGE},
        {OFFSET, UINT64_MAX, -ERANGE},
        {OFFSET, UINT64_MAX - 7, -ERANGE},
        {OFFSET, WORD_AT + 1, -EINVAL},
        {OFFSET, WORD_AT + 4, -EINVAL},
        {SLOT, 1, -EKEYREJECTED},
        {SLOT, UINT32_MAX, -EKEYREJECTED},
        {GENERATION, UINT32_MAX, -EKEYREJECTED},
        {PUT_OFFSET, LENGTH - 8, -ERANGE},
        {PUT_OFFSET, UINT64_MAX - 7, -ERANGE},
        {PUT_SLOT, 1, -EKEYREJECTED},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct packed packed = good_packed(b);
        struct placed placed = good_placed(b);
        struct wire_flow fail;
        struct signal *s = i % 2 ? &placed.signal : &packed.signal;
        uint64_t value = rows[i / 2].value;

        switch (rows[i / 2].field) {
        case OFFSET:
            s->offset = value;
            break;
        case SLOT:
            s->slot = (uint32_t)value;
            break;
        case GENERATION:
            s->generation = (uint32_t)value;
            break;
        case PUT_OFFSET:
            packed.put.offset = value;
            break;
        default:
            packed.put.slot = (uint32_t)value;
        }
        if (i % 2 && rows[i / 2].field < PUT_OFFSET)
            bench_send(b, &placed, sizeof(placed));
        else
            bench_send(b, &packed, sizeof(packed));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_TRUE_FATAL(b->fabric.kinds & 1u << WIRE_FAIL);
        peek_last_note(b->engine, PEER, NOTES_VERDICTS, &fail);
        CU_ASSERT_EQUAL(fail.status, rows[i / 2].status);
        for (size_t at = 0; at < LENGTH / 8; at++)
            CU_ASSERT_EQUAL(words(b)[at], 0);
        bench_free(b);
    }
}

/* A block of this many bytes, with a shorter payload: the record is as long as before. */
static void set_block(struct packed *packed, uint16_t bytes)
{
    packed->put.op.length += packed->put.op.rid_len - bytes;
    packed->put.op.rid_len = bytes;
}

/* Guards that a record which no honest daemon sends breaks the link. */
static void breaks_the_link(void)
{
    enum { CODE, BLOCK, FLAGS, BARE_LENGTH, KIND, WORDS };
    static const struct {
        int field;
        uint32_t value;
    } rows[] = {
        {CODE, 0},        {CODE, 0x72}, {CODE, 0x60},       {CODE, 0x78}, {CODE, 0xff}, {BLOCK, 24},
        {BLOCK, 0},       {BLOCK, 40},  {FLAGS, 1},         {FLAGS, 4},   {FLAGS, 8},   {FLAGS, 16},
        {BARE_LENGTH, 8}, {KIND, 26},   {KIND, WIRE_KINDS}, {WORDS, 6},   {WORDS, 7},   {WORDS, 8},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct packed packed = good_packed(b);
        uint32_t size = sizeof(packed);

        if (rows[i].field == WORDS) { /* the record ends before its block does */
            packed.put.op.head.words = (uint16_t)rows[i].value;
            size = 8 * (uint32_t)rows[i].value;
        } else if (rows[i].field == CODE)
            packed.signal.code = (uint8_t)rows[i].value;
        else if (rows[i].field == BLOCK)
            set_block(&packed, (uint16_t)rows[i].value);
        else if (rows[i].field == FLAGS)
            packed.put.op.head.flags = (uint8_t)rows[i].value;
        else if (rows[i].field == KIND)
            packed.put.op.head.kind = (uint8_t)rows[i].value;
        else
            packed.put.op.length = rows[i].value;
        bench_send(b, &packed, size);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(*word(b), 0);
        CU_ASSERT_EQUAL(words(b)[0], 0);
        bench_free(b);
    }
}

/* ---- at the origin --------------------------------------------------------------------------- */

struct submission {
    struct submit_record record;
    struct signal signal;
    uint64_t payload;
};

/* A put with signal: 8 bytes are packed into its record, another `length` comes from the segment.
 */
static struct submission submission(uint32_t length)
{
    bool packed = length == sizeof(uint64_t);

    return (struct submission){
        .record = {.size = (uint32_t)(packed ? sizeof(struct submission)
                                             : offsetof(struct submission, payload)),
                   .kind = SUBMIT_SIGNAL,
                   .flags = packed ? SUBMIT_INLINE : 0,
                   .reserve = event_bytes(0),
                   .length = length,
                   .rid_len = sizeof(struct signal)},
        .signal = {.offset = WORD_AT,
                   .value = 9,
                   .slot = 77,
                   .generation = 78,
                   .code = ADD,
                   .unused = {1, 2, 3}},
        .payload = 33};
}

/* Returns the signal in the record that the engine has staged at this position. */
static struct signal staged_signal(const struct bench *b, uint64_t at, uint8_t *kind)
{
    const struct wire_op *op = peek_record(b->engine, PEER, at);
    struct signal s;

    *kind = op->head.kind;
    memcpy(&s,
           (const uint8_t *)op +
               (op->head.kind == WIRE_SIGNAL ? sizeof(struct wire_put) : sizeof(struct wire_op)),
           sizeof(s));
    return s;
}

static void staged_as_a_put(void)
{
    static const struct {
        uint32_t length;
        uint8_t kind;
    } rows[] = {{0, WIRE_SIGNAL_PLACED}, {8, WIRE_SIGNAL}, {LENGTH, WIRE_SIGNAL_PLACED}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        struct submission s = submission(rows[i].length);
        struct engine_key key = BENCH_KEY;
        struct event_record event;
        struct signal staged;
        uint64_t at;
        uint8_t kind;

        bench_remote(b);
        bench_ack(b);
        at = peek_peer(b->engine, PEER).posted;
        bench_submit(b, &s.record);
        bench_steps(b, 4);
        staged = staged_signal(b, at, &kind);
        CU_ASSERT_EQUAL(kind, rows[i].kind);
        CU_ASSERT_EQUAL(staged.offset, WORD_AT);
        CU_ASSERT_EQUAL(staged.value, 9);
        CU_ASSERT_EQUAL(staged.code, ADD);
        CU_ASSERT_EQUAL(staged.slot, key.slot);
        CU_ASSERT_EQUAL(staged.generation, key.generation);
        CU_ASSERT_EQUAL(staged.unused[0], 0);
        CU_ASSERT_FALSE(bench_local_event(b, &event));
        bench_ack(b);
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, 0);
        CU_ASSERT_EQUAL(event.op, SUBMIT_SIGNAL);
        CU_ASSERT_EQUAL(event.bytes, s.record.length);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards the checks at the origin: the local event has the error, and no record leaves. */
static void ends_with_an_error(void)
{
    static const struct {
        uint64_t offset, signal_offset;
        int status;
    } rows[] = {
        {0, LENGTH, -ERANGE},
        {0, LENGTH - 7, -ERANGE},
        {0, UINT64_MAX - 7, -ERANGE},
        {LENGTH, WORD_AT, -ERANGE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        struct submission s = submission(8);
        struct event_record event;

        bench_remote(b);
        s.record.offset = rows[i].offset;
        s.signal.offset = rows[i].signal_offset;
        bench_submit(b, &s.record);
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        CU_ASSERT_FALSE(b->fabric.kinds & 1u << WIRE_SIGNAL);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that a signal needs the right to write, also without a payload. */
static void needs_the_right_to_write(void)
{
    for (uint32_t rights = 0; rights <= 3; rights++) {
        struct bench *b = unbound_bench(false);
        struct submission s = submission(0);
        const struct engine_key key = BENCH_KEY;
        bool allowed = rights & ENGINE_REMOTE_WRITE;
        struct event_record event;

        (void)engine_bind(b->engine, 0, PEER, 1, &key, 1);
        bench_bound(b, 0, 0, rights);
        bench_submit(b, &s.record);
        bench_ack(b);
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, allowed ? 0 : -EKEYREJECTED);
        bench_free(b);
    }
}

/* Guards that submissions which no honest library makes end in quarantine. */
static void quarantined(void)
{
    enum { CODE, BLOCK, FLAGS };
    static const struct {
        int field;
        uint32_t value;
    } rows[] = {{CODE, 0},    {CODE, 0x72}, {CODE, 0x61},
                {CODE, 0xff}, {BLOCK, 24},  {FLAGS, SUBMIT_INLINE | SUBMIT_NO_RCE}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        struct submission s = submission(8);

        bench_remote(b);
        if (rows[i].field == CODE)
            s.signal.code = (uint8_t)rows[i].value;
        else if (rows[i].field == FLAGS)
            s.record.flags = (uint16_t)rows[i].value;
        else
            s.record.rid_len = (uint16_t)rows[i].value;
        s.record.size = (uint32_t)sizeof(s.record) + s.record.rid_len + 8;
        bench_submit(b, &s.record);
        bench_steps(b, 2);
        CU_ASSERT_TRUE(b->quarantined);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"payload, then signal", placed_then_signalled},
                           {"the target's sleeper is woken", wakes_its_context},
                           {"a record that fails changes nothing", failed_without_effect},
                           {"records that break the link", breaks_the_link},
                           {"staged as a put is", staged_as_a_put},
                           {"submissions that end with an error", ends_with_an_error},
                           {"a signal alone needs the right", needs_the_right_to_write},
                           {"submissions of no honest library", quarantined},
                           CU_TEST_INFO_NULL};

    return suite_run("signals", tests);
}
