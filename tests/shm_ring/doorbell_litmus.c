/*
 * The litmus test of arm and wake: shows that a missing full fence would be noticed.
 *
 *     doorbell_litmus races N    N races, with a check in place of the sleep: no wake-up is lost
 *     doorbell_litmus lost N     the build without fences must lose a wake-up within N races
 *     doorbell_litmus sleeps N   N real sleeps in the futex, each of which must end
 *     doorbell_litmus races-for-both, lost-for-both, sleeps-for-both N
 *                                the same where the sleeper fences for both sides
 *     doorbell_litmus races-fenced, lost-fenced N
 *                                the same where the waker fences for itself in some of the races,
 *                                and the sleeper fences for both sides only if it sees that the
 *                                waker does not
 *
 * A race is store buffering (Dekker's handshake): the sleeper arms and looks at the ring, the waker
 * publishes a record and looks at the word. When neither sees the other, the wake-up is lost. Both
 * threads meet before each race, pinned to two cores. Each word has a cache line of its own, which
 * the other side has touched last, so that each store waits in its store buffer while the following
 * load hits the cache. Two threads on one core never show this, so with one core the races are
 * skipped.
 */
#include "tests/shm_ring/cores.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    RING = 4096,
    KIND_WORK = 1,
    KIND_END = 2,
    SKIPPED = 77,
};

#define SLEEP_LIMIT_NS INT64_C(20000000000)

/* Shared by both threads. */
struct ground {
    struct ring_control control;
    struct doorbell_word bell;
    /* Each side's next race, and whether it saw the other side in the last two (see meet). */
    _Alignas(64) _Atomic uint64_t sleeper_turn;
    _Alignas(64) _Atomic uint64_t waker_turn;
    _Alignas(64) _Atomic uint64_t sleeps; /* sleeps, counted by the sleeper */
    _Alignas(64) uint8_t data[RING];
    int cores[2];
    uint64_t wanted;
    bool for_both;   /* the sleeper fences for the waker, too */
    bool may_spare;  /* but not for a waker that fences for itself */
    uint64_t spared; /* fences that the sleeper has left out */
    _Alignas(64) _Atomic uint32_t fenced;
};

static void arm(struct ground *g)
{
    if (!g->for_both) {
        doorbell_arm(&g->bell, DOORBELL_FUTEX);
        return;
    }
    doorbell_announce(&g->bell, DOORBELL_FUTEX);
    if (g->may_spare) {
        doorbell_fence();
        if (doorbell_is_fenced(&g->fenced)) {
            g->spared++;
            return;
        }
    }
    (void)doorbell_fence_others();
}

static uint32_t ring_bell(struct ground *g)
{
    bool fenced = atomic_load_explicit(&g->fenced, memory_order_relaxed) == 1;

    return g->for_both && !fenced ? doorbell_ring_unfenced(&g->bell) : doorbell_ring(&g->bell);
}

/* The waker of -fenced before and after a race. In eight races it ends its own fences twice, begins
 * them again before a race, and begins them after a race that follows an end. */
static void before_race(struct ground *g, uint64_t turn)
{
    if (g->may_spare && turn % 4 == 1)
        doorbell_end_fenced(&g->fenced);
    if (g->may_spare && turn % 8 == 3)
        doorbell_begin_fenced(&g->fenced);
}

static void after_race(struct ground *g, uint64_t turn)
{
    if (g->may_spare && turn % 8 == 5)
        doorbell_begin_fenced(&g->fenced);
}

/* The sleeper's counts of how the races ended. */
struct tally {
    uint64_t races;
    uint64_t both;         /* each side saw the other: woken for nothing */
    uint64_t only_sleeper; /* the record was seen before the sleep */
    uint64_t only_waker;   /* asleep, and woken */
    uint64_t lost;         /* asleep forever */
};

/*
 * Publishes that this side is ready for race `turn`, and waits until the other side is. Returns
 * whether the other side saw us in the race before. The other side may be one race ahead by now, so
 * a turn carries what was seen in the last two races: bit 0 for the even race, bit 1 for the odd
 * one.
 */
static bool meet(_Atomic uint64_t *mine, _Atomic uint64_t *other, uint64_t turn, uint64_t seen)
{
    unsigned spins = 0;
    uint64_t theirs;

    atomic_store_explicit(mine, turn << 2 | seen, memory_order_release);
    while ((theirs = atomic_load_explicit(other, memory_order_acquire)) >> 2 < turn)
        cores_spin(&spins);
    return (theirs >> ((turn - 1) & 1) & 1) != 0;
}

