/* Sends the frames by which a job's home forms teams to the members' nodes (team_home.h). Thread:
 * control. */
#include "daemon/control/teams/team_home.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/nodes/own_frames.h"
#include "daemon/control/start/collectives.h"
#include "daemon/control/teams/team_frames.h"
#include "shm_ring/fault.h"

#define NS_PER_MS UINT64_C(1000000)

enum { ERRNO_MAX = 4095, MS_SHIFT = 8 };

/* Numbers of teams begin at 256 times the time of day in milliseconds, so no earlier process has
 * given them: a process makes fewer than 256 teams in a millisecond. */
int team_home_open(struct control *control)
{
    control->teams = malloc(sizeof(*control->teams));
    if (!control->teams)
        return -ENOMEM;
    teams_init(control->teams, &control->directory_memory, control->directory, control->node,
               control->started_day_ns / NS_PER_MS << MS_SHIFT);
    return 0;
}

void team_home_close(struct control *control)
{
    if (control->teams)
        teams_clear(control->teams);
    free(control->teams);
    control->teams = NULL;
}

static struct teams_key key_of(const struct teams_gather *g)
{
    return (struct teams_key){.id = {.uid = g->uid, .job = g->job},
                              .parent = g->parent,
                              .context = g->context,
                              .call = g->call};
}

/* ---- to nodes -------------------------------------------------------------------------------- */

static void send_ask(struct control *control, const struct teams_gather *g, uint32_t node,
                     bool members)
{
    const struct teams_key key = key_of(g);
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamAsk ask = PWC__TEAM_ASK__INIT;
    Pwc__TeamGather gather = team_gather_pack(&key);

    ask.gather = &gather;
    ask.members = members;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_ASK;
    frame.team_ask = &ask;
    (void)frame_send(control, node, &frame);
}

static void ask_ended(struct control *control, const struct teams_gather *g)
{
    uint32_t at = 0, node;

    memset(control->sent, 0, control->node_count);
    while ((node = teams_next_expected(control->teams, g, &at)) != TEAMS_NONE)
        if (!control->sent[node]) {
            control->sent[node] = 1;
            send_ask(control, g, node, false);
        }
}

static void send_group(struct control *control, const struct teams_key *key, Pwc__TeamGroup *group,
                       uint32_t node)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamGather gather = team_gather_pack(key);

    group->gather = &gather;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_GROUP;
    frame.team_group = group;
    (void)frame_send(control, node, &frame);
}

/* Sends a new team to the nodes whose entries in control->sent are set. */
static void send_team(struct control *control, const struct teams_gather *g,
                      const struct teams_group *team)
{
    const struct teams_key key = key_of(g);
    struct teams_run runs[TEAM_FRAME_RUNS];
    struct team_frame_runs packed;
    uint32_t at = 0;

    while (at < team->count) {
        Pwc__TeamGroup group = PWC__TEAM_GROUP__INIT;

        group.number = team->number;
        group.first = g->number;
        group.window = g->window;
        group.from = at;
        group.n_runs = teams_runs(g, team, &at, runs, TEAM_FRAME_RUNS);
        team_runs_pack(&packed, runs, (uint32_t)group.n_runs);
        group.runs = packed.list;
        group.last = at == team->count;
        for (uint32_t node = 0; node < control->node_count; node++)
            if (control->sent[node])
                send_group(control, &key, &group, node);
    }
}

/* Sends each new team to the nodes of its members, and then that these are all teams. `only`: sends
 * to this node only; TEAMS_NONE: to all nodes. */
static void send_teams(struct control *control, const struct teams_gather *g, uint32_t only)
{
    const struct teams_key key = key_of(g);
    struct teams_group team = {0};
    uint32_t at = 0, node;

    while (teams_next_group(g, &team)) {
        bool any = false;

        memset(control->sent, 0, control->node_count);
        for (uint32_t i = 0; i < team.count; i++) {
            node = g->members[team.first + i].node;
            if (only == TEAMS_NONE || only == node)
                control->sent[node] = any = true;
        }
        if (any)
            send_team(control, g, &team);
    }
    while ((node = teams_next_node(control->teams, g, &at)) != TEAMS_NONE) {
        Pwc__TeamGroup all = PWC__TEAM_GROUP__INIT;

        all.whole = true;
        all.first = g->number;
        if (only == TEAMS_NONE || only == node)
            send_group(control, &key, &all, node);
    }
}

static void send_start(struct control *control, const struct teams_key *key, int status,
                       const char *why, uint32_t node)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamStart start = PWC__TEAM_START__INIT;
    Pwc__TeamGather gather = team_gather_pack(key);

    start.gather = &gather;
    start.status = status;
    start.why = (char *)(uintptr_t)why;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_START;
    frame.team_start = &start;
    (void)frame_send(control, node, &frame);
}

/* Sends a node again the frames that it may have lost. */
static void send_again(struct control *control, const struct teams_gather *g, uint32_t node)
{
    const struct teams_key key = key_of(g);

    if (g->phase == TEAMS_ENDED)
        send_start(control, &key, g->status, g->why, node);
    else if (g->phase == TEAMS_FORMING)
        send_teams(control, g, node);
    else if (g->named < g->size && g->asked == node)
        send_ask(control, g, node, true);
    else if (g->named == g->size)
        send_ask(control, g, node, false);
}

