/* The uses of handler_use: what the origin asks for, and how a client does it. */
#include <stdlib.h>
#include <string.h>
#include "bench/handler_use/use.h"

enum { SLOTS = 64, SLOT = 64, VALUE = 48, KV_GET = 0, KV_INSERT = 1 }; /* as key_value.c */
enum { DATA_SERVERS = 4, PARITY = DATA_SERVERS + 1 };

static void answer(struct bench *b)
{
    put(b, b->home, 0, NULL, 0, ANSWER, PWC_NO_LCE);
}

/* ---- most uses: rank 0 puts to rank 1, and gets one answer ------------------------------------
 */

static size_t bytes_once(const struct bench *b)
{
    return b->size;
}

static uint32_t downs_one(const struct bench *b, uint32_t *ranks)
{
    ranks[0] = 1;
    return b->me == 0;
}

static uint32_t answers_one(const struct bench *b)
{
    (void)b;
    return 1;
}

static void fill_none(struct bench *b)
{
    (void)b;
}

static void ask_all(struct bench *b)
{
    for (uint32_t i = 0; i < b->downs; i++)
        put(b, b->down[i], 0, data_at(b, 0), b->size, REQUEST, PWC_NO_LCE);
}

/* ---- ping-pong --------------------------------------------------------------------------------
 */

static uint32_t answers_packets(const struct bench *b)
{
    struct pwc_handler_limits limits;

    CHECK(pwc_handler_limits(b->client, &limits));
    return b->handled ? (uint32_t)((b->size + limits.packet - 1) / limits.packet) : 1;
}

static void serve_pong(struct bench *b, uint64_t id)
{
    (void)id;
    put(b, b->home, 0, data_at(b, 0), b->size, ANSWER, PWC_NO_LCE);
}

/* ---- accumulate: multiplies complex doubles. A client finds the factors after its numbers -----
 */

static size_t bytes_twice(const struct bench *b)
{
    return 2 * b->size;
}

static void ask_behind(struct bench *b)
{
    put(b, b->down[0], is_streamed(b) ? 0 : b->size, data_at(b, 0), b->size, REQUEST,
        b->handled ? 0 : PWC_NO_LCE);
}

static void multiply(struct bench *b)
{
    double *to = (double *)(void *)data_at(b, 0);
    const double *from = (const double *)(const void *)data_at(b, b->size);

    for (size_t i = 0; i < b->size / sizeof(double); i += 2) {
        double real = to[i] * from[i] - to[i + 1] * from[i + 1];

        to[i + 1] = to[i] * from[i + 1] + to[i + 1] * from[i];
        to[i] = real;
    }
}

static void serve_multiply(struct bench *b, uint64_t id)
{
    (void)id;
    multiply(b);
    answer(b);
}

/* ---- the same as a flood: each request is many puts -------------------------------------------
 */

enum { FLOOD = 1000 };

static void ask_flood(struct bench *b)
{
    for (int i = 0; i < FLOOD; i++)
        put(b, b->down[0], b->handled ? 0 : b->size, data_at(b, 0), b->size, REQUEST, PWC_NO_LCE);
    if (b->handled)
        CHECK(pwc_flush(b->ctx, PWC_ANY, -1));
}

static uint32_t answers_flood(const struct bench *b)
{
    return b->handled ? 0 : 1;
}

static void serve_flood(struct bench *b, uint64_t id)
{
    (void)id;
    multiply(b);
    if (++b->seen % FLOOD == 0)
        answer(b);
}

/* ---- strided: blocks with as much room between them. A client finds the bytes after them -------
 */

static size_t bytes_spread(const struct bench *b)
{
    return 3 * b->size;
}

static void fill_blocks(struct bench *b)
{
    b->state[1] = b->block;
    b->state[2] = 2 * b->block;
}

