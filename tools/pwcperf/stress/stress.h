/*
 * The stress: every rank puts to and gets from random ranks, with random sizes and places, and
 * every byte and every event is checked by the rank that gets it.
 *
 * Operation `number` of a rank is a pure function of the seed (stress_plan). So the target knows
 * which events are due from which rank, and in which order: none may be missing, doubled or out of
 * turn. Only the place is drawn while the program runs, because places of operations in flight must
 * not overlap; the place travels in the completion id.
 *
 * Each rank's region:
 *
 *     0            8 MiB                 16 MiB
 *     +------------+---------------------+---------------------+-----
 *     | library    | slice of rank 0     | slice of rank 1     | ...
 *     +------------+---------------------+---------------------+-----
 *       is read      only that rank puts there
 *
 * A put's place is free again when its target has compared the bytes and acknowledged this (by a
 * put without bytes, which acknowledges all puts up to a number). If the put has no remote event,
 * its place is free when its origin has read the bytes back after the local event.
 */
#ifndef PWCPERF_STRESS_H
#define PWCPERF_STRESS_H

#include <stdbool.h>
#include "tools/pwcperf/world.h"

#define STRESS_SIZE_MAX (UINT64_C(4) << 20)
#define STRESS_SLICE    (UINT64_C(8) << 20)
#define STRESS_OPS_MAX  ((UINT64_C(1) << 24) - 1) /* of a rank: a count has 24 bits in an id */
#define STRESS_POOL     (UINT64_C(32) << 20)      /* sources and destinations in flight */

/* The shape of a run, equal on every rank. */
struct stress_shape {
    uint64_t seed;
    uint32_t ranks;
    uint64_t ops; /* of each rank */
};

struct stress_op {
    bool get;
    uint32_t target;
    uint64_t size;
    unsigned flags;
    uint32_t lid_size, rid_size; /* 0: by value */
    bool from_stack;             /* the source is in no region, if the size allows this */
};

void stress_plan(const struct stress_shape *shape, uint32_t origin, uint64_t number,
                 struct stress_op *out);

static inline bool stress_has_remote_event(const struct stress_op *op)
{
    return (op->flags & PWC_NO_RCE) == 0;
}

/* Returns the seed of a put's bytes. */
uint64_t stress_put_seed(const struct stress_shape *shape, uint32_t origin, uint64_t number);
/* Returns the seed of a rank's library. */
uint64_t stress_library_seed(const struct stress_shape *shape, uint32_t owner);

/* ---- completion ids, which hold all that the receiver needs -------------------------------- */

enum stress_id_kind {
    STRESS_OPERATION = 1, /* remote: of a put or a get */
    STRESS_ENDED = 2,     /* local: of a put or a get */
    STRESS_READ_BACK = 3, /* local: of the get that reads a put back */
    STRESS_COMPARED = 4,  /* remote: all operations below `number` are compared */
};

struct stress_id {
    uint32_t kind; /* enum stress_id_kind */
    uint32_t origin;
    uint64_t number;
    uint64_t offset; /* in the slice or the library */
};

/* Encodes an id as 8 bytes by value (size 0), or as `size` bytes at `room`. */
pwc_cid stress_id_encode(const struct stress_shape *shape, const struct stress_id *id,
                         uint32_t size, void *room);
/* Decodes the id of an event. Set out->origin before to the rank that must have made the id.
 * -EBADMSG: that rank has made no such id. */
int stress_id_decode(const struct stress_shape *shape, const struct pwc_event *event,
                     struct stress_id *out);

#define STRESS_ID_BYTES_MIN 40u

/* ---- a rank and its partners ---------------------------------------------------------------- */

struct stress_totals {
    uint64_t operations, puts, gets, bytes, read_backs;
    uint64_t local_events, remote_events, compared_bytes;
};

struct stress_outbound;
struct stress_inbound;

/* One thread makes all of these calls. Each error or violation that a call returns has been
 * printed.
 */
struct stress {
    struct world *world;
    struct stress_shape shape;
    pwc_region *region, *pool;
    pwc_remote **remotes; /* by rank */
    struct stress_totals totals;
    struct stress_outbound *outbound;
    struct stress_inbound *inbound;
};

int stress_run(struct world *world);

/* Our own operations, from submission to their last event (stress_outbound.c). */
int stress_outbound_open(struct stress *stress);
void stress_outbound_close(struct stress *stress);
/* Submits as many operations as possible. Returns how many; sets *stuck if room was missing. */
int stress_outbound_submit(struct stress *stress, bool *stuck);
int stress_outbound_event(struct stress *stress, const struct pwc_event *event,
                          const struct stress_id *id);
int stress_outbound_compared(struct stress *stress, uint32_t target, uint64_t below);
bool stress_outbound_done(const struct stress *stress);

/* The target's side: operations of other ranks on this one (stress_inbound.c). */
int stress_inbound_open(struct stress *stress);
void stress_inbound_close(struct stress *stress);
int stress_inbound_event(struct stress *stress, const struct pwc_event *event,
                         const struct stress_id *id);
/* Sends the acknowledgements that are due (all of them, if idle). Returns as
 * stress_outbound_submit. */
int stress_inbound_acknowledge(struct stress *stress, bool idle, bool *stuck);
bool stress_inbound_done(const struct stress *stress);

#endif
