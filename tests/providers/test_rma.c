/*
 * Remote memory access over libfabric and two daemons: written bytes are at the peer, read bytes
 * are here; entries, immediate data for the peer's queue, and the error for each wrong use.
 *
 *     test_rma PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/providers/both.h"

static void fill(unsigned char *bytes, size_t length, unsigned seed)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static const size_t lengths[] = {0, 1, 8, 100, 4096, 4097, 16384, SIDE_BYTES};

/* When a write's entry comes, its bytes are at the peer, from any source memory. */
static void test_write(void)
{
    struct side sides[2];
    unsigned char *from = malloc(SIDE_BYTES);

    both_open(sides, &both_basic);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct fi_cq_tagged_entry entry;

        fill(from, lengths[i], (unsigned)i);
        memset(sides[1].memory, 0, SIDE_BYTES);
        CU_ASSERT_EQUAL_FATAL(both_write(sides, from, lengths[i], side_address(&sides[1], 0),
                                         side_key(&sides[1]), &entry),
                              0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
        CU_ASSERT_PTR_EQUAL(entry.op_context, &entry);
        CU_ASSERT_EQUAL(entry.flags, FI_RMA | FI_WRITE);
        CU_ASSERT_EQUAL(memcmp(sides[1].memory, from, lengths[i]), 0);
    }
    both_close(sides);
    free(from);
}

static void test_read(void)
{
    struct side sides[2];
    unsigned char *to = malloc(SIDE_BYTES);

    both_open(sides, &both_basic);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct fi_cq_tagged_entry entry;

        fill(sides[1].memory, SIDE_BYTES, (unsigned)i);
        memset(to, 0, SIDE_BYTES);
        CU_ASSERT_EQUAL_FATAL(
            both_read(sides, to, lengths[i], side_address(&sides[1], 0), side_key(&sides[1]), to),
            0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
        CU_ASSERT_PTR_EQUAL(entry.op_context, to);
        CU_ASSERT_EQUAL(entry.flags, FI_RMA | FI_READ);
        CU_ASSERT_EQUAL(memcmp(sides[1].memory, to, lengths[i]), 0);
    }
    both_close(sides);
    free(to);
}

/* Keys and offsets that the application chooses (mr_mode 0). */
static void test_own_keys(void)
{
    const struct side_options scalable = {.key = 0xc0ffee, .format = FI_CQ_FORMAT_TAGGED};
    struct fi_cq_tagged_entry entry;
    struct side sides[2];
    struct fid_mr *again;

    both_open(sides, &scalable);
    CU_ASSERT_EQUAL(sides[0].info->domain_attr->mr_mode & INT32_C(0x70), 0);
    CU_ASSERT_EQUAL(side_key(&sides[1]), 0xc0ffee);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "own", 4, 100, 0xc0ffee, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 100, "own");
    /* A key cannot be used for two ranges. */
    CU_ASSERT_EQUAL(fi_mr_reg(sides[1].domain, sides[1].memory, SIDE_BYTES,
                              FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0xc0ffee, 0, &again, NULL),
                    -FI_ENOKEY);
    both_close(sides);
}

/* The immediate data of a write comes to the target's queue after the written bytes are placed. */
static void test_writedata(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;

    both_open(sides, &both_basic);
    for (uint64_t i = 1; i <= 100; i++) {
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_writedata(sides[0].ep, &i, sizeof(i), NULL, i << 40, sides[0].peer,
                                     side_address(&sides[1], 64), side_key(&sides[1]), NULL)),
            0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
        CU_ASSERT_EQUAL(entry.data, i << 40);
        CU_ASSERT_EQUAL(entry.len, sizeof(i));
        CU_ASSERT_EQUAL(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
        CU_ASSERT_EQUAL(memcmp(sides[1].memory + 64, &i, sizeof(i)), 0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    }
    both_close(sides);
}

/* An injected write has no entry, and its source may be reused at once. */
static void test_inject(void)
{
    const struct side_options counting = {
        .mr_mode = both_basic.mr_mode, .format = FI_CQ_FORMAT_TAGGED, .counters = true};
    struct side sides[2];
    struct fi_cq_tagged_entry entry;

    both_open(sides, &counting);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t word = i + 1;

        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_inject_write(sides[0].ep, &word, sizeof(word), sides[0].peer,
                                        side_address(&sides[1], i * 8), side_key(&sides[1]))),
            0);
        word = 0;
    }
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 1000, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cntr_read(sides[0].writes), 1000);
    for (uint64_t i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(((uint64_t *)sides[1].memory)[i], i + 1);
    CU_ASSERT_EQUAL(fi_cq_read(sides[0].cq, &entry, 1), -FI_EAGAIN);
    CU_ASSERT_EQUAL(fi_cq_read(sides[1].cq, &entry, 1), -FI_EAGAIN);
    both_close(sides);
}

