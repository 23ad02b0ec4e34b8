/* Owns the directory's tables and decisions (directory.h). */
#include "daemon/peering/directory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DOUBTED (UINT32_C(1) << 30) /* of an entry of `places` */

#define PART_COST 32u /* bytes charged for a contribution beside its own */

void directory_init(struct directory *d, const struct directory_memory *memory, uint32_t node_count,
                    const struct directory_shares *shares)
{
    memset(d, 0, sizeof(*d));
    memset(d->first, 0xff, sizeof(d->first)); /* DIRECTORY_NO_JOB */
    d->memory = memory;
    d->node_count = node_count;
    d->shares = *shares;
}

bool directory_name_valid(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length >= DIRECTORY_NAME_MAX)
        return false;
    for (; *name; name++)
        if (*name <= ' ' || *name > '~')
            return false;
    return true;
}

/* FNV-1a: spreads names evenly, the same on every machine. */
static uint32_t hash_of(const struct directory_id *id)
{
    uint32_t hash = 2166136261u;

    for (int i = 0; i < 4; i++)
        hash = (hash ^ (uint8_t)(id->uid >> (8 * i))) * 16777619u;
    for (const char *c = id->job; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return hash;
}

uint32_t directory_home(const struct directory_id *id, uint32_t node_count)
{
    return hash_of(id) % node_count;
}

/* The head of the list of jobs with this name's hash. All names of one home have the same remainder
 * modulo the number of nodes, so the quotient chooses the list. */
static uint16_t *first_of(struct directory *d, const struct directory_id *id)
{
    return &d->first[hash_of(id) / d->node_count % DIRECTORY_JOBS_MAX];
}

static struct directory_job *job_find(const struct directory *d, const struct directory_id *id)
{
    struct directory *all = (struct directory *)d;
    uint16_t at = *first_of(all, id);

    while (at != DIRECTORY_NO_JOB &&
           (d->jobs[at].uid != id->uid || strcmp(d->jobs[at].name, id->job) != 0))
        at = d->jobs[at].next;
    return at == DIRECTORY_NO_JOB ? NULL : &all->jobs[at];
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* The user's entry, or a free one for it. */
static struct directory_user *user_of(struct directory *d, uint32_t uid)
{
    struct directory_user *free = NULL;

    for (struct directory_user *u = d->users; u < d->users + DIRECTORY_JOBS_MAX; u++) {
        if (u->jobs > 0 && u->uid == uid)
            return u;
        if (u->jobs == 0 && !free)
            free = u;
    }
    return free; /* there are no more users than jobs */
}

/* `left`: of what all share. */
static bool leaves_enough(const struct directory *d, uint64_t held, uint64_t more, uint64_t left)
{
    return more <= left && (d->shares.alone || held + more <= left - more);
}

/* Whether the user may have one job more. */
static int job_room(const struct directory *d, const struct directory_user *u)
{
    if (d->used == DIRECTORY_JOBS_MAX)
        return -ENOSPC;
    if (d->shares.jobs > 0)
        return u->jobs < d->shares.jobs ? 0 : -EDQUOT;
    return leaves_enough(d, u->jobs, 1, DIRECTORY_JOBS_MAX - d->used) ? 0 : -EDQUOT;
}

static void charge(struct directory *d, struct directory_user *u, uint64_t cost)
{
    u->bytes += cost;
    d->bytes += cost;
}

static void discharge(struct directory *d, struct directory_user *u, uint64_t cost)
{
    u->bytes -= cost;
    d->bytes -= cost;
}

static bool has_share(const struct directory *d, const struct directory_user *u, uint64_t cost)
{
    return leaves_enough(d, u->bytes, cost, DIRECTORY_BYTES_MAX - d->bytes);
}

/* Takes memory for this user. NULL: -EDQUOT or -ENOMEM in *rc. */
static void *take(struct directory *d, struct directory_user *u, size_t size, uint64_t cost,
                  int *rc)
{
    void *memory = NULL;

    *rc = -EDQUOT;
    if (!has_share(d, u, cost))
        return NULL;
    memory = d->memory->take(d->memory->context, size);
    *rc = memory ? 0 : -ENOMEM;
    if (memory)
        charge(d, u, cost);
    return memory;
}

static void give(struct directory *d, struct directory_user *u, void *memory, uint64_t cost)
{
    d->memory->give(d->memory->context, memory);
    discharge(d, u, cost);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* DIRECTORY_NOWHERE: it is no rank of the job. */
static uint32_t node_of(const struct directory_job *job, uint32_t rank)
{
    uint32_t place = job->places[rank];

    return place == DIRECTORY_NOWHERE || place == DIRECTORY_LEFT ? DIRECTORY_NOWHERE
                                                                 : place & 0xffffu;
}

static_assert(DIRECTORY_NODES_MAX <= 1u << 16 && DIRECTORY_ENGINES <= 1u << 8,
              "no place reads as DOUBTED, DIRECTORY_NOWHERE or DIRECTORY_LEFT");

/* The memory of a job's places, which the job is charged with. */
static uint32_t *places_take(struct directory *d, const struct directory_job *job, int *rc)
{
    struct directory_table *table = d->memory->table;
    uint64_t cost = (uint64_t)job->size * sizeof(*job->places);

    if (!table)
        return take(d, job->user, cost, cost, rc);
    *rc = has_share(d, job->user, cost) ? 0 : -EDQUOT;
    if (*rc < 0)
        return NULL;
    charge(d, job->user, cost);
    return table->places[job - d->jobs];
}

/* Enters a job with its places into the lists, and into the memory's table. */
static void job_enter(struct directory *d, struct directory_job *job, const char *name)
{
    const struct directory_id id = {.uid = job->uid, .job = name};
    struct directory_table *table = d->memory->table;
    uint16_t *first = first_of(d, &id);

    memcpy(job->name, name, strlen(name) + 1);
    job->used = true;
    job->next = *first;
    *first = (uint16_t)(job - d->jobs);
    job->user->jobs++;
    d->used++;
    if (table) {
        struct directory_entry *entry = &table->jobs[job - d->jobs];

        entry->uid = job->uid;
        memcpy(entry->name, job->name, sizeof(entry->name));
        if (atomic_load_explicit(&entry->size, memory_order_relaxed) == 0) /* not inherited */
            atomic_store_explicit(&table->results[job - d->jobs].state, DIRECTORY_RESULT_NONE,
                                  memory_order_relaxed);
        atomic_store_explicit(&entry->size, job->size, memory_order_release);
    }
}

/* An entry for a job of this user. */
static void job_begin(struct directory_job *job, struct directory_user *u, uint32_t uid,
                      uint32_t size)
{
    *job = (struct directory_job){.uid = uid, .size = size, .user = u};
    if (u->jobs == 0)
        *u = (struct directory_user){.uid = uid};
}

static int job_open(struct directory *d, const struct directory_id *id, uint32_t size,
                    struct directory_job **out)
{
    struct directory_user *u = user_of(d, id->uid);
    struct directory_job *job = d->jobs;
    int rc = u ? job_room(d, u) : -ENOSPC;

    if (rc < 0)
        return rc;
    while (job->used)
        job++;
    job_begin(job, u, id->uid, size);
    job->places = places_take(d, job, &rc);
    if (!job->places)
        return rc;
    for (uint32_t i = 0; i < size; i++)
        job->places[i] = DIRECTORY_NOWHERE;
    job_enter(d, job, id->job);
    *out = job;
    return 0;
}

/* Frees what this process has of a job. */
static void job_forget(struct directory *d, struct directory_job *job)
{
    uint64_t cost = (uint64_t)job->size * sizeof(*job->places);
    const struct directory_id id = {.uid = job->uid, .job = job->name};
    uint16_t *at = first_of(d, &id);

    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        directory_gather_close(d, job, &job->gathers[i]);
    directory_gather_close(d, job, &job->last);
    if (d->memory->table)
        discharge(d, job->user, cost);
    else
        give(d, job->user, job->places, cost);
    while (*at != job - d->jobs)
        at = &d->jobs[*at].next;
    *at = job->next;
    job->user->jobs--;
    d->used--;
    *job = (struct directory_job){0};
}

/* Frees an entry of the memory's table. */
static void entry_free(struct directory *d, uint32_t index, uint32_t ranks)
{
    struct directory_table *table = d->memory->table;

    atomic_store_explicit(&table->jobs[index].size, 0, memory_order_release);
    d->memory->empty(table, index, ranks);
}

static void job_close(struct directory *d, struct directory_job *job)
{
    uint32_t index = (uint32_t)(job - d->jobs), ranks = job->size;

    job_forget(d, job);
    if (d->memory->table)
        entry_free(d, index, ranks);
}

void directory_clear(struct directory *d)
{
    for (uint32_t i = 0; i < DIRECTORY_JOBS_MAX; i++)
        if (d->jobs[i].used)
            job_forget(d, &d->jobs[i]);
}

/* Counts the places of an inherited job. */
static void count_places(const struct directory *d, struct directory_job *job)
{
    for (uint32_t i = 0; i < job->size; i++) {
        uint32_t node = node_of(job, i);

        if (job->places[i] == DIRECTORY_LEFT)
            job->left++;
        else if (node < d->node_count)
            job->live++;
        else
            job->places[i] = DIRECTORY_NOWHERE;
    }
}

static void result_inherit(struct directory *d, struct directory_job *job);

void directory_inherit(struct directory *d)
{
    struct directory_table *table = d->memory->table;

    for (uint32_t i = 0; table && i < DIRECTORY_JOBS_MAX; i++) {
        const struct directory_entry *entry = &table->jobs[i];
        uint32_t size = atomic_load_explicit(&entry->size, memory_order_acquire);
        struct directory_job *job = &d->jobs[i];

        if (size == 0)
            continue;
        job_begin(job, user_of(d, entry->uid), entry->uid, size);
        job->places = table->places[i];
        charge(d, job->user, (uint64_t)size * sizeof(*job->places));
        job_enter(d, job, entry->name);
        count_places(d, job);
        if (job->live == 0)
            job_close(d, job);
        else
            result_inherit(d, job);
    }
}

int directory_attach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t size, uint32_t node, uint32_t engine)
{
    struct directory_job *job;
    size_t length = strlen(id->job);
    int rc;

    if (length == 0 || length >= DIRECTORY_NAME_MAX || size == 0 || size > DIRECTORY_RANKS_MAX ||
        rank >= size || node >= d->node_count || engine >= DIRECTORY_ENGINES)
        return -EINVAL;
    job = job_find(d, id);
    if (!job) {
        rc = job_open(d, id, size, &job);
        if (rc < 0)
            return rc;
    }
    if (job->size != size)
        return -EINVAL;
    if (node_of(job, rank) == DIRECTORY_NOWHERE) {
        /* A rank that comes again counts its exchanges from 0. */
        if (job->places[rank] == DIRECTORY_LEFT) {
            job->left--;
            memset(job->failures, 0, sizeof(job->failures));
        }
        job->live++;
    } else if (node_of(job, rank) != node) {
        return -EADDRINUSE;
    }
    job->places[rank] = engine << 16 | node;
    return 0;
}

int directory_detach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t node, struct directory_job **out, uint32_t *failed)
{
    struct directory_job *job = job_find(d, id);

    *failed = 0;
    *out = job;
    if (!job || rank >= job->size || node_of(job, rank) != node)
        return -ENOENT;
    job->places[rank] = DIRECTORY_LEFT;
    job->left++;
    job->live--;
    if (job->live == 0) {
        job_close(d, job);
        *out = NULL;
        return 0;
    }
    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        if (job->gathers[i].open && !job->gathers[i].parts[rank]) {
            job->gathers[i].odd_rank = rank;
            *failed |= 1u << i;
        }
    return 0;
}

int directory_where(const struct directory *d, const struct directory_id *id, uint32_t rank,
                    uint32_t *engine)
{
    const struct directory_job *job = job_find(d, id);

    *engine = 0;
    if (!job || rank >= job->size || node_of(job, rank) == DIRECTORY_NOWHERE)
        return -EHOSTUNREACH;
    *engine = (job->places[rank] & ~DOUBTED) >> 16;
    return (int)node_of(job, rank);
}

uint32_t directory_size(const struct directory *d, const struct directory_id *id)
{
    const struct directory_job *job = job_find(d, id);

    return job ? job->size : 0;
}

bool directory_has_left(const struct directory *d, const struct directory_id *id, uint32_t rank)
{
    const struct directory_job *job = job_find(d, id);

    return job && rank < job->size && job->places[rank] == DIRECTORY_LEFT;
}

/* ---- exchange ------------------------------------------------------------------------------- */

/* Takes the table of a gather's parts. */
static int gather_parts(struct directory *d, struct directory_job *job, struct directory_gather *g)
{
    uint64_t table = (uint64_t)job->size * sizeof(*g->parts);
    int rc;

    g->parts = take(d, job->user, table, table, &rc);
    g->open = rc == 0;
    return rc;
}

static int gather_open(struct directory *d, struct directory_job *job,
                       const struct directory_part *part, struct directory_gather **out)
{
    struct directory_gather *g = job->gathers;

    if ((uint64_t)part->length * job->size > DIRECTORY_TOTAL_MAX)
        return -EMSGSIZE;
    while (g < job->gathers + DIRECTORY_OPEN_MAX && g->open)
        g++;
    if (g == job->gathers + DIRECTORY_OPEN_MAX)
        return -ENOSPC;
    *g = (struct directory_gather){.sequence = part->sequence, .length = part->length};
    *out = g;
    return gather_parts(d, job, g);
}

void directory_gather_close(struct directory *d, struct directory_job *job,
                            struct directory_gather *gather)
{
    if (!gather->open)
        return;
    for (uint32_t i = 0; i < job->size; i++)
        if (gather->parts[i])
            give(d, job->user, gather->parts[i], gather->length + PART_COST);
    give(d, job->user, gather->parts, (uint64_t)job->size * sizeof(*gather->parts));
    *gather = (struct directory_gather){0};
}

void directory_gather_copy(const struct directory_gather *gather, uint64_t offset, uint8_t *to,
                           size_t size)
{
    while (size > 0) {
        uint32_t within = (uint32_t)(offset % gather->length);
        size_t n = gather->length - within < size ? gather->length - within : size;

        memcpy(to, gather->parts[offset / gather->length] + within, n);
        offset += n;
        to += n;
        size -= n;
    }
}

/* Keeps what a rank gives. */
static int part_take(struct directory *d, struct directory_job *job, struct directory_gather *g,
                     const struct directory_part *part)
{
    int rc;

    /* A byte more: also an empty part is one. */
    g->parts[part->rank] = take(d, job->user, part->length + 1, part->length + PART_COST, &rc);
    if (rc < 0)
        return rc;
    if (part->length > 0)
        memcpy(g->parts[part->rank], part->data, part->length);
    g->have++;
    return 0;
}

static void note_failure(struct directory_job *job, uint32_t sequence, int status)
{
    job->failures[job->failed++ % DIRECTORY_OPEN_MAX] =
        (struct directory_failure){.sequence = sequence, .status = status};
}

/* As note_failure, with the contribution that does not fit. */
static void note_gather(struct directory_job *job, const struct directory_gather *g, int status)
{
    struct directory_failure *f = &job->failures[job->failed % DIRECTORY_OPEN_MAX];

    note_failure(job, g->sequence, status);
    f->odd_rank = g->odd_rank;
    f->odd_length = g->odd_length;
    f->length = g->length;
}

static bool may_keep(const struct directory_job *job, const struct directory_gather *gather)
{
    return (uint64_t)gather->length * job->size <= DIRECTORY_LAST_MAX;
}

void directory_gather_note(struct directory *d, const struct directory_job *job,
                           const struct directory_gather *gather)
{
    struct directory_table *table = d->memory->table;
    ptrdiff_t index = job - d->jobs;
    struct directory_result *to;
    uint32_t state = DIRECTORY_RESULT_LARGE;

    if (!table)
        return;
    to = &table->results[index];
    atomic_store_explicit(&to->state, DIRECTORY_RESULT_NONE, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* zeroed before anything else changes */
    to->sequence = gather->sequence;
    to->length = gather->length;
    if (may_keep(job, gather)) {
        directory_gather_copy(gather, 0, table->bytes[index], (size_t)gather->length * job->size);
        state = DIRECTORY_RESULT_WHOLE;
    }
    atomic_store_explicit(&to->state, state, memory_order_release);
}

/* For nodes that ask for a result that is gone. */
static void note_lost(struct directory_job *job, uint32_t sequence)
{
    const struct directory_gather lost = {.sequence = sequence, .odd_rank = job->size};

    note_gather(job, &lost, -EHOSTDOWN); /* no rank has left */
}

/* The last result of an inherited job, as if it had been kept. */
static void result_inherit(struct directory *d, struct directory_job *job)
{
    const struct directory_table *table = d->memory->table;
    const struct directory_result *from = &table->results[job - d->jobs];
    uint32_t state = atomic_load_explicit(&from->state, memory_order_acquire);
    struct directory_gather *g = &job->last;
    int rc = 0;

    if (state == DIRECTORY_RESULT_NONE)
        return;
    *g = (struct directory_gather){.sequence = from->sequence, .length = from->length};
    if (state == DIRECTORY_RESULT_WHOLE && may_keep(job, g))
        rc = gather_parts(d, job, g);
    else
        rc = -EMSGSIZE;
    for (uint32_t i = 0; i < job->size && rc == 0; i++) {
        const struct directory_part part = {.rank = i,
                                            .data = table->bytes[job - d->jobs] +
                                                    (size_t)i * from->length,
                                            .length = from->length};

        rc = part_take(d, job, g, &part);
    }
    if (rc < 0) {
        directory_gather_close(d, job, g);
        note_lost(job, from->sequence);
    }
}

void directory_gather_keep(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather)
{
    if (!may_keep(job, gather)) {
        note_lost(job, gather->sequence);
        directory_gather_close(d, job, gather);
        return;
    }
    directory_gather_close(d, job, &job->last);
    job->last = *gather;
    *gather = (struct directory_gather){0};
}

const struct directory_gather *directory_kept(const struct directory *d,
                                              const struct directory_id *id,
                                              const struct directory_part *part,
                                              struct directory_job **job)
{
    const struct directory_gather *last;

    *job = job_find(d, id);
    if (!*job || part->rank >= (*job)->size || node_of(*job, part->rank) != part->node ||
        part->size != (*job)->size)
        return NULL;
    last = &(*job)->last;
    return last->open && last->sequence == part->sequence && last->length == part->length ? last
                                                                                          : NULL;
}

const struct directory_failure *directory_failure_of(const struct directory_job *job,
                                                     uint32_t sequence)
{
    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        if (job->failures[i].status < 0 && job->failures[i].sequence == sequence)
            return &job->failures[i];
    return NULL;
}

void directory_gather_fail(struct directory *d, struct directory_job *job,
                           struct directory_gather *gather, int status)
{
    note_gather(job, gather, status);
    directory_gather_close(d, job, gather);
}

/* Whether the exchange lacks a rank that has left; notes the first such rank. */
static bool waits_for_the_gone(const struct directory_job *job, struct directory_gather *g)
{
    for (uint32_t i = 0; i < job->size; i++)
        if (job->places[i] == DIRECTORY_LEFT && !g->parts[i]) {
            g->odd_rank = i;
            return true;
        }
    return false;
}

static struct directory_gather *gather_of(struct directory_job *job, uint32_t sequence)
{
    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        if (job->gathers[i].open && job->gathers[i].sequence == sequence)
            return &job->gathers[i];
    return NULL;
}

struct directory_gather *directory_give_up(const struct directory *d, const struct directory_id *id,
                                           const struct directory_part *part,
                                           struct directory_job **out_job)
{
    struct directory_job *job = job_find(d, id);

    *out_job = job;
    if (!job || part->rank >= job->size || node_of(job, part->rank) != part->node)
        return NULL;
    return gather_of(job, part->sequence);
}

void directory_missing(const struct directory_job *job, const struct directory_gather *g,
                       char *text, size_t size)
{
    const size_t tail = sizeof(" and 2097152 more");
    uint32_t left = job->size - g->have;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t first = 0, last; left > 0 && first < job->size; first = last + 1) {
        char run[32];
        int n;

        last = first;
        if (g->parts[first])
            continue;
        while (last + 1 < job->size && !g->parts[last + 1])
            last++;
        n = last > first ? snprintf(run, sizeof(run), "%s%u-%u", used > 0 ? ", " : "", first, last)
                         : snprintf(run, sizeof(run), "%s%u", used > 0 ? ", " : "", first);
        if (used + (size_t)n + tail > size) {
            snprintf(text + used, size - used, " and %u more", left);
            return;
        }
        memcpy(text + used, run, (size_t)n + 1);
        used += (size_t)n;
        left -= last - first + 1;
    }
}

int directory_contribute(struct directory *d, const struct directory_id *id,
                         const struct directory_part *part, struct directory_job **out_job,
                         struct directory_gather **out)
{
    struct directory_job *job = job_find(d, id);
    const struct directory_failure *failure;
    struct directory_gather *g;
    int rc;

    *out_job = job;
    *out = NULL;
    if (part->length > DIRECTORY_DATA_MAX)
        return -EMSGSIZE;
    if (!job || part->rank >= job->size || node_of(job, part->rank) != part->node)
        return -EPERM;
    if (part->size != job->size)
        return -EINVAL;
    failure = directory_failure_of(job, part->sequence);
    if (failure)
        return failure->status;
    g = gather_of(job, part->sequence);
    if (!g) {
        rc = gather_open(d, job, part, &g);
        if (rc < 0) {
            note_failure(job, part->sequence, rc);
            return rc;
        }
    }
    *out = g;
    if (g->length != part->length) {
        g->odd_rank = part->rank;
        g->odd_length = part->length;
        return -EINVAL;
    }
    if (g->parts[part->rank])
        return -EALREADY;
    rc = part_take(d, job, g, part);
    if (rc < 0)
        return rc;
    if (job->left > 0 && waits_for_the_gone(job, g))
        return -EHOSTDOWN;
    return g->have == job->size ? 1 : 0;
}

uint32_t directory_next_node(const struct directory_job *job, uint32_t *at, uint8_t *seen)
{
    for (; *at < job->size; (*at)++) {
        uint32_t node = node_of(job, *at);

        if (node == DIRECTORY_NOWHERE || seen[node])
            continue;
        seen[node] = 1;
        (*at)++;
        return node;
    }
    return DIRECTORY_NOWHERE;
}

static bool next_rank_of(const struct directory *d, uint32_t node, uint32_t bits, uint32_t *job_at,
                         uint32_t *rank_at)
{
    for (; *job_at < DIRECTORY_JOBS_MAX; (*job_at)++, *rank_at = 0) {
        const struct directory_job *job = &d->jobs[*job_at];

        for (; job->used && *rank_at < job->size; (*rank_at)++)
            if (node_of(job, *rank_at) == node && (job->places[*rank_at] & bits) == bits)
                return true;
    }
    return false;
}

bool directory_next_rank_of(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at)
{
    return next_rank_of(d, node, 0, job_at, rank_at);
}

void directory_doubt(struct directory *d, uint32_t node)
{
    for (uint32_t job = 0, rank = 0; directory_next_rank_of(d, node, &job, &rank); rank++)
        d->jobs[job].places[rank] |= DOUBTED;
}

bool directory_next_doubted(const struct directory *d, uint32_t node, uint32_t *job_at,
                            uint32_t *rank_at)
{
    return next_rank_of(d, node, DOUBTED, job_at, rank_at);
}
