/* Uses by puts: ping-pong, accumulate, strided (uses.h). Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <string.h>

/* ---- one server ------------------------------------------------------------------------------ */

/* The clients put into the region of client 0, where each has a slice of its own. */
struct one_server {
    uint64_t taken[WORLD_NODES_MAX]; /* bytes of each client's slice that are used */
    bool answers, strangers;         /* the server has targets; the last client is not among them */
};

static struct one_server *server_of(struct uses *u)
{
    return (struct one_server *)u->own;
}

static bool is_stranger(const struct uses *u, uint32_t client)
{
    const struct one_server *s = (const struct one_server *)u->own;

    return !s->answers || (s->strangers && client == u->nodes - 1);
}

/* Gives client 0 an offload of its region, with all others as targets, or all but the last one, or
 * none; the others bind the region. */
static void open_server(struct uses *u, uint32_t state_bytes)
{
    struct uses_pair there[WORLD_NODES_MAX], back[WORLD_NODES_MAX];

    for (uint32_t i = 1; i < u->nodes; i++) {
        there[i - 1] = (struct uses_pair){i, 0};
        back[i - 1] = (struct uses_pair){0, i};
        if (!is_stranger(u, i))
            u->client[0].target[u->client[0].targets++] = i;
    }
    uses_bind(u, back, u->client[0].targets, true);
    uses_offload(u, 0, true, state_bytes);
    uses_bind(u, there, u->nodes - 1, true);
}

/* Draws a client other than 0, and `length` bytes of its slice. */
static bool draw_place(struct uses *u, uint32_t length, struct use_op *op)
{
    uint64_t slice = USES_PART / u->nodes & ~UINT64_C(63);
    struct one_server *s = server_of(u);

    *op = (struct use_op){.from = 1 + uses_below(u, u->nodes - 1), .length = length};
    if (s->taken[op->from] + length > slice)
        return false;
    op->place = slice * op->from + s->taken[op->from];
    return true;
}

/* ---- ping-pong ------------------------------------------------------------------------------- */

static void ping_pong_open(struct uses *u)
{
    struct one_server *s = server_of(u);

    s->answers = true;
    s->strangers = u->nodes > 2 && uses_below(u, 2);
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET | uses_below(u, 2) * ENGINE_OFFLOAD_PLACED;
    open_server(u, 8);
}

static bool ping_pong_submit(struct uses *u)
{
    uint32_t length = uses_below(u, uses_below(u, 3) ? 300 : 4000);
    struct use_op op;
    uint8_t *bytes;

    if (!draw_place(u, length, &op))
        return false;
    bytes = uses_room(u, op.from, length);
    if (!bytes)
        return false;
    uses_fill(bytes, u->count, length);
    if (!uses_put(u, &op, bytes, u->count))
        return false;
    server_of(u)->taken[op.from] += length;
    return true;
}

/* Counts a pong: each packet brings one. */
static void ponged(struct uses *u, uint32_t client, const struct message_event *event)
{
    if (client == 0)
        return;
    if (event->head.id >= u->count || u->op[event->head.id].from != client)
        world_fail(u->world, "client %u: a pong of no ping of its own", client);
    else
        u->op[event->head.id].arrivals++;
}

static void ping_pong_check(struct uses *u)
{
    uint64_t headers = 0, packets = 0, strangers = 0, counted;
    static uint8_t bytes[4000];

    uses_expect_ends(u, NULL);
    for (uint32_t i = 0; i < u->count && !u->world->failed; i++) {
        const struct use_op *op = &u->op[i];
        uint32_t pongs = is_stranger(u, op->from) ? 0 : uses_packets(u, op->length);

        headers++;
        packets += pongs;
        strangers += pongs == 0;
        if (op->arrivals != pongs)
            world_fail(u->world, "put %u of %u bytes has %u pongs, not %u", i, op->length,
                       op->arrivals, pongs);
        uses_fill(bytes, i, op->length);
        if (pongs > 0 && memcmp(uses_region(u, op->from) + op->place, bytes, op->length) != 0)
            world_fail(u->world, "the pongs of put %u have other bytes", i);
    }
    memcpy(&counted, uses_state(u, 0), sizeof(counted));
    if (counted < strangers || counted > strangers + u->doubts)
        world_fail(u->world, "%llu strangers, not %llu", (unsigned long long)counted,
                   (unsigned long long)strangers);
    uses_expect(u, 0, headers, packets);
}

