/*
 * Fuzzes what another node writes into the ledger that we offered it. An input is a sequence of
 * (control byte, number of words, words): records, one or more in a run, with their length repaired
 * where the control byte says so; a broken link is made again. With HANDLERS in the first control
 * byte there are offloads: packets go to a region with an offload, batches with HANDLERS in their
 * own control byte go there, too, messages may go to another offload, and the client has not bound
 * itself.
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/handlers/image.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/bench/record_bench.h"
#include "tests/engine/offload/assemble.h"
#include "proto/wire_abi.h"

enum repair {
    REPAIR_WORDS = 1 << 0,
    REPAIR_FLOW = 1 << 1, /* names the existing inflow or flow */
    REPAIR_KEY = 1 << 2,  /* the key in a packed put, a packet, a bind or a Long */
    PAYLOAD = 1 << 3,     /* announces a payload in place of a run */
    CONSUME = 1 << 4,     /* the client consumes its events */
    WAIT = 1 << 5,
    HANDLERS = 1 << 6, /* first byte: with offloads; of a batch: to the offload's region */
};

#define RING 65536u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The objects that a record may name. */
struct scene {
    struct bench *b;
    struct engine_key packets; /* key of the region that accepts packets */
    uint32_t offload;          /* handle of that region's offload */
    uint32_t messages;         /* handle of the offload of messages */
};

/* The block of a record, if it is an active message, or NULL. */
static struct message *message_in(uint8_t *record, uint32_t size)
{
    const struct wire_record *head = (const struct wire_record *)(const void *)record;
    uint32_t at = head->kind == WIRE_PUT ? sizeof(struct wire_put) : sizeof(struct wire_op);

    if (size < at + sizeof(struct message) || !(head->flags & WIRE_MESSAGE))
        return NULL;
    return (struct message *)(void *)(record + at);
}

static void repair(const struct scene *s, uint8_t how, uint8_t *record, uint32_t size)
{
    const struct bench *b = s->b;
    struct wire_record *head = (struct wire_record *)(void *)record;
    struct wire_put *put = (struct wire_put *)(void *)record;
    struct wire_batch *batch = (struct wire_batch *)(void *)record;
    struct wire_vector *vector = (struct wire_vector *)(void *)record;
    struct wire_bind *bind = (struct wire_bind *)(void *)record;
    struct message *message;

    if (how & REPAIR_WORDS)
        head->words = (uint16_t)(size / 8);
    head->kind %= WIRE_KINDS + 1;
    if (how & REPAIR_FLOW && size >= sizeof(struct wire_op))
        put->op.flow = bench_inflow(b);
    if (how & REPAIR_KEY && head->kind == WIRE_PUT && size >= sizeof(*put)) {
        put->slot = b->key.slot;
        put->generation = b->key.generation;
    }
    if (how & REPAIR_KEY && (head->kind == WIRE_PACKET || head->kind == WIRE_OBSERVED) &&
        size >= sizeof(*put)) {
        put->slot = s->packets.slot;
        put->generation = s->packets.generation;
    }
    if (how & REPAIR_KEY && head->kind == WIRE_BATCH && size >= sizeof(*batch)) {
        const struct engine_key *key = how & HANDLERS ? &s->packets : &b->key;

        batch->slot = key->slot;
        batch->generation = key->generation;
    }
    if (how & REPAIR_KEY && (head->kind == WIRE_VECTOR || head->kind == WIRE_STRIDED) &&
        size >= sizeof(*vector)) { /* both begin alike */
        vector->slot = b->key.slot;
        vector->generation = b->key.generation;
    }
    if (how & REPAIR_KEY && head->kind == WIRE_BIND && size >= sizeof(*bind)) {
        bind->slot = b->key.slot;
        bind->generation = b->key.generation;
        memcpy(bind->secret, b->key.secret, sizeof(bind->secret));
        memcpy(bind->job, "j", 2);
    }
    message = message_in(record, size);
    if (how & REPAIR_KEY && message) {
        message->slot = b->key.slot;
        message->generation = b->key.generation;
        message->index %= 2;
    }
}

static void consume(struct ring_control *ring)
{
    atomic_store(&ring->head, atomic_load(&ring->tail));
}

/* Makes a new link, and a flow to the client's region. */
static bool link_up(struct bench *b)
{
    if (b->broken)
        engine_peer_lost(b->engine, 1);
    if (bench_link(b) < 0)
        return false;
    bench_bind(b, 5);
    return !b->broken;
}

/* Loads a program whose handlers return words of the client's memory: the handler of stage i
 * returns word i. */
static int load(const struct bench *b)
{
    const struct handler_instruction code[] = {
        NUMBER(1, handler_address(HANDLER_HOST, 0)),
        LOAD(0, 1, 0),
        EXIT,
        NUMBER(1, handler_address(HANDLER_HOST, 8)),
        LOAD(0, 1, 0),
        EXIT,
        ALU(CODE_MOV, 1, 0),
        ALU(CODE_MOV, 2, 1),
        HELPER(HELPER_COUNTER_ADD),
        NUMBER(1, handler_address(HANDLER_HOST, 16)),
        LOAD(0, 1, 0),
        EXIT,
    };
    uint64_t words[64] = {0};
    struct handler_image *image = (struct handler_image *)(void *)words;
    uint32_t count = sizeof(code) / sizeof(code[0]);
    struct image_error wrong;

    *image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC, .instructions = count, .entry = {0, 4, 8}};
    memcpy(words + 5, code, sizeof(code));
    if (image_check(words, (uint32_t)image_bytes(count, 0, 0), &wrong) < 0)
        return -EINVAL;
    return engine_program_load(b->engine, 0, image, (uint32_t)image_bytes(count, 0, 0));
}

