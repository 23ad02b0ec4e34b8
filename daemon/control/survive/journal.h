/*
 * The journal: which requests of clients are under way, in memory that outlives the process.
 *
 *     offset 0                 128               128 + 1 * entry
 *     +------------------------+-----------------+-----------------+-----
 *     | magic, version, sizes, | connection 0    | connection 1    | ...
 *     | boot id                |                 |                 |
 *     +------------------------+-----------------+-----------------+-----
 *
 * A request is noted before it is taken out of its socket, and struck out when the last byte of its
 * answer has been put into the socket. So the next process knows of every request that it was
 * either not begun, and still is in the socket, or that nobody can say what has become of it: then
 * it answers it with -ECONNABORTED. (Where the answer had left already, the library finds nobody
 * who waits for it.)
 *
 * Private to the daemons that follow one another. Thread: control.
 */
#ifndef PWC_CONTROL_JOURNAL_H
#define PWC_CONTROL_JOURNAL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/survive/store.h"

#define JOURNAL_MAGIC        UINT64_C(0x314c4e524a435750) /* "PWCJRNL1" */
#define JOURNAL_VERSION      1u
#define JOURNAL_REQUESTS_MAX 318u
#define JOURNAL_NONE         UINT32_MAX

enum journal_state {
    JOURNAL_FREE = 0,
    JOURNAL_GUEST = 1,  /* not a rank of a job */
    JOURNAL_SERVED = 2, /* `number` is the handle of `engine` */
};

enum journal_loss {
    JOURNAL_HALF = 1,   /* part of an answer has left */
    JOURNAL_UNKEPT = 2, /* a descriptor of it found no room in the store */
    JOURNAL_ENDED = 4,  /* it has left, or was sent away */
};

struct journal_entry {
    uint32_t state; /* enum journal_state */
    uint32_t number;
    uint32_t taking; /* the request that is being taken out of the socket; 0: none */
    uint32_t lost;   /* enum journal_loss: not to be served on */
    uint32_t count;
    uint32_t engine;                         /* of this node's */
    uint32_t requests[JOURNAL_REQUESTS_MAX]; /* 0: free */
};
static_assert(sizeof(struct journal_entry) == 1296, "journal_entry");

struct journal_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t entry_bytes;
    uint32_t entries;
    uint8_t boot_id[16];
    uint8_t unused[88];
};
static_assert(sizeof(struct journal_header) == 128, "journal_header");

struct journal {
    struct journal_header *header; /* NULL: not open */
    struct journal_entry *entries;
    size_t bytes;
    int descriptor;
};

/* Takes over what is in the store: 0, or makes a new one: 1. */
int journal_open(struct journal *j, struct store *store, uint32_t entries);
void journal_close(struct journal *j);
/* All that stands in it was another's. */
void journal_clear(struct journal *j);
/* A free slot, or JOURNAL_NONE. */
uint32_t journal_take(struct journal *j);
void journal_give(struct journal *j, uint32_t slot);

/* Room for one more; then begin (before it leaves the socket), taken (after it), and done. */
bool journal_full(const struct journal_entry *e);
void journal_begin(struct journal_entry *e, uint32_t request);
void journal_taken(struct journal_entry *e);
void journal_done(struct journal_entry *e, uint32_t request);

#endif