static void ask_spread(struct bench *b)
{
    put(b, b->down[0], is_streamed(b) ? 0 : 2 * b->size, data_at(b, 0), b->size, REQUEST,
        b->handled ? 0 : PWC_NO_LCE);
}

static void serve_spread(struct bench *b, uint64_t id)
{
    (void)id;
    for (size_t at = 0; at < b->size; at += b->block)
        memcpy(data_at(b, 2 * at), data_at(b, 2 * b->size + at), b->block);
    answer(b);
}

/* ---- broadcast: a binomial tree from rank 0 ---------------------------------------------------
 */

static uint32_t downs_children(const struct bench *b, uint32_t *ranks)
{
    uint32_t count = 0;

    for (uint32_t step = 1; step < b->ranks; step *= 2)
        if (step > b->me && b->me + step < b->ranks)
            ranks[count++] = b->me + step;
    return count;
}

static void fill_children(struct bench *b)
{
    b->state[0] = b->downs;
    b->state[1] = b->size;
}

static uint32_t answers_ranks(const struct bench *b)
{
    return b->ranks - 1;
}

static void serve_forward(struct bench *b, uint64_t id)
{
    (void)id;
    ask_all(b);
    answer(b);
}

/* ---- RAID-5: four servers with a block each, and one with their parity -------------------------
 */

static size_t block_of(const struct bench *b)
{
    return b->size / DATA_SERVERS;
}

static size_t bytes_blocks(const struct bench *b)
{
    return (DATA_SERVERS + 1) * block_of(b);
}

static uint32_t downs_servers(const struct bench *b, uint32_t *ranks)
{
    if (b->me == PARITY)
        return 0;
    for (uint32_t i = 0; i < DATA_SERVERS; i++)
        ranks[i] = b->me == 0 ? 1 + i : PARITY;
    return b->me == 0 ? DATA_SERVERS : 1;
}

static void fill_parity(struct bench *b)
{
    b->state[0] = b->me == PARITY ? UINT32_MAX : 1; /* a server's second target */
    b->state[1] = block_of(b);
    b->state[2] = b->me;
}

static void ask_servers(struct bench *b)
{
    for (uint32_t i = 0; i < DATA_SERVERS; i++)
        put(b, b->down[i], is_streamed(b) ? 0 : block_of(b), data_at(b, i * block_of(b)),
            block_of(b), REQUEST, PWC_NO_LCE);
}

static uint32_t answers_servers(const struct bench *b)
{
    (void)b;
    return DATA_SERVERS;
}

/* to = a xor b */
static void exclusive_or(unsigned char *to, const unsigned char *a, const unsigned char *b,
                         size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x, y;

        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        x ^= y;
        memcpy(to + i, &x, 8);
    }
}

/* Serves by a client. A data server's memory has its block, then the new block that is put, then
 * the difference. The parity server's memory has the parity, then a difference of each data server;
 * the event's id minus REQUEST is this server's rank. */
static void serve_array(struct bench *b, uint64_t id)
{
    size_t block = block_of(b);

    if (b->me == PARITY) {
        exclusive_or(data_at(b, 0), data_at(b, 0), data_at(b, (id >> 8) * block), block);
        answer(b);
        return;
    }
    exclusive_or(data_at(b, 2 * block), data_at(b, 0), data_at(b, block), block);
    memcpy(data_at(b, 0), data_at(b, block), block);
    put(b, b->down[0], b->me * block, data_at(b, 2 * block), block, REQUEST | (uint64_t)b->me << 8,
        PWC_NO_LCE);
}

/* ---- a table of keys and values, asked by messages ---------------------------------------------
 */

static size_t bytes_table(const struct bench *b)
{
    (void)b;
    return SLOTS * SLOT;
}

static void fill_table(struct bench *b)
{
    b->state[0] = SLOTS;
}

