/* Loads programs from ELF files (pwc/offload.h). Owns nothing. Thread: any. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/handlers/loaded.h"
#include "clientlib/handlers/program.h"

enum { NAME_MAX_BYTES = 256 };

static bool names_valid(const struct program_names *names)
{
    for (unsigned i = 0; i < HANDLER_STAGES; i++)
        if (names->handler[i] && strnlen(names->handler[i], NAME_MAX_BYTES) == NAME_MAX_BYTES)
            return false;
    return true;
}

int pwc_program_load(pwc_client *client, const void *elf, size_t size,
                     const struct pwc_program_names *names, pwc_program **out)
{
    struct program_names handlers = {{"header", "payload", "completion"}};
    struct program_error error = {""};
    struct handler_image *image;
    size_t bytes;
    int rc;

    if (names && (names->reserved[0] | names->reserved[1] | names->reserved[2]) != 0)
        return pwc_private_refuse(client, -EINVAL, "a reserved word of the names is not 0");
    if (names)
        handlers = (struct program_names){{names->header, names->payload, names->completion}};
    if (!names_valid(&handlers))
        return pwc_private_refuse(client, -EINVAL,
                                  "a handler's name is longer than 255 characters");
    rc = image_of_elf(elf, size, &handlers, &image, &bytes, &error);
    if (rc == -ENOEXEC)
        return pwc_private_refuse(client, rc, error.text);
    if (rc < 0)
        return rc;
    rc = pwc_private_program_load(client, image, bytes, out);
    free(image);
    return rc;
}
