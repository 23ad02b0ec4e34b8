/*
 * The rings of a link: registered with the fabric, given back when the fabric lets go of them, and
 * exchanged for larger ones while the link is up.
 *
 * Growth: the sender is out of credit (WIRE_WANT); the receiver registers a ring of four times the
 * size and offers it; the sender takes memory of that size to mirror it and leaves the old ring
 * (WIRE_SWITCH), or declines. Each link begins with the smallest rings, and growth leaves memory
 * for these: both sides need memory of the ring's size, and a link must not wait for what others
 * have taken. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_RINGS_H
#define PWC_ENGINE_RINGS_H

#include "daemon/engine/state/state.h"

/* Takes an inbound ring for the next link, of the smallest size, and begins its registration.
 * -ENOMEM. */
int ring_prepare(struct engine *e, uint32_t peer);
/* Reports that there is no ring for a link that was asked for (ENGINE_PEER_BROKEN). The link is
 * not wanted any more, until somebody asks for it anew. */
void ring_lacks(struct engine *e, uint32_t peer, int status);
/* Withdraws a registered ring; its memory is free after the fabric has dropped the registration. */
void ring_part(struct engine *e, uint32_t peer, uint8_t *ring, uint32_t size,
               const struct fabric_memory *memory);
/* How many rings are on their way out. */
uint32_t rings_parting(const struct peer_live *live);
/* The fabric's answers about registrations. */
void ring_added(struct engine *e, uint32_t peer, bool next, int status,
                const struct fabric_memory *memory);
void ring_dropped(struct engine *e, uint32_t peer, uint32_t place, int status);
/* Withdraws again, after a pause, the rings that the fabric could not let go of. */
void rings_drop_again(struct engine *e);

/* Receiver: registers a larger ring. */
void ring_grow(struct engine *e, uint32_t peer);
/* Receiver: offers the ring once it is registered. No note is kept: a new link has rings of its
 * own. */
void ring_offer_larger(struct engine *e, uint32_t peer);
/* Receiver: the sender has left the old ring; or it has declined, and gets no offer for a while. */
void ring_switched(struct engine *e, uint32_t peer);
void ring_declined(struct engine *e, uint32_t peer);
/* Sender: leaves the old ring once the fabric has sent all that is staged in it. */
void ring_leave(struct engine *e, uint32_t peer);

#endif
