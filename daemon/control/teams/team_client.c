/* Owns the calls of this node's members until their teams are started (team_client.h). Thread:
 * control. */
#include "daemon/control/teams/team_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/nodes/own_frames.h"
#include "daemon/control/start/collectives.h"
#include "daemon/control/teams/team_answers.h"
#include "daemon/control/teams/team_frames.h"
#include "daemon/control/teams/team_member.h"
#include "daemon/control/teams/team_open.h"
#include "daemon/control/teams/team_parts.h"
#include "shm_ring/fault.h"
#include "shm_ring/team.h"

enum { ERRNO_MAX = 4095 };

/* The requests of our clients that belong to one call. */
struct team_gather {
    struct team_gather *next; /* in the list of all gathers */
    uint32_t uid;
    char job[ENGINE_JOB_MAX];
    uint64_t parent;
    uint32_t context, call;
    struct team_join *joins;
    uint64_t first; /* number of its first team; a home that was restarted gives another number */
    bool whole;     /* the home has named all teams with members here */
    int status;     /* the first failure on this node */
    char why[TEAM_WHY_MAX];
};

static struct teams_key key_of(const struct team_gather *g)
{
    return (struct teams_key){.id = {.uid = g->uid, .job = g->job},
                              .parent = g->parent,
                              .context = g->context,
                              .call = g->call};
}

/* The call that has made the team. */
static struct teams_key made_by(const struct team *t)
{
    return (struct teams_key){.id = {.uid = t->uid, .job = t->job},
                              .parent = t->parent,
                              .context = t->context,
                              .call = t->call};
}

static uint32_t home_of(const struct control *control, const struct teams_key *key)
{
    return directory_home(&key->id, control->node_count);
}

static struct team_gather *find(const struct control *control, const struct teams_key *key)
{
    struct team_gather *g = control->team_gathers;

    while (g && (g->uid != key->id.uid || g->parent != key->parent || g->context != key->context ||
                 g->call != key->call || strcmp(g->job, key->id.job) != 0))
        g = g->next;
    return g;
}

static void gather_free(struct control *control, struct team_gather *g)
{
    struct team_gather **at = &control->team_gathers;
    struct team_join *j;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    while ((j = g->joins) != NULL) {
        g->joins = j->next;
        free(j);
    }
    free(g);
}

void team_client_close(struct control *control)
{
    while (control->team_gathers)
        gather_free(control, control->team_gathers);
}

/* ---- to the home ----------------------------------------------------------------------------- */

static int send_call(struct control *control, const struct teams_key *key,
                     const struct teams_call *c)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamCall call = PWC__TEAM_CALL__INIT;
    Pwc__TeamGather gather = team_gather_pack(key);

    call.gather = &gather;
    call.size = c->size;
    call.at = c->at;
    call.rank = c->rank;
    call.context = c->context;
    call.kind = (Pwc__TeamKind)c->kind;
    call.color = c->color;
    call.key = c->key;
    call.window = c->window;
    call.status = c->status;
    if (c->why)
        call.why = (char *)(uintptr_t)c->why;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_CALL;
    frame.team_call = &call;
    return frame_send(control, home_of(control, key), &frame);
}

/* `choices`: the algorithms of the teams that are ready. */
static void send_ready(struct control *control, const struct teams_key *key, uint64_t first,
                       const struct coll_choices *choices, int status, const char *why, bool ended)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamReady ready = PWC__TEAM_READY__INIT;
    Pwc__TeamGather gather = team_gather_pack(key);
    char text[COLLECTIVES_TEXT_MAX];

    collectives_print(choices, text);
    ready.collective = text;
    ready.gather = &gather;
    ready.first = first;
    ready.status = status;
    ready.why = (char *)(uintptr_t)why;
    ready.ended = ended;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_READY;
    frame.team_ready = &ready;
    (void)frame_send(control, home_of(control, key), &frame);
}

int team_client_call(struct control *control, const struct teams_key *key,
                     const struct team_join *join)
{
    struct team_gather *g = find(control, key);
    struct team_join *copy = malloc(sizeof(*copy));
    int rc;

    if (copy && !g) {
        g = calloc(1, sizeof(*g));
        if (g) {
            *g = (struct team_gather){.next = control->team_gathers,
                                      .uid = key->id.uid,
                                      .parent = key->parent,
                                      .context = key->context,
                                      .call = key->call};
            snprintf(g->job, sizeof(g->job), "%s", key->id.job);
            control->team_gathers = g;
        }
    }
    if (!copy || !g) {
        free(copy);
        return -ENOMEM;
    }
    *copy = *join;
    copy->call.why = NULL;
    copy->next = g->joins;
    g->joins = copy;
    rc = send_call(control, key, &join->call);
    FAULT(TEAM_CALLED);
    return rc;
}