static void ask_table(struct bench *b, uint64_t op, size_t length)
{
    const uint64_t arguments[2] = {op, 1};
    const struct pwc_am_send send = {.index = INDEX,
                                     .arguments = arguments,
                                     .count = 2,
                                     .src = data_at(b, 0),
                                     .len = length,
                                     .flags = PWC_NO_LCE};

    CHECK(pwc_am_medium(b->down[0], &send));
}

static void ask_key(struct bench *b)
{
    if (b->seen++ == 0)
        ask_table(b, KV_INSERT, VALUE);
    else
        ask_table(b, KV_GET, 0);
}

static void serve_key(struct bench *b, pwc_ctx *ctx, const struct pwc_am *am)
{
    const uint64_t found = 1;
    struct pwc_am_send send = {
        .index = INDEX, .arguments = &found, .count = 1, .src = b->value, .flags = PWC_NO_LCE};

    if (am->arguments[0] == KV_INSERT)
        memcpy(b->value, am->payload, am->length);
    else
        send.len = VALUE;
    CHECK(pwc_am_reply_medium(ctx, am->token, &send));
}

static void serve_none(struct bench *b, uint64_t id)
{
    (void)b, (void)id;
}

/* ---- rendezvous: rank 1 gets the bytes that a request names. Each request has its receive -------
 */

struct slot { /* as examples/handlers/rendezvous.c */
    uint64_t state, place, room, sender, offset, bytes;
};
enum { POSTED = 1, RECEIVES = (STATE - 8) / sizeof(struct slot) };

static void fill_receives(struct bench *b)
{
    struct slot *slots = (struct slot *)(void *)(b->state + 1);

    b->state[0] = RECEIVES;
    for (uint32_t i = 0; i < RECEIVES; i++)
        slots[i] = (struct slot){.state = POSTED, .room = b->size};
}

static void ask_rendezvous(struct bench *b)
{
    const uint64_t arguments[3] = {b->seen++, 0, b->size};
    const struct pwc_am_send send = {
        .index = INDEX, .arguments = arguments, .count = 3, .flags = PWC_NO_LCE | PWC_AM_NO_REPLY};

    CHECK(pwc_am_short(b->down[0], &send));
}

/* A client gets the bytes. All its receives have the same place, so it need not look one up. */
static void get_message(struct bench *b, const struct pwc_am *am)
{
    CHECK(pwc_get(b->home, am->arguments[1], data_at(b, 0), am->arguments[2], pwc_cid_u64(REQUEST),
                  PWC_CID_NONE, PWC_NO_RCE));
}

static void serve_got(struct bench *b, uint64_t id)
{
    (void)id;
    answer(b);
}

void on_message(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct bench *b = argument;

    if (am->is_reply)
        return;
    if (b->use->serve == serve_got)
        get_message(b, am);
    else
        serve_key(b, ctx, am);
}

/* ---- all uses ----------------------------------------------------------------------------------
 */

const struct use uses[] = {
    {"ping_pong", bytes_once, downs_one, fill_none, ask_all, answers_packets, serve_pong, 0},
    {"ping_pong_stored", bytes_once, downs_one, fill_none, ask_all, answers_one, serve_pong, 0},
    {"accumulate", bytes_twice, downs_one, fill_none, ask_behind, answers_one, serve_multiply, 0},
    {"flood", bytes_twice, downs_one, fill_none, ask_flood, answers_flood, serve_flood, 0},
    {"strided", bytes_spread, downs_one, fill_blocks, ask_spread, answers_one, serve_spread, 0},
    {"broadcast", bytes_once, downs_children, fill_children, ask_all, answers_ranks, serve_forward,
     0},
    {"raid5", bytes_blocks, downs_servers, fill_parity, ask_servers, answers_servers, serve_array,
     0},
    {"rendezvous", bytes_once, downs_one, fill_receives, ask_rendezvous, answers_one, serve_got, 1},
    {"key_value", bytes_table, downs_one, fill_table, ask_key, answers_one, serve_none, 1},
};

const size_t use_count = sizeof(uses) / sizeof(uses[0]);
