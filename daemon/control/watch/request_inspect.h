/*
 * Carries out Inspect: keeps the clients that ask for a view (document.h), and decides when it is
 * written.
 *
 *     question --> the same is asked already, and not written yet? --> its answer is shared
 *         | no
 *         v
 *     WAITS until the user's earlier views are paid for --> ASKED: each progress thread echoes a
 *     call, or is said to be stuck after a second --> the answer is written, and sent to all who
 *     ask for it --> COOLS: paying
 *
 * An answer is always written after the question has come. Views of one user take at most an eighth
 * of the control thread's time: after a view, the user's next view waits for seven times as long as
 * the first one took, and questions that come meanwhile share its answer. A connection has one
 * question at a time; nothing is read from it while its question is under way.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_INSPECT_H
#define PWC_CONTROL_REQUEST_INSPECT_H

#include "daemon/control/clients/client.h"

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect);
/* Removes the question of a connection that ends. */
void inspections_leave(struct client *c);
/* Call this at the end of the loop. */
void inspections_close(struct control *control);

#endif
