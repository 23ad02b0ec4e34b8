/* The parser of frames: whole frames, streams cut anywhere, garbage, lengths over the bound,
 * endless streams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/nodes/frame.h"
#include "tests/suite.h"

#define BOUND 65536u

static void feed(struct frame_parser *p, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        uint8_t *to;
        size_t room;

        CU_ASSERT_EQUAL_FATAL(frame_space(p, &to, &room), 0);
        CU_ASSERT_FATAL(room > 0);
        room = room < size ? room : size;
        memcpy(to, bytes, room);
        frame_fed(p, room);
        bytes += room;
        size -= room;
    }
}

static size_t make(uint8_t *to, const size_t *sizes, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        frame_head_write(to + at, (uint32_t)sizes[i]);
        memset(to + at + FRAME_HEAD_BYTES, (int)(i + 1), sizes[i]);
        at += FRAME_HEAD_BYTES + sizes[i];
    }
    return at;
}

/* However the stream is cut, its frames come out unchanged. */
static void whatever_the_cuts(void)
{
    static const size_t sizes[] = {0, 1, 3, 4, 4091, 4092, 4093, 0, 65535, 65536, 7};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    static const size_t cuts[] = {1, 2, 3, 5, 4095, 4096, 4097, 65536, 1u << 20};
    static uint8_t bytes[1 << 18];
    size_t total = make(bytes, sizes, COUNT);

    for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
        struct frame_parser p;
        size_t seen = 0;

        frame_parser_init(&p, BOUND);
        for (size_t at = 0; at < total; at += cuts[c]) {
            const uint8_t *body;
            size_t size;

            feed(&p, bytes + at, total - at < cuts[c] ? total - at : cuts[c]);
            while (frame_next(&p, &body, &size) == 1) {
                CU_ASSERT_FATAL(seen < COUNT);
                CU_ASSERT_EQUAL(size, sizes[seen]);
                if (size > 0) {
                    CU_ASSERT_EQUAL(body[0], seen + 1);
                    CU_ASSERT_EQUAL(body[size - 1], seen + 1);
                }
                seen++;
            }
        }
        CU_ASSERT_EQUAL(seen, COUNT);
        CU_ASSERT_FALSE(frame_is_partial(&p));
        CU_ASSERT_FALSE(frame_is_ready(&p));
        frame_parser_destroy(&p);
    }
}

/* A frame announced with a length over the bound is refused by its head alone, and takes no memory.
 */
static void over_the_bound(void)
{
    static const struct {
        uint32_t announced;
        int expected;
    } rows[] = {
        {BOUND, 0}, {BOUND + 1, -EMSGSIZE}, {0x7fffffff, -EMSGSIZE}, {UINT32_MAX, -EMSGSIZE}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct frame_parser p;
        const uint8_t *body;
        size_t size;
        uint8_t head[FRAME_HEAD_BYTES], *to;
        size_t room;

        frame_parser_init(&p, BOUND);
        frame_head_write(head, rows[i].announced);
        feed(&p, head, sizeof(head));
        CU_ASSERT_EQUAL(frame_next(&p, &body, &size), rows[i].expected);
        CU_ASSERT_EQUAL(frame_is_ready(&p), rows[i].expected < 0);
        CU_ASSERT_EQUAL(frame_is_partial(&p), rows[i].expected == 0);
        CU_ASSERT_EQUAL(frame_space(&p, &to, &room), 0); /* none for a frame that will be refused */
        CU_ASSERT(p.capacity <= BOUND + FRAME_HEAD_BYTES);
        frame_parser_destroy(&p);
    }
}

/* A frame is ready from its last byte until it is taken. */
static void ready(void)
{
    static const uint8_t bytes[FRAME_HEAD_BYTES + 2] = {2};
    struct frame_parser p;
    const uint8_t *body;
    size_t size;

    frame_parser_init(&p, BOUND);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        CU_ASSERT_FALSE(frame_is_ready(&p));
        CU_ASSERT_EQUAL(frame_is_partial(&p), i > 0);
        feed(&p, bytes + i, 1);
    }
    CU_ASSERT_TRUE(frame_is_ready(&p));
    CU_ASSERT_FALSE(frame_is_partial(&p));
    CU_ASSERT_EQUAL(frame_next(&p, &body, &size), 1);
    CU_ASSERT_FALSE(frame_is_ready(&p));
    frame_parser_destroy(&p);
}

/* A stream of small frames without end holds no more than a few of them in memory. */
static void endless(void)
{
    struct frame_parser p;
    uint8_t one[FRAME_HEAD_BYTES + 100];
    const uint8_t *body;
    size_t size, seen = 0;

    frame_parser_init(&p, BOUND);
    frame_head_write(one, 100);
    memset(one + FRAME_HEAD_BYTES, 7, 100);
    for (int i = 0; i < 100000; i++) {
        feed(&p, one, sizeof(one));
        while (frame_next(&p, &body, &size) == 1)
            seen++;
    }
    CU_ASSERT_EQUAL(seen, 100000);
    CU_ASSERT(p.capacity <= 2 * 4096);
    frame_parser_destroy(&p);
}

/* Random bytes never make the reader read or hold more than its bound (the sanitizers watch). */
static void garbage(void)
{
    unsigned seed = 1;

    for (int round = 0; round < 2000; round++) {
        struct frame_parser p;
        uint8_t bytes[512];
        const uint8_t *body;
        size_t size, taken = 0;
        int rc = 0;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(rand_r(&seed) % 4 ? 0 : rand_r(&seed));
        frame_parser_init(&p, 256);
        for (size_t at = 0; at < sizeof(bytes) && rc >= 0; at += 64) {
            feed(&p, bytes + at, 64);
            while ((rc = frame_next(&p, &body, &size)) == 1)
                taken += FRAME_HEAD_BYTES + size;
        }
        CU_ASSERT(rc == 0 || rc == -EMSGSIZE);
        CU_ASSERT(taken <= sizeof(bytes));
        frame_parser_destroy(&p);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"whatever the cuts", whatever_the_cuts},
                           {"over the bound", over_the_bound},
                           {"ready", ready},
                           {"endless", endless},
                           {"garbage", garbage},
                           CU_TEST_INFO_NULL};

    return suite_run("frame", tests);
}