/* ---- teams that the home names --------------------------------------------------------------- */

static void note_failure(struct team_gather *g, int status, const char *why)
{
    if (g->status < 0 || status >= 0)
        return;
    g->status = status;
    snprintf(g->why, sizeof(g->why), "%s", why);
}

/* Reports to the home once all teams are named and opened in the engines. Teams that an earlier
 * process began use the algorithms of its configuration. */
static void report_if_ready(struct control *control, struct team_gather *g)
{
    const struct coll_choices *choices = NULL;
    const struct teams_key key = key_of(g);

    if (!g->whole)
        return;
    for (const struct team *t = control->node_teams; t; t = t->next) {
        if (!team_is_of(t, &key))
            continue;
        if (t->phase == TEAM_COMING || t->phase == TEAM_OPENING)
            return;
        if (t->phase != TEAM_READY)
            continue;
        note_failure(g, t->status, t->why);
        if (choices && memcmp(choices, &t->choices, sizeof(*choices)) != 0)
            note_failure(g, -EPROTO,
                         "its daemon was started anew with another `collective` in "
                         "between: call again");
        choices = &t->choices;
    }
    send_ready(control, &key, g->first, choices ? choices : &control->engine.collectives, g->status,
               g->why, false);
}

static void opened(struct team *t)
{
    const struct teams_key key = made_by(t);
    struct team_gather *g = find(t->control, &key);

    FAULT(TEAM_OPENED);
    if (g)
        report_if_ready(t->control, g);
}

/* Lets members that have given up leave the started team, so that the others do not wait for
 * them. */
static void abandon_for_refused(struct team *t)
{
    const struct teams_key key = made_by(t);

    for (uint32_t i = 0; i < t->part_count; i++)
        for (uint32_t j = 0; j < t->parts[i].count; j++) {
            struct team_member *m = &t->parts[i].members[j];

            if (m->session && team_answers_refused(t->control, &key, m->session->client))
                team_abandon(&t->parts[i], m, 0, NULL);
        }
}

void team_client_resume(struct control *control)
{
    struct team *next;

    for (struct team *t = control->node_teams; t; t = next) {
        next = t->next;
        if (t->phase == TEAM_STARTED) {
            abandon_for_refused(t);
            team_close_rest(t);
        } else {
            team_open_rest(t, opened);
        }
    }
}

/* Drops earlier teams of the call: a home that was restarted forms the teams again, with other
 * numbers. */
static void drop_earlier(struct control *control, const struct teams_key *key, uint64_t first)
{
    struct team *next;

    for (struct team *t = control->node_teams; t; t = next) {
        next = t->next;
        if (team_is_of(t, key) && t->phase < TEAM_STARTED && t->first != first)
            team_drop(t);
    }
}

/* Takes runs of a team. Where the home names the team again, it may be complete here already. */
static void take_runs(struct control *control, struct team_gather *g, const Pwc__TeamGroup *frame)
{
    const struct teams_key key = key_of(g);
    struct team *t = team_find(control, frame->number);
    struct teams_run runs[TEAM_FRAME_RUNS];
    int rc;

    if (t && (t->phase != TEAM_COMING || !team_is_of(t, &key)))
        return;
    if (!t) {
        t = team_begin(control, &key, frame->number, frame->first, frame->window);
    }
    if (!t) {
        note_failure(g, -ENOMEM, "this daemon is out of memory");
        return;
    }
    for (size_t i = 0; i < frame->n_runs; i++)
        runs[i] = team_run_parse(frame->runs[i]);
    rc = team_name(t, frame->from, runs, (uint32_t)frame->n_runs);
    if (rc < 0) {
        note_failure(g, rc, "the job's home names members that there cannot be");
        team_drop(t);
    } else if (frame->last) {
        team_open(t, opened);
    }
}

