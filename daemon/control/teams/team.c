/* Owns the teams of this node's contexts, and their areas (team.h). */
#include "daemon/control/teams/team.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdarg.h>
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/nodes/own_frames.h"
#include "shm_ring/fault.h"
#include "shm_ring/sigbus.h"
#include "shm_ring/team.h"

#define ENGINE_TEAMS 1024u /* places of an engine: engine_team_find */

struct team *team_find(const struct control *control, uint64_t number)
{
    struct team *t = control->node_teams;

    while (t && t->number != number)
        t = t->next;
    return t;
}

bool team_is_of(const struct team *t, const struct teams_key *key)
{
    return t->uid == key->id.uid && t->parent == key->parent && t->context == key->context &&
           t->call == key->call && strcmp(t->job, key->id.job) == 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Gives back what the member's client has been charged with. The area is charged to another member
 * that is left. */
static void uncharge(struct team_part *part, struct team_member *m)
{
    struct client *c = m->session->client;
    struct team_member *other = NULL;

    if (m->counted)
        quota_give(c, QUOTA_TEAMS, 1);
    m->counted = false;
    for (uint32_t i = 0; i < part->count && !other; i++)
        if (&part->members[i] != m && part->members[i].session)
            other = &part->members[i];
    quota_give(c, QUOTA_MEMORY, m->bytes);
    if (other) {
        quota_charge(other->session->client, QUOTA_MEMORY, m->bytes);
        other->bytes += m->bytes;
    }
    m->bytes = 0;
}

static void member_leaves(struct team_part *part, struct team_member *m)
{
    uncharge(part, m);
    m->session = NULL;
}

static void part_free(struct team_part *part)
{
    struct store *store = &part->team->control->store;

    if (part->area.fd >= 0)
        store_remove(store, "%u.team.%" PRIu64, part->worker->engine, part->team->number);
    part->handle = CLIENT_NONE;
    if (part->range >= 0)
        sigbus_remove(part->range);
    part->range = -1;
    mapping_destroy(&part->area);
    part->area = (struct mapping){.fd = -1};
    part->closed = true;
}

static void team_free(struct team *t)
{
    struct team **at = &t->control->node_teams;

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    for (uint32_t i = 0; i < t->part_count; i++) {
        part_free(&t->parts[i]);
        free(t->parts[i].members);
        free(t->parts[i].local);
    }
    store_remove(&t->control->store, "roll.%" PRIu64, t->number);
    mapping_destroy(&t->roll);
    free(t->parts);
    free(t->participants);
    free(t->runs);
    free(t);
}

static void free_if_closed(struct team *t)
{
    for (uint32_t i = 0; i < t->part_count; i++)
        if (!t->parts[i].closed)
            return;
    team_free(t);
}

/* Breaks what the engine has of the team, and has all members leave it; team_closed follows. */
static void part_end(struct team_part *part)
{
    const struct call_target *target = &part->worker->target;

    call_init(&part->end, target, CALL_TEAM_BREAK, NULL, NULL);
    part->end.team = (struct call_team){.handle = part->handle};
    call_post(part->worker->progress, &part->end);
    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        if (!m->session)
            continue;
        call_init(&m->leave, target, CALL_TEAM_LEAVE, NULL, NULL);
        m->leave.team = (struct call_team){.handle = part->handle, .session = m->session->handle};
        call_post(part->worker->progress, &m->leave);
        member_leaves(part, m);
    }
}

void team_drop(struct team *t)
{
    if (t->phase == TEAM_DROPPED)
        return;
    t->phase = TEAM_DROPPED;
    if (t->opening > 0)
        return; /* goes on when the engines have answered */
    for (uint32_t i = 0; i < t->part_count; i++) {
        struct team_part *part = &t->parts[i];

        if (part->handle != CLIENT_NONE) {
            part_end(part);
            continue;
        }
        for (uint32_t j = 0; j < part->count; j++)
            if (part->members[j].session)
                member_leaves(part, &part->members[j]);
        part_free(part);
    }
    free_if_closed(t);
}

void team_closed(struct worker *w, uint32_t handle)
{
    for (struct team *t = w->control->node_teams; t; t = t->next)
        for (uint32_t i = 0; i < t->part_count; i++)
            if (t->parts[i].worker == w && t->parts[i].handle == handle) {
                part_free(&t->parts[i]);
                free_if_closed(t);
                return;
            }
}

/* ---- members --------------------------------------------------------------------------------- */

