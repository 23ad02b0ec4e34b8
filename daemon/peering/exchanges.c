/* Owns the exchanges of the directory's jobs (directory.h). Thread: control. */
#include "daemon/peering/directory_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PART_COST 32u /* bytes charged for a contribution in addition to its length */

/* Makes the table of a gather's contributions. */
static int gather_parts(struct directory *d, struct directory_job *job, struct directory_gather *g)
{
    uint64_t table = (uint64_t)job->size * sizeof(*g->parts);
    int rc;

    g->parts = directory_take(d, job->user, table, table, &rc);
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
            directory_give(d, job->user, gather->parts[i], gather->length + PART_COST);
    directory_give(d, job->user, gather->parts, (uint64_t)job->size * sizeof(*gather->parts));
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

/* Keeps a rank's contribution. */
static int part_take(struct directory *d, struct directory_job *job, struct directory_gather *g,
                     const struct directory_part *part)
{
    int rc;

    /* One byte more, so that an empty contribution is not NULL. */
    g->parts[part->rank] =
        directory_take(d, job->user, part->length + 1, part->length + PART_COST, &rc);
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

/* Notes a result in the table. The ranks stop being fresh while the table has no result: a process
 * that dies in between leaves neither the earlier result to a rank that took no part in it, nor
 * this one to ranks that still count as fresh. */
static void note_result(struct directory *d, struct directory_job *job,
                        const struct directory_gather *gather, struct directory_table *table)
{
    ptrdiff_t index = job - d->jobs;
    struct directory_result *to = &table->results[index];
    uint32_t state = DIRECTORY_RESULT_LARGE;

    atomic_store_explicit(&to->state, DIRECTORY_RESULT_NONE, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* `state` is zero before anything else changes */
    directory_all_took_part(job);
    to->sequence = gather->sequence;
    to->length = gather->length;
    if (may_keep(job, gather)) {
        directory_gather_copy(gather, 0, table->bytes[index], (size_t)gather->length * job->size);
        state = DIRECTORY_RESULT_WHOLE;
    }
    atomic_store_explicit(&to->state, state, memory_order_release);
}

void directory_gather_note(struct directory *d, struct directory_job *job,
                           const struct directory_gather *gather)
{
    if (d->memory->table)
        note_result(d, job, gather, d->memory->table);
    else
        directory_all_took_part(job);
}

/* Notes an error for nodes that ask for a result that is lost. */
static void note_lost(struct directory_job *job, uint32_t sequence)
{
    const struct directory_gather lost = {.sequence = sequence, .odd_rank = job->size};

    note_gather(job, &lost, -EHOSTDOWN); /* no rank has left */
}

/* Keeps the last result of an inherited job again, or notes that it is lost. */
void directory_result_inherit(struct directory *d, struct directory_job *job)
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

static struct directory_gather *gather_of(struct directory_job *job, uint32_t sequence)
{
    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        if (job->gathers[i].open && job->gathers[i].sequence == sequence)
            return &job->gathers[i];
    return NULL;
}

const struct directory_gather *directory_kept(const struct directory *d,
                                              const struct directory_id *id,
                                              const struct directory_part *part,
                                              struct directory_job **job)
{
    const struct directory_gather *last;

    *job = directory_job_find(d, id);
    if (!*job || part->rank >= (*job)->size || directory_node_of(*job, part->rank) != part->node ||
        part->size != (*job)->size || directory_is_fresh(*job, part->rank))
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

/* Whether a rank has left without a contribution to the exchange; notes the first such rank. */
static bool waits_for_the_gone(const struct directory_job *job, struct directory_gather *g)
{
    for (uint32_t i = 0; i < job->size; i++)
        if (job->places[i] == DIRECTORY_LEFT && !g->parts[i]) {
            g->odd_rank = i;
            return true;
        }
    return false;
}

void directory_part_drop(struct directory *d, struct directory_job *job, uint32_t rank)
{
    struct directory_gather *g = gather_of(job, 0);

    if (!g || !g->parts[rank])
        return;
    directory_give(d, job->user, g->parts[rank], g->length + PART_COST);
    g->parts[rank] = NULL;
    g->have--;
    if (g->have == 0)
        directory_gather_close(d, job, g); /* the first to come may choose another length */
}

struct directory_gather *directory_give_up(const struct directory *d, const struct directory_id *id,
                                           const struct directory_part *part,
                                           struct directory_job **out_job)
{
    struct directory_job *job = directory_job_find(d, id);

    *out_job = job;
    if (!job || part->rank >= job->size || directory_node_of(job, part->rank) != part->node)
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
    struct directory_job *job = directory_job_find(d, id);
    const struct directory_failure *failure;
    struct directory_gather *g;
    int rc;

    *out_job = job;
    *out = NULL;
    if (part->length > DIRECTORY_DATA_MAX)
        return -EMSGSIZE;
    if (!job || part->rank >= job->size || directory_node_of(job, part->rank) != part->node)
        return -EPERM;
    if (job->kind != DIRECTORY_FIXED)
        return -ENOTSUP; /* an open job has no number of ranks to wait for */
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
