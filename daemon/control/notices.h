/*
 * Gives each notice of an engine to the module that handles it. Thread: control.
 */
#ifndef PWC_CONTROL_NOTICES_H
#define PWC_CONTROL_NOTICES_H

#include "daemon/engine/engine.h"

/* A hook of struct progress_config; the context is the engine's worker. Notices arrive in the order
 * in which the progress thread made them. */
void notice_take(void *context, const struct engine_notice *notice);

#endif
