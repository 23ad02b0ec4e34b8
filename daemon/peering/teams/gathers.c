/* Owns the gathers of calls that make teams (teams.h). Thread: control. */
#include "daemon/peering/teams/teams_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void teams_init(struct teams *t, const struct directory_memory *memory,
                const struct directory *directory, uint32_t node, uint64_t from)
{
    *t = (struct teams){.memory = memory,
                        .directory = directory,
                        .node = node,
                        .node_count = directory->node_count,
                        .alone = directory->shares.alone,
                        .counted = from};
    t->look_tail = &t->look;
}

/* All gathers of one parent are in one bucket, chosen by the hash FNV-1a. */
struct teams_gather **gathers_bucket(struct teams *t, const struct teams_key *key)
{
    uint32_t hash = (2166136261u ^ key->id.uid) * 16777619u;

    for (const char *c = key->id.job; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    hash = (hash ^ key->context) * 16777619u;
    hash = (hash ^ (uint32_t)key->parent ^ (uint32_t)(key->parent >> 32)) * 16777619u;
    return &t->first[hash % TEAMS_BUCKETS];
}

bool gather_is_of_job(const struct teams_gather *g, const struct directory_id *id)
{
    return g->uid == id->uid && strcmp(g->job, id->job) == 0;
}

bool gather_is_of_parent(const struct teams_gather *g, const struct teams_key *key)
{
    return g->parent == key->parent && g->context == key->context && gather_is_of_job(g, &key->id);
}

struct teams_gather *gather_find(struct teams *t, const struct teams_key *key)
{
    struct teams_gather *g = *gathers_bucket(t, key);

    while (g && (g->call != key->call || !gather_is_of_parent(g, key)))
        g = g->next;
    return g;
}

static uint64_t cost_of(const struct teams *t, uint32_t size)
{
    return sizeof(struct teams_gather) + (uint64_t)size * sizeof(struct teams_member) +
           t->node_count;
}

/* Whether the user, with one gather more, leaves as many gathers and bytes free as the user then
 * holds (directory.h). */
static bool leaves_enough(const struct teams *t, uint32_t uid, uint64_t more)
{
    uint64_t held = 0, left = TEAMS_BYTES_MAX - t->bytes;
    uint32_t gathers = 0;

    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (const struct teams_gather *g = t->first[i]; g; g = g->next) {
            held += g->uid == uid ? cost_of(t, g->size) : 0;
            gathers += g->uid == uid;
        }
    return more <= left && (t->alone || (held + more <= left - more &&
                                         gathers + 1 < TEAMS_GATHERS_MAX - t->gathers));
}

static void give(struct teams *t, void *memory)
{
    if (memory)
        t->memory->give(t->memory->context, memory);
}

static void forget(struct teams *t, struct teams_gather *g)
{
    const struct teams_key key = {
        .id = {.uid = g->uid, .job = g->job}, .parent = g->parent, .context = g->context};
    struct teams_gather **at = gathers_bucket(t, &key);

    while (*at && *at != g)
        at = &(*at)->next;
    if (*at) {
        *at = g->next;
        t->gathers--;
        t->bytes -= cost_of(t, g->size);
    }
    give(t, g->members);
    give(t, g->nodes);
    give(t, g);
}

void teams_clear(struct teams *t)
{
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        while (t->first[i])
            forget(t, t->first[i]);
    t->look = NULL;
    t->look_tail = &t->look;
}

int gather_open(struct teams *t, const struct teams_key *key, const struct teams_call *call,
                struct teams_gather **out)
{
    struct teams_gather **first = gathers_bucket(t, key);
    struct teams_gather *g;

    if (t->gathers == TEAMS_GATHERS_MAX)
        return -ENOSPC;
    if (!leaves_enough(t, key->id.uid, cost_of(t, call->size)))
        return -EDQUOT;
    g = t->memory->take(t->memory->context, sizeof(*g));
    if (!g)
        return -ENOMEM;
    *g = (struct teams_gather){.uid = key->id.uid,
                               .parent = key->parent,
                               .context = key->context,
                               .call = key->call,
                               .phase = TEAMS_GATHERING,
                               .kind = call->kind,
                               .window = call->window,
                               .size = call->size,
                               .asked = TEAMS_NONE};
    snprintf(g->job, sizeof(g->job), "%s", key->id.job);
    g->members = t->memory->take(t->memory->context, call->size * sizeof(*g->members));
    g->nodes = t->memory->take(t->memory->context, t->node_count);
    if (!g->members || !g->nodes) {
        forget(t, g);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < g->size; i++)
        g->members[i] = (struct teams_member){
            .at = i, .rank = key->parent == 0 ? i : TEAMS_NONE, .node = TEAMS_NONE};
    if (key->parent == 0)
        g->named = g->size;
    g->next = *first;
    *first = g;
    t->gathers++;
    t->bytes += cost_of(t, g->size);
    *out = g;
    return 0;
}

/* ---- gathers with something due ------------------------------------------------------------- */

void gather_look_at(struct teams *t, struct teams_gather *g)
{
    if (g->queued)
        return;
    g->queued = true;
    g->later = NULL;
    *t->look_tail = g;
    t->look_tail = &g->later;
}

void gather_make_due(struct teams *t, struct teams_gather *g, enum teams_due due)
{
    g->due = due;
    gather_look_at(t, g);
}

/* Whether nobody can ask for the gather again: all members have called or are gone, and all nodes
 * have confirmed the end. */
static bool is_done(const struct teams_gather *g)
{
    return g->over || (g->phase == TEAMS_ENDED && g->called + g->gone == g->size &&
                       g->confirmed == g->involved);
}

struct teams_gather *teams_take_due(struct teams *t, enum teams_due *due)
{
    struct teams_gather *g;

    while ((g = t->look) != NULL) {
        t->look = g->later;
        if (!t->look)
            t->look_tail = &t->look;
        g->queued = false;
        if (is_done(g)) {
            forget(t, g);
            continue;
        }
        *due = g->due;
        g->due = TEAMS_NOTHING;
        if (*due != TEAMS_NOTHING)
            return g;
    }
    *due = TEAMS_NOTHING;
    return NULL;
}
