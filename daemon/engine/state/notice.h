/* Notices: what the engine reports to its caller later, in a private ring. Thread: the progress
 * thread. */
#ifndef PWC_ENGINE_NOTICE_H
#define PWC_ENGINE_NOTICE_H

#include "daemon/engine/state/state.h"

/* Posts a notice. The ring has room for one notice of each thing that can end or be answered
 * (notices_max), and no entry is given to a next thing while a notice waits: the caller of
 * engine_notice takes all before it makes other calls (threads/progress.c). So it is never full. */
void notice_push(struct engine *e, const struct engine_notice *notice);

#endif
