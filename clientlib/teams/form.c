/*
 * Makes teams: sends this member's part of the call to the daemon, and maps the area. Owns nothing.
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "clientlib/teams/team.h"
#include "shm_ring/fault.h"

/* The arguments of a call that forms a team. */
struct join {
    struct pwc_ctx *ctx;     /* the context that will be a member */
    struct pwc_team *parent; /* NULL: the world */
    Pwc__TeamKind kind;
    int color, key;
    uint32_t window;
};

/* The contents of a TeamFormed. */
struct formed {
    uint64_t number;
    uint32_t handle, rank, member, window, area;
    struct roster_run *runs;
    uint32_t run_count;
    int fd;
    int rc; /* result of reading the message */
};

static int accept_formed(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__TeamFormed *message = reply->team_formed;
    struct formed *formed = context;

    *formed = (struct formed){
        .number = message->number,
        .handle = message->handle,
        .rank = message->rank,
        .member = message->member,
        .window = message->window,
        .area = message->area ? message->area : TEAM_VERSION_UNSENT,
        .run_count = (uint32_t)message->n_runs,
        .fd = -1,
    };
    if (message->number == 0)
        return 1;
    if (fd_count == 1) {
        formed->fd = fds[0];
        fds[0] = -1;
    }
    formed->runs = calloc(message->n_runs + 1, sizeof(*formed->runs));
    if (!formed->runs) {
        formed->rc = -ENOMEM;
        return 1;
    }
    for (size_t i = 0; i < message->n_runs; i++)
        formed->runs[i] = (struct roster_run){
            .count = message->runs[i]->count,
            .rank = message->runs[i]->rank,
            .context = message->runs[i]->context,
            .node = message->runs[i]->node,
            .engine = message->runs[i]->engine,
        };
    return 1;
}

/* The number of this call over its parent. Calls over the world are counted by context number,
 * because a later context may have the same number. */
static int next_call(const struct join *join, uint32_t *call)
{
    struct pwc_client *client = join->ctx->client;
    uint32_t context = join->ctx->number;
    int rc = 0;

    if (join->parent) {
        *call = join->parent->joins++;
        return 0;
    }
    pthread_mutex_lock(&client->lock);
    if (context >= client->world_joins_count) {
        uint32_t *joins = realloc(client->world_joins, (context + 1) * sizeof(*joins));

        if (joins) {
            for (uint32_t i = client->world_joins_count; i <= context; i++)
                joins[i] = 0;
            client->world_joins = joins;
            client->world_joins_count = context + 1;
        } else {
            rc = -ENOMEM;
        }
    }
    if (rc == 0)
        *call = client->world_joins[context]++;
    pthread_mutex_unlock(&client->lock);
    return rc;
}

/* After a timeout: the others may get the team later, and would wait for this member, which may not
 * look at the daemon's answer for a long time. So the daemon takes the member out of the team. */
static void withdraw(struct daemon_link *link, Pwc__TeamJoin *join)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamLeave leave = PWC__TEAM_LEAVE__INIT;

    leave.session = join->session;
    leave.broken = true;
    leave.join = join;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE;
    request.team_leave = &leave;
    /* The call's time is over. If the socket has no room, the member leaves when the answer is
     * read. */
    (void)daemon_try_to_send(link, &request);
}

static int ask(const struct join *join, struct formed *formed)
{
    struct daemon_link *link = &join->ctx->client->link;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamJoin message = PWC__TEAM_JOIN__INIT;
    int rc = next_call(join, &message.call);

    if (rc < 0)
        return rc;
    message.session = join->ctx->session;
    message.member = join->parent ? join->parent->ctx->session : join->ctx->session;
    message.parent = join->parent ? join->parent->number : 0;
    message.kind = join->kind;
    message.color = join->color;
    message.key = join->key;
    message.window = join->window;
    message.area = TEAM_VERSION;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_JOIN;
    request.team_join = &message;
    rc = daemon_call_again(link, &request, PWC__CLIENT_REPLY__BODY_TEAM_FORMED, accept_formed,
                           formed);
    if (rc == -ETIMEDOUT)
        withdraw(link, &message);
    return rc;
}

