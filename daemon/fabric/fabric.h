/*
 * The fabric as the engine sees it: peers, registered memory, one-sided writes and reads, events.
 *
 * Implementations: ofi (libfabric), stream (TCP), sim (virtual time, seeded faults), loop (this
 * node to itself), and decorators (delay) around another fabric.
 *
 * Thread: the progress thread makes every call. mem_add and mem_drop are asynchronous: the work may
 * happen elsewhere, the result comes as an event of poll.
 *
 * Each write or read that was accepted (0) ends with exactly one event that carries its cookie:
 * success, an error, or, after disconnect, -ECANCELED. -EAGAIN means that nothing was accepted;
 * poll, then try again.
 */
#ifndef PWC_FABRIC_FABRIC_H
#define PWC_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_ADDRESS_MAX 192
#define FABRIC_UNKNOWN     UINT32_MAX /* the fabric does not know which peer it was */

struct fabric_address {
    uint32_t size;
    uint8_t bytes[FABRIC_ADDRESS_MAX];
};

struct fabric_traits {
    uint64_t message_max; /* longest single write or read */
    uint64_t
        ordered_write_max; /* writes to one peer up to this length are placed in the order posted
                              (write after write), announcements included; 0: not ordered */
    bool can_sleep;        /* arm gives an honest wait object */
    bool may_hang;         /* a call may not return once a peer's process has died */
    uint32_t rails;        /* connections to a peer that carry writes side by side; 0 counts as 1 */
};

/* Memory of ours that is registered. The fabric chooses `index`, and finds its own entry by it. */
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
    const void *source; /* inside that memory */
    uint64_t length;
    uint64_t remote_address; /* fabric_memory.address of the target plus offset */
    uint64_t remote_key;
    uint64_t cookie;
    uint32_t immediate;
    bool announce; /* the target gets FABRIC_ARRIVED with `immediate`, after the data is placed */
    bool placed;   /* complete only when placed at the target (delivery complete) */
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
    FABRIC_DROPPED = 5, /* cookie, status; nothing that arrived there comes after it */
    FABRIC_BROKEN =
        6, /* peer, status: the transport lost it; its operations' events come as well */
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
    /* The caller chooses the peer's number. Connecting again replaces the address. */
    int (*connect)(struct fabric *fabric, uint32_t peer, const struct fabric_address *address);
    /*
     * disconnect, and a connect that replaces an address, give -EOWNERDEAD where the peer died with
     * operations of ours and the provider will complete nothing posted after them. The fabric is
     * then of no more use: close it.
     */
    int (*disconnect)(struct fabric *fabric, uint32_t peer);
    int (*mem_add)(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                   uint64_t cookie);
    int (*mem_drop)(struct fabric *fabric, uint32_t memory, uint64_t cookie);
    int (*write)(struct fabric *fabric, const struct fabric_write *write);
    int (*read)(struct fabric *fabric, const struct fabric_read *read);
    /* Makes progress; the number of events stored in `events`, or a negative errno. */
    int (*poll)(struct fabric *fabric, struct fabric_event *events, int room);
    /*
     * Before sleeping: -EAGAIN when there is (or may be) work, 0 with *descriptor set when it
     * becomes readable on the next event, -ENOTSUP when there is no honest wait object. epoll-able.
     */
    int (*arm)(struct fabric *fabric, int *descriptor);
};

/* Implementations embed this as their first member. */
struct fabric {
    const struct fabric_ops *ops;
    struct fabric_traits traits;
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

#endif
