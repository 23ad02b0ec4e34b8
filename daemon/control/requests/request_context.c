/* Owns the making and the end of sessions (request_context.h). Thread: control. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/control/clients/pairs.h"
#include "daemon/control/teams/team_member.h"
#include "shm_ring/sigbus.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_context.h"

enum { DEFAULT_RING = 1 << 18 };

static void close_if_open(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

void session_mark_closed(struct client_session *s)
{
    struct session_shared *shared = s->mapping.base;
    uint32_t state = SESSION_LIVE;

    atomic_compare_exchange_strong(&shared->state, &state, SESSION_CLOSED);
}

void session_free(struct client_session *s)
{
    struct client *c = s->client;
    struct client_session **at = &c->sessions;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at) {
        *at = s->next;
        quota_give(c, QUOTA_CONTEXTS, 1);
        quota_give(c, QUOTA_OFFLOADS, s->offloads);
        quota_give(c, QUOTA_MEMORY, s->mapping.size);
    }
    if (s->watched && c->worker->progress)
        progress_unwatch(c->worker->progress, s->doorbell);
    if (s->range >= 0)
        sigbus_remove(s->range);
    pairs_end(s);
    mapping_destroy(&s->mapping);
    close_if_open(s->doorbell);
    close_if_open(s->wake);
    close_if_open(s->board);
    close_if_open(s->client_memory);
    close_if_open(s->client_wake);
    close_if_open(s->client_doorbell);
    free(s);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Chooses the number of a new context. In an open job no number is used again, so that no context
 * is taken for an earlier one. */
static uint32_t free_number(const struct client *c)
{
    uint32_t number = 0;
    const struct client_session *s = c->sessions;

    if (c->size == DIRECTORY_OPEN)
        return membership_of(&c->control->memberships, c->slot)->contexts;

    while (s) {
        if (s->context == number) {
            number++;
            s = c->sessions;
        } else {
            s = s->next;
        }
    }
    return number;
}

static void keep(struct client_session *s)
{
    struct store *store = &s->client->control->store;
    uint32_t engine = s->client->worker->engine;

    if (!store_add_for(store, s->client->uid, s->mapping.fd, "%u.session.%u.%u", engine, s->handle,
                       s->generation) ||
        !store_add_for(store, s->client->uid, s->doorbell, "%u.doorbell.%u.%u", engine, s->handle,
                       s->generation) ||
        !store_add_for(store, s->client->uid, s->wake, "%u.wake.%u.%u", engine, s->handle,
                       s->generation))
        client_inflight(s->client)->lost |= INFLIGHT_UNKEPT;
}

/* Takes a session's descriptors out of the store. The engine has released the session, so its
 * handle may be another session's already. */
static void keep_no_longer(const struct client_session *s)
{
    struct store *store = &s->client->control->store;
    uint32_t engine = s->client->worker->engine;

    store_remove(store, "%u.session.%u.%u", engine, s->handle, s->generation);
    store_remove(store, "%u.doorbell.%u.%u", engine, s->handle, s->generation);
    store_remove(store, "%u.wake.%u.%u", engine, s->handle, s->generation);
    store_remove(store, "%u.board.%u.%u", engine, s->handle, s->generation);
}

static void reply_opened(struct client_session *s)
{
    const struct session_shared *shared = s->mapping.base;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__ContextOpened opened = PWC__CONTEXT_OPENED__INIT;
    Pwc__Rings rings = PWC__RINGS__INIT;
    int descriptors[] = {s->client_memory, s->client_doorbell, s->client_wake};

    keep(s);
    /* The descriptors belong to the reply now. */
    s->client_memory = s->client_doorbell = s->client_wake = -1;
    opened.session = s->handle;
    opened.context = s->context;
    rings.submit = shared->sizes.submit;
    rings.local = shared->sizes.local;
    rings.remote = shared->sizes.remote;
    rings.reply_submit = shared->sizes.reply_submit;
    rings.reply_event = shared->sizes.reply_event;
    opened.rings = &rings;
    reply.id = s->request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED;
    reply.context_opened = &opened;
    client_reply(s->client, &reply, descriptors, 3);
}

static void opened(struct call *call)
{
    struct client *c = call->owner;
    struct client_session *s = (struct client_session *)(uintptr_t)call->cookie;

    if (call->result < 0) {
        if (c->state != CLIENT_ENDING)
            reply_error(c, s->request, call->result, "context %u: %s%s", s->context,
                        strerror(-call->result),
                        call->result == -ENOSPC ? ": this daemon has no session left" : "");
        session_free(s);
        return;
    }
    s->handle = (uint32_t)call->result;
    s->generation = call->session.generation;
    c->worker->sessions[s->handle] = s;
    FAULT(SESSION_OPENED);
    if (c->state != CLIENT_ENDING)
        reply_opened(s);
}

static uint32_t ring_bytes(uint32_t asked)
{
    uint32_t bytes = SESSION_RING_MIN;

    if (asked == 0)
        return DEFAULT_RING;
    while (bytes < asked && bytes < SESSION_RING_MAX)
        bytes *= 2;
    return bytes;
}

