/*
 * The board of a context with many neighbours: which neighbours become quiet, and that each
 * neighbour that writes is noticed, whatever happens beside it. The channel alone, over a session
 * and pairs of the test's own.
 *
 *     test_board                        runs the tests
 *     test_board NEIGHBOURS quiet|all   10000 empty probes, for callgrind
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/session/fake_session.h"
#include "tests/suite.h"
#include "proto/clock.h"

enum { MANY = 70, MOST = 200, RANDOM_STEPS = 200000, COUNTED = 10000 };

#define WAIT_NS INT64_C(20000000000)

/* One origin, and how many of its records were written and seen. */
struct origin {
    struct mapping pair;
    struct pair_writer writer;
    uint64_t written, seen;
    bool gone;
};

struct hall {
    struct fake_session session;
    struct channel channel;
    struct mapping board;
    struct origin origins[MOST];
    uint32_t count;
};

/* An origin that writes while the kernel fences for others. */
static struct {
    struct hall *hall;
    uint32_t origin;
} during_barrier;

static unsigned fences; /* of this thread for others */

int __real_doorbell_fence_others(void);
int __wrap_doorbell_fence_others(void);

static struct board_shared *board(struct hall *h)
{
    return h->board.base;
}

/* Writes the origin's next record, without a look at the bell. */
static void write_line(struct hall *h, uint32_t i)
{
    struct origin *o = &h->origins[i];
    const struct pair_record record = {.kind = PAIR_PUT, .lines = 1, .id = o->written++};

    CU_ASSERT_EQUAL_FATAL(pair_room(&o->writer, 1), 0);
    pair_show(&o->writer, &record);
}

/* Writes a record and looks at the bell. True: the target is to be woken. */
static bool put(struct hall *h, uint32_t i)
{
    write_line(h, i);
    return pair_reader_sleeps(&h->origins[i].writer);
}

int __wrap_doorbell_fence_others(void)
{
    struct hall *h = during_barrier.hall;

    fences++;
    during_barrier.hall = NULL;
    if (h)
        write_line(h, during_barrier.origin);
    return __real_doorbell_fence_others();
}

static void add_origin(struct hall *h, uint32_t i, bool calls)
{
    struct origin *o = &h->origins[i];
    const struct pair_note note = {.peer = i, .slot = i};
    struct pair_shared *shared;

    CU_ASSERT_EQUAL_FATAL(mapping_create(&o->pair, "test-pair", PAIR_BYTES), 0);
    pair_format(o->pair.base);
    shared = o->pair.base;
    CU_ASSERT_EQUAL(pair_writer_init(&o->writer, shared, PAIR_BYTES, PAIR_REQUESTS), 0);
    if (calls) {
        o->writer.called = &board(h)->called[i / 64];
        o->writer.bit = UINT64_C(1) << i % 64;
        atomic_store(&shared->origin.mapped, 1);
    }
    neighbours_add(&h->channel.neighbours, &note, dup(o->pair.fd), dup(h->board.fd));
    CU_ASSERT_EQUAL(atomic_load(&shared->target.mapped), 1);
    mapping_close_fd(&o->pair);
}

static struct hall *hall_new(uint32_t count)
{
    static const struct session_sizes sizes = {8192, 8192, 8192, 8192, 8192};
    struct hall *h = calloc(1, sizeof(*h));

    CU_ASSERT_EQUAL_FATAL(fake_session_open(&h->session, &sizes), 0);
    CU_ASSERT_EQUAL_FATAL(
        channel_init(&h->channel, h->session.mapping.base, h->session.mapping.size), 0);
    CU_ASSERT_EQUAL_FATAL(mapping_create(&h->board, "test-board", BOARD_BYTES), 0);
    h->count = count;
    for (uint32_t i = 0; i < count; i++)
        add_origin(h, i, true);
    return h;
}

static void hall_free(struct hall *h)
{
    channel_destroy(&h->channel);
    fake_session_close(&h->session);
    for (uint32_t i = 0; i < h->count; i++)
        mapping_destroy(&h->origins[i].pair);
    mapping_destroy(&h->board);
    free(h);
}

/* 1: an event has arrived, and it is its origin's next one. */
static int probe(struct hall *h)
{
    struct pwc_event event;
    int rc = channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event);

    if (rc == 1)
        CU_ASSERT_EQUAL(event.id, h->origins[event.peer].seen++);
    return rc;
}

