/*
 * Hostile programs between guard pages. First, random programs that the check accepts, until these
 * have used the given number of units, nearly all of them instructions. Then, instructions with
 * each opcode and random bytes in all other fields, which nothing has checked, as the processor may
 * run them by a wrong guess. The test fails when a program touches a byte outside its windows, or
 * writes to a byte that it may only read.
 *
 *     hostile_programs [UNITS [SEED]]
 *
 * Thread: one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/handlers/repair.h"

enum { PROGRAM = 2 * REPAIR_SEEDS + 8 * 60 };

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void draw_bytes(uint8_t *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)draw();
}

static uint64_t sum_of(const uint8_t *at, size_t size)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + at[i];
    return sum;
}

static int fail(const char *what, uint64_t seed, uint64_t program)
{
    fprintf(stderr, "hostile_programs: %s: seed %llu, program %llu\n", what,
            (unsigned long long)seed, (unsigned long long)program);
    return 1;
}

/* Runs programs with each opcode and random bytes in all other fields, which nothing has checked.
 */
static int run_unchecked(struct bench *b, unsigned rounds, uint64_t seed)
{
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned opcode = 0; opcode < 256; opcode++) {
            struct handler_instruction code[4];

            draw_bytes((uint8_t *)code, sizeof(code));
            code[draw() % 3].opcode = (uint8_t)opcode;
            bench_program(b, HANDLER_PAYLOAD, code, (uint32_t)(1 + draw() % COUNT(code)));
            b->run.units = 600;
            vm_run(&b->vm, &b->run);
            if (b->run.used > b->run.units + RUN_SPAN)
                return fail("too many units", seed, round);
        }
    return 0;
}

static int run_accepted(struct bench *b, uint64_t units, uint64_t seed)
{
    uint64_t done = 0, programs = 0, ended = 0;
    struct image_error error;
    uint8_t bytes[PROGRAM];
    uint64_t packet = sum_of(b->packet, BENCH_PACKET);
    struct handler_packet context = b->context;

    while (done < units) {
        const struct handler_image *image = (const struct handler_image *)b->image;

        draw_bytes(bytes, sizeof(bytes));
        repair_program(b, bytes, 2 * REPAIR_SEEDS + 8 * (1 + draw() % 60));
        if (image_check(image, image_bytes(image->instructions, 0, 0), &error) != 0)
            return fail(error.reason, seed, programs);
        b->sent = 0;
        b->run.units = draw() % 16 == 0 ? 10000 : 300; /* mostly short runs, of many programs */
        vm_run(&b->vm, &b->run);
        if (b->run.used > b->run.units || b->run.fault == RUN_BAD_INSTRUCTION)
            return fail("units or instruction", seed, programs);
        ended += b->run.fault == RUN_NO_FAULT;
        done += b->run.used - RUN_BEGIN;
        programs++;
        if (programs % 1024 == 0 && (sum_of(b->packet, BENCH_PACKET) != packet ||
                                     memcmp(&context, &b->context, sizeof(context)) != 0))
            return fail("what is read only has changed", seed, programs);
    }
    printf("%llu units of %llu programs, %llu without a fault, seed %llu\n",
           (unsigned long long)done, (unsigned long long)programs, (unsigned long long)ended,
           (unsigned long long)seed);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t units = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    struct bench *b = bench_new();

    state = seed;
    if (run_unchecked(b, units > 100000000 ? 20000 : 500, seed) != 0)
        return 1;
    bench_reset(b);
    return run_accepted(b, units, seed);
}
