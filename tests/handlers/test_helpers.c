/* Helpers: their results, arguments at their limits and one past these, units taken before the
 * work, and the sends as the host gets them. Thread: one. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "shm_ring/fold.h"
#include "tests/handlers/bench.h"
#include "tests/suite.h"

static struct bench *b;

static uint64_t at(enum handler_window window, uint64_t offset)
{
    return handler_address(window, offset);
}

/* Calls one helper with up to five arguments. Returns its result. */
static uint64_t call(enum handler_helper helper, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                     uint64_t a5)
{
    const struct handler_instruction code[] = {
        OP_NUMBER(1, a1), OP_NUMBER(2, a2),  OP_NUMBER(3, a3), OP_NUMBER(4, a4),
        OP_NUMBER(5, a5), op_helper(helper), op_exit()};

    return bench_run(b, code, COUNT(code));
}

/* Units of the helper alone: the program before it takes 10, the call 1, the end 5. */
static uint64_t units_of_helper(void)
{
    return b->run.used - RUN_BEGIN - 10 - 1 - 5;
}

static void faults(enum run_fault fault)
{
    CU_ASSERT_EQUAL(b->run.fault, fault);
    if (b->run.fault != fault)
        printf("%s, not %s\n", run_fault_text(b->run.fault), run_fault_text(fault));
    if (fault != RUN_NO_FAULT)
        CU_ASSERT_EQUAL(b->run.fault_place, 10);
}

/* ---- ranges: each helper that takes an address, at the end of a window and past it ----------- */

enum argument { NONE, ADDRESS, BYTES, OTHER };

static void test_ranges(void)
{
    static const struct {
        enum handler_helper helper;
        unsigned address; /* number of the argument that is an address */
        uint64_t bytes;   /* how many bytes the helper touches there */
        bool written;
        uint64_t args[5];
    } rows[] = {
#define STATE(offset) ((uint64_t)HANDLER_STATE << 61 | (offset))
        {HELPER_COPY, 0, 24, true, {0, STATE(0), 24}},
        {HELPER_COPY, 1, 24, false, {STATE(0), 0, 24}},
        {HELPER_ACCUMULATE, 0, 32, true, {0, STATE(0), 4, WORD_U64, WORD_ADD}},
        {HELPER_ACCUMULATE, 1, 32, false, {STATE(0), 0, 4, WORD_U64, WORD_ADD}},
        {HELPER_SCATTER, 1, 16, false, {STATE(0), 0, 16, STATE(4096)}},
        {HELPER_SCATTER, 3, 32, false, {STATE(0), STATE(1024), 16, 0}},
        {HELPER_GATHER, 0, 16, true, {0, STATE(0), 16, STATE(4096)}},
        {HELPER_GATHER, 3, 32, false, {STATE(0), STATE(1024), 16, 0}},
        {HELPER_COMPARE, 0, 5000, false, {0, STATE(0), 5000}},
        {HELPER_COMPARE, 1, 5000, false, {STATE(0), 0, 5000}},
        {HELPER_FIND, 0, 800, false, {0, 100, 1}},
        {HELPER_HASH, 0, 13, false, {0, 13}},
        {HELPER_CAS, 0, 8, true, {0, STATE(0), 1}},
        {HELPER_CAS, 1, 8, true, {STATE(0), 0, 1}},
        {HELPER_FETCH_ADD, 0, 8, true, {0, 1, STATE(0)}},
        {HELPER_FETCH_ADD, 2, 8, true, {STATE(0), 1, 0}},
        {HELPER_PUT, 2, 4096, false, {0, 0, 0, 4096, 0}},
        {HELPER_MESSAGE, 1, 24, false, {0, 0, 3, STATE(0), 8}},
        {HELPER_MESSAGE, 3, 9, false, {0, STATE(0), 3, 0, 9}},
        {HELPER_REPLY, 0, 128, false, {0, 16, STATE(0), 8}},
        {HELPER_REPLY, 2, 10, false, {STATE(0), 16, 0, 10}},
    };
    static const struct {
        enum handler_window window;
        uint64_t size;
        bool writable;
    } windows[] = {{HANDLER_HOST, BENCH_HOST, true},
                   {HANDLER_PACKET, BENCH_PACKET, false},
                   {HANDLER_CONTEXT, sizeof(struct handler_packet), false},
                   {HANDLER_NOTHING, 0, false}};

    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t w = 0; w < COUNT(windows); w++) {
            uint64_t size = windows[w].size, bytes = rows[i].bytes, args[5];
            bool allowed = size >= bytes && (windows[w].writable || !rows[i].written);
            struct handler_vector vector = {.block = 8, .stride = 8};

            for (int past = 0; past < 3; past++) {
                bench_reset(b);
                memcpy(b->state + 4096, &vector, sizeof(vector));
                memcpy(b->region + BENCH_HOST - 32, &vector, sizeof(vector));
                memcpy(b->packet + BENCH_PACKET - 32, &vector, sizeof(vector));
                memcpy(&b->context.data, &vector, sizeof(vector));
                memcpy(args, rows[i].args, sizeof(args));
                args[rows[i].address] = at(windows[w].window, size - bytes + (uint64_t)past * 8);
                if (past == 2)
                    args[rows[i].address] = at(windows[w].window, HANDLER_OFFSET_MASK - 7);
                /* NULL is allowed here: no result is wanted. */
                if (rows[i].helper == HELPER_FETCH_ADD && args[2] == 0)
                    continue;
                /* The vector in the context does not stand at the window's end. */
                if (windows[w].window == HANDLER_CONTEXT && bytes == 32 && rows[i].address == 3)
                    continue;
                call(rows[i].helper, args[0], args[1], args[2], args[3], args[4]);
                if (past == 0 && allowed)
                    faults(RUN_NO_FAULT);
                else
                    faults(RUN_BAD_ADDRESS);
            }
        }
}

