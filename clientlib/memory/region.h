/*
 * A region: a range of the client's memory that peers may reach by its key, or that its own puts
 * and gets may use.
 *
 * Thread: its client's lock guards everything except what never changes after creation (address,
 * length, key), which any thread may read.
 */
#ifndef PWC_CLIENTLIB_REGION_H
#define PWC_CLIENTLIB_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include "pwc/pwc.h"
#include "clientlib/memory/segments.h"
#include "clientlib/memory/tract.h"

enum region_kind {
    REGION_ALLOCATED, /* a range of a segment */
    REGION_COPIED,    /* the caller's memory; the range is its shadow */
    REGION_MOVED,     /* the caller's memory: all of a tract, by PWC_MOVE */
    REGION_SHARED,    /* the caller's memory: any bytes of a tract, by PWC_SHARE */
};

struct pwc_region {
    struct pwc_client *client;
    struct pwc_region *next;
    enum region_kind kind;
    unsigned rights; /* enum pwc_rights; 0: local only, as each REGION_COPIED is */
    bool own_key;    /* PWC_OWN_KEY: no second registration gives this region */
    unsigned count;  /* registrations that pwc_region_free has not ended yet */
    bool withdrawn;  /* the last pwc_region_free has failed: the key may be revoked */
    void *addr;
    size_t len;
    struct segment_range range; /* only for REGION_ALLOCATED and REGION_COPIED */
    struct tract *tract;        /* only for REGION_MOVED and REGION_SHARED */
    struct pwc_key key;         /* set only for a region with rights */
};

/* Gets a key from the daemon for [offset, offset + region->len) of a segment, which is the memory
 * at region->addr. A region without rights is local only: it gets no key, and the daemon is not
 * asked. */
int region_publish(struct pwc_region *region, uint32_t segment, uint64_t offset);

/* The key of a region that the client gives to all ranks: 0; -EINVAL: the region is another
 * client's; -ENOTSUP: it is local only. Sets the text of an error. */
int region_key_for_all(const struct pwc_region *region, struct pwc_client *client,
                       struct pwc_key *out);
/* Sets the text that another rank could not give its region, for this reason; returns -ECANCELED.
 */
int region_refused_by(struct pwc_client *client, uint32_t rank, int why);

#endif