/* Adds to `seen` whether this race showed the other side. */
static uint64_t remember(uint64_t seen, uint64_t turn, bool saw)
{
    uint64_t bit = UINT64_C(1) << (turn & 1);

    return saw ? seen | bit : seen & ~bit;
}

/* Delays this side by a different amount in each race, so that the sides meet at different
 * points. */
static void skew(unsigned steps)
{
    for (volatile unsigned i = 0; i < steps; i++)
        ;
}

static void *race_as_waker(void *arg)
{
    struct ground *g = arg;
    struct ring_producer ring;
    uint64_t seen = 0;
    bool rang = false;

    cores_pin(g->cores[1]);
    ring_producer_init(&ring, &g->control, g->data, RING, 0);
    for (uint64_t turn = 1; turn <= g->wanted + 1; turn++) {
        struct ring_record_head head = {.size = sizeof(head), .kind = KIND_WORK};
        unsigned spins = 0;
        void *record;

        while (ring_reserve(&ring, sizeof(head), &record) != 0)
            cores_spin(&spins);
        memcpy(record, &head, sizeof(head));
        ring_advance(&ring, sizeof(head));

        bool saw = meet(&g->waker_turn, &g->sleeper_turn, turn, seen);
        if (turn > 1 && !saw && !rang)
            break;
        skew(turn >> 4 & 15);
        before_race(g, turn);
        ring_publish(&ring);
        rang = ring_bell(g) == DOORBELL_FUTEX;
        after_race(g, turn);
        seen = remember(seen, turn, rang);
    }
    return NULL;
}

static void count(struct tally *t, bool saw, bool rang)
{
    t->races++;
    t->both += saw && rang;
    t->only_sleeper += saw && !rang;
    t->only_waker += !saw && rang;
    t->lost += !saw && !rang;
}

