/*
 * Quarantine: a client broke the protocol. The engine takes nothing more of it; the caller is asked
 * to end it. Thread: the progress thread.
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
    QUARANTINE_REASONS
};

/* Once: later reasons of the same client are dropped. */
void client_quarantine(struct engine *e, uint32_t client, enum quarantine_reason reason);
const char *quarantine_text(uint32_t reason);
/* In the session's shared memory, and to the caller. */
void quarantine_show(struct engine *e, uint32_t session);
void quarantine_notice(struct engine *e, uint32_t client);

#endif
