/*
 * Owns the table of registered memory of the stream fabric. We name memory by its index; peers name
 * it by a key that nobody can guess, and an offset from its start. No page is pinned, because the
 * kernel copies.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "daemon/fabric/stream/stream_private.h"

#define NONE UINT32_MAX

int stream_memories_open(struct stream_memories *memories, uint32_t count)
{
    *memories = (struct stream_memories){.count = count, .due_head = NONE};
    while (memories->index_mask < count)
        memories->index_mask = 2 * memories->index_mask + 1;
    memories->table = calloc(count, sizeof(*memories->table));
    return memories->table ? places_open(&memories->places, count) : -ENOMEM;
}

void stream_memories_close(struct stream_memories *memories)
{
    places_close(&memories->places);
    free(memories->table);
}

static void report(struct stream *s, uint32_t index, uint32_t event, uint64_t cookie)
{
    struct stream_memories *memories = &s->memories;
    struct stream_memory *m = &memories->table[index];

    m->event = event;
    m->cookie = cookie;
    m->behind = s->arrival_tail;
    m->next = NONE;
    if (memories->due_head == NONE)
        memories->due_head = index;
    else
        memories->table[memories->due_tail].next = index;
    memories->due_tail = index;
}

int stream_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                   uint64_t cookie)
{
    struct stream *s = (struct stream *)fabric;
    struct stream_memories *memories = &s->memories;
    uint64_t random;
    uint32_t index;

    if (!base || length == 0 || length > UINT64_MAX - (uintptr_t)base)
        return -EINVAL;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    index = places_take(&memories->places);
    if (index == PLACES_NONE)
        return -ENOSPC;
    memories->table[index] = (struct stream_memory){
        .base = base,
        .length = length,
        .key = (random & ~memories->index_mask) | index,
        .access = access,
        .live = true,
    };
    report(s, index, FABRIC_ADDED, cookie);
    return 0;
}

/* Ends the connections that still use memory which is dropped. The caller drops memory only when no
 * operation of ours uses it. */
static void cut_users(struct stream *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->peers.count; i++) {
        struct stream_connection *c = s->peers.table[i].connection;

        if (c && stream_connection_uses(c, index))
            stream_peer_broken(s, i, -EACCES);
    }
}

int stream_mem_drop(struct fabric *fabric, uint32_t index, uint64_t cookie)
{
    struct stream *s = (struct stream *)fabric;
    struct stream_memories *memories = &s->memories;

    if (index >= memories->count || !memories->table[index].live)
        return -EINVAL;
    if (memories->table[index].event)
        return -EBUSY; /* FABRIC_ADDED is not delivered yet, so the caller has no index */
    memories->table[index].live = false;
    cut_users(s, index);
    report(s, index, FABRIC_DROPPED, cookie);
    return 0;
}

int stream_memories_deliver(struct stream_memories *memories, uint32_t delivered,
                            struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && memories->due_head != NONE) {
        uint32_t index = memories->due_head;
        struct stream_memory *m = &memories->table[index];

        if ((int32_t)(delivered - m->behind) < 0)
            break;
        memories->due_head = m->next;
        events[n++] = (struct fabric_event){
            .kind = m->event,
            .cookie = m->cookie,
            .memory = {.index = index, .address = 0, .key = m->key},
        };
        if (m->event == FABRIC_DROPPED)
            places_give(&memories->places, index);
        m->event = 0;
    }
    return n;
}

bool stream_memory_holds(const struct stream_memories *memories, uint32_t index, const void *at,
                         uint64_t length)
{
    const struct stream_memory *m;
    uint64_t offset;

    if (index >= memories->count)
        return false;
    m = &memories->table[index];
    if (!m->live || (const uint8_t *)at < m->base)
        return false;
    offset = (uint64_t)((const uint8_t *)at - m->base);
    return offset <= m->length && length <= m->length - offset;
}

uint8_t *stream_memory_named(const struct stream_memories *memories,
                             const struct stream_frame *frame, uint32_t access, uint32_t *index)
{
    uint64_t place = frame->key & memories->index_mask;
    const struct stream_memory *m;

    if (place >= memories->count)
        return NULL;
    m = &memories->table[place];
    if (!m->live || m->key != frame->key || (m->access & access) != access ||
        frame->address > m->length || frame->length > m->length - frame->address)
        return NULL;
    *index = (uint32_t)place;
    return m->base + frame->address;
}
