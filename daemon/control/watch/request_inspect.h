/* Inspect: what pwcctl shows, as JSON. Thread: control. */
#ifndef PWC_CONTROL_REQUEST_INSPECT_H
#define PWC_CONTROL_REQUEST_INSPECT_H

#include "daemon/control/clients/client.h"

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect);

#endif
