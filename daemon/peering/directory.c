/* Owns the directory's tables and decisions (directory.h). Thread: control. */
#include "daemon/peering/directory_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bits of an entry of `places`. */
#define DOUBTED (UINT32_C(1) << 30)
#define FRESH   (UINT32_C(1) << 29) /* no exchange has ended since the rank has a new process */

#define PLACES_STEP 1024u /* an open job's places grow by so many ranks: a page */

void directory_init(struct directory *d, const struct directory_memory *memory, uint32_t node_count,
                    const struct directory_shares *shares)
{
    memset(d, 0, sizeof(*d));
    memset(d->first, 0xff, sizeof(d->first)); /* DIRECTORY_NO_JOB */
    d->memory = memory;
    d->node_count = node_count;
    d->ranks_max = DIRECTORY_RANKS_MAX;
    d->shares = *shares;
}

bool directory_text_valid(const char *text, size_t room)
{
    size_t length = strlen(text);

    if (length == 0 || length >= room)
        return false;
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

bool directory_name_valid(const char *name)
{
    return directory_text_valid(name, DIRECTORY_NAME_MAX);
}

/* The hash FNV-1a: it spreads names evenly, and is the same on every machine. */
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

/* The head of the list of jobs with this name's hash. All hashes of one home have the same
 * remainder modulo the number of nodes, so the quotient chooses the list. */
static uint16_t *first_of(struct directory *d, const struct directory_id *id)
{
    return &d->first[hash_of(id) / d->node_count % DIRECTORY_JOBS_MAX];
}

struct directory_job *directory_job_find(const struct directory *d, const struct directory_id *id)
{
    struct directory *all = (struct directory *)d;
    uint16_t at = *first_of(all, id);

    while (at != DIRECTORY_NO_JOB &&
           (d->jobs[at].uid != id->uid || strcmp(d->jobs[at].name, id->job) != 0))
        at = d->jobs[at].next;
    return at == DIRECTORY_NO_JOB ? NULL : &all->jobs[at];
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Finds the user's entry, or a free one. */
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

/* Whether the user may take `more`. `left`: what all users together have left. */
static bool leaves_enough(const struct directory *d, uint64_t held, uint64_t more, uint64_t left)
{
    return more <= left && (d->shares.alone || held + more <= left - more);
}

/* Whether the user may have one more job. */
static int job_room(const struct directory *d, const struct directory_user *u)
{
    if (d->used == DIRECTORY_JOBS_MAX)
        return -ENOSPC;
    if (d->shares.jobs > 0)
        return u->jobs < d->shares.jobs ? 0 : -EDQUOT;
    return leaves_enough(d, u->jobs, 1, DIRECTORY_JOBS_MAX - d->used) ? 0 : -EDQUOT;
}

void directory_charge(struct directory *d, struct directory_user *u, uint64_t cost)
{
    u->bytes += cost;
    d->bytes += cost;
}

void directory_discharge(struct directory *d, struct directory_user *u, uint64_t cost)
{
    u->bytes -= cost;
    d->bytes -= cost;
}

bool directory_has_share(const struct directory *d, const struct directory_user *u, uint64_t cost)
{
    return leaves_enough(d, u->bytes, cost, DIRECTORY_BYTES_MAX - d->bytes);
}

/* Takes memory, and charges this user. NULL: *rc is -EDQUOT or -ENOMEM. */
void *directory_take(struct directory *d, struct directory_user *u, size_t size, uint64_t cost,
                     int *rc)
{
    void *memory = NULL;

    *rc = -EDQUOT;
    if (!directory_has_share(d, u, cost))
        return NULL;
    memory = d->memory->take(d->memory->context, size);
    *rc = memory ? 0 : -ENOMEM;
    if (memory)
        directory_charge(d, u, cost);
    return memory;
}

void directory_give(struct directory *d, struct directory_user *u, void *memory, uint64_t cost)
{
    d->memory->give(d->memory->context, memory);
    directory_discharge(d, u, cost);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* The node of a rank; DIRECTORY_NOWHERE: the rank is not attached. */
uint32_t directory_node_of(const struct directory_job *job, uint32_t rank)
{
    uint32_t place = job->places[rank];

    return place == DIRECTORY_NOWHERE || place == DIRECTORY_LEFT ? DIRECTORY_NOWHERE
                                                                 : place & 0xffffu;
}

static_assert(DIRECTORY_NODES_MAX <= 1u << 16 && DIRECTORY_ENGINES <= 1u << 8,
              "no place reads as DOUBTED, FRESH, DIRECTORY_NOWHERE or DIRECTORY_LEFT");

bool directory_is_fresh(const struct directory_job *job, uint32_t rank)
{
    return directory_node_of(job, rank) != DIRECTORY_NOWHERE && job->places[rank] & FRESH;
}

void directory_all_took_part(struct directory_job *job)
{
    for (uint32_t i = 0; i < job->size; i++)
        if (directory_is_fresh(job, i))
            job->places[i] &= ~FRESH;
}

/* Makes room for `room` ranks of a job, and charges its user. Places from job->size on have no
 * meaning. */
static int places_grow(struct directory *d, struct directory_job *job, uint32_t room)
{
    uint64_t more = (uint64_t)(room - job->room) * sizeof(*job->places);
    uint64_t all = (uint64_t)room * sizeof(*job->places);
    struct directory_table *table = d->memory->table;
    uint32_t *places;
    int rc;

    if (table) {
        if (!directory_has_share(d, job->user, more))
            return -EDQUOT;
        directory_charge(d, job->user, more);
        job->places = table->places[job - d->jobs];
        job->room = room;
        return 0;
    }
    places = directory_take(d, job->user, all, all, &rc);
    if (!places)
        return rc;
    if (job->places) {
        memcpy(places, job->places, job->size * sizeof(*places));
        directory_give(d, job->user, job->places, all - more);
    }
    job->places = places;
    job->room = room;
    return 0;
}

/* Gives the job `size` ranks; the new ones are at DIRECTORY_NOWHERE. */
static int job_extend(struct directory *d, struct directory_job *job, uint32_t size)
{
    uint32_t room = size;
    int rc = 0;

    if (job->kind != DIRECTORY_FIXED)
        room = (size + PLACES_STEP - 1) / PLACES_STEP * PLACES_STEP;
    if (room > job->room)
        rc = places_grow(d, job, room);
    if (rc < 0)
        return rc;
    for (uint32_t i = job->size; i < size; i++)
        job->places[i] = DIRECTORY_NOWHERE;
    job->size = size;
    return 0;
}

/* Notes in the memory's table how many ranks the job has. */
static void note_size(const struct directory *d, const struct directory_job *job)
{
    struct directory_table *table = d->memory->table;

    if (table)
        atomic_store_explicit(&table->jobs[job - d->jobs].size, job->size, memory_order_release);
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
        if (atomic_load_explicit(&entry->size, memory_order_relaxed) == 0) { /* not inherited */
            atomic_store_explicit(&table->results[job - d->jobs].state, DIRECTORY_RESULT_NONE,
                                  memory_order_relaxed);
            entry->published = 0;
        }
        entry->kind = job->kind;
        entry->instance = job->instance;
        note_size(d, job);
    }
}

/* Begins an entry for a job of this user. */
static void job_begin(struct directory_job *job, struct directory_user *u, uint32_t uid)
{
    *job = (struct directory_job){.uid = uid, .user = u};
    if (u->jobs == 0)
        *u = (struct directory_user){.uid = uid};
}

static uint64_t draw(const struct directory *d)
{
    uint64_t instance = 0;

    while (instance == 0)
        instance = d->memory->draw ? d->memory->draw(d->memory->context) : 1;
    return instance;
}

/* Begins a job with `size` ranks. `instance` 0: draws one. */
static int job_open(struct directory *d, const struct directory_id *id, enum directory_kind kind,
                    uint32_t size, uint64_t instance, struct directory_job **out)
{
    struct directory_user *u = user_of(d, id->uid);
    struct directory_job *job = d->jobs;
    int rc = u ? job_room(d, u) : -ENOSPC;

    if (rc < 0)
        return rc;
    while (job->used)
        job++;
    job_begin(job, u, id->uid);
    job->kind = kind;
    job->instance = instance ? instance : draw(d);
    rc = job_extend(d, job, size);
    if (rc < 0)
        return rc;
    job_enter(d, job, id->job);
    *out = job;
    return 0;
}

/* Frees what this process has of a job; an entry of the memory's table stays. */
static void job_forget(struct directory *d, struct directory_job *job)
{
    uint64_t cost = (uint64_t)job->room * sizeof(*job->places);
    const struct directory_id id = {.uid = job->uid, .job = job->name};
    uint16_t *at = first_of(d, &id);

    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++)
        directory_gather_close(d, job, &job->gathers[i]);
    directory_gather_close(d, job, &job->last);
    directory_names_free(d, job);
    if (d->memory->table)
        directory_discharge(d, job->user, cost);
    else
        directory_give(d, job->user, job->places, cost);
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
        uint32_t node = directory_node_of(job, i);

        if (job->places[i] == DIRECTORY_LEFT)
            job->left++;
        else if (node < d->node_count)
            job->live++;
        else
            job->places[i] = DIRECTORY_NOWHERE;
    }
}

