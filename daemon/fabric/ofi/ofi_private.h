/*
 * State that the files of the libfabric fabric share: ofi.c (the hot path), ofi_rail.c (endpoints),
 * ofi_connection.c (connections of message endpoints), ofi_operation.c, ofi_peer.c, ofi_memory.c,
 * ofi_provider.c, ofi_trial.c.
 *
 * Thread: the progress thread owns all of it, except where struct ofi_registrar says otherwise.
 */
#ifndef PWC_FABRIC_OFI_PRIVATE_H
#define PWC_FABRIC_OFI_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "daemon/fabric/ofi/ofi.h"
#include "daemon/fabric/places.h"

/* ---- operations ------------------------------------------------------------------------------ */

enum ofi_operation_state {
    OFI_OPERATION_FREE = 0,
    OFI_OPERATION_POSTED,      /* the provider will complete it */
    OFI_OPERATION_ENDED,       /* waits in the ready list; the provider is done with it */
    OFI_OPERATION_CANCELLED,   /* waits in the ready list; the provider may still complete it */
    OFI_OPERATION_QUARANTINED, /* its event was delivered; the provider may still complete it */
};

/* One write or read, from post to event. Meanwhile the provider has a pointer to `context`. */
struct ofi_operation {
    struct ofi_operation *next; /* in the free, ready or spare list */
    uint64_t cookie;
    uint64_t length;
    uint32_t peer;
    int32_t status; /* of an operation in the ready list */
    uint8_t state;  /* enum ofi_operation_state */
    uint8_t kind;   /* FABRIC_WRITTEN or FABRIC_READ */
    uint8_t rail;
    struct fi_context2 context;
};

/* Operations are allocated in blocks and never move, because providers have their addresses. */
struct ofi_operation_block {
    struct ofi_operation_block *next;
    uint32_t count;
    struct ofi_operation operations[];
};

struct ofi_operations {
    struct ofi_operation *free;
    uint32_t free_count;
    struct ofi_operation *ready_head; /* events to deliver, in order */
    struct ofi_operation **ready_tail;
    struct ofi_operation *spare; /* operations that have left quarantine, to replace the next
                                  * quarantined ones */
    struct ofi_operation_block *blocks;
};

int ofi_operations_open(struct ofi_operations *operations, uint32_t count);
void ofi_operations_close(struct ofi_operations *operations);
/* Finds the operation whose context the provider gave back; NULL: the context is not ours. */
struct ofi_operation *ofi_operations_find(struct ofi_operations *operations, void *context);
/* Cancels all operations posted to the peer, and replaces them while they are in quarantine. */
void ofi_operations_cancel(struct ofi_operations *operations, uint32_t peer);
/* Whether the provider has not completed all cancelled operations towards this peer. */
bool ofi_operations_held(const struct ofi_operations *operations, uint32_t peer);
/* Delivers up to `room` events of the ready list. */
int ofi_operations_deliver(struct ofi_operations *operations, struct fabric_event *events,
                           int room);
/* Handles the completion of an operation that was cancelled before. */
void ofi_operation_late(struct ofi_operations *operations, struct ofi_operation *operation);

static inline struct ofi_operation *ofi_operation_of(void *context)
{
    return (struct ofi_operation *)((char *)context - offsetof(struct ofi_operation, context));
}

static inline void ofi_operation_release(struct ofi_operations *operations,
                                         struct ofi_operation *operation)
{
    operation->state = OFI_OPERATION_FREE;
    operation->next = operations->free;
    operations->free = operation;
    operations->free_count++;
}

static inline void ofi_operation_ready(struct ofi_operations *operations,
                                       struct ofi_operation *operation, uint8_t state, int status)
{
    operation->state = state;
    operation->status = status;
    operation->next = NULL;
    *operations->ready_tail = operation;
    operations->ready_tail = &operation->next;
}

/* ---- peers ----------------------------------------------------------------------------------- */

#define OFI_RAILS_MAX 4u
#define OFI_TOKEN     16u /* bytes of a token (ofi_connection.c) */

