/*
 * Fuzzes the daemon's check of images of programs. An image that the check accepts must run,
 * between guard pages, without an instruction that the interpreter does not know.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/handlers/bench.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bench *b;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    b = bench_new();
    return 0;
}

/* For most inputs, makes the head right for an image of this size. */
static void repair_head(size_t size)
{
    struct handler_image *image = (struct handler_image *)b->image;
    uint64_t words = size / 8;

    if (size < image_bytes(1, 0, 0) || image->magic % 8 == 0)
        return;
    image->magic = HANDLER_IMAGE_MAGIC;
    image->instructions = (uint32_t)(words - sizeof(*image) / 8 - 2);
    image->constants = 0;
    image->entry[HANDLER_PAYLOAD] = 0;
    image->entry[HANDLER_HEADER] = image->entry[HANDLER_COMPLETION] = HANDLER_NONE;
    image->functions = image->zero = 0;
    memset(image + 1, 0, 8);
    memset(b->image + size / 8 * 8 - 8, 0, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct handler_image *image = (const struct handler_image *)b->image;
    struct image_error error;

    if (size > sizeof(b->image) || size < sizeof(*image))
        return 0;
    bench_reset(b);
    memset(b->image, 0, size);
    memcpy(b->image, data, size);
    repair_head(size);
    if (image_check(image, image->magic == HANDLER_IMAGE_MAGIC ? size / 8 * 8 : size, &error) != 0)
        return 0;
    b->run.units = 2000;
    for (int stage = 0; stage < HANDLER_STAGES; stage++) {
        if (image->entry[stage] == HANDLER_NONE)
            continue;
        bench_run_image(b, (enum handler_stage)stage);
        if (b->run.fault == RUN_BAD_INSTRUCTION || b->run.used > b->run.units)
            abort();
    }
    return 0;
}
