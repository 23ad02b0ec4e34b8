/* The interpreter: each instruction at its limits, each window at its ends, units and time, calls,
 * returns, atomics. Thread: one. */
#include <errno.h>
#include <string.h>
#include "tests/handlers/bench.h"
#include "tests/suite.h"

static struct bench *b;

#define S64_LEAST UINT64_C(0x8000000000000000)
#define S32_LEAST UINT64_C(0x80000000)
#define HIGH      UINT64_C(0xdeadbeef00000000)
#define NEG(n)    (-(uint64_t)(n))

/* ---- arithmetic and jumps -------------------------------------------------------------------- */

struct row {
    unsigned opcode;
    int offset;
    uint64_t a, b; /* values of register 3, and of register 4 or imm */
    uint64_t result;
};

/* A row is tried with a register and with an immediate; without the latter where no immediate has
 * the value of b. */
static const struct row arithmetic[] = {
    {CODE_ALU64 | CODE_ADD, 0, UINT64_MAX, 1, 0},
    {CODE_ALU64 | CODE_ADD, 0, 5, NEG(7), NEG(2)},
    {CODE_ALU | CODE_ADD, 0, UINT32_MAX, 1, 0},
    {CODE_ALU | CODE_ADD, 0, HIGH | 1, 2, 3},
    {CODE_ALU64 | CODE_SUB, 0, 0, 1, UINT64_MAX},
    {CODE_ALU | CODE_SUB, 0, 0, 1, UINT32_MAX},
    {CODE_ALU64 | CODE_MUL, 0, UINT64_C(1) << 32, UINT64_C(1) << 32, 0},
    {CODE_ALU64 | CODE_MUL, 0, 3, NEG(4), NEG(12)},
    {CODE_ALU | CODE_MUL, 0, 1 << 16, 1 << 16, 0},
    {CODE_ALU | CODE_MUL, 0, HIGH | 3, 5, 15},
    {CODE_ALU64 | CODE_DIV, 0, 7, 2, 3},
    {CODE_ALU64 | CODE_DIV, 0, 7, 0, 0},
    {CODE_ALU64 | CODE_DIV, 0, UINT64_MAX, UINT64_MAX, 1},
    {CODE_ALU64 | CODE_DIV, 0, S64_LEAST, UINT64_MAX, 0},
    {CODE_ALU | CODE_DIV, 0, HIGH | 7, 2, 3},
    {CODE_ALU | CODE_DIV, 0, 7, HIGH, 0},
    {CODE_ALU | CODE_DIV, 0, S32_LEAST, UINT32_MAX, 0},
    {CODE_ALU64 | CODE_DIV, 1, NEG(7), 2, NEG(3)},
    {CODE_ALU64 | CODE_DIV, 1, 7, NEG(2), NEG(3)},
    {CODE_ALU64 | CODE_DIV, 1, NEG(7), 0, 0},
    {CODE_ALU64 | CODE_DIV, 1, S64_LEAST, NEG(1), S64_LEAST},
    {CODE_ALU | CODE_DIV, 1, NEG(7), 2, UINT32_MAX - 2},
    {CODE_ALU | CODE_DIV, 1, 7, 0, 0},
    {CODE_ALU | CODE_DIV, 1, S32_LEAST, NEG(1), S32_LEAST},
    {CODE_ALU | CODE_DIV, 1, HIGH | S32_LEAST, UINT32_MAX, S32_LEAST},
    {CODE_ALU64 | CODE_MOD, 0, 7, 4, 3},
    {CODE_ALU64 | CODE_MOD, 0, HIGH | 7, 0, HIGH | 7},
    {CODE_ALU | CODE_MOD, 0, HIGH | 7, 0, 7},
    {CODE_ALU | CODE_MOD, 0, HIGH | 7, 4, 3},
    {CODE_ALU64 | CODE_MOD, 1, NEG(7), 4, NEG(3)},
    {CODE_ALU64 | CODE_MOD, 1, 7, NEG(4), 3},
    {CODE_ALU64 | CODE_MOD, 1, S64_LEAST, NEG(1), 0},
    {CODE_ALU64 | CODE_MOD, 1, NEG(7), 0, NEG(7)},
    {CODE_ALU | CODE_MOD, 1, NEG(7), 4, UINT32_MAX - 2},
    {CODE_ALU | CODE_MOD, 1, S32_LEAST, NEG(1), 0},
    {CODE_ALU | CODE_MOD, 1, HIGH | 7, 0, 7},
    {CODE_ALU64 | CODE_OR, 0, 1, S64_LEAST, S64_LEAST | 1},
    {CODE_ALU64 | CODE_OR, 0, 1, NEG(2), UINT64_MAX},
    {CODE_ALU | CODE_OR, 0, HIGH | 1, NEG(2), UINT32_MAX},
    {CODE_ALU64 | CODE_AND, 0, HIGH | 5, NEG(2), HIGH | 4},
    {CODE_ALU | CODE_AND, 0, HIGH | 5, NEG(2), 4},
    {CODE_ALU64 | CODE_XOR, 0, HIGH, NEG(1), ~HIGH},
    {CODE_ALU | CODE_XOR, 0, HIGH, NEG(1), UINT32_MAX},
    {CODE_ALU64 | CODE_LSH, 0, 1, 63, S64_LEAST},
    {CODE_ALU64 | CODE_LSH, 0, 1, 64, 1},
    {CODE_ALU64 | CODE_LSH, 0, 1, NEG(1), S64_LEAST},
    {CODE_ALU | CODE_LSH, 0, HIGH | 1, 31, S32_LEAST},
    {CODE_ALU | CODE_LSH, 0, 1, 32, 1},
    {CODE_ALU | CODE_LSH, 0, 1, 33, 2},
    {CODE_ALU64 | CODE_RSH, 0, S64_LEAST, 63, 1},
    {CODE_ALU64 | CODE_RSH, 0, 6, 65, 3},
    {CODE_ALU | CODE_RSH, 0, HIGH | S32_LEAST, 31, 1},
    {CODE_ALU | CODE_RSH, 0, 6, 33, 3},
    {CODE_ALU64 | CODE_ARSH, 0, S64_LEAST, 63, UINT64_MAX},
    {CODE_ALU64 | CODE_ARSH, 0, NEG(6), 65, NEG(3)},
    {CODE_ALU | CODE_ARSH, 0, S32_LEAST, 31, UINT32_MAX},
    {CODE_ALU | CODE_ARSH, 0, HIGH | 4, 33, 2},
    {CODE_ALU64 | CODE_MOV, 0, 9, NEG(1), UINT64_MAX},
    {CODE_ALU64 | CODE_MOV, 0, 9, 5, 5},
    {CODE_ALU | CODE_MOV, 0, HIGH, NEG(1), UINT32_MAX},
};

