/* The loader: functions in several sections, constants, what it refuses and why; files with each
 * byte changed, and cut at each length. Arguments: the object files, by name. Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/handlers/object.h"
#include "tests/suite.h"

static struct bench *b;
static char **paths;

static const char *path_of(const char *name)
{
    for (char **path = paths; *path; path++)
        if (strstr(*path, name))
            return *path;
    return "no such object";
}

static void test_calls(void)
{
    struct program_error error = {""};
    uint64_t words[5];

    bench_reset(b);
    CU_ASSERT_EQUAL_FATAL(object_load(b, path_of("calls.o"), &error), 0);
    b->context.id = 1;
    bench_run_image(b, HANDLER_PAYLOAD);
    CU_ASSERT_EQUAL(b->run.fault, RUN_NO_FAULT);
    memcpy(words, b->state, sizeof(words));
    CU_ASSERT(words[0] == 20 && words[1] == 31 && words[2] == 141);
    CU_ASSERT_STRING_EQUAL((const char *)&words[3], "nstant");
}

/* Guards that the image has the functions' names, with the places where they begin. */
static void test_functions(void)
{
    struct program_error error = {""};
    struct handler_image *image;
    size_t size, bytes, handlers = 0;
    uint8_t *elf = object_read(path_of("calls.o"), &size);
    const struct handler_function *functions;

    CU_ASSERT_EQUAL_FATAL(image_of_elf(elf, size, &object_names, &image, &bytes, &error), 0);
    functions = image_functions(image);
    CU_ASSERT(image->functions > 1);
    for (uint32_t i = 0; i < image->functions; i++)
        handlers += strcmp(functions[i].name, "payload") == 0 &&
                    functions[i].place == image->entry[HANDLER_PAYLOAD];
    CU_ASSERT_EQUAL(handlers, 1);
    free(image);
    free(elf);
}

static void test_refused(void)
{
    static const struct {
        const char *name, *reason;
    } rows[] = {
        {"writable.o", "handlers have no writable globals"},
        {"missing.o", "calls nowhere, which is not in the file"},
        {"pointers.o", "constants that hold addresses"},
        {"function.o", "takes the address of the function"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct program_error error = {""};

        CU_ASSERT_EQUAL(object_load(b, path_of(rows[i].name), &error), -ENOEXEC);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, rows[i].reason));
        if (!strstr(error.text, rows[i].reason))
            printf("%s: %s\n", rows[i].name, error.text);
    }
}

static void test_names(void)
{
    const struct program_names other = {{"nobody", NULL, NULL}};
    struct program_error error = {""};
    struct handler_image *image;
    size_t size, bytes;
    uint8_t *elf = object_read(path_of("calls.o"), &size);

    CU_ASSERT_EQUAL(image_of_elf(elf, size, &other, &image, &bytes, &error), -ENOEXEC);
    CU_ASSERT_STRING_EQUAL(error.text, "there is no function nobody in the file");
    CU_ASSERT_EQUAL(image_of_elf("text", 4, &other, &image, &bytes, &error), -ENOEXEC);
    CU_ASSERT_EQUAL(image_of_elf("", 0, &other, &image, &bytes, &error), -ENOEXEC);
    elf[18] ^= 1; /* another machine in the ELF header */
    CU_ASSERT_EQUAL(image_of_elf(elf, size, &object_names, &image, &bytes, &error), -ENOEXEC);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "not for bpf"));
    free(elf);
}

/* Guards that the loader gives a whole image, or a text that says why not. */
static void try_bytes(const uint8_t *elf, size_t size)
{
    struct program_error error = {""};
    struct image_error wrong;
    struct handler_image *image;
    size_t bytes;

    if (image_of_elf(elf, size, &object_names, &image, &bytes, &error) != 0) {
        CU_ASSERT_NOT_EQUAL(error.text[0], 0);
        return;
    }
    CU_ASSERT_EQUAL(bytes, image_bytes(image->instructions, image->constants, image->functions));
    image_check(image, bytes, &wrong);
    free(image);
}

static void test_damaged(void)
{
    size_t size;
    uint8_t *elf = object_read(path_of("calls.o"), &size);

    for (size_t cut = 0; cut < size; cut += 7)
        try_bytes(elf, cut);
    for (size_t i = 0; i < size; i++) {
        uint8_t was = elf[i];

        elf[i] = (uint8_t)(was ^ (0x80 >> i % 8));
        try_bytes(elf, size);
        elf[i] = 255;
        try_bytes(elf, size);
        elf[i] = was;
    }
    free(elf);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"calls and constants", test_calls}, {"names of functions", test_functions},
        {"refused", test_refused},           {"names", test_names},
        {"damaged", test_damaged},           CU_TEST_INFO_NULL,
    };

    (void)argc;
    paths = argv + 1;
    b = bench_new();
    return suite_run("program", tests);
}