/* Guards the ends of windows to the byte, for helpers whose address need not be aligned. */
static void test_one_past(void)
{
    bench_reset(b);
    call(HELPER_COPY, at(HANDLER_STATE, BENCH_STATE - 23), at(HANDLER_HOST, 0), 24, 0, 0);
    faults(RUN_BAD_ADDRESS);
    call(HELPER_COPY, at(HANDLER_STATE, 0), at(HANDLER_HOST, BENCH_HOST - 23), 24, 0, 0);
    faults(RUN_BAD_ADDRESS);
    call(HELPER_HASH, at(HANDLER_PACKET, BENCH_PACKET - 12), 13, 0, 0, 0);
    faults(RUN_BAD_ADDRESS);
    call(HELPER_PUT, 0, 0, at(HANDLER_PACKET, 1), BENCH_PACKET, 0);
    faults(RUN_BAD_ADDRESS);
}

/* Guards lengths that are longer than any window, up to lengths that wrap around. */
static void test_long(void)
{
    static const uint64_t lengths[] = {BENCH_STATE + 1,   UINT64_C(1) << 32, UINT64_C(1) << 60,
                                       UINT64_C(1) << 61, UINT64_C(1) << 63, UINT64_MAX - 7,
                                       UINT64_MAX};

    bench_reset(b);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        static const enum handler_helper helpers[] = {HELPER_COPY, HELPER_COMPARE, HELPER_SCATTER,
                                                      HELPER_GATHER, HELPER_ACCUMULATE};
        struct handler_vector vector = {.block = 64, .stride = 64};

        for (size_t h = 0; h < COUNT(helpers); h++) {
            memcpy(b->region, &vector, sizeof(vector));
            call(helpers[h], at(HANDLER_STATE, 0), at(HANDLER_HOST, 64), lengths[i],
                 helpers[h] == HELPER_ACCUMULATE ? WORD_U8 : at(HANDLER_HOST, 0), WORD_ADD);
            CU_ASSERT_NOT_EQUAL(b->run.fault, RUN_NO_FAULT);
        }
        call(HELPER_HASH, at(HANDLER_STATE, 0), lengths[i], 0, 0, 0);
        CU_ASSERT_NOT_EQUAL(b->run.fault, RUN_NO_FAULT);
        call(HELPER_FIND, at(HANDLER_STATE, 0), lengths[i], 0, 0, 0);
        CU_ASSERT_NOT_EQUAL(b->run.fault, RUN_NO_FAULT);
        call(HELPER_PUT, 0, 0, at(HANDLER_STATE, 0), lengths[i], 0);
        faults(RUN_BAD_ARGUMENT);
        call(HELPER_PUT_HOST, 0, 0, 0, lengths[i] + BENCH_HOST, 0);
        if (lengths[i] + BENCH_HOST > BENCH_HOST)
            faults(RUN_BAD_ADDRESS);
        call(HELPER_REPLY, at(HANDLER_STATE, 0), lengths[i], 0, 0, 0);
        faults(RUN_BAD_ARGUMENT);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Guards that copy does as memmove, at any distance, in pieces and at once. */
static void test_copy(void)
{
    static const struct {
        uint64_t to, from, n;
    } rows[] = {{0, 64, 0},   {0, 64, 1},      {100, 4, 96},    {0, 8192, 8192},
                {1, 0, 8191}, {4095, 0, 4097}, {0, 1, 8191},    {0, 4096, 4096},
                {0, 0, 5000}, {4000, 0, 8192}, {0, 4000, 8192}, {1, 0, 12000}};
    static uint8_t expected[BENCH_HOST];

    for (size_t i = 0; i < COUNT(rows); i++) {
        bench_reset(b);
        memcpy(expected, b->region, BENCH_HOST);
        memmove(expected + rows[i].to, expected + rows[i].from, rows[i].n);
        CU_ASSERT_EQUAL(call(HELPER_COPY, at(HANDLER_HOST, rows[i].to),
                             at(HANDLER_HOST, rows[i].from), rows[i].n, 0, 0),
                        0);
        faults(RUN_NO_FAULT);
        CU_ASSERT_EQUAL(memcmp(expected, b->region, BENCH_HOST), 0);
        CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + (rows[i].n + 31) / 32);
    }
    call(HELPER_COPY, 0, 0, 0, 0, 0);
    faults(RUN_NO_FAULT);
}