/* Pieces from several places are adjacent at the peer. */
static void test_pieces(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    char left[] = "left ", middle[] = "middle ", right[] = "right";
    char back[3][8] = {{0}};
    struct iovec from[] = {{left, 5}, {middle, 7}, {right, 6}};
    struct iovec to[] = {{back[0], 5}, {back[1], 7}, {back[2], 6}};

    both_open(sides, &both_basic);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_writev(sides[0].ep, from, NULL, 3, sides[0].peer,
                              side_address(&sides[1], 11), side_key(&sides[1]), NULL)),
        0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 11, "left middle right");
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_readv(sides[0].ep, to, NULL, 3, sides[0].peer, side_address(&sides[1], 11),
                             side_key(&sides[1]), NULL)),
        0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL(back[0], "left ");
    CU_ASSERT_STRING_EQUAL(back[1], "middle ");
    CU_ASSERT_STRING_EQUAL(back[2], "right");
    both_close(sides);
}

/* Writes, and checks that the write ends with this error and with its context. */
static void expect_error(struct side sides[2], uint64_t address, uint64_t key, size_t length,
                         int error)
{
    struct fi_cq_err_entry entry;
    static unsigned char bytes[64];

    CU_ASSERT_EQUAL_FATAL(both_write(sides, bytes, length, address, key, bytes), 0);
    CU_ASSERT_EQUAL(side_error(&sides[0], &entry), error);
    CU_ASSERT_PTR_EQUAL(entry.op_context, bytes);
    CU_ASSERT_EQUAL(entry.flags, FI_RMA | FI_WRITE);
}

/* A wrong key, or bytes past a range's end, only end that operation with an error. */
static void test_wrong_key(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;

    both_open(sides, &both_basic);
    expect_error(sides, side_address(&sides[1], 0), side_key(&sides[1]) + 77, 8, FI_EKEYREJECTED);
    expect_error(sides, side_address(&sides[1], SIDE_BYTES - 7), side_key(&sides[1]), 8, ERANGE);
    expect_error(sides, side_address(&sides[1], 0) - 1, side_key(&sides[1]), 8, ERANGE);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "still", 6, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "still");
    both_close(sides);
}

/* A key is invalid after its range is closed; registered again, the memory has another key. */
static void test_closed_key(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    uint64_t old;

    both_open(sides, &both_basic);
    old = side_key(&sides[1]);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "one", 4, side_address(&sides[1], 0), old, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_EQUAL_FATAL(fi_close(&sides[1].mr->fid), 0);
    expect_error(sides, side_address(&sides[1], 0), old, 8, FI_EKEYREJECTED);
    expect_error(sides, side_address(&sides[1], 0), old, 8, FI_EKEYREJECTED);
    CU_ASSERT_EQUAL_FATAL(fi_mr_reg(sides[1].domain, sides[1].memory, SIDE_BYTES,
                                    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &sides[1].mr, NULL),
                          0);
    CU_ASSERT_NOT_EQUAL(side_key(&sides[1]), old);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "two", 4, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "two");
    both_close(sides);
}

/* A number whose address was removed reaches nobody, also where it was used before; the address has
 * another number when it is inserted again. */
static void test_removed_address(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    fi_addr_t old;

    both_open(sides, &both_basic);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "one", 4, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    old = sides[0].peer;
    CU_ASSERT_EQUAL(fi_av_remove(sides[0].av, &old, 1, 0), 0);
    CU_ASSERT_EQUAL(
        both_write(sides, "two", 4, side_address(&sides[1], 0), side_key(&sides[1]), NULL),
        -FI_EINVAL);
    CU_ASSERT_EQUAL(fi_send(sides[0].ep, "two", 4, NULL, old, NULL), -FI_EINVAL);
    CU_ASSERT_EQUAL_FATAL(side_meet(&sides[0], &sides[1]), 0);
    CU_ASSERT_NOT_EQUAL(sides[0].peer, old);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "three", 6, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "three");
    CU_ASSERT_EQUAL(fi_send(sides[0].ep, "two", 4, NULL, old, NULL), -FI_EINVAL);
    both_close(sides);
}

