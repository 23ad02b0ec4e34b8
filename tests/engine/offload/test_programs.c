/*
 * The engine's table of programs: each rule of program.h and engine.h about loading, holding,
 * unloading, the end of a client, and a restart. Thread: one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/offload/program.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/suite.h"

enum { BYTES = 1500, UNITS = 2, MEMORY_UNITS = 256 };

/* An image of these bytes, for the engine, which does not look into images. */
static const struct handler_image *image(uint8_t salt)
{
    static uint64_t words[MEMORY_UNITS * ENGINE_PROGRAM_UNIT / 8];

    memset(words, salt, sizeof(words));
    return (const void *)words;
}

static bool holds_image(const struct engine *e, uint32_t program, uint8_t salt)
{
    return memcmp(program_image(e, program), image(salt), BYTES) == 0;
}

static void check_census(const struct engine *e, uint32_t programs, uint32_t units)
{
    struct peek_census c = peek_census(e);

    CU_ASSERT_EQUAL(c.programs, programs);
    CU_ASSERT_EQUAL(c.program_units, units);
    CU_ASSERT_EQUAL(c.lost, 0);
}

/* Guards that a handle leads to the image that was loaded, until that is unloaded, and only for its
 * client. */
static void load_and_unload(void)
{
    struct bench *b = unbound_bench(false);
    struct engine *e = b->engine;
    int first = engine_program_load(e, 0, image(1), BYTES);
    int second = engine_program_load(e, 0, image(2), BYTES);
    int third;

    CU_ASSERT_FATAL(first >= 0 && second >= 0);
    CU_ASSERT_NOT_EQUAL(first, second);
    CU_ASSERT(holds_image(e, program_of_handle(e, 0, (uint32_t)first), 1));
    CU_ASSERT(holds_image(e, program_of_handle(e, 0, (uint32_t)second), 2));
    CU_ASSERT_EQUAL(program_of_handle(e, 1, (uint32_t)first), NONE);
    check_census(e, 2, 2 * UNITS);

    CU_ASSERT_EQUAL(engine_program_unload(e, 1, (uint32_t)first), -EINVAL);
    CU_ASSERT(engine_program_unload(e, 0, (uint32_t)first) > 0);
    CU_ASSERT_EQUAL(engine_program_unload(e, 0, (uint32_t)first), -EINVAL);
    third = engine_program_load(e, 0, image(3), BYTES); /* has the entry of the first program */
    CU_ASSERT_NOT_EQUAL(third, first);
    CU_ASSERT_EQUAL(program_of_handle(e, 0, (uint32_t)first), NONE);
    CU_ASSERT(holds_image(e, program_of_handle(e, 0, (uint32_t)third), 3));
    CU_ASSERT(holds_image(e, program_of_handle(e, 0, (uint32_t)second), 2));
    check_census(e, 2, 2 * UNITS);
    bench_free(b);
}

