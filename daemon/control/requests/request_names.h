/* Requests about published names: to publish a name in the client's job, to take it back, and to
 * look for one. Thread: control. */
#ifndef PWC_CONTROL_REQUEST_NAMES_H
#define PWC_CONTROL_REQUEST_NAMES_H

#include "daemon/control/clients/client.h"

void request_publish(struct client *c, uint32_t request, const Pwc__Publish *publish);
void request_lookup(struct client *c, uint32_t request, const Pwc__Lookup *lookup);

#endif