void directory_inherit(struct directory *d)
{
    struct directory_table *table = d->memory->table;

    for (uint32_t i = 0; table && i < DIRECTORY_JOBS_MAX; i++) {
        const struct directory_entry *entry = &table->jobs[i];
        uint32_t size = atomic_load_explicit(&entry->size, memory_order_acquire);
        struct directory_job *job = &d->jobs[i];

        if (size == 0)
            continue;
        job_begin(job, user_of(d, entry->uid), entry->uid);
        job->kind = entry->kind;
        job->instance = entry->instance;
        job->size = job->room = size;
        if (job->kind != DIRECTORY_FIXED)
            job->room = (size + PLACES_STEP - 1) / PLACES_STEP * PLACES_STEP;
        job->places = table->places[i];
        directory_charge(d, job->user, (uint64_t)job->room * sizeof(*job->places));
        job_enter(d, job, entry->name);
        count_places(d, job);
        if (job->live == 0) {
            job_close(d, job);
            continue;
        }
        directory_result_inherit(d, job);
        directory_names_inherit(d, job);
    }
}

/* Checks what a claim and a join have in common. */
static bool place_valid(const struct directory *d, const struct directory_id *id, uint32_t node,
                        uint32_t engine)
{
    size_t length = strlen(id->job);

    return length > 0 && length < DIRECTORY_NAME_MAX && node < d->node_count &&
           engine < DIRECTORY_ENGINES;
}

