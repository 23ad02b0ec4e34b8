/*
 * Taking over from an earlier process of this daemon, in two steps. To *inherit* is to own what
 * that process has left; to *resume* is to serve it again.
 *
 *     step                  what                          becomes
 *     workers_open_arenas   arenas                        engines' state
 *     inflight_open         the requests under way        answers, below
 *     takeover_inherit      connections                   clients, with what the engine knows
 *       before an engine's  sessions, segments            mappings, the engine's again
 *       first step          the engine's other clients    are closed: they have left
 *     takeover_resume       pairs                         pairs
 *       with all open       requests under way            -ECONNABORTED: their end is unknown
 *                           clients                       woken, announced to their job's home,
 *                                                         read from
 *     store_drop_rest       descriptors of none of these  are closed
 *
 * A session or segment with a missing part is not inherited: its engine closes it. A client that
 * cannot be served again ends as if it had left.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TAKEOVER_H
#define PWC_CONTROL_TAKEOVER_H

#include "daemon/control/control.h"

/* A hook of struct worker_hooks: inherits from an earlier process what belongs to an engine that is
 * open and has not stepped. */
void takeover_inherit(void *context, struct engine *engine);
/* Serves the inherited state again, once everything is open. */
void takeover_resume(struct control *control);

#endif
