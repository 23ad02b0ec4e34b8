/*
 * Publishing the counters: some ten times a second while there is work, and once more behind it.
 *
 * Threads: publisher_observe and publisher_count are each progress thread's, their context its
 * worker; all else control's.
 */
#ifndef PWC_CONTROL_PUBLISHER_H
#define PWC_CONTROL_PUBLISHER_H

#include "daemon/control/control.h"

int publisher_open(struct control *control);
void publisher_close(struct control *control);
/* Of struct progress_config. */
void publisher_observe(void *context, struct engine *engine);
/* Of struct call_target. */
void publisher_count(void *context, struct engine *engine);
/* What the progress threads have counted so far, together. Any thread. */
void publisher_totals(const struct control *control, struct counters_totals *out);
/* What one has. Any thread. */
void publisher_worker_totals(const struct worker *w, struct counters_totals *out);

#endif
