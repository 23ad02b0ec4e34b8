/*
 * Quarantine: a client broke the protocol. The engine takes no more submissions of the client, and
 * a notice asks the caller to end the client. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_QUARANTINE_H
#define PWC_ENGINE_QUARANTINE_H

#include "daemon/engine/state/state.h"

/* Reasons for a quarantine, shown by the tools. */
enum quarantine_reason {
    QUARANTINE_NONE = 0,
    QUARANTINE_SUBMIT_INDEX,
    QUARANTINE_EVENT_INDEX,
    QUARANTINE_RECORD,
    QUARANTINE_REMOTE,
    QUARANTINE_SEGMENT,
    QUARANTINE_RESERVE,
    QUARANTINE_MEMORY,
    QUARANTINE_MESSAGE,
    QUARANTINE_REPLY,
    QUARANTINE_REPLY_SPACE,
    QUARANTINE_TEAM,
    QUARANTINE_REASONS
};

/* Quarantines the client once: later reasons are dropped. */
void client_quarantine(struct engine *e, uint32_t client, enum quarantine_reason reason);
const char *quarantine_text(uint32_t reason);
/* Shows the quarantine in the session's shared memory; posts the notice to the caller. */
void quarantine_show(struct engine *e, uint32_t session);
void quarantine_notice(struct engine *e, uint32_t client);

#endif
