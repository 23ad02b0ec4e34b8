/* Takes the calls of members into gathers (teams.h). Owns nothing. Thread: control. */
#include "daemon/peering/teams/teams_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int check(const struct teams *t, const struct teams_key *key, const struct teams_call *c,
                 uint32_t *engine)
{
    uint32_t size = directory_size(t->directory, &key->id);

    /* The home may learn of a rank's end before its call arrives. */
    if (directory_has_left(t->directory, &key->id, c->rank))
        return -EHOSTDOWN;
    if (directory_where(t->directory, &key->id, c->rank, engine) != (int)c->from)
        return -EPERM;
    if (directory_is_open(t->directory, &key->id))
        return -ENOTSUP; /* an open job has no world */
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

void refusals_forget(struct teams *t, const struct directory_id *id)
{
    for (struct teams_refusal *r = t->refusals; r < t->refusals + TEAMS_REFUSALS; r++)
        if (r->uid == id->uid && strcmp(r->job, id->job) == 0)
            r->status = 0;
}

/* Ends gathers of earlier calls over this parent, because a member that makes a later call never
 * makes an earlier one. */
static void end_earlier(struct teams *t, const struct teams_key *key)
{
    uint32_t latest = 0;

    for (const struct teams_gather *g = *gathers_bucket(t, key); g; g = g->next)
        if (gather_is_of_parent(g, key) && g->call > latest)
            latest = g->call;
    for (struct teams_gather *g = *gathers_bucket(t, key); g; g = g->next)
        if (gather_is_of_parent(g, key) && g->call < latest && g->phase == TEAMS_GATHERING)
            gather_end(t, g, -EBADMSG, "a member has gone on to call %u over this team", latest);
}

/* A member on this node has called, so the gather involves the node. If the node was involved
 * before, its earlier READY and CONFIRMED no longer count, and the node reports anew. */
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

/* Compares the call with the other calls of its gather. */
static void compare(struct teams *t, struct teams_gather *g, const struct teams_call *c)
{
    if (c->status < 0)
        gather_end(t, g, c->status, "rank %u: %s", c->rank, c->why ? c->why : "");
    else if (c->kind != g->kind)
        gather_end(t, g, -EBADMSG, "rank %u calls kind %u, another member kind %u", c->rank,
                   c->kind, g->kind);
    else if (c->window != g->window)
        gather_end(t, g, -EINVAL, "rank %u gives a window of %u, another member %u: give the same",
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
    g = gather_find(t, key);
    first = !g;
    if (first) {
        rc = gather_open(t, key, call, &g);
        if (rc < 0)
            return refuse(t, key, rc);
        end_earlier(t, key);
    }
    *out = g;
    if (call->size != g->size) {
        gather_end(t, g, -EBADMSG, "rank %u says that the team has %u members, another member %u",
                   call->rank, call->size, g->size);
        return -EINVAL;
    }
    involve(g, call->from);
    if (g->phase == TEAMS_FORMING || (g->phase == TEAMS_ENDED && g->status == 0))
        return g->due == TEAMS_NOTHING;
    m = &g->members[call->at];
    if (m->rank != TEAMS_NONE && m->rank != call->rank) {
        gather_end(t, g, -EBADMSG, "ranks %u and %u both say that they are member %u", m->rank,
                   call->rank, call->at);
        return 1;
    }
    if (m->state != GONE)
        take_call(g, call, m, engine);
    if (g->phase == TEAMS_ENDED || m->state == GONE)
        return g->due == TEAMS_NOTHING;
    compare(t, g, call);
    if (first)
        gather_find_gone(t, g);
    if (first && key->parent == 0 && g->phase == TEAMS_GATHERING)
        gather_make_due(t, g, TEAMS_ASK_ENDED);
    if (g->asked == TEAMS_NONE && g->named < g->size && g->phase == TEAMS_GATHERING) {
        g->asked = call->from;
        gather_make_due(t, g, TEAMS_ASK_MEMBERS);
    }
    gather_group_if_whole(t, g);
    return 0;
}
