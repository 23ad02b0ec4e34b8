/*
 * Handlers: small programs that the target's daemon runs on packets as these arrive, while the
 * client computes or sleeps; pwc/offload.h joins them with active messages, or with puts to a
 * region. Handlers are written in C, and compiled to eBPF:
 *
 *     clang $(pkg-config --variable=handlerflags pwc) -c counter.c
 *
 * A program has up to three functions: `header` runs once for each message, first; `payload` runs
 * on each packet; `completion` runs once, last. A missing function counts as one that returns
 * PWC_H_PROCESS_DATA (header) or PWC_H_SUCCESS (payload, completion). Two handlers of one client
 * never run at once.
 *
 *     origin                      target's daemon                           target's client
 *     pwc_put, pwc_am_... ------> header, payload, completion <----------> state, region
 *                                     |                                    (it computes)
 *                                     +--> puts, messages, a reply, events
 *
 * A handler is plain C without a library: no malloc, no writable globals, no floating point (pwc_h_
 * f64 computes), 512 bytes of stack in each function, 8 functions deep. Each memory access is
 * checked when it happens; a wrong access ends the handler and its message, and nothing else.
 * Pointers are addresses in the handlers' own address space: a handler may store them in the state
 * and compare them, and they mean the same in each run. Work is bounded in units: an instruction is
 * one unit; a helper call is 8, and more with the bytes that it moves.
 *
 * Conventions of the helpers: lengths and offsets are bytes; results are 0 or a negative errno
 * (PWC_H_EAGAIN and others) unless a call states otherwise. An address, a length or a number that
 * is out of range ends the handler. No helper blocks.
 *
 * With PWC_HANDLER_HOST defined the same file compiles for the machine itself, for tests: pointers
 * are then the machine's own, and libpwc-handlers (pkg-config pwc-handlers) has the helpers; see
 * the end of this file.
 *
 * The terms are those of Hoefler et al., "sPIN: High-performance streaming Processing in the
 * Network" (2017).
 */
#ifndef PWC_HANDLER_H
#define PWC_HANDLER_H

#include <pwc/atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PWC_HANDLER __attribute__((used))

#define PWC_H_NONE   UINT32_MAX
#define PWC_H_EAGAIN (-11) /* no room to send now: return PWC_H_AGAIN, or do not send */
#define PWC_H_EBUSY  (-16) /* another process changed the word 4096 times meanwhile */

enum {
    PWC_H_NUM_HPUS = 1, /* handlers of one client that run at once */
    PWC_H_COUNTERS = 8,
    PWC_H_SEND_MAX = 4096, /* bytes of one pwc_h_put, message or reply */
    PWC_H_ARGUMENTS_MAX = 16,
};

/* ---- the packet: the first argument of each handler ------------------------------------------ */

enum pwc_h_kind {
    PWC_H_PUT = 1,
    PWC_H_MESSAGE = 2,
    PWC_H_GOT = 3,      /* a get of a handler has completed; its id is in `id` */
    PWC_H_OBSERVED = 5, /* a peer has read `total` bytes at `place` of the region: the header
                           handler runs, with PWC_OFFLOAD_OBSERVE, and changes nothing for the
                           get, whatever it returns; there is no data */
};

enum pwc_h_flag {
    PWC_H_FIRST = 1,   /* packet of the message */
    PWC_H_LAST = 2,    /* packet of the message */
    PWC_H_PLACED = 4,  /* the data is in the region already */
    PWC_H_RERUN = 8,   /* this handler has run on this packet before, and returned AGAIN; or it may
                          have run when the daemon died (PWC_OFFLOAD_REPEATABLE) */
    PWC_H_CUT = 16,    /* the message was cut: its origin has failed, the offload is disabled or
                          destroyed, or the daemon died while a handler ran */
    PWC_H_FAILED = 32, /* a handler of the message has returned FAIL; or the get has failed */
};

