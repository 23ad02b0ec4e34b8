/*
 * Atomics of a client: what each operation does to each type, what a client may not ask for, and
 * the results that a peer may send (test_peer_atomics has its records). One engine: its client's
 * own region through the loop, or the test as its peer. One thread.
 */
#include "tests/suite.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/engine/kinds/batch_format.h"
#include "proto/word_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

#define PLACE UINT64_C(64) /* offset of the words, in the region and in the segment */

struct atomic {
    struct submit_record record;
    uint8_t operands[256];
};

/* A fetching atomic with this many bytes of operands, which are zero. */
static struct atomic atomic_of(const struct bench *b, uint8_t code, uint32_t length)
{
    return (struct atomic){.record = {.size = sizeof(struct submit_record) + abi_pad8(length),
                                      .kind = SUBMIT_ATOMIC,
                                      .code = code,
                                      .flags = SUBMIT_INLINE | SUBMIT_FETCH,
                                      .remote = b->remote,
                                      .reserve = event_bytes(0),
                                      .offset = PLACE,
                                      .length = length,
                                      .lid = 7,
                                      .rid = 8}};
}

static struct bench *self_bench(void)
{
    struct bench *b = unbound_bench(true);

    CU_ASSERT_FALSE_FATAL(b->broken || b->quarantined);
    return b;
}

/* Writes the record after the others in the ring, without a step. */
static void submit(struct bench *b, const struct atomic *a)
{
    struct ring_control *ring = &b->session->submit;
    uint64_t tail = atomic_load(&ring->tail);

    CU_ASSERT_FATAL(tail % RING + a->record.size <= RING);
    memcpy(b->submit + tail % RING, a, a->record.size);
    atomic_store(&ring->tail, tail + a->record.size);
}

/* Waits for the next local event. */
static struct event_record local_event(struct bench *b)
{
    struct event_record event = {.size = 0};

    for (int i = 0; i < 50 && !bench_local_event(b, &event); i++)
        continue;
    CU_ASSERT_NOT_EQUAL(event.size, 0);
    return event;
}

/* ---- results --------------------------------------------------------------------------------- */

static uint64_t narrow(uint8_t code, uint64_t value)
{
    return word_bytes(code) == 8 ? value : value & ((UINT64_C(1) << 8 * word_bytes(code)) - 1);
}

static bool less(uint8_t code, uint64_t a, uint64_t b)
{
    uint32_t unused = 64 - 8 * word_bytes(code);
    bool has_sign = word_type(code) % 2 == 0;

    return has_sign ? (int64_t)(a << unused) < (int64_t)(b << unused) : a < b;
}

static uint64_t plain_integer(uint8_t code, uint64_t old, uint64_t a, uint64_t b)
{
    const uint64_t values[WORD_OPS] = {
        [WORD_SET] = a,
        [WORD_ADD] = old + a,
        [WORD_PROD] = old * a,
        [WORD_MIN] = less(code, a, old) ? a : old,
        [WORD_MAX] = less(code, old, a) ? a : old,
        [WORD_AND] = old & a,
        [WORD_OR] = old | a,
        [WORD_XOR] = old ^ a,
        [WORD_READ] = old,
        [WORD_COMPARE_SWAP] = old == a ? b : old,
        [WORD_MASKED_SWAP] = (old & ~a) | (b & a),
    };

    return narrow(code, values[word_op(code)]);
}

static double plain_float(enum word_op op, double old, double a, double b)
{
    const double values[WORD_OPS] = {
        [WORD_SET] = a,
        [WORD_ADD] = old + a,
        [WORD_PROD] = old * a,
        [WORD_MIN] = a < old ? a : old,
        [WORD_MAX] = old < a ? a : old,
        [WORD_READ] = old,
        [WORD_COMPARE_SWAP] = old == a ? b : old,
    };

    return values[op];
}

/* Converts a number to a word of the type, and back. */
static uint64_t bits_of(uint8_t code, double number)
{
    float single = (float)number;
    uint64_t bits = 0;

    if (word_type(code) == WORD_F64)
        memcpy(&bits, &number, sizeof(number));
    else
        memcpy(&bits, &single, sizeof(single));
    return bits;
}

struct trial {
    uint64_t old, a, b, after;
};

