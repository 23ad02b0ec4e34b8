/*
 * Marks on peers: known, active, wanted, broken. Every module may set them; peer.c and keepalive.c
 * act on them, in this step or the next. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_MARKS_H
#define PWC_ENGINE_MARKS_H

#include "daemon/engine/state/state.h"

/* A random id other than 0, which names our state for a peer. */
uint64_t peer_new_id(struct engine *e);
void peer_init(struct engine *e, uint32_t peer);
/* Makes the peer's entries at its first use; called before anything else about it. */
void peer_know(struct engine *e, uint32_t peer);
/* Keepalive watches the peer (keepalive.h) until nothing waits for it. */
void peer_watch(struct engine *e, uint32_t peer);
/* Puts the peer on the active list: the next step advances it. */
static inline void peer_activate(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    if (live->active)
        return;
    live->active = true;
    e->active[e->active_count++] = peer;
    if (!live->watched)
        peer_watch(e, peer);
}
/* The rest of peer_want: there is no link, and no handshake under way. */
void peer_want_link(struct engine *e, uint32_t peer);
/* Something waits for this peer: posts ENGINE_WANT_PEER unless a handshake is on its way. */
static inline void peer_want(struct engine *e, uint32_t peer)
{
    const struct peer_live *live = &e->peer_live[peer];

    if (live->link != LINK_UP && !live->wanted)
        peer_want_link(e, peer);
}
/* The fabric failed, a record of the peer makes no sense, or the peer is silent: marks the peer as
 * broken, and posts ENGINE_PEER_BROKEN, once for each link. */
void peer_broken(struct engine *e, uint32_t peer, int status);
/* Whether any flow waits for the peer. Looks first at the flow that the last call found, because it
 * often waits still. */
bool peer_flow_waits(struct engine *e, uint32_t peer);

#endif
