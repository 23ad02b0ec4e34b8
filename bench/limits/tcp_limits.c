/*
 * The rates of TCP over loopback, which limit all communication between two nodes on one machine:
 *
 *     tcp_limits latency|stream [--chain] [--cpu A,B] [--iters N]
 *
 * Two processes, each on a processor of its own, spin on their sockets. With --chain there are
 * four, as with a daemon on each node: a rank and its relay share a processor, exchange records by
 * rings in shared memory, and yield whenever there is nothing to do.
 *
 *     rank -> ring -> relay -> TCP -> relay -> ring -> rank      (and the same way back)
 *
 * Each message is a record of 64 bytes, as that of an 8-byte put. `latency` is half a round trip;
 * `stream` is the number of records in a second, where one write carries all records that are
 * ready. Prints one JSON line.
 */
#include "bench/limits/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD  64u
#define RECORDS 1024u /* of a ring: 64 KiB */
#define WARM_UP 1000u

/* A ring of bytes, numbered from the beginning; one writer, one reader. */
struct byte_ring {
    _Alignas(64) _Atomic uint64_t head; /* written so far */
    _Alignas(64) _Atomic uint64_t tail; /* read so far */
    _Alignas(64) uint8_t bytes[RECORDS * RECORD];
};

struct shared {
    struct byte_ring to_relay[2]; /* by node */
    struct byte_ring to_rank[2];
    _Alignas(64) _Atomic bool done;
};

struct options {
    int cpus[2];
    uint32_t iterations;
    bool chain;
    bool stream;
    int sockets[2]; /* by node */
};

/* ---- rings --------------------------------------------------------------------------------- */

/* `readable` and `writable` return how many contiguous bytes can be read or written, and where. */
static size_t readable(struct byte_ring *ring, uint8_t **at)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t there = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
    size_t place = tail % sizeof(ring->bytes);

    *at = ring->bytes + place;
    return there < sizeof(ring->bytes) - place ? there : sizeof(ring->bytes) - place;
}

static size_t writable(struct byte_ring *ring, uint8_t **at)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
    size_t place = head % sizeof(ring->bytes), room = sizeof(ring->bytes) - used;

    *at = ring->bytes + place;
    return room < sizeof(ring->bytes) - place ? room : sizeof(ring->bytes) - place;
}

static void has_read(struct byte_ring *ring, size_t n)
{
    atomic_fetch_add_explicit(&ring->tail, n, memory_order_release);
}

static void has_written(struct byte_ring *ring, size_t n)
{
    atomic_fetch_add_explicit(&ring->head, n, memory_order_release);
}

/* ---- the two ways to the other node -------------------------------------------------------- */

