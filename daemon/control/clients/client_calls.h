/*
 * Calls into an engine on a client's behalf, and the end of a client that waits for the last of
 * them.
 *
 *     client_call --> call_post --> progress thread --> the callback, then: reads on where the
 *                                                       client was held back, and frees the client
 *                                                       if it has ended and nothing of it is left
 *
 * A client exists until each of its calls has returned: a callback finds it in call->owner.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_CALLS_H
#define PWC_CONTROL_CLIENT_CALLS_H

#include "daemon/control/clients/client.h"

/* A call to the client's engine, or to that of another worker. NULL without memory. */
struct call *client_call(struct client *c, enum call_kind kind, void (*then)(struct call *call));
struct call *client_call_to(struct client *c, const struct worker *worker, enum call_kind kind,
                            void (*then)(struct call *call));
/* Makes a call to the client's engine in memory that the caller provides. `then` may free it; NULL:
 * nothing follows. */
void client_call_in(struct client *c, struct call *call, enum call_kind kind,
                    void (*then)(struct call *call));
/* Has the thread of the engine forget a mapping that the engine has closed. Then `d->forget` frees
 * the object, `d` with it, and the request is answered. The caller has filled in those three. */
void client_detach(struct client *c, struct client_detach *d, struct call_detach detach);
/* Has the engine close the client. */
void client_leave_engine(struct client *c);
/* Frees a client that has ended, once nothing of it is left in an engine. For ends that no call
 * brings: those of calls come here on their own. */
void client_free_ended(struct client *c);

#endif
