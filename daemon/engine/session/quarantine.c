/* Quarantine: clients that broke the protocol (quarantine.h). Thread: the progress thread. */
#include "daemon/engine/session/quarantine.h"

#include "daemon/engine/state/notice.h"
#include "daemon/engine/watch/steps.h"

const char *quarantine_text(uint32_t reason)
{
    static const char *const texts[QUARANTINE_REASONS] = {
        [QUARANTINE_NONE] = NULL,
        [QUARANTINE_SUBMIT_INDEX] = "submission ring: tail or record size out of range",
        [QUARANTINE_EVENT_INDEX] = "event ring: head out of range",
        [QUARANTINE_RECORD] = "submission: a field is out of range",
        [QUARANTINE_REMOTE] = "submission: a remote handle that was not given to this context",
        [QUARANTINE_SEGMENT] = "submission: memory outside the client's segments",
        [QUARANTINE_RESERVE] = "submission: more local events than the ring has room for",
        [QUARANTINE_MEMORY] = "shared memory faulted",
        [QUARANTINE_MESSAGE] = "submission: an active message that makes no sense",
        [QUARANTINE_REPLY] = "answer: a reply to a request that is not owed one",
        [QUARANTINE_REPLY_SPACE] = "submission: more replies than their ring has room for",
        [QUARANTINE_TEAM] = "submission: a team or a collective that makes no sense",
    };

    return reason < QUARANTINE_REASONS ? texts[reason] : "unknown";
}

void quarantine_show(struct engine *e, uint32_t session)
{
    atomic_store_explicit(&e->session_live[session].shared->state, SESSION_QUARANTINED,
                          memory_order_release);
}

void quarantine_notice(struct engine *e, uint32_t client)
{
    notice_push(e,
                &(struct engine_notice){.kind = ENGINE_QUARANTINED,
                                        .handle = client,
                                        .reason = quarantine_text(e->clients[client].quarantine)});
}

void client_quarantine(struct engine *e, uint32_t client, enum quarantine_reason reason)
{
    struct client *c = &e->clients[client];

    if (c->quarantine != QUARANTINE_NONE || c->state != CLIENT_LIVE)
        return;
    /* After a fault the daemon reads zero pages, so the fault is the real reason. */
    if (e->host->faulted && e->host->faulted(e->host->context, client))
        reason = QUARANTINE_MEMORY;
    c->quarantine = reason;
    step_quarantined(e, client);
    for (uint32_t i = 0; i < e->open_count; i++) {
        uint32_t s = e->open_sessions[i];

        if (e->sessions[s].client == client && e->session_live[s].attached)
            quarantine_show(e, s);
    }
    quarantine_notice(e, client);
}
