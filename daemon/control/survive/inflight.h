/*
 * The table of clients' requests under way, by connection, in memory that outlives the process.
 *
 *     offset 0                 128               128 + 1 * entry
 *     +------------------------+-----------------+-----------------+-----
 *     | magic, version, sizes, | connection 0    | connection 1    | ...
 *     | boot id                |                 |                 |
 *     +------------------------+-----------------+-----------------+-----
 *
 * A request is noted before it is taken out of its socket, and removed when the last byte of its
 * answer has been put into the socket. So the next process knows about each request: either it was
 * not begun and is still in the socket, or its outcome is unknown and the next process answers it
 * with -ECONNABORTED. (Where an answer was sent already, the library ignores the second one.)
 *
 * Only the processes of this daemon, one after the other, read the table. Thread: control.
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
    INFLIGHT_GUEST = 1,  /* a connection that is not a rank of a job */
    INFLIGHT_SERVED = 2, /* a rank; `number` is its handle in `engine` */
};

enum inflight_loss {
    INFLIGHT_HALF = 1,   /* part of an answer was sent */
    INFLIGHT_UNKEPT = 2, /* the store has no room for one of its descriptors */
    INFLIGHT_ENDED = 4,  /* the client has left, or was ended */
};

struct inflight_entry {
    uint32_t state; /* enum inflight_state */
    uint32_t number;
    uint32_t taking; /* the request that is being taken out of the socket; 0: none */
    uint32_t lost;   /* enum inflight_loss: why the next process cannot serve it; 0: it can */
    uint32_t count;
    uint32_t engine;                          /* the engine's number on this node */
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

/* Returns 0: inherited from the store; 1: newly made; or a negative errno. */
int inflight_open(struct inflight *j, struct store *store, uint32_t entries);
void inflight_close(struct inflight *j);
/* Clears all entries, where the earlier process's state is not inherited. */
void inflight_clear(struct inflight *j);
/* Takes a free slot; INFLIGHT_NONE: there is none. */
uint32_t inflight_take(struct inflight *j);
void inflight_give(struct inflight *j, uint32_t slot);

/* Whether there is no room for one more request. */
bool inflight_full(const struct inflight_entry *e);
/* For each request, the caller calls inflight_begin before the request is taken out of the socket,
 * inflight_taken after that, and inflight_done when the request is answered. */
void inflight_begin(struct inflight_entry *e, uint32_t request);
void inflight_taken(struct inflight_entry *e);
void inflight_done(struct inflight_entry *e, uint32_t request);

#endif
