/*
 * Longs to an offload's index, whose origin is the test: where their payload must stand, which
 * records may come again, and when the bytes of a record are placed. Each case says which rule it
 * guards. Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "daemon/handlers/image.h"
#include "tests/count.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"
#include "tests/suite.h"

enum {
    INDEX = 5,
    ORIGIN_FLOW = 5,
    WINDOW = 128, /* where the host window begins in the region */
    WINDOW_BYTES = 1024,
    PLACE = WINDOW + 64,
    LENGTH = 200,
    FLOWS = 40,
    NO_CHUNKS = 1000, /* more than the bench has: no chunk is left for sends */
};

/* ---- the offload ----------------------------------------------------------------------------- */

/* The header handler adds 1 to the first byte of the data, through the host window, if `data` and
 * `place` name the same byte; then it sends a message to target 0, and returns this value, or says
 * AGAIN. The completion handler counts its runs, after some 4000 units. */
static uint32_t load(struct bench *b, uint32_t returned)
{
    const struct handler_instruction code[] = {
        LOAD(3, 1, 72), /* place */
        NUMBER(4, handler_address(HANDLER_HOST, 0)),
        ALU_X(CODE_ADD, 3, 4),
        LOAD(4, 1, 40), /* data */
        op(CODE_JMP | CODE_JNE | CODE_X, 3, 4, 3, 0),
        op(CODE_LDX | CODE_MEM | CODE_B, 2, 3, 0, 0),
        ALU(CODE_ADD, 2, 1),
        op(CODE_STX | CODE_MEM | CODE_B, 3, 2, 0, 0),
        NUMBER(1, (uint64_t)INDEX << 32),
        ALU(CODE_MOV, 2, 0),
        ALU(CODE_MOV, 3, 0),
        ALU(CODE_MOV, 4, 0),
        ALU(CODE_MOV, 5, 0),
        HELPER(HELPER_MESSAGE),
        OR_AGAIN,
        ALU(CODE_MOV, 0, returned),
        EXIT,
        ALU(CODE_MOV, 3, 2000),
        ALU(CODE_SUB, 3, 1),
        op(CODE_JMP | CODE_JNE, 3, 0, -2, 0),
        ALU(CODE_MOV, 1, 0),
        ALU(CODE_MOV, 2, 1),
        HELPER(HELPER_COUNTER_ADD),
        ALU(CODE_MOV, 0, HANDLER_SUCCESS),
        EXIT,
    };
    uint64_t words[64] = {0};
    struct handler_image *image = (void *)words;
    uint32_t bytes = (uint32_t)image_bytes(COUNT(code), 0, 0);
    struct image_error wrong;
    int program;

    *image = (struct handler_image){.magic = HANDLER_IMAGE_MAGIC,
                                    .instructions = COUNT(code),
                                    .entry = {0, HANDLER_NONE, COUNT(code) - 8}};
    memcpy(words + 5, code, sizeof(code));
    CU_ASSERT_EQUAL_FATAL(image_check(words, bytes, &wrong), 0);
    program = engine_program_load(b->engine, 0, image, bytes);
    CU_ASSERT_FATAL(program >= 0);
    return (uint32_t)program;
}

static struct offload offload(const struct bench *b)
{
    return peek_offload(b->engine, (uint32_t)peek_offload_of(b->engine, 0, INDEX));
}

/* Opens a bench with an offload whose host window is a part of the region, whose header handler
 * returns this value, and with node 1, the test, as its target. */
static struct bench *bench_that(bool window, unsigned rights, uint32_t returned)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = 64};
    struct bench *b = bench_new(&shape);
    const uint32_t remote = 0;
    struct engine_offload_info info = {
        .index = INDEX, .flags = ENGINE_OFFLOAD_QUIET, .target_count = 1, .targets = &remote};

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_remote(b);
    bench_bind(b, ORIGIN_FLOW);
    if (rights != 3)
        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 0, 4096, rights, &b->key), 0);
    if (window)
        info.host = (struct engine_range){b->key.slot, b->key.generation, WINDOW, WINDOW_BYTES};
    info.program = load(b, returned);
    CU_ASSERT_FATAL(engine_offload_create(b->engine, 0, &info, 1) >= 0);
    bench_steps(b, 2);
    bench_bound(b, 1, 0, 3);
    CU_ASSERT_EQUAL_FATAL(offload(b).state, OFFLOAD_OPEN);
    return b;
}

