/* The check of programs: instructions that are accepted, or refused with place and reason; jumps,
 * entries, heads; and images with one wrong bit. Thread: one. */
#include <errno.h>
#include <string.h>
#include "tests/handlers/bench.h"
#include "tests/suite.h"

static struct bench *b;
static struct image_error error;

static int check(const struct handler_instruction *code, uint32_t count)
{
    struct handler_image *image = bench_program(b, HANDLER_PAYLOAD, code, count);

    return image_check(image, image_bytes(count, 0, 0), &error);
}

/* ---- single instructions --------------------------------------------------------------------- */

#define REGISTER  "there is no such register"
#define FRAME     "register 10 can't be written"
#define DST       "the destination must be register 0"
#define SRC       "the source must be register 0"
#define OFFSET    "the offset must be 0"
#define IMM       "the immediate value must be 0"
#define UNKNOWN   "unknown instruction"
#define TURN      "bytes are turned in 16, 32 or 64 bits"
#define ATOMIC_OP "unknown atomic operation"
#define HELPER    "there is no helper of this number"
#define KIND      "a call of a kind that there is not here"
#define LEAVES    "the jump leaves the program"

static const struct {
    struct handler_instruction in;
    const char *reason; /* NULL: accepted */
} rows[] = {
    {{CODE_ALU64 | CODE_ADD, 0x09, 0, 5}, NULL},
    {{CODE_ALU64 | CODE_ADD, 0x0a, 0, 5}, FRAME},
    {{CODE_ALU64 | CODE_ADD, 0x0b, 0, 5}, REGISTER},
    {{CODE_ALU64 | CODE_ADD, 0x10, 0, 5}, SRC},
    {{CODE_ALU64 | CODE_ADD, 0x00, 1, 5}, OFFSET},
    {{CODE_ALU64 | CODE_ADD | CODE_X, 0xa0, 0, 0}, NULL},
    {{CODE_ALU64 | CODE_ADD | CODE_X, 0xb0, 0, 0}, REGISTER},
    {{CODE_ALU64 | CODE_ADD | CODE_X, 0x10, 0, 1}, IMM},
    {{CODE_ALU | CODE_XOR, 0x0a, 0, 1}, FRAME},
    {{CODE_ALU64 | CODE_DIV, 0x00, 1, 5}, NULL},
    {{CODE_ALU64 | CODE_DIV, 0x00, 2, 5}, OFFSET},
    {{CODE_ALU | CODE_MOD | CODE_X, 0x10, 1, 0}, NULL},
    {{CODE_ALU | CODE_MOD | CODE_X, 0x10, -1, 0}, OFFSET},
    {{CODE_ALU64 | CODE_MOD, 0x0a, 1, 5}, FRAME},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x10, 8, 0}, NULL},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x10, 32, 0}, NULL},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x10, 64, 0}, OFFSET},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x1a, 8, 0}, FRAME},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x1a, 0, 0}, FRAME},
    {{CODE_ALU64 | CODE_MOV | CODE_X, 0x10, 8, 1}, IMM},
    {{CODE_ALU64 | CODE_MOV, 0x00, 8, 1}, OFFSET},
    {{CODE_ALU | CODE_MOV | CODE_X, 0x10, 16, 0}, NULL},
    {{CODE_ALU | CODE_MOV | CODE_X, 0x10, 32, 0}, OFFSET},
    {{CODE_ALU64 | CODE_NEG, 0x01, 0, 0}, NULL},
    {{CODE_ALU64 | CODE_NEG, 0x01, 0, 1}, IMM},
    {{CODE_ALU64 | CODE_NEG, 0x11, 0, 0}, SRC},
    {{CODE_ALU64 | CODE_NEG, 0x01, 1, 0}, OFFSET},
    {{CODE_ALU64 | CODE_NEG, 0x0a, 0, 0}, FRAME},
    {{CODE_ALU64 | CODE_NEG | CODE_X, 0x01, 0, 0}, UNKNOWN},
    {{CODE_ALU | CODE_END, 0x01, 0, 16}, NULL},
    {{CODE_ALU | CODE_END | CODE_X, 0x01, 0, 64}, NULL},
    {{CODE_ALU | CODE_END, 0x01, 0, 8}, TURN},
    {{CODE_ALU | CODE_END, 0x11, 0, 16}, SRC},
    {{CODE_ALU | CODE_END, 0x01, 1, 16}, OFFSET},
    {{CODE_ALU | CODE_END, 0x0a, 0, 16}, FRAME},
    {{CODE_ALU64 | CODE_END, 0x01, 0, 32}, NULL},
    {{CODE_ALU64 | CODE_END | CODE_X, 0x01, 0, 32}, UNKNOWN},
    {{CODE_ALU | 0xe0, 0, 0, 0}, UNKNOWN},
    {{CODE_ALU64 | 0xf0, 0, 0, 0}, UNKNOWN},

    {{CODE_LDX | CODE_MEM | CODE_B, 0x19, -5, 0}, NULL},
    {{CODE_LDX | CODE_MEM | CODE_DW, 0x1a, 0, 0}, FRAME},
    {{CODE_LDX | CODE_MEM | CODE_DW, 0x10, 0, 1}, IMM},
    {{CODE_LDX | CODE_MEM | CODE_DW, 0xb0, 0, 0}, REGISTER},
    {{CODE_LDX | CODE_MEMSX | CODE_W, 0x10, 0, 0}, NULL},
    {{CODE_LDX | CODE_MEMSX | CODE_W, 0x1a, 0, 0}, FRAME},
    {{CODE_LDX | CODE_MEMSX | CODE_W, 0x10, 0, 1}, IMM},
    {{CODE_LDX | CODE_MEMSX | CODE_DW, 0x10, 0, 0}, UNKNOWN},
    {{CODE_LDX | CODE_ABS | CODE_W, 0x10, 0, 0}, UNKNOWN},
    {{CODE_LD | CODE_ABS | CODE_W, 0, 0, 0}, UNKNOWN},
    {{CODE_LD | CODE_IND | CODE_W, 0, 0, 0}, UNKNOWN},
    {{CODE_LD | CODE_MEM | CODE_W, 0, 0, 0}, UNKNOWN},
    {{CODE_ST | CODE_MEM | CODE_H, 0x0a, 5, 5}, NULL},
    {{CODE_ST | CODE_MEM | CODE_H, 0x1a, 5, 5}, SRC},
    {{CODE_ST | CODE_ATOMIC | CODE_W, 0x0a, 0, 0}, UNKNOWN},
    {{CODE_STX | CODE_MEM | CODE_H, 0xaa, 5, 0}, NULL},
    {{CODE_STX | CODE_MEM | CODE_H, 0x1a, 5, 1}, IMM},
    {{CODE_STX | CODE_MEMSX | CODE_H, 0x1a, 5, 0}, UNKNOWN},
    {{CODE_STX | CODE_ATOMIC | CODE_W, 0xa2, 5, CODE_ADD}, NULL},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x12, 5, CODE_XOR | CODE_FETCH}, NULL},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0xa2, 5, CODE_XOR | CODE_FETCH}, FRAME},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0xa2, 5, CODE_XCHG}, FRAME},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0xa2, 5, CODE_CMPXCHG}, NULL},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x12, 5, CODE_CMPXCHG & ~CODE_FETCH}, ATOMIC_OP},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x12, 5, CODE_XCHG & ~CODE_FETCH}, ATOMIC_OP},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x12, 5, CODE_SUB}, ATOMIC_OP},
    {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x12, 5, 0x100}, ATOMIC_OP},
    {{CODE_STX | CODE_ATOMIC | CODE_B, 0x12, 5, CODE_ADD}, UNKNOWN},
    {{CODE_STX | CODE_ATOMIC | CODE_H, 0x12, 5, CODE_ADD}, UNKNOWN},

    {{CODE_JMP | CODE_JA, 0, 0, 0}, NULL},
    {{CODE_JMP | CODE_JA, 0, 1, 0}, LEAVES},
    {{CODE_JMP | CODE_JA, 0, -2, 0}, LEAVES},
    {{CODE_JMP | CODE_JA, 0, -1, 0}, NULL},
    {{CODE_JMP | CODE_JA, 1, 0, 0}, DST},
    {{CODE_JMP | CODE_JA, 0x10, 0, 0}, SRC},
    {{CODE_JMP | CODE_JA, 0, 0, 1}, IMM},
    {{CODE_JMP | CODE_JA | CODE_X, 0, 0, 0}, UNKNOWN},
    {{CODE_JMP32 | CODE_JA, 0, 0, -1}, NULL},
    {{CODE_JMP32 | CODE_JA, 0, 0, 1}, LEAVES},
    {{CODE_JMP32 | CODE_JA, 0, 0, INT32_MAX}, LEAVES},
    {{CODE_JMP32 | CODE_JA, 0, 0, INT32_MIN}, LEAVES},
    {{CODE_JMP32 | CODE_JA, 0, 1, 0}, OFFSET},
    {{CODE_JMP | CODE_JEQ, 0x0a, 0, 9}, NULL},
    {{CODE_JMP | CODE_JEQ, 0x1a, 0, 9}, SRC},
    {{CODE_JMP | CODE_JEQ | CODE_X, 0xaa, 0, 0}, NULL},
    {{CODE_JMP | CODE_JEQ | CODE_X, 0x11, 0, 1}, IMM},
    {{CODE_JMP32 | CODE_JSLE, 0x01, 1, 1}, LEAVES},
    {{CODE_JMP32 | CODE_JSLE, 0x01, INT16_MIN, 1}, LEAVES},
    {{CODE_JMP | 0xe0, 0, 0, 0}, UNKNOWN},
    {{CODE_JMP32 | 0xf0, 0, 0, 0}, UNKNOWN},
    {{CODE_JMP32 | CODE_CALL, 0, 0, HELPER_COPY}, UNKNOWN},
    {{CODE_JMP32 | CODE_EXIT, 0, 0, 0}, UNKNOWN},
    {{CODE_JMP | CODE_CALL | CODE_X, 0, 0, HELPER_COPY}, UNKNOWN},
    {{CODE_JMP | CODE_EXIT | CODE_X, 0, 0, 0}, UNKNOWN},
    {{CODE_DO_EXIT, 0, 0, 0}, NULL},
    {{CODE_DO_EXIT, 1, 0, 0}, DST},
    {{CODE_DO_EXIT, 0x10, 0, 0}, SRC},
    {{CODE_DO_EXIT, 0, 1, 0}, OFFSET},
    {{CODE_DO_EXIT, 0, 0, 1}, IMM},
    {{CODE_DO_CALL, 0, 0, HELPER_COPY}, NULL},
    {{CODE_DO_CALL, 0, 0, HELPER_TRACE}, NULL},
    {{CODE_DO_CALL, 0, 0, 0}, HELPER},
    {{CODE_DO_CALL, 0, 0, HELPER_F32 + 1}, HELPER},
    {{CODE_DO_CALL, 0, 0, HELPER_TRACE + 1}, HELPER},
    {{CODE_DO_CALL, 0, 0, HELPERS + HELPER_COPY}, HELPER},
    {{CODE_DO_CALL, 0, 0, -1}, HELPER},
    {{CODE_DO_CALL, 0, 1, HELPER_COPY}, OFFSET},
    {{CODE_DO_CALL, 1, 0, HELPER_COPY}, DST},
    {{CODE_DO_CALL, 0x10, 0, -1}, NULL},
    {{CODE_DO_CALL, 0x10, 0, 1}, LEAVES},
    {{CODE_DO_CALL, 0x10, 0, -2}, LEAVES},
    {{CODE_DO_CALL, 0x20, 0, HELPER_COPY}, KIND},
    {{CODE_LD_DW, 0x10, 0, 0}, "a reference that the loader should have resolved"},
};

