/*
 * Atomics over libfabric and two daemons: each operation on each type that the provider offers,
 * with one element and several; and the refusal of all others.
 *
 *     test_atomic PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <errno.h>
#include <string.h>
#include "tests/providers/both.h"

#define COUNT 16

static const size_t sizes[] = {
    [FI_INT8] = 1,   [FI_UINT8] = 1, [FI_INT16] = 2,  [FI_UINT16] = 2, [FI_INT32] = 4,
    [FI_UINT32] = 4, [FI_INT64] = 8, [FI_UINT64] = 8, [FI_FLOAT] = 4,  [FI_DOUBLE] = 8,
};

/* Stores a small number as an element of that type. */
static void store(void *at, enum fi_datatype type, int value)
{
    float f = (float)value;
    double d = value;
    int64_t i = value;

    if (type == FI_FLOAT)
        memcpy(at, &f, sizeof(f));
    else if (type == FI_DOUBLE)
        memcpy(at, &d, sizeof(d));
    else
        memcpy(at, &i, sizes[type]);
}

static int load(const void *at, enum fi_datatype type)
{
    float f;
    double d;
    int8_t i1;
    int16_t i2;
    int32_t i4;
    int64_t i8;

    switch (type) {
    case FI_FLOAT:
        memcpy(&f, at, sizeof(f));
        return (int)f;
    case FI_DOUBLE:
        memcpy(&d, at, sizeof(d));
        return (int)d;
    default:
        memcpy(&i1, at, 1);
        memcpy(&i2, at, sizes[type] > 1 ? 2 : 1);
        memcpy(&i4, at, sizes[type] > 2 ? 4 : 1);
        memcpy(&i8, at, sizes[type]);
        return sizes[type] == 1 ? i1 : sizes[type] == 2 ? i2 : sizes[type] == 4 ? i4 : (int)i8;
    }
}

static int expected(enum fi_op op, int old, int operand, int compare)
{
    switch (op) {
    case FI_MIN:
        return operand < old ? operand : old;
    case FI_MAX:
        return operand > old ? operand : old;
    case FI_SUM:
        return old + operand;
    case FI_PROD:
        return old * operand;
    case FI_BOR:
        return old | operand;
    case FI_BAND:
        return old & operand;
    case FI_BXOR:
        return old ^ operand;
    case FI_ATOMIC_READ:
        return old;
    case FI_CSWAP:
        return old == compare ? operand : old;
    case FI_MSWAP:
        return (operand & compare) | (old & ~compare);
    default:
        return operand;
    }
}

/* The old value of the peer's word i, and the operand of element i. */
static int old_of(size_t i)
{
    return 5 + (int)(i % 3);
}

static int operand_of(size_t i)
{
    return 2 + (int)(i % 7);
}

static int compare_of(size_t i)
{
    return 6 + (int)(i % 2);
}

static void check(struct side sides[2], enum fi_datatype type, enum fi_op op, size_t count,
                  const unsigned char *result)
{
    for (size_t i = 0; i < count; i++) {
        int want = expected(op, old_of(i), operand_of(i), compare_of(i));

        CU_ASSERT_EQUAL(load(sides[1].memory + i * sizes[type], type), want);
        if (result)
            CU_ASSERT_EQUAL(load(result + i * sizes[type], type), old_of(i));
    }
}

struct buffers {
    unsigned char operands[COUNT * 8], compares[COUNT * 8], results[COUNT * 8];
};

static void prepare(struct side sides[2], struct buffers *b, enum fi_datatype type)
{
    for (size_t i = 0; i < COUNT; i++) {
        store(b->operands + i * sizes[type], type, operand_of(i));
        store(b->compares + i * sizes[type], type, compare_of(i));
        store(sides[1].memory + i * sizes[type], type, old_of(i));
    }
    memset(b->results, 0xee, sizeof(b->results));
}

static void finish(struct side sides[2], uint64_t flags)
{
    struct fi_cq_tagged_entry entry;

    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_EQUAL(entry.flags, flags);
}

static void write_one(struct side sides[2], enum fi_datatype type, enum fi_op op, size_t count)
{
    struct buffers b;

    prepare(sides, &b, type);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_atomic(sides[0].ep, b.operands, count, NULL, sides[0].peer,
                              side_address(&sides[1], 0), side_key(&sides[1]), type, op, NULL)),
        0);
    finish(sides, FI_ATOMIC | FI_WRITE);
    check(sides, type, op, count, NULL);
}

