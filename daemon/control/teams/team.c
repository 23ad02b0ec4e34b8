/* Owns the teams of this node's contexts, and ends them (team.h). Thread: control. */
#include "daemon/control/teams/team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/teams/team_member.h"
#include "shm_ring/sigbus.h"

struct team *team_find(const struct control *control, uint64_t number)
{
    struct team *t = control->node_teams;

    while (t && t->number != number)
        t = t->next;
    return t;
}

bool team_is_of(const struct team *t, const struct teams_key *key)
{
    return t->uid == key->id.uid && t->parent == key->parent && t->context == key->context &&
           t->call == key->call && strcmp(t->job, key->id.job) == 0;
}

struct team *team_begin(struct control *control, const struct teams_key *key, uint64_t number,
                        uint64_t first, uint32_t window)
{
    struct team *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    *t = (struct team){.control = control,
                       .phase = TEAM_COMING,
                       .number = number,
                       .window = window,
                       .choices = control->engine.collectives,
                       .roll = {.fd = -1},
                       .uid = key->id.uid,
                       .parent = key->parent,
                       .context = key->context,
                       .call = key->call,
                       .first = first,
                       .next = control->node_teams};
    snprintf(t->job, sizeof(t->job), "%s", key->id.job);
    control->node_teams = t;
    return t;
}

void team_start(struct team *t)
{
    struct team_roll *roll = t->roll.base;

    roll->started = 1;
    t->phase = TEAM_STARTED;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void part_free(struct team_part *part)
{
    struct store *store = &part->team->control->store;

    if (part->area.fd >= 0)
        store_remove(store, "%u.team.%" PRIu64, part->worker->engine, part->team->number);
    part->handle = CLIENT_NONE;
    if (part->range >= 0)
        sigbus_remove(part->range);
    part->range = -1;
    mapping_destroy(&part->area);
    part->area = (struct mapping){.fd = -1};
    part->closed = true;
}

void team_free(struct team *t)
{
    struct team **at = &t->control->node_teams;

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    for (uint32_t i = 0; i < t->part_count; i++) {
        part_free(&t->parts[i]);
        free(t->parts[i].members);
        free(t->parts[i].local);
    }
    store_remove(&t->control->store, "roll.%" PRIu64, t->number);
    mapping_destroy(&t->roll);
    free(t->parts);
    free(t->participants);
    free(t->runs);
    free(t);
}

static void free_if_closed(struct team *t)
{
    for (uint32_t i = 0; i < t->part_count; i++)
        if (!t->parts[i].closed)
            return;
    team_free(t);
}

void team_close_rest(struct team *t)
{
    for (uint32_t i = 0; i < t->part_count; i++)
        if (t->parts[i].handle == CLIENT_NONE)
            part_free(&t->parts[i]);
    free_if_closed(t);
}

/* Breaks the engine's part of the team, and lets all members leave it; then a notice calls
 * team_closed. */
static void part_end(struct team_part *part)
{
    const struct call_target *target = &part->worker->target;

    call_init(&part->end, target, CALL_TEAM_BREAK, NULL, NULL);
    part->end.team = (struct call_team){.handle = part->handle};
    call_post(part->worker->progress, &part->end);
    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        if (!m->session)
            continue;
        call_init(&m->leave, target, CALL_TEAM_LEAVE, NULL, NULL);
        m->leave.team = (struct call_team){.handle = part->handle, .session = m->session->handle};
        call_post(part->worker->progress, &m->leave);
        team_member_leaves(part, m);
    }
}

void team_drop(struct team *t)
{
    if (t->phase == TEAM_DROPPED)
        return;
    t->phase = TEAM_DROPPED;
    if (t->opening > 0)
        return; /* team_open.c continues when the engines have answered */
    for (uint32_t i = 0; i < t->part_count; i++) {
        struct team_part *part = &t->parts[i];

        if (part->handle != CLIENT_NONE) {
            part_end(part);
            continue;
        }
        for (uint32_t j = 0; j < part->count; j++)
            if (part->members[j].session)
                team_member_leaves(part, &part->members[j]);
        part_free(part);
    }
    free_if_closed(t);
}

void team_closed(struct worker *w, uint32_t handle)
{
    for (struct team *t = w->control->node_teams; t; t = t->next)
        for (uint32_t i = 0; i < t->part_count; i++)
            if (t->parts[i].worker == w && t->parts[i].handle == handle) {
                part_free(&t->parts[i]);
                free_if_closed(t);
                return;
            }
}

void node_teams_free(struct control *control)
{
    while (control->node_teams)
        team_free(control->node_teams);
}
