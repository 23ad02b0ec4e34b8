/* Owns nothing: writes vectors into the submit ring (channel_vector.h). Thread: the one that owns
 * the context. */
#include "clientlib/channel/channel_vector.h"

#include <errno.h>

uint32_t channel_block_max(const struct channel *ch, uint32_t packed_max)
{
    uint64_t room = ch->submit.record_max - sizeof(struct submit_record);
    uint32_t most = submit_inline_max(SUBMIT_VECTOR, packed_max);

    return most < room ? most : (uint32_t)room;
}

int channel_vector_begin(struct channel_vector *v, struct channel *ch,
                         const struct submit_record *like, uint32_t slot, uint32_t packed_max)
{
    int rc = channel_state(ch);

    *v = (struct channel_vector){
        .ch = ch,
        .like = *like,
        .block_max = channel_block_max(ch, packed_max),
        .begun = ch->submit.ring.tail,
        .slot = slot,
    };
    return rc < 0 ? rc : ch->submit.open ? -EBUSY : 0;
}

/* Reserves room for a record of up to `bytes`, which the caller writes and then adds: 0, with the
 * record in *out, or an error. */
static int reserve(struct channel_vector *v, uint64_t bytes, struct submit_record **out)
{
    struct channel *ch = v->ch;
    void *room;
    int rc;

    if (bytes > ch->submit.record_max)
        return -EMSGSIZE;
    rc = inbox_space(&ch->local, event_bytes(0) + ch->set_aside);
    if (rc == 0)
        rc = ring_reserve(&ch->submit.ring, (uint32_t)bytes, &room);
    if (rc != 0)
        return rc == -EPROTO ? channel_break(ch) : rc;
    *out = room;
    return 0;
}

/* Flags of a record that is not the end. Only the first record has the fence, which so holds back
 * all. */
static uint16_t piece_flags(const struct channel_vector *v)
{
    uint32_t flags = v->like.flags & ~(uint32_t)(SUBMIT_NO_LCE | SUBMIT_FENCE | SUBMIT_NOTIFY);

    if (v->records == 0)
        flags |= v->like.flags & SUBMIT_FENCE;
    return (uint16_t)(flags | SUBMIT_NO_RCE | SUBMIT_SLOT | SUBMIT_MORE);
}

/* Adds a record, complete except for its size, to the series. */
static void add(struct channel_vector *v, struct submit_record *record, uint64_t size)
{
    record->size = (uint32_t)size;
    record->reserve = event_bytes(0);
    inbox_reserve(&v->ch->local, event_bytes(0));
    ring_advance(&v->ch->submit.ring, (uint32_t)size);
    v->last = record;
    v->records++;
}

static void close_block(struct channel_vector *v)
{
    if (!v->block)
        return;
    v->block->length = (uint64_t)(v->block_end - (uint8_t *)(v->block + 1));
    add(v, v->block, sizeof(*v->block) + v->block->length);
    v->block = NULL;
}

static int open_block(struct channel_vector *v)
{
    int rc = reserve(v, sizeof(*v->block) + v->block_max, &v->block);

    if (rc != 0)
        return rc;
    *v->block = (struct submit_record){
        .kind = SUBMIT_VECTOR,
        .code = SUBMIT_PUT,
        .flags = piece_flags(v) | SUBMIT_INLINE,
        .remote = v->like.remote,
        .lid = v->slot,
    };
    v->block_end = (uint8_t *)(v->block + 1);
    return 0;
}

int channel_vector_long(struct channel_vector *v, const struct submit_record *piece)
{
    struct submit_record *record = NULL;
    int rc = reserve(v, sizeof(*record), &record);

    if (rc != 0)
        return rc;
    *record = *piece;
    record->kind = v->like.kind;
    record->flags = piece_flags(v);
    record->remote = v->like.remote;
    add(v, record, sizeof(*record));
    return 0;
}

int channel_vector_short(struct channel_vector *v, uint64_t offset, const void *bytes,
                         uint32_t length)
{
    const struct vector_piece piece = {.place = offset << VECTOR_LENGTH_BITS | length};
    uint32_t size = (uint32_t)sizeof(piece) + abi_pad8(length);
    int rc = 0;

    if (v->block && (uint64_t)(v->block_end - (uint8_t *)(v->block + 1)) + size > v->block_max)
        close_block(v);
    if (!v->block)
        rc = open_block(v);
    if (rc < 0)
        return rc;
    memcpy(v->block_end, &piece, sizeof(piece));
    (void)channel_append(v->block_end + sizeof(piece), bytes, length);
    v->block_end += size;
    v->block->total += length;
    return 0;
}

int channel_vector_strided(struct channel_vector *v, const struct submit_record *first,
                           const struct submit_strided *elements)
{
    struct submit_record *record = NULL;
    int rc = reserve(v, sizeof(*record) + sizeof(*elements), &record);

    if (rc != 0)
        return rc;
    *record = (struct submit_record){
        .kind = SUBMIT_STRIDED,
        .code = SUBMIT_PUT,
        .flags = piece_flags(v) | SUBMIT_INLINE,
        .remote = v->like.remote,
        .total = (uint64_t)elements->element * elements->count,
        .length = sizeof(*elements),
        .lid = v->slot,
        .segment = first->segment,
        .local_offset = first->local_offset,
    };
    memcpy(record + 1, elements, sizeof(*elements));
    add(v, record, sizeof(*record) + sizeof(*elements));
    return 0;
}

/* Adds a record that is only the end, where the last block cannot be it. */
static int add_end(struct channel_vector *v, const void *rid)
{
    uint64_t size = sizeof(*v->last) + abi_pad8(v->like.rid_len);
    struct submit_record *record = NULL;
    int rc = reserve(v, size, &record);

    if (rc != 0)
        return rc;
    *record = (struct submit_record){
        .kind = SUBMIT_VECTOR,
        .code = v->like.kind,
        .flags = piece_flags(v),
        .remote = v->like.remote,
        .lid = v->slot,
        .rid_len = v->like.rid_len,
    };
    (void)channel_append((uint8_t *)(record + 1), rid, v->like.rid_len);
    add(v, record, size);
    return 0;
}

int channel_vector_end(struct channel_vector *v, const void *rid)
{
    bool event = !(v->like.flags & SUBMIT_NO_RCE);
    bool ends = v->block || (v->last && v->last->kind == SUBMIT_STRIDED);
    int rc = 0;

    close_block(v);
    /* A vector of gets without an event needs no end: its last get is the last record. */
    if (!(ends && v->like.rid_len == 0) && (event || v->like.kind == SUBMIT_PUT))
        rc = add_end(v, rid);
    if (rc < 0)
        return rc;
    v->last->flags &= (uint16_t)~SUBMIT_MORE;
    if (v->last->kind == SUBMIT_VECTOR || v->last->kind == SUBMIT_STRIDED)
        v->last->total = v->like.length;
    if (event) {
        v->last->flags &= (uint16_t)~SUBMIT_NO_RCE;
        v->last->flags |= v->like.flags & SUBMIT_NOTIFY;
        v->last->rid = v->like.rid;
    }
    v->ch->pending.slots[v->slot].left = v->records;
    return channel_publish(v->ch, v->records);
}

void channel_vector_cancel(struct channel_vector *v)
{
    v->ch->submit.ring.tail = v->begun;
    inbox_unreserve(&v->ch->local, (uint64_t)v->records * event_bytes(0));
}
