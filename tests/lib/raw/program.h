/*
 * Programs of handlers, and requests about them, of a client without a library. Thread: one at a
 * time for each socket.
 */
#ifndef PWC_TESTS_LIB_RAW_PROGRAM_H
#define PWC_TESTS_LIB_RAW_PROGRAM_H

#include <stddef.h>
#include <stdint.h>
#include "proto/handler_abi.h"
#include "tests/lib/raw/ask.h"

/* Room for an image of any length. */
struct raw_image {
    union {
        struct handler_image head;
        uint64_t words[HANDLER_IMAGE_MAX / 8 + 8];
    };
    size_t size;
};

/* Builds a program whose payload handler has this code, and whose function has a name. */
void raw_image(struct raw_image *to, const struct handler_instruction *code, uint32_t count,
               uint32_t constants);
/* Builds a program that returns success at once. */
void raw_image_plain(struct raw_image *to, uint32_t constants);

/* These return the status; out->handle is the program that was loaded. */
int ask_program_load(int socket, const void *image, size_t size, struct answer *out);
int ask_program_check(int socket, const void *image, size_t size, struct answer *out);
int ask_program_unload(int socket, uint32_t program, struct answer *out);
/* ask_offload creates an offload of the program at an index of messages, without memory and
 * targets; out->handle is the offload. ask_offload_destroy ends it. */
int ask_offload(int socket, uint32_t session, uint32_t program, uint32_t index, struct answer *out);
int ask_offload_destroy(int socket, uint32_t session, uint32_t offload);
/* Reads the image of a program. Returns its bytes, or a negative errno. `out` may be NULL. */
int ask_program_read(int socket, uint32_t engine, uint32_t program, struct raw_image *to,
                     struct answer *out);

#endif
