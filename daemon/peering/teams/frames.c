/* Iterates over what the owner sends in frames: nodes of a gather, and runs of the new teams
 * (teams.h). Owns nothing. Thread: control. */
#include "daemon/peering/teams/teams_private.h"

/* Whether the node takes part in the gather, or may. After a reconnect a node may have ranks that
 * the directory does not know yet, so a gather of the world is always on all nodes. */
static bool is_on(const struct teams *t, const struct teams_gather *g, uint32_t node)
{
    return (g->nodes[node] & INVOLVED) || (g->asked == node && g->named < g->size) ||
           (g->parent == 0 && g->phase == TEAMS_GATHERING) || gather_expects(t, g, node);
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

        bucket = (uint32_t)(gathers_bucket((struct teams *)(uintptr_t)t, &key) - t->first) + 1;
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
