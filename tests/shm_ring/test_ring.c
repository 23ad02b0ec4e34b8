/*
 * The ring's two views, with tables of boundaries: sizes, every place of the wrap, a full ring, and
 * each shared word with values that an honest side would never write.
 */
#include "shm_ring/ring.h"
#include "tests/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RING = 1024,
    KIND = 7,
    CANARY = 0xa5,
};

/* Both sides of a ring; the test's thread plays both. */
struct pair {
    struct ring_control control;
    _Alignas(64) uint8_t data[RING];
    struct ring_producer producer;
    struct ring_consumer consumer;
};

static void pair_init(struct pair *r, uint64_t at)
{
    memset(r, 0, sizeof(*r));
    atomic_store(&r->control.tail, at);
    atomic_store(&r->control.head, at);
    ring_producer_init(&r->producer, &r->control, r->data, RING, at);
    ring_consumer_init(&r->consumer, &r->control, r->data, RING, at);
}

static void fill(uint8_t *record, uint32_t size, uint8_t seed)
{
    struct ring_record_head head = {.size = size, .kind = KIND, .byte5 = seed};

    memcpy(record, &head, sizeof(head));
    for (uint32_t i = sizeof(head); i < size; i++)
        record[i] = (uint8_t)(seed + i);
}

/* Writes one whole record. Returns the result of ring_reserve. */
static int put(struct pair *r, uint32_t size, uint8_t seed)
{
    void *record;
    int rc = ring_reserve(&r->producer, size, &record);

    if (rc != 0)
        return rc;
    fill(record, size, seed);
    ring_advance(&r->producer, size);
    ring_publish(&r->producer);
    return 0;
}

/* Takes one record and compares all its bytes, also with those of a look before. Returns the result
 * of ring_copy. */
static int take(struct pair *r, uint32_t size, uint8_t seed)
{
    uint8_t expected[RING], got[RING];
    uint32_t got_size = 0, there_size = 0;
    const void *there;
    int rc = ring_copy(&r->consumer, got, sizeof(got), &got_size);

    if (rc != 1)
        return rc;
    fill(expected, size, seed);
    CU_ASSERT_EQUAL_FATAL(ring_look(&r->consumer, &there, &there_size), 1);
    CU_ASSERT_EQUAL(there_size, size);
    CU_ASSERT_EQUAL((uintptr_t)there % 8, 0);
    CU_ASSERT_EQUAL(memcmp(there, expected, size), 0);
    CU_ASSERT_EQUAL_FATAL(got_size, size);
    CU_ASSERT_EQUAL(memcmp(got, expected, size), 0);
    ring_consume(&r->consumer, got_size);
    ring_release(&r->consumer);
    return 1;
}

static void test_sizes(void)
{
    static const struct {
        uint32_t size;
        int result;
    } table[] = {{0, -EINVAL},
                 {1, -EINVAL},
                 {4, -EINVAL},
                 {7, -EINVAL},
                 {8, 0},
                 {9, -EINVAL},
                 {12, -EINVAL},
                 {16, 0},
                 {24, 0},
                 {RING / 4 - 8, 0},
                 {RING / 4, 0},
                 {RING / 4 + 8, -EINVAL},
                 {RING, -EINVAL},
                 {UINT32_MAX & ~7u, -EINVAL},
                 {UINT32_MAX, -EINVAL}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct pair r;

        pair_init(&r, 0);
        CU_ASSERT_EQUAL(put(&r, table[i].size, (uint8_t)i), table[i].result);
        CU_ASSERT_EQUAL(take(&r, table[i].size, (uint8_t)i), table[i].result == 0);
        CU_ASSERT_EQUAL(take(&r, 8, 0), 0);
    }
}

