/*
 * Publishing the counters: some ten times a second while there is work, and once more behind it.
 *
 * Threads: publisher_observe and publisher_count are the progress thread's; all else control's.
 */
#ifndef PWC_CONTROL_PUBLISHER_H
#define PWC_CONTROL_PUBLISHER_H

#include "control.h"

int publisher_open(struct control *control);
void publisher_close(struct control *control);
/* Of struct progress_config. */
void publisher_observe(void *context, struct engine *engine);
/* Of struct call_target. */
void publisher_count(void *context, struct engine *engine);
/* What the progress thread has counted so far. Any thread. */
void publisher_totals(const struct control *control, struct counters_totals *out);

#endif
