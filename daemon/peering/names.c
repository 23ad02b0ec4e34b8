/* Owns the names that ranks publish, and the ranks that wait for a name (names.h). Thread:
 * control. */
#include "daemon/peering/names.h"

#include <errno.h>
#include <string.h>
#include "daemon/peering/directory_private.h"

/* The names of a job, made when the first name or waiter comes. Owned by the job. */
struct directory_names {
    struct directory_published *entries;      /* in the memory's table, or from `take` */
    uint32_t hashes[DIRECTORY_PUBLISHED_MAX]; /* of the names; 0: the entry is free */
    uint32_t count;
    struct names_waiter *waiters; /* list, in the order in which they came */
    uint32_t waiting;
};

bool names_valid(const char *name)
{
    return directory_text_valid(name, DIRECTORY_PUBLISHED_NAME);
}

/* The hash FNV-1a, but never 0. */
static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash ? hash : 1;
}

uint32_t names_data_length(const struct directory_published *published)
{
    return atomic_load_explicit(&published->state, memory_order_relaxed) - 1;
}

uint32_t names_count(const struct directory_job *job)
{
    return job->names ? job->names->count : 0;
}

/* The job's names; makes them where the job has none. */
static struct directory_names *names_of(struct directory *d, struct directory_job *job, int *rc)
{
    struct directory_table *table = d->memory->table;
    struct directory_names *n = job->names;
    const size_t bytes = sizeof(struct directory_published) * DIRECTORY_PUBLISHED_MAX;

    *rc = 0;
    if (n)
        return n;
    n = directory_take(d, job->user, sizeof(*n), sizeof(*n), rc);
    if (!n)
        return NULL;
    /* Each entry is charged when it is used. */
    n->entries =
        table ? table->published[job - d->jobs] : directory_take(d, job->user, bytes, 0, rc);
    if (!n->entries) {
        directory_give(d, job->user, n, sizeof(*n));
        return NULL;
    }
    job->names = n;
    return n;
}

static struct directory_published *find(const struct directory_names *n, const char *name)
{
    uint32_t hash = hash_of(name);

    for (uint32_t i = 0; n && i < DIRECTORY_PUBLISHED_MAX; i++)
        if (n->hashes[i] == hash && strcmp(n->entries[i].name, name) == 0)
            return &n->entries[i];
    return NULL;
}

/* Finds the job, if its rank is attached on that node; else NULL. */
static struct directory_job *job_of_rank(const struct directory *d, const struct directory_id *id,
                                         uint32_t rank, uint32_t node)
{
    struct directory_job *job = directory_job_find(d, id);

    return job && rank < job->size && directory_node_of(job, rank) == node ? job : NULL;
}

static void entry_drop(struct directory *d, struct directory_job *job,
                       struct directory_published *entry)
{
    atomic_store_explicit(&entry->state, 0, memory_order_release);
    job->names->hashes[entry - job->names->entries] = 0;
    job->names->count--;
    directory_discharge(d, job->user, sizeof(*entry));
}

/* Takes a free entry, and charges the user. */
static struct directory_published *entry_take(struct directory *d, struct directory_job *job,
                                              const char *name, int *rc)
{
    struct directory_table *table = d->memory->table;
    struct directory_names *n = names_of(d, job, rc);
    uint32_t at = 0;

    if (!n)
        return NULL;
    while (at < DIRECTORY_PUBLISHED_MAX && n->hashes[at] != 0)
        at++;
    *rc = at == DIRECTORY_PUBLISHED_MAX                                           ? -ENOSPC
          : directory_has_share(d, job->user, sizeof(struct directory_published)) ? 0
                                                                                  : -EDQUOT;
    if (*rc < 0)
        return NULL;
    directory_charge(d, job->user, sizeof(struct directory_published));
    n->hashes[at] = hash_of(name);
    n->count++;
    if (table && table->jobs[job - d->jobs].published <= at)
        table->jobs[job - d->jobs].published = at + 1;
    return &n->entries[at];
}

