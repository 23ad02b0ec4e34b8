/*
 * Owns the events that filters passed over. Thread: the one that owns the context.
 */
#include "clientlib/channel/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TAKEN = EVENT_PAD };

#define OWN UINT32_MAX /* instead of a node, as the origin of an event: our own node */

static struct event_record *record_at(struct kept *kept, uint64_t at)
{
    return (struct event_record *)(void *)(kept->records + at);
}

static void forget_search(struct kept *kept)
{
    kept->searched_to = 0;
    kept->searched_kinds = 0;
}

void kept_init(struct kept *kept, uint64_t quota_max)
{
    *kept = (struct kept){.capacity = 2 * quota_max};
}

void kept_destroy(struct kept *kept)
{
    free(kept->records);
    kept->records = NULL;
}

/* Closes the gaps that taken records left. */
static void pack(struct kept *kept)
{
    uint64_t to = 0;

    for (uint64_t at = kept->start; at < kept->end;) {
        uint32_t size = record_at(kept, at)->size;

        if (record_at(kept, at)->kind != TAKEN) {
            memmove(kept->records + to, kept->records + at, size);
            to += size;
        }
        at += size;
    }
    kept->start = 0;
    kept->end = to;
    forget_search(kept);
}

int kept_room(struct kept *kept, uint64_t quota)
{
    if (kept->bytes - kept->own + EVENT_BYTES_MAX > quota)
        return -ENOBUFS;
    return kept_prepare(kept);
}

int kept_prepare(struct kept *kept)
{
    if (!kept->records)
        kept->records = malloc(kept->capacity);
    return kept->records ? 0 : -ENOMEM;
}

static struct event_record *add(struct kept *kept, uint32_t size)
{
    struct event_record *event;

    if (kept->end + size > kept->capacity)
        pack(kept);
    event = record_at(kept, kept->end);
    kept->end += size;
    kept->bytes += size;
    return event;
}

void kept_add(struct kept *kept, const struct event_record *event)
{
    memcpy(add(kept, event->size), event, event->size);
}

struct event_record *kept_add_own(struct kept *kept, uint32_t size)
{
    struct event_record *event = add(kept, size);

    event->size = size;
    event->origin = OWN;
    kept->own += size;
    return event;
}

static void take(struct kept *kept, uint64_t at, struct event_record *out)
{
    struct event_record *event = record_at(kept, at);

    memcpy(out, event, event->size);
    event->kind = TAKEN;
    kept->bytes -= event->size;
    if (event->origin == OWN)
        kept->own -= event->size;
    while (kept->start < kept->end && record_at(kept, kept->start)->kind == TAKEN)
        kept->start += record_at(kept, kept->start)->size;
    if (kept->start == kept->end) {
        kept->start = kept->end = 0;
        forget_search(kept);
    }
}

int kept_take(struct kept *kept, uint64_t peer, unsigned kinds, struct event_record *out)
{
    uint64_t at = kept->start;

    if (kept->bytes == 0)
        return 0;
    if (kept->searched_peer == peer && kept->searched_kinds == kinds && kept->searched_to > at)
        at = kept->searched_to;
    while (at < kept->end) {
        const struct event_record *event = record_at(kept, at);

        if (event->kind != TAKEN && (event_shown_as(event->kind) & kinds) &&
            (peer == PWC_ANY || event->peer == peer)) {
            take(kept, at, out);
            return 1;
        }
        at += event->size;
    }
    kept->searched_peer = peer;
    kept->searched_kinds = kinds;
    kept->searched_to = at;
    return 0;
}
