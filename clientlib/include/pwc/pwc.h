/*
 * libpwc: put-with-completion, get-with-completion and notification through the node's daemon.
 *
 * Conventions, for every call:
 *   - int results are 0 or more, or a negative errno; a call's comment names its own errors, and
 *     libpwc(3) lists under ERRORS the errors that any call may return;
 *   - calls whose comment says "blocks" ask the daemon and wait for its answer, up to the client's
 *     timeout; all others return at once. A call that submits may yield the processor once before
 *     it returns, where the daemon waits for this processor: after the first of several
 *     collectives, and after as many operations as the program last submitted before it computed;
 *   - handles are opaque, never NULL, and belong to the caller until the matching destroy call;
 *   - a pwc_client owns its regions, and calls on both are thread-safe; a pwc_ctx and the remotes
 *     bound in it belong to one thread at a time, and a call on a remote counts as a call on its
 *     context;
 *   - a call ends by its return: a thread that is cancelled in a call, or leaves it by longjmp, may
 *     use the context no more, and a signal handler makes no calls;
 *   - lengths and offsets are bytes, times milliseconds;
 *   - outputs are written on success only;
 *   - set a struct to zeros before you fill it: reserved words that are not 0 are refused with
 *     -EINVAL; in a struct that the library fills, reserved words are 0;
 *   - the library starts no thread, installs no signal handler, never exits, never prints. Beside a
 *     daemon that is on the same processor, but in another scheduler group, a thread of the policy
 *     SCHED_OTHER has SCHED_BATCH while it sleeps in a call, and so has a process that a signal
 *     handler forks meanwhile.
 *
 * Terms: PWC, GWC, local and remote completion id (lid, rid), ledger, packed and two-put are those
 * of Kissel and Swany, "Photon: Remote Memory Access Middleware for High-Performance Runtime
 * Systems" (2016).
 */
#ifndef PWC_PWC_H
#define PWC_PWC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; pwc_version() returns the library's. A later version has a greater
 * PWC_VERSION_NUMBER. */
#define PWC_VERSION_MAJOR  0
#define PWC_VERSION_MINOR  7
#define PWC_VERSION_PATCH  0
#define PWC_VERSION_NUMBER (PWC_VERSION_MAJOR << 16 | PWC_VERSION_MINOR << 8 | PWC_VERSION_PATCH)

#if defined(__GNUC__)
#define PWC_API __attribute__((visibility("default")))
#else
#define PWC_API
#endif

typedef struct pwc_client pwc_client;
typedef struct pwc_ctx pwc_ctx;
typedef struct pwc_region pwc_region;
typedef struct pwc_remote pwc_remote;

/* A target: a rank in the low 32 bits, its context in the high ones. A rank alone means its context
 * 0. */
typedef uint64_t pwc_peer;
#define PWC_ANY UINT64_MAX

static inline pwc_peer pwc_peer_of(uint32_t rank, uint32_t context)
{
    return (uint64_t)context << 32 | rank;
}

static inline uint32_t pwc_peer_rank(pwc_peer peer)
{
    return (uint32_t)peer;
}

static inline uint32_t pwc_peer_context(pwc_peer peer)
{
    return (uint32_t)(peer >> 32);
}

/* A completion id: eight bytes by value (size 0), or `size` bytes at `data`, copied at submission.
 * A local completion id may be a request (pwc/request.h). */
typedef struct pwc_cid {
    union {
        uint64_t value;
        const void *data;
    };
    uint64_t size; /* 0, or 1 to PWC_CID_MAX; PWC_CID_REQUEST: a request */
} pwc_cid;

#define PWC_CID_MAX 1024

static inline pwc_cid pwc_cid_u64(uint64_t value)
{
    pwc_cid id;
    id.value = value;
    id.size = 0;
    return id;
}

/* The id of an event that PWC_NO_LCE or PWC_NO_RCE switches off. */
#define PWC_CID_NONE pwc_cid_u64(0)

static inline pwc_cid pwc_cid_bytes(const void *data, size_t size)
{
    pwc_cid id;
    id.data = data;
    id.size = size;
    return id;
}

/* Flags of put and get. There are more in pwc/am.h (active messages) and pwc/tuning.h
 * (measuring). */
enum pwc_flags {
    PWC_NO_LCE = 1 << 0, /* no local event, unless the operation fails */
    PWC_NO_RCE = 1 << 1, /* no remote event */
    /* The local event means only that the source buffer may be reused. The operation may still fail
     * at the target. A packed put's source may be reused at once; a larger put's source only when
     * the data has been placed, because after a break of the link the data is sent again. Loose
     * memory (pwc_put) may be reused then or earlier. */
    PWC_LCE_SOURCE = 1 << 2,
    /* Starts when all earlier operations of this context to that peer have ended. */
    PWC_FENCE = 1 << 3,
    PWC_UNORDERED = 1 << 4, /* the local event may pass local events of earlier operations */
    /* The remote event is a notification: PWC_NOTIFICATION. Its rid is by value, and PWC_NO_RCE is
     * refused. */
    PWC_NOTIFY = 1 << 8,
    /* The call waits where it would give -EAGAIN, up to the client's timeout: it blocks, handlers
     * of active messages run, and events stay for later probes or go to the function of
     * pwc_set_handler. Such a call may also return -ETIMEDOUT; -ENOBUFS: too many events are kept,
     * probe first; -EDEADLK: inside a handler. All operations take this flag, except
     * pwc_am_prepare, replies, and collectives of a team. */
    PWC_WAIT = 1 << 16,
};