static int make_session(struct client_session *s, size_t size)
{
    bool kept = s->client->control->store.kept;
    int wake[2];
    int rc = mapping_create(&s->mapping, "pwc-session", size);

    if (rc < 0)
        return rc;
    s->range = sigbus_add(s->mapping.base, s->mapping.size);
    if (s->range < 0)
        return s->range;
    s->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->doorbell < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, wake) != 0)
        return -errno;
    s->wake = wake[0];
    s->client_wake = wake[1];
    /* The mapping stays. Where a store keeps descriptors, its descriptor stays, too. */
    s->client_memory = kept ? fcntl(s->mapping.fd, F_DUPFD_CLOEXEC, 0) : s->mapping.fd;
    if (!kept)
        s->mapping.fd = -1;
    s->client_doorbell = fcntl(s->doorbell, F_DUPFD_CLOEXEC, 0);
    if (s->client_memory < 0 || s->client_doorbell < 0)
        return -errno;
    rc = progress_watch(s->client->worker->progress, s->doorbell);
    s->watched = rc == 0;
    return rc;
}

void request_context_open(struct client *c, uint32_t request, const Pwc__ContextOpen *open)
{
    static const Pwc__Rings none = PWC__RINGS__INIT;
    const Pwc__Rings *asked = open->rings ? open->rings : &none;
    const struct session_sizes sizes = {.submit = ring_bytes(asked->submit),
                                        .local = ring_bytes(asked->local),
                                        .remote = ring_bytes(asked->remote),
                                        .reply_submit = ring_bytes(asked->reply_submit),
                                        .reply_event = ring_bytes(asked->reply_event)};
    uint64_t size = session_bytes(&sizes);
    struct client_session *s;
    struct call *call = NULL;
    char why[REQUEST_WHY_MAX];
    int rc;

    if (asked->submit > SESSION_RING_MAX || asked->local > SESSION_RING_MAX ||
        asked->remote > SESSION_RING_MAX || asked->reply_submit > SESSION_RING_MAX ||
        asked->reply_event > SESSION_RING_MAX) {
        reply_error(c, request, -EINVAL, "rings of %u, %u, %u, %u and %u bytes: a ring may have %u",
                    asked->submit, asked->local, asked->remote, asked->reply_submit,
                    asked->reply_event, SESSION_RING_MAX);
        return;
    }
    rc = quota_take_one(c, QUOTA_CONTEXTS, size, why, sizeof(why));
    if (rc < 0) {
        reply_error(c, request, rc, "a context: %s", why);
        return;
    }
    rc = -ENOSPC;
    if (c->size == DIRECTORY_OPEN && free_number(c) == UINT32_MAX)
        goto fail;
    rc = -ENOMEM;
    s = calloc(1, sizeof(*s));
    if (!s)
        goto fail;
    *s = (struct client_session){.client = c,
                                 .handle = CLIENT_NONE,
                                 .context = free_number(c),
                                 .mapping = {.fd = -1},
                                 .doorbell = -1,
                                 .wake = -1,
                                 .board = -1,
                                 .client_memory = -1,
                                 .client_wake = -1,
                                 .client_doorbell = -1,
                                 .range = -1,
                                 .request = request};
    s->direct = open->direct && c->control->config->direct == CONFIG_DIRECT_AUTO;
    rc = make_session(s, size);
    FAULT(SESSION_MADE);
    if (rc == 0) {
        call = client_call(c, CALL_SESSION_OPEN, opened);
        rc = call ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        session_free(s);
        goto fail;
    }
    s->next = c->sessions;
    c->sessions = s;
    membership_of(&c->control->memberships, c->slot)->contexts++;
    call->cookie = (uintptr_t)s;
    call->session = (struct call_session){.client = c->number,
                                          .context = s->context,
                                          .base = s->mapping.base,
                                          .sizes = sizes,
                                          .mark = s->direct,
                                          .wake = s->wake,
                                          .range = s->range,
                                          .relation = c->relation};
    call_post(c->worker->progress, call);
    return;
fail:
    quota_give(c, QUOTA_CONTEXTS, 1);
    quota_give(c, QUOTA_MEMORY, size);
    reply_error(c, request, rc, "a context of %llu bytes: %s", (unsigned long long)size,
                strerror(-rc));
}

/* ---- closing --------------------------------------------------------------------------------- */

void request_context_close(struct client *c, uint32_t request, const Pwc__ContextClose *close_it)
{
    struct client_session *s = client_session_find(c, close_it->session);
    struct call *call;

    if (!s) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", close_it->session);
        return;
    }
    call = client_call(c, CALL_SESSION_CLOSE, NULL);
    if (!call) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    s->closing = true;
    s->request = request;
    call->handle = s->handle;
    call_post(c->worker->progress, call);
}

static void forget(void *session)
{
    struct client_session *s = session;

    FAULT(SESSION_DETACHED);
    session_mark_closed(s);
    session_free(s);
}

void session_closed(struct worker *w, uint32_t handle)
{
    struct client_session *s = worker_session(w, handle);

    if (!s)
        return;
    w->sessions[handle] = NULL;
    pairs_end(s);
    node_teams_session_gone(s);
    keep_no_longer(s);
    s->detach.request = s->closing ? s->request : 0;
    s->detach.object = s;
    s->detach.forget = forget;
    client_detach(s->client, &s->detach,
                  (struct call_detach){.handle = handle, .base = s->mapping.base});
}
