/* The table of teams (table.h). Thread: the progress thread. */
#include "daemon/engine/team/table.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/session/quota.h"
#include "daemon/engine/team/rooms.h"

uint32_t team_by_number(const struct engine *e, uint64_t number)
{
    const struct chain *chain = &e->teams.by_number;
    uint32_t team = chain_first(chain, chain_home(chain, 0, number));

    while (team != NONE && e->teams.table[team].number != number)
        team = chain_next(chain, team);
    return team;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Hands out the parts of a team's memory; with base NULL it only measures. */
struct parts {
    uint8_t *base;
    uint64_t used;
};

static void *part(struct parts *parts, uint64_t bytes)
{
    uint64_t at = parts->used;

    parts->used = (at + bytes + 63) & ~UINT64_C(63);
    return parts->base ? parts->base + at : NULL;
}

static uint64_t room_bytes(const struct team_room *room)
{
    return 2ull * room->work + 2ull * room->mail;
}

static uint64_t lay_out(const struct team *t, struct team_live *live, uint8_t *base)
{
    struct parts parts = {.base = base};
    uint64_t slots = team_slots(t);

    live->participants = part(&parts, t->participants * sizeof(*live->participants));
    live->members = part(&parts, t->members * sizeof(*live->members));
    live->instances = part(&parts, t->window * sizeof(*live->instances));
    live->arrivals = part(&parts, slots * sizeof(*live->arrivals));
    live->letters = part(&parts, slots * sizeof(*live->letters));
    live->line_rooms = part(&parts, t->window * room_bytes(&t->lines));
    live->data_rooms = part(&parts, TEAM_DATA_ROWS * room_bytes(&t->data));
    return parts.used;
}

void team_lay_out(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];

    lay_out(t, &e->teams.live[team], e->teams.memory + t->place);
    e->teams.live[team].wanted = UINT64_MAX; /* after a restart instances_settle finds it */
}

static uint64_t in_units(uint64_t bytes)
{
    return (bytes + TEAM_UNIT_BYTES - 1) & ~(uint64_t)(TEAM_UNIT_BYTES - 1);
}

static uint8_t *take(struct engine *e, uint64_t bytes)
{
    return bytes <= UINT32_MAX ? heap_take(&e->teams.heap, (uint32_t)bytes) : NULL;
}

static void list_participants(struct participant *to, uint32_t count,
                              const struct engine_team_participant *list)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < count; i++) {
        to[i] =
            (struct participant){.peer = list[i].peer, .members = list[i].members, .first = first};
        first += list[i].members;
    }
}

/* How much memory a team needs depends on its participants, so their list is written to a draft
 * first. A single participant has no letters, because its members do without the engine. */
int team_place(struct engine *e, struct team *t, const struct engine_team_participant *list)
{
    uint64_t draft = in_units(t->participants * sizeof(struct participant));
    uint8_t *base = take(e, draft);
    struct team_live measure;
    int r;

    if (!base)
        return -ENOMEM;
    list_participants((void *)base, t->participants, list);
    r = t->participants > 1 ? rooms_measure(t, (void *)base) : 0;
    heap_give(&e->teams.heap, base, (uint32_t)draft);
    if (r < 0)
        return r;
    t->bytes = in_units(lay_out(t, &measure, NULL));
    r = quota_team(e, t->uid, t->bytes);
    if (r < 0)
        return r;
    base = take(e, t->bytes);
    if (!base)
        return -ENOMEM;
    t->place = (uint64_t)(base - e->teams.memory);
    lay_out(t, &measure, base);
    memset(base, 0, (size_t)(measure.line_rooms - base));
    list_participants(measure.participants, t->participants, list);
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

void team_enter(struct engine *e, uint32_t team)
{
    struct chain *chain = &e->teams.by_number;

    chain_add_key(chain, chain_hash(0, e->teams.table[team].number), team);
    e->teams.open++;
}

void team_leave_table(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];

    chain_remove(&e->teams.by_number, team);
    heap_give(&e->teams.heap, e->teams.memory + t->place, (uint32_t)t->bytes);
    e->teams.live[team] = (struct team_live){0};
    e->teams.open--;
}

void team_table_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < TEAMS_MAX; i++) {
        const struct team *t = &e->teams.table[i];

        if (t->state == TEAM_FREE)
            continue;
        memset(e->teams.heap.used + t->place / TEAM_UNIT_BYTES, 1, t->bytes / TEAM_UNIT_BYTES);
        team_lay_out(e, i);
        team_enter(e, i);
    }
    e->teams.resume = e->teams.open > 0;
}