static struct bench *bench_with(bool window, unsigned rights)
{
    return bench_that(window, rights, HANDLER_PROCESS_DATA);
}

/* ---- Longs ----------------------------------------------------------------------------------- */

struct long_record {
    struct wire_op op;
    struct message message;
};

/* The record of a Long whose payload was placed before the record. */
static struct long_record placed(const struct bench *b, uint32_t sequence)
{
    return (struct long_record){.op = {.head = {.words = sizeof(struct long_record) / 8,
                                                .kind = WIRE_PLACED,
                                                .flags = WIRE_MESSAGE | WIRE_NO_REPLY},
                                       .sequence = sequence,
                                       .length = LENGTH,
                                       .rid_len = sizeof(struct message)},
                                .message = {.index = INDEX,
                                            .kind = SUBMIT_LONG,
                                            .token = UINT32_MAX,
                                            .slot = b->key.slot,
                                            .generation = b->key.generation,
                                            .offset = PLACE}};
}

static void send_placed(struct bench *b, const struct long_record *r)
{
    CU_ASSERT_TRUE_FATAL(bench_send(b, r, sizeof(*r)));
}

/* Sends a Long whose record has the payload: bytes that all have this value. */
static void send_packed(struct bench *b, uint32_t sequence, uint8_t value)
{
    struct {
        struct wire_put put;
        struct message message;
        uint8_t bytes[LENGTH];
    } r = {.put = {.op = {.head = {.words = sizeof(r) / 8,
                                   .kind = WIRE_PUT,
                                   .flags = WIRE_MESSAGE | WIRE_NO_REPLY},
                          .sequence = sequence,
                          .length = LENGTH,
                          .rid_len = sizeof(struct message)},
                   .slot = b->key.slot,
                   .generation = b->key.generation,
                   .offset = PLACE},
           .message = placed(b, sequence).message};

    static_assert(LENGTH % 8 == 0, "no padding");
    memset(r.bytes, value, sizeof(r.bytes));
    CU_ASSERT_TRUE_FATAL(bench_send(b, &r, sizeof(r)));
}

/* Returns the status of the last verdict of this kind that the engine has sent; 1 without one. */
static int32_t last(const struct bench *b, uint8_t kind)
{
    uint64_t end = peek_peer(b->engine, 1).staged;
    int32_t status = 1;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        if (record->head.kind == kind && record->flow == ORIGIN_FLOW)
            status = record->status;
        at += record->head.words * UINT64_C(8);
    }
    return status;
}

/* How often the header handler has run: each run has sent a message. */
static uint64_t runs(const struct bench *b)
{
    return offload(b).sends;
}

/* ---- places ---------------------------------------------------------------------------------- */

static const struct {
    bool window;
    unsigned rights;
    uint32_t slot, generation; /* added to those of the region */
    uint64_t offset;
    uint32_t length;
    int32_t status; /* 1: handlers run on the Long */
} places[] = {
    {true, 3, 0, 0, PLACE, LENGTH, 1},
    {true, 3, 0, 0, WINDOW, WINDOW_BYTES, 1},
    {true, 3, 0, 0, WINDOW + WINDOW_BYTES - 1, 1, 1},
    {true, 3, 0, 0, WINDOW - 1, 8, -EMSGSIZE},
    {true, 3, 0, 0, WINDOW + 1, WINDOW_BYTES, -EMSGSIZE},
    {true, 3, 0, 0, WINDOW, WINDOW_BYTES + 1, -EMSGSIZE},
    {true, 3, 0, 0, WINDOW + WINDOW_BYTES, 1, -EMSGSIZE},
    {true, 3, 0, 0, UINT64_MAX, LENGTH, -EMSGSIZE},
    {true, 3, 0, 0, WINDOW, UINT32_MAX, -EMSGSIZE},
    {false, 3, 0, 0, PLACE, LENGTH, -EMSGSIZE}, /* no host window */
    {false, 3, 0, 0, PLACE, 0, 1},
    {true, 3, 0, 0, UINT64_MAX, 0, 1}, /* a Long without bytes needs no place */
    {true, 3, 0, 1, PLACE, LENGTH, -EKEYREJECTED},
    {true, 3, 1, 0, PLACE, LENGTH, -EKEYREJECTED},
    {true, 3, 1000000, 0, PLACE, LENGTH, -EKEYREJECTED},
    {true, ENGINE_REMOTE_READ, 0, 0, PLACE, LENGTH, -EKEYREJECTED}, /* peers may not write there */
};

