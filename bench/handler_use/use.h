/* Declarations that use.c and uses.c share: a rank of handler_use, and a use. */
#ifndef BENCH_HANDLER_USE_H
#define BENCH_HANDLER_USE_H

#include <pwc/am.h>
#include <pwc/offload.h>
#include <stdbool.h>

enum { REQUEST = 1, ANSWER = 2, STOP = 3 }; /* ids of events */
enum { INDEX = 7, STATE = 65536, DOWN_MAX = 8 };

struct bench {
    const struct use *use;
    bool handled, sleeps, computes;
    bool placed; /* puts are placed in the region before handlers run, as for a client */
    size_t size, block;
    uint64_t iterations, seen;
    pwc_client *client;
    pwc_ctx *ctx;
    uint32_t me, ranks;
    pwc_region *data, *answers;
    pwc_offload *offload;
    pwc_remote *home;           /* the region of rank 0 for answers */
    pwc_remote *down[DOWN_MAX]; /* the data of the ranks that this one sends to */
    uint32_t downs;
    uint64_t state[STATE / 8]; /* the handlers' state at the start */
    unsigned char value[64];   /* of the only key, at rank 1 */
};

/* One use: rank 0 asks, all others serve. */
struct use {
    const char *name;
    size_t (*bytes)(const struct bench *b); /* of data */
    /* Fills in the ranks that this one sends to, all higher ones. Returns how many. */
    uint32_t (*downs)(const struct bench *b, uint32_t *ranks);
    void (*fill)(struct bench *b); /* fills in the state */
    void (*ask)(struct bench *b);
    uint32_t (*answers)(const struct bench *b); /* events that end a request */
    void (*serve)(struct bench *b, uint64_t id);
    bool at_index; /* the handlers are for messages, not for puts */
};

extern const struct use uses[];
extern const size_t use_count;

/* Ends the program after an error. */
int checked(const char *call, int rc);
#define CHECK(call) checked(#call, call)

/* Whether bytes that are put come into the region only if handlers write them. */
static inline bool is_streamed(const struct bench *b)
{
    return b->handled && !b->placed;
}

unsigned char *data_at(const struct bench *b, size_t offset);

/* Puts; waits for room where there is none, and takes only local events meanwhile. */
void put(struct bench *b, pwc_remote *to, size_t offset, const void *from, size_t size, uint64_t id,
         unsigned flags);

/* The client's handler of messages at INDEX; `argument` is the struct bench. At rank 0 it takes
 * replies, at rank 1 requests: for a key, or of a rendezvous. */
void on_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument);

#endif
