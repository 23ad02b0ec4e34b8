/* The two sides of a pair's ring, in one thread: bounds, laps, and values that a hostile side may
 * write. */
#include "shm_ring/pair.h"
#include "shm_ring/mapping.h"
#include "tests/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t none[1];

struct both {
    struct mapping m;
    struct pair_writer writer;
    struct pair_reader reader;
};

static void open_way(struct both *b, enum pair_direction way)
{
    CU_ASSERT_EQUAL_FATAL(mapping_create(&b->m, "test-pair", PAIR_BYTES), 0);
    pair_format(b->m.base);
    CU_ASSERT_EQUAL_FATAL(pair_writer_init(&b->writer, b->m.base, b->m.size, way), 0);
    CU_ASSERT_EQUAL_FATAL(pair_reader_init(&b->reader, b->m.base, b->m.size, way), 0);
}

static void open_both(struct both *b)
{
    open_way(b, PAIR_REQUESTS);
}

static void put(struct both *b, uint64_t number, const uint8_t *id, uint16_t id_len)
{
    const struct pair_record record = {.kind = PAIR_PUT,
                                       .flags = number % 2 ? PAIR_AFTER : 0,
                                       .id_len = id_len,
                                       .lines = pair_lines(id_len),
                                       .bytes = number,
                                       .id = ~number};

    pair_write(&b->writer, &record, id);
}

/* Takes the next record, and checks number and id. */
static void take(struct both *b, uint64_t number, const uint8_t *id, uint16_t id_len)
{
    uint8_t got[SESSION_ID_MAX];
    struct pair_record record = {0};

    CU_ASSERT_TRUE(pair_pending(&b->reader));
    CU_ASSERT_EQUAL_FATAL(pair_look(&b->reader, &record, got), 1);
    CU_ASSERT_EQUAL(record.kind, PAIR_PUT);
    CU_ASSERT_EQUAL(record.flags, number % 2 ? PAIR_AFTER : 0);
    CU_ASSERT_EQUAL(record.id_len, id_len);
    CU_ASSERT_EQUAL(record.bytes, number);
    CU_ASSERT_TRUE(id_len > 0 || record.id == ~number);
    CU_ASSERT_TRUE(id_len == 0 || memcmp(got, id, id_len) == 0);
    pair_pass(&b->reader, &record);
}

static void nothing(struct both *b)
{
    uint8_t id[SESSION_ID_MAX];
    struct pair_record record = {0};

    CU_ASSERT_FALSE(pair_pending(&b->reader));
    CU_ASSERT_EQUAL(pair_look(&b->reader, &record, id), 0);
}

static void ids_of_each_length(void)
{
    static const uint16_t lengths[] = {0, 1, 7, 8, 39, 40, 41, 95, 96, 97, 152, 153, 1023, 1024};
    uint8_t id[SESSION_ID_MAX];
    struct both b;

    open_both(&b);
    nothing(&b);
    /* Ids whose bytes look like the heads of later lines. */
    for (size_t i = 0; i < sizeof(id); i++)
        id[i] = i % 4 == 0 ? (uint8_t)(i / 8 + 1) : 0;
    for (int lap = 0; lap < 200; lap++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            CU_ASSERT_EQUAL_FATAL(pair_room(&b.writer, pair_lines(lengths[i])), 0);
            put(&b, i, id, lengths[i]);
            take(&b, i, id, lengths[i]);
            nothing(&b);
        }
    mapping_destroy(&b.m);
}

