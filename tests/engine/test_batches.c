/*
 * Which puts of a client go as one batch (op_batch.h), and what its record then says. One engine
 * over a fabric that only remembers; the test is the client and the peer. One thread.
 */
#include "../suite.h"
#include <stdio.h>
#include <string.h>
#include "engine.h"
#include "linked_bench.h"
#include "op_batch.h"
#include "session_abi.h"
#include "state.h"
#include "wire_abi.h"

#define REGION 4096u /* bytes, behind the remote of bench_remote */
#define RID    UINT64_C(100)

struct put {
    struct submit_record record;
    uint8_t payload[16];
};
static_assert(sizeof(struct put) == 80, "no holes");

static struct bench *submitting_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    CU_ASSERT_FALSE_FATAL(b->quarantined || b->broken);
    return b;
}

/* Number `i`, of eight bytes. */
static struct put put_of(uint32_t i)
{
    struct put put = {.record = {.size = sizeof(put.record) + 8,
                                 .kind = SUBMIT_PUT,
                                 .flags = SUBMIT_INLINE | SUBMIT_NO_LCE,
                                 .reserve = event_bytes(0),
                                 .offset = UINT64_C(8) * i,
                                 .length = 8,
                                 .lid = 7,
                                 .rid = RID + i}};

    memset(put.payload, 'a' + (int)(i % 26), sizeof(put.payload));
    return put;
}

/* No step is made yet. */
static void submit(struct bench *b, const struct put *put)
{
    struct ring_control *ring = &b->session->submit;
    uint32_t size = b->session->sizes.submit;
    uint64_t tail = atomic_load(&ring->tail), to_end = size - tail % size;

    if (to_end < put->record.size) {
        const struct submit_record pad = {.size = (uint32_t)to_end};

        memcpy(b->submit + tail % size, &pad, 8);
        tail += to_end;
    }
    memcpy(b->submit + tail % size, put, put->record.size);
    atomic_store(&ring->tail, tail + put->record.size);
}

/* What the records from `at` on say: how many puts each, and, of the first `count`, what they put.
 */
static void expect(struct bench *b, uint64_t at, const struct put *puts, uint32_t count,
                   const char *expected)
{
    const struct ledger_out *out = &b->engine->peer_live[1].out;
    char said[64] = "";
    uint32_t seen = 0;

    for (size_t used = 0; at < b->engine->peers[1].tx_tail;) {
        const uint8_t *record = out->staging + ((at - out->base) & (out->size - 1));
        const struct wire_record *head = (const void *)record;
        const struct wire_batch *batch = (const void *)record;
        uint32_t n = head->kind == WIRE_BATCH ? (uint32_t)batch->op.rid : head->kind == WIRE_PUT;
        uint32_t next = 0, length;

        at += head->words * 8u;
        if (n > 0)
            used += (size_t)snprintf(said + used, sizeof(said) - used, "%s%u", used ? " " : "", n);
        for (uint32_t i = 0; head->kind == WIRE_BATCH && i < n && seen < count; i++, seen++) {
            const uint8_t *block = record + sizeof(*batch), *from = block + next;
            const struct submit_record *r = &puts[seen].record;
            uint64_t rid, offset;

            next = batch_step(block, next, &rid, &offset, &length);
            CU_ASSERT(rid == r->rid && offset == r->offset && length == r->length);
            CU_ASSERT_EQUAL(
                memcmp(from + sizeof(struct wire_batch_put), puts[seen].payload, length), 0);
        }
    }
    CU_ASSERT_STRING_EQUAL(said, expected);
    if (strcmp(said, expected) != 0)
        printf("\"%s\", not \"%s\"\n", said, expected);
}

