/*
 * The interpreter of handlers: RFC 9669's groups base32, base64, divmul32, divmul64, atomic32 and
 * atomic64, calls of helpers, and calls of functions of the program, HANDLER_FRAMES deep.
 *
 *     fetch: where pc >= stop, a stop of the image ----> next span, or out of units, time
 *       |
 *     execute: an access of memory asks its window ----> nowhere: a fault
 *       |                                                (address, instruction)
 *     call of a helper: units first, then work    ----> a fault
 *       |
 *     exit of the first function: register 0 is the handler's return
 *
 * On entry register 1 is the context's address, 2 the state's, 10 the end of the function's 512
 * bytes of stack; all others are 0. A call keeps 6 to 9 and leaves the others. Division by 0 gives
 * 0, modulo by 0 the value. The smallest number divided by -1 is itself, and its modulo 0. Shifts
 * use the low 5 or 6 bits.
 *
 * Units: each 8 bytes of an instruction that is executed are one, RUN_BEGIN for the run, and what
 * helpers take. The count is exact: a program is stopped in front of the instruction that is one
 * too much, or behind it where that has 16 bytes and only its second half is too much.
 *
 * Speculation: no guess of the processor reaches more than the program may (window.h). Each
 * instruction's code is safe for any 8 bytes: there are 16 registers, places in the program are
 * chosen by data between the stops, helpers and frames by masked numbers. So a wrong guess about
 * the next opcode does no harm either. Between two clients stands a barrier.
 *
 * Thread: one at a time for each struct vm. Nothing here allocates, blocks, or reads a clock but
 * the host's.
 */
#ifndef PWC_HANDLERS_VM_H
#define PWC_HANDLERS_VM_H

#include "daemon/handlers/run.h"

enum { VM_REGISTERS = 16 }; /* as many as an instruction can name */

/* A call of a function within a handler. */
struct vm_frame {
    uint64_t kept[4]; /* registers 6 to 9 */
    uint64_t back;    /* the instruction behind the call */
};

/* One for each thread that runs handlers; owned by it, zeroed at first. */
struct vm {
    uint64_t reg[VM_REGISTERS];
    struct vm_frame frames[HANDLER_FRAMES];
    uint64_t client; /* of the last run */
};

/* Runs the handler of r->stage, which the image has, to its end: r's result is set. The host has
 * set what is its to set, windows too; vm_run sets that of constants. */
void vm_run(struct vm *vm, struct run *r);

#endif
