/*
 * Staging of a context: memory of a segment through which the daemon reads and fills loose memory
 * (calls/series.h). The memory is taken for the first operation that needs it. pending_slots notes
 * which grains are in use.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_STAGING_H
#define PWC_CLIENTLIB_STAGING_H

#include <stdbool.h>
#include <stdint.h>
#include "clientlib/channel/grains.h"
#include "clientlib/memory/segments.h"

struct staging {
    struct segment_range range;
    bool taken;
};

struct pwc_client;

/* Takes the memory, and blocks: 0; -EDEADLK: inside a handler; -ENOMEM, -EDQUOT, and errors of
 * daemon_call. */
int staging_take(struct staging *staging, struct pwc_client *client);
/* Gives the memory back. The daemon must not use it any more. */
void staging_close(struct staging *staging, struct pwc_client *client);

static inline uint8_t *staging_at(const struct staging *staging, struct grains_run run)
{
    return segment_range_base(&staging->range) + (uint64_t)run.first * GRAIN_BYTES;
}

/* Offset of the run in its segment. */
static inline uint64_t staging_offset(const struct staging *staging, struct grains_run run)
{
    return staging->range.offset + (uint64_t)run.first * GRAIN_BYTES;
}

static inline uint32_t staging_segment(const struct staging *staging)
{
    return staging->range.segment->id;
}

#endif
