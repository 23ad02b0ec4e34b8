/* Letters on their way out (letters.h). Thread: the progress thread. */
#include "daemon/engine/team/letters.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/team/table.h"

/* In `slot` of a mark, above the letter's number: where the record's data begins in the letter, or
 * for FLOOR and BREAK the bit of enum letter_news. */
#define SLOT_PART_SHIFT 32u

static bool has_news(const struct letter *letter)
{
    return (letter->owed | letter->flying) != 0;
}

/* Counts a letter, or with UINT32_MAX takes it off, at its peer. A round's letter counts at its
 * participant, too. */
static void count(struct engine *e, const struct letter *letter, uint32_t by)
{
    e->peer_live[letter_peer(e, letter)].letters += by;
    if (letter->kind != LETTER_NEWS)
        e->teams.live[letter->team].participants[letter->to].unacked += by;
}

/* ---- made ------------------------------------------------------------------------------------ */

void letter_list(struct engine *e, struct letter *letter)
{
    uint32_t peer = letter_peer(e, letter), number = letter_number(e, letter), turn;
    struct ready_list *list;

    peer_want(e, peer);
    peer_activate(e, peer);
    if (letter->listed || e->peer_live[peer].link != LINK_UP)
        return;
    turn = turn_of(e, peer, team_payer(e, letter->team));
    list = &e->turns[turn].letters;
    letter->listed = 1;
    letter->next = NONE;
    if (list->first == NONE)
        list->first = number;
    else
        letter_at(e, list->last)->next = number;
    list->last = number;
    e->teams.live[letter->team].listed++;
    turn_list(e, turn);
}

void letter_write(struct engine *e, struct letter *letter, const struct letter *like)
{
    *letter = *like;
    letter->kind = LETTER_FREE;
    letter->waits = 1;
    set32(e, &letter->kind, LETTER_ROUND);
    count(e, letter, 1);
}

void letter_owe(struct engine *e, uint32_t team, uint32_t participant, enum letter_news news)
{
    struct letter *letter = &e->teams.live[team].participants[participant].news;

    letter->kind = LETTER_NEWS;
    letter->team = team;
    letter->to = participant;
    if (!has_news(letter))
        count(e, letter, 1);
    set32(e, &letter->owed, letter->owed | news);
    letter_list(e, letter);
}

/* ---- staged ---------------------------------------------------------------------------------- */

static void *stage(struct engine *e, const struct letter *letter, uint8_t kind, uint32_t size,
                   uint32_t part)
{
    const struct ledger_mark mark = {.flow = NONE,
                                     .epoch = SENT_LETTER,
                                     .slot = letter_number(e, letter) | (uint64_t)part
                                                                            << SLOT_PART_SHIFT,
                                     .nonce = NONE};

    return ledger_stage(e, letter_peer(e, letter), kind, size, LEDGER_OPERATION, &mark);
}

/* Notes that our floor leaves with a record to this participant, and returns the floor. */
static uint64_t say_floor(struct engine *e, uint32_t team, struct participant *p)
{
    const struct team *t = &e->teams.table[team];

    set64(e, &p->said, t->floor);
    set32(e, &p->heard, 0);
    if (p->wanted > 0 && p->wanted <= t->floor)
        set64(e, &p->wanted, 0);
    return t->floor;
}

/* The data of the next record of a letter, as much as there may be room for at once. */
static uint32_t next_bytes(const struct engine *e, const struct letter *letter)
{
    uint32_t most = ledger_record_most(e, letter_peer(e, letter)) - sizeof(struct wire_coll);
    uint32_t left = letter->bytes - letter->staged;

    return left <= most ? left : most & ~(WIRE_COLL_UNIT - 1);
}

/* Stages the next record of a round's letter. Returns 1: it was the last; 0: more are left;
 * -ENOSPC. */
static int stage_round(struct engine *e, struct letter *letter)
{
    struct team *t = &e->teams.table[letter->team];
    struct participant *p = &e->teams.live[letter->team].participants[letter->to];
    const struct instance *i = team_instance(e, letter->team, letter->sequence);
    uint32_t begin = letter->staged, bytes = next_bytes(e, letter);
    struct wire_coll *w;

    w = stage(e, letter, WIRE_COLL, (uint32_t)sizeof(*w) + abi_pad8(bytes), begin);
    if (!w)
        return -ENOSPC;
    *w = (struct wire_coll){.head = w->head,
                            .team = t->number,
                            .sequence = i->sequence,
                            .signature = i->signature,
                            .floor = say_floor(e, letter->team, p),
                            .from = t->me,
                            .root = i->root,
                            .rank = i->rank,
                            .length = i->length,
                            .bytes = letter->bytes,
                            .kind = (uint8_t)i->kind,
                            .row = (uint8_t)i->row,
                            .round = (uint16_t)letter->round,
                            .at = begin,
                            .schedule = i->schedule};
    memset((uint8_t *)(w + 1) + bytes, 0, abi_pad8(bytes) - bytes);
    memcpy(w + 1, team_mail_out(e, letter->team, i) + letter->at + begin, bytes);
    set32(e, &letter->staged, begin + bytes);
    set32(e, &letter->waits, begin + bytes < letter->bytes);
    set32(e, &letter->records, letter->records + 1);
    set32(e, &t->flying, t->flying + 1);
    commit(e);
    return letter->waits ? 0 : 1;
}

