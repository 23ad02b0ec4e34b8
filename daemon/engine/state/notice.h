/* Notices: what the engine tells its caller later. A private ring. Thread: the progress thread. */
#ifndef PWC_ENGINE_NOTICE_H
#define PWC_ENGINE_NOTICE_H

#include "daemon/engine/state/state.h"

/* There is room for one of each thing that can end or be answered (engine.c: notices_max). */
void notice_push(struct engine *e, const struct engine_notice *notice);

#endif