/* Instructions that have only one of these forms: `opcode` is whole, register 4 is b, and the
 * immediate is `imm`. */
static const struct {
    struct row row;
    int imm;
} special[] = {
    {{CODE_ALU64 | CODE_MOV | CODE_X, 8, 0, 0x80, NEG(0x80)}, 0},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 8, 0, 0x17f, 0x7f}, 0},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 16, 0, 0x18000, NEG(0x8000)}, 0},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 32, 0, S32_LEAST, NEG(S32_LEAST)}, 0},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 32, 0, HIGH | 1, 1}, 0},
    {{CODE_ALU | CODE_MOV | CODE_X, 8, 0, 0x80, UINT32_MAX - 0x7f}, 0},
    {{CODE_ALU | CODE_MOV | CODE_X, 16, HIGH, 0x8000, UINT32_MAX - 0x7fff}, 0},
    {{CODE_ALU64 | CODE_NEG, 0, 1, 0, UINT64_MAX}, 0},
    {{CODE_ALU64 | CODE_NEG, 0, S64_LEAST, 0, S64_LEAST}, 0},
    {{CODE_ALU | CODE_NEG, 0, HIGH | 1, 0, UINT32_MAX}, 0},
    {{CODE_ALU | CODE_NEG, 0, S32_LEAST, 0, S32_LEAST}, 0},
    {{CODE_ALU | CODE_END, 0, UINT64_C(0x1122334455667788), 0, 0x7788}, 16},
    {{CODE_ALU | CODE_END, 0, UINT64_C(0x1122334455667788), 0, 0x55667788}, 32},
    {{CODE_ALU | CODE_END, 0, UINT64_C(0x1122334455667788), 0, UINT64_C(0x1122334455667788)}, 64},
    {{CODE_ALU | CODE_END | CODE_X, 0, UINT64_C(0x1122334455667788), 0, 0x8877}, 16},
    {{CODE_ALU | CODE_END | CODE_X, 0, UINT64_C(0x1122334455667788), 0, 0x88776655}, 32},
    {{CODE_ALU | CODE_END | CODE_X, 0, UINT64_C(0x1122334455667788), 0,
      UINT64_C(0x8877665544332211)},
     64},
    {{CODE_ALU64 | CODE_END, 0, UINT64_C(0x1122334455667788), 0, 0x8877}, 16},
    {{CODE_ALU64 | CODE_END, 0, UINT64_C(0x1122334455667788), 0, 0x88776655}, 32},
    {{CODE_ALU64 | CODE_END, 0, UINT64_C(0x1122334455667788), 0, UINT64_C(0x8877665544332211)}, 64},
};