/* Makes an offload for a region of its own, and one for messages with index 1, whose Longs go to
 * the other region; sets the first returns of the handlers. */
static bool add_offload(struct scene *s)
{
    struct bench *b = s->b;
    int program = load(b), offload = -ENOMEM;

    if (program >= 0 && engine_region_open(b->engine, 0, 0, 0, BENCH_SEGMENT, 3, &s->packets) == 0)
        offload = engine_offload_create(
            b->engine, 0,
            &(struct engine_offload_info){
                .program = (uint32_t)program,
                .takes = OFFLOAD_PUTS,
                .flags = ENGINE_OFFLOAD_PLACED | ENGINE_OFFLOAD_OBSERVE,
                .host = {s->packets.slot, s->packets.generation, 0, BENCH_SEGMENT}},
            0);
    s->offload = (uint32_t)offload;
    if (offload >= 0)
        offload =
            engine_offload_create(b->engine, 0,
                                  &(struct engine_offload_info){
                                      .program = (uint32_t)program,
                                      .index = 1,
                                      .host = {b->key.slot, b->key.generation, 0, BENCH_SEGMENT}},
                                  0);
    s->messages = (uint32_t)offload;
    memcpy(b->segment, (uint64_t[]){HANDLER_PROCESS_DATA, HANDLER_SUCCESS, HANDLER_SUCCESS}, 24);
    bench_steps(b, 2);
    return offload >= 0;
}

/* Opens a bench with a link. Without `handlers` its client has bound itself, after which it can
 * have no offload. */
static void scene_open(struct scene *s, bool handlers)
{
    const struct bench_shape shape = {
        .ring_bytes = RING, .region_bytes = BENCH_SEGMENT, .with_self = !handlers};

    *s = (struct scene){.b = bench_new(&shape)};
    if (!s->b || (handlers && !add_offload(s)) || !link_up(s->b))
        abort();
    atomic_store(&s->b->session->handlers[0], UINT64_MAX);
}

/* Checks the target itself: good records must be accepted; otherwise no input would get past the
 * first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct {
        struct wire_put put;
        uint8_t payload[16];
    } record = {
        .put = {.op = {.head = {.words = sizeof(record) / 8, .kind = WIRE_PUT}, .length = 16},
                .offset = 64},
        .payload = "0123456789abcde"};
    struct wire_packet packet = {
        .put = {.op = {.head = {.words = sizeof(packet) / 8, .kind = WIRE_PACKET}, .sequence = 1}}};
    struct {
        struct wire_op op;
        struct message message;
    } sent = {.op = {.head = {.words = sizeof(sent) / 8,
                              .kind = WIRE_PLACED,
                              .flags = WIRE_MESSAGE | WIRE_NO_REPLY},
                     .sequence = 2,
                     .length = 5000,
                     .rid_len = sizeof(struct message)},
              .message = {.index = 1, .kind = SUBMIT_LONG, .offset = 64}};
    struct scene s;

    scene_open(&s, false);
    repair(&s, REPAIR_FLOW | REPAIR_KEY, (uint8_t *)&record, sizeof(record));
    if (!bench_send(s.b, &record, sizeof(record)) || s.b->broken ||
        memcmp(s.b->segment + 64, record.payload, sizeof(record.payload)) != 0 ||
        atomic_load(&s.b->session->remote.tail) == 0)
        abort();
    bench_free(s.b);
    scene_open(&s, true);
    repair(&s, REPAIR_FLOW | REPAIR_KEY, (uint8_t *)&packet, sizeof(packet));
    if (!bench_send(s.b, &packet, sizeof(packet)) || s.b->broken ||
        peek_offload(s.b->engine, s.offload).counters[0] != 1)
        abort();
    repair(&s, REPAIR_FLOW | REPAIR_KEY, (uint8_t *)&sent, sizeof(sent));
    if (!bench_send(s.b, &sent, sizeof(sent)) || s.b->broken ||
        peek_offload(s.b->engine, s.messages).counters[0] != 1)
        abort();
    bench_free(s.b);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scene s;
    struct bench *b;

    scene_open(&s, size > 0 && data[0] & HANDLERS);
    b = s.b;
    while (size >= 2) {
        uint8_t how = data[0];
        uint32_t bytes = 8u * data[1];
        _Alignas(8) uint8_t record[8 * 255];

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : (uint32_t)size & ~7u;
        if (bytes < sizeof(struct wire_record))
            continue;
        memcpy(record, data, bytes);
        data += bytes;
        size -= bytes;
        repair(&s, how, record, bytes);
        if (how & PAYLOAD) {
            still_push(&b->fabric,
                       &(struct fabric_event){
                           .kind = FABRIC_ARRIVED,
                           .immediate = wire_immediate(WIRE_PAYLOAD, 1,
                                                       (uint16_t)(record[0] | record[1] << 8))});
            bench_steps(b, 2);
        } else if (!bench_send(b, record, bytes)) {
            b->broken = true;
        }
        if (how & WAIT)
            bench_steps(b, 8);
        if (how & CONSUME)
            consume(&b->session->remote);
        if (b->broken && !link_up(b))
            abort();
    }
    bench_steps(b, 16);
    engine_client_close(b->engine, 0);
    bench_steps(b, 16);
    bench_free(b);
    return 0;
}
