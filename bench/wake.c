/*
 * The cost of waking a client, compared with bare wakes of the same kind; both alternate in a run.
 *
 *     pwcrun --daemon-arg --direct --daemon-arg off --pin -- wake [ROUNDS]
 *
 *                  ours                                 bare
 *     waker     pwc_put                              a word, and an eventfd where the relay sleeps
 *       |
 *     relay     the daemon, on processor 0           a thread there: epoll_wait, or yields
 *       |
 *     sleeper   pwc_wait, in futex                   futex
 *
 * One hop: the relay is awake, and only the sleeper is woken. A chain: the relay sleeps too. Before
 * each wake the program pauses until no side polls any more. The sleeper is on the relay's
 * processor, as ranks are with --pin, or on the waker's, which then has nothing else to do.
 *
 * Puts must go by the daemon (--direct off): neighbours that reach each other's memory put without
 * it, and then the daemon would be asleep when one of them has to be woken: each hop would be a
 * chain.
 *
 * Our times include a put's way: two rings and the engine. The exit status is 1 if a hop from one
 * processor to another takes more than 1.3 times as long as the bare one. On one processor a wake
 * takes no longer than the put's way, so there the ratio says little about the wake.
 *
 * Threads: main is the waker; the other two are the relay and the sleeper. Words between them are
 * atomic.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <pwc/pwc.h>

#define BOUND       1.3
#define ROUNDS      501
#define ROUNDS_MOST 100000
#define ALONE_US    2000  /* longer than any side polls */
#define AWAKE_NS    30000 /* until an awake relay has found nothing more to do */
#define STOP        UINT64_MAX
#define SIDES       2
#define WAKER_CPU   1
#define RELAY_CPU   0
#define WAIT_MS     10000

enum side { BARE, OURS };