/* Jumps: the result is 1 if the jump is taken. */
static const struct row jumps[] = {
    {CODE_JMP | CODE_JEQ, 0, 5, 5, 1},
    {CODE_JMP | CODE_JEQ, 0, HIGH | 5, 5, 0},
    {CODE_JMP32 | CODE_JEQ, 0, HIGH | 5, 5, 1},
    {CODE_JMP | CODE_JEQ, 0, NEG(1), NEG(1), 1},
    {CODE_JMP | CODE_JNE, 0, 5, 5, 0},
    {CODE_JMP | CODE_JNE, 0, HIGH | 5, 5, 1},
    {CODE_JMP32 | CODE_JNE, 0, HIGH | 5, 5, 0},
    {CODE_JMP32 | CODE_JNE, 0, 5, 6, 1},
    {CODE_JMP | CODE_JGT, 0, NEG(1), 1, 1},
    {CODE_JMP | CODE_JGT, 0, 1, 1, 0},
    {CODE_JMP | CODE_JGT, 0, 1, NEG(1), 0},
    {CODE_JMP32 | CODE_JGT, 0, HIGH, 1, 0},
    {CODE_JMP32 | CODE_JGT, 0, 2, 1, 1},
    {CODE_JMP | CODE_JGE, 0, 1, 1, 1},
    {CODE_JMP | CODE_JGE, 0, 0, 1, 0},
    {CODE_JMP32 | CODE_JGE, 0, HIGH, 1, 0},
    {CODE_JMP32 | CODE_JGE, 0, 1, 1, 1},
    {CODE_JMP | CODE_JLT, 0, 1, NEG(1), 1},
    {CODE_JMP | CODE_JLT, 0, 1, 1, 0},
    {CODE_JMP32 | CODE_JLT, 0, HIGH, 1, 1},
    {CODE_JMP32 | CODE_JLT, 0, 1, 1, 0},
    {CODE_JMP | CODE_JLE, 0, 1, 1, 1},
    {CODE_JMP | CODE_JLE, 0, 2, 1, 0},
    {CODE_JMP32 | CODE_JLE, 0, HIGH | 1, 1, 1},
    {CODE_JMP32 | CODE_JLE, 0, 2, 1, 0},
    {CODE_JMP | CODE_JSET, 0, 6, 2, 1},
    {CODE_JMP | CODE_JSET, 0, 6, 9, 0},
    {CODE_JMP | CODE_JSET, 0, HIGH, NEG(1), 1},
    {CODE_JMP32 | CODE_JSET, 0, HIGH, NEG(1), 0},
    {CODE_JMP32 | CODE_JSET, 0, 6, 2, 1},
    {CODE_JMP | CODE_JSGT, 0, 1, NEG(1), 1},
    {CODE_JMP | CODE_JSGT, 0, NEG(1), NEG(1), 0},
    {CODE_JMP | CODE_JSGT, 0, NEG(1), 1, 0},
    {CODE_JMP32 | CODE_JSGT, 0, HIGH | 1, NEG(1), 1},
    {CODE_JMP32 | CODE_JSGT, 0, UINT32_MAX, 0, 0},
    {CODE_JMP | CODE_JSGE, 0, NEG(1), NEG(1), 1},
    {CODE_JMP | CODE_JSGE, 0, NEG(2), NEG(1), 0},
    {CODE_JMP32 | CODE_JSGE, 0, UINT32_MAX, NEG(1), 1},
    {CODE_JMP32 | CODE_JSGE, 0, S32_LEAST, 0, 0},
    {CODE_JMP | CODE_JSLT, 0, NEG(1), 1, 1},
    {CODE_JMP | CODE_JSLT, 0, 1, 1, 0},
    {CODE_JMP32 | CODE_JSLT, 0, S32_LEAST, 0, 1},
    {CODE_JMP32 | CODE_JSLT, 0, HIGH, 0, 0},
    {CODE_JMP | CODE_JSLE, 0, NEG(1), NEG(1), 1},
    {CODE_JMP | CODE_JSLE, 0, 1, NEG(1), 0},
    {CODE_JMP32 | CODE_JSLE, 0, UINT32_MAX, NEG(1), 1},
    {CODE_JMP32 | CODE_JSLE, 0, 1, 0, 0},
};

static uint64_t compute(const struct row *row, unsigned opcode, int imm)
{
    const struct handler_instruction code[] = {
        OP_NUMBER(3, row->a),
        OP_NUMBER(4, row->b),
        op(opcode, 3, opcode & CODE_X && (opcode & 0xf0) != CODE_END ? 4 : 0, row->offset, imm),
        op_move(0, 3),
        op_exit(),
    };
    uint64_t result = bench_run(b, code, COUNT(code));

    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    return result;
}

static uint64_t jump(const struct row *row, unsigned opcode, int imm)
{
    const struct handler_instruction code[] = {
        OP_NUMBER(3, row->a), OP_NUMBER(4, row->b),
        op_set(0, 1),         op(opcode, 3, opcode & CODE_X ? 4 : 0, 1, imm),
        op_set(0, 0),         op_exit(),
    };

    return bench_run(b, code, COUNT(code));
}

/* Runs a row's instruction with a register as its second operand, and with an immediate one if it
 * fits. Checks both results. */
static void try_row(const struct row *row, uint64_t (*run)(const struct row *, unsigned, int))
{
    uint64_t result = run(row, row->opcode | CODE_X, 0);

    if (result != row->result)
        printf("opcode %#x offset %d: %llx, %llx gives %llx, not %llx\n", row->opcode, row->offset,
               (unsigned long long)row->a, (unsigned long long)row->b, (unsigned long long)result,
               (unsigned long long)row->result);
    CU_ASSERT_EQUAL(result, row->result);
    if ((uint64_t)(int64_t)(int32_t)row->b == row->b)
        CU_ASSERT_EQUAL(run(row, row->opcode, (int32_t)row->b), row->result);
}

