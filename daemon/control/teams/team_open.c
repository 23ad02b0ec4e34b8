/* Opens teams in the engines, and makes their areas (team_open.h). Owns nothing. Thread:
 * control. */
#include "daemon/control/teams/team_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/teams/team_member.h"
#include "daemon/control/teams/team_parts.h"
#include "shm_ring/fault.h"
#include "shm_ring/sigbus.h"
#include "shm_ring/team.h"

__attribute__((format(printf, 3, 4))) static void fail(struct team *t, int status,
                                                       const char *format, ...)
{
    va_list arguments;

    if (t->status < 0)
        return;
    t->status = status;
    va_start(arguments, format);
    vsnprintf(t->why, sizeof(t->why), format, arguments);
    va_end(arguments);
}

/* ---- the area -------------------------------------------------------------------------------- */

uint64_t team_area_size(const struct team_part *part)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (team_area_bytes(part->count, part->team->window) + page - 1) & ~(page - 1);
}

/* Charges the clients of a part's members for their shares of the area. */
static int charge(struct team_part *part)
{
    uint64_t share = (team_area_size(part) + part->count - 1) / part->count;
    char why[REQUEST_WHY_MAX];

    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];
        int rc = quota_take(m->session->client, QUOTA_MEMORY, share, why, sizeof(why));

        if (rc < 0) {
            fail(part->team, rc, "its share of a team area, rank %u: %s", m->job_rank, why);
            return rc;
        }
        m->bytes = share;
    }
    return 0;
}

static int make_area(struct team_part *part)
{
    int rc;

    if (team_area_size(part) == 0) {
        fail(part->team, -ENOSPC, "%u members of one engine: a team may have %u there", part->count,
             TEAM_MEMBERS_MAX);
        return -ENOSPC;
    }
    rc = charge(part);
    if (rc < 0)
        return rc;
    rc = mapping_create(&part->area, "pwc-team", team_area_size(part));
    if (rc == 0)
        rc = part->range = sigbus_add(part->area.base, part->area.size);
    if (rc < 0) {
        fail(part->team, rc, "a team area of %" PRIu64 " bytes: %s", team_area_size(part),
             strerror(-rc));
        return rc;
    }
    team_area_format(part->area.base, part->count, part->team->window);
    if (store_add_for(&part->team->control->store, part->team->uid, part->area.fd,
                      "%u.team.%" PRIu64, part->worker->engine, part->team->number))
        return 0;
    fail(part->team, -ENOSPC,
         "as many descriptors are kept for the next process as can be, or as this user may have: "
         "free teams or contexts");
    return -ENOSPC;
}

/* ---- the engines ----------------------------------------------------------------------------- */

/* Why an engine did not open its part: the status for the members, and the text. */
static void refused(struct team *t, int result)
{
    static const struct {
        int result, status;
        const char *why;
    } reasons[] = {
        {-ENOSPC, -ENOSPC, "its engine has all of its 1024 teams: free some"},
        {-ENOMEM, -EDQUOT,
         "its engine has no room for the letters of one more such team: free some, or ask for a "
         "smaller window; what `collective` in pwcd.conf chooses may need more than the table"},
        {-EDQUOT, -EDQUOT,
         "the user's teams are 896 of its engine's 1024, and the others are for other users: free "
         "some"},
        {-ENOBUFS, -EDQUOT,
         "the letters of one more such team would take the user's teams beyond 896 MiB of its "
         "engine's 1 GiB, and the rest is for other users: free some, or ask for a smaller window"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (result == reasons[i].result) {
            fail(t, reasons[i].status, "%s", reasons[i].why);
            return;
        }
    fail(t, result, "%s", strerror(-result));
}

static void opened(struct call *call)
{
    struct team_part *part = call->owner;
    struct team *t = part->team;

    if (call->result < 0)
        refused(t, call->result);
    else
        part->handle = (uint32_t)call->result;
    if (--t->opening > 0)
        return;
    if (t->phase == TEAM_DROPPED) {
        t->phase = TEAM_OPENING;
        team_drop(t);
        return;
    }
    t->phase = TEAM_READY;
    t->opened(t);
}

static void open_part(struct team_part *part)
{
    struct team *t = part->team;

    for (uint32_t i = 0; i < part->count; i++)
        part->local[i] = (struct engine_team_member){.rank = part->members[i].rank,
                                                     .session = part->members[i].session->handle};
    call_init(&part->open, &part->worker->target, CALL_TEAM_OPEN, part, opened);
    part->open.team_open = (struct call_team_open){.info = {.number = t->number,
                                                            .size = t->size,
                                                            .window = t->window,
                                                            .me = part->me,
                                                            .participants = t->participant_count,
                                                            .members = part->count,
                                                            .list = t->participants,
                                                            .local = part->local,
                                                            .choices = &t->choices},
                                                   .area = part->area.base,
                                                   .range = part->range};
    t->opening++;
    call_post(part->worker->progress, &part->open);
}

/* Finds the members' sessions, and makes the areas. */
static int prepare(struct team_part *part)
{
    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        m->session = team_member_session(part->team, part->worker, m);
        if (!m->session) {
            fail(part->team, -EHOSTDOWN, "context %u of rank %u has ended", m->context,
                 m->job_rank);
            return -EHOSTDOWN;
        }
    }
    return make_area(part);
}

/* Writes the roll, for the next process. */
static int make_roll(struct team *t)
{
    int rc = team_roll_make(&t->roll, t->runs, t->run_count, team_members_here(t));
    struct team_roll *roll = t->roll.base;

    if (rc < 0)
        return rc;
    team_parts_answers(t);
    roll->number = t->number;
    roll->parent = t->parent;
    roll->context = t->context;
    roll->call = t->call;
    roll->first = t->first;
    roll->window = t->window;
    roll->uid = t->uid;
    snprintf(roll->job, sizeof(roll->job), "%s", t->job);
    return store_add_for(&t->control->store, t->uid, t->roll.fd, "roll.%" PRIu64, t->number)
               ? 0
               : -ENOSPC;
}

/* Opens the parts that their engines do not have. */
static void open_parts(struct team *t)
{
    for (uint32_t i = 0; i < t->part_count && t->status == 0; i++)
        if (t->parts[i].handle == CLIENT_NONE)
            (void)prepare(&t->parts[i]);
    FAULT(TEAM_PREPARED);
    t->opening = 1;
    for (uint32_t i = 0; i < t->part_count && t->status == 0; i++)
        if (t->parts[i].handle == CLIENT_NONE)
            open_part(&t->parts[i]);
    if (--t->opening > 0)
        return;
    t->phase = TEAM_READY;
    t->opened(t);
}

void team_open(struct team *t, void (*on_opened)(struct team *team))
{
    int rc = team_parts_make(t);

    t->opened = on_opened;
    t->phase = TEAM_OPENING;
    if (rc == 0)
        rc = make_roll(t);
    if (rc < 0)
        fail(t, rc, "%s", strerror(-rc));
    if (t->part_count == 0)
        fail(t, -EPROTO, "the job's home names a team without members here");
    open_parts(t);
}

void team_open_rest(struct team *t, void (*on_opened)(struct team *team))
{
    bool whole = true;

    for (uint32_t i = 0; i < t->part_count; i++)
        whole = whole && t->parts[i].handle != CLIENT_NONE;
    t->opened = on_opened;
    if (whole || t->phase != TEAM_READY)
        return;
    t->phase = TEAM_OPENING;
    open_parts(t);
}
