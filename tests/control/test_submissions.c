/*
 * Each field of a submission, or of a reply to an active message, out of range.
 *
 *     test_submissions PWCD
 *
 * To add a kind of record: a row in `bases`, and its fields' rows in `fields`.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/control/lib/hostile_client.h"
#include "proto/word_abi.h"

#define INDEX   "submission ring: tail or record size out of range"
#define EVENT   "event ring: head out of range"
#define RECORD  "submission: a field is out of range"
#define REMOTE  "submission: a remote handle that was not given to this context"
#define SEGMENT "submission: memory outside the client's segments"
#define MESSAGE "submission: an active message that makes no sense"
#define REPLY   "answer: a reply to a request that is not owed one"
#define REPLIES "submission: more replies than their ring has room for"
#define RESERVE "submission: more local events than the ring has room for"

/* ---- fields of a submission ------------------------------------------------------------------ */

enum base {
    PUT,     /* from the segment, ids by value */
    IDS,     /* as PUT, with ids of 8 bytes */
    INLINE,  /* a put with its 64 bytes in the record */
    GET,     /* into the segment */
    FLUSH,   /* only a local event */
    SHORT,   /* an active message of only a block, without a reply */
    MEDIUM,  /* as SHORT, with 64 bytes in the block */
    LONG,    /* a put, with a block */
    SIGNAL,  /* a put, with a block that names a word */
    ATOMIC,  /* two words, whose values are fetched into the segment */
    LENGTHY, /* a put whose record ends at the ring's end */
};

struct bytes {
    struct submit_record record;
    union {
        struct message block; /* block of an active message */
        struct signal signal;
        uint64_t operands[4];
    };
    uint8_t more[RAW_RING - sizeof(struct submit_record) - sizeof(struct message)];
};

static void build_message(struct bytes *b, uint8_t kind, uint32_t payload)
{
    b->record.kind = b->block.kind = kind;
    b->record.flags = SUBMIT_NO_REPLY;
    b->record.rid = 0;
    b->record.rid_len = (uint16_t)(sizeof(b->block) + payload);
    b->record.size += b->record.rid_len;
    b->block.payload_len = payload;
    if (kind != SUBMIT_LONG)
        b->record.length = 0;
}

static void build_signal(struct bytes *b)
{
    b->record.kind = SUBMIT_SIGNAL;
    b->record.rid = 0;
    b->record.rid_len = sizeof(b->signal);
    b->record.size += sizeof(b->signal);
    b->signal.code = word_code(WORD_ADD, WORD_U64);
}

static void build_atomic(struct bytes *b)
{
    b->record.kind = SUBMIT_ATOMIC;
    b->record.code = word_code(WORD_ADD, WORD_U64);
    b->record.flags = SUBMIT_INLINE | SUBMIT_FETCH;
    b->record.length = 2 * sizeof(b->operands[0]);
    b->record.size += 2 * sizeof(b->operands[0]);
}

static void build(const struct raw_session *s, enum base base, struct bytes *out)
{
    struct submit_record *r = &out->record;

    memset(out, 0, sizeof(*out));
    *r = raw_put(s);
    switch (base) {
    case PUT:
        break;
    case IDS:
        r->lid_len = r->rid_len = 8;
        r->size += 16;
        r->reserve = event_bytes(8);
        break;
    case INLINE:
        r->flags = SUBMIT_INLINE;
        r->size += 64;
        break;
    case GET:
        r->kind = SUBMIT_GET;
        break;
    case FLUSH:
        r->kind = SUBMIT_FLUSH;
        r->length = 0;
        break;
    case SHORT:
        build_message(out, SUBMIT_SHORT, 0);
        break;
    case MEDIUM:
        build_message(out, SUBMIT_MEDIUM, 64);
        break;
    case LONG:
        build_message(out, SUBMIT_LONG, 0);
        break;
    case SIGNAL:
        build_signal(out);
        break;
    case ATOMIC:
        build_atomic(out);
        break;
    case LENGTHY:
        r->size = RAW_RING;
        break;
    }
}

static void bases_are_good(void)
{
    struct raw_session s;
    struct bytes b;

    hostile_open(&s);
    for (enum base base = PUT; base < LENGTHY; base++) {
        build(&s, base, &b);
        raw_submit(&s, &b, b.record.size, b.record.size);
        hostile_event(&s, 0);
    }
    hostile_leave(&s);
}

