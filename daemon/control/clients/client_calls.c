/* Owns calls into engines for a client, and how a client is freed after the last one
 * (client_calls.h). Thread: control. */
#include "daemon/control/clients/client_calls.h"

#include <stdlib.h>
#include <unistd.h>
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "shm_ring/fault.h"

/* ---- calls ----------------------------------------------------------------------------------- */

void client_hold(struct client *c)
{
    c->calls++;
    c->user->calls++;
}

void client_let_go(struct client *c)
{
    c->calls--;
    c->user->calls--;
    client_stream_resume(c);
    client_free_ended(c);
}

static void returned(struct call *call)
{
    struct client *c = call->owner;
    struct control *control = c->control;
    struct account *before = account_begin(control, &c->user->account);

    if (call->then)
        call->then(call);
    client_let_go(c);
    account_end(control, before);
}

struct call *client_call_to(struct client *c, const struct worker *worker, enum call_kind kind,
                            void (*then)(struct call *call))
{
    struct call *call = call_new(&worker->target, kind, c, returned);

    if (!call)
        return NULL;
    call->then = then;
    c->calls++;
    c->user->calls++;
    return call;
}

struct call *client_call(struct client *c, enum call_kind kind, void (*then)(struct call *call))
{
    return client_call_to(c, c->worker, kind, then);
}

void client_call_in(struct client *c, struct call *call, enum call_kind kind,
                    void (*then)(struct call *call))
{
    call_init(call, &c->worker->target, kind, c, returned);
    call->then = then;
    c->calls++;
    c->user->calls++;
}

static void detached(struct call *call)
{
    struct client *c = call->owner;
    const struct client_detach *d = (const struct client_detach *)call;
    uint32_t request = d->request;

    d->forget(d->object);
    if (request != 0 && c->state == CLIENT_SERVED)
        reply_done(c, request);
}

void client_detach(struct client *c, struct client_detach *d, struct call_detach detach)
{
    client_call_in(c, &d->call, CALL_DETACH, detached);
    d->call.detach = detach;
    call_post(c->worker->progress, &d->call);
}

void client_leave_engine(struct client *c)
{
    client_call_in(c, &c->leave, CALL_CLIENT_CLOSE, NULL);
    c->leave.handle = c->number;
    call_post(c->worker->progress, &c->leave);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void unlink_client(struct client *c)
{
    struct client **at = &c->control->clients;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->control->client_count--;
    quota_leave(c);
}

/* Frees the slot of a connection once the store no longer holds anything of it. */
static void forget_connection(struct client *c)
{
    struct store *store = &c->control->store;

    store_remove(store, "client.%u", c->slot);
    store_remove(store, "process.%u", c->slot);
    inflight_give(&c->control->inflight, c->slot);
}

static void handle_closed(uv_handle_t *handle)
{
    struct client *c = handle->data;
    struct control *control = c->control;
    struct account *before;

    if (--c->uv_handles > 0)
        return;
    before = account_begin(control, &c->user->account);
    unlink_client(c);
    forget_connection(c);
    if (c->pidfd >= 0)
        close(c->pidfd);
    if (c->descriptor >= 0)
        close(c->descriptor);
    free(c);
    account_end(control, before);
}

void client_free_ended(struct client *c)
{
    if (c->state != CLIENT_ENDING || client_is_in_engine(c) || c->calls > 0 || c->sessions ||
        c->segments)
        return;
    if (uv_is_closing((uv_handle_t *)&c->deadline))
        return;
    FAULT(CLIENT_SETTLED);
    client_stream_free(c);
    uv_close((uv_handle_t *)&c->deadline, handle_closed);
    if (c->uv_handles > 1)
        uv_close((uv_handle_t *)&c->socket, handle_closed);
    if (c->uv_handles > 2)
        uv_close((uv_handle_t *)&c->process, handle_closed);
}