struct pwc_h_packet {
    uint32_t kind, flags;
    uint32_t source;        /* the origin's index among the targets, or PWC_H_NONE */
    uint32_t header_length; /* bytes at `header`: for a put, in the first packet only; for a
                               message, in each, except when the message was cut after its record
                               was dropped */
    pwc_peer peer;          /* the origin; for a get, its target */
    uint64_t id;            /* a completion id by value, a message's index, or the id of a handler's
                               get */
    const void *header;     /* the completion id's bytes; a message's arguments, 8 bytes each */
    const void *data;       /* this packet's bytes; read only */
    uint64_t length;        /* bytes at `data` */
    uint64_t offset;        /* of this packet in its message */
    uint64_t total;         /* bytes of the message */
    uint64_t place;         /* where this packet belongs in the region; for a put or a Long */
    uint64_t dropped;       /* bytes of the message that were dropped so far */
    uint64_t zero;
};

/* ---- returns --------------------------------------------------------------------------------- */

enum pwc_h_return {
    PWC_H_SUCCESS = 0,      /* payload, completion */
    PWC_H_DROP = 1,         /* header: the whole message; payload: this packet */
    PWC_H_PROCESS_DATA = 2, /* header: the other handlers run */
    PWC_H_PROCEED = 3,      /* header: as if there were no handlers; payload and completion do not
                               run */
    PWC_H_DEFER = 4,        /* header: as PROCEED, and the client does the work: its event says
                               so */
    PWC_H_FAIL = 5,         /* the message ends with -EREMOTEIO at its origin */
    PWC_H_AGAIN = 6,        /* run this handler again later; only after a helper's -EAGAIN */

    /* As above, and the client gets no event when this message ends. */
    PWC_H_SUCCESS_PENDING = 16,
    PWC_H_DROP_PENDING = 17,
    PWC_H_PROCESS_DATA_PENDING = 18,
    PWC_H_PROCEED_PENDING = 19,
};

/* ---- arguments of helpers -------------------------------------------------------------------- */

/* Blocks of the same length, whose starts lie `stride` apart. */
struct pwc_h_vector {
    uint64_t start;  /* of the first block, from the address that the helper gets */
    uint64_t block;  /* bytes, at least 1 */
    uint64_t stride; /* bytes from a block's start to the next one's */
    uint64_t skip;   /* bytes to skip, counted along the blocks from the first one on */
};

/* Operations of pwc_h_f64 and pwc_h_f32. */
enum pwc_h_number_op {
    PWC_H_ADD = 0,
    PWC_H_SUB = 1,
    PWC_H_MUL = 2,
    PWC_H_DIV = 3,
    PWC_H_MIN = 4,
    PWC_H_MAX = 5,
    PWC_H_SQRT = 6,  /* the square root of a */
    PWC_H_LESS = 7,  /* 1 where a < b, else 0 */
    PWC_H_EQUAL = 8, /* 1 where a == b, else 0 */
    PWC_H_FROM_SIGNED = 9,
    PWC_H_FROM_UNSIGNED = 10,
    PWC_H_TO_SIGNED = 11, /* rounds towards 0; out of range: the nearest integer; a NaN gives 0 */
    PWC_H_TO_UNSIGNED = 12,
    PWC_H_CONVERT = 13, /* f64: a is an F32; f32: a is an F64 */
};

/* Flags of sends: 0, or PWC_H_COUNT, PWC_H_QUIET, or both or-ed. */
#define PWC_H_COUNT(counter) (1u + (counter)) /* add 1 to this counter when the send has ended */
#define PWC_H_QUIET          16u              /* no event at the target */

/* ---- helpers --------------------------------------------------------------------------------- */

#ifdef PWC_HANDLER_HOST
#define PWC_H_HELPER(number, result, name, arguments) PWC_API result name arguments
#else
#define PWC_H_HELPER(number, result, name, arguments)                                              \
    static result(*const name) arguments __attribute__((unused)) = (result(*) arguments)(number)
#endif

/* Copies n bytes between any two places, which may overlap. */
PWC_H_HELPER(1, int, pwc_h_copy, (void *to, const void *from, uint64_t n));
/* to[i] = to[i] op from[i] for `count` elements at any addresses that do not overlap, with the
 * arithmetic of collectives (pwc/collective.h). Not atomic. */
PWC_H_HELPER(2, int, pwc_h_accumulate,
             (void *to, const void *from, uint64_t count, enum pwc_type type,
              enum pwc_atomic_op op));