/* Three puts, of which the second differs from the others in one field. */
static void one_differs(void)
{
    static const struct {
        const char *what;
        size_t offset, bytes;
        uint64_t value;
        const char *records;
        bool quarantined;
    } rows[] = {
#define FIELD(name) offsetof(struct submit_record, name), sizeof(((struct submit_record *)0)->name)
        {"nothing", FIELD(lid), 7, "3", false},
        {"local id", FIELD(lid), 8, "3", false},
        {"remote id", FIELD(rid), UINT64_MAX, "3", false},
        {"its place", FIELD(offset), 4000, "3", false},
        {"the last place", FIELD(offset), REGION - 8, "3", false},
        {"a place past the end", FIELD(offset), REGION - 7, "1 1", false},
        {"a place that has 49 bits", FIELD(offset), UINT64_C(1) << 48, "1 1", false},
        {"the last place there is", FIELD(offset), UINT64_MAX, "1 1", false},
        {"fewer bytes", FIELD(length), 3, "3", false},
        {"more bytes than it has", FIELD(length), 9, "1", true},
        {"no bytes", FIELD(length), 0, "1", true},
        {"no event at its target", FIELD(flags), SUBMIT_INLINE | SUBMIT_NO_LCE | SUBMIT_NO_RCE,
         "1 1 1", false},
        {"an event at its origin", FIELD(flags), SUBMIT_INLINE, "1 1 1", false},
        {"a flag that is none", FIELD(flags), UINT16_MAX, "1", true},
        {"another remote", FIELD(remote), 1, "1", true},
        {"no event space", FIELD(reserve), 0, "1", true},
        {"a size that is none", FIELD(size), 71, "", true},
        {"a kind that is none", FIELD(kind), 0xff, "1", true},
        {"a byte that nobody reads", FIELD(unused), 1, "3", false},
        {"a segment that nobody reads", FIELD(segment), 1, "3", false},
        {"an offset that nobody reads", FIELD(local_offset), 1, "3", false},
#undef FIELD
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = submitting_bench();
        struct put puts[3] = {put_of(0), put_of(1), put_of(2)};
        uint64_t from = b->engine->peers[1].tx_tail;

        memcpy((uint8_t *)&puts[1] + rows[i].offset, &rows[i].value, rows[i].bytes);
        for (uint32_t n = 0; n < 3; n++)
            submit(b, &puts[n]);
        bench_steps(b, 2);
        expect(b, from, puts, 3, rows[i].records);
        CU_ASSERT_EQUAL(b->quarantined, rows[i].quarantined);
        if (b->quarantined != rows[i].quarantined)
            printf("%s\n", rows[i].what);
        bench_free(b);
    }
}

/* Puts alike, in a row. */
static void how_many(void)
{
    static const struct {
        uint32_t before, count; /* those before have been taken */
        const char *records;
    } rows[] = {
        {0, 1, "1"},
        {0, 2, "2"},
        {0, BATCH_PUTS_MAX - 1, "63"},
        {0, BATCH_PUTS_MAX, "64"},
        {0, BATCH_PUTS_MAX + 1, "64 1"},
        {0, 100, "64 36"},
        {100, 12, "12"}, /* 113 go before the end of the ring */
        {100, 13, "13"},
        {100, 14, "14"},
        {100, 30, "30"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = submitting_bench();
        struct put puts[BATCH_PUTS_MAX + 36], put;
        uint64_t from;

        for (uint32_t n = 0; n < rows[i].before; n++) {
            put = put_of(n);
            submit(b, &put);
        }
        bench_ack(b);
        bench_steps(b, 2);
        from = b->engine->peers[1].tx_tail;
        for (uint32_t n = 0; n < rows[i].count; n++) {
            puts[n] = put_of(n);
            submit(b, &puts[n]);
        }
        bench_steps(b, 2);
        expect(b, from, puts, rows[i].count, rows[i].records);
        CU_ASSERT_FALSE(b->quarantined || b->broken);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"one differs", one_differs},
        {"how many", how_many},
        CU_TEST_INFO_NULL,
    };

    return suite_run("batches", tests);
}
