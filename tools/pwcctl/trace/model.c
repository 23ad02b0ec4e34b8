/* Builds the model (model.h): each trace record begins a slice, or adds a moment to one. */
#include "tools/pwcctl/trace/model.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An index finds a slice by its key: an operation's origin, flow and sequence, or a run's peer and
 * sequence. */
struct key {
    uint64_t a, b;
};

struct index {
    struct key *keys;
    uint32_t *slices; /* TRACE_NONE: free */
    size_t room, used;
};

/* Events that a client has not read yet, in the order of their ring. */
struct unread {
    uint32_t session, ring;
    uint32_t *slices;
    size_t first, count, room;
};

/* The state while the records of one engine are read. */
struct reading {
    struct trace_model *model;
    uint32_t source, engine, origin;
    struct index operations, runs;
    struct unread *unread;
    size_t unread_count;
    /* Per peer: operations whose records wait for a run, oldest first. */
    uint32_t *staged;
    size_t staged_first, staged_count, staged_room;
};

/* ---- an index of slices ---------------------------------------------------------------------- */

static size_t slot_of(const struct index *x, struct key key)
{
    uint64_t hash = (key.a ^ key.b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    size_t slot = (hash ^ hash >> 32) & (x->room - 1);
    while (x->slices[slot] != TRACE_NONE && (x->keys[slot].a != key.a || x->keys[slot].b != key.b))
        slot = (slot + 1) & (x->room - 1);
    return slot;
}

static int index_grow(struct index *x)
{
    struct index larger = {.room = x->room ? 2 * x->room : 1024, .used = x->used};
    larger.keys = malloc(larger.room * sizeof(*larger.keys));
    larger.slices = malloc(larger.room * sizeof(*larger.slices));
    if (larger.keys == NULL || larger.slices == NULL) {
        free(larger.keys);
        free(larger.slices);
        return -ENOMEM;
    }
    memset(larger.slices, 0xff, larger.room * sizeof(*larger.slices));
    for (size_t i = 0; i < x->room; i++)
        if (x->slices[i] != TRACE_NONE) {
            size_t slot = slot_of(&larger, x->keys[i]);
            larger.keys[slot] = x->keys[i];
            larger.slices[slot] = x->slices[i];
        }
    free(x->keys);
    free(x->slices);
    *x = larger;
    return 0;
}

/* Lets the key lead to this slice; an earlier slice with the same key is not found any more. */
static int index_set(struct index *x, struct key key, uint32_t slice)
{
    if (2 * (x->used + 1) > x->room && index_grow(x) < 0)
        return -ENOMEM;
    size_t slot = slot_of(x, key);
    x->used += x->slices[slot] == TRACE_NONE;
    x->keys[slot] = key;
    x->slices[slot] = slice;
    return 0;
}

static uint32_t index_get(const struct index *x, struct key key)
{
    return x->room > 0 ? x->slices[slot_of(x, key)] : TRACE_NONE;
}

static void index_free(struct index *x)
{
    free(x->keys);
    free(x->slices);
}

static struct key operation_key(uint32_t origin, uint32_t flow, uint64_t sequence)
{
    return (struct key){.a = (uint64_t)origin << 32 | flow, .b = (uint32_t)sequence};
}

/* ---- slices ---------------------------------------------------------------------------------- */

static uint32_t slice_new(struct reading *in, enum slice_kind kind, const struct trace_record *r,
                          uint32_t track)
{
    struct trace_model *m = in->model;
    if (m->count == m->room) {
        size_t room = m->room ? 2 * m->room : 4096;
        struct slice *slices = realloc(m->slices, room * sizeof(*slices));
        if (slices == NULL || room >= TRACE_NONE)
            return TRACE_NONE;
        m->slices = slices;
        m->room = room;
    }
    m->slices[m->count] = (struct slice){.kind = (uint8_t)kind,
                                         .what = r->op,
                                         .count = r->count,
                                         .source = in->source,
                                         .engine = in->engine,
                                         .track = track,
                                         .origin = in->origin,
                                         .flow = r->flow,
                                         .sequence = (uint32_t)r->sequence,
                                         .towards = r->node,
                                         .length = r->length,
                                         .status = r->status,
                                         .at[MOMENT_BEGIN] = r->at_ns,
                                         .carried_by = TRACE_NONE,
                                         .arrived_as = TRACE_NONE};
    return (uint32_t)m->count++;
}

/* Appends a number to a list with a head that moves on. */
static int list_push(uint32_t **list, size_t *count, size_t *room, uint32_t number)
{
    if (*count == *room) {
        size_t more = *room ? 2 * *room : 256;
        uint32_t *larger = realloc(*list, more * sizeof(*larger));
        if (larger == NULL)
            return -ENOMEM;
        *list = larger;
        *room = more;
    }
    (*list)[(*count)++] = number;
    return 0;
}

static struct unread *unread_of(struct reading *in, uint32_t session, uint32_t ring)
{
    for (size_t i = 0; i < in->unread_count; i++)
        if (in->unread[i].session == session && in->unread[i].ring == ring)
            return &in->unread[i];
    struct unread *more = realloc(in->unread, (in->unread_count + 1) * sizeof(*more));
    if (more == NULL)
        return NULL;
    in->unread = more;
    more[in->unread_count] = (struct unread){.session = session, .ring = ring};
    return &more[in->unread_count++];
}

/* Notes that the slice's event is in a ring, and ends there at r->position. */
static int shown(struct reading *in, const struct trace_record *r, uint32_t ring, uint32_t slice)
{
    if (r->position == 0)
        return 0;
    struct unread *u = unread_of(in, r->session, ring);
    struct slice *slices = in->model->slices;
    if (u == NULL)
        return -ENOMEM;
    slices[slice].position = r->position;
    /* In a session, positions only grow. If the last entry has a greater one, all entries so far
     * belong to an earlier session with this number: drop them. */
    if (u->count > u->first && slices[u->slices[u->count - 1]].position > r->position)
        u->first = u->count;
    return list_push(&u->slices, &u->count, &u->room, slice);
}

static int drained(struct reading *in, const struct trace_record *r)
{
    struct unread *u = unread_of(in, r->session, r->op);
    struct slice *slices = in->model->slices;
    if (u == NULL)
        return -ENOMEM;
    for (; u->first < u->count && slices[u->slices[u->first]].position <= r->position; u->first++)
        slices[u->slices[u->first]].at[MOMENT_END] = r->at_ns;
    return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static int submitted(struct reading *in, const struct trace_record *r)
{
    uint32_t slice = slice_new(in, SLICE_OPERATION, r, r->client);
    if (slice == TRACE_NONE)
        return -ENOMEM;
    in->model->slices[slice].peer = r->position;
    return index_set(&in->operations, operation_key(in->origin, r->flow, r->sequence), slice);
}

static int event(struct reading *in, const struct trace_record *r)
{
    uint32_t slice = slice_new(in, SLICE_EVENT, r, r->client);
    if (slice == TRACE_NONE)
        return -ENOMEM;
    in->model->slices[slice].origin = r->node;
    return shown(in, r, r->kind == TRACE_REPLY ? TRACE_RING_REPLY : TRACE_RING_REMOTE, slice);
}

/* Adds a run, and finds the operations that it carries: their records stand before the run's end in
 * the same ledger. */
static int run(struct reading *in, const struct trace_record *r)
{
    uint32_t slice = slice_new(in, SLICE_RUN, r, r->node);
    struct slice *slices = in->model->slices;
    size_t kept = in->staged_first;
    if (slice == TRACE_NONE)
        return -ENOMEM;
    for (size_t i = in->staged_first; i < in->staged_count; i++) {
        struct slice *operation = &slices[in->staged[i]];
        if (operation->towards == r->node && operation->position <= r->position)
            operation->carried_by = slice;
        else
            in->staged[kept++] = in->staged[i];
    }
    in->staged_count = kept;
    if (in->staged_first == in->staged_count)
        in->staged_first = in->staged_count = 0;
    return index_set(&in->runs, (struct key){r->node, r->sequence}, slice);
}

static void run_ended(struct reading *in, const struct trace_record *r)
{
    uint32_t slice = index_get(&in->runs, (struct key){r->node, r->sequence});
    if (slice != TRACE_NONE && in->model->slices[slice].at[MOMENT_END] == 0)
        in->model->slices[slice].at[MOMENT_END] = r->at_ns;
}

static int mark(struct reading *in, const struct trace_record *r)
{
    bool of_peer = r->kind == TRACE_PEER_UP || r->kind == TRACE_PEER_DOWN;
    uint32_t slice = slice_new(in, SLICE_MARK, r, of_peer ? r->node : r->client);
    if (slice == TRACE_NONE)
        return -ENOMEM;
    in->model->slices[slice].what = r->kind;
    return 0;
}

static int handled(struct reading *in, const struct trace_record *r)
{
    uint32_t slice = slice_new(in, SLICE_HANDLER, r, r->client);
    if (slice == TRACE_NONE)
        return -ENOMEM;
    in->model->slices[slice].at[MOMENT_END] = r->at_ns + r->position;
    return 0;
}

/* Takes a later step of an operation whose beginning was recorded. */
static int step(struct reading *in, const struct trace_record *r)
{
    static const uint8_t moments[TRACE_KINDS] = {[TRACE_STAGED] = MOMENT_POSTED,
                                                 [TRACE_POSTED] = MOMENT_POSTED,
                                                 [TRACE_COMPLETED] = MOMENT_COMPLETED,
                                                 [TRACE_PLACED] = MOMENT_PLACED,
                                                 [TRACE_LOCAL] = MOMENT_LOCAL};
    uint32_t slice = index_get(&in->operations, operation_key(in->origin, r->flow, r->sequence));
    if (slice == TRACE_NONE) {
        in->model->unknown++;
        return 0;
    }
    struct slice *s = &in->model->slices[slice];
    if (s->at[moments[r->kind]] == 0)
        s->at[moments[r->kind]] = r->at_ns;
    s->status = r->status;
    if (r->kind == TRACE_LOCAL)
        return shown(in, r, TRACE_RING_LOCAL, slice);
    if (r->kind != TRACE_STAGED)
        return 0;
    s->position = r->position;
    return list_push(&in->staged, &in->staged_count, &in->staged_room, slice);
}

static int take(struct reading *in, const struct trace_record *r)
{
    switch (r->kind) {
    case TRACE_SUBMITTED:
        return submitted(in, r);
    case TRACE_REMOTE:
    case TRACE_REPLY:
        return event(in, r);
    case TRACE_DRAINED:
        return drained(in, r);
    case TRACE_HANDLER:
        return handled(in, r);
    case TRACE_RUN:
        return run(in, r);
    case TRACE_RUN_ENDED:
        run_ended(in, r);
        return 0;
    case TRACE_STAGED:
    case TRACE_POSTED:
    case TRACE_COMPLETED:
    case TRACE_PLACED:
    case TRACE_LOCAL:
        return step(in, r);
    default:
        return r->kind > TRACE_RUN_ENDED && r->kind < TRACE_KINDS ? mark(in, r) : 0;
    }
}

int trace_model_add(struct trace_model *m, const struct trace_source *source, uint32_t number,
                    uint32_t engine, const struct trace_record *records, size_t count)
{
    struct reading in = {.model = m,
                         .source = number,
                         .engine = engine,
                         .origin = source->node + source->nodes * engine};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct trace_record *r = &records[i];
        if (m->first_ns == 0 || r->at_ns < m->first_ns)
            m->first_ns = r->at_ns;
        if (r->at_ns > m->last_ns)
            m->last_ns = r->at_ns;
        rc = take(&in, r);
    }
    for (size_t i = 0; i < in.unread_count; i++)
        free(in.unread[i].slices);
    free(in.unread);
    free(in.staged);
    index_free(&in.operations);
    index_free(&in.runs);
    return rc;
}

/* ---- when all are there ---------------------------------------------------------------------- */

/* Makes each moment no earlier than the one before it, and makes sure that there is an end. */
static void settle(struct slice *s, uint64_t last_ns)
{
    uint64_t latest = s->at[MOMENT_BEGIN];
    for (int i = MOMENT_BEGIN + 1; i < MOMENTS; i++) {
        if (s->at[i] != 0 && s->at[i] < latest)
            s->at[i] = latest;
        if (s->at[i] > latest)
            latest = s->at[i];
    }
    bool ended = s->kind != SLICE_OPERATION || s->at[MOMENT_LOCAL] != 0;
    if (s->at[MOMENT_END] == 0 && s->kind != SLICE_MARK)
        s->at[MOMENT_END] = ended && s->kind != SLICE_RUN ? latest : last_ns;
}

static int find_events(struct trace_model *m)
{
    struct index operations = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->count; i++) {
        const struct slice *s = &m->slices[i];
        if (s->kind == SLICE_OPERATION)
            rc =
                index_set(&operations, operation_key(s->origin, s->flow, s->sequence), (uint32_t)i);
    }
    for (size_t i = 0; rc == 0 && i < m->count; i++) {
        const struct slice *s = &m->slices[i];
        uint32_t operation =
            s->kind == SLICE_EVENT
                ? index_get(&operations, operation_key(s->origin, s->flow, s->sequence))
                : TRACE_NONE;
        if (operation != TRACE_NONE && m->slices[operation].at[MOMENT_BEGIN] <= s->at[MOMENT_BEGIN])
            m->slices[operation].arrived_as = (uint32_t)i;
    }
    index_free(&operations);
    return rc;
}

