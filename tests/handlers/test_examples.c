/*
 * Runs an example on random packets twice: in the interpreter, from clang's object file, and on the
 * host, where its C file is linked to this program. States, regions, sends and returns must be the
 * same. Thread: one.
 *
 *     test_example_NAME NAME OBJECT
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <pwc/handler.h>
#include "tests/handlers/object.h"
#include "tests/suite.h"

/* The handlers of the example, which need not have all three. */
extern int header(const struct pwc_h_packet *p, void *state) __attribute__((weak));
extern int payload(const struct pwc_h_packet *p, void *state) __attribute__((weak));
extern int completion(const struct pwc_h_packet *p, void *state) __attribute__((weak));

/* The compiler must lay out struct pwc_h_packet as the daemon does. */
static_assert(sizeof(struct pwc_h_packet) == sizeof(struct handler_packet) &&
                  offsetof(struct pwc_h_packet, peer) == offsetof(struct handler_packet, peer) &&
                  offsetof(struct pwc_h_packet, header) ==
                      offsetof(struct handler_packet, header) &&
                  offsetof(struct pwc_h_packet, data) == offsetof(struct handler_packet, data) &&
                  offsetof(struct pwc_h_packet, place) == offsetof(struct handler_packet, place) &&
                  offsetof(struct pwc_h_packet, zero) == offsetof(struct handler_packet, zero),
              "pwc/handler.h and proto/handler_abi.h have one layout");
static_assert((int)PWC_H_PROCESS_DATA == (int)HANDLER_PROCESS_DATA &&
                  (int)PWC_H_PROCEED == (int)HANDLER_PROCEED &&
                  (int)PWC_H_DROP == (int)HANDLER_DROP && (int)PWC_H_DEFER == (int)HANDLER_DEFER &&
                  (int)PWC_H_FAIL == (int)HANDLER_FAIL && (int)PWC_H_AGAIN == (int)HANDLER_AGAIN &&
                  (int)PWC_H_SUCCESS_PENDING == (int)HANDLER_PENDING &&
                  (int)PWC_H_RERUN == (int)HANDLER_RERUN && (int)PWC_H_GOT == (int)HANDLER_GOT &&
                  (int)PWC_H_OBSERVED == (int)HANDLER_OBSERVED &&
                  (int)PWC_H_CONVERT == (int)NUMBER_CONVERT && PWC_H_EAGAIN == -EAGAIN,
              "and one set of numbers");

enum { PACKETS = 2000, ARGUMENTS = 4000 };

struct twin {
    struct bench *b;
    struct pwc_h_world world;
    struct pwc_h_sent sent[BENCH_SENDS];
    _Alignas(64) uint8_t state[BENCH_STATE], region[BENCH_HOST];
    uint64_t kinds[8]; /* counts of the first handler's returns */
};

static struct twin *t;
static const char *name, *object;
static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* ---- scenarios: the state at first, and a packet --------------------------------------------- */

static void put_packet(struct handler_packet *p)
{
    p->kind = HANDLER_PUT;
    p->length = draw(BENCH_PACKET + 1) & ~UINT64_C(15);
    p->total = p->length;
    p->place = draw((BENCH_HOST - p->length) / 16 + 1) * 16;
    p->source = draw(4) == 0 ? HANDLER_NONE : (uint32_t)draw(BENCH_TARGETS);
    p->id = draw(1000);
}

static void message_packet(struct handler_packet *p, const uint64_t *args, unsigned count)
{
    p->kind = HANDLER_MESSAGE;
    memcpy(t->b->packet + ARGUMENTS, args, 8 * count);
    p->header = handler_address(HANDLER_PACKET, ARGUMENTS);
    p->header_length = 8 * count;
    p->length = p->total = 0;
}

static void begin_words(uint8_t *state, uint8_t *region)
{
    (void)region;
    memset(state, 0, 64);
}

static void begin_numbers(uint8_t *state, uint8_t *region)
{
    uint64_t pong = 1;

    memcpy(state, &pong, 8);
    for (unsigned i = 0; i < BENCH_HOST / 8; i++) {
        double value = 1 + (double)draw(1000) / 1000;

        memcpy(region + 8 * i, &value, 8);
    }
}

