/* The handlers of a scene, in instructions (scene_image.h). Thread: one. */
#include "tests/engine/offload/scene_image.h"

#include <string.h>
#include "daemon/handlers/image.h"
#include "daemon/handlers/sends.h"
#include "tests/engine/offload/assemble.h"
#include "tests/engine/offload/scene.h"

/* All puts of the program have one form: 8 bytes to `target`, at the place of the message's number;
 * the id is number * 4 + stage. */
#define PUT_PLACE ALU(CODE_MOV, 1, (int32_t)target), ALU_X(CODE_MOV, 2, 7), ALU(CODE_LSH, 2, 3)
#define PUT_ID                                                                                     \
    ALU(CODE_MOV, 4, 8), ALU_X(CODE_MOV, 5, 7), ALU(CODE_LSH, 5, 2), ALU_X(CODE_ADD, 5, 8)

/* Registers: 6 the context, 7 the message's number, 8 the stage, 9 the handler's plan. All sends go
 * to one target. */
static uint32_t assemble(struct handler_instruction *code, uint32_t target)
{
    const struct handler_instruction program[] = {
        ALU(CODE_MOV, 8, 0),
        op(CODE_JMP, 0, 0, 3, 0), /* the three entries */
        ALU(CODE_MOV, 8, 1),
        op(CODE_JMP, 0, 0, 1, 0),
        ALU(CODE_MOV, 8, 2),
        ALU_X(CODE_MOV, 6, 1),
        LOAD32(2, 6, 0),
        op(CODE_JMP | CODE_JNE, 2, 0, 29, HANDLER_GOT),
        /* a get that has completed: count it */
        LOAD(9, 6, 24),
        ALU_X(CODE_MOV, 7, 9),
        ALU(CODE_RSH, 7, 32),
        ALU(CODE_MOV, 8, SCENE_GOT),
        ALU(CODE_MOV, 3, 1),
        LOAD32(2, 6, 4),
        UNLESS_BITS(2, HANDLER_RERUN, 1),
        ALU(CODE_LSH, 3, 16),
        UNLESS_BITS(2, HANDLER_FAILED, 3),
        NUMBER(4, UINT64_C(1) << 32),
        ALU_X(CODE_ADD, 3, 4),
        ALU_X(CODE_MOV, 1, 7),
        ALU(CODE_LSH, 1, 3),
        NUMBER(4, handler_address(HANDLER_HOST, 8 * GOTS_AT)),
        ALU_X(CODE_ADD, 1, 4),
        LOAD(4, 1, 0),
        ALU_X(CODE_ADD, 4, 3),
        STORE(1, 0, 4),
        UNLESS_BITS(9, SCENE_LOOP, 3),
        ALU(CODE_MOV, 1, 4900),
        ALU(CODE_SUB, 1, 1),
        op(CODE_JMP | CODE_JNE, 1, 0, -2, 0),
        ALU(CODE_AND, 9, 65535),
        op(CODE_JMP, 0, 0, 67, 0), /* to the sends */
        op(CODE_JMP | CODE_JEQ, 2, 0, 24, HANDLER_PUT),
        op(CODE_JMP | CODE_JEQ, 2, 0, 23, HANDLER_OBSERVED),
        LOAD(9, 6, 32),
        LOAD32(2, 6, 4),
        UNLESS_BITS(2, HANDLER_PLACED, 12),
        /* a Long: its arguments are kept, or those that were kept are read */
        NUMBER(3, handler_address(HANDLER_HOST, 8 * LAST_AT)),
        LOAD32(1, 6, 12),
        op(CODE_JMP | CODE_JNE, 1, 0, 1, 0),
        ALU_X(CODE_MOV, 9, 3),
        op(CODE_JMP | CODE_JNE, 8, 0, 6, HANDLER_HEADER),
        LOAD(1, 9, 0),
        STORE(3, 0, 1),
        LOAD(1, 9, 8),
        STORE(3, 8, 1),
        LOAD(1, 9, 16),
        STORE(3, 16, 1),
        LOAD(7, 9, 0),
        /* turns of a loop, of 2 units */
        LOAD(1, 9, 16),
        op(CODE_JMP | CODE_JEQ, 1, 0, 2, 0),
        ALU(CODE_SUB, 1, 1),
        op(CODE_JMP | CODE_JNE, 1, 0, -2, 0),
        LOAD(9, 9, 8),
        op(CODE_JMP, 0, 0, 5, 0),
        LOAD(9, 6, 24),
        ALU_X(CODE_MOV, 7, 9),
        ALU(CODE_RSH, 7, 48),
        ALU(CODE_LSH, 9, 16),
        ALU(CODE_RSH, 9, 16),
        ALU_X(CODE_MOV, 1, 8),
        ALU(CODE_LSH, 1, 4),
        ALU_X(CODE_RSH, 9, 1),
        UNLESS_BITS(9, SCENE_LOOP, 3),
        ALU(CODE_MOV, 1, 4900),
        ALU(CODE_SUB, 1, 1),
        op(CODE_JMP | CODE_JNE, 1, 0, -2, 0),
        /* runs or reruns */
        ALU_X(CODE_MOV, 1, 7),
        ALU(CODE_MUL, 1, HANDLER_STAGES),
        ALU_X(CODE_ADD, 1, 8),
        LOAD32(2, 6, 4),
        UNLESS_BITS(2, HANDLER_RERUN, 1),
        ALU(CODE_ADD, 1, RERUNS_AT),
        ALU(CODE_LSH, 1, 3),
        NUMBER(2, handler_address(HANDLER_HOST, 0)),
        ALU_X(CODE_ADD, 1, 2),
        LOAD(2, 1, 0),
        ALU(CODE_ADD, 2, 1),
        STORE(1, 0, 2),
        /* the bytes of a packet */
        op(CODE_JMP | CODE_JNE, 8, 0, 14, HANDLER_PAYLOAD),
        LOAD32(2, 6, 4),
        op(CODE_JMP | CODE_JSET, 2, 0, 12, HANDLER_RERUN),
        LOAD(2, 6, 48),
        LOAD(3, 6, 56),
        ALU(CODE_LSH, 3, 32),
        ALU_X(CODE_ADD, 2, 3),
        ALU_X(CODE_MOV, 1, 7),
        ALU(CODE_LSH, 1, 3),
        NUMBER(3, handler_address(HANDLER_HOST, 8 * BYTES_AT)),
        ALU_X(CODE_ADD, 1, 3),
        LOAD(3, 1, 0),
        ALU_X(CODE_ADD, 3, 2),
        STORE(1, 0, 3),
        /* a put of the number, with number * 4 + stage as its id */
        UNLESS_BITS(9, SCENE_PUT, 12),
        PUT_PLACE,
        ALU_X(CODE_MOV, 3, 6),
        PUT_ID,
        HELPER(HELPER_PUT),
        OR_AGAIN,
        /* a put of the count of runs, whose id has another bit */
        UNLESS_BITS(9, SCENE_PUT_HOST, 16),
        PUT_PLACE,
        ALU_X(CODE_MOV, 3, 7),
        ALU(CODE_MUL, 3, HANDLER_STAGES),
        ALU_X(CODE_ADD, 3, 8),
        ALU(CODE_LSH, 3, 3),
        PUT_ID,
        ALU(CODE_OR, 5, HOST_PUT),
        HELPER(HELPER_PUT_HOST),
        OR_AGAIN,
        /* an add without a remote event */
        UNLESS_BITS(9, SCENE_ADD, 10),
        NUMBER(1, (uint64_t)SEND_QUIET << 32 | target),
        ALU(CODE_MOV, 2, SCENE_TALLY),
        ALU(CODE_MOV, 3, WORD_ADD | WORD_U64 << 8),
        ALU(CODE_MOV, 4, 1),
        ALU(CODE_MOV, 5, 0),
        HELPER(HELPER_ATOMIC),
        OR_AGAIN,
        /* a message with the number */
        UNLESS_BITS(9, SCENE_MESSAGE, 10),
        NUMBER(1, (uint64_t)SCENE_TARGET_INDEX << 32 | target),
        LOAD(2, 6, 32),
        ALU(CODE_MOV, 3, 1),
        ALU(CODE_MOV, 4, 0),
        ALU(CODE_MOV, 5, 0),
        HELPER(HELPER_MESSAGE),
        OR_AGAIN,
        /* a reply with the number */
        UNLESS_BITS(9, SCENE_REPLY, 8),
        LOAD(1, 6, 32),
        ALU(CODE_MOV, 2, 1),
        ALU(CODE_MOV, 3, 0),
        ALU(CODE_MOV, 4, 0),
        HELPER(HELPER_REPLY),
        OR_AGAIN,
        /* a get of the number's word, with the plan of its own run */
        UNLESS_BITS(9, SCENE_GET, 22),
        ALU(CODE_MOV, 1, (int32_t)target),
        ALU_X(CODE_MOV, 2, 7),
        ALU(CODE_LSH, 2, 3),
        ALU_X(CODE_MOV, 3, 2),
        ALU(CODE_ADD, 2, SCENE_SOURCE),
        ALU(CODE_ADD, 3, SCENE_GOT_PLACE),
        ALU(CODE_MOV, 4, 8),
        ALU_X(CODE_MOV, 5, 9),
        ALU(CODE_MOV, 0, SCENE_GOT),
        ALU_X(CODE_SUB, 0, 8),
        ALU(CODE_LSH, 0, 4),
        ALU_X(CODE_RSH, 5, 0),
        ALU_X(CODE_MOV, 0, 7),
        ALU(CODE_LSH, 0, 32),
        ALU_X(CODE_OR, 5, 0),
        NUMBER(0, GOT),
        ALU_X(CODE_OR, 5, 0),
        HELPER(HELPER_GET),
        OR_AGAIN,
        /* an event: number, stage */
        UNLESS_BITS(9, SCENE_EVENT, 6),
        ALU_X(CODE_MOV, 1, 7),
        ALU_X(CODE_MOV, 2, 8),
        HELPER(HELPER_EVENT),
        OR_AGAIN,
        ALU_X(CODE_MOV, 0, 9),
        ALU(CODE_AND, 0, 255),
        EXIT,
    };

    memcpy(code, program, sizeof(program));
    return sizeof(program) / sizeof(program[0]);
}

uint32_t scene_image(uint64_t *words, uint32_t handlers, uint32_t target)
{
    static const uint32_t entries[HANDLER_STAGES] = {0, 2, 4};
    struct handler_image *image = (struct handler_image *)(void *)words;
    uint32_t count = assemble((struct handler_instruction *)(void *)(words + 5), target);

    *image = (struct handler_image){.magic = HANDLER_IMAGE_MAGIC, .instructions = count};
    for (uint32_t i = 0; i < HANDLER_STAGES; i++)
        image->entry[i] = handlers >> i & 1 ? entries[i] : HANDLER_NONE;
    return (uint32_t)image_bytes(count, 0, 0);
}
