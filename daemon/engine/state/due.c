/* Peers by time (due.h). Thread: the progress thread. */
#include "daemon/engine/state/due.h"

static void place(struct due *due, uint32_t at, struct due_entry entry)
{
    due->entries[at] = entry;
    due->places[entry.peer] = at + 1;
}

/* Moves the free place `at` towards the root until the entry's time fits there, and puts it in. */
static void rise(struct due *due, uint32_t at, struct due_entry entry)
{
    for (; at > 0 && entry.at < due->entries[(at - 1) / 2].at; at = (at - 1) / 2)
        place(due, at, due->entries[(at - 1) / 2]);
    place(due, at, entry);
}

void due_by(struct due *due, uint32_t peer, uint64_t at)
{
    struct due_entry entry = {.at = at, .peer = peer};
    uint32_t old = due->places[peer];

    if (old == 0)
        rise(due, due->count++, entry);
    else if (at < due->entries[old - 1].at)
        rise(due, old - 1, entry);
}

uint32_t due_take(struct due *due)
{
    struct due_entry last;
    uint32_t peer, at = 0, child;

    peer = due->entries[0].peer;
    due->places[peer] = 0;
    last = due->entries[--due->count];
    if (due->count == 0)
        return peer;
    while ((child = 2 * at + 1) < due->count) {
        if (child + 1 < due->count && due->entries[child + 1].at < due->entries[child].at)
            child++;
        if (due->entries[child].at >= last.at)
            break;
        place(due, at, due->entries[child]);
        at = child;
    }
    place(due, at, last);
    return peer;
}
