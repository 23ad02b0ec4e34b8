/*
 * Tracing: while a connection reads the trace, each engine records into a ring of its own. The
 * control thread reads the rings, and holds no progress thread up.
 *
 * Users see the operations of their own clients on this node; root and the daemon's user see all.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TRACING_H
#define PWC_CONTROL_TRACING_H

#include "daemon/control/clients/client.h"

/* Records of each engine; 8 MiB. */
#define TRACING_RECORDS (UINT64_C(1) << 17)

/* The request Trace. The first one of a connection begins the trace, and is answered when all
 * engines record. */
void request_trace(struct client *c, uint32_t request);
/* A connection ends: without readers, engines stop recording. */
void tracing_leave(struct client *c);
/* After the loop: frees the rings that engines still have. */
void tracing_close(struct control *control);

#endif