static void test_instructions(void)
{
    bench_reset(b);
    for (size_t i = 0; i < COUNT(arithmetic); i++)
        try_row(&arithmetic[i], compute);
    for (size_t i = 0; i < COUNT(jumps); i++)
        try_row(&jumps[i], jump);
    for (size_t i = 0; i < COUNT(special); i++)
        CU_ASSERT_EQUAL(compute(&special[i].row, special[i].row.opcode, special[i].imm),
                        special[i].row.result);
}

/* Guards both unconditional jumps, forwards and back. */
static void test_jumps_far(void)
{
    static const struct handler_instruction forms[] = {
        {.opcode = CODE_JMP | CODE_JA, .offset = 2},
        {.opcode = CODE_JMP32 | CODE_JA, .imm = 2},
    };
    static const struct handler_instruction backs[] = {
        {.opcode = CODE_JMP | CODE_JA, .offset = -3},
        {.opcode = CODE_JMP32 | CODE_JA, .imm = -3},
    };

    bench_reset(b);
    for (size_t i = 0; i < COUNT(forms); i++) {
        const struct handler_instruction code[] = {
            forms[i], op_set(0, 7), op(CODE_JMP | CODE_JA, 0, 0, 1, 0), backs[i], op_exit()};

        CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), 7);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct {
    enum handler_window window;
    uint64_t size;
    bool writable;
} windows[] = {
    {HANDLER_NOTHING, 0, false},
    {HANDLER_STACK, HANDLER_STACK_BYTES, true},
    {HANDLER_CONTEXT, sizeof(struct handler_packet), false},
    {HANDLER_PACKET, BENCH_PACKET, false},
    {HANDLER_STATE, BENCH_STATE, true},
    {HANDLER_HOST, BENCH_HOST, true},
    {HANDLER_SCRATCH, BENCH_SCRATCH, true},
    {HANDLER_CONSTANTS, 0, false},
};

/* Makes one access at an address that is given as base and offset of the instruction. */
static enum run_fault access_at(unsigned opcode, uint64_t base, int offset)
{
    const struct handler_instruction load[] = {OP_NUMBER(3, base), op(opcode, 4, 3, offset, 0),
                                               op_exit()};
    const struct handler_instruction store[] = {
        OP_NUMBER(3, base), op(opcode, 3, (opcode & CODE_CLASS) == CODE_STX ? 4 : 0, offset, 0),
        op_exit()};

    if ((opcode & CODE_CLASS) == CODE_LDX)
        bench_run(b, load, COUNT(load));
    else
        bench_run(b, store, COUNT(store));
    if (b->run.fault != RUN_NO_FAULT) {
        CU_ASSERT_EQUAL(b->run.fault_place, 2);
        CU_ASSERT_EQUAL(b->run.fault_address, base + (uint64_t)(int64_t)offset);
        CU_ASSERT_EQUAL(b->run.returned, HANDLER_FAIL);
    }
    return b->run.fault;
}

static void try_edges(unsigned opcode, enum handler_window window, uint64_t size, bool allowed)
{
    unsigned bytes = code_bytes((uint8_t)opcode);
    enum run_fault inside = allowed ? RUN_NO_FAULT : RUN_BAD_ADDRESS;
    uint64_t at = handler_address(window, 0);

    if (size >= bytes) {
        CU_ASSERT_EQUAL(access_at(opcode, at, 0), inside);
        CU_ASSERT_EQUAL(access_at(opcode, at + size - bytes, 0), inside);
        CU_ASSERT_EQUAL(access_at(opcode, at + size, -(int)bytes), inside);
    }
    for (unsigned k = 1; k <= bytes; k++)
        CU_ASSERT_EQUAL(access_at(opcode, at + size - bytes + k, 0), RUN_BAD_ADDRESS);
    CU_ASSERT_EQUAL(access_at(opcode, at, -1), RUN_BAD_ADDRESS);
    CU_ASSERT_EQUAL(access_at(opcode, at + HANDLER_OFFSET_MASK, 0), RUN_BAD_ADDRESS);
    CU_ASSERT_EQUAL(access_at(opcode, at + (HANDLER_OFFSET_MASK >> 1), 0), RUN_BAD_ADDRESS);
}

static void test_window_edges(void)
{
    static const unsigned sizes[] = {CODE_B, CODE_H, CODE_W, CODE_DW};

    bench_reset(b);
    for (size_t w = 0; w < COUNT(windows); w++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            try_edges(CODE_LDX | CODE_MEM | sizes[s], windows[w].window, windows[w].size, true);
            try_edges(CODE_STX | CODE_MEM | sizes[s], windows[w].window, windows[w].size,
                      windows[w].writable);
            try_edges(CODE_ST | CODE_MEM | sizes[s], windows[w].window, windows[w].size,
                      windows[w].writable);
            if (sizes[s] != CODE_DW)
                try_edges(CODE_LDX | CODE_MEMSX | sizes[s], windows[w].window, windows[w].size,
                          true);
        }
}

/* Guards the widths of loads and stores: which bytes a store leaves as they are, and which a load
 * clears or extends. */
