/*
 * Opens and closes contexts: their sessions are made here, passed to the client, and freed when the
 * engine has released them. Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_CONTEXT_H
#define PWC_CONTROL_REQUEST_CONTEXT_H

#include "daemon/control/clients/client.h"

void request_context_open(struct client *c, uint32_t request, const Pwc__ContextOpen *open);
void request_context_close(struct client *c, uint32_t request, const Pwc__ContextClose *close);
/* Handles the notice that the engine has released a session. */
void session_closed(struct worker *w, uint32_t handle);
/* Marks the session as closed in its shared memory. A mark of quarantine stays there. */
void session_mark_closed(struct client_session *s);
/* Frees a session that the engine has never had, or has released. */
void session_free(struct client_session *s);

#endif
