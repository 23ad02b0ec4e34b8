/* Reads and loads object files of handlers (object.h). Thread: one. */
#include "tests/handlers/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct program_names object_names = {{"header", "payload", "completion"}};

uint8_t *object_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);

    if (!file || !bytes) {
        perror(path);
        exit(2);
    }
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

int object_load(struct bench *b, const char *path, struct program_error *error)
{
    struct handler_image *image;
    struct image_error wrong;
    size_t size, bytes;
    uint8_t *elf = object_read(path, &size);
    int rc = image_of_elf(elf, size, &object_names, &image, &bytes, error);

    free(elf);
    if (rc != 0)
        return rc;
    rc = image_check(image, bytes, &wrong);
    if (rc != 0)
        snprintf(error->text, sizeof(error->text), "instruction %u: %s (%lld)", wrong.place,
                 wrong.reason, (long long)wrong.value);
    else
        memcpy(b->image, image, bytes);
    free(image);
    return rc;
}
