/*
 * The matcher finds the started request that a notification goes to, and keeps the notifications
 * that match no started request: the unexpected.
 *
 *     started     one alone:  `sole`, which is compared without a look anywhere else
 *                 more:       exact ones in a hash by peer and id, those with wildcards in a list
 *     unexpected  all in one list by arrival, and each in a chain by peer and id:
 *
 *     buckets      entries of 32 bytes
 *     +-------+    +----+ chain  +----+
 *     | first |--->| e4 |------->| e7 |         list by arrival: e4, e5, e7, e9
 *     | last  |-.  +----+        +----+
 *     +-------+  \________________/
 *
 * A notification goes to the matching request that was started first. A request takes the oldest
 * unexpected notification that matches it. Both hashes double when they hold more entries than
 * buckets. Entries that share a bucket are in their order. A notification that a request with a
 * wildcard takes is the oldest of its peer and id, too, so chains need only one link.
 *
 * The matcher does not know how many notifications a request waits for: its caller stops a request
 * that has them all.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_MATCHER_H
#define PWC_CLIENTLIB_MATCHER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MATCHER_NONE       0xffffffu /* no entry has this number */
#define MATCHER_UNEXPECTED 65536u    /* the bound, if the caller sets none */

/* The notifications that a request asks for. */
struct matcher_pattern {
    uint64_t peer; /* the origin */
    uint64_t id;   /* space << 32 | tag */
    bool any_peer; /* matches all origins */
    bool any_tag;  /* matches all tags of the id's space */
};

/* A request, started or not. The owner keeps the memory; while the request is started only the
 * matcher changes it. */
struct matcher_request {
    struct matcher_pattern pattern;
    uint64_t number; /* position in the order of starts */
    struct matcher_request *before, *next;
};

/* A notification. */
struct matcher_notice {
    uint64_t peer, id;
    uint32_t bytes; /* bytes that the operation has moved */
    uint8_t op;     /* enum submit_kind */
};

struct matcher_unexpected {
    uint64_t peer, id;
    uint32_t bytes;
    uint32_t before, next; /* by arrival; `next` also links free entries */
    uint32_t chain : 24;   /* the next entry in its bucket */
    uint32_t op : 8;
};
static_assert(sizeof(struct matcher_unexpected) == 32, "matcher_unexpected");

struct matcher_started_bucket {
    struct matcher_request *first, *last;
};

struct matcher_chain {
    uint32_t first, last;
};

struct matcher {
    struct matcher_request *sole; /* the only started request, which is in no list */
    uint32_t started;             /* number of started requests */
    uint32_t hashed;              /* how many of them are in the hash */
    uint64_t starts;              /* number of starts so far */
    struct matcher_started_bucket wild;
    struct matcher_started_bucket *buckets; /* 1 << bucket_bits buckets; NULL before the first
                                               use */
    uint32_t bucket_bits;

    uint32_t chain_bits;
    struct matcher_chain *chains; /* 1 << chain_bits chains; NULL before the first use */
    struct matcher_unexpected *entries;
    uint32_t room;        /* number of entries in the table */
    uint32_t kept;        /* how many entries are in the list */
    uint32_t kept_max;    /* the most that were ever in the list */
    uint32_t fresh;       /* entries from here on have never been used */
    uint32_t free;        /* the first free entry */
    uint32_t first, last; /* by arrival */
};

/* `unexpected_max` is at most MATCHER_NONE. Allocates nothing before the first use. */
void matcher_init(struct matcher *m, uint32_t unexpected_max);
void matcher_destroy(struct matcher *m);

static inline bool matcher_matches(const struct matcher_pattern *pattern, uint64_t peer,
                                   uint64_t id)
{
    uint64_t differs = pattern->id ^ id;

    return (pattern->any_peer || pattern->peer == peer) &&
           (pattern->any_tag ? differs >> 32 : differs) == 0;
}

/* matcher_prepare, matcher_start and matcher_stop when other requests are started. */
int matcher_prepare_more(struct matcher *m);
void matcher_start_more(struct matcher *m, struct matcher_request *r);
void matcher_stop_one(struct matcher *m, struct matcher_request *r);

/* Makes room for one more started request: 0 or -ENOMEM. */
static inline int matcher_prepare(struct matcher *m)
{
    return m->started == 0 ? 0 : matcher_prepare_more(m);
}

/* Starts a request, after matcher_prepare, and after the caller has taken the unexpected that match
 * it. */
static inline void matcher_start(struct matcher *m, struct matcher_request *r)
{
    r->number = ++m->starts;
    if (m->started++ == 0)
        m->sole = r;
    else
        matcher_start_more(m, r);
}

/* Stops a started request: it has all that it waits for, or is cancelled. */
static inline void matcher_stop(struct matcher *m, struct matcher_request *r)
{
    m->started--;
    if (m->sole)
        m->sole = NULL;
    else
        matcher_stop_one(m, r);
}
/* How many started requests ask for notifications of this space (the id's upper half). */
uint32_t matcher_started_in(const struct matcher *m, uint32_t space);

/* matcher_find when several requests are started. */
struct matcher_request *matcher_search(const struct matcher *m, uint64_t peer, uint64_t id);

/* The started request that a notification goes to, or NULL. The request stays started. */
static inline struct matcher_request *matcher_find(const struct matcher *m, uint64_t peer,
                                                   uint64_t id)
{
    if (m->sole)
        return matcher_matches(&m->sole->pattern, peer, id) ? m->sole : NULL;
    return m->started > 0 ? matcher_search(m, peer, id) : NULL;
}

/* Keeps a notification that no started request matches, as the newest of the unexpected: 0;
 * -ENOBUFS: their bound is reached; -ENOMEM. */
int matcher_keep(struct matcher *m, const struct matcher_notice *notice);
/* Whether one more could be kept: 0, or as matcher_keep. */
int matcher_room(struct matcher *m);
/* matcher_take when some are kept. */
bool matcher_take_matching(struct matcher *m, const struct matcher_pattern *pattern,
                           struct matcher_notice *out);
/* Moves the oldest unexpected notification that matches to *out. False: there is none. */
static inline bool matcher_take(struct matcher *m, const struct matcher_pattern *pattern,
                                struct matcher_notice *out)
{
    return m->kept > 0 && matcher_take_matching(m, pattern, out);
}
/* Takes the oldest unexpected notification of this peer, or of any. */
bool matcher_take_from(struct matcher *m, uint64_t peer, bool any_peer, struct matcher_notice *out);
/* Drops all unexpected of a space. */
void matcher_drop(struct matcher *m, uint32_t space);

#endif
