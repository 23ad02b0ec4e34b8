/* Owns only the run's registers and frames (vm.h). Thread: the thread that runs the handler. */
#include "daemon/handlers/vm.h"

#include <errno.h>
#include <string.h>
#include "daemon/handlers/helpers.h"
#include "shm_ring/word.h"

#define VM_INLINE static inline __attribute__((always_inline))

/* ---- values -----------------------------------------------------------------------------------
 */

VM_INLINE uint64_t divide(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : a / b;
}

VM_INLINE uint64_t modulo(uint64_t a, uint64_t b)
{
    return b == 0 ? a : a % b;
}

/* The smallest number divided by -1 would trap. */
VM_INLINE uint64_t divide_signed(int64_t a, int64_t b)
{
    if (b == -1)
        return 0 - (uint64_t)a;
    return b == 0 ? 0 : (uint64_t)(a / b);
}

VM_INLINE uint64_t modulo_signed(int64_t a, int64_t b)
{
    if (b == -1)
        return 0;
    return b == 0 ? (uint64_t)a : (uint64_t)(a % b);
}

VM_INLINE uint64_t extended(uint64_t value, int16_t bits)
{
    switch (bits) {
    case 8:
        return (uint64_t)(int8_t)value;
    case 16:
        return (uint64_t)(int16_t)value;
    case 32:
        return (uint64_t)(int32_t)value;
    default:
        return value;
    }
}

static uint64_t turned(uint64_t value, int32_t bits)
{
    switch (bits) {
    case 16:
        return __builtin_bswap16((uint16_t)value);
    case 32:
        return __builtin_bswap32((uint32_t)value);
    default:
        return __builtin_bswap64(value);
    }
}

static uint64_t cut(uint64_t value, int32_t bits)
{
    switch (bits) {
    case 16:
        return (uint16_t)value;
    case 32:
        return (uint32_t)value;
    default:
        return value;
    }
}

/* Loads an integer of `bytes` bytes into a 64-bit one. */
VM_INLINE uint64_t load(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return value;
}

/* ---- atomics ----------------------------------------------------------------------------------
 */

/* The operation of shm_ring/word.h; for a wrong number it is an addition. */
static enum word_op atomic_op(int32_t imm)
{
    static const uint8_t ops[16] = {
        [CODE_ADD >> 4] = WORD_ADD,
        [CODE_OR >> 4] = WORD_OR,
        [CODE_AND >> 4] = WORD_AND,
        [CODE_XOR >> 4] = WORD_XOR,
        [CODE_XCHG >> 4] = WORD_SET,
        [CODE_CMPXCHG >> 4] = WORD_COMPARE_SWAP,
        [1] = WORD_ADD,
        [2] = WORD_ADD,
        [3] = WORD_ADD,
        [6] = WORD_ADD,
        [7] = WORD_ADD,
        [8] = WORD_ADD,
        [9] = WORD_ADD,
        [11] = WORD_ADD,
        [12] = WORD_ADD,
        [13] = WORD_ADD,
    };

    return (enum word_op)ops[imm >> 4 & 15];
}

/* Carries out an atomic on the word at `address`, an address of the program. False: the run has
 * failed. */
static bool do_atomic(struct run *r, uint64_t *reg, const struct handler_instruction *in,
                      uint64_t address, enum word_type type)
{
    uint8_t code = word_code(atomic_op(in->imm), type);
    uint32_t bytes = word_bytes(code);
    uint8_t *at = window_at(&r->windows, WINDOW_WRITE, address, bytes);
    uint64_t before = 0;
    uint8_t operands[16];

    if (at == window_nowhere) {
        run_fail(r, RUN_BAD_ADDRESS, address);
        return false;
    }
    if (!word_aligned((uintptr_t)at, code)) {
        run_fail(r, RUN_UNALIGNED, address);
        return false;
    }
    if (word_is_swap_if(code)) {
        memcpy(operands, &reg[0], bytes);
        memcpy(operands + bytes, &reg[code_src(in)], bytes);
    } else {
        memcpy(operands, &reg[code_src(in)], bytes);
    }
    if (word_apply(at, code, operands, in->imm & CODE_FETCH ? &before : NULL) != 0) {
        run_fail(r, RUN_BUSY_WORD, address);
        return false;
    }
    if (word_is_swap_if(code))
        reg[0] = before;
    else if (in->imm & CODE_FETCH)
        reg[code_src(in)] = before;
    return true;
}

