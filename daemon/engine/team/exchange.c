/* The engine's side of a team area (exchange.h). Thread: the progress thread. */
#include "daemon/engine/team/exchange.h"

#include <string.h>
#include "daemon/engine/session/session.h"
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/table.h"
#include "shm_ring/fault.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

bool exchange_gives(const struct engine *e, uint32_t team, const struct instance *instance)
{
    if (instance->kind == TEAM_BCAST || instance->kind == TEAM_SCATTER)
        return e->teams.table[team].me == instance->root;
    return instance->length > 0;
}

/* Inputs and results of a call stand in lines, or in a data row. */
static const uint8_t *inputs(const struct team_live *live, const struct instance *i)
{
    return i->row == WIRE_COLL_LINES ? team_row(&live->area, i->sequence)->node.data
                                     : live->area.data[i->row].inputs;
}

static uint8_t *results(const struct team_live *live, const struct instance *i)
{
    return i->row == WIRE_COLL_LINES ? team_row(&live->area, i->sequence)->result.data
                                     : live->area.data[i->row].result;
}

/* The distance from one member's input of `given` bytes to the next member's. */
static uint64_t stride(const struct instance *i, uint64_t given)
{
    return i->row == WIRE_COLL_LINES ? given : team_stride(given);
}

/* Takes a block for each target: from each member here, its blocks for the members there. Where
 * blocks arrive on the other side, the block for ourselves is copied there, too. */
static void take_alltoall(const struct team *t, const struct blocks *b, const struct instance *i,
                          const uint8_t *from, uint8_t *side, uint8_t *other)
{
    uint64_t row = stride(i, (uint64_t)t->size * i->length), at = 0;

    for (uint32_t n = 0; n < t->participants; n++) {
        uint32_t owner = coll_owner(b->algorithm, &b->shape, t->me, n);
        const struct participant *to = &b->list[owner];
        uint64_t bytes = (uint64_t)to->members * i->length, begin = at;

        for (uint32_t m = 0; m < t->members; m++) {
            memcpy(side + at, from + m * row + (uint64_t)to->first * i->length, bytes);
            at += bytes;
        }
        if (owner == t->me && blocks_side(b) == BLOCKS_APART)
            memcpy(other + begin, side + begin, at - begin);
    }
}

void exchange_take(struct engine *e, uint32_t team, const struct instance *i)
{
    const struct team *t = &e->teams.table[team];
    const struct team_live *live = &e->teams.live[team];
    const uint8_t *from = inputs(live, i);
    uint8_t *side = team_side(e, team, i, i->side);
    struct blocks b = blocks_of(e, team, i);
    uint64_t row = stride(i, i->length);

    e->teams.moved += blocks_bytes(t, i->kind, i->length);
    switch (i->kind) {
    case TEAM_BARRIER:
        break;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        memcpy(side, from, (uint64_t)t->size * i->length);
        break;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        side += (uint64_t)live->participants[t->me].first * i->length;
        for (uint32_t m = 0; m < t->members; m++)
            memcpy(side + (uint64_t)m * i->length, from + m * row, i->length);
        break;
    case TEAM_ALLTOALL:
        take_alltoall(t, &b, i, from, side, team_side(e, team, i, i->side ^ 1));
        break;
    case TEAM_SCAN:
    case TEAM_EXSCAN: /* the last member's part is the fold of all */
        memcpy(side, i->row == WIRE_COLL_LINES ? from : from + (t->members - 1) * row, i->length);
        break;
    default:
        memcpy(side, from, i->length);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* Each member here gets a block from each rank. */
static void give_alltoall(const struct team *t, const struct blocks *b, const struct instance *i,
                          const uint8_t *side, uint8_t *to)
{
    uint64_t row = (uint64_t)t->size * i->length;

    for (uint32_t n = 0; n < t->participants; n++) {
        const struct participant *from = &b->list[coll_source(b->algorithm, &b->shape, t->me, n)];

        for (uint32_t s = 0; s < from->members; s++)
            for (uint32_t m = 0; m < t->members; m++) {
                memcpy(to + m * row + (uint64_t)(from->first + s) * i->length, side, i->length);
                side += i->length;
            }
    }
}

/* The bytes that our members get. *from moves to their place. */
static uint64_t result_of(const struct team *t, const struct participant *list,
                          const struct instance *i, const uint8_t **from)
{
    uint64_t length = i->length;

    switch (i->kind) {
    case TEAM_BARRIER:
        return 0;
    case TEAM_REDUCE:
        return t->me == i->root ? length : 0;
    case TEAM_SCAN:
    case TEAM_EXSCAN: /* the second of two blocks */
        *from += length;
        return t->me > 0 ? length : 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        *from += list[t->me].first * length;
        return t->members * length;
    case TEAM_GATHER:
        return t->me == i->root ? t->size * length : 0;
    case TEAM_ALLGATHER:
        return t->size * length;
    case TEAM_ALLTOALL:
        return (uint64_t)t->members * t->size * length;
    default:
        return length;
    }
}

void exchange_give(struct engine *e, uint32_t team, const struct instance *i)
{
    const struct team *t = &e->teams.table[team];
    const struct team_live *live = &e->teams.live[team];
    struct blocks b = blocks_of(e, team, i);
    const uint8_t *from =
        team_side(e, team, i, blocks_side(&b) == BLOCKS_APART ? i->side ^ 1 : i->side);
    uint64_t bytes = result_of(t, live->participants, i, &from);

    if (!live->attached)
        return;
    e->teams.moved += bytes;
    if (i->kind == TEAM_ALLTOALL)
        give_alltoall(t, &b, i, from, results(live, i));
    else
        memcpy(results(live, i), from, bytes);
    team_end(&live->area, i->sequence, 0, (uint32_t)bytes);
    FAULT(INSTANCE_SHOWN);
    e->published = true; /* members that poll on this core take it when the thread yields */
    exchange_wake(e, team);
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void wake(struct engine *e, const struct team_member *member)
{
    if (!member->left)
        session_dirty(e, member->session);
}

void exchange_wake(struct engine *e, uint32_t team)
{
    const struct team_live *live = &e->teams.live[team];
    uint32_t members = e->teams.table[team].members;

    for (uint32_t word = 0; word * 64 < members; word++) {
        uint64_t sleepers = team_take_sleepers(&live->area, word);

        for (; sleepers != 0; sleepers &= sleepers - 1) {
            uint32_t m = word * 64 + (uint32_t)__builtin_ctzll(sleepers);

            if (m < members)
                wake(e, &live->members[m]);
        }
    }
}

void exchange_break(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    const struct team_live *live = &e->teams.live[team];

    if (!live->attached)
        return;
    team_break(&live->area, &t->reason);
    exchange_wake(e, team);
    for (uint32_t m = 0; m < t->members; m++)
        wake(e, &live->members[m]);
}