/* Messages that are written in pieces are read as a whole, here from the ring of answers. */
static void messages_in_pieces(void)
{
    static const uint32_t pieces[][3] = {
        {32, 0, 0},  {32, 8, 0},   {32, 16, 0},  {32, 128, 0},  {32, 8, 1},
        {32, 0, 56}, {32, 128, 7}, {32, 64, 56}, {32, 8, 4096}, {32, 128, 28000},
    };
    static uint8_t from[3][28000], got[32 + 128 + 28000];
    struct both b;

    open_way(&b, PAIR_ANSWERS);
    b.reader.block_max = sizeof(got);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n = 0; n < sizeof(from[i]); n++)
            from[i][n] = (uint8_t)(n * 7 + i);
    for (uint32_t round = 0; round < 500; round++) {
        const uint32_t *lengths = pieces[round % (sizeof(pieces) / sizeof(pieces[0]))];
        uint16_t id_len = (uint16_t)(lengths[0] + lengths[1] + abi_pad8(lengths[2]));
        struct pair_record record = {
            .kind = PAIR_MESSAGE, .id_len = id_len, .lines = pair_lines(id_len), .bytes = round};
        struct pair_id id;
        uint32_t at = 0;

        CU_ASSERT_EQUAL_FATAL(pair_room(&b.writer, record.lines), 0);
        id = pair_id_begin(&b.writer);
        for (uint32_t i = 0; i < 3; i++)
            pair_id_add(&id, from[i], lengths[i]);
        CU_ASSERT_FALSE(pair_pending(&b.reader));
        pair_show(&b.writer, &record);
        CU_ASSERT_EQUAL_FATAL(pair_look(&b.reader, &record, got), 1);
        CU_ASSERT_EQUAL(record.id_len, id_len);
        CU_ASSERT_EQUAL(record.bytes, round);
        for (uint32_t i = 0; i < 3; at += lengths[i++])
            CU_ASSERT_EQUAL(memcmp(got + at, from[i], lengths[i]), 0);
        pair_pass(&b.reader, &record);
        CU_ASSERT_TRUE(pair_drained(&b.writer));
    }
    mapping_destroy(&b.m);
}

/* A side that has armed is woken exactly once. */
static void bells(void)
{
    struct both b;

    open_both(&b);
    CU_ASSERT_TRUE(pair_reader_sleeps(&b.writer)); /* a new ring is armed */
    CU_ASSERT_FALSE(pair_reader_sleeps(&b.writer));
    CU_ASSERT_FALSE(pair_writer_sleeps(&b.reader));
    atomic_store(&b.writer.ring->room_bell, DOORBELL_FD);
    CU_ASSERT_FALSE(pair_reader_sleeps(&b.writer));
    CU_ASSERT_TRUE(pair_writer_sleeps(&b.reader));
    CU_ASSERT_FALSE(pair_writer_sleeps(&b.reader));
    mapping_destroy(&b.m);
}

static void a_full_ring(void)
{
    struct both b;
    uint64_t there = 0, taken = 0;

    open_both(&b);
    CU_ASSERT_TRUE(pair_drained(&b.writer));
    while (pair_room(&b.writer, 1) == 0)
        put(&b, there++, none, 0);
    CU_ASSERT_EQUAL(there, PAIR_LINES);
    CU_ASSERT_EQUAL(pair_room(&b.writer, 1), -EAGAIN);
    CU_ASSERT_EQUAL(pair_room(&b.writer, pair_lines(SESSION_ID_MAX)), -EAGAIN);
    CU_ASSERT_FALSE(pair_drained(&b.writer));
    while (taken < there)
        take(&b, taken++, none, 0);
    nothing(&b); /* gives back what was read */
    CU_ASSERT_EQUAL(pair_room(&b.writer, pair_lines(SESSION_ID_MAX)), 0);
    CU_ASSERT_TRUE(pair_drained(&b.writer));
    mapping_destroy(&b.m);
}

static void a_header_that_is_not_sound(void)
{
    struct both b;
    struct pair_shared *shared;

    open_both(&b);
    shared = b.m.base;
    CU_ASSERT_EQUAL(pair_writer_init(&b.writer, b.m.base, PAIR_BYTES - 1, PAIR_REQUESTS), -EPROTO);
    shared->lines = PAIR_LINES * 2;
    CU_ASSERT_EQUAL(pair_reader_init(&b.reader, b.m.base, PAIR_BYTES, PAIR_ANSWERS), -EPROTO);
    shared->lines = PAIR_LINES;
    shared->magic++;
    CU_ASSERT_EQUAL(pair_reader_init(&b.reader, b.m.base, PAIR_BYTES, PAIR_ANSWERS), -EPROTO);
    mapping_destroy(&b.m);
}

/* A hostile target writes false values into its count of consumed lines. */
static void a_lying_target(void)
{
    static const uint64_t lies[] = {PAIR_LINES + 1, UINT64_MAX, UINT64_C(1) << 63, 4};
    struct both b;

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        open_both(&b);
        for (int n = 0; n < 8; n++)
            put(&b, 0, none, 0);
        atomic_store(&b.writer.ring->consumed, 6);
        CU_ASSERT_FALSE(pair_drained(&b.writer));
        while (pair_room(&b.writer, 1) == 0)
            put(&b, 0, none, 0);
        atomic_store(&b.writer.ring->consumed, lies[i] + 6);
        if (lies[i] == 4) /* 4: a count that falls */
            atomic_store(&b.writer.ring->consumed, 2);
        CU_ASSERT_EQUAL(pair_room(&b.writer, 1), -EPROTO);
        CU_ASSERT_TRUE(pair_drained(&b.writer)); /* so that no side waits for it */
        mapping_destroy(&b.m);
    }
}