static void test_widths(void)
{
    static const struct {
        unsigned size;
        uint64_t stored, plain, extended;
    } rows[] = {
        {CODE_B, UINT64_C(0x11223344556677f8), 0xf8, NEG(8)},
        {CODE_H, UINT64_C(0x112233445566fff8), 0xfff8, NEG(8)},
        {CODE_W, UINT64_C(0x11223344fffffff8), 0xfffffff8, NEG(8)},
        {CODE_DW, NEG(8), NEG(8), 0},
    };
    uint64_t before = UINT64_C(0x1122334455667788);

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct handler_instruction plain[] = {
            op(CODE_ST | CODE_MEM | rows[i].size, 2, 0, 16, -8),
            op(CODE_LDX | CODE_MEM | rows[i].size, 0, 2, 16, 0), op_exit()};
        const struct handler_instruction by_register[] = {
            op_set(5, -8), op(CODE_STX | CODE_MEM | rows[i].size, 2, 5, 16, 0),
            op(CODE_LDX | CODE_MEMSX | rows[i].size, 0, 2, 16, 0), op_exit()};
        uint64_t after;

        memcpy(b->state + 16, &before, 8);
        CU_ASSERT_EQUAL(bench_run(b, plain, COUNT(plain)), rows[i].plain);
        memcpy(&after, b->state + 16, 8);
        CU_ASSERT_EQUAL(after, rows[i].stored);
        if (rows[i].size == CODE_DW)
            continue;
        memcpy(b->state + 16, &before, 8);
        CU_ASSERT_EQUAL(bench_run(b, by_register, COUNT(by_register)), rows[i].extended);
        memcpy(&after, b->state + 16, 8);
        CU_ASSERT_EQUAL(after, rows[i].stored);
    }
}

/* Guards that programs which a validator of addresses takes for safe fault at their access: an
 * address on the stack that an unaligned store has changed, and an address after a comparison with
 * another one. Validators, such as librte_bpf's, have accepted both. */
static void test_deceived_validators(void)
{
    const struct handler_instruction overwritten[] = {
        op(CODE_STX | CODE_MEM | CODE_DW, 10, 2, -8, 0),
        op(CODE_ST | CODE_MEM | CODE_W, 10, 0, -7, 77),
        op(CODE_LDX | CODE_MEM | CODE_DW, 3, 10, -8, 0),
        op(CODE_LDX | CODE_MEM | CODE_B, 0, 3, 0, 0), op_exit()};
    const struct handler_instruction compared[] = {
        op_move(3, 2), op(CODE_JMP | CODE_JLE | CODE_X, 3, 10, 1, 0),
        op(CODE_ALU64 | CODE_ADD, 3, 0, 0, BENCH_STATE),
        op(CODE_LDX | CODE_MEM | CODE_B, 0, 3, 0, 0), op_exit()};

    bench_reset(b);
    bench_run(b, overwritten, COUNT(overwritten));
    CU_ASSERT_EQUAL(b->run.fault, RUN_BAD_ADDRESS);
    CU_ASSERT_EQUAL(b->run.fault_place, 3);
    bench_run(b, compared, COUNT(compared));
    CU_ASSERT_EQUAL(b->run.fault, RUN_BAD_ADDRESS);
    CU_ASSERT_EQUAL(b->run.fault_place, 3);
    CU_ASSERT_EQUAL(b->run.fault_address, handler_address(HANDLER_STATE, BENCH_STATE));
}

/* ---- atomics --------------------------------------------------------------------------------- */

static void test_atomics(void)
{
    static const struct {
        int imm;
        /* Results for 0xff00ff00ff00ff00 and 0x0ff0f00f00000003. */
        uint64_t after32, after64, fetched;
    } rows[] = {
        {CODE_ADD, 0xff00ff03, UINT64_C(0x0ef1ef0fff00ff03), 0},
        {CODE_OR, 0xff00ff03, UINT64_C(0xfff0ff0fff00ff03), 0},
        {CODE_AND, 0, UINT64_C(0x0f00f00000000000), 0},
        {CODE_XOR, 0xff00ff03, UINT64_C(0xf0f00f0fff00ff03), 0},
        {CODE_ADD | CODE_FETCH, 0xff00ff03, UINT64_C(0x0ef1ef0fff00ff03), 1},
        {CODE_OR | CODE_FETCH, 0xff00ff03, UINT64_C(0xfff0ff0fff00ff03), 1},
        {CODE_AND | CODE_FETCH, 0, UINT64_C(0x0f00f00000000000), 1},
        {CODE_XOR | CODE_FETCH, 0xff00ff03, UINT64_C(0xf0f00f0fff00ff03), 1},
        {CODE_XCHG, 3, UINT64_C(0x0ff0f00f00000003), 1},
    };
    const uint64_t word = UINT64_C(0xff00ff00ff00ff00), operand = UINT64_C(0x0ff0f00f00000003);

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int wide = 0; wide < 2; wide++) {
            const struct handler_instruction code[] = {
                OP_NUMBER(5, operand),
                op(CODE_STX | CODE_ATOMIC | (wide ? CODE_DW : CODE_W), 2, 5, 24, rows[i].imm),
                op_move(0, 5), op_exit()};
            uint64_t fetched = wide ? word : (uint32_t)word, after, there;

            memcpy(b->state + 24, &word, 8);
            CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), rows[i].fetched ? fetched : operand);
            memcpy(&there, b->state + 24, 8);
            after = wide ? rows[i].after64 : (word & ~(uint64_t)UINT32_MAX) | rows[i].after32;
            CU_ASSERT_EQUAL(there, after);
        }
}

