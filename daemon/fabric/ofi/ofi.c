/*
 * Owns the libfabric fabric (ofi.h): opens and closes it, posts writes and reads, and polls.
 *
 * Thread: the progress thread, except for registration (ofi_memory.c).
 *
 * From post to event there is no malloc, no lock of ours and no division. Each operation ends by a
 * completion of the provider, which has the address of our operation's context, or, where it was
 * injected, at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "daemon/fabric/ofi/ofi_private.h"
#include "daemon/fabric/share.h"

#define BATCH 64 /* most completions that one poll takes */

#define DEFAULT_PEERS      16384
#define DEFAULT_OPERATIONS 4096
#define DEFAULT_MEMORIES   4096

static struct ofi *ofi_of(struct fabric *fabric)
{
    return (struct ofi *)fabric;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Whether an error means that the transport has lost the peer. */
static bool is_loss(int status)
{
    switch (-status) {
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case ESHUTDOWN:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ECANCELED: /* the provider has flushed it; operations that we cancel end elsewhere */
        return true;
    default:
        return false;
    }
}

/* The error of a failed post. Where the peer is lost, FABRIC_BROKEN reports this, and the caller
 * keeps the operation for the next link, because of -EAGAIN. */
static int post_failed(struct ofi *ofi, uint32_t peer, ssize_t rc)
{
    int status = ofi_error(rc);

    if (!is_loss(status))
        return status;
    ofi_peer_broken(&ofi->peers, peer, status);
    return -EAGAIN;
}

static struct ofi_memory *live_memory(struct ofi *ofi, uint32_t index)
{
    if (index >= ofi->registrar.count)
        return NULL;

    struct ofi_memory *memory = &ofi->registrar.memories[index];