/* Guards that handlers run on a Long only where peers may write and the host window has all of it.
 */
static void where_it_stands(void)
{
    for (size_t i = 0; i < COUNT(places); i++) {
        struct bench *b = bench_with(places[i].window, places[i].rights);
        struct long_record r = placed(b, 1);

        r.message.slot += places[i].slot;
        r.message.generation += places[i].generation;
        r.message.offset = places[i].offset;
        r.op.length = places[i].length;
        send_placed(b, &r);
        CU_ASSERT_EQUAL(runs(b), places[i].status == 1);
        CU_ASSERT_EQUAL(last(b, WIRE_FAIL), places[i].status);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards that a Long whose payload a series of puts has placed is a record without bytes, on which
 * handlers run. */
static void a_series(void)
{
    struct bench *b = bench_with(true, 3);
    struct long_record r = placed(b, 1);

    r.op.head.kind = WIRE_NOTE;
    send_placed(b, &r);
    CU_ASSERT_EQUAL(runs(b), 1);
    CU_ASSERT_EQUAL(b->segment[PLACE], 1);
    CU_ASSERT_EQUAL(offload(b).bytes, LENGTH);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), 1);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that no handler runs on a Long to a region that peers may write to, but that is no
 * offload's host window. */
static void another_region(void)
{
    struct bench *b = bench_with(true, 3);
    struct long_record r = placed(b, 1);
    struct engine_key key;

    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &key), 0);
    r.message.slot = key.slot;
    r.message.generation = key.generation;
    send_placed(b, &r);
    CU_ASSERT_EQUAL(runs(b), 0);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), -EMSGSIZE);
    bench_free(b);
}

/* ---- records that come again ----------------------------------------------------------------- */

enum { SAME, LONGER, SHORT, NO_LONG, FIRST_SHORT, AGAINS };

