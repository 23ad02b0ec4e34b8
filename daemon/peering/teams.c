/* Owns the gathers of calls that make teams, and their ends (teams.h). */
#include "daemon/peering/teams.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_BITS 48 /* of a team's number; the home's number stands above them */

enum teams_state {
    EXPECTED = 0,
    CALLED,
    GONE,
};

enum node_bits {
    INVOLVED = 1,
    READY = 2,
    CONFIRMED = 4, /* that the gather has ended */
};

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

/* ---- gathers --------------------------------------------------------------------------------- */

/* All gathers of one parent are in one bucket. FNV-1a. */
static struct teams_gather **bucket_of(struct teams *t, const struct teams_key *key)
{
    uint32_t hash = (2166136261u ^ key->id.uid) * 16777619u;

    for (const char *c = key->id.job; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    hash = (hash ^ key->context) * 16777619u;
    hash = (hash ^ (uint32_t)key->parent ^ (uint32_t)(key->parent >> 32)) * 16777619u;
    return &t->first[hash % TEAMS_BUCKETS];
}

static bool is_of_job(const struct teams_gather *g, const struct directory_id *id)
{
    return g->uid == id->uid && strcmp(g->job, id->job) == 0;
}

static bool is_of_parent(const struct teams_gather *g, const struct teams_key *key)
{
    return g->parent == key->parent && g->context == key->context && is_of_job(g, &key->id);
}

static struct teams_gather *find(struct teams *t, const struct teams_key *key)
{
    struct teams_gather *g = *bucket_of(t, key);

