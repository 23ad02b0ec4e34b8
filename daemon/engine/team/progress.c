/* Progress of instances (progress.h). Thread: the progress thread. */
#include "daemon/engine/team/progress.h"

#include <errno.h>
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/exchange.h"
#include "daemon/engine/team/instance.h"
#include "daemon/engine/team/letters.h"
#include "daemon/engine/team/table.h"
#include "shm_ring/fault.h"

/* The cost of a look at an instance that may wait for a floor, in bytes moved. */
#define RETRY_BYTES 64u

/* ---- breaks ---------------------------------------------------------------------------------- */

/* Owes BREAK to the neighbours of a dissemination: at the distances 1, 2, 4, ... in both
 * directions. */
static void owe_break(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];

    for (uint32_t far = 1; far < t->participants; far *= 2) {
        letter_owe(e, team, coll_plus(t->participants, t->me, far), NEWS_BREAK);
        letter_owe(e, team, coll_minus(t->participants, t->me, far), NEWS_BREAK);
    }
}

static void set_broken(struct engine *e, uint32_t team, const struct team_reason *reason)
{
    struct team *t = &e->teams.table[team];

    if (t->state != TEAM_OPEN || t->reason.status != 0)
        return;
    t->reason = *reason;
    t->reason.status = 0;
    set32(e, (uint32_t *)&t->reason.status, (uint32_t)reason->status);
    e->teams.broken++;
    owe_break(e, team);
}

/* Shows the members here that the team is broken. */
static void show_break(struct engine *e, uint32_t team)
{
    instances_wait_no_more(e, team);
    exchange_break(e, team);
    table_leaves(e, TABLE_TEAMS, team);
}

void team_condemn(struct engine *e, uint32_t team)
{
    set_broken(e, team, &e->teams.call.reason);
}

