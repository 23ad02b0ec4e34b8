/* The session of fake_session.h. */
#include "tests/clientlib/session/fake_session.h"

#include <stdio.h>
#include <string.h>

int fake_session_open(struct fake_session *s, const struct session_sizes *sizes)
{
    struct session_shared *shared;
    uint8_t *data;
    int rc;

    memset(s, 0, sizeof(*s));
    s->mapping.fd = -1;
    rc = mapping_create(&s->mapping, "fake session", session_bytes(sizes));
    if (rc < 0)
        return rc;
    s->shared = shared = s->mapping.base;
    data = (uint8_t *)s->mapping.base + SESSION_DATA_OFFSET;
    shared->magic = SESSION_MAGIC;
    shared->version = SESSION_VERSION;
    shared->strided = 1;
    shared->sizes = *sizes;
    shared->message_max = message_bytes_max(4096);
    atomic_store(&shared->state, SESSION_LIVE);
    ring_consumer_init(&s->submit, &shared->submit, data, sizes->submit, 0);
    data += sizes->submit;
    ring_producer_init(&s->local, &shared->local, data, sizes->local, 0);
    data += sizes->local;
    ring_producer_init(&s->remote, &shared->remote, data, sizes->remote, 0);
    data += sizes->remote;
    ring_consumer_init(&s->reply_submit, &shared->reply_submit, data, sizes->reply_submit, 0);
    data += sizes->reply_submit;
    ring_producer_init(&s->reply_event, &shared->reply_event, data, sizes->reply_event, 0);
    return 0;
}

void fake_session_close(struct fake_session *s)
{
    mapping_destroy(&s->mapping);
}

static const struct submit_record *read_ring(struct fake_session *s, struct ring_consumer *ring)
{
    uint32_t size;

    if (ring_copy(ring, s->record, sizeof(s->record), &size) != 1)
        return NULL;
    ring_consume(ring, size);
    ring_release(ring);
    return (const struct submit_record *)(const void *)s->record;
}

const struct submit_record *fake_session_read(struct fake_session *s)
{
    return read_ring(s, &s->submit);
}

const struct submit_record *fake_session_read_answer(struct fake_session *s)
{
    return read_ring(s, &s->reply_submit);
}

const void *fake_record_lid(const struct submit_record *record)
{
    return record + 1;
}

const void *fake_record_rid(const struct submit_record *record)
{
    return (const uint8_t *)(record + 1) + abi_pad8(record->lid_len);
}

const void *fake_record_payload(const struct submit_record *record)
{
    return (const uint8_t *)(record + 1) + abi_pad8(record->lid_len) + abi_pad8(record->rid_len);
}

int fake_session_post(struct fake_session *s, uint8_t kind, uint8_t op, uint64_t peer, int status,
                      uint64_t bytes, uint64_t id_value, const void *id, uint16_t id_len)
{
    struct ring_producer *ring = kind == EVENT_LOCAL   ? &s->local
                                 : kind == EVENT_REPLY ? &s->reply_event
                                                       : &s->remote;
    uint32_t size = event_bytes(id_len);
    struct event_record *event;
    void *room;
    int rc = ring_reserve(ring, size, &room);

    if (rc < 0)
        return rc;
    memset(room, 0, size);
    event = room;
    event->size = size;
    event->kind = kind;
    event->op = op;
    event->id_len = id_len;
    event->status = status;
    event->peer = peer;
    event->bytes = bytes;
    event->id = id_value;
    if (id_len > 0)
        memcpy(event + 1, id, id_len);
    ring_advance(ring, size);
    ring_publish(ring);
    return 0;
}

int fake_session_end_with(struct fake_session *s, const struct submit_record *record, uint64_t peer,
                          int status, uint64_t bytes)
{
    int rc = fake_session_post(s, EVENT_LOCAL, event_op(record->kind, record->flags), peer, status,
                               bytes, record->lid, fake_record_lid(record), record->lid_len);

    if (rc == 0)
        atomic_fetch_add(&s->shared->ended, 1);
    return rc;
}

int fake_session_end(struct fake_session *s, const struct submit_record *record, uint64_t peer,
                     int status)
{
    return fake_session_end_with(s, record, peer, status, status == 0 ? record->length : 0);
}

void fake_session_end_silent(struct fake_session *s, const struct submit_record *record)
{
    atomic_fetch_add(&s->shared->released, record->reserve);
    atomic_fetch_add(&s->shared->ended, 1);
}

void fake_session_release_reply(struct fake_session *s)
{
    atomic_fetch_add(&s->shared->reply_released, event_bytes(s->shared->message_max));
}