static __attribute__((noinline)) int counted_probe(struct hall *h)
{
    struct pwc_event event;

    return channel_probe(&h->channel, PWC_ANY, PWC_REMOTE, &event);
}

/* Probes until only `active` neighbours are still looked at; no event may arrive meanwhile. */
static void fall_quiet(struct hall *h, uint32_t active)
{
    int64_t limit = now_ns() + WAIT_NS;

    while (h->channel.neighbours.active != active && now_ns() < limit)
        CU_ASSERT_EQUAL_FATAL(probe(h), 0);
    CU_ASSERT_EQUAL(h->channel.neighbours.active, active);
}

/* ---- called ---------------------------------------------------------------------------------- */

static void test_called(void)
{
    struct hall *h = hall_new(MANY);
    struct neighbours *n = &h->channel.neighbours;

    CU_ASSERT_EQUAL(n->active, MANY);
    for (int round = 0; round < 3; round++) {
        fall_quiet(h, 0);
        for (uint32_t i = 0; i < MANY; i += 23) {
            CU_ASSERT_FALSE(put(h, i));
            CU_ASSERT_EQUAL(probe(h), 1);
            /* The target looks at this ring now, so the put sets no bit. */
            CU_ASSERT_FALSE(put(h, i));
            CU_ASSERT_EQUAL(atomic_load(&board(h)->called[i / 64]), 0);
            CU_ASSERT_EQUAL(probe(h), 1);
        }
        CU_ASSERT_EQUAL(n->active, 4);
        CU_ASSERT_EQUAL(n->count, MANY);
    }
    hall_free(h);
}

/* Whether a bell wakes the target, or sets the bit on the board, depends on its state when it is
 * rung. */
static void test_ring(void)
{
    static const struct {
        uint32_t mode;
        bool calls, sleeps;
    } rows[] = {
        {DOORBELL_AWAKE, true, false}, {DOORBELL_FUTEX, true, true},  {DOORBELL_FD, true, true},
        {DOORBELL_QUIET, true, false}, {DOORBELL_QUIET, false, true}, {77, true, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hall *h = hall_new(1);
        struct pair_writer *w = &h->origins[0].writer;

        if (!rows[i].calls)
            w->called = NULL;
        atomic_store(&w->ring->bell.armed, rows[i].mode);
        CU_ASSERT_EQUAL(pair_ring_bell(w), rows[i].sleeps);
        CU_ASSERT_EQUAL(atomic_load(&w->ring->bell.armed), DOORBELL_AWAKE);
        CU_ASSERT_EQUAL(atomic_load(&board(h)->called[0]),
                        rows[i].mode == DOORBELL_QUIET && rows[i].calls);
        hall_free(h);
    }
}

/* A context with few neighbours looks at all their rings; a neighbour without the board never
 * becomes quiet. */
static void test_active(void)
{
    struct hall *h = hall_new(QUIET_FROM - 1);
    int64_t limit = now_ns() + 20000000;

    while (now_ns() < limit)
        CU_ASSERT_EQUAL_FATAL(probe(h), 0);
    CU_ASSERT_EQUAL(h->channel.neighbours.active, QUIET_FROM - 1);
    for (h->count = QUIET_FROM - 1; h->count < 10; h->count++)
        add_origin(h, h->count, h->count != 7);
    fall_quiet(h, 1);
    CU_ASSERT_EQUAL(h->channel.neighbours.list[0].peer, 7);
    hall_free(h);
}

/* Quiet neighbours are noticed, also when too few neighbours are left for the quiet mode. */
static void test_few_left(void)
{
    struct hall *h = hall_new(QUIET_FROM);
    struct neighbours *n = &h->channel.neighbours;

    fall_quiet(h, 0);
    atomic_fetch_or(&h->origins[0].writer.shared->gone, PAIR_ORIGIN_GONE);
    neighbours_check(n);
    CU_ASSERT_EQUAL(n->count, QUIET_FROM - 1);
    for (uint32_t i = 1; i < QUIET_FROM; i++) {
        CU_ASSERT_FALSE(put(h, i));
        CU_ASSERT_EQUAL(probe(h), 1);
    }
    hall_free(h);
}

/* ---- races ----------------------------------------------------------------------------------- */

/* The target sets the quiet mode, fences, and looks at the ring once more. An origin that has not
 * seen the mode writes a line before that look: the look must find the line. */
static void test_written_meanwhile(void)
{
    for (uint32_t i = 0; i < 10; i += 3) {
        struct hall *h = hall_new(10);
        int64_t limit = now_ns() + WAIT_NS;

        during_barrier.hall = h;
        during_barrier.origin = i;
        while (during_barrier.hall && now_ns() < limit)
            if (probe(h) == 1)
                break;
        CU_ASSERT_PTR_NULL(during_barrier.hall);
        CU_ASSERT_EQUAL(h->channel.neighbours.active, 1);
        CU_ASSERT_EQUAL(h->origins[i].seen, 1);
        hall_free(h);
    }
}

/* A target that goes to sleep looks at all rings first, quiet ones too; a put then asks the daemon
 * to wake it. */
static void test_sleep(void)
{
    struct hall *h = hall_new(10);
    struct channel *ch = &h->channel;

    fall_quiet(h, 0);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FUTEX, PWC_REMOTE), 0);
    CU_ASSERT(put(h, 5));
    channel_disarm(ch);
    CU_ASSERT_EQUAL(probe(h), 1);
    fall_quiet(h, 0);
    write_line(h, 6);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FD, PWC_REMOTE), 1);
    CU_ASSERT_EQUAL(probe(h), 1);
    fall_quiet(h, 0);
    CU_ASSERT_EQUAL(channel_arm(ch, DOORBELL_FD, PWC_REMOTE), 0); /* armed, but it does not sleep */
    CU_ASSERT(put(h, 7));
    CU_ASSERT_EQUAL(probe(h), 1);
    hall_free(h);
}

