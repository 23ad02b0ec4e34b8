/*
 * Programs of handlers as text: one instruction in a line, with the numbers and in the syntax that
 * llvm-objdump has for these instructions (RFC 9669), under the names of functions.
 *
 *     payload:                                          (payload handler)
 *          12: r1 = *(u64 *)(r6 + 40)
 *          13: if r1 == 0 goto +4 <18>
 *          14: call 16 <put>
 */
#ifndef PWCCTL_DISASSEMBLE_H
#define PWCCTL_DISASSEMBLE_H

#include <stddef.h>
#include <stdio.h>
#include "proto/handler_abi.h"

#define DISASSEMBLE_TEXT_MAX 96

/* Writes one instruction; bytes that are no instruction are written as bytes. `place` is its
 * number. Returns how many places it takes: 1 or 2. */
uint32_t disassemble_one(const struct handler_instruction *code, uint32_t place, uint32_t count,
                         char text[DISASSEMBLE_TEXT_MAX]);
/* Prints an image; -EBADMSG: its sizes do not fit its bytes. */
int disassemble_print(const struct handler_image *image, size_t bytes, FILE *to);

#endif