/* Guards that a Long which was refused comes again as it was: any other record breaks the link. */
static void comes_again(void)
{
    for (uint32_t how = 0; how < AGAINS; how++) {
        struct bench *b = bench_with(true, 3);
        struct long_record r = placed(b, 1), first = r;

        if (how == FIRST_SHORT) {
            first.op.head.kind = WIRE_NOTE;
            first.op.length = 0;
            first.message.kind = SUBMIT_SHORT;
        }
        poke_chunks_keep(b->engine, NO_CHUNKS);
        send_placed(b, &first);
        CU_ASSERT_EQUAL(last(b, WIRE_REFUSE), -EBUSY);
        poke_chunks_keep(b->engine, 0);
        r.op.length += how == LONGER ? 8 : 0;
        if (how == SHORT || how == NO_LONG) {
            r.op.head.kind = WIRE_NOTE;
            r.op.length = 0;
        }
        if (how == NO_LONG)
            r.message.kind = SUBMIT_SHORT;
        send_placed(b, &r);
        CU_ASSERT_EQUAL(b->broken, how != SAME);
        CU_ASSERT_EQUAL(runs(b), how == SAME);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that the bytes of a record are placed before the first handler runs, and not again: what a
 * handler has changed stays. */
static void placed_once(void)
{
    struct bench *b = bench_with(true, 3);
    const uint8_t *at = b->segment + PLACE;

    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_packed(b, 1, 7);
    CU_ASSERT_EQUAL(at[0], 8);
    CU_ASSERT(at[1] == 7 && at[LENGTH - 1] == 7);
    CU_ASSERT_EQUAL(last(b, WIRE_REFUSE), -EBUSY);
    poke_chunks_keep(b->engine, 0);
    send_packed(b, 1, 7);
    CU_ASSERT_EQUAL(runs(b), 1);
    CU_ASSERT_EQUAL(at[0], 9);
    send_packed(b, 2, 40);
    CU_ASSERT_EQUAL(at[0], 41);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), 1);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that the client gets what the header handler has changed in place before it returned
 * PROCEED, both where the bytes have come in the record and where they have travelled on their
 * own. */
static void changed_in_place(void)
{
    for (uint32_t packed = 0; packed < 2; packed++) {
        struct bench *b = bench_that(true, 3, HANDLER_PROCEED);
        const struct long_record r = placed(b, 1);
        uint8_t value = 7;

        b->session->handlers[0] |= 1 << INDEX;
        memset(b->segment + PLACE, value, LENGTH);
        if (packed)
            send_packed(b, 1, ++value);
        else
            send_placed(b, &r);
        CU_ASSERT_EQUAL(runs(b), 1);
        CU_ASSERT_EQUAL(b->segment[PLACE], value + 1);
        CU_ASSERT_EQUAL(b->segment[PLACE + 1], value);
        CU_ASSERT(bench_events(b) > 0);
        CU_ASSERT_EQUAL(last(b, WIRE_FAIL), 1);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards a Long that waits when its offload is destroyed: the origin gets that status, and nothing
 * is placed any more. */
static void without_its_offload(void)
{
    struct bench *b = bench_with(true, 3);

    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_packed(b, 1, 7);
    CU_ASSERT_EQUAL(last(b, WIRE_REFUSE), -EBUSY);
    CU_ASSERT_EQUAL(
        engine_offload_destroy(b->engine, 0, (uint32_t)peek_offload_of(b->engine, 0, INDEX)), 0);
    poke_chunks_keep(b->engine, 0);
    b->segment[PLACE] = 1;
    send_packed(b, 1, 7);
    CU_ASSERT_EQUAL(b->segment[PLACE], 1);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), -ESHUTDOWN);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards the cut of many Longs that wait when their offload is disabled: it takes bounded steps. A
 * Long whose record comes again between these steps is cut at once: its completion handler has run
 * before its origin gets a status. */
static void between_cuts(void)
{
    struct bench *b = bench_with(true, 3);
    struct long_record r = placed(b, 1);
    uint32_t handle = (uint32_t)peek_offload_of(b->engine, 0, INDEX);
    uint64_t before;

    poke_chunks_keep(b->engine, NO_CHUNKS);
    for (uint32_t i = 0; i < FLOWS; i++) {
        if (i > 0)
            bench_bind(b, ORIGIN_FLOW + i);
        r.op.flow = i;
        send_placed(b, &r);
    }
    CU_ASSERT_FALSE_FATAL(b->broken);
    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), -EAGAIN);
    before = offload(b).counters[0];
    CU_ASSERT(before > 0 && before < FLOWS / 2);
    r.op.flow = 0; /* flows are cut from the last one on, so this one is not cut yet */
    send_placed(b, &r);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), -ESHUTDOWN);
    CU_ASSERT(offload(b).counters[0] < FLOWS);
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(offload(b).counters[0], FLOWS);
    CU_ASSERT_EQUAL(offload(b).state, OFFLOAD_DISABLED);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that a Long to an offload without a host window changes no byte of the region, and that
 * its origin gets -EMSGSIZE. */
static void not_placed(void)
{
    struct bench *b = bench_with(false, 3);

    b->segment[PLACE] = 1;
    send_packed(b, 1, 7);
    CU_ASSERT_EQUAL(b->segment[PLACE], 1);
    CU_ASSERT_EQUAL(last(b, WIRE_FAIL), -EMSGSIZE);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"where it stands", where_it_stands},
                           {"a series", a_series},
                           {"another region", another_region},
                           {"what comes again", comes_again},
                           {"placed once", placed_once},
                           {"changed in place", changed_in_place},
                           {"its offload has gone", without_its_offload},
                           {"between cuts", between_cuts},
                           {"not placed", not_placed},
                           CU_TEST_INFO_NULL};

    return suite_run("records of Longs", tests);
}