struct team *team_begin(struct control *control, const struct teams_key *key, uint64_t number,
                        uint64_t first, uint32_t window)
{
    struct team *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    *t = (struct team){.control = control,
                       .phase = TEAM_COMING,
                       .number = number,
                       .window = window,
                       .roll = {.fd = -1},
                       .uid = key->id.uid,
                       .parent = key->parent,
                       .context = key->context,
                       .call = key->call,
                       .first = first,
                       .next = control->node_teams};
    snprintf(t->job, sizeof(t->job), "%s", key->id.job);
    control->node_teams = t;
    return t;
}

int team_name(struct team *t, uint32_t from, const struct teams_run *runs, uint32_t count)
{
    const struct control *control = t->control;

    if (from == 0) {
        t->run_count = 0;
        t->size = 0;
    }
    if (from != t->size)
        return -EPROTO;
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i].count == 0 || runs[i].count > DIRECTORY_RANKS_MAX - t->size ||
            runs[i].rank >= DIRECTORY_RANKS_MAX ||
            runs[i].count > DIRECTORY_RANKS_MAX - runs[i].rank ||
            runs[i].node >= control->node_count ||
            runs[i].engine >= nodes_engines_max(control->node_count) ||
            (runs[i].node == control->node && runs[i].engine >= control->worker_count))
            return -EPROTO;
        t->size += runs[i].count;
    }
    if (t->run_count + count > t->run_room) {
        uint32_t room = 2 * (t->run_count + count);
        struct teams_run *all = realloc(t->runs, room * sizeof(*all));

        if (!all)
            return -ENOMEM;
        t->runs = all;
        t->run_room = room;
    }
    if (count > 0)
        memcpy(t->runs + t->run_count, runs, count * sizeof(*runs));
    t->run_count += count;
    return 0;
}

static uint32_t number_of(const struct team *t, const struct teams_run *run)
{
    return nodes_number(t->control->node_count, run->node, run->engine);
}

/* Numbers the participants by their lowest ranks. `by_peer` has room for NODES_MAX. */
static int find_participants(struct team *t, uint32_t *by_peer)
{
    memset(by_peer, 0, NODES_MAX * sizeof(*by_peer)); /* number + 1 */
    t->participants = calloc(t->run_count, sizeof(*t->participants));
    if (!t->participants)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->run_count; i++) {
        uint32_t *number = &by_peer[number_of(t, &t->runs[i])];
        struct engine_team_participant *p;

        if (*number == 0) {
            *number = ++t->participant_count;
            t->participants[*number - 1].peer = number_of(t, &t->runs[i]);
        }
        p = &t->participants[*number - 1];
        p->members += t->runs[i].count;
        if (p->members > t->fullest)
            t->fullest = p->members;
    }
    return 0;
}

static int part_begin(struct team *t, struct team_part *part, uint32_t me)
{
    *part = (struct team_part){
        .team = t,
        .worker = &t->control->workers[t->participants[me].peer / t->control->node_count],
        .handle = CLIENT_NONE,
        .me = me,
        .area = {.fd = -1},
        .range = -1};
    part->members = calloc(t->participants[me].members, sizeof(*part->members));
    part->local = calloc(t->participants[me].members, sizeof(*part->local));
    return part->members && part->local ? 0 : -ENOMEM;
}

/* Makes the parts of this node's engines, with all of their members, but without sessions. */
static int find_parts(struct team *t, const uint32_t *by_peer)
{
    struct control *control = t->control;
    uint32_t rank = 0;
    int rc = 0;

    t->parts = calloc(control->worker_count, sizeof(*t->parts));
    if (!t->parts)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->participant_count && rc == 0; i++)
        if (t->participants[i].peer % control->node_count == control->node)
            rc = part_begin(t, &t->parts[t->part_count++], i);
    for (uint32_t i = 0; i < t->run_count && rc == 0; i++) {
        const struct teams_run *run = &t->runs[i];
        struct team_part *part = t->parts;

        if (run->node == control->node) {
            while (part->me != by_peer[number_of(t, run)] - 1)
                part++;
            for (uint32_t j = 0; j < run->count; j++)
                part->members[part->count++] = (struct team_member){
                    .job_rank = run->rank + j, .rank = rank + j, .context = run->context};
        }
        rank += run->count;
    }
    return rc;
}

static int build(struct team *t)
{
    uint32_t *by_peer = malloc(NODES_MAX * sizeof(*by_peer));
    int rc = by_peer ? find_participants(t, by_peer) : -ENOMEM;

    if (rc == 0)
        rc = find_parts(t, by_peer);
    free(by_peer);
    return rc;
}

