/*
 * A put that its target notices, as a user of UCX has to write it. UCX has no such put, so there
 * are a ucp_put, a flush (or fence), and a second put of a flag that the target polls while it
 * makes progress.
 *
 *     put_flag latency|completion|overlap [--order flush|fence] [--cpu A,B] [--iters N] [--size N]
 *              [--compute-us N]
 *
 *   latency     half of: put, flush or fence, flag, and the same back. A fence only orders; after a
 *               flush the origin also knows that the data is placed.
 *   completion  put and flush, while the target makes progress
 *   overlap     put and flush while the target computes for --compute-us without a call
 *
 * Two processes, each single-threaded, each on its processor; UCX_TLS names the transport. Prints
 * one JSON line.
 */
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define CARD 3968

struct options {
    const char *what;
    int cpus[2];
    int iterations;
    size_t size;
    int compute_us;
    bool fence;
};

/* The address and the key that each side sends the other before it starts. */
struct card {
    uint64_t memory;
    uint32_t address_size;
    uint32_t key_size;
    uint8_t bytes[CARD]; /* the worker's address, then the key */
};

struct side {
    const struct options *options;
    int me;
    int socket;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    ucp_mem_h registration;
    ucp_rkey_h key;
    uint8_t *memory; /* the data, then on a line of its own the flag */
    size_t flag_at;
    uint64_t target;
    uint8_t *source;
    uint64_t flag_source;
    double *samples;
};

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

static void check(ucs_status_t status, const char *what)
{
    if (status == UCS_OK)
        return;
    (void)fprintf(stderr, "put_flag: %s: %s\n", what, ucs_status_string(status));
    _exit(1); /* the other process ends with its socket, or by its parent's death */
}

/* ---- opening --------------------------------------------------------------------------------- */

static void open_worker(struct side *s)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};

    check(ucp_init(&params, NULL, &s->context), "ucp_init");
    check(ucp_worker_create(s->context, &worker, &s->worker), "ucp_worker_create");
}

/* UCX allocates the memory, so that processes of the same node can map it. */
static void open_memory(struct side *s)
{
    size_t length = ((s->options->size + 63) & ~(size_t)63) + 64;
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .length = length,
                                   .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

    check(ucp_mem_map(s->context, &params, &s->registration), "ucp_mem_map");
    check(ucp_mem_query(s->registration, &attributes), "ucp_mem_query");
    s->memory = attributes.address;
    s->flag_at = length - 64;
    memset(s->memory, 0, length);
    s->source = calloc(1, s->options->size);
    s->samples = calloc((size_t)s->options->iterations, sizeof(*s->samples));
    if (!s->source || !s->samples)
        check(UCS_ERR_NO_MEMORY, "calloc");
    memset(s->source, 1, s->options->size); /* pages of its own, not the page of zeros */
}

static void send_card(struct side *s)
{
    struct card ours = {.memory = (uintptr_t)s->memory};
    ucp_address_t *address;
    size_t address_size, key_size;
    void *key;

    check(ucp_worker_get_address(s->worker, &address, &address_size), "ucp_worker_get_address");
    check(ucp_rkey_pack(s->context, s->registration, &key, &key_size), "ucp_rkey_pack");
    if (address_size + key_size > CARD)
        check(UCS_ERR_BUFFER_TOO_SMALL, "address and key");
    ours.address_size = (uint32_t)address_size;
    ours.key_size = (uint32_t)key_size;
    memcpy(ours.bytes, address, address_size);
    memcpy(ours.bytes + address_size, key, key_size);
    if (write(s->socket, &ours, sizeof(ours)) != sizeof(ours))
        check(UCS_ERR_IO_ERROR, "sending the address");
    ucp_worker_release_address(s->worker, address);
    ucp_rkey_buffer_release(key);
}

static void connect_other(struct side *s)
{
    struct card theirs;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};

    send_card(s);
    if (read(s->socket, &theirs, sizeof(theirs)) != sizeof(theirs))
        check(UCS_ERR_IO_ERROR, "reading the other's address");
    params.address = (const ucp_address_t *)theirs.bytes;
    check(ucp_ep_create(s->worker, &params, &s->endpoint), "ucp_ep_create");
    check(ucp_ep_rkey_unpack(s->endpoint, theirs.bytes + theirs.address_size, &s->key),
          "ucp_ep_rkey_unpack");
    s->target = theirs.memory;
}

/* ---- puts ------------------------------------------------------------------------------------ */

static void finish(struct side *s, ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status = UCS_PTR_STATUS(request);

    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
            (void)ucp_worker_progress(s->worker);
        ucp_request_free(request);
    }
    check(status, what);
}

static ucs_status_ptr_t put(struct side *s, const void *from, size_t size, size_t offset)
{
    ucp_request_param_t params = {0};

    return ucp_put_nbx(s->endpoint, from, size, s->target + offset, s->key, &params);
}

static void flush(struct side *s)
{
    ucp_request_param_t params = {0};

    finish(s, ucp_ep_flush_nbx(s->endpoint, &params), "ucp_ep_flush_nbx");
}

static void put_and_flush(struct side *s)
{
    finish(s, put(s, s->source, s->options->size, 0), "ucp_put_nbx");
    flush(s);
}

