/* Owns the dispatch of requests (requests.h). Thread: control. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/survive/handover.h"
#include "daemon/control/watch/tracing.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_hello.h"
#include "daemon/control/requests/request_context.h"
#include "daemon/control/requests/request_memory.h"
#include "daemon/control/requests/request_offload.h"
#include "daemon/control/requests/request_program.h"
#include "daemon/control/requests/request_bind.h"
#include "daemon/control/requests/request_exchange.h"
#include "daemon/control/requests/request_names.h"
#include "daemon/control/requests/requests.h"
#include "daemon/control/teams/request_team.h"
#include "daemon/control/watch/request_inspect.h"

static void request_upgrade(struct client *c, uint32_t request, const Pwc__Upgrade *upgrade)
{
    char why[512] = "";
    int rc;

    if (c->uid != 0 && c->uid != geteuid()) {
        reply_error(c, request, -EPERM, "user %u may not do that: root and the daemon's user may",
                    (unsigned)c->uid);
        return;
    }
    rc = handover_begin(c->control, upgrade->program, c, request, why, sizeof(why));
    if (rc < 0)
        reply_error(c, request, rc, "%s", *why ? why : strerror(-rc));
    else if (c->state != CLIENT_SERVED)
        uv_timer_stop(&c->deadline); /* the answer may come after the deadline */
}

/* Requests that only ranks of jobs may make. */
static void handle_served(struct client *c, const Pwc__ClientRequest *r)
{
    if (c->state != CLIENT_SERVED) {
        reply_error(c, r->id, -EPERM, "a request before Welcome: say Hello and wait for it");
        return;
    }
    switch (r->body_case) {
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN:
        request_context_open(c, r->id, r->context_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE:
        request_context_close(c, r->id, r->context_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN:
        request_segment_open(c, r->id, r->segment_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE:
        request_segment_close(c, r->id, r->segment_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_OPEN:
        request_region_open(c, r->id, r->region_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_CLOSE:
        request_region_close(c, r->id, r->region_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_BIND:
        request_bind(c, r->id, r->bind);
        break;
    case PWC__CLIENT_REQUEST__BODY_UNBIND:
        request_unbind(c, r->id, r->unbind);
        break;
    case PWC__CLIENT_REQUEST__BODY_EXCHANGE:
        request_exchange(c, r->id, r->exchange);
        break;
    case PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD:
        request_program_load(c, r->id, r->program_load);
        break;
    case PWC__CLIENT_REQUEST__BODY_PROGRAM_UNLOAD:
        request_program_unload(c, r->id, r->program_unload);
        break;
    case PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE:
        request_offload_create(c, r->id, r->offload_create);
        break;
    case PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY:
        request_offload_destroy(c, r->id, r->offload_destroy);
        break;
    case PWC__CLIENT_REQUEST__BODY_OFFLOAD_ENABLE:
        request_offload_enable(c, r->id, r->offload_enable);
        break;
    case PWC__CLIENT_REQUEST__BODY_OFFLOAD_VIEW:
        request_offload_view(c, r->id, r->offload_view);
        break;
    case PWC__CLIENT_REQUEST__BODY_TEAM_JOIN:
        request_team_join(c, r->id, r->team_join);
        break;
    case PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE:
        request_team_leave(c, r->id, r->team_leave);
        break;
    case PWC__CLIENT_REQUEST__BODY_PUBLISH:
        request_publish(c, r->id, r->publish);
        break;
    case PWC__CLIENT_REQUEST__BODY_LOOKUP:
        request_lookup(c, r->id, r->lookup);
        break;
    default:
        reply_error(c, r->id, -ENOSYS,
                    "request %u has a kind that this daemon does not know: update pwcd", r->id);
        break;
    }
}

void request_handle(struct client *c, const Pwc__ClientRequest *r)
{
    if (r->body_case == PWC__CLIENT_REQUEST__BODY_INSPECT)
        request_inspect(c, r->id, r->inspect);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_TRACE)
        request_trace(c, r->id);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_PROGRAM_CHECK)
        request_program_check(c, r->id, r->program_check);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_PROGRAM_READ)
        request_program_read(c, r->id, r->program_read);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_UPGRADE)
        request_upgrade(c, r->id, r->upgrade);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_HELLO)
        request_hello(c, r->id, r->hello);
    else
        handle_served(c, r);
}