/* The rights of peers in a region, for pwc_alloc and pwc_register. 0: peers have no rights, and the
 * region is local only. */
enum pwc_rights {
    PWC_REMOTE_WRITE = 1 << 0,
    PWC_REMOTE_READ = 1 << 1,
    PWC_REMOTE_RW = PWC_REMOTE_WRITE | PWC_REMOTE_READ,
};

/* Flags of pwc_register. */
enum pwc_register_flags {
    /* Give PWC_MOVE, PWC_SHARE or 0. No flag has the value of a right. */
    PWC_MOVE = 1 << 8,  /* move whole anonymous pages under a shared mapping, in place */
    PWC_SHARE = 1 << 9, /* like PWC_MOVE, for any writable private memory */
    /* With PWC_SHARE: a region that no other registration gives, also of the same range, so that
     * its key ends with it. */
    PWC_OWN_KEY = 1 << 10,
};

/* Kinds of event, also a mask for probe and wait, where 0 means PWC_LOCAL | PWC_REMOTE. */
enum pwc_kinds {
    PWC_LOCAL = 1 << 0,        /* an operation of this context has ended */
    PWC_REMOTE = 1 << 1,       /* a peer's operation has reached our memory, or notifies us */
    PWC_MESSAGE = 1 << 2,      /* a handler has run (pwc/am.h); only where a probe asks for it */
    PWC_NOTIFICATION = 1 << 3, /* a notification; only where a probe asks for it */
    PWC_OFFLOAD = 1 << 4,      /* from an offload (pwc/offload.h); only where a probe asks for it */
    /* The end of a peer's context that this context has bound, or that has bound this one: one
     * event for each such context, after all its other events; only where a probe asks for it.
     * Status -EHOSTDOWN: the process was killed or has called pwc_abort, or its daemon or node is
     * gone; 0: the process has destroyed the context, or finalized. A new context may have the rank
     * and number of one that has ended. No event announces the new context, which is an ordinary
     * peer as soon as it binds this one or is bound by it.
     */
    PWC_PEER = 1 << 5,
};

/* The operation that an event is about. */
enum pwc_op {
    PWC_OP_PUT = 1,
    PWC_OP_GET = 2,
    PWC_OP_SHORT = 4, /* active messages, requests and replies: pwc/am.h */
    PWC_OP_MEDIUM = 5,
    PWC_OP_LONG = 6,
    PWC_OP_ATOMIC = 8,      /* pwc/atomic.h */
    PWC_OP_SIGNAL = 9,      /* a put with signal: pwc/signal.h */
    PWC_OP_COLLECTIVE = 11, /* pwc/collective.h */
    PWC_OP_REQUEST = 64,    /* no operation: the end of a persistent request (pwc/request.h) */
    PWC_OP_BIND = 65,       /* no operation: the end of a bind; `length` is the region's */
};

struct pwc_event {
    enum pwc_kinds kind; /* one of these bits */
    enum pwc_op op;
    int status;       /* 0, or a negative errno: how the operation ended */
    uint32_t id_size; /* bytes of the completion id at `data`; 0: the id is `id` */
    pwc_peer peer;    /* the other side */
    uint64_t id;      /* the completion id by value; of a PWC_MESSAGE, the handler's index */
    /* The completion id's bytes: a private copy, valid until the next probe, wait, test, flush,
     * exchange, unbind or destroy on this context. These bytes may be an operation's id or source:
     * they stay valid during its call, also with PWC_WAIT. NULL when id_size is 0. */
    const void *data;
    uint64_t length;      /* bytes that were moved, 0 after a failure */
    uint64_t reserved[2]; /* 0 */
};

/* A region's key: plain data, a capability to be handed to peers. */
struct pwc_key {
    uint32_t node; /* the daemons' number for the owner's node and engine */
    uint32_t slot;
    uint32_t generation;
    uint32_t reserved; /* 0 */
    uint8_t secret[16];
};

/*
 * The client's place in its job, and its daemon. A field that is 0 is taken from the environment:
 * from the first variable of its row that is set.
 *
 *     socket  PWC_SOCKET; in a Slurm job the socket of the job's own daemon (pwcd --job) or
 *             /run/pwcd/pwcd.sock, whichever daemon answers first: pwc_init waits for either;
 *             elsewhere $XDG_RUNTIME_DIR/pwcd/pwcd.sock, if it exists and the user is not root;
 *             else /run/pwcd/pwcd.sock
 *     job     PWC_JOB, PMIX_NAMESPACE, SLURM_JOB_ID with SLURM_STEP_ID
 *     rank    PWC_RANK, PMIX_RANK, SLURM_PROCID
 *     size    PWC_SIZE, OMPI_COMM_WORLD_SIZE, SLURM_STEP_NUM_TASKS, SLURM_NTASKS
 */
