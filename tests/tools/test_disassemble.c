/* Instructions of handlers as text: a row for each form, written as llvm-objdump does where it
 * knows the instruction; and images with wrong sizes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/disassemble.h"
#include "tests/count.h"
#include "tests/suite.h"

static void forms(void)
{
    static const struct {
        struct handler_instruction in;
        const char *text;
    } rows[] = {
        {{CODE_ALU64 | CODE_ADD | CODE_X, 0x21, 0, 0}, "r1 += r2"},
        {{CODE_ALU | CODE_ADD | CODE_X, 0x21, 0, 0}, "w1 += w2"},
        {{CODE_ALU64 | CODE_SUB, 1, 0, -8}, "r1 -= -8"},
        {{CODE_ALU64 | CODE_MUL, 1, 0, 3}, "r1 *= 3"},
        {{CODE_ALU64 | CODE_DIV, 1, 0, 3}, "r1 /= 3"},
        {{CODE_ALU64 | CODE_DIV | CODE_X, 0x21, 1, 0}, "r1 s/= r2"},
        {{CODE_ALU | CODE_MOD, 1, 1, 3}, "w1 s%= 3"},
        {{CODE_ALU64 | CODE_OR, 1, 0, 3}, "r1 |= 3"},
        {{CODE_ALU64 | CODE_AND, 1, 0, 3}, "r1 &= 3"},
        {{CODE_ALU64 | CODE_LSH, 1, 0, 3}, "r1 <<= 3"},
        {{CODE_ALU64 | CODE_RSH, 1, 0, 3}, "r1 >>= 3"},
        {{CODE_ALU64 | CODE_ARSH, 1, 0, 3}, "r1 s>>= 3"},
        {{CODE_ALU64 | CODE_MOD, 1, 0, 3}, "r1 %= 3"},
        {{CODE_ALU64 | CODE_XOR, 1, 0, 3}, "r1 ^= 3"},
        {{CODE_ALU64 | CODE_NEG, 1, 0, 0}, "r1 = -r1"},
        {{CODE_ALU64 | CODE_MOV | CODE_X, 0xa1, 0, 0}, "r1 = r10"},
        {{CODE_ALU | CODE_MOV, 1, 0, INT32_MIN}, "w1 = -2147483648"},
        {{CODE_ALU64 | CODE_MOV | CODE_X, 0x21, 8, 0}, "r1 = (s8)r2"},
        {{CODE_ALU | CODE_END, 1, 0, 16}, "r1 = le16 r1"},
        {{CODE_ALU | CODE_END | CODE_X, 1, 0, 64}, "r1 = be64 r1"},
        {{CODE_ALU64 | CODE_END, 1, 0, 32}, "r1 = bswap32 r1"},
        {{CODE_LDX | CODE_MEM | CODE_B, 0x21, 3, 0}, "r1 = *(u8 *)(r2 + 3)"},
        {{CODE_LDX | CODE_MEM | CODE_H, 0x21, -3, 0}, "r1 = *(u16 *)(r2 - 3)"},
        {{CODE_LDX | CODE_MEMSX | CODE_W, 0x21, 0, 0}, "r1 = *(s32 *)(r2 + 0)"},
        {{CODE_ST | CODE_MEM | CODE_DW, 1, 8, -1}, "*(u64 *)(r1 + 8) = -1"},
        {{CODE_STX | CODE_MEM | CODE_W, 0x21, INT16_MIN, 0}, "*(u32 *)(r1 - 32768) = r2"},
        {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x21, 8, CODE_ADD}, "lock *(u64 *)(r1 + 8) += r2"},
        {{CODE_STX | CODE_ATOMIC | CODE_W, 0x21, 8, CODE_XOR | CODE_FETCH},
         "w2 = atomic_fetch_xor((u32 *)(r1 + 8), w2)"},
        {{CODE_STX | CODE_ATOMIC | CODE_DW, 0x21, 8, CODE_XCHG}, "r2 = xchg_64(r1 + 8, r2)"},
        {{CODE_STX | CODE_ATOMIC | CODE_W, 0x21, 8, CODE_CMPXCHG},
         "w0 = cmpxchg32_32(r1 + 8, w0, w2)"},
        {{CODE_JMP | CODE_JA, 0, -1, 0}, "goto -1 <0>"},
        {{CODE_JMP32 | CODE_JA, 0, 0, 7}, "gotol +7 <8>"},
        {{CODE_JMP | CODE_JEQ, 1, 2, 5}, "if r1 == 5 goto +2 <3>"},
        {{CODE_JMP32 | CODE_JSLE | CODE_X, 0x21, 2, 0}, "if w1 s<= w2 goto +2 <3>"},
        {{CODE_JMP | CODE_JSET, 1, 2, 5}, "if r1 & 5 goto +2 <3>"},
        {{CODE_DO_CALL, 0x10, 0, 5}, "call +5 <6>"},
        {{CODE_DO_CALL, 0, 0, HELPER_PUT}, "call 16 <put>"},
        {{CODE_DO_CALL, 0, 0, -1}, "call -1 <?>"},
        {{CODE_DO_EXIT, 0, 0, 0}, "exit"},
        {{0xff, 0xff, -1, -1}, "<unknown> 0xffffffffffffffff"},
        {{CODE_ALU | 0xe0, 0, 0, 0}, "<unknown> 0x00000000000000e4"},
        {{CODE_LD | CODE_ABS, 0, 0, 0}, "<unknown> 0x0000000000000020"},
        {{CODE_LD_DW, 1, 0, 0}, "<unknown> 0x0000000000000118"}, /* the second half is missing */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[DISASSEMBLE_TEXT_MAX];

        CU_ASSERT_EQUAL(disassemble_one(&rows[i].in, 0, 1, text), 1);
        CU_ASSERT_STRING_EQUAL(text, rows[i].text);
        if (strcmp(text, rows[i].text) != 0)
            printf("\n  %s instead of %s", text, rows[i].text);
    }
}

