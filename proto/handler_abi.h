/*
 * Handlers: programs of clients that the daemon runs on packets. This file has the part of the
 * machine that a program sees, and the image in which a program is sent to the daemon.
 * pwc/handler.h has the same numbers for programs; clientlib/handlers/program.c compares the two.
 *
 * An address is a window and an offset, never a pointer:
 *
 *     63     61 60                                            0
 *     +--------+-----------------------------------------------+
 *     | window |                    offset                     |
 *     +--------+-----------------------------------------------+
 *
 * An image, which the library makes and the daemon checks (daemon/handlers/image.h):
 *
 *     +----------------------+ 0
 *     | struct handler_image |
 *     +----------------------+ 32
 *     | a stop: 8 bytes of 0 |
 *     | instructions         |  8 bytes each
 *     | a stop: 8 bytes of 0 |
 *     +----------------------+
 *     | constants            |  padded to 8 bytes
 *     +----------------------+
 *     | functions            |  32 bytes each: struct handler_function
 *     +----------------------+
 *
 * The daemon does not use the functions' names: they are for people who look for the place of a
 * fault. The longest image fits one request of the control protocol.
 *
 * A stop ends the interpreter: so there is one before the first and one after the last instruction.
 */
#ifndef PWC_PROTO_HANDLER_ABI_H
#define PWC_PROTO_HANDLER_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/handler_code.h"
#include "proto/word_abi.h"

/* ---- addresses ------------------------------------------------------------------------------- */

enum handler_window {
    HANDLER_NOTHING = 0,   /* every access faults */
    HANDLER_STACK = 1,     /* HANDLER_FRAME_BYTES for each call */
    HANDLER_CONTEXT = 2,   /* struct handler_packet, read only */
    HANDLER_PACKET = 3,    /* header bytes and data, read only */
    HANDLER_STATE = 4,     /* memory of the client */
    HANDLER_HOST = 5,      /* the offload's region */
    HANDLER_SCRATCH = 6,   /* a second region of the client, or none */
    HANDLER_CONSTANTS = 7, /* of the program, read only */
    HANDLER_WINDOWS = 8,
};
#define HANDLER_WINDOW_SHIFT 61
#define HANDLER_OFFSET_MASK  ((UINT64_C(1) << HANDLER_WINDOW_SHIFT) - 1)

static inline uint64_t handler_address(enum handler_window window, uint64_t offset)
{
    return (uint64_t)window << HANDLER_WINDOW_SHIFT | offset;
}

/* ---- limits ---------------------------------------------------------------------------------- */

enum {
    HANDLER_FRAME_BYTES = 512,
    HANDLER_FRAMES = 8, /* the handler itself and the calls in it */
    HANDLER_STACK_BYTES = HANDLER_FRAME_BYTES * HANDLER_FRAMES,
    HANDLER_INSTRUCTIONS_MAX = 4096,
    HANDLER_CONSTANTS_MAX = 28672,
    HANDLER_FUNCTIONS_MAX = 64,
    HANDLER_NAME_MAX = 28,       /* bytes of a function's name, terminator included */
    HANDLER_STATE_MAX = 1 << 20, /* bytes */
    HANDLER_COUNTERS = 8,
    HANDLER_ARGUMENTS_MAX = 16, /* of a message */
    HANDLER_INDICES = 256,      /* of messages */
};
#define HANDLER_NONE UINT32_MAX

/* ---- the context: the first argument of each handler ------------------------------------------
 */

enum handler_kind {
    HANDLER_PUT = 1,
    HANDLER_MESSAGE = 2,
    HANDLER_GOT = 3,      /* a get of a handler has completed */
    HANDLER_DEFERRED = 4, /* reserved */
    HANDLER_OBSERVED = 5, /* a peer has read from the region */
};

