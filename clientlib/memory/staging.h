/*
 * Staging of a context: memory of a segment that short gets fill whose destination is in no region.
 * The library copies from there when it sees the get's end (pending.h).
 *
 * It has up to STAGING_PLACES places of packed_max bytes each, taken when the first such get needs
 * one. Which places are in use is in pending_slots.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_STAGING_H
#define PWC_CLIENTLIB_STAGING_H

#include <stdint.h>
#include "clientlib/channel/pending.h"
#include "clientlib/memory/segments.h"

enum {
    STAGING_PLACES = PENDING_PLACES,
    STAGING_BYTES = 256 * 1024, /* at most, but room for one place at least */
};

struct staging {
    struct segment_range range;
    uint32_t place_bytes;
    uint32_t places; /* 0: none taken yet */
};

struct pwc_client;
struct pending_slots;

/* Finds a free place: its number, the address in this process, and where it is in the segment.
 * Blocks where it takes the memory. 0; -EAGAIN: all are in use; -EDEADLK: inside a handler, and
 * the memory is still to be taken; -ENOMEM, -EDQUOT, and errors of daemon_call. */
int staging_find(struct staging *staging, struct pwc_client *client,
                 const struct pending_slots *pending, uint32_t *place, uint8_t **at,
                 uint64_t *offset);

static inline uint32_t staging_segment(const struct staging *staging)
{
    return staging->range.segment->id;
}

/* Gives the memory back, when the daemon does not write into it any more. */
void staging_close(struct staging *staging, struct pwc_client *client);

#endif
