/*
 * Requests of a context, and the pool that holds them.
 *
 *     0        32     36       40         44     48     49     50         52       56    64
 *     +--------+------+--------+----------+------+------+------+----------+--------+-----+
 *     | status | left | waiter | position | next | kind | reported | lid_size | wanted | lid |
 *     +--------+------+--------+----------+------+------+------+----------+--------+-----+
 *
 * The pool grows by chunks of 4 KiB. A chunk's first 64 bytes point to the pool, so that each
 * request need not, and to the patterns of its requests for notifications. A request's number is 64
 * times the number of its chunk, plus its place in the chunk.
 *
 * An operation with a request is submitted with SUBMIT_SLOT and request_cid as its local id,
 * without SUBMIT_NO_LCE. Its local event has that id, which is never the number of a slot
 * (pending.h).
 *
 * Under way: left > 0. Ended: left is 0, and `reported` is set when a call has reported this end.
 *
 * A wait takes a new odd number, and marks the requests that it waits for with this number. When a
 * marked request ends, it loses its mark and is put on the wait's list.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_REQUEST_H
#define PWC_CLIENTLIB_REQUEST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pwc/request.h"

enum request_kinds {
    REQUEST_FREE = 0,
    REQUEST_PLAIN,
    REQUEST_NOTIFY,     /* for notifications: channel_notify.c */
    REQUEST_COLLECTIVE, /* a collective of a team: teams/again.c */
};

struct pwc_request {
    struct pwc_status status; /* status of the round under way, or of the last round */
    uint32_t left;     /* for a plain request: operations under way; else: ends that the round still
                          waits for */
    uint32_t waiter;   /* number of the wait that has marked the request */
    uint32_t position; /* index in that wait's array */
    uint32_t next;     /* number of the next request on the wait's list, or of the next free
                          request */
    uint8_t kind;      /* enum request_kinds */
    bool reported;
    uint16_t lid_size; /* lid_size, wanted and lid: for persistent requests */
    uint32_t wanted;   /* the value with which `left` begins */
    uint64_t lid;      /* by value, or a pointer to a copy of its bytes; 0: none */
};
static_assert(sizeof(struct pwc_request) == 64, "pwc_request");
static_assert(offsetof(struct pwc_request, left) == 32, "pwc_request.left");

#define REQUEST_CHUNK_BYTES 4096u
#define REQUESTS_A_CHUNK    64u /* places of a chunk; the first is its head */
#define REQUEST_NONE        0u  /* no request has this number */
#define REQUEST_NO_WAIT     1u  /* no wait has this number */

struct request_pool;
struct channel_posting;

struct request_chunk_head {
    struct request_pool *pool;
    uint32_t first; /* number of the head's own place */
    /* The patterns of this chunk's requests for notifications: channel_notify.c. NULL: there are
     * none. */
    struct channel_posting *postings;
};
static_assert(sizeof(struct request_chunk_head) <= sizeof(struct pwc_request), "a place");

struct request_pool {
    struct pwc_request **chunks;
    uint32_t chunk_count;
    uint32_t free;                     /* number of the first free request */
    const struct pwc_request *awaited; /* the only request that a wait is for, or NULL */
    uint32_t wait;                     /* odd: number of the running wait; even: there is none */
    uint32_t ended; /* requests on the wait's list, which have ended, in the order of their ends */
    uint32_t ended_first, ended_last;
};

void request_pool_init(struct request_pool *pool);
void request_pool_destroy(struct request_pool *pool);

/* Counts plain requests that have a failure which no call has reported. Slow. */
uint64_t request_pool_failed(const struct request_pool *pool);

/* 0 or -ENOMEM. */
int request_pool_take(struct request_pool *pool, enum request_kinds kind, struct pwc_request **out);
/* 0; -EBUSY: the request is under way, or the running wait waits for it. */
int request_pool_give(struct pwc_request *r);

static inline struct request_chunk_head *request_head(const struct pwc_request *r)
{
    return (struct request_chunk_head *)((uintptr_t)r & ~(uintptr_t)(REQUEST_CHUNK_BYTES - 1));
}