/* ---- speculation ------------------------------------------------------------------------------
 */

/* No load after the barrier begins before the loads before it are done. */
static void barrier(void)
{
#if defined(__x86_64__)
    __asm__ __volatile__("mfence; lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ __volatile__("dsb sy; isb" ::: "memory");
#else
    __sync_synchronize();
#endif
}

/* Gives `at` where it is less than `stop`, else 0, the place of the stop before the program. Both
 * are less than 2^33. */
VM_INLINE uint64_t fetched_at(uint64_t at, uint64_t stop)
{
    uint64_t mask = (uint64_t)((int64_t)(at - stop) >> 63);

    __asm__("" : "+r"(mask));
    return at & mask;
}

/* The place where to stop after a jump to `at`: the end of the span, or of the program. */
VM_INLINE uint64_t stop_of(uint64_t at, int64_t span, uint64_t end)
{
    int64_t past = (int64_t)at + span - (int64_t)end;

    return (uint64_t)((int64_t)end + (past & past >> 63));
}

/* ---- the interpreter --------------------------------------------------------------------------
 */

/* Runs until the first function exits, or a fault; returns register 0. */
static uint64_t interpret(struct run *r, struct vm *vm, uint32_t entry)
{
#pragma GCC diagnostic push
#if defined(__clang__)
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
#define CASES(class, code, label)                                                                  \
    [(class) | (code)] = &&label, [(class) | (code) | CODE_X] = &&label
    static const void *const labels[256] = {
        [0 ... 255] = &&unknown,
        [0] = &&stopped,
        CASES(CODE_ALU64, CODE_ADD, add64),
        CASES(CODE_ALU64, CODE_SUB, sub64),
        CASES(CODE_ALU64, CODE_MUL, mul64),
        CASES(CODE_ALU64, CODE_DIV, div64),
        CASES(CODE_ALU64, CODE_OR, or64),
        CASES(CODE_ALU64, CODE_AND, and64),
        CASES(CODE_ALU64, CODE_LSH, lsh64),
        CASES(CODE_ALU64, CODE_RSH, rsh64),
        [CODE_ALU64 | CODE_NEG] = &&neg64,
        CASES(CODE_ALU64, CODE_MOD, mod64),
        CASES(CODE_ALU64, CODE_XOR, xor64),
        CASES(CODE_ALU64, CODE_MOV, mov64),
        CASES(CODE_ALU64, CODE_ARSH, arsh64),
        [CODE_ALU64 | CODE_END] = &&turn,
        CASES(CODE_ALU, CODE_ADD, add32),
        CASES(CODE_ALU, CODE_SUB, sub32),
        CASES(CODE_ALU, CODE_MUL, mul32),
        CASES(CODE_ALU, CODE_DIV, div32),
        CASES(CODE_ALU, CODE_OR, or32),
        CASES(CODE_ALU, CODE_AND, and32),
        CASES(CODE_ALU, CODE_LSH, lsh32),
        CASES(CODE_ALU, CODE_RSH, rsh32),
        [CODE_ALU | CODE_NEG] = &&neg32,
        CASES(CODE_ALU, CODE_MOD, mod32),
        CASES(CODE_ALU, CODE_XOR, xor32),
        CASES(CODE_ALU, CODE_MOV, mov32),
        CASES(CODE_ALU, CODE_ARSH, arsh32),
        [CODE_ALU | CODE_END] = &&little,
        [CODE_ALU | CODE_END | CODE_X] = &&turn,
        [CODE_JMP | CODE_JA] = &&go,
        [CODE_JMP32 | CODE_JA] = &&go_far,
        CASES(CODE_JMP, CODE_JEQ, jeq64),
        CASES(CODE_JMP, CODE_JNE, jne64),
        CASES(CODE_JMP, CODE_JGT, jgt64),
        CASES(CODE_JMP, CODE_JGE, jge64),
        CASES(CODE_JMP, CODE_JLT, jlt64),
        CASES(CODE_JMP, CODE_JLE, jle64),
        CASES(CODE_JMP, CODE_JSET, jset64),
        CASES(CODE_JMP, CODE_JSGT, jsgt64),
        CASES(CODE_JMP, CODE_JSGE, jsge64),
        CASES(CODE_JMP, CODE_JSLT, jslt64),
        CASES(CODE_JMP, CODE_JSLE, jsle64),
        CASES(CODE_JMP32, CODE_JEQ, jeq32),
        CASES(CODE_JMP32, CODE_JNE, jne32),
        CASES(CODE_JMP32, CODE_JGT, jgt32),
        CASES(CODE_JMP32, CODE_JGE, jge32),
        CASES(CODE_JMP32, CODE_JLT, jlt32),
        CASES(CODE_JMP32, CODE_JLE, jle32),
        CASES(CODE_JMP32, CODE_JSET, jset32),
        CASES(CODE_JMP32, CODE_JSGT, jsgt32),
        CASES(CODE_JMP32, CODE_JSGE, jsge32),
        CASES(CODE_JMP32, CODE_JSLT, jslt32),
        CASES(CODE_JMP32, CODE_JSLE, jsle32),
        [CODE_DO_CALL] = &&call,
        [CODE_DO_EXIT] = &&leave,
        [CODE_LD_DW] = &&load_number,
        [CODE_LDX | CODE_MEM | CODE_B] = &&load8,
        [CODE_LDX | CODE_MEM | CODE_H] = &&load16,
        [CODE_LDX | CODE_MEM | CODE_W] = &&load32,
        [CODE_LDX | CODE_MEM | CODE_DW] = &&load64,
        [CODE_LDX | CODE_MEMSX | CODE_B] = &&load_signed8,
        [CODE_LDX | CODE_MEMSX | CODE_H] = &&load_signed16,
        [CODE_LDX | CODE_MEMSX | CODE_W] = &&load_signed32,
        [CODE_ST | CODE_MEM | CODE_B] = &&store_number8,
        [CODE_ST | CODE_MEM | CODE_H] = &&store_number16,
        [CODE_ST | CODE_MEM | CODE_W] = &&store_number32,
        [CODE_ST | CODE_MEM | CODE_DW] = &&store_number64,
        [CODE_STX | CODE_MEM | CODE_B] = &&store8,
        [CODE_STX | CODE_MEM | CODE_H] = &&store16,
        [CODE_STX | CODE_MEM | CODE_W] = &&store32,
        [CODE_STX | CODE_MEM | CODE_DW] = &&store64,
        [CODE_STX | CODE_ATOMIC | CODE_W] = &&atomic32,
        [CODE_STX | CODE_ATOMIC | CODE_DW] = &&atomic64,
    };
#undef CASES
#pragma GCC diagnostic pop
    /* Place 0 is the stop before instruction 0. */
    const struct handler_instruction *code = image_code(r->image);
    const uint64_t end = (uint64_t)r->image->instructions + 1;
    uint64_t *const reg = vm->reg;
    uint32_t at = entry + 1, block = at; /* block: from here on, instructions are not taken from the
                                          * span yet */
    uint64_t stop = stop_of(at, r->span, end);
    const struct handler_instruction *in;
    uint64_t from, address = 0;
    uint64_t *to;
    unsigned depth = 0;
    uint8_t *there;

next:
    in = &code[fetched_at(at, stop)];
    at++;
    to = &reg[code_dst(in)];
    from = in->opcode & CODE_X ? reg[code_src(in)] : (uint64_t)(int64_t)in->imm;
    goto *labels[in->opcode];

    /* ---- arithmetic --- */
add64:
    *to += from;
    goto next;
sub64:
    *to -= from;
    goto next;
mul64:
    *to *= from;
    goto next;
div64:
    *to = in->offset == 1 ? divide_signed((int64_t)*to, (int64_t)from) : divide(*to, from);
    goto next;
mod64:
    *to = in->offset == 1 ? modulo_signed((int64_t)*to, (int64_t)from) : modulo(*to, from);
    goto next;
or64:
    *to |= from;
    goto next;
and64:
    *to &= from;
    goto next;
xor64:
    *to ^= from;
    goto next;
lsh64:
    *to <<= from & 63;
    goto next;
rsh64:
    *to >>= from & 63;
    goto next;
arsh64:
    *to = (uint64_t)((int64_t)*to >> (from & 63));
    goto next;
neg64:
    *to = 0 - *to;
    goto next;
mov64:
    *to = extended(from, in->offset);
    goto next;
turn:
    *to = turned(*to, in->imm);
    goto next;
little:
    *to = cut(*to, in->imm);
    goto next;
add32:
    *to = (uint32_t)(*to + from);
    goto next;
sub32:
    *to = (uint32_t)(*to - from);
    goto next;
mul32:
    *to = (uint32_t)(*to * from);
    goto next;
div32:
    *to = (uint32_t)(in->offset == 1 ? divide_signed((int32_t)*to, (int32_t)from)
                                     : divide((uint32_t)*to, (uint32_t)from));
    goto next;
mod32:
    *to = (uint32_t)(in->offset == 1 ? modulo_signed((int32_t)*to, (int32_t)from)
                                     : modulo((uint32_t)*to, (uint32_t)from));
    goto next;
or32:
    *to = (uint32_t)(*to | from);
    goto next;
and32:
    *to = (uint32_t)(*to & from);
    goto next;
xor32:
    *to = (uint32_t)(*to ^ from);
    goto next;
lsh32:
    *to = (uint32_t)*to << (from & 31);
    goto next;
rsh32:
    *to = (uint32_t)*to >> (from & 31);
    goto next;
arsh32:
    *to = (uint32_t)((int32_t)*to >> (from & 31));
    goto next;
neg32:
    *to = 0 - (uint32_t)*to;
    goto next;
mov32:
    *to = (uint32_t)extended(from, in->offset);
    goto next;
load_number:
    *to = (uint32_t)in->imm | (uint64_t)(uint32_t)in[1].imm << 32;
    at++;
    goto next;

    /* ---- memory --- */
load8:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 1);
    if (there == window_nowhere)
        goto bad_address;
    *to = load(there, 1);
    goto next;
load16:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 2);
    if (there == window_nowhere)
        goto bad_address;
    *to = load(there, 2);
    goto next;
