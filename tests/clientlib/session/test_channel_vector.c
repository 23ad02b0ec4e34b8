/*
 * Vectors in the submit ring, read by the test in place of a daemon: the fields of a series'
 * records, where a block ends, and that a series without room leaves no record.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/channel/channel_vector.h"
#include "tests/count.h"
#include "tests/clientlib/session/fake_channel.h"
#include "tests/suite.h"

enum { RING = SESSION_RING_MIN, PACKED_MAX = 100, REMOTE = 7, LID = 99, RID = 1234 };

/* A session, and the channel over a second mapping of it. */
struct pair {
    struct fake_session daemon;
    struct mapping mapping;
    struct channel channel;
    struct channel_vector v;
};

static struct pair *pair_new(void)
{
    static const struct session_sizes sizes = {RING, 4 * RING, RING, RING, RING};
    struct pair *p = calloc(1, sizeof(*p));

    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    fake_channel_open(&p->daemon, &p->mapping, &p->channel, &sizes);
    return p;
}

static void pair_free(struct pair *p)
{
    fake_channel_close(&p->daemon, &p->mapping, &p->channel);
    free(p);
}

/* Begins a vector with these flags and a remote id of this many bytes (0: by value). */
static int begin(struct pair *p, uint8_t kind, uint16_t flags, uint16_t rid_len)
{
    const pwc_cid lid = pwc_cid_u64(LID);
    const struct submit_record like = {.kind = kind,
                                       .flags = flags,
                                       .remote = REMOTE,
                                       .length = 5000,
                                       .rid = rid_len ? 0 : RID,
                                       .rid_len = rid_len};
    int64_t slot = pending_begin_vector(&p->channel.pending, &lid, flags, kind, 5000);

    CU_ASSERT_FATAL(slot >= 0);
    return channel_vector_begin(&p->v, &p->channel, &like, (uint32_t)slot, PACKED_MAX);
}

static int add_long(struct pair *p, uint64_t offset)
{
    const struct submit_record piece = {.offset = offset,
                                        .length = 3000,
                                        .segment = 5,
                                        .local_offset = 2 * offset,
                                        .lid = p->v.slot};

    return channel_vector_long(&p->v, &piece);
}

/* Reads the next record: it has the fields that all records of a series share, and these flags. */
static const struct submit_record *expect_record(struct pair *p, uint8_t kind, unsigned flags)
{
    const struct submit_record *r = fake_session_read(&p->daemon);

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL(r->kind, kind);
    CU_ASSERT_EQUAL(r->flags, flags);
    CU_ASSERT_EQUAL(r->remote, REMOTE);
    CU_ASSERT_EQUAL(r->lid, p->v.slot);
    CU_ASSERT_EQUAL(r->lid_len, 0);
    CU_ASSERT_EQUAL(r->reserve, event_bytes(0));
    CU_ASSERT_EQUAL(r->size,
                    sizeof(*r) + abi_pad8(r->rid_len) + (r->flags & SUBMIT_INLINE ? r->length : 0));
    return r;
}

static void expect_no_record(struct pair *p)
{
    CU_ASSERT_PTR_NULL(fake_session_read(&p->daemon));
}

/* ---- series ---------------------------------------------------------------------------------- */

#define PIECE_FLAGS (SUBMIT_NO_RCE | SUBMIT_SLOT | SUBMIT_MORE)

