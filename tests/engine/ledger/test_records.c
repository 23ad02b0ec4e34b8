/*
 * A peer may write anything into an engine's ledger. Guards that each field of each record that is
 * out of range, and random bytes, break the link with a reason and do nothing else. One engine over
 * a fabric that only remembers; the test is the peer. Built with sanitizers it shows that nothing
 * is read or written out of bounds. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/count.h"
#include "tests/suite.h"
#include "shm_ring/doorbell.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/record_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

struct put_record {
    struct wire_put put;
    uint8_t payload[16];
};

static struct put_record good_put(const struct bench *b)
{
    return (struct put_record){
        .put = {.op = {.head = {.words = sizeof(struct put_record) / 8, .kind = WIRE_PUT},
                       .flow = bench_inflow(b),
                       .rid = 9,
                       .length = 16},
                .slot = b->key.slot,
                .generation = b->key.generation,
                .offset = 64},
        .payload = "0123456789abcde"};
}

static void test_good_put_is_taken(void)
{
    struct bench *b = linked_bench();
    struct put_record put = good_put(b);

    bench_send(b, &put, sizeof(put));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(memcmp(b->segment + 64, put.payload, 16), 0);
    CU_ASSERT_EQUAL(bench_events(b), 48);
    bench_free(b);
}

/* Guards that a put which the region does not allow fails for its origin: the link stays up, and
 * memory is untouched. */