static void test_compare(void)
{
    bench_reset(b);
    memcpy(b->region, b->state, BENCH_STATE);
    CU_ASSERT_EQUAL(
        call(HELPER_COMPARE, at(HANDLER_HOST, 0), at(HANDLER_STATE, 0), BENCH_STATE, 0, 0), 0);
    CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + BENCH_STATE / 32);
    for (uint64_t i = 0; i < BENCH_STATE; i += 4095) {
        b->region[i]++;
        CU_ASSERT_EQUAL(
            call(HELPER_COMPARE, at(HANDLER_HOST, 0), at(HANDLER_STATE, 0), BENCH_STATE, 0, 0), 1);
        CU_ASSERT_EQUAL(
            call(HELPER_COMPARE, at(HANDLER_STATE, 0), at(HANDLER_HOST, 0), BENCH_STATE, 0, 0),
            UINT64_MAX);
        CU_ASSERT_EQUAL(call(HELPER_COMPARE, at(HANDLER_HOST, 0), at(HANDLER_STATE, 0), i, 0, 0),
                        0);
        b->region[i]--;
    }
}

static void test_find(void)
{
    const uint64_t value = UINT64_C(0x5a5b5c5d5e5f6061);

    bench_reset(b);
    CU_ASSERT_EQUAL(call(HELPER_FIND, at(HANDLER_STATE, 3), 1000, value, 0, 0), UINT64_MAX);
    CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + 500);
    for (uint64_t i = 0; i < 1000; i += 333) {
        bench_reset(b);
        memcpy(b->state + 3 + 8 * i, &value, 8);
        CU_ASSERT_EQUAL(call(HELPER_FIND, at(HANDLER_STATE, 3), 1000, value, 0, 0), i);
        CU_ASSERT_EQUAL(call(HELPER_FIND, at(HANDLER_STATE, 3), i, value, 0, 0), UINT64_MAX);
    }
}