/* Every start in the area with every size, in a new ring and after very many bytes. */
static void test_wrap(void)
{
    static const uint64_t ages[] = {0, RING, UINT64_C(1) << 32, UINT64_C(1) << 62};

    for (size_t age = 0; age < sizeof(ages) / sizeof(ages[0]); age++) {
        for (uint32_t start = 0; start < RING; start += 8) {
            for (uint32_t size = 8; size <= RING / 4; size += 8) {
                struct pair r;
                struct ring_record_head pad;
                uint32_t to_end = RING - start;
                uint32_t padding = size <= to_end ? 0 : to_end;

                pair_init(&r, ages[age] + start);
                CU_ASSERT_EQUAL_FATAL(put(&r, size, (uint8_t)size), 0);
                CU_ASSERT_EQUAL_FATAL(ring_used(&r.producer), (int64_t)padding + size);
                memcpy(&pad, r.data + start, sizeof(pad));
                if (padding != 0) {
                    CU_ASSERT_EQUAL(pad.kind, 0);
                    CU_ASSERT_EQUAL(pad.size, padding);
                }
                CU_ASSERT_EQUAL_FATAL(take(&r, size, (uint8_t)size), 1);
                CU_ASSERT_EQUAL_FATAL(ring_used(&r.producer), 0);
                CU_ASSERT_EQUAL(ring_pending(&r.consumer), 0);
            }
        }
    }
}

/* Fills the ring to the last record that fits, and drains it in order, three times round the
 * area. */
static void test_full(void)
{
    for (uint32_t size = 8; size <= RING / 4; size += 8) {
        struct pair r;
        uint32_t written = 0, read = 0;

        pair_init(&r, 0);
        while (r.producer.tail < 3 * RING) {
            uint32_t before = written;

            while (put(&r, size, (uint8_t)written) == 0)
                written++;
            CU_ASSERT_FATAL(written > before);
            CU_ASSERT_EQUAL(put(&r, size, 0), -EAGAIN);
            int64_t used = ring_used(&r.producer);
            CU_ASSERT(used <= RING);
            CU_ASSERT(used + 2 * (int64_t)size > RING); /* no room for a record and padding */
            if (RING % size == 0)
                CU_ASSERT_EQUAL(used, RING);
            /* Taking records makes room again. */
            for (int i = 0; i < 2; i++)
                CU_ASSERT_EQUAL_FATAL(take(&r, size, (uint8_t)read++), 1);
            CU_ASSERT_EQUAL(put(&r, size, (uint8_t)written++), 0);
            while (read < written)
                CU_ASSERT_EQUAL_FATAL(take(&r, size, (uint8_t)read++), 1);
        }
    }
}

/* A record that is only reserved, or advanced over, is not visible before it is published. */
static void test_visibility(void)
{
    struct pair r;
    void *first, *again;

    pair_init(&r, 0);
    CU_ASSERT_EQUAL_FATAL(ring_reserve(&r.producer, 64, &first), 0);
    fill(first, 64, 1);
    CU_ASSERT_EQUAL_FATAL(ring_reserve(&r.producer, 32, &again), 0);
    CU_ASSERT_PTR_EQUAL(first, again);
    ring_publish(&r.producer);
    CU_ASSERT_EQUAL(ring_pending(&r.consumer), 0);
    fill(again, 32, 2);
    ring_advance(&r.producer, 32);
    CU_ASSERT_EQUAL(ring_pending(&r.consumer), 0);
    CU_ASSERT_EQUAL(take(&r, 32, 2), 0);
    ring_publish(&r.producer);
    CU_ASSERT_EQUAL(ring_pending(&r.consumer), 1);
    CU_ASSERT_EQUAL(take(&r, 32, 2), 1);

    /* The space of a record that is consumed but not released cannot be used by the producer. */
    CU_ASSERT_EQUAL_FATAL(put(&r, 32, 3), 0);
    uint8_t copy[64];
    uint32_t size;
    CU_ASSERT_EQUAL_FATAL(ring_copy(&r.consumer, copy, sizeof(copy), &size), 1);
    ring_consume(&r.consumer, size);
    CU_ASSERT_EQUAL(ring_used(&r.producer), 32);
    ring_release(&r.consumer);
    CU_ASSERT_EQUAL(ring_used(&r.producer), 0);
}

/* A reservation that wraps, and is given up, leaves only padding. */
static void test_abandoned_wrap(void)
{
    struct pair r;
    void *record;

    pair_init(&r, RING - 8);
    CU_ASSERT_EQUAL_FATAL(ring_reserve(&r.producer, 64, &record), 0);
    CU_ASSERT_PTR_EQUAL(record, r.data);
    ring_publish(&r.producer);
    CU_ASSERT_EQUAL(take(&r, 64, 0), 0);
    CU_ASSERT_EQUAL_FATAL(put(&r, 16, 9), 0);
    CU_ASSERT_EQUAL(take(&r, 16, 9), 1);
}