static void numbers(void)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {{0, "r1 = 0 ll"},
                {UINT64_C(5) << 61, "r1 = -6917529027641081856 ll <host + 0>"},
                {(UINT64_C(7) << 61) + 24, "r1 = -2305843009213693928 ll <constants + 24>"},
                {UINT64_MAX, "r1 = -1 ll"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct handler_instruction code[] = {
            {CODE_LD_DW, 1, 0, (int32_t)(uint32_t)rows[i].value},
            {0, 0, 0, (int32_t)(uint32_t)(rows[i].value >> 32)}};
        char text[DISASSEMBLE_TEXT_MAX];

        CU_ASSERT_EQUAL(disassemble_one(code, 0, 2, text), 2);
        CU_ASSERT_STRING_EQUAL(text, rows[i].text);
    }
}

/* Every opcode has some text, whatever the other fields are. */
static void any_opcode(void)
{
    for (unsigned opcode = 0; opcode < 256; opcode++)
        for (unsigned fields = 0; fields < 4; fields++) {
            const struct handler_instruction code[2] = {{(uint8_t)opcode, (uint8_t)(fields * 85),
                                                         (int16_t)(fields * 0x5555),
                                                         (int32_t)(fields * 0x55555555u)}};
            char text[DISASSEMBLE_TEXT_MAX] = "";

            CU_ASSERT(disassemble_one(code, 0, 2, text) > 0);
            CU_ASSERT_NOT_EQUAL(text[0], 0);
        }
}

static void lying_sizes(void)
{
    struct {
        struct handler_image head;
        struct handler_instruction code[3];
        struct handler_function function;
    } image = {.head = {.magic = HANDLER_IMAGE_MAGIC,
                        .instructions = 1,
                        .entry = {HANDLER_NONE, 0, HANDLER_NONE},
                        .functions = 1},
               .code = {{0}, {.opcode = CODE_DO_EXIT}},
               .function = {0, "twice"}};
    char text[200] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    CU_ASSERT_EQUAL(disassemble_print(&image.head, sizeof(image), to), 0);
    for (size_t bytes = 0; bytes < sizeof(image); bytes++)
        CU_ASSERT_EQUAL(disassemble_print(&image.head, bytes, to), -EBADMSG);
    for (unsigned word = 0; word < 8; word++) {
        struct handler_image good = image.head;

        if (word >= 3 && word != 6)
            continue;
        ((uint32_t *)&image.head)[word] = UINT32_MAX;
        CU_ASSERT_EQUAL(disassemble_print(&image.head, sizeof(image), to), -EBADMSG);
        image.head = good;
    }
    fclose(to);
    CU_ASSERT_STRING_EQUAL(text, "twice:  (payload handler)\n       0: exit\n");
}

int main(void)
{
    CU_TestInfo tests[] = {{"each form", forms},
                           {"numbers of 64 bits", numbers},
                           {"any opcode", any_opcode},
                           {"images whose sizes lie", lying_sizes},
                           CU_TEST_INFO_NULL};

    return suite_run("disassemble", tests);
}