/* Guards that a hash depends on each byte and on the length, and on no byte after them. */
static void test_hash(void)
{
    for (uint64_t n = 0; n < 40; n++) {
        uint64_t sum;

        bench_reset(b);
        sum = call(HELPER_HASH, at(HANDLER_STATE, 1), n, 0, 0, 0);
        b->state[1 + n]++;
        CU_ASSERT_EQUAL(call(HELPER_HASH, at(HANDLER_STATE, 1), n, 0, 0, 0), sum);
        CU_ASSERT_NOT_EQUAL(call(HELPER_HASH, at(HANDLER_STATE, 1), n + 1, 0, 0, 0), sum);
        for (uint64_t i = 0; i < n; i++) {
            b->state[1 + i] ^= 1;
            CU_ASSERT_NOT_EQUAL(call(HELPER_HASH, at(HANDLER_STATE, 1), n, 0, 0, 0), sum);
            b->state[1 + i] ^= 1;
        }
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Guards that accumulate does as fold for each valid code, and that all others are refused. */
static void test_accumulate(void)
{
    for (uint64_t type = 0; type < 18; type++)
        for (uint64_t op = 0; op < 18; op++) {
            uint8_t code = word_code((enum word_op)(op & 15), (enum word_type)(type & 15));
            bool known = type < FOLD_TYPES && op < FOLD_OPS && fold_code_valid(code);
            uint8_t expected[5 * 16];

            bench_reset(b);
            memcpy(expected, b->region + 3, sizeof(expected));
            if (known)
                fold(code, expected, b->packet + 5, 5);
            call(HELPER_ACCUMULATE, at(HANDLER_HOST, 3), at(HANDLER_PACKET, 5), 5, type, op);
            faults(known ? RUN_NO_FAULT : RUN_BAD_ARGUMENT);
            CU_ASSERT_EQUAL(
                memcmp(b->region + 3, expected, known ? 5u << fold_shift(code) : sizeof(expected)),
                0);
        }
    bench_reset(b);
    for (uint64_t count = UINT64_C(1) << 60; count != 0;
         count = count == UINT64_MAX ? 0 : UINT64_MAX) {
        call(HELPER_ACCUMULATE, at(HANDLER_HOST, 0), at(HANDLER_PACKET, 0), count, FOLD_C128, 1);
        faults(RUN_OUT_OF_UNITS);
        call(HELPER_FIND, at(HANDLER_HOST, 0), 2 * count, 1, 0, 0);
        faults(RUN_OUT_OF_UNITS);
    }
    call(HELPER_ACCUMULATE, at(HANDLER_HOST, 0), at(HANDLER_PACKET, 0), 4, UINT64_C(1) << 32, 1);
    faults(RUN_BAD_ARGUMENT);
    call(HELPER_ACCUMULATE, at(HANDLER_HOST, 0), at(HANDLER_HOST, 31), 4, WORD_U64, WORD_ADD);
    faults(RUN_BAD_ARGUMENT);
    call(HELPER_ACCUMULATE, at(HANDLER_HOST, 31), at(HANDLER_HOST, 0), 4, WORD_U64, WORD_ADD);
    faults(RUN_BAD_ARGUMENT);
    call(HELPER_ACCUMULATE, at(HANDLER_HOST, 32), at(HANDLER_HOST, 0), 4, WORD_U64, WORD_ADD);
    faults(RUN_NO_FAULT);
}

static void test_accumulate_units(void)
{
    static const struct {
        uint64_t type, count, units;
    } rows[] = {{WORD_U8, 4096, 2048},
                {WORD_U64, 512, 256},
                {FOLD_C128, 256, 128},
                {WORD_U64, 1, 1},
                {WORD_U64, 0, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        bench_reset(b);
        call(HELPER_ACCUMULATE, at(HANDLER_HOST, 0), at(HANDLER_PACKET, 0), rows[i].count,
             rows[i].type, WORD_ADD);
        faults(RUN_NO_FAULT);
        CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + rows[i].units);
        /* With one unit less, nothing is changed. */
        if (rows[i].count < 100)
            continue;
        bench_reset(b);
        b->run.units = RUN_BEGIN + 11 + RUN_HELPER + rows[i].units - 1;
        call(HELPER_ACCUMULATE, at(HANDLER_HOST, 0), at(HANDLER_PACKET, 0), rows[i].count,
             rows[i].type, WORD_ADD);
        faults(RUN_OUT_OF_UNITS);
        CU_ASSERT_EQUAL(b->region[0], 2);
    }
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The plain way, byte by byte. */
static void plain_scatter(uint8_t *row, const uint8_t *flat, uint64_t n,
                          const struct handler_vector *v)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t byte = v->skip + i;

        row[v->start + byte / v->block * v->stride + byte % v->block] = flat[i];
    }
}

static void plain_gather(const uint8_t *row, uint8_t *flat, uint64_t n,
                         const struct handler_vector *v)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t byte = v->skip + i;

        flat[i] = row[v->start + byte / v->block * v->stride + byte % v->block];
    }
}

static void test_vectors(void)
{
    static const struct {
        struct handler_vector v;
        uint64_t n, blocks;
    } rows[] = {
        {{0, 64, 128, 0}, 4096, 64},
        {{8, 64, 128, 32}, 4096, 65},
        {{5, 1, 3, 7}, 100, 100},
        {{0, 4096, 4096, 0}, 4096, 1},
        {{0, 100, 100, 99}, 2, 2},
        {{16, 64, 0, 0}, 256, 4},
        {{0, 64, 16, 8}, 256, 5},
        {{0, 64, 128, 0}, 0, 0},
        {{0, 1000, 1500, 500}, 100, 1},
        {{3, UINT64_MAX, 7, 9}, 500, 1},
        {{0, UINT64_C(1) << 63, 0, 0}, 500, 1},
    };
    static uint8_t expected[BENCH_HOST];

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t n = rows[i].n, by_bytes = (n + 31) / 32, by_blocks = 2 * rows[i].blocks;

        bench_reset(b);
        memcpy(b->state, &rows[i].v, sizeof(rows[i].v));
        memcpy(expected, b->region, BENCH_HOST);
        plain_scatter(expected, b->packet, n, &rows[i].v);
        call(HELPER_SCATTER, at(HANDLER_HOST, 0), at(HANDLER_PACKET, 0), n, at(HANDLER_STATE, 0),
             0);
        faults(RUN_NO_FAULT);
        CU_ASSERT_EQUAL(memcmp(expected, b->region, BENCH_HOST), 0);
        CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + (n == 0                 ? 0
                                                         : by_bytes > by_blocks ? by_bytes
                                                                                : by_blocks));
        plain_gather(b->region, expected, n, &rows[i].v);
        call(HELPER_GATHER, at(HANDLER_STATE, 64), at(HANDLER_HOST, 0), n, at(HANDLER_STATE, 0), 0);
        faults(RUN_NO_FAULT);
        CU_ASSERT_EQUAL(memcmp(expected, b->state + 64, n), 0);
    }
}

/* Guards a vector whose furthest byte is the window's last one, or one past it; offsets that wrap
 * around; a block of 0 bytes. */
