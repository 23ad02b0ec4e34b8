/*
 * Tracts: ranges of whole pages of the program's own memory, each moved in place into a segment
 * (move.h). Regions of PWC_MOVE and PWC_SHARE are cut from tracts.
 *
 * A tract counts its regions: it is made for the first one, and moved back with the last one.
 * Tracts never overlap. Each keeps its segment's descriptor, which shows when the tract is moved
 * back which parts have contents.
 *
 * Thread: the one that holds the client's lock.
 */
#ifndef PWC_CLIENTLIB_TRACT_H
#define PWC_CLIENTLIB_TRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "clientlib/attach/daemon_link.h"
#include "clientlib/memory/move.h"
#include "clientlib/memory/spans.h"

struct tract {
    struct tract *next;
    struct moved moved;
    uint32_t segment;
    uint32_t regions; /* regions in the tract; 0: it could not be moved back */
};

struct tracts {
    struct daemon_link *link; /* owned by the client */
    struct span_table *spans; /* owned by the client */
    struct tract *list;
};

enum tract_overlap {
    TRACT_NONE,   /* no tract has a page of the range */
    TRACT_INSIDE, /* one tract has all pages of the range */
    TRACT_PARTLY, /* tracts have some pages of the range */
};

void tracts_init(struct tracts *tracts, struct daemon_link *link, struct span_table *spans);
/* Called after the connection is closed: moves everything back, and asks the daemon for nothing. */
void tracts_destroy(struct tracts *tracts);

/* Whether tracts have these whole pages; *out is the first tract that has one, or NULL. */
enum tract_overlap tracts_overlap(const struct tracts *tracts, uintptr_t start, size_t length,
                                  struct tract **out);

/*
 * Moves whole pages, which the caller has checked (movable.h) and which no tract has, and counts
 * one region. On failure nothing has changed: -EEXIST (the pages overlap a region with a copy),
 * -ENOMEM, -EMFILE, -ENFILE, errors of segment_request and move_in. Blocks.
 */
int tract_make(struct tracts *tracts, uintptr_t start, size_t length, struct tract **out);

/* Counts one more region in a tract. -EINVAL: the pages in the range are no longer the tract's. */
int tract_take(struct tract *tract, uintptr_t start, size_t length);

/* Counts one region less; with the last region, moves the tract back. On failure nothing changes,
 * and the region stays counted. Blocks. */
int tract_give(struct tracts *tracts, struct tract *tract);

#endif
