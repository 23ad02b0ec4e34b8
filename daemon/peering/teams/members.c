/* Takes the members that a node names, and what their own nodes report about them (teams.h). Owns
 * nothing. Thread: control. */
#include "daemon/peering/teams/teams_private.h"

#include <errno.h>

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
        gather_end(t, g, -EBADMSG, "ranks %u and %u both say that they are member %u", m->rank,
                   rank, m->at);
        return;
    }
    m->rank = rank;
    if (m->state != CALLED)
        m->node = node;
}

void teams_name(struct teams *t, const struct teams_key *key, uint32_t node, uint32_t from_member,
                const struct teams_run *runs, uint32_t count, bool last)
{
    struct teams_gather *g = gather_find(t, key);
    uint32_t ranks = directory_size(t->directory, &key->id);

    if (!g || g->phase != TEAMS_GATHERING || g->asked != node)
        return;
    if (from_member == 0)
        g->named = 0; /* the node was asked again */
    if (from_member != g->named || key->parent == 0)
        return;
    for (uint32_t i = 0; i < count && g->phase == TEAMS_GATHERING; i++) {
        if (!run_fits(t, g, &runs[i], ranks)) {
            gather_end(t, g, -EBADMSG, "node %u names members that there cannot be", node);
            return;
        }
        for (uint32_t j = 0; j < runs[i].count; j++)
            name(t, g, &g->members[g->named++], runs[i].rank + j, runs[i].node);
    }
    if (!last || g->phase != TEAMS_GATHERING)
        return;
    if (g->named < g->size) {
        gather_end(t, g, -EBADMSG, "node %u names %u members of %u", node, g->named, g->size);
        return;
    }
    gather_find_gone(t, g);
    if (g->phase == TEAMS_GATHERING)
        gather_make_due(t, g, TEAMS_ASK_ENDED);
}

/* The node of a member that has not called; TEAMS_NONE: the node is not known, or the member has
 * called. */
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

/* Whether the gather waits for members on this node. */
bool gather_expects(const struct teams *t, const struct teams_gather *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->size; i++)
        if (expected_on(t, g, &g->members[i]) == node)
            return true;
    return false;
}

uint32_t teams_next_expected(const struct teams *t, const struct teams_gather *g, uint32_t *at)
{
    uint32_t node = TEAMS_NONE;

    while (*at < g->size && node == TEAMS_NONE)
        node = expected_on(t, g, &g->members[(*at)++]);
    return node;
}

void teams_ready(struct teams *t, const struct teams_key *key, uint32_t node, uint64_t first,
                 int status, const char *why, bool ended)
{
    struct teams_gather *g = gather_find(t, key);

    if (!g || node >= t->node_count)
        return;
    if (ended && g->phase == TEAMS_GATHERING && gather_expects(t, g, node))
        gather_end(t, g, status < 0 ? status : 0, "%s", why ? why : "");
    if (!(g->nodes[node] & INVOLVED))
        return;
    if (ended && g->phase == TEAMS_ENDED && !(g->nodes[node] & CONFIRMED)) {
        g->nodes[node] |= CONFIRMED;
        g->confirmed++;
        gather_look_at(t, g);
    }
    if (ended || g->phase != TEAMS_FORMING || first != g->number)
        return;
    if (status < 0) {
        gather_end(t, g, status, "node %u: %s", node, why ? why : "");
        return;
    }
    if (!(g->nodes[node] & READY)) {
        g->nodes[node] |= READY;
        g->ready++;
    }
    if (g->ready == g->involved)
        gather_end(t, g, 0, "%s", "");
}
