/*
 * The baseline: two processes that exchange fi_writedata directly, without daemons.
 *
 *     direct_writedata [--provider P] [--bind ADDRESS] [--size N] [--iters N] [--cpu A,B]
 *                      [--yield] [--inject]
 *
 * Prints one JSON line; times are half a round trip. Each process spins on its completion queue;
 * with --yield it gives the processor away whenever the queue is empty, as it must where both share
 * one. The child is forked before libfabric is first used.
 */
#include <errno.h>
#include <getopt.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2000

struct options {
    const char *provider;
    const char *bind;
    size_t size;
    uint32_t iterations;
    int cpu[2]; /* -1: not pinned */
    bool yield;
    bool inject;
};

/* What one side tells the other, over a socket pair. */
struct card {
    char address[256];
    size_t address_size;
    uint64_t target;
    uint64_t key;
};

struct side {
    const struct options *options;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fid_cq *queue;
    struct fid_ep *endpoint;
    struct fid_mr *registration;
    void *descriptor;
    uint8_t *memory; /* the first half is written by the peer, the second is our source */
    fi_addr_t peer;
    struct card theirs;
    struct fi_context2 context;
    uint64_t arrived;
    uint64_t sent; /* but for injected ones, which have no completion */
    uint64_t completed;
};

static int failed(const char *what, ssize_t rc)
{
    (void)fprintf(stderr, "direct_writedata: %s: %s\n", what, fi_strerror((int)-rc));
    return (int)rc;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int find_provider(struct side *s, bool by_address)
{
    struct fi_info *hints = fi_allocinfo();
    struct sockaddr_in *source = calloc(1, sizeof(*source));
    int rc;

    if (!hints || !source)
        return -FI_ENOMEM;
    hints->caps = FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_WAW;
    hints->rx_attr->msg_order = FI_ORDER_WAW;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(s->options->provider);
    source->sin_family = AF_INET;
    if (by_address && inet_pton(AF_INET, s->options->bind, &source->sin_addr) == 1) {
        hints->src_addr = source;
        hints->src_addrlen = sizeof(*source);
        hints->addr_format = FI_SOCKADDR_IN;
    } else {
        free(source);
    }
    rc = fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &s->info);
    fi_freeinfo(hints);
    return rc;
}

static int open_endpoint(struct side *s)
{
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    int rc = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);

    if (!rc)
        rc = fi_domain(s->fabric, s->info, &s->domain, NULL);
    if (!rc && fi_cq_open(s->domain, &queue, &s->queue, NULL)) {
        queue.wait_obj = FI_WAIT_NONE; /* not all providers have one; we spin in any case */
        rc = fi_cq_open(s->domain, &queue, &s->queue, NULL);
    }
    if (!rc)
        rc = fi_av_open(s->domain, &addresses, &s->addresses, NULL);
    if (!rc)
        rc = fi_endpoint(s->domain, s->info, &s->endpoint, NULL);
    if (!rc)
        rc = fi_ep_bind(s->endpoint, &s->queue->fid, FI_TRANSMIT | FI_RECV);
    if (!rc)
        rc = fi_ep_bind(s->endpoint, &s->addresses->fid, 0);
    if (!rc)
        rc = fi_enable(s->endpoint);
    return rc;
}

static int open_memory(struct side *s)
{
    size_t length = 2 * s->options->size;
    int rc;

    s->memory = aligned_alloc(4096, (length + 4095) & ~(size_t)4095);
    if (!s->memory)
        return -FI_ENOMEM;
    memset(s->memory, 0, length);
    rc = fi_mr_reg(s->domain, s->memory, length,
                   FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &s->registration,
                   NULL);
    if (!rc)
        s->descriptor = fi_mr_desc(s->registration);
    return rc;
}

static int exchange_cards(struct side *s, int socket)
{
    struct card ours = {.address_size = sizeof(ours.address)};
    int rc = fi_getname(&s->endpoint->fid, ours.address, &ours.address_size);

    if (rc)
        return rc;
    if (s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        ours.target = (uintptr_t)s->memory;
    ours.key = fi_mr_key(s->registration);
    if (write(socket, &ours, sizeof(ours)) != sizeof(ours) ||
        read(socket, &s->theirs, sizeof(s->theirs)) != sizeof(s->theirs))
        return -FI_EIO;
    rc = fi_av_insert(s->addresses, s->theirs.address, 1, &s->peer, 0, NULL);
    return rc == 1 ? 0 : -FI_EADDRNOTAVAIL;
}

/* ---- exchanging ------------------------------------------------------------------------------ */

static int progress(struct side *s)
{
    struct fi_cq_data_entry entries[8];
    struct fi_cq_err_entry error = {0};
    ssize_t n = fi_cq_read(s->queue, entries, 8);

    for (ssize_t i = 0; i < n; i++) {
        if (entries[i].flags & FI_REMOTE_CQ_DATA)
            s->arrived++;
        else
            s->completed++;
    }
    if (n == -FI_EAVAIL && fi_cq_readerr(s->queue, &error, 0) == 1)
        return failed("completion", -error.err);
    if (n < 0 && n != -FI_EAGAIN)
        return failed("fi_cq_read", n);
    if (n <= 0 && s->options->yield)
        (void)sched_yield();
    return 0;
}

/* The context is free again once the last write has completed. */
static int await_context(struct side *s)
{
    int rc = 0;

    while (s->completed < s->sent && rc == 0)
        rc = progress(s);
    return rc;
}

static int send_one(struct side *s)
{
    const uint8_t *source = s->memory + s->options->size;
    size_t size = s->options->size;
    int stop = await_context(s);
    ssize_t rc;

    while (!stop) {
        if (s->options->inject)
            rc = fi_inject_writedata(s->endpoint, source, size, 1, s->peer, s->theirs.target,
                                     s->theirs.key);
        else
            rc = fi_writedata(s->endpoint, source, size, s->descriptor, 1, s->peer,
                              s->theirs.target, s->theirs.key, &s->context);
        if (rc == 0) {
            s->sent += !s->options->inject;
            return 0;
        }
        if (rc != -FI_EAGAIN)
            return failed("fi_writedata", rc);
        stop = progress(s);
    }
    return stop;
}

static int await(struct side *s, uint64_t arrivals)
{
    int rc = 0;

    while (s->arrived < arrivals && rc == 0)
        rc = progress(s);
    return rc;
}

static int initiate(struct side *s, uint64_t *times)
{
    uint32_t rounds = WARM_UP + s->options->iterations;

    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t start = nanoseconds();
        int rc = send_one(s);

        if (!rc)
            rc = await(s, i + 1);
        if (rc)
            return rc;
        if (i >= WARM_UP)
            times[i - WARM_UP] = nanoseconds() - start;
    }
    return 0;
}

