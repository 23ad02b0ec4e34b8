/* Sets pairs up, and the steps that latency and stream share. */
#include "tools/pwcperf/pair.h"
#include <errno.h>
#include <stdlib.h>
#include "tools/pwcperf/pattern.h"

int pair_open(struct pair *pair, struct world *world, struct samples *samples, size_t half)
{
    *pair = (struct pair){.world = world, .samples = samples, .half = half};
    if (world->size % 2 != 0)
        return world_refuse(world, "%u ranks: pairs need an even number (pwcrun -n)", world->size);
    uint32_t pairs = world->size / 2;
    pair->initiates = world->rank < pairs;
    pair->peer = pwc_peer_of(pair->initiates ? world->rank + pairs : world->rank - pairs, 0);

    int rc = pwc_alloc(world->client, 2 * half, PWC_REMOTE_RW, &pair->region);
    if (rc < 0)
        return world_error(world, rc, "allocating %zu bytes", 2 * half);
    pair->arrivals = pwc_region_addr(pair->region);
    pair->departures = pair->arrivals + half;

    struct pwc_key *keys = calloc(world->size, sizeof(*keys));
    if (keys == NULL)
        return world_error(world, -ENOMEM, "exchanging keys");
    rc = world_keys(world, pair->region, keys);
    if (rc == 0) {
        rc = pwc_bind(world->ctx, pair->peer, &keys[pwc_peer_rank(pair->peer)], &pair->remote);
        if (rc < 0)
            world_error(world, rc, "binding rank %u", pwc_peer_rank(pair->peer));
    }
    free(keys);
    return rc;
}

void pair_close(struct pair *pair)
{
    if (pair->remote != NULL)
        pwc_unbind(pair->remote);
    if (pair->region != NULL)
        pwc_region_free(pair->region);
}

int pair_put(struct pair *pair, size_t to, size_t from, size_t size, uint64_t lid, uint64_t rid,
             unsigned flags)
{
    uint64_t since = 0;
    int rc;
    flags |= pair->world->options->protocol;
    while ((rc = pwc_put(pair->remote, to, pair->departures + from, size, pwc_cid_u64(lid),
                         pwc_cid_u64(rid), flags)) == -EAGAIN)
        if (world_again(pair->world, &since) < 0)
            return -ETIMEDOUT;
    return rc < 0 ? world_error(pair->world, rc, "putting %zu bytes", size) : 0;
}

int pair_get(struct pair *pair, size_t from, size_t to, size_t size, uint64_t lid)
{
    uint64_t since = 0;
    int rc;
    while ((rc = pwc_get(pair->remote, from, pair->arrivals + to, size, pwc_cid_u64(lid),
                         pwc_cid_u64(0), PWC_NO_RCE)) == -EAGAIN)
        if (world_again(pair->world, &since) < 0)
            return -ETIMEDOUT;
    return rc < 0 ? world_error(pair->world, rc, "getting %zu bytes", size) : 0;
}

static int is_due(const struct pair *pair, const struct pwc_event *event, uint64_t id)
{
    if (event->id == id && event->id_size == 0)
        return 0;
    return world_wrong(pair->world, "event %llu came where %llu was due",
                       (unsigned long long)event->id, (unsigned long long)id);
}

int pair_expect(struct pair *pair, unsigned kind, uint64_t id)
{
    struct pwc_event event;
    int rc = world_wait(pair->world, pair->peer, kind, &event);
    return rc == 0 ? is_due(pair, &event, id) : rc;
}

int pair_expect_end(struct pair *pair, uint64_t id)
{
    struct pwc_event event;
    int rc = world_wait_end(pair->world, pair->peer, &event);
    return rc == 0 ? is_due(pair, &event, id) : rc;
}

int pair_check(const struct pair *pair, size_t at, size_t size, uint64_t seed, uint64_t position,
               uint64_t iteration)
{
    size_t same = pattern_check(pair->arrivals + at, size, seed, position);
    if (same == size)
        return 0;
    return world_wrong(pair->world, "byte %zu of %zu is wrong in iteration %llu", same, size,
                       (unsigned long long)iteration);
}
