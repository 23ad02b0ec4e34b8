/*
 * The table of requests under way, by connection, in memory that outlives the process.
 *
 *     offset 0                 128               128 + 1 * entry
 *     +------------------------+-----------------+-----------------+-----
 *     | magic, version, sizes, | connection 0    | connection 1    | ...
 *     | boot id                |                 |                 |
 *     +------------------------+-----------------+-----------------+-----
 *
 * A request is noted before it is taken out of its socket, and removed when the last byte of its
 * answer has been put into the socket. So the next process knows of every request: either it was
 * not begun, and still is in the socket; or its end is unknown, and the process answers it with
 * -ECONNABORTED. (If the answer had left already, the library ignores this second one.)
 *
 * Private to the daemons that follow one another. Thread: control.
 */
#ifndef PWC_CONTROL_INFLIGHT_H
#define PWC_CONTROL_INFLIGHT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/survive/store.h"

#define INFLIGHT_MAGIC        UINT64_C(0x314c4e524a435750) /* "PWCJRNL1" */
#define INFLIGHT_VERSION      1u
#define INFLIGHT_REQUESTS_MAX 318u
#define INFLIGHT_NONE         UINT32_MAX

enum inflight_state {
    INFLIGHT_FREE = 0,
    INFLIGHT_GUEST = 1,  /* not a rank of a job */
    INFLIGHT_SERVED = 2, /* `number` is the handle of `engine` */
};

enum inflight_loss {
    INFLIGHT_HALF = 1,   /* part of an answer has left */
    INFLIGHT_UNKEPT = 2, /* a descriptor of it found no room in the store */
    INFLIGHT_ENDED = 4,  /* the client has left, or was ended */
};

struct inflight_entry {
    uint32_t state; /* enum inflight_state */
    uint32_t number;
    uint32_t taking; /* the request that is being taken out of the socket; 0: none */
    uint32_t lost;   /* enum inflight_loss: not to be served on */
    uint32_t count;
    uint32_t engine;                          /* of this node's */
    uint32_t requests[INFLIGHT_REQUESTS_MAX]; /* 0: free */
};
static_assert(sizeof(struct inflight_entry) == 1296, "inflight_entry");

struct inflight_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t entry_bytes;
    uint32_t entries;
    uint8_t boot_id[16];
    uint8_t unused[88];
};
static_assert(sizeof(struct inflight_header) == 128, "inflight_header");

struct inflight {
    struct inflight_header *header; /* NULL: not open */
    struct inflight_entry *entries;
    size_t bytes;
    int descriptor;
};

/* 0: inherited from the store; 1: newly made. */
int inflight_open(struct inflight *j, struct store *store, uint32_t entries);
void inflight_close(struct inflight *j);
/* Clears entries of a daemon whose state was not inherited. */
void inflight_clear(struct inflight *j);
/* A free slot, or INFLIGHT_NONE. */
uint32_t inflight_take(struct inflight *j);
void inflight_give(struct inflight *j, uint32_t slot);

/* inflight_full: there is no room for one more. Then, for each request: begin (before it leaves the
 * socket), taken (after that), and done (answered). */
bool inflight_full(const struct inflight_entry *e);
void inflight_begin(struct inflight_entry *e, uint32_t request);
void inflight_taken(struct inflight_entry *e);
void inflight_done(struct inflight_entry *e, uint32_t request);

#endif
