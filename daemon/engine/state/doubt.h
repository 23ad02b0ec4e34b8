/*
 * The doubt: whether the record at which an engine died has changed words already.
 *
 * Changes of words in clients' memory cannot be undone, because others may have changed the same
 * words since. So before the first change the engine notes the record in the arena by a plain store
 * that bypasses the undo log; the transaction that consumes the record clears the note. A takeover
 * that finds a doubt moves it into the record's inflow, or into the get whose handler ran. When the
 * record comes again, the engine does not carry it out a second time, and the record's origin
 * learns that the outcome is unknown.
 *
 *     store of the doubt | words change | commit
 *                        <-- death here -->       the takeover finds the doubt
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_DOUBT_H
#define PWC_ENGINE_DOUBT_H

#include "daemon/engine/state/state.h"

/* Within a transaction, whose commit clears the doubt: notes that the next store may change a word
 * for the record `sequence` of an inflow. */
void doubt_begin(struct engine *e, uint32_t inflow, uint32_t sequence);
/* As doubt_begin, for the completion handler of a get that has completed (state/offloads.h). */
void doubt_begin_get(struct engine *e, uint32_t get);
/* Within a transaction: clears the doubt after this same process has rolled the transaction of
 * doubt_begin back. The process knows what was done. */
void doubt_end(struct engine *e);
/* After a restart: moves the doubt that the last process has left into its inflow, or its get. */
void doubt_inherit(struct engine *e);
/* Within a transaction: returns whether an earlier process may have done this record of the inflow,
 * and clears the note. If a record is in doubt, it is the first one that arrives by the inflow. */
static inline bool doubt_resolve(struct engine *e, struct inflow *in, uint32_t sequence)
{
    if (!in->in_doubt)
        return false;
    set32(e, &in->in_doubt, 0);
    return in->doubt == sequence;
}

#endif