    while (g && (g->call != key->call || !is_of_parent(g, key)))
        g = g->next;
    return g;
}

static uint64_t cost_of(const struct teams *t, uint32_t size)
{
    return sizeof(struct teams_gather) + (uint64_t)size * sizeof(struct teams_member) +
           t->node_count;
}

/* Beside its bounds a user leaves as much free as it holds (directory.h). */
static bool leaves_enough(const struct teams *t, uint32_t uid, uint64_t more)
{
    uint64_t held = 0, left = TEAMS_BYTES_MAX - t->bytes;

    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (const struct teams_gather *g = t->first[i]; g; g = g->next)
            held += g->uid == uid ? cost_of(t, g->size) : 0;
    return more <= left && (t->alone || held + more <= left - more);
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
    struct teams_gather **at = bucket_of(t, &key);

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

static int open_gather(struct teams *t, const struct teams_key *key, const struct teams_call *call,
                       struct teams_gather **out)
{
    struct teams_gather **first = bucket_of(t, key);
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

/* ---- what is due ----------------------------------------------------------------------------- */

static void look_at(struct teams *t, struct teams_gather *g)
{
    if (g->queued)
        return;
    g->queued = true;
    g->later = NULL;
    *t->look_tail = g;
    t->look_tail = &g->later;
}

static void make_due(struct teams *t, struct teams_gather *g, enum teams_due due)
{
    g->due = due;
    look_at(t, g);
}

/* Nobody can ask for it again: all members have called or are gone, and all nodes have the end. */
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

/* ---- the end --------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void end(struct teams *t, struct teams_gather *g,
                                                      int status, const char *format, ...)
{
    va_list arguments;

    if (g->phase == TEAMS_ENDED)
        return;
    va_start(arguments, format);
    vsnprintf(g->why, sizeof(g->why), format, arguments);
    va_end(arguments);
    g->phase = TEAMS_ENDED;
    g->status = status;
    make_due(t, g, TEAMS_START);
}

/* Members of the new teams first, team by team in their order; then all others. */
static int by_team(const void *one, const void *other)
{
    const struct teams_member *a = one, *b = other;
    bool in_a = a->state == CALLED && a->color >= 0, in_b = b->state == CALLED && b->color >= 0;

    if (in_a != in_b)
        return in_a ? -1 : 1;
    if (in_a && a->color != b->color)
        return a->color < b->color ? -1 : 1;
    if (in_a && a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void group(struct teams *t, struct teams_gather *g)
{
    struct teams_group team = {0};

    qsort(g->members, g->size, sizeof(*g->members), by_team);
    g->number =
        (uint64_t)t->node << COUNT_BITS | ((t->counted + 1) & ((UINT64_C(1) << COUNT_BITS) - 1));
    while (teams_next_group(g, &team))
        t->counted++;
    g->phase = TEAMS_FORMING;
    make_due(t, g, TEAMS_GROUP);
}

/* The members that a shrink leaves out are known only when all are named. */
static void group_if_whole(struct teams *t, struct teams_gather *g)
{
    if (g->phase == TEAMS_GATHERING && g->called + g->gone == g->size)
        group(t, g);
}

static void member_gone(struct teams *t, struct teams_gather *g, struct teams_member *m)
{
    if (m->state == GONE)
        return;
    g->called -= m->state == CALLED;
    g->gone++;
    m->state = GONE;
    look_at(t, g);
    if (g->kind != TEAMS_SHRINK || g->phase == TEAMS_FORMING)
        end(t, g, -EHOSTDOWN, "rank %u has left, or its node cannot be reached", m->rank);
    group_if_whole(t, g);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int check(const struct teams *t, const struct teams_key *key, const struct teams_call *c,
                 uint32_t *engine)
{
    uint32_t size = directory_size(t->directory, &key->id);

    if (directory_where(t->directory, &key->id, c->rank, engine) != (int)c->from)
        return -EPERM;
    if (c->size == 0 || c->size > size || c->at >= c->size || c->kind > TEAMS_SHRINK ||
        c->window == 0 || c->window > TEAMS_WINDOW_MAX || (c->window & (c->window - 1)) != 0 ||
        c->status > 0)
        return -EINVAL;
    if (key->parent == 0 && (c->size != size || c->at != c->rank || c->kind == TEAMS_SHRINK))
        return -EINVAL;
    return key->parent != 0 && key->context != 0 ? -EINVAL : 0;
}

static int refuse(struct teams *t, const struct teams_key *key, int status)
{
    struct teams_refusal *r = &t->refusals[t->refused++ % TEAMS_REFUSALS];

    *r = (struct teams_refusal){.uid = key->id.uid,
                                .parent = key->parent,
                                .context = key->context,
                                .call = key->call,
                                .status = status};
    snprintf(r->job, sizeof(r->job), "%s", key->id.job);
    return status;
}

static int refused(const struct teams *t, const struct teams_key *key)
{
    for (const struct teams_refusal *r = t->refusals; r < t->refusals + TEAMS_REFUSALS; r++)
        if (r->status < 0 && r->uid == key->id.uid && r->parent == key->parent &&
            r->context == key->context && r->call == key->call && strcmp(r->job, key->id.job) == 0)
            return r->status;
    return 0;
}

/* A member that goes on to a later call never makes an earlier one. */
static void end_earlier(struct teams *t, const struct teams_key *key)
{
    uint32_t latest = 0;

    for (const struct teams_gather *g = *bucket_of(t, key); g; g = g->next)
        if (is_of_parent(g, key) && g->call > latest)
            latest = g->call;
    for (struct teams_gather *g = *bucket_of(t, key); g; g = g->next)
        if (is_of_parent(g, key) && g->call < latest && g->phase == TEAMS_GATHERING)
            end(t, g, -EBADMSG, "a member has gone on to call %u over this team", latest);
}

/* Ranks that left before the gather began. */
static void find_the_gone(struct teams *t, struct teams_gather *g)
{
    const struct directory_id id = {.uid = g->uid, .job = g->job};

    for (uint32_t i = 0; i < g->size && g->phase == TEAMS_GATHERING; i++)
        if (g->members[i].state != GONE && g->members[i].rank != TEAMS_NONE &&
            directory_has_left(t->directory, &id, g->members[i].rank))
            member_gone(t, g, &g->members[i]);
}

/* A node that calls, also one that calls again: what it has reported before is not counted. */
static void involve(struct teams_gather *g, uint32_t node)
{
    if (g->nodes[node] & CONFIRMED)
        g->confirmed--;
    if (g->nodes[node] & READY)
        g->ready--;
    if (!(g->nodes[node] & INVOLVED))
        g->involved++;
    g->nodes[node] = INVOLVED;
}

static void take_call(struct teams_gather *g, const struct teams_call *c, struct teams_member *m,
                      uint32_t engine)
{
    if (m->state == EXPECTED)
        g->called++;
    *m = (struct teams_member){.rank = c->rank,
                               .node = c->from,
                               .engine = (uint16_t)engine,
                               .state = CALLED,
                               .at = c->at,
                               .context = c->context,
                               .color = c->color,
                               .key = c->key};
    if (g->kind == TEAMS_BY_NODE)
        m->color = (int32_t)c->from;
    if (g->kind == TEAMS_SHRINK)
        m->color = m->key = 0;
}

/* Checks the call against the others of its gather. */
static void compare(struct teams *t, struct teams_gather *g, const struct teams_call *c)
{
    if (c->status < 0)
        end(t, g, c->status, "rank %u: %s", c->rank, c->why ? c->why : "");
    else if (c->kind != g->kind)
        end(t, g, -EBADMSG, "rank %u calls kind %u, another member kind %u", c->rank, c->kind,
            g->kind);
    else if (c->window != g->window)
        end(t, g, -EINVAL, "rank %u gives a window of %u, another member %u: give the same",
            c->rank, c->window, g->window);
}

int teams_call(struct teams *t, const struct teams_key *key, const struct teams_call *call,
               struct teams_gather **out)
{
    struct teams_gather *g = NULL;
    struct teams_member *m;
    uint32_t engine;
    bool first;
    int rc = check(t, key, call, &engine);

    *out = NULL;
    if (rc < 0)
        return rc;
    rc = refused(t, key);
    if (rc < 0)
        return rc;
    g = find(t, key);
    first = !g;
    if (first) {
        rc = open_gather(t, key, call, &g);
        if (rc < 0)
            return refuse(t, key, rc);
        end_earlier(t, key);
    }
    *out = g;
    if (call->size != g->size) {
        end(t, g, -EBADMSG, "rank %u says that the team has %u members, another member %u",
            call->rank, call->size, g->size);
        return -EINVAL;
    }
    involve(g, call->from);
    if (g->phase == TEAMS_FORMING || (g->phase == TEAMS_ENDED && g->status == 0))
        return g->due == TEAMS_NOTHING;
    m = &g->members[call->at];
    if (m->rank != TEAMS_NONE && m->rank != call->rank) {
        end(t, g, -EBADMSG, "ranks %u and %u both say that they are member %u", m->rank, call->rank,
            call->at);
        return 1;
    }
    if (m->state != GONE)
        take_call(g, call, m, engine);
    if (g->phase == TEAMS_ENDED || m->state == GONE)
        return g->due == TEAMS_NOTHING;
    compare(t, g, call);
    if (first)
        find_the_gone(t, g);
    if (first && key->parent == 0 && g->phase == TEAMS_GATHERING)
        make_due(t, g, TEAMS_ASK_ENDED);
    if (g->asked == TEAMS_NONE && g->named < g->size && g->phase == TEAMS_GATHERING) {
        g->asked = call->from;
        make_due(t, g, TEAMS_ASK_MEMBERS);
    }
    group_if_whole(t, g);
    return 0;
}

/* ---- members --------------------------------------------------------------------------------- */

static bool run_fits(const struct teams *t, const struct teams_gather *g,
                     const struct teams_run *run, uint32_t ranks)
{
    return run->count > 0 && run->count <= g->size - g->named && run->rank < ranks &&
           run->count <= ranks - run->rank && run->node < t->node_count;
}

static void name(struct teams *t, struct teams_gather *g, struct teams_member *m, uint32_t rank,
                 uint32_t node)
{
    if (m->rank != TEAMS_NONE && m->rank != rank) {
        end(t, g, -EBADMSG, "ranks %u and %u both say that they are member %u", m->rank, rank,
            m->at);
        return;
    }
    m->rank = rank;
    if (m->state != CALLED)
        m->node = node;
}

void teams_name(struct teams *t, const struct teams_key *key, uint32_t node, uint32_t from_member,
                const struct teams_run *runs, uint32_t count, bool last)
{
    struct teams_gather *g = find(t, key);
    uint32_t ranks = directory_size(t->directory, &key->id);

    if (!g || g->phase != TEAMS_GATHERING || g->asked != node)
        return;
    if (from_member == 0)
        g->named = 0; /* asked once more */
    if (from_member != g->named || key->parent == 0)
        return;
    for (uint32_t i = 0; i < count && g->phase == TEAMS_GATHERING; i++) {
        if (!run_fits(t, g, &runs[i], ranks)) {
            end(t, g, -EBADMSG, "node %u names members that there cannot be", node);
            return;
        }
        for (uint32_t j = 0; j < runs[i].count; j++)
            name(t, g, &g->members[g->named++], runs[i].rank + j, runs[i].node);
    }
    if (!last || g->phase != TEAMS_GATHERING)
        return;
    if (g->named < g->size) {
        end(t, g, -EBADMSG, "node %u names %u members of %u", node, g->named, g->size);
        return;
    }
    find_the_gone(t, g);
    if (g->phase == TEAMS_GATHERING)
        make_due(t, g, TEAMS_ASK_ENDED);
}

/* The node of a member that has not called; TEAMS_NONE: it is not known, or it has called. */
static uint32_t expected_on(const struct teams *t, const struct teams_gather *g,
                            const struct teams_member *m)
{
    const struct directory_id id = {.uid = g->uid, .job = g->job};
    uint32_t engine;
    int node;

    if (m->state != EXPECTED || g->parent != 0)
        return m->state == EXPECTED ? m->node : TEAMS_NONE;
    node = directory_where(t->directory, &id, m->rank, &engine);
    return node < 0 ? TEAMS_NONE : (uint32_t)node;
}

/* Whether members there are waited for. */
static bool is_expected(const struct teams *t, const struct teams_gather *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->size; i++)
        if (expected_on(t, g, &g->members[i]) == node)
            return true;
    return false;
}

void teams_ready(struct teams *t, const struct teams_key *key, uint32_t node, uint64_t first,
                 int status, const char *why, bool ended)
{
    struct teams_gather *g = find(t, key);

    if (!g || node >= t->node_count)
        return;
    if (ended && g->phase == TEAMS_GATHERING && is_expected(t, g, node))
        end(t, g, status < 0 ? status : 0, "%s", why ? why : "");
    if (!(g->nodes[node] & INVOLVED))
        return;
    if (ended && g->phase == TEAMS_ENDED && !(g->nodes[node] & CONFIRMED)) {
        g->nodes[node] |= CONFIRMED;
        g->confirmed++;
        look_at(t, g);
    }
    if (ended || g->phase != TEAMS_FORMING || first != g->number)
        return;
    if (status < 0) {
        end(t, g, status, "node %u: %s", node, why ? why : "");
        return;
    }
    if (!(g->nodes[node] & READY)) {
        g->nodes[node] |= READY;
        g->ready++;
    }
    if (g->ready == g->involved)
        end(t, g, 0, "%s", "");
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static struct teams_member *member_of(const struct teams_gather *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->size; i++)
        if (g->members[i].rank == rank)
            return &g->members[i];
    return NULL;
}

void teams_member_gone(struct teams *t, const struct directory_id *id, uint64_t parent,
                       uint32_t rank, uint32_t node)
{
    const struct teams_key key = {.id = *id, .parent = parent};

    if (parent == 0)
        return;
    for (struct teams_gather *g = *bucket_of(t, &key); g; g = g->next)
        for (uint32_t i = 0; is_of_parent(g, &key) && i < g->size; i++) {
            struct teams_member *m = &g->members[i];

            if (m->node == node && (m->rank == rank || rank == TEAMS_NONE))
                member_gone(t, g, m);
        }
}

void teams_rank_gone(struct teams *t, const struct directory_id *id, uint32_t rank)
{
    bool over = directory_size(t->directory, id) == 0;

    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (struct teams_gather *g = t->first[i]; g; g = g->next) {
            struct teams_member *m = is_of_job(g, id) ? member_of(g, rank) : NULL;

            if (m)
                member_gone(t, g, m);
            if (over && is_of_job(g, id)) {
                g->over = true;
                look_at(t, g);
            }
        }
}

/* Another node is asked for the members: one that a member has called from. */
static void ask_another(struct teams *t, struct teams_gather *g)
{
    g->asked = TEAMS_NONE;
    g->named = 0;
    for (uint32_t i = 0; i < g->size; i++)
        if (g->members[i].state == CALLED)
            g->asked = g->members[i].node;
    if (g->asked != TEAMS_NONE)
        make_due(t, g, TEAMS_ASK_MEMBERS);
}

void teams_node_lost(struct teams *t, uint32_t node)
{
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (struct teams_gather *g = t->first[i]; g; g = g->next) {
            for (uint32_t j = 0; j < g->size; j++)
                if (g->members[j].node == node)
                    member_gone(t, g, &g->members[j]);
            if (g->nodes[node] & INVOLVED) {
                g->confirmed -= (g->nodes[node] & CONFIRMED) != 0;
                g->ready -= (g->nodes[node] & READY) != 0;
                g->involved--;
                g->nodes[node] = 0;
                look_at(t, g);
            }
            if (g->phase == TEAMS_GATHERING && g->asked == node && g->named < g->size)
                ask_another(t, g);
        }
}

/* ---- for the owner's frames ------------------------------------------------------------------ */

/* A node whose link is new may have ranks of which the directory does not know yet. */
static bool is_on(const struct teams *t, const struct teams_gather *g, uint32_t node)
{
    return (g->nodes[node] & INVOLVED) || (g->asked == node && g->named < g->size) ||
           (g->parent == 0 && g->phase == TEAMS_GATHERING) || is_expected(t, g, node);
}

struct teams_gather *teams_next_of_node(const struct teams *t, uint32_t node,
                                        const struct teams_gather *after)
{
    const struct teams_gather *g = after ? after->next : NULL;
    uint32_t bucket = 0;

    if (after) {
        const struct teams_key key = {.id = {.uid = after->uid, .job = after->job},
                                      .parent = after->parent,
                                      .context = after->context};

        bucket = (uint32_t)(bucket_of((struct teams *)(uintptr_t)t, &key) - t->first) + 1;
    }
    for (;;) {
        while (g && !is_on(t, g, node))
            g = g->next;
        if (g || bucket == TEAMS_BUCKETS)
            return (struct teams_gather *)(uintptr_t)g;
        g = t->first[bucket++];
    }
}

uint32_t teams_next_node(const struct teams *t, const struct teams_gather *g, uint32_t *at)
{
    while (*at < t->node_count)
        if (g->nodes[(*at)++] & INVOLVED)
            return *at - 1;
    return TEAMS_NONE;
}

uint32_t teams_next_expected(const struct teams *t, const struct teams_gather *g, uint32_t *at)
{
    uint32_t node = TEAMS_NONE;

    while (*at < g->size && node == TEAMS_NONE)
        node = expected_on(t, g, &g->members[(*at)++]);
    return node;
}

bool teams_next_group(const struct teams_gather *g, struct teams_group *group)
{
    uint32_t at = group->first + group->count;
    const struct teams_member *m = &g->members[at];

    if (at == g->size || m->state != CALLED || m->color < 0)
        return false;
    group->number = g->number + group->made++;
    group->first = at;
    while (at < g->size && g->members[at].state == CALLED && g->members[at].color == m->color)
        at++;
    group->count = at - group->first;
    return true;
}

uint32_t teams_runs(const struct teams_gather *g, const struct teams_group *group, uint32_t *at,
                    struct teams_run *runs, uint32_t room)
{
    uint32_t count = 0;

    for (; *at < group->count; (*at)++) {
        const struct teams_member *m = &g->members[group->first + *at];
        struct teams_run *last = count > 0 ? &runs[count - 1] : NULL;

        if (last && last->rank + last->count == m->rank && last->context == m->context &&
            last->node == m->node && last->engine == m->engine) {
            last->count++;
            continue;
        }
        if (count == room)
            break;
        runs[count++] = (struct teams_run){.rank = m->rank,
                                           .count = 1,
                                           .context = m->context,
                                           .node = m->node,
                                           .engine = m->engine};
    }
    return count;
}