static bool claim_valid(const struct directory *d, const struct directory_id *id,
                        const struct directory_claim *c)
{
    uint32_t most = c->size == DIRECTORY_OPEN ? d->ranks_max : DIRECTORY_RANKS_MAX;

    return place_valid(d, id, c->node, c->engine) && c->size > 0 && c->rank < c->size &&
           c->rank < most && (c->size == DIRECTORY_OPEN || c->size <= most);
}

/* Finds the job of a rank that its node announces; opens the job if the directory does not have
 * it. */
static int job_of_claim(struct directory *d, const struct directory_id *id,
                        const struct directory_claim *c, struct directory_job **out)
{
    bool open = c->size == DIRECTORY_OPEN;
    struct directory_job *job = directory_job_find(d, id);

    if (!job) {
        if (open && c->instance == 0)
            return -ESTALE;
        return job_open(d, id, open ? DIRECTORY_ADOPTED : DIRECTORY_FIXED,
                        open ? c->rank + 1 : c->size, c->instance, out);
    }
    *out = job;
    if (open != (job->kind != DIRECTORY_FIXED) || (!open && job->size != c->size))
        return -EINVAL;
    if (open && job->instance != c->instance)
        return -ESTALE;
    return 0;
}

/* Notes where one of the job's ranks is. A new process counts its exchanges from 0, so what an
 * earlier one with its rank has contributed means nothing to it, nor do earlier failures. */