struct pwc_attr {
    const char *socket; /* path of the daemon's socket; "@name": an abstract socket, which pwc_init
                           waits for */
    const char *job; /* up to 59 characters; ranks of one user and one job name know each other */
    uint32_t rank;
    /* Ranks in the job; 0: rank and size from the environment; PWC_OPEN: an open job, whose name
     * `job` or PWC_JOB gives, and `rank` is 0. */
    uint32_t size;
    int timeout_ms; /* of calls that block (attach, alloc, bind, ...); 0: 30 s */
    char *error;    /* pwc_init writes a string here that says why it failed; or NULL */
    size_t error_size;
    uint64_t reserved[4]; /* 0 */
};

/* This size asks for an open job, in which each process gets a rank when it attaches, and which has
 * no fixed number of ranks (pwc/open.h). Calls that need the number of ranks give -ENOTSUP:
 * pwc_exchange, pwc_barrier, pwc_bind_all, pwc_team_world, and pwc_window_create without a team. */
#define PWC_OPEN UINT32_MAX

struct pwc_ctx_attr {
    /* Sizes of the rings, rounded up to a power of two, up to 64 MiB; 0: 256 KiB. */
    uint32_t submit_bytes; /* at least 16 KiB; a packed put takes at most a quarter of it */
    uint32_t local_bytes;  /* at least 8 KiB; 48 bytes and the id for each operation in flight */
    /* At least 32 KiB, and four times the longest active message. */
    uint32_t remote_bytes;
    uint32_t answer_bytes; /* replies on their way to the daemon */
    uint32_t reply_bytes;  /* each request that may be replied to holds room for the longest reply,
                              pwc_am_max_medium and 0.2 KiB */
    uint32_t unexpected;   /* notifications kept for requests that are not started yet, up to 2^24;
                              0: 65536 */
    uint32_t reserved[10]; /* 0 */
};

/*
 * Attach to the node's daemon. A NULL attr means one with all fields 0. Blocks. -ECONNREFUSED or
 * -ENOENT: no daemon at the socket; -ETIMEDOUT: the daemon does not answer; -EACCES: the daemon
 * does not serve this user; -EADDRINUSE: the rank is live already; -ENODATA: nothing names the job,
 * the rank or the number of ranks, as without a launcher; -EINVAL: one of them is wrong, or some
 * processes ask for an open job and others for a job of fixed size by the same name;
 * -EPROTONOSUPPORT: no common version; -EDQUOT: too many clients of this user, or too many
 * connections during the whole timeout; -ENOSPC: too many clients of this daemon, or the open job
 * has given all its 2,097,152 ranks; -ESTALE: the open job's home has lost its state since the job
 * began, and gives no ranks; -ENOTSUP: the daemon of the open job's home is older than 0.6.
 */
PWC_API int pwc_init(const struct pwc_attr *attr, pwc_client **out);

/*
 * Completes what the client's contexts have submitted, then detaches: destroys contexts, regions,
 * programs and offloads that are left, and frees the client. Blocks, up to the client's timeout,
 * and then up to a second until the daemon has noticed the end. Runs handlers of active messages.
 * Returns the number of operations that were given up: operations that had not ended in time, and
 * failed operations whose event no probe has taken. So after 0 all data has been placed, unless a
 * probe has shown a failure. A request (pwc/request.h) counts once for the operations that have
 * failed since a call last reported its end. A list of pieces (pwc/vector.h), and a long operation
 * over loose memory (pwc_put), may count several times. A message that was being prepared is
 * cancelled, and collectives that are under way end. No other thread may be in a call on this
 * client, its regions or its contexts, or touch memory that pwc_register has moved. Returns an
 * error only in a forked child or inside a handler; the client stays attached then.
 */
PWC_API int pwc_finalize(pwc_client *client);

/* As pwc_finalize, but gives up at once the operations that are still in flight: some of their data
 * is placed and some is not. Returns 0; or -EOWNERDEAD in a forked child, -EDEADLK inside a
 * handler, and the client stays attached then. */
PWC_API int pwc_abort(pwc_client *client);

/* PWC_VERSION_NUMBER of the library that runs: major << 16 | minor << 8 | patch. Any thread. */
PWC_API uint32_t pwc_version(void);

/* This process's rank, and the number of ranks in its job; PWC_OPEN in an open job. */
PWC_API uint32_t pwc_rank(const pwc_client *client);
PWC_API uint32_t pwc_size(const pwc_client *client);

/* Largest payload that leaves packed with its record: up to this length a put copies its source at
 * once.
 */
PWC_API size_t pwc_packed_max(const pwc_client *client);
/* Longest put or get. */
PWC_API size_t pwc_message_max(const pwc_client *client);