static void race_as_sleeper(struct ground *g, struct tally *tally)
{
    struct ring_consumer ring;
    uint64_t seen = 0;
    bool saw = false;

    cores_pin(g->cores[0]);
    ring_consumer_init(&ring, &g->control, g->data, RING, 0);
    for (uint64_t turn = 1; turn <= g->wanted + 1; turn++) {
        unsigned spins = 0;
        bool rang = meet(&g->sleeper_turn, &g->waker_turn, turn, seen);

        if (turn > 1)
            count(tally, saw, rang);
        if (tally->lost != 0 || turn > g->wanted)
            break;
        skew(turn & 15);
        arm(g);
        saw = ring_pending(&ring) != 0;
        seen = remember(seen, turn, saw);
        if (saw)
            doorbell_disarm(&g->bell);
        while (!ring_pending(&ring))
            cores_spin(&spins);
        ring_consume(&ring, sizeof(struct ring_record_head));
        ring_release(&ring);
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run_races(struct ground *g, bool expect_lost)
{
    struct tally t = {0};
    pthread_t waker;
    double start = seconds();

    if (!cores_find_two(g->cores)) {
        printf("skipped: one processor only, and store buffering shows between two\n");
        return SKIPPED;
    }
    if (pthread_create(&waker, NULL, race_as_waker, g) != 0)
        return 1;
    race_as_sleeper(g, &t);
    pthread_join(waker, NULL);
    printf("%" PRIu64 " races in %.1f s: seen by both %" PRIu64 ", by the sleeper only %" PRIu64
           ", by the waker only %" PRIu64 ", lost wake-ups %" PRIu64 "\n",
           t.races, seconds() - start, t.both, t.only_sleeper, t.only_waker, t.lost);
    if (g->may_spare)
        printf("fences left out: %" PRIu64 "\n", g->spared);
    if (expect_lost)
        return t.lost != 0 ? 0 : 1;
    /* A run in which one side always came first proves nothing. */
    if (t.only_sleeper == 0 || t.only_waker == 0 || t.both == 0) {
        printf("no race: one side always came first\n");
        return 1;
    }
    if (g->may_spare && (g->spared == 0 || g->spared == t.races)) {
        printf("no race: the waker fenced for itself always, or never\n");
        return 1;
    }
    return t.lost == 0 && t.races == g->wanted ? 0 : 1;
}

/*
 * How long the waker waits before its record, turn by turn: from well before the sleep to well
 * inside it. How long a sleeper takes to fall asleep differs by machine (a membarrier takes 1 to
 * 50 us), so the sweep grows until a quarter of its turns found the sleeper asleep.
 */
struct sweep {
    unsigned turn;
    unsigned stride;
    uint64_t sleeps; /* the sleeper's count of sleeps when this sweep began */
};

enum { SWEEP_TURNS = 64, STRIDE_MAX = 1 << 14 };

static void sweep_wait(struct sweep *s, uint64_t sleeps)
{
    if (s->turn == SWEEP_TURNS) {
        if (sleeps - s->sleeps < SWEEP_TURNS / 4 && s->stride < STRIDE_MAX)
            s->stride *= 2;
        s->turn = 0;
        s->sleeps = sleeps;
    }
    skew(s->turn++ * s->stride);
}

static void *wake_many(void *arg)
{
    struct ground *g = arg;
    struct ring_producer ring;
    struct sweep sweep = {.stride = 64};
    bool end = false;

    ring_producer_init(&ring, &g->control, g->data, RING, 0);
    while (!end) {
        unsigned spins = 0;
        void *record;

        while (ring_used(&ring) != 0)
            cores_spin(&spins);
        uint64_t sleeps = atomic_load_explicit(&g->sleeps, memory_order_relaxed);
        sweep_wait(&sweep, sleeps);
        end = sleeps >= g->wanted;
        struct ring_record_head head = {.size = sizeof(head), .kind = end ? KIND_END : KIND_WORK};
        if (ring_reserve(&ring, sizeof(head), &record) != 0)
            break;
        memcpy(record, &head, sizeof(head));
        ring_advance(&ring, sizeof(head));
        ring_publish(&ring);
        if (ring_bell(g) == DOORBELL_FUTEX)
            doorbell_wake(&g->bell);
    }
    return NULL;
}

/* The number of times that this thread has really slept; yields do not count. */
static uint64_t times_slept(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

/* Returns 0 after the last record, or -ETIMEDOUT when a record came without a wake-up. */
static int sleep_many(struct ground *g)
{
    struct ring_consumer ring;
    struct ring_record_head head;
    uint32_t size;
    uint64_t before = times_slept();

    ring_consumer_init(&ring, &g->control, g->data, RING, 0);
    for (;;) {
        int rc = ring_copy(&ring, &head, sizeof(head), &size);

        if (rc < 0)
            return rc;
        if (rc == 1) {
            ring_consume(&ring, size);
            ring_release(&ring);
            if (head.kind == KIND_END)
                return 0;
            continue;
        }
        arm(g);
        rc = ring_pending(&ring) ? 0 : doorbell_sleep(&g->bell, SLEEP_LIMIT_NS);
        doorbell_disarm(&g->bell);
        if (rc == -ETIMEDOUT)
            return rc;
        atomic_store_explicit(&g->sleeps, times_slept() - before, memory_order_relaxed);
    }
}

static int run_sleeps(struct ground *g)
{
    pthread_t waker;
    double start = seconds();

    if (pthread_create(&waker, NULL, wake_many, g) != 0)
        return 1;
    int rc = sleep_many(g);
    printf("%" PRIu64 " sleeps in %.1f s: %s\n", atomic_load(&g->sleeps), seconds() - start,
           rc == 0 ? "all woken" : strerror(-rc));
    fflush(stdout);
    if (rc != 0)
        _Exit(1); /* the waker thread would wait forever */
    pthread_join(waker, NULL);
    return 0;
}

/* Removes "-for-both" or "-fenced" from the end of `what`, and notes it. Returns false where
 * the kernel lacks membarrier for it. */
static bool choose(struct ground *g, char *what)
{
    char *fenced = strstr(what, "-fenced");
    char *end = fenced ? fenced : strstr(what, "-for-both");

    g->may_spare = fenced != NULL;
    g->for_both = end != NULL;
    if (end)
        *end = '\0';
    return !end || (doorbell_register() == 0 && doorbell_fence_others() == 0);
}

int main(int argc, char **argv)
{
    static struct ground ground;
    char *what = argc == 3 ? argv[1] : argv[0];

    ground.wanted = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (!choose(&ground, what)) {
        printf("skipped: this kernel, or this build, does not fence for other processes\n");
        return SKIPPED;
    }
    if (ground.wanted != 0 && strcmp(what, "races") == 0)
        return run_races(&ground, false);
    if (ground.wanted != 0 && strcmp(what, "lost") == 0)
        return run_races(&ground, true);
    if (ground.wanted != 0 && strcmp(what, "sleeps") == 0)
        return run_sleeps(&ground);
    fprintf(stderr, "usage: doorbell_litmus races|lost|sleeps[-for-both] COUNT\n"
                    "       doorbell_litmus races-fenced|lost-fenced COUNT\n");
    return 2;
}