enum handler_flag {
    HANDLER_FIRST = 1 << 0,  /* packet of the message */
    HANDLER_LAST = 1 << 1,   /* packet of the message */
    HANDLER_PLACED = 1 << 2, /* the data is in the region already */
    HANDLER_RERUN = 1 << 3,  /* the handler has run on this packet before, and returned AGAIN; or it
                                may have run when the daemon died */
    HANDLER_CUT = 1 << 4,    /* the message can't end */
    HANDLER_FAILED = 1 << 5, /* a handler has returned FAIL, or the get has failed */
};

/*
 *      0 kind    4 flags     8 source   12 header_length
 *     16 peer               24 id
 *     32 header             40 data
 *     48 length             56 offset
 *     64 total              72 place
 *     80 dropped            88 0
 */
struct handler_packet {
    uint32_t kind, flags;
    uint32_t source;        /* index among the offload's targets, or HANDLER_NONE */
    uint32_t header_length; /* bytes at `header`; in the first packet only */
    uint64_t peer;          /* rank and context of the origin */
    uint64_t id;            /* completion id by value; index of a message; id of a handler's get */
    uint64_t header;        /* address of the completion id's bytes, or the message's arguments */
    uint64_t data;          /* address of this packet's bytes */
    uint64_t length;        /* bytes at `data` */
    uint64_t offset;        /* of this packet in its message */
    uint64_t total;         /* bytes of the message */
    uint64_t place;         /* of this packet in the region */
    uint64_t dropped;       /* bytes of the message dropped so far */
    uint64_t zero;
};
static_assert(sizeof(struct handler_packet) == 96 &&
                  offsetof(struct handler_packet, header) == 32 &&
                  offsetof(struct handler_packet, dropped) == 80,
              "programs are compiled against this");

/* ---- the handlers, and their returns ----------------------------------------------------------
 */

enum handler_stage {
    HANDLER_HEADER = 0,
    HANDLER_PAYLOAD = 1,
    HANDLER_COMPLETION = 2,
    HANDLER_STAGES = 3,
};

enum handler_return {
    HANDLER_SUCCESS = 0,
    HANDLER_DROP = 1,
    HANDLER_PROCESS_DATA = 2,
    HANDLER_PROCEED = 3,
    HANDLER_DEFER = 4,
    HANDLER_FAIL = 5,
    HANDLER_AGAIN = 6,
    HANDLER_RETURN_MASK = 15,
    HANDLER_PENDING = 16, /* a bit added to a value above: no event when the message ends */
};

/* ---- helpers: numbers are never used again for something else ----------------------------------
 */

enum handler_helper {
    HELPER_COPY = 1,
    HELPER_ACCUMULATE = 2,
    HELPER_SCATTER = 3,
    HELPER_GATHER = 4,
    HELPER_COMPARE = 5,
    HELPER_FIND = 6,
    HELPER_HASH = 7,
    HELPER_CAS = 8,
    HELPER_FETCH_ADD = 9,
    HELPER_F64 = 10,
    HELPER_F32 = 11,
    HELPER_PUT = 16,
    HELPER_PUT_HOST = 17,
    HELPER_GET = 18,
    HELPER_ATOMIC = 19,
    HELPER_MESSAGE = 20,
    HELPER_REPLY = 21,
    HELPER_EVENT = 22,
    HELPER_TARGET_OF = 32,
    HELPER_COUNTER = 33,
    HELPER_COUNTER_ADD = 34,
    HELPER_COUNTER_SET = 35,
    HELPER_NOW = 36,
    HELPER_TRACE = 37,
    HELPERS = 64,
};

/* Which helpers there are, a bit for each number. */
#define HELPERS_KNOWN                                                                              \
    (((UINT64_C(1) << 11) - 1) << HELPER_COPY | ((UINT64_C(1) << 7) - 1) << HELPER_PUT |           \
     ((UINT64_C(1) << 6) - 1) << HELPER_TARGET_OF)

