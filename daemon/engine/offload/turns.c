/* Turns of handlers (turns.h). Thread: the progress thread. */
#include "daemon/engine/offload/turns.h"

#include "daemon/engine/state/table.h"

/* The most credit that may be saved up: what one step may take. */
#define CREDIT_NS ((int64_t)OFFLOAD_STEP_UNITS * HANDLER_UNIT_NS)
/* The most time between two looks that counts. */
#define CREDIT_LOOK_NS UINT64_C(1000000)
#define WHOLE          256u /* parts of the time */

void handlers_open(struct engine *e)
{
    struct handler_turns *t = &e->offloads.turns;

    t->waiting = t->unused = (struct ready_list){NONE, NONE};
    t->share = e->config.handler_share * WHOLE / 100;
    t->credit = CREDIT_NS;
    t->credit_at = e->now;
}

/* ---- clients that have work ------------------------------------------------------------------ */

static void note(struct handler_work *w, uint32_t client, uint64_t until)
{
    if (w->client[0] != client) {
        w->client[1] = w->client[0];
        w->until[1] = w->until[0];
        w->client[0] = client;
    }
    w->until[0] = until;
}

void handlers_note(struct engine *e, uint32_t client)
{
    note(&e->offloads.turns.handled, client, e->now + HANDLERS_CONTEND_NS);
}

void handlers_note_work(struct engine *e, uint32_t client)
{
    note(&e->offloads.turns.others, client, e->now + HANDLERS_CONTEND_NS);
}

/* Whether another client than this one has such work. */
static bool has_other(const struct handler_work *w, uint32_t client, uint64_t now)
{
    return w->until[w->client[0] == client] > now;
}

/* Whether a client has other work while handlers of another client have work. */
static bool is_shared(const struct engine *e)
{
    const struct handler_turns *t = &e->offloads.turns;

    for (int i = 0; i < 2; i++)
        if (t->others.until[i] > e->now && has_other(&t->handled, t->others.client[i], e->now))
            return true;
    return false;
}

bool handlers_in_turns(const struct engine *e, uint32_t client)
{
    return is_shared(e) || has_other(&e->offloads.turns.handled, client, e->now);
}

/* ---- credit ---------------------------------------------------------------------------------- */

static uint64_t part_of_time(const struct engine *e)
{
    return is_shared(e) ? e->offloads.turns.share : WHOLE;
}

static void credit_grows(struct engine *e)
{
    struct handler_turns *t = &e->offloads.turns;
    uint64_t passed = e->now - t->credit_at;

    if (passed > CREDIT_LOOK_NS)
        passed = CREDIT_LOOK_NS;
    t->credit += (int64_t)(passed * part_of_time(e) / WHOLE);
    t->credit_at = e->now;
    if (t->credit > CREDIT_NS)
        t->credit = CREDIT_NS;
}

/* Voids the rest of an earlier turn; a debt stays. */
static void turn_begins(struct engine *e, struct handler_turn *turn)
{
    if (turn->left > 0 && e->now >= turn->until)
        turn->left = 0;
}

/* Pays for a turn of the client's. */
static void turn_pay(struct engine *e, struct handler_turn *turn)
{
    turn_begins(e, turn);
    e->offloads.turns.credit -= (int64_t)e->config.handler_turn * HANDLER_UNIT_NS;
    turn->left += e->config.handler_turn;
    turn->until = e->now + HANDLERS_CONTEND_NS;
}

/* ---- one client ------------------------------------------------------------------------------ */

bool handlers_may_run(struct engine *e, uint32_t client)
{
    struct handler_turns *t = &e->offloads.turns;
    struct handler_turn *turn = &t->of[client];

    if (!handlers_in_turns(e, client))
        return true;
    turn_begins(e, turn);
    if (turn->left > 0)
        return true;
    if (t->waiting.first != NONE)
        return false;
    for (credit_grows(e); turn->left <= 0 && t->credit > 0;)
        turn_pay(e, turn);
    return turn->left > 0;
}

void handlers_charge(struct engine *e, uint32_t client, uint64_t units)
{
    if (handlers_in_turns(e, client)) /* else nothing is owed */
        e->offloads.turns.of[client].left -= (int64_t)units;
}

/* The entry of the user in the list of users that wait; a new one is put at its end. */
static uint32_t user_of(struct engine *e, uint32_t uid)
{
    struct handler_turns *t = &e->offloads.turns;
    uint32_t user;

    for (user = t->waiting.first; user != NONE; user = t->user_next[user])
        if (t->users[user].uid == uid)
            return user;
    user = t->unused.first != NONE ? list_pop(&t->unused, t->user_next) : t->used++;
    t->users[user] = (struct handler_user){uid, {NONE, NONE}};
    list_push(&t->waiting, t->user_next, user);
    return user;
}

void handlers_wait(struct engine *e, uint32_t client)
{
    struct handler_turns *t = &e->offloads.turns;

    if (t->of[client].waits)
        return;
    t->of[client].waits = true;
    list_push(&t->users[user_of(e, e->clients[client].uid)].clients, t->next, client);
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* The sweep posts GO for the messages that the client's contexts have refused. A context whose last
 * offload has gone meanwhile gets GO, too: its messages come again, and end. */
static void release(struct engine *e, uint32_t client)
{
    e->offloads.turns.of[client].waits = false;
    for (uint32_t i = 0; i < e->open_count; i++) {
        uint32_t session = e->open_sessions[i];

        if (e->sessions[session].client == client)
            table_leaves(e, TABLE_SESSIONS, session);
    }
}

/* Gives a turn to the first client of the first user, and puts both after the others. False: there
 * is no credit. */
static bool next_turn(struct engine *e)
{
    struct handler_turns *t = &e->offloads.turns;
    uint32_t user = t->waiting.first, client = t->users[user].clients.first;
    bool paid = handlers_in_turns(e, client);

    if (paid && t->credit <= 0)
        return false;
    if (paid)
        turn_pay(e, &t->of[client]);
    list_pop(&t->waiting, t->user_next);
    list_pop(&t->users[user].clients, t->next);
    if (paid && t->of[client].left <= 0)
        list_push(&t->users[user].clients, t->next, client);
    else
        release(e, client);
    list_push(t->users[user].clients.first != NONE ? &t->waiting : &t->unused, t->user_next, user);
    return true;
}

void handlers_give_turns(struct engine *e, uint64_t *deadline)
{
    struct handler_turns *t = &e->offloads.turns;
    uint64_t at;

    credit_grows(e);
    while (t->waiting.first != NONE && next_turn(e))
        continue;
    if (t->waiting.first == NONE)
        return;
    at = e->now + ((uint64_t)(1 - t->credit) * WHOLE) / part_of_time(e) + 1;
    if (at < *deadline)
        *deadline = at;
}
