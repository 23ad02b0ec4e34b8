/* Collectives and wake-ups of teams: no operations, because the team part of the engine carries
 * them out. Thread: the progress thread. */
#include "daemon/engine/ops/op.h"

#include <errno.h>
#include "daemon/engine/team/exchange.h"
#include "daemon/engine/team/instance.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/team/table.h"
#include "shm_ring/fault.h"

/* The team that a record names, which this session is a member of; or NONE. */
static uint32_t team_given(const struct engine *e, uint32_t session, const struct submit_record *r)
{
    uint32_t team = team_of_handle(e, r->remote);
    const struct team_live *live;

    if (team == NONE)
        return NONE;
    live = &e->teams.live[team];
    for (uint32_t m = 0; live->attached && m < e->teams.table[team].members; m++)
        if (live->members[m].session == session && !live->members[m].left)
            return team;
    return NONE;
}

static bool plain(const struct submit_record *r)
{
    return r->size == sizeof(*r) && r->flags == 0 && r->lid_len == 0 && r->rid_len == 0 &&
           r->reserve == 0;
}

/* Breaks the team: its members of this engine have made different calls. */
static int mismatch(struct engine *e, uint32_t team, const struct submit_record *r)
{
    e->teams.call = (struct team_call){.team = team,
                                       .reason = {.status = -EBADMSG,
                                                  .rank = {r->root, (uint32_t)r->local_offset},
                                                  .sequence = r->instance,
                                                  .signature = {r->signature, r->data_row}}};
    team_condemn(e, team);
    return QUARANTINE_NONE;
}

/* Begins the instance, or joins the one that letters have begun. */
static void begin(struct engine *e, uint32_t team, const struct instance *call)
{
    struct instance *i = team_instance(e, team, call->sequence);

    e->teams.call.team = team;
    if (i->state == INSTANCE_FREE)
        instance_begin(e, team, call);
    else if (instance_differs(e, team, call, &e->teams.call.reason)) {
        team_condemn(e, team);
        return;
    }
    if (exchange_gives(e, team, i))
        exchange_take(e, team, i);
    instance_called(e, team, i);
    FAULT(INSTANCE_CALLED);
    e->teams.call.advance = true;
    e->teams.call.sequence = call->sequence;
}

static int collective_at_once(struct engine *e, uint32_t session, const struct submit_record *r)
{
    uint32_t team = team_given(e, session, r);
    struct instance call = {.sequence = r->instance,
                            .signature = r->signature,
                            .root = r->root,
                            .length = (uint32_t)r->length,
                            .kind = r->code,
                            .row = r->data_row == TEAM_LINES ? WIRE_COLL_LINES
                                                             : (uint32_t)r->data_row};

    e->teams.call = (struct team_call){.team = NONE};
    if (!plain(r))
        return QUARANTINE_TEAM;
    /* A member may have left a broken team meanwhile: leaving does not wait until this ring is
     * empty. */
    if (team == NONE || e->teams.table[team].reason.status != 0)
        return QUARANTINE_NONE;
    if (r->code == TEAM_MISMATCH)
        return mismatch(e, team, r);
    if (e->teams.table[team].participants == 1 || r->local_offset != 0 || r->length > UINT32_MAX ||
        (r->data_row >= TEAM_DATA_ROWS && r->data_row != TEAM_LINES) ||
        !instance_valid(e, team, &call))
        return QUARANTINE_TEAM;
    call.rank = e->teams.live[team].members[0].rank;
    if (e->teams.resume)
        return -EAGAIN; /* an instance that is done may not be marked so yet */
    if (instance_out_of_turn(e, team, &call)) {
        e->teams.call = (struct team_call){.team = team, .reason = instance_forged(&call)};
        team_condemn(e, team);
        return QUARANTINE_NONE;
    }
    if (instance_room(e, team, &call) < 0)
        return -EAGAIN;
    begin(e, team, &call);
    return QUARANTINE_NONE;
}

static int team_wake_at_once(struct engine *e, uint32_t session, const struct submit_record *r)
{
    uint32_t team = team_given(e, session, r);

    if (!plain(r))
        return QUARANTINE_TEAM;
    if (team != NONE)
        exchange_wake(e, team);
    return QUARANTINE_NONE;
}

const struct op_kind op_collective = {.at_once = collective_at_once, .behind = team_go_on};
const struct op_kind op_team_wake = {.at_once = team_wake_at_once};
