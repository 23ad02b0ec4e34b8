/* Checks and shows programs of handlers (program.h). */
#include "tools/pwcctl/program.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/handlers/program.h"
#include "tools/pwcctl/disassemble.h"
#include "tools/pwcctl/options.h"
#include "tools/request.h"

#define FILE_MAX (16u << 20)
#define WHY_MAX  768

static int fail(const char *what, const char *why, int rc)
{
    fprintf(stderr, "pwcctl: %s: %s\n", what, why);
    return rc;
}

static int read_file(const char *path, void **out, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail(path, strerror(errno), -errno);
    *out = malloc(FILE_MAX);
    *size = *out != NULL ? fread(*out, 1, FILE_MAX, file) : 0;
    int rc = *out == NULL ? -ENOMEM : ferror(file) ? -EIO : *size == FILE_MAX ? -EFBIG : 0;
    fclose(file);
    if (rc == 0)
        return 0;
    free(*out);
    return fail(path, strerror(-rc), rc);
}

/* Reads the image of an object file whose handlers have their usual names. */
static int read_object(const char *path, struct handler_image **image, size_t *bytes)
{
    static const struct program_names names = {{"header", "payload", "completion"}};
    struct program_error error = {""};
    void *elf = NULL;
    size_t size = 0;
    int rc = read_file(path, &elf, &size);
    if (rc < 0)
        return rc;
    rc = image_of_elf(elf, size, &names, image, bytes, &error);
    free(elf);
    return rc < 0 ? fail(path, error.text[0] ? error.text : strerror(-rc), rc) : 0;
}

int program_check(const char *socket_path, const char *file)
{
    struct handler_image *image;
    char why[WHY_MAX];
    size_t bytes;
    int rc = read_object(file, &image, &bytes);
    if (rc < 0)
        return rc;
    rc = request_check(socket_path, image, bytes, why, sizeof(why));
    if (rc == 0)
        printf("%s: the daemon takes it: %u instructions, %u bytes of constants\n", file,
               image->instructions, image->constants);
    free(image);
    return rc < 0 ? fail(file, why, rc) : 0;
}

int program_disassemble(const char *socket_path, const char *what)
{
    uint32_t engine, program;
    struct handler_image *image = NULL;
    char why[WHY_MAX];
    void *read = NULL;
    size_t bytes = 0;
    int rc;
    if (options_handle(what, &engine, &program) == 0) {
        rc = request_program(socket_path, engine, program, &read, &bytes, why, sizeof(why));
        if (rc < 0)
            return fail(what, why, rc);
        image = read;
    } else {
        rc = read_object(what, &image, &bytes);
        if (rc < 0)
            return rc;
    }
    rc = disassemble_print(image, bytes, stdout);
    free(image);
    return rc < 0 ? fail(what, "the daemon's answer is no program", rc) : 0;
}