/* Copies n bytes from `from` to the blocks of `vector`, counted from `to`. */
PWC_H_HELPER(3, int, pwc_h_scatter,
             (void *to, const void *from, uint64_t n, const struct pwc_h_vector *vector));
/* Copies n bytes of the blocks of `vector`, counted from `from`, to `to`. */
PWC_H_HELPER(4, int, pwc_h_gather,
             (void *to, const void *from, uint64_t n, const struct pwc_h_vector *vector));
/* -1, 0 or 1, as memcmp orders. */
PWC_H_HELPER(5, int, pwc_h_compare, (const void *a, const void *b, uint64_t n));
/* The index of the first of `n` words of 64 bits that is `value`, or -1. */
PWC_H_HELPER(6, int64_t, pwc_h_find, (const void *a, uint64_t n, uint64_t value));
/* 64 bits that depend on each byte, and are the same on all machines. Not for secrets. */
PWC_H_HELPER(7, uint64_t, pwc_h_hash, (const void *a, uint64_t n));
/* If the aligned word has the value *expected, it becomes `desired`; *expected gets the earlier
 * value. Returns 1: changed, 0: not changed, or PWC_H_EBUSY. Atomic with all of pwc/atomic.h. */
PWC_H_HELPER(8, int, pwc_h_cas, (uint64_t * word, uint64_t *expected, uint64_t desired));
/* Adds to the aligned word, atomically as well. *before gets the earlier value, unless `before` is
 * NULL. */
PWC_H_HELPER(9, int, pwc_h_fetch_add, (uint64_t * word, uint64_t value, uint64_t *before));
/* One operation on the bits of F64s, or of F32s in the low half. */
PWC_H_HELPER(10, uint64_t, pwc_h_f64, (enum pwc_h_number_op op, uint64_t a, uint64_t b));
PWC_H_HELPER(11, uint64_t, pwc_h_f32, (enum pwc_h_number_op op, uint64_t a, uint64_t b));

/* Sends. No send waits: PWC_H_EAGAIN says that there is no room. Sends leave when the handler has
 * returned, unless it returns FAIL or AGAIN. `target` is an index among the offload's targets. */

#define PWC_H_PAIR(low, high) ((uint64_t)(uint32_t)(low) | (uint64_t)(high) << 32)

PWC_H_HELPER(16, int, pwc_h_put_,
             (uint64_t target, uint64_t off, const void *from, uint64_t n, uint64_t id));
/* A put of up to PWC_H_SEND_MAX bytes, which are copied now, with the completion id `id`. */
static inline int pwc_h_put(uint32_t target, uint64_t off, const void *from, uint64_t n,
                            uint64_t id, unsigned flags)
{
    return pwc_h_put_(PWC_H_PAIR(target, flags), off, from, n, id);
}

PWC_H_HELPER(17, int, pwc_h_put_host_,
             (uint64_t target, uint64_t off, uint64_t host_off, uint64_t n, uint64_t id));
/* A put from the offload's region, any length, not copied: the bytes must not change until the put
 * ends. */
static inline int pwc_h_put_host(uint32_t target, uint64_t off, uint64_t host_off, uint64_t n,
                                 uint64_t id, unsigned flags)
{
    return pwc_h_put_host_(PWC_H_PAIR(target, flags), off, host_off, n, id);
}

PWC_H_HELPER(18, int, pwc_h_get_,
             (uint64_t target, uint64_t off, uint64_t host_off, uint64_t n, uint64_t id));
/* Gets n bytes into the offload's region, at host_off; no event at the target. When the get has
 * ended, the completion handler runs with PWC_H_GOT, this id, and the data in the region; where the
 * get has failed, with the flag PWC_H_FAILED and without data. */
static inline int pwc_h_get(uint32_t target, uint64_t off, uint64_t host_off, uint64_t n,
                            uint64_t id, unsigned flags)
{
    return pwc_h_get_(PWC_H_PAIR(target, flags), off, host_off, n, id);
}

PWC_H_HELPER(19, int, pwc_h_atomic_,
             (uint64_t target, uint64_t off, uint64_t code, uint64_t value, uint64_t id));
