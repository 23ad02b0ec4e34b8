/*
 * Atomics of a peer: what its records may say, room for the verdict, and a process that dies in the
 * middle of an atomic. One engine; the test is its peer. One thread.
 */
#include "tests/suite.h"
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include "daemon/engine/kinds/batch_format.h"
#include "proto/word_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

#define PLACE          UINT64_C(64) /* offset of the words, in the region and in the segment */
#define CODE(op, type) (op | type << 4)

/* Room for any verdict of the engine. */
struct verdict {
    struct wire_flow w;
    uint64_t values[WIRE_RESULT_VALUES];
};

struct peer_atomic {
    struct wire_put put;
    uint64_t operands[40];
};

/* An atomic that adds 3 to a word and fetches the old value. */
static struct peer_atomic peer_atomic_of(const struct bench *b)
{
    return (struct peer_atomic){.put = {.op = {.head = {.words = 7, .kind = WIRE_ATOMIC},
                                               .flow = bench_inflow(b),
                                               .atomic = CODE(WORD_ADD, WORD_U64) | WIRE_FETCH,
                                               .length = 8},
                                        .slot = b->key.slot,
                                        .generation = b->key.generation,
                                        .offset = PLACE},
                                .operands = {3}};
}

/* Guards what a peer's record may say: the link breaks, the origin gets an error, or the operation
 * is done. */
