/* Owns the table of helpers, and the helpers on bytes and words (helpers.h). Thread: the thread
 * that runs the handler. */
#include "daemon/handlers/helpers.h"

#include <errno.h>
#include <string.h>
#include "daemon/handlers/accumulate.h"
#include "daemon/handlers/number.h"
#include "daemon/handlers/sends.h"
#include "daemon/handlers/vector.h"
#include "shm_ring/word.h"

/* ---- bytes ------------------------------------------------------------------------------------
 */

/* Finds the bytes to read, and takes their units. NULL: the run has failed. A wrong length becomes
 * 0. */
static const uint8_t *to_read(struct run *r, uint64_t address, uint64_t *n)
{
    const uint8_t *at;

    if (!run_take(r, (*n + 31) / 32))
        return NULL;
    at = run_at(r, WINDOW_READ, address, *n);
    *n &= ~window_wrong(&r->windows, WINDOW_READ, address, *n);
    return at;
}

static void copy_down(struct run *r, uint8_t *to, const uint8_t *from, uint64_t n)
{
    for (uint64_t done = 0, begin; done < n; done += RUN_CHUNK) {
        uint64_t part = run_part(n, done, RUN_CHUNK, &begin);
        uint64_t at = (n - begin - part) & window_mask(part);

        if (done > 0 && !run_in_time(r))
            return;
        memmove(to + at, from + at, part);
    }
}

static void copy_up(struct run *r, uint8_t *to, const uint8_t *from, uint64_t n)
{
    for (uint64_t done = 0, at; done < n; done += RUN_CHUNK) {
        uint64_t part = run_part(n, done, RUN_CHUNK, &at);

        if (done > 0 && !run_in_time(r))
            return;
        memmove(to + at, from + at, part);
    }
}

static uint64_t copy(struct run *r, const uint64_t *reg)
{
    uint64_t n = reg[3];
    const uint8_t *from;
    uint8_t *to;

    if (n == 0)
        return 0;
    from = to_read(r, reg[2], &n);
    to = from ? run_at(r, WINDOW_WRITE, reg[1], n) : NULL;
    if (!to)
        return 0;
    n &= ~window_wrong(&r->windows, WINDOW_WRITE, reg[1], n);
    if ((uintptr_t)to > (uintptr_t)from && (uintptr_t)to < (uintptr_t)from + n)
        copy_down(r, to, from, n);
    else
        copy_up(r, to, from, n);
    run_fence();
    return 0;
}

static uint64_t compare(struct run *r, const uint64_t *reg)
{
    uint64_t n = reg[3];
    const uint8_t *a, *b;
    int order = 0;

    if (n == 0)
        return 0;
    a = to_read(r, reg[1], &n);
    b = a ? run_at(r, WINDOW_READ, reg[2], n) : NULL;
    if (!b)
        return 0;
    n &= ~window_wrong(&r->windows, WINDOW_READ, reg[2], n);
    for (uint64_t done = 0, at; done < n && order == 0; done += RUN_CHUNK) {
        uint64_t part = run_part(n, done, RUN_CHUNK, &at);

        if (done > 0 && !run_in_time(r))
            break;
        order = memcmp(a + at, b + at, part);
    }
    run_fence();
    return order == 0 ? 0 : order < 0 ? UINT64_MAX : 1;
}

/* Finds a word of 64 bits in an array of words, at any alignment. */
static uint64_t find(struct run *r, const uint64_t *reg)
{
    uint64_t n = reg[2], found = UINT64_MAX;
    const uint8_t *at;

    if (n == 0)
        return UINT64_MAX;
    /* One unit pays for two words. Units are so few that the number of bytes does not overflow. */
    if (!run_take(r, (n - 1) / 2 + 1))
        return 0;
    n = window_index(n, RUN_COUNT_MAX);
    at = run_at(r, WINDOW_READ, reg[1], 8 * n);
    if (!at)
        return 0;
    n &= ~window_wrong(&r->windows, WINDOW_READ, reg[1], 8 * n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t word;

        memcpy(&word, at + 8 * window_index(i, n), sizeof(word));
        if (word == reg[3]) {
            found = i;
            break;
        }
        if ((i + 1) % (RUN_CHUNK / 8) == 0 && !run_in_time(r))
            break;
    }
    run_fence();
    return found;
}

