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
 * On entry register 1 is the address of the context, register 2 that of the state, and register 10
 * the end of the function's 512 bytes of stack; all others are 0. A call of a function saves
 * registers 6 to 9, and does not change the others. Division by 0 gives 0, and modulo by 0 gives
 * the value. The smallest number divided by -1 is itself, and its modulo is 0. Shifts use the low 5
 * or 6 bits.
 *
 * Units: each 8 bytes of an executed instruction cost one unit, the run costs RUN_BEGIN, and
 * helpers take units of their own. The count is exact: a program is stopped before the instruction
 * that exceeds its units, or after it where it has 16 bytes and only its second half exceeds them.
 *
 * Speculation: no prediction lets the processor reach more than the program may (window.h). The
 * code for each opcode is safe for any 8 bytes: there are 16 registers, as many as an instruction
 * can name, places in the program are kept between the stops without a branch, and numbers of
 * helpers and frames are masked. So a wrong prediction of the next opcode does no harm either.
 * Between runs of two clients there is a barrier.
 *
 * Thread: one at a time for each struct vm. No function here allocates, blocks, or reads a clock
 * other than the host's.
 */
#ifndef PWC_HANDLERS_VM_H
#define PWC_HANDLERS_VM_H

#include "daemon/handlers/run.h"

enum { VM_REGISTERS = 16 }; /* as many as an instruction can name */

/* A call of a function in the program. */
struct vm_frame {
    uint64_t kept[4]; /* registers 6 to 9 of the caller */
    uint64_t back;    /* the instruction after the call */
};

/* Each thread that runs handlers owns one; zeroed at first. */
struct vm {
    uint64_t reg[VM_REGISTERS];
    struct vm_frame frames[HANDLER_FRAMES];
    uint64_t client; /* the client of the last run; the owner may set 0 for none, so that the next
                      * run counts as that of another client */
};

/* Runs the handler of r->stage to its end, and sets the result in *r. The host has set its part of
 * *r (run.h), except for the window of constants, which vm_run sets. */
void vm_run(struct vm *vm, struct run *r);

#endif
