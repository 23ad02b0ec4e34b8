/*
 * A path: what carries operations between contexts ("ends"), as the suite of the operations'
 * meaning sees it. The simulated world is a path (world_path.h); real daemons with libpwc can be
 * another.
 *
 * Every end has memory that all others may reach. In its lower half others write and read; its
 * upper half holds its own sources and destinations, and after these the words that others signal
 * (PATH_WORDS_BYTES). There are four ends at least: 0 and 2 on one node, 1 and 3 on another. With
 * PATH_HAS_CONTEXTS there are eight: end i + 4 is a second context of the client of end i.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_PATH_H
#define PWC_TESTS_ENGINE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include "pwc/pwc.h"

enum path_kind {
    PATH_PUT = 1,
    PATH_GET = 2,
    PATH_FLUSH = 3,  /* submitted by `flush` only */
    PATH_ATOMIC = 4, /* adds one to a word of 8 bytes */
    PATH_SIGNAL = 5, /* a put with signal: PWC_NO_RCE changes nothing */
};

/* The operation that events of this kind name. */
static inline enum pwc_op path_event_op(enum path_kind kind)
{
    switch (kind) {
    case PATH_GET:
        return PWC_OP_GET;
    case PATH_ATOMIC:
        return PWC_OP_ATOMIC;
    case PATH_SIGNAL:
        return PWC_OP_SIGNAL;
    default:
        return PWC_OP_PUT;
    }
}

/* A probe of an end asks for all kinds of events that operations bring. */
#define PATH_EVENTS ((unsigned)PWC_LOCAL | (unsigned)PWC_REMOTE | (unsigned)PWC_NOTIFICATION)

/* Abilities that some paths lack. A case that needs one is left out on a path without it. */
enum path_ability {
    PATH_CUTS_LINKS = 1 << 0,     /* `cut` */
    PATH_LIMITS_LENGTHS = 1 << 1, /* message_max is less than an end's memory */
    PATH_HAS_CONTEXTS = 1 << 2,   /* ends 4 to 7 */
    PATH_FLUSHES = 1 << 3,        /* `flush`, `flushed` */
    PATH_UNBINDS = 1 << 4,        /* `unbind`, `betray` */
    PATH_CLOSES = 1 << 5,         /* `close`, `open` */
    PATH_ORDERS_KINDS = 1 << 6,   /* one probe gets notifications and remote events in order */
};

#define PATH_WORDS_BYTES 128u

/* The change that a put with signal makes to a word. */
struct path_signal {
    uint64_t offset, value;
    bool add; /* false: the word is set */
};

struct path_op {
    enum path_kind kind;
    uint32_t from;
    uint32_t remote; /* as `bind` has returned it */
    unsigned flags;  /* PWC_NO_LCE, ... */
    uint64_t remote_offset, local_offset, length;
    uint32_t pieces; /* 2 or more: a vector of this many pieces, which path_piece gives */
    bool fetch;      /* for an atomic: its local event brings the old value */
    pwc_cid lid, rid;
    struct path_signal signal; /* for a PATH_SIGNAL */
};

/* Where piece `i` of a vector begins in its range, and its length, which may be 0. Later pieces are
 * longer, and each stands before the piece that was given before it, so that no two can be joined.
 */
static inline uint64_t path_piece(const struct path_op *op, uint32_t i, uint64_t *length)
{
    uint64_t n = op->pieces, k = n - 1 - i;
    uint64_t begin = op->length * k * k / (n * n), end = op->length * (k + 1) * (k + 1) / (n * n);

    *length = end - begin;
    return begin;
}

/* Counts of an end's context since it was opened (pwc/counter.h). */
struct path_counts {
    uint64_t ended, failed, arrived;
};

struct path_calls {
    pwc_peer (*peer)(void *context, uint32_t end);
    uint8_t *(*memory)(void *context, uint32_t end, uint64_t *length);
    /* Gives a key to all of the end's memory, with these rights (PWC_REMOTE_READ, ...). */
    int (*key)(void *context, uint32_t end, unsigned rights, struct pwc_key *out);
    /* Binds; without a key: for notifications. Returns 0 with *remote, or the error of the bind. */
    int (*bind)(void *context, uint32_t from, uint32_t to, const struct pwc_key *key,
                uint32_t *remote);
    /* Unbinds while operations are under way; the daemon must have taken them. */
    int (*unbind)(void *context, uint32_t from, uint32_t remote);
    int (*submit)(void *context, const struct path_op *op);
    /* Submits a flush; each has a greater `number` than the one before. `flushed` returns the
     * greatest number that has ended at this end. */
    int (*flush)(void *context, uint32_t from, uint32_t remote, uint64_t number);
    uint64_t (*flushed)(void *context, uint32_t from);
    int (*probe)(void *context, uint32_t end, struct pwc_event *out);
    /* Lets time pass. Returns false when nothing more will happen until the next submission or
     * probe. */
    bool (*progress)(void *context);
    /* Whether everything that this end has submitted has ended. */
    bool (*idle)(void *context, uint32_t end);
    /* Returns false if the end counts nothing now. */
    bool (*counts)(void *context, uint32_t end, struct path_counts *out);
    /* Begins to withdraw the key that was given last; `withdrawn` says whether that has ended. */
    int (*withdraw)(void *context, uint32_t end);
    bool (*withdrawn)(void *context, uint32_t end);
    /* Lets the end's client die. */
    int (*kill)(void *context, uint32_t end);
    /* Ends the end's context alone; later the context comes back, empty, with a new key. */
    int (*close)(void *context, uint32_t end);
    int (*open)(void *context, uint32_t end);
    /* Makes the end's client break the protocol; `betrayed` says whether the daemon has ended it.
     */
    void (*betray)(void *context, uint32_t end);
    bool (*betrayed)(void *context, uint32_t end);
    /* Breaks the link between the nodes of two ends, which comes back later, or never. */
    int (*cut)(void *context, uint32_t a, uint32_t b, bool for_good);
    /* Returns the failure of what is beneath the path, as a text, or NULL. */
    const char *(*failure)(void *context);
};

struct path {
    const struct path_calls *calls;
    void *context;
    uint32_t ends;
    unsigned lacks; /* abilities that it lacks, enum path_ability */
    uint64_t packed_max;
    uint64_t message_max;
};

#endif