/* Which value a row has: its own, or one that only the daemon gives. */
enum given { A_VALUE, NEIGHBOURS_REMOTE, NEIGHBOURS_SEGMENT };

#define FIELD(name)                                                                                \
#name, offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)
#define BLOCK(name)                                                                                \
    "block." #name, offsetof(struct bytes, block.name), sizeof(((struct message *)0)->name)
#define WORD(name)                                                                                 \
    "signal." #name, offsetof(struct bytes, signal.name), sizeof(((struct signal *)0)->name)

static const struct {
    enum base base;
    const char *name;
    size_t at, bytes;
    uint64_t value;
    const char *reason; /* of the quarantine; NULL: the operation ends with `status` */
    int status;
    enum given given;
} fields[] = {
    {PUT, FIELD(size), 0, .reason = INDEX},
    {PUT, FIELD(size), 4, .reason = INDEX},
    {PUT, FIELD(size), 60, .reason = INDEX},
    {PUT, FIELD(size), 65, .reason = INDEX},
    {PUT, FIELD(size), 8, .reason = RECORD},
    {PUT, FIELD(size), 56, .reason = RECORD},
    {PUT, FIELD(size), 72, .reason = INDEX}, /* more than the tail has announced */
    {PUT, FIELD(size), RAW_RING, .reason = INDEX},
    {PUT, FIELD(size), RAW_RING + 64, .reason = INDEX},
    {PUT, FIELD(size), 1u << 31, .reason = INDEX},
    {PUT, FIELD(size), UINT32_MAX, .reason = INDEX},
    {LENGTHY, FIELD(size), RAW_RING, .reason = RECORD}, /* longer than any record may be */
    {LENGTHY, FIELD(size), RAW_RING - 8, .reason = RECORD},

    {PUT, FIELD(kind), SUBMIT_PAD, .reason = INDEX}, /* padding that does not end at the end */
    {LENGTHY, FIELD(kind), SUBMIT_PAD, .reason = INDEX},
    {PUT, FIELD(kind), SUBMIT_LONG + 1, .reason = RECORD},
    {PUT, FIELD(kind), 255, .reason = RECORD},

    {PUT, FIELD(flags), 0x1000, .reason = RECORD},
    {PUT, FIELD(flags), SUBMIT_NOTIFY | SUBMIT_NO_RCE, .reason = RECORD},
    {IDS, FIELD(flags), SUBMIT_NOTIFY, .reason = RECORD}, /* its remote id is not by value */
    {FLUSH, FIELD(flags), SUBMIT_NOTIFY, .reason = RECORD},
    {PUT, FIELD(flags), 0x4000, .reason = RECORD},
    {PUT, FIELD(flags), UINT16_MAX, .reason = RECORD},
    {PUT, FIELD(flags), SUBMIT_INLINE, .reason = RECORD}, /* the bytes are missing */
    {INLINE, FIELD(flags), 0, .reason = RECORD},          /* bytes without a use */
    {GET, FIELD(flags), SUBMIT_INLINE, .reason = RECORD},
    {FLUSH, FIELD(flags), SUBMIT_INLINE, .reason = RECORD},
    {FLUSH, FIELD(flags), SUBMIT_UNORDERED, .reason = RECORD},

    {PUT, FIELD(remote), UINT32_MAX, .reason = REMOTE},
    {PUT, FIELD(remote), 1u << 31, .reason = REMOTE},
    {PUT, FIELD(remote), 1000, .reason = REMOTE},
    {PUT, FIELD(remote), 0, .reason = REMOTE, .given = NEIGHBOURS_REMOTE},
    {GET, FIELD(remote), UINT32_MAX, .reason = REMOTE},
    {FLUSH, FIELD(remote), UINT32_MAX, .reason = REMOTE},

    {PUT, FIELD(reserve), 0, .reason = RESERVE},
    {PUT, FIELD(reserve), EVENT_BYTES - 8, .reason = RESERVE},
    {PUT, FIELD(reserve), EVENT_BYTES + 8, .reason = RESERVE},
    {PUT, FIELD(reserve), UINT32_MAX, .reason = RESERVE},
    {IDS, FIELD(reserve), EVENT_BYTES, .reason = RESERVE},
    {FLUSH, FIELD(reserve), 0, .reason = RESERVE},

    {PUT, FIELD(offset), RAW_SEGMENT - 63, .status = -ERANGE},
    {PUT, FIELD(offset), RAW_SEGMENT + 1, .status = -ERANGE},
    {PUT, FIELD(offset), UINT64_MAX, .status = -ERANGE},
    {PUT, FIELD(offset), UINT64_MAX - 63, .status = -ERANGE},
    {INLINE, FIELD(offset), UINT64_MAX - 63, .status = -ERANGE},
    {GET, FIELD(offset), RAW_SEGMENT - 63, .status = -ERANGE},
    {GET, FIELD(offset), UINT64_MAX - 63, .status = -ERANGE},

    {PUT, FIELD(length), RAW_SEGMENT / 2 + 1, .status = -ERANGE},
    {PUT, FIELD(length), RAW_SEGMENT + 1, .reason = SEGMENT},
    {PUT, FIELD(length), UINT32_MAX, .reason = SEGMENT},
    {PUT, FIELD(length), UINT64_C(1) << 32, .status = -EMSGSIZE},
    {PUT, FIELD(length), UINT64_MAX, .status = -EMSGSIZE},
    {GET, FIELD(length), RAW_SEGMENT + 1, .reason = SEGMENT},
    {GET, FIELD(length), UINT64_MAX, .status = -EMSGSIZE},
    {FLUSH, FIELD(length), 1, .reason = RECORD},
    {FLUSH, FIELD(length), UINT64_MAX, .reason = RECORD},
    {INLINE, FIELD(length), 0, .reason = RECORD},
    {INLINE, FIELD(length), 56, .reason = RECORD}, /* fewer than there are */
    {INLINE, FIELD(length), 65, .reason = RECORD},
    {INLINE, FIELD(length), 4097, .reason = RECORD},
    {INLINE, FIELD(length), (UINT64_C(1) << 32) + 64, .reason = RECORD},
    {INLINE, FIELD(length), UINT64_MAX, .reason = RECORD},
    {INLINE, FIELD(length), UINT64_MAX - 6, .reason = RECORD},

    {PUT, FIELD(lid_len), 1, .reason = RECORD},
    {PUT, FIELD(lid_len), SESSION_ID_MAX, .reason = RECORD},
    {PUT, FIELD(lid_len), SESSION_ID_MAX + 1, .reason = RECORD},
    {PUT, FIELD(lid_len), UINT16_MAX, .reason = RECORD},
    {IDS, FIELD(lid_len), 0, .reason = RECORD},
    {IDS, FIELD(lid_len), 9, .reason = RECORD},
    {PUT, FIELD(rid_len), 1, .reason = RECORD},
    {PUT, FIELD(rid_len), SESSION_ID_MAX + 1, .reason = RECORD},
    {PUT, FIELD(rid_len), UINT16_MAX, .reason = RECORD},
    {IDS, FIELD(rid_len), 0, .reason = RECORD},
    {IDS, FIELD(rid_len), UINT16_MAX, .reason = RECORD},

    {PUT, FIELD(segment), UINT32_MAX, .reason = SEGMENT},
    {PUT, FIELD(segment), 1000, .reason = SEGMENT},
    {PUT, FIELD(segment), 0, .reason = SEGMENT, .given = NEIGHBOURS_SEGMENT},
    {GET, FIELD(segment), UINT32_MAX, .reason = SEGMENT},
    {GET, FIELD(segment), 0, .reason = SEGMENT, .given = NEIGHBOURS_SEGMENT},

    {PUT, FIELD(local_offset), RAW_SEGMENT - 63, .reason = SEGMENT},
    {PUT, FIELD(local_offset), RAW_SEGMENT + 1, .reason = SEGMENT},
    {PUT, FIELD(local_offset), UINT64_MAX, .reason = SEGMENT},
    {PUT, FIELD(local_offset), UINT64_MAX - 63, .reason = SEGMENT},
    {GET, FIELD(local_offset), RAW_SEGMENT - 63, .reason = SEGMENT},
    {GET, FIELD(local_offset), UINT64_MAX - 63, .reason = SEGMENT},

    {SHORT, FIELD(kind), SUBMIT_MEDIUM, .reason = MESSAGE}, /* differs from the block */
    {SHORT, FIELD(kind), SUBMIT_LONG, .reason = MESSAGE},
    {SHORT, FIELD(flags), SUBMIT_NO_RCE, .reason = MESSAGE}, /* a message must be delivered */
    {SHORT, FIELD(flags), SUBMIT_NOTIFY, .reason = RECORD},
    {SHORT, FIELD(flags), SUBMIT_INLINE, .reason = RECORD},
    {SHORT, FIELD(remote), UINT32_MAX, .reason = REMOTE},
    {SHORT, FIELD(remote), 0, .reason = REMOTE, .given = NEIGHBOURS_REMOTE},
    {SHORT, FIELD(reserve), 0, .reason = RESERVE},
    {SHORT, FIELD(length), 1, .reason = MESSAGE},
    {MEDIUM, FIELD(length), UINT64_MAX, .reason = MESSAGE},
    {SHORT, FIELD(rid), 1, .reason = MESSAGE},
    {SHORT, FIELD(rid_len), 0, .reason = RECORD},
    {SHORT, FIELD(rid_len), 31, .reason = MESSAGE}, /* with its padding as long as 32 */
    {SHORT, FIELD(rid_len), UINT16_MAX, .reason = RECORD},
    {LONG, FIELD(offset), RAW_SEGMENT - 63, .status = -ERANGE},
    {LONG, FIELD(length), RAW_SEGMENT + 1, .reason = SEGMENT},
    {LONG, FIELD(length), UINT64_MAX, .status = -EMSGSIZE},
    {LONG, FIELD(segment), UINT32_MAX, .reason = SEGMENT},
    {LONG, FIELD(segment), 0, .reason = SEGMENT, .given = NEIGHBOURS_SEGMENT},
    {LONG, FIELD(local_offset), UINT64_MAX - 63, .reason = SEGMENT},
    {SHORT, BLOCK(index), SESSION_HANDLERS, .reason = MESSAGE},
    {SHORT, BLOCK(index), UINT16_MAX, .reason = MESSAGE},
    {SHORT, BLOCK(kind), 0, .reason = MESSAGE},
    {SHORT, BLOCK(kind), SUBMIT_PUT, .reason = MESSAGE},
    {SHORT, BLOCK(kind), SUBMIT_MEDIUM, .reason = MESSAGE},
    {SHORT, BLOCK(kind), 255, .reason = MESSAGE},
    {SHORT, BLOCK(arguments), 1, .reason = MESSAGE}, /* more than the block has */
    {SHORT, BLOCK(arguments), SESSION_ARGUMENTS_MAX + 1, .reason = MESSAGE},
    {SHORT, BLOCK(arguments), 255, .reason = MESSAGE},
    {MEDIUM, BLOCK(arguments), 8, .reason = MESSAGE},
    {SHORT, BLOCK(payload_len), 8, .reason = MESSAGE},
    {SHORT, BLOCK(payload_len), UINT32_MAX, .reason = MESSAGE},
    {SHORT, BLOCK(payload_len), UINT32_MAX - 6, .reason = MESSAGE},
    {MEDIUM, BLOCK(payload_len), 56, .reason = MESSAGE},
    {MEDIUM, BLOCK(payload_len), 72, .reason = MESSAGE},
    {MEDIUM, BLOCK(payload_len), 4097, .reason = MESSAGE},
    {MEDIUM, BLOCK(payload_len), UINT32_MAX, .reason = MESSAGE},
    {LONG, BLOCK(payload_len), 8, .reason = MESSAGE},
    {LONG, BLOCK(kind), SUBMIT_SHORT, .reason = MESSAGE},

    /* A put with signal has no remote event anyway. */
    {SIGNAL, FIELD(flags), SUBMIT_NO_RCE, .reason = RECORD},
    {SIGNAL, FIELD(flags), SUBMIT_NOTIFY, .reason = RECORD},
    {SIGNAL, FIELD(flags), SUBMIT_MORE, .reason = RECORD},
    {SIGNAL, FIELD(remote), 0, .reason = REMOTE, .given = NEIGHBOURS_REMOTE},
    {SIGNAL, FIELD(offset), RAW_SEGMENT - 63, .status = -ERANGE},
    {SIGNAL, FIELD(length), RAW_SEGMENT + 1, .reason = SEGMENT},
    {SIGNAL, FIELD(length), UINT64_MAX, .status = -EMSGSIZE},
    {SIGNAL, FIELD(rid_len), 0, .reason = RECORD},
    {SIGNAL, FIELD(rid_len), 31, .reason = RECORD}, /* with its padding as long as 32 */
    {SIGNAL, FIELD(segment), 0, .reason = SEGMENT, .given = NEIGHBOURS_SEGMENT},
    {SIGNAL, FIELD(local_offset), UINT64_MAX - 63, .reason = SEGMENT},
    {SIGNAL, WORD(offset), RAW_SEGMENT - 8, .status = 0},
    {SIGNAL, WORD(offset), RAW_SEGMENT - 7, .status = -ERANGE},
    {SIGNAL, WORD(offset), UINT64_MAX - 7, .status = -ERANGE},
    {SIGNAL, WORD(offset), 4, .status = -EINVAL},
    {SIGNAL, WORD(slot), UINT32_MAX, .status = 0}, /* the daemon overwrites slot and generation */
    {SIGNAL, WORD(generation), UINT32_MAX, .status = 0},
    {SIGNAL, WORD(code), WORD_ADD | WORD_U32 << 4, .reason = RECORD},
    {SIGNAL, WORD(code), WORD_READ | WORD_U64 << 4, .reason = RECORD},
    {SIGNAL, WORD(code), UINT8_MAX, .reason = RECORD},

    {ATOMIC, FIELD(code), WORD_OPS | WORD_U64 << 4, .reason = RECORD},
    {ATOMIC, FIELD(code), WORD_ADD | WORD_TYPES << 4, .reason = RECORD},
    {ATOMIC, FIELD(code), WORD_AND | WORD_F64 << 4, .reason = RECORD},
    {ATOMIC, FIELD(code), UINT8_MAX, .reason = RECORD},
    {ATOMIC, FIELD(flags), 0, .reason = RECORD}, /* operands without a use */
    {ATOMIC, FIELD(flags), SUBMIT_INLINE | SUBMIT_MORE, .reason = RECORD},
    {ATOMIC, FIELD(remote), 0, .reason = REMOTE, .given = NEIGHBOURS_REMOTE},
    {ATOMIC, FIELD(offset), RAW_SEGMENT - 16, .status = 0},
    {ATOMIC, FIELD(offset), RAW_SEGMENT - 8, .status = -ERANGE},
    {ATOMIC, FIELD(offset), 4, .status = -EINVAL},
    {ATOMIC, FIELD(length), 0, .reason = RECORD},
    {ATOMIC, FIELD(length), 8, .reason = RECORD},  /* fewer operands than there are */
    {ATOMIC, FIELD(length), 15, .reason = RECORD}, /* a part of a word */
    {ATOMIC, FIELD(length), UINT64_MAX, .reason = RECORD},
    {ATOMIC, FIELD(segment), 0, .reason = SEGMENT, .given = NEIGHBOURS_SEGMENT},
    {ATOMIC, FIELD(local_offset), RAW_SEGMENT - 15, .reason = SEGMENT},
};

