/* Teams: opening, leaving, the way out (team.h, engine.h). Thread: the progress thread. */
#include "daemon/engine/team/team.h"

#include <assert.h>
#include <errno.h>
#include "daemon/engine/state/notice.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/team/exchange.h"
#include "daemon/engine/team/instance.h"
#include "daemon/engine/team/letters.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/team/table.h"

/* ---- opening --------------------------------------------------------------------------------- */

static bool participants_valid(const struct engine *e, const struct engine_team_info *info)
{
    uint64_t ranks = 0;

    for (uint32_t i = 0; i < info->participants; i++) {
        if (info->list[i].peer >= e->config.peers || info->list[i].members == 0 ||
            info->list[i].members > TEAM_MEMBERS_MAX)
            return false;
        ranks += info->list[i].members;
    }
    return ranks == info->size && info->list[info->me].peer == e->config.self &&
           info->list[info->me].members == info->members;
}

static bool members_valid(const struct engine *e, const struct engine_team_info *info)
{
    for (uint32_t i = 0; i < info->members; i++)
        if (info->local[i].session >= e->config.sessions_max ||
            e->sessions[info->local[i].session].state != SESSION_OPEN ||
            info->local[i].rank >= info->size)
            return false;
    return true;
}

static int attach(struct engine *e, uint32_t team, void *area)
{
    const struct team *t = &e->teams.table[team];
    struct team_live *live = &e->teams.live[team];
    int r = team_area_view(&live->area, area, team_area_bytes(t->members, t->window), t->members,
                           t->window);

    live->attached = r == 0;
    return r;
}

static void enlist(struct engine *e, uint32_t team, const struct engine_team_info *info)
{
    struct team_live *live = &e->teams.live[team];

    for (uint32_t i = 0; i < info->members; i++)
        live->members[i] =
            (struct team_member){.rank = info->local[i].rank, .session = info->local[i].session};
}

static uint32_t fullest_of(const struct engine_team_info *info)
{
    uint32_t fullest = 0;

    for (uint32_t i = 0; i < info->participants; i++)
        fullest = info->list[i].members > fullest ? info->list[i].members : fullest;
    return fullest;
}

int engine_team_open(struct engine *e, const struct engine_team_info *info, void *area)
{
    struct team *t;
    uint32_t team;
    int r;

    if (info->number == 0 || info->participants == 0 || info->participants > TEAM_SIZE_MAX ||
        info->size > TEAM_SIZE_MAX || info->me >= info->participants ||
        team_area_bytes(info->members, info->window) == 0 || !participants_valid(e, info) ||
        !members_valid(e, info))
        return -EINVAL;
    if (team_by_number(e, info->number) != NONE)
        return -EADDRINUSE;
    team = table_take(e, TABLE_TEAMS);
    if (team == NONE)
        return -ENOSPC;
    t = &e->teams.table[team];
    *t = (struct team){.generation = (t->generation + 1) % TEAM_GENERATIONS,
                       .window = info->window,
                       .uid = e->clients[e->sessions[info->local[0].session].client].uid,
                       .number = info->number,
                       .size = info->size,
                       .me = info->me,
                       .participants = info->participants,
                       .members = info->members,
                       .fullest = fullest_of(info),
                       .choices = info->choices ? *info->choices : e->config.collectives};
    r = team_place(e, t, info->list);
    if (r < 0) {
        arena_rollback(&e->arena);
        return r;
    }
    team_lay_out(e, team);
    team_enter(e, team);
    r = attach(e, team, area);
    if (r < 0) {
        team_leave_table(e, team);
        arena_rollback(&e->arena);
        return -EINVAL;
    }
    enlist(e, team, info);
    set32(e, &t->state, TEAM_OPEN);
    commit(e);
    return (int)team_handle(e, team);
}

/* ---- after a takeover ------------------------------------------------------------------------ */

void teams_inherit(struct engine *e)
{
    team_table_inherit(e);
    letters_inherit(e);
    for (uint32_t team = 0; team < TEAMS_MAX; team++)
        if (e->teams.table[team].state == TEAM_OPEN)
            instances_inherit(e, team);
}

