/*
 * Checks a program's image, before the program may run. proto/handler_abi.h has the picture of an
 * image.
 *
 * The interpreter checks each access when it happens (vm.h). So this check only has to make sure
 * that the interpreter knows every instruction:
 *
 *   - the opcode is known, registers are 0 to 10, and register 10 is never written;
 *   - fields that an instruction does not use are 0;
 *   - each jump and each call goes to the start of an instruction of the program, not to the second
 *     half of an instruction of 16 bytes;
 *   - a call's helper is known;
 *   - the last instruction is an exit or a jump, so a run does not continue after the end;
 *   - there is at least one handler; handlers and named functions start at instructions; names are
 *     short and have no characters that a terminal would act on.
 *
 * The check looks at each instruction twice at most, whatever the program is. The bytes must not
 * change during the check and afterwards, so the daemon checks its own copy.
 *
 * Thread: the control thread.
 */
#ifndef PWC_HANDLERS_IMAGE_H
#define PWC_HANDLERS_IMAGE_H

#include <stddef.h>
#include "proto/handler_abi.h"

/* Why an image is refused: "instruction <place>: <reason> (<value>)". Where no single instruction
 * is wrong, the place is HANDLER_NONE. The reasons are constant texts. */
struct image_error {
    uint32_t place; /* the instruction's number, as llvm-objdump counts */
    const char *reason;
    int64_t value;        /* the wrong value */
    const char *function; /* the name of the function with this instruction, in the image; "": not
                           * known */
};

/* Checks an image, which is aligned to 8. Returns 0, or -ENOEXEC with *error filled. */
int image_check(const void *bytes, size_t size, struct image_error *error);

#endif