static void fields_out_of_range(void)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint64_t value = fields[i].given == NEIGHBOURS_REMOTE    ? hostile_neighbour()->remote
                         : fields[i].given == NEIGHBOURS_SEGMENT ? hostile_neighbour()->segment
                                                                 : fields[i].value;
        unsigned failures = CU_get_number_of_failures();
        struct raw_session s;
        struct bytes b;
        uint32_t size;

        hostile_open(&s);
        build(&s, fields[i].base, &b);
        size = b.record.size;
        memcpy((uint8_t *)&b + fields[i].at, &value, fields[i].bytes);
        raw_submit(&s, &b, size, size);
        if (fields[i].reason) {
            hostile_quarantined(&s, fields[i].reason);
        } else {
            hostile_event(&s, fields[i].status);
            hostile_served(&s);
            hostile_leave(&s);
        }
        if (CU_get_number_of_failures() != failures)
            fprintf(stderr, "base %d: %s = %#llx\n", fields[i].base, fields[i].name,
                    (unsigned long long)value);
    }
}

/* ---- answers to active messages -------------------------------------------------------------- */

/* Sends a request of the client to itself that may be replied to. Returns the token that a reply
 * must name. */
static uint64_t request(struct raw_session *s)
{
    struct event_record event = {0};
    struct message block = {0};
    struct bytes b;

    build(s, SHORT, &b);
    b.record.flags = 0;
    raw_submit(s, &b, b.record.size, b.record.size);
    hostile_event(s, 0);
    CU_ASSERT_EQUAL_FATAL(raw_remote_event(s, &event, &block), 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, EVENT_REQUEST);
    return block.token;
}

