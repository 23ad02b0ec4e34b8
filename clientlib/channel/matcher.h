/*
 * The matcher: which started request a notification goes to, and the notifications that none has
 * asked for yet, the unexpected.
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
 * buckets. Where several entries share a bucket, they stand in it by their order. A notification
 * that a request with a wildcard takes is also the oldest of its peer and id, so the chains need
 * one link.
 *
 * The matcher knows no request's count, no session and no clock: its caller stops a request that
 * has what it waits for.
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
#define MATCHER_UNEXPECTED 65536u    /* the bound, if the caller names none */

/* The notifications that a request asks for. */
struct matcher_pattern {
    uint64_t peer; /* of the origin */
    uint64_t id;   /* space << 32 | tag */
    bool any_peer; /* of all origins */
    bool any_tag;  /* all tags of the id's space */
};

/* A request, started or not: its owner's memory, and while it is started the matcher's. */
struct matcher_request {
    struct matcher_pattern pattern;
    uint64_t number; /* position in the order of starts */
    struct matcher_request *before, *next;
};

/* The notification itself. */
struct matcher_notice {
    uint64_t peer, id;
    uint32_t bytes; /* that the operation has moved */
    uint8_t op;     /* enum submit_kind */
};

struct matcher_unexpected {
    uint64_t peer, id;
    uint32_t bytes;
    uint32_t before, next; /* by arrival; `next` also links the free ones */
    uint32_t chain : 24;   /* the next one in its bucket */
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
    uint32_t started;             /* of all */
    uint32_t hashed;              /* how many of these are in the hash */
    uint64_t starts;              /* how many requests were ever started */
    struct matcher_started_bucket wild;
    struct matcher_started_bucket *buckets; /* 1 << bucket_bits of them, once there are any */
    uint32_t bucket_bits;

    uint32_t chain_bits;
    struct matcher_chain *chains; /* 1 << chain_bits of them, once there are any */
    struct matcher_unexpected *entries;
    uint32_t room;        /* entries that the table has room for now */
    uint32_t kept;        /* how many of these are in the list */
    uint32_t kept_max;    /* the most that were ever in the list */
    uint32_t fresh;       /* entries from here on have never been used */
    uint32_t free;        /* the first of those given back */
    uint32_t first, last; /* by arrival */
};

/* At most MATCHER_NONE unexpected are kept. Takes no memory before the first use. */
void matcher_init(struct matcher *m, uint32_t unexpected_max);
void matcher_destroy(struct matcher *m);

static inline bool matcher_matches(const struct matcher_pattern *pattern, uint64_t peer,
                                   uint64_t id)
{
    uint64_t differs = pattern->id ^ id;

    return (pattern->any_peer || pattern->peer == peer) &&
           (pattern->any_tag ? differs >> 32 : differs) == 0;
}

/* The next three for the case that other requests are started. */
int matcher_prepare_more(struct matcher *m);
void matcher_start_more(struct matcher *m, struct matcher_request *r);
void matcher_stop_one(struct matcher *m, struct matcher_request *r);

/* Makes room for one more started request: 0 or -ENOMEM. */
static inline int matcher_prepare(struct matcher *m)
{
    return m->started == 0 ? 0 : matcher_prepare_more(m);
}

/* Starts a request, after matcher_prepare, which has taken the unexpected that it matches. */
static inline void matcher_start(struct matcher *m, struct matcher_request *r)
{
    r->number = ++m->starts;
    if (m->started++ == 0)
        m->sole = r;
    else
        matcher_start_more(m, r);
}

/* A started request has all that it waits for, or is cancelled. */
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

/* As matcher_find, where several requests are started. */
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
 * -ENOBUFS: they are full; -ENOMEM. */
int matcher_keep(struct matcher *m, const struct matcher_notice *notice);
/* 0: one more could be kept; or as matcher_keep. */
int matcher_room(struct matcher *m);
/* matcher_take where there are some. */
bool matcher_take_matching(struct matcher *m, const struct matcher_pattern *pattern,
                           struct matcher_notice *out);
/* Moves the oldest unexpected notification that matches to *out. False: there is none. */
static inline bool matcher_take(struct matcher *m, const struct matcher_pattern *pattern,
                                struct matcher_notice *out)
{
    return m->kept > 0 && matcher_take_matching(m, pattern, out);
}
/* Takes the oldest notification of this peer, or of any. */
bool matcher_take_from(struct matcher *m, uint64_t peer, bool any_peer, struct matcher_notice *out);
/* Drops all unexpected of a space. */
void matcher_drop(struct matcher *m, uint32_t space);

#endif
