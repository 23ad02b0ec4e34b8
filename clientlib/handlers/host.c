/*
 * The helpers of handlers on the host, for tests (pwc/handler.h): plain C on plain pointers. Each
 * thread has its own world, because a helper has no argument for it.
 *
 * Owns: the thread's pointer to its world.
 */
#define PWC_HANDLER_HOST
#include <pwc/handler.h>

#include <math.h>
#include <string.h>
#include "proto/handler_abi.h"
#include "shm_ring/fold.h"
#include "shm_ring/word.h"

static _Thread_local struct pwc_h_world *the_world;

void pwc_h_enter(struct pwc_h_world *world)
{
    the_world = world;
}

void *pwc_h_host(uint64_t offset)
{
    return (unsigned char *)the_world->host + offset;
}

void *pwc_h_scratch(uint64_t offset)
{
    return (unsigned char *)the_world->scratch + offset;
}

/* ---- bytes and elements -----------------------------------------------------------------------
 */

int pwc_h_copy(void *to, const void *from, uint64_t n)
{
    if (n > 0)
        memmove(to, from, n);
    return 0;
}

int pwc_h_accumulate(void *to, const void *from, uint64_t count, enum pwc_type type,
                     enum pwc_atomic_op op)
{
    fold(word_code((enum word_op)op, (enum word_type)type), to, from, count);
    return 0;
}

static uint64_t place_of(const struct pwc_h_vector *v, uint64_t i)
{
    uint64_t byte = v->skip + i;

    return v->start + byte / v->block * v->stride + byte % v->block;
}

int pwc_h_scatter(void *to, const void *from, uint64_t n, const struct pwc_h_vector *vector)
{
    struct pwc_h_vector v = *vector;

    for (uint64_t i = 0; i < n; i++)
        ((unsigned char *)to)[place_of(&v, i)] = ((const unsigned char *)from)[i];
    return 0;
}

