/* Instances (instance.h). Thread: the progress thread. */
#include "daemon/engine/team/instance.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/letters.h"
#include "daemon/engine/team/table.h"
#include "proto/word_abi.h"

/* The floor is announced after this many instances with a data row. */
#define DATA_UNSAID (TEAM_DATA_ROWS / 2)

/* ---- begin ----------------------------------------------------------------------------------- */

/* A call that is combined names a fold, and whole elements. */
static bool fold_valid(const struct instance *call)
{
    uint8_t op = team_signature_op(call->signature), type = team_signature_type(call->signature);
    uint8_t code = word_code((enum word_op)op, (enum word_type)type);

    if (!blocks_fold(call->kind))
        return true;
    return op < 16 && type < 16 && fold_code_valid(code) &&
           (call->length & ((1u << fold_shift(code)) - 1)) == 0;
}

static bool root_valid(const struct team *t, const struct instance *call)
{
    bool rooted = call->kind == TEAM_BCAST || call->kind == TEAM_REDUCE ||
                  call->kind == TEAM_GATHER || call->kind == TEAM_SCATTER;

    return rooted ? call->root < t->participants : call->root == 0;
}

bool instance_valid(const struct engine *e, uint32_t team, const struct instance *call)
{
    const struct team *t = &e->teams.table[team];
    enum team_way way;

    if (call->kind < TEAM_BARRIER || call->kind > TEAM_ALLTOALL || !root_valid(t, call) ||
        !fold_valid(call))
        return false;
    way = team_way((enum team_kind)call->kind, call->length, t->size, t->fullest);
    return call->row == WIRE_COLL_LINES ? way == TEAM_BY_LINES
                                        : way == TEAM_BY_DATA && call->row < TEAM_DATA_ROWS;
}

int instance_room(const struct engine *e, uint32_t team, const struct instance *call)
{
    const struct team *t = &e->teams.table[team];
    uint64_t ahead = call->sequence - t->floor, last;

    if (ahead >= 2ull * t->window)
        return -ERANGE;
    if (ahead >= t->window)
        return -EAGAIN;
    if (team_instance(e, team, call->sequence)->state != INSTANCE_FREE ||
        call->row == WIRE_COLL_LINES)
        return 0;
    last = t->last[call->row];
    return last == 0 || last <= t->floor || team_instance(e, team, last - 1)->state != INSTANCE_OPEN
               ? 0
               : -EAGAIN;
}

/* Whether the members have been shown that this instance has ended. */
static bool was_shown(const struct instance *i)
{
    return i->state == INSTANCE_OVER || (i->state == INSTANCE_OPEN && i->done);
}

bool instance_out_of_turn(const struct engine *e, uint32_t team, const struct instance *call)
{
    const struct team *t = &e->teams.table[team];
    const struct instance *i = team_instance(e, team, call->sequence);
    uint64_t ahead = call->sequence - t->floor, last;

    if (ahead >= 2ull * t->window)
        return true;
    /* Members call in order: an honest one has seen the floor's instance end. */
    if (ahead >= t->window)
        return !was_shown(team_instance(e, team, t->floor));
    if (i->state != INSTANCE_FREE)
        return i->state == INSTANCE_OVER || i->called;
    if (call->row == WIRE_COLL_LINES)
        return false;
    last = t->last[call->row];
    return last > t->floor && team_instance(e, team, last - 1)->state != INSTANCE_FREE &&
           !was_shown(team_instance(e, team, last - 1));
}

struct team_reason instance_forged(const struct instance *call)
{
    return (struct team_reason){.status = -EBADMSG,
                                .rank = {call->rank, NONE},
                                .sequence = call->sequence,
                                .signature = {call->signature, 0}};
}

void instance_begin(struct engine *e, uint32_t team, const struct instance *call)
{
    struct team *t = &e->teams.table[team];
    struct instance *i = team_instance(e, team, call->sequence);

    *i = (struct instance){.sequence = call->sequence,
                           .signature = call->signature,
                           .rank = call->rank,
                           .root = call->root,
                           .length = call->length,
                           .kind = call->kind,
                           .row = call->row,
                           .schedule = blocks_row(t, call->kind, call->length)};
    memset(team_arrival(e, team, i, 0, 0), 0,
           (call->row == WIRE_COLL_LINES ? t->lines.slots : t->data.slots) *
               sizeof(struct arrival_slot));
    if (call->row != WIRE_COLL_LINES) {
        i->before = t->last[call->row];
        set64(e, &t->last[call->row], call->sequence + 1);
    }
    set32(e, &i->state, INSTANCE_OPEN);
}

