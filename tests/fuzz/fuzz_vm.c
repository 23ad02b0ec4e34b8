/*
 * Fuzzes the interpreter: programs that the check accepts are made out of any bytes
 * (tests/handlers/repair.h), and run with windows between guard pages. Memory that a program may
 * only read must not change.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/handlers/repair.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct handler_image *image = (const struct handler_image *)b->image;
    struct handler_packet context;
    uint8_t packet[BENCH_PACKET];
    struct image_error error;

    bench_reset(b);
    if (!repair_program(b, data, size))
        return 0;
    if (image_check(image, image_bytes(image->instructions, 0, 0), &error) != 0)
        abort();
    memcpy(packet, b->packet, BENCH_PACKET);
    context = b->context;
    b->run.units = 2000;
    bench_run_image(b, HANDLER_PAYLOAD);
    if (b->run.fault == RUN_BAD_INSTRUCTION || b->run.used > b->run.units ||
        memcmp(packet, b->packet, BENCH_PACKET) != 0 ||
        memcmp(&context, &b->context, sizeof(context)) != 0)
        abort();
    return 0;
}