/* First argument of f64 and f32. */
enum handler_number_op {
    NUMBER_ADD = 0,
    NUMBER_SUB = 1,
    NUMBER_MUL = 2,
    NUMBER_DIV = 3,
    NUMBER_MIN = 4,
    NUMBER_MAX = 5,
    NUMBER_SQRT = 6,        /* the square root of a */
    NUMBER_LESS = 7,        /* 1 where a < b, else 0 */
    NUMBER_EQUAL = 8,       /* 1 where a == b, else 0 */
    NUMBER_FROM_SIGNED = 9, /* a is an integer of 64 bits */
    NUMBER_FROM_UNSIGNED = 10,
    NUMBER_TO_SIGNED = 11, /* rounds towards 0; out of range: the nearest integer; a NaN gives 0 */
    NUMBER_TO_UNSIGNED = 12,
    NUMBER_CONVERT = 13, /* f64: a is an F32; f32: a is an F64 */
    NUMBER_OPS = 14,
};

/* Blocks of a window, `stride` bytes from start to start. `skip` bytes, counted along the blocks,
 * come before the first byte to use (where a packet begins). */
struct handler_vector {
    uint64_t start;
    uint64_t block;
    uint64_t stride;
    uint64_t skip;
};
static_assert(sizeof(struct handler_vector) == 32, "programs are compiled against this");

/* The helper hash: over words of 64 bits, the last word filled up with 0. Not for secrets. */
static inline uint64_t handler_hash_begin(uint64_t bytes)
{
    return bytes ^ UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t handler_hash_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return sum ^ sum >> 32;
}

static inline uint64_t handler_hash_end(uint64_t sum)
{
    sum *= UINT64_C(0xd6e8feb86659fd93);
    return sum ^ sum >> 29;
}

/* ---- the image ------------------------------------------------------------------------------- */

#define HANDLER_IMAGE_MAGIC 0x31574850u /* "PHW1" */

struct handler_image {
    uint32_t magic;
    uint32_t instructions;          /* 1 to HANDLER_INSTRUCTIONS_MAX */
    uint32_t constants;             /* bytes, 0 to HANDLER_CONSTANTS_MAX */
    uint32_t entry[HANDLER_STAGES]; /* the handlers' first instructions, or HANDLER_NONE */
    uint32_t functions;             /* functions with a name, 0 to HANDLER_FUNCTIONS_MAX */
    uint32_t zero;
};
static_assert(sizeof(struct handler_image) == 32, "behind it stand instructions");

/* A function's name. Entries are in the order of places. */
struct handler_function {
    uint32_t place;              /* its first instruction */
    char name[HANDLER_NAME_MAX]; /* letters, digits and any of "_.$"; the rest is 0 */
};
static_assert(sizeof(struct handler_function) == 32, "a multiple of 8, as all of an image");

/* The stop before an image's instructions. Instruction i is at index i + 1 from there. */
static inline const struct handler_instruction *image_code(const struct handler_image *image)
{
    return (const struct handler_instruction *)(image + 1);
}

static inline uint64_t image_constants_at(uint32_t instructions)
{
    return sizeof(struct handler_image) +
           ((uint64_t)instructions + 2) * sizeof(struct handler_instruction);
}

static inline uint64_t image_functions_at(uint32_t instructions, uint32_t constants)
{
    return image_constants_at(instructions) + (((uint64_t)constants + 7) & ~UINT64_C(7));
}

static inline uint64_t image_bytes(uint32_t instructions, uint32_t constants, uint32_t functions)
{
    return image_functions_at(instructions, constants) +
           (uint64_t)functions * sizeof(struct handler_function);
}

static inline const struct handler_function *image_functions(const struct handler_image *image)
{
    return (const void *)((const uint8_t *)image +
                          image_functions_at(image->instructions, image->constants));
}

/* Bytes of the longest image. */
#define HANDLER_IMAGE_MAX                                                                          \
    ((uint32_t)sizeof(struct handler_image) +                                                      \
     (HANDLER_INSTRUCTIONS_MAX + 2) * (uint32_t)sizeof(struct handler_instruction) +               \
     HANDLER_CONSTANTS_MAX + HANDLER_FUNCTIONS_MAX * (uint32_t)sizeof(struct handler_function))

#endif
