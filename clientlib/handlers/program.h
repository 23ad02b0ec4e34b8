/*
 * Makes programs of handlers from ELF: turns an object file that clang has made into an image for
 * the daemon (proto/handler_abi.h).
 *
 *     .text and other code --> instructions, one section after the other
 *     .rodata and its like --> constants, joined; their addresses are numbers of window 7
 *     calls between functions, addresses of constants --> numbers in instructions
 *
 * The file may be any bytes: what is not understood is refused with a text. The instructions are
 * not checked here: the daemon does that.
 *
 * Thread: any. Never blocks; allocates.
 */
#ifndef PWC_CLIENTLIB_PROGRAM_H
#define PWC_CLIENTLIB_PROGRAM_H

#include <stddef.h>
#include "proto/handler_abi.h"

/* The functions' names, NULL for none; at least one is in the file. */
struct program_names {
    const char *handler[HANDLER_STAGES];
};

/* Why a file is refused, for the user. */
struct program_error {
    char text[200];
};

/* 0 and an image that the caller frees, or -ENOEXEC with the error's text, or -ENOMEM. */
int image_of_elf(const void *elf, size_t size, const struct program_names *names,
                 struct handler_image **image, size_t *bytes, struct program_error *error);

#endif