/* Returns one of three trials for each code; one of them is at the ends of its type's range. */
static struct trial trial_of(uint8_t code, int i)
{
    static const uint64_t integers[][3] = {
        {5, 7, 9}, {UINT64_MAX, 1, 4}, {0x8080808080808080, 3, 2}};
    static const double numbers[][3] = {{1.5, 2.25, 3}, {-4, -4, 8}, {1e30, -0.5, 1}};
    struct trial t;

    if (word_type(code) >= WORD_F32) {
        const double *n = numbers[i];

        return (struct trial){bits_of(code, n[0]), bits_of(code, n[1]), bits_of(code, n[2]),
                              bits_of(code, plain_float(word_op(code), n[0], n[1], n[2]))};
    }
    t = (struct trial){narrow(code, integers[i][0]), narrow(code, integers[i][1]),
                       narrow(code, integers[i][2]), 0};
    t.after = plain_integer(code, t.old, t.a, t.b);
    return t;
}

/* Does one operation on a word of the client's own memory, and checks that the words before and
 * after it stay as they are. */
static void try_word(struct bench *b, uint8_t code, const struct trial *t, bool fetch)
{
    uint32_t width = word_bytes(code), length = width << word_is_swap_if(code);
    struct atomic a = atomic_of(b, code, length);
    uint8_t *at = b->segment + PLACE;
    struct event_record event;
    uint64_t word = 0;

    memset(at - 8, 0x5a, 24);
    memcpy(at, &t->old, width);
    memcpy(a.operands, &t->a, width);
    memcpy(a.operands + width, &t->b, word_is_swap_if(code) ? width : 0);
    if (!fetch)
        a.record.flags &= (uint16_t)~SUBMIT_FETCH;
    submit(b, &a);
    event = local_event(b);
    CU_ASSERT_EQUAL(event.status, 0);
    CU_ASSERT_EQUAL(event.op, SUBMIT_ATOMIC);
    CU_ASSERT_EQUAL(event.bytes, fetch ? t->old : width);
    memcpy(&word, at, width);
    CU_ASSERT_EQUAL(word, t->after);
    if (word != t->after || (fetch && event.bytes != t->old))
        printf("code %02x: %llx becomes %llx, not %llx\n", code, (unsigned long long)t->old,
               (unsigned long long)word, (unsigned long long)t->after);
    for (uint32_t i = 0; i < 8; i++)
        CU_ASSERT(at[-1 - (int)i] == 0x5a && at[width + i] == 0x5a);
}

