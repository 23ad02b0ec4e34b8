/* Notices: what the engine reports to its caller later, in a private ring. Thread: the progress
 * thread. */
#ifndef PWC_ENGINE_NOTICE_H
#define PWC_ENGINE_NOTICE_H

#include "daemon/engine/state/state.h"

/* Posts a notice. The ring has room for one notice of each thing that can end or be answered
 * (notices_max), and an entry of a table is not used again while a notice about it waits, because
 * the caller of engine_notice takes all notices before it makes other calls (threads/progress.c).
 * So the ring is never full. */
void notice_push(struct engine *e, const struct engine_notice *notice);

#endif
