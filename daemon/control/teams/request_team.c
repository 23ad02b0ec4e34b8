/* Owns the checks of clients' requests about teams (request_team.h). Thread: control. */
#include "daemon/control/teams/request_team.h"

#include <errno.h>
#include <stdio.h>
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/teams/team_client.h"
#include "daemon/control/teams/team_member.h"
#include "shm_ring/team.h"

typedef unsigned long long ull;

/* Finds the member that calls: a context of a started team, or any context where the parent is the
 * world. Returns 0, or an error, whose text the client has got. */
static int find_caller(struct client *c, uint32_t request, const Pwc__TeamJoin *join,
                       struct teams_call *call, struct teams_key *key)
{
    const struct client_session *member = client_session_find(c, join->member);
    const struct team *t = team_find(c->control, join->parent);
    const struct team_member *m = NULL;
    struct team_part *part;

    *key = (struct teams_key){
        .id = {.uid = c->uid, .job = c->job}, .parent = join->parent, .call = join->call};
    call->rank = call->at = c->rank;
    call->size = c->size;
    if (!member) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", join->member);
        return -EINVAL;
    }
    if (join->parent == 0) {
        key->context = member->context;
        return 0;
    }
    if (t && t->phase == TEAM_STARTED)
        m = team_member_of(t, member, &part);
    if (!m) {
        reply_error(c, request, -EINVAL, "session %u is no member of team %llu", join->member,
                    (ull)join->parent);
        return -EINVAL;
    }
    call->at = m->rank;
    call->size = t->size;
    return 0;
}

static bool is_sane(const Pwc__TeamJoin *join)
{
    return (uint32_t)join->kind <= TEAMS_SHRINK &&
           (join->parent != 0 || join->kind != PWC__TEAM_KIND__TEAM_SHRINK) && join->window > 0 &&
           join->window <= TEAM_WINDOW_MAX && (join->window & (join->window - 1)) == 0 &&
           join->call < UINT32_MAX;
}

/* Returns 0, or an error with its text in `why`. */
static int check_area(const Pwc__TeamJoin *join, char *why, size_t size)
{
    uint32_t version = join->area ? join->area : TEAM_VERSION_UNSENT;

    if (version == TEAM_VERSION)
        return 0;
    snprintf(why, size,
             "the library has team areas of version %u, daemon %s has version %u: "
             "upgrade %s",
             version, PWC_VERSION, TEAM_VERSION,
             version < TEAM_VERSION ? "the library, and build the program anew"
                                    : "the daemon, pwcd");
    return -EPROTONOSUPPORT;
}

void request_team_join(struct client *c, uint32_t request, const Pwc__TeamJoin *asked)
{
    struct control *control = c->control;
    struct client_session *s = client_session_find(c, asked->session);
    struct team_join join = {.session = asked->session};
    char why[REQUEST_WHY_MAX] = "";
    struct teams_key key;
    struct pending *p;
    int rc;

    if (!s) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", asked->session);
        return;
    }
    if (c->size == DIRECTORY_OPEN) {
        reply_error(c, request, -ENOTSUP,
                    "a team in open job %s: teams are made of the ranks of a job of fixed size",
                    c->job);
        return;
    }
    if (!is_sane(asked)) {
        reply_error(c, request, -EINVAL,
                    "kind %u with a window of %u over team %llu: kinds are 0 to 2, windows powers "
                    "of two to 4096, the world does not shrink, and call %u is below 4294967295",
                    (uint32_t)asked->kind, asked->window, (ull)asked->parent, asked->call);
        return;
    }
    if (find_caller(c, request, asked, &join.call, &key) < 0)
        return;
    join.call.from = control->node;
    join.call.context = s->context;
    join.call.kind = (uint32_t)asked->kind;
    join.call.color = asked->color;
    join.call.key = asked->key;
    join.call.window = asked->window;
    if (team_client_again(c, request, &key, &join))
        return;
    p = pending_add(&control->pending, PENDING_TEAM, c, request, &join.cookie);
    if (!p) {
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->node = directory_home(&key.id, control->node_count);
    /* Send a refusal to the home, too: it ends the call at all members, which would otherwise wait
     * for this one. */
    join.call.status = check_area(asked, why, sizeof(why));
    if (join.call.status == 0)
        join.call.status = quota_take(c, QUOTA_TEAMS, 1, why, sizeof(why));
    join.call.why = why;
    join.counted = join.call.status == 0;
    rc = team_client_call(control, &key, &join);
    if (rc == 0)
        return;
    if (join.counted)
        quota_give(c, QUOTA_TEAMS, 1);
    pending_remove(&control->pending, p);
    reply_error(c, request, rc, "this daemon has no room for a question to the job's home");
}

static void left(struct call *call)
{
    struct client *c = call->owner;

    if (c->state == CLIENT_SERVED)
        reply_done(c, (uint32_t)call->cookie);
}

/* The caller of a call for a team has given up. */
static void withdraw(struct client *c, uint32_t request, const Pwc__TeamJoin *join)
{
    struct teams_call call;
    struct teams_key key;

    if (join->call == UINT32_MAX) {
        reply_error(c, request, -EINVAL, "call %u: calls are below 4294967295", join->call);
        return;
    }
    if (find_caller(c, request, join, &call, &key) < 0)
        return;
    if (team_client_withdraw(c, &key, join->session))
        reply_done(c, request);
    else
        reply_error(c, request, -EINVAL, "call %u over team %llu has ended", join->call,
                    (ull)join->parent);
}

void request_team_leave(struct client *c, uint32_t request, const Pwc__TeamLeave *leave)
{
    struct client_session *s = client_session_find(c, leave->session);
    struct team *t = team_find(c->control, leave->number);
    struct team_member *m = NULL;
    struct team_part *part;

    if (leave->join) {
        withdraw(c, request, leave->join);
        return;
    }
    if (s && t && t->phase == TEAM_STARTED)
        m = team_member_of(t, s, &part);
    if (!m) {
        reply_error(c, request, -EINVAL, "session %u is no member of team %llu", leave->session,
                    (ull)leave->number);
        return;
    }
    if (leave->broken)
        team_abandon(part, m, request, left);
    else
        team_leave(part, m, request, left);
}
