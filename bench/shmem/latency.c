/*
 * The time of single OpenSHMEM calls between two PEs, for bench/openshmem: one line a row, in
 * microseconds.
 *
 *     put          half a round trip: each PE puts a word and waits for the other PE's word
 *     put_quiet    a put of 8 bytes and shmem_quiet
 *     fetch_add    shmem_long_atomic_fetch_add
 *     get          a get of 8 bytes
 *     computing_put, computing_add
 *                  put_quiet and fetch_add while the target computes for 20 ms without a call, 1 ms
 *                  after it has begun; each is the median of its repetitions
 *     cold_put, cold_add
 *                  the same 10 ms after the target has begun, without any call before that
 *
 * PE 0 measures and prints; both check every word. Ends with status 1 where a word is wrong.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    WARM_UP = 200,
    REPETITIONS = 2000,
    COMPUTING = 15,
    COMPUTE_NS = 20000000,
    SOON_NS = 1000000, /* after the target has begun to compute; as LATE_NS */
    LATE_NS = 10000000,
};

static long word, answer, turn;
static int wrong;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void expect(long seen, long wanted, const char *what)
{
    if (seen == wanted)
        return;
    wrong = 1;
    fprintf(stderr, "PE %d: %s is %ld, not %ld\n", shmem_my_pe(), what, seen, wanted);
}

static void print(const char *row, double us)
{
    if (shmem_my_pe() == 0)
        printf("%-14s %10.2f\n", row, us);
}

static void measure_put(void)
{
    int me = shmem_my_pe(), other = 1 - me;
    int64_t began = 0;

    shmem_barrier_all();
    for (long i = 1; i <= WARM_UP + REPETITIONS; i++) {
        if (i == WARM_UP + 1)
            began = now_ns();
        if (me == 0)
            shmem_long_p(&turn, i, other);
        shmem_long_wait_until(&turn, SHMEM_CMP_EQ, i);
        if (me == 1)
            shmem_long_p(&turn, i, other);
    }
    print("put", (double)(now_ns() - began) / 1e3 / REPETITIONS / 2);
}

static void put_quiet(long i)
{
    shmem_long_put(&word, &i, 1, 1);
    shmem_quiet();
}

static void fetch_add(long i)
{
    expect(shmem_long_atomic_fetch_add(&word, 1, 1), i - 1, "what fetch_add gave");
}

static void get(long i)
{
    answer = 0;
    shmem_long_get(&answer, &word, 1, 1);
    expect(answer, WARM_UP + REPETITIONS, "what get gave");
}

/* Measures the mean over calls, one after the other. PE 0 calls, PE 1 waits in a barrier. */
static void measure(const char *row, void (*call)(long i), long before, long after)
{
    int64_t began = 0;

    if (shmem_my_pe() == 1)
        word = before;
    shmem_barrier_all();
    for (long i = 1; shmem_my_pe() == 0 && i <= WARM_UP + REPETITIONS; i++) {
        if (i == WARM_UP + 1)
            began = now_ns();
        call(i);
    }
    print(row, (double)(now_ns() - began) / 1e3 / REPETITIONS);
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        expect(word, after, "the target's word");
}

static void compute_until(int64_t until)
{
    volatile double x = 1;

    while (now_ns() < until)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 0.1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* PE 1 computes without a call. PE 0 computes, too, but only for `before_ns`, and then calls. */
static void measure_computing(const char *row, void (*call)(long i), int64_t before_ns)
{
    static long begun; /* when PE 1 begins to compute, ns */
    double us[COMPUTING];

    if (shmem_my_pe() == 1)
        word = 0;
    for (long i = 1; i <= COMPUTING; i++) {
        begun = 0;
        shmem_barrier_all();
        if (shmem_my_pe() == 1) {
            int64_t now = now_ns();

            shmem_long_p(&begun, (long)now, 0);
            shmem_quiet();
            compute_until(now_ns() + COMPUTE_NS);
        } else {
            int64_t began;

            shmem_long_wait_until(&begun, SHMEM_CMP_NE, 0);
            compute_until(now_ns() + before_ns);
            began = now_ns();
            call(i);
            us[i - 1] = (double)(now_ns() - began) / 1e3;
        }
        shmem_barrier_all();
    }
    if (shmem_my_pe() == 1) {
        expect(word, COMPUTING, "the target's word behind its computing");
        return;
    }
    qsort(us, COMPUTING, sizeof(us[0]), by_value);
    print(row, us[COMPUTING / 2]);
}

int main(void)
{
    const long all = WARM_UP + REPETITIONS;

    shmem_init();
    if (shmem_n_pes() != 2) {
        fprintf(stderr, "this program is for two PEs\n");
        shmem_global_exit(2);
    }
    measure_put();
    measure("put_quiet", put_quiet, 0, all);
    measure("fetch_add", fetch_add, 0, all);
    measure("get", get, all, all);
    measure_computing("computing_put", put_quiet, SOON_NS);
    measure_computing("computing_add", fetch_add, SOON_NS);
    measure_computing("cold_put", put_quiet, LATE_NS);
    measure_computing("cold_add", fetch_add, LATE_NS);
    shmem_finalize();
    return wrong;
}