static void build_answer(const struct raw_session *s, uint64_t token, struct bytes *out)
{
    build(s, SHORT, out);
    out->record.flags = 0;
    out->record.rid = token;
}

static void answers_out_of_range(void)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        uint64_t value;
        const char *reason;
    } rows[] = {
        {FIELD(size), 0, INDEX},
        {FIELD(size), 72, RECORD},
        {FIELD(kind), SUBMIT_PUT, RECORD},
        {FIELD(kind), SUBMIT_FLUSH, RECORD},
        {FIELD(kind), SUBMIT_LONG, MESSAGE},
        {FIELD(flags), SUBMIT_NOTIFY, RECORD},
        {FIELD(reserve), 0, RESERVE},
        {FIELD(length), 1, MESSAGE},
        {FIELD(rid), UINT32_MAX, REPLY},
        {FIELD(rid), UINT64_MAX, REPLY},
        {FIELD(rid), UINT64_C(1) << 32, REPLY},
        {FIELD(rid), 1000, REPLY},
        {FIELD(rid_len), 0, RECORD},
        {BLOCK(index), SESSION_HANDLERS, MESSAGE},
        {BLOCK(arguments), 255, MESSAGE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned failures = CU_get_number_of_failures();
        struct raw_session s;
        struct bytes b;
        uint32_t size;

        hostile_open(&s);
        build_answer(&s, request(&s), &b);
        size = b.record.size;
        memcpy((uint8_t *)&b + rows[i].at, &rows[i].value, rows[i].bytes);
        raw_answer(&s, &b, size, size);
        hostile_quarantined(&s, rows[i].reason);
        if (CU_get_number_of_failures() != failures)
            fprintf(stderr, "answer: %s = %#llx\n", rows[i].name,
                    (unsigned long long)rows[i].value);
    }
}

