/* A rank's part of the job: its client, its context, and its number. */
#ifndef PWCPERF_WORLD_H
#define PWCPERF_WORLD_H

#include <stdint.h>
#include <pwc/pwc.h>
#include "tools/pwcperf/options.h"
#include "proto/clock.h"

/* One thread owns it. */
struct world {
    const struct options *options;
    pwc_client *client;
    pwc_ctx *ctx;
    uint32_t rank, size;
    uint32_t node; /* of this rank: PWC_NODE */
};

/* Attaches. Returns 0; or prints what failed, and returns a negative errno. Call world_close after
 * a failure, too. */
int world_open(struct world *world, const struct options *options);
void world_close(struct world *world);

/* Prints what went wrong, with the rank; returns rc. */
__attribute__((format(printf, 3, 4))) int world_error(const struct world *world, int rc,
                                                      const char *format, ...);

/* Prints which bytes or events are not those that were due; returns -EBADMSG. */
__attribute__((format(printf, 2, 3))) int world_wrong(const struct world *world, const char *format,
                                                      ...);

/* Prints which argument will not do, and what will; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int world_refuse(const struct world *world,
                                                       const char *format, ...);

/* Exchanges `region`'s keys: `keys` (size of them) gets every rank's. Collective. */
int world_keys(struct world *world, const pwc_region *region, struct pwc_key *keys);

/* Waits for an event of `kinds`; prints a timeout, a failed operation or an error. */
int world_wait(struct world *world, pwc_peer peer, unsigned kinds, struct pwc_event *event);

/* Waits for the remote event by which `peer` reports that its part of a measurement has ended. This
 * may take as long as the measurement, so there is no limit: the peer's own waits have one. */
int world_wait_end(struct world *world, pwc_peer peer, struct pwc_event *event);

/* Call this after -EAGAIN: yields, and returns 0 if the caller shall try again. *since is 0 at the
 * first try; when the timeout has passed, prints that and returns -ETIMEDOUT. */
int world_again(struct world *world, uint64_t *since);

/* Sends a put without bytes, whose remote event has the id. Waits for room. No local event. */
int world_notify(struct world *world, pwc_remote *to, uint64_t id);

#endif
