/* Takes part in an exchange: each rank gives bytes to all ranks of its job. The job's home gathers
 * the bytes. Thread: control. */
#ifndef PWC_CONTROL_REQUEST_EXCHANGE_H
#define PWC_CONTROL_REQUEST_EXCHANGE_H

#include "daemon/control/clients/client.h"

void request_exchange(struct client *c, uint32_t request, const Pwc__Exchange *exchange);

#endif
