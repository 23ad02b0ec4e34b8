/*
 * A machine for tests of handlers: windows between pages that no access may touch, a host that
 * notes what handlers send, and programs put together from instructions. Thread: one.
 *
 *     | guard | state | guard | host | guard | scratch | guard | packet | guard | stack | guard |
 */
#ifndef PWC_TESTS_HANDLERS_BENCH_H
#define PWC_TESTS_HANDLERS_BENCH_H

#include "daemon/handlers/image.h"
#include "daemon/handlers/vm.h"
#include "tests/count.h"

enum {
    BENCH_STATE = 8192,
    BENCH_HOST = 16384,
    BENCH_SCRATCH = 4096,
    BENCH_PACKET = 4096,
    BENCH_SENDS = 64,
    BENCH_PAYLOAD = 4096,
    BENCH_UNITS = 100000,
    BENCH_TARGETS = 5,
};

/* A send as the host got it, with a copy of its bytes. */
struct bench_send {
    struct run_send send;
    uint64_t args[HANDLER_ARGUMENTS_MAX];
    uint8_t payload[BENCH_PAYLOAD];
};

struct bench {
    struct vm vm;
    struct run run; /* bench_reset sets what the host sets; a test may change it */
    struct run_host host;
    struct handler_packet context;
    uint8_t *state, *region, *scratch, *packet, *stack;
    uint8_t image[HANDLER_IMAGE_MAX] __attribute__((aligned(64)));
    struct bench_send sends[BENCH_SENDS];
    unsigned sent, room; /* sends so far; those after `room` get -EAGAIN */
    uint64_t counters[HANDLER_COUNTERS];
    uint64_t now, tick; /* the clock, which moves by a tick at each look */
    /* The count of switches grows in the same way, where a test has set the hook. */
    uint64_t switches, switches_tick;
    uint64_t looks;
    uint64_t traced[2];
};

/* Returns the one bench for all tests of a program; its memory stays until the process ends. */
struct bench *bench_new(void);
/* Returns memory of `size` bytes, a multiple of the page size, between two guards. */
uint8_t *bench_guarded(size_t size);
/* Fills the windows with a pattern, forgets what was sent, and sets the host's part of the run
 * again. */
void bench_reset(struct bench *b);

/* Makes an image with one handler, of this stage, at instruction 0. */
struct handler_image *bench_program(struct bench *b, enum handler_stage stage,
                                    const struct handler_instruction *code, uint32_t count);
/* Checks and runs a payload handler. Returns register 0 as the program left it: the bench appends a
 * store of that register, and a return of success, to the program. */
uint64_t bench_run(struct bench *b, const struct handler_instruction *code, uint32_t count);
/* Runs the handler of this stage in the bench's image. */
void bench_run_image(struct bench *b, enum handler_stage stage);

/* ---- instructions ---------------------------------------------------------------------------- */

static inline struct handler_instruction op(unsigned opcode, unsigned dst, unsigned src, int offset,
                                            int64_t imm)
{
    return (struct handler_instruction){.opcode = (uint8_t)opcode,
                                        .registers = (uint8_t)(dst | src << 4),
                                        .offset = (int16_t)offset,
                                        .imm = (int32_t)imm};
}

static inline struct handler_instruction op_exit(void)
{
    return op(CODE_DO_EXIT, 0, 0, 0, 0);
}

static inline struct handler_instruction op_helper(enum handler_helper helper)
{
    return op(CODE_DO_CALL, 0, CODE_CALL_HELPER, 0, helper);
}

/* dst = imm, sign-extended */
static inline struct handler_instruction op_set(unsigned dst, int32_t imm)
{
    return op(CODE_ALU64 | CODE_MOV, dst, 0, 0, imm);
}

static inline struct handler_instruction op_move(unsigned dst, unsigned src)
{
    return op(CODE_ALU64 | CODE_MOV | CODE_X, dst, src, 0, 0);
}

/* A number of 64 bits: two instructions. */
#define OP_NUMBER(dst, value)                                                                      \
    op(CODE_LD_DW, dst, 0, 0, (int32_t)(uint32_t)(uint64_t)(value)),                               \
        op(0, 0, 0, 0, (int32_t)(uint32_t)((uint64_t)(value) >> 32))

#endif