static void test_vector_edges(void)
{
    static const struct {
        struct handler_vector v;
        uint64_t n;
        enum run_fault fault;
    } rows[] = {
        {{0, 64, BENCH_HOST - 64, 0}, 128, RUN_NO_FAULT},
        {{1, 64, BENCH_HOST - 64, 0}, 128, RUN_BAD_ADDRESS},
        {{0, 64, BENCH_HOST - 63, 0}, 127, RUN_NO_FAULT},
        {{0, 64, BENCH_HOST - 63, 0}, 128, RUN_BAD_ADDRESS},
        {{BENCH_HOST - 64, 64, 0, 0}, 128, RUN_NO_FAULT},
        {{BENCH_HOST - 63, 64, 0, 0}, 65, RUN_BAD_ADDRESS}, /* the first block ends too late */
        {{0, 64, UINT64_C(1) << 61, 0}, 64, RUN_NO_FAULT},
        {{0, 64, UINT64_C(1) << 61, 0}, 65, RUN_BAD_ADDRESS},
        {{0, 64, UINT64_MAX - 63, 0}, 127, RUN_BAD_ADDRESS},
        {{0, 64, UINT64_MAX - 63, 0}, 128, RUN_BAD_ARGUMENT},
        {{64, 64, UINT64_MAX - 63, 0}, 128, RUN_BAD_ARGUMENT},
        {{0, 64, UINT64_C(1) << 63, 128}, 64, RUN_BAD_ARGUMENT},
        {{UINT64_MAX, 64, 64, 0}, 64, RUN_BAD_ARGUMENT},
        {{0, 64, 64, UINT64_MAX}, 64, RUN_BAD_ARGUMENT},
        {{0, UINT64_MAX, 64, UINT64_MAX - 63}, 64, RUN_BAD_ADDRESS},
        {{0, UINT64_MAX, 64, UINT64_MAX - 1}, 64, RUN_BAD_ARGUMENT},
        {{0, 0, 64, 0}, 64, RUN_BAD_ARGUMENT},
        {{0, 0, 64, 0}, 0, RUN_BAD_ARGUMENT},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (int way = 0; way < 2; way++) {
            uint64_t row = at(HANDLER_HOST, 0), flat = at(HANDLER_STATE, 64);

            bench_reset(b);
            memcpy(b->state, &rows[i].v, sizeof(rows[i].v));
            if (way == 0)
                call(HELPER_SCATTER, row, flat, rows[i].n, at(HANDLER_STATE, 0), 0);
            else
                call(HELPER_GATHER, flat, row, rows[i].n, at(HANDLER_STATE, 0), 0);
            if (b->run.fault != rows[i].fault)
                printf("row %zu\n", i);
            faults(rows[i].fault);
        }
}

/* ---- words and numbers ----------------------------------------------------------------------- */

static uint64_t word_at(const uint8_t *from)
{
    uint64_t word;

    memcpy(&word, from, 8);
    return word;
}

static void test_words(void)
{
    const uint64_t first = 100, other = 7;

    bench_reset(b);
    memcpy(b->region + 8, &first, 8);
    memcpy(b->state, &first, 8);
    CU_ASSERT_EQUAL(call(HELPER_CAS, at(HANDLER_HOST, 8), at(HANDLER_STATE, 0), 200, 0, 0), 1);
    CU_ASSERT_EQUAL(word_at(b->region + 8), 200);
    CU_ASSERT_EQUAL(word_at(b->state), 100);
    memcpy(b->state, &other, 8);
    CU_ASSERT_EQUAL(call(HELPER_CAS, at(HANDLER_HOST, 8), at(HANDLER_STATE, 0), 300, 0, 0), 0);
    CU_ASSERT_EQUAL(word_at(b->region + 8), 200);
    CU_ASSERT_EQUAL(word_at(b->state), 200);
    CU_ASSERT_EQUAL(call(HELPER_FETCH_ADD, at(HANDLER_HOST, 8), 5, at(HANDLER_STATE, 16), 0, 0), 0);
    CU_ASSERT_EQUAL(word_at(b->region + 8), 205);
    CU_ASSERT_EQUAL(word_at(b->state + 16), 200);
    CU_ASSERT_EQUAL(call(HELPER_FETCH_ADD, at(HANDLER_HOST, 8), 5, 0, 0, 0), 0);
    CU_ASSERT_EQUAL(word_at(b->region + 8), 210);
    call(HELPER_CAS, at(HANDLER_HOST, 4), at(HANDLER_STATE, 0), 300, 0, 0);
    faults(RUN_UNALIGNED);
    call(HELPER_FETCH_ADD, at(HANDLER_HOST, 1), 5, 0, 0, 0);
    faults(RUN_UNALIGNED);
}

static uint64_t bits64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, 8);
    return bits;
}

