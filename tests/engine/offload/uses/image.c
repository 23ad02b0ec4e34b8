/* Images of the examples, whose handlers count their runs (uses.h). Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <stdlib.h>
#include <string.h>
#include "clientlib/handlers/program.h"
#include "daemon/handlers/image.h"
#include "tests/engine/offload/assemble.h"

#define ELF_MAX (1u << 18)

enum { PROLOGUE = 8 }; /* instructions before a handler */

/* Adds 1 to the stage's counter, then jumps to the handler, with the handler's arguments. */
static void prologue(struct handler_instruction *code, uint32_t place, uint32_t stage,
                     uint32_t entry)
{
    const struct handler_instruction count[PROLOGUE] = {
        ALU_X(CODE_MOV, 6, 1),        ALU_X(CODE_MOV, 7, 2),
        ALU(CODE_MOV, 1, (int)stage), ALU(CODE_MOV, 2, 1),
        HELPER(HELPER_COUNTER_ADD),   ALU_X(CODE_MOV, 1, 6),
        ALU_X(CODE_MOV, 2, 7),        op(CODE_JMP, 0, 0, (int)entry - (int)(place + PROLOGUE), 0),
    };

    memcpy(code + place, count, sizeof(count));
}

/* A copy of the image with the prologues after its own instructions. */
static struct handler_image *counting(const struct handler_image *from, size_t *bytes)
{
    uint64_t tail = image_constants_at(from->instructions), rest = *bytes - tail;
    uint32_t place = from->instructions, handlers = 0;
    struct handler_image *image;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
        handlers += from->entry[stage] != HANDLER_NONE;
    *bytes = image_constants_at(place + handlers * PROLOGUE) + rest;
    image = calloc(1, (*bytes + 63) / 64 * 64);
    if (!image)
        return NULL;
    memcpy(image, from, tail);
    image->instructions = place + handlers * PROLOGUE;
    memcpy((uint8_t *)image + *bytes - rest, (const uint8_t *)from + tail, rest);
    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        if (from->entry[stage] == HANDLER_NONE)
            continue;
        /* The first instruction of an image is a stop. */
        prologue((struct handler_instruction *)(void *)(image + 1) + 1, place, stage,
                 from->entry[stage]);
        image->entry[stage] = place;
        place += PROLOGUE;
    }
    return image;
}

struct handler_image *uses_image(const char *path, size_t *bytes)
{
    static const struct program_names names = {{"header", "payload", "completion"}};
    static uint8_t elf[ELF_MAX];
    FILE *file = fopen(path, "rb");
    struct handler_image *plain, *image;
    struct program_error error;
    struct image_error wrong;
    size_t size;

    if (!file) {
        perror(path);
        return NULL;
    }
    size = fread(elf, 1, sizeof(elf), file);
    (void)fclose(file);
    if (image_of_elf(elf, size, &names, &plain, bytes, &error) != 0) {
        printf("%s: %s\n", path, error.text);
        return NULL;
    }
    image = counting(plain, bytes);
    free(plain);
    if (image && image_check(image, *bytes, &wrong) != 0) {
        printf("%s: instruction %u: %s\n", path, wrong.place, wrong.reason);
        free(image);
        return NULL;
    }
    return image;
}