/* Guards that every code does what it says, with and without the value from before. */
static void every_code(void)
{
    for (uint32_t type = 0; type < WORD_TYPES; type++) {
        struct bench *b = self_bench();

        for (uint32_t op = 0; op < WORD_OPS; op++) {
            uint8_t code = word_code((enum word_op)op, (enum word_type)type);

            for (int i = 0; i < 3 && word_code_valid(code); i++) {
                struct trial t = trial_of(code, i);

                try_word(b, code, &t, true);
                if (op != WORD_READ)
                    try_word(b, code, &t, false);
            }
        }
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that the fetched values of several elements are written to the client's memory, and
 * nothing beside them. */
static void several(void)
{
    struct bench *b = self_bench();
    uint32_t words[SUBMIT_FETCH_MAX + 1], got[SUBMIT_FETCH_MAX + 1];

    for (uint32_t count = 2; count <= SUBMIT_FETCH_MAX; count++) {
        struct atomic a = atomic_of(b, word_code(WORD_ADD, WORD_U32), 4 * count);
        struct event_record event;

        a.record.local_offset = 8192;
        memset(b->segment + 8192, 0xee, sizeof(got));
        for (uint32_t i = 0; i < count; i++) {
            words[i] = 1000 * count + i;
            memcpy(a.operands + UINT64_C(4) * i, &i, 4);
        }
        memcpy(b->segment + PLACE, words, sizeof(words));
        submit(b, &a);
        event = local_event(b);
        CU_ASSERT_EQUAL(event.status, 0);
        CU_ASSERT_EQUAL(event.bytes, 4 * count);
        memcpy(got, b->segment + 8192, sizeof(got));
        CU_ASSERT_EQUAL(memcmp(got, words, 4 * count), 0);
        CU_ASSERT_EQUAL(got[count], 0xeeeeeeee);
        for (uint32_t i = 0; i < count; i++)
            words[i] += i;
        CU_ASSERT_EQUAL(memcmp(b->segment + PLACE, words, 4 * count), 0);
    }
    bench_free(b);
}

/* ---- forbidden submissions ------------------------------------------------------------------- */

/* Guards each check of a submission: a wrong one fails with an error, or, if no library submits it,
 * by quarantine. */
static void submissions(void)
{
    static const struct {
        const char *what;
        uint8_t code;
        uint16_t flags; /* flags besides SUBMIT_INLINE */
        uint32_t length;
        uint64_t offset;
        uint32_t segment;
        uint64_t local_offset;
        int status; /* status of the event; 1: the client is quarantined */
    } rows[] = {
#define CODE(op, type) (op | type << 4)
#define FETCH          SUBMIT_FETCH
        {"the last word", CODE(WORD_ADD, WORD_U64), FETCH, 8, 4088, 0, 0, 0},
        {"a word past the end", CODE(WORD_ADD, WORD_U64), FETCH, 8, 4096, 0, 0, -ERANGE},
        {"the last of two past the end", CODE(WORD_ADD, WORD_U64), 0, 16, 4088, 0, 0, -ERANGE},
        {"a word across the end", CODE(WORD_ADD, WORD_U64), FETCH, 8, 4089, 0, 0, -ERANGE},
        {"the last word, two operands", CODE(WORD_COMPARE_SWAP, WORD_U64), FETCH, 16, 4088, 0, 0,
         0},
        {"an offset that wraps", CODE(WORD_ADD, WORD_U64), 0, 8, UINT64_MAX - 7, 0, 0, -ERANGE},
        {"not aligned, 8 bytes", CODE(WORD_ADD, WORD_U64), 0, 8, 68, 0, 0, -EINVAL},
        {"not aligned, 4 bytes", CODE(WORD_ADD, WORD_F32), 0, 4, 66, 0, 0, -EINVAL},
        {"not aligned, 2 bytes", CODE(WORD_ADD, WORD_I16), 0, 2, 65, 0, 0, -EINVAL},
        {"one byte anywhere", CODE(WORD_ADD, WORD_I8), 0, 1, 65, 0, 0, 0},
        {"no operation", CODE(WORD_OPS, WORD_U64), 0, 8, 64, 0, 0, 1},
        {"no type", CODE(WORD_ADD, WORD_TYPES), 0, 8, 64, 0, 0, 1},
        {"bits of a float", CODE(WORD_XOR, WORD_F64), 0, 8, 64, 0, 0, 1},
        {"a read without values", CODE(WORD_READ, WORD_U64), 0, 8, 64, 0, 0, 1},
        {"half a word", CODE(WORD_ADD, WORD_U64), 0, 4, 64, 0, 0, 1},
        {"a word and a half", CODE(WORD_ADD, WORD_U64), 0, 12, 64, 0, 0, 1},
        {"one operand of two", CODE(WORD_COMPARE_SWAP, WORD_U64), 0, 8, 64, 0, 0, 1},
        {"three operands of two", CODE(WORD_COMPARE_SWAP, WORD_U8), 0, 3, 64, 0, 0, 1},
        {"as many values as may be", CODE(WORD_ADD, WORD_U64), FETCH, 128, 64, 0, 8192, 0},
        {"a value too many", CODE(WORD_ADD, WORD_U64), FETCH, 136, 64, 0, 8192, 1},
        {"more words without values", CODE(WORD_ADD, WORD_U64), 0, 136, 64, 0, 0, 0},
        {"values at the segment's end", CODE(WORD_ADD, WORD_U64), FETCH, 16, 64, 0,
         BENCH_SEGMENT - 16, 0},
        {"values past it", CODE(WORD_ADD, WORD_U64), FETCH, 16, 64, 0, BENCH_SEGMENT - 8, 1},
        {"values in no segment", CODE(WORD_ADD, WORD_U64), FETCH, 16, 64, 3, 0, 1},
        {"a value in no segment needs none", CODE(WORD_ADD, WORD_U64), FETCH, 8, 64, 3, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = self_bench();
        struct atomic a = atomic_of(b, rows[i].code, rows[i].length);
        struct event_record event = {.status = 1};

        a.record.flags = (uint16_t)(SUBMIT_INLINE | rows[i].flags);
        a.record.offset = rows[i].offset;
        a.record.segment = rows[i].segment;
        a.record.local_offset = rows[i].local_offset;
        submit(b, &a);
        for (int n = 0; n < 50 && !b->quarantined && !bench_local_event(b, &event); n++)
            continue;
        CU_ASSERT_EQUAL(b->quarantined, rows[i].status == 1);
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        if (event.status != rows[i].status || b->quarantined != (rows[i].status == 1))
            printf("%s: status %d\n", rows[i].what, event.status);
        bench_free(b);
    }
}

/* Guards that an atomic without inline operands quarantines its client: there would be no operands
 * to check. */
static void without_operands(void)
{
    struct bench *b = self_bench();
    struct atomic a = atomic_of(b, word_code(WORD_ADD, WORD_U64), 8);

    a.record.flags = 0;
    a.record.size = sizeof(a.record);
    submit(b, &a);
    bench_steps(b, 3);
    CU_ASSERT_TRUE(b->quarantined);
    bench_free(b);
}

/* Guards the rights that each kind of atomic asks for, at the origin. */
static void rights(void)
{
    static const struct {
        uint8_t code;
        uint16_t flags;
        uint32_t rights;
        bool allowed;
    } rows[] = {
        {CODE(WORD_ADD, WORD_U64), 0, ENGINE_REMOTE_WRITE, true},
        {CODE(WORD_ADD, WORD_U64), 0, ENGINE_REMOTE_READ, false},
        {CODE(WORD_ADD, WORD_U64), FETCH, ENGINE_REMOTE_WRITE, false},
        {CODE(WORD_ADD, WORD_U64), FETCH, ENGINE_REMOTE_READ, false},
        {CODE(WORD_ADD, WORD_U64), FETCH, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, true},
        {CODE(WORD_READ, WORD_U64), FETCH, ENGINE_REMOTE_READ, true},
        {CODE(WORD_READ, WORD_U64), FETCH, ENGINE_REMOTE_WRITE, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = BENCH_KEY;
        struct event_record event = {.status = 0};
        struct atomic a;

        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
        bench_bound(b, 0, 0, rows[i].rights);
        a = atomic_of(b, rows[i].code, 8);
        a.record.flags = (uint16_t)(SUBMIT_INLINE | rows[i].flags);
        submit(b, &a);
        CU_ASSERT_EQUAL(bench_local_event(b, &event), !rows[i].allowed);
        CU_ASSERT_EQUAL(event.status, rows[i].allowed ? 0 : -EKEYREJECTED);
        bench_free(b);
    }
}

/* Guards a region that does not begin at a multiple of 8: an atomic on a word that is not aligned
 * there fails at its target, because only the owner knows where the region begins. */
static void region_out_of_line(void)
{
    struct bench *b = unbound_bench(true);
    struct engine_key key;
    struct atomic a;

    CU_ASSERT_EQUAL(engine_region_open(b->engine, 0, 0, 4, 64, 3, &key), 0);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, 0, 0, &key, 1), 0);
    b->remote = WIRE_NONE;
    bench_steps(b, 50);
    CU_ASSERT_NOT_EQUAL_FATAL(b->remote, WIRE_NONE);
    a = atomic_of(b, word_code(WORD_ADD, WORD_U64), 8);
    a.record.offset = 8;
    submit(b, &a);
    CU_ASSERT_EQUAL(local_event(b).status, -EINVAL);
    bench_free(b);
}

/* ---- a peer's RESULT ------------------------------------------------------------------------- */

/* Guards the checks of a RESULT, and that its value is shown only when the record is acknowledged.
 */
static void results(void)
{
    static const struct {
        const char *what;
        uint32_t sequence, done, words;
        int32_t status;
        bool breaks;
        int32_t shown; /* status of the event, whose `bytes` is the value */
        uint64_t bytes;
    } rows[] = {
        {"its value", 0, 1, 4, 0, false, 0, 99},
        {"no value", 0, 0, 3, 0, true, 0, 0},
        {"two values", 0, 2, 5, 0, true, 0, 0},
        {"a value that is not there", 0, 1, 3, 0, true, 0, 0},
        {"more than the value", 0, 1, 5, 0, true, 0, 0},
        {"busy", 0, 0, 3, -EBUSY, false, -EBUSY, 0},
        {"busy, and more than the value", 0, 2, 5, -EBUSY, true, 0, 0},
        {"another error", 0, 0, 3, -EIO, true, 0, 0},
        {"an error that is none", 0, 0, 3, 1, true, 0, 0},
        {"of no operation", 5, 1, 4, 0, false, 0, 0},
        {"more than there can be", 0, 65, 68, 0, true, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        struct {
            struct wire_flow w;
            uint64_t values[70];
        } result = {.w = {.head = {.words = (uint16_t)rows[i].words, .kind = WIRE_RESULT},
                          .sequence = rows[i].sequence,
                          .status = rows[i].status,
                          .done = rows[i].done},
                    .values = {99}};
        struct event_record event = {.size = 0};
        struct atomic a;

        bench_remote(b);
        a = atomic_of(b, word_code(WORD_ADD, WORD_U64), 8);
        submit(b, &a);
        bench_steps(b, 2);
        (void)bench_send(b, &result, rows[i].words * 8u);
        CU_ASSERT_EQUAL(b->broken, rows[i].breaks);
        CU_ASSERT_FALSE(bench_local_event(b, &event));
        if (!b->broken) {
            bench_ack(b);
            CU_ASSERT_TRUE(bench_local_event(b, &event));
            CU_ASSERT_EQUAL(event.status, rows[i].shown);
            CU_ASSERT_EQUAL(event.bytes, rows[i].bytes);
        }
        if (b->broken != rows[i].breaks)
            printf("%s\n", rows[i].what);
        bench_free(b);
    }
}

/* Guards that the event of a fetching atomic waits for the value, although its source is free at
 * once. */
static void value_later(void)
{
    struct bench *b = unbound_bench(false);
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    struct event_record event;
    struct atomic a;

    bench_remote(b);
    a = atomic_of(b, word_code(WORD_ADD, WORD_U64), 8);
    a.record.flags = SUBMIT_INLINE;
    submit(b, &a);
    bench_steps(b, 2);
    ack.consumed = peek_peer(b->engine, 1).posted;
    a.record.flags = SUBMIT_INLINE | SUBMIT_FETCH | SUBMIT_LCE_SOURCE;
    submit(b, &a);
    bench_steps(b, 2);
    (void)bench_send(b, &ack, sizeof(ack));
    CU_ASSERT_TRUE(bench_local_event(b, &event));
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    bench_free(b);
}

/* Room for any verdict of the engine. */
struct verdict {
    struct wire_flow w;
    uint64_t values[WIRE_RESULT_VALUES];
};

/* Guards which RESULTs of a batch of two atomics the origin takes, and which break the link. */
static void results_of_a_batch(void)
{
    static const struct {
        uint32_t done, words;
        int32_t status;
        bool breaks;
    } rows[] = {
        {2, 5, 0, false},     {1, 4, -EBUSY, false}, {1, 4, 0, true},
        {2, 4, 0, true},      {2, 6, 0, true},       {3, 6, 0, true},
        {3, 6, -EBUSY, true}, {2, 5, -EIO, true},    {0, 3, -EBUSY, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        struct verdict result = {
            .w = {.head = {.words = (uint16_t)rows[i].words, .kind = WIRE_RESULT},
                  .status = rows[i].status,
                  .done = rows[i].done},
            .values = {50, 51, 52}};
        struct event_record event;

        bench_remote(b);
        for (uint32_t k = 0; k < 2; k++) {
            struct atomic a = atomic_of(b, word_code(WORD_ADD, WORD_U64), 8);

            submit(b, &a);
        }
        bench_steps(b, 2);
        (void)bench_send(b, &result, rows[i].words * 8u);
        CU_ASSERT_EQUAL(b->broken, rows[i].breaks);
        if (!b->broken)
            bench_ack(b);
        for (uint32_t k = 0; k < 2 && !b->broken; k++) {
            CU_ASSERT_TRUE(bench_local_event(b, &event));
            CU_ASSERT_EQUAL(event.status, k < rows[i].done ? 0 : -EBUSY);
            CU_ASSERT_EQUAL(event.bytes, k < rows[i].done ? 50 + k : 0);
        }
        bench_free(b);
    }
}

/* Guards that a RESULT for a put breaks the link. */
static void result_of_a_put(void)
{
    struct bench *b = unbound_bench(false);
    struct {
        struct wire_flow w;
        uint64_t value;
    } result = {.w = {.head = {.words = 4, .kind = WIRE_RESULT}, .done = 1}};
    struct atomic a;

    bench_remote(b);
    a = atomic_of(b, 0, 8);
    a.record.kind = SUBMIT_PUT;
    a.record.flags = SUBMIT_INLINE;
    submit(b, &a);
    bench_steps(b, 2);
    CU_ASSERT_FALSE(b->broken);
    (void)bench_send(b, &result, sizeof(result));
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Checks the kinds and counts of the records towards node 1 from `at` on. */
static void expect_records(struct bench *b, uint64_t at, const char *expected)
{
    char said[64] = "";
    size_t used = 0;

    while (at < peek_peer(b->engine, 1).staged) {
        const struct wire_op *w = peek_record(b->engine, 1, at);

        at += w->head.words * 8u;
        if (w->head.kind == WIRE_ATOMIC || w->head.kind == WIRE_ATOMICS)
            used += (size_t)snprintf(said + used, sizeof(said) - used, "%s%u", used ? " " : "",
                                     w->head.kind == WIRE_ATOMICS ? (unsigned)w->count : 1);
    }
    CU_ASSERT_STRING_EQUAL(said, expected);
}

/* Guards which atomics form one batch: of three atomics, the second differs in one field. */
static void one_differs(void)
{
    static const struct {
        const char *what;
        uint8_t code;
        uint16_t flags;
        uint64_t offset;
        const char *records;
    } rows[] = {
        {"nothing", CODE(WORD_ADD, WORD_U64), FETCH, 8, "3"},
        {"another word", CODE(WORD_ADD, WORD_U64), FETCH, 4088, "3"},
        {"another operation", CODE(WORD_SET, WORD_U64), FETCH, 8, "1 1 1"},
        {"another type", CODE(WORD_ADD, WORD_I64), FETCH, 8, "1 1 1"},
        {"no value", CODE(WORD_ADD, WORD_U64), 0, 8, "1 1 1"},
        {"not aligned", CODE(WORD_ADD, WORD_U64), FETCH, 9, "1 1"},
        {"past the end", CODE(WORD_ADD, WORD_U64), FETCH, 4096, "1 1"},
        {"a notification", CODE(WORD_ADD, WORD_U64), FETCH | SUBMIT_NOTIFY, 8, "1 1 1"},
        {"a fence", CODE(WORD_ADD, WORD_U64), FETCH | SUBMIT_FENCE, 8, "1"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        uint64_t at;

        bench_remote(b);
        at = peek_peer(b->engine, 1).staged;
        for (uint32_t k = 0; k < 3; k++) {
            struct atomic a = atomic_of(b, k == 1 ? rows[i].code : CODE(WORD_ADD, WORD_U64), 8);

            a.record.flags = (uint16_t)(SUBMIT_INLINE | (k == 1 ? rows[i].flags : FETCH));
            a.record.offset = k == 1 ? rows[i].offset : 16;
            submit(b, &a);
        }
        bench_steps(b, 2);
        CU_ASSERT_FALSE(b->quarantined);
        expect_records(b, at, rows[i].records);
        bench_free(b);
    }
}

/* Guards that each atomic of a batch has its own value and its own event, in order. */
static void batch(void)
{
    static const uint16_t flags[] = {0, FETCH, FETCH | SUBMIT_SLOT};

    for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++) {
        struct bench *b = self_bench();
        uint64_t events = bench_events(b);
        uint32_t words[2];

        for (uint32_t i = 0; i < 40; i++) {
            struct atomic a = atomic_of(b, word_code(WORD_ADD, WORD_I32), 4);

            a.record.flags = SUBMIT_INLINE | flags[f];
            a.record.offset = PLACE + 4 * (i % 2);
            a.record.lid = 100 + i;
            a.operands[0] = (uint8_t)(1 + i % 2);
            submit(b, &a);
        }
        for (uint32_t i = 0; i < 40; i++) {
            struct event_record event = local_event(b);

            CU_ASSERT_EQUAL(event.status, 0);
            CU_ASSERT_EQUAL(event.id, 100 + i);
            CU_ASSERT_EQUAL(event.op, event_op(SUBMIT_ATOMIC, flags[f]));
            CU_ASSERT_EQUAL(event.bytes, flags[f] & FETCH ? i / 2 * (1 + i % 2) : 4);
        }
        memcpy(words, b->segment + PLACE, sizeof(words));
        CU_ASSERT(words[0] == 20 && words[1] == 40);
        CU_ASSERT_EQUAL(bench_events(b) - events, 40 * event_bytes(0));
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"every operation on every type", every_code},
        {"values of several elements", several},
        {"submissions", submissions},
        {"without operands", without_operands},
        {"rights", rights},
        {"a region out of line", region_out_of_line},
        {"results of a peer", results},
        {"a value comes later", value_later},
        {"results of a batch", results_of_a_batch},
        {"the result of a put", result_of_a_put},
        {"one differs", one_differs},
        {"a batch", batch},
        CU_TEST_INFO_NULL,
    };

    return suite_run("atomics", tests);
}