/* A peer, without its address: what a post reads. */
struct ofi_peer {
    struct fid_ep *endpoints[OFI_RAILS_MAX]; /* the rails' endpoints; or only the first: the
                                              * connection to this peer */
    fi_addr_t addresses[OFI_RAILS_MAX];      /* the peer's address in each rail's table; valid while
                                              * `inserted` */
    uint64_t load[OFI_RAILS_MAX];            /* bytes under way on each rail */
    uint32_t outstanding;
    uint32_t next_broken; /* chain of peers whose FABRIC_BROKEN is not delivered yet */
    int32_t broken;       /* why the peer is lost; 0: it is not, since it was connected */
    bool in_broken_chain;
    bool connected;
    bool inserted; /* in the provider's address tables, perhaps for longer than `connected`; with
                    * message endpoints: the connection has been made */
    uint8_t token[OFI_TOKEN]; /* the peer's, with message endpoints */
};

struct ofi_peers {
    struct ofi_peer *table;
    struct fabric_address *addresses; /* the addresses given to connect, by the same index */
    uint32_t count;
    uint32_t broken_head; /* OFI_NO_PEER: none */
};

#define OFI_NO_PEER UINT32_MAX

struct ofi;

int ofi_peers_open(struct ofi_peers *peers, uint32_t count);
void ofi_peers_close(struct ofi_peers *peers);
int ofi_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address);
int ofi_disconnect(struct fabric *fabric, uint32_t peer);
/* Notes that the transport lost the peer. FABRIC_BROKEN is delivered at most once after each
 * connect. */
void ofi_peer_broken(struct ofi_peers *peers, uint32_t peer, int status);
int ofi_peers_deliver(struct ofi_peers *peers, struct fabric_event *events, int room);

/* ---- memory ---------------------------------------------------------------------------------- */

enum ofi_memory_state {
    OFI_MEMORY_FREE = 0,
    OFI_MEMORY_ADDING,
    OFI_MEMORY_LIVE,
    OFI_MEMORY_DROPPING,
};

/*
 * One registered range. While it is ADDING or DROPPING, the registration thread owns it (except for
 * `state`), otherwise the progress thread; the queues between the threads pass it
 * on.
 */
struct ofi_memory {
    void *descriptor; /* the provider's, for posts; NULL where the provider needs none */
    struct fid_mr *registration;
    uint64_t base;
    uint64_t length;
    uint64_t address;
    uint64_t key;
    uint64_t cookie;
    uint32_t access;
    int32_t status;
    uint8_t state; /* enum ofi_memory_state; only for the progress thread */
};

/* A queue of indices of memories, from one thread to another. It is never full, because it has a
 * place for each memory. */
struct ofi_index_queue {
    uint32_t *items;
    uint32_t mask;
    _Alignas(64) _Atomic uint32_t tail; /* written by the producer */
    _Alignas(64) _Atomic uint32_t head; /* written by the consumer */
};

/*
 * Memory registration. The progress thread queues requests, the registration thread carries them
 * out (pinning takes milliseconds on real cards) and queues the results.
 */
struct ofi_registrar {
    struct ofi_memory *memories;
    uint32_t count;
    struct places places;
    struct ofi_index_queue requests; /* progress thread -> registration thread */
    struct ofi_index_queue results;  /* registration thread -> progress thread */
    sem_t wake;                      /* there is a request, or `stop` is set */
    int result_event;                /* eventfd, readable after a result */
    _Atomic bool stop;
    pthread_t thread;
    struct fid_domain *domain;
    struct fid_ep *endpoint;
    uint64_t mode; /* FI_MR_* that the provider wants */
    uint64_t key_mask;
};

int ofi_registrar_open(struct ofi_registrar *registrar, struct fid_domain *domain,
                       struct fid_ep *endpoint, const struct fi_info *info, uint32_t count);
/* Ends the registration thread, and closes all registrations. */
void ofi_registrar_close(struct ofi_registrar *registrar);
int ofi_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                uint64_t cookie);
int ofi_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie);
/* The end of the results that are there now. */
uint32_t ofi_registrar_results(struct ofi_registrar *registrar);
/* Delivers up to `room` results, as far as this end. */
int ofi_registrar_collect(struct ofi_registrar *registrar, uint32_t end,
                          struct fabric_event *events, int room);
/* Called before a sleep. True: a result waits; otherwise `result_event` becomes readable at the
 * next result. */
bool ofi_registrar_arm(struct ofi_registrar *registrar);

/* ---- rails ----------------------------------------------------------------------------------- */

/* One endpoint with an address table of its own, so it has a connection of its own to each peer. */
struct ofi_rail {
    struct fid_ep *endpoint;
    struct fid_av *addresses;
};

