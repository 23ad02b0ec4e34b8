/*
 * A probe of speculation on this machine: whether a handler can read past the end of its window by
 * a wrong guess of the processor (window.h).
 *
 *     state window     | secret       the program: value = state[id]; touch line `value` of host
 *     ids 0, 8, ... 56 | id 4096
 *
 * Runs within the window train the processor. Then one run uses the secret's place, while the
 * windows' sizes are not in the cache, so that the check is late. That run ends with a fault; but a
 * wrong guess may have touched the secret's line of the host window, which is then read fast.
 * Another line, chosen at random, shows how often a line is fast by noise.
 *
 *     control: the interpreter with a check by a branch (unmasked.h)   must show the secret
 *     real:    the interpreter as it is, optimised as the control     must not
 *
 * Where the control shows nothing, the probe says nothing about the real interpreter: then it is
 * skipped (77).
 *
 * Thread: one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/handlers/bench.h"

enum { SKIPPED = 77 };

#if defined(__x86_64__)

#include <x86intrin.h>

enum {
    LINES = 32, /* lines of the host window, one on each page */
    PAGE = 4096,
    WINDOW = 64,
    SECRET_AT = 4096, /* offset in the memory at whose start the state window is */
    TRAINED = 1,      /* byte at each id of the window */
    TRAINING = 24,    /* runs before the one with the secret's place */
    TRIALS = 400,
    ROUNDS_MAX = 5,
    SHOWN = TRIALS / 4,   /* trials in which the control must show the secret; else skip the test */
    HIDDEN = TRIALS / 16, /* in fewer trials than this the real interpreter may show the secret */
};

void unmasked_run(struct vm *vm, struct run *r);
void probed_run(struct vm *vm, struct run *r); /* the interpreter as it is, optimised */

typedef void run_function(struct vm *vm, struct run *r);

static _Alignas(PAGE) uint8_t host[LINES * PAGE], state[2 * PAGE];
/* The run, whose sizes of windows have cache lines of their own. */
static _Alignas(64) uint8_t memory[sizeof(struct run) + 64];
static struct bench *bench;
static uint64_t random_state = 1;
static uint64_t slow; /* a line that takes so many ticks or more was not in the cache */

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

/* ---- the cache ------------------------------------------------------------------------------- */

