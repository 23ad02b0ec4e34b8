/* The way from a client's message to the request that it makes. Thread: control. */
#ifndef PWC_CONTROL_REQUESTS_H
#define PWC_CONTROL_REQUESTS_H

#include "daemon/control/clients/client.h"

/* Of struct client_events. */
void request_handle(struct client *c, const Pwc__ClientRequest *request);

#endif