static void fetch_one(struct side sides[2], enum fi_datatype type, enum fi_op op, size_t count)
{
    struct buffers b;

    prepare(sides, &b, type);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_fetch_atomic(sides[0].ep, b.operands, count, NULL, b.results, NULL,
                                    sides[0].peer, side_address(&sides[1], 0), side_key(&sides[1]),
                                    type, op, NULL)),
        0);
    finish(sides, FI_ATOMIC | FI_READ);
    check(sides, type, op, count, b.results);
}

static void compare_one(struct side sides[2], enum fi_datatype type, enum fi_op op, size_t count)
{
    struct buffers b;

    prepare(sides, &b, type);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_compare_atomic(sides[0].ep, b.operands, count, NULL, b.compares, NULL,
                                      b.results, NULL, sides[0].peer, side_address(&sides[1], 0),
                                      side_key(&sides[1]), type, op, NULL)),
        0);
    finish(sides, FI_ATOMIC | FI_READ);
    check(sides, type, op, count, b.results);
}

typedef int (*valid_function)(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
                              size_t *count);
typedef void (*one_function)(struct side sides[2], enum fi_datatype type, enum fi_op op,
                             size_t count);

/* Runs `one` for each valid pair of operation and type, and returns the number of pairs. */
static unsigned each(valid_function valid, one_function one)
{
    struct side sides[2];
    unsigned there = 0;

    both_open(sides, &both_basic);
    for (int op = 0; op < FI_ATOMIC_OP_LAST; op++)
        for (int type = 0; type < FI_DATATYPE_LAST; type++) {
            size_t count = 0;
            int rc = valid(sides[0].ep, type, op, &count);

            CU_ASSERT(rc == 0 || rc == -FI_EOPNOTSUPP);
            if (rc < 0)
                continue;
            there++;
            CU_ASSERT_FATAL(count >= COUNT);
            one(sides, type, op, 1);
            one(sides, type, op, COUNT);
        }
    both_close(sides);
    return there;
}

/* Eight operations, three of which exist only for the eight integer types. */
static void test_write(void)
{
    CU_ASSERT_EQUAL(each(fi_atomicvalid, write_one), 5 * 10 + 3 * 8);
}

/* All operations of test_write, and reads. */
static void test_fetch(void)
{
    CU_ASSERT_EQUAL(each(fi_fetch_atomicvalid, fetch_one), 6 * 10 + 3 * 8);
}

/* Compare-and-swap on ten types, masked swap on integers. */
static void test_compare(void)
{
    CU_ASSERT_EQUAL(each(fi_compare_atomicvalid, compare_one), 10 + 8);
}

/* A call for an atomic that does not exist is refused, and changes nothing. */
static void test_refused(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    long double wide = 1;
    uint64_t word = 1;

    both_open(sides, &both_basic);
    CU_ASSERT_EQUAL(fi_atomic(sides[0].ep, &wide, 1, NULL, sides[0].peer,
                              side_address(&sides[1], 0), side_key(&sides[1]), FI_LONG_DOUBLE,
                              FI_SUM, NULL),
                    -FI_EOPNOTSUPP);
    CU_ASSERT_EQUAL(fi_atomic(sides[0].ep, &word, 1, NULL, sides[0].peer,
                              side_address(&sides[1], 0), side_key(&sides[1]), FI_UINT64, FI_LOR,
                              NULL),
                    -FI_EOPNOTSUPP);
    CU_ASSERT_EQUAL(fi_atomic(sides[0].ep, &word, 0, NULL, sides[0].peer,
                              side_address(&sides[1], 0), side_key(&sides[1]), FI_UINT64, FI_SUM,
                              NULL),
                    -FI_EINVAL);
    CU_ASSERT_EQUAL(fi_cq_read(sides[0].cq, &entry, 1), -FI_EAGAIN);
    CU_ASSERT_EQUAL(*(uint64_t *)sides[1].memory, 0);
    both_close(sides);
}

