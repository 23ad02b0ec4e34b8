/* Fuzzes the loader of files of handlers; images that it makes go through the daemon's check. */
#include <stdlib.h>
#include "clientlib/handlers/program.h"
#include "daemon/handlers/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct program_names names = {{"header", "payload", "completion"}};
    struct handler_image *image;
    struct program_error error;
    struct image_error wrong;
    size_t bytes;

    if (image_of_elf(data, size, &names, &image, &bytes, &error) != 0)
        return 0;
    image_check(image, bytes, &wrong);
    free(image);
    return 0;
}