/* Maps the area, and closes the descriptor. */
static int map_area(struct pwc_team *t, struct formed *formed)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = team_area_bytes(t->roster.here, t->window);
    int rc;

    if (formed->area != TEAM_VERSION)
        return -EPROTONOSUPPORT;
    if (bytes == 0 || t->me >= t->roster.here)
        return -EPROTO;
    if (formed->fd < 0)
        return -EMFILE;
    rc = mapping_adopt(&t->mapping, formed->fd, (bytes + page - 1) & ~(page - 1));
    if (rc < 0)
        return rc;
    formed->fd = -1;
    mapping_close_fd(&t->mapping);
    return team_area_view(&t->area, t->mapping.base, t->mapping.size, t->roster.here, t->window);
}

/* Makes a team from the daemon's answer: 0, or an error, after which nothing of it is left in this
 * process. */
static int build(struct pwc_ctx *ctx, struct formed *formed, struct pwc_team **out)
{
    struct pwc_team *t = calloc(1, sizeof(*t));
    int rc = formed->rc;

    if (!t) {
        free(formed->runs);
        return -ENOMEM;
    }
    t->ctx = ctx;
    t->mapping.fd = -1;
    t->number = formed->number;
    t->handle = formed->handle;
    t->rank = formed->rank;
    t->me = formed->member;
    t->window = formed->window;
    if (rc == 0)
        rc = roster_settle(&t->roster, formed->runs, formed->run_count, formed->rank);
    if (rc == 0)
        rc = map_area(t, formed);
    if (rc == 0) {
        t->calls = calloc(t->window, sizeof(*t->calls));
        t->steps = calloc(t->window, sizeof(*t->steps));
        rc = t->calls && t->steps ? 0 : -ENOMEM;
        team_find_slices(t);
    }
    t->next = ctx->teams.all;
    ctx->teams.all = t;
    if (rc < 0) {
        team_drop(t);
        return rc;
    }
    *out = t;
    return 0;
}

/* Returns -EPROTONOSUPPORT, with a text that says which side to upgrade. Daemons to 0.6 do not look
 * at the version in TeamJoin, so the library has to refuse. */
static int refuse_area(struct pwc_client *client, uint32_t version)
{
    char why[DAEMON_TEXT_MAX];

    snprintf(
        why, sizeof(why), "the daemon's team areas have version %u, the library's %u: upgrade %s",
        version, TEAM_VERSION,
        version < TEAM_VERSION ? "the daemon, pwcd" : "the library, and build the program anew");
    return daemon_link_refuse(&client->link, -EPROTONOSUPPORT, why);
}

/* Joins a team; *out is NULL where this member joins none. */
static int join_team(const struct join *join, struct pwc_team **out)
{
    struct formed formed = {.fd = -1};
    int rc = client_may_ask(join->ctx->client);

    if (rc == 0)
        rc = ask(join, &formed);
    if (rc < 0)
        return rc;
    FAULT(TEAM_ANSWERED);
    if (formed.number == 0) {
        *out = NULL;
        return 0;
    }
    rc = build(join->ctx, &formed, out);
    FAULT(TEAM_BUILT);
    if (formed.fd >= 0)
        close(formed.fd);
    if (rc < 0) /* the others have the team, and would wait for this member */
        team_leave(join->ctx, formed.number, true);
    return rc == -EPROTONOSUPPORT ? refuse_area(join->ctx->client, formed.area) : rc;
}

