/* Owns the simulation's timeline (sim_timeline.h). Thread: the owner of the sim_world. */
#include "daemon/fabric/sim/sim_timeline.h"

#include <errno.h>
#include <stdlib.h>

static bool before(const struct sim_entry *a, const struct sim_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

int sim_timeline_add(struct sim_timeline *t, const struct sim_entry *entry)
{
    struct sim_entry new = *entry;
    uint32_t at;

    if (t->count == t->room) {
        uint32_t room = t->room ? 2 * t->room : 256;
        struct sim_entry *grown = realloc(t->entries, room * sizeof *grown);

        if (!grown)
            return -ENOMEM;
        t->entries = grown;
        t->room = room;
    }
    new.order = t->entered++;
    for (at = t->count++; at > 0 && before(&new, &t->entries[(at - 1) / 2]); at = (at - 1) / 2)
        t->entries[at] = t->entries[(at - 1) / 2];
    t->entries[at] = new;
    return 0;
}

uint64_t sim_timeline_next(const struct sim_timeline *t)
{
    return t->count ? t->entries[0].time : UINT64_MAX;
}

bool sim_timeline_take(struct sim_timeline *t, uint64_t now, struct sim_entry *out)
{
    struct sim_entry last;
    uint32_t at = 0, child;

    if (t->count == 0 || t->entries[0].time > now)
        return false;
    *out = t->entries[0];
    last = t->entries[--t->count];
    while ((child = 2 * at + 1) < t->count) {
        if (child + 1 < t->count && before(&t->entries[child + 1], &t->entries[child]))
            child++;
        if (!before(&t->entries[child], &last))
            break;
        t->entries[at] = t->entries[child];
        at = child;
    }
    if (t->count)
        t->entries[at] = last;
    return true;
}

void sim_timeline_free(struct sim_timeline *t)
{
    free(t->entries);
    *t = (struct sim_timeline){0};
}