static int place(struct directory *d, struct directory_job *job, const struct directory_claim *c)
{
    uint32_t node = directory_node_of(job, c->rank), fresh = FRESH;
    bool has_left = job->places[c->rank] == DIRECTORY_LEFT;

    if (node != DIRECTORY_NOWHERE && node != c->node)
        return -EADDRINUSE;
    if (c->again)
        fresh = directory_is_fresh(job, c->rank) ? FRESH : 0;
    else
        directory_part_drop(d, job, c->rank);
    if (has_left && !c->again)
        memset(job->failures, 0, sizeof(job->failures));
    job->left -= has_left;
    job->live += node == DIRECTORY_NOWHERE;
    job->places[c->rank] = fresh | c->engine << 16 | c->node;
    return 0;
}

int directory_claim(struct directory *d, const struct directory_id *id,
                    const struct directory_claim *c)
{
    struct directory_job *job;
    int rc = claim_valid(d, id, c) ? job_of_claim(d, id, c, &job) : -EINVAL;

    if (rc < 0)
        return rc;
    if (c->rank >= job->size) {
        /* Where this home has given all ranks, it knows each of them. */
        if (job->kind != DIRECTORY_ADOPTED)
            return -EINVAL;
        rc = job_extend(d, job, c->rank + 1);
        if (rc < 0)
            return rc;
        note_size(d, job);
    }
    return place(d, job, c);
}

int directory_attach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t size, uint32_t node, uint32_t engine)
{
    const struct directory_claim claim = {
        .rank = rank, .size = size, .node = node, .engine = engine};

    return directory_claim(d, id, &claim);
}

int directory_join(struct directory *d, const struct directory_id *id, uint32_t node,
                   uint32_t engine, uint32_t *rank)
{
    struct directory_job *job = directory_job_find(d, id);
    int rc = 0;

    if (!place_valid(d, id, node, engine) || (job && job->kind == DIRECTORY_FIXED))
        return -EINVAL;
    if (job && job->kind == DIRECTORY_ADOPTED)
        return -ESTALE;
    if (job && job->size >= d->ranks_max)
        return -ENOSPC;
    if (job)
        rc = job_extend(d, job, job->size + 1);
    else
        rc = job_open(d, id, DIRECTORY_JOINED, 1, 0, &job);
    if (rc < 0)
        return rc;
    *rank = job->size - 1;
    rc = place(d, job, &(struct directory_claim){.rank = *rank, .node = node, .engine = engine});
    note_size(d, job); /* before anybody gets the rank: no process of this daemon gives it again */
    return rc;
}

int directory_detach(struct directory *d, const struct directory_id *id, uint32_t rank,
                     uint32_t node, struct directory_job **out, uint32_t *failed)
{
    struct directory_job *job = directory_job_find(d, id);

    *failed = 0;
    *out = job;
    if (!job || rank >= job->size || directory_node_of(job, rank) != node)
        return -ENOENT;
    job->places[rank] = DIRECTORY_LEFT;
    job->left++;
    job->live--;
    directory_names_rank_left(d, job, rank);
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
    const struct directory_job *job = directory_job_find(d, id);

    *engine = 0;
    if (!job || rank >= job->size || directory_node_of(job, rank) == DIRECTORY_NOWHERE)
        return -EHOSTUNREACH;
    *engine = (job->places[rank] & ~(DOUBTED | FRESH)) >> 16;
    return (int)directory_node_of(job, rank);
}

uint32_t directory_size(const struct directory *d, const struct directory_id *id)
{
    const struct directory_job *job = directory_job_find(d, id);

    return job ? job->size : 0;
}

uint64_t directory_instance(const struct directory *d, const struct directory_id *id)
{
    const struct directory_job *job = directory_job_find(d, id);

    return job ? job->instance : 0;
}

bool directory_is_open(const struct directory *d, const struct directory_id *id)
{
    const struct directory_job *job = directory_job_find(d, id);

    return job && job->kind != DIRECTORY_FIXED;
}

bool directory_has_left(const struct directory *d, const struct directory_id *id, uint32_t rank)
{
    const struct directory_job *job = directory_job_find(d, id);

    return job && rank < job->size && job->places[rank] == DIRECTORY_LEFT;
}

uint32_t directory_next_node(const struct directory_job *job, uint32_t *at, uint8_t *seen)
{
    for (; *at < job->size; (*at)++) {
        uint32_t node = directory_node_of(job, *at);

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
            if (directory_node_of(job, *rank_at) == node && (job->places[*rank_at] & bits) == bits)
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