/*
 * Makes a context, the rings of a thread. A NULL attr means one with all fields 0. The first
 * context has number 0, a later one the lowest free number; in an open job it has the lowest number
 * that was never used. Blocks. -EINVAL: a ring over 64 MiB; -ENOSPC, -EDQUOT: too many contexts.
 */
PWC_API int pwc_ctx_create(pwc_client *client, const struct pwc_ctx_attr *attr, pwc_ctx **out);

/*
 * Ends a context, with its remotes, requests and events. Operations still in flight are given up:
 * pwc_flush first to avoid that. Blocks; always frees, and returns 0, except inside a handler
 * (-EDEADLK) and in a child made by fork (-EOWNERDEAD), where nothing changes. Where the daemon
 * does not answer within the client's timeout, it frees its side of the context later, at the
 * latest when the client ends.
 */
PWC_API int pwc_ctx_destroy(pwc_ctx *ctx);
PWC_API pwc_peer pwc_ctx_peer(const pwc_ctx *ctx); /* the context itself, as its peers name it */

/*
 * A descriptor that becomes readable when events may be there, or the daemon is gone; for poll,
 * libuv, libevent. Call pwc_probe until it returns 0: that arms the descriptor, and is needed
 * before the first poll, too. An armed descriptor also becomes readable when there is room for a
 * call that gave -EAGAIN: so probe until 0, try again, and only then poll. A call that waits, and a
 * put or get that ended at once (same node), keep events for pwc_probe without making the
 * descriptor readable: probe after such calls. Never read from the descriptor, write to it or close
 * it: the context owns it. From the first call of pwc_fd on, a probe that finds nothing makes a
 * system call. -EMFILE, -ENFILE, -ENOMEM, -ENOSPC: no descriptor is left, or the user's limit of
 * watched descriptors is reached.
 */
PWC_API int pwc_fd(pwc_ctx *ctx);

/*
 * Allocates memory that daemon and card reach without a copy. The memory is zeroed, and aligned to
 * 64 bytes, or to a page where `len` is a page or more; its pages are present when the call
 * returns. `rights` say what peers may do with the memory (enum pwc_rights, or-ed); 0 keeps the
 * memory local: only the caller's own puts and gets use it, and it has no key. The memory belongs
 * to the region and is freed with it; where the daemon serves several users, nobody can give single
 * pages back (madvise MADV_REMOVE: EPERM). Blocks; if the daemon is restarted meanwhile, asks
 * again. -EINVAL: no length, unknown rights; -ENOMEM; -EDQUOT: over the client's quota; -ENOSPC:
 * too many regions.
 */
PWC_API int pwc_alloc(pwc_client *client, size_t len, unsigned rights, pwc_region **out);

/*
 * Makes a region of memory that the caller has. A second call with the same range, rights and flags
 * gives the same region, and is counted, except with PWC_OWN_KEY. Blocks; if the daemon is
 * restarted meanwhile, asks again. `flags`: 0, PWC_MOVE, PWC_SHARE or PWC_SHARE | PWC_OWN_KEY (enum
 * pwc_register_flags). -EEXIST: the range overlaps memory of another region, or is registered with
 * other rights or flags; -EINVAL: no memory, unknown rights or flags, memory that cannot be moved,
 * or a copy above the daemon's bounce_max (4 MiB); -ENOTSUP: rights without PWC_MOVE or PWC_SHARE;
 * -EDQUOT: more memory, segments or regions than the client or its user may have; -EMFILE, -ENFILE:
 * no descriptor is left, of which memory that is moved takes one or two; -ENOMEM. pwc_error_text
 * says why memory cannot be moved.
 *
 * Without flags the region is local only: `rights` must be 0. The daemon does not reach the memory
 * itself, but a single copy of it, which all puts and gets of the region share:
 *   - pwc_put of more than pwc_packed_max bytes copies its source there during the call, and the
 *     daemon sends it from there later. Do not change the source and put it again before the local
 *     event of the first put, or the end of a pwc_flush: the second put would overwrite what the
 *     first one has still to send. For several puts in flight use a part of the region for each.
 *   - pwc_get fills its destination from there when pwc_probe, pwc_wait or pwc_flush of its context
 *     sees the end of the get, also with PWC_NO_LCE. Do not put from these bytes before then.
 *
 * With PWC_SHARE any range of the process's own private memory that it may read and write gets a
 * key: what mmap or malloc returns, the heap break, `.data` and `.bss` of the program and of its
 * libraries. The pages that have a byte of the range are moved under a shared mapping in place.
 *   - No other thread, and no signal handler on another thread, may touch these pages during this
 *     call, or while they are moved back, by pwc_region_free, or by pwc_finalize or pwc_abort where
 *     regions are left: move `.data` or the heap before the program starts threads. Futexes shared
 *     between processes must have no waiter there.
 *   - Peers reach exactly the bytes of the range; their offsets count from `addr`. The range of an
 *     atomic or signal must begin at a multiple of its word's size. A process of the same job on
 *     this node that binds the region gets a descriptor of all moved pages, as it does of the whole
 *     segment of a pwc_alloc (docs/security.md).
 *   - Ranges may have pages in common. A range whose pages are all moved by one earlier call gets a
 *     region and a key of its own, also with other rights; pages are moved back with the last of
 *     their regions. A range of which only some pages are moved is refused with -EEXIST, and
 *     pwc_error_text says which ones: register the parts separately.
 *   - Refused with -EINVAL: stacks (this thread's, and others' where they can be recognised, as
 *     those that pthread_create makes), shared mappings, memory of a region of pwc_alloc, memory
 *     that is read-only or executable, the kernel's own mappings, and pages that are not mapped.
 *   - Moved memory must not be unmapped before pwc_region_free; to free() a part of the heap break
 *     is allowed. Pages of it that malloc then gives back to the system are no longer in any
 *     region: peers then write into memory that no process uses, and a later registration there is
 *     refused with -EINVAL until the regions have ended. Memory that malloc gets there again is
 *     ordinary memory of this process. Blocks of malloc outside the heap break (large ones, and
 *     those of further threads) may be unmapped by free(): free their regions first.
 *   - A child made by fork shares moved memory with its parent instead of having a copy. Where
 *     `.data`, `.bss` or the heap is moved, the child may only call exec or _exit: all else would
 *     write into its parent's variables.
 *
 * PWC_MOVE is the strict form, for whole, page-aligned pages of anonymous memory as mmap returns
 * it: heap break and files are refused with -EINVAL too, and so are pages that are moved already.
 * Moved memory must not be unmapped or freed before pwc_region_free. Everything else is as with
 * PWC_SHARE.
 */