static uint64_t bits32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static void test_numbers(void)
{
    const struct {
        enum handler_number_op op;
        uint64_t a, b, result;
    } rows[] = {
        {NUMBER_ADD, bits64(1.5), bits64(2), bits64(3.5)},
        {NUMBER_SUB, bits64(INFINITY), bits64(INFINITY), bits64((double)NAN)},
        {NUMBER_MUL, bits64(-3), bits64(0.5), bits64(-1.5)},
        {NUMBER_DIV, bits64(1), bits64(0), bits64(INFINITY)},
        {NUMBER_DIV, bits64(0), bits64(0), bits64((double)NAN)},
        {NUMBER_MIN, bits64(0), bits64(-0.0), bits64(-0.0)},
        {NUMBER_MIN, bits64((double)NAN), bits64(5), bits64(5)},
        {NUMBER_MAX, bits64(-0.0), bits64(0), bits64(0)},
        {NUMBER_MAX, bits64(5), bits64((double)NAN), bits64(5)},
        {NUMBER_SQRT, bits64(9), 0, bits64(3)},
        {NUMBER_SQRT, bits64(-1), 0, bits64((double)NAN)},
        {NUMBER_LESS, bits64(1), bits64(2), 1},
        {NUMBER_LESS, bits64((double)NAN), bits64(2), 0},
        {NUMBER_EQUAL, bits64(0), bits64(-0.0), 1},
        {NUMBER_FROM_SIGNED, (uint64_t)-5, 0, bits64(-5)},
        {NUMBER_FROM_UNSIGNED, UINT64_MAX, 0, bits64(0x1p64)},
        {NUMBER_TO_SIGNED, bits64(-5.9), 0, (uint64_t)-5},
        {NUMBER_TO_SIGNED, bits64(1e30), 0, INT64_MAX},
        {NUMBER_TO_SIGNED, bits64(0x1p63), 0, INT64_MAX},
        {NUMBER_TO_SIGNED, bits64(-1e30), 0, (uint64_t)INT64_MIN},
        {NUMBER_TO_SIGNED, bits64((double)NAN), 0, 0},
        {NUMBER_TO_UNSIGNED, bits64(-1), 0, 0},
        {NUMBER_TO_UNSIGNED, bits64(0x1p64), 0, UINT64_MAX},
        {NUMBER_TO_UNSIGNED, bits64(0x1p63), 0, UINT64_C(1) << 63},
        {NUMBER_TO_UNSIGNED, bits64((double)NAN), 0, 0},
        {NUMBER_CONVERT, bits32(1.5f), 0, bits64(1.5)},
    };

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++)
        CU_ASSERT_EQUAL(call(HELPER_F64, rows[i].op, rows[i].a, rows[i].b, 0, 0), rows[i].result);
    CU_ASSERT_EQUAL(call(HELPER_F32, NUMBER_ADD, bits32(1.5f), bits32(2), 0, 0), bits32(3.5f));
    CU_ASSERT_EQUAL(call(HELPER_F32, NUMBER_CONVERT, bits64(1.5), 0, 0, 0), bits32(1.5f));
    CU_ASSERT_EQUAL(call(HELPER_F32, NUMBER_TO_SIGNED, bits32(-2.5f), 0, 0, 0), (uint64_t)-2);
    for (uint64_t op = NUMBER_OPS; op != 0; op = op << 8 | op >> 56) {
        call(HELPER_F64, op, 0, 0, 0, 0);
        faults(RUN_BAD_ARGUMENT);
        call(HELPER_F32, op, 0, 0, 0, 0);
        faults(RUN_BAD_ARGUMENT);
        if (op >> 56)
            break;
    }
}

/* ---- sends ----------------------------------------------------------------------------------- */

#define WITH(target, flags) ((uint64_t)(target) | (uint64_t)(flags) << 32)

