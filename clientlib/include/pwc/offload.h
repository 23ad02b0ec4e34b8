/*
 * Programs of handlers, for the daemon (pwc/handler.h says what handlers are, and how they are
 * compiled). Conventions as in pwc.h.
 *
 *     counter.c --clang--> counter.o --pwc_program_load--> the daemon: checked, kept
 *
 * A program belongs to its client. The daemon keeps a copy, which survives a restart and an upgrade
 * of the daemon, and drops it when the client ends. The administrator chooses whose programs are
 * taken (handlers in pwcd.conf(5)): by default only those of the daemon's own user.
 *
 * An offload joins a program with an index of a context's active messages, or with a region: the
 * daemon runs the program's handlers on the messages that arrive at the index, or on peers' puts to
 * the region.
 *
 * pwc_program_load is in libpwc-handlers (pkg-config pwc-handlers), which needs libelf; all other
 * calls are in libpwc.
 */
#ifndef PWC_OFFLOAD_H
#define PWC_OFFLOAD_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pwc_program pwc_program;

/* The names of the handlers' functions in the file. NULL: no handler of this kind. A name that the
 * file does not have counts as NULL, as long as the file has one of the three. */
struct pwc_program_names {
    const char *header;
    const char *payload;
    const char *completion;
    uint64_t reserved[3]; /* 0 */
};

/*
 * Loads a program: `elf` is a whole object file that clang has made, of `size` bytes; it may be
 * freed afterwards. `names` NULL: "header", "payload" and "completion". Blocks until the daemon has
 * answered.
 *
 * -ENOEXEC: the file is no program, or not one that can be run: pwc_error_text has the function,
 * the instruction (as llvm-objdump -d counts, if all functions are in one section) and the reason;
 * -EPERM: the daemon takes no programs of this user; -EDQUOT: the quota client-programs,
 * client-program-bytes, user-programs or user-program-bytes; -ENOSPC: the daemon has no room for
 * more programs of anybody; -EINVAL: a name is longer than 255 characters; -ENOMEM. -ECONNABORTED:
 * the daemon was restarted meanwhile, and may have loaded the program, which then counts in the
 * quota until the client ends.
 */
PWC_API int pwc_program_load(pwc_client *client, const void *elf, size_t size,
                             const struct pwc_program_names *names, pwc_program **out);

/* Unloads a program and frees it here. Blocks until the daemon has answered. -EBUSY: it is in use,
 * and stays loaded. After any other error the program is freed here, and the daemon drops it when
 * the client ends, or earlier. */
PWC_API int pwc_program_unload(pwc_program *program);

/* The bounds of handlers of this client. */
struct pwc_handler_limits {
    uint32_t hpus;         /* handlers of one client that run at once */
    uint32_t instructions; /* of a program */
    uint32_t constants;    /* bytes of a program's constants */
    uint32_t depth;        /* functions, the handler included, that are under way at once */
    uint32_t stack;        /* bytes of stack for each function under way */
    uint32_t counters;     /* of an offload */
    uint64_t packet;       /* bytes of a message that a handler gets at a time, at most */
    uint64_t state;        /* bytes of an offload's state, at most */
    uint64_t reserved[4];  /* 0 */
};

/* Never blocks. Any thread. */
PWC_API int pwc_handler_limits(const pwc_client *client, struct pwc_handler_limits *out);

/* ---- offloads ---------------------------------------------------------------------------------
 */

typedef struct pwc_offload pwc_offload;

enum pwc_offload_flags {
    PWC_OFFLOAD_QUIET = 1 << 0,      /* no event for messages that handlers deal with: so they run
                                        on, however long the client sleeps */
    PWC_OFFLOAD_REPEATABLE = 1 << 1, /* the handler that was running when the daemon died may run
                                        again; without this flag its message ends with
                                        -ECONNABORTED */
    PWC_OFFLOAD_KEEP = 1 << 2,       /* a fault does not disable the offload, except a fault by
                                        units or time */
    PWC_OFFLOAD_PLACED = 1 << 3,     /* with a region: puts are placed there, and handlers find the
                                        data in place; see below */
    PWC_OFFLOAD_OBSERVE = 1 << 4, /* with a region: the header handler runs on gets of peers, too */
};

