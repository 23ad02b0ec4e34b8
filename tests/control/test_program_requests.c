/*
 * Requests for programs of handlers, of clients without a library: their answers, which images are
 * refused and why, what stays loaded, and who sees it. Quotas are tested in test_quota, users in
 * test_policy.
 *
 *     test_program_requests PWCD
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/count.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/program.h"
#include "tests/suite.h"

#define JOB "programs"
#define OP(op, regs)                                                                               \
    {                                                                                              \
        .opcode = (op), .registers = (regs)                                                        \
    }
#define EXIT OP(CODE_DO_EXIT, 0)

static const char *program;
static struct daemon d;
static struct raw_image image, back;

static void start(const char *key, const char *value)
{
    const char *arguments[] = {key, value, NULL};

    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, arguments), 0);
}

static int client(uint32_t rank)
{
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, JOB, rank, 2), 0);
    return s;
}

/* Returns the number of loaded programs; *value is this field of the last one. */
static int programs(const char *field, int64_t *value)
{
    json_t *document = look_at(&d, "programs");
    const json_t *rows = json_object_get(document, "programs");
    int n = json_is_array(rows) ? (int)json_array_size(rows) : -1;

    if (n > 0 && field)
        *value = json_integer_value(json_object_get(json_array_get(rows, (size_t)n - 1), field));
    json_decref(document);
    return n;
}

static void loaded_and_unloaded(void)
{
    struct answer one, two, a;
    int64_t value = -1;
    int s;

    start("--handlers", "on");
    s = client(0);
    raw_image_plain(&image, 40);
    CU_ASSERT_EQUAL(ask_program_check(s, image.words, image.size, &a), 0);
    CU_ASSERT_EQUAL(programs(NULL, NULL), 0); /* a check loads nothing */
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &one), 0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &two), 0);
    CU_ASSERT_NOT_EQUAL(one.handle, two.handle);
    CU_ASSERT_EQUAL(programs("instructions", &value), 2);
    CU_ASSERT_EQUAL(value, 2);
    (void)programs("constants", &value);
    CU_ASSERT_EQUAL(value, 40);
    (void)programs("bytes", &value);
    CU_ASSERT_EQUAL(value, 1024);

    CU_ASSERT_EQUAL(ask_program_read(s, 0, two.handle, &back, NULL), (int)image.size);
    CU_ASSERT_EQUAL(memcmp(back.words, image.words, image.size), 0);
    CU_ASSERT_EQUAL(ask_program_unload(s, one.handle, &a), 0);
    CU_ASSERT_EQUAL(programs("program", &value), 1);
    CU_ASSERT_EQUAL(value, two.handle);
    CU_ASSERT_EQUAL(ask_program_unload(s, one.handle, &a), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "is not yours, or not loaded"));
    CU_ASSERT_EQUAL(ask_program_unload(s, UINT32_MAX, &a), -EINVAL);
    CU_ASSERT_EQUAL(ask_program_read(s, 0, one.handle, &back, &a), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "there is none that is shown to you"));
    CU_ASSERT_EQUAL(ask_program_read(s, 1, two.handle, &back, NULL), -ENOENT);
    CU_ASSERT_EQUAL(ask_program_read(s, UINT32_MAX, UINT32_MAX, &back, NULL), -ENOENT);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* The longest possible image fits into a request. */
static void longest(void)
{
    static struct handler_instruction code[HANDLER_INSTRUCTIONS_MAX];
    struct handler_function *functions;
    struct answer a;
    int s;

    for (size_t i = 0; i < COUNT(code); i++)
        code[i] = (struct handler_instruction)EXIT;
    raw_image(&image, code, HANDLER_INSTRUCTIONS_MAX, HANDLER_CONSTANTS_MAX);
    functions = (struct handler_function *)(uintptr_t)image_functions(&image.head);
    image.head.functions = HANDLER_FUNCTIONS_MAX;
    for (uint32_t i = 0; i < HANDLER_FUNCTIONS_MAX; i++) {
        functions[i].place = i;
        snprintf(functions[i].name, sizeof(functions[i].name), "function_%u", i);
    }
    image.size = HANDLER_IMAGE_MAX;
    start("--handlers", "on");
    s = client(0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), 0);
    CU_ASSERT_EQUAL(ask_program_read(s, 0, a.handle, &back, NULL), (int)HANDLER_IMAGE_MAX);
    CU_ASSERT_EQUAL(memcmp(back.words, image.words, image.size), 0);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- images that are refused ----------------------------------------------------------------- */

static void refused(int s, const char *says)
{
    struct answer a[2];

    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a[0]), -ENOEXEC);
    CU_ASSERT_EQUAL(ask_program_check(s, image.words, image.size, &a[1]), -ENOEXEC);
    for (int i = 0; i < 2; i++) {
        if (!strstr(a[i].text, says))
            printf("\n  \"%s\" instead of \"%s\"\n", a[i].text, says);
        CU_ASSERT_PTR_NOT_NULL(strstr(a[i].text, says));
    }
}

