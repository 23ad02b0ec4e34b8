/* The atomic instructions: each operation on each type compared with a plain computation, several
 * threads at once, a word that another thread changes all the time, and placement by one store. */
#include "shm_ring/word.h"
#include "tests/count.h"
#include "tests/shm_ring/hostile_word.h"
#include "tests/suite.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static bool is_float(enum word_type type)
{
    return type == WORD_F32 || type == WORD_F64;
}

static void test_codes(void)
{
    static const uint32_t bytes[WORD_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

    for (unsigned code = 0; code < 256; code++) {
        unsigned op = code & 15, type = code >> 4;
        bool bits = op == WORD_AND || op == WORD_OR || op == WORD_XOR || op == WORD_MASKED_SWAP;
        bool valid = op < WORD_OPS && type < WORD_TYPES && !(bits && is_float(type));

        CU_ASSERT_EQUAL(word_code_valid((uint8_t)code), valid);
        if (!valid)
            continue;
        CU_ASSERT_EQUAL(word_code(op, type), code);
        CU_ASSERT_EQUAL(word_bytes((uint8_t)code), bytes[type]);
        CU_ASSERT_EQUAL(word_operand_bytes((uint8_t)code),
                        bytes[type] * (op == WORD_READ           ? 0
                                       : op >= WORD_COMPARE_SWAP ? 2
                                                                 : 1));
        for (uint64_t at = 0; at < 17; at++)
            CU_ASSERT_EQUAL(word_aligned(at, (uint8_t)code), at % bytes[type] == 0);
    }
}

/* ---- against a plain computation ------------------------------------------------------------- */

/* The bits' value as the type's, with its sign. */
static int64_t with_sign(uint64_t bits, enum word_type type)
{
    unsigned shift = 64 - 8 * word_bytes(word_code(WORD_READ, type));

    return type % 2 == 0 ? (int64_t)(bits << shift) >> shift : (int64_t)(bits << shift >> shift);
}

static bool below(uint64_t a, uint64_t b, enum word_type type)
{
    return type % 2 == 0 ? with_sign(a, type) < with_sign(b, type)
                         : (uint64_t)with_sign(a, type) < (uint64_t)with_sign(b, type);
}

/* The word after an operation on integers; `first` is the only operand, or is followed by
 * `second`. */
static uint64_t plain_integer(enum word_op op, enum word_type type, uint64_t old, uint64_t first,
                              uint64_t second)
{
    switch (op) {
    case WORD_SET:
        return first;
    case WORD_ADD:
        return old + first;
    case WORD_PROD:
        return old * first;
    case WORD_MIN:
        return below(first, old, type) ? first : old;
    case WORD_MAX:
        return below(old, first, type) ? first : old;
    case WORD_AND:
        return old & first;
    case WORD_OR:
        return old | first;
    case WORD_XOR:
        return old ^ first;
    case WORD_COMPARE_SWAP:
        return with_sign(old, type) == with_sign(first, type) ? second : old;
    case WORD_MASKED_SWAP:
        return (old & ~first) | (second & first);
    default:
        return old;
    }
}

static double plain_float(enum word_op op, double old, double first, double second)
{
    switch (op) {
    case WORD_SET:
        return first;
    case WORD_ADD:
        return old + first;
    case WORD_PROD:
        return old * first;
    case WORD_MIN:
        return fmin(old, first);
    case WORD_MAX:
        return fmax(old, first);
    case WORD_COMPARE_SWAP:
        return old == first ? second : old;
    default:
        return old;
    }
}

static void put_value(uint8_t *at, enum word_type type, double value, uint64_t bits)
{
    float single = (float)value;

    if (type == WORD_F32)
        memcpy(at, &single, sizeof(single));
    else if (type == WORD_F64)
        memcpy(at, &value, sizeof(value));
    else
        memcpy(at, &bits, word_bytes(word_code(WORD_READ, type)));
}

/* Applies one operation to a word between guard bytes, with and without fetching the value
 * before. */
static void check_one(uint8_t code, const uint8_t *old, const uint8_t *operands,
                      const uint8_t *after)
{
    uint32_t width = word_bytes(code);

    for (int fetch = 0; fetch < 2; fetch++) {
        _Alignas(8) uint8_t memory[24], expected[24];
        uint8_t fetched[9] = {[8] = 0x5a};

        memset(memory, 0xa5, sizeof(memory));
        memcpy(memory + 8, old, width);
        memcpy(expected, memory, sizeof(memory));
        memcpy(expected + 8, after, width);
        CU_ASSERT_EQUAL(word_apply(memory + 8, code, operands, fetch ? fetched : NULL), 0);
        if (memcmp(memory, expected, sizeof(memory)) != 0)
            CU_FAIL("the word, or what stands beside it, is wrong");
        if (fetch && memcmp(fetched, old, width) != 0)
            CU_FAIL("the value before is wrong");
        CU_ASSERT_EQUAL(fetched[8], 0x5a);
    }
}

static void test_plain_integers(void)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      3,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0x8000,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX,
                                      0x123456789abcdef0};
    const size_t n = COUNT(values);

    for (unsigned type = 0; type < WORD_F32; type++)
        for (unsigned op = 0; op < WORD_OPS; op++)
            for (size_t i = 0; i < n * n; i++) {
                uint8_t code = word_code(op, type), old[8], after[8], operands[16];
                uint64_t was = values[i / n], first = values[i % n], second = ~was;

                put_value(old, type, 0, was);
                put_value(operands, type, 0, first);
                put_value(operands + word_bytes(code), type, 0, second);
                put_value(after, type, 0, plain_integer(op, type, was, first, second));
                check_one(code, old, operands, after);
            }
}

