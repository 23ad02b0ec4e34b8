/*
 * The client's segments: memfds that the daemon made, each mapped and registered once, from which
 * regions and shadows are cut.
 *
 * The first segment has 4 MiB, and each later one twice as much, up to 64 MiB; a range that needs
 * more gets a segment of its own length. A segment that has become empty is given back to the
 * daemon, unless it is the only one left.
 *
 * Thread: the one that holds the client's lock.
 */
#ifndef PWC_CLIENTLIB_SEGMENTS_H
#define PWC_CLIENTLIB_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include "clientlib/attach/daemon_link.h"
#include "clientlib/memory/extents.h"
#include "shm_ring/mapping.h"
#include "clientlib/memory/spans.h"

struct client_segment {
    struct client_segment *next;
    struct mapping mapping;
    struct extents extents;
    uint64_t used; /* bytes from here on were never given out: they are zero */
    uint32_t id;
};

struct segments {
    struct daemon_link *link; /* owned by the client */
    struct span_table *spans;
    struct client_segment *list;
    uint64_t next_length; /* of the next segment to open */
};

/* A range of a segment. */
struct segment_range {
    struct client_segment *segment;
    uint64_t offset;
    uint64_t length; /* rounded up */
};

void segments_init(struct segments *segments, struct daemon_link *link, struct span_table *spans);
/* Unmaps everything, and asks the daemon for nothing. */
void segments_destroy(struct segments *segments);

/* A zeroed range of at least `length` bytes, aligned to 64 bytes, or to a page where it takes a
 * page or more. Blocks where it has to open a segment. -ENOMEM, -EDQUOT, and errors of daemon_call.
 */
int segments_take(struct segments *segments, uint64_t length, struct segment_range *out);
void segments_give(struct segments *segments, const struct segment_range *range);

static inline uint8_t *segment_range_base(const struct segment_range *range)
{
    return (uint8_t *)range->segment->mapping.base + range->offset;
}

/* Asks the daemon for a segment of at least *length bytes: its number, its length and its
 * descriptor. */
int segment_request(struct daemon_link *link, uint64_t *length, uint32_t *id, int *fd);
/* Gives a segment back to the daemon. */
int segment_release(struct daemon_link *link, uint32_t id);

#endif
