/*
 * The table of teams, the memory of each, and where the parts of that memory are. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_TEAM_TABLE_H
#define PWC_ENGINE_TEAM_TABLE_H

#include "daemon/engine/state/state.h"

/* The open team of this number, or NONE. */
uint32_t team_by_number(const struct engine *e, uint64_t number);

/* Takes memory for a team whose numbers are filled in. Returns 0, -ENOMEM without memory, or an
 * error of quota_team. The team is not found by its number before team_enter. */
int team_place(struct engine *e, struct team *t, const struct engine_team_participant *list);
/* Finds the parts of the team's memory, and stores their places in its struct team_live. */
void team_lay_out(struct engine *e, uint32_t team);
/* From now on, team_by_number finds this open team. */
void team_enter(struct engine *e, uint32_t team);
/* From now on, team_by_number does not find the team. Gives its memory back. */
void team_leave_table(struct engine *e, uint32_t team);
/* After a restart: lets the teams that were open be found again. */
void team_table_inherit(struct engine *e);

/* The handle of an open team, and the team of a handle; NONE: that team is no longer open. */
static inline uint32_t team_handle(const struct engine *e, uint32_t team)
{
    return e->teams.table[team].generation << TEAMS_SHIFT | team;
}

static inline uint32_t team_of_handle(const struct engine *e, uint32_t handle)
{
    const struct team *t = &e->teams.table[handle & (TEAMS_MAX - 1)];

    return t->state == TEAM_OPEN && t->generation == handle >> TEAMS_SHIFT
               ? handle & (TEAMS_MAX - 1)
               : NONE;
}

static inline struct instance *team_instance(const struct engine *e, uint32_t team,
                                             uint64_t sequence)
{
    return &e->teams.live[team].instances[sequence & (e->teams.table[team].window - 1)];
}

/* How many slots for letters a team has; and the first slot of an instance. */
static inline uint64_t team_slots(const struct team *t)
{
    return (uint64_t)t->window * t->lines.slots + (uint64_t)TEAM_DATA_ROWS * t->data.slots;
}

static inline uint64_t team_first_slot(const struct team *t, const struct instance *instance)
{
    return instance->row == WIRE_COLL_LINES
               ? (instance->sequence & (t->window - 1)) * t->lines.slots
               : (uint64_t)t->window * t->lines.slots + (uint64_t)instance->row * t->data.slots;
}

/* The slot of the n-th letter of a round among those of its instance. */
static inline uint32_t team_slot(const struct instance *instance, uint32_t round, uint32_t n)
{
    return round * coll_row(instance->schedule)->algorithm->letters + n;
}

/* The n-th arrival, and the n-th letter that leaves, of a round of this instance. */
static inline struct arrival_slot *team_arrival(const struct engine *e, uint32_t team,
                                                const struct instance *instance, uint32_t round,
                                                uint32_t n)
{
    return &e->teams.live[team].arrivals[team_first_slot(&e->teams.table[team], instance) +
                                         team_slot(instance, round, n)];
}

static inline struct letter *team_letter(const struct engine *e, uint32_t team,
                                         const struct instance *instance, uint32_t round,
                                         uint32_t n)
{
    return &e->teams.live[team].letters[team_first_slot(&e->teams.table[team], instance) +
                                        team_slot(instance, round, n)];
}

/* The room of an instance: its sides, then letters that arrive, then letters that leave. */
static inline uint8_t *team_side(const struct engine *e, uint32_t team,
                                 const struct instance *instance, uint32_t side)
{
    const struct team *t = &e->teams.table[team];
    const struct team_live *live = &e->teams.live[team];
    bool lines = instance->row == WIRE_COLL_LINES;
    const struct team_room *room = lines ? &t->lines : &t->data;
    uint64_t at = lines ? instance->sequence & (t->window - 1) : instance->row;

    return (lines ? live->line_rooms : live->data_rooms) +
           at * (2ull * room->work + 2ull * room->mail) + (uint64_t)side * room->work;
}

static inline uint8_t *team_mail_in(const struct engine *e, uint32_t team,
                                    const struct instance *instance)
{
    return team_side(e, team, instance, 2);
}

static inline uint8_t *team_mail_out(const struct engine *e, uint32_t team,
                                     const struct instance *instance)
{
    const struct team *t = &e->teams.table[team];

    return team_side(e, team, instance, 2) +
           (instance->row == WIRE_COLL_LINES ? t->lines.mail : t->data.mail);
}

/* Whether all records of a letter have arrived. */
static inline bool arrival_whole(const struct arrival_slot *slot)
{
    return slot->records > 0 && slot->come == slot->bytes;
}

/* The client that pays for the team's letters; NONE: the session of its lowest rank has ended. */
static inline uint32_t team_payer(const struct engine *e, uint32_t team)
{
    const struct team_member *lowest = &e->teams.live[team].members[0];

    return lowest->left ? NONE : e->sessions[lowest->session].client;
}

/* A letter's number, and the letter of a number. */
static inline uint32_t letter_number(const struct engine *e, const struct letter *letter)
{
    return (uint32_t)((uint64_t)((const uint8_t *)letter - e->teams.memory) >> LETTER_SHIFT);
}

static inline struct letter *letter_at(const struct engine *e, uint32_t number)
{
    return (struct letter *)(void *)(e->teams.memory + ((uint64_t)number << LETTER_SHIFT));
}

static inline uint32_t letter_peer(const struct engine *e, const struct letter *letter)
{
    return e->teams.live[letter->team].participants[letter->to].peer;
}

#endif
