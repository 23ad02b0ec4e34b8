/*
 * Tracts: ranges of whole pages of the program's own memory that stand in a segment each, moved in
 * place (move.h), and that regions of PWC_MOVE and PWC_SHARE are cut from.
 *
 * A tract is counted: it is made for its first region, and moved back with its last one. Tracts
 * never overlap. Each keeps its segment's descriptor, which shows what of the segment has contents
 * when it is moved back.
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
    uint32_t regions; /* that stand in it; 0: it could not be moved back */
};

struct tracts {
    struct daemon_link *link; /* not ours */
    struct span_table *spans; /* not ours */
    struct tract *list;
};

enum tract_overlap {
    TRACT_NONE,   /* no tract has a page of the range */
    TRACT_INSIDE, /* one tract has all of them */
    TRACT_PARTLY, /* some of its pages are a tract's */
};

void tracts_init(struct tracts *tracts, struct daemon_link *link, struct span_table *spans);
/* After the connection is closed: moves everything back, and asks the daemon for nothing. */
void tracts_destroy(struct tracts *tracts);

/* How whole pages lie to the tracts; *out is the first tract with one of them, or NULL. */
enum tract_overlap tracts_overlap(const struct tracts *tracts, uintptr_t start, size_t length,
                                  struct tract **out);

/*
 * Moves whole pages, which the caller has checked (movable.h) and which no tract has, and counts
 * one region. On failure all is as before: -EEXIST (they overlap a region that goes through a
 * copy), -ENOMEM, errors of segment_request and move_in. Blocks.
 */
int tract_make(struct tracts *tracts, uintptr_t start, size_t length, struct tract **out);

/* Counts one region more in a tract. -EINVAL: its pages in the range are other memory now. */
int tract_take(struct tract *tract, uintptr_t start, size_t length);

/* Counts one region less, and with the last one moves the tract back. On failure the tract stays as
 * it is, with the region counted. Blocks. */
int tract_give(struct tracts *tracts, struct tract *tract);

#endif
