/* A rank's own operations: submits them in turn, and checks that each ends as its plan says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/stress/stress.h"

#define PLACE_TRIES 16
#define SCRIBBLE    0xee

/* One operation in flight. The entry becomes free when local_due, compared_due, read_due and
 * reading are all false. */
struct flight {
    uint64_t number;
    struct stress_op op;
    uint64_t offset; /* in the target's slice or library */
    uint64_t pool;   /* of its bytes in our pool */
    bool in_use;
    bool local_due;    /* its local event has not come yet */
    bool compared_due; /* the target has not compared it yet */
    bool read_due;     /* the data is still to be read back */
    bool reading;      /* the data is being read back */
};

struct stress_outbound {
    struct flight *flights;
    uint32_t window, in_flight, to_read;
    uint64_t next; /* number of the next operation */
    uint64_t random;
    bool next_placed; /* the next operation has its places, and waits for room */
    struct flight next_flight;
    uint64_t *last_local;    /* by target: one above the last ordered local event's number */
    uint64_t *last_compared; /* by target */
    char *scratch;           /* source in no region, for operations that are packed */
    size_t packed_max;
};

int stress_outbound_open(struct stress *stress)
{
    struct stress_outbound *o = calloc(1, sizeof(*o));
    stress->outbound = o;
    if (o == NULL)
        return world_error(stress->world, -ENOMEM, "making room for operations");
    o->window = (uint32_t)options_window(stress->world->options, 0);
    o->random = pattern_mix(stress->shape.seed ^ stress->world->rank);
    o->packed_max = pwc_packed_max(stress->world->client);
    o->flights = calloc(o->window, sizeof(*o->flights));
    o->last_local = calloc(stress->shape.ranks, sizeof(*o->last_local));
    o->last_compared = calloc(stress->shape.ranks, sizeof(*o->last_compared));
    o->scratch = malloc(o->packed_max + 1);
    if (o->flights == NULL || o->last_local == NULL || o->last_compared == NULL ||
        o->scratch == NULL)
        return world_error(stress->world, -ENOMEM, "making room for operations");
    return 0;
}

void stress_outbound_close(struct stress *stress)
{
    struct stress_outbound *o = stress->outbound;
    if (o == NULL)
        return;
    free(o->scratch);
    free(o->last_compared);
    free(o->last_local);
    free(o->flights);
    free(o);
    stress->outbound = NULL;
}

bool stress_outbound_done(const struct stress *stress)
{
    const struct stress_outbound *o = stress->outbound;
    return o->next == stress->shape.ops && o->in_flight == 0;
}

/* ---- places -------------------------------------------------------------------------------- */

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* Returns whether the place is free of everything in flight. A place that is read (in a library)
 * may be read twice. */
static bool place_free(const struct stress_outbound *o, const struct flight *new)
{
    for (uint32_t i = 0; i < o->window; i++) {
        const struct flight *old = &o->flights[i];
        if (!old->in_use)
            continue;
        if (overlap(old->pool, old->op.size, new->pool, new->op.size))
            return false;
        if (!new->op.get && !old->op.get &&
            old->op.target ==
                new->op.target &&overlap(old->offset, old->op.size, new->offset, new->op.size))
            return false;
    }
    return true;
}

static uint64_t draw(struct stress_outbound *o, uint64_t limit)
{
    o->random = pattern_mix(o->random);
    return o->random % limit;
}

static bool find_place(struct stress_outbound *o, struct flight *flight)
{
    uint64_t size = flight->op.size;
    for (int i = 0; i < PLACE_TRIES; i++) {
        flight->offset = draw(o, STRESS_SLICE - size);
        flight->pool = draw(o, STRESS_POOL - size);
        if (place_free(o, flight))
            return true;
    }
    return false;
}

/* ---- submission ---------------------------------------------------------------------------- */

static char *pool_at(const struct stress *stress, const struct flight *flight)
{
    return (char *)pwc_region_addr(stress->pool) + flight->pool;
}

/* Returns where a slice or a library starts in the target's region. */
static uint64_t remote_offset(const struct stress *stress, const struct flight *flight)
{
    return flight->offset +
           (flight->op.get ? 0 : STRESS_SLICE * (1 + (uint64_t)stress->world->rank));
}

static bool uses_scratch(const struct stress_outbound *o, const struct stress_op *op)
{
    return !op->get && op->from_stack && op->size <= o->packed_max;
}

