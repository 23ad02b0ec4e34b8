/*
 * Inspect: who asks for a view (document.h), and when it is written.
 *
 *     question --> the same is asked already, and not written yet? --> its answer is shared
 *         | no
 *         v
 *     WAITS until the user's earlier views are paid for --> ASKED: each progress thread echoes a
 *     call, or is said to be stuck after a second --> the answer is written, and sent to all who
 *     ask for it --> COOLS: paying
 *
 * An answer is always written after its question. Views of one user take an eighth of the control
 * thread's time at most: after each the user's next one waits for seven times as long as it took,
 * and questions that come meanwhile share it. A connection has one question at a time; it is not
 * read while that is under way.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_INSPECT_H
#define PWC_CONTROL_REQUEST_INSPECT_H

#include "daemon/control/clients/client.h"

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect);
/* A connection ends: it asks no more. */
void inspections_leave(struct client *c);
/* Call this at the end of the loop. */
void inspections_close(struct control *control);

#endif
