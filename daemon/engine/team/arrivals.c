/* Letters that arrive (arrivals.h). Thread: the progress thread. */
#include "daemon/engine/team/arrivals.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/instance.h"
#include "daemon/engine/team/letters.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/team/table.h"
#include "shm_ring/fault.h"

/* Answers a letter to a team that is not open here by BREAK: the team has ended. */
static int answer_unknown(struct engine *e, uint32_t peer, uint64_t number)
{
    struct wire_break record = {.head.kind = WIRE_BREAK,
                                .team = number,
                                .rank = {WIRE_NONE, WIRE_NONE},
                                .status = -EHOSTDOWN,
                                .from = WIRE_NONE};

    return notes_push(e, peer, NONE, &record, sizeof(record)) < 0 ? -EAGAIN : 0;
}

/* The participant that a letter from this peer names as its sender, and whose floor is noted; NULL:
 * the letter makes no sense. */
static struct participant *sender(struct engine *e, uint32_t team, uint32_t peer, uint32_t from,
                                  uint64_t floor)
{
    const struct team *t = &e->teams.table[team];
    struct participant *p;

    if (from >= t->participants || from == t->me)
        return NULL;
    p = &e->teams.live[team].participants[from];
    if (p->peer != peer || floor < p->floor)
        return NULL;
    if (p->met == 0)
        set32(e, &p->met, 1);
    if (floor > p->floor) {
        set64(e, &p->floor, floor);
        if (p->ask > 0 && p->ask <= floor) {
            e->teams.call.asked = p->ask;
            e->teams.call.from = from;
            set64(e, &p->ask, 0);
        }
    }
    e->teams.call.team = team;
    return p;
}

/* ---- COLL ------------------------------------------------------------------------------------ */

/* The bytes of data in a record with `size` bytes after its fixed part; UINT32_MAX: the record
 * can't be the next one of its letter. */
static uint32_t data_of(const struct wire_coll *w, const struct arrival_slot *slot, uint32_t size)
{
    uint32_t left;

    if (w->at != slot->come || (slot->records > 0 && slot->come == slot->bytes))
        return UINT32_MAX;
    left = w->bytes - w->at;
    if (size == abi_pad8(left))
        return left;
    return size > 0 && size < left && size % WIRE_COLL_UNIT == 0 ? size : UINT32_MAX;
}

/* Which letter of a round comes from this participant; `arrivals` of the round: none does. */
static uint32_t find_arrival(const struct coll_round *now, uint32_t from)
{
    uint32_t n = 0;

    while (n < now->arrivals && now->from[n].peer != from)
        n++;
    return n;
}

/* Keeps the data of one record of a round's letter. Returns 0 or -EPROTO. */
static int keep(struct engine *e, uint32_t team, const struct wire_coll *w, const uint8_t *data,
                uint32_t size)
{
    const struct team *t = &e->teams.table[team];
    struct instance *i = team_instance(e, team, w->sequence);
    struct blocks b = blocks_of(e, team, i);
    struct arrival_slot *slot;
    struct coll_round now;
    uint32_t bytes, n;

    if (w->round >= b.algorithm->rounds(&b.shape))
        return -EPROTO;
    b.algorithm->round(&b.shape, b.me, w->round, &now);
    n = find_arrival(&now, w->from);
    if (n == now.arrivals || w->bytes != blocks_arriving(&b, w->round, &now.from[n].blocks) ||
        w->bytes > TEAM_DATA_BYTES)
        return -EPROTO;
    slot = team_arrival(e, team, i, w->round, n);
    bytes = data_of(w, slot, size);
    if (bytes == UINT32_MAX)
        return -EPROTO;
    if (slot->records == 0) {
        uint32_t room = i->row == WIRE_COLL_LINES ? t->lines.mail : t->data.mail;

        if (abi_pad8(w->bytes) > room - i->in_used)
            return -EPROTO;
        slot->at = i->in_used;
        slot->bytes = w->bytes;
        set32(e, &i->in_used, i->in_used + abi_pad8(w->bytes));
    }
    memcpy(team_mail_in(e, team, i) + slot->at + w->at, data, bytes);
    set32(e, &slot->come, w->at + bytes);
    set32(e, &slot->records, slot->records + 1);
    FAULT(LETTER_KEPT);
    return 0;
}

/* Whether the sender follows another schedule than we do, which breaks the team. The reason then
 * has the same signature twice. */
static bool goes_otherwise(const struct engine *e, uint32_t team, const struct wire_coll *w,
                           struct team_reason *out)
{
    if (team_instance(e, team, w->sequence)->schedule == w->schedule)
        return false;
    *out = (struct team_reason){.status = -EBADMSG,
                                .rank = {e->teams.live[team].members[0].rank, w->rank},
                                .sequence = w->sequence,
                                .signature = {w->signature, w->signature}};
    return true;
}

