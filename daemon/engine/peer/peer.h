/*
 * Peers: the link to each of them, from the first wish for one to its loss.
 *
 *     NONE --offer--> PREPARING --ring registered--> OFFERED --handshake--> UP
 *      ^                                                |                    |
 *      +----------- DRAINING <----- break --------------+--------------------+
 *
 * A link begins with an empty inbound ring at the position that its receiver has consumed. DRAINING
 * lasts until the fabric has given back every operation and the ring: only then may a new link
 * begin, so nothing late can land in it. Records that were not consumed are staged again from the
 * queues.
 *
 * Each side names its state for the other by a random id. When both remember the other's id, the
 * link is resumed; otherwise both restart, and operations that were under way end with an error.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_PEER_H
#define PWC_ENGINE_PEER_H

#include "daemon/engine/state/state.h"

/* Whether the link is needed: something waits for it, or is held for the other side. */
bool peer_pending(struct engine *e, uint32_t peer);
/* Consumes, stages and posts. Returns the work done; lowers *deadline to the peer's next timed
 * action. */
int peer_step(struct engine *e, uint32_t peer, int budget, uint64_t *deadline);

#endif
