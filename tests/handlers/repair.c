/* Makes programs out of random bytes (repair.h). Thread: any; one for each bench. */
#include "tests/handlers/repair.h"

#include <string.h>

/* An address near an end of a window, or any small number, as `kind` says. */
static uint64_t number_of(uint8_t kind, uint8_t near)
{
    static const uint64_t sizes[HANDLER_WINDOWS] = {0,
                                                    HANDLER_STACK_BYTES,
                                                    sizeof(struct handler_packet),
                                                    BENCH_PACKET,
                                                    BENCH_STATE,
                                                    BENCH_HOST,
                                                    BENCH_SCRATCH,
                                                    0};
    uint64_t window = kind & 7, offset = (uint64_t)(int64_t)((int8_t)near / 4);

    switch (kind >> 3 & 3) {
    case 0:
        return handler_address((enum handler_window)window, (offset * 8) & HANDLER_OFFSET_MASK);
    case 1:
        return handler_address((enum handler_window)window,
                               (sizes[window] + offset) & HANDLER_OFFSET_MASK);
    case 2:
        return near;
    default:
        return (uint64_t)(int64_t)(int8_t)near << (kind >> 5 & 7) * 8;
    }
}

static void repair_alu(struct handler_instruction *in, bool wide)
{
    unsigned code = in->opcode & 0xf0, x = in->opcode & CODE_X;
    unsigned dst = code_dst(in) % CODE_FRAME, src = code_src(in) % CODE_REGISTERS;

    code = code >= 0xe0 ? code ^ 0x80 : code;
    if (code == CODE_NEG || (code == CODE_END && wide))
        x = 0;
    if (code == CODE_DIV || code == CODE_MOD)
        in->offset &= 1;
    else if (code == CODE_MOV && x)
        in->offset = (int16_t)((in->offset & 3) == 3 ? (wide ? 32 : 0) : (in->offset & 3) * 8);
    else
        in->offset = 0;
    if (code == CODE_END)
        in->imm = 16 << (unsigned)in->imm % 3;
    else if (code == CODE_NEG || x)
        in->imm = 0;
    if (!x || code == CODE_END)
        src = 0;
    in->opcode = (uint8_t)((in->opcode & CODE_CLASS) | code | x);
    in->registers = (uint8_t)(dst | src << 4);
}

/* A number of a helper that exists. */
static int32_t helper_of(int32_t imm)
{
    uint32_t number = (uint32_t)imm % HELPERS;

    while (!(HELPERS_KNOWN >> number & 1))
        number = (number + 1) % HELPERS;
    return (int32_t)number;
}

static void repair_jump(struct handler_instruction *in)
{
    unsigned code = in->opcode & 0xf0, class = in->opcode & CODE_CLASS, x = in->opcode & CODE_X;

    code = code >= 0xe0 ? code ^ 0x80 : code;
    if (code == CODE_EXIT) {
        *in = op_exit();
    } else if (code == CODE_CALL) {
        *in = in->offset & 1 ? op(CODE_DO_CALL, 0, CODE_CALL_LOCAL, 0, in->imm)
                             : op_helper((enum handler_helper)helper_of(in->imm));
    } else if (code == CODE_JA) {
        *in = op(class, 0, 0, in->offset, in->imm);
    } else {
        *in = op(class | code | x, code_dst(in) % CODE_REGISTERS,
                 x ? code_src(in) % CODE_REGISTERS : 0, in->offset, x ? 0 : in->imm);
    }
}

static void repair_memory(struct handler_instruction *in)
{
    static const int32_t atomics[] = {CODE_ADD,
                                      CODE_OR,
                                      CODE_AND,
                                      CODE_XOR,
                                      CODE_ADD | CODE_FETCH,
                                      CODE_OR | CODE_FETCH,
                                      CODE_AND | CODE_FETCH,
                                      CODE_XOR | CODE_FETCH,
                                      CODE_XCHG,
                                      CODE_CMPXCHG};
    unsigned class = in->opcode & CODE_CLASS, size = in->opcode & CODE_SIZE;
    unsigned dst = code_dst(in) % CODE_FRAME, src = code_src(in) % CODE_FRAME;
    int offset = in->offset % 64;

    if (class == CODE_LDX && in->opcode & 0x80 && size != CODE_DW)
        *in = op(class | CODE_MEMSX | size, dst, src, offset, 0);
    else if (class == CODE_LDX)
        *in = op(class | CODE_MEM | size, dst, src, offset, 0);
    else if (class == CODE_ST)
        *in = op(class | CODE_MEM | size, dst, 0, offset, in->imm);
    else if (in->opcode & 0x80)
        *in = op(class | CODE_ATOMIC | (size & CODE_H ? CODE_DW : CODE_W), dst, src, offset & ~3,
                 atomics[(uint32_t)in->imm % COUNT(atomics)]);
    else
        *in = op(class | CODE_MEM | size, dst, src, offset, 0);
}

/* Makes the jump at `place` lead to the start of an instruction. */
static void repair_target(struct handler_instruction *code, uint32_t place, uint32_t count)
{
    struct handler_instruction *in = &code[place];
    bool far = in->opcode == (CODE_JMP32 | CODE_JA) ||
               (in->opcode == CODE_DO_CALL && code_src(in) == CODE_CALL_LOCAL);
    unsigned class = in->opcode & CODE_CLASS;
    uint32_t to;

    if ((class != CODE_JMP && class != CODE_JMP32) || in->opcode == CODE_DO_EXIT ||
        (in->opcode == CODE_DO_CALL && !far))
        return;
    to = (uint32_t)(far ? in->imm : in->offset) % count;
    to -= to > 0 && code[to - 1].opcode == CODE_LD_DW;
    in->offset = far ? 0 : (int16_t)((int32_t)to - (int32_t)place - 1);
    in->imm =
        far ? (int32_t)to - (int32_t)place - 1 : (in->opcode == (CODE_JMP | CODE_JA) ? 0 : in->imm);
}

bool repair_program(struct bench *b, const uint8_t *bytes, size_t size)
{
    static struct handler_instruction code[HANDLER_INSTRUCTIONS_MAX];
    uint32_t count = 0;

    if (size < 2 * REPAIR_SEEDS + 8)
        return false;
    for (unsigned i = 0; i < REPAIR_SEEDS; i++) {
        uint64_t number = number_of(bytes[2 * i], bytes[2 * i + 1]);

        code[count++] = op(CODE_LD_DW, 1 + i, 0, 0, (int32_t)(uint32_t)number);
        code[count++] = op(0, 0, 0, 0, (int32_t)(number >> 32));
    }
    for (size_t i = 2 * REPAIR_SEEDS; i + 8 <= size && count + 3 < HANDLER_INSTRUCTIONS_MAX;
         i += 8) {
        struct handler_instruction in;

        memcpy(&in, bytes + i, 8);
        switch (in.opcode & CODE_CLASS) {
        case CODE_ALU:
        case CODE_ALU64:
            repair_alu(&in, (in.opcode & CODE_CLASS) == CODE_ALU64);
            break;
        case CODE_JMP:
        case CODE_JMP32:
            repair_jump(&in);
            break;
        case CODE_LD:
            code[count++] = op(CODE_LD_DW, code_dst(&in) % CODE_FRAME, 0, 0, in.imm);
            in = op(0, 0, 0, 0, in.offset);
            break;
        default:
            repair_memory(&in);
        }
        code[count++] = in;
    }
    code[count++] = op_exit();
    for (uint32_t i = 0; i < count; i++)
        repair_target(code, i, count);
    bench_program(b, HANDLER_PAYLOAD, code, count);
    return true;
}