bool instance_differs(const struct engine *e, uint32_t team, const struct instance *call,
                      struct team_reason *out)
{
    const struct instance *i = team_instance(e, team, call->sequence);

    if (i->signature == call->signature && i->kind == call->kind && i->root == call->root &&
        i->length == call->length && i->row == call->row)
        return false;
    *out = (struct team_reason){.status = -EBADMSG,
                                .rank = {i->rank, call->rank},
                                .sequence = call->sequence,
                                .signature = {i->signature, call->signature}};
    return true;
}

/* ---- under way ------------------------------------------------------------------------------- */

#define NS_PER_MS 1000000u

static bool is_under_way(const struct instance *i)
{
    return i->state == INSTANCE_OPEN && i->called && !i->done;
}

/* Counts an instance that is under way; the oldest one is that of the lowest sequence. */
static void add_under_way(struct engine *e, uint32_t team, const struct instance *i)
{
    struct team_live *live = &e->teams.live[team];

    if (live->under_way == 0 || i->sequence < live->oldest) {
        live->oldest = i->sequence;
        live->oldest_ms = i->called_ms;
    }
    live->under_way++;
    e->teams.under_way++;
}

/* The oldest instance is no longer under way: finds the next one, less than a window after it. */
static void find_oldest(struct engine *e, uint32_t team)
{
    struct team_live *live = &e->teams.live[team];
    uint64_t end = live->oldest + e->teams.table[team].window;

    for (uint64_t s = live->oldest + 1; live->under_way > 0 && s < end; s++) {
        const struct instance *i = team_instance(e, team, s);

        if (i->sequence != s || !is_under_way(i))
            continue;
        live->oldest = s;
        live->oldest_ms = i->called_ms;
        return;
    }
}

void instance_called(struct engine *e, uint32_t team, struct instance *i)
{
    set32(e, &i->called, 1);
    i->called_ms = (uint32_t)(e->now / NS_PER_MS) | 1;
    add_under_way(e, team, i);
}

void instance_done(struct engine *e, uint32_t team, struct instance *i)
{
    struct team_live *live = &e->teams.live[team];

    set32(e, &i->done, 1);
    live->under_way--;
    e->teams.under_way--;
    if (i->sequence == live->oldest)
        find_oldest(e, team);
}

/* ---- end ------------------------------------------------------------------------------------- */

static uint64_t half_window(const struct team *t)
{
    return t->window > 1 ? t->window / 2 : 1;
}

/* Owes FLOOR to each participant that has asked for our floor, and to each that has sent letters
 * since our floor was last sent to it. */
static void say_floor(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    struct team_live *live = &e->teams.live[team];
    uint64_t unsaid = t->floor - live->said;
    bool many = unsaid >= half_window(t) || live->data_over >= DATA_UNSAID;
    uint64_t wanted = UINT64_MAX;

    if (!many && live->wanted > t->floor)
        return;
    for (uint32_t p = 0; p < t->participants; p++) {
        struct participant *to = &live->participants[p];

        if ((to->wanted > 0 && to->wanted <= t->floor) ||
            (many && to->heard && to->said < t->floor)) {
            letter_owe(e, team, p, NEWS_FLOOR);
            commit(e);
        }
        if (to->wanted > t->floor && to->wanted < wanted)
            wanted = to->wanted;
    }
    live->wanted = wanted;
    if (!many)
        return;
    live->said = t->floor;
    live->data_over = 0;
}

static bool move_floor(struct engine *e, uint32_t team)
{
    struct team *t = &e->teams.table[team];
    struct instance *i = team_instance(e, team, t->floor);
    uint64_t began = t->floor;

    while (i->state == INSTANCE_OVER) {
        e->teams.live[team].data_over += i->row != WIRE_COLL_LINES;
        set32(e, &i->state, INSTANCE_FREE);
        set64(e, &t->floor, t->floor + 1);
        commit(e);
        i = team_instance(e, team, t->floor);
    }
    if (t->floor == began)
        return false;
    say_floor(e, team);
    return true;
}

/*
 * ACKs of letters may be late, and hold our floor meanwhile. Owes FLOOR to all participants whose
 * ACKs are missing: a FLOOR is acknowledged at once, and with it all that was sent before. This
 * happens when a participant waits for our floor, and before others would have to:
 *
 *     floor              hastened               ended           floor + window
 *       |-------------------|--------------------|------------------|
 *         their ACKs are      ended since then     others wait behind this
 *         on their way
 */