/* Long pieces of puts and gets: the first record carries the fence, the last one the event. */
static void test_long_pieces(void)
{
    static const struct {
        uint8_t kind;
        uint16_t flags;
        unsigned first, second, end; /* flags; end 0: the second ends the series */
    } rows[] = {
        {SUBMIT_PUT, 0, PIECE_FLAGS, PIECE_FLAGS, SUBMIT_SLOT},
        {SUBMIT_GET, 0, PIECE_FLAGS, PIECE_FLAGS, SUBMIT_SLOT},
        {SUBMIT_PUT, SUBMIT_NO_RCE, PIECE_FLAGS, PIECE_FLAGS, SUBMIT_SLOT | SUBMIT_NO_RCE},
        {SUBMIT_GET, SUBMIT_NO_RCE, PIECE_FLAGS, SUBMIT_SLOT | SUBMIT_NO_RCE, 0},
        {SUBMIT_PUT, SUBMIT_FENCE | SUBMIT_NO_LCE, PIECE_FLAGS | SUBMIT_FENCE, PIECE_FLAGS,
         SUBMIT_SLOT},
        {SUBMIT_GET, SUBMIT_NOTIFY | SUBMIT_UNORDERED, PIECE_FLAGS | SUBMIT_UNORDERED,
         PIECE_FLAGS | SUBMIT_UNORDERED, SUBMIT_SLOT | SUBMIT_NOTIFY | SUBMIT_UNORDERED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair *p = pair_new();
        const struct submit_record *r;

        CU_ASSERT_EQUAL_FATAL(begin(p, rows[i].kind, rows[i].flags, 0), 0);
        CU_ASSERT_EQUAL(add_long(p, 10), 0);
        CU_ASSERT_EQUAL(add_long(p, 20), 0);
        expect_no_record(p); /* none before the end */
        CU_ASSERT_EQUAL(channel_vector_end(&p->v, NULL), 0);
        CU_ASSERT_EQUAL(p->channel.pending.slots[p->v.slot].left, rows[i].end ? 3 : 2);
        r = expect_record(p, rows[i].kind, rows[i].first);
        CU_ASSERT(r->offset == 10 && r->length == 3000 && r->segment == 5 && r->local_offset == 20);
        r = expect_record(p, rows[i].kind, rows[i].second);
        CU_ASSERT(r->offset == 20 && r->length == 3000 && r->segment == 5 && r->local_offset == 40);
        if (rows[i].end) {
            r = expect_record(p, SUBMIT_VECTOR, rows[i].end);
            CU_ASSERT(r->code == rows[i].kind && r->length == 0 && r->total == 5000);
            CU_ASSERT_EQUAL(r->rid, rows[i].end & SUBMIT_NO_RCE ? 0 : RID);
        }
        expect_no_record(p);
        pair_free(p);
    }
}

/* Pieces in blocks: the last block ends the series. Where the remote id is longer than a word, a
 * record of its own follows with the id, and ends the series. */
static void test_blocks(void)
{
    enum { BLOCK = sizeof(struct vector_piece) + ((PACKED_MAX + 7) & ~7) };
    static const struct {
        uint32_t length, pieces, blocks;
        uint16_t rid_len;
    } rows[] = {
        {1, 1, 1, 0},   {1, 7, 1, 0},   {1, 8, 2, 0}, /* 16 bytes each, of 112 */
        {8, 7, 1, 0},   {9, 4, 1, 0},   {9, 5, 2, 0}, /* 24 bytes each */
        {100, 1, 1, 0}, {100, 3, 3, 0}, {0, 14, 1, 0}, {0, 15, 2, 0}, {8, 7, 1, 9}, {8, 8, 2, 13},
    };
    uint8_t bytes[PACKED_MAX], rid[16];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 3 + 1);
    for (size_t i = 0; i < sizeof(rid); i++)
        rid[i] = (uint8_t)(i * 5 + 2);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair *p = pair_new();
        uint32_t piece_bytes = sizeof(struct vector_piece) + abi_pad8(rows[i].length);
        uint32_t done = 0;

        CU_ASSERT_EQUAL(channel_block_max(&p->channel, PACKED_MAX), BLOCK);
        CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_PUT, 0, rows[i].rid_len), 0);
        for (uint32_t n = 0; n < rows[i].pieces; n++)
            CU_ASSERT_EQUAL(channel_vector_short(&p->v, 1000 + n, bytes, rows[i].length), 0);
        CU_ASSERT_EQUAL(channel_vector_end(&p->v, rid), 0);
        for (uint32_t b = 0; b < rows[i].blocks; b++) {
            bool last = b + 1 == rows[i].blocks, end = last && rows[i].rid_len == 0;
            const struct submit_record *r =
                expect_record(p, SUBMIT_VECTOR, SUBMIT_INLINE | (end ? SUBMIT_SLOT : PIECE_FLAGS));
            const uint8_t *at = fake_record_payload(r);
            uint32_t here = (uint32_t)(r->length / piece_bytes);

            CU_ASSERT(r->code == SUBMIT_PUT && r->length <= BLOCK && r->length % piece_bytes == 0);
            CU_ASSERT_EQUAL(r->total, end ? 5000 : here * rows[i].length);
            for (uint32_t n = 0; n < here; n++, done++, at += piece_bytes) {
                struct vector_piece piece;

                memcpy(&piece, at, sizeof(piece));
                CU_ASSERT_EQUAL(piece.place,
                                (uint64_t)(1000 + done) << VECTOR_LENGTH_BITS | rows[i].length);
                CU_ASSERT_EQUAL(memcmp(at + sizeof(piece), bytes, rows[i].length), 0);
            }
        }
        CU_ASSERT_EQUAL(done, rows[i].pieces);
        if (rows[i].rid_len > 0) {
            const struct submit_record *r = expect_record(p, SUBMIT_VECTOR, SUBMIT_SLOT);

            CU_ASSERT(r->rid_len == rows[i].rid_len && r->length == 0 && r->total == 5000);
            CU_ASSERT_EQUAL(memcmp(fake_record_rid(r), rid, r->rid_len), 0);
        }
        expect_no_record(p);
        pair_free(p);
    }
}

