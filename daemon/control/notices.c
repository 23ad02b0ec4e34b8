/* Owns the choice of the module that handles a notice, and of the user whose account pays for that
 * (notices.h). Thread: control. */
#include "daemon/control/notices.h"

#include <string.h>
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/requests/request_bind.h"
#include "daemon/control/requests/request_context.h"
#include "daemon/control/requests/request_hello.h"
#include "daemon/control/requests/request_memory.h"
#include "daemon/control/requests/request_offload.h"
#include "daemon/control/fatal.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/teams/team.h"

static void client_closed(struct worker *w, uint32_t handle)
{
    struct client *c = worker_client(w, handle);

    if (!c) {
        request_hello_orphan_left(w);
        return;
    }
    w->by_handle[handle] = NULL;
    w->clients--;
    request_hello_rank_left(c);
    client_free_ended(c);
}

static void quarantined(struct worker *w, const struct engine_notice *notice)
{
    struct client *c = worker_client(w, notice->handle);

    if (c)
        client_end(c, notice->reason ? notice->reason : "it broke the protocol");
}

/* The client that a notice is about; NULL: none, or none that is known. */
static struct client *client_of(const struct worker *w, const struct engine_notice *notice)
{
    const struct client_session *session;
    const struct client_segment *segment;
    const struct pending *pending;

    switch (notice->kind) {
    case ENGINE_SEGMENT_READY:
    case ENGINE_SEGMENT_CLOSED:
        segment = worker_segment(w, notice->handle);
        return segment ? segment->client : NULL;
    case ENGINE_REGION_CLOSED:
    case ENGINE_BOUND:
    case ENGINE_OFFLOAD_READY:
        pending = pending_find(&w->control->pending, notice->cookie, 0);
        return pending ? pending->client : NULL;
    case ENGINE_SESSION_CLOSED:
    case ENGINE_OFFLOAD_CLOSED:
        session = worker_session(w, notice->handle);
        return session ? session->client : NULL;
    case ENGINE_CLIENT_CLOSED:
    case ENGINE_QUARANTINED:
        return worker_client(w, notice->handle);
    default:
        return NULL;
    }
}

static void handle(struct worker *w, const struct engine_notice *notice)
{
    struct control *control = w->control;

    switch (notice->kind) {
    case ENGINE_WANT_PEER:
    case ENGINE_OFFER_READY:
    case ENGINE_PEER_BROKEN:
    case ENGINE_PEER_SILENT:
    case ENGINE_PEER_GONE:
        peers_notice(w, notice);
        break;
    case ENGINE_SEGMENT_READY:
        segment_ready(w, notice->handle, notice->status);
        break;
    case ENGINE_SEGMENT_CLOSED:
        segment_closed(w, notice->handle);
        break;
    case ENGINE_REGION_CLOSED:
        region_closed(control, notice->cookie);
        break;
    case ENGINE_BOUND:
        bind_ended(control, notice);
        break;
    case ENGINE_SESSION_CLOSED:
        session_closed(w, notice->handle);
        break;
    case ENGINE_CLIENT_CLOSED:
        client_closed(w, notice->handle);
        break;
    case ENGINE_QUARANTINED:
        quarantined(w, notice);
        break;
    case ENGINE_TEAM_CLOSED:
        team_closed(w, notice->handle);
        break;
    case ENGINE_OFFLOAD_READY:
        offload_ready(control, notice);
        break;
    case ENGINE_OFFLOAD_CLOSED:
        offload_closed(w, notice->handle);
        break;
    case ENGINE_FABRIC_FAILED:
        log_line(&control->log, LOG_LEVEL_ERROR, "the fabric's completion queue failed: %s",
                 strerror(-notice->status));
        control_end_at_once(control, "nothing can be completed any more: start it again");
    case ENGINE_LEDGERS_FAILED:
        log_line(&control->log, LOG_LEVEL_ERROR,
                 "the fabric does not register the memory for ledgers: %s",
                 strerror(-notice->status));
        control_end_for_good(control, EXIT_UNLOCKED,
                             "no operation can leave: raise the limit of locked memory "
                             "(LimitMEMLOCK, ulimit -l), or lower ledger-bytes");
    default:
        log_line(&control->log, LOG_LEVEL_ERROR, "the engine gives a notice of unknown kind %u",
                 notice->kind);
        break;
    }
}

void notice_take(void *context, const struct engine_notice *notice)
{
    struct worker *w = context;
    const struct client *c = client_of(w, notice);
    struct account *before = account_begin(w->control, c ? &c->user->account : NULL);

    handle(w, notice);
    account_end(w->control, before);
}
