/*
 * Makes calls into engines for a client, and frees an ended client after its last call has
 * returned.
 *
 *     client_call --> call_post --> progress thread --> the callback, then: reads on where the
 *                                                       client was held back, and frees the client
 *                                                       if it has ended and nothing of it is left
 *
 * A client exists until each of its calls has returned, so a callback finds it in call->owner.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_CALLS_H
#define PWC_CONTROL_CLIENT_CALLS_H

#include "daemon/control/clients/client.h"

/* Makes a call to the client's engine, or to the engine of another worker. NULL without memory. */
struct call *client_call(struct client *c, enum call_kind kind, void (*then)(struct call *call));
struct call *client_call_to(struct client *c, const struct worker *worker, enum call_kind kind,
                            void (*then)(struct call *call));
/* Makes a call to the client's engine in memory that the caller provides. `then` may free this
 * memory; NULL: nothing is called. */
void client_call_in(struct client *c, struct call *call, enum call_kind kind,
                    void (*then)(struct call *call));
/* Makes the engine's progress thread forget a mapping that the engine has closed. Then `d->forget`
 * frees `d->object`, of which `d` is a part, and `d->request` is answered. The caller has filled in
 * these three. */
void client_detach(struct client *c, struct client_detach *d, struct call_detach detach);
/* Makes the engine close the client. */
void client_leave_engine(struct client *c);
/* Between these two a client exists as during a call, which counts as one of its calls. */
void client_hold(struct client *c);
void client_let_go(struct client *c);
/* Frees a client that has ended, if nothing of it is left in an engine. A call that returns does
 * this by itself; after other events the caller does it by this function. */
void client_free_ended(struct client *c);

#endif