static uint32_t members_here(const struct team *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->part_count; i++)
        count += t->parts[i].count;
    return count;
}

/* The roll is there: each member here has its place in it. */
static void find_answers(struct team *t)
{
    _Atomic uint64_t *answers = team_roll_answers(&t->roll);

    for (uint32_t i = 0; i < t->part_count; i++)
        for (uint32_t j = 0; j < t->parts[i].count; j++)
            t->parts[i].members[j].answer = answers++;
}

static struct client_session *session_of(const struct team *t, const struct worker *w,
                                         const struct team_member *m)
{
    for (const struct client *c = t->control->clients; c; c = c->next)
        if (c->worker == w && c->state == CLIENT_SERVED && c->rank == m->job_rank &&
            c->uid == t->uid && strcmp(c->job, t->job) == 0)
            for (struct client_session *s = c->sessions; s; s = s->next)
                if (s->context == m->context && s->handle != CLIENT_NONE && !s->closing)
                    return s;
    return NULL;
}

struct team_member *team_member_of(const struct team *t, const struct client_session *s,
                                   struct team_part **part)
{
    for (uint32_t i = 0; i < t->part_count; i++)
        for (uint32_t j = 0; j < t->parts[i].count; j++)
            if (t->parts[i].members[j].session == s) {
                *part = &t->parts[i];
                return &t->parts[i].members[j];
            }
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

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

static uint64_t area_bytes(const struct team_part *part)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (team_area_bytes(part->count, part->team->window) + page - 1) & ~(page - 1);
}

/* Charges a part's members with their shares of the area. */
static int charge(struct team_part *part)
{
    uint64_t share = (area_bytes(part) + part->count - 1) / part->count;
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

    if (area_bytes(part) == 0) {
        fail(part->team, -ENOSPC, "%u members of one engine: a team may have %u there", part->count,
             TEAM_MEMBERS_MAX);
        return -ENOSPC;
    }
    rc = charge(part);
    if (rc < 0)
        return rc;
    rc = mapping_create(&part->area, "pwc-team", area_bytes(part));
    if (rc == 0)
        rc = part->range = sigbus_add(part->area.base, part->area.size);
    if (rc < 0) {
        fail(part->team, rc, "a team area of %" PRIu64 " bytes: %s", area_bytes(part),
             strerror(-rc));
        return rc;
    }
    team_area_format(part->area.base, part->count, part->team->window);
    if (store_add(&part->team->control->store, part->area.fd, "%u.team.%" PRIu64,
                  part->worker->engine, part->team->number))
        return 0;
    fail(part->team, -ENOSPC, "as many descriptors are kept for the next process as can be");
    return -ENOSPC;
}

static void opened(struct call *call)
{
    struct team_part *part = call->owner;
    struct team *t = part->team;

    if (call->result < 0)
        fail(t, call->result, "%s",
             call->result == -EDQUOT
                 ? "its engine has no room for the letters of one more such team: free some, or "
                   "ask for a smaller window; what `collective` in pwcd.conf chooses may need "
                   "more than the table"
             : call->result == -ENOSPC ? "its engine has all of its 1024 teams: free some"
                                       : strerror(-call->result));
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
                                                            .local = part->local},
                                                   .area = part->area.base};
    t->opening++;
    call_post(part->worker->progress, &part->open);
}