static void test_compare_swap(void)
{
    bench_reset(b);
    for (int wide = 0; wide < 2; wide++)
        for (int same = 0; same < 2; same++) {
            const uint64_t word = UINT64_C(0xff00ff00ff00ff00);
            const struct handler_instruction code[] = {
                OP_NUMBER(0, same ? (wide ? word : HIGH | (uint32_t)word) : 1),
                op_set(5, 3),
                op(CODE_STX | CODE_ATOMIC | (wide ? CODE_DW : CODE_W), 2, 5, 8, CODE_CMPXCHG),
                op_exit(),
            };
            uint64_t there;

            memcpy(b->state + 8, &word, 8);
            CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), wide ? word : (uint32_t)word);
            memcpy(&there, b->state + 8, 8);
            CU_ASSERT_EQUAL(there, !same ? word : wide ? 3 : (word & ~(uint64_t)UINT32_MAX) | 3);
        }
}

static void test_atomic_faults(void)
{
    static const struct {
        enum handler_window window;
        uint64_t offset;
        unsigned size;
        enum run_fault fault;
    } rows[] = {
        {HANDLER_STATE, BENCH_STATE - 8, CODE_DW, RUN_NO_FAULT},
        {HANDLER_STATE, BENCH_STATE - 4, CODE_W, RUN_NO_FAULT},
        {HANDLER_STATE, BENCH_STATE - 4, CODE_DW, RUN_BAD_ADDRESS},
        {HANDLER_STATE, BENCH_STATE, CODE_DW, RUN_BAD_ADDRESS},
        {HANDLER_STATE, 4, CODE_DW, RUN_UNALIGNED},
        {HANDLER_STATE, 2, CODE_W, RUN_UNALIGNED},
        {HANDLER_STATE, 1, CODE_W, RUN_UNALIGNED},
        {HANDLER_PACKET, 0, CODE_DW, RUN_BAD_ADDRESS},
        {HANDLER_CONTEXT, 0, CODE_W, RUN_BAD_ADDRESS},
        {HANDLER_NOTHING, 0, CODE_W, RUN_BAD_ADDRESS},
        {HANDLER_STACK, 0, CODE_DW, RUN_NO_FAULT},
    };

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct handler_instruction code[] = {
            OP_NUMBER(3, handler_address(rows[i].window, rows[i].offset)),
            op(CODE_STX | CODE_ATOMIC | rows[i].size, 3, 4, 0, CODE_ADD), op_exit()};

        bench_run(b, code, COUNT(code));
        CU_ASSERT_EQUAL(b->run.fault, rows[i].fault);
        if (b->run.fault != RUN_NO_FAULT)
            CU_ASSERT_EQUAL(b->run.fault_place, 2);
    }
}

/* ---- entry, calls and returns ---------------------------------------------------------------- */

static void test_entry(void)
{
    static const uint64_t expected[CODE_REGISTERS] = {
        [1] = (uint64_t)HANDLER_CONTEXT << 61,
        [2] = (uint64_t)HANDLER_STATE << 61,
        [CODE_FRAME] = ((uint64_t)HANDLER_STACK << 61) + HANDLER_FRAME_BYTES,
    };

    bench_reset(b);
    for (unsigned i = 0; i < CODE_REGISTERS; i++) {
        const struct handler_instruction code[] = {op_move(0, i), op_exit()};

        CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), expected[i]);
    }
}

/* Guards that a call keeps registers 6 to 9, gives the function a stack of its own, and leaves 0 to
 * 5 as the function has left them. */
static void test_call(void)
{
    const struct handler_instruction code[] = {
        op_move(8, CODE_FRAME),
        op_set(1, 1),
        op_set(6, 6),
        op_set(9, 9),
        op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, 10),
        op(CODE_ALU64 | CODE_MUL, 1, 0, 0, 10), /* 2: the function has left it */
        op(CODE_ALU64 | CODE_ADD | CODE_X, 1, 6, 0, 0),
        op(CODE_ALU64 | CODE_ADD | CODE_X, 1, 9, 0, 0),
        op_move(0, 5), /* how much higher the function's stack was */
        op(CODE_ALU64 | CODE_SUB | CODE_X, 0, 8, 0, 0),
        op(CODE_ALU64 | CODE_MUL, 0, 0, 0, 1000),
        op(CODE_ALU64 | CODE_ADD | CODE_X, 0, 1, 0, 0),
        op(CODE_ALU64 | CODE_SUB | CODE_X, 8, CODE_FRAME, 0, 0), /* 0: the frame is as before */
        op(CODE_ALU64 | CODE_ADD | CODE_X, 0, 8, 0, 0),
        op(CODE_JMP | CODE_JA, 0, 0, 5, 0),
        op_set(1, 2), /* the function begins */
        op_set(6, 60),
        op_set(9, 90),
        op_move(5, CODE_FRAME),
        op_exit(),
        op_exit(),
    };

    bench_reset(b);
    CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), 512000 + 20 + 6 + 9);
}

