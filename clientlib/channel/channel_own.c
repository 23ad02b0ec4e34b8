/*
 * Ends of operations that went to a neighbour without the daemon. These events stand among
 * those that are kept, in the order of submission: all that went through the daemon before, towards
 * the same peer, has ended and been collected.
 *
 * Thread: the one that owns the context.
 */
#include "clientlib/channel/channel.h"

int channel_own_prepare(struct channel *ch)
{
    return kept_prepare(&ch->kept);
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