const struct use use_ping_pong = {.name = "ping-pong",
                                  .object = "ping_pong",
                                  .flows = 1,
                                  .least = 2,
                                  .open = ping_pong_open,
                                  .submit = ping_pong_submit,
                                  .arrived = ponged,
                                  .check = ping_pong_check};

/* ---- accumulate ------------------------------------------------------------------------------ */

struct complex {
    double re, im;
};

enum { NUMBERS = 512 };

/* Products of these numbers are exact. */
static const struct complex factors[] = {{2, 0}, {0, 2}, {-2, 0}, {1, 1}, {0, -1}};

static struct complex product(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static void accumulate_open(struct uses *u)
{
    uint64_t pong = uses_below(u, 2);
    struct complex one = {1, 0};

    server_of(u)->answers = pong;
    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    memcpy(uses_state(u, 0), &pong, sizeof(pong));
    for (uint32_t i = 0; i < NUMBERS; i++)
        memcpy(uses_region(u, 0) + i * sizeof(one), &one, sizeof(one));
    open_server(u, sizeof(pong));
}

/* Submits a put: every client multiplies the same numbers. */
static bool accumulate_submit(struct uses *u)
{
    uint32_t count = uses_below(u, uses_below(u, 3) ? 20 : 200), first, factor;
    struct use_op op = {.from = 1 + uses_below(u, u->nodes - 1), .length = 16 * count};
    uint8_t *bytes = uses_room(u, op.from, op.length);

    if (!bytes)
        return false;
    first = uses_below(u, NUMBERS - count + 1);
    factor = uses_below(u, sizeof(factors) / sizeof(factors[0]));
    for (uint32_t i = 0; i < count; i++)
        memcpy(bytes + 16 * i, &factors[factor], 16);
    op.place = 16 * first;
    op.word[0] = first;
    op.word[1] = count;
    op.word[2] = factor;
    return uses_put(u, &op, bytes, u->count);
}

/* Multiplies the numbers of the first `packets` packets of an operation. */
static void multiply(const struct uses *u, const struct use_op *op, uint32_t packets,
                     struct complex *numbers)
{
    uint64_t count = (uint64_t)packets * u->packet / sizeof(struct complex);

    for (uint64_t k = 0; k < count && k < op->word[1]; k++)
        numbers[op->word[0] + k] = product(numbers[op->word[0] + k], factors[op->word[2]]);
}

/* Computes the numbers for one way in which the handlers may have run. Nobody knows how many
 * packets of an operation in doubt were multiplied, so `way` numbers all combinations; way 0 has
 * none of these packets. Returns how many packets of all operations are multiplied in this way. */
static uint64_t multiply_all(const struct uses *u, uint64_t way, struct complex *numbers)
{
    uint64_t packets = 0;

    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = (struct complex){1, 0};
    for (uint32_t i = 0; i < u->count; i++) {
        const struct use_op *op = &u->op[i];
        uint32_t all = uses_packets(u, op->length), some = all;

        if (uses_in_doubt(u, op)) {
            some = (uint32_t)(way % (all + 1));
            way /= all + 1;
        }
        packets += some;
        multiply(u, op, some, numbers);
    }
    return packets;
}

static bool same_numbers(const struct uses *u, const struct complex *numbers)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        struct complex found;

        memcpy(&found, uses_region(u, 0) + 16 * i, sizeof(found));
        if (found.re != numbers[i].re || found.im != numbers[i].im)
            return false;
    }
    return true;
}

/* Checks that one of the ways gives the numbers in the region. A handler in doubt may have
 * multiplied a packet although its run is not counted. */
static void check_products(struct uses *u, uint64_t ways)
{
    static struct complex numbers[NUMBERS];
    uint64_t counted = uses_counted(u, 0, HANDLER_PAYLOAD);

    for (uint64_t way = 0; way < ways; way++) {
        uint64_t packets = multiply_all(u, way, numbers);

        if (packets >= counted && packets - counted <= u->doubts && same_numbers(u, numbers))
            return;
    }
    world_fail(u->world, "other products, or not by %llu runs", (unsigned long long)counted);
}