/* Finds the call that a letter names, or begins it. Returns 0; 1: the call differs from ours, or
 * fits none here, which breaks the team and not the link, because members of the sender can cause
 * this; -EPROTO. */
static int meet(struct engine *e, uint32_t team, const struct wire_coll *w)
{
    const struct team *t = &e->teams.table[team];
    struct instance call = {.sequence = w->sequence,
                            .signature = w->signature,
                            .rank = w->rank,
                            .root = w->root,
                            .length = w->length,
                            .kind = w->kind,
                            .row = w->row};
    const struct instance *i = team_instance(e, team, w->sequence);

    if (!instance_valid(e, team, &call) ||
        (w->sequence >= t->floor && w->sequence - t->floor >= t->window))
        return -EPROTO;
    if (w->sequence < t->floor || i->state == INSTANCE_OVER || instance_room(e, team, &call) < 0) {
        e->teams.call.reason = instance_forged(&call);
        return 1;
    }
    if (i->state == INSTANCE_OPEN)
        return instance_differs(e, team, &call, &e->teams.call.reason) ||
               goes_otherwise(e, team, w, &e->teams.call.reason);
    instance_begin(e, team, &call);
    if (t->left == t->members)
        table_leaves(e, TABLE_TEAMS, team);
    return goes_otherwise(e, team, w, &e->teams.call.reason);
}

int take_coll(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct participant *p;
    struct wire_coll w;
    uint32_t team;
    int r;

    e->teams.call = (struct team_call){.team = NONE};
    memcpy(&w, record->at, sizeof(w));
    team = team_by_number(e, w.team);
    if (team == NONE)
        return answer_unknown(e, peer, w.team);
    p = sender(e, team, peer, w.from, w.floor);
    if (!p)
        return -EPROTO;
    set32(e, &p->heard, 1);
    if (e->teams.table[team].reason.status != 0) {
        letter_owe(e, team, w.from, NEWS_BREAK);
        return 0;
    }
    r = meet(e, team, &w);
    if (r > 0)
        team_condemn(e, team);
    if (r != 0)
        return r < 0 ? r : 0;
    e->teams.call.advance = true;
    e->teams.call.sequence = w.sequence;
    return keep(e, team, &w, record->at + sizeof(w), record->size - (uint32_t)sizeof(w));
}

/* ---- FLOOR, BREAK ---------------------------------------------------------------------------- */

int take_floor(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct participant *p;
    struct wire_floor w;
    uint32_t team;

    e->teams.call = (struct team_call){.team = NONE};
    memcpy(&w, record->at, sizeof(w));
    team = team_by_number(e, w.team);
    if (team == NONE)
        return w.wanted == 0 ? 0 : answer_unknown(e, peer, w.team);
    p = sender(e, team, peer, w.from, w.floor);
    if (!p)
        return -EPROTO;
    if (w.wanted == 0)
        return 0;
    if (e->teams.table[team].reason.status != 0) {
        letter_owe(e, team, w.from, NEWS_BREAK);
    } else if (w.wanted <= e->teams.table[team].floor) {
        letter_owe(e, team, w.from, NEWS_FLOOR);
    } else {
        e->teams.call.hasten = true;
        set64(e, &p->wanted, w.wanted);
        if (w.wanted < e->teams.live[team].wanted)
            e->teams.live[team].wanted = w.wanted;
    }
    return 0;
}

/* Whether the peer is an engine of the team. */
static bool takes_part(const struct engine *e, uint32_t team, uint32_t peer)
{
    const struct team *t = &e->teams.table[team];

    for (uint32_t p = 0; p < t->participants; p++)
        if (p != t->me && e->teams.live[team].participants[p].peer == peer)
            return true;
    return false;
}

int take_break(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_break w;
    uint32_t team;

    e->teams.call = (struct team_call){.team = NONE};
    memcpy(&w, record->at, sizeof(w));
    team = team_by_number(e, w.team);
    if (team == NONE)
        return 0;
    if (!takes_part(e, team, peer) || (w.status != -EHOSTDOWN && w.status != -EBADMSG))
        return -EPROTO;
    e->teams.call.team = team;
    e->teams.call.reason = (struct team_reason){.status = w.status,
                                                .rank = {w.rank[0], w.rank[1]},
                                                .sequence = w.sequence,
                                                .signature = {w.signature[0], w.signature[1]}};
    team_condemn(e, team);
    return 0;
}

/* There are few data rows, and the next user of one waits until the letters of the last are
 * acknowledged: so these ACKs leave soon. Rows of lines are as many as the window, so ACKs of their
 * letters may be late: the sender hastens them when it needs them (instance.c). */
int letter_after(struct engine *e, uint32_t peer)
{
    const struct team_call *call = &e->teams.call;

    if (call->advance && team_instance(e, call->team, call->sequence)->row != WIRE_COLL_LINES)
        ledger_ack_soon(e, peer);
    team_go_on(e);
    return 0;
}
