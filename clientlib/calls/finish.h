/* The last wait of a client's contexts. Thread: the caller of pwc_finalize, alone with the client.
 */
#ifndef PWC_CLIENTLIB_FINISH_H
#define PWC_CLIENTLIB_FINISH_H

#include <stdint.h>
#include "clientlib/attach/client.h"

/* Takes and drops events, and runs handlers, until all that the client's contexts have submitted
 * has ended, or the deadline has passed. Returns how many operations have failed, or have not
 * ended. */
uint64_t finish_contexts(struct pwc_client *client, int64_t deadline);

#endif