static void put_and_flag(struct side *s, uint64_t turn)
{
    if (s->options->fence) {
        finish(s, put(s, s->source, s->options->size, 0), "ucp_put_nbx");
        check(ucp_worker_fence(s->worker), "ucp_worker_fence");
    } else {
        put_and_flush(s);
    }
    s->flag_source = turn;
    finish(s, put(s, &s->flag_source, sizeof(turn), s->flag_at), "ucp_put_nbx");
}

static void await_flag(struct side *s, uint64_t turn)
{
    volatile uint64_t *flag = (volatile uint64_t *)(s->memory + s->flag_at);

    while (*flag != turn)
        (void)ucp_worker_progress(s->worker);
}

/* Waits until both sides have arrived here; makes progress meanwhile. */
static void meet(struct side *s)
{
    char mark = 0;

    if (write(s->socket, &mark, 1) != 1)
        check(UCS_ERR_IO_ERROR, "meeting");
    while (recv(s->socket, &mark, 1, MSG_DONTWAIT) != 1)
        (void)ucp_worker_progress(s->worker);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(struct side *s)
{
    const struct options *o = s->options;

    qsort(s->samples, (size_t)o->iterations, sizeof(*s->samples), by_value);
    if (s->me == 0)
        (void)printf("{\"test\":\"%s\",\"order\":\"%s\",\"size\":%zu,\"p50_us\":%.4f}\n", o->what,
                     o->fence ? "fence" : "flush", o->size, s->samples[o->iterations / 2]);
}

static void latency(struct side *s)
{
    int warm = s->options->iterations / 10;

    for (int i = 0; i < warm + s->options->iterations; i++) {
        double start = microseconds();

        if (s->me == 1)
            await_flag(s, (uint64_t)i + 1);
        put_and_flag(s, (uint64_t)i + 1);
        if (s->me == 0)
            await_flag(s, (uint64_t)i + 1);
        if (i >= warm)
            s->samples[i - warm] = (microseconds() - start) / 2;
    }
}

static void completion(struct side *s)
{
    int warm = s->options->iterations / 10;

    for (int i = 0; s->me == 0 && i < warm + s->options->iterations; i++) {
        double start = microseconds();

        put_and_flush(s);
        if (i >= warm)
            s->samples[i - warm] = microseconds() - start;
    }
}

/* The origin starts when the target surely computes. */
static void overlap(struct side *s)
{
    put_and_flush(s); /* connects */
    for (int i = 0; i < s->options->iterations; i++) {
        double start, compute = s->options->compute_us;

        meet(s);
        start = microseconds();
        while (microseconds() - start < (s->me ? compute : compute / 20))
            ;
        if (s->me == 0) {
            start = microseconds();
            put_and_flush(s);
            s->samples[i] = microseconds() - start;
        }
    }
}

static void (*kind_of(const char *what))(struct side *s)
{
    if (strcmp(what, "latency") == 0)
        return latency;
    if (strcmp(what, "completion") == 0)
        return completion;
    return strcmp(what, "overlap") == 0 ? overlap : NULL;
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
        perror("put_flag: sched_setaffinity");
}

static int run(const struct options *options, int me, int socket)
{
    struct side s = {.options = options, .me = me, .socket = socket};

    pin(options->cpus[me]);
    open_worker(&s);
    open_memory(&s);
    connect_other(&s);
    kind_of(options->what)(&s);
    flush(&s); /* of the flags, too */
    meet(&s);
    report(&s);
    ucp_rkey_destroy(s.key);
    (void)ucp_mem_unmap(s.context, s.registration);
    free(s.source);
    free(s.samples);
    /* The endpoint, whose other end may be gone, is closed with the process. */
    return 0;
}

static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"cpu", required_argument, NULL, 'c'},   {"iters", required_argument, NULL, 'n'},
        {"size", required_argument, NULL, 's'},  {"compute-us", required_argument, NULL, 'u'},
        {"order", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'c' && sscanf(optarg, "%d,%d", &o->cpus[0], &o->cpus[1]) == 2)
            continue;
        else if (c == 'n')
            o->iterations = atoi(optarg);
        else if (c == 's')
            o->size = strtoul(optarg, NULL, 0);
        else if (c == 'u')
            o->compute_us = atoi(optarg);
        else if (c == 'o' && (strcmp(optarg, "fence") == 0 || strcmp(optarg, "flush") == 0))
            o->fence = strcmp(optarg, "fence") == 0;
        else
            return false;
    }
    o->what = optind + 1 == argc ? argv[optind] : "";
    return kind_of(o->what) && o->iterations > 0 && o->size > 0 && o->compute_us > 0;
}

int main(int argc, char **argv)
{
    struct options options = {.cpus = {0, 1}, .iterations = 10000, .size = 8, .compute_us = 20000};
    int sockets[2], status = 0;
    pid_t child;

    if (!parse(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: put_flag latency|completion|overlap [--order flush|fence] "
                              "[--cpu A,B] [--iters N] [--size N] [--compute-us N]\n");
        return 2;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || (child = fork()) < 0) {
        perror("put_flag");
        return 1;
    }
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        return run(&options, 1, sockets[1]);
    }

    int rc = run(&options, 0, sockets[0]);

    return waitpid(child, &status, 0) != child || status || rc ? 1 : 0;
}