static int group(struct control *control, uint32_t from, const Pwc__TeamGroup *frame)
{
    struct team_gather *g;
    struct teams_key key;

    if (!team_gather_parse(frame->gather, &key) || home_of(control, &key) != from ||
        frame->n_runs > TEAM_FRAME_RUNS)
        return -EPROTO;
    g = find(control, &key);
    if (!g)
        return 0;
    if (frame->first != g->first) {
        drop_earlier(control, &key, frame->first);
        g->first = frame->first;
        g->whole = false;
        g->status = 0;
    }
    if (frame->number != 0)
        take_runs(control, g, frame);
    if (frame->whole) {
        g->whole = true;
        report_if_ready(control, g);
    }
    return 0;
}

/* ---- the end of a gather --------------------------------------------------------------------- */

static void reply_none(struct client *c, uint32_t request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__TeamFormed formed = PWC__TEAM_FORMED__INIT;

    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_TEAM_FORMED;
    reply.team_formed = &formed;
    client_reply(c, &reply, NULL, 0);
}

/* Sends the team and its area to a member. A member that cannot get them breaks the team, since the
 * others have it. */
static void reply_team(struct client *c, uint32_t request, struct team_part *part,
                       struct team_member *m)
{
    const struct team *t = part->team;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__TeamFormed formed = PWC__TEAM_FORMED__INIT;
    Pwc__TeamRun *runs = calloc(t->run_count, sizeof(*runs));
    Pwc__TeamRun **list = calloc(t->run_count, sizeof(*list));
    int area = fcntl(part->area.fd, F_DUPFD_CLOEXEC, 0);

    if (!runs || !list || area < 0) {
        reply_error(c, request, area < 0 ? -EMFILE : -ENOMEM,
                    "team %llu: this daemon is out of memory or descriptors",
                    (unsigned long long)t->number);
        team_abandon(part, m, 0, NULL);
        if (area >= 0)
            close(area);
    } else {
        for (uint32_t i = 0; i < t->run_count; i++) {
            pwc__team_run__init(&runs[i]);
            runs[i].rank = t->runs[i].rank;
            runs[i].count = t->runs[i].count;
            runs[i].context = t->runs[i].context;
            runs[i].node = t->runs[i].node;
            runs[i].engine = t->runs[i].engine;
            list[i] = &runs[i];
        }
        formed.number = t->number;
        formed.handle = part->handle;
        formed.rank = m->rank;
        formed.member = (uint32_t)(m - part->members);
        formed.window = t->window;
        formed.small_max = team_small_max(t->fullest);
        formed.area = TEAM_VERSION;
        formed.n_runs = t->run_count;
        formed.runs = list;
        reply.id = request;
        reply.body_case = PWC__CLIENT_REPLY__BODY_TEAM_FORMED;
        reply.team_formed = &formed;
        client_reply(c, &reply, &area, 1);
    }
    free(runs);
    free(list);
}

static const char *error_text(int status)
{
    switch (status) {
    case -EHOSTDOWN:
        return "a member has left, or its node cannot be reached";
    case -ECONNABORTED:
        return "the job's home was started anew: call again";
    case -ETIMEDOUT:
        return "a member has given up waiting for the others";
    default:
        return strerror(-status);
    }
}

/* Finds the session's member of the team that this call (key) has made. NULL: there is no such
 * team, or it has not started. */
static struct team_member *find_made(const struct control *control, const struct teams_key *key,
                                     const struct client_session *s, struct team_part **part)
{
    struct team_member *m = NULL;

    for (const struct team *t = control->node_teams; t && !m; t = t->next)
        if (t->phase == TEAM_STARTED && team_is_of(t, key))
            m = team_member_of(t, s, part);
    return m;
}

/* Answers one member's call, which has ended. Its team, if there is one, is started. */
static void reply_end(struct client *c, uint32_t request, const struct teams_key *key,
                      struct team_join *j, int status, const char *why)
{
    struct client_session *s = client_session_find(c, j->session);
    struct team_part *part;
    struct team_member *m = s && status == 0 ? find_made(c->control, key, s, &part) : NULL;

    if (s && status == 0 && !m && team_answers_refused(c->control, key, c))
        status = -ETIMEDOUT;
    if (m && j->counted && !m->counted) {
        m->counted = true;
        j->counted = false;
    }
    if (j->counted)
        quota_give(c, QUOTA_TEAMS, 1);
    if (status < 0)
        reply_error(c, request, status, "call %u over team %llu: %s", key->call,
                    (unsigned long long)key->parent, *why ? why : error_text(status));
    else if (m)
        reply_team(c, request, part, m);
    else if (s && (j->call.kind != TEAMS_SPLIT || j->call.color >= 0))
        reply_error(c, request, -EHOSTDOWN, "this daemon has lost the team that it formed");
    else if (s)
        reply_none(c, request);
    else
        reply_error(c, request, -EHOSTDOWN, "the context was closed while its team formed");
}

