/* Carries out Hello: makes a client a rank of a job, here and at the job's home. Thread:
 * control. */
#ifndef PWC_CONTROL_REQUEST_HELLO_H
#define PWC_CONTROL_REQUEST_HELLO_H

#include "daemon/control/clients/client.h"

void request_hello(struct client *c, uint32_t request, const Pwc__Hello *hello);

/* Sends to the engine again each Hello that waited for the rank of this client, which has left the
 * engine. */
void request_hello_rank_left(const struct client *left);
/* As request_hello_rank_left, for a client of an earlier process, of which only the engine knew:
 * all that wait for this engine try again. */
void request_hello_orphan_left(const struct worker *w);

#endif