static void test_refused_puts_touch_nothing(void)
{
    static const struct {
        uint64_t offset;
        uint32_t slot, generation;
    } rows[] = {{4081, 0, 0}, {4096, 0, 0}, {UINT64_MAX, 0, 0}, {UINT64_MAX - 15, 0, 0}, {0, 1, 0},
                {0, 7, 0},    {0, 8, 0},    {0, UINT32_MAX, 0}, {0, 0, UINT32_MAX},      {0, 0, 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct put_record put = good_put(b);
        uint8_t before[BENCH_SEGMENT];

        memcpy(before, b->segment, BENCH_SEGMENT);
        put.put.offset = rows[i].offset;
        put.put.slot += rows[i].slot;
        put.put.generation += rows[i].generation;
        bench_send(b, &put, sizeof(put));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(memcmp(before, b->segment, BENCH_SEGMENT), 0);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that a field of a good put (16 or 32 bits at an offset) that is set to a senseless value
 * breaks the link. */
static void test_senseless_records_break_the_link(void)
{
    static const struct {
        uint32_t offset, bytes;
        uint64_t value;
    } rows[] = {
        {0, 2, 0},           {0, 2, 1},
        {0, 2, 7},           {0, 2, 9},
        {0, 2, 65535},       {2, 1, 19},
        {2, 1, 255},         {2, 1, WIRE_BIND},
        {2, 1, WIRE_ACK},    {2, 1, WIRE_OFFER},
        {2, 1, WIRE_SWITCH}, {2, 1, WIRE_REVOKE},
        {2, 1, WIRE_FAIL},   {2, 1, WIRE_CLOSE},
        {8, 4, 1},           {8, 4, 8},
        {8, 4, UINT32_MAX},  {24, 2, 1},
        {24, 2, 1025},       {24, 2, 65535},
        {28, 4, 17},         {28, 4, UINT32_MAX},
        {28, 4, 8},          {3, 1, WIRE_NOTIFY | WIRE_NO_EVENT},
        {3, 1, WIRE_PART},   {3, 1, WIRE_PART | WIRE_NO_EVENT | WIRE_MESSAGE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct put_record put = good_put(b);

        memcpy((uint8_t *)&put + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_send(b, &put, sizeof(put));
        if (!b->broken)
            printf("row %zu was taken\n", i);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* The first event in the remote ring. */
static const struct event_record *first_event(const struct bench *b)
{
    return (const struct event_record *)((const uint8_t *)b->session + SESSION_DATA_OFFSET +
                                         2 * RING);
}

/* Guards that a notification's event has a kind of its own, and an id by value: a longer id breaks
 * the link. */
static void test_notifications(void)
{
    static const struct {
        uint8_t flags;
        uint16_t rid_len;
        uint8_t kind; /* kind of the event; 0: the link breaks */
    } rows[] = {{0, 0, EVENT_REMOTE},
                {WIRE_NOTIFY, 0, EVENT_NOTIFY},
                {0, 8, EVENT_REMOTE},
                {WIRE_NOTIFY, 8, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct put_record put = good_put(b);

        put.put.op.head.flags = rows[i].flags;
        put.put.op.rid_len = rows[i].rid_len;
        put.put.op.length = 16u - rows[i].rid_len;
        bench_send(b, &put, sizeof(put));
        CU_ASSERT_EQUAL(b->broken, rows[i].kind == 0);
        if (rows[i].kind)
            CU_ASSERT_EQUAL(first_event(b)->kind, rows[i].kind);
        bench_free(b);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

struct batch_record {
    struct wire_batch batch;
    struct {
        struct wire_batch_put put;
        uint8_t payload[8];
    } puts[2];
};

static struct batch_record good_batch(const struct bench *b)
{
    return (struct batch_record){
        .batch = {.op = {.head = {.words = sizeof(struct batch_record) / 8, .kind = WIRE_BATCH},
                         .flow = bench_inflow(b),
                         .rid = 2,
                         .length = 11},
                  .slot = b->key.slot,
                  .generation = b->key.generation},
        .puts = {{{.rid = 7, .place = 64 << BATCH_LENGTH_BITS | 8}, "1234567"},
                 {{.rid = 8, .place = 4093 << BATCH_LENGTH_BITS | 3}, "abc"}}};
}

static void test_good_batch_is_taken(void)
{
    struct bench *b = linked_bench();
    struct batch_record batch = good_batch(b);

    bench_send(b, &batch, sizeof(batch));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(memcmp(b->segment + 64, "1234567", 8), 0);
    CU_ASSERT_EQUAL(memcmp(b->segment + 4093, "abc", 3), 0);
    CU_ASSERT_EQUAL(bench_events(b), 96);
    batch.batch.op.head.flags = WIRE_NO_EVENT;
    batch.puts[0].payload[0] = 'x';
    bench_send(b, &batch, sizeof(batch));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(b->segment[64], 'x');
    CU_ASSERT_EQUAL(bench_events(b), 96);
    bench_free(b);
}

/* Guards that a batch which the region does not allow fails as a whole: not even the puts that it
 * allows are placed. */
static void test_refused_batches_touch_nothing(void)
{
    static const struct {
        uint64_t offset;
        uint32_t slot, generation;
    } rows[] = {{4094, 0, 0}, {4096, 0, 0},          {(UINT64_C(1) << 48) - 1, 0, 0},
                {4093, 1, 0}, {4093, UINT32_MAX, 0}, {4093, 0, 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct batch_record batch = good_batch(b);
        uint8_t before[BENCH_SEGMENT];

        memcpy(before, b->segment, BENCH_SEGMENT);
        batch.puts[1].put.place = rows[i].offset << BATCH_LENGTH_BITS | 3;
        batch.batch.slot += rows[i].slot;
        batch.batch.generation += rows[i].generation;
        bench_send(b, &batch, sizeof(batch));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(memcmp(before, b->segment, BENCH_SEGMENT), 0);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that a field of a good batch that is set to a senseless value breaks the link. */
static void test_senseless_batches_break_the_link(void)
{
    static const struct {
        uint32_t offset, bytes;
        uint64_t value;
    } rows[] = {
        {0, 2, 4},           {0, 2, 5},          {0, 2, 8},
        {0, 2, 10},          {2, 1, WIRE_PUT},   {3, 1, WIRE_MESSAGE},
        {3, 1, WIRE_NONCE},  {3, 1, WIRE_REPLY}, {3, 1, 1 << 6},
        {8, 4, 8},           {8, 4, UINT32_MAX}, {16, 8, 0},
        {16, 8, 1},          {16, 8, 3},         {16, 8, UINT64_MAX},
        {24, 2, 1},          {48, 2, 0},         {48, 2, 9},
        {48, 2, UINT16_MAX}, {72, 2, 0},         {72, 2, 9},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct batch_record batch = good_batch(b);

        memcpy((uint8_t *)&batch + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_send(b, &batch, sizeof(batch));
        if (!b->broken)
            printf("row %zu was taken\n", i);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards the announcement of a run. A good put stands in the ring: where the length or the number
 * of its run is wrong, the put is not taken. Where the run is longer than the put, the put is
 * taken, and then the link breaks. */
static void test_runs(void)
{
    static const struct {
        uint32_t length;
        uint16_t ahead;
        bool taken;
    } rows[] = {
        {0, 0, false},  {1, 0, false},           {4, 0, false},           {8, 0, false},
        {9, 0, false},  {56, 0, false},          {63, 0, false},          {64, 0, true},
        {72, 0, true},  {16392, 0, false},       {1u << 31, 0, false},    {UINT32_MAX, 0, false},
        {64, 1, false}, {64, RUN_WINDOW, false}, {64, UINT16_MAX, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct put_record put = good_put(b);

        CU_ASSERT_EQUAL_FATAL(sizeof(put), 64);
        memcpy(b->ring + b->position, &put, sizeof(put));
        ((struct wire_record *)(b->ring + b->position))->run = rows[i].length;
        still_push(&b->fabric,
                   &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                          .immediate = wire_immediate(
                                              WIRE_RUN, 1, (uint16_t)(b->run + rows[i].ahead))});
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(b->broken, rows[i].length != 64 || rows[i].ahead >= RUN_WINDOW);
        if ((bench_events(b) > 0) != rows[i].taken)
            printf("\n  row %zu: events %d\n", i, bench_events(b) > 0);
        CU_ASSERT_EQUAL(bench_events(b) > 0, rows[i].taken);
        CU_ASSERT_EQUAL(b->segment[64] == '0', rows[i].taken);
        bench_free(b);
    }
}

static void announce_pieces(struct bench *b, uint16_t nonce, uint32_t count)
{
    for (; count > 0; count--)
        still_push(&b->fabric,
                   &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                          .immediate = wire_immediate(WIRE_PAYLOAD, 1, nonce)});
    bench_steps(b, 2);
}

/* Guards that a payload is complete when as many writes as its record says have been announced,
 * before the record or after it; more writes break the link. */
static void test_pieces(void)
{
    static const struct {
        uint32_t pieces, before, after;
        uint16_t nonce;
        bool taken, broken;
    } rows[] = {
        {1, 0, 0, 7, false, false},     {1, 1, 0, 7, true, false},
        {1, 0, 1, 7, true, false},      {1, 2, 0, 7, false, true},
        {2, 1, 0, 7, false, false},     {2, 2, 0, 7, true, false},
        {2, 1, 1, 7, true, false},      {2, 3, 0, 7, false, true},
        {2, 1, 2, 7, false, true},      {3, 2, 0, 7, false, false},
        {3, 2, 1, 7, true, false},      {3, 4, 0, 7, false, true},
        {4, 3, 0, 7, false, false},     {4, 0, 4, 255, true, false},
        {4, 3, 1, 0, true, false},      {4, 5, 0, 7, false, true},
        {4, 0, 5, 7, false, true},      {4, 4, 0, 7, true, false},
        {1, 0, 0, 256, false, true},    {4, 1, 0, 65535, false, true},
        {0, 0, 0, 7, false, true},      {300, 299, 1, 7, true, false},
        {300, 299, 0, 7, false, false}, {65535, 1, 0, 7, false, false},
        {65536, 1, 0, 7, false, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct {
            struct wire_op op;
            struct wire_pieces pieces;
        } record = {
            .op = {.head = {.words = sizeof(record) / 8, .kind = WIRE_PLACED, .flags = WIRE_NONCE},
                   .flow = bench_inflow(b),
                   .rid = 9,
                   .nonce = rows[i].nonce,
                   .length = 4096},
            .pieces = {.count = rows[i].pieces},
        };

        announce_pieces(b, rows[i].nonce, rows[i].before);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_send(b, &record, sizeof(record));
        announce_pieces(b, rows[i].nonce, rows[i].after);
        if (b->broken != rows[i].broken || (bench_events(b) > 0) != rows[i].taken)
            printf("row %zu: broken %d, events %d\n", i, b->broken, bench_events(b) > 0);
        CU_ASSERT_EQUAL(b->broken, rows[i].broken);
        CU_ASSERT_EQUAL(bench_events(b) > 0, rows[i].taken);
        bench_free(b);
    }
}

/* ---- active messages ------------------------------------------------------------------------- */

struct message_record {
    struct wire_op op;
    struct message block;
    uint64_t arguments[2];
};

static void handlers_everywhere(struct bench *b)
{
    struct session_shared *shared = b->session;

    for (uint32_t i = 0; i < SESSION_HANDLERS / 64; i++)
        atomic_store(&shared->handlers[i], UINT64_MAX);
}

static struct message_record good_message(const struct bench *b)
{
    return (struct message_record){
        .op = {.head = {.words = sizeof(struct message_record) / 8,
                        .kind = WIRE_NOTE,
                        .flags = WIRE_MESSAGE},
               .flow = bench_inflow(b),
               .rid_len = sizeof(struct message) + 16},
        .block = {.index = 255, .kind = SUBMIT_SHORT, .arguments = 2, .token = 99},
        .arguments = {1, 2}};
}

static void test_good_message_is_taken(void)
{
    struct bench *b = linked_bench();
    struct message_record message = good_message(b);
    const struct event_record *event;
    const struct message *block;

    handlers_everywhere(b);
    bench_send(b, &message, sizeof(message));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(bench_events(b), event_bytes(sizeof(struct message) + 16));
    event = first_event(b);
    block = (const struct message *)(event + 1);
    CU_ASSERT_EQUAL(event->kind, EVENT_REQUEST);
    CU_ASSERT_EQUAL(event->op, SUBMIT_SHORT);
    CU_ASSERT_EQUAL(block->token, bench_inflow(b));
    CU_ASSERT_EQUAL(block->index, 255);
    bench_free(b);
}

/* Guards a request without an event, which follows when an operation was refused and then failed at
 * its origin: no event comes, and no reply is owed. */
static void test_request_without_event(void)
{
    struct bench *b = linked_bench();
    struct message_record message = good_message(b);

    message.op.head.flags |= WIRE_NO_EVENT;
    bench_send(b, &message, sizeof(message));
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    bench_free(b);
}

/* Guards that a senseless field of an otherwise good message breaks the link, and so does a reply
 * to a request that was never made. */
static void test_senseless_messages_break_the_link(void)
{
    enum { BLOCK = sizeof(struct wire_op) };
    static const struct {
        uint32_t offset, bytes;
        uint64_t value;
    } rows[] = {
        {3, 1, WIRE_MESSAGE | WIRE_REPLY | WIRE_NO_REPLY},
        {3, 1, WIRE_REPLY},
        {3, 1, WIRE_NO_REPLY},
        {3, 1, WIRE_MESSAGE | WIRE_NOTIFY},
        {3, 1, WIRE_MESSAGE | WIRE_REPLY}, /* token 99 */
        {3, 1, WIRE_MESSAGE | WIRE_REPLY | WIRE_NO_EVENT},
        {2, 1, WIRE_GOT},
        {2, 1, WIRE_PLACED}, /* a Short has no payload */
        {2, 1, WIRE_PUT},
        {8, 4, 1}, /* flow */
        {8, 4, UINT32_MAX},
        {24, 2, 0}, /* rid_len */
        {24, 2, 31},
        {24, 2, 32},
        {24, 2, 47},
        {24, 2, 65528},
        {BLOCK + 0, 2, 256}, /* index */
        {BLOCK + 0, 2, 65535},
        {BLOCK + 2, 1, SUBMIT_PUT}, /* kind */
        {BLOCK + 2, 1, SUBMIT_FLUSH},
        {BLOCK + 2, 1, 7},
        {BLOCK + 2, 1, 255},
        {BLOCK + 3, 1, 0}, /* arguments */
        {BLOCK + 3, 1, 3},
        {BLOCK + 3, 1, 17},
        {BLOCK + 3, 1, 255},
        {BLOCK + 24, 4, 8}, /* payload_len */
        {BLOCK + 24, 4, UINT32_MAX},
        {BLOCK + 24, 4, UINT32_MAX - 6},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct message_record message = good_message(b);

        handlers_everywhere(b);
        memcpy((uint8_t *)&message + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_send(b, &message, sizeof(message));
        if (!b->broken)
            printf("row %zu was taken\n", i);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that a reply breaks the link when no request has its token, whatever number that is. */
static void test_replies_to_nothing(void)
{
    static const uint32_t tokens[] = {0, 1, 7, 8, 9, 99, 1u << 31, UINT32_MAX};

    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct bench *b = linked_bench();
        struct message_record message = good_message(b);
        const struct session_shared *shared = b->session;

        handlers_everywhere(b);
        message.op.head.flags |= WIRE_REPLY;
        message.block.token = tokens[i];
        bench_send(b, &message, sizeof(message));
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(atomic_load(&shared->reply_event.tail), 0);
        CU_ASSERT_EQUAL(atomic_load(&shared->reply_released), 0);
        bench_free(b);
    }
}

/* ---- notes that come late -------------------------------------------------------------------- */

/* Submits the client's next record; `ring` is the data of one of its rings. */
static void submit(struct bench *b, struct ring_control *control, uint32_t ring, const void *record,
                   uint32_t size)
{
    memcpy((uint8_t *)b->session + SESSION_DATA_OFFSET + ring * RING, record, size);
    atomic_store(&control->tail, size);
    bench_steps(b, 2);
}

static const uint8_t late_kinds[] = {WIRE_STOP, WIRE_GO, WIRE_GONE, WIRE_REFUSE};

/* Guards that a note about a flow that is not resolved yet is ignored: the note was meant for the
 * previous flow with that number. */
static void test_late_notes_of_requests(void)
{
    for (size_t i = 0; i < sizeof(late_kinds); i++) {
        struct bench *b = linked_bench();
        struct session_shared *shared = b->session;
        struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                                   .flow = 3};
        struct submit_record put = {
            .size = sizeof(put), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};

        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, NULL, 1), 0);
        bench_note(b, late_kinds[i], 0, 0);
        bench_send(b, &bound, sizeof(bound));
        submit(b, &shared->submit, 0, &put, sizeof(put));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_NOTE);
        bench_free(b);
    }
}

/* Submits a reply to the one request that has arrived, without a local event. */
static void submit_answer(struct bench *b)
{
    struct session_shared *shared = b->session;
    struct {
        struct submit_record record;
        struct message block;
    } answer = {.record = {.size = sizeof(answer),
                           .kind = SUBMIT_SHORT,
                           .flags = SUBMIT_NO_LCE,
                           .reserve = event_bytes(0),
                           .rid = bench_inflow(b),
                           .rid_len = sizeof(answer.block)},
                .block = {.kind = SUBMIT_SHORT}};

    submit(b, &shared->reply_submit, 3, &answer, sizeof(answer));
}

/* Guards that a STOP, GO, GONE or REFUSE for a flow of replies is ignored: the note was meant for
 * an earlier flow with that number, because targets of replies send none. */
static void test_late_notes_of_replies(void)
{
    for (size_t i = 0; i < sizeof(late_kinds); i++) {
        struct bench *b = linked_bench();
        const struct session_shared *shared = b->session;
        struct message_record request = good_message(b);

        handlers_everywhere(b);
        bench_send(b, &request, sizeof(request)); /* opens the flow of replies */
        bench_note(b, late_kinds[i], 0, 0);
        submit_answer(b);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(atomic_load(&shared->state), SESSION_LIVE);
        CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_NOTE);
        bench_free(b);
    }
}

/* Guards that a client which may sleep until its rings have room is woken when a reply or a put is
 * taken from there, although no event comes; and that a client with much room is not, until the put
 * has ended. */
static void test_bell_for_room(void)
{
    const struct submit_record put = {
        .size = sizeof(put), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};

    for (uint32_t spacious = 0; spacious < 2; spacious++) {
        struct bench *b = linked_bench();
        struct session_shared *shared = b->session;
        struct message_record request = good_message(b);

        handlers_everywhere(b);
        bench_send(b, &request, sizeof(request));
        atomic_store(&shared->waits.spacious, spacious);
        atomic_store(&shared->event_bell.armed, DOORBELL_FD);
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(b->woken, 0);
        submit_answer(b);
        CU_ASSERT_EQUAL(b->woken, !spacious);
        CU_ASSERT_EQUAL(atomic_load(&shared->reply_submit.head),
                        atomic_load(&shared->reply_submit.tail));
        CU_ASSERT_EQUAL(atomic_load(&shared->local.tail), 0);
        bench_remote(b);
        atomic_store(&shared->event_bell.armed, DOORBELL_FD);
        bench_submit(b, &put);
        CU_ASSERT_EQUAL(atomic_load(&shared->submit.head), atomic_load(&shared->submit.tail));
        CU_ASSERT_EQUAL(b->woken, 2 * !spacious);
        atomic_store(&shared->event_bell.armed, DOORBELL_FD);
        bench_ack(b);
        CU_ASSERT_EQUAL(b->woken, 2 * !spacious + 1);
        bench_free(b);
    }
}

/* Guards that the room of records which an earlier process took, and did not give back before it
 * died, is the client's again: a ring that was full would stay full. */
static void test_room_after_a_restart(void)
{
    const struct submit_record put = {
        .size = sizeof(put), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};
    struct bench *b = linked_bench();
    struct ring_control *rings[] = {&b->session->submit, &b->session->reply_submit};
    struct message_record request = good_message(b);

    handlers_everywhere(b);
    bench_send(b, &request, sizeof(request));
    submit_answer(b);
    bench_remote(b);
    bench_submit(b, &put);
    for (size_t i = 0; i < COUNT(rings); i++) {
        CU_ASSERT(atomic_load(&rings[i]->tail) > 0);
        atomic_store(&rings[i]->head, 0);
    }
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    for (size_t i = 0; i < COUNT(rings); i++)
        CU_ASSERT_EQUAL(atomic_load(&rings[i]->head), atomic_load(&rings[i]->tail));
    bench_free(b);
}

/* Guards that a flow of replies counts as a pair of the replier's user. */
static void test_replies_in_quota(void)
{
    for (uint32_t pairs = 0; pairs < 2; pairs++) {
        struct bench *b = linked_bench();
        struct message_record request = good_message(b);

        handlers_everywhere(b);
        poke_config(b->engine)->pairs_user = pairs;
        bench_send(b, &request, sizeof(request));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).has_reply_flow, pairs > 0);
        CU_ASSERT_EQUAL((b->fabric.kinds & 1u << WIRE_FAIL) != 0, pairs == 0);
        bench_free(b);
    }
}

/* Guards a context that ends while there is no memory to report its end. Its inflow stays until
 * then, and must not name a flow of replies that another context may have by then. */
static void test_parting_without_memory(void)
{
    struct bench *b = linked_bench();
    struct message_record request = good_message(b);
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    uint32_t free;

    handlers_everywhere(b);
    bench_send(b, &request, sizeof(request));
    bench_note(b, WIRE_CLOSE, bench_inflow(b), 0);
    bench_note(b, WIRE_CLOSE, bench_inflow(b), 0); /* a second CLOSE changes nothing */
    CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).state, INFLOW_PARTING);
    bench_bind(b, 6);
    ack.consumed = peek_peer(b->engine, 1).staged;
    bench_send(b, &ack, sizeof(ack));
    free = poke_memory(b->engine, 0);
    engine_session_close(b->engine, 0);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).state, SESSION_CLOSING);
    CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).state, INFLOW_PARTING);
    CU_ASSERT_FALSE(peek_inflow(b->engine, bench_inflow(b)).has_reply_flow);
    poke_memory(b->engine, free);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).state, SESSION_FREE);
    CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).state, INFLOW_FREE);
    bench_free(b);
}

/* Guards that random records with plausible heads do no harm: the engine goes on, and the client's
 * other memory stays as it was. */
static void test_random_records(void)
{
    struct bench *b = linked_bench();

    handlers_everywhere(b);
    for (int i = 0; i < 100000; i++) {
        uint64_t record[40];
        uint32_t words = 1 + (uint32_t)(bench_random(b) % 40);
        struct wire_record *head = (struct wire_record *)record;

        for (uint32_t w = 0; w < words; w++)
            record[w] = bench_random(b) & (bench_random(b) % 3 ? 0x0000000700000007u : UINT64_MAX);
        head->words = (uint16_t)words;
        head->kind = (uint8_t)(bench_random(b) % (WIRE_KINDS + 1));
        if (b->position + words * 8 > 16384)
            b->broken = true;
        else
            bench_send(b, record, words * 8);
        if (b->broken) {
            engine_peer_lost(b->engine, 1);
            CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        }
    }
    for (uint32_t i = 4096; i < BENCH_SEGMENT; i++)
        CU_ASSERT_EQUAL_FATAL(b->segment[i], 0);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a good put is taken", test_good_put_is_taken},
        {"notifications", test_notifications},
        {"refused puts touch nothing", test_refused_puts_touch_nothing},
        {"senseless records break the link", test_senseless_records_break_the_link},
        {"a good batch is taken", test_good_batch_is_taken},
        {"refused batches touch nothing", test_refused_batches_touch_nothing},
        {"senseless batches break the link", test_senseless_batches_break_the_link},
        {"runs", test_runs},
        {"pieces of a payload", test_pieces},
        {"a good message is taken", test_good_message_is_taken},
        {"a request without its event", test_request_without_event},
        {"senseless messages break the link", test_senseless_messages_break_the_link},
        {"replies to nothing", test_replies_to_nothing},
        {"late notes of requests", test_late_notes_of_requests},
        {"late notes of replies", test_late_notes_of_replies},
        {"bell for room", test_bell_for_room},
        {"room after a restart", test_room_after_a_restart},
        {"replies are within the quota", test_replies_in_quota},
        {"parting without memory", test_parting_without_memory},
        {"random records", test_random_records},
        CU_TEST_INFO_NULL,
    };

    return suite_run("records", tests);
}
