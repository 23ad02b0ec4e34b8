/*
 * The room in completion queues over libfabric and two daemons: neither posted buffers nor
 * endpoints that were closed keep it from others.
 *
 *     test_queues PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include "tests/providers/both.h"

#define ENTRIES 8

static const struct side_options small = {.mr_mode =
                                              FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
                                          .cq_size = ENTRIES,
                                          .format = FI_CQ_FORMAT_TAGGED};

/* Posts buffers until the queue promises no more. Returns how many were posted. */
static unsigned post_all(struct fid_ep *ep, uint64_t *to)
{
    unsigned posted = 0;

    while (posted <= ENTRIES && fi_recv(ep, to, sizeof(*to), NULL, FI_ADDR_UNSPEC, NULL) == 0)
        posted++;
    return posted;
}

static void drain(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    ssize_t rc;

    while ((rc = fi_cq_read(side->cq, &entry, 1)) == 1)
        ;
    CU_ASSERT_EQUAL(rc, -FI_EAGAIN);
}

/* An endpoint that closes with writes under way and posted buffers leaves its queue's room to
 * others. */
static void test_closed_endpoint(void)
{
    struct side sides[2];
    uint64_t to;

    both_open(sides, &small);
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct fid_ep *ep;

        CU_ASSERT_EQUAL_FATAL(side_endpoint(&sides[0], &small, &ep), 0);
        CU_ASSERT_EQUAL(
            SIDE_REPEAT(&sides[0], NULL,
                        fi_write(ep, "x", 1, NULL, sides[0].peer, side_address(&sides[1], 0),
                                 side_key(&sides[1]), NULL)),
            0);
        CU_ASSERT_EQUAL(fi_recv(ep, &to, sizeof(to), NULL, FI_ADDR_UNSPEC, NULL), 0);
        CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
        drain(&sides[0]);
    }
    CU_ASSERT_EQUAL(post_all(sides[0].ep, &to), ENTRIES);
    both_close(sides);
}

/* Writes with data from side 0, and takes the local entry of each. */
static void write_data(struct side sides[2], unsigned count)
{
    struct fi_cq_tagged_entry entry;

    for (unsigned i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], NULL,
                        fi_writedata(sides[0].ep, "x", 1, NULL, i, sides[0].peer,
                                     side_address(&sides[1], 0), side_key(&sides[1]), NULL)),
            0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    }
}

/* With as many posted buffers as the queue has entries, peers' writes still have theirs; and the
 * entries of both fit together. */
static void test_posted_and_written(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    uint64_t to, from = 7;
    unsigned messages = 0, writes = 0;

    both_open(sides, &small);
    CU_ASSERT_EQUAL(post_all(sides[1].ep, &to), ENTRIES);
    write_data(sides, 1);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], NULL, &entry), 1);
    CU_ASSERT_EQUAL(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    write_data(sides, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++) {
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_send(sides[0].ep, &from, sizeof(from), NULL, sides[0].peer, NULL)),
            0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    }
    for (unsigned i = 0; i < 2 * ENTRIES; i++) {
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
        if (entry.flags & FI_REMOTE_WRITE)
            CU_ASSERT_EQUAL(entry.data, writes++);
        messages += (entry.flags & FI_RECV) != 0;
    }
    CU_ASSERT_EQUAL(writes, ENTRIES);
    CU_ASSERT_EQUAL(messages, ENTRIES);
    drain(&sides[1]);
    CU_ASSERT_EQUAL(post_all(sides[1].ep, &to), ENTRIES);
    both_close(sides);
}

/* Entries that wait to be read hold both back: posted buffers, and in their ring peers' writes. */
static void test_full(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    uint64_t to;

    both_open(sides, &small);
    write_data(sides, ENTRIES + 64);
    side_drive(&sides[1], NULL);
    CU_ASSERT_EQUAL(fi_recv(sides[1].ep, &to, sizeof(to), NULL, FI_ADDR_UNSPEC, NULL), -FI_EAGAIN);
    for (unsigned i = 0; i < ENTRIES + 64; i++) {
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], NULL, &entry), 1);
        CU_ASSERT_EQUAL(entry.data, i);
    }
    CU_ASSERT_EQUAL(post_all(sides[1].ep, &to), ENTRIES);
    both_close(sides);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"closed endpoint", test_closed_endpoint},
        {"posted buffers and peers' writes", test_posted_and_written},
        {"full", test_full},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, room in queues", tests);
}