/* Guards that nobody becomes quiet while the program may poll the descriptor: a put must make it
 * readable. */
static void test_polled(void)
{
    struct hall *h = hall_new(MANY);
    struct neighbours *n = &h->channel.neighbours;
    int64_t limit;

    fall_quiet(h, 0);
    CU_ASSERT_EQUAL(channel_arm(&h->channel, DOORBELL_FD, PWC_REMOTE), 0);
    n->polled = true;
    limit = now_ns() + 20000000;
    while (now_ns() < limit)
        CU_ASSERT_EQUAL_FATAL(probe(h), 0);
    CU_ASSERT_EQUAL(n->active, MANY);
    CU_ASSERT_TRUE(put(h, 9));
    channel_disarm(&h->channel);
    CU_ASSERT_FALSE(n->polled);
    CU_ASSERT_EQUAL(probe(h), 1);
    fall_quiet(h, 0);
    hall_free(h);
}

/* Adds a pair with which the test's context writes to `peer`. */
static void add_ours(struct hall *h, uint64_t peer)
{
    struct direct_pair *pair = calloc(1, sizeof(*pair));

    pair->peer = peer;
    pair->board.fd = -1;
    CU_ASSERT_EQUAL_FATAL(mapping_create(&pair->ring, "test-ours", PAIR_BYTES), 0);
    pair_format(pair->ring.base);
    CU_ASSERT_EQUAL(pair_writer_init(&pair->writer, pair->ring.base, PAIR_BYTES, PAIR_REQUESTS), 0);
    CU_ASSERT_EQUAL(pair_reader_init(&pair->answers, pair->ring.base, PAIR_BYTES, PAIR_ANSWERS), 0);
    neighbours_add_ours(&h->channel.neighbours, pair);
}

/* A context that sleeps fences for its neighbours, but not for itself: nothing is written to its
 * pair with itself meanwhile. The test's context is peer 0, and so is its first origin. */