static void refused(void)
{
    static const struct {
        uint32_t client, bytes;
    } rows[] = {{1, BYTES}, /* no such client */
                {4, BYTES}, /* the number is past the table */
                {UINT32_MAX, BYTES}, {0, 0}, {0, HANDLER_IMAGE_MAX + 1}, {0, UINT32_MAX}};
    struct bench *b = unbound_bench(false);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        CU_ASSERT_EQUAL(engine_program_load(b->engine, rows[i].client, image(1), rows[i].bytes),
                        -EINVAL);
    CU_ASSERT_EQUAL(engine_program_unload(b->engine, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(engine_program_unload(b->engine, 0, UINT32_MAX), -EINVAL);
    check_census(b->engine, 0, 0);
    bench_free(b);
}

/* Guards that nothing changes when a program finds no entry, or no memory, and that what is
 * unloaded is available again. */
static void full(void)
{
    struct bench *b = unbound_bench(false);
    struct engine *e = b->engine;
    int last = -1, rc, loaded = 0;

    while ((rc = engine_program_load(e, 0, image(1), HANDLER_IMAGE_MAX)) >= 0) {
        last = rc;
        loaded++;
    }
    CU_ASSERT_EQUAL(rc, -ENOSPC);
    CU_ASSERT_EQUAL((uint32_t)loaded,
                    MEMORY_UNITS / (engine_program_room(HANDLER_IMAGE_MAX) / ENGINE_PROGRAM_UNIT));
    CU_ASSERT_EQUAL(peek_census(e).lost, 0);
    CU_ASSERT(engine_program_unload(e, 0, (uint32_t)last) > 0);
    CU_ASSERT(engine_program_load(e, 0, image(1), HANDLER_IMAGE_MAX) >= 0);
    bench_free(b);

    b = unbound_bench(false);
    poke_unused(b->engine, TABLE_PROGRAMS, 1);
    last = engine_program_load(b->engine, 0, image(1), BYTES);
    CU_ASSERT(last >= 0);
    CU_ASSERT_EQUAL(engine_program_load(b->engine, 0, image(1), BYTES), -ENOSPC);
    CU_ASSERT_EQUAL(peek_census(b->engine).program_units, UNITS);
    CU_ASSERT_EQUAL(engine_program_unload(b->engine, 0, (uint32_t)last),
                    UNITS * ENGINE_PROGRAM_UNIT);
    CU_ASSERT(engine_program_load(b->engine, 0, image(1), BYTES) >= 0);
    bench_free(b);
}

static void hold(struct engine *e, uint32_t program, void (*change)(struct engine *, uint32_t))
{
    change(e, program);
    commit(e);
}

static void held(void)
{
    struct bench *b = unbound_bench(false);
    struct engine *e = b->engine;
    uint32_t handle = (uint32_t)engine_program_load(e, 0, image(1), BYTES);
    uint32_t program = program_of_handle(e, 0, handle);

    CU_ASSERT_NOT_EQUAL_FATAL(program, NONE);
    hold(e, program, program_hold);
    hold(e, program, program_hold);
    CU_ASSERT_EQUAL(engine_program_unload(e, 0, handle), -EBUSY);
    hold(e, program, program_release);
    CU_ASSERT_EQUAL(engine_program_unload(e, 0, handle), -EBUSY);
    hold(e, program, program_release);
    CU_ASSERT(engine_program_unload(e, 0, handle) > 0);
    check_census(e, 0, 0);
    bench_free(b);
}

/* Guards that a client's programs go with it, and that the client stays as long as one of them is
 * held. */
static void client_ends(void)
{
    struct bench *b = unbound_bench(false);
    struct engine *e = b->engine;
    uint32_t kept = (uint32_t)engine_program_load(e, 0, image(1), BYTES);
    uint32_t program = program_of_handle(e, 0, kept);

    CU_ASSERT_NOT_EQUAL_FATAL(program, NONE);
    CU_ASSERT(engine_program_load(e, 0, image(2), BYTES) >= 0);
    hold(e, program, program_hold);
    engine_client_close(e, 0);
    bench_steps(b, 20);
    CU_ASSERT_EQUAL(peek_census(e).clients, 1);
    check_census(e, 1, UNITS);
    CU_ASSERT(holds_image(e, program, 1));
    hold(e, program, program_release);
    poke_sweep(e);
    bench_steps(b, 20);
    CU_ASSERT_EQUAL(peek_census(e).clients, 0);
    check_census(e, 0, 0);
    bench_free(b);
}

/* Guards that programs and their holds survive the process, that a hold that was not committed does
 * not, and that a new image gets no room of an old one. */
static void restart(void)
{
    struct bench *b = unbound_bench(false);
    struct engine *e = b->engine;
    uint32_t first = (uint32_t)engine_program_load(e, 0, image(1), BYTES);
    uint32_t second = (uint32_t)engine_program_load(e, 0, image(2), BYTES);
    uint32_t third;

    CU_ASSERT(engine_program_unload(e, 0, first) > 0);
    hold(e, program_of_handle(e, 0, second), program_hold);
    program_hold(e, program_of_handle(e, 0, second)); /* the process dies before the commit */
    CU_ASSERT_FATAL(bench_reopen(b));
    e = b->engine;
    check_census(e, 1, UNITS);
    CU_ASSERT_EQUAL(program_of_handle(e, 0, first), NONE);
    CU_ASSERT_FATAL(program_of_handle(e, 0, second) != NONE);
    third = (uint32_t)engine_program_load(e, 0, image(3), 30 * BYTES);
    CU_ASSERT_FATAL((int)third >= 0);
    CU_ASSERT(holds_image(e, program_of_handle(e, 0, second), 2));
    CU_ASSERT_EQUAL(engine_program_unload(e, 0, second), -EBUSY);
    hold(e, program_of_handle(e, 0, second), program_release);
    CU_ASSERT(engine_program_unload(e, 0, second) > 0);
    CU_ASSERT(engine_program_unload(e, 0, third) > 0);
    check_census(e, 0, 0);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"load and unload", load_and_unload},
                           {"what is refused", refused},
                           {"a full table, and full memory", full},
                           {"a program that is held", held},
                           {"the end of a client", client_ends},
                           {"a restart", restart},
                           CU_TEST_INFO_NULL};

    return suite_run("programs", tests);
}