static void test_instructions(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct handler_instruction code[] = {rows[i].in, op_exit()};
        int rc = check(code, 2);

        CU_ASSERT_EQUAL(rc, rows[i].reason ? -ENOEXEC : 0);
        if (rc == 0 || !rows[i].reason)
            continue;
        if (strcmp(error.reason, rows[i].reason) != 0)
            printf("row %zu: %s, not %s\n", i, error.reason, rows[i].reason);
        CU_ASSERT_STRING_EQUAL(error.reason, rows[i].reason);
        CU_ASSERT_EQUAL(error.place, 0);
    }
}

/* Guards that the check accepts no opcode which the interpreter does not know: each accepted one is
 * run. */
static void test_all_opcodes(void)
{
    unsigned known = 0;

    for (unsigned opcode = 0; opcode < 256; opcode++)
        for (int imm = 0; imm < 2; imm++) {
            const struct handler_instruction code[] = {
                {.opcode = (uint8_t)opcode, .imm = imm ? 16 : 0}, op(0, 0, 0, 0, 0), op_exit()};
            bool is_wide = opcode == CODE_LD_DW;

            if (check(&code[0], 3) != 0) {
                const struct handler_instruction narrow[] = {code[0], op_exit()};

                if (is_wide || check(narrow, 2) != 0)
                    continue;
            }
            known++;
            bench_run_image(b, HANDLER_PAYLOAD);
            CU_ASSERT_NOT_EQUAL(b->run.fault, RUN_BAD_INSTRUCTION);
            break;
        }
    CU_ASSERT_EQUAL(known,
                    26 + 27 /* ALU64, ALU */ + 44 + 2 + 2 /* jumps, calls */ + 18 /* memory */);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void refused(const struct handler_instruction *code, uint32_t count, uint32_t place,
                    const char *reason)
{
    CU_ASSERT_EQUAL(check(code, count), -ENOEXEC);
    CU_ASSERT_EQUAL(error.place, place);
    CU_ASSERT_STRING_EQUAL(error.reason, reason);
}

static void test_programs(void)
{
    const struct handler_instruction no_end[] = {op_exit(), op_set(0, 0)};
    const struct handler_instruction ends_in_number[] = {OP_NUMBER(0, 0)};
    const struct handler_instruction half[] = {op_set(0, 0), op(CODE_LD_DW, 0, 0, 0, 0)};
    const struct handler_instruction more_than_number[] = {op(CODE_LD_DW, 0, 0, 0, 0),
                                                           op(0, 1, 0, 0, 0), op_exit()};
    const struct handler_instruction into_number[] = {op(CODE_JMP | CODE_JA, 0, 0, 1, 0),
                                                      OP_NUMBER(0, 0), op_exit()};
    const struct handler_instruction call_into[] = {op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, 1),
                                                    OP_NUMBER(0, 0), op_exit()};
    const struct handler_instruction back_into[] = {
        OP_NUMBER(0, 0), op(CODE_JMP | CODE_JEQ, 0, 0, -2, 0), op_exit()};
    const struct handler_instruction loop[] = {op(CODE_JMP | CODE_JA, 0, 0, -1, 0)};
    const struct handler_instruction loop_far[] = {op(CODE_JMP32 | CODE_JA, 0, 0, 0, -1)};

    refused(no_end, 2, 1, "the last instruction is neither an exit nor a jump");
    refused(ends_in_number, 2, 1, "the last instruction is neither an exit nor a jump");
    refused(half, 2, 1, "the second half of the instruction is missing");
    refused(more_than_number, 3, 1, "the second half of an instruction holds more than a number");
    refused(into_number, 4, 0, "the jump goes into the middle of an instruction");
    refused(call_into, 4, 0, "the jump goes into the middle of an instruction");
    refused(back_into, 4, 2, "the jump goes into the middle of an instruction");
    CU_ASSERT_EQUAL(check(loop, 1), 0);
    CU_ASSERT_EQUAL(check(loop_far, 1), 0);
}