int names_publish(struct directory *d, const struct directory_id *id, const struct names_item *item)
{
    struct directory_job *job = job_of_rank(d, id, item->rank, item->node);
    struct directory_published *entry;
    int rc;

    if (!names_valid(item->name) || item->length > DIRECTORY_PUBLISHED_DATA)
        return -EINVAL;
    if (!job)
        return -ESTALE;
    entry = find(job->names, item->name);
    if (entry && entry->rank != item->rank)
        return -EADDRINUSE;
    if (!entry)
        entry = entry_take(d, job, item->name, &rc);
    if (!entry)
        return rc;
    atomic_store_explicit(&entry->state, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* `state` is zero before anything else changes */
    entry->rank = item->rank;
    memset(entry->name, 0, sizeof(entry->name));
    memcpy(entry->name, item->name, strlen(item->name));
    if (item->length > 0)
        memcpy(entry->data, item->data, item->length);
    atomic_store_explicit(&entry->state, item->length + 1, memory_order_release);
    return 0;
}

int names_unpublish(struct directory *d, const struct directory_id *id,
                    const struct names_item *item)
{
    struct directory_job *job = job_of_rank(d, id, item->rank, item->node);
    struct directory_published *entry = job ? find(job->names, item->name) : NULL;

    if (!entry || entry->rank != item->rank)
        return -ENOENT;
    entry_drop(d, job, entry);
    return 0;
}

const struct directory_published *names_find(const struct directory *d,
                                             const struct directory_id *id, const char *name)
{
    const struct directory_job *job = directory_job_find(d, id);

    return job ? find(job->names, name) : NULL;
}

/* ---- waiters --------------------------------------------------------------------------------- */

static void waiter_drop(struct directory *d, struct directory_job *job, struct names_waiter **at)
{
    struct names_waiter *gone = *at;

    *at = gone->next;
    job->names->waiting--;
    directory_give(d, job->user, gone, sizeof(*gone));
}

int names_wait(struct directory *d, const struct directory_id *id,
               const struct names_waiter *waiter)
{
    struct directory_job *job = job_of_rank(d, id, waiter->rank, waiter->node);
    struct names_waiter **at, *fresh;
    struct directory_names *n;
    int rc;

    if (!job)
        return -ESTALE;
    n = names_of(d, job, &rc);
    if (!n)
        return rc;
    for (at = &n->waiters; *at; at = &(*at)->next)
        if ((*at)->node == waiter->node && (*at)->cookie == waiter->cookie)
            return 0;
    if (n->waiting == NAMES_WAITERS_MAX)
        return -ENOSPC;
    fresh = directory_take(d, job->user, sizeof(*fresh), sizeof(*fresh), &rc);
    if (!fresh)
        return rc;
    *fresh = *waiter;
    fresh->next = NULL;
    *at = fresh;
    n->waiting++;
    return 0;
}

bool names_next_waiter(struct directory *d, const struct directory_id *id, const char *name,
                       struct names_waiter *out)
{
    struct directory_job *job = directory_job_find(d, id);

    if (!job || !job->names)
        return false;
    for (struct names_waiter **at = &job->names->waiters; *at; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0) {
            *out = **at;
            waiter_drop(d, job, at);
            return true;
        }
    return false;
}

/* Drops the job's waiters of this node, with this cookie or any. */
static void drop_waiters(struct directory *d, struct directory_job *job, uint32_t node,
                         uint64_t cookie)
{
    struct names_waiter **at = &job->names->waiters;

    while (*at)
        if ((*at)->node == node && (cookie == NAMES_ANY_COOKIE || (*at)->cookie == cookie))
            waiter_drop(d, job, at);
        else
            at = &(*at)->next;
}

void names_waits_no_longer(struct directory *d, const struct directory_id *id, uint32_t node,
                           uint64_t cookie)
{
    struct directory_job *job = directory_job_find(d, id);

    if (job && job->names)
        drop_waiters(d, job, node, cookie);
}

void names_node_waits_no_longer(struct directory *d, uint32_t node)
{
    for (uint32_t i = 0; i < DIRECTORY_JOBS_MAX; i++)
        if (d->jobs[i].names)
            drop_waiters(d, &d->jobs[i], node, NAMES_ANY_COOKIE);
}

/* ---- ranks and jobs -------------------------------------------------------------------------- */

void directory_names_rank_left(struct directory *d, struct directory_job *job, uint32_t rank)
{
    struct directory_names *n = job->names;

    for (uint32_t i = 0; n && n->count > 0 && i < DIRECTORY_PUBLISHED_MAX; i++)
        if (n->hashes[i] != 0 && n->entries[i].rank == rank)
            entry_drop(d, job, &n->entries[i]);
    for (struct names_waiter **at = n ? &n->waiters : NULL; at && *at;)
        if ((*at)->rank == rank)
            waiter_drop(d, job, at);
        else
            at = &(*at)->next;
}

/* Whether an entry of the table is valid: its name has a terminator, and its publisher is
 * attached. */
static bool entry_stands(const struct directory_job *job, const struct directory_published *entry)
{
    uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);

    return state > 0 && state <= DIRECTORY_PUBLISHED_DATA + 1 &&
           memchr(entry->name, '\0', sizeof(entry->name)) != NULL && entry->rank < job->size &&
           directory_node_of(job, entry->rank) != DIRECTORY_NOWHERE;
}

void directory_names_inherit(struct directory *d, struct directory_job *job)
{
    struct directory_published *entries = d->memory->table->published[job - d->jobs];
    const uint32_t end = d->memory->table->jobs[job - d->jobs].published;
    struct directory_names *n;
    int rc;

    /* Read only entries that were used: to read another one would allocate its page. */
    for (uint32_t i = 0; i < end && i < DIRECTORY_PUBLISHED_MAX; i++) {
        if (!entry_stands(job, &entries[i])) {
            if (atomic_load_explicit(&entries[i].state, memory_order_relaxed) != 0)
                atomic_store_explicit(&entries[i].state, 0, memory_order_relaxed);
            continue;
        }
        n = names_of(d, job, &rc);
        if (!n)
            return; /* the publishers' nodes announce the names again */
        n->hashes[i] = hash_of(entries[i].name);
        n->count++;
        directory_charge(d, job->user, sizeof(entries[i]));
    }
}

void directory_names_free(struct directory *d, struct directory_job *job)
{
    struct directory_names *n = job->names;

    if (!n)
        return;
    while (n->waiters)
        waiter_drop(d, job, &n->waiters);
    directory_discharge(d, job->user, (uint64_t)n->count * sizeof(struct directory_published));
    if (!d->memory->table)
        directory_give(d, job->user, n->entries, 0);
    directory_give(d, job->user, n, sizeof(*n));
    job->names = NULL;
}