load32:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 4);
    if (there == window_nowhere)
        goto bad_address;
    *to = load(there, 4);
    goto next;
load64:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 8);
    if (there == window_nowhere)
        goto bad_address;
    *to = load(there, 8);
    goto next;
load_signed8:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 1);
    if (there == window_nowhere)
        goto bad_address;
    *to = extended(load(there, 1), 8);
    goto next;
load_signed16:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 2);
    if (there == window_nowhere)
        goto bad_address;
    *to = extended(load(there, 2), 16);
    goto next;
load_signed32:
    address = reg[code_src(in)] + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_READ, address, 4);
    if (there == window_nowhere)
        goto bad_address;
    *to = extended(load(there, 4), 32);
    goto next;
store_number8:
    from = (uint64_t)(int64_t)in->imm;
    goto store_8;
store8:
    from = reg[code_src(in)];
store_8:
    address = *to + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_WRITE, address, 1);
    if (there == window_nowhere)
        goto bad_address;
    memcpy(there, &from, 1);
    goto next;
store_number16:
    from = (uint64_t)(int64_t)in->imm;
    goto store_16;
store16:
    from = reg[code_src(in)];
store_16:
    address = *to + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_WRITE, address, 2);
    if (there == window_nowhere)
        goto bad_address;
    memcpy(there, &from, 2);
    goto next;