void team_fail(struct engine *e, uint32_t team, const struct team_reason *reason)
{
    const struct team *t = &e->teams.table[team];

    if (t->state != TEAM_OPEN || t->reason.status != 0)
        return;
    set_broken(e, team, reason);
    commit(e);
    show_break(e, team);
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Asks a participant for its floor, by the next FLOOR to it. The lowest floor that we want comes
 * first: a higher one may wait for letters that the lower one lets leave. */
static void ask(struct engine *e, uint32_t team, uint32_t participant, uint64_t floor)
{
    struct participant *p = &e->teams.live[team].participants[participant];

    if (p->ask > 0 && p->ask <= floor)
        return;
    set64(e, &p->ask, floor);
    letter_owe(e, team, participant, NEWS_FLOOR);
    commit(e);
}

/* Returns a bit for each letter of this round that goes to a participant without room for the
 * instance. Asks these participants for their floors. */
static uint32_t ask_floors(struct engine *e, uint32_t team, const struct instance *i,
                           const struct coll_round *now)
{
    const struct team *t = &e->teams.table[team];
    uint64_t floor = i->sequence < t->window ? 0 : i->sequence - t->window + 1;
    uint32_t lacking = 0;

    floor = i->before > floor ? i->before : floor;
    for (uint32_t n = 0; n < now->sends; n++) {
        if (e->teams.live[team].participants[now->to[n].peer].floor >= floor)
            continue;
        ask(e, team, now->to[n].peer, floor);
        lacking |= 1u << n;
    }
    if (lacking != 0 && e->teams.live[team].blocked <= i->sequence)
        e->teams.live[team].blocked = i->sequence + 1;
    return lacking;
}

/* Within a transaction: writes a letter after `at` bytes of others. Returns the letter's bytes. */
static uint32_t write_letter(struct engine *e, uint32_t team, const struct instance *i,
                             const struct blocks *b, const struct coll_letter *to,
                             struct letter *letter, uint32_t at)
{
    uint32_t bytes = (uint32_t)blocks_leaving(b, i->round, &to->blocks);

    blocks_pack(b, i->round, &to->blocks, team_side(e, team, i, i->side),
                team_mail_out(e, team, i) + at);
    letter_write(e, letter,
                 &(struct letter){.team = team,
                                  .to = to->peer,
                                  .round = i->round,
                                  .sequence = i->sequence,
                                  .bytes = bytes,
                                  .at = at});
    return bytes;
}

/* Writes the letters of a round: all of them, or none. */
static void post(struct engine *e, uint32_t team, struct instance *i, const struct blocks *b,
                 const struct coll_round *now)
{
    struct team_sums *sums = &e->teams.sums[i->schedule];
    uint32_t at = i->out_used;

    for (uint32_t n = 0; n < now->sends; n++) {
        uint32_t bytes =
            write_letter(e, team, i, b, &now->to[n], team_letter(e, team, i, i->round, n), at);

        at += (bytes + 7) & ~7u;
        sums->letter_bytes += bytes;
    }
    e->teams.moved += at - i->out_used;
    set32(e, &i->out_used, at);
    set32(e, &i->unacked, i->unacked + now->sends);
    set32(e, &i->posted, i->round + 1);
    commit(e);
    sums->letters += now->sends;
    FAULT(LETTER_POSTED);
    for (uint32_t n = 0; n < now->sends; n++)
        letter_list(e, team_letter(e, team, i, i->round, n));
}

/* Awaits a letter: watches its sender, and asks it once whether it knows the team. */
static void await(struct engine *e, uint32_t team, uint32_t participant)
{
    struct participant *p = &e->teams.live[team].participants[participant];

    peer_want(e, p->peer);
    if (!e->peer_live[p->peer].watched)
        peer_activate(e, p->peer);
    if (p->met)
        return;
    set32(e, &p->met, 1);
    ask(e, team, participant, 1);
    commit(e);
}

static void await_letters(struct engine *e, uint32_t team, struct instance *i,
                          const struct coll_round *now, uint32_t lacking)
{
    for (uint32_t left = lacking; left != 0; left &= left - 1)
        await(e, team, now->from[__builtin_ctz(left)].peer);
    instance_wait(e, team, i, now, WAITS_LETTERS, lacking);
}

/* Copies the blocks into which others are to be combined to the other side. If an earlier process
 * has died after that, copies them back from there. */
static void copy(struct engine *e, uint32_t team, struct instance *i, const struct blocks *b,
                 const struct coll_round *now)
{
    const uint8_t *from = team_side(e, team, i, i->side);
    uint8_t *to = team_side(e, team, i, i->side ^ 1);
    bool again = i->copied > i->round;

    for (uint32_t n = 0; n < now->arrivals; n++)
        if (again)
            blocks_copy(b, now->how, &now->from[n].blocks, to, (uint8_t *)from);
        else
            blocks_copy(b, now->how, &now->from[n].blocks, from, to);
    if (again)
        return;
    set32(e, &i->copied, i->round + 1);
    commit(e);
}

/* Puts what has arrived in place, which ends the round. */
static void place(struct engine *e, uint32_t team, struct instance *i, const struct blocks *b,
                  const struct coll_round *now)
{
    enum blocks_side side = blocks_side(b);
    uint32_t other = side == BLOCKS_HERE ? i->side : i->side ^ 1;

    instance_wait(e, team, i, now, WAITS_NOT, 0);
    if (side == BLOCKS_HERE && blocks_combine(now->how) && now->arrivals > 0)
        copy(e, team, i, b, now);
    for (uint32_t n = 0; n < now->arrivals; n++) {
        const struct arrival_slot *slot = team_arrival(e, team, i, i->round, n);

        blocks_place(b, i->round, now->how, &now->from[n].blocks, team_side(e, team, i, i->side),
                     team_mail_in(e, team, i) + slot->at, team_side(e, team, i, other));
        e->teams.moved += slot->bytes;
    }
    if (side == BLOCKS_TURN && now->arrivals > 0)
        set32(e, &i->side, other);
    set32(e, &i->round, i->round + 1);
    commit(e);
}

/* Goes through rounds as far as letters and floors allow. Returns whether the last one is over. */
static bool rounds(struct engine *e, uint32_t team, struct instance *i)
{
    struct blocks b = blocks_of(e, team, i);
    uint32_t all = b.algorithm->rounds(&b.shape);

    while (i->round < all) {
        struct coll_round now;
        uint32_t lacking;

        b.algorithm->round(&b.shape, b.me, i->round, &now);
        if (now.sends > 0 && i->posted <= i->round) {
            lacking = ask_floors(e, team, i, &now);
            if (lacking != 0) {
                if (i->called)
                    instance_wait(e, team, i, &now, WAITS_FLOORS, lacking);
                return false;
            }
            post(e, team, i, &b, &now);
        }
        lacking = instance_missing(e, team, i, &now);
        if (lacking != 0) {
            if (i->called)
                await_letters(e, team, i, &now, lacking);
            return false;
        }
        place(e, team, i, &b, &now);
    }
    return true;
}

/* Whether the instance may begin. Data of a bcast or a scatter is passed on before our own members
 * have called. */
static bool may_begin(const struct engine *e, uint32_t team, const struct instance *i)
{
    return i->called ||
           ((i->kind == TEAM_BCAST || i->kind == TEAM_SCATTER) && !exchange_gives(e, team, i));
}

/* Advances an instance. Returns whether that has moved the floor. */
static bool advance(struct engine *e, uint32_t team, uint64_t sequence)
{
    struct instance *i = team_instance(e, team, sequence);

    if (e->teams.table[team].reason.status != 0 || i->state != INSTANCE_OPEN ||
        i->sequence != sequence || i->done || !may_begin(e, team, i) || !rounds(e, team, i) ||
        !i->called)
        return false;
    exchange_give(e, team, i);
    instance_done(e, team, i);
    commit(e);
    e->teams.sums[i->schedule].calls++;
    e->teams.sums[i->schedule].bytes += i->length;
    return instance_over(e, team, sequence);
}

/* Advances an instance that may wait for a floor; the look at it counts as work. */
static void retry(struct engine *e, uint32_t team, uint64_t sequence)
{
    e->teams.moved += RETRY_BYTES;
    advance(e, team, sequence);
}

/* A participant's floor has reached what it was asked for, which is the lowest floor that any
 * instance waits for. Advances the instances that it has room for now, and the last user of each
 * data row, which may have waited for the row's user before (ask_floors). Instances behind them are
 * not looked at, however many wait: for these the next floor is asked for. */
static void floor_reached(struct engine *e, uint32_t team, uint32_t participant, uint64_t asked)
{
    const struct team *t = &e->teams.table[team];
    uint64_t floor = e->teams.live[team].participants[participant].floor;
    uint64_t end = e->teams.live[team].blocked, s = asked + t->window - 1;
    bool more = floor < end && floor + t->window < end;

    if (s < t->floor)
        s = t->floor;
    for (uint32_t row = 0; row < TEAM_DATA_ROWS; row++)
        if (t->last[row] > t->floor)
            retry(e, team, t->last[row] - 1);
    for (end = more ? floor + t->window : end; s < end; s++)
        retry(e, team, s);
    if (more)
        ask(e, team, participant, floor + 1);
}

void team_go_on(struct engine *e)
{
    struct team_call call = e->teams.call;

    e->teams.call = (struct team_call){.team = NONE};
    if (call.team == NONE)
        return;
    if (call.reason.status != 0)
        show_break(e, call.team);
    if (call.advance)
        advance(e, call.team, call.sequence);
    if (call.asked > 0)
        floor_reached(e, call.team, call.from, call.asked);
    if (call.hasten)
        instances_hasten(e, call.team);
}

void team_acknowledged(struct engine *e, uint64_t slot)
{
    struct team_call ended = letter_acknowledged(e, slot);

    commit(e);
    if (ended.team != NONE)
        instance_over(e, ended.team, ended.sequence);
}

/* ---- ends ------------------------------------------------------------------------------------ */

void teams_forget_peer(struct engine *e, uint32_t peer)
{
    if (e->teams.open == 0)
        return;
    for (uint32_t team = 0; team < TEAMS_MAX; team++) {
        const struct team *t = &e->teams.table[team];

        for (uint32_t p = 0; t->state == TEAM_OPEN && p < t->participants; p++) {
            if (e->teams.live[team].participants[p].peer != peer || p == t->me)
                continue;
            team_fail(e, team, &(struct team_reason){.status = -EHOSTDOWN, .rank = {NONE, NONE}});
            letters_drop(e, team, p);
            table_leaves(e, TABLE_TEAMS, team);
        }
    }
}

void team_forget_session(struct engine *e, uint32_t team, uint32_t session)
{
    struct team *t = &e->teams.table[team];

    for (uint32_t m = 0; t->state == TEAM_OPEN && m < t->members; m++) {
        struct team_member *member = &e->teams.live[team].members[m];

        if (member->session != session || member->left)
            continue;
        team_fail(e, team,
                  &(struct team_reason){.status = -EHOSTDOWN, .rank = {member->rank, NONE}});
        set32(e, &member->left, 1);
        set32(e, &t->left, t->left + 1);
        commit(e);
        table_leaves(e, TABLE_TEAMS, team);
    }
}

void teams_forget_session(struct engine *e, uint32_t session)
{
    for (uint32_t team = 0; e->teams.open > 0 && team < TEAMS_MAX; team++)
        team_forget_session(e, team, session);
}

static void area_faulted(struct engine *e, uint32_t team)
{
    const struct team_member *members = e->teams.live[team].members;

    team_fail(e, team, &(struct team_reason){.status = -EHOSTDOWN, .rank = {NONE, NONE}});
    for (uint32_t m = 0; m < e->teams.table[team].members; m++)
        if (!members[m].left)
            client_quarantine(e, e->sessions[members[m].session].client, QUARANTINE_MEMORY);
}

void teams_find_faults(struct engine *e)
{
    if (e->teams.open == 0 || !e->host->area_faulted)
        return;
    for (uint32_t team = 0; team < TEAMS_MAX; team++)
        if (e->teams.table[team].state == TEAM_OPEN &&
            e->host->area_faulted(e->host->context, team_handle(e, team)))
            area_faulted(e, team);
}

void teams_resume(struct engine *e)
{
    if (!e->teams.resume)
        return;
    e->teams.resume = false;
    for (uint32_t team = 0; team < TEAMS_MAX; team++) {
        if (e->teams.table[team].state != TEAM_OPEN)
            continue;
        if (!e->teams.live[team].attached)
            team_fail(e, team, &(struct team_reason){.status = -EHOSTDOWN, .rank = {NONE, NONE}});
        instances_settle(e, team);
        for (uint64_t s = e->teams.table[team].floor, n = 0; n < e->teams.table[team].window; n++)
            advance(e, team, s + n);
        for (uint64_t n = 0; n < e->teams.table[team].window; n++)
            instance_over(e, team, e->teams.live[team].instances[n].sequence);
    }
}
