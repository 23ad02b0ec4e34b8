/* Owns the table of requests that are answered later (pending.h). Thread: control. */
#include "daemon/control/clients/pending.h"

#include <stdlib.h>
#include <sys/random.h>
#include "daemon/control/clients/client.h"

void pending_init(struct pending_table *t)
{
    *t = (struct pending_table){0};
    /* The arena and other nodes may still have cookies of an earlier process, which must not find
     * entries of this process. So the first generation is random. */
    if (getrandom(&t->first, sizeof(t->first), 0) != sizeof(t->first))
        t->first = 1;
}

void pending_destroy(struct pending_table *t)
{
    for (uint32_t i = 0; i < t->size; i++)
        free(t->entries[i].replaced);
    free(t->entries);
    pending_init(t);
}

static bool grow(struct pending_table *t)
{
    uint32_t size = t->size ? 2 * t->size : 64;
    struct pending *entries;

    if (size > PENDING_MAX)
        return false;
    entries = realloc(t->entries, size * sizeof(*entries));
    if (!entries)
        return false;
    for (uint32_t i = size; i-- > t->size;) {
        entries[i] = (struct pending){.generation = t->first, .next = t->free};
        t->free = i + 1;
    }
    t->entries = entries;
    t->size = size;
    return true;
}

static uint32_t number_of(const struct pending_table *t, const struct pending *p)
{
    return (uint32_t)(p - t->entries) + 1;
}

static struct pending *numbered(struct pending_table *t, uint32_t number)
{
    return number == 0 ? NULL : &t->entries[number - 1];
}

struct pending *pending_add(struct pending_table *t, enum pending_kind kind, struct client *client,
                            uint32_t request, uint64_t *cookie)
{
    struct pending *p;

    if (t->free == 0 && !grow(t))
        return NULL;
    p = &t->entries[t->free - 1];
    t->free = p->next;
    *p = (struct pending){.kind = kind,
                          .generation = p->generation,
                          .next = client->first_pending,
                          .request = request,
                          .client = client};
    client->first_pending = number_of(t, p);
    if (p->next != 0)
        t->entries[p->next - 1].before = client->first_pending;
    client->waiting++;
    client->user->pending++;
    *cookie = pending_cookie(t, p);
    return p;
}

uint64_t pending_cookie(const struct pending_table *t, const struct pending *p)
{
    return (uint64_t)p->generation << 32 | (uint32_t)(p - t->entries);
}

struct pending *pending_find(struct pending_table *t, uint64_t cookie, uint32_t kind)
{
    uint32_t index = (uint32_t)cookie;
    struct pending *p;

    if (index >= t->size)
        return NULL;
    p = &t->entries[index];
    if (p->kind == 0 || p->generation != cookie >> 32 || (kind != 0 && p->kind != kind))
        return NULL;
    return p;
}

void pending_remove(struct pending_table *t, struct pending *p)
{
    p->client->waiting--;
    p->client->user->pending--;
    *(p->before ? &t->entries[p->before - 1].next : &p->client->first_pending) = p->next;
    if (p->next != 0)
        t->entries[p->next - 1].before = p->before;
    free(p->replaced);
    p->replaced = NULL;
    p->kind = 0;
    p->client = NULL;
    p->generation++;
    p->next = t->free;
    t->free = number_of(t, p);
}

struct pending *pending_of(struct pending_table *t, const struct client *client)
{
    return numbered(t, client->first_pending);
}

struct pending *pending_after(struct pending_table *t, const struct pending *p)
{
    return numbered(t, p->next);
}

struct pending *pending_next(struct pending_table *t, uint32_t *at)
{
    while (*at < t->size) {
        struct pending *p = &t->entries[(*at)++];

        if (p->kind != 0)
            return p;
    }
    return NULL;
}
