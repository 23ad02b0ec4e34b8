/*
 * Contexts: sessions that are made here, passed to the client, and taken back when the engine has
 * let go of them. Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_CONTEXT_H
#define PWC_CONTROL_REQUEST_CONTEXT_H

#include "daemon/control/clients/client.h"

void request_context_open(struct client *c, uint32_t request, const Pwc__ContextOpen *open);
void request_context_close(struct client *c, uint32_t request, const Pwc__ContextClose *close);
/* A notice: the engine has let go of a session. */
void session_closed(struct worker *w, uint32_t handle);
/* Marks the session as closed in its shared memory. A mark of quarantine stays there. */
void session_mark_closed(struct client_session *s);
/* Frees what the engine never saw, or has let go of. */
void session_free(struct client_session *s);

#endif