static int respond(struct side *s)
{
    uint32_t rounds = WARM_UP + s->options->iterations;

    for (uint32_t i = 0; i < rounds; i++) {
        int rc = await(s, i + 1);

        if (!rc)
            rc = send_one(s);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void report(const struct options *o, uint64_t *times)
{
    double sum = 0;
    uint32_t n = o->iterations;

    for (uint32_t i = 0; i < n; i++)
        sum += (double)times[i];
    qsort(times, n, sizeof(*times), by_value);
    (void)printf("{\"test\":\"direct_writedata\",\"provider\":\"%s\",\"size\":%zu,\"iters\":%u,"
                 "\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"mean_us\":%.3f}\n",
                 o->provider, o->size, n, (double)times[0] / 2000, (double)times[n / 2] / 2000,
                 (double)times[(uint64_t)n * 99 / 100] / 2000, sum / n / 2000);
}

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

static void close_all(struct side *s)
{
    struct fid *fids[] = {
        s->registration ? &s->registration->fid : NULL,
        s->endpoint ? &s->endpoint->fid : NULL,
        s->addresses ? &s->addresses->fid : NULL,
        s->queue ? &s->queue->fid : NULL,
        s->domain ? &s->domain->fid : NULL,
        s->fabric ? &s->fabric->fid : NULL,
    };

    for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
        if (fids[i])
            (void)fi_close(fids[i]);
    if (s->info)
        fi_freeinfo(s->info);
    free(s->memory);
}

/* One whole side. Ends only after the other has all it waits for. */
static int run(const struct options *options, int socket, bool first)
{
    struct side s = {.options = options};
    uint64_t *times = calloc(options->iterations, sizeof(*times));
    char done = 0;
    int rc = times ? find_provider(&s, true) : -FI_ENOMEM;

    pin(options->cpu[first ? 0 : 1]);
    if (rc == -FI_ENODATA)
        rc = find_provider(&s, false);
    if (!rc)
        rc = open_endpoint(&s);
    if (!rc)
        rc = open_memory(&s);
    if (!rc)
        rc = exchange_cards(&s, socket);
    if (rc)
        (void)failed("opening", rc);
    else
        rc = first ? initiate(&s, times) : respond(&s);
    if (!rc && first)
        report(options, times);
    /* The last answer leaves this process only while it polls. */
    if (!first) {
        while (!rc && recv(socket, &done, 1, MSG_DONTWAIT) < 0)
            rc = progress(&s);
    } else if (write(socket, &done, 1) != 1) {
        rc = -FI_EIO;
    }
    close_all(&s);
    free(times);
    return rc ? 1 : 0;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"provider", required_argument, NULL, 'p'}, {"bind", required_argument, NULL, 'b'},
        {"size", required_argument, NULL, 's'},     {"iters", required_argument, NULL, 'n'},
        {"cpu", required_argument, NULL, 'c'},      {"yield", no_argument, NULL, 'y'},
        {"inject", no_argument, NULL, 'i'},         {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (c) {
        case 'p':
            o->provider = optarg;
            break;
        case 'b':
            o->bind = optarg;
            break;
        case 's':
            o->size = strtoul(optarg, NULL, 0);
            break;
        case 'n':
            o->iterations = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'c':
            if (sscanf(optarg, "%d,%d", &o->cpu[0], &o->cpu[1]) != 2) {
                (void)fprintf(stderr, "direct_writedata: --cpu '%s': give two, as in 0,1\n",
                              optarg);
                return -1;
            }
            break;
        case 'y':
            o->yield = true;
            break;
        case 'i':
            o->inject = true;
            break;
        default:
            return -1;
        }
    }
    return o->size > 0 && o->iterations > 0 && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options options = {
        .provider = "tcp;ofi_rxm",
        .bind = "127.0.0.1",
        .size = 8,
        .iterations = 20000,
        .cpu = {-1, -1},
    };
    int sockets[2], status = 0;
    pid_t child;

    if (parse(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: direct_writedata [--provider P] [--bind ADDRESS] [--size N] "
                              "[--iters N] [--cpu A,B] [--yield] [--inject]\n");
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