static void numbers_packet(struct handler_packet *p)
{
    put_packet(p);
    for (unsigned i = 0; i < BENCH_PACKET / 8; i++) {
        double value = (double)draw(1000) / 700;

        memcpy(t->b->packet + 8 * i, &value, 8);
    }
}

static void begin_blocks(uint8_t *state, uint8_t *region)
{
    uint64_t head[3] = {24, 40, 104};

    (void)region;
    memcpy(state, head, sizeof(head));
}

/* A packet of a put; each packet has blocks of its own. */
static void part_packet(struct handler_packet *p)
{
    put_packet(p);
    p->length = draw(65) * 8;
    p->offset = draw(12) * 512;
    p->total = 12 * 512;
}

/* A packet for a data server, or now and then for the server of the parity. */
static void raid_packet(struct handler_packet *p)
{
    uint64_t parity = draw(4) == 0 ? HANDLER_NONE : draw(BENCH_TARGETS);

    put_packet(p);
    if (draw(10) == 0)
        p->total += 4;
    memcpy(t->b->state, &parity, sizeof(parity));
    memcpy(t->state, &parity, sizeof(parity));
}

/* A packet of a Long. */
static void block_packet(struct handler_packet *p)
{
    uint64_t args[1] = {draw(100)};

    message_packet(p, args, 1);
    p->length = draw(513);
    p->offset = draw(12) * 512;
    p->total = 12 * 512;
}

static void begin_rows(uint8_t *state, uint8_t *region)
{
    (void)state;
    for (unsigned i = 0; i < BENCH_HOST / 32; i++) {
        uint64_t id = draw(40);

        memcpy(region + 32 * i, &id, 8);
    }
}

static void query_packet(struct handler_packet *p)
{
    uint64_t rows = BENCH_HOST / 32, first = draw(rows);
    uint64_t args[3] = {draw(40), first, draw(rows - first + 1)};

    message_packet(p, args, 3);
}

static void begin_table(uint8_t *state, uint8_t *region)
{
    uint64_t head[2] = {BENCH_HOST / 64, 0};

    memcpy(state, head, sizeof(head));
    memset(region, 0, BENCH_HOST);
}

static void key_value_packet(struct handler_packet *p)
{
    uint64_t args[2] = {draw(3), 1 + draw(300)};

    message_packet(p, args, 2);
    if (args[0] == 1)
        p->length = p->total = draw(50);
}

static void begin_broadcast(uint8_t *state, uint8_t *region)
{
    uint64_t head[2] = {0, BENCH_TARGETS};

    (void)region;
    memcpy(state, head, sizeof(head));
}

/* A packet of a client that puts, or reads the log. */
static void logged_packet(struct handler_packet *p)
{
    put_packet(p);
    if (draw(2) == 0)
        p->kind = HANDLER_OBSERVED;
    if (draw(100) == 0) {
        memcpy(t->b->state + 8, t->b->state, 8);
        memcpy(t->state + 8, t->state, 8);
    }
}

/* A graph: vertices of 24 bytes, with up to 20 edges of 16 bytes each. */
enum { VERTICES = 64, EDGES = (BENCH_HOST - VERTICES * 24) / 16 };

static void begin_graph(uint8_t *state, uint8_t *region)
{
    uint64_t head[2] = {VERTICES, 0};

    memcpy(state, head, sizeof(head));
    for (unsigned i = 0; i < VERTICES; i++) {
        uint64_t vertex[3] = {UINT64_MAX, draw(EDGES - 20), draw(20)};

        memcpy(region + 24 * i, vertex, sizeof(vertex));
    }
    for (unsigned i = 0; i < EDGES; i++) {
        uint32_t edge[4] = {(uint32_t)draw(BENCH_TARGETS), (uint32_t)draw(50),
                            (uint32_t)draw(VERTICES), 0};

        memcpy(region + 24 * VERTICES + 16 * i, edge, sizeof(edge));
    }
}

static void distance_packet(struct handler_packet *p)
{
    uint64_t args[2] = {draw(VERTICES), 3000 - draw(3000)};

    message_packet(p, args, 2);
}

