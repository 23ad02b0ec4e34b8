/*
 * The two sides of a pair as two processes: the barriers E, F, G and H of pair.h under load.
 *
 *     pair_litmus stream RECORDS    every record, id and payload is checked
 *     pair_litmus races ROUNDS      G: the look after the sleeper's barrier sees the head, or the
 *                                   other's look at the bell sees that
 *     pair_litmus lost ROUNDS       without the barrier it must go wrong, or `races` shows nothing
 *     pair_litmus room-races ROUNDS, room-lost ROUNDS    the same of H
 */
#include "tests/shm_ring/cores.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/mapping.h"
#include "shm_ring/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 256, WORDS = 8 };

/* Shared beside the pair: the target's memory, its bell, and the words that keep rounds in step. */
struct beside {
    uint64_t payload[SLOTS][WORDS];
    struct doorbell_word bell;
    _Alignas(64) _Atomic uint64_t lost;
    _Alignas(64) _Atomic uint64_t origin_at;
    _Alignas(64) _Atomic uint64_t target_at;
    _Alignas(64) _Atomic uint32_t origin_saw;
};

struct run {
    struct mapping pair, beside;
    struct beside *shared;
    uint64_t count;
};

static uint16_t id_len_of(uint64_t n)
{
    return n % 7 == 0 ? (uint16_t)(n * 13 % (SESSION_ID_MAX + 1)) : 0;
}

static void fill_id(uint8_t *id, uint64_t n, uint16_t id_len)
{
    for (uint16_t i = 0; i < id_len; i++)
        id[i] = (uint8_t)(n * 31 + i);
}

