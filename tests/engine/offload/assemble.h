/* Instructions of handlers, for programs that tests write by hand. Thread: any. */
#ifndef PWC_TESTS_ENGINE_OFFLOAD_ASSEMBLE_H
#define PWC_TESTS_ENGINE_OFFLOAD_ASSEMBLE_H

#include <errno.h>
#include "proto/handler_abi.h"

static inline struct handler_instruction op(unsigned opcode, unsigned dst, unsigned src, int offset,
                                            int64_t imm)
{
    return (struct handler_instruction){.opcode = (uint8_t)opcode,
                                        .registers = (uint8_t)(dst | src << 4),
                                        .offset = (int16_t)offset,
                                        .imm = (int32_t)imm};
}

#define NUMBER(dst, value)                                                                         \
    op(CODE_LD_DW, dst, 0, 0, (int32_t)(uint32_t)(uint64_t)(value)),                               \
        op(0, 0, 0, 0, (int32_t)(uint32_t)((uint64_t)(value) >> 32))
#define LOAD(dst, src, offset)   op(CODE_LDX | CODE_MEM | CODE_DW, dst, src, offset, 0)
#define LOAD32(dst, src, offset) op(CODE_LDX | CODE_MEM | CODE_W, dst, src, offset, 0)
#define STORE(dst, offset, src)  op(CODE_STX | CODE_MEM | CODE_DW, dst, src, offset, 0)
#define ALU(code, dst, imm)      op(CODE_ALU64 | (code), dst, 0, 0, imm)
#define ALU_X(code, dst, src)    op(CODE_ALU64 | (code) | CODE_X, dst, src, 0, 0)
#define UNLESS_BITS(dst, bits, n)                                                                  \
    op(CODE_JMP | CODE_JSET, dst, 0, 1, bits), op(CODE_JMP, 0, 0, n, 0)
#define HELPER(n) op(CODE_JMP | CODE_CALL, 0, CODE_CALL_HELPER, 0, n)
#define EXIT      op(CODE_JMP | CODE_EXIT, 0, 0, 0, 0)
/* Makes the handler return AGAIN if register 0 is -EAGAIN; otherwise the handler goes on. */
#define OR_AGAIN op(CODE_JMP | CODE_JNE, 0, 0, 2, -EAGAIN), ALU(CODE_MOV, 0, HANDLER_AGAIN), EXIT

#endif
