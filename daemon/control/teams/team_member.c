/* Finds members of teams, and lets them leave (team_member.h). Owns nothing. Thread: control. */
#include "daemon/control/teams/team_member.h"

#include <string.h>
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/nodes/own_frames.h"
#include "daemon/control/teams/answer_word.h"
#include "shm_ring/fault.h"

struct client_session *team_member_session(const struct team *t, const struct worker *w,
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

/* Gives back what the member's client was charged for. Another member, if one is left, is charged
 * for the member's share of the area. */
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

void team_member_leaves(struct team_part *part, struct team_member *m)
{
    uncharge(part, m);
    m->session = NULL;
}

/* Reports a member that is gone to the job's home, which may wait for the member's call. `calls`
 * shows that an earlier process of the home has answered this call. */
static void send_gone(const struct team *t, const struct team_member *m)
{
    const struct teams_answer last = answer_load(m->answer);
    const struct directory_id id = {.uid = t->uid, .job = t->job};
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__TeamGone gone = PWC__TEAM_GONE__INIT;

    gone.uid = t->uid;
    gone.job = (char *)(uintptr_t)t->job;
    gone.parent = t->number;
    gone.rank = m->job_rank;
    gone.calls = last.calls;
    gone.status = last.status;
    frame.body_case = PWC__PEER_FRAME__BODY_TEAM_GONE;
    frame.team_gone = &gone;
    (void)frame_send(t->control, directory_home(&id, t->control->node_count), &frame);
}

static void leave_by(struct team_part *part, struct team_member *m, enum call_kind kind,
                     uint32_t request, void (*left)(struct call *call))
{
    struct client *c = m->session->client;

    client_call_in(c, &m->leave, kind, left);
    m->leave.cookie = request;
    m->leave.team = (struct call_team){.handle = part->handle, .session = m->session->handle};
    call_post(part->worker->progress, &m->leave);
    FAULT(TEAM_LEAVES);
    send_gone(part->team, m);
    team_member_leaves(part, m);
}

void team_leave(struct team_part *part, struct team_member *m, uint32_t request,
                void (*left)(struct call *call))
{
    leave_by(part, m, CALL_TEAM_LEAVE, request, left);
}

void team_abandon(struct team_part *part, struct team_member *m, uint32_t request,
                  void (*left)(struct call *call))
{
    leave_by(part, m, CALL_TEAM_ABANDON, request, left);
}

void node_teams_session_gone(struct client_session *s)
{
    for (struct team *t = s->client->control->node_teams; t; t = t->next) {
        struct team_part *part;
        struct team_member *m = team_member_of(t, s, &part);

        if (!m)
            continue;
        send_gone(t, m);
        team_member_leaves(part, m);
    }
}
