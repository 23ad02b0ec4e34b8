/*
 * Calls that inject, of all lengths up to the promised one, over libfabric and two daemons: their
 * memory may change when the call returns, whatever the daemon's packed-max is.
 *
 *     test_inject PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <string.h>
#include "tests/providers/both.h"

#define LONGEST 4096u
#define WORDS   (LONGEST / sizeof(uint64_t))

static const struct side_options counting = {.mr_mode =
                                                 FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
                                             .format = FI_CQ_FORMAT_TAGGED,
                                             .counters = true};

static const size_t lengths[] = {0, 1, 99, 100, 101, 200, 4095, LONGEST};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Where the bytes of a length go at the target. */
static size_t place_of(size_t index)
{
    return index * LONGEST;
}

/* Checks that each length has arrived with its own byte. */
static void check_places(const struct side *side)
{
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t at = 0; at < lengths[i]; at++)
            if (side->memory[place_of(i) + at] != 'a' + i) {
                CU_FAIL("the bytes are those of another call");
                break;
            }
}

/* The daemon reads longer payloads of registered memory itself, after the call. */
static void test_write(void)
{
    struct side sides[2];
    unsigned char *from;

    both_open(sides, &counting);
    from = sides[0].memory;
    CU_ASSERT_EQUAL(sides[0].info->tx_attr->inject_size, LONGEST);
    for (size_t i = 0; i < LENGTHS; i++) {
        memset(from, 'a' + (int)i, LONGEST);
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_inject_write(sides[0].ep, from, lengths[i], sides[0].peer,
                                        side_address(&sides[1], place_of(i)), side_key(&sides[1]))),
            0);
        memset(from, '-', LONGEST);
    }
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, LENGTHS, SIDE_WAIT_MS), 0);
    check_places(&sides[1]);
    CU_ASSERT_EQUAL(fi_inject_write(sides[0].ep, from, LONGEST + 1, sides[0].peer,
                                    side_address(&sides[1], 0), side_key(&sides[1])),
                    -FI_EMSGSIZE);
    both_close(sides);
}

/* A message call with FI_INJECT, several pieces and data: its entries come as usual. */
static void test_write_pieces(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct iovec iov[] = {{.iov_len = 10}, {.iov_len = 3000}, {.iov_len = 90}};
    struct fi_rma_iov target = {.len = 3100};
    struct fi_msg_rma message = {.msg_iov = iov,
                                 .iov_count = 3,
                                 .rma_iov = &target,
                                 .rma_iov_count = 1,
                                 .context = &message,
                                 .data = 42};

    both_open(sides, &counting);
    message.addr = sides[0].peer;
    target.addr = side_address(&sides[1], 0);
    target.key = side_key(&sides[1]);
    for (unsigned i = 0; i < 3; i++) {
        iov[i].iov_base = sides[0].memory + 5000 * i;
        memset(iov[i].iov_base, 'a' + (int)i, iov[i].iov_len);
    }
    CU_ASSERT_EQUAL_FATAL(SIDE_REPEAT(&sides[0], &sides[1],
                                      fi_writemsg(sides[0].ep, &message,
                                                  FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA)),
                          0);
    for (unsigned i = 0; i < 3; i++)
        memset(iov[i].iov_base, '-', iov[i].iov_len);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
    CU_ASSERT_EQUAL(entry.data, 42);
    CU_ASSERT_EQUAL(sides[1].memory[9], 'a');
    CU_ASSERT_EQUAL(sides[1].memory[10], 'b');
    CU_ASSERT_EQUAL(sides[1].memory[3009], 'b');
    CU_ASSERT_EQUAL(sides[1].memory[3010], 'c');
    CU_ASSERT_EQUAL(sides[1].memory[3099], 'c');
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_PTR_EQUAL(entry.op_context, &message);
    both_close(sides);
}

/* Pieces that are adjacent at both ends may travel as one, longer than what a record carries: their
 * bytes are those of the time of the call, though the daemon comes to them later. */
