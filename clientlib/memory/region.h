/*
 * A region: a range of the client's memory that peers may reach by its key, or that its own puts
 * and gets may use.
 *
 * Thread: its client's lock guards everything except what never changes after creation (address,
 * length, key), which any thread may read.
 */
#ifndef PWC_CLIENTLIB_REGION_H
#define PWC_CLIENTLIB_REGION_H

#include <stdint.h>
#include "shm_ring/mapping.h"
#include "pwc/pwc.h"
#include "clientlib/memory/segments.h"

enum region_kind {
    REGION_ALLOCATED, /* a range of a segment */
    REGION_COPIED,    /* the caller's memory; the range is its shadow */
    REGION_MOVED,     /* the caller's memory, now a segment of its own */
};

struct pwc_region {
    struct pwc_client *client;
    struct pwc_region *next;
    enum region_kind kind;
    unsigned rights; /* enum pwc_rights; 0: local only, as each REGION_COPIED is */
    unsigned count;  /* registrations not yet ended by pwc_region_free */
    void *addr;
    size_t len;
    struct segment_range range; /* not for REGION_MOVED */
    struct mapping moved;       /* only for REGION_MOVED */
    uint32_t segment;           /* only for REGION_MOVED */
    struct pwc_key key;         /* set only for a region with rights */
};

/* Asks the daemon for a key to [offset, offset + len) of a segment, which is at `addr`. A region
 * without rights is local only: the daemon is not asked, and there is no key. */
int region_publish(struct pwc_region *region, uint32_t segment, uint64_t offset);

/* Frees a region that is left when its client ends, after the connection is closed. Moved memory
 * becomes private again. */
void region_abandon(struct pwc_region *region);

#endif