static void records(void)
{
    enum outcome { BREAKS = 1, DONE = 2 };
    static const struct {
        const char *what;
        uint16_t atomic, words;
        uint32_t length;
        uint64_t offset;
        uint32_t generation; /* added to that of the region */
        uint8_t flags;
        int outcome; /* enum outcome, or the status of the FAIL */
    } rows[] = {
#define ADD CODE(WORD_ADD, WORD_U64)
        {"a word", ADD | WIRE_FETCH, 7, 8, PLACE, 0, 0, DONE},
        {"its values not wanted", ADD, 7, 8, PLACE, 0, 0, DONE},
        {"the last word", ADD | WIRE_FETCH, 7, 8, 4088, 0, 0, DONE},
        {"past the end", ADD | WIRE_FETCH, 7, 8, 4096, 0, 0, -ERANGE},
        {"an offset that wraps", ADD | WIRE_FETCH, 7, 8, UINT64_MAX - 7, 0, 0, -ERANGE},
        {"not aligned", ADD | WIRE_FETCH, 7, 8, 68, 0, 0, -EINVAL},
        {"a region that was", ADD | WIRE_FETCH, 7, 8, PLACE, 1, 0, -EKEYREJECTED},
        {"no operation", CODE(WORD_OPS, WORD_U64), 7, 8, PLACE, 0, 0, BREAKS},
        {"no type", CODE(WORD_ADD, WORD_TYPES), 7, 8, PLACE, 0, 0, BREAKS},
        {"another bit", ADD | 1u << 9, 7, 8, PLACE, 0, 0, BREAKS},
        {"a read without values", CODE(WORD_READ, WORD_U64), 7, 8, PLACE, 0, 0, BREAKS},
        {"no bytes", ADD, 6, 0, PLACE, 0, 0, BREAKS},
        {"half a word", ADD, 7, 4, PLACE, 0, 0, BREAKS},
        {"more than the record has", ADD, 7, 16, PLACE, 0, 0, BREAKS},
        {"less than the record has", ADD, 8, 8, PLACE, 0, 0, BREAKS},
        {"all that there are bytes for", ADD, 7, UINT32_MAX - 7, PLACE, 0, 0, BREAKS},
        {"one operand of two", CODE(WORD_COMPARE_SWAP, WORD_U64), 7, 8, PLACE, 0, 0, BREAKS},
        {"both operands", CODE(WORD_COMPARE_SWAP, WORD_U64), 8, 8, PLACE, 0, 0, DONE},
        {"16 values, padded", ADD | WIRE_FETCH, 26, 128, PLACE, 0, 0, DONE},
        {"16 values, not padded", ADD | WIRE_FETCH, 22, 128, PLACE, 0, 0, BREAKS},
        {"17 values", ADD | WIRE_FETCH, 27, 136, PLACE, 0, 0, BREAKS},
        {"a message", ADD, 7, 8, PLACE, 0, WIRE_MESSAGE, BREAKS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct peer_atomic a = peer_atomic_of(b);
        struct verdict verdict = {.w = {.status = 0}};
        uint8_t before[4096];
        uint64_t events = bench_events(b);
        bool done, fetches = rows[i].atomic & WIRE_FETCH;

        memcpy(before, b->segment, sizeof(before));
        a.put.op.head.words = rows[i].words;
        a.put.op.head.flags = rows[i].flags;
        a.put.op.atomic = rows[i].atomic;
        a.put.op.length = rows[i].length;
        a.put.offset = rows[i].offset;
        a.put.generation += rows[i].generation;
        (void)bench_send(b, &a, rows[i].words * 8u);
        done = rows[i].outcome == DONE;
        CU_ASSERT_EQUAL(b->broken, rows[i].outcome == BREAKS);
        CU_ASSERT_EQUAL(bench_events(b) - events, done ? event_bytes(0) : 0);
        if (rows[i].outcome < 0 || (done && fetches))
            peek_last_note(b->engine, 1, NOTES_VERDICTS, &verdict);
        CU_ASSERT_EQUAL(verdict.w.status, rows[i].outcome < 0 ? rows[i].outcome : 0);
        CU_ASSERT_EQUAL(verdict.w.done, done && fetches ? rows[i].length / 8 : 0);
        CU_ASSERT(done || memcmp(before, b->segment, sizeof(before)) == 0);
        if (done && word_op((uint8_t)rows[i].atomic) == WORD_ADD)
            CU_ASSERT_EQUAL(b->segment[rows[i].offset], 3);
        if (b->broken != (rows[i].outcome == BREAKS))
            printf("%s\n", rows[i].what);
        bench_free(b);
    }
}

/* Guards the checks of a peer's batch: none of it is done unless all of it can be. */
static void peer_batches(void)
{
    static const struct {
        const char *what;
        uint16_t atomic;
        uint32_t count, length; /* elements and bytes of the second atomic */
        uint64_t offset;
        bool breaks;
        int32_t status;
        uint16_t rid_len;
    } rows[] = {
        {"two", ADD | WIRE_FETCH, 2, 8, 8, false, 0, 0},
        {"three of two", ADD | WIRE_FETCH, 3, 8, 8, true, 0, 0},
        {"none", ADD | WIRE_FETCH, 0, 8, 8, true, 0, 0},
        {"no operation", CODE(WORD_OPS, WORD_U64), 2, 8, 8, true, 0, 0},
        {"two operands", CODE(WORD_COMPARE_SWAP, WORD_U64), 2, 8, 8, true, 0, 0},
        {"half a word", ADD, 2, 4, 8, true, 0, 0},
        {"a word as long as can be said", ADD, 2, 65535, 8, true, 0, 0},
        {"an id", ADD, 2, 8, 8, true, 0, 8},
        {"not aligned", ADD, 2, 8, 12, false, -EINVAL, 0},
        {"past the end", ADD | WIRE_FETCH, 2, 8, 4096, false, -ERANGE, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct {
            struct wire_batch w;
            struct {
                struct wire_batch_put put;
                uint64_t operand;
            } each[2];
        } record = {
            .w = {.op = {.head = {.words = sizeof(record) / 8, .kind = WIRE_ATOMICS},
                         .flow = bench_inflow(b),
                         .count = rows[i].count,
                         .atomic = rows[i].atomic,
                         .rid_len = rows[i].rid_len,
                         .length = 16},
                  .slot = b->key.slot,
                  .generation = b->key.generation},
            .each = {{{1, PLACE << BATCH_LENGTH_BITS | 8}, 5},
                     {{2, rows[i].offset << BATCH_LENGTH_BITS | rows[i].length}, 6}},
        };
        struct verdict verdict = {.w = {.status = 0}};
        uint64_t events = bench_events(b);
        bool done = !rows[i].breaks && rows[i].status == 0;

        (void)bench_send(b, &record, sizeof(record));
        CU_ASSERT_EQUAL(b->broken, rows[i].breaks);
        CU_ASSERT_EQUAL(b->segment[PLACE], done ? 5 : 0);
        CU_ASSERT_EQUAL(bench_events(b) - events, done ? 2 * event_bytes(0) : 0);
        if (!b->broken)
            peek_last_note(b->engine, 1, NOTES_VERDICTS, &verdict);
        CU_ASSERT_EQUAL(verdict.w.status, rows[i].status);
        CU_ASSERT_EQUAL(verdict.w.done, done ? 2 : 0);
        if (b->broken != rows[i].breaks)
            printf("%s\n", rows[i].what);
        bench_free(b);
    }
}

/* Guards the bound of what one record may ask for: all its values must fit into one RESULT. */
static void too_many_for_a_result(void)
{
    for (uint32_t more = 0; more < 2; more++) {
        struct bench *b = linked_bench();
        struct {
            struct wire_batch w;
            struct {
                struct wire_batch_put put;
                uint64_t operand;
            } each[WIRE_RESULT_VALUES + 1];
        } record = {.w = {.op = {.head = {.kind = WIRE_ATOMICS, .flags = WIRE_NO_EVENT},
                                 .flow = bench_inflow(b),
                                 .count = WIRE_RESULT_VALUES + more,
                                 .atomic = ADD | WIRE_FETCH,
                                 .length = 8 * (WIRE_RESULT_VALUES + more)},
                          .slot = b->key.slot,
                          .generation = b->key.generation}};
        uint32_t size = sizeof(record.w) + record.w.op.count * sizeof(record.each[0]);

        for (uint32_t i = 0; i < record.w.op.count; i++) {
            record.each[i].put.place = PLACE << BATCH_LENGTH_BITS | 8;
            record.each[i].operand = 1;
        }
        record.w.op.head.words = (uint16_t)(size / 8);
        CU_ASSERT_TRUE(bench_send(b, &record, size));
        CU_ASSERT_EQUAL(b->broken, more > 0);
        CU_ASSERT_EQUAL(b->segment[PLACE], more > 0 ? 0 : WIRE_RESULT_VALUES);
        bench_free(b);
    }
}

/* ---- order and room -------------------------------------------------------------------------- */

/* Guards that no word changes where there is no room for the verdict: the record waits. */
static void no_room_for_the_verdict(void)
{
    struct bench *b = linked_bench();
    struct peer_atomic a = peer_atomic_of(b);
    uint32_t were;

    were = poke_memory(b->engine, 0);
    (void)bench_send(b, &a, a.put.op.head.words * 8u);
    bench_steps(b, 5);
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(b->segment[PLACE], 0);
    (void)poke_memory(b->engine, were);
    bench_steps(b, 20);
    CU_ASSERT_EQUAL(b->segment[PLACE], 3);
    bench_free(b);
}

/* ---- a death in the middle ------------------------------------------------------------------- */

static jmp_buf death;

/* The engine calls this hook when the words have changed and nothing is committed; the process dies
 * there. */
static bool die(void *context, uint32_t client)
{
    longjmp(death, 1);
}

/* The process is dead: the next one takes over, and links. */
static void take_over(struct bench *b)
{
    b->host.faulted = NULL;
    still_open(&b->fabric);
    memset(b->memory, 0, engine_private_bytes(&b->config));
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, b->now, &b->engine),
        0);
    CU_ASSERT_EQUAL(engine_session_inherit(b->engine, 0, b->session), 0);
    CU_ASSERT_EQUAL(engine_segment_inherit(b->engine, 0, b->segment), 0);
    b->position = peek_peer(b->engine, 1).staged; /* all that the engine has sent has arrived */
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
}