/* Finds the members' sessions, and makes the areas. */
static int prepare(struct team_part *part)
{
    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        m->session = session_of(part->team, part->worker, m);
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
    int rc = team_roll_make(&t->roll, t->runs, t->run_count, members_here(t));
    struct team_roll *roll = t->roll.base;

    if (rc < 0)
        return rc;
    find_answers(t);
    roll->number = t->number;
    roll->parent = t->parent;
    roll->context = t->context;
    roll->call = t->call;
    roll->first = t->first;
    roll->window = t->window;
    roll->uid = t->uid;
    snprintf(roll->job, sizeof(roll->job), "%s", t->job);
    return store_add(&t->control->store, t->roll.fd, "roll.%" PRIu64, t->number) ? 0 : -ENOSPC;
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
    int rc = build(t);

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

void team_start(struct team *t)
{
    struct team_roll *roll = t->roll.base;

    roll->started = 1;
    t->phase = TEAM_STARTED;
}

/* ---- members that leave ---------------------------------------------------------------------- */

/* The job's home learns of each member that is gone: it may wait for its call. */
static void send_gone(const struct team *t, const struct team_member *m)
{
    const struct directory_id id = {.uid = t->uid, .job = t->job};
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamGone gone = PWC__TEAM_GONE__INIT;

    gone.uid = t->uid;
    gone.job = (char *)(uintptr_t)t->job;
    gone.parent = t->number;
    gone.rank = m->job_rank;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_GONE;
    frame.team_gone = &gone;
    (void)frame_send(t->control, directory_home(&id, t->control->node_count), &frame);
}

void team_leave(struct team_part *part, struct team_member *m, uint32_t request,
                void (*left)(struct call *call))
{
    struct client *c = m->session->client;

    client_call_in(c, &m->leave, CALL_TEAM_LEAVE, left);
    m->leave.cookie = request;
    m->leave.team = (struct call_team){.handle = part->handle, .session = m->session->handle};
    call_post(part->worker->progress, &m->leave);
    FAULT(TEAM_LEAVES);
    send_gone(part->team, m);
    member_leaves(part, m);
}

void node_teams_session_gone(struct client_session *s)
{
    for (struct team *t = s->client->control->node_teams; t; t = t->next) {
        struct team_part *part;
        struct team_member *m = team_member_of(t, s, &part);

        if (!m)
            continue;
        send_gone(t, m);
        member_leaves(part, m);
    }
}

/* ---- over the end of a process --------------------------------------------------------------- */

static struct team *inherit_roll(struct control *control, uint64_t number)
{
    int descriptor = store_take(&control->store, "roll.%" PRIu64, number);
    struct mapping m = {.fd = -1};
    const struct team_roll *roll;
    struct team *t = NULL;

    if (descriptor >= 0 && team_roll_inherit(&m, descriptor) == 0) {
        roll = m.base;
        t = team_begin(control,
                       &(struct teams_key){.id = {.uid = roll->uid, .job = roll->job},
                                           .parent = roll->parent,
                                           .context = roll->context,
                                           .call = roll->call},
                       number, roll->first, roll->window);
    }
    if (t) {
        t->roll = m;
        t->phase = roll->started ? TEAM_STARTED : TEAM_READY;
        if (roll->number == number && team_name(t, 0, roll->runs, roll->run_count) == 0 &&
            build(t) == 0 && roll->member_count == members_here(t)) {
            find_answers(t);
            return t;
        }
        t->roll = (struct mapping){.fd = -1};
        team_free(t);
    }
    m.fd = -1;
    mapping_destroy(&m);
    store_untake(&control->store, "roll.%" PRIu64, number);
    return NULL;
}

static void inherit_members(struct team_part *part)
{
    uint64_t share = (area_bytes(part) + part->count - 1) / part->count;

    for (uint32_t i = 0; i < part->count; i++) {
        struct team_member *m = &part->members[i];

        m->session = session_of(part->team, part->worker, m);
        if (!m->session)
            continue;
        quota_charge(m->session->client, QUOTA_MEMORY, share);
        m->bytes = share;
        if (part->team->phase != TEAM_STARTED)
            continue; /* the member asks once more, and is counted then */
        quota_charge(m->session->client, QUOTA_TEAMS, 1);
        m->counted = true;
    }
}

static bool inherit_part(struct worker *w, struct engine *e, uint32_t handle, uint64_t number)
{
    struct control *control = w->control;
    struct team *t = team_find(control, number);
    struct team_part *part = NULL;
    int descriptor;

    if (!t)
        t = inherit_roll(control, number);
    for (uint32_t i = 0; t && i < t->part_count; i++)
        if (t->parts[i].worker == w && t->parts[i].handle == CLIENT_NONE)
            part = &t->parts[i];
    if (!part)
        return false;
    part->handle = handle;
    inherit_members(part);
    descriptor = store_take(&control->store, "%u.team.%" PRIu64, w->engine, number);
    if (mapping_inherit(&part->area, descriptor, area_bytes(part)) < 0) {
        part->area.fd = -1;
        return false;
    }
    part->range = sigbus_add(part->area.base, part->area.size);
    return engine_team_inherit(e, handle, part->area.base) == 0;
}

void node_teams_inherit(struct worker *w, struct engine *e)
{
    struct engine_team_found found;

    for (uint32_t index = 0; index < ENGINE_TEAMS; index++)
        if (engine_team_find(e, index, &found) == 0 &&
            !inherit_part(w, e, found.handle, found.number))
            store_untake(&w->control->store, "%u.team.%" PRIu64, w->engine, found.number);
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

void node_teams_free(struct control *control)
{
    while (control->node_teams)
        team_free(control->node_teams);
}
