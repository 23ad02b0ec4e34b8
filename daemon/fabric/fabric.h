/*
 * The interface of fabrics, for the engine: peers, registered memory, one-sided writes and reads,
 * events.
 *
 * Implementations: ofi (libfabric), stream (TCP), sim (virtual time, seeded faults), loop (this
 * node to itself), and decorators (delay) around another fabric.
 *
 * Thread: the progress thread makes every call. mem_add and mem_drop are asynchronous: another
 * thread may do the work, and poll returns the result as an event.
 *
 * Each write or read that was accepted (0) ends with exactly one event that carries its cookie:
 * success, an error, or, after disconnect, -ECANCELED. -EAGAIN means that the operation was not
 * accepted: the caller polls, then tries again. Where many operations are under way to one peer, or
 * to all, only writes of records are accepted, and the last ones go to peers with few (share.h).
 */
#ifndef PWC_FABRIC_FABRIC_H
#define PWC_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_ADDRESS_MAX 192
#define FABRIC_UNKNOWN     UINT32_MAX /* the fabric does not know the peer's number */

struct fabric_address {
    uint32_t size;
    uint8_t bytes[FABRIC_ADDRESS_MAX];
};

struct fabric_traits {
    uint64_t message_max;       /* most bytes of one write or read */
    uint64_t ordered_write_max; /* writes to one peer up to this length are placed and announced in
                                 * the order of their posts; 0: there is no order */
    bool can_sleep;             /* arm gives a descriptor that becomes readable at each event */
    bool may_hang;              /* a call may never return after a peer's process has died */
    uint32_t rails;             /* parallel connections to a peer for writes; 0 counts as 1 */
};

/* Our registered memory. The fabric chooses `index`, by which it finds its own entry. */
struct fabric_memory {
    uint32_t index;
    uint64_t address; /* address by which a peer names the start of this memory */
    uint64_t key;     /* key by which a peer names this memory */
};

enum fabric_access {
    FABRIC_LOCAL = 0,             /* source of writes, destination of reads */
    FABRIC_REMOTE_READ = 1 << 0,  /* peers may read */
    FABRIC_REMOTE_WRITE = 1 << 1, /* peers may write */
};

struct fabric_write {
    uint32_t peer;
    uint32_t memory;    /* fabric_memory.index of the source */
    const void *source; /* an address in that memory */
    uint64_t length;
    uint64_t remote_address; /* fabric_memory.address of the target plus offset */
    uint64_t remote_key;
    uint64_t cookie;
    uint32_t immediate;
    bool announce; /* the target gets FABRIC_ARRIVED with `immediate`, after the data is placed */
    bool record;   /* carries records, and so may take the fabric's last operations (share.h) */
    bool placed;   /* the event comes only when the data is placed at the target (delivery
                    * complete) */
};

struct fabric_read {
    uint32_t peer;
    uint32_t memory;
    void *destination;
    uint64_t length;
    uint64_t remote_address;
    uint64_t remote_key;
    uint64_t cookie;
};

enum fabric_event_kind {
    FABRIC_WRITTEN = 1, /* cookie, status */
    FABRIC_READ = 2,    /* cookie, status */
    FABRIC_ARRIVED = 3, /* immediate: a peer's announced write has been placed here; peer: the
                           writer, or FABRIC_UNKNOWN */
    FABRIC_ADDED = 4,   /* cookie, status, memory */
    FABRIC_DROPPED = 5, /* cookie, status; no FABRIC_ARRIVED of a write into this memory follows */
    FABRIC_BROKEN =
        6, /* peer, status: the transport lost the peer; the events of its operations come, too */
};

struct fabric_event {
    uint32_t kind;
    int32_t status; /* 0 or a negative errno */
    uint32_t peer;
    uint32_t immediate;
    uint64_t cookie;
    struct fabric_memory memory;
};

struct fabric;

struct fabric_ops {
    const char *name;
    void (*close)(struct fabric *fabric);
    int (*address)(struct fabric *fabric, struct fabric_address *out);
    /* The caller chooses the peer's number. A second connect replaces the address. */
    int (*connect)(struct fabric *fabric, uint32_t peer, const struct fabric_address *address);
    /*
     * disconnect, and a connect that replaces an address, return -EOWNERDEAD where the peer died
     * during operations of ours, and the provider will not complete any later operation. Then the
     * fabric is useless, and the caller closes it.
     */
    int (*disconnect)(struct fabric *fabric, uint32_t peer);
    int (*mem_add)(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                   uint64_t cookie);
    int (*mem_drop)(struct fabric *fabric, uint32_t memory, uint64_t cookie);
    int (*write)(struct fabric *fabric, const struct fabric_write *write);
    int (*read)(struct fabric *fabric, const struct fabric_read *read);
    /* Makes progress. Returns the number of events stored in `events`, or a negative errno. */
    int (*poll)(struct fabric *fabric, struct fabric_event *events, int room);
    /*
     * Called before a sleep. Returns -EAGAIN where there is work or may be; 0 where *descriptor,
     * which epoll can watch, becomes readable at the next event; -ENOTSUP where there is no such
     * descriptor.
     */
    int (*arm)(struct fabric *fabric, int *descriptor);
    /* Optional. Called after a sleep for which arm has given a descriptor, where this descriptor
     * did not become readable: the next polls need not look whether something has arrived. */
    void (*silent)(struct fabric *fabric);
};

/* Implementations embed this as their first member. */
struct fabric {
    const struct fabric_ops *ops;
    struct fabric_traits traits;
    /* Grows when a poll receives something from a peer, also a read or a part of a write, which
     * bring no event. 0: the fabric does not know. */
    uint64_t received;
};

static inline void fabric_close(struct fabric *f)
{
    f->ops->close(f);
}

static inline int fabric_address_of(struct fabric *f, struct fabric_address *out)
{
    return f->ops->address(f, out);
}

static inline int fabric_connect(struct fabric *f, uint32_t peer, const struct fabric_address *a)
{
    return f->ops->connect(f, peer, a);
}

static inline int fabric_disconnect(struct fabric *f, uint32_t peer)
{
    return f->ops->disconnect(f, peer);
}

static inline int fabric_mem_add(struct fabric *f, void *base, uint64_t length, unsigned access,
                                 uint64_t cookie)
{
    return f->ops->mem_add(f, base, length, access, cookie);
}

static inline int fabric_mem_drop(struct fabric *f, uint32_t memory, uint64_t cookie)
{
    return f->ops->mem_drop(f, memory, cookie);
}

static inline int fabric_post_write(struct fabric *f, const struct fabric_write *w)
{
    return f->ops->write(f, w);
}

static inline int fabric_post_read(struct fabric *f, const struct fabric_read *r)
{
    return f->ops->read(f, r);
}

static inline int fabric_poll(struct fabric *f, struct fabric_event *events, int room)
{
    return f->ops->poll(f, events, room);
}

static inline int fabric_arm(struct fabric *f, int *descriptor)
{
    return f->ops->arm(f, descriptor);
}

static inline void fabric_silent(struct fabric *f)
{
    if (f->ops->silent)
        f->ops->silent(f);
}

#endif