/* Slots of 48 bytes in any state, each with a part for the receiver and one for the sender. */
enum { TAGS = 64 };

static void begin_slots(uint8_t *state, uint8_t *region)
{
    uint64_t slots = TAGS;

    (void)region;
    memcpy(state, &slots, 8);
    for (unsigned i = 0; i < TAGS; i++) {
        uint64_t slot[6] = {draw(2), draw(100) * 8, draw(600)};

        memcpy(state + 8 + sizeof(slot) * i, slot, sizeof(slot));
    }
}

/* A request of any tag; or the get for a tag has ended, and the receiver posts its next receive. */
static void request_packet(struct handler_packet *p)
{
    uint64_t args[3] = {draw(TAGS + 2), draw(1000), draw(500)}, next = draw(2);
    uint64_t tag = draw(TAGS);

    put_packet(p);
    message_packet(p, args, 3);
    p->flags = 0;
    if (draw(2) == 0)
        return;
    p->kind = HANDLER_GOT;
    p->flags = draw(10) == 0 ? HANDLER_FAILED : 0;
    p->id = tag;
    tag = 8 + 48 * (p->id + 1 < TAGS ? p->id + 1 : 0);
    memcpy(t->b->state + tag, &next, 8);
    memcpy(t->state + tag, &next, 8);
}

static const struct {
    const char *name;
    void (*begin)(uint8_t *state, uint8_t *region);
    void (*packet)(struct handler_packet *p);
    unsigned returns; /* bits: the first handler must have returned all of these */
} scenarios[] = {
    {"accumulate", begin_numbers, numbers_packet, 1 << HANDLER_SUCCESS},
    {"broadcast", begin_broadcast, put_packet, 1 << HANDLER_PROCESS_DATA | 1 << HANDLER_DROP},
    {"checksum", begin_words, block_packet, 1 << HANDLER_PROCESS_DATA},
    {"conditional_read", begin_rows, query_packet, 1 << HANDLER_DROP},
    {"counter", begin_words, put_packet, 1 << HANDLER_PROCEED},
    {"key_value", begin_table, key_value_packet,
     1 << HANDLER_DROP | 1 << HANDLER_DEFER | 1 << HANDLER_FAIL},
    {"ping_pong", begin_words, put_packet, 1 << HANDLER_PROCESS_DATA | 1 << HANDLER_DROP},
    {"raid5", begin_words, raid_packet, 1 << HANDLER_PROCESS_DATA | 1 << HANDLER_FAIL},
    {"rendezvous", begin_slots, request_packet,
     1 << HANDLER_DROP | 1 << HANDLER_FAIL | 1 << HANDLER_SUCCESS},
    {"shortest_paths", begin_graph, distance_packet, 1 << HANDLER_DROP | 1 << HANDLER_DEFER},
    {"strided", begin_blocks, part_packet, 1 << HANDLER_SUCCESS},
    {"transaction_log", begin_words, logged_packet, 1 << HANDLER_PROCEED | 1 << HANDLER_FAIL},
};

/* ---- both runs ------------------------------------------------------------------------------- */

static bool same_send(const struct bench_send *a, const struct pwc_h_sent *s)
{
    uint32_t flags = a->send.flags | (a->send.counter == HANDLER_NONE ? 0 : a->send.counter + 1);

    return a->send.helper == s->helper && a->send.target == s->target && flags == s->flags &&
           a->send.index == s->index && a->send.offset == s->off && a->send.id == s->id &&
           a->send.host_offset == s->host_off && a->send.length == s->n &&
           a->send.value == s->value && a->send.arguments == s->nargs &&
           memcmp(a->args, s->args, 8 * s->nargs) == 0 &&
           (!a->send.from || memcmp(a->payload, s->bytes, s->n) == 0);
}

static void compare(void)
{
    CU_ASSERT_EQUAL(memcmp(t->b->state, t->state, BENCH_STATE), 0);
    CU_ASSERT_EQUAL(memcmp(t->b->region, t->region, BENCH_HOST), 0);
    CU_ASSERT_EQUAL(t->b->sent, t->world.sends);
    for (unsigned i = 0; i < t->b->sent; i++)
        CU_ASSERT(same_send(&t->b->sends[i], &t->sent[i]));
}

