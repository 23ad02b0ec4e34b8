/*
 * The consumer's view of one event ring of a session, and the event space in it that operations
 * hold: from submission until the event has been consumed, or until the daemon gives the bytes back
 * without an event. So an event always finds its place:
 *
 *     reserved - returned - released  <=  limit
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_INBOX_H
#define PWC_CLIENTLIB_INBOX_H

#include <stdbool.h>
#include <stdint.h>
#include "shm_ring/ring.h"
#include "proto/session_abi.h"

struct inbox {
    struct ring_consumer ring;
    uint8_t event_kind; /* enum event_kind: the kind of event in this ring; 0: none */
    uint8_t message_kind;
    uint8_t notify_kind;
    uint64_t unreleased; /* bytes consumed since the ring's space was last given back */
    uint64_t unreturned; /* event space that will be returned with the unreleased bytes */
    uint64_t batch;      /* give space back when this many bytes have been consumed */
    uint64_t limit;      /* the most event space that operations may reserve in this ring */
    uint64_t reserved;   /* reserved, returned and released only grow, except that the reservation
                            of an operation that is not submitted is undone */
    uint64_t returned;
    uint64_t released; /* *released_word when it was last read */
    const _Atomic uint64_t *released_word;
};

/* Makes an inbox of a new ring. `released_word` is NULL where no space is reserved. */
void inbox_init(struct inbox *inbox, struct ring_control *control, const void *data, uint32_t size,
                uint64_t limit, const _Atomic uint64_t *released_word);

/* Finds the next event in the ring: 1; 0 when there is none (then consumed space has been given
 * back); or -EPROTO. *size is its size in the ring. */
int inbox_look(struct inbox *inbox, const struct event_record **event, uint32_t *size);
/* Gives consumed space back to the daemon. */
void inbox_release(struct inbox *inbox);
/* Passes over the event of the last inbox_look; returns the `space` bytes that its operation
 * held. */
static inline void inbox_consume(struct inbox *inbox, uint32_t size, uint64_t space)
{
    ring_consume(&inbox->ring, size);
    inbox->unreleased += size;
    inbox->unreturned += space;
    if (inbox->unreleased >= inbox->batch)
        inbox_release(inbox);
}

/* inbox_space after reading *released_word again. */
int inbox_space_anew(struct inbox *inbox, uint64_t bytes);
/* The event space that operations hold, by *released_word as it was last read. */
static inline uint64_t inbox_held(const struct inbox *inbox)
{
    return inbox->reserved - inbox->returned - inbox->released;
}
/*
 * 0 when `bytes` more may be reserved; -EAGAIN; or -EPROTO. Reads shared memory only when the last
 * value read is not enough.
 */
static inline int inbox_space(struct inbox *inbox, uint64_t bytes)
{
    return inbox_held(inbox) + bytes <= inbox->limit ? 0 : inbox_space_anew(inbox, bytes);
}
static inline void inbox_reserve(struct inbox *inbox, uint64_t bytes)
{
    inbox->reserved += bytes;
}
static inline void inbox_unreserve(struct inbox *inbox, uint64_t bytes)
{
    inbox->reserved -= bytes;
}

/* Whether the ring has an event; reads shared memory. */
static inline bool inbox_pending(struct inbox *inbox)
{
    return ring_pending(&inbox->ring) != 0;
}

#endif