bool team_client_again(struct client *c, uint32_t request, const struct teams_key *key,
                       struct team_join *join)
{
    const struct client_session *s = client_session_find(c, join->session);
    struct team_part *part;
    struct team_member *made = s ? find_made(c->control, key, s, &part) : NULL;
    int status = 0;

    if (made)
        team_answers_note(c->control, key, c, 0);
    else if (!team_answers_find(c->control, key, c, &status))
        return false;
    if (made && !made->counted) { /* the team started before its member asked again */
        quota_charge(c, QUOTA_TEAMS, 1);
        made->counted = true;
    }
    reply_end(c, request, key, join, status, "");
    return true;
}

bool team_client_withdraw(struct client *c, const struct teams_key *key, uint32_t session)
{
    const struct client_session *s = client_session_find(c, session);
    struct team_part *part;
    struct team_member *made = s ? find_made(c->control, key, s, &part) : NULL;
    int status;

    if (made) {
        team_abandon(part, made, 0, NULL);
        return true;
    }
    team_answers_note(c->control, key, c, -ETIMEDOUT);
    return team_answers_find(c->control, key, c, &status) && status == -ETIMEDOUT;
}

static void note_answer(struct control *control, const struct teams_key *key,
                        const struct team_join *j, int status)
{
    const struct pending *p = pending_find(&control->pending, j->cookie, PENDING_TEAM);

    if (p)
        team_answers_note(control, key, p->client, status);
}

static void answer(struct control *control, const struct teams_key *key, struct team_join *j,
                   int status, const char *why)
{
    struct pending *p = pending_find(&control->pending, j->cookie, PENDING_TEAM);
    struct client *c;
    uint32_t request;

    if (!p)
        return; /* the client has ended */
    c = p->client;
    request = p->request;
    pending_remove(&control->pending, p);
    reply_end(c, request, key, j, status, why);
    client_stream_resume(c);
}

/* Ends a gather for all of its members on this node. */
static void end(struct control *control, const struct teams_key *key, int status, const char *why)
{
    struct team_gather *g = find(control, key);
    struct team *next;

    for (struct team *t = control->node_teams; t; t = next) {
        next = t->next;
        if (!team_is_of(t, key) || t->phase >= TEAM_STARTED)
            continue;
        if (status == 0 && t->phase == TEAM_READY && t->status == 0) {
            team_start(t);
            abandon_for_refused(t);
        } else {
            team_drop(t);
        }
    }
    FAULT(TEAM_STARTED);
    for (const struct team_join *j = g ? g->joins : NULL; j; j = j->next)
        note_answer(control, key, j, status);
    FAULT(TEAM_NOTED);
    for (struct team_join *j = g ? g->joins : NULL; j; j = j->next)
        answer(control, key, j, status, why);
    if (g)
        gather_free(control, g);
}

static int errno_of(int32_t status)
{
    return status < -ERRNO_MAX || status > 0 ? -EPROTO : status;
}

static int start(struct control *control, uint32_t from, const Pwc__TeamStart *frame)
{
    int status = errno_of(frame->status), known;
    struct teams_key key;

    if (!team_gather_parse(frame->gather, &key) || home_of(control, &key) != from)
        return -EPROTO;
    /* After a restart, members may not have asked again yet. They learn of the failure when they
     * ask. Where a member has its answer, the home repeats the frame because it has not got our
     * TeamReady. */
    if (status < 0 && !find(control, &key) && !team_answers_any(control, &key, &known))
        return 0;
    end(control, &key, status, frame->why);
    send_ready(control, &key, 0, &control->engine.collectives, 0, "", true);
    return 0;
}

/* ---- a parent's members ---------------------------------------------------------------------- */

static void send_gone(struct control *control, const struct teams_key *key, uint32_t rank)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamGone gone = PWC__TEAM_GONE__INIT;

    gone.uid = key->id.uid;
    gone.job = (char *)(uintptr_t)key->id.job;
    gone.parent = key->parent;
    gone.rank = rank;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_GONE;
    frame.team_gone = &gone;
    (void)frame_send(control, home_of(control, key), &frame);
}