static void test_sizes(void)
{
    static struct handler_instruction code[HANDLER_INSTRUCTIONS_MAX + 1];
    struct handler_image *image;

    for (size_t i = 0; i < COUNT(code); i++)
        code[i] = op_exit();
    CU_ASSERT_EQUAL(check(code, HANDLER_INSTRUCTIONS_MAX), 0);
    CU_ASSERT_EQUAL(check(code, HANDLER_INSTRUCTIONS_MAX + 1), -ENOEXEC);
    image = bench_program(b, HANDLER_PAYLOAD, code, 0);
    CU_ASSERT_EQUAL(image_check(image, image_bytes(0, 0, 0), &error), -ENOEXEC);
    image = bench_program(b, HANDLER_PAYLOAD, code, 1);
    image->constants = HANDLER_CONSTANTS_MAX;
    CU_ASSERT_EQUAL(image_check(image, image_bytes(1, HANDLER_CONSTANTS_MAX, 0), &error), 0);
    image->constants++;
    CU_ASSERT_EQUAL(image_check(image, image_bytes(1, HANDLER_CONSTANTS_MAX + 1, 0), &error),
                    -ENOEXEC);
}

/* Guards the rules for names of functions, a row for each. */
static void test_functions(void)
{
    static const struct {
        struct handler_function functions[2];
        const char *reason; /* NULL: accepted */
    } names[] = {
        {{{0, "header"}, {2, "_a.part.0$"}}, NULL},
        {{{0, "a"}, {2, "abcdefghijklmnopqrstuvwxyzA"}}, NULL},
        {{{0, "a"}, {1, "b"}}, "a function does not start at an instruction"},
        {{{0, "a"}, {3, "b"}}, "a function does not start at an instruction"},
        {{{0, "a"}, {0, "b"}}, "functions are not in the order of their places"},
        {{{2, "a"}, {0, "b"}}, "functions are not in the order of their places"},
        {{{0, ""}, {2, "b"}}, "a function's name is empty"},
        {{{0, "a b"}, {2, "b"}}, "a function's name is empty"},
        {{{0, "a\033["}, {2, "b"}}, "a function's name is empty"},
        {{{0, "a\0b"}, {2, "b"}}, "a function's name is empty"},
        {{{0, "abcdefghijklmnopqrstuvwxyzAB"}, {2, "b"}}, "a function's name is empty"},
    };
    const struct handler_instruction code[] = {OP_NUMBER(0, 0), op_exit()};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct handler_image *image = bench_program(b, HANDLER_PAYLOAD, code, 3);
        int expected = names[i].reason ? -ENOEXEC : 0, rc;

        image->functions = 2;
        memcpy(b->image + image_functions_at(3, 0), names[i].functions, sizeof(names[i].functions));
        rc = image_check(image, image_bytes(3, 0, 2), &error);
        CU_ASSERT_EQUAL(rc, expected);
        if (rc != 0 && names[i].reason)
            CU_ASSERT_PTR_NOT_NULL(strstr(error.reason, names[i].reason));
    }
    bench_program(b, HANDLER_PAYLOAD, code, 3)->functions = HANDLER_FUNCTIONS_MAX + 1;
    CU_ASSERT_EQUAL(image_check(b->image, image_bytes(3, 0, HANDLER_FUNCTIONS_MAX + 1), &error),
                    -ENOEXEC);
}

