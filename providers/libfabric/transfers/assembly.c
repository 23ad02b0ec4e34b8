/*
 * Owns messages of which some parts have come, until the last one comes. Thread: the one that holds
 * the endpoint's lock.
 */
#include "providers/libfabric/transfers/assembly.h"

#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/objects/info.h"

/* Returns the place in the list of the source's message, or of the list's end. */
static struct assembly **find(struct assembly **list, pwc_peer source)
{
    while (*list && (*list)->source != source)
        list = &(*list)->next;
    return list;
}

static void drop(struct assembly **at)
{
    struct assembly *dropped = *at;

    *at = dropped->next;
    free(dropped);
}

static void begin(struct assembly **at, pwc_peer source, size_t length)
{
    *at = malloc(sizeof(**at) + length);
    if (*at)
        **at = (struct assembly){.source = source, .length = length};
    else
        info_warn("a message of %zu bytes is lost: no memory", length);
}

struct assembly *assembly_take(struct assembly **list, const struct pwc_am *part)
{
    struct assembly **at = find(list, part->from);
    uint64_t offset = part->arguments[ASSEMBLY_OFFSET];
    uint64_t length = part->arguments[ASSEMBLY_LENGTH];
    struct assembly *message;

    /* A sender that could not send all parts begins with its next message. */
    if (offset == 0 && *at)
        drop(at);
    if (offset == 0 && length <= INFO_INJECT_SIZE) {
        at = find(list, part->from);
        begin(at, part->from, length);
    }
    message = *at;
    if (!message || offset != message->done || length != message->length ||
        part->length > length - offset)
        return NULL;
    memcpy(message->bytes + offset, part->payload, part->length);
    message->done += part->length;
    if (message->done < length)
        return NULL;
    *at = message->next;
    return message;
}

void assemblies_free(struct assembly **list)
{
    while (*list)
        drop(list);
}