static void send_members(struct control *control, const struct teams_key *key, const struct team *t)
{
    struct team_frame_runs packed;
    uint32_t member = 0;

    for (uint32_t at = 0; at < t->run_count;) {
        uint32_t left = t->run_count - at;
        uint32_t count = left < TEAM_FRAME_RUNS ? left : TEAM_FRAME_RUNS;
        Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
        Pwc__TeamMembers members = PWC__TEAM_MEMBERS__INIT;
        Pwc__TeamGather gather = team_gather_pack(key);

        team_runs_pack(&packed, t->runs + at, count);
        members.gather = &gather;
        members.from = member;
        members.runs = packed.list;
        members.n_runs = count;
        members.last = count == left;
        frame.body_case = PWC__PEER_FRAME__BODY_TEAM_MEMBERS;
        frame.team_members = &members;
        (void)frame_send(control, home_of(control, key), &frame);
        for (; count > 0; count--)
            member += t->runs[at++].count;
    }
}

/* Whether a member that has given up has made the call to this process. Then the home has its call,
 * or gets it over the next link, so the others need not be answered now. */
static bool holds_call_given_up(struct control *control, const struct teams_key *key)
{
    const struct team_gather *g = find(control, key);

    for (const struct team_join *j = g ? g->joins : NULL; j; j = j->next) {
        const struct pending *p = pending_find(&control->pending, j->cookie, PENDING_TEAM);

        if (p && team_answers_refused(control, key, p->client))
            return true;
    }
    return false;
}

/* Answers the home, which waits for members of the parent that may never call. Where an earlier
 * process of the home has answered a member here, or a member has given up and its call may be
 * lost, reports how the call has ended. Otherwise reports the members that have left. `t`: the
 * parent; NULL: the parent is the world, or is gone. */
static void answer_ask(struct control *control, const struct teams_key *key, const struct team *t)
{
    int status;

    if (!holds_call_given_up(control, key) && team_answers_any(control, key, &status)) {
        send_ready(control, key, 0, &control->engine.collectives, status, error_text(status), true);
        return;
    }
    if (!t && key->parent != 0)
        send_gone(control, key, TEAMS_NONE);
    for (uint32_t i = 0; t && i < t->part_count; i++)
        for (uint32_t j = 0; j < t->parts[i].count; j++)
            if (!t->parts[i].members[j].session)
                send_gone(control, key, t->parts[i].members[j].job_rank);
}

static int ask(struct control *control, uint32_t from, const Pwc__TeamAsk *frame)
{
    const struct team *t;
    struct teams_key key;

    if (!team_gather_parse(frame->gather, &key) || home_of(control, &key) != from)
        return -EPROTO;
    t = key.parent == 0 ? NULL : team_find(control, key.parent);
    if (t && (t->uid != key.id.uid || strcmp(t->job, key.id.job) != 0))
        t = NULL;
    if (t && frame->members)
        send_members(control, &key, t);
    answer_ask(control, &key, t);
    return 0;
}

int team_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame)
{
    switch (frame->body_case) {
    case PWC__PEER_FRAME__BODY_TEAM_ASK:
        return ask(control, from, frame->team_ask);
    case PWC__PEER_FRAME__BODY_TEAM_GROUP:
        return group(control, from, frame->team_group);
    case PWC__PEER_FRAME__BODY_TEAM_START:
        return start(control, from, frame->team_start);
    default:
        return -EPROTO;
    }
}

/* ---- links ----------------------------------------------------------------------------------- */

void team_client_node_up(struct control *control, uint32_t node)
{
    for (struct team_gather *g = control->team_gathers; g; g = g->next) {
        const struct teams_key key = key_of(g);

        if (home_of(control, &key) != node)
            continue;
        for (const struct team_join *j = g->joins; j; j = j->next)
            if (pending_find(&control->pending, j->cookie, PENDING_TEAM))
                (void)send_call(control, &key, &j->call);
        report_if_ready(control, g);
    }
}

void team_client_node_lost(struct control *control, uint32_t node)
{
    struct team_gather *g = control->team_gathers, *next;

    for (; g; g = next) {
        const struct teams_key key = key_of(g);

        next = g->next;
        if (home_of(control, &key) == node)
            end(control, &key, -EHOSTDOWN, "the node that keeps the job's directory is lost");
    }
}