static void test_plain_floats(void)
{
    static const double values[] = {0, 1, -1, 0.5, 3, -1e10, 1e30, INFINITY, -INFINITY};
    const size_t n = COUNT(values);

    for (unsigned type = WORD_F32; type < WORD_TYPES; type++)
        for (unsigned op = 0; op < WORD_OPS; op++)
            for (size_t i = 0; i < n * n && word_code_valid(word_code(op, type)); i++) {
                uint8_t code = word_code(op, type), old[8], after[8], operands[16];
                double was = values[i / n], first = values[i % n], second = 42;

                if (type == WORD_F32) {
                    was = (float)was;
                    first = (float)first;
                }
                if (isnan(plain_float(op, was, first, second)))
                    continue;
                put_value(old, type, was, 0);
                put_value(operands, type, first, 0);
                put_value(operands + word_bytes(code), type, second, 0);
                put_value(after, type, plain_float(op, was, first, second), 0);
                check_one(code, old, operands, after);
            }
}

/* NaN and the two zeros are treated as word.h says. */
static void test_odd_floats(void)
{
    static const struct {
        enum word_op op;
        double old, first, after;
    } table[] = {
        {WORD_MIN, NAN, 2, 2},       {WORD_MIN, 2, NAN, 2},
        {WORD_MAX, NAN, 2, 2},       {WORD_MAX, 2, NAN, 2},
        {WORD_MIN, NAN, NAN, NAN},   {WORD_MAX, NAN, -INFINITY, -INFINITY},
        {WORD_MIN, 0.0, -0.0, -0.0}, {WORD_MIN, -0.0, 0.0, -0.0},
        {WORD_MAX, 0.0, -0.0, 0.0},  {WORD_MAX, -0.0, 0.0, 0.0},
        {WORD_ADD, -0.0, 0.0, 0.0},  {WORD_ADD, -0.0, -0.0, -0.0},
        {WORD_ADD, NAN, 1, NAN},     {WORD_ADD, 1, NAN, NAN},
        {WORD_PROD, 0, -1, -0.0},    {WORD_SET, 1, NAN, NAN},
    };

    for (unsigned type = WORD_F32; type < WORD_TYPES; type++)
        for (size_t i = 0; i < COUNT(table); i++) {
            uint8_t code = word_code(table[i].op, type), operand[8];
            _Alignas(8) uint8_t word[8] = {0}, after[8] = {0};

            put_value(word, type, table[i].old, 0);
            put_value(operand, type, table[i].first, 0);
            put_value(after, type, table[i].after, 0);
            CU_ASSERT_EQUAL(word_apply(word, code, operand, NULL), 0);
            if (isnan(table[i].after))
                CU_ASSERT(type == WORD_F64 ? isnan(*(double *)(void *)word)
                                           : isnan(*(float *)(void *)word))
            else
                CU_ASSERT_EQUAL(memcmp(word, after, sizeof(word)), 0);
        }
}

/* COMPARE_SWAP compares bits, not numbers. */
static void test_float_bits(void)
{
    static const struct {
        double old, expected;
        bool swaps;
    } table[] = {{0.0, -0.0, false}, {NAN, NAN, true}, {1.5, 1.5, true}};

    for (size_t i = 0; i < COUNT(table); i++) {
        double word = table[i].old, operands[2] = {table[i].expected, 7}, before;

        CU_ASSERT_EQUAL(
            word_apply(&word, word_code(WORD_COMPARE_SWAP, WORD_F64), operands, &before), 0);
        CU_ASSERT_EQUAL(word == 7, table[i].swaps);
        CU_ASSERT_EQUAL(memcmp(&before, &table[i].old, sizeof(before)), 0);
    }
}