/* Guards the fields of a record of elements that the daemon reads, as the last record and before
 * it. */
static void test_strided_fields(void)
{
    for (unsigned rid_len = 0; rid_len <= 9; rid_len += 9) {
        struct pair *p = pair_new();
        const struct submit_record first = {.segment = 5, .local_offset = 77};
        const struct submit_strided elements = {
            .offset = 40, .local_stride = -9, .remote_stride = 12, .element = 7, .count = 3};

        CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_PUT, SUBMIT_FENCE, (uint16_t)rid_len), 0);
        for (int i = 0; i < 2; i++)
            CU_ASSERT_EQUAL(channel_vector_strided(&p->v, &first, &elements), 0);
        CU_ASSERT_EQUAL(channel_vector_end(&p->v, "remote id"), 0);
        for (int i = 0; i < 2; i++) {
            bool end = i == 1 && rid_len == 0;
            const struct submit_record *r = expect_record(
                p, SUBMIT_STRIDED,
                SUBMIT_INLINE | (end ? SUBMIT_SLOT : PIECE_FLAGS) | (i == 0 ? SUBMIT_FENCE : 0));

            CU_ASSERT(r->code == SUBMIT_PUT && r->segment == 5 && r->local_offset == 77);
            CU_ASSERT(r->length == sizeof(elements) && r->total == (end ? 5000 : 21));
            CU_ASSERT_EQUAL(memcmp(fake_record_payload(r), &elements, sizeof(elements)), 0);
        }
        if (rid_len > 0)
            CU_ASSERT_EQUAL(expect_record(p, SUBMIT_VECTOR, SUBMIT_SLOT)->total, 5000);
        expect_no_record(p);
        pair_free(p);
    }
}

/* A block may be as long as a packed payload, but no longer than the longest record. */
static void test_block_bounds(void)
{
    struct pair *p = pair_new();
    uint32_t most = RING / 4 - sizeof(struct submit_record);
    static const struct {
        uint32_t block_max;
        uint64_t offset, length;
        bool is_short;
    } rows[] = {
        {112, 0, 104, true},
        {112, 0, 105, false},
        {112, (UINT64_C(1) << VECTOR_OFFSET_BITS) - 1, 104, true},
        {112, UINT64_C(1) << VECTOR_OFFSET_BITS, 1, false},
        {UINT32_MAX, 0, (1u << VECTOR_LENGTH_BITS) - 1, true},
        {UINT32_MAX, 0, 1u << VECTOR_LENGTH_BITS, false},
        {UINT32_MAX, 0, UINT64_MAX, false},
        {0, 0, 0, false}, /* no blocks (gets) */
        {0, 0, 1, false},
    };

    CU_ASSERT_EQUAL(channel_block_max(&p->channel, most - 8), most);
    CU_ASSERT_EQUAL(channel_block_max(&p->channel, most), most);
    CU_ASSERT_EQUAL(channel_block_max(&p->channel, 1u << 20), most);
    CU_ASSERT_EQUAL(channel_block_max(&p->channel, 0), sizeof(struct vector_piece));
    for (size_t i = 0; i < COUNT(rows); i++)
        CU_ASSERT_EQUAL(channel_piece_short(rows[i].block_max, rows[i].offset, rows[i].length),
                        rows[i].is_short);
    pair_free(p);
}

/* ---- no room --------------------------------------------------------------------------------- */

static int add_longs(struct pair *p, unsigned count)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < count; i++)
        rc = add_long(p, i);
    return rc;
}

/* A series that does not fit is taken back as a whole, wherever room has ended: in the submit ring
 * (each record has 64 bytes), or in the space for local events. */