static int submit(struct stress *stress, const struct flight *flight)
{
    struct stress_outbound *o = stress->outbound;
    const struct stress_op *op = &flight->op;
    char lid_room[PWC_CID_MAX], rid_room[PWC_CID_MAX];
    struct stress_id lid = {STRESS_ENDED, stress->world->rank, flight->number, 0};
    struct stress_id rid = {STRESS_OPERATION, stress->world->rank, flight->number, flight->offset};
    pwc_cid local = stress_id_encode(&stress->shape, &lid, op->lid_size, lid_room);
    pwc_cid remote = stress_id_encode(&stress->shape, &rid, op->rid_size, rid_room);
    pwc_remote *to = stress->remotes[op->target];
    uint64_t at = remote_offset(stress, flight);
    char *bytes = pool_at(stress, flight);
    if (op->get)
        return pwc_get(to, at, bytes, op->size, local, remote, op->flags);
    if (!uses_scratch(o, op))
        return pwc_put(to, at, bytes, op->size, local, remote, op->flags);
    memcpy(o->scratch, bytes, op->size);
    int rc = pwc_put(to, at, o->scratch, op->size, local, remote, op->flags);
    /* pwc_put has copied the bytes: the scratch may be overwritten. */
    memset(o->scratch, SCRIBBLE, op->size);
    return rc;
}

static void prepare(struct stress *stress, struct flight *flight)
{
    if (flight->op.get)
        memset(pool_at(stress, flight), SCRIBBLE, flight->op.size);
    else
        pattern_fill(pool_at(stress, flight), flight->op.size,
                     stress_put_seed(&stress->shape, stress->world->rank, flight->number), 0);
    flight->in_use = true;
    flight->local_due = (flight->op.flags & PWC_NO_LCE) == 0;
    flight->compared_due = stress_has_remote_event(&flight->op);
    flight->read_due = false;
    flight->reading = false;
}

static struct flight *free_flight(struct stress_outbound *o)
{
    for (uint32_t i = 0; i < o->window; i++)
        if (!o->flights[i].in_use)
            return &o->flights[i];
    return NULL;
}

static void count(struct stress *stress, const struct stress_op *op)
{
    stress->totals.operations++;
    stress->totals.puts += !op->get;
    stress->totals.gets += op->get;
    stress->totals.bytes += op->size;
}

/* Returns 1 when the next operation has been submitted, 0 when it must wait. */
static int submit_next(struct stress *stress, bool *stuck)
{
    struct stress_outbound *o = stress->outbound;
    if (o->next == stress->shape.ops || o->in_flight == o->window)
        return 0;
    if (!o->next_placed) {
        o->next_flight.number = o->next;
        stress_plan(&stress->shape, stress->world->rank, o->next, &o->next_flight.op);
        if (!find_place(o, &o->next_flight))
            return 0; /* an operation in flight must end first */
        prepare(stress, &o->next_flight);
        o->next_placed = true;
    }
    /* The event may arrive before this call returns, but is taken only later. */
    int rc = submit(stress, &o->next_flight);
    if (rc == -EAGAIN) {
        *stuck = true;
        return 0;
    }
    if (rc < 0)
        return world_error(stress->world, rc, "submitting operation %llu (%s of %llu bytes)",
                           (unsigned long long)o->next, o->next_flight.op.get ? "get" : "put",
                           (unsigned long long)o->next_flight.op.size);
    *free_flight(o) = o->next_flight;
    count(stress, &o->next_flight.op);
    o->in_flight++;
    o->next++;
    o->next_placed = false;
    return 1;
}

static int submit_read_backs(struct stress *stress, bool *stuck)
{
    struct stress_outbound *o = stress->outbound;
    int done = 0;
    for (uint32_t i = 0; i < o->window && o->to_read > 0; i++) {
        struct flight *flight = &o->flights[i];
        if (!flight->in_use || !flight->read_due)
            continue;
        struct stress_id id = {STRESS_READ_BACK, stress->world->rank, flight->number, 0};
        int rc =
            pwc_get(stress->remotes[flight->op.target], remote_offset(stress, flight),
                    pool_at(stress, flight), flight->op.size,
                    stress_id_encode(&stress->shape, &id, 0, NULL), pwc_cid_u64(0), PWC_NO_RCE);
        if (rc == -EAGAIN) {
            *stuck = true;
            break;
        }
        if (rc < 0)
            return world_error(stress->world, rc, "reading operation %llu back",
                               (unsigned long long)flight->number);
        flight->read_due = false;
        flight->reading = true;
        o->to_read--;
        stress->totals.read_backs++;
        done++;
    }
    return done;
}

int stress_outbound_submit(struct stress *stress, bool *stuck)
{
    int done = submit_read_backs(stress, stuck), rc = 1;
    while (done >= 0 && rc > 0) {
        rc = submit_next(stress, stuck);
        done = rc < 0 ? rc : done + rc;
    }
    return done;
}