/* A range without the needed right refuses an operation. */
static void test_rights(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    unsigned char word[8];

    both_open(sides, &both_basic);
    CU_ASSERT_EQUAL_FATAL(fi_close(&sides[1].mr->fid), 0);
    CU_ASSERT_EQUAL_FATAL(fi_mr_reg(sides[1].domain, sides[1].memory, SIDE_BYTES, FI_REMOTE_WRITE,
                                    0, 0, 0, &sides[1].mr, NULL),
                          0);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "in", 3, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_EQUAL_FATAL(
        both_read(sides, word, 8, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(side_error(&sides[0], &error), FI_EKEYREJECTED);
    both_close(sides);
}

/* The message of a child: its side's name and key. Then the child waits to be killed. */
struct card {
    unsigned char name[128];
    size_t length;
    uint64_t address, key;
};

static pid_t start_child(int *from)
{
    int ends[2];
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct card card = {.length = sizeof(card.name)};
        struct side side;

        alarm(60);
        if (side_open(&side, both_socket(1), &both_basic) == 0 &&
            fi_getname(&side.ep->fid, card.name, &card.length) == 0) {
            card.address = side_address(&side, 0);
            card.key = side_key(&side);
            if (write(ends[1], &card, sizeof(card)) == sizeof(card))
                for (;;)
                    pause();
        }
        _exit(1);
    }
    close(ends[1]);
    *from = ends[0];
    return child;
}

/* A write to a killed process ends with an error. */
static void test_dead_peer(void)
{
    struct side side;
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    struct card card;
    fi_addr_t peer;
    int from, rc;
    pid_t child = start_child(&from);

    CU_ASSERT_EQUAL_FATAL(read(from, &card, sizeof(card)), sizeof(card));
    close(from);
    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &both_basic), 0);
    CU_ASSERT_EQUAL_FATAL(fi_av_insert(side.av, card.name, 1, &peer, 0, NULL), 1);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&side, NULL,
                    fi_write(side.ep, "x", 1, NULL, peer, card.address, card.key, NULL)),
        0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&side, NULL, &entry), 1);
    kill(child, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
    /* Until the killed process's daemon has noticed the death, writes may still succeed. */
    do {
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&side, NULL,
                        fi_write(side.ep, "x", 1, NULL, peer, card.address, card.key, &side)),
            0);
        rc = side_entry(&side, NULL, &entry);
    } while (rc == 1);
    CU_ASSERT_EQUAL_FATAL(rc, -FI_EAVAIL);
    rc = side_error(&side, &error);
    CU_ASSERT(rc == FI_EHOSTDOWN || rc == FI_EKEYREJECTED || rc == FI_EHOSTUNREACH);
    CU_ASSERT_PTR_EQUAL(error.op_context, &side);
    side_close(&side);
}

/* An object cannot be closed while others are open on it. */
static void test_close_order(void)
{
    struct side side;

    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &both_basic), 0);
    CU_ASSERT_EQUAL(fi_close(&side.fabric->fid), -FI_EBUSY);
    CU_ASSERT_EQUAL(fi_close(&side.domain->fid), -FI_EBUSY);
    CU_ASSERT_EQUAL(fi_close(&side.cq->fid), -FI_EBUSY);
    CU_ASSERT_EQUAL(fi_close(&side.av->fid), -FI_EBUSY);
    side_close(&side);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"write", test_write},
        {"read", test_read},
        {"own keys", test_own_keys},
        {"write with data", test_writedata},
        {"inject", test_inject},
        {"pieces", test_pieces},
        {"wrong key and range", test_wrong_key},
        {"closed key", test_closed_key},
        {"removed address", test_removed_address},
        {"rights", test_rights},
        {"dead peer", test_dead_peer},
        {"order of closing", test_close_order},
        CU_TEST_INFO_NULL,
    };
    return both_main(argc, argv, "provider, RMA", tests);
}