/* Sends the record; the process dies in the middle of it. */
static void die_at(struct bench *b, const struct peer_atomic *a)
{
    b->host.faulted = die;
    if (setjmp(death) == 0) {
        (void)bench_send(b, a, a->put.op.head.words * 8u);
        CU_FAIL("the engine lives");
    }
    take_over(b);
}

/* Sends the record again; checks its verdict, and how much it adds to the word. */
static void expect_again(struct bench *b, const struct peer_atomic *a, uint8_t kind, int32_t status,
                         uint8_t adds)
{
    struct verdict verdict = {.w = {.status = 0}};
    uint8_t before = b->segment[PLACE];
    uint64_t events = bench_events(b);

    (void)bench_send(b, a, a->put.op.head.words * 8u);
    CU_ASSERT_FALSE_FATAL(b->broken);
    peek_last_note(b->engine, 1, NOTES_VERDICTS, &verdict);
    CU_ASSERT_EQUAL(verdict.w.head.kind, kind);
    CU_ASSERT_EQUAL(verdict.w.status, status);
    CU_ASSERT_EQUAL(b->segment[PLACE], before + adds);
    CU_ASSERT_EQUAL(bench_events(b) - events, status == 0 ? event_bytes(0) : 0);
}

/* Guards that a record which may have been done is not done again, and that no other record is in
 * doubt. */