PWC_API int pwc_register(pwc_client *client, void *addr, size_t len, unsigned rights,
                         unsigned flags, pwc_region **out);

/*
 * Ends a region of pwc_alloc or pwc_register. Calls are counted: a region that was registered
 * several times ends with the last pwc_region_free; earlier calls only count down. The key is
 * revoked at every daemon that has resolved it, then the region is freed, with memory that
 * pwc_alloc made; moved memory becomes private again when the last region in it ends, at its place
 * and with its contents, and no thread may touch it during that call. The caller's own operations
 * must have ended that read or write the region, or, of moved memory, any byte of its pages: the
 * daemon reaches all bytes of moved pages, also those of no region. Blocks until no operation of
 * the fabric can reach the memory; a peer on this node that is copying a put at that moment may
 * still finish the copy (docs/same-node.md). On any error the region stays, because a peer may
 * still reach it: call again. Its key may be revoked then, so pwc_register does not give this
 * region again. -ETIMEDOUT: a node still uses the region; -ENOBUFS: too many requests wait in the
 * daemon; -ENOMEM: the daemon has no memory, or moved memory could not be put back.
 */
PWC_API int pwc_region_free(pwc_region *region);

/* The region's address in this process, and its length as requested. */
PWC_API void *pwc_region_addr(const pwc_region *region);
PWC_API size_t pwc_region_len(const pwc_region *region);

/* The key that lets peers bind the region: send it to them by any means. Processes of the same job
 * that have the key may do what the region's rights say. -ENOTSUP: the region is local only. */
PWC_API int pwc_region_key(const pwc_region *region, struct pwc_key *out);

/*
 * All-gather at start-up, collective over all ranks of the job: `len` bytes of each rank (the same
 * everywhere, up to 4096, or -EINVAL) land in `all`, by rank: pwc_size times `len` bytes, which may
 * be 64 MiB, or -EMSGSIZE: in a job of more than 16384 ranks `len` may be less than 4096. All ranks
 * call the same exchanges and barriers in the same order, one at a time. Blocks. Meanwhile handlers
 * of active messages run, and events are kept, as in pwc_flush. When one rank's timeout has passed,
 * the call ends at all ranks with -ETIMEDOUT; pwc_error_text names the missing ranks, and `all` may
 * hold a part. -EHOSTDOWN: a rank that had not taken part has ended, or its node cannot be reached;
 * -EINVAL also: one rank called a barrier, another an exchange; pwc_error_text names the rank.
 * -ENOTSUP: the job is open (pwc/open.h).
 */
PWC_API int pwc_exchange(pwc_ctx *ctx, const void *mine, size_t len, void *all);

/* Returns when every rank of the job has called it: an exchange of 0 bytes. Puts and gets may still
 * be in flight then. */
PWC_API int pwc_barrier(pwc_ctx *ctx);

/*
 * Resolve a peer and a key of its region once, off the hot path. A NULL key binds the peer alone,
 * for notifications (length 0). The remote belongs to this context. Blocks. -EINVAL: the key's
 * reserved word is not 0; -EHOSTUNREACH: no such peer; -EKEYREJECTED: the key is unknown, stale, of
 * another job, or of another rank; -EHOSTDOWN: the peer's node is gone; -ENOSPC: too many remotes;
 * -EDQUOT: too many binds or pairs of this client or its user, on this node or on the peer's. If
 * the daemon is restarted meanwhile, the library asks it again.
 */