/* A side reads the other side's counter only when the value that it read last is not enough. */
static void test_caching(void)
{
    struct pair r;

    pair_init(&r, 0);
    CU_ASSERT_EQUAL_FATAL(put(&r, 8, 0), 0);
    atomic_store(&r.control.head, UINT64_MAX);
    for (int i = 1; i < RING / 8; i++)
        CU_ASSERT_EQUAL_FATAL(put(&r, 8, (uint8_t)i), 0);
    CU_ASSERT_EQUAL(put(&r, 8, 0), -EPROTO);

    CU_ASSERT_EQUAL_FATAL(take(&r, 8, 0), 1);
    atomic_store(&r.control.tail, UINT64_MAX);
    for (int i = 1; i < RING / 8; i++)
        CU_ASSERT_EQUAL_FATAL(take(&r, 8, (uint8_t)i), 1);
    CU_ASSERT_EQUAL(take(&r, 8, 0), -EPROTO);

    /* A side does not write its own counter when there is nothing new to publish. */
    ring_publish(&r.producer);
    CU_ASSERT_EQUAL(atomic_load(&r.control.tail), UINT64_MAX);
}

static void test_hostile_head(void)
{
    enum { SEEN = 2 * RING, TAIL = SEEN + RING };
    static const struct {
        uint64_t head;
        int64_t used;
        int reserve; /* result of a reservation of 64 bytes */
    } table[] = {
        {SEEN, RING, -EAGAIN},
        {SEEN + 56, RING - 56, -EAGAIN},
        {SEEN + 64, RING - 64, 0},
        {TAIL, 0, 0},
        {SEEN - 8, -EPROTO, -EPROTO}, /* falls */
        {SEEN + 68, -EPROTO, -EPROTO},
        {TAIL - 1, -EPROTO, -EPROTO},
        {TAIL + 8, -EPROTO, -EPROTO},
        {TAIL + RING, -EPROTO, -EPROTO},
        {0, -EPROTO, -EPROTO},
        {UINT64_MAX, -EPROTO, -EPROTO},
        {UINT64_MAX - 7, -EPROTO, -EPROTO},
        {UINT64_C(1) << 63, -EPROTO, -EPROTO},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct pair r;
        void *record;

        pair_init(&r, SEEN);
        while (put(&r, 64, 0) == 0)
            ;
        CU_ASSERT_EQUAL_FATAL(r.producer.tail, TAIL);
        atomic_store(&r.control.head, table[i].head);
        CU_ASSERT_EQUAL(ring_reserve(&r.producer, 64, &record), table[i].reserve);
        CU_ASSERT_EQUAL(ring_used(&r.producer), table[i].used);
        CU_ASSERT_EQUAL(r.producer.tail, TAIL);
        CU_ASSERT_EQUAL(r.producer.head_seen, table[i].used < 0 ? SEEN : table[i].head);
    }

    /* The head falls after it has been read, though it is still within a ring's length of the
     * tail. */
    struct pair r;
    pair_init(&r, SEEN);
    CU_ASSERT_EQUAL_FATAL(put(&r, 64, 0), 0);
    atomic_store(&r.control.head, SEEN + 64);
    CU_ASSERT_EQUAL(ring_used(&r.producer), 0);
    atomic_store(&r.control.head, SEEN);
    CU_ASSERT_EQUAL(ring_used(&r.producer), -EPROTO);
}

