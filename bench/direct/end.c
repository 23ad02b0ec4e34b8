/* Endpoint, memory and writes of one end; see end.h. */
#include "bench/direct/end.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The address and key that each end sends the other before it starts. */
struct card {
    char address[256];
    size_t address_size;
    uint64_t target;
    uint64_t key;
};

struct end {
    struct end_options options;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fid_cq *queue;
    struct fid_ep *endpoint;
    struct fid_mr *registration;
    void *descriptor;
    uint8_t *memory; /* the other end writes the first half; the second half is our source */
    fi_addr_t peer;
    struct card theirs;
    struct fi_context2 *contexts; /* of the window */
    struct fi_context2 **free;    /* a stack of the contexts that no write uses */
    uint32_t free_count;
    uint64_t arrived;
};

static int failed(const char *what, ssize_t rc)
{
    (void)fprintf(stderr, "direct_writedata: %s: %s\n", what, fi_strerror((int)-rc));
    return (int)rc;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int find_provider(struct end *s, bool by_address)
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
    hints->fabric_attr->prov_name = strdup(s->options.provider);
    source->sin_family = AF_INET;
    if (by_address && inet_pton(AF_INET, s->options.bind, &source->sin_addr) == 1) {
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

static int open_endpoint(struct end *s)
{
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    int rc = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);

    if (!rc)
        rc = fi_domain(s->fabric, s->info, &s->domain, NULL);
    if (!rc && fi_cq_open(s->domain, &queue, &s->queue, NULL)) {
        queue.wait_obj = FI_WAIT_NONE; /* not all providers have another; we spin anyway */
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

static int open_memory(struct end *s)
{
    size_t length = 2 * s->options.size;
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

static int exchange_cards(struct end *s, int socket)
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

static int open_window(struct end *s)
{
    uint32_t window = s->options.window;

    s->contexts = calloc(window, sizeof(*s->contexts));
    s->free = calloc(window, sizeof(*s->free));
    if (!s->contexts || !s->free)
        return -FI_ENOMEM;
    for (uint32_t i = 0; i < window; i++)
        s->free[i] = &s->contexts[i];
    s->free_count = window;
    return 0;
}

struct end *end_open(const struct end_options *options, int socket)
{
    struct end *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return NULL;
    s->options = *options;
    rc = find_provider(s, true);
    if (rc == -FI_ENODATA)
        rc = find_provider(s, false);
    if (!rc)
        rc = open_endpoint(s);
    if (!rc)
        rc = open_memory(s);
    if (!rc)
        rc = open_window(s);
    if (!rc)
        rc = exchange_cards(s, socket);
    if (!rc)
        return s;
    (void)failed("opening", rc);
    end_close(s);
    return NULL;
}

void end_close(struct end *s)
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
    free(s->contexts);
    free(s->free);
    free(s);
}

/* ---- exchanging ------------------------------------------------------------------------------ */

int end_progress(struct end *s)
{
    struct fi_cq_data_entry entries[8];
    struct fi_cq_err_entry error = {0};
    ssize_t n = fi_cq_read(s->queue, entries, 8);

    for (ssize_t i = 0; i < n; i++) {
        if (entries[i].flags & FI_REMOTE_CQ_DATA)
            s->arrived++;
        else
            s->free[s->free_count++] = entries[i].op_context;
    }
    if (n == -FI_EAVAIL && fi_cq_readerr(s->queue, &error, 0) == 1)
        return failed("completion", -error.err);
    if (n < 0 && n != -FI_EAGAIN)
        return failed("fi_cq_read", n);
    if (n <= 0 && s->options.yield)
        (void)sched_yield();
    return 0;
}

int end_drain(struct end *s)
{
    int rc = 0;

    while (s->free_count < s->options.window && rc == 0)
        rc = end_progress(s);
    return rc;
}

int end_send(struct end *s)
{
    const uint8_t *source = s->memory + s->options.size;
    size_t size = s->options.size;
    int stop = 0;
    ssize_t rc;

    while (s->free_count == 0 && stop == 0)
        stop = end_progress(s);
    while (!stop) {
        if (s->options.inject)
            rc = fi_inject_writedata(s->endpoint, source, size, 1, s->peer, s->theirs.target,
                                     s->theirs.key);
        else
            rc = fi_writedata(s->endpoint, source, size, s->descriptor, 1, s->peer,
                              s->theirs.target, s->theirs.key, s->free[s->free_count - 1]);
        if (rc == 0) {
            s->free_count -= !s->options.inject;
            return 0;
        }
        if (rc != -FI_EAGAIN)
            return failed("fi_writedata", rc);
        stop = end_progress(s);
    }
    return stop;
}

int end_await(struct end *s, uint64_t arrivals)
{
    int rc = 0;

    while (s->arrived < arrivals && rc == 0)
        rc = end_progress(s);
    return rc;
}