PWC_API int pwc_bind(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_remote **out);

/*
 * Begins a bind, and returns at once with its remote: a program starts as many as it likes, and
 * then waits for all of them. `key` and its contents are copied. The bind ends with a local event
 * (lid, op PWC_OP_BIND), or ends the request (pwc/request.h) that is given as `lid`. The status of
 * the end is 0 or an error of pwc_bind: -EHOSTUNREACH, -EKEYREJECTED, -EHOSTDOWN, -ENOSPC, -EDQUOT,
 * -ENOBUFS (too many requests wait in the daemon); -ETIMEDOUT after the client's timeout, which
 * runs from this call on; -ESHUTDOWN, -EPROTO: the daemon is gone. pwc_error_text explains the last
 * bind that failed. If the daemon is restarted meanwhile, the library asks it again.
 *
 * Until then operations over the remote give -EAGAIN, or wait with PWC_WAIT; pwc_remote_len gives
 * 0; pwc_flush for the peer, or for PWC_ANY, waits for the end; and pwc_unbind ends the bind with
 * -ECANCELED. After a bind has failed, each operation over the remote gives its error, until
 * pwc_unbind frees the remote.
 *
 * The daemon's answers are taken by calls that probe or wait. While a bind is under way, a probe
 * makes a system call, and pwc_fd becomes readable, also for answers to other threads. A program
 * that sleeps on pwc_fd sees the end of the timeout in its next probe.
 *
 * Never blocks; may be called inside a handler. Results, after which nothing has begun: -EAGAIN:
 * there is no room for the local event, take some first; -EINVAL: the key's reserved word is not 0,
 * or an id over PWC_CID_MAX; -EMFILE, -ENFILE, -ENOMEM; -ENOSPC: the user's limit of watched
 * descriptors is reached (only after pwc_fd); -ESHUTDOWN, -EPROTO: the session is over.
 */
PWC_API int pwc_bind_start(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_cid lid,
                           pwc_remote **out);

/*
 * Makes a remote for each rank of the job, by one collective call: remotes[rank], for pwc_size
 * ranks. Each rank passes the context in which others reach it, and a region with rights, or NULL:
 * then it can be notified, but has no memory to be reached. The regions may have different lengths
 * and rights. So memory that all ranks share takes three calls: pwc_alloc, pwc_bind_all, and puts
 * and gets to remotes[rank]. Where each rank has several regions, call this once for each.
 *
 * The first operation over a remote binds it, as pwc_bind does, and so blocks, also where its call
 * says that it never does: a rank that is never addressed costs 200 bytes. That operation's call
 * then also returns the errors of pwc_bind, and has submitted nothing; the next use tries again.
 * For example, -EHOSTUNREACH or -EHOSTDOWN: the rank has died meanwhile. -EDEADLK: a first use
 * inside a handler. Until one of two contexts has bound the other, no event PWC_PEER says that the
 * peer has ended, and a pwc_wait for that peer does not notice its end.
 *
 * The remotes belong to this context; the caller frees each by pwc_unbind, or all with the context.
 * The array is the caller's. Each rank keeps its own region, and must not free it while others use
 * it. Collective as pwc_exchange, and blocks. On an error `remotes` is unchanged. -EINVAL: no
 * context or no array, or a region of another client; -ENOTSUP: the region is local only, or the
 * job is open; -ECANCELED: another rank could not take part, and pwc_error_text names it; -ENOMEM;
 * else as pwc_exchange, of 56 bytes of each rank.
 */
PWC_API int pwc_bind_all(pwc_ctx *ctx, pwc_region *region, pwc_remote **remotes);

/*
 * Waits until all that was submitted towards the remote's peer has ended, as pwc_flush does, with
 * the client's timeout; then frees the remote. Events stay for later probes. The remote stays on
 * -ETIMEDOUT: something has not ended in time; -ENOBUFS: too many events are kept, probe first;
 * -EBUSY: an active message has been prepared; -ENOMEM. A bind that was started and has not ended
 * is given up.
 */
PWC_API int pwc_unbind(pwc_remote *remote);

/* Length of the region behind the remote, also before its first use; 0 for a remote that was bound
 * without a key, or that pwc_bind_start has not bound yet. */
PWC_API size_t pwc_remote_len(const pwc_remote *remote);

