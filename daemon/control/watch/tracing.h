/*
 * Tracing: while any connection reads the trace, each engine records into a ring of its own; the
 * control thread reads there what is its to show, and holds no progress thread up.
 *
 * A user is shown what operations of his own clients do here; root and the daemon's user, all.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TRACING_H
#define PWC_CONTROL_TRACING_H

#include "daemon/control/clients/client.h"

/* Records of each engine; 8 MiB. */
#define TRACING_RECORDS (UINT64_C(1) << 17)

/* "Trace": the first of a connection begins it, and is answered when all engines record. */
void request_trace(struct client *c, uint32_t request);
/* The connection ends: records nothing for it any more. */
void tracing_leave(struct client *c);
/* After the loop: frees the rings that engines still have. */
void tracing_close(struct control *control);

#endif
