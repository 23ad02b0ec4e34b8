/* Inherits teams from an earlier process (team_inherit.h). Owns nothing. Thread: control. */
#include "daemon/control/teams/team_inherit.h"

#include <inttypes.h>
#include "daemon/control/teams/team_member.h"
#include "daemon/control/teams/team_open.h"
#include "daemon/control/teams/team_parts.h"
#include "shm_ring/sigbus.h"

static struct team *inherit_roll(struct control *control, uint64_t number)
{
    int descriptor = store_take(&control->store, "roll.%" PRIu64, number);
    struct mapping m = {.fd = -1};
    const struct team_roll *roll;
    struct team *t = NULL;

    if (descriptor >= 0 && team_roll_inherit(&m, descriptor) == 0) {
        roll = m.base;
        t = team_begin(control,
                       &(struct teams_key){.id = {.uid = roll->uid, .job = roll->job},
                                           .parent = roll->parent,
                                           .context = roll->context,
                                           .call = roll->call},
                       number, roll->first, roll->window);
    }
    if (t) {
        store_charge(&control->store, t->uid, "roll.%" PRIu64, number);
        t->roll = m;
        t->phase = roll->started ? TEAM_STARTED : TEAM_READY;
        if (roll->number == number && team_name(t, 0, roll->runs, roll->run_count) == 0 &&
            team_parts_make(t) == 0 && roll->member_count == team_members_here(t)) {
            team_parts_answers(t);
            return t;
        }
        team_free(t); /* frees the roll, too, and ends its keeping */
        return NULL;
    }
    m.fd = -1;
    mapping_destroy(&m);
    store_untake(&control->store, "roll.%" PRIu64, number);
    return NULL;
}

/* A member that has left stays out, although its session may live on. */
static void inherit_members(struct team_part *part, const struct engine *e)
{
    uint64_t share = (team_area_size(part) + part->count - 1) / part->count;

    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        if (!engine_team_has_left(e, part->handle, i))
            m->session = team_member_session(part->team, part->worker, m);
        if (!m->session)
            continue;
        quota_charge(m->session->client, QUOTA_MEMORY, share);
        m->bytes = share;
        if (part->team->phase != TEAM_STARTED)
            continue; /* the member will ask again, and is counted then */
        quota_charge(m->session->client, QUOTA_TEAMS, 1);
        m->counted = true;
    }
}

static bool inherit_part(struct worker *w, struct engine *e, const struct engine_team_found *found)
{
    struct control *control = w->control;
    struct team *t = team_find(control, found->number);
    struct team_part *part = NULL;
    int descriptor;

    if (!t)
        t = inherit_roll(control, found->number);
    for (uint32_t i = 0; t && i < t->part_count; i++)
        if (t->parts[i].worker == w && t->parts[i].handle == CLIENT_NONE)
            part = &t->parts[i];
    if (!part)
        return false;
    part->handle = found->handle;
    t->choices = found->choices;
    inherit_members(part, e);
    descriptor =
        store_take_for(&control->store, t->uid, "%u.team.%" PRIu64, w->engine, found->number);
    if (mapping_inherit(&part->area, descriptor, team_area_size(part)) < 0) {
        part->area.fd = -1;
        return false;
    }
    part->range = sigbus_add(part->area.base, part->area.size);
    host_table_add_area(&w->host_table, found->handle, part->range);
    return engine_team_inherit(e, found->handle, part->area.base) == 0;
}

void node_teams_inherit(struct worker *w, struct engine *e)
{
    struct engine_team_found found;

    for (uint32_t index = 0; index < ENGINE_TEAMS; index++)
        if (engine_team_find(e, index, &found) == 0 && !inherit_part(w, e, &found))
            store_untake(&w->control->store, "%u.team.%" PRIu64, w->engine, found.number);
}
