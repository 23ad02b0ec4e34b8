/* Operations of other ranks on this one: each event must come in its turn, with the bytes that it
 * announces. */
#include <errno.h>
#include <stdlib.h>
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/stress/stress.h"

#define ACKNOWLEDGE_EVERY 8u

/* The operations of one origin that end here. */
struct source {
    uint64_t due;      /* number of its next operation with an event here; `ops`: none is left */
    uint64_t compared; /* one above the number of the last that we have compared */
    uint32_t unacknowledged;
};

struct stress_inbound {
    struct source *sources; /* by rank */
    uint32_t incomplete;    /* sources with something due */
    uint64_t unacknowledged;
};

/* Moves to the first operation from `from` on that ends here with an event. */
static void find_due(const struct stress *stress, uint32_t origin, struct source *source,
                     uint64_t from)
{
    struct stress_op op;
    for (source->due = from; source->due < stress->shape.ops; source->due++) {
        stress_plan(&stress->shape, origin, source->due, &op);
        if (op.target == stress->world->rank && stress_has_remote_event(&op))
            return;
    }
    stress->inbound->incomplete--;
}

int stress_inbound_open(struct stress *stress)
{
    struct stress_inbound *in = calloc(1, sizeof(*in));
    stress->inbound = in;
    if (in != NULL)
        in->sources = calloc(stress->shape.ranks, sizeof(*in->sources));
    if (in == NULL || in->sources == NULL)
        return world_error(stress->world, -ENOMEM, "making room for origins");
    in->incomplete = stress->shape.ranks;
    for (uint32_t i = 0; i < stress->shape.ranks; i++)
        find_due(stress, i, &in->sources[i], 0);
    return 0;
}

void stress_inbound_close(struct stress *stress)
{
    if (stress->inbound != NULL)
        free(stress->inbound->sources);
    free(stress->inbound);
    stress->inbound = NULL;
}

bool stress_inbound_done(const struct stress *stress)
{
    return stress->inbound->incomplete == 0 && stress->inbound->unacknowledged == 0;
}

static int check_put(struct stress *stress, const struct stress_id *id, uint64_t size)
{
    if (id->offset > STRESS_SLICE || size > STRESS_SLICE - id->offset)
        return world_wrong(stress->world, "offset %llu of rank %u's operation %llu is wrong",
                           (unsigned long long)id->offset, id->origin,
                           (unsigned long long)id->number);
    const char *at = (const char *)pwc_region_addr(stress->region) +
                     STRESS_SLICE * (1 + (uint64_t)id->origin) + id->offset;
    size_t same =
        pattern_check(at, size, stress_put_seed(&stress->shape, id->origin, id->number), 0);
    stress->totals.compared_bytes += size;
    if (same == size)
        return 0;
    return world_wrong(stress->world,
                       "rank %u's operation %llu (offset %llu): byte %zu of %llu is wrong",
                       id->origin, (unsigned long long)id->number, (unsigned long long)id->offset,
                       same, (unsigned long long)size);
}

int stress_inbound_event(struct stress *stress, const struct pwc_event *event,
                         const struct stress_id *id)
{
    struct source *source = &stress->inbound->sources[id->origin];
    struct stress_op op;
    if (id->number != source->due)
        return world_wrong(stress->world,
                           "rank %u's operation %llu came where %llu was due: lost, doubled or "
                           "out of order",
                           id->origin, (unsigned long long)id->number,
                           (unsigned long long)source->due);
    stress_plan(&stress->shape, id->origin, id->number, &op);
    if (event->length != op.size || event->id_size != op.rid_size ||
        event->op != (op.get ? PWC_OP_GET : PWC_OP_PUT))
        return world_wrong(
            stress->world,
            "rank %u's operation %llu: %llu bytes, an id of %u, operation %d; planned "
            "were %llu and %u",
            id->origin, (unsigned long long)id->number, (unsigned long long)event->length,
            event->id_size, (int)event->op, (unsigned long long)op.size, op.rid_size);
    stress->totals.remote_events++;
    int rc = op.get ? 0 : check_put(stress, id, op.size);
    source->compared = id->number + 1;
    source->unacknowledged++;
    stress->inbound->unacknowledged++;
    find_due(stress, id->origin, source, id->number + 1);
    return rc;
}

/* Returns 1 when the acknowledgement was sent, 0 when there was no room. */
static int acknowledge(struct stress *stress, uint32_t origin, struct source *source, bool *stuck)
{
    struct stress_id id = {STRESS_COMPARED, stress->world->rank, source->compared, 0};
    int rc = pwc_put(stress->remotes[origin], 0, NULL, 0, pwc_cid_u64(0),
                     stress_id_encode(&stress->shape, &id, 0, NULL), PWC_NO_LCE);
    if (rc == -EAGAIN) {
        *stuck = true;
        return 0;
    }
    if (rc < 0)
        return world_error(stress->world, rc, "notifying rank %u what has been compared", origin);
    stress->inbound->unacknowledged -= source->unacknowledged;
    source->unacknowledged = 0;
    return 1;
}

int stress_inbound_acknowledge(struct stress *stress, bool idle, bool *stuck)
{
    uint32_t enough = idle ? 1 : ACKNOWLEDGE_EVERY;
    int done = 0;
    if (stress->inbound->unacknowledged < enough)
        return 0;
    for (uint32_t i = 0; i < stress->shape.ranks && !*stuck; i++) {
        struct source *source = &stress->inbound->sources[i];
        if (source->unacknowledged < enough)
            continue;
        int rc = acknowledge(stress, i, source, stuck);
        if (rc < 0)
            return rc;
        done += rc;
    }
    return done;
}
