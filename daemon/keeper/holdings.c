/* Owns the list of descriptors and names (holdings.h). Thread: the keeper's. */
#include "daemon/keeper/holdings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct holding *find(const struct holdings *h, const char *name)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (strcmp(h->list[i].name, name) == 0)
            return &h->list[i];
    return NULL;
}

int holdings_add(struct holdings *h, const char *name, int descriptor)
{
    struct holding *entry = find(h, name);

    if (entry) {
        close(entry->descriptor);
        entry->descriptor = descriptor;
        return 0;
    }
    if (*name == '\0' || strchr(name, ':') || strlen(name) >= HOLDINGS_NAME_MAX)
        return -EINVAL;
    if (h->count == HOLDINGS_MAX)
        return -ENOSPC;
    if (h->count == h->room) {
        uint32_t room = h->room ? 2 * h->room : 64;
        struct holding *list = realloc(h->list, room * sizeof(*list));

        if (!list)
            return -ENOMEM;
        h->list = list;
        h->room = room;
    }
    entry = &h->list[h->count++];
    entry->descriptor = descriptor;
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    return 0;
}

void holdings_remove(struct holdings *h, const char *name)
{
    struct holding *entry = find(h, name);

    if (!entry)
        return;
    close(entry->descriptor);
    *entry = h->list[--h->count];
}

void holdings_clear(struct holdings *h)
{
    for (uint32_t i = 0; i < h->count; i++)
        close(h->list[i].descriptor);
    free(h->list);
    *h = (struct holdings){0};
}

char *holdings_names(const struct holdings *h)
{
    char *names = calloc(h->count + 1, HOLDINGS_NAME_MAX), *at = names;

    for (uint32_t i = 0; names && i < h->count; i++)
        at += sprintf(at, "%s%s", i > 0 ? ":" : "", h->list[i].name);
    return names;
}