/* Calls a function that calls itself until there are `depth` frames. f(n): n == 0 ? 0 : f(n - 1) */
static enum run_fault recurse(int depth)
{
    const struct handler_instruction code[] = {
        op_set(1, depth - 2),
        op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, 1),
        op(CODE_JMP | CODE_JA, 0, 0, 4, 0),
        op(CODE_JMP | CODE_JEQ, 1, 0, 2, 0), /* the function f */
        op(CODE_ALU64 | CODE_SUB, 1, 0, 0, 1),
        op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, -3),
        op_exit(),
        op_exit(),
    };

    bench_run(b, code, COUNT(code));
    return b->run.fault;
}

static void test_depth(void)
{
    bench_reset(b);
    CU_ASSERT_EQUAL(recurse(HANDLER_FRAMES), RUN_NO_FAULT);
    CU_ASSERT_EQUAL(recurse(HANDLER_FRAMES + 1), RUN_TOO_DEEP);
    CU_ASSERT_EQUAL(b->run.fault_place, 5);
}

/* Guards that no run finds the registers that functions of another client have kept. */
static void test_another_client(void)
{
    static const struct vm_frame none[HANDLER_FRAMES];
    const struct handler_instruction code[] = {op_set(0, 7), op_exit()};

    bench_reset(b);
    CU_ASSERT_EQUAL(recurse(HANDLER_FRAMES), RUN_NO_FAULT);
    CU_ASSERT_NOT_EQUAL(memcmp(b->vm.frames, none, sizeof(none)), 0);
    b->run.client = 2;
    CU_ASSERT_EQUAL(bench_run(b, code, COUNT(code)), 7);
    CU_ASSERT_EQUAL(memcmp(b->vm.frames, none, sizeof(none)), 0);
}

static void test_returns(void)
{
    static const struct {
        enum handler_stage stage;
        unsigned plain, pending; /* bits */
    } rows[] = {
        {HANDLER_HEADER, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5, 1 << 1 | 1 << 2 | 1 << 3},
        {HANDLER_PAYLOAD, 1 << 0 | 1 << 1 | 1 << 5, 0},
        {HANDLER_COMPLETION, 1 << 0 | 1 << 5, 1 << 0},
    };

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int value = -1; value < 40; value++) {
            const struct handler_instruction code[] = {op(CODE_ALU | CODE_MOV, 0, 0, 0, value),
                                                       op_exit()};
            bool allowed = value >= 0 && value < 32 &&
                           (value & 16 ? rows[i].pending : rows[i].plain) >> (value & 15) & 1;

            bench_program(b, rows[i].stage, code, COUNT(code));
            bench_run_image(b, rows[i].stage);
            CU_ASSERT_EQUAL(b->run.fault, allowed ? RUN_NO_FAULT : RUN_BAD_RETURN);
            CU_ASSERT_EQUAL(b->run.returned, allowed ? value : HANDLER_FAIL);
        }
}

/* Guards that only a handler to which a helper has returned -EAGAIN may return AGAIN. */
static void test_again(void)
{
    const struct handler_instruction code[] = {op_helper(HELPER_EVENT), op_set(0, HANDLER_AGAIN),
                                               op_exit()};

    bench_reset(b);
    bench_program(b, HANDLER_PAYLOAD, code, COUNT(code));
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_BAD_RETURN);
    b->room = 0;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    CU_ASSERT_EQUAL(b->run.returned, HANDLER_AGAIN);
    b->room = BENCH_SENDS;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_BAD_RETURN);
}

/* ---- units and time -------------------------------------------------------------------------- */

/* Runs a loop of so many rounds: 2 + 3 * rounds + 1 instructions. */
static void run_loop(int rounds, uint64_t units)
{
    const struct handler_instruction code[] = {op_set(3, rounds),
                                               op_set(0, 0),
                                               op(CODE_ALU64 | CODE_ADD, 4, 0, 0, 1),
                                               op(CODE_ALU64 | CODE_SUB, 3, 0, 0, 1),
                                               op(CODE_JMP | CODE_JNE, 3, 0, -3, 0),
                                               op_exit()};

    bench_program(b, HANDLER_PAYLOAD, code, COUNT(code));
    b->run.units = units;
    bench_run_image(b, HANDLER_PAYLOAD);
}

/* Guards that units are counted exactly, and that the first instruction without a unit is not
 * executed. */
static void test_units(void)
{
    static const int rounds[] = {1, 2, 77, 78, 79, 80, 81, 500, 5000};

    bench_reset(b);
    for (size_t i = 0; i < COUNT(rounds); i++) {
        uint64_t exact = RUN_BEGIN + 3 + 3 * (uint64_t)rounds[i];

        run_loop(rounds[i], 1000000);
        CU_ASSERT_EQUAL(b->run.used, exact);
        run_loop(rounds[i], exact);
        CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
        CU_ASSERT_EQUAL(b->run.used, exact);
        run_loop(rounds[i], exact - 1);
        CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_UNITS);
        CU_ASSERT_EQUAL(b->run.fault_place, 5);
        CU_ASSERT_EQUAL(b->run.used, exact - 1);
    }
}

