/*
 * A table of keys and values that answers while its owner computes: the daemon runs the handlers of
 * handlers/key_value.c on the requests. Rank 0 owns the table, and makes no call of libpwc for a
 * second; the others insert and look up meanwhile, and print how long an answer takes.
 *
 * Run: pwcrun --nodes 2 -n 3 -- build/examples/dictionary build/examples/handlers/key_value.o
 */
#include <pwc/am.h>
#include <pwc/offload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLE };                   /* the index of requests, and of the handlers' replies */
enum { GET, INSERT };             /* operations of key_value.c */
enum { SLOTS = 4096, SLOT = 64 }; /* slots of the table; bytes of a slot */
enum { KEYS = 500, ELF_MAX = 65536 };

#define CHECK(call) check(#call, call)
static int check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- rank 0 --------------------------------------------------------------------------------- */

static pwc_program *load(pwc_client *client, const char *path)
{
    static char elf[ELF_MAX];
    FILE *file = fopen(path, "rb");
    pwc_program *program;
    size_t size;

    if (!file) {
        perror(path);
        exit(1);
    }
    size = fread(elf, 1, sizeof(elf), file);
    fclose(file);
    CHECK(pwc_program_load(client, elf, size, NULL, &program));
    return program;
}

static void own_the_table(pwc_client *client, pwc_ctx *ctx, const char *path)
{
    struct pwc_offload_attr attr = {.index = TABLE, .flags = PWC_OFFLOAD_QUIET};
    double end;
    pwc_offload *offload;

    attr.program = load(client, path);
    attr.state_length = SLOT;
    CHECK(pwc_alloc(client, SLOTS * SLOT, PWC_REMOTE_RW, &attr.host));
    CHECK(pwc_alloc(client, attr.state_length, PWC_REMOTE_RW, &attr.state));
    *(uint64_t *)pwc_region_addr(attr.state) = SLOTS;
    CHECK(pwc_offload_create(ctx, &attr, &offload));

    CHECK(pwc_barrier(ctx)); /* the table is there */
    for (end = seconds() + 1; seconds() < end;)
        continue; /* the work */
    printf("rank 0 computed for a second, and has %llu keys\n",
           (unsigned long long)((uint64_t *)pwc_region_addr(attr.state))[1]);
    CHECK(pwc_barrier(ctx));
    CHECK(pwc_offload_destroy(offload));
    CHECK(pwc_program_unload(attr.program));
}

/* ---- the other ranks ------------------------------------------------------------------------- */

struct answer {
    int here;
    uint64_t found, value;
};

static void on_answer(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct answer *answer = argument;

    (void)ctx;
    answer->here = 1;
    answer->found = am->arguments[0];
    if (am->length == sizeof(answer->value))
        memcpy(&answer->value, am->payload, sizeof(answer->value));
}

/* Sends a request, and waits for its answer, or for an event that says why there is none. */
static void ask(pwc_ctx *ctx, pwc_remote *table, struct answer *answer, uint64_t op, uint64_t key,
                uint64_t value)
{
    const uint64_t arguments[2] = {op, key};
    const struct pwc_am_send send = {.index = TABLE,
                                     .arguments = arguments,
                                     .count = 2,
                                     .src = &value,
                                     .len = op == INSERT ? sizeof(value) : 0,
                                     .flags = PWC_NO_LCE};
    struct pwc_event event;

    answer->here = 0;
    CHECK(pwc_am_medium(table, &send));
    while (!answer->here)
        if (CHECK(pwc_wait(ctx, PWC_ANY, PWC_MESSAGE | PWC_LOCAL, &event, 1000)) == 1)
            check("the request", event.status);
}

static void use_the_table(pwc_client *client, pwc_ctx *ctx)
{
    uint64_t rank = pwc_rank(client), wrong = 0;
    struct answer answer = {0};
    pwc_remote *table;
    double begin;

    CHECK(pwc_am_register(ctx, TABLE, on_answer, &answer));
    CHECK(pwc_barrier(ctx));
    CHECK(pwc_bind(ctx, pwc_peer_of(0, 0), NULL, &table));
    begin = seconds();
    for (uint64_t key = 1; key <= KEYS; key++)
        ask(ctx, table, &answer, INSERT, rank * KEYS + key, key * key);
    for (uint64_t key = 1; key <= KEYS; key++) {
        ask(ctx, table, &answer, GET, rank * KEYS + key, 0);
        wrong += !answer.found || answer.value != key * key;
    }
    printf("rank %u: %u answers, %.0f us each, %u wrong\n", (unsigned)rank, 2 * KEYS,
           (seconds() - begin) / (2 * KEYS) * 1e6, (unsigned)wrong);
    CHECK(pwc_barrier(ctx));
    if (wrong > 0)
        exit(1);
}

int main(int argc, char **argv)
{
    pwc_client *client;
    pwc_ctx *ctx;

    if (argc != 2) {
        fprintf(stderr, "usage: dictionary KEY_VALUE.o\n");
        return 2;
    }
    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    if (pwc_rank(client) == 0)
        own_the_table(client, ctx, argv[1]);
    else
        use_the_table(client, ctx);
    CHECK(pwc_finalize(client));
    return 0;
}
