/* Dispatches requests to the modules that carry them out. Thread: control. */
#ifndef PWC_CONTROL_REQUESTS_H
#define PWC_CONTROL_REQUESTS_H

#include "daemon/control/clients/client.h"

/* A client's on_request. */
void request_handle(struct client *c, const Pwc__ClientRequest *request);

#endif
