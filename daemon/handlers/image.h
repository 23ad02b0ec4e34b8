/*
 * Images: the check of a program's bytes, before it may run. proto/handler_abi.h has the picture.
 *
 * The interpreter checks each access when it happens (vm.h). Here only remains that every
 * instruction is one that it knows:
 *
 *   - opcode known, registers 0 to 10, register 10 never written;
 *   - fields that an instruction does not use are 0;
 *   - each jump and each call goes to the start of an instruction of the program, not to the second
 *     half of one of 16 bytes;
 *   - a call's helper is known;
 *   - the last instruction is an exit or a jump, so no instruction follows behind the end;
 *   - the handlers start at instructions, and there is at least one; so do functions with names,
 *     which are short and have no characters that a terminal would act on.
 *
 * The check looks at each instruction twice at most, whatever the program is. Its bytes must not
 * change meanwhile and afterwards: the daemon checks its own copy.
 *
 * Thread: the control thread.
 */
#ifndef PWC_HANDLERS_IMAGE_H
#define PWC_HANDLERS_IMAGE_H

#include <stddef.h>
#include "proto/handler_abi.h"

/* Why an image is refused: "instruction <place>: <reason> (<value>)"; in front of the first
 * instruction the place is HANDLER_NONE. The reasons are constants. */
struct image_error {
    uint32_t place; /* the instruction's number, as llvm-objdump counts */
    const char *reason;
    int64_t value;        /* the wrong value */
    const char *function; /* that the instruction is in, in the image; "": no name is known */
};

/* 0, or -ENOEXEC with the error filled. `bytes` is aligned to 8. */
int image_check(const void *bytes, size_t size, struct image_error *error);

#endif
