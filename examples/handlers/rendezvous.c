/* Messages that are fetched when a receive is posted for them (asynchronous matching in the sPIN
 * paper, 5.1). The sender sends a request: a tag, and where in its region the bytes are. If the
 * receiver has posted a receive for that tag, the receiver's daemon gets the bytes at once,
 * whatever the receiver does meanwhile; then it sends the sender an empty put with the tag as its
 * id. Else the request waits in the slot for the receiver, which gets the bytes itself.
 *
 *     sender                   receiver's daemon                   receiver's slot
 *     request: tag ----------> posted?                    <------- POSTED: place, room
 *     bytes <----- get ------- yes: GETTING; no: ARRIVED
 *     end <------- put ------- got: RECEIVED
 */
#include <pwc/handler.h>

enum { EMPTY, POSTED, ARRIVED, GETTING, RECEIVED, FAILED };

/* One slot for each tag. The receiver fills place and room in before it changes `state` from EMPTY
 * to POSTED by a compare-and-swap, which fails if the request is there already. */
struct slot {
    uint64_t state;
    uint64_t place, room;           /* the receive: where in the region, how many bytes */
    uint64_t sender, offset, bytes; /* the request */
};

struct rendezvous {
    uint64_t slots;
    struct slot slot[];
};

/* Arguments: tag, offset in the sender's region, bytes. */
PWC_HANDLER int header(const struct pwc_h_packet *p, struct rendezvous *s)
{
    const uint64_t *args = p->header;
    struct slot *slot = &s->slot[args[0]];
    int rc;

    if (args[0] >= s->slots || p->source == PWC_H_NONE || slot->state > POSTED)
        return PWC_H_FAIL;
    slot->sender = p->source;
    slot->offset = args[1];
    slot->bytes = args[2];
    if (__sync_val_compare_and_swap(&slot->state, EMPTY, ARRIVED) == EMPTY)
        return PWC_H_DROP; /* the request's event informs the receiver */
    if (slot->bytes > slot->room)
        return PWC_H_FAIL;
    rc = pwc_h_get(p->source, slot->offset, slot->place, slot->bytes, args[0], 0);
    if (rc == PWC_H_EAGAIN)
        return PWC_H_AGAIN;
    if (rc < 0)
        return PWC_H_FAIL;
    slot->state = GETTING;
    return PWC_H_DROP_PENDING;
}

/* This handler runs at the end of the request, too, but only the end of the get matters. */
PWC_HANDLER int completion(const struct pwc_h_packet *p, struct rendezvous *s)
{
    struct slot *slot = &s->slot[p->id];

    if (p->kind != PWC_H_GOT)
        return PWC_H_SUCCESS;
    slot->state = p->flags & PWC_H_FAILED ? FAILED : RECEIVED;
    if (slot->state == RECEIVED &&
        pwc_h_put(slot->sender, slot->offset, NULL, 0, p->id, 0) == PWC_H_EAGAIN)
        return PWC_H_AGAIN;
    return PWC_H_SUCCESS;
}