/*
 * Put `len` bytes from `src` to offset `off` of the region behind `dst`. Call it on the thread of
 * the context that `dst` is bound in. Never blocks, except as said below. The local event (lid)
 * says that the data has been placed at the target; the remote event (rid) appears at the target,
 * never before the data. A length of 0 is a pure notification: `src` is not looked at.
 *
 * `src` may be any memory of the process, of any length. Up to pwc_packed_max bytes are copied at
 * once; more stay untouched until the local event (or the end of a pwc_flush). Events of one pair
 * of contexts appear in the order of submission, except with PWC_UNORDERED.
 *
 * Memory in a region is the fastest: the card reads it. Longer payloads from *loose* memory, which
 * is in no region, are copied through 512 KiB of the library's memory, in pieces of 64 KiB. Probe,
 * wait, flush, pwc_finalize, waits for requests and all other calls that take events submit the
 * next pieces, whatever they ask for; a neighbour of the same node gets all at once. Until all
 * pieces are submitted, other operations to that peer give -EAGAIN, or wait with PWC_WAIT. The
 * first such operation of a context asks the daemon for that memory, which counts in the client's
 * quota, and so blocks: -EDEADLK: inside a handler; -EDQUOT, -ENOSPC: as pwc_alloc.
 *
 * Results of the call, after which nothing has been submitted:
 *     -EAGAIN         the submission ring, or the space for local events, is full; `dst` is being
 *                     bound (pwc_bind_start); an operation over loose memory to that peer is not
 *                     wholly submitted, or 64 such operations of the context are not: probe, try
 *                     again
 *     -EINVAL         unknown flags, an id over PWC_CID_MAX
 *     -ERANGE         off and len go past the end of the region behind `dst`
 *     -EKEYREJECTED   the key gives no right to write (to read, for a get)
 *     -EMSGSIZE       over pwc_message_max
 *     -ENOMEM         no memory to note a region that was made or freed, or for the first
 *                     operation over loose memory
 *     -EBUSY          an active message has been prepared (pwc/am.h)
 *     -ESHUTDOWN, -EPROTO   the session is over
 * The local event reports the errors that only the daemon can see, even with PWC_NO_LCE:
 *     -EKEYREJECTED   the region has been withdrawn
 *     -EHOSTDOWN      the peer is gone
 *     -ECONNABORTED   the link was lost for good, and the outcome is unknown
 *     -EOPNOTSUPP     over 64 KiB of loose memory, to an offload's region (pwc/offload.h)
 */
PWC_API int pwc_put(pwc_remote *dst, uint64_t off, const void *src, size_t len, pwc_cid lid,
                    pwc_cid rid, unsigned flags);

/*
 * Get `len` bytes from offset `off` of the region behind `src` into `dst`, which must stay
 * untouched until the local event (lid), which says that the data is there. `dst` may be any memory
 * of the process. The remote event (rid) notifies the owner that its data has been read.
 *
 * Where `dst` is in no region, the data passes through the library's memory, by the rules of
 * pwc_put: `dst` is filled when pwc_probe, pwc_wait, pwc_flush or another such call of its context
 * sees the end of the get, or of a piece of it, also with PWC_NO_LCE. -EAGAIN: also where short
 * gets, of up to pwc_packed_max bytes, fill that memory: there is room for 128 of 4096 bytes, or 16
 * while longer operations are under way. Other errors as for pwc_put.
 */
PWC_API int pwc_get(pwc_remote *src, uint64_t off, void *dst, size_t len, pwc_cid lid, pwc_cid rid,
                    unsigned flags);

/*
 * As pwc_put and pwc_get, but waits for the end. 0: the data has been placed, or is in `dst`; else
 * a negative errno, that of the call or of the operation's end. With PWC_LCE_SOURCE the put returns
 * when its source may be used again. There is no local event. The call also waits where there is no
 * room. Blocks, up to the client's timeout. Meanwhile handlers of active messages run, and events
 * stay for later probes, as in pwc_flush.
 *
 * After -ETIMEDOUT, or -ENOBUFS (too many events are kept: probe first), the operation may have
 * been submitted. Then it continues, and its memory must stay untouched until the end of a
 * pwc_flush; but a destination that is in no region is not filled any more. -EDEADLK: inside a
 * handler.
 */
PWC_API int pwc_put_wait(pwc_remote *dst, uint64_t off, const void *src, size_t len, pwc_cid rid,
                         unsigned flags);
PWC_API int pwc_get_wait(pwc_remote *src, uint64_t off, void *dst, size_t len, pwc_cid rid,
                         unsigned flags);

/*
 * 1 with an event, 0 with none, or an error. Never blocks. `peer` (or PWC_ANY) and `kinds`
 * (PWC_LOCAL, PWC_REMOTE, 0 for both; PWC_MESSAGE) filter; events of other peers that are passed
 * over are kept in order for later calls, up to 1 MiB, then -ENOBUFS until some are taken. Runs the
 * handlers of active messages that have arrived, some at a time. When the session is over, the
 * events that had arrived before are returned first; then -ESHUTDOWN: the daemon ended the session
 * or is gone; or -EPROTO: the daemon quarantined this client, and pwcctl shows why. -EINVAL:
 * unknown kinds. -ENOMEM: no memory to keep an event, or to find the region of a message. The first
 * probe that finds nothing after a call for which there was no room yields the processor, if the
 * daemon runs on it, so that the daemon can make room.
 */
PWC_API int pwc_probe(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out);

/*
 * As pwc_probe, but takes up to `n` events by one pass over the rings. Returns how many it took, 0
 * where there is none, or an error that occurred before the first event. Events of one pair of
 * contexts are in their order. The call may take fewer events than are there, because there is room
 * for 8 KiB of ids: call until it returns 0. The `data` of all events stays valid until the next
 * probe, wait, flush, unbind or destroy on this context. -EINVAL also where `n` is 0.
 */
