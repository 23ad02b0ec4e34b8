/*
 * Submissions: reserves room for a record in the submit or reply_submit ring, and the event space
 * that the record holds. Owns nothing. Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel_route.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"

uint64_t channel_record_bytes(const struct submit_record *record)
{
    uint64_t bytes = sizeof(*record) + abi_pad8(record->lid_len) + abi_pad8(record->rid_len);

    if (record->flags & SUBMIT_INLINE) {
        if (record->length > SESSION_RING_MAX)
            return UINT64_MAX;
        bytes += abi_pad8((uint32_t)record->length);
    }
    return bytes;
}

/* Bytes of reply event space that a submission holds. */
static uint64_t reply_space(const struct channel *ch, const struct channel_outbox *outbox,
                            const struct submit_record *record)
{
    if (!submit_is_message(record->kind) || outbox != &ch->submit ||
        record->flags & SUBMIT_NO_REPLY)
        return 0;
    return event_bytes(ch->message_max);
}

int channel_begin(struct channel *ch, struct channel_outbox *outbox,
                  const struct submit_record *record, uint8_t **at)
{
    uint64_t bytes = channel_record_bytes(record);
    uint32_t reserve = event_bytes(record->lid_len);
    uint32_t set_aside = outbox == &ch->submit ? ch->set_aside : 0;
    uint64_t reply = reply_space(ch, outbox, record);
    void *room;
    int rc = channel_state(ch);

    if (rc < 0)
        return rc;
    if (outbox->open)
        return -EBUSY;
    if (bytes > outbox->record_max)
        return -EMSGSIZE;
    rc = inbox_space(&ch->local, reserve + set_aside);
    if (rc == 0 && reply > 0)
        rc = inbox_space(&ch->reply_event, reply);
    if (rc == 0)
        rc = ring_reserve(&outbox->ring, (uint32_t)bytes, &room);
    if (rc < 0)
        return rc == -EPROTO ? channel_break(ch) : rc;

    inbox_reserve(&ch->local, reserve);
    inbox_reserve(&ch->reply_event, reply);
    outbox->open = room;
    *outbox->open = *record;
    outbox->open->size = (uint32_t)bytes;
    outbox->open->reserve = reserve;
    *at = (uint8_t *)(outbox->open + 1);
    return 0;
}

/* Rings with a fence of our own. After the last of FENCED_PUBLICATIONS the daemon fences again. */
static uint32_t ring_fenced(struct channel *ch)
{
    uint32_t mode = doorbell_ring(&ch->shared->submit_bell);

    if (mode == DOORBELL_AWAKE && ch->daemon_fences && --ch->fenced == 0)
        doorbell_end_fenced(&ch->shared->waits.fenced);
    return mode;
}

/* Publishes the record that was written last: 0, CHANNEL_WAKES, CHANNEL_ENDS_BURST. */
static inline int publish(struct channel *ch, struct channel_outbox *outbox, uint32_t size)
{
    uint32_t mode;

    FAULT(SUBMIT_WRITTEN);
    ring_advance(&outbox->ring, size);
    ring_publish(&outbox->ring);
    FAULT(SUBMIT_PUBLISHED);
    mode = ch->fenced == 0 ? doorbell_ring_unfenced(&ch->shared->submit_bell) : ring_fenced(ch);
    if (mode == DOORBELL_AWAKE)
        return ch->submitted >= ch->burst_end ? CHANNEL_ENDS_BURST : 0;
    channel_begin_fenced(ch);
    return CHANNEL_WAKES;
}

int channel_commit(struct channel *ch, struct channel_outbox *outbox)
{
    uint32_t size = outbox->open->size;

    outbox->open = NULL;
    ch->submitted++;
    return publish(ch, outbox, size);
}

int channel_publish(struct channel *ch, uint32_t records)
{
    ch->submitted += records;
    return publish(ch, &ch->submit, 0);
}

/* Reserves room for this many bytes of records that are no operations. Returns 0, or an error as
 * channel_submit. */
static int note_room(struct channel *ch, uint32_t bytes, void **room)
{
    int rc = channel_state(ch);

    if (rc < 0)
        return rc;
    if (ch->submit.open)
        return -EBUSY;
    rc = ring_reserve(&ch->submit.ring, bytes, room);
    return rc == -EPROTO ? channel_break(ch) : rc;
}