/* A word that is not aligned ends the operation with an error. */
static void test_unaligned(void)
{
    struct side sides[2];
    struct fi_cq_err_entry error;
    uint64_t word = 1;
    ssize_t rc;

    both_open(sides, &both_basic);
    rc = SIDE_REPEAT(&sides[0], &sides[1],
                     fi_atomic(sides[0].ep, &word, 1, NULL, sides[0].peer,
                               side_address(&sides[1], 4), side_key(&sides[1]), FI_UINT64, FI_SUM,
                               &word));
    if (rc == 0)
        CU_ASSERT_EQUAL(side_error(&sides[0], &error), FI_EINVAL);
    CU_ASSERT(rc == 0 || rc == -FI_EINVAL);
    both_close(sides);
}

static int add_at(struct side sides[2], uint64_t address, uint64_t key)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    uint64_t word = 1;
    ssize_t rc = SIDE_REPEAT(&sides[0], &sides[1],
                             fi_atomic(sides[0].ep, &word, 1, NULL, sides[0].peer, address, key,
                                       FI_UINT64, FI_SUM, &word));

    if (rc < 0)
        return (int)-rc;
    return side_entry(&sides[0], &sides[1], &entry) == 1 ? 0 : side_error(&sides[0], &error);
}

/* A range may begin anywhere: its words are those that are aligned in memory, and the bytes before
 * it are not in it. With and without addresses of the owner. */
static void test_unaligned_range(void)
{
    static const int modes[] = {FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
                                FI_MR_ALLOCATED | FI_MR_PROV_KEY};

    for (int i = 0; i < 2; i++) {
        const struct side_options options = {.mr_mode = modes[i], .format = FI_CQ_FORMAT_TAGGED};
        struct side sides[2];
        struct fi_cq_err_entry error;
        struct fid_mr *mr;
        uint64_t start, key;

        both_open(sides, &options);
        CU_ASSERT_EQUAL_FATAL(fi_mr_reg(sides[1].domain, sides[1].memory + 4, 20,
                                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
                              0);
        key = fi_mr_key(mr);
        start = i == 0 ? side_address(&sides[1], 4) : 0;
        CU_ASSERT_EQUAL(add_at(sides, start + 4, key), 0);
        CU_ASSERT_EQUAL(*(uint64_t *)(sides[1].memory + 8), 1);
        CU_ASSERT_EQUAL(add_at(sides, start + 12, key), 0);
        CU_ASSERT_EQUAL(*(uint64_t *)(sides[1].memory + 16), 1);
        CU_ASSERT_EQUAL(add_at(sides, start + 8, key), FI_EINVAL);
        CU_ASSERT_EQUAL(add_at(sides, start - 4, key), ERANGE);
        CU_ASSERT_EQUAL(add_at(sides, start + 20, key), ERANGE);
        for (uint64_t at = start - 5; at != start; at++) {
            CU_ASSERT_EQUAL(both_write(sides, "x", 1, at, key, NULL), 0);
            CU_ASSERT_EQUAL(side_error(&sides[0], &error), ERANGE);
        }
        CU_ASSERT_EQUAL(*(uint64_t *)sides[1].memory, 0);
        CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
        CU_ASSERT(fi_mr_reg(sides[1].domain, sides[1].memory + 4, SIZE_MAX, FI_REMOTE_WRITE, 0, 0,
                            0, &mr, NULL) < 0);
        both_close(sides);
    }
}

#define ADDS 2000u

/* Both sides add to one word many times: no addition is lost, and injected ones count. */
static void test_sum(void)
{
    const struct side_options counting = {.mr_mode = both_basic.mr_mode,
                                          .format = FI_CQ_FORMAT_CONTEXT,
                                          .cq_flags = FI_SELECTIVE_COMPLETION,
                                          .counters = true};
    struct side sides[2];
    uint64_t one = 1;

    both_open(sides, &counting);
    for (unsigned i = 0; i < ADDS; i++)
        CU_ASSERT_EQUAL_FATAL(SIDE_REPEAT(&sides[0], &sides[1],
                                          fi_inject_atomic(sides[0].ep, &one, 1, sides[0].peer,
                                                           side_address(&sides[1], 0),
                                                           side_key(&sides[1]), FI_UINT64, FI_SUM)),
                              0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, ADDS, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(*(uint64_t *)sides[1].memory, ADDS);
    both_close(sides);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"writing", test_write},
        {"fetching", test_fetch},
        {"comparing", test_compare},
        {"refused", test_refused},
        {"unaligned", test_unaligned},
        {"unaligned range", test_unaligned_range},
        {"sum", test_sum},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, atomics", tests);
}