static void test_write_adjacent(void)
{
    enum { PIECE = 60 };
    struct side sides[2];
    struct iovec iov[2];
    struct fi_rma_iov target = {.len = 2 * PIECE};
    struct fi_msg_rma message = {
        .msg_iov = iov, .iov_count = 2, .rma_iov = &target, .rma_iov_count = 1};
    int64_t end;

    both_open(sides, &counting);
    message.addr = sides[0].peer;
    target.addr = side_address(&sides[1], 0);
    target.key = side_key(&sides[1]);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "x", 1, target.addr + LONGEST, target.key, NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        iov[i] = (struct iovec){sides[0].memory + PIECE * i, PIECE};
    memset(sides[0].memory, 'a', (size_t)2 * PIECE);
    both_stop_daemon(0);
    CU_ASSERT_EQUAL(fi_writemsg(sides[0].ep, &message, FI_INJECT), 0);
    memset(sides[0].memory, '-', (size_t)2 * PIECE);
    both_resume_daemon(0);
    end = side_now() + SIDE_WAIT_MS;
    while (fi_cntr_read(sides[0].writes) < 2 && side_now() < end)
        ;
    CU_ASSERT_EQUAL(fi_cntr_read(sides[0].writes), 2);
    for (unsigned i = 0; i < 2 * PIECE; i++)
        CU_ASSERT_EQUAL(sides[1].memory[i], 'a');
    both_close(sides);
}

/* Each element is changed once, and the data of a call comes after its last element. */
static void test_atomic(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    uint64_t *words;
    uint64_t operands[WORDS];
    struct fi_ioc ioc = {operands, WORDS};
    struct fi_rma_ioc target = {.count = WORDS};
    struct fi_msg_atomic message = {.msg_iov = &ioc,
                                    .iov_count = 1,
                                    .rma_iov = &target,
                                    .rma_iov_count = 1,
                                    .datatype = FI_UINT64,
                                    .op = FI_SUM,
                                    .data = 43};

    both_open(sides, &counting);
    words = (uint64_t *)(void *)sides[1].memory;
    message.addr = sides[0].peer;
    target.addr = side_address(&sides[1], 0);
    target.key = side_key(&sides[1]);
    for (uint64_t i = 0; i < WORDS; i++) {
        words[i] = 1000 * i;
        operands[i] = i;
    }
    CU_ASSERT_EQUAL_FATAL(SIDE_REPEAT(&sides[0], &sides[1],
                                      fi_inject_atomic(sides[0].ep, operands, WORDS, sides[0].peer,
                                                       target.addr, target.key, FI_UINT64, FI_SUM)),
                          0);
    for (uint64_t i = 0; i < WORDS; i++)
        operands[i] = 3;
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_atomicmsg(sides[0].ep, &message, FI_FENCE | FI_REMOTE_CQ_DATA)),
        0);
    memset(operands, 0, sizeof(operands));
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
    CU_ASSERT_EQUAL(entry.data, 43);
    for (uint64_t i = 0; i < WORDS; i++)
        CU_ASSERT_EQUAL_FATAL(words[i], 1001 * i + 3);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 2, SIDE_WAIT_MS), 0);
    both_close(sides);
}

static void send_all(struct side sides[2])
{
    static char from[LONGEST];

    for (size_t i = 0; i < LENGTHS; i++) {
        memset(from, 'a' + (int)i, sizeof(from));
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_injectdata(sides[0].ep, from, lengths[i], i, sides[0].peer)),
            0);
        memset(from, '-', sizeof(from));
    }
}

static void receive_all(struct side *side)
{
    for (size_t i = 0; i < LENGTHS; i++)
        CU_ASSERT_EQUAL_FATAL(
            fi_recv(side->ep, side->memory + place_of(i), LONGEST, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

static void check_entries(struct side sides[2])
{
    for (size_t i = 0; i < LENGTHS; i++) {
        struct fi_cq_tagged_entry entry;

        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
        CU_ASSERT_EQUAL(entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
        CU_ASSERT_EQUAL(entry.data, i);
        CU_ASSERT_EQUAL(entry.len, lengths[i]);
    }
    check_places(&sides[1]);
}

/* Messages to buffers that were posted before, and to buffers that were posted later. */
static void test_messages(void)
{
    struct side sides[2];

    both_open(sides, &counting);
    receive_all(&sides[1]);
    send_all(sides);
    check_entries(sides);
    memset(sides[1].memory, 0, SIDE_BYTES);
    send_all(sides);
    receive_all(&sides[1]);
    check_entries(sides);
    both_close(sides);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"writes", test_write},
        {"writes of pieces", test_write_pieces},
        {"writes of adjacent pieces", test_write_adjacent},
        {"atomics", test_atomic},
        {"messages", test_messages},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, calls that inject", tests);
}