/* Drops a letter that a broken team does not need any more. */
static void drop(struct engine *e, struct letter *letter)
{
    set32(e, &letter->kind, LETTER_FREE);
    commit(e);
    count(e, letter, UINT32_MAX);
}

static int stage_break(struct engine *e, struct letter *letter)
{
    const struct team *t = &e->teams.table[letter->team];
    struct wire_break *w = stage(e, letter, WIRE_BREAK, sizeof(*w), NEWS_BREAK);

    if (!w)
        return -ENOSPC;
    *w = (struct wire_break){.head = w->head,
                             .team = t->number,
                             .sequence = t->reason.sequence,
                             .signature = {t->reason.signature[0], t->reason.signature[1]},
                             .rank = {t->reason.rank[0], t->reason.rank[1]},
                             .status = t->reason.status,
                             .from = t->me};
    return 0;
}

static int stage_floor(struct engine *e, struct letter *letter)
{
    const struct team *t = &e->teams.table[letter->team];
    struct participant *p = &e->teams.live[letter->team].participants[letter->to];
    struct wire_floor *w = stage(e, letter, WIRE_FLOOR, sizeof(*w), NEWS_FLOOR);

    if (!w)
        return -ENOSPC;
    *w = (struct wire_floor){.head = w->head,
                             .team = t->number,
                             .floor = say_floor(e, letter->team, p),
                             .wanted = p->ask,
                             .from = t->me};
    return 0;
}

/* Stages BREAK or else FLOOR, if it is owed and not under way already. Results as those of
 * stage_round. */
static int stage_news(struct engine *e, struct letter *letter)
{
    struct team *t = &e->teams.table[letter->team];
    uint32_t due = letter->owed & ~letter->flying;
    uint32_t news = due & NEWS_BREAK ? NEWS_BREAK : due;
    int r;

    if (due == 0)
        return 1;
    r = news == NEWS_BREAK ? stage_break(e, letter) : stage_floor(e, letter);
    if (r < 0)
        return r;
    set32(e, &letter->owed, letter->owed & ~news);
    set32(e, &letter->flying, letter->flying | news);
    set32(e, &t->flying, t->flying + 1);
    commit(e);
    return (letter->owed & ~letter->flying) == 0;
}

static int stage_letter(struct engine *e, struct letter *letter)
{
    if (letter->kind == LETTER_NEWS)
        return stage_news(e, letter);
    if (letter->kind != LETTER_ROUND || !letter->waits)
        return 1;
    if (letter->records > 0 || e->teams.table[letter->team].reason.status == 0)
        return stage_round(e, letter);
    drop(e, letter);
    return 1;
}

/* A team that all members have left may wait for its last letter in a list, which may be dropped
 * and so never acknowledged. */
static void unlist_first(struct engine *e, struct turn *turn)
{
    struct letter *letter = letter_at(e, turn->letters.first);
    const struct team *t = &e->teams.table[letter->team];

    turn->letters.first = letter->next;
    letter->listed = 0;
    if (--e->teams.live[letter->team].listed == 0 && t->left == t->members)
        e->sweep = true;
}

int letters_stage(struct engine *e, struct turn *turn, int *work)
{
    while (turn->left > 0 && turn->letters.first != NONE) {
        struct letter *letter = letter_at(e, turn->letters.first);
        uint64_t begun = e->peers[turn->peer].tx_tail;
        int r = stage_letter(e, letter);

        if (r < 0)
            return r;
        turn->left -= (int64_t)(e->peers[turn->peer].tx_tail - begun);
        ++*work;
        if (r == 0)
            continue;
        unlist_first(e, turn);
    }
    return 0;
}

/* ---- after that ------------------------------------------------------------------------------ */

static struct letter *letter_of(struct engine *e, uint64_t slot, uint32_t *part)
{
    *part = (uint32_t)(slot >> SLOT_PART_SHIFT);
    return letter_at(e, (uint32_t)slot);
}

struct team_call letter_acknowledged(struct engine *e, uint64_t slot)
{
    struct team_call call = {.team = NONE};
    uint32_t part;
    struct letter *letter = letter_of(e, slot, &part);
    struct team *t = &e->teams.table[letter->team];
    struct instance *i;