static void send_due(struct control *control, const struct teams_gather *g, enum teams_due due)
{
    const struct teams_key key = key_of(g);
    uint32_t at = 0, node;

    switch (due) {
    case TEAMS_ASK_MEMBERS:
        send_ask(control, g, g->asked, true);
        break;
    case TEAMS_ASK_ENDED:
        ask_ended(control, g);
        break;
    case TEAMS_GROUP:
        FAULT(TEAM_GROUPED);
        send_teams(control, g, TEAMS_NONE);
        break;
    case TEAMS_START:
        while ((node = teams_next_node(control->teams, g, &at)) != TEAMS_NONE) {
            FAULT(TEAM_ENDS);
            send_start(control, &key, g->status, g->why, node);
        }
        break;
    case TEAMS_NOTHING:
        break;
    }
}

static void send_all_due(struct control *control)
{
    const struct teams_gather *g;
    enum teams_due due;

    while ((g = teams_take_due(control->teams, &due)) != NULL)
        send_due(control, g, due);
}

/* ---- from nodes ------------------------------------------------------------------------------ */

static int errno_of(int32_t status)
{
    return status < -ERRNO_MAX || status > 0 ? -EPROTO : status;
}

static const char *refusal_text(int status)
{
    switch (status) {
    case -EPERM:
        return "the job's home does not know this rank here";
    case -EHOSTDOWN:
        return "a rank of the team has left";
    case -EINVAL:
        return "the job's home finds that the call makes no sense";
    case -EDQUOT:
        return "this user's jobs form as many teams at once at their home as it gives a user: let "
               "some end";
    case -ENOSPC:
        return "the job's home forms as many teams as it can: try again later";
    default:
        return strerror(-status);
    }
}

static int call(struct control *control, uint32_t from, const Pwc__TeamCall *frame)
{
    const struct teams_call call = {.from = from,
                                    .size = frame->size,
                                    .at = frame->at,
                                    .rank = frame->rank,
                                    .context = frame->context,
                                    .kind = (uint32_t)frame->kind,
                                    .color = frame->color,
                                    .key = frame->key,
                                    .window = frame->window,
                                    .status = errno_of(frame->status),
                                    .why = frame->why};
    struct teams_gather *g;
    struct teams_key key;
    int rc;

    if (!team_gather_parse(frame->gather, &key))
        return -EPROTO;
    rc = teams_call(control->teams, &key, &call, &g);
    if (rc < 0)
        send_start(control, &key, rc, refusal_text(rc), from);
    else if (rc == 1)
        send_again(control, g, from);
    return 0;
}

static int members(struct control *control, uint32_t from, const Pwc__TeamMembers *frame)
{
    struct teams_run runs[TEAM_FRAME_RUNS];
    struct teams_key key;

    if (!team_gather_parse(frame->gather, &key) || frame->n_runs > TEAM_FRAME_RUNS)
        return -EPROTO;
    for (size_t i = 0; i < frame->n_runs; i++)
        runs[i] = team_run_parse(frame->runs[i]);
    teams_name(control->teams, &key, from, frame->from, runs, (uint32_t)frame->n_runs, frame->last);
    return 0;
}

static int gone(struct control *control, uint32_t from, const Pwc__TeamGone *frame)
{
    const struct directory_id id = {.uid = frame->uid, .job = frame->job};

    if (!directory_name_valid(frame->job))
        return -EPROTO;
    teams_member_gone(
        control->teams, &id, frame->parent, frame->rank, from,
        (struct teams_answer){.calls = frame->calls, .status = errno_of(frame->status)});
    return 0;
}

static int ready(struct control *control, uint32_t from, const Pwc__TeamReady *frame)
{
    int status = errno_of(frame->status);
    const char *why = frame->why;
    struct teams_key key;
    char differs[TEAMS_WHY_MAX];

    if (!team_gather_parse(frame->gather, &key))
        return -EPROTO;
    if (status == 0 && !frame->ended &&
        !collectives_agree(&control->engine.collectives, frame->collective, differs,
                           sizeof(differs))) {
        status = -EPROTO;
        why = differs;
    }
    teams_ready(control->teams, &key, from, frame->first, status, why, frame->ended);
    return 0;
}

int team_home_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame)
{
    int rc = -EPROTO;

    if (frame->body_case == PWC__PEER_FRAME__BODY_TEAM_CALL)
        rc = call(control, from, frame->team_call);
    else if (frame->body_case == PWC__PEER_FRAME__BODY_TEAM_MEMBERS)
        rc = members(control, from, frame->team_members);
    else if (frame->body_case == PWC__PEER_FRAME__BODY_TEAM_GONE)
        rc = gone(control, from, frame->team_gone);
    else if (frame->body_case == PWC__PEER_FRAME__BODY_TEAM_READY)
        rc = ready(control, from, frame->team_ready);
    send_all_due(control);
    return rc;
}

void team_home_rank_left(struct control *control, const struct directory_id *id, uint32_t rank)
{
    teams_rank_gone(control->teams, id, rank);
    send_all_due(control);
}

void team_home_node_up(struct control *control, uint32_t node)
{
    const struct teams_gather *g = NULL;

    while ((g = teams_next_of_node(control->teams, node, g)) != NULL)
        send_again(control, g, node);
}

void team_home_node_lost(struct control *control, uint32_t node)
{
    teams_node_lost(control->teams, node);
    send_all_due(control);
}