/* Guards each word of the head, and the stops. */
static void test_heads(void)
{
    const struct handler_instruction code[] = {OP_NUMBER(0, 0), op_exit()};
    struct handler_image *image = bench_program(b, HANDLER_PAYLOAD, code, 3), good = *image;
    struct handler_instruction *stops = (struct handler_instruction *)(image + 1);
    size_t size = image_bytes(3, 0, 0);

    CU_ASSERT_EQUAL(image_check(image, size, &error), 0);
    /* A head that is cut off by the end of memory is refused. */
    CU_ASSERT_EQUAL(image_check(b->packet + BENCH_PACKET - 24, 24, &error), -ENOEXEC);
    CU_ASSERT_EQUAL(image_check(b->packet + BENCH_PACKET, 0, &error), -ENOEXEC);
    for (size_t other = 0; other < size; other++)
        CU_ASSERT_EQUAL(image_check(image, other, &error), -ENOEXEC);
    CU_ASSERT_EQUAL(image_check(image, size + 8, &error), -ENOEXEC);
    image->magic++;
    CU_ASSERT_EQUAL(image_check(image, size, &error), -ENOEXEC);
    *image = good;
    image->entry[HANDLER_PAYLOAD] = HANDLER_NONE;
    CU_ASSERT_EQUAL(image_check(image, size, &error), -ENOEXEC);
    for (uint32_t entry = 0; entry < 6; entry++) {
        image->entry[HANDLER_HEADER] = entry;
        CU_ASSERT_EQUAL(image_check(image, size, &error), entry == 0 || entry == 2 ? 0 : -ENOEXEC);
    }
    *image = good;
    image->zero = 1;
    CU_ASSERT_EQUAL(image_check(image, size, &error), -ENOEXEC);
    *image = good;
    for (int i = 0; i < 2; i++) {
        stops[4 * i].imm = 1;
        CU_ASSERT_EQUAL(image_check(image, size, &error), -ENOEXEC);
        stops[4 * i].imm = 0;
    }
    CU_ASSERT_EQUAL(image_check(image, size, &error), 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"single instructions", test_instructions},
        {"all opcodes", test_all_opcodes},
        {"programs", test_programs},
        {"sizes", test_sizes},
        {"heads", test_heads},
        {"names of functions", test_functions},
        CU_TEST_INFO_NULL,
    };

    b = bench_new();
    return suite_run("image", tests);
}