/* Runs one handler on both sides, compares, and gives what it returned. */
static int run_stage(enum handler_stage stage, unsigned room)
{
    static int (*const functions[])(const struct pwc_h_packet *, void *) = {header, payload,
                                                                            completion};
    const struct handler_packet *p = &t->b->context;
    struct pwc_h_packet packet;
    int returned;

    memcpy(&packet, p, sizeof(packet));
    packet.header = t->b->packet + ARGUMENTS;
    packet.data = t->b->packet;
    t->b->sent = t->world.sends = 0;
    t->b->room = t->world.room = room;
    returned = functions[stage](&packet, t->state);
    bench_run_image(t->b, stage);
    CU_ASSERT_EQUAL(t->b->run.fault, RUN_NO_FAULT);
    CU_ASSERT_EQUAL(t->b->run.returned, returned);
    compare();
    return returned;
}

/* Runs a handler, now and then without room at first. */
static int run_again(enum handler_stage stage)
{
    int returned = run_stage(stage, draw(8) == 0 ? 0 : BENCH_SENDS);

    if (returned != HANDLER_AGAIN)
        return returned;
    t->b->context.flags |= HANDLER_RERUN;
    returned = run_stage(stage, BENCH_SENDS);
    t->b->context.flags &= ~(uint32_t)HANDLER_RERUN;
    return returned;
}

static void run_message(void)
{
    const uint32_t *entry = t->b->run.image->entry;
    int verdict = HANDLER_PROCESS_DATA, returned = HANDLER_SUCCESS;

    if (t->b->context.kind == HANDLER_GOT) {
        t->kinds[run_again(HANDLER_COMPLETION) & 7]++;
        return;
    }
    if (entry[HANDLER_HEADER] != HANDLER_NONE)
        verdict = run_again(HANDLER_HEADER);
    if ((verdict & HANDLER_RETURN_MASK) == HANDLER_PROCESS_DATA) {
        if (entry[HANDLER_PAYLOAD] != HANDLER_NONE)
            returned = run_again(HANDLER_PAYLOAD);
        if (entry[HANDLER_COMPLETION] != HANDLER_NONE)
            run_again(HANDLER_COMPLETION);
    }
    t->kinds[(entry[HANDLER_HEADER] != HANDLER_NONE ? verdict : returned) & 7]++;
}

static void test_twins(void)
{
    struct program_error error = {""};
    size_t s = 0;

    while (s < COUNT(scenarios) && strcmp(scenarios[s].name, name) != 0)
        s++;
    CU_ASSERT_FATAL(s < COUNT(scenarios));
    CU_ASSERT_EQUAL(object_load(t->b, object, &error), 0);
    if (error.text[0])
        printf("%s\n", error.text);
    CU_ASSERT_EQUAL_FATAL(error.text[0], 0);
    t->b->run.time = UINT64_MAX;
    scenarios[s].begin(t->b->state, t->b->region);
    memcpy(t->state, t->b->state, BENCH_STATE);
    memcpy(t->region, t->b->region, BENCH_HOST);
    for (unsigned i = 0; i < PACKETS; i++) {
        scenarios[s].packet(&t->b->context);
        run_message();
    }
    for (unsigned kind = 0; kind < 8; kind++)
        CU_ASSERT_EQUAL(t->kinds[kind] > 0, scenarios[s].returns >> kind & 1);
}

/* ---- packets in any order -------------------------------------------------------------------- */

enum { PART = 512, PARTS = 12, ORDERS = 50 };

static uint8_t whole_put[PART * PARTS];
static uint64_t sent_sum; /* over all that a put's handlers have sent, in any order */

static uint64_t mixed(uint64_t sum, const void *bytes, size_t n)
{
    for (const uint8_t *at = bytes, *end = at + n; at < end; at++)
        sum = (sum ^ *at) * UINT64_C(1099511628211);
    return sum;
}

static void add_sends(void)
{
    for (unsigned i = 0; i < t->b->sent; i++) {
        const struct bench_send *s = &t->b->sends[i];
        const uint64_t words[] = {s->send.helper, s->send.target, s->send.offset, s->send.length,
                                  s->send.id};

        sent_sum += mixed(mixed(1, words, sizeof(words)), s->payload, s->send.length);
    }
}