/* The request's place in its chunk. */
static inline uint32_t request_place(const struct pwc_request *r)
{
    return (uint32_t)((uintptr_t)r % REQUEST_CHUNK_BYTES / sizeof(struct pwc_request));
}

static inline uint32_t request_number(const struct pwc_request *r)
{
    return request_head(r)->first + request_place(r);
}

/* The request with this number, or NULL. */
static inline struct pwc_request *request_at(const struct request_pool *pool, uint64_t number)
{
    if (number / REQUESTS_A_CHUNK >= pool->chunk_count || number % REQUESTS_A_CHUNK == 0)
        return NULL;
    return &pool->chunks[number / REQUESTS_A_CHUNK][number % REQUESTS_A_CHUNK];
}

/* ---- the local id of an operation with a request ----------------------------------- */

#define REQUEST_IDS (UINT64_C(1) << 32) /* ids of requests begin here, above all slots */

static inline pwc_cid request_cid(const struct pwc_request *r)
{
    return pwc_cid_u64(REQUEST_IDS + request_number(r));
}

static inline bool request_is_id(uint64_t id)
{
    return id >= REQUEST_IDS;
}

/* ---- the life of a request ------------------------------------------------------------------- */

/* Begins a new round if the end of the last one has been reported. */
static inline void request_renew(struct pwc_request *r)
{
    if (r->reported) {
        r->status = (struct pwc_status){.status = 0};
        r->reported = false;
    }
}

/* Counts one more operation of a plain request. */
static inline void request_begin(struct pwc_request *r)
{
    request_renew(r);
    r->left++;
}

/* Counts an operation of a plain request that is being prepared. It begins with request_renew, or
 * is dropped by request_let_go. */
static inline void request_hold(struct pwc_request *r)
{
    r->left++;
}

/* Puts a request that has ended on the list of the running wait, if that wait has marked it. */
static inline void request_show(struct request_pool *pool, struct pwc_request *r)
{
    uint32_t number = request_number(r);

    if (r->waiter != pool->wait)
        return;
    r->waiter = REQUEST_NO_WAIT;
    r->next = REQUEST_NONE;
    if (pool->ended++ == 0)
        pool->ended_first = number;
    else
        request_at(pool, pool->ended_last)->next = number;
    pool->ended_last = number;
}

static inline void request_let_go(struct pwc_request *r)
{
    if (r->left > 0 && --r->left == 0)
        request_show(request_head(r)->pool, r);
}

/* Notes the end of one operation of a plain request. */
static inline void request_note(struct pwc_request *r, int status, pwc_peer peer, uint64_t bytes)
{
    r->status.count++;
    r->status.peer = peer;
    r->status.bytes = bytes;
    if (status < 0 && r->status.status == 0)
        r->status.status = status;
}

/* Ends one operation of a plain request by its local event: 0, or -EPROTO: no operation of a
 * request with this id is under way. */
int request_end_one(struct request_pool *pool, uint64_t id, int status, pwc_peer peer,
                    uint64_t bytes);
/* Notes an operation of a plain request that has ended within its call. */
void request_end_at_once(struct pwc_request *r, int status, pwc_peer peer, uint64_t bytes);

/* ---- persistent requests
 * ------------------------------------------------------------------------- */

/* Sets and copies the id of the request's local event: 0, -EINVAL, -ENOMEM. PWC_CID_NONE: no
 * event. */
int request_set_lid(struct pwc_request *r, const pwc_cid *lid);

static inline bool request_has_lid(const struct pwc_request *r)
{
    return r->lid != 0 || r->lid_size > 0;
}

static inline pwc_cid request_lid(const struct pwc_request *r)
{
    return r->lid_size > 0 ? pwc_cid_bytes((const void *)(uintptr_t)r->lid, r->lid_size)
                           : pwc_cid_u64(r->lid);
}

/* ---- waits ----------------------------------------------------------------------------------- */

void request_wait_begin(struct request_pool *pool);
void request_wait_end(struct request_pool *pool);

static inline void request_mark(struct request_pool *pool, struct pwc_request *r, uint32_t position)
{
    r->waiter = pool->wait;
    r->position = position;
}

/* Takes the first request off the wait's list; NULL: the list is empty. */
struct pwc_request *request_pop(struct request_pool *pool);

#endif
