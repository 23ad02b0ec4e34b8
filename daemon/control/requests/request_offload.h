/*
 * Carries out requests about offloads: a program that is joined with an index of a context's
 * messages, or with a region. The engine checks the arguments; this module waits for the engine and
 * answers.
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
/* Asks the engine again for the changes that pause: it cuts puts by itself, and waits for gets of
 * handlers, which may take as long as their targets like. */
void offload_changes_again(uv_timer_t *timer);
/* Frees the changes that pause. */
void offload_changes_close(struct offload_changes *changes);
void request_offload_view(struct client *c, uint32_t request, const Pwc__OffloadView *view);
/* Handles the notice that the targets of an offload are bound, or that one of them cannot be
 * bound. */
void offload_ready(struct control *control, const struct engine_notice *notice);
/* Handles the notice that an offload of this context has ended, which a client had asked an earlier
 * process to destroy. */
void offload_closed(struct worker *w, uint32_t session);

#endif