/* Checks that the provider can have the configured number of rails; config->message says why
 * not. */
int ofi_rails_check(const struct ofi_config *config, const struct fi_info *info);
/* Opens the provider, its domain, the queue and the rails. ofi_rails_close closes what was opened,
 * also after a failure. */
int ofi_rails_open(struct ofi *ofi, uint32_t operations);
void ofi_rails_close(struct ofi *ofi);
/* Writes the addresses of all rails, one after the other, all of the same length. */
int ofi_address(struct fabric *fabric, struct fabric_address *out);

/* ---- connections of message endpoints -------------------------------------------------------- */

#define OFI_WAITING 64

/* A connection request whose peer is not connected here yet. */
struct ofi_waiting {
    struct fi_info *info; /* NULL: free */
    uint8_t origin[OFI_TOKEN];
};

struct ofi_connections {
    struct fid_eq *events;
    struct fid_pep *listener;
    uint32_t unmade; /* how many peers are connected by the caller, but their connection has not
                      * been made */
    uint32_t looks;
    uint32_t next_waiting;
    struct ofi_waiting waiting[OFI_WAITING];
    uint8_t token[OFI_TOKEN];
};

int ofi_connections_open(struct ofi *ofi); /* returns a result of libfabric */
void ofi_connections_close(struct ofi *ofi);
int ofi_connections_address(const struct ofi *ofi, struct fabric_address *out);
/* Handles events of connections. Where `now` is false and no connection is being made, only one of
 * many calls looks for events. */
void ofi_connections_poll(struct ofi *ofi, bool now);
/* Checks an address. -EINVAL: it is no address of a peer, or it is our own. */
int ofi_connection_check(const struct ofi *ofi, const struct fabric_address *address);
/* Begins to make a connection. Until it has been made, posts are refused with -EAGAIN. */
int ofi_connection_open(struct ofi *ofi, struct ofi_peer *peer,
                        const struct fabric_address *address);
void ofi_connection_close(struct ofi *ofi, struct ofi_peer *peer);

/* ---- the whole ------------------------------------------------------------------------------- */

struct ofi {
    struct fabric fabric;                 /* first */
    struct ofi_rail rails[OFI_RAILS_MAX]; /* not used with `messages` */
    uint32_t rail_count;                  /* 1, 2 or 4 */
    bool messages; /* message endpoints: a connection for each peer, and no rails */
    struct ofi_connections connections;
    struct fid_cq *queue;
    struct fid_domain *domain;
    struct fid_fabric *provider;
    struct fi_info *info;
    uint32_t operations_max;
    size_t inject_max; /* writes up to this length are injected */
    struct ofi_operations operations;
    struct ofi_peers peers;
    struct ofi_registrar registrar;
    int sleep_descriptor; /* an epoll set with the registrar's event and, while armed, the queue's
                           * wait object, which would cost time for each packet if it was always in
                           * the set. -1: the caller cannot sleep */
    int queue_descriptor;
    int connection_descriptor; /* the descriptor of the connections' events, with message endpoints;
                                * else -1 */
    uint32_t taken;            /* entries taken from the queue since it was empty, or since so many
                                * were taken as it holds */
    uint32_t results;          /* end of the registrar's results that were there when `taken` was
                                * 0 */
    bool armed;
    bool named_addresses; /* addresses are names of shared memory, not of nodes in a network */
};

/* The rail with the fewest bytes under way to the peer. */
static inline uint32_t ofi_rail_choose(const struct ofi *ofi, const struct ofi_peer *peer)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < ofi->rail_count; i++)
        if (peer->load[i] < peer->load[best])
            best = i;
    return best;
}

/* ---- providers ------------------------------------------------------------------------------- */

/* Finds the provider. The caller frees *out by fi_freeinfo. On an error config->message says what
 * is wrong. */
int ofi_provider_find(const struct ofi_config *config, struct fi_info **out);
/* Tests whether this fabric's descriptor works: whether it is not readable while nothing comes, and
 * becomes readable when something comes. `other`: the fabric that writes to it; NULL: it writes to
 * itself. Closes both. */
bool ofi_trial_sleeps(struct fabric *fabric, struct fabric *other);
/* Makes a negative errno of a result of libfabric. */
int ofi_error(ssize_t result);
__attribute__((format(printf, 2, 3))) void ofi_say(const struct ofi_config *config,
                                                   const char *format, ...);

#endif