static void a_death(void)
{
    struct bench *b = linked_bench();
    struct peer_atomic a = peer_atomic_of(b);

    die_at(b, &a);
    CU_ASSERT_EQUAL(b->segment[PLACE], 3);
    expect_again(b, &a, WIRE_FAIL, -ECONNABORTED, 0);
    a.put.op.sequence++;
    expect_again(b, &a, WIRE_RESULT, 0, 3);
    bench_free(b);
}

/* Guards that a record with another sequence is not taken for the one in doubt. */
static void another_record(void)
{
    struct bench *b = linked_bench();
    struct peer_atomic a = peer_atomic_of(b);

    die_at(b, &a);
    a.put.op.sequence++;
    expect_again(b, &a, WIRE_RESULT, 0, 3);
    bench_free(b);
}

/* Guards that the doubt waits for its record over a second death, and that a READ leaves no doubt.
 */
static void two_deaths(void)
{
    struct bench *b = linked_bench();
    struct peer_atomic a = peer_atomic_of(b), read = a;

    die_at(b, &a);
    take_over(b);
    expect_again(b, &a, WIRE_FAIL, -ECONNABORTED, 0);
    bench_free(b);

    /* A READ changes nothing: it is done again. */
    b = linked_bench();
    read = peer_atomic_of(b);
    read.put.op.atomic = CODE(WORD_READ, WORD_U64) | WIRE_FETCH;
    die_at(b, &read);
    expect_again(b, &read, WIRE_RESULT, 0, 0);
    bench_free(b);
}

/* Guards that a record which was committed is never in doubt. */
static void a_death_behind_the_commit(void)
{
    struct bench *b = linked_bench();
    struct peer_atomic a = peer_atomic_of(b), next = a;

    (void)bench_send(b, &a, a.put.op.head.words * 8u);
    CU_ASSERT_EQUAL(b->segment[PLACE], 3);
    next.put.op.atomic = CODE(WORD_READ, WORD_U64) | WIRE_FETCH;
    die_at(b, &next);
    a.put.op.sequence = 0; /* the same number as the operation that was done, by chance */
    expect_again(b, &a, WIRE_RESULT, 0, 3);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"records of a peer", records},
        {"batches of a peer", peer_batches},
        {"more values than a result holds", too_many_for_a_result},
        {"no room for the verdict", no_room_for_the_verdict},
        {"a death", a_death},
        {"another record", another_record},
        {"two deaths", two_deaths},
        {"a death behind the commit", a_death_behind_the_commit},
        CU_TEST_INFO_NULL,
    };

    return suite_run("peer_atomics", tests);
}