/* Guards that a program without a jump is stopped in its middle too. */
static void test_units_of_straight_code(void)
{
    struct handler_instruction code[1000];

    bench_reset(b);
    for (size_t i = 0; i < COUNT(code) - 2; i++)
        code[i] = op(CODE_ST | CODE_MEM | CODE_B, 2, 0, (int)i, 0);
    code[COUNT(code) - 2] = op_set(0, 0);
    code[COUNT(code) - 1] = op_exit();
    bench_program(b, HANDLER_PAYLOAD, code, COUNT(code));
    memset(b->state, 1, BENCH_STATE);
    b->run.units = RUN_BEGIN + 700;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_UNITS);
    CU_ASSERT_EQUAL(b->run.fault_place, 700);
    CU_ASSERT_EQUAL(b->state[699], 0);
    CU_ASSERT_EQUAL(b->state[700], 1);
    b->run.units = RUN_BEGIN + 1000;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    CU_ASSERT_EQUAL(b->run.used, RUN_BEGIN + 1000);
}

static void test_units_of_halves_and_calls(void)
{
    const struct handler_instruction code[] = {
        OP_NUMBER(3, 5), op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, 2),
        op_set(0, 0),    op_exit(),
        op_set(4, 1),    op_exit()};

    bench_reset(b);
    bench_program(b, HANDLER_PAYLOAD, code, COUNT(code));
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    CU_ASSERT_EQUAL(b->run.used, RUN_BEGIN + 7);
    /* An instruction of two units does not run where one unit is left. */
    b->run.units = RUN_BEGIN + 1;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_UNITS);
    CU_ASSERT_EQUAL(b->run.used, RUN_BEGIN + 1);
    b->run.units = RUN_BEGIN - 1;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_UNITS);
}

/* Guards that the clock is looked at every 256 units, in loops and in straight code. */
static void test_time(void)
{
    struct handler_instruction code[HANDLER_INSTRUCTIONS_MAX];

    bench_reset(b);
    run_loop(10000, 100000);
    CU_ASSERT(b->looks >= b->run.used / RUN_SPAN && b->looks <= b->run.used / RUN_SPAN + 3);
    bench_reset(b);
    b->tick = 100;
    b->run.time = 1000;
    run_loop(10000, 100000);
    CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_TIME);
    CU_ASSERT(b->run.used <= 12 * RUN_SPAN);
    for (size_t i = 0; i < COUNT(code); i++)
        code[i] = i + 1 < COUNT(code) ? op_set(0, 0) : op_exit();
    bench_program(b, HANDLER_PAYLOAD, code, COUNT(code));
    b->run.units = 100000;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_TIME);
    CU_ASSERT(b->run.used <= 12 * RUN_SPAN);
}

static uint64_t switches_look(void *self)
{
    struct bench *at = self;

    return at->switches += at->switches_tick;
}

/* Guards that a run whose thread stays on its processor gets its time only as often again as the
 * host allows, and that a run whose thread is switched out continues. */
static void test_switched_out(void)
{
    bench_reset(b);
    b->host.switches = switches_look;
    b->tick = 100;
    b->run.time = 1000;
    for (uint32_t again = 0; again < 4; again++) {
        b->run.again = again;
        run_loop(10000, 100000);
        CU_ASSERT_EQUAL(b->run.fault, RUN_OUT_OF_TIME);
        CU_ASSERT(b->run.used > 10 * (again + 1) * RUN_SPAN &&
                  b->run.used <= 12 * (again + 1) * RUN_SPAN);
        CU_ASSERT_EQUAL(b->run.again, 0);
    }
    b->run.again = 1;
    b->switches_tick = 1;
    run_loop(10000, 100000);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    b->host.switches = NULL;
}

static void test_no_clock(void)
{
    uint64_t (*clock)(void *) = b->host.clock;

    bench_reset(b);
    b->run.time = 0;
    b->host.clock = NULL;
    run_loop(10000, 100000);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    b->host.clock = clock;
}

static void test_texts(void)
{
    for (unsigned i = 0; i <= RUN_FAULTS; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(run_fault_text((enum run_fault)i));
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"instructions at their edges", test_instructions},
        {"jumps without a condition", test_jumps_far},
        {"edges of windows", test_window_edges},
        {"widths", test_widths},
        {"deceived validators", test_deceived_validators},
        {"atomics", test_atomics},
        {"compare and swap", test_compare_swap},
        {"faults of atomics", test_atomic_faults},
        {"registers on entry", test_entry},
        {"a call", test_call},
        {"depth", test_depth},
        {"another client", test_another_client},
        {"returns", test_returns},
        {"again", test_again},
        {"units of loops", test_units},
        {"units of straight code", test_units_of_straight_code},
        {"units of numbers and calls", test_units_of_halves_and_calls},
        {"time", test_time},
        {"time of a thread that is switched out", test_switched_out},
        {"no clock", test_no_clock},
        {"texts", test_texts},
        CU_TEST_INFO_NULL,
    };

    b = bench_new();
    return suite_run("vm", tests);
}