store_number32:
    from = (uint64_t)(int64_t)in->imm;
    goto store_32;
store32:
    from = reg[code_src(in)];
store_32:
    address = *to + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_WRITE, address, 4);
    if (there == window_nowhere)
        goto bad_address;
    memcpy(there, &from, 4);
    goto next;
store_number64:
    from = (uint64_t)(int64_t)in->imm;
    goto store_64;
store64:
    from = reg[code_src(in)];
store_64:
    address = *to + (uint64_t)(int64_t)in->offset;
    there = window_at(&r->windows, WINDOW_WRITE, address, 8);
    if (there == window_nowhere)
        goto bad_address;
    memcpy(there, &from, 8);
    goto next;
atomic32:
    r->place = at - 2;
    if (do_atomic(r, reg, in, *to + (uint64_t)(int64_t)in->offset, WORD_U32))
        goto next;
    goto failed;
atomic64:
    r->place = at - 2;
    if (do_atomic(r, reg, in, *to + (uint64_t)(int64_t)in->offset, WORD_U64))
        goto next;
    goto failed;

    /* ---- jumps --- */
jeq64:
    if (*to == from)
        goto go;
    goto next;
jne64:
    if (*to != from)
        goto go;
    goto next;
jgt64:
    if (*to > from)
        goto go;
    goto next;