#define PWC_OFFLOAD_TARGETS_MAX 1024

/* Start from a zeroed struct. Each region must have rights (PWC_REMOTE_*), and begin at a multiple
 * of 64 bytes. */
struct pwc_offload_attr {
    pwc_program *program;
    uint32_t index;     /* of active messages of this context (pwc/am.h) */
    uint32_t flags;     /* enum pwc_offload_flags */
    pwc_region *region; /* instead of an index: puts to this region run the handlers; it is also
                           their pwc_h_host */
    pwc_region *state;  /* memory with the handlers' state, already initialized: their second
                           argument; or NULL */
    uint64_t state_offset, state_length; /* the part of `state` that they get, up to 1 MiB */
    pwc_region *host;                    /* pwc_h_host, and where payloads of Longs go; or NULL */
    pwc_region *scratch;                 /* pwc_h_scratch, or NULL */
    pwc_remote *const *targets; /* where handlers may send to, by number; of this context */
    uint32_t target_count;
    uint32_t reserved0;   /* 0 */
    uint64_t cookie;      /* the caller's own value, given back in each event of the offload */
    uint64_t reserved[3]; /* 0 */
};

/*
 * Joins the program with an index of the context's messages: requests that arrive at the index run
 * the handlers in the daemon, whether the client computes, sleeps or is stopped. Where a header
 * handler returns PROCEED or DEFER, and where the offload has been destroyed, the handler of
 * pwc_am_register runs as usual. Blocks until the targets are bound.
 *
 * A Short or a Medium is one packet. The payload of a Long must go to `host`, which then needs the
 * right PWC_REMOTE_WRITE. Handlers find the payload there, in packets of pwc_handler_limits.packet
 * bytes, with the flag PWC_H_PLACED, as with PWC_OFFLOAD_PLACED (below). A Long may be cut, as a
 * put may (below). Any other Long ends with -EMSGSIZE.
 *
 * With a region, peers' puts to it travel in packets of pwc_handler_limits.packet bytes; the peers'
 * programs need no change: the header handler runs on the first packet, the payload handler on
 * each, the completion handler with the last one. Where the header handler returns PROCEED or DEFER
 * the put is placed, with its remote event. The put's local event appears when the completion
 * handler has run. Gets work as usual (see PWC_OFFLOAD_OBSERVE). All other writes to the region end
 * with -EOPNOTSUPP: atomics, signals, vectors, Long messages, and puts of over 64 KiB from loose
 * memory (pwc_put). A put that can't end, because its origin has gone or the offload is disabled or
 * destroyed, is cut: the completion handler runs with PWC_H_CUT. The region must have the right
 * PWC_REMOTE_WRITE.
 *
 * With PWC_OFFLOAD_PLACED a put that is too large to be packed travels as to any other region: this
 * is faster, and the daemon copies none of its bytes. The handlers run when the whole put is in the
 * region, packet by packet, with the flag PWC_H_PLACED; `data` is the packet's place in the region,
 * and DROP does not undo the placement. Where a link breaks before the origin knows that the first
 * handlers of a put have run, its bytes are written again: so a handler should change them in the
 * completion handler only, or in a copy.
 *
 * With PWC_OFFLOAD_OBSERVE the header handler runs after each get of a peer, whose data has been
 * read by then, with the kind PWC_H_OBSERVED: once, also for gets without a remote event. Whatever
 * the handler returns, and even if it fails, the get succeeds, and has its remote event. A long
 * get, or one of many pieces (pwc/vector.h), may appear as several. At its origin such a get ends
 * later than others: when the handler has run.
 *
 * The offload uses its program, regions and targets: program and regions cannot be freed before the
 * offload is destroyed. Create the offload before other contexts bind this one.
 *
 * -EBUSY: a context of this node has bound this one, or a peer has bound the region before it had
 * its first offload, or while its last offload differed in PWC_OFFLOAD_PLACED or
 * PWC_OFFLOAD_OBSERVE; -EADDRINUSE: the index or the region has an offload; -EDQUOT; -ERANGE: the
 * memory is not within its region; -EINVAL: a field; -ENOSPC: the daemon has no room for another
 * offload; -E2BIG: the daemon is older than this library, and allows fewer targets; -ENOMEM;
 * -EAGAIN: a target is being bound (pwc_bind_start); and the errors of binding a target that
 * pwc_bind_all has made. -ECONNABORTED: the daemon was restarted meanwhile; the offload may exist
 * until the client ends, and then a second try gives -EADDRINUSE.
 */