static int by_track(const void *a, const void *b)
{
    const struct slice *x = *(const struct slice *const *)a, *y = *(const struct slice *const *)b;
    bool x_run = x->kind == SLICE_RUN, y_run = y->kind == SLICE_RUN;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x_run != y_run)
        return x_run ? 1 : -1; /* writes are drawn below all clients */
    if (x->engine != y->engine)
        return x->engine < y->engine ? -1 : 1;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->at[MOMENT_BEGIN] != y->at[MOMENT_BEGIN])
        return x->at[MOMENT_BEGIN] < y->at[MOMENT_BEGIN] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool same_track(const struct slice *x, const struct slice *y)
{
    return x->source == y->source && x->engine == y->engine && x->track == y->track &&
           (x->kind == SLICE_RUN) == (y->kind == SLICE_RUN);
}

/* Gives each slice the first lane of its track whose last slice has ended. A viewer shows each lane
 * as a thread: `thread` counts the lanes of all tracks, in the order in which they are drawn. */
static int give_lanes(struct trace_model *m)
{
    struct slice **order = malloc((m->count + 1) * sizeof(*order));
    uint64_t *ends = malloc((m->count + 1) * sizeof(*ends));
    size_t count = 0, lanes = 0, above = 0;
    for (size_t i = 0; order != NULL && i < m->count; i++)
        if (m->slices[i].kind != SLICE_MARK)
            order[count++] = &m->slices[i];
    if (order != NULL && ends != NULL)
        qsort(order, count, sizeof(*order), by_track);
    for (size_t i = 0; order != NULL && ends != NULL && i < count; i++) {
        struct slice *s = order[i];
        size_t lane = 0;
        /* A slice without duration takes 1 ns before and after it for itself: else viewers would
         * not find the end of an arrow there. */
        uint64_t moment = s->at[MOMENT_END] == s->at[MOMENT_BEGIN];
        if (i > 0 && !same_track(order[i - 1], s)) {
            above += lanes;
            lanes = 0;
        }
        while (lane < lanes && ends[lane] > s->at[MOMENT_BEGIN] - moment)
            lane++;
        s->opens_lane = lane == lanes;
        lanes += lane == lanes;
        ends[lane] = s->at[MOMENT_END] + moment;
        s->lane = (uint32_t)lane;
        s->thread = (uint32_t)(above + lane);
    }
    int rc = order != NULL && ends != NULL ? 0 : -ENOMEM;
    free(order);
    free(ends);
    return rc;
}

int trace_model_finish(struct trace_model *m)
{
    for (size_t i = 0; i < m->count; i++)
        settle(&m->slices[i], m->last_ns);
    int rc = find_events(m);
    return rc < 0 ? rc : give_lanes(m);
}

void trace_model_free(struct trace_model *m)
{
    free(m->slices);
}