static ssize_t tried(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* send_some and receive_some return how many bytes moved, or -1 for a broken socket. */
static ssize_t push(struct shared *s, const struct options *o, int node, const void *from, size_t n)
{
    uint8_t *at;
    size_t room;

    if (!o->chain)
        return tried(send(o->sockets[node], from, n, MSG_DONTWAIT | MSG_NOSIGNAL));
    room = writable(&s->to_relay[node], &at);
    if (room == 0)
        (void)sched_yield();
    n = n < room ? n : room;
    memcpy(at, from, n);
    has_written(&s->to_relay[node], n);
    return (ssize_t)n;
}

static ssize_t pull(struct shared *s, const struct options *o, int node, void *to, size_t n)
{
    uint8_t *at;
    size_t there;

    if (!o->chain)
        return tried(recv(o->sockets[node], to, n, MSG_DONTWAIT));
    there = readable(&s->to_rank[node], &at);
    if (there == 0)
        (void)sched_yield();
    n = n < there ? n : there;
    memcpy(to, at, n);
    has_read(&s->to_rank[node], n);
    return (ssize_t)n;
}

static int relay(struct shared *s, const struct options *o, int node)
{
    while (!atomic_load_explicit(&s->done, memory_order_acquire)) {
        uint8_t *at;
        size_t n = readable(&s->to_relay[node], &at);
        ssize_t moved = 0, came;

        if (n)
            moved = tried(send(o->sockets[node], at, n, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (moved > 0)
            has_read(&s->to_relay[node], (size_t)moved);
        n = writable(&s->to_rank[node], &at);
        came = n ? tried(recv(o->sockets[node], at, n, MSG_DONTWAIT)) : 0;
        if (came > 0)
            has_written(&s->to_rank[node], (size_t)came);
        if (moved < 0 || came < 0)
            return 1;
        if (moved + came == 0)
            (void)sched_yield();
    }
    return 0;
}

static int relays_first(void *shared, const void *options)
{
    return relay(shared, options, 0);
}

static int relays_second(void *shared, const void *options)
{
    return relay(shared, options, 1);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static int push_all(struct shared *s, const struct options *o, int node, const uint8_t *from,
                    size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = push(s, o, node, from + done, length - done);

        if (n < 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

static int pull_all(struct shared *s, const struct options *o, int node, uint64_t length)
{
    uint8_t into[RECORDS * RECORD];

    while (length > 0) {
        ssize_t n = pull(s, o, node, into, length < sizeof(into) ? length : sizeof(into));

        if (n < 0)
            return -1;
        length -= (uint64_t)n;
    }
    return 0;
}

static int answer(void *shared, const void *options)
{
    const struct options *o = options;
    uint8_t record[RECORD] = {0};
    uint32_t turns = o->stream ? 1 : WARM_UP + o->iterations;
    uint64_t expected = o->stream ? (uint64_t)o->iterations * RECORD : RECORD;

    for (uint32_t i = 0; i < turns; i++)
        if (pull_all(shared, o, 1, expected) || push_all(shared, o, 1, record, RECORD))
            return 1;
    return 0;
}

static int stream(struct shared *s, const struct options *o)
{
    static const uint8_t records[RECORDS * RECORD];
    uint64_t left = (uint64_t)o->iterations * RECORD, start = pair_now();

    while (left > 0) {
        size_t n = left < sizeof(records) ? left : sizeof(records);

        if (push_all(s, o, 0, records, n))
            return 1;
        left -= n;
    }
    if (pull_all(s, o, 0, RECORD))
        return 1;

    double seconds = (double)(pair_now() - start) / 1e9;

    (void)printf("{\"test\":\"tcp_stream\",\"processes\":%d,\"rate_mps\":%.3f,\"bw_mbps\":%.1f}\n",
                 o->chain ? 4 : 2, o->iterations / seconds / 1e6,
                 (double)o->iterations * RECORD / seconds / 1e6);
    return 0;
}

static int ask(void *shared, const void *options)
{
    const struct options *o = options;
    uint8_t record[RECORD] = {0};
    double *halves = calloc(o->iterations, sizeof(*halves));
    int rc = halves ? 0 : 1;

    if (o->stream)
        rc = stream(shared, o);
    for (uint32_t i = 0; !o->stream && rc == 0 && i < WARM_UP + o->iterations; i++) {
        uint64_t start = pair_now();

        rc = push_all(shared, o, 0, record, RECORD) || pull_all(shared, o, 0, RECORD);
        if (i >= WARM_UP)
            halves[i - WARM_UP] = (double)(pair_now() - start) / 2000;
    }
    if (!o->stream && rc == 0)
        (void)printf("{\"test\":\"tcp_latency\",\"processes\":%d,\"p50_us\":%.3f}\n",
                     o->chain ? 4 : 2, pair_median(halves, o->iterations));
    atomic_store_explicit(&((struct shared *)shared)->done, true, memory_order_release);
    free(halves);
    return rc;
}

/* ---- start ---------------------------------------------------------------------------------- */

static int connect_both(int sockets[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    sockets[1] = -1;
    if (listener >= 0 && sockets[0] >= 0 &&
        bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
        connect(sockets[0], (struct sockaddr *)&address, sizeof(address)) == 0)
        sockets[1] = accept(listener, NULL, NULL);
    if (sockets[1] < 0) {
        perror("tcp_limits: connecting over loopback");
        return -1;
    }
    close(listener);
    for (int i = 0; i < 2; i++)
        (void)setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return 0;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: tcp_limits latency|stream [--chain] [--cpu A,B] [--iters N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"chain", no_argument, NULL, 'h'},
        {"cpu", required_argument, NULL, 'c'},
        {"iters", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    static const pair_role two[] = {answer, ask};
    static const pair_role four[] = {relays_first, relays_second, answer, ask};
    struct options o = {.cpus = {0, 1}};
    struct shared *shared;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'h')
            o.chain = true;
        else if (c == 'n')
            o.iterations = (uint32_t)strtoul(optarg, NULL, 0);
        else if (c != 'c' || pair_parse_cpus("tcp_limits", optarg, o.cpus))
            return usage();
    }
    if (optind + 1 != argc)
        return usage();
    o.stream = strcmp(argv[optind], "stream") == 0;
    if (!o.stream && strcmp(argv[optind], "latency") != 0)
        return usage();
    if (o.iterations == 0)
        o.iterations = o.stream ? 10000000 : 20000;
    shared = pair_memory(sizeof(*shared));
    if (!shared || connect_both(o.sockets))
        return 1;

    int cpus[] = {o.cpus[0], o.cpus[1], o.cpus[1], o.cpus[0]};

    return o.chain ? pair_run(four, cpus, 4, shared, &o) : pair_run(two, cpus + 2, 2, shared, &o);
}
