/*
 * Both sides of a ring as two threads on one sealed mapping, with each byte of each record checked:
 * barriers A and B under load, and C and D where a side sleeps. With ThreadSanitizer
 * (b_sanitize=thread) the test shows that all accesses are ordered.
 *
 *     test_ring_threads [RECORDS]
 */
#include "tests/shm_ring/cores.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/mapping.h"
#include "shm_ring/ring.h"
#include "tests/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RING = 8192,
    RECORD_MAX = 1024,
    KIND = 1,
    BATCH = 16,
};

#define SLEEP_LIMIT_NS INT64_C(20000000000)

/* The start of the mapping: a ring and a word for each side to sleep on. */
struct shared {
    struct ring_control control;
    struct doorbell_word records; /* the consumer sleeps here, for records */
    struct doorbell_word space;   /* the producer sleeps here, for space */
    _Alignas(64) uint8_t data[RING];
};

/* Parameters of a run, which neither thread changes. */
struct run {
    struct shared *shared;
    uint64_t records;
    bool sleeps;
};

static uint64_t records_wanted = 2000000;

/* A random generator from which both sides derive the same sizes and bytes. */
static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 32;
}

/* Chooses a size: mostly a small one, sometimes up to the longest. */
static uint32_t next_size(uint64_t *state)
{
    uint64_t draw = next(state);
    uint32_t limit = draw % 16 == 0 ? RECORD_MAX : 128;

    return 8 + (uint32_t)(next(state) % (limit / 8)) * 8;
}

static void write_record(uint64_t *record, uint32_t size, uint64_t *state)
{
    struct ring_record_head head = {.size = size, .kind = KIND};

    memcpy(record, &head, sizeof(head));
    for (uint32_t i = 1; i < size / 8; i++)
        record[i] = next(state);
}

static bool same_record(const uint64_t *record, uint32_t size, uint32_t expected, uint64_t *state)
{
    if (size != expected)
        return false;
    for (uint32_t i = 1; i < size / 8; i++)
        if (record[i] != next(state))
            return false;
    return true;
}

static void ring_bell(struct doorbell_word *word)
{
    if (doorbell_ring(word) == DOORBELL_FUTEX)
        doorbell_wake(word);
}

/* Waits for space, by spinning or by sleeping as the run says. -ETIMEDOUT: no wake-up came. */
static int wait_for_space(const struct run *run, struct ring_producer *ring, unsigned *spins)
{
    if (!run->sleeps) {
        cores_spin(spins);
        return 0;
    }
    doorbell_arm(&run->shared->space, DOORBELL_FUTEX);
    int rc = ring_used(ring) < RING / 2 ? 0 : doorbell_sleep(&run->shared->space, SLEEP_LIMIT_NS);
    doorbell_disarm(&run->shared->space);
    return rc == -ETIMEDOUT ? rc : 0;
}

/* The producer's thread. Returns NULL, or what went wrong. */
static void *produce(void *arg)
{
    const struct run *run = arg;
    struct ring_producer ring;
    uint64_t state = 1;
    unsigned spins = 0;

    ring_producer_init(&ring, &run->shared->control, run->shared->data, RING, 0);
    for (uint64_t n = 0; n < run->records; n++) {
        uint32_t size = next_size(&state);
        void *record;
        int rc;

        while ((rc = ring_reserve(&ring, size, &record)) == -EAGAIN) {
            ring_publish(&ring);
            ring_bell(&run->shared->records);
            if (wait_for_space(run, &ring, &spins) != 0)
                return "the producer was not woken";
        }
        if (rc != 0)
            return "ring_reserve refused";
        write_record(record, size, &state);
        ring_advance(&ring, size);
        if (n % BATCH == 0 || n + 1 == run->records) {
            ring_publish(&ring);
            ring_bell(&run->shared->records);
        }
    }
    return NULL;
}

static int wait_for_record(const struct run *run, struct ring_consumer *ring, unsigned *spins)
{
    if (!run->sleeps) {
        cores_spin(spins);
        return 0;
    }
    doorbell_arm(&run->shared->records, DOORBELL_FUTEX);
    int rc = ring_pending(ring) ? 0 : doorbell_sleep(&run->shared->records, SLEEP_LIMIT_NS);
    doorbell_disarm(&run->shared->records);
    return rc == -ETIMEDOUT ? rc : 0;
}

/* The consumer's thread. Returns NULL, or what went wrong. */
static void *consume(void *arg)
{
    const struct run *run = arg;
    struct ring_consumer ring;
    uint64_t record[RECORD_MAX / 8];
    uint64_t state = 1;
    unsigned spins = 0;

    ring_consumer_init(&ring, &run->shared->control, run->shared->data, RING, 0);
    for (uint64_t n = 0; n < run->records; n++) {
        uint32_t expected = next_size(&state);
        uint32_t size;
        int rc;

        while ((rc = ring_copy(&ring, record, sizeof(record), &size)) == 0) {
            ring_release(&ring);
            ring_bell(&run->shared->space);
            if (wait_for_record(run, &ring, &spins) != 0)
                return "the consumer was not woken";
        }
        if (rc != 1)
            return "ring_copy refused";
        if (!same_record(record, size, expected, &state))
            return "a record differs";
        ring_consume(&ring, size);
        if (n % BATCH == 0 || n + 1 == run->records) {
            ring_release(&ring);
            ring_bell(&run->shared->space);
        }
    }
    return NULL;
}

static void run_both(uint64_t records, bool sleeps)
{
    struct mapping m;
    pthread_t producer;
    void *trouble_in, *trouble_out;
    struct timespec start, end;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&m, "test", 3 * 4096), 0);
    struct run run = {.shared = m.base, .records = records, .sleeps = sleeps};
    clock_gettime(CLOCK_MONOTONIC, &start);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&producer, NULL, produce, &run), 0);
    trouble_out = consume(&run);
    if (trouble_out != NULL) {
        printf("%s\n", (char *)trouble_out);
        exit(1); /* the producer would wait forever */
    }
    pthread_join(producer, &trouble_in);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CU_ASSERT_PTR_NULL(trouble_in);
    printf("%.1f million records a second ", (double)records * 1e-6 /
                                                 ((double)(end.tv_sec - start.tv_sec) +
                                                  1e-9 * (double)(end.tv_nsec - start.tv_nsec)));
    mapping_destroy(&m);
}

static void test_spinning(void)
{
    run_both(records_wanted, false);
}

static void test_sleeping(void)
{
    run_both(records_wanted / 4, true);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"spinning", test_spinning},
        {"sleeping", test_sleeping},
        CU_TEST_INFO_NULL,
    };

    if (argc > 1)
        records_wanted = strtoull(argv[1], NULL, 10);
    return suite_run("ring threads", tests);
}
