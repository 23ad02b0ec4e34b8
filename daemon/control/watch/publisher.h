/*
 * Publishes the counters: about ten times a second while there is work, once more after it, and
 * before a view is answered. The control thread reads the engines' tables; the progress threads
 * only report that there is something new.
 *
 * Thread: control, except where a comment says otherwise.
 */
#ifndef PWC_CONTROL_PUBLISHER_H
#define PWC_CONTROL_PUBLISHER_H

#include "daemon/control/control.h"

int publisher_open(struct control *control);
void publisher_close(struct control *control);
/* A hook of struct progress_config, called on the progress thread; its context is the worker. */
void publisher_observe(void *context, struct engine *engine);
/* Writes the counters as they are now. */
void publisher_write(struct control *control);
/* The sums of the progress threads' counters so far. Any thread. */
void publisher_totals(const struct control *control, struct counters_totals *out);
/* The longest of the progress threads' steps. Any thread. */
void publisher_longest_step(const struct control *control, struct step_longest *out);
void publisher_worker_longest_step(const struct worker *w, struct step_longest *out);
/* The counters of one worker's thread. Any thread. */
void publisher_worker_totals(const struct worker *w, struct counters_totals *out);

#endif
