/*
 * The instructions of handlers: eBPF as RFC 9669 defines it. Used by the loader of programs
 * (clientlib/handlers), and by the check and the interpreter (daemon/handlers).
 *
 *     63            32 31        16 15   12 11    8 7           0
 *     +---------------+------------+-------+-------+-------------+
 *     |      imm      |   offset   |  src  |  dst  |    opcode   |
 *     +---------------+------------+-------+-------+-------------+
 *
 *     opcode of ALU, ALU64, JMP, JMP32         opcode of LD, LDX, ST, STX
 *      7      4   3   2     0                   7    5 4    3 2     0
 *     +--------+-----+-------+                 +------+------+-------+
 *     |  code  | X/K | class |                 | mode | size | class |
 *     +--------+-----+-------+                 +------+------+-------+
 *
 * LD of 64 bits takes two instructions: the second has the upper half of the number as imm, and is
 * 0 elsewhere.
 */
#ifndef PWC_PROTO_HANDLER_CODE_H
#define PWC_PROTO_HANDLER_CODE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct handler_instruction {
    uint8_t opcode;
    uint8_t registers; /* dst in the low four bits, src in the high ones */
    int16_t offset;
    int32_t imm;
};
static_assert(sizeof(struct handler_instruction) == 8 &&
                  offsetof(struct handler_instruction, registers) == 1 &&
                  offsetof(struct handler_instruction, offset) == 2 &&
                  offsetof(struct handler_instruction, imm) == 4,
              "RFC 9669, little endian");

enum code_class {
    CODE_LD = 0,
    CODE_LDX = 1,
    CODE_ST = 2,
    CODE_STX = 3,
    CODE_ALU = 4,
    CODE_JMP = 5,
    CODE_JMP32 = 6,
    CODE_ALU64 = 7,
    CODE_CLASS = 7, /* the mask */
};

/* X: the second operand is the register src. Without X (K): the second operand is imm. */
#define CODE_X 0x08

enum code_alu {
    CODE_ADD = 0x00,
    CODE_SUB = 0x10,
    CODE_MUL = 0x20,
    CODE_DIV = 0x30, /* offset 1: signed */
    CODE_OR = 0x40,
    CODE_AND = 0x50,
    CODE_LSH = 0x60,
    CODE_RSH = 0x70,
    CODE_NEG = 0x80,
    CODE_MOD = 0x90, /* offset 1: signed */
    CODE_XOR = 0xa0,
    CODE_MOV = 0xb0, /* with X and offset 8, 16 or 32: sign-extends as many low bits */
    CODE_ARSH = 0xc0,
    CODE_END = 0xd0, /* byte order: ALU with K to little, with X to big endian; ALU64 always
                        swaps */
};

enum code_jump {
    CODE_JA = 0x00, /* JMP: by offset, JMP32: by imm */
    CODE_JEQ = 0x10,
    CODE_JGT = 0x20,
    CODE_JGE = 0x30,
    CODE_JSET = 0x40,
    CODE_JNE = 0x50,
    CODE_JSGT = 0x60,
    CODE_JSGE = 0x70,
    CODE_CALL = 0x80,
    CODE_EXIT = 0x90,
    CODE_JLT = 0xa0,
    CODE_JLE = 0xb0,
    CODE_JSLT = 0xc0,
    CODE_JSLE = 0xd0,
};

enum code_size {
    CODE_W = 0x00,
    CODE_H = 0x08,
    CODE_B = 0x10,
    CODE_DW = 0x18,
    CODE_SIZE = 0x18, /* the mask */
};

enum code_mode {
    CODE_IMM = 0x00,
    CODE_ABS = 0x20, /* ABS and IND are for packets of classic BPF: refused */
    CODE_IND = 0x40,
    CODE_MEM = 0x60,
    CODE_MEMSX = 0x80, /* sign-extended */
    CODE_ATOMIC = 0xc0,
    CODE_MODE = 0xe0, /* the mask */
};

/* imm of an atomic. */
enum code_atomic {
    CODE_FETCH = 0x01, /* src gets the earlier value */
    CODE_XCHG = 0xe1,
    CODE_CMPXCHG = 0xf1, /* compares with register 0, which gets the earlier value */
};

/* src of a call. */
enum code_call {
    CODE_CALL_HELPER = 0, /* imm is the helper's number */
    CODE_CALL_LOCAL = 1,  /* to the instruction imm after the next one */
};

enum {
    CODE_REGISTERS = 11,
    CODE_FRAME = 10, /* the register that points to the end of the function's own stack */
    CODE_LD_DW = CODE_LD | CODE_IMM | CODE_DW,
    CODE_DO_CALL = CODE_JMP | CODE_CALL,
    CODE_DO_EXIT = CODE_JMP | CODE_EXIT,
};

static inline unsigned code_dst(const struct handler_instruction *in)
{
    return in->registers & 15;
}

static inline unsigned code_src(const struct handler_instruction *in)
{
    return in->registers >> 4;
}

/* Bytes of an access. */
static inline unsigned code_bytes(uint8_t opcode)
{
    static const uint8_t bytes[4] = {4, 2, 1, 8};

    return bytes[(opcode & CODE_SIZE) >> 3];
}

#endif
