/*
 * Two ranks that measure together: rank i initiates, rank i + n/2 answers. Each has one region:
 *
 *     0                     half                    2 * half
 *     +---------------------+-----------------------+
 *     | arrivals: slots     | departures: slots     |
 *     +---------------------+-----------------------+
 */
#ifndef PWCPERF_PAIR_H
#define PWCPERF_PAIR_H

#include <stdbool.h>
#include "tools/pwcperf/samples.h"
#include "tools/pwcperf/world.h"

struct pair {
    struct world *world;
    struct samples *samples;
    pwc_region *region;
    pwc_remote *remote; /* the other rank's region */
    pwc_peer peer;
    bool initiates;
    size_t half;
    char *arrivals, *departures;
};

/* Sets a pair up. Collective. -EINVAL when the number of ranks is odd, with a message. */
int pair_open(struct pair *pair, struct world *world, struct samples *samples, size_t half);
void pair_close(struct pair *pair);

/* Puts, by --protocol, and waits for room where there is none. */
int pair_put(struct pair *pair, size_t to, size_t from, size_t size, uint64_t lid, uint64_t rid,
             unsigned flags);
int pair_get(struct pair *pair, size_t from, size_t to, size_t size, uint64_t lid);

/* Waits for the event `id` of that kind. -EBADMSG, with a message: another event has come. */
int pair_expect(struct pair *pair, unsigned kind, uint64_t id);
/* As pair_expect, for the remote event that ends a measurement (world_wait_end). */
int pair_expect_end(struct pair *pair, uint64_t id);

/* Compares `size` arrived bytes with stream `seed` from `position` on. -EBADMSG, with a message:
 * the bytes differ. */
int pair_check(const struct pair *pair, size_t at, size_t size, uint64_t seed, uint64_t position,
               uint64_t iteration);

#endif
