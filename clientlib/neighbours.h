/*
 * Neighbours: the contexts of this node that tell this one without the daemon what they have done
 * to its memory, each by a pair (pair_abi.h) of which we are the target.
 *
 * A neighbour is hostile memory: what makes no sense ends its pair, and nobody else's.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_NEIGHBOURS_H
#define PWC_CLIENTLIB_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>
#include "inbox.h"
#include "mapping.h"
#include "pair.h"
#include "pwc/pwc.h"

struct neighbour {
    struct pair_reader ring;
    uint64_t peer;
    uint64_t until; /* the remote ring's position that goes before the record at the head */
    bool waits;     /* for that */
    bool over;      /* it made no sense, or its origin is gone: to be forgotten once it is empty */
    struct mapping mapping;
};

struct neighbours {
    struct neighbour *list;
    uint32_t count, room;
    uint32_t turn, run;   /* whose, and how many events it has had */
    struct inbox *remote; /* not ours: events of the same peers that came through the daemon */
    const _Atomic uint32_t *spilled;
};

void neighbours_init(struct neighbours *n, struct inbox *remote, const _Atomic uint32_t *spilled);
void neighbours_destroy(struct neighbours *n);

/* A new pair, whose origin is `peer`. Takes the descriptor, whatever happens. */
void neighbours_add(struct neighbours *n, uint64_t peer, int descriptor);
/* Marks those whose origins are gone. */
void neighbours_check(struct neighbours *n);

/* The next event of `peer` or PWC_ANY, with its id's bytes in `id`, which has room for
 * SESSION_ID_MAX: 1 or 0. */
int neighbours_take(struct neighbours *n, uint64_t peer, struct pwc_event *out, void *id);
/* There may be one. */
bool neighbours_pending(struct neighbours *n, uint64_t peer);

/* Before a last look and sleep: origins shall have us woken. `mode` is enum doorbell_mode. */
void neighbours_arm(struct neighbours *n, uint32_t mode);
void neighbours_disarm(struct neighbours *n);

#endif