/* Gets the window that an attr asks for: 0, or -EINVAL with its text. */
static int check_attr(struct pwc_client *client, const struct pwc_team_attr *attr, uint32_t *window)
{
    *window = attr && attr->window > 0 ? attr->window : TEAM_WINDOW;
    for (size_t i = 0; attr && i < sizeof(attr->reserved) / sizeof(attr->reserved[0]); i++)
        if (attr->reserved[i] != 0)
            return daemon_link_refuse(&client->link, -EINVAL,
                                      "reserved words of struct pwc_team_attr are not 0: zero the "
                                      "struct");
    if (!team_shape_valid(1, *window))
        return daemon_link_refuse(&client->link, -EINVAL,
                                  "a team's window is a power of two up to 4096");
    return 0;
}

int pwc_team_world(pwc_ctx *ctx, const struct pwc_team_attr *attr, pwc_team **out)
{
    struct join join = {.ctx = ctx, .kind = PWC__TEAM_KIND__TEAM_SPLIT};
    int rc = client_needs_size(ctx->client, "pwc_team_world");

    if (rc == 0)
        rc = check_attr(ctx->client, attr, &join.window);
    join.key = 0;
    return rc < 0 ? rc : join_team(&join, out);
}

int pwc_team_split(pwc_team *parent, int color, int key, const struct pwc_team_attr *attr,
                   pwc_team **out)
{
    struct join join = {
        .ctx = parent->ctx,
        .parent = parent,
        .kind = PWC__TEAM_KIND__TEAM_SPLIT,
        .color = color < 0 ? -1 : color,
        .key = key,
    };
    int rc = check_attr(parent->ctx->client, attr, &join.window);

    return rc < 0 ? rc : join_team(&join, out);
}

/* The place of `rank` among first, first + stride, ...; -1: none. */
static int place_in(uint32_t rank, uint32_t first, int stride, uint32_t count)
{
    int64_t from = (int64_t)rank - first;

    if (stride == 0)
        return from == 0 && count == 1 ? 0 : -1;
    if (from % stride != 0 || from / stride < 0 || from / stride >= count)
        return -1;
    return (int)(from / stride);
}

int pwc_team_split_strided(pwc_team *parent, uint32_t first, int stride, uint32_t count,
                           pwc_team **out)
{
    struct join join = {
        .ctx = parent->ctx,
        .parent = parent,
        .kind = PWC__TEAM_KIND__TEAM_SPLIT,
        .window = parent->window,
    };
    int64_t last = (int64_t)first + (int64_t)stride * ((int64_t)count - 1);
    int place;

    if (count == 0 || first >= parent->roster.size || last < 0 || last >= parent->roster.size ||
        (stride == 0 && count > 1))
        return daemon_link_refuse(&parent->ctx->client->link, -EINVAL,
                                  "pwc_team_split_strided: there are no such ranks in the parent");
    place = place_in(parent->rank, first, stride, count);
    join.color = place < 0 ? -1 : 0;
    join.key = place;
    return join_team(&join, out);
}

int pwc_team_split_node(pwc_team *parent, pwc_team **out)
{
    const struct join join = {
        .ctx = parent->ctx,
        .parent = parent,
        .kind = PWC__TEAM_KIND__TEAM_BY_NODE,
        .window = parent->window,
    };

    return join_team(&join, out);
}

int pwc_team_dup(pwc_team *team, pwc_ctx *ctx, pwc_team **out)
{
    const struct join join = {
        .ctx = ctx ? ctx : team->ctx,
        .parent = team,
        .kind = PWC__TEAM_KIND__TEAM_SPLIT,
        .window = team->window,
    };

    if (ctx && ctx->client != team->ctx->client)
        return daemon_link_refuse(&team->ctx->client->link, -EINVAL,
                                  "pwc_team_dup: the context is another client's");
    return join_team(&join, out);
}

int pwc_team_shrink(pwc_team *broken, pwc_team **out)
{
    const struct join join = {
        .ctx = broken->ctx,
        .parent = broken,
        .kind = PWC__TEAM_KIND__TEAM_SHRINK,
        .window = broken->window,
    };

    return join_team(&join, out);
}
