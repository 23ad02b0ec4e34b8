/* Gets that have come (got.h). Thread: the progress thread. */
#include "daemon/engine/offload/got.h"

#include <errno.h>
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/gets.h"
#include "daemon/engine/offload/turns.h"
#include "daemon/engine/offload/work.h"

static struct work begin(struct engine *e, uint32_t get)
{
    struct handler_get *g = &e->offloads.gets.table[get];
    struct work m = {.e = e,
                     .inflow = NONE,
                     .session = g->session,
                     .peer = g->peer,
                     .origin = g->endpoint,
                     .noted = &g->handled,
                     .bytes = {.at = (const uint8_t *)g},
                     .last = true};

    work_resume(&m);
    return m;
}

/* Decides how the get continues if an earlier process may have run its handler. */
static void resolve(struct work *m, struct handler_get *g)
{
    if (!g->in_doubt)
        return;
    set32(m->e, &g->in_doubt, 0);
    if (m->o->flags & ENGINE_OFFLOAD_REPEATABLE) {
        m->h.flags |= HANDLED_RERUN;
    } else {
        m->h.flags |= HANDLED_CUT;
        m->h.status = -ECONNABORTED;
        m->h.stage = HANDLER_STAGES;
    }
    work_note(m);
    commit(m->e);
}

/* Looks for reasons to end the get without the handler. */
static void check(struct work *m)
{
    const struct session *s = &m->e->sessions[m->session];

    m->h.stage = offload_stage(m->e, m->o, m->h.stage);
    if (m->h.stage == HANDLER_STAGES)
        return;
    if (m->o->state != OFFLOAD_OPEN)
        m->h.status = -ESHUTDOWN;
    else if (m->e->clients[s->client].state != CLIENT_LIVE || !work_client_lives(m))
        m->h.status = -EHOSTDOWN;
    else
        return;
    m->h.stage = HANDLER_STAGES;
}

/* Whether the get waits for room for its event. Where the offload is to end it does not: the client
 * that asks for that may be the one that would make room. */
static bool waits_for_event(const struct work *m)
{
    return !(m->o->flags & ENGINE_OFFLOAD_QUIET) && m->o->ending == OFFLOAD_STAYS;
}

/* Runs the handler, in a transaction of its own. Returns 0; -ENOSPC: it waits. */
static int handler(struct work *m)
{
    struct event_room unused;
    int r = 0;

    if (waits_for_event(m))
        r = session_reserve_for(m->e, m->session, NONE, WORK_EVENT_SIZE, 1, &unused);
    if (r == 0)
        r = work_run(m);
    else
        arena_rollback(&m->e->arena);
    if (r < 0 && m->o->ending != OFFLOAD_STAYS)
        r = 0; /* AGAIN is for offloads that stay */
    return r;
}

/* Posts the get's event, if one is due, and frees its entry. False: there is no room. */
static bool end(struct work *m)
{
    struct engine *e = m->e;
    bool posts = work_event_due(m);
    struct event_room where;

    if (posts && session_reserve_for(e, m->session, NONE, WORK_EVENT_SIZE, 1, &where) < 0) {
        arena_rollback(&e->arena);
        if (waits_for_event(m))
            return false;
        posts = false; /* the offload's counts have the error */
    }
    if (posts)
        work_post_event(m, &where);
    gets_give(e, m->h.sequence);
    commit(e);
    offload_room(e, m->session);
    return true;
}

/* Runs the handler of one get. Returns whether the get has ended. */
static bool run(struct engine *e, uint32_t get)
{
    struct work m = begin(e, get);
    uint32_t client = e->sessions[m.session].client;
    int r = 0;

    resolve(&m, &e->offloads.gets.table[get]);
    check(&m);
    if (m.h.stage == HANDLER_COMPLETION)
        r = handler(&m);
    work_charge(&m, client);
    return r == 0 && end(&m);
}

/* Whether a handler of the context may run now; else it waits for a turn, or for room. */
static bool may_run(struct engine *e, uint32_t session, int *work)
{
    uint32_t client = e->sessions[session].client;

    if (e->session_live[session].gets_wait || handlers_wait_for_turn(e, client))
        return false;
    handlers_note(e, client);
    if (handlers_may_run(e, client))
        return true;
    handlers_wait(e, client);
    ++*work; /* the next step looks whether there is credit for a turn */
    return false;
}

/* Runs the handler on the first get of a context. */
static void run_first(struct engine *e, uint32_t session)
{
    uint32_t get = gets_next(e, session);

    e->offloads.spent += OFFLOAD_LOOK_UNITS;
    if (run(e, get))
        return;
    gets_put_back(e, get);
    offload_gets_wait(e, session);
}

/* Goes through the list of contexts once, as it is now. */
static int run_round(struct engine *e)
{
    uint32_t last = e->offloads.gets.sessions.last, session;
    int work = 0;

    do {
        session = gets_next_session(e);
        if (!gets_has(e, session))
            continue;
        if (may_run(e, session, &work)) {
            run_first(e, session);
            work++;
        }
        if (gets_has(e, session))
            gets_session_back(e, session);
    } while (session != last && e->offloads.spent < OFFLOAD_STEP_UNITS);
    return work;
}

int got_run(struct engine *e)
{
    int work = 0, n;

    do {
        n = run_round(e);
        work += n;
    } while (n > 0 && e->offloads.gets.sessions.first != NONE &&
             e->offloads.spent < OFFLOAD_STEP_UNITS);
    return work;
}