PWC_API int pwc_probe_n(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *events,
                        unsigned n);

/*
 * As pwc_probe, but waits for an event: polls for about 200 us, yielding the processor, then
 * sleeps; sooner where the daemon needs this processor. 0 after timeout_ms without an event, or an
 * error as pwc_probe; timeout_ms < 0 waits for ever. A daemon that dies is noticed within a second.
 * Signals do not end the wait. -EHOSTDOWN: `peer` has ended, whatever its status (PWC_PEER), and no
 * event of these kinds is left or can come; not for PWC_ANY. A `peer` that has not bound this
 * context, and is not bound by it, may still appear: the wait continues.
 */
PWC_API int pwc_wait(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out,
                     int timeout_ms);

/*
 * For a program that polls, with pwc_probe, pwc_test or by looks of its own: call it when a look
 * has found nothing and there is nothing else to do. `looks`: how many looks in a row have found
 * nothing, since the last event or submission. The daemon, or other threads, may need this
 * processor, so from the second look on the call yields the processor; with neighbours only at each
 * hundredth look, because they answer in less time than a yield takes. Where yields do not reach
 * the daemon, which is in another scheduler group and has submissions of this context to take, the
 * call sleeps until an event of `kinds` (as of pwc_probe) arrives, for 1 ms at most; never after
 * pwc_fd. Events of other kinds go to the function of pwc_set_handler.
 *
 * To the daemon a program that polls without this call is a program that computes: a daemon on the
 * same processor runs only when it interrupts the program. The call also looks once a second
 * whether the daemon lives, which pwc_probe does not; if not, the next probe returns -ESHUTDOWN.
 *
 * 0. -EINVAL: unknown kinds. -EDEADLK: inside a handler.
 */
PWC_API int pwc_yield(pwc_ctx *ctx, unsigned kinds, unsigned looks);

/* The type of a function that is called with an event: see pwc_set_handler. */
typedef void (*pwc_event_handler)(pwc_ctx *ctx, const struct pwc_event *event, void *argument);

/*
 * From now on events of these kinds go to `handler` while a call of this context waits: pwc_flush,
 * pwc_unbind, pwc_put_wait, pwc_get_wait, an operation with PWC_WAIT, waits for requests, words and
 * counters, pwc_test, pwc_barrier, pwc_exchange, pwc_bind_all, pwc_window_create, pwc_window_free,
 * pwc_team_free, and pwc_wait and pwc_yield (for kinds that they do not ask for). So the events
 * neither fill the rings nor have to be kept, and only other kinds can cause -ENOBUFS. pwc_probe
 * and pwc_wait return the kinds that they ask for as before; pwc_finalize drops events. `kinds`: as
 * of pwc_probe, 0 for PWC_LOCAL | PWC_REMOTE, without PWC_MESSAGE, since messages have handlers of
 * their own. A context has one such function, the last that was set; NULL removes it. The function
 * runs on the thread of the call that waits. The function may submit, without PWC_WAIT, and set
 * another handler; calls that block, probe or wait give -EDEADLK there. event->data is valid until
 * it returns. Returns at once. -EINVAL: no context, unknown kinds, or PWC_MESSAGE.
 */
PWC_API int pwc_set_handler(pwc_ctx *ctx, unsigned kinds, pwc_event_handler handler,
                            void *argument);

/*
 * Waits until all that this context has submitted towards `peer` (or PWC_ANY) has ended, with
 * success or not, and also each bind of that peer that was started: 0; or -ETIMEDOUT when
 * timeout_ms have passed before. A put with PWC_LCE_SOURCE has ended here when its data is placed,
 * or it has failed. timeout_ms < 0 waits for ever, 0 looks once. 0 at once for a peer that is not
 * bound. Runs handlers of active messages. Events stay for later probes. Remote events that would
 * fill their ring are kept, up to 1 MiB, so that two contexts that flush do not wait for each
 * other. -ENOBUFS: too many events are kept, probe first; -ENOMEM: as pwc_probe; -EBUSY, where
 * `peer` is one peer: an active message has been prepared; -ESHUTDOWN, -EPROTO: the session is
 * over.
 */
PWC_API int pwc_flush(pwc_ctx *ctx, pwc_peer peer, int timeout_ms);

/*
 * Explains why the last call that asked the daemon (alloc, bind, exchange, ...) failed: what was
 * wrong, with the value, and what to do. The text is the daemon's or the library's. It is copied to
 * `text`, cut to `size` bytes with a terminator; empty where that call did not fail. Calls that
 * submit, probe or wait neither set nor clear it, except that the failure of a bind of
 * pwc_bind_start sets it: pwc_strerror explains what these return. Returns the whole length.
 */
PWC_API size_t pwc_error_text(pwc_client *client, char *text, size_t size);

/* The meaning of a result or of an event's status, of either sign. Never NULL; a constant string.
 */
PWC_API const char *pwc_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