/* A reply to a request that asked for none, one reply too many, and a Long reply that leads
 * elsewhere. */
static void answers_not_owed(void)
{
    struct raw_session s;
    struct bytes b;

    hostile_open(&s);
    build_answer(&s, request(&s), &b);
    raw_answer(&s, &b, b.record.size, b.record.size);
    hostile_event(&s, 0);
    raw_answer(&s, &b, b.record.size, b.record.size);
    hostile_quarantined(&s, REPLY);

    hostile_open(&s);
    build_answer(&s, 0, &b);
    raw_answer(&s, &b, b.record.size, b.record.size);
    hostile_quarantined(&s, REPLY);

    hostile_open(&s);
    build(&s, LONG, &b);
    b.record.flags = 0;
    b.record.rid = request(&s);
    b.record.remote = hostile_neighbour()->remote;
    raw_answer(&s, &b, b.record.size, b.record.size);
    hostile_quarantined(&s, REMOTE);
}

static void answer_tails_out_of_range(void)
{
    static const uint64_t tails[] = {4, RAW_RING + 8, UINT64_MAX - 7};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        struct raw_session s;

        hostile_open(&s);
        raw_answer(&s, NULL, 0, tails[i]);
        hostile_quarantined(&s, INDEX);
    }
}

/* Requests reserve space for their replies: the client sends more requests than there is space for,
 * and moves the head out of range. */
static void replies_out_of_range(void)
{
    static const struct {
        uint64_t head;
        const char *reason;
    } rows[] = {{0, REPLIES}, {4, EVENT}, {RAW_RING, EVENT}, {UINT64_MAX - 7, EVENT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw_session s;
        struct bytes b;

        hostile_open(&s);
        build(&s, SHORT, &b);
        b.record.flags = SUBMIT_NO_LCE;
        atomic_store(&s.shared->reply_event.head, rows[i].head);
        for (int n = 0; n < 20; n++)
            raw_submit(&s, &b, b.record.size, b.record.size);
        hostile_quarantined(&s, rows[i].reason);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"bases are good", bases_are_good},
                           {"fields out of range", fields_out_of_range},
                           {"answers out of range", answers_out_of_range},
                           {"answers not owed", answers_not_owed},
                           {"tails of answers out of range", answer_tails_out_of_range},
                           {"replies out of range", replies_out_of_range},
                           {"others go on", hostile_others_go_on},
                           CU_TEST_INFO_NULL};

    return hostile_main(argc, argv, "submissions", tests);
}