/* A slot is written again when the target has read the record that announced it. */
static int stream_origin(const struct run *run)
{
    struct pair_writer w;
    uint8_t id[SESSION_ID_MAX];
    unsigned spins = 0;

    if (pair_writer_init(&w, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return 1;
    for (uint64_t n = 0; n < run->count; n++) {
        struct pair_record record = {
            .kind = PAIR_PUT, .id_len = id_len_of(n), .bytes = n, .id = n * 3};

        record.lines = pair_lines(record.id_len);

        while (n - atomic_load(&run->shared->target_at) >= SLOTS ||
               pair_room(&w, record.lines) == -EAGAIN)
            cores_spin(&spins);
        for (int i = 0; i < WORDS; i++)
            run->shared->payload[n % SLOTS][i] = n + (uint64_t)i;
        fill_id(id, n, record.id_len);
        pair_write(&w, &record, id);
    }
    return 0;
}

static bool stream_record_right(const struct run *run, const struct pair_record *record,
                                const uint8_t *id, uint64_t n)
{
    uint8_t expected[SESSION_ID_MAX];

    fill_id(expected, n, id_len_of(n));
    for (int i = 0; i < WORDS; i++)
        if (run->shared->payload[n % SLOTS][i] != n + (uint64_t)i)
            return false;
    return record->bytes == n && record->id_len == id_len_of(n) &&
           (record->id_len > 0 || record->id == n * 3) && memcmp(id, expected, record->id_len) == 0;
}

static int stream_target(const struct run *run)
{
    struct pair_reader r;
    uint8_t id[SESSION_ID_MAX];
    unsigned spins = 0;

    if (pair_reader_init(&r, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return 1;
    for (uint64_t n = 0; n < run->count; n++) {
        struct pair_record record = {0};
        int rc;

        while ((rc = pair_look(&r, &record, id)) == 0)
            cores_spin(&spins);
        if (rc != 1 || !stream_record_right(run, &record, id, n)) {
            fprintf(stderr, "record %llu differs (%d)\n", (unsigned long long)n, rc);
            return 1;
        }
        pair_pass(&r, &record);
        atomic_store_explicit(&run->shared->target_at, n + 1, memory_order_release);
    }
    return 0;
}

static void meet(_Atomic uint64_t *mine, const _Atomic uint64_t *other, uint64_t at)
{
    unsigned spins = 0;

    atomic_store_explicit(mine, at, memory_order_release);
    while (atomic_load_explicit(other, memory_order_acquire) < at)
        cores_spin(&spins);
}

/* The origin writes a record in each round, while the target arms and looks. */
static int race_origin(const struct run *run)
{
    struct beside *s = run->shared;
    struct pair_writer w;

    if (pair_writer_init(&w, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return 1;
    for (uint64_t n = 0; n < run->count; n++) {
        const struct pair_record record = {.kind = PAIR_PUT, .lines = 1};

        if (pair_room(&w, 1) != 0)
            return 1;
        meet(&s->origin_at, &s->target_at, 2 * n + 1);
        pair_write(&w, &record, &n);
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&s->origin_saw,
                              atomic_load_explicit(&s->bell.armed, memory_order_relaxed),
                              memory_order_relaxed);
        meet(&s->origin_at, &s->target_at, 2 * n + 2);
    }
    return 0;
}

/* Returns the number of rounds in which neither side saw the other; -1: another error. */
static int64_t race_target(const struct run *run, bool barrier)
{
    struct beside *s = run->shared;
    struct pair_reader r;
    int64_t lost = 0;

    if (pair_reader_init(&r, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return -1;
    for (uint64_t n = 0; n < run->count; n++) {
        struct pair_record record = {0};
        uint8_t id[SESSION_ID_MAX];
        bool saw;

        meet(&s->target_at, &s->origin_at, 2 * n + 1);
        atomic_store_explicit(&s->bell.armed, DOORBELL_FUTEX, memory_order_relaxed);
        if (barrier)
            (void)doorbell_fence_others();
        else
            atomic_signal_fence(memory_order_seq_cst);
        saw = pair_pending(&r);
        meet(&s->target_at, &s->origin_at, 2 * n + 2);
        lost += !saw && atomic_load_explicit(&s->origin_saw, memory_order_relaxed) == 0;
        atomic_store_explicit(&s->bell.armed, DOORBELL_AWAKE, memory_order_relaxed);
        if (pair_look(&r, &record, id) != 1)
            return -1;
        pair_pass(&r, &record);
        if (!barrier && lost > 0)
            break;
    }
    return lost;
}

/* The origin arms and looks in each round, while the target gives a record back. */
static int room_origin(const struct run *run, bool barrier)
{
    struct beside *s = run->shared;
    struct pair_writer w;

    if (pair_writer_init(&w, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return 1;
    for (uint64_t n = 0; n < run->count; n++) {
        const struct pair_record record = {.kind = PAIR_PUT, .lines = 1};
        bool saw;

        pair_write(&w, &record, &n);
        meet(&s->origin_at, &s->target_at, 2 * n + 1);
        atomic_store_explicit(&w.ring->room_bell, DOORBELL_FUTEX, memory_order_relaxed);
        if (barrier)
            (void)doorbell_fence_others();
        else
            atomic_signal_fence(memory_order_seq_cst);
        saw = pair_drained(&w);
        meet(&s->origin_at, &s->target_at, 2 * n + 2);
        if (!saw && atomic_load_explicit(&w.ring->room_bell, memory_order_relaxed) != 0)
            atomic_fetch_add(&s->lost, 1);
        atomic_store_explicit(&w.ring->room_bell, DOORBELL_AWAKE, memory_order_relaxed);
    }
    return 0;
}

static int64_t room_target(const struct run *run, bool barrier)
{
    struct beside *s = run->shared;
    struct pair_reader r;

    if (pair_reader_init(&r, run->pair.base, run->pair.size, PAIR_REQUESTS) != 0)
        return -1;
    for (uint64_t n = 0; n < run->count && (barrier || atomic_load(&s->lost) == 0); n++) {
        struct pair_record record = {0};
        uint8_t id[SESSION_ID_MAX];

        meet(&s->target_at, &s->origin_at, 2 * n + 1);
        if (pair_look(&r, &record, id) != 1)
            return -1;
        pair_pass(&r, &record);
        (void)pair_writer_sleeps(&r); /* disarms the origin's word, if it is armed */
        meet(&s->target_at, &s->origin_at, 2 * n + 2);
    }
    return (int64_t)atomic_load(&s->lost);
}

static int run_origin(const struct run *run, const char *mode)
{
    if (strcmp(mode, "stream") == 0)
        return stream_origin(run);
    if (strncmp(mode, "room-", 5) == 0)
        return room_origin(run, strcmp(mode, "room-races") == 0);
    return race_origin(run);
}

static int run_target(const struct run *run, const char *mode)
{
    bool barrier = strstr(mode, "races") != NULL;
    int64_t lost;

    if (strcmp(mode, "stream") == 0)
        return stream_target(run);
    lost = strncmp(mode, "room-", 5) == 0 ? room_target(run, barrier) : race_target(run, barrier);
    printf("%lld of %llu rounds went wrong\n", (long long)lost, (unsigned long long)run->count);
    return barrier ? lost != 0 : lost <= 0;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    int cores[2], status, rc;
    pid_t origin;

    if (argc != 3) {
        fprintf(stderr, "usage: %s stream|races|lost|room-races|room-lost COUNT\n", argv[0]);
        return 2;
    }
    if (!cores_find_two(cores) || doorbell_register() != 0) {
        printf("needs two processors and membarrier\n");
        return 77; /* skipped */
    }
    run.count = strtoull(argv[2], NULL, 10);
    if (mapping_create(&run.pair, "test-pair", PAIR_BYTES) != 0 ||
        mapping_create(&run.beside, "test-beside", (sizeof(struct beside) + 4095) & ~4095ul) != 0)
        return 1;
    pair_format(run.pair.base);
    run.shared = run.beside.base;
    origin = fork();
    if (origin == 0) {
        (void)doorbell_register();
        cores_pin(cores[0]);
        _exit(run_origin(&run, argv[1]));
    }
    cores_pin(cores[1]);
    rc = run_target(&run, argv[1]);
    if (rc != 0 || strstr(argv[1], "lost"))
        kill(origin, SIGKILL); /* the origin waits for a round that does not come */
    waitpid(origin, &status, 0);
    return rc != 0 || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}
