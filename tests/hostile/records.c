/* Makes records, and spoils them (records.h). To add a field: a row in `fields` or `block`. */
#include "tests/hostile/records.h"
#include "tests/count.h"

#include <string.h>

#define FIELD(name)                                                                                \
    {                                                                                              \
        offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)            \
    }
#define BLOCK(name)                                                                                \
    {                                                                                              \
        offsetof(struct message, name), sizeof(((struct message *)0)->name)                        \
    }

struct field {
    size_t at, bytes;
};

static const struct field fields[] = {
    FIELD(size),    FIELD(kind),    FIELD(code),    FIELD(flags),        FIELD(remote),
    FIELD(reserve), FIELD(offset),  FIELD(length),  FIELD(lid),          FIELD(rid),
    FIELD(lid_len), FIELD(rid_len), FIELD(segment), FIELD(local_offset),
};

static const struct field block[] = {
    BLOCK(index), BLOCK(kind),       BLOCK(arguments), BLOCK(slot),        BLOCK(offset),
    BLOCK(token), BLOCK(generation), BLOCK(deferred),  BLOCK(payload_len),
};

static void make_message(struct bytes *b, struct values *v, bool answer)
{
    struct submit_record *r = &b->record;
    struct message m = {.kind = r->kind, .arguments = (uint8_t)values_below(v, 4)};

    if (r->kind == SUBMIT_MEDIUM)
        m.payload_len = 8 * (uint32_t)values_below(v, 12);
    memcpy(b->more + abi_pad8(r->lid_len), &m, sizeof(m));
    r->rid_len = (uint16_t)(sizeof(m) + 8u * m.arguments + m.payload_len);
    if (!answer && values_below(v, 2))
        r->flags |= SUBMIT_NO_REPLY;
}

void record_make(struct bytes *out, struct values *v, const struct given *g, bool answer)
{
    struct submit_record *r = &out->record;
    uint32_t size;

    memset(out, 0, sizeof(*out));
    *r = (struct submit_record){
        .kind = (uint8_t)(answer ? SUBMIT_SHORT + values_below(v, 3)
                                 : SUBMIT_PUT + values_below(v, SUBMIT_KINDS - SUBMIT_PUT)),
        .remote = g->remotes[values_below(v, 2)],
        .offset = 8 * values_below(v, 512),
        .length = values_below(v, 200),
        .lid = values_any(v),
        .lid_len = (uint16_t)(values_below(v, 4) ? 0 : values_below(v, 100)),
        .segment = g->segment,
        .local_offset = values_below(v, 1000),
    };
    if (!answer)
        r->flags = (uint16_t)(values_below(v, 2) ? 0 : values_below(v, SUBMIT_FENCE));
    if (r->kind == SUBMIT_FLUSH) {
        r->flags = 0;
        r->length = 0;
    } else if (submit_is_message(r->kind)) {
        r->flags &= (uint16_t)~SUBMIT_NO_RCE;
        r->length = r->kind == SUBMIT_LONG ? r->length : 0;
        make_message(out, v, answer);
    } else {
        r->rid_len = (uint16_t)(values_below(v, 4) ? 0 : values_below(v, 100));
    }
    if (!submit_is_message(r->kind))
        r->rid = values_any(v);
    else if (answer)
        r->rid = g->token;
    size = sizeof(*r) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len);
    if (r->kind == SUBMIT_PUT && r->length > 0 && values_below(v, 2)) {
        r->flags |= SUBMIT_INLINE;
        size += abi_pad8((uint32_t)r->length);
    }
    r->size = size;
    r->reserve = event_bytes(r->lid_len);
}

static void spoil(uint8_t *base, const struct field *field, struct values *v)
{
    uint64_t value = 0;

    memcpy(&value, base + field->at, field->bytes);
    value = values_wrong(v, value);
    memcpy(base + field->at, &value, field->bytes);
}

uint32_t record_spoil(struct bytes *b, struct values *v)
{
    uint32_t count = 1 + (uint32_t)values_below(v, 3);
    uint32_t lid = abi_pad8(b->record.lid_len);
    bool message = submit_is_message(b->record.kind);

    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = values_below(v, COUNT(fields) + (message ? COUNT(block) : 0));

        if (at < COUNT(fields))
            spoil((uint8_t *)&b->record, &fields[at], v);
        else
            spoil(b->more + lid, &block[at - COUNT(fields)], v);
    }
    return count;
}
