/*
 * Reports errors of the daemon's start, and ends the process where an orderly end is impossible.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_FATAL_H
#define PWC_CONTROL_FATAL_H

#include "proto/exit_status.h"

struct control;

/* A progress thread does not return from a call, most likely one into the provider. */
#define CONTROL_STUCK                                                                              \
    "the progress thread does not come back from a call: this daemon ends without it"

/* Logs an error if `rc` is one, with the text `why` or, if that is empty, the errno's text. Returns
 * rc. */
int control_explain(struct control *control, int rc, const char *why);
/* Ends the process where an orderly end is impossible. The descriptors that a keeper holds stay
 * there, for the process that is started next. */
_Noreturn void control_end_at_once(struct control *control, const char *why);
/* As control_end_at_once, where the next process would end likewise: none is started. */
_Noreturn void control_end_for_good(struct control *control, enum exit_status status,
                                    const char *why);

#endif
