/* Dispatches requests to the modules that carry them out. Thread: control. */
#ifndef PWC_CONTROL_REQUESTS_H
#define PWC_CONTROL_REQUESTS_H

#include "daemon/control/clients/client.h"

/* The function on_request of each client. */
void request_handle(struct client *c, const Pwc__ClientRequest *request);

#endif