int channel_note_room(struct channel *ch)
{
    void *room;

    return note_room(ch, 2 * sizeof(struct submit_record), &room);
}

int channel_note(struct channel *ch, const struct submit_record *record)
{
    struct submit_record *there;
    void *room;
    int rc = note_room(ch, sizeof(*there), &room);

    if (rc < 0)
        return rc;
    there = room;
    *there = *record;
    there->size = sizeof(*there);
    rc = publish(ch, &ch->submit, sizeof(*there));
    return rc == CHANNEL_ENDS_BURST ? 0 : rc;
}

int channel_wake(struct channel *ch, uint32_t remote, uint64_t peer)
{
    const struct submit_record record = {
        .kind = SUBMIT_WAKE,
        .remote = remote,
        .rid = remote == SUBMIT_NO_REMOTE ? peer : 0,
    };

    return channel_note(ch, &record);
}

/* Submits an operation whose ids are by value, and whose `length` bytes are packed. Compiled into
 * each caller, so that the record is written straight into the ring. */
static inline __attribute__((always_inline)) int
submit_packed(struct channel *ch, uint8_t kind, uint8_t code, uint32_t remote, uint64_t offset,
              const void *payload, uint32_t length, uint64_t lid, uint64_t rid, uint16_t flags)
{
    uint32_t size = (uint32_t)sizeof(struct submit_record) + abi_pad8(length);
    struct submit_record *record;
    void *room;
    int rc = channel_state(ch);

    if (rc < 0)
        return rc;
    if (ch->submit.open)
        return -EBUSY;
    if (size > ch->submit.record_max)
        return -EMSGSIZE;
    rc = inbox_space(&ch->local, event_bytes(0) + ch->set_aside);
    if (rc == 0)
        rc = ring_reserve(&ch->submit.ring, size, &room);
    if (rc < 0)
        return rc == -EPROTO ? channel_break(ch) : rc;
    inbox_reserve(&ch->local, event_bytes(0));
    record = room;
    *record = (struct submit_record){
        .size = size,
        .kind = kind,
        .code = code,
        .flags = flags | SUBMIT_INLINE,
        .remote = remote,
        .reserve = event_bytes(0),
        .offset = offset,
        .length = length,
        .lid = lid,
        .rid = rid,
    };
    if (length == sizeof(uint64_t)) /* the length of most small payloads */
        memcpy(record + 1, payload, sizeof(uint64_t));
    else
        (void)channel_append((uint8_t *)(record + 1), payload, length);
    ch->submitted++;
    return publish(ch, &ch->submit, size);
}

int channel_put(struct channel *ch, uint32_t remote, uint64_t offset, const void *payload,
                uint32_t length, uint64_t lid, uint64_t rid, uint16_t flags)
{
    return submit_packed(ch, SUBMIT_PUT, 0, remote, offset, payload, length, lid, rid, flags);
}

int channel_atomic(struct channel *ch, uint8_t code, uint32_t remote, uint64_t offset,
                   const void *operands, uint32_t length, uint64_t lid, uint64_t rid,
                   uint16_t flags)
{
    return submit_packed(ch, SUBMIT_ATOMIC, code, remote, offset, operands, length, lid, rid,
                         flags);
}

void channel_cancel(struct channel *ch, struct channel_outbox *outbox)
{
    inbox_unreserve(&ch->local, outbox->open->reserve);
    inbox_unreserve(&ch->reply_event, reply_space(ch, outbox, outbox->open));
    outbox->open = NULL;
}

int channel_submit(struct channel *ch, const struct submit_record *record, const void *lid,
                   const void *rid, const void *payload)
{
    uint8_t *at;
    int rc = channel_begin(ch, &ch->submit, record, &at);

    if (rc < 0)
        return rc;
    at = channel_append(at, lid, record->lid_len);
    at = channel_append(at, rid, record->rid_len);
    if (record->flags & SUBMIT_INLINE)
        (void)channel_append(at, payload, (uint32_t)record->length);
    return channel_commit(ch, &ch->submit);
}