/* ---- events -------------------------------------------------------------------------------- */

static void end_if_complete(struct stress_outbound *o, struct flight *flight)
{
    if (flight->local_due || flight->compared_due || flight->read_due || flight->reading)
        return;
    flight->in_use = false;
    o->in_flight--;
}

static struct flight *flight_of(struct stress_outbound *o, uint64_t number)
{
    for (uint32_t i = 0; i < o->window; i++)
        if (o->flights[i].in_use && o->flights[i].number == number)
            return &o->flights[i];
    return NULL;
}

static int check_bytes(struct stress *stress, const struct flight *flight, uint64_t seed,
                       uint64_t from)
{
    size_t same = pattern_check(pool_at(stress, flight), flight->op.size, seed, from);
    stress->totals.compared_bytes += flight->op.size;
    if (same == flight->op.size)
        return 0;
    return world_wrong(stress->world,
                       "operation %llu (%s, rank %u, offset %llu): byte %zu of %llu is wrong",
                       (unsigned long long)flight->number, flight->op.get ? "get" : "put read back",
                       flight->op.target, (unsigned long long)flight->offset, same,
                       (unsigned long long)flight->op.size);
}

static int operation_ended(struct stress *stress, struct flight *flight,
                           const struct pwc_event *event)
{
    struct stress_outbound *o = stress->outbound;
    const struct stress_op *op = &flight->op;
    uint64_t *last = &o->last_local[op->target];
    if (!flight->local_due)
        return world_wrong(stress->world, "operation %llu has ended twice, or unasked",
                           (unsigned long long)flight->number);
    if (event->id_size != op->lid_size || event->length != op->size ||
        pwc_peer_rank(event->peer) != op->target ||
        event->op != (op->get ? PWC_OP_GET : PWC_OP_PUT))
        return world_wrong(stress->world,
                           "operation %llu: local event says %llu bytes with rank %u, id of %u, "
                           "operation %d",
                           (unsigned long long)flight->number, (unsigned long long)event->length,
                           pwc_peer_rank(event->peer), event->id_size, (int)event->op);
    if ((op->flags & PWC_UNORDERED) == 0) {
        if (flight->number < *last)
            return world_wrong(stress->world, "operation %llu with rank %u has ended after %llu",
                               (unsigned long long)flight->number, op->target,
                               (unsigned long long)*last - 1);
        *last = flight->number + 1;
    }
    flight->local_due = false;
    int rc = 0;
    if (op->get)
        rc = check_bytes(stress, flight, stress_library_seed(&stress->shape, op->target),
                         flight->offset);
    else
        memset(pool_at(stress, flight), SCRIBBLE, op->size); /* the source is ours again */
    if (!op->get && !stress_has_remote_event(op)) {
        flight->read_due = true;
        o->to_read++;
    }
    return rc;
}

int stress_outbound_event(struct stress *stress, const struct pwc_event *event,
                          const struct stress_id *id)
{
    struct stress_outbound *o = stress->outbound;
    struct flight *flight = flight_of(o, id->number);
    if (flight == NULL)
        return world_wrong(stress->world, "a local event of operation %llu: not in flight",
                           (unsigned long long)id->number);
    stress->totals.local_events++;
    int rc;
    if (id->kind == STRESS_ENDED) {
        rc = operation_ended(stress, flight, event);
    } else if (id->kind == STRESS_READ_BACK && flight->reading) {
        flight->reading = false;
        rc = check_bytes(stress, flight,
                         stress_put_seed(&stress->shape, stress->world->rank, flight->number), 0);
    } else {
        return world_wrong(stress->world, "a local event of kind %u for operation %llu", id->kind,
                           (unsigned long long)id->number);
    }
    end_if_complete(o, flight);
    return rc;
}

int stress_outbound_compared(struct stress *stress, uint32_t target, uint64_t below)
{
    struct stress_outbound *o = stress->outbound;
    if (below <= o->last_compared[target] || below > o->next)
        return world_wrong(stress->world,
                           "rank %u has compared up to %llu: before %llu, submitted %llu", target,
                           (unsigned long long)below, (unsigned long long)o->last_compared[target],
                           (unsigned long long)o->next);
    o->last_compared[target] = below;
    for (uint32_t i = 0; i < o->window; i++) {
        struct flight *flight = &o->flights[i];
        if (flight->in_use && flight->op.target == target && flight->number < below &&
            flight->compared_due) {
            flight->compared_due = false;
            end_if_complete(o, flight);
        }
    }
    return 0;
}