static void hostile_images(void)
{
    static const struct {
        struct handler_instruction code[3];
        const char *says;
    } rows[] = {
        {{OP(0xff, 0), EXIT, EXIT}, "function payload, instruction 0: unknown instruction (255)"},
        {{EXIT, OP(CODE_ALU64 | CODE_MOV, 10), EXIT},
         "function payload, instruction 1: register 10 can't be written (10)"},
        {{EXIT, OP(CODE_ALU64 | CODE_MOV, 11), EXIT}, "instruction 1: there is no such register"},
        {{EXIT, EXIT, OP(CODE_ALU64 | CODE_MOV, 0)},
         "instruction 2: the last instruction is neither an exit nor a jump"},
        {{{.opcode = CODE_JMP | CODE_JA, .offset = 7}, EXIT, EXIT},
         "instruction 0: the jump leaves the program (8)"},
        {{{.opcode = CODE_DO_CALL, .imm = 63}, EXIT, EXIT},
         "instruction 0: there is no helper of this number (63)"},
        {{{.opcode = CODE_LD_DW}, EXIT, EXIT},
         "instruction 1: the second half of an instruction holds more than a number"},
        {{{.opcode = CODE_LD | CODE_ABS}, EXIT, EXIT}, "instruction 0: unknown instruction (32)"},
    };
    static const struct {
        uint32_t word, value; /* index of a word in the head, and its value */
        const char *says;
    } heads[] = {
        {0, 1, "the program: this is no image of a program (1)"},
        {1, 0, "the program: the number of instructions must be 1 to 4096 (0)"},
        {1, UINT32_MAX, "must be 1 to 4096 (4294967295)"},
        {1, 3, "the program: the image has another size than its head says"},
        {2, UINT32_MAX, "constants may have 28672 bytes at most (4294967295)"},
        {4, 2, "a handler does not start at an instruction (2)"},
        {4, HANDLER_NONE, "the program has no handler"},
        {6, UINT32_MAX, "64 functions may have a name at most"},
        {7, 1, "a reserved word of the image is not 0"},
    };
    struct answer a;
    int s;

    start("--handlers", "on");
    s = client(0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        raw_image(&image, rows[i].code, 3, 0);
        refused(s, rows[i].says);
    }
    for (size_t i = 0; i < COUNT(heads); i++) {
        raw_image_plain(&image, 0);
        ((uint32_t *)image.words)[heads[i].word] = heads[i].value;
        refused(s, heads[i].says);
    }
    raw_image_plain(&image, 0);
    for (size_t size = image.size; size-- > 0;) {
        CU_ASSERT_EQUAL(ask_program_load(s, image.words, size, &a), -ENOEXEC);
        size -= size > 40 ? 7 : 0;
    }
    /* Error texts contain no control characters of a name. */
    raw_image(&image, rows[0].code, 3, 0);
    memcpy((char *)image.words + image_functions_at(3, 0) + 4, "\033[2J", 4);
    refused(s, "instruction 0: unknown instruction (255)");
    CU_ASSERT_EQUAL(programs(NULL, NULL), 0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, 0, &a), -ENOEXEC);
    raw_image_plain(&image, 0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), 0);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- users ---------------------------------------------------------------------------------- */

static void out_of_place(void)
{
    struct answer a, mine;
    int s, other, owner;

    start("--handlers", "on");
    s = raw_connect(&d);
    raw_image_plain(&image, 0);
    CU_ASSERT_EQUAL(ask_program_check(s, image.words, image.size, &a), 0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "say Hello and wait"));
    CU_ASSERT_EQUAL(ask_program_unload(s, 0, &a), -EPERM);
    owner = client(0);
    other = client(1);
    CU_ASSERT_EQUAL(ask_program_load(owner, image.words, image.size, &mine), 0);
    CU_ASSERT_EQUAL(ask_program_read(s, 0, mine.handle, &back, NULL), (int)image.size);
    CU_ASSERT_EQUAL(ask_program_unload(other, mine.handle, &a), -EINVAL);
    close(s);
    close(other);
    CU_ASSERT_EQUAL(programs(NULL, NULL), 1);
    CU_ASSERT_EQUAL(ask_program_unload(owner, mine.handle, &a), 0);
    close(owner);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

static void policies(void)
{
    struct answer a;
    int s;

    raw_image_plain(&image, 0);
    start("--handlers", "off");
    s = client(0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "handlers are switched off here (handlers = off)"));
    CU_ASSERT_EQUAL(ask_program_check(s, image.words, image.size, &a), -EPERM);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    start("--handlers", "own");
    s = client(0);
    CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), 0);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* When a client hangs up, its programs are unloaded, also programs that are just being loaded. */
static void the_end(void)
{
    struct holdings quiet;
    struct answer a;

    start("--handlers", "on");
    CU_ASSERT_TRUE(look_holdings(&d, &quiet));
    raw_image_plain(&image, 100);
    for (uint32_t round = 0; round < 20; round++) {
        Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
        Pwc__ProgramLoad load = PWC__PROGRAM_LOAD__INIT;
        int s = client(0);

        for (int i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(ask_program_load(s, image.words, image.size, &a), 0);
        load.image.data = (uint8_t *)image.words;
        load.image.len = image.size;
        r.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD;
        r.program_load = &load;
        for (int i = 0; i < 10; i++)
            (void)raw_request(s, 20, &r);
        close(s);
        CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
        CU_ASSERT_EQUAL(programs(NULL, NULL), 0);
    }
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

int main(int argc, char **argv)
{
    static CU_TestInfo tests[] = {{"loaded and unloaded", loaded_and_unloaded},
                                  {"the longest program", longest},
                                  {"hostile images", hostile_images},
                                  {"out of place, and of others", out_of_place},
                                  {"policies", policies},
                                  {"the end of a client", the_end},
                                  CU_TEST_INFO_NULL};

    if (argc != 2) {
        fprintf(stderr, "usage: test_program_requests PWCD\n");
        return 2;
    }
    program = argv[1];
    return suite_run("program requests", tests);
}