static void hasten(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    struct team_live *live = &e->teams.live[team];

    for (uint32_t p = 0; p < t->participants; p++) {
        if (live->participants[p].unacked == 0)
            continue;
        letter_owe(e, team, p, NEWS_FLOOR);
        commit(e);
    }
    live->hastened = live->ended;
}

void instances_hasten(struct engine *e, uint32_t team)
{
    if (e->teams.live[team].hastened < e->teams.live[team].ended)
        hasten(e, team);
}

/* An instance has ended, and the floor has not passed it. */
static void held(struct engine *e, uint32_t team, const struct instance *i)
{
    const struct team *t = &e->teams.table[team];
    struct team_live *live = &e->teams.live[team];
    uint64_t from = live->hastened > t->floor ? live->hastened : t->floor;
    bool late = i->state == INSTANCE_OPEN && i->sequence < live->hastened, wanted;

    if (i->sequence >= live->ended)
        live->ended = i->sequence + 1;
    wanted = live->wanted > from && live->wanted <= live->ended;
    if (late || wanted || live->ended >= from + half_window(t))
        hasten(e, team);
}

bool instance_over(struct engine *e, uint32_t team, uint64_t sequence)
{
    struct instance *i = team_instance(e, team, sequence);
    bool moved = false;

    if (i->state != INSTANCE_OPEN || !i->done)
        return false;
    if (i->unacked == 0) {
        set32(e, &i->state, INSTANCE_OVER);
        commit(e);
        moved = move_floor(e, team);
    }
    if (!moved)
        held(e, team, i);
    return moved;
}

void instances_settle(struct engine *e, uint32_t team)
{
    e->teams.live[team].wanted = 0; /* say_floor finds it */
    move_floor(e, team);
    say_floor(e, team);
}

/* ---- waiting --------------------------------------------------------------------------------- */

uint32_t instance_missing(const struct engine *e, uint32_t team, const struct instance *instance,
                          const struct coll_round *now)
{
    uint32_t missing = 0;

    for (uint32_t n = 0; n < now->arrivals; n++)
        if (!arrival_whole(team_arrival(e, team, instance, instance->round, n)))
            missing |= 1u << n;
    return missing;
}

/* Counts the instance, or takes it off, at each participant that it waits for. */
static void count(struct engine *e, uint32_t team, const struct instance *i,
                  const struct coll_round *now, uint32_t by)
{
    struct participant *participants = e->teams.live[team].participants;
    const struct coll_letter *list = i->waits == WAITS_FLOORS ? now->to : now->from;

    for (uint32_t left = i->lacking; left != 0; left &= left - 1) {
        struct participant *p = &participants[list[__builtin_ctz(left)].peer];

        p->awaited += by;
        e->peer_live[p->peer].awaited += by;
    }
}

void instance_wait(struct engine *e, uint32_t team, struct instance *i,
                   const struct coll_round *now, enum instance_waits waits, uint32_t lacking)
{
    static_assert(COLL_LETTERS <= 16, "bits of instance.lacking");

    if (i->waits == waits && i->lacking == lacking)
        return;
    count(e, team, i, now, UINT32_MAX);
    i->waits = (uint16_t)waits;
    i->lacking = (uint16_t)lacking;
    count(e, team, i, now, 1);
}

void instances_wait_no_more(struct engine *e, uint32_t team)
{
    struct participant *list = e->teams.live[team].participants;

    for (uint32_t p = 0; p < e->teams.table[team].participants; p++) {
        e->peer_live[list[p].peer].awaited -= list[p].awaited;
        list[p].awaited = 0;
    }
    e->teams.failed += e->teams.live[team].under_way;
    e->teams.under_way -= e->teams.live[team].under_way;
    e->teams.live[team].under_way = 0;
}

void instances_inherit(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];

    for (uint32_t p = 0; p < t->participants; p++)
        e->teams.live[team].participants[p].awaited = 0;
    for (uint32_t n = 0; n < t->window; n++) {
        struct instance *i = &e->teams.live[team].instances[n];

        i->waits = i->lacking = 0;
        if (i->state == INSTANCE_OVER && i->sequence >= e->teams.live[team].ended)
            e->teams.live[team].ended = i->sequence + 1;
        if (is_under_way(i) && t->reason.status == 0)
            add_under_way(e, team, i);
    }
}