/* Heads that no honest origin writes: they break the pair. */
static void a_lying_origin(void)
{
    static const uint64_t heads[] = {
        1,
        1 | (uint64_t)PAIR_MORE << 32,
        1 | UINT64_C(0xff) << 32,
        1 | (uint64_t)PAIR_PUT << 32 | UINT64_C(4) << 40,
        1 | (uint64_t)PAIR_MESSAGE << 32 | (uint64_t)PAIR_NOTIFY << 40,
        1 | (uint64_t)PAIR_GET << 32 | (uint64_t)PAIR_NOTIFY << 40 | UINT64_C(8) << 48,
        1 | (uint64_t)PAIR_PUT << 32 | (uint64_t)(SESSION_ID_MAX + 1) << 48,
        1 | (uint64_t)PAIR_GET << 32 | UINT64_C(0xffff) << 48,
        1 | (uint64_t)PAIR_MESSAGE << 32 | UINT64_C(1) << 48, /* no id is taken */
        1 | (uint64_t)PAIR_UNANSWERED << 32 | UINT64_C(0xffff) << 48,
    };
    uint8_t id[SESSION_ID_MAX];
    struct pair_record record = {0};
    struct both b;

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        open_both(&b);
        atomic_store(&b.writer.lines[0].head, heads[i]);
        CU_ASSERT_EQUAL(pair_look(&b.reader, &record, id), -EPROTO);
        mapping_destroy(&b.m);
    }
}

enum { BLOCK_MAX = 1200 };

static uint32_t longest(uint8_t kind)
{
    return kind == PAIR_MESSAGE ? BLOCK_MAX : SESSION_ID_MAX;
}

/* For any content of the lines, the reader copies at most an id's bytes, and continues. */
static void random_lines(void)
{
    uint8_t id[BLOCK_MAX + 8];
    struct pair_record record = {0};
    struct both b;

    srand(7);
    open_both(&b);
    b.reader.block_max = BLOCK_MAX;
    memset(id, 0x5a, sizeof(id));
    for (uint32_t round = 0; round < 200000; round++) {
        struct pair_line *line = &b.writer.lines[b.reader.head & b.reader.mask];
        uint8_t kind = (uint8_t)(rand() % 7), flags = (uint8_t)(rand() % 5);
        uint32_t id_len = rand() % 4 ? (uint32_t)(rand() % 1500) : 0;
        bool senseless = flags & PAIR_NOTIFY && (kind > PAIR_ATOMIC || id_len > 0);

        line->bytes = (uint64_t)rand();
        atomic_store(&line->head, pair_head(b.reader.head, kind, flags, id_len));
        if (pair_look(&b.reader, &record, id) == 1) {
            CU_ASSERT_TRUE(kind >= PAIR_PUT && kind <= PAIR_UNANSWERED);
            CU_ASSERT_TRUE_FATAL(flags <= (PAIR_AFTER | PAIR_NOTIFY) && id_len <= longest(kind));
            CU_ASSERT_FALSE(senseless);
            pair_pass(&b.reader, &record);
        } else {
            CU_ASSERT_TRUE(kind == 0 || kind >= PAIR_MORE || senseless ||
                           flags > (PAIR_AFTER | PAIR_NOTIFY) || id_len > longest(kind));
        }
    }
    for (size_t i = BLOCK_MAX; i < sizeof(id); i++)
        CU_ASSERT_EQUAL(id[i], 0x5a);
    mapping_destroy(&b.m);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"ids of each length", ids_of_each_length},
        {"messages in pieces", messages_in_pieces},
        {"bells", bells},
        {"a full ring", a_full_ring},
        {"a header that is not sound", a_header_that_is_not_sound},
        {"a lying target", a_lying_target},
        {"a lying origin", a_lying_origin},
        {"random lines", random_lines},
        CU_TEST_INFO_NULL,
    };

    return suite_run("pair", tests);
}
