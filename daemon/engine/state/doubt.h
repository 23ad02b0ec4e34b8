/*
 * The doubt: whether the record at which an engine died has changed words already.
 *
 * Changes of words in clients' memory cannot be undone, for others may have changed the same words
 * since. So before the first of them the engine notes the record in the arena by a plain store,
 * past the undo log; the transaction that consumes the record clears the note. A takeover that
 * finds one moves it into the record's inflow, or into the get whose handler ran. When the record
 * comes again, it is not done a second time, and its origin learns that the outcome is unknown.
 *
 *     store of the doubt | words change | commit
 *                        <-- death here -->       the takeover finds the doubt
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_DOUBT_H
#define PWC_ENGINE_DOUBT_H

#include "daemon/engine/state/state.h"

/* Within a transaction, whose commit takes the doubt back: the next store may change a word for the
 * record `sequence` of an inflow. */
void doubt_begin(struct engine *e, uint32_t inflow, uint32_t sequence);
/* As doubt_begin, for the completion handler of a get that has completed (state/offloads.h). */
void doubt_begin_get(struct engine *e, uint32_t get);
/* Within a transaction: the transaction of doubt_begin was put back in this process, which knows
 * what was done. */
void doubt_end(struct engine *e);
/* After a restart: the doubt that the last process has left moves into its inflow, or its get. */
void doubt_inherit(struct engine *e);
/* Within a transaction: whether an earlier process may have done this record of the inflow. The
 * first record that comes by the inflow is the one in doubt, or none is. */
static inline bool doubt_resolve(struct engine *e, struct inflow *in, uint32_t sequence)
{
    if (!in->in_doubt)
        return false;
    set32(e, &in->in_doubt, 0);
    return in->doubt == sequence;
}

#endif