static int run_packet(enum handler_stage stage, unsigned part)
{
    struct handler_packet *p = &t->b->context;
    int returned;

    if (t->b->run.image->entry[stage] == HANDLER_NONE)
        return stage == HANDLER_HEADER ? HANDLER_PROCESS_DATA : HANDLER_SUCCESS;
    p->flags = (part == 0 ? HANDLER_FIRST : 0) | (part == PARTS - 1 ? HANDLER_LAST : 0);
    p->kind = HANDLER_PUT;
    p->source = 1;
    p->id = 1;
    p->length = PART;
    p->total = sizeof(whole_put);
    p->offset = p->place = part * PART;
    memcpy(t->b->packet, whole_put + p->offset, PART);
    returned = run_again(stage);
    add_sends();
    return returned & HANDLER_RETURN_MASK;
}

/* Runs the header handler, the payload handler on each packet in this order, and the completion
 * handler. Returns false if the example takes no puts, or lets them be placed. */
static bool run_put(void (*start)(uint8_t *state, uint8_t *region), const unsigned *order)
{
    random_state = 2; /* all orders begin with the same random bytes */
    memset(t->b->state, 0, BENCH_STATE);
    memset(t->b->region, 0, BENCH_HOST);
    start(t->b->state, t->b->region);
    memcpy(t->state, t->b->state, BENCH_STATE);
    memcpy(t->region, t->b->region, BENCH_HOST);
    sent_sum = 0;
    if (run_packet(HANDLER_HEADER, 0) != HANDLER_PROCESS_DATA ||
        t->b->run.image->entry[HANDLER_PAYLOAD] == HANDLER_NONE)
        return false;
    for (unsigned i = 0; i < PARTS; i++)
        CU_ASSERT_EQUAL(run_packet(HANDLER_PAYLOAD, order[i]), HANDLER_SUCCESS);
    CU_ASSERT_EQUAL(run_packet(HANDLER_COMPLETION, PARTS - 1), HANDLER_SUCCESS);
    return true;
}

static void shuffle(unsigned *order)
{
    for (unsigned i = PARTS - 1; i > 0; i--) {
        unsigned other = (unsigned)draw(i + 1), kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
}

/* Guards a promise to the authors of handlers: payload handlers may run in any order between the
 * header handler and the completion handler. The region, and what is sent, must be the same as in
 * the order of the packets. */
static void test_any_order(void)
{
    static uint8_t expected[BENCH_HOST];
    struct program_error error = {""};
    unsigned order[PARTS];
    uint64_t sum, seed = 5;
    size_t s = 0;

    while (strcmp(scenarios[s].name, name) != 0)
        s++;
    CU_ASSERT_EQUAL_FATAL(object_load(t->b, object, &error), 0);
    t->b->run.time = UINT64_MAX;
    for (unsigned i = 0; i < PARTS; i++)
        order[i] = i;
    for (unsigned i = 0; i < sizeof(whole_put) / 8; i++) {
        double value = 1 + (double)draw(1000) / 700;

        memcpy(whole_put + 8 * i, &value, 8);
    }
    if (!run_put(scenarios[s].begin, order))
        return;
    memcpy(expected, t->b->region, BENCH_HOST);
    sum = sent_sum;
    for (unsigned i = 0; i < ORDERS; i++) {
        random_state = seed;
        shuffle(order);
        seed = random_state;
        CU_ASSERT_FATAL(run_put(scenarios[s].begin, order));
        CU_ASSERT_EQUAL(memcmp(t->b->region, expected, BENCH_HOST), 0);
        CU_ASSERT_EQUAL(sent_sum, sum);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"interpreter and host", test_twins},
                           {"packets in any order", test_any_order},
                           CU_TEST_INFO_NULL};
    static struct twin twin;

    if (argc != 3)
        return 2;
    name = argv[1];
    object = argv[2];
    t = &twin;
    t->b = bench_new();
    t->world = (struct pwc_h_world){.host = t->region, .sent = t->sent, .targets = BENCH_TARGETS};
    pwc_h_enter(&t->world);
    return suite_run("example", tests);
}
