/*
 * Carries out binds: the key names the peer's engine, or the job's home says which engine has the
 * peer's rank. Then our engine resolves endpoint and key there, and posts ENGINE_BOUND.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_BIND_H
#define PWC_CONTROL_REQUEST_BIND_H

#include "daemon/control/clients/client.h"

void request_bind(struct client *c, uint32_t request, const Pwc__Bind *bind);
void request_unbind(struct client *c, uint32_t request, const Pwc__Unbind *unbind);

/* Handles the notice that the engine's bind has succeeded or failed. */
void bind_ended(struct control *control, const struct engine_notice *notice);

#endif