static void test_hostile_tail(void)
{
    enum { HEAD = 2 * RING };
    static const struct {
        uint64_t tail;
        int result;
    } table[] = {
        {HEAD, 0},
        {HEAD + 8, 1},
        {HEAD + RING, 1},
        {HEAD + RING + 8, -EPROTO},
        {HEAD + 4, -EPROTO},
        {HEAD + 1, -EPROTO},
        {HEAD - 8, -EPROTO},
        {0, -EPROTO},
        {UINT64_MAX, -EPROTO},
        {UINT64_MAX - 7, -EPROTO},
        {UINT64_C(1) << 63, -EPROTO},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct pair r;

        pair_init(&r, HEAD);
        fill(r.data, 8, 3);
        atomic_store(&r.control.tail, table[i].tail);
        CU_ASSERT_EQUAL(ring_pending(&r.consumer), table[i].result != 0);
        CU_ASSERT_EQUAL(take(&r, 8, 3), table[i].result);
        if (table[i].result < 0) /* the bad value is not remembered */
            CU_ASSERT_EQUAL(r.consumer.tail_seen, HEAD);
    }

    /* The tail falls after it has been read. */
    struct pair r;
    pair_init(&r, HEAD);
    CU_ASSERT_EQUAL_FATAL(put(&r, 64, 5), 0);
    CU_ASSERT_EQUAL_FATAL(ring_pending(&r.consumer), 1);
    atomic_store(&r.control.tail, HEAD + 8);
    CU_ASSERT_EQUAL(ring_pending(&r.consumer), 1);
    CU_ASSERT_EQUAL(take(&r, 64, 5), 1); /* by the value that was read first */
    CU_ASSERT_EQUAL(take(&r, 64, 5), -EPROTO);
}

static void test_hostile_record(void)
{
    static const struct {
        uint32_t start, there, size;
        uint8_t kind;
        int result;
    } table[] = {
        {0, 64, 64, KIND, 1},
        {0, 64, 8, KIND, 1},
        {0, 64, 0, KIND, -EPROTO},
        {0, 64, 4, KIND, -EPROTO},
        {0, 64, 9, KIND, -EPROTO},
        {0, 64, 60, KIND, -EPROTO},
        {0, 64, 72, KIND, -EPROTO}, /* past the tail */
        {0, 64, UINT32_MAX, KIND, -EPROTO},
        {0, 64, UINT32_MAX - 7, KIND, -EPROTO},
        {0, 64, UINT32_C(1) << 31, KIND, -EPROTO},
        {0, 256, 128, KIND, 1}, /* exactly fits */
        {0, 256, 136, KIND, -EMSGSIZE},
        {0, RING, RING, KIND, -EMSGSIZE},
        {RING - 64, 128, 64, KIND, 1},
        {RING - 64, 128, 72, KIND, -EPROTO}, /* past the end of the area */
        {RING - 64, 128, 64, 0, 0},          /* right padding, without a record after it */
        {RING - 64, 128, 56, 0, -EPROTO},    /* ends before the area's end */
        {RING - 64, 128, 72, 0, -EPROTO},
        {RING - 64, 32, 64, 0, -EPROTO}, /* past the tail */
        {RING - 64, 128, 0, 0, -EPROTO},
        {0, 64, 64, 0, -EPROTO}, /* padding in the middle */
        {0, RING, RING, 0, -EPROTO},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct pair r;
        uint8_t to[128 + 8];
        uint32_t size = 0;
        struct ring_record_head head = {.size = table[i].size, .kind = table[i].kind};
        bool padding = table[i].result == 0;

        pair_init(&r, table[i].start);
        memset(to, CANARY, sizeof(to));
        memcpy(r.data + table[i].start, &head, sizeof(head));
        atomic_store(&r.control.tail, padding ? RING : (uint64_t)table[i].start + table[i].there);
        int rc = ring_copy(&r.consumer, to, 128, &size);

        CU_ASSERT_EQUAL(rc, table[i].result);
        CU_ASSERT_EQUAL(size, rc == 1 ? table[i].size : 0);
        for (size_t n = size; n < sizeof(to); n++)
            CU_ASSERT_EQUAL_FATAL(to[n], CANARY);
        CU_ASSERT_EQUAL(r.consumer.head, padding ? RING : table[i].start);

        const void *there;
        int looked = ring_look(&r.consumer, &there, &size);

        CU_ASSERT_EQUAL(looked, rc == -EMSGSIZE ? 1 : rc);
    }
}