    return memory->state == OFI_MEMORY_LIVE ? memory : NULL;
}

static ssize_t inject(struct fid_ep *endpoint, const struct fabric_write *w, fi_addr_t to)
{
    if (w->announce)
        return fi_inject_writedata(endpoint, w->source, w->length, w->immediate, to,
                                   w->remote_address, w->remote_key);
    return fi_inject_write(endpoint, w->source, w->length, to, w->remote_address, w->remote_key);
}

static ssize_t write_placed(struct fid_ep *endpoint, const struct fabric_write *w, fi_addr_t to,
                            void *descriptor, void *context)
{
    struct iovec source = {(void *)(uintptr_t)w->source, w->length};
    struct fi_rma_iov target = {w->remote_address, w->length, w->remote_key};
    struct fi_msg_rma message = {
        .msg_iov = &source,
        .desc = &descriptor,
        .iov_count = 1,
        .addr = to,
        .rma_iov = &target,
        .rma_iov_count = 1,
        .context = context,
        .data = w->immediate,
    };

    return fi_writemsg(endpoint, &message,
                       FI_DELIVERY_COMPLETE | FI_COMPLETION |
                           (w->announce ? FI_REMOTE_CQ_DATA : 0));
}

static ssize_t post_write(struct ofi *ofi, uint32_t rail, const struct fabric_write *w,
                          void *descriptor, void *context)
{
    const struct ofi_peer *peer = &ofi->peers.table[w->peer];
    struct fid_ep *endpoint = peer->endpoints[rail];
    fi_addr_t to = peer->addresses[rail];

    if (w->placed)
        return write_placed(endpoint, w, to, descriptor, context);
    if (w->length <= ofi->inject_max)
        return inject(endpoint, w, to);
    if (w->announce)
        return fi_writedata(endpoint, w->source, w->length, descriptor, w->immediate, to,
                            w->remote_address, w->remote_key, context);
    return fi_write(endpoint, w->source, w->length, descriptor, to, w->remote_address,
                    w->remote_key, context);
}

/* Notes that the provider has accepted an operation, and will complete it. */
static void posted(struct ofi *ofi, struct ofi_operation *operation, uint32_t rail, uint64_t length)
{
    struct ofi_peer *peer = &ofi->peers.table[operation->peer];

    operation->state = OFI_OPERATION_POSTED;
    operation->rail = (uint8_t)rail;
    operation->length = length;
    peer->load[rail] += length;
    peer->outstanding++;
}

static ssize_t post_read(struct ofi *ofi, uint32_t rail, const struct fabric_read *r,
                         void *descriptor, void *context)
{
    const struct ofi_peer *peer = &ofi->peers.table[r->peer];

    return fi_read(peer->endpoints[rail], r->destination, r->length, descriptor,
                   peer->addresses[rail], r->remote_address, r->remote_key, context);
}

/* An operation to post: either `write` or `read` is set. */
struct request {
    const struct fabric_write *write;
    const struct fabric_read *read;
    uint32_t peer, memory;
    uint64_t length, cookie;
};

static inline ssize_t post_on(struct ofi *ofi, uint32_t rail, const struct request *q,
                              void *descriptor, void *context)
{
    return q->write ? post_write(ofi, rail, q->write, descriptor, context)
                    : post_read(ofi, rail, q->read, descriptor, context);
}

static inline int post(struct ofi *ofi, const struct request *q)
{
    struct ofi_memory *memory = live_memory(ofi, q->memory);

    if (!memory || q->peer >= ofi->peers.count)
        return -EINVAL;

    struct ofi_peer *peer = &ofi->peers.table[q->peer];
    struct ofi_operation *operation = ofi->operations.free;
    uint32_t rail = ofi_rail_choose(ofi, peer);
    ssize_t rc;

    if (!peer->connected)
        return -ENOTCONN;
    if (!peer->inserted || !share_left(ofi->operations_max, ofi->operations.free_count,
                                       peer->outstanding, q->write && q->write->record))
        return -EAGAIN;
    rc = post_on(ofi, rail, q, memory->descriptor, &operation->context);
    /* Where a rail is full, or still connecting, try the other rails. */
    for (uint32_t i = 1; rc == -FI_EAGAIN && i < ofi->rail_count; i++) {
        rail = (rail + 1) & (ofi->rail_count - 1);
        rc = post_on(ofi, rail, q, memory->descriptor, &operation->context);
    }
    if (rc == -FI_EAGAIN)
        return -EAGAIN;
    if (rc)
        return post_failed(ofi, q->peer, rc);
    ofi->operations.free = operation->next;
    ofi->operations.free_count--;
    operation->cookie = q->cookie;
    operation->peer = q->peer;
    operation->kind = q->write ? FABRIC_WRITTEN : FABRIC_READ;
    if (q->write && q->length <= ofi->inject_max && !q->write->placed) /* injected */
        ofi_operation_ready(&ofi->operations, operation, OFI_OPERATION_ENDED, 0);
    else
        posted(ofi, operation, rail, q->length);
    return 0;
}

static int ofi_write(struct fabric *fabric, const struct fabric_write *w)
{
    return post(ofi_of(fabric),
                &(struct request){w, NULL, w->peer, w->memory, w->length, w->cookie});
}

static int ofi_read(struct fabric *fabric, const struct fabric_read *r)
{
    return post(ofi_of(fabric),
                &(struct request){NULL, r, r->peer, r->memory, r->length, r->cookie});
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static int watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

static void disarm(struct ofi *ofi)
{
    (void)epoll_ctl(ofi->sleep_descriptor, EPOLL_CTL_DEL, ofi->queue_descriptor, NULL);
    if (ofi->messages)
        (void)epoll_ctl(ofi->sleep_descriptor, EPOLL_CTL_DEL, ofi->connection_descriptor, NULL);
    ofi->armed = false;
}

static int ofi_arm(struct fabric *fabric, int *descriptor)
{
    struct ofi *ofi = ofi_of(fabric);
    struct fid *waited[] = {&ofi->queue->fid, ofi->messages ? &ofi->connections.events->fid : NULL};

    if (ofi->sleep_descriptor < 0)
        return -ENOTSUP;
    if (ofi->operations.ready_head || ofi->peers.broken_head != OFI_NO_PEER ||
        ofi_registrar_arm(&ofi->registrar))
        return -EAGAIN;
    if (fi_trywait(ofi->provider, waited, ofi->messages ? 2 : 1) != 0)
        return -EAGAIN;
    if (!ofi->armed) {
        int rc = watch(ofi->sleep_descriptor, ofi->queue_descriptor);

        if (rc == 0 && ofi->messages)
            rc = watch(ofi->sleep_descriptor, ofi->connection_descriptor);
        if (rc) {
            disarm(ofi); /* the set may have one of them already, and takes each only once */
            return rc;
        }
        ofi->armed = true;
    }
    *descriptor = ofi->sleep_descriptor;
    return 0;
}

/* ---- completions ----------------------------------------------------------------------------- */

/* Handles the completion of an operation: makes its event, unless it was cancelled before. */
static int complete(struct ofi *ofi, struct ofi_operation *operation, int status,
                    struct fabric_event *event)
{
    if (operation->state != OFI_OPERATION_POSTED) {
        ofi_operation_late(&ofi->operations, operation);
        return 0;
    }
    ofi->peers.table[operation->peer].outstanding--;
    ofi->peers.table[operation->peer].load[operation->rail] -= operation->length;
    *event = (struct fabric_event){
        .kind = operation->kind,
        .status = status,
        .peer = operation->peer,
        .cookie = operation->cookie,
    };
    ofi_operation_release(&ofi->operations, operation);
    return 1;
}

/*
 * Takes one error from the queue. Errors without a context of ours concern only the provider: a
 * receive from a peer that has left, or what the provider flushes when a connection ends.
 */
static int take_error(struct ofi *ofi, struct fabric_event *event)
{
    struct fi_cq_err_entry entry = {0};
    ssize_t rc = fi_cq_readerr(ofi->queue, &entry, 0);

    if (rc != 1 || entry.flags & (FI_REMOTE_WRITE | FI_REMOTE_READ | FI_RECV))
        return 0;

    struct ofi_operation *operation = ofi_operations_find(&ofi->operations, entry.op_context);

    if (!operation)
        return 0;

    int status = entry.err ? ofi_error(-entry.err) : -EIO;

    if (operation->state == OFI_OPERATION_POSTED && is_loss(status))
        ofi_peer_broken(&ofi->peers, operation->peer, status);
    return complete(ofi, operation, status, event);
}

static int ofi_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct ofi *ofi = ofi_of(fabric);
    struct fi_cq_data_entry entries[BATCH];
    int n = 0;

    if (ofi->messages)
        ofi_connections_poll(ofi, ofi->armed);
    if (ofi->armed)
        disarm(ofi);
    if (ofi->taken == 0)
        ofi->results = ofi_registrar_results(&ofi->registrar);
    /* Events that wait already get at most half of the room, so that the queue has room, too. */
    if (ofi->operations.ready_head)
        n += ofi_operations_deliver(&ofi->operations, events, (room + 1) >> 1);
    if (ofi->peers.broken_head != OFI_NO_PEER)
        n += ofi_peers_deliver(&ofi->peers, events + n, room - n);

    /* Always read the queue, even with room for no entry, because this makes the provider
     * progress. */
    int want = room - n < BATCH ? room - n : BATCH;
    ssize_t got = fi_cq_read(ofi->queue, entries, (size_t)want);

    for (ssize_t i = 0; i < got; i++) {
        if (entries[i].flags & FI_REMOTE_CQ_DATA)
            events[n++] = (struct fabric_event){.kind = FABRIC_ARRIVED,
                                                .peer = FABRIC_UNKNOWN,
                                                .immediate = (uint32_t)entries[i].data};
        else if (!(entries[i].flags & (FI_REMOTE_WRITE | FI_REMOTE_READ)))
            n += complete(ofi, ofi_operation_of(entries[i].op_context), 0, &events[n]);
    }
    if (got == -FI_EAVAIL && want > 0)
        n += take_error(ofi, &events[n]);
    else if (got < 0 && got != -FI_EAGAIN && got != -FI_EAVAIL && n == 0)
        return ofi_error(got);
    /* FABRIC_DROPPED must come after all arrivals in that memory. So memory's events are only
     * collected when what was in the queue at their time has been taken: the queue is empty, or as
     * many entries were taken as it holds, whose size providers round up to a power of two. A read
     * that gets less than it has room for says nothing: it also ends before an error. */
    ofi->taken += got > 0 ? (uint32_t)got : got == -FI_EAVAIL && want > 0;
    if (got == -FI_EAGAIN || ofi->taken >= 2 * ofi->operations_max) {
        ofi->taken = 0;
        n += ofi_registrar_collect(&ofi->registrar, ofi->results, events + n, room - n);
    }
    return n;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Opens what the caller can sleep on. Where the provider has no wait object, sleep_descriptor stays
 * -1. */
static int open_sleep(struct ofi *ofi)
{
    if (fi_control(&ofi->queue->fid, FI_GETWAIT, &ofi->queue_descriptor) ||
        (ofi->messages &&
         fi_control(&ofi->connections.events->fid, FI_GETWAIT, &ofi->connection_descriptor)))
        return 0;

    int set = epoll_create1(EPOLL_CLOEXEC);

    if (set < 0)
        return -errno;

    int rc = watch(set, ofi->registrar.result_event);

    if (rc) {
        close(set);
        return rc;
    }
    ofi->sleep_descriptor = set;
    ofi->fabric.traits.can_sleep = true;
    return 0;
}

static void ofi_close(struct fabric *fabric)
{
    struct ofi *ofi = ofi_of(fabric);

    if (ofi->sleep_descriptor >= 0)
        close(ofi->sleep_descriptor);
    if (ofi->registrar.memories)
        ofi_registrar_close(&ofi->registrar);
    ofi_rails_close(ofi);
    if (ofi->info)
        fi_freeinfo(ofi->info);
    /* Free operations only now, because the provider may write into them until the endpoints are
     * closed. */
    ofi_operations_close(&ofi->operations);
    ofi_peers_close(&ofi->peers);
    free(ofi);
}

static const struct fabric_ops ofi_ops = {
    .name = "ofi",
    .close = ofi_close,
    .address = ofi_address,
    .connect = ofi_connect,
    .disconnect = ofi_disconnect,
    .mem_add = ofi_mem_add,
    .mem_drop = ofi_mem_drop,
    .write = ofi_write,
    .read = ofi_read,
    .poll = ofi_poll,
    .arm = ofi_arm,
};

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static int open_all(const struct ofi_config *config, struct ofi **out)
{
    uint32_t operations = or_default(config->operations_max, DEFAULT_OPERATIONS);
    struct ofi *ofi = calloc(1, sizeof(*ofi));
    int rc = -ENOMEM;

    if (!ofi)
        return rc;
    ofi->fabric.ops = &ofi_ops;
    ofi->sleep_descriptor = ofi->connection_descriptor = -1;
    rc = ofi_provider_find(config, &ofi->info);
    if (rc)
        goto fail;
    ofi->messages = ofi->info->ep_attr->type == FI_EP_MSG;
    ofi->rail_count = or_default(config->rails, 1);
    rc = ofi_rails_check(config, ofi->info);
    if (rc)
        goto fail;
    ofi->named_addresses = ofi->info->addr_format == FI_ADDR_STR;
    /* Do not inject through a layer: when a connection ends, rxm (1.17) reads past the missing
     * context of an injected message. */
    ofi->inject_max = ofi->messages ? ofi->info->tx_attr->inject_size : 0;
    ofi->fabric.traits.may_hang = true;
    ofi->fabric.traits.rails = ofi->rail_count;
    ofi->fabric.traits.message_max = ofi->info->ep_attr->max_msg_size;
    if (ofi->rail_count == 1 && ofi->info->tx_attr->msg_order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
        ofi->fabric.traits.ordered_write_max = ofi->info->ep_attr->max_order_waw_size;
    rc = ofi_peers_open(&ofi->peers, or_default(config->peers_max, DEFAULT_PEERS));
    if (!rc)
        rc = ofi_operations_open(&ofi->operations, operations);
    ofi->operations_max = operations;
    if (!rc)
        rc = ofi_rails_open(ofi, operations);
    if (!rc)
        rc = ofi_registrar_open(&ofi->registrar, ofi->domain, ofi->rails[0].endpoint, ofi->info,
                                or_default(config->memories_max, DEFAULT_MEMORIES));
    if (!rc)
        rc = open_sleep(ofi);
    if (rc) {
        ofi_say(config, "provider %s does not open: %s; try another%s",
                ofi->info->fabric_attr->prov_name, strerror(-rc),
                ofi->rail_count > 1 ? ", or fewer rails" : "");
        goto fail;
    }
    *out = ofi;
    return 0;

fail:
    ofi_close(&ofi->fabric);
    return rc;
}

/*
 * Whether the provider's wait object can be trusted. The trial leaves a connection behind, so it is
 * made with another fabric of the same provider. Message endpoints cannot be connected to
 * themselves, so they need two.
 */
static bool sleeps(const struct ofi_config *config)
{
    struct ofi_config trial_config = {
        .provider = config->provider,
        .bind = config->bind,
        .peers_max = 1,
        .operations_max = 8,
        .memories_max = 1,
        .rails = config->rails,
    };
    struct ofi *trial, *far = NULL;

    if (open_all(&trial_config, &trial))
        return false;
    if (trial->messages && open_all(&trial_config, &far)) {
        fabric_close(&trial->fabric);
        return false;
    }
    return ofi_trial_sleeps(&trial->fabric, far ? &far->fabric : NULL);
}

int ofi_open(const struct ofi_config *config, struct fabric **out)
{
    struct ofi *ofi;
    int rc = open_all(config, &ofi);

    if (rc)
        return rc;
    if (ofi->sleep_descriptor >= 0 && !sleeps(config)) {
        close(ofi->sleep_descriptor);
        ofi->sleep_descriptor = -1;
        ofi->fabric.traits.can_sleep = false;
    }
    *out = &ofi->fabric;
    return 0;
}

const char *ofi_provider_name(const struct fabric *fabric)
{
    return ((const struct ofi *)fabric)->info->fabric_attr->prov_name;
}