jge64:
    if (*to >= from)
        goto go;
    goto next;
jlt64:
    if (*to < from)
        goto go;
    goto next;
jle64:
    if (*to <= from)
        goto go;
    goto next;
jset64:
    if (*to & from)
        goto go;
    goto next;
jsgt64:
    if ((int64_t)*to > (int64_t)from)
        goto go;
    goto next;
jsge64:
    if ((int64_t)*to >= (int64_t)from)
        goto go;
    goto next;
jslt64:
    if ((int64_t)*to < (int64_t)from)
        goto go;
    goto next;
jsle64:
    if ((int64_t)*to <= (int64_t)from)
        goto go;
    goto next;
jeq32:
    if ((uint32_t)*to == (uint32_t)from)
        goto go;
    goto next;
jne32:
    if ((uint32_t)*to != (uint32_t)from)
        goto go;
    goto next;
jgt32:
    if ((uint32_t)*to > (uint32_t)from)
        goto go;
    goto next;
jge32:
    if ((uint32_t)*to >= (uint32_t)from)
        goto go;
    goto next;
jlt32:
    if ((uint32_t)*to < (uint32_t)from)
        goto go;
    goto next;
jle32:
    if ((uint32_t)*to <= (uint32_t)from)
        goto go;
    goto next;
jset32:
    if ((uint32_t)*to & (uint32_t)from)
        goto go;
    goto next;
jsgt32:
    if ((int32_t)*to > (int32_t)from)
        goto go;
    goto next;
jsge32:
    if ((int32_t)*to >= (int32_t)from)
        goto go;
    goto next;
jslt32:
    if ((int32_t)*to < (int32_t)from)
        goto go;
    goto next;
jsle32:
    if ((int32_t)*to <= (int32_t)from)
        goto go;
    goto next;
go:
    r->span -= at - block;
    at += (uint32_t)(int32_t)in->offset;
    goto landed;
go_far:
    r->span -= at - block;
    at += (uint32_t)in->imm;
landed:
    block = at;
    stop = stop_of(at, r->span, end);
    goto next;

    /* ---- calls --- */
call:
    r->place = at - 2;
    r->span -= at - block;
    if (code_src(in) == CODE_CALL_LOCAL) {
        struct vm_frame *frame = &vm->frames[depth & (HANDLER_FRAMES - 1)];

        if (depth + 1 >= HANDLER_FRAMES) {
            run_fail(r, RUN_TOO_DEEP, depth + 1);
            goto failed_behind;
        }
        memcpy(frame->kept, &reg[6], sizeof(frame->kept));
        frame->back = at;
        depth++;
        reg[CODE_FRAME] += HANDLER_FRAME_BYTES;
        at += (uint32_t)in->imm;
        goto landed;
    }
    if (!run_take(r, RUN_HELPER))
        goto failed_behind;
    reg[0] = helper_calls[in->imm & (HELPERS - 1)](r, reg);
    if (r->fault != RUN_NO_FAULT)
        goto failed_behind;
    goto landed;
leave:
    r->span -= at - block;
    if (depth > 0) {
        const struct vm_frame *frame = &vm->frames[--depth & (HANDLER_FRAMES - 1)];

        memcpy(&reg[6], frame->kept, sizeof(frame->kept));
        reg[CODE_FRAME] -= HANDLER_FRAME_BYTES;
        at = frame->back;
        goto landed;
    }
    return reg[0];

    /* ---- ends --- */
stopped:
    at--;
    r->place = at - 1;
    if (at < stop || stop == end)
        goto unknown_here;
    r->span -= at - block;
    if (!run_next_span(r))
        return 0;
    goto landed;