static void test_sends(void)
{
    const struct bench_send *s = &b->sends[0];

    bench_reset(b);
    CU_ASSERT_EQUAL(call(HELPER_PUT, WITH(4, 16 | 8), 1000, at(HANDLER_PACKET, 7), 30, 99), 0);
    CU_ASSERT(b->sent == 1 && s->send.helper == HELPER_PUT && s->send.target == 4);
    CU_ASSERT(s->send.counter == 7 && s->send.flags == 16 && s->send.offset == 1000);
    CU_ASSERT(s->send.id == 99 && s->send.length == 30);
    CU_ASSERT_EQUAL(memcmp(s->payload, b->packet + 7, 30), 0);
    CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + 1);
    bench_reset(b);
    call(HELPER_PUT_HOST, WITH(0, 0), 5, 64, BENCH_HOST - 64, 3);
    CU_ASSERT(b->sent == 1 && s->send.host_offset == 64 && s->send.length == BENCH_HOST - 64);
    CU_ASSERT(s->send.counter == HANDLER_NONE && s->send.offset == 5 && s->send.id == 3);
    bench_reset(b);
    call(HELPER_GET, WITH(1, 0), 5, 64, 8, 3);
    CU_ASSERT(b->sent == 1 && s->send.helper == HELPER_GET && s->send.host_offset == 64);
    bench_reset(b);
    call(HELPER_ATOMIC, WITH(2, 0), 8, WORD_ADD | WORD_U64 << 8, 77, 3);
    CU_ASSERT(b->sent == 1 && s->send.code == word_code(WORD_ADD, WORD_U64));
    CU_ASSERT(s->send.value == 77 && s->send.offset == 8);
    bench_reset(b);
    call(HELPER_MESSAGE, WITH(2, 255), at(HANDLER_STATE, 0), 16, at(HANDLER_PACKET, 0), 5);
    CU_ASSERT(b->sent == 1 && s->send.index == 255 && s->send.arguments == 16);
    CU_ASSERT(memcmp(s->args, b->state, 128) == 0 && s->send.length == 5);
    bench_reset(b);
    call(HELPER_REPLY, 0, 0, 0, 0, 0);
    CU_ASSERT(b->sent == 1 && s->send.helper == HELPER_REPLY && s->send.arguments == 0);
    bench_reset(b);
    call(HELPER_EVENT, 11, 12, 0, 0, 0);
    CU_ASSERT(b->sent == 1 && s->send.id == 11 && s->send.value == 12);
    b->room = 1;
    CU_ASSERT_EQUAL(call(HELPER_EVENT, 11, 12, 0, 0, 0), (uint64_t)-EAGAIN);
    CU_ASSERT(b->run.said_again);
}

/* Guards that a put or a get of 0 bytes leaves also where the offload has no host window. Then 0 is
 * the only offset. */
static void test_sends_without_host(void)
{
    static const enum handler_helper helpers[] = {HELPER_PUT_HOST, HELPER_GET};

    for (size_t i = 0; i < COUNT(helpers); i++) {
        bench_reset(b);
        window_set(&b->run.windows, HANDLER_HOST, NULL, 0);
        CU_ASSERT_EQUAL(call(helpers[i], WITH(1, 0), 5, 0, 0, 3), 0);
        faults(RUN_NO_FAULT);
        CU_ASSERT(b->sent == 1 && b->sends[0].send.length == 0 && b->sends[0].send.id == 3);
        for (uint64_t offset = 0; offset < 2; offset++) {
            call(helpers[i], WITH(1, 0), 5, offset, 1 - offset, 3);
            faults(RUN_BAD_ADDRESS);
        }
        CU_ASSERT_EQUAL(b->sent, 1);
    }
}

static void test_wrong_sends(void)
{
    static const struct {
        enum handler_helper helper;
        uint64_t args[5];
        enum run_fault fault;
    } rows[] = {
        {HELPER_PUT, {WITH(BENCH_TARGETS, 0)}, RUN_BAD_ARGUMENT},
        {HELPER_PUT, {UINT32_MAX}, RUN_BAD_ARGUMENT},
        {HELPER_PUT, {WITH(0, 9)}, RUN_BAD_ARGUMENT},
        {HELPER_PUT, {WITH(0, 32)}, RUN_BAD_ARGUMENT},
        {HELPER_PUT, {0, 0, STATE(0), 4097}, RUN_BAD_ARGUMENT},
        {HELPER_PUT_HOST, {WITH(BENCH_TARGETS, 0)}, RUN_BAD_ARGUMENT},
        {HELPER_PUT_HOST, {0, 0, 65, BENCH_HOST - 64}, RUN_BAD_ADDRESS},
        {HELPER_PUT_HOST, {0, 0, STATE(0), 1}, RUN_BAD_ADDRESS},
        {HELPER_PUT_HOST, {0, 0, UINT64_MAX, 1}, RUN_BAD_ADDRESS},
        {HELPER_GET, {0, 0, BENCH_HOST, 1}, RUN_BAD_ADDRESS},
        {HELPER_GET, {WITH(0, 32)}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, WORD_READ | WORD_U64 << 8}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, WORD_COMPARE_SWAP | WORD_U64 << 8}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, WORD_AND | WORD_F64 << 8}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, FOLD_LAND | WORD_U64 << 8}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, WORD_ADD | WORD_TYPES << 8}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {0, 0, WORD_ADD | 1 << 16}, RUN_BAD_ARGUMENT},
        {HELPER_ATOMIC, {BENCH_TARGETS, 0, WORD_ADD}, RUN_BAD_ARGUMENT},
        {HELPER_MESSAGE, {WITH(0, HANDLER_INDICES)}, RUN_BAD_ARGUMENT},
        {HELPER_MESSAGE, {WITH(BENCH_TARGETS, 0)}, RUN_BAD_ARGUMENT},
        {HELPER_MESSAGE, {0, STATE(0), 17}, RUN_BAD_ARGUMENT},
        {HELPER_REPLY, {STATE(0), 17}, RUN_BAD_ARGUMENT},
        {HELPER_COUNTER, {HANDLER_COUNTERS}, RUN_BAD_ARGUMENT},
        {HELPER_COUNTER_ADD, {HANDLER_COUNTERS}, RUN_BAD_ARGUMENT},
        {HELPER_COUNTER_SET, {UINT64_MAX}, RUN_BAD_ARGUMENT},
    };

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++) {
        call(rows[i].helper, rows[i].args[0], rows[i].args[1], rows[i].args[2], rows[i].args[3],
             rows[i].args[4]);
        faults(rows[i].fault);
        CU_ASSERT_EQUAL(b->sent, 0);
    }
}

