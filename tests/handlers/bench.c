/* Windows between guard pages, a host that notes sends, and programs (bench.h). Thread: one. */
#include "tests/handlers/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the host ---- */

static uint64_t clock_look(void *self)
{
    struct bench *b = self;

    b->looks++;
    return b->now += b->tick;
}

static uint64_t now(void *self)
{
    return ((struct bench *)self)->now;
}

static int record(void *self, const struct run_send *send)
{
    struct bench *b = self;
    struct bench_send *s = &b->sends[b->sent % BENCH_SENDS];

    if (b->sent >= b->room)
        return -EAGAIN;
    s->send = *send;
    if (send->arguments > 0)
        memcpy(s->args, send->args, 8 * send->arguments);
    if (send->from)
        memcpy(s->payload, send->from, send->length);
    b->sent++;
    return 0;
}

static uint32_t target_of(void *self, uint64_t peer)
{
    (void)self;
    return peer < BENCH_TARGETS ? (uint32_t)peer : HANDLER_NONE;
}

static uint64_t counter(void *self, uint32_t i)
{
    return ((struct bench *)self)->counters[i];
}

static void counter_set(void *self, uint32_t i, uint64_t value)
{
    ((struct bench *)self)->counters[i] = value;
}

static void trace(void *self, uint64_t a, uint64_t b)
{
    ((struct bench *)self)->traced[0] = a;
    ((struct bench *)self)->traced[1] = b;
}

/* ---- windows ---- */

uint8_t *bench_guarded(size_t size)
{
    const size_t page = 4096;
    uint8_t *at = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED || mprotect(at + page, size, PROT_READ | PROT_WRITE) != 0) {
        perror("bench: guarded memory");
        exit(2);
    }
    return at + page;
}

static void fill(uint8_t *at, size_t size, unsigned salt)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(i * 7 + salt + i / 256);
}

void bench_reset(struct bench *b)
{
    fill(b->state, BENCH_STATE, 1);
    fill(b->region, BENCH_HOST, 2);
    fill(b->scratch, BENCH_SCRATCH, 3);
    fill(b->packet, BENCH_PACKET, 4);
    memset(b->stack, 0, HANDLER_STACK_BYTES);
    memset(b->counters, 0, sizeof(b->counters));
    b->sent = 0;
    b->room = BENCH_SENDS;
    b->now = b->tick = b->looks = 0;
    b->context = (struct handler_packet){
        .kind = HANDLER_PUT,
        .flags = HANDLER_FIRST | HANDLER_LAST,
        .source = 1,
        .peer = 1,
        .data = handler_address(HANDLER_PACKET, 0),
        .length = BENCH_PACKET,
        .total = BENCH_PACKET,
    };
    b->run = (struct run){.image = (const struct handler_image *)b->image,
                          .stage = HANDLER_PAYLOAD,
                          .host = &b->host,
                          .self = b,
                          .client = 1,
                          .units = BENCH_UNITS,
                          .time = 1000000,
                          .targets = BENCH_TARGETS};
    windows_clear(&b->run.windows);
    window_set(&b->run.windows, HANDLER_STACK, b->stack, HANDLER_STACK_BYTES);
    window_set_constant(&b->run.windows, HANDLER_CONTEXT, &b->context, sizeof(b->context));
    window_set_constant(&b->run.windows, HANDLER_PACKET, b->packet, BENCH_PACKET);
    window_set(&b->run.windows, HANDLER_STATE, b->state, BENCH_STATE);
    window_set(&b->run.windows, HANDLER_HOST, b->region, BENCH_HOST);
    window_set(&b->run.windows, HANDLER_SCRATCH, b->scratch, BENCH_SCRATCH);
}

struct bench *bench_new(void)
{
    static struct bench the_one; /* static, because it is as large as an image may be */
    struct bench *b = &the_one;

    b->state = bench_guarded(BENCH_STATE);
    b->region = bench_guarded(BENCH_HOST);
    b->scratch = bench_guarded(BENCH_SCRATCH);
    b->packet = bench_guarded(BENCH_PACKET);
    b->stack = bench_guarded(HANDLER_STACK_BYTES);
    b->host = (struct run_host){.clock = clock_look,
                                .now = now,
                                .send = record,
                                .target_of = target_of,
                                .counter = counter,
                                .counter_set = counter_set,
                                .trace = trace};
    bench_reset(b);
    return b;
}

/* ---- programs ---- */

struct handler_image *bench_program(struct bench *b, enum handler_stage stage,
                                    const struct handler_instruction *code, uint32_t count)
{
    struct handler_image *image = (struct handler_image *)b->image;

    *image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC,
        .instructions = count,
        .entry = {HANDLER_NONE, HANDLER_NONE, HANDLER_NONE},
    };
    image->entry[stage] = 0;
    memset(b->image + sizeof(*image), 0, 8 * ((size_t)count + 2));
    memcpy(b->image + sizeof(*image) + 8, code, 8 * (size_t)count);
    return image;
}

void bench_run_image(struct bench *b, enum handler_stage stage)
{
    b->run.stage = stage;
    vm_run(&b->vm, &b->run);
}

uint64_t bench_run(struct bench *b, const struct handler_instruction *code, uint32_t count)
{
    struct handler_instruction more[HANDLER_INSTRUCTIONS_MAX];
    struct image_error error;
    uint64_t value;

    /* The result goes to the last word of the scratch window, and the handler returns success. */
    memcpy(more, code, 8 * (size_t)count);
    count--; /* leaves out the program's exit */
    more[count++] = op(CODE_LD_DW, 1, 0, 0, BENCH_SCRATCH - 8);
    more[count++] = op(0, 0, 0, 0, (int32_t)(handler_address(HANDLER_SCRATCH, 0) >> 32));
    more[count++] = op(CODE_STX | CODE_MEM | CODE_DW, 1, 0, 0, 0);
    more[count++] = op_set(0, HANDLER_SUCCESS);
    more[count++] = op_exit();
    bench_program(b, HANDLER_PAYLOAD, more, count);
    if (image_check(b->image, image_bytes(count, 0, 0), &error) != 0) {
        fprintf(stderr, "bench: instruction %u: %s (%lld)\n", error.place, error.reason,
                (long long)error.value);
        exit(2);
    }
    bench_run_image(b, HANDLER_PAYLOAD);
    memcpy(&value, b->scratch + BENCH_SCRATCH - 8, 8);
    return value;
}