static void test_several(void)
{
    uint32_t words[5] = {10, 20, 30, 40, 50}, adds[5] = {1, 2, 3, 4, 5}, fetched[5] = {0};
    uint32_t swaps[4] = {10, 100, 99, 200};

    CU_ASSERT_EQUAL(
        word_apply_all(words, word_code(WORD_COMPARE_SWAP, WORD_U32), 2, swaps, fetched), 2);
    CU_ASSERT(words[0] == 100 && words[1] == 20 && fetched[0] == 10 && fetched[1] == 20);
    CU_ASSERT_EQUAL(word_apply_all(words, word_code(WORD_ADD, WORD_U32), 4, adds, NULL), 4);
    CU_ASSERT(words[0] == 101 && words[1] == 22 && words[3] == 44 && words[4] == 50);
    CU_ASSERT_EQUAL(word_apply_all(words, word_code(WORD_READ, WORD_U32), 5, NULL, fetched), 5);
    CU_ASSERT_EQUAL(memcmp(words, fetched, sizeof(words)), 0);
    CU_ASSERT_EQUAL(word_apply_all(words, word_code(WORD_ADD, WORD_U32), 0, adds, NULL), 0);
}

/* READ stores nothing, so it works in read-only memory. */
static void test_read_only(void)
{
    uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t fetched = 0;

    CU_ASSERT_FATAL(word != MAP_FAILED);
    *word = 77;
    CU_ASSERT_EQUAL_FATAL(mprotect(word, 4096, PROT_READ), 0);
    CU_ASSERT_EQUAL(word_apply(word, word_code(WORD_READ, WORD_U64), NULL, &fetched), 0);
    CU_ASSERT_EQUAL(fetched, 77);
    munmap(word, 4096);
}

/* ---- several threads ------------------------------------------------------------------------- */

enum { THREADS = 4, ADDS = 200000 };

struct adder {
    pthread_t thread;
    enum word_type type;
    void *word;
    uint8_t *seen; /* a byte for each value that may be fetched; NULL: values repeat */
    pthread_barrier_t *start;
};

