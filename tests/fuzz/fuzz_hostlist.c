/* Fuzzes the reader of Slurm's lists of hosts: each list that it accepts must be valid as a list of
 * nodes. */
#include <stdlib.h>
#include <string.h>
#include "daemon/control/start/hostlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *name)
{
    size_t length = strnlen(name, NODE_HOST_MAX);

    if (length == 0 || length == NODE_HOST_MAX || strpbrk(name, "[], :\n"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct hostlist list;
    char why[64];

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (hostlist_expand(&list, text, why, sizeof(why)) == 0)
        for (uint32_t i = 0; i < list.count; i++)
            check(list.names[i]);
    hostlist_free(&list);
    free(text);
    return 0;
}