    set32(e, &t->flying, t->flying - 1);
    if (t->left == t->members)
        e->sweep = true;
    if (letter->kind == LETTER_NEWS) {
        set32(e, &letter->flying, letter->flying & ~part);
        if (letter->owed != 0)
            letter_list(e, letter);
        else if (letter->flying == 0)
            count(e, letter, UINT32_MAX);
        return call;
    }
    set32(e, &letter->records, letter->records - 1);
    if (letter->records > 0 || letter->waits)
        return call;
    i = team_instance(e, letter->team, letter->sequence);
    set32(e, &letter->kind, LETTER_FREE);
    set32(e, &i->unacked, i->unacked - 1);
    count(e, letter, UINT32_MAX);
    if (i->unacked == 0)
        call = (struct team_call){.team = letter->team, .sequence = letter->sequence};
    return call;
}

void letter_rewind(struct engine *e, uint64_t slot)
{
    uint32_t part;
    struct letter *letter = letter_of(e, slot, &part);
    struct team *t = &e->teams.table[letter->team];

    set32(e, &t->flying, t->flying - 1);
    if (letter->kind == LETTER_NEWS) {
        set32(e, &letter->flying, letter->flying & ~part);
        set32(e, &letter->owed, letter->owed | part);
    } else {
        set32(e, &letter->staged, part);
        set32(e, &letter->waits, 1);
        set32(e, &letter->records, letter->records - 1);
    }
}

/* ---- all of a peer --------------------------------------------------------------------------- */

/* Calls `each` for each LETTER_ROUND to this participant. */
static void rounds_to(struct engine *e, uint32_t team, uint32_t participant,
                      void (*each)(struct engine *e, struct letter *letter))
{
    const struct team *t = &e->teams.table[team];
    struct letter *letters = e->teams.live[team].letters;

    for (uint64_t n = 0; n < team_slots(t); n++)
        if (letters[n].kind == LETTER_ROUND && letters[n].to == participant)
            each(e, &letters[n]);
}

static void list_waiting(struct engine *e, struct letter *letter)
{
    if (letter->waits)
        letter_list(e, letter);
}

void letters_resume(struct engine *e, uint32_t peer)
{
    if (e->peer_live[peer].letters == 0)
        return;
    for (uint32_t team = 0; team < TEAMS_MAX; team++) {
        const struct team *t = &e->teams.table[team];

        for (uint32_t p = 0; t->state == TEAM_OPEN && p < t->participants; p++) {
            struct participant *to = &e->teams.live[team].participants[p];

            if (to->peer != peer)
                continue;
            rounds_to(e, team, p, list_waiting);
            if (to->news.owed != 0)
                letter_list(e, &to->news);
        }
    }
}

static void stop_turn(struct engine *e, struct turn *turn)
{
    while (turn->letters.first != NONE)
        unlist_first(e, turn);
}

void letters_stop(struct engine *e, uint32_t peer)
{
    stop_turn(e, &e->turns[turn_of_nobody(e, peer)]);
    for (uint32_t turn = e->peer_live[peer].turns; turn != NONE; turn = e->turns[turn].next)
        stop_turn(e, &e->turns[turn]);
}

static void drop_flying(struct engine *e, struct letter *letter)
{
    struct team *t = &e->teams.table[letter->team];

    set32(e, &t->flying, t->flying - letter->records);
    drop(e, letter);
}

static uint32_t bits(uint32_t news)
{
    return (news & NEWS_FLOOR ? 1 : 0) + (news & NEWS_BREAK ? 1 : 0);
}

void letters_drop(struct engine *e, uint32_t team, uint32_t participant)
{
    struct team *t = &e->teams.table[team];
    struct letter *news = &e->teams.live[team].participants[participant].news;

    rounds_to(e, team, participant, drop_flying);
    if (!has_news(news))
        return;
    set32(e, &t->flying, t->flying - bits(news->flying));
    set32(e, &news->flying, 0);
    set32(e, &news->owed, 0);
    commit(e);
    count(e, news, UINT32_MAX);
}

void letters_forget(struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    const struct letter *letters = e->teams.live[team].letters;

    for (uint64_t n = 0; n < team_slots(t); n++)
        if (letters[n].kind == LETTER_ROUND)
            count(e, &letters[n], UINT32_MAX);
}

static void inherit(struct engine *e, struct letter *letter)
{
    letter->listed = 0;
    count(e, letter, 1);
}

void letters_inherit(struct engine *e)
{
    for (uint32_t team = 0; team < TEAMS_MAX; team++) {
        const struct team *t = &e->teams.table[team];
        struct team_live *live = &e->teams.live[team];

        if (t->state != TEAM_OPEN)
            continue;
        for (uint32_t p = 0; p < t->participants; p++) {
            live->participants[p].unacked = 0;
            live->participants[p].news.listed = 0;
            if (has_news(&live->participants[p].news))
                inherit(e, &live->participants[p].news);
        }
        for (uint64_t n = 0; n < team_slots(t); n++)
            if (live->letters[n].kind == LETTER_ROUND)
                inherit(e, &live->letters[n]);
    }
}
