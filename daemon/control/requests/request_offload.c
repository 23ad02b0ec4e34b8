/* Owns nothing: requests about offloads (request_offload.h). Thread: control. */
#include "daemon/control/requests/request_offload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/threads/worker.h"

enum { PAUSE_MS = 4 }; /* before the engine is asked again for a change */

static const char *text_of(int status)
{
    switch (status) {
    case -EADDRINUSE:
        return "the index or the region has an offload already: destroy that first";
    case -EBUSY:
        return "a context of this node has bound the context, or somebody has bound the region, "
               "and "
               "would pass the handlers by: make the offload before others bind";
    case -EINVAL:
        return "no such program, target or flag, memory that does not begin at a multiple of 64 "
               "bytes, or a region that peers may not write to";
    case -EHOSTUNREACH:
        return "a target leads nowhere any more";
    case -ERANGE:
        return "state, host or scratch is not within a region of this client's, or the state is "
               "longer than 1 MiB";
    case -EDQUOT:
        return "as many binds of targets as this client may have";
    case -ENOSPC:
        return "this daemon has no room for another one";
    default:
        return strerror(-status);
    }
}

/* Gives back the quota of an offload that has ended, or could not be made. A session that was
 * closed has given back the quota of all its offloads. */
static void give_back(struct client *c, uint32_t session)
{
    struct client_session *s = worker_session(c->worker, session);

    if (!s || s->client != c || s->offloads == 0)
        return;
    s->offloads--;
    quota_give(c, QUOTA_OFFLOADS, 1);
}

static void fail(struct client *c, struct pending *p, int status)
{
    uint32_t request = p->request;

    give_back(c, p->session);
    pending_remove(&c->control->pending, p);
    reply_error(c, request, status, "an offload: %s", text_of(status));
    client_stream_resume(c);
}

/* ---- creating -------------------------------------------------------------------------------- */

static struct engine_range range_of(const Pwc__OffloadRange *r)
{
    return r ? (struct engine_range){r->slot, r->generation, r->offset, r->length}
             : (struct engine_range){.length = 0};
}

/* A call that creates an offload, with the offload's targets. */
struct creation {
    struct call call; /* first */
    uint32_t targets[];
};

static void posted(struct call *call)
{
    struct client *c = call->owner;
    struct pending *p = pending_find(&c->control->pending, call->offload.cookie, PENDING_OFFLOAD);

    if (call->result < 0 && p)
        fail(c, p, call->result);
    free(call);
}

void request_offload_create(struct client *c, uint32_t request, const Pwc__OffloadCreate *create)
{
    struct client_session *s = client_session_find(c, create->session);
    struct control *control = c->control;
    char why[REQUEST_WHY_MAX];
    struct call_offload *o;
    struct creation *creation;
    struct pending *p;
    uint64_t cookie;
    int rc;

    if (!s) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", create->session);
        return;
    }
    if (create->n_targets > ENGINE_OFFLOAD_TARGETS) {
        reply_error(c, request, -E2BIG, "an offload of %zu targets: %u is the most",
                    create->n_targets, ENGINE_OFFLOAD_TARGETS);
        return;
    }
    rc = quota_take(c, QUOTA_OFFLOADS, 1, why, sizeof(why));
    if (rc < 0) {
        reply_error(c, request, rc, "an offload: %s", why);
        return;
    }
    s->offloads++;
    p = pending_add(&control->pending, PENDING_OFFLOAD, c, request, &cookie);
    if (!p) {
        give_back(c, create->session);
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->session = create->session;
    creation = malloc(sizeof(*creation) + create->n_targets * sizeof(creation->targets[0]));
    if (!creation) {
        fail(c, p, -ENOMEM);
        return;
    }
    client_call_in(c, &creation->call, CALL_OFFLOAD_CREATE, posted);
    o = &creation->call.offload;
    o->session = create->session;
    o->cookie = cookie;
    o->info = (struct engine_offload_info){.program = create->program,
                                           .takes = (enum offload_takes)create->takes,
                                           .index = create->index,
                                           .flags = create->flags,
                                           .target_count = (uint32_t)create->n_targets,
                                           .targets = creation->targets,
                                           .cookie = create->cookie,
                                           .state = range_of(create->state),
                                           .host = range_of(create->host),
                                           .scratch = range_of(create->scratch)};
    if (create->n_targets > 0)
        memcpy(creation->targets, create->targets,
               create->n_targets * sizeof(creation->targets[0]));
    call_post(c->worker->progress, &creation->call);
}

void offload_ready(struct control *control, const struct engine_notice *notice)
{
    struct pending *p = pending_find(&control->pending, notice->cookie, PENDING_OFFLOAD);
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__OffloadCreated created = PWC__OFFLOAD_CREATED__INIT;
    struct client *c;

    if (!p)
        return;
    c = p->client;
    if (notice->status < 0) {
        fail(c, p, notice->status);
        return;
    }
    created.offload = notice->handle;
    reply.id = p->request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_OFFLOAD_CREATED;
    reply.offload_created = &created;
    pending_remove(&control->pending, p);
    client_reply(c, &reply, NULL, 0);
    client_stream_resume(c);
}

