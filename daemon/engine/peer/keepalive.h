/*
 * Keepalive: for which peers something waits, how long each has been silent, and what follows.
 *
 * Transports stay silent: a peer that died, or a cable that was cut, gives no event. So a peer with
 * something under way is watched, from the moment at which it becomes active until nothing waits
 * for it; an idle peer costs nothing. At each interval in which nothing has arrived from a peer:
 *
 *     1st, 2nd  ENGINE_PEER_SILENT: it is asked for a sign of life. The question goes over the
 *               control connection, the answer (engine_beat) comes through the fabric from its
 *               progress thread: so the answer proves that both ways work and the thread runs.
 *     3rd       ENGINE_PEER_BROKEN, -ETIMEDOUT: the link starts over, and what was under way waits.
 *     deadline  ENGINE_PEER_GONE: it is to be given up (engine_peer_lost).
 *
 * A fabric may carry only one direction. Then the side whose records are lost would get answers,
 * but no acknowledgements, and the other side would notice nothing. So a sign of life through the
 * fabric goes with each question, too, and an engine that is asked watches the asker for an
 * interval, without asking. A link also starts over (-ENODATA) after KEEPALIVE_SILENT intervals in
 * which a run or a payload was missing before others that had arrived; each piece of a missing
 * payload starts that time again.
 *
 * Intervals are counted, not read off the clock: an engine that was itself held up for a minute has
 * seen one interval. A slow peer is not a silent one: its sign of life may stand behind long
 * payloads. So for every KEEPALIVE_SLOWEST bytes that either side has on its way, a second of
 * silence is excused, but never more than KEEPALIVE_GRANT deadlines. The first sign of life of a
 * link stands before all payloads; until it has arrived, nothing is excused. A question costs the
 * control thread some work: at most KEEPALIVE_ASKS leave in one interval, and peers that were not
 * asked are not counted as silent.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_KEEPALIVE_H
#define PWC_ENGINE_KEEPALIVE_H

#include "daemon/engine/state/state.h"

#define KEEPALIVE_SILENT  3u         /* intervals of silence, after which the link starts over */
#define KEEPALIVE_ASKS    512u       /* in one interval */
#define KEEPALIVE_SLOWEST (1u << 20) /* bytes that the slowest fabric carries in a second */
#define KEEPALIVE_GRANT   12u        /* the most deadlines whose silence is excused */

/* Reads from the configuration how often keepalive_step looks. */
void keepalive_open(struct engine *e);
/* Looks for silent peers when an interval has passed, and lowers *deadline to the next time. */
void keepalive_step(struct engine *e, uint64_t *deadline);

/* Call this when something has arrived from the peer through the fabric. */
static inline void keepalive_heard(struct engine *e, uint32_t peer)
{
    e->peer_live[peer].silence = 0;
    e->peer_live[peer].silence_at_up = 0;
    e->peer_live[peer].heard = true;
}

#endif