/* An atomic on a word of a target, as pwc_atomic of one element. */
static inline int pwc_h_atomic(uint32_t target, uint64_t off, enum pwc_atomic_op op,
                               enum pwc_type type, uint64_t value, uint64_t id, unsigned flags)
{
    return pwc_h_atomic_(PWC_H_PAIR(target, flags), off, (uint64_t)op | (uint64_t)type << 8, value,
                         id);
}

PWC_H_HELPER(20, int, pwc_h_message_,
             (uint64_t target, const uint64_t *args, uint64_t nargs, const void *from, uint64_t n));
/* An active message to the target's handler `index`. */
static inline int pwc_h_message(uint32_t target, uint32_t index, const uint64_t *args,
                                uint64_t nargs, const void *from, uint64_t n)
{
    return pwc_h_message_(PWC_H_PAIR(target, index), args, nargs, from, n);
}

/* Replies to the request that this packet belongs to, at most once. */
PWC_H_HELPER(21, int, pwc_h_reply,
             (const uint64_t *args, uint64_t nargs, const void *from, uint64_t n));
/* An event to the client. */
PWC_H_HELPER(22, int, pwc_h_event, (uint64_t id, uint64_t value));

/* The index of a peer among the targets, or PWC_H_NONE. */
PWC_H_HELPER(32, uint32_t, pwc_h_target_of, (pwc_peer peer));
/* The offload's counters, 0 to PWC_H_COUNTERS - 1. */
PWC_H_HELPER(33, uint64_t, pwc_h_counter, (uint64_t counter));
PWC_H_HELPER(34, int, pwc_h_counter_add, (uint64_t counter, uint64_t n));
PWC_H_HELPER(35, int, pwc_h_counter_set, (uint64_t counter, uint64_t value));
/* The time of the daemon's current step, in ns since the daemon's start. */
PWC_H_HELPER(36, uint64_t, pwc_h_now, (void));
/* Shows two numbers at the daemon's probe handler_trace. */
PWC_H_HELPER(37, int, pwc_h_trace, (uint64_t a, uint64_t b));

#undef PWC_H_HELPER

/* ---- places ---------------------------------------------------------------------------------- */

#ifdef PWC_HANDLER_HOST
PWC_API void *pwc_h_host(uint64_t offset);
PWC_API void *pwc_h_scratch(uint64_t offset);
#else
/* The offload's region, and the second one. */
static inline void *pwc_h_host(uint64_t offset)
{
    return (void *)(UINT64_C(5) << 61 | offset);
}

static inline void *pwc_h_scratch(uint64_t offset)
{
    return (void *)(UINT64_C(6) << 61 | offset);
}
#endif

/* Names of the paper. The copy is done when the call returns. */
static inline int pwc_h_dma_to_host(void *host, const void *from, uint64_t n)
{
    return pwc_h_copy(host, from, n);
}

static inline int pwc_h_dma_from_host(void *to, const void *host, uint64_t n)
{
    return pwc_h_copy(to, host, n);
}

/* ---- on the host: tests of handlers ---------------------------------------------------------- */

#ifdef PWC_HANDLER_HOST

/* One send, as a helper took it. */
struct pwc_h_sent {
    uint32_t helper; /* its number: 16 put, 17 put_host, 18 get, 19 atomic, 20 message, 21 reply, 22
                        event */
    uint32_t target, flags, index;
    uint64_t off, host_off, n, id, value;
    uint64_t code; /* for an atomic: its operation, and its type in the next byte */
    uint64_t nargs, args[PWC_H_ARGUMENTS_MAX];
    unsigned char bytes[PWC_H_SEND_MAX];
};

/* A handler's world, which the test fills; it owns all of it. */
struct pwc_h_world {
    void *host, *scratch; /* the regions */
    struct pwc_h_sent *sent;
    unsigned sends, room; /* how many were sent; after `room` sends, more give PWC_H_EAGAIN */
    uint32_t targets;     /* pwc_h_target_of: a peer's target is its rank, if below this */
    uint64_t counters[PWC_H_COUNTERS];
    uint64_t now;
};

/* The calling thread's helpers work on this world from now on. On the host nothing is checked: use
 * the sanitizers. */
PWC_API void pwc_h_enter(struct pwc_h_world *world);

#endif

#ifdef __cplusplus
}
#endif
#endif