int pwc_h_gather(void *to, const void *from, uint64_t n, const struct pwc_h_vector *vector)
{
    struct pwc_h_vector v = *vector;

    for (uint64_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[place_of(&v, i)];
    return 0;
}

int pwc_h_compare(const void *a, const void *b, uint64_t n)
{
    int order = n > 0 ? memcmp(a, b, n) : 0;

    return order > 0 ? 1 : order < 0 ? -1 : 0;
}

int64_t pwc_h_find(const void *a, uint64_t n, uint64_t value)
{
    for (uint64_t i = 0; i < n; i++)
        if (memcmp((const unsigned char *)a + 8 * i, &value, 8) == 0)
            return (int64_t)i;
    return -1;
}

uint64_t pwc_h_hash(const void *a, uint64_t n)
{
    uint64_t sum = handler_hash_begin(n);

    for (uint64_t done = 0; done < n; done += 8) {
        uint64_t word = 0;

        memcpy(&word, (const unsigned char *)a + done, n - done < 8 ? n - done : 8);
        sum = handler_hash_word(sum, word);
    }
    return handler_hash_end(sum);
}

int pwc_h_cas(uint64_t *word, uint64_t *expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(word, expected, desired, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

int pwc_h_fetch_add(uint64_t *word, uint64_t value, uint64_t *before)
{
    uint64_t was = __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);

    if (before)
        *before = was;
    return 0;
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static uint64_t f64_bits(double value)
{
    uint64_t bits;

    value = value == value ? value : (double)NAN;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t f32_bits(float value)
{
    uint32_t bits;

    value = value == value ? value : NAN;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t whole(enum pwc_h_number_op op, double a)
{
    if (op == PWC_H_TO_UNSIGNED)
        return a > 0 ? (a < 0x1p64 ? (uint64_t)a : UINT64_MAX) : 0;
    if (a != a)
        return 0;
    return a < -0x1p63 ? (uint64_t)INT64_MIN : a < 0x1p63 ? (uint64_t)(int64_t)a : INT64_MAX;
}

static double lesser(double a, double b)
{
    if (a != a || b != b)
        return a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

uint64_t pwc_h_f64(enum pwc_h_number_op op, uint64_t x, uint64_t y)
{
    double a = f64_of(x), b = f64_of(y);

    switch (op) {
    case PWC_H_ADD:
        return f64_bits(a + b);
    case PWC_H_SUB:
        return f64_bits(a - b);
    case PWC_H_MUL:
        return f64_bits(a * b);
    case PWC_H_DIV:
        return f64_bits(a / b);
    case PWC_H_MIN:
        return f64_bits(lesser(a, b));
    case PWC_H_MAX:
        return f64_bits(-lesser(-a, -b));
    case PWC_H_SQRT:
        return f64_bits(__builtin_sqrt(a));
    case PWC_H_LESS:
        return a < b;
    case PWC_H_EQUAL:
        return a == b;
    case PWC_H_FROM_SIGNED:
        return f64_bits((double)(int64_t)x);
    case PWC_H_FROM_UNSIGNED:
        return f64_bits((double)x);
    case PWC_H_CONVERT:
        return f64_bits((double)f32_of(x));
    default:
        return whole(op, a);
    }
}

uint64_t pwc_h_f32(enum pwc_h_number_op op, uint64_t x, uint64_t y)
{
    float a = f32_of(x), b = f32_of(y);

    switch (op) {
    case PWC_H_ADD:
        return f32_bits(a + b);
    case PWC_H_SUB:
        return f32_bits(a - b);
    case PWC_H_MUL:
        return f32_bits(a * b);
    case PWC_H_DIV:
        return f32_bits(a / b);
    case PWC_H_MIN:
        return f32_bits((float)lesser(a, b));
    case PWC_H_MAX:
        return f32_bits((float)-lesser(-a, -b));
    case PWC_H_SQRT:
        return f32_bits(__builtin_sqrtf(a));
    case PWC_H_LESS:
        return a < b;
    case PWC_H_EQUAL:
        return a == b;
    case PWC_H_FROM_SIGNED:
        return f32_bits((float)(int64_t)x);
    case PWC_H_FROM_UNSIGNED:
        return f32_bits((float)x);
    case PWC_H_CONVERT:
        return f32_bits((float)f64_of(x));
    default:
        return whole(op, a);
    }
}

/* ---- sends ------------------------------------------------------------------------------------
 */

/* Takes the next send, zeroed; NULL: there is no room. */
static struct pwc_h_sent *next_send(uint32_t helper)
{
    struct pwc_h_sent *s;

    if (the_world->sends >= the_world->room)
        return NULL;
    s = &the_world->sent[the_world->sends++];
    memset(s, 0, sizeof(*s));
    s->helper = helper;
    return s;
}

static void take_bytes(struct pwc_h_sent *s, const void *from, uint64_t n)
{
    s->n = n;
    if (n > 0)
        memcpy(s->bytes, from, n);
}

static void take_args(struct pwc_h_sent *s, const uint64_t *args, uint64_t nargs)
{
    s->nargs = nargs;
    if (nargs > 0)
        memcpy(s->args, args, 8 * nargs);
}

static struct pwc_h_sent *next_to(uint32_t helper, uint64_t target, uint64_t off, uint64_t id)
{
    struct pwc_h_sent *s = next_send(helper);

    if (!s)
        return NULL;
    s->target = (uint32_t)target;
    s->flags = (uint32_t)(target >> 32);
    s->off = off;
    s->id = id;
    return s;
}

int pwc_h_put_(uint64_t target, uint64_t off, const void *from, uint64_t n, uint64_t id)
{
    struct pwc_h_sent *s = next_to(HELPER_PUT, target, off, id);

    if (!s)
        return PWC_H_EAGAIN;
    take_bytes(s, from, n);
    return 0;
}

/* Notes a put from the region, or a get into it. */
static int take_range(uint32_t helper, uint64_t target, uint64_t off, uint64_t host_off, uint64_t n,
                      uint64_t id)
{
    struct pwc_h_sent *s = next_to(helper, target, off, id);

    if (!s)
        return PWC_H_EAGAIN;
    s->host_off = host_off;
    s->n = n;
    return 0;
}

int pwc_h_put_host_(uint64_t target, uint64_t off, uint64_t host_off, uint64_t n, uint64_t id)
{
    return take_range(HELPER_PUT_HOST, target, off, host_off, n, id);
}

int pwc_h_get_(uint64_t target, uint64_t off, uint64_t host_off, uint64_t n, uint64_t id)
{
    return take_range(HELPER_GET, target, off, host_off, n, id);
}

int pwc_h_atomic_(uint64_t target, uint64_t off, uint64_t code, uint64_t value, uint64_t id)
{
    struct pwc_h_sent *s = next_to(HELPER_ATOMIC, target, off, id);

    if (!s)
        return PWC_H_EAGAIN;
    s->code = code;
    s->value = value;
    return 0;
}

int pwc_h_message_(uint64_t target, const uint64_t *args, uint64_t nargs, const void *from,
                   uint64_t n)
{
    struct pwc_h_sent *s = next_send(HELPER_MESSAGE);

    if (!s)
        return PWC_H_EAGAIN;
    s->target = (uint32_t)target;
    s->index = (uint32_t)(target >> 32);
    take_args(s, args, nargs);
    take_bytes(s, from, n);
    return 0;
}

int pwc_h_reply(const uint64_t *args, uint64_t nargs, const void *from, uint64_t n)
{
    struct pwc_h_sent *s = next_send(HELPER_REPLY);

    if (!s)
        return PWC_H_EAGAIN;
    take_args(s, args, nargs);
    take_bytes(s, from, n);
    return 0;
}

int pwc_h_event(uint64_t id, uint64_t value)
{
    struct pwc_h_sent *s = next_send(HELPER_EVENT);

    if (!s)
        return PWC_H_EAGAIN;
    s->id = id;
    s->value = value;
    return 0;
}

/* ---- counters and questions -------------------------------------------------------------------
 */

uint32_t pwc_h_target_of(pwc_peer peer)
{
    return pwc_peer_rank(peer) < the_world->targets ? pwc_peer_rank(peer) : PWC_H_NONE;
}

uint64_t pwc_h_counter(uint64_t counter)
{
    return the_world->counters[counter];
}

int pwc_h_counter_add(uint64_t counter, uint64_t n)
{
    the_world->counters[counter] += n;
    return 0;
}

int pwc_h_counter_set(uint64_t counter, uint64_t value)
{
    the_world->counters[counter] = value;
    return 0;
}

uint64_t pwc_h_now(void)
{
    return the_world->now;
}

int pwc_h_trace(uint64_t a, uint64_t b)
{
    (void)a;
    (void)b;
    return 0;
}
