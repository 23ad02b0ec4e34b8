/*
 * Requests about offloads: a program that is joined with an index of a context's messages. The
 * engine checks everything that a client may get wrong; here is what has to be waited for.
 *
 *     OffloadCreate --> the engine binds the targets --> ENGINE_OFFLOAD_READY --> OffloadCreated
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_OFFLOAD_H
#define PWC_CONTROL_REQUEST_OFFLOAD_H

#include "daemon/control/control.h"
#include "daemon/engine/engine.h"
#include "proto/control.pb-c.h"

struct client;
struct worker;

void request_offload_create(struct client *c, uint32_t request, const Pwc__OffloadCreate *create);
void request_offload_destroy(struct client *c, uint32_t request,
                             const Pwc__OffloadDestroy *destroy);
void request_offload_enable(struct client *c, uint32_t request, const Pwc__OffloadEnable *enable);
void request_offload_view(struct client *c, uint32_t request, const Pwc__OffloadView *view);
/* The targets of an offload are bound, or one of them cannot be. */
void offload_ready(struct control *control, const struct engine_notice *notice);
/* The engine has ended what an earlier process was asked to: an offload of this context has gone.
 */
void offload_closed(struct worker *w, uint32_t session);

#endif