/* Endless padding after padding: the reader must not follow it forever. */
static void test_endless_padding(void)
{
    struct pair r;
    struct ring_record_head last = {.size = 8}, whole = {.size = RING};
    uint8_t to[128];
    uint32_t size;

    pair_init(&r, RING - 8);
    memcpy(r.data + RING - 8, &last, sizeof(last));
    memcpy(r.data, &whole, sizeof(whole));
    atomic_store(&r.control.tail, 2 * RING - 8);
    CU_ASSERT_EQUAL(ring_copy(&r.consumer, to, sizeof(to), &size), -EPROTO);
}

/* A view opened over a ring in use, as after the daemon's restart. */
static void test_reopen(void)
{
    struct pair r;

    pair_init(&r, 0);
    while (put(&r, 64, (uint8_t)r.producer.tail) == 0)
        ;
    ring_producer_init(&r.producer, &r.control, r.data, RING, RING);
    CU_ASSERT_EQUAL(put(&r, 64, 0), -EAGAIN);
    CU_ASSERT_EQUAL_FATAL(take(&r, 64, 0), 1);
    ring_consumer_init(&r.consumer, &r.control, r.data, RING, 64);
    CU_ASSERT_EQUAL_FATAL(take(&r, 64, 64), 1);

    /* The producer has advanced over a record, and died before it was published. */
    void *record;
    CU_ASSERT_EQUAL_FATAL(ring_reserve(&r.producer, 64, &record), 0);
    fill(record, 64, 77);
    ring_advance(&r.producer, 64);
    ring_producer_init(&r.producer, &r.control, r.data, RING, r.producer.tail);
    ring_publish(&r.producer);
    for (uint64_t at = 128; at < RING; at += 64)
        CU_ASSERT_EQUAL_FATAL(take(&r, 64, (uint8_t)at), 1);
    CU_ASSERT_EQUAL(take(&r, 64, 77), 1);
    CU_ASSERT_EQUAL(take(&r, 64, 0), 0);
}

/* Overwrites a record's head with good and bad values until killed. */
static void scribble(_Atomic uint64_t *record)
{
    static const uint32_t sizes[] = {64, 16, UINT32_MAX, 128, 4, 0, 72, 65528};

    for (uint32_t i = 0;; i++) {
        struct ring_record_head head = {.size = sizes[i % 8], .kind = (uint8_t)(i % 3)};
        uint64_t word;

        memcpy(&word, &head, sizeof(word));
        atomic_store_explicit(record, word, memory_order_relaxed);
    }
}

/*
 * Another process changes a record while it is read. ring_copy must return what it has checked: the
 * size in the copy is the returned size, and no byte is written after the copy.
 */
static void test_changing_record(void)
{
    enum { ENOUGH = 1000000, ROOM = 64 };
    struct pair *r =
        mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_FATAL(r != MAP_FAILED);
    pair_init(r, 0);
    atomic_store(&r->control.tail, 128);
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0)
        scribble((_Atomic uint64_t *)(void *)r->data);

    int accepted = 0, refused = 0;
    bool sound = true;
    while (sound && (accepted < ENOUGH || refused < ENOUGH)) {
        uint8_t to[2 * ROOM];
        uint32_t size = 0;
        struct ring_record_head head;

        memset(to, CANARY, sizeof(to));
        int rc = ring_copy(&r->consumer, to, ROOM, &size);
        memcpy(&head, to, sizeof(head));
        if (rc == 1) {
            accepted++;
            sound = head.size == size && (size == 16 || size == 64) && head.kind != 0;
        } else {
            refused++;
            sound = (rc == -EPROTO || rc == -EMSGSIZE) && size == 0;
        }
        for (size_t n = size; n < sizeof(to); n++)
            sound = sound && to[n] == CANARY;
    }
    CU_ASSERT(sound);
    kill(child, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
    munmap(r, sizeof(*r));
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"sizes", test_sizes},
        {"wrap", test_wrap},
        {"full", test_full},
        {"visibility", test_visibility},
        {"abandoned wrap", test_abandoned_wrap},
        {"caching", test_caching},
        {"hostile head", test_hostile_head},
        {"hostile tail", test_hostile_tail},
        {"hostile record", test_hostile_record},
        {"endless padding", test_endless_padding},
        {"reopen", test_reopen},
        {"changing record", test_changing_record},
        CU_TEST_INFO_NULL,
    };

    return suite_run("ring", tests);
}