PWC_API int pwc_offload_create(pwc_ctx *ctx, const struct pwc_offload_attr *attr,
                               pwc_offload **out);
/* Ends the offload, and frees it here. Messages that handlers have begun end with -ESHUTDOWN, and
 * so do later puts to its region, until the region has another offload. Blocks until the daemon has
 * answered.
 */
PWC_API int pwc_offload_destroy(pwc_offload *offload);
/* While the offload is disabled, messages and puts that arrive end with -ESHUTDOWN. Enabling it
 * also works after a fault. Both calls block. */
PWC_API int pwc_offload_disable(pwc_offload *offload);
PWC_API int pwc_offload_enable(pwc_offload *offload);

/* An offload's counts of messages and of its handlers' runs, as `pwcctl offloads` shows them. A
 * restart of the daemon keeps all of them except the units of one run. */
struct pwc_offload_view {
    uint64_t disabled;                               /* 1: by its client, or by a fault */
    uint64_t messages, bytes;                        /* of ended messages, puts and gets */
    uint64_t dropped;                                /* bytes */
    uint64_t deferred, failed, faults;               /* messages (two counts); runs that ended by a
                                                        fault */
    uint64_t units, units_p50, units_p99, units_max; /* units: of all runs; units_*: of one run */
    uint64_t sends, sends_failed, queued;            /* sends under way now, of all offloads of the
                                                        context */
    uint64_t gets;                                   /* under way now */
    uint64_t counters[8];                            /* pwc_h_counter_add */
    uint64_t reserved[8];                            /* 0 */
};
/* Blocks until the daemon has answered. -ENOSYS: the daemon is older than this call. */
PWC_API int pwc_offload_view(pwc_offload *offload, struct pwc_offload_view *out);

/* `op` of an event of the kind PWC_OFFLOAD, which pwc_probe gives where it is asked for. */
enum pwc_offload_what {
    PWC_OFFLOAD_OWN = 1,    /* pwc_h_event: id and value are the handler's */
    PWC_OFFLOAD_ENDED = 2,  /* handlers have dealt with a message, or a completed get */
    PWC_OFFLOAD_FAILED = 3, /* a message or a get has failed, with the event's status */
    PWC_OFFLOAD_FAULT = 4,  /* a handler has ended by a fault; `value` is the address */
};

/* The bytes at `data` of such an event. */
struct pwc_offload_event {
    uint64_t cookie;
    uint64_t id; /* for a message, its first argument, or 0; for a put, its completion id by value;
                    for a handler's get, the id that the handler gave */
    uint64_t value; /* for a message: bytes of its payload that were not dropped */
    uint32_t place; /* for a fault: the number of the instruction */
    uint16_t stage; /* for a fault: the handler, 0 header, 1 payload, 2 completion */
    uint16_t fault; /* for a fault: its number */
};

#ifdef __cplusplus
}
#endif

#endif