bad_address:
    r->place = at - 2;
    run_fail(r, RUN_BAD_ADDRESS, address);
    goto failed;
unknown:
    at--;
    r->place = at - 1;
unknown_here:
    run_fail(r, RUN_BAD_INSTRUCTION, in->opcode);
failed:
    r->span -= at - block;
failed_behind:
    return 0;
}

/* ---- the run ----------------------------------------------------------------------------------
 */

static bool may_return(const struct run *r, uint64_t value)
{
    static const uint8_t allowed[HANDLER_STAGES] = {
        [HANDLER_HEADER] = 1 << HANDLER_DROP | 1 << HANDLER_PROCESS_DATA | 1 << HANDLER_PROCEED |
                           1 << HANDLER_DEFER | 1 << HANDLER_FAIL | 1 << HANDLER_AGAIN,
        [HANDLER_PAYLOAD] =
            1 << HANDLER_SUCCESS | 1 << HANDLER_DROP | 1 << HANDLER_FAIL | 1 << HANDLER_AGAIN,
        [HANDLER_COMPLETION] = 1 << HANDLER_SUCCESS | 1 << HANDLER_FAIL | 1 << HANDLER_AGAIN,
    };
    static const uint8_t with_pending[HANDLER_STAGES] = {
        [HANDLER_HEADER] = 1 << HANDLER_DROP | 1 << HANDLER_PROCESS_DATA | 1 << HANDLER_PROCEED,
        [HANDLER_COMPLETION] = 1 << HANDLER_SUCCESS,
    };
    uint64_t plain = value & ~(uint64_t)HANDLER_PENDING;

    if (plain > HANDLER_AGAIN || (plain == HANDLER_AGAIN && !r->said_again))
        return false;
    return (value & HANDLER_PENDING ? with_pending : allowed)[r->stage] >> plain & 1;
}

static void settle(struct run *r, uint64_t value)
{
    /* A handler returns an int of 32 bits; the upper half of the register may have any value. */
    value = (uint32_t)value;
    if (r->fault == RUN_NO_FAULT && !may_return(r, value))
        run_fail(r, RUN_BAD_RETURN, value);
    r->returned = r->fault == RUN_NO_FAULT ? (int32_t)value : HANDLER_FAIL;
    r->used = r->units - r->left - (uint64_t)r->span;
    if (r->fault == RUN_OUT_OF_UNITS)
        r->used = r->units;
}

/* Sets a handler's registers, each by a store of its own. For a block of this size compilers would
 * use a string instruction, which takes longer to start than an empty handler takes to run. */
static void set_registers(uint64_t *reg)
{
    for (unsigned i = 0; i < VM_REGISTERS; i++) {
        reg[i] = 0;
        __asm__("" : "+m"(reg[i]));
    }
    reg[1] = handler_address(HANDLER_CONTEXT, 0);
    reg[2] = handler_address(HANDLER_STATE, 0);
    reg[CODE_FRAME] = handler_address(HANDLER_STACK, HANDLER_FRAME_BYTES);
}

/* Clears the frames, so that a processor that wrongly predicts a return finds nothing of the
 * earlier client. */
static void change_client(struct vm *vm)
{
    memset(vm->frames, 0, sizeof(vm->frames));
    barrier();
}

void vm_run(struct vm *vm, struct run *r)
{
    uint32_t entry = r->image->entry[r->stage];
    uint64_t value = 0;

    window_set_constant(&r->windows, HANDLER_CONSTANTS,
                        (const uint8_t *)r->image + image_constants_at(r->image->instructions),
                        r->image->constants);
    set_registers(vm->reg);
    if (vm->client != r->client)
        change_client(vm);
    vm->client = r->client;
    r->begun = r->host->clock ? r->host->clock(r->self) : 0;
    r->switched = RUN_UNKNOWN;
    r->left = r->units;
    r->span = 0;
    r->place = entry;
    r->said_again = false;
    r->fault = RUN_NO_FAULT;
    r->fault_place = HANDLER_NONE;
    r->fault_address = 0;
    if (run_take(r, RUN_BEGIN))
        value = interpret(r, vm, entry);
    settle(r, value);
}
