/*
 * Ends of operations to neighbours without the daemon. Owns nothing: their events are added to the
 * kept ones, in the order of submission, because all earlier operations to the same peer through
 * the daemon have ended and been collected.
 *
 * Thread: the one that owns the context.
 */
#include "clientlib/channel/channel.h"

int channel_own_prepare(struct channel *ch)
{
    return kept_prepare(&ch->kept);
}

int channel_own_hold(struct channel *ch, uint32_t id_len)
{
    int rc = channel_own_prepare(ch);

    /* Leave the space that is set aside for replies. */
    if (rc == 0)
        rc = channel_own_room(ch, id_len + ch->set_aside);
    if (rc == 0)
        ch->own_limit -= event_bytes(id_len);
    return rc;
}

void channel_own_release(struct channel *ch, uint32_t id_len)
{
    ch->own_limit += event_bytes(id_len);
}

void channel_own(struct channel *ch, uint8_t op, uint64_t peer, uint64_t bytes, const pwc_cid *id,
                 int32_t status)
{
    struct event_record *event = kept_add_own(&ch->kept, event_bytes((uint32_t)id->size));

    event->kind = EVENT_LOCAL;
    event->op = op;
    event->id_len = (uint16_t)id->size;
    event->status = status;
    event->peer = peer;
    event->bytes = bytes;
    event->id = id->size == 0 ? id->value : 0;
    if (id->size > 0)
        memcpy(event + 1, id->data, id->size);
}