static uint64_t hash(struct run *r, const uint64_t *reg)
{
    uint64_t n = reg[2], sum;
    const uint8_t *at = n == 0 ? window_nowhere : to_read(r, reg[1], &n);

    if (!at)
        return 0;
    sum = handler_hash_begin(n);
    for (uint64_t done = 0, begin; done < n; done += 8) {
        uint64_t part = run_part(n, done, 8, &begin), word = 0;

        memcpy(&word, at + begin, part);
        sum = handler_hash_word(sum, word);
        if ((done + 8) % RUN_CHUNK == 0 && !run_in_time(r))
            break;
    }
    run_fence();
    return handler_hash_end(sum);
}

/* ---- words ------------------------------------------------------------------------------------
 */

/* Finds the word that an atomic changes. NULL: the run has failed. */
static uint8_t *to_change(struct run *r, uint64_t address)
{
    uint8_t *at = run_at(r, WINDOW_WRITE, address, 8);

    if (!at)
        return NULL;
    if (!word_aligned((uintptr_t)at, word_code(WORD_ADD, WORD_U64))) {
        run_fail(r, RUN_UNALIGNED, address);
        return NULL;
    }
    return at;
}

static uint64_t cas(struct run *r, const uint64_t *reg)
{
    uint8_t *at = to_change(r, reg[1]);
    uint8_t *expected = at ? run_at(r, WINDOW_WRITE, reg[2], 8) : NULL;
    uint64_t operands[2] = {0, reg[3]}, before = 0;
    int rc;

    if (!expected)
        return 0;
    memcpy(&operands[0], expected, 8);
    rc = word_apply(at, word_code(WORD_COMPARE_SWAP, WORD_U64), operands, &before);
    if (rc != 0)
        return (uint64_t)(int64_t)rc;
    memcpy(expected, &before, 8);
    return before == operands[0];
}

static uint64_t fetch_add(struct run *r, const uint64_t *reg)
{
    uint8_t *at = to_change(r, reg[1]);
    uint8_t *result = at && reg[3] != 0 ? run_at(r, WINDOW_WRITE, reg[3], 8) : NULL;
    uint64_t before = 0;
    int rc;

    if (!at || r->fault != RUN_NO_FAULT)
        return 0;
    rc = word_apply(at, word_code(WORD_ADD, WORD_U64), &reg[2], &before);
    if (rc == 0 && result)
        memcpy(result, &before, 8);
    return (uint64_t)(int64_t)rc;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static uint64_t none(struct run *r, const uint64_t *reg)
{
    (void)reg;
    run_fail(r, RUN_BAD_INSTRUCTION, CODE_DO_CALL);
    return 0;
}

helper_call *const helper_calls[HELPERS] = {
    none,           copy,          accumulate,
    scatter,        gather,        compare, /* 0 */
    find,           hash,          cas,
    fetch_add,      number_f64,    number_f32, /* 6 */
    none,           none,          none,
    none, /* 12 */
    send_put,       send_put_host, send_get,
    send_atomic,    send_message,  send_reply, /* 16 */
    send_event,     none,          none,
    none,           none,          none, /* 22 */
    none,           none,          none,
    none, /* 28 */
    ask_target_of,  ask_counter,   do_counter_add,
    do_counter_set, ask_now,       do_trace, /* 32 */
    none,           none,          none,
    none,           none,          none, /* 38 */
    none,           none,          none,
    none,           none,          none, /* 44 */
    none,           none,          none,
    none,           none,          none, /* 50 */
    none,           none,          none,
    none,           none,          none, /* 56 */
    none,           none,                /* 62 */
};
