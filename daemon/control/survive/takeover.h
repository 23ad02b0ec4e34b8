/*
 * Taking over: what another process of this daemon has left, given its place again.
 *
 * What a descriptor is stands in its name (store.h), what the engine knew in its arena, and which
 * requests were under way in inflight.h's table. Who cannot be served on, because something of it
 * is missing, is ended as if it had left.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TAKEOVER_H
#define PWC_CONTROL_TAKEOVER_H

#include "daemon/control/control.h"

/* Once a worker's engine is open and before its first step: its clients, their sessions and
 * segments. Of struct progress_config. */
void takeover_attach(void *context, struct engine *engine);
/* Once everything is open: serves them on. */
void takeover_resume(struct control *control);

#endif