static void test_fences(void)
{
    static const struct {
        uint32_t origins;
        int target; /* -1: none */
        unsigned fences;
    } rows[] = {{0, -1, 0}, {1, -1, 0}, {2, -1, 1}, {0, 0, 0}, {0, 7, 1}, {1, 0, 0}, {1, 7, 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hall *h = hall_new(rows[i].origins);

        if (rows[i].target >= 0)
            add_ours(h, (uint64_t)rows[i].target);
        fences = 0;
        CU_ASSERT_EQUAL(channel_arm(&h->channel, DOORBELL_FUTEX, PWC_REMOTE), 0);
        CU_ASSERT_EQUAL(fences, rows[i].fences);
        channel_disarm(&h->channel);
        hall_free(h);
    }
}

/* ---- a hostile board ------------------------------------------------------------------------- */

/* A hostile process writes to the board: bits without a record cost only looks at rings, and a bit
 * that is cleared only delays the event. */
static void test_hostile(void)
{
    struct hall *h = hall_new(MANY);
    int probes = 0;

    for (int i = 0; i < 5000; i++) {
        memset(h->board.base, rand(), sizeof(struct board_shared));
        CU_ASSERT_EQUAL_FATAL(probe(h), 0);
    }
    memset(h->board.base, 0, BOARD_BYTES);
    fall_quiet(h, 0);
    CU_ASSERT_FALSE(put(h, 69));
    memset(h->board.base, 0, BOARD_BYTES);
    while (probes < 1000 && probe(h) == 0)
        probes++;
    CU_ASSERT(probes < 1000);
    CU_ASSERT_EQUAL(h->origins[69].seen, 1);
    hall_free(h);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void die(struct hall *h, uint32_t i)
{
    struct pair_shared *shared = h->origins[i].pair.base;

    h->origins[i].gone = true;
    atomic_fetch_or(&shared->gone, PAIR_ORIGIN_GONE);
    neighbours_check(&h->channel.neighbours);
}

/* Puts, probes, sleeps and deaths in random order: a probe that finds nothing, and a sleep, may
 * only come once all events were seen. */
static void test_random(void)
{
    struct hall *h = hall_new(MANY);
    struct neighbours *n = &h->channel.neighbours;
    uint64_t written = 0, seen = 0, calls = 0;
    uint32_t dead = 0;

    srand(7);
    for (int step = 0; step < RANDOM_STEPS; step++) {
        uint32_t i = (uint32_t)rand() % MANY;

        if (step % 20000 == 0)
            n->rested = 0; /* as if much time had passed */
        if (rand() % 3000 == 0 && !h->origins[i].gone) {
            die(h, i);
            dead++;
        } else if (rand() % 20 == 0 && !h->origins[i].gone) {
            (void)put(h, i);
            calls += atomic_load(&board(h)->called[i / 64]) != 0;
            written++;
        } else if (rand() % 1000 == 0) {
            if (channel_arm(&h->channel, DOORBELL_FUTEX, PWC_REMOTE) == 0) {
                CU_ASSERT_EQUAL(written, seen);
                channel_disarm(&h->channel);
            }
        } else {
            int rc = probe(h);

            seen += rc == 1;
            if (rc == 0) /* a probe that finds nothing has looked at all rings */
                CU_ASSERT_EQUAL_FATAL(seen, written);
        }
        CU_ASSERT_FATAL(n->active <= n->count && (n->turn < n->active || n->turn == 0));
    }
    while (probe(h) == 1)
        seen++;
    CU_ASSERT_EQUAL(seen, written);
    CU_ASSERT(calls > 0);
    neighbours_check(n);
    CU_ASSERT_EQUAL(n->count, MANY - dead);
    hall_free(h);
}

/* Empty probes for callgrind to count, with this many neighbours: all active, or all quiet. */
static struct {
    uint32_t neighbours;
    bool quiet;
} counted;

static void count_probes(void)
{
    struct hall *h = hall_new(0);

    for (; h->count < counted.neighbours; h->count++)
        add_origin(h, h->count, counted.quiet);
    if (counted.quiet && counted.neighbours >= QUIET_FROM)
        fall_quiet(h, 0);
    for (int i = 0; i < COUNTED; i++)
        CU_ASSERT_EQUAL_FATAL(counted_probe(h), 0);
    hall_free(h);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"who is quiet calls", test_called},
        {"what a bell says", test_ring},
        {"who stays active", test_active},
        {"few are left", test_few_left},
        {"written while it is left quiet", test_written_meanwhile},
        {"sleep", test_sleep},
        {"a descriptor that may be polled", test_polled},
        {"fences before a sleep", test_fences},
        {"a hostile board", test_hostile},
        {"all of it, at random", test_random},
        CU_TEST_INFO_NULL,
    };

    if (doorbell_register() < 0) {
        printf("no membarrier here, so no pairs\n");
        return 77;
    }
    if (argc == 3) {
        CU_TestInfo count[] = {{"count", count_probes}, CU_TEST_INFO_NULL};

        counted.neighbours = (uint32_t)strtoul(argv[1], NULL, 10);
        counted.quiet = strcmp(argv[2], "quiet") == 0;
        return suite_run("count", count);
    }
    return suite_run("board", tests);
}
