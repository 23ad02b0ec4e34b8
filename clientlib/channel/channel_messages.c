/*
 * Active messages on their way out of the rings. A message is handed over where it stands, and its
 * record is passed over when its handler has returned.
 *
 * A request that may be replied to waits in the remote ring, with all behind it, until there is
 * room for any reply: in the answer ring, which the daemon always drains, and of local event space,
 * some of which is set aside for replies. That space comes back as the daemon ends earlier replies,
 * which wait for nobody's handlers: local events that are in the way are kept. So only who leaves
 * more local events untaken than may be kept ever stops.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/fault.h"
#include "proto/wire_abi.h"

bool channel_block_valid(const struct channel *ch, const struct event_record *event)
{
    const struct message *block = (const struct message *)(event + 1);
    uint64_t bytes;

    if (event->id_len < sizeof(*block) || event->id_len > ch->block_max)
        return false;
    if (block->index >= SESSION_HANDLERS || block->arguments > SESSION_ARGUMENTS_MAX ||
        !submit_is_message(block->kind) ||
        (block->kind != SUBMIT_MEDIUM && block->payload_len != 0))
        return false;
    bytes = sizeof(*block) + 8u * block->arguments + (uint64_t)block->payload_len;
    return event->id_len == ((bytes + 7) & ~UINT64_C(7));
}

static bool message_valid(const struct channel *ch, const struct event_record *event, uint32_t size)
{
    return ch->deliver && size >= sizeof(*event) && size == event_bytes(event->id_len) &&
           channel_block_valid(ch, event);
}

/* Room for the longest reply in the answer ring. */
static bool has_answer_room(struct channel *ch)
{
    void *room;
    int rc = ring_reserve(&ch->answer.ring, ch->answer_max, &room);

    if (rc == -EPROTO)
        (void)channel_break(ch);
    return rc == 0;
}

/* Local event space for a reply with the longest id. */
static bool has_local_space(struct channel *ch)
{
    int rc = inbox_space(&ch->local, EVENT_BYTES_MAX);

    if (rc == -EPROTO)
        (void)channel_break(ch);
    return rc == 0;
}

static bool can_answer(struct channel *ch)
{
    return has_answer_room(ch) &&
           (has_local_space(ch) || (channel_collect(ch) != 0 && has_local_space(ch)));
}

bool channel_may_answer(struct channel *ch)
{
    return has_answer_room(ch) &&
           (has_local_space(ch) || (inbox_pending(&ch->local) && channel_can_collect(ch)));
}

int channel_hand_over(struct channel *ch, const struct event_record *event)
{
    const struct message *block = (const struct message *)(event + 1);
    struct event_record *told = (struct event_record *)(void *)ch->event;
    struct event_record tell = {
        .size = event_bytes(0),
        .kind = event->kind,
        .op = block->kind,
        .peer = event->peer,
        .bytes = block->kind == SUBMIT_LONG ? event->bytes : block->payload_len,
        .id = block->index,
    };
    int rc;

    FAULT(MESSAGE_MET);
    rc = ch->deliver(ch->deliver_context, event, &tell.status);
    FAULT(MESSAGE_RUN);
    *told = tell;
    return rc;
}

int channel_meet(struct channel *ch, struct inbox *inbox, const struct event_record *event,
                 uint32_t size)
{
    const struct message *block = (const struct message *)(event + 1);
    int rc;

    if (!message_valid(ch, event, size))
        return channel_break(ch);
    if (event->kind == EVENT_REQUEST && block->token != WIRE_NONE && !can_answer(ch)) {
        ch->hold = HOLD_ANSWER;
        return 0;
    }
    rc = channel_hand_over(ch, event);
    if (rc < 0)
        return rc;
    inbox_consume(inbox, size, inbox == &ch->reply ? event_bytes(ch->message_max) : 0);
    return 1;
}