static void *add_main(void *argument)
{
    struct adder *a = argument;
    uint8_t one[8];

    put_value(one, a->type, 1, 1);
    pthread_barrier_wait(a->start);
    for (int i = 0; i < ADDS; i++) {
        uint8_t bytes[8] = {0};
        uint64_t value;

        while (word_apply(a->word, word_code(WORD_ADD, a->type), one, bytes) == -EBUSY)
            ;
        memcpy(&value, bytes, sizeof(value));
        if (a->type == WORD_F32)
            value = (uint64_t) * (float *)(void *)bytes;
        else if (a->type == WORD_F64)
            value = (uint64_t) * (double *)(void *)bytes;
        if (a->seen && value < THREADS * ADDS)
            __atomic_fetch_add(&a->seen[value], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* The sum is exact, and where it does not wrap, each value is fetched exactly once. */
static void test_threads_add(void)
{
    for (unsigned type = 0; type < WORD_TYPES; type++) {
        static uint8_t seen[THREADS * ADDS];
        _Alignas(8) uint8_t word[8] = {0}, expected[8] = {0};
        bool wraps = word_bytes(word_code(WORD_ADD, type)) < 4;
        struct adder adders[THREADS];
        pthread_barrier_t start;
        bool once = true;

        pthread_barrier_init(&start, NULL, THREADS);
        memset(seen, wraps, sizeof(seen));
        for (int i = 0; i < THREADS; i++) {
            adders[i] = (struct adder){
                .type = type, .word = word, .start = &start, .seen = wraps ? NULL : seen};
            CU_ASSERT_EQUAL_FATAL(pthread_create(&adders[i].thread, NULL, add_main, &adders[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(adders[i].thread, NULL);
        pthread_barrier_destroy(&start);
        put_value(expected, type, THREADS * ADDS, THREADS * ADDS);
        CU_ASSERT_EQUAL(memcmp(word, expected, sizeof(word)), 0);
        for (int i = 0; i < THREADS * ADDS; i++)
            once = once && seen[i] == 1;
        CU_ASSERT(once);
    }
}

/* ---- a word that is changed without end ------------------------------------------------------ */

static bool is_loop(enum word_op op, enum word_type type, bool fetch)
{
    switch (op) {
    case WORD_ADD:
        return is_float(type);
    case WORD_AND:
    case WORD_OR:
    case WORD_XOR:
        return fetch;
    default:
        return op == WORD_PROD || op == WORD_MIN || op == WORD_MAX || op == WORD_MASKED_SWAP;
    }
}

static void test_tries_are_bounded(void)
{
    for (unsigned code = 0; code < 256; code++)
        for (int fetch = 0; fetch < 2; fetch++) {
            _Alignas(8) uint8_t words[16] = {0};
            uint8_t operands[32] = {1}, fetched[16] = {1, 2, 3}, untouched[16] = {1, 2, 3};
            bool loop = is_loop(word_op((uint8_t)code), word_type((uint8_t)code), fetch);
            uint32_t done;

            if (!word_code_valid((uint8_t)code))
                continue;
            CU_ASSERT_EQUAL(
                hostile_word_apply(words, (uint8_t)code, operands, fetch ? fetched : NULL),
                loop ? -EBUSY : 0);
            CU_ASSERT_EQUAL(hostile_word_tries(), loop ? WORD_TRIES
                                                  : word_op((uint8_t)code) == WORD_COMPARE_SWAP
                                                      ? 1
                                                      : 0);
            if (loop)
                CU_ASSERT_EQUAL(memcmp(fetched, untouched, sizeof(untouched)), 0);
            done =
                hostile_word_apply_all(words, (uint8_t)code, 2, operands, fetch ? fetched : NULL);
            CU_ASSERT_EQUAL(done, loop ? 0 : 2); /* the second element is not tried */
            CU_ASSERT_EQUAL(hostile_word_tries() > WORD_TRIES, false);
        }
}

struct changer {
    _Atomic uint64_t word;
    atomic_bool over;
};

static void *change_main(void *argument)
{
    struct changer *c = argument;

    while (!atomic_load_explicit(&c->over, memory_order_relaxed))
        atomic_fetch_add_explicit(&c->word, 2, memory_order_relaxed);
    return NULL;
}

/* Each call returns, and an operation that has succeeded was done exactly once: the other thread
 * only adds 2, so the lowest bit shows our operations. */
static void test_changing_word(void)
{
    struct changer c = {0};
    pthread_t thread;
    unsigned done = 0;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, change_main, &c), 0);
    for (int i = 0; i < 20000; i++) {
        uint64_t one = 1, before = 0;
        int rc = word_apply(&c.word, word_code(WORD_XOR, WORD_U64), &one, &before);

        CU_ASSERT(rc == 0 || rc == -EBUSY);
        if (rc == 0)
            CU_ASSERT_EQUAL(before & 1, done++ & 1);
    }
    atomic_store(&c.over, true);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(atomic_load(&c.word) & 1, done & 1);
}

/* ---- placement ------------------------------------------------------------------------------- */

static void test_place(void)
{
    for (size_t at = 0; at < 16; at++)
        for (size_t length = 0; length < 20; length++) {
            _Alignas(16) uint8_t to[48], expected[48];
            uint8_t from[21];
            bool one =
                (length == 1 || length == 2 || length == 4 || length == 8) && at % length == 0;

            for (size_t i = 0; i < sizeof(from); i++)
                from[i] = (uint8_t)(i + 1);
            memset(to, 0xee, sizeof(to));
            memset(expected, 0xee, sizeof(expected));
            memcpy(expected + at, from + 1, length);
            word_place(to + at, from + 1, length);
            CU_ASSERT_EQUAL(memcmp(to, expected, sizeof(to)), 0);
            CU_ASSERT_EQUAL(word_is_one_store((uintptr_t)(to + at), length), one);
        }
}

struct torn {
    _Atomic uint64_t word;
    atomic_bool over;
    uint64_t wrong;
};

static void *torn_main(void *argument)
{
    struct torn *t = argument;

    while (!atomic_load_explicit(&t->over, memory_order_relaxed)) {
        uint64_t seen = atomic_load_explicit(&t->word, memory_order_relaxed);

        if (seen != 0 && seen != UINT64_MAX)
            t->wrong = seen;
    }
    return NULL;
}

/* A reader sees either the old word or the new one. */
static void test_place_is_whole(void)
{
    static const uint64_t all = UINT64_MAX, none = 0;
    struct torn t = {0};
    pthread_t thread;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, torn_main, &t), 0);
    for (int i = 0; i < 1000000; i++)
        word_place(&t.word, i % 2 == 0 ? &all : &none, 8);
    atomic_store(&t.over, true);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(t.wrong, 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"codes", test_codes},
        {"integers against a plain computation", test_plain_integers},
        {"floating point against a plain computation", test_plain_floats},
        {"NaN and the two zeros", test_odd_floats},
        {"compare and swap of floating point compares bits", test_float_bits},
        {"several elements", test_several},
        {"a read stores nothing", test_read_only},
        {"threads that add", test_threads_add},
        {"tries are bounded", test_tries_are_bounded},
        {"a word that is changed without end", test_changing_word},
        {"placement", test_place},
        {"a placed word is whole", test_place_is_whole},
        CU_TEST_INFO_NULL,
    };

    return suite_run("word", tests);
}