static void test_counters(void)
{
    bench_reset(b);
    call(HELPER_COUNTER_SET, 7, 40, 0, 0, 0);
    call(HELPER_COUNTER_ADD, 7, 2, 0, 0, 0);
    CU_ASSERT_EQUAL(call(HELPER_COUNTER, 7, 0, 0, 0, 0), 42);
    CU_ASSERT_EQUAL(call(HELPER_TARGET_OF, 3, 0, 0, 0, 0), 3);
    CU_ASSERT_EQUAL(call(HELPER_TARGET_OF, 9, 0, 0, 0, 0), HANDLER_NONE);
    CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER);
    b->run.targets = 1024; /* a search among many targets costs units */
    CU_ASSERT_EQUAL(call(HELPER_TARGET_OF, 3, 0, 0, 0, 0), 3);
    CU_ASSERT_EQUAL(units_of_helper(), RUN_HELPER + 64);
    b->run.targets = BENCH_TARGETS;
    call(HELPER_TRACE, 5, 6, 0, 0, 0);
    CU_ASSERT(b->traced[0] == 5 && b->traced[1] == 6);
    b->now = 1234;
    CU_ASSERT_EQUAL(call(HELPER_NOW, 0, 0, 0, 0, 0), 1234);
}

/* Guards that the clock is looked at every 4 KiB within a long helper, and every 128 blocks. */
static void test_time_of_helpers(void)
{
    static const struct {
        enum handler_helper helper;
        uint64_t args[5];
        uint64_t block;
    } rows[] = {
        {HELPER_COPY, {(uint64_t)HANDLER_HOST << 61, ((uint64_t)HANDLER_HOST << 61) + 1, 16000}, 0},
        {HELPER_COPY, {((uint64_t)HANDLER_HOST << 61) + 1, (uint64_t)HANDLER_HOST << 61, 16000}, 0},
        {HELPER_HASH, {(uint64_t)HANDLER_HOST << 61, 16000}, 0},
        {HELPER_FIND, {(uint64_t)HANDLER_HOST << 61, 2000, 1}, 0},
        {HELPER_COMPARE, {(uint64_t)HANDLER_HOST << 61, (uint64_t)HANDLER_HOST << 61, 16000}, 0},
        {HELPER_ACCUMULATE,
         {(uint64_t)HANDLER_HOST << 61, ((uint64_t)HANDLER_HOST << 61) + 8000, 1000, WORD_U64, 1},
         0},
        {HELPER_SCATTER,
         {((uint64_t)HANDLER_HOST << 61) + 8000, (uint64_t)HANDLER_HOST << 61, 8000, STATE(0)},
         8},
        {HELPER_SCATTER,
         {((uint64_t)HANDLER_HOST << 61) + 8000, (uint64_t)HANDLER_HOST << 61, 129, STATE(0)},
         1},
        {HELPER_GATHER,
         {((uint64_t)HANDLER_HOST << 61) + 8000, (uint64_t)HANDLER_HOST << 61, 129, STATE(0)},
         1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct handler_vector vector = {.block = rows[i].block, .stride = rows[i].block};

        bench_reset(b);
        memcpy(b->state, &vector, sizeof(vector));
        b->tick = 1000;
        b->run.time = 2999; /* the look after the helper's first 4 KiB */
        b->run.units = 1 << 20;
        call(rows[i].helper, rows[i].args[0], rows[i].args[1], rows[i].args[2], rows[i].args[3],
             rows[i].args[4]);
        faults(RUN_OUT_OF_TIME);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"ranges", test_ranges},
        {"one past", test_one_past},
        {"long", test_long},
        {"copy", test_copy},
        {"compare", test_compare},
        {"find", test_find},
        {"hash", test_hash},
        {"accumulate", test_accumulate},
        {"units of accumulate", test_accumulate_units},
        {"vectors", test_vectors},
        {"edges of vectors", test_vector_edges},
        {"words", test_words},
        {"numbers", test_numbers},
        {"sends", test_sends},
        {"sends without host", test_sends_without_host},
        {"wrong sends", test_wrong_sends},
        {"counters", test_counters},
        {"time of helpers", test_time_of_helpers},
        CU_TEST_INFO_NULL,
    };

    b = bench_new();
    return suite_run("helpers", tests);
}