static uint64_t ticks_of(const uint8_t *at)
{
    unsigned aux;
    uint64_t begin, end;

    _mm_mfence();
    _mm_lfence();
    begin = __rdtscp(&aux);
    _mm_lfence();
    (void)*(volatile const uint8_t *)at;
    _mm_lfence();
    end = __rdtscp(&aux);
    return end - begin;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sets `slow` to the middle between the times of a line in the cache and one that is not. Returns
 * false if they take the same time. */
static bool calibrate(void)
{
    static uint64_t near[1001], far[1001];

    for (uint32_t i = 0; i < COUNT(near); i++) {
        (void)ticks_of(host);
        near[i] = ticks_of(host);
        _mm_clflush(host);
        far[i] = ticks_of(host);
    }
    qsort(near, COUNT(near), sizeof(near[0]), by_size);
    qsort(far, COUNT(far), sizeof(far[0]), by_size);
    slow = (near[COUNT(near) / 2] + far[COUNT(far) / 2]) / 2;
    return far[COUNT(far) / 10] > near[9 * COUNT(near) / 10] + 20;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static struct run *the_run(void)
{
    size_t before = offsetof(struct run, windows) % 64;

    return (struct run *)(void *)(memory + (64 - before) % 64);
}

/* Loads the program, with this instruction as the load of the secret. */
static void load_program(uint8_t opcode)
{
    const struct handler_instruction code[] = {
        OP_NUMBER(5, handler_address(HANDLER_HOST, 0)),
        op(CODE_LDX | CODE_MEM | CODE_DW, 3, 1, offsetof(struct handler_packet, id), 0),
        op(CODE_ALU64 | CODE_ADD | CODE_X, 3, 2, 0, 0),
        op(opcode, 4, 3, 0, 0),
        op(CODE_ALU64 | CODE_LSH, 4, 0, 0, 12),
        op(CODE_ALU64 | CODE_ADD | CODE_X, 4, 5, 0, 0),
        op(CODE_LDX | CODE_MEM | CODE_B, 6, 4, 0, 0),
        op_set(0, HANDLER_SUCCESS),
        op_exit(),
    };
    struct run *r = the_run();

    bench_program(bench, HANDLER_PAYLOAD, code, COUNT(code));
    *r = bench->run;
    window_set(&r->windows, HANDLER_STATE, state, WINDOW);
    window_set(&r->windows, HANDLER_HOST, host, sizeof(host));
}

/* Removes all lines of the host window, and the sizes of the windows, from the cache; the secret
 * stays there. */
static void flush(void)
{
    struct run *r = the_run();

    for (uint32_t i = 0; i < LINES; i++)
        _mm_clflush(host + i * PAGE);
    for (unsigned access = 0; access < WINDOW_ACCESSES; access++)
        _mm_clflush(&r->windows.size[access]);
    (void)*(volatile uint8_t *)(state + SECRET_AT);
    _mm_mfence();
    _mm_lfence();
}

/* Makes the training runs, and the run with the secret's place. They differ in nothing by which the
 * processor could recognise the last one. */
static void train_and_run(run_function *run)
{
    uint64_t id[TRAINING + 1];

    for (uint32_t i = 0; i < TRAINING; i++)
        id[i] = draw(WINDOW / 8) * 8;
    id[TRAINING] = SECRET_AT;
    for (uint32_t i = 0; i <= TRAINING; i++) {
        bench->context.id = id[i];
        flush();
        run(&bench->vm, the_run());
    }
}

/* Reads line `first`, then line `second`. Returns 1 if the first was fast, plus 2 if the second
 * was.
 */
static uint32_t look(uint32_t first, uint32_t second)
{
    uint32_t fast = ticks_of(host + first * PAGE) < slow;

    return fast | (uint32_t)(ticks_of(host + second * PAGE) < slow) << 1;
}

/* Makes one attempt. Returns 1 if the secret's line was touched, plus 2 if the other line was. */
static uint32_t attempt(run_function *run)
{
    uint32_t secret = 2 + draw(LINES - 2), other = 2 + draw(LINES - 3), fast;

    other += other >= secret;
    for (uint32_t i = 0; i < WINDOW; i += 8)
        state[i] = TRAINED;
    state[SECRET_AT] = (uint8_t)secret;
    train_and_run(run);
    if (the_run()->fault != RUN_BAD_ADDRESS) {
        printf("the secret's place is not refused\n");
        exit(1);
    }
    if (draw(2) == 0)
        return look(secret, other);
    fast = look(other, secret);
    return fast >> 1 | (fast & 1) << 1;
}

/* How much more often the secret's line was touched than the other line, in TRIALS attempts. */
static int shown(run_function *run)
{
    int more = 0;

    for (uint32_t i = 0; i < TRIALS; i++) {
        uint32_t fast = attempt(run);

        more += (int)(fast & 1) - (int)(fast >> 1);
    }
    return more;
}

/* ---- the probe ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t opcode;
} loads[] = {
    {"load8", CODE_LDX | CODE_MEM | CODE_B},
    {"load16", CODE_LDX | CODE_MEM | CODE_H},
    {"load32", CODE_LDX | CODE_MEM | CODE_W},
    {"load64", CODE_LDX | CODE_MEM | CODE_DW},
    {"load8, signed", CODE_LDX | CODE_MEMSX | CODE_B},
    {"load16, signed", CODE_LDX | CODE_MEMSX | CODE_H},
    {"load32, signed", CODE_LDX | CODE_MEMSX | CODE_W},
};

/* Returns 0 if the secret is hidden, 1 if it is shown again and again, SKIPPED if the control shows
 * nothing. */
static int probe(size_t load)
{
    int control = 0, real = 0;

    load_program(loads[load].opcode);
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        control = shown(unmasked_run);
        real = shown(probed_run);
        if (control < SHOWN || real < HIDDEN)
            break;
    }
    printf("%-16s %4d of %d without the rule, %4d with it\n", loads[load].name, control, TRIALS,
           real);
    if (control < SHOWN)
        return SKIPPED;
    return real >= HIDDEN;
}

int main(void)
{
    int result = SKIPPED;

    bench = bench_new();
    memset(host, 1, sizeof(host));
    if (!calibrate()) {
        printf("skipped: this machine's clock shows no difference between cache and memory\n");
        return SKIPPED;
    }
    for (size_t i = 0; i < COUNT(loads); i++) {
        int one = probe(i);

        if (one != SKIPPED)
            result = result == 1 ? 1 : one;
    }
    if (result == SKIPPED)
        printf("skipped: this machine shows nothing even without the rule\n");
    return result;
}

#else

int main(void)
{
    printf("skipped: the probe knows only x86-64\n");
    return SKIPPED;
}

#endif