int engine_team_inherit(struct engine *e, uint32_t handle, void *area)
{
    uint32_t team = team_of_handle(e, handle);

    if (team == NONE || attach(e, team, area) < 0)
        return -EINVAL;
    if (e->teams.table[team].reason.status != 0)
        exchange_break(e, team);
    return 0;
}

int engine_team_find(const struct engine *e, uint32_t index, struct engine_team_found *out)
{
    const struct team *t = &e->teams.table[index];

    static_assert(TEAMS_MAX == ENGINE_TEAMS, "places");
    if (index >= TEAMS_MAX || t->state != TEAM_OPEN)
        return -ENOENT;
    *out = (struct engine_team_found){.handle = team_handle(e, index),
                                      .number = t->number,
                                      .size = t->size,
                                      .window = t->window,
                                      .me = t->me,
                                      .participants = t->participants,
                                      .members = t->members,
                                      .choices = t->choices,
                                      .status = t->reason.status};
    return 0;
}

struct engine_team_participant engine_team_participant(const struct engine *e, uint32_t handle,
                                                       uint32_t index)
{
    const struct participant *p = &e->teams.live[handle & (TEAMS_MAX - 1)].participants[index];

    return (struct engine_team_participant){.peer = p->peer, .members = p->members};
}

bool engine_team_has_left(const struct engine *e, uint32_t handle, uint32_t index)
{
    return e->teams.live[handle & (TEAMS_MAX - 1)].members[index].left;
}

/* ---- leaving --------------------------------------------------------------------------------- */

void engine_team_break(struct engine *e, uint32_t handle)
{
    uint32_t team = team_of_handle(e, handle);

    if (team != NONE)
        team_fail(e, team, &(struct team_reason){.status = -EHOSTDOWN, .rank = {NONE, NONE}});
}

void engine_team_leave(struct engine *e, uint32_t handle, uint32_t session)
{
    uint32_t team = team_of_handle(e, handle);
    struct team *t = &e->teams.table[handle & (TEAMS_MAX - 1)];

    for (uint32_t m = 0; team != NONE && m < t->members; m++) {
        struct team_member *member = &e->teams.live[team].members[m];

        if (member->session != session || member->left)
            continue;
        set32(e, &member->left, 1);
        set32(e, &t->left, t->left + 1);
        commit(e);
        table_leaves(e, TABLE_TEAMS, team);
    }
}

void engine_team_abandon(struct engine *e, uint32_t handle, uint32_t session)
{
    uint32_t team = team_of_handle(e, handle);

    if (team != NONE)
        team_forget_session(e, team, session);
}

/* Whether some instance is not over. An instance that no member here can call any more never will
 * be: it breaks the team. */
static bool goes_on(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    const struct instance *instances = e->teams.live[team].instances;
    bool open = false;

    for (uint32_t n = 0; n < t->window && t->reason.status == 0; n++) {
        if (instances[n].state != INSTANCE_OPEN)
            continue;
        open = true;
        if (!instances[n].called)
            team_fail(e, team,
                      &(struct team_reason){.status = -EHOSTDOWN,
                                            .rank = {e->teams.live[team].members[0].rank, NONE}});
    }
    return open && t->reason.status == 0;
}

/* Whether a FLOOR or a BREAK to any participant has to be sent, or is not acknowledged yet. */
static bool news_left(const struct engine *e, uint32_t team)
{
    const struct participant *list = e->teams.live[team].participants;

    for (uint32_t p = 0; p < e->teams.table[team].participants; p++)
        if ((list[p].news.owed | list[p].news.flying) != 0)
            return true;
    return false;
}

bool team_leaves(struct engine *e, uint32_t team)
{
    struct team *t = &e->teams.table[team];

    if (t->state != TEAM_OPEN || t->left < t->members)
        return false;
    if (goes_on(e, team) || t->flying > 0 || e->teams.live[team].listed > 0 || news_left(e, team))
        return true;
    set32(e, &t->state, TEAM_FREE);
    table_give(e, TABLE_TEAMS, team);
    commit(e);
    letters_forget(e, team);
    team_leave_table(e, team);
    notice_push(
        e, &(struct engine_notice){.kind = ENGINE_TEAM_CLOSED, .handle = team_handle(e, team)});
    return false;
}