static void test_no_room(void)
{
    static const struct {
        const char *what;
        uint64_t set_aside; /* bytes of the space for local events */
        unsigned before, longs;
        int result;
    } rows[] = {
        {"the whole ring", 0, 0, RING / 64, -EAGAIN},
        {"behind others", 0, RING / 64 - 2, 3, -EAGAIN},
        {"room for the pieces, and none for the end", 0, RING / 64 - 3, 3, -EAGAIN},
        {"room for all", 0, RING / 64 - 4, 3, 0},
        {"no local space", 4 * RING, 0, 1, -EAGAIN},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair *p = pair_new();
        uint64_t held;
        unsigned others = 0;
        int rc;

        if (rows[i].before > 0) { /* a vector whose records have all ended */
            CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_GET, SUBMIT_NO_RCE, 0), 0);
            CU_ASSERT_EQUAL_FATAL(add_longs(p, rows[i].before), 0);
            CU_ASSERT_EQUAL_FATAL(channel_vector_end(&p->v, NULL), 0);
        }
        held = inbox_held(&p->channel.local);
        p->channel.set_aside = (uint32_t)rows[i].set_aside;
        CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_PUT, 0, 0), 0);
        rc = add_longs(p, rows[i].longs);
        if (rc == 0)
            rc = channel_vector_end(&p->v, NULL);
        if (rc < 0) {
            channel_vector_cancel(&p->v);
            pending_cancel(&p->channel.pending, p->v.slot);
            CU_ASSERT_EQUAL(inbox_held(&p->channel.local), held);
        }
        if (rc != rows[i].result)
            CU_FAIL(rows[i].what);
        for (p->channel.set_aside = 0; fake_session_read(&p->daemon); others++)
            ;
        CU_ASSERT_EQUAL(others, rows[i].before + (rc == 0 ? rows[i].longs + 1 : 0));
        /* The ring is used further, from the place before the refused series. */
        CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_GET, SUBMIT_NO_RCE, 0), 0);
        CU_ASSERT_EQUAL_FATAL(add_long(p, 70), 0);
        CU_ASSERT_EQUAL(channel_vector_end(&p->v, NULL), 0);
        CU_ASSERT_EQUAL(expect_record(p, SUBMIT_GET, SUBMIT_SLOT | SUBMIT_NO_RCE)->offset, 70);
        pair_free(p);
    }
}

/* A block is submitted when it is closed. A block that is still open when room ends leaves no
 * record either. */
static void test_no_room_for_a_block(void)
{
    struct pair *p = pair_new();
    uint8_t bytes[PACKED_MAX] = {0};
    uint64_t held = inbox_held(&p->channel.local);
    unsigned taken = 0;
    int rc;

    CU_ASSERT_EQUAL_FATAL(begin(p, SUBMIT_PUT, 0, 0), 0);
    while ((rc = channel_vector_short(&p->v, taken, bytes, sizeof(bytes))) == 0)
        taken++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(taken, RING / (64 + 112));
    channel_vector_cancel(&p->v);
    pending_cancel(&p->channel.pending, p->v.slot);
    CU_ASSERT_EQUAL(inbox_held(&p->channel.local), held);
    expect_no_record(p);
    pair_free(p);
}

/* A vector is refused while another submission is being written, and where the session is over. */
static void test_no_begin(void)
{
    static const struct {
        uint32_t state;
        bool open;
        int result;
    } rows[] = {
        {SESSION_LIVE, true, -EBUSY},
        {SESSION_CLOSED, false, -ESHUTDOWN},
        {SESSION_QUARANTINED, false, -EPROTO},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pair *p = pair_new();
        const struct submit_record note = {.kind = SUBMIT_PUT, .remote = REMOTE};
        uint8_t *at;

        if (rows[i].open)
            CU_ASSERT_EQUAL(channel_begin(&p->channel, &p->channel.submit, &note, &at), 0);
        atomic_store(&p->daemon.shared->state, rows[i].state);
        CU_ASSERT_EQUAL(begin(p, SUBMIT_PUT, 0, 0), rows[i].result);
        pair_free(p);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"long pieces", test_long_pieces},
                           {"blocks", test_blocks},
                           {"strided fields", test_strided_fields},
                           {"block bounds", test_block_bounds},
                           {"no room", test_no_room},
                           {"no room for a block", test_no_room_for_a_block},
                           {"no begin", test_no_begin},
                           CU_TEST_INFO_NULL};

    return suite_run("channel_vector", tests);
}