void offload_closed(struct worker *w, uint32_t session)
{
    struct client_session *s = worker_session(w, session);

    if (s)
        give_back(s->client, session);
}

/* ---- changes of offloads -------------------------------------------------------------------- */

/* A change that a client has asked for, until it is answered. Owned by the call into the engine, or
 * by the list of those that pause. */
struct offload_change {
    struct offload_change *next;
    struct client *client;
    uint32_t request, session, offload;
    enum call_kind kind;
};

/* Asks the engine for the change, or answers the client with an error. */
static void post(struct offload_change *change);

static void changed(struct call *call)
{
    struct offload_change *change = (struct offload_change *)(uintptr_t)call->cookie;
    struct client *c = change->client;
    struct control *control = c->control;

    if (call->result == -EAGAIN && c->state == CLIENT_SERVED) {
        client_hold(c);
        change->next = control->changes.paused;
        control->changes.paused = change;
        if (!uv_is_active((uv_handle_t *)&control->changes.timer))
            uv_timer_start(&control->changes.timer, offload_changes_again, PAUSE_MS, 0);
        return;
    }
    if (call->result == 0 && change->kind == CALL_OFFLOAD_DESTROY)
        give_back(c, change->session);
    if (c->state == CLIENT_SERVED && call->result < 0)
        reply_error(c, change->request, call->result, "offload %u is not one of this context's",
                    change->offload);
    else if (c->state == CLIENT_SERVED)
        reply_done(c, change->request);
    free(change);
}

static void post(struct offload_change *change)
{
    struct client *c = change->client;
    struct call *call = NULL;

    if (!client_session_find(c, change->session)) {
        reply_error(c, change->request, -EINVAL, "session %u is not yours, or not open",
                    change->session);
    } else {
        call = client_call(c, change->kind, changed);
        if (!call)
            reply_error(c, change->request, -ENOMEM, "this daemon is out of memory");
    }
    if (!call) {
        free(change);
        return;
    }
    call->cookie = (uintptr_t)change;
    call->offload.session = change->session;
    call->offload.offload = change->offload;
    call_post(c->worker->progress, call);
}

void offload_changes_again(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct offload_change *change = control->changes.paused, *next;

    control->changes.paused = NULL;
    for (; change; change = next) {
        struct client *c = change->client;
        struct account *before = account_begin(control, &c->user->account);

        next = change->next;
        if (c->state == CLIENT_SERVED)
            post(change);
        else
            free(change);
        client_let_go(c);
        account_end(control, before);
    }
}

void offload_changes_close(struct offload_changes *changes)
{
    while (changes->paused) {
        struct offload_change *change = changes->paused;

        changes->paused = change->next;
        free(change);
    }
}

static void change(struct client *c, uint32_t request, enum call_kind kind, uint32_t session,
                   uint32_t offload)
{
    struct offload_change *new = malloc(sizeof(*new));

    if (!new) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    *new = (struct offload_change){
        .client = c, .request = request, .session = session, .offload = offload, .kind = kind};
    post(new);
}

void request_offload_destroy(struct client *c, uint32_t request, const Pwc__OffloadDestroy *destroy)
{
    change(c, request, CALL_OFFLOAD_DESTROY, destroy->session, destroy->offload);
}

void request_offload_enable(struct client *c, uint32_t request, const Pwc__OffloadEnable *enable)
{
    change(c, request, enable->enabled ? CALL_OFFLOAD_ENABLE : CALL_OFFLOAD_DISABLE,
           enable->session, enable->offload);
}

/* ---- a look ---------------------------------------------------------------------------------- */

void request_offload_view(struct client *c, uint32_t request, const Pwc__OffloadView *view)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__OffloadViewed viewed = PWC__OFFLOAD_VIEWED__INIT;
    struct view_offload row;

    if (!client_session_find(c, view->session)) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", view->session);
        return;
    }
    if (engine_view_offload(progress_engine(c->worker->progress), view->session, view->offload,
                            &row) < 0) {
        reply_error(c, request, -EINVAL, "offload %u is not one of this context's", view->offload);
        return;
    }
    viewed.disabled = row.state == 3; /* views/rows.h */
    viewed.messages = row.messages;
    viewed.bytes = row.bytes;
    viewed.dropped = row.dropped;
    viewed.deferred = row.deferred;
    viewed.failed = row.failed;
    viewed.faults = row.faults;
    viewed.units = row.units;
    viewed.units_p50 = row.units_p50;
    viewed.units_p99 = row.units_p99;
    viewed.units_max = row.units_max;
    viewed.sends = row.sends;
    viewed.sends_failed = row.sends_failed;
    viewed.queued = row.queued;
    viewed.gets = row.gets;
    viewed.counters = row.counters;
    viewed.n_counters = sizeof(row.counters) / sizeof(row.counters[0]);
    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_OFFLOAD_VIEWED;
    reply.offload_viewed = &viewed;
    client_reply(c, &reply, NULL, 0);
}
