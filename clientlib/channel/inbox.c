/*
 * Owns nothing: the consumer's calls on an event ring, and the count of its event space. Thread:
 * the one that owns the context.
 */
#include "clientlib/channel/inbox.h"

#include <errno.h>

void inbox_init(struct inbox *inbox, struct ring_control *control, const void *data, uint32_t size,
                uint64_t limit, const _Atomic uint64_t *released_word)
{
    *inbox = (struct inbox){.batch = size / 8, .limit = limit, .released_word = released_word};
    ring_consumer_init(&inbox->ring, control, data, size, 0);
}

/* Event space counts as returned only now, because the daemon, which checks the limit, sees only
 * released space. */
void inbox_release(struct inbox *inbox)
{
    if (inbox->unreleased == 0)
        return;
    ring_release(&inbox->ring);
    inbox->returned += inbox->unreturned;
    inbox->unreturned = 0;
    inbox->unreleased = 0;
}

int inbox_look(struct inbox *inbox, const struct event_record **event, uint32_t *size)
{
    const void *record;
    int rc = ring_look(&inbox->ring, &record, size);

    if (rc == 0)
        inbox_release(inbox);
    else if (rc == 1)
        *event = record;
    return rc;
}

int inbox_space_anew(struct inbox *inbox, uint64_t bytes)
{
    uint64_t released;

    inbox_release(inbox);
    released = atomic_load_explicit(inbox->released_word, memory_order_acquire);
    if (released < inbox->released || released > inbox->reserved - inbox->returned)
        return -EPROTO;
    inbox->released = released;
    return inbox_held(inbox) + bytes <= inbox->limit ? 0 : -EAGAIN;
}
