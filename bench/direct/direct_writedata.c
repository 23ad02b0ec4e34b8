/*
 * The baseline: two processes that exchange fi_writedata directly, without daemons.
 *
 *     direct_writedata [--provider P] [--bind ADDRESS] [--size N] [--iters N] [--cpu A,B]
 *                      [--window N] [--yield] [--inject]
 *
 * Prints one JSON line. Without --window the processes take turns, and times are half a round trip.
 * With --window the first process keeps N writes in flight, and the clock stops when the second has
 * reported that the last one has arrived. Each process spins on its completion queue; with --yield
 * it yields the processor whenever the queue is empty, which it must do where both share a
 * processor. The child is forked before libfabric is first used.
 */
#include "bench/direct/end.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2000

struct options {
    struct end_options end;
    uint32_t iterations;
    int cpu[2]; /* -1: not pinned */
    bool stream;
};

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- taking turns ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void report_turns(const struct options *o, uint64_t *times)
{
    double sum = 0;
    uint32_t n = o->iterations;

    for (uint32_t i = 0; i < n; i++)
        sum += (double)times[i];
    qsort(times, n, sizeof(*times), by_value);
    (void)printf("{\"test\":\"direct_writedata\",\"provider\":\"%s\",\"size\":%zu,\"iters\":%u,"
                 "\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"mean_us\":%.3f}\n",
                 o->end.provider, o->end.size, n, (double)times[0] / 2000,
                 (double)times[n / 2] / 2000, (double)times[(uint64_t)n * 99 / 100] / 2000,
                 sum / n / 2000);
}

static int initiate(struct end *end, const struct options *o)
{
    uint32_t rounds = WARM_UP + o->iterations;
    uint64_t *times = calloc(o->iterations, sizeof(*times));
    int rc = times ? 0 : -1;

    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        uint64_t start = nanoseconds();

        rc = end_send(end);
        if (!rc)
            rc = end_await(end, i + 1);
        if (i >= WARM_UP)
            times[i - WARM_UP] = nanoseconds() - start;
    }
    if (!rc)
        report_turns(o, times);
    free(times);
    return rc;
}

static int respond(struct end *end, const struct options *o)
{
    uint32_t rounds = WARM_UP + o->iterations;
    int rc = 0;

    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        rc = end_await(end, i + 1);
        if (!rc)
            rc = end_send(end);
    }
    return rc;
}

/* ---- streaming ------------------------------------------------------------------------------- */

/* Writes all; the second process answers twice: after the warm-up, and after the last write. */
static int stream_out(struct end *end, const struct options *o)
{
    uint32_t parts[] = {o->iterations / 10 + 1, o->iterations};
    uint64_t start = 0, took;

    for (uint32_t part = 0; part < 2; part++) {
        int rc = 0;

        start = nanoseconds();
        for (uint32_t i = 0; i < parts[part] && rc == 0; i++)
            rc = end_send(end);
        if (!rc)
            rc = end_await(end, part + 1);
        if (rc)
            return rc;
    }
    took = nanoseconds() - start;
    (void)printf("{\"test\":\"direct_stream\",\"provider\":\"%s\",\"size\":%zu,\"iters\":%u,"
                 "\"window\":%u,\"rate_mps\":%.6f,\"bw_mbps\":%.3f}\n",
                 o->end.provider, o->end.size, o->iterations, o->end.window,
                 (double)o->iterations * 1000 / (double)took,
                 (double)o->iterations * (double)o->end.size * 1000 / (double)took);
    return 0;
}

static int stream_in(struct end *end, const struct options *o)
{
    uint64_t warm = o->iterations / 10 + 1;
    int rc = end_await(end, warm);

    if (!rc)
        rc = end_send(end);
    if (!rc)
        rc = end_await(end, warm + o->iterations);
    return rc ? rc : end_send(end);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        perror("direct_writedata: sched_setaffinity");
}

/* Runs one side. Returns only after the other side has all answers that it waits for. */
static int run(const struct options *options, int socket, bool first)
{
    struct end *end;
    char done = 0;
    int rc;

    pin(options->cpu[first ? 0 : 1]);
    end = end_open(&options->end, socket);
    if (!end)
        return 1;
    if (options->stream)
        rc = first ? stream_out(end, options) : stream_in(end, options);
    else
        rc = first ? initiate(end, options) : respond(end, options);
    if (!rc)
        rc = end_drain(end);
    /* The last answer leaves this process only while this process polls. */
    if (!first) {
        while (!rc && recv(socket, &done, 1, MSG_DONTWAIT) < 0)
            rc = end_progress(end);
    } else if (write(socket, &done, 1) != 1) {
        rc = -1;
    }
    end_close(end);
    return rc ? 1 : 0;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"provider", required_argument, NULL, 'p'},
        {"bind", required_argument, NULL, 'b'},
        {"size", required_argument, NULL, 's'},
        {"iters", required_argument, NULL, 'n'},
        {"cpu", required_argument, NULL, 'c'},
        {"yield", no_argument, NULL, 'y'},
        {"inject", no_argument, NULL, 'i'},
        {"window", required_argument, NULL, 'w'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (c) {
        case 'p':
            o->end.provider = optarg;
            break;
        case 'b':
            o->end.bind = optarg;
            break;
        case 's':
            o->end.size = strtoul(optarg, NULL, 0);
            break;
        case 'n':
            o->iterations = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'w':
            o->end.window = (uint32_t)strtoul(optarg, NULL, 0);
            o->stream = true;
            break;
        case 'c':
            if (sscanf(optarg, "%d,%d", &o->cpu[0], &o->cpu[1]) != 2) {
                (void)fprintf(stderr, "direct_writedata: --cpu '%s': give two, as in 0,1\n",
                              optarg);
                return -1;
            }
            break;
        case 'y':
            o->end.yield = true;
            break;
        case 'i':
            o->end.inject = true;
            break;
        default:
            return -1;
        }
    }
    return o->end.size > 0 && o->end.window > 0 && o->iterations > 0 && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options options = {
        .end = {.provider = "tcp;ofi_rxm", .bind = "127.0.0.1", .size = 8, .window = 1},
        .iterations = 20000,
        .cpu = {-1, -1},
    };
    int sockets[2], status = 0;
    pid_t child;

    if (parse(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: direct_writedata [--provider P] [--bind ADDRESS] [--size N] "
                              "[--iters N] [--cpu A,B] [--window N] [--yield] [--inject]\n");
        return 2;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets)) {
        perror("direct_writedata: socketpair");
        return 1;
    }
    child = fork();
    if (child < 0) {
        perror("direct_writedata: fork");
        return 1;
    }
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        close(sockets[0]);
        return run(&options, sockets[1], false);
    }
    close(sockets[1]);

    int rc = run(&options, sockets[0], true);

    close(sockets[0]);
    (void)waitpid(child, &status, 0);
    return rc || status ? 1 : 0;
}
