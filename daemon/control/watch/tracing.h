/*
 * Tracing: while a connection reads the trace, each engine records into a ring of its own. The
 * control thread reads the rings without delaying a progress thread.
 *
 * Users see the operations of their own clients on this node; root and the daemon's user see all.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TRACING_H
#define PWC_CONTROL_TRACING_H

#include "daemon/control/clients/client.h"

/* Records in the ring of each engine; 8 MiB. */
#define TRACING_RECORDS (UINT64_C(1) << 17)

/* Carries out the request Trace. The first one of a connection starts the trace, and is answered
 * when all engines record. */
void request_trace(struct client *c, uint32_t request);
/* Removes a reader whose connection ends. Without readers, engines stop recording. */
void tracing_leave(struct client *c);
/* Frees the rings that engines still have, after the loop. */
void tracing_close(struct control *control);

#endif
