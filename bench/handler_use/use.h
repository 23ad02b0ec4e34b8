/* The parts that use.c and uses.c share: a rank of handler_use, and a use. */
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
    bool placed; /* handlers find what is put in the region, where a client does */
    size_t size, block;
    uint64_t iterations, seen;
    pwc_client *client;
    pwc_ctx *ctx;
    uint32_t me, ranks;
    pwc_region *data, *answers;
    pwc_offload *offload;
    pwc_remote *home;           /* answers of rank 0 */
    pwc_remote *down[DOWN_MAX]; /* data of those that this rank sends to */
    uint32_t downs;
    uint64_t state[STATE / 8]; /* of the handlers, as they find it */
    unsigned char value[64];   /* of the only key, at rank 1 */
};

/* Rank 0 asks, all others serve. */
struct use {
    const char *name;
    size_t (*bytes)(const struct bench *b); /* of data */
    /* The ranks that this one sends to, all higher; how many. */
    uint32_t (*downs)(const struct bench *b, uint32_t *ranks);
    void (*fill)(struct bench *b); /* the state */
    void (*ask)(struct bench *b);
    uint32_t (*answers)(const struct bench *b); /* events that end a request */
    void (*serve)(struct bench *b, uint64_t id);
    bool at_index; /* handlers of messages, not of puts */
};

extern const struct use uses[];
extern const size_t use_count;

/* Ends the program after an error. */
int checked(const char *call, int rc);
#define CHECK(call) checked(#call, call)

/* Whether what is put is never in the region, unless handlers write it. */
static inline bool is_streamed(const struct bench *b)
{
    return b->handled && !b->placed;
}

unsigned char *data_at(const struct bench *b, size_t offset);

/* Makes room where there is none. Events that are taken meanwhile are local ones alone. */
void put(struct bench *b, pwc_remote *to, size_t offset, const void *from, size_t size, uint64_t id,
         unsigned flags);

/* The handler of messages at INDEX, with the struct bench: at rank 0 of the reply, at rank 1 of
 * the request: of a key, or of a rendezvous. */
void on_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument);

#endif
