/*
 * The cost of a handler on a packet: in the interpreter, from clang's object file, and native, from
 * the same C file compiled for the host. Prints a line for each handler: ns of processor time for a
 * packet, the median of 5 rounds that alternate, and the units of a run. The windows are set again
 * for each packet, as in a daemon; a send copies its payload.
 *
 *     handler_cost OBJECT...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define PWC_HANDLER_HOST
#include <pwc/handler.h>
#include "tests/handlers/object.h"

enum { ROUNDS = 5, ROUND_NS = 20000000, MAX_ROWS = 16 };

typedef int handler(const struct pwc_h_packet *p, void *state);

extern handler empty_payload, answer_payload, sums_payload, own_loop_payload, blocks_payload,
    copies_payload;

static const struct {
    const char *title, *object;
    handler *native; /* NULL: the native handler would never end */
    uint64_t bytes;
} rows[] = {
    {"empty", "empty.o", empty_payload, 4096},
    {"ping-pong: state, decision, a put of 8 B", "answer.o", answer_payload, 8},
    {"the same with 4 KiB", "answer.o", answer_payload, 4096},
    {"512 doubles added by the helper", "sums.o", sums_payload, 4096},
    {"512 integers added by its own loop", "own_loop.o", own_loop_payload, 4096},
    {"64 blocks of 64 B by scatter", "blocks.o", blocks_payload, 4096},
    {"64 blocks of 64 B by a copy each", "copies.o", copies_payload, 4096},
    {"endless loop, stopped at 25000 units", "endless.o", NULL, 4096},
};

struct cost {
    struct bench *b;
    struct pwc_h_world world;
    struct pwc_h_sent sent[1];
    struct pwc_h_packet packet;
};

static void run_here(struct cost *c)
{
    struct bench *b = c->b;

    windows_clear(&b->run.windows);
    window_set(&b->run.windows, HANDLER_STACK, b->stack, HANDLER_STACK_BYTES);
    window_set_constant(&b->run.windows, HANDLER_CONTEXT, &b->context, sizeof(b->context));
    window_set_constant(&b->run.windows, HANDLER_PACKET, b->packet, BENCH_PACKET);
    window_set(&b->run.windows, HANDLER_STATE, b->state, BENCH_STATE);
    window_set(&b->run.windows, HANDLER_HOST, b->region, BENCH_HOST);
    b->sent = 0;
    bench_run_image(b, HANDLER_PAYLOAD);
}

/* Processor time of this thread: other programs do not count. */
static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Runs a round. Returns the ns for one packet. */
static double round_of(struct cost *c, handler *native)
{
    uint64_t begun = cpu_ns(), now = begun, runs = 0;

    do {
        for (int i = 0; i < 64; i++) {
            if (native) {
                c->world.sends = 0;
                native(&c->packet, c->b->state);
            } else {
                run_here(c);
            }
        }
        runs += 64;
        now = cpu_ns();
    } while (now - begun < ROUND_NS);
    return (double)(now - begun) / (double)runs;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(struct cost *c, size_t row, const char *path)
{
    struct program_error error = {""};
    double vm[ROUNDS], native[ROUNDS] = {0};

    bench_reset(c->b);
    if (object_load(c->b, path, &error) != 0) {
        fprintf(stderr, "%s: %s\n", path, error.text);
        exit(1);
    }
    memset(c->b->region, 0, BENCH_HOST);
    memset(c->b->packet, 0, BENCH_PACKET);
    c->b->host.clock = NULL;
    c->b->run.units = 25000;
    c->b->context.length = rows[row].bytes;
    memcpy(&c->packet, &c->b->context, sizeof(c->packet));
    c->packet.data = c->b->packet;
    for (int i = 0; i < ROUNDS; i++) {
        vm[i] = round_of(c, NULL);
        native[i] = rows[row].native ? round_of(c, rows[row].native) : 0;
    }
    qsort(vm, ROUNDS, sizeof(vm[0]), by_value);
    qsort(native, ROUNDS, sizeof(native[0]), by_value);
    printf("| %s | %.0f | ", rows[row].title, vm[ROUNDS / 2]);
    if (rows[row].native)
        printf("%.0f | ", native[ROUNDS / 2]);
    else
        printf("- | ");
    printf("%" PRIu64 " |\n", c->b->run.used);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct cost cost;
    struct cost *c = &cost;

    c->b = bench_new();
    c->world = (struct pwc_h_world){
        .host = c->b->region, .sent = c->sent, .room = 1, .targets = BENCH_TARGETS};
    pwc_h_enter(&c->world);
    printf("| handler, packet of 4 KiB | ns | native, ns | units |\n|---|---|---|---|\n");
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (int i = 1; i < argc; i++)
            if (strcmp(strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i],
                       rows[row].object) == 0)
                measure(c, row, argv[i]);
    return 0;
}