struct bench {
    pwc_client *client;
    pwc_ctx *waker, *sleeper;
    pwc_remote *remote;
    int doorbell, epoll;
    enum side side;           /* how the sleeper sleeps next; written before `turn` */
    _Atomic uint32_t turn;    /* futex: counts up when the sleeper shall sleep again */
    _Atomic uint32_t bell;    /* futex: the bare sleeper sleeps on it */
    _Atomic uint64_t stamp;   /* when the waker began; the bare relay passes it on */
    _Atomic bool relay_awake; /* the relay yields instead of sleeping */
    _Atomic uint32_t woken;   /* futex: turns that have ended */
    uint64_t took;            /* written before `woken` */
    int failure;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void set_and_wake(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int stay_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* ---- sleeper and relay ----------------------------------------------------------------------- */

static uint64_t sleep_once(struct bench *b)
{
    struct pwc_event event = {.id = 0};
    uint64_t began;
    int rc;

    if (b->side == BARE) {
        sleep_while(&b->bell, 0);
        began = atomic_load(&b->stamp);
    } else {
        rc = pwc_wait(b->sleeper, PWC_ANY, PWC_REMOTE, &event, WAIT_MS);
        if (rc != 1)
            b->failure = rc < 0 ? rc : -ETIMEDOUT;
        began = event.id;
    }
    return now_ns() - began;
}

struct sleeper {
    struct bench *bench;
    int cpu;
    uint32_t turns;
};

static void *sleeper_main(void *argument)
{
    const struct sleeper *s = argument;
    struct bench *b = s->bench;

    if (stay_on(s->cpu) < 0)
        b->failure = -EINVAL;
    for (uint32_t turn = 0; turn < s->turns; turn++) {
        sleep_while(&b->turn, turn);
        b->took = sleep_once(b);
        set_and_wake(&b->woken, turn + 1);
    }
    return NULL;
}

static void *relay_main(void *argument)
{
    struct bench *b = argument;
    struct epoll_event event;
    uint64_t seen = 0, stamp, count;

    if (stay_on(RELAY_CPU) < 0)
        b->failure = -EINVAL;
    while ((stamp = atomic_load(&b->stamp)) != STOP) {
        if (stamp != seen) {
            seen = stamp;
            set_and_wake(&b->bell, 1);
        } else if (atomic_load(&b->relay_awake)) {
            sched_yield();
        } else if (epoll_wait(b->epoll, &event, 1, -1) == 1) {
            (void)!read(b->doorbell, &count, sizeof(count));
        }
    }
    return NULL;
}

static void ring(struct bench *b)
{
    uint64_t one = 1;

    (void)!write(b->doorbell, &one, sizeof(one));
}

/* ---- the waker ------------------------------------------------------------------------------- */

static int put(struct bench *b, uint64_t lid, uint64_t rid, unsigned flags)
{
    return pwc_put(b->remote, 0, NULL, 0, pwc_cid_u64(lid), pwc_cid_u64(rid), flags);
}

/* Wakes only the relay. */
static int wake_relay(struct bench *b, enum side side)
{
    struct pwc_event event;
    uint64_t start;
    int rc = 0;

    if (side == BARE) {
        atomic_store(&b->relay_awake, true);
        ring(b);
    } else {
        rc = put(b, 1, 0, PWC_NO_RCE);
        if (rc == 0)
            rc = pwc_wait(b->waker, PWC_ANY, PWC_LOCAL, &event, WAIT_MS);
    }
    start = now_ns();
    while (now_ns() - start < AWAKE_NS)
        sched_yield();
    return rc < 0 ? rc : 0;
}

/* Does one wake. Returns its time in ns, or a negative errno. */
static int64_t wake_once(struct bench *b, enum side side, bool chain)
{
    uint32_t turn = atomic_load(&b->turn);
    int rc = 0;

    b->side = side;
    atomic_store(&b->bell, 0);
    set_and_wake(&b->turn, turn + 1);
    usleep(ALONE_US);
    if (!chain)
        rc = wake_relay(b, side);
    if (rc == 0 && side == OURS) {
        rc = put(b, 0, now_ns(), PWC_NO_LCE);
    } else if (rc == 0) {
        atomic_store(&b->stamp, now_ns());
        if (chain)
            ring(b);
    }
    if (rc < 0)
        return rc;
    sleep_while(&b->woken, turn);
    atomic_store(&b->relay_awake, false);
    return b->failure < 0 ? b->failure : (int64_t)b->took;
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* Measures our wake and the bare one in turn. 0, 1 when over the bound, or a negative errno. */
static int compare(struct bench *b, const char *name, bool chain, uint32_t rounds)
{
    static int64_t took[SIDES][ROUNDS_MOST];
    double us[SIDES];

    for (uint32_t i = 0; i < rounds; i++)
        for (int side = 0; side < SIDES; side++) {
            took[side][i] = wake_once(b, (enum side)side, chain);
            if (took[side][i] < 0)
                return (int)took[side][i];
        }
    for (int side = 0; side < SIDES; side++) {
        qsort(took[side], rounds, sizeof(took[side][0]), by_value);
        us[side] = (double)took[side][rounds / 2] / 1e3;
    }
    printf("%-34s %8.2f %8.2f %7.2f\n", name, us[BARE], us[OURS], us[OURS] / us[BARE]);
    fflush(stdout);
    return us[OURS] / us[BARE] > BOUND;
}

/* Measures with the sleeper on that processor. Returns 1 if the hop is over the bound. */
static int compare_on(struct bench *b, int cpu, const char *hop, const char *chain, uint32_t rounds)
{
    struct sleeper s = {b, cpu, 2 * SIDES * rounds};
    pthread_t sleeper, relay;
    int over, rc;

    atomic_store(&b->turn, 0);
    atomic_store(&b->woken, 0);
    atomic_store(&b->stamp, 0);
    if (pthread_create(&relay, NULL, relay_main, b) ||
        pthread_create(&sleeper, NULL, sleeper_main, &s))
        return -EAGAIN;
    over = rc = compare(b, hop, false, rounds);
    if (rc >= 0)
        rc = compare(b, chain, true, rounds);
    if (rc < 0)
        return rc; /* and the program ends */
    atomic_store(&b->stamp, STOP);
    ring(b);
    pthread_join(sleeper, NULL);
    pthread_join(relay, NULL);
    return over;
}

static int open_bench(struct bench *b)
{
    struct epoll_event event = {.events = EPOLLIN};
    int rc = pwc_init(NULL, &b->client);

    if (rc == 0)
        rc = pwc_ctx_create(b->client, NULL, &b->waker);
    if (rc == 0)
        rc = pwc_ctx_create(b->client, NULL, &b->sleeper);
    if (rc == 0)
        rc = pwc_bind(b->waker, pwc_peer_of(pwc_rank(b->client), 1), NULL, &b->remote);
    if (rc < 0)
        return rc;
    b->doorbell = eventfd(0, EFD_NONBLOCK);
    b->epoll = epoll_create1(0);
    return b->doorbell < 0 || b->epoll < 0 ||
                   epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->doorbell, &event) < 0
               ? -errno
               : 0;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : ROUNDS;
    int rc;

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        puts("wake: needs two processors");
        return 77; /* skipped */
    }
    if (rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "wake: rounds \"%s\": give a number from 1 to %d\n", argv[1], ROUNDS_MOST);
        return 2;
    }
    rc = stay_on(WAKER_CPU);
    if (rc == 0)
        rc = open_bench(&bench);
    printf("%-34s %8s %8s %7s   (us, medians of %u)\n", "", "bare", "ours", "ratio", rounds);
    if (rc == 0)
        rc = compare_on(&bench, RELAY_CPU, "one hop, relay's processor", "chain, relay's processor",
                        rounds);
    if (rc >= 0)
        rc = compare_on(&bench, WAKER_CPU, "one hop, waker's processor", "chain, waker's processor",
                        rounds);
    if (rc < 0) {
        fprintf(stderr, "wake: %s\n", pwc_strerror(rc));
        return 1;
    }
    pwc_finalize(bench.client);
    return rc;
}
