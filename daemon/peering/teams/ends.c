/* Decides how gathers end: all members have called, or members are gone (teams.h). Owns nothing.
 * Thread: control. */
#include "daemon/peering/teams/teams_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_BITS 48 /* low bits of a team's number; above them is the home's node number */

void gather_end(struct teams *t, struct teams_gather *g, int status, const char *format, ...)
{
    va_list arguments;

    if (g->phase == TEAMS_ENDED)
        return;
    va_start(arguments, format);
    vsnprintf(g->why, sizeof(g->why), format, arguments);
    va_end(arguments);
    g->phase = TEAMS_ENDED;
    g->status = status;
    gather_make_due(t, g, TEAMS_START);
}

/* Sorts the members of new teams first, team by team, in the order of the team; then all others. */
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
    gather_make_due(t, g, TEAMS_GROUP);
}

/* Forms the teams once all members have called or are gone. A shrink knows only when all members
 * are named which of them it leaves out. */
void gather_group_if_whole(struct teams *t, struct teams_gather *g)
{
    if (g->phase == TEAMS_GATHERING && g->called + g->gone == g->size)
        group(t, g);
}

/* Asks another node for the members: a node from which a member has called. */
static void ask_another(struct teams *t, struct teams_gather *g)
{
    g->asked = TEAMS_NONE;
    g->named = 0;
    for (uint32_t i = 0; i < g->size; i++)
        if (g->members[i].state == CALLED)
            g->asked = g->members[i].node;
    if (g->asked != TEAMS_NONE)
        gather_make_due(t, g, TEAMS_ASK_MEMBERS);
}

/* Whether the gather waits for a node to name the members from which no member calls any more, so
 * that the node may know the team no more. */
static bool asks_in_vain(const struct teams_gather *g)
{
    if (g->phase != TEAMS_GATHERING || g->asked == TEAMS_NONE || g->named == g->size)
        return false;
    for (uint32_t i = 0; i < g->size; i++)
        if (g->members[i].state == CALLED && g->members[i].node == g->asked)
            return false;
    return true;
}

void gather_member_gone(struct teams *t, struct teams_gather *g, struct teams_member *m)
{
    if (m->state == GONE)
        return;
    g->called -= m->state == CALLED;
    g->gone++;
    m->state = GONE;
    gather_look_at(t, g);
    if (g->kind != TEAMS_SHRINK || g->phase == TEAMS_FORMING)
        gather_end(t, g, -EHOSTDOWN, "rank %u has left, or its node cannot be reached", m->rank);
    if (asks_in_vain(g))
        ask_another(t, g);
    gather_group_if_whole(t, g);
}

/* Marks the members whose ranks left before the gather began. */
void gather_find_gone(struct teams *t, struct teams_gather *g)
{
    const struct directory_id id = {.uid = g->uid, .job = g->job};

    for (uint32_t i = 0; i < g->size && g->phase == TEAMS_GATHERING; i++)
        if (g->members[i].state != GONE && g->members[i].rank != TEAMS_NONE &&
            directory_has_left(t->directory, &id, g->members[i].rank))
            gather_member_gone(t, g, &g->members[i]);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static struct teams_member *member_of(const struct teams_gather *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->size; i++)
        if (g->members[i].rank == rank)
            return &g->members[i];
    return NULL;
}

/* A member that still waits for this call, while another member has ended a later one, gets an
 * error: that of the later call, or -EBADMSG if the later call has ended well. */
bool teams_answer_ends(struct teams_answer last, uint32_t call, int *status)
{
    if (last.calls <= call)
        return false;
    *status = last.status;
    if (last.calls > call + 1 && *status == 0)
        *status = -EBADMSG;
    return true;
}

/* Notes a member that has left the parent. A member may leave as soon as it has its answer, while
 * others still wait. Only the answer of a member that has not called this home counts, because it
 * came from an earlier process of the home. The answer of other members may come from their own
 * node, which has given this home up. */
static void take_leave(struct teams *t, struct teams_gather *g, struct teams_member *m,
                       struct teams_answer last)
{
    int status;

    if (m->state == EXPECTED && teams_answer_ends(last, g->call, &status))
        gather_end(t, g, status, "%s", "");
    gather_member_gone(t, g, m);
}

void teams_member_gone(struct teams *t, const struct directory_id *id, uint64_t parent,
                       uint32_t rank, uint32_t node, struct teams_answer last)
{
    const struct teams_key key = {.id = *id, .parent = parent};

    if (parent == 0)
        return;
    for (struct teams_gather *g = *gathers_bucket(t, &key); g; g = g->next)
        for (uint32_t i = 0; gather_is_of_parent(g, &key) && i < g->size; i++) {
            struct teams_member *m = &g->members[i];

            if (m->node == node && (m->rank == rank || rank == TEAMS_NONE))
                take_leave(t, g, m, last);
        }
}

void teams_rank_gone(struct teams *t, const struct directory_id *id, uint32_t rank)
{
    bool over = directory_size(t->directory, id) == 0;

    if (over)
        refusals_forget(t, id);
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (struct teams_gather *g = t->first[i]; g; g = g->next) {
            struct teams_member *m = gather_is_of_job(g, id) ? member_of(g, rank) : NULL;

            if (m)
                gather_member_gone(t, g, m);
            if (over && gather_is_of_job(g, id)) {
                g->over = true;
                gather_look_at(t, g);
            }
        }
}

void teams_node_lost(struct teams *t, uint32_t node)
{
    for (uint32_t i = 0; i < TEAMS_BUCKETS; i++)
        for (struct teams_gather *g = t->first[i]; g; g = g->next) {
            for (uint32_t j = 0; j < g->size; j++)
                if (g->members[j].node == node)
                    gather_member_gone(t, g, &g->members[j]);
            if (g->nodes[node] & INVOLVED) {
                g->confirmed -= (g->nodes[node] & CONFIRMED) != 0;
                g->ready -= (g->nodes[node] & READY) != 0;
                g->involved--;
                g->nodes[node] = 0;
                gather_look_at(t, g);
            }
        }
}