static void accumulate_check(struct uses *u)
{
    uint32_t ended = 0;
    uint64_t ways = 1;

    uses_expect_ends(u, NULL);
    for (uint32_t i = 0; i < u->count && !u->world->failed; i++) {
        const struct use_op *op = &u->op[i];
        uint32_t packets = uses_packets(u, op->length);
        uint32_t pongs = server_of(u)->answers ? packets : 0;

        if (uses_in_doubt(u, op))
            ways *= packets + 1;
        else
            ended++;
        if (uses_in_doubt(u, op) ? op->arrivals > pongs : op->arrivals != pongs)
            world_fail(u->world, "put %u has %u answers, not %u", i, op->arrivals, pongs);
    }
    check_products(u, ways);
    uses_expect(u, 0, 0, uses_counted(u, 0, HANDLER_PAYLOAD));
    uses_expect_events(u, 0, OFFLOAD_ENDED, u->flags & ENGINE_OFFLOAD_QUIET ? 0 : ended);
}

const struct use use_accumulate = {.name = "accumulate",
                                   .object = "accumulate",
                                   .flows = 1,
                                   .least = 2,
                                   .open = accumulate_open,
                                   .submit = accumulate_submit,
                                   .arrived = ponged,
                                   .check = accumulate_check};

/* ---- strided --------------------------------------------------------------------------------- */

struct blocks {
    uint64_t start, block, stride;
};

enum { BLOCKS_LENGTH = 4000 };

/* Each client puts to the next one, whose handlers spread the bytes over blocks of its region. */
static void strided_open(struct uses *u)
{
    struct uses_pair pairs[WORLD_NODES_MAX];

    u->flags = uses_below(u, 2) * ENGINE_OFFLOAD_QUIET;
    for (uint32_t i = 0; i < u->nodes; i++) {
        struct blocks b = {.start = uses_below(u, 1000), .block = 1 + uses_below(u, 64)};

        b.stride = b.block + uses_below(u, 64);
        memcpy(uses_state(u, i), &b, sizeof(b));
        uses_offload(u, i, true, sizeof(b));
        pairs[i] = (struct uses_pair){i, (i + 1) % u->nodes};
    }
    uses_bind(u, pairs, u->nodes, true);
}

static bool strided_submit(struct uses *u)
{
    struct use_op op = {.from = uses_below(u, u->nodes),
                        .length = uses_below(u, uses_below(u, 3) ? 300 : BLOCKS_LENGTH)};
    uint8_t *bytes = uses_room(u, op.from, op.length);

    if (!bytes)
        return false;
    op.to = (op.from + 1) % u->nodes;
    uses_fill(bytes, u->count, op.length);
    return uses_put(u, &op, bytes, u->count);
}

static void spread(uint8_t *region, const struct blocks *b, const uint8_t *bytes, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        region[b->start + i / b->block * b->stride + i % b->block] = bytes[i];
}

static void strided_check_one(struct uses *u, uint32_t client)
{
    static uint8_t expected[USES_PART], bytes[BLOCKS_LENGTH];
    uint64_t packets = 0;
    uint32_t puts = 0;
    struct blocks b;

    memset(expected, 0, sizeof(expected));
    memcpy(&b, uses_state(u, client), sizeof(b));
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->op[i].to != client)
            continue;
        puts++;
        packets += uses_packets(u, u->op[i].length);
        uses_fill(bytes, i, u->op[i].length);
        spread(expected, &b, bytes, u->op[i].length);
    }
    if (memcmp(uses_region(u, client), expected, sizeof(expected)) != 0)
        world_fail(u->world, "client %u: its blocks have other bytes", client);
    uses_expect(u, client, 0, packets);
    uses_expect_events(u, client, OFFLOAD_ENDED, u->flags & ENGINE_OFFLOAD_QUIET ? 0 : puts);
}

static void strided_check(struct uses *u)
{
    uses_expect_ends(u, NULL);
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        strided_check_one(u, i);
}

const struct use use_strided = {.name = "strided",
                                .object = "strided",
                                .flows = 1,
                                .least = 2,
                                .open = strided_open,
                                .submit = strided_submit,
                                .check = strided_check};
