/*
 * The stream fabric at its limits: memory that is dropped while it is used, or that cannot be
 * accessed; and full tables. Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/fabric/stream/stream_private.h"
#include "tests/fabric/end.h"
#include "tests/fabric/near.h"
#include "shm_ring/sigbus.h"
#include "tests/suite.h"

#define FRAME  sizeof(struct stream_frame)
#define LARGE  (4u << 20)
#define PAGES  8u
#define COOKIE 7u

static struct near near;

static void drop(const struct fabric_memory *memory)
{
    uint32_t before = near.memory_events;

    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, memory->index, 77), 0);
    CU_ASSERT_TRUE(near_until(&near, &near.memory_events, before + 1));
    CU_ASSERT_EQUAL(near.memory_event.kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(near.memory_event.status, 0);
    CU_ASSERT_EQUAL(near.memory_event.cookie, 77);
}

/* ---- memory that goes ------------------------------------------------------------------------ */

enum use {
    UNUSED,
    WRITTEN_TO,
    WRITTEN_IN_PARTS,
    READ_FROM,
    OUR_WRITE,
    OUR_READ,
    OUR_READ_ANSWERED
};

/* When memory in use is dropped, the peer that uses it is disconnected, our own operations on it
 * end once, and the memory is not touched any more. */
static void dropped_while(enum use use)
{
    uint8_t *base = calloc(1, LARGE), *payload = malloc(LARGE);
    struct stream_frame frame = {.length = LARGE}, data = {.kind = STREAM_DATA, .length = LARGE};
    bool ours = use == OUR_WRITE || use == OUR_READ || use == OUR_READ_ANSWERED;
    struct fabric_memory memory;
    int fd, other, descriptor;

    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    memory = near_add(&near, base, LARGE);
    memset(payload, 0x77, LARGE);
    frame.key = memory.key;
    frame.kind = use == WRITTEN_TO ? STREAM_WRITE : STREAM_READ;
    if (use == WRITTEN_TO || use == READ_FROM)
        CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    if (use == OUR_WRITE)
        CU_ASSERT_EQUAL(near_write_from(&near, memory.index, base, LARGE, COOKIE), 0);
    if (use == OUR_READ || use == OUR_READ_ANSWERED)
        CU_ASSERT_EQUAL(fabric_post_read(near.fabric, &(struct fabric_read){.peer = 1,
                                                                            .memory = memory.index,
                                                                            .destination = base,
                                                                            .length = LARGE,
                                                                            .cookie = COOKIE}),
                        0);
    if (use == OUR_READ_ANSWERED)
        CU_ASSERT_TRUE(raw_send(&near, fd, &data, FRAME));
    if (use == WRITTEN_TO || use == OUR_READ_ANSWERED)
        CU_ASSERT_TRUE(raw_send(&near, fd, payload, LARGE / 2));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    drop(&memory);
    memset(base, 0x11, LARGE);
    (void)raw_send(&near, fd, payload, 65536);
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_EQUAL(near.peers[1].broken, use != UNUSED);
    CU_ASSERT_EQUAL(near.peers[1].status, use != UNUSED ? -EACCES : 0);
    CU_ASSERT_EQUAL(near.ended_count, ours);
    CU_ASSERT_EQUAL(near.status[COOKIE], ours ? -EACCES : 0);
    for (uint32_t i = 0; i < LARGE; i += 997)
        CU_ASSERT_EQUAL_FATAL(base[i], 0x11);
    CU_ASSERT_EQUAL(near.peers[2].broken, 0);
    close(fd);
    close(other);
    near_finish(&near);
    free(base);
    free(payload);
}

static void dropped(void)
{
    static const enum use uses[] = {WRITTEN_TO, READ_FROM, OUR_WRITE, OUR_READ, OUR_READ_ANSWERED};

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        dropped_while(uses[i]);
}

/* Dropping unused memory disconnects no peer. Its key is no longer valid, even when its slot is
 * used again. */
static void dropped_unused(void)
{
    struct stream_frame frame = {.kind = STREAM_READ, .length = 8};
    uint8_t base[64] = {0};
    struct fabric_memory memory, second;
    int fd;

    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    memory = near_add(&near, base, sizeof(base));
    drop(&memory);
    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, memory.index, 0), -EINVAL);
    CU_ASSERT_EQUAL(near_write_from(&near, memory.index, base, 8, COOKIE), -EINVAL);
    frame.key = memory.key;
    CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    CU_ASSERT_TRUE(raw_done_comes(&near, fd, EACCES));
    second = near_add(&near, base, sizeof(base));
    CU_ASSERT_EQUAL(second.index, memory.index);
    CU_ASSERT_NOT_EQUAL(second.key, memory.key);
    CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    CU_ASSERT_TRUE(raw_done_comes(&near, fd, EACCES));
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    near_finish(&near);
}

/* ---- memory that cannot be reached ----------------------------------------------------------- */

/* Memory as a client can make it: its file keeps only `kept` pages. An access to the others faults,
 * so system calls return EFAULT. */
struct cut {
    uint8_t *base;
    size_t size;
    int range;
};

static struct cut cut_short(uint32_t kept)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct cut cut = {.size = PAGES * page};
    int fd = memfd_create("test", MFD_CLOEXEC);

    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)cut.size), 0);
    cut.base = mmap(NULL, cut.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FATAL(cut.base != MAP_FAILED);
    memset(cut.base, 'x', cut.size);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)(kept * page)), 0);
    close(fd);
    cut.range = sigbus_add(cut.base, cut.size);
    CU_ASSERT_FATAL(cut.range >= 0);
    return cut;
}

static void uncut(const struct cut *cut)
{
    sigbus_remove(cut->range);
    munmap(cut->base, cut->size);
}

/* A peer writes into such memory or reads from it, and we write from it or read into it: each
 * operation ends, with any bytes, and no other peer is affected. */
static void unreachable(void)
{
    static const enum use uses[] = {WRITTEN_TO, WRITTEN_IN_PARTS, READ_FROM, OUR_WRITE, OUR_READ};
    static const uint32_t lengths[] = {1, 4000, PAGES * 4096};
    static uint8_t bytes[FRAME + PAGES * 65536];

    CU_ASSERT_EQUAL_FATAL(sigbus_install(), 0);
    for (uint32_t i = 0; i < 5 * 4; i++) {
        enum use use = uses[i % 5];
        bool written = use == WRITTEN_TO || use == WRITTEN_IN_PARTS;
        uint32_t length = lengths[i / 5 % 3], kept = i / 15;
        struct cut cut = cut_short(kept);
        struct stream_frame frame = {0};
        struct fabric_memory memory;
        int fd, other, descriptor;

        if (kept > 0) /* the missing pages begin in the middle */
            length = (uint32_t)cut.size;
        frame.length = length;
        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        memory = near_add(&near, cut.base, cut.size);
        frame.key = memory.key;
        memset(bytes, 'y', sizeof(bytes));
        if (written || use == READ_FROM) {
            frame.kind = written ? STREAM_WRITE : STREAM_READ;
            frame.flags = written ? STREAM_PLACED : 0;
            memcpy(bytes, &frame, FRAME);
            CU_ASSERT_TRUE(raw_send(&near, fd, bytes, use == WRITTEN_TO ? FRAME + length : FRAME));
        }
        if (use == WRITTEN_IN_PARTS) { /* a long payload the kernel places itself */
            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
            CU_ASSERT_TRUE(raw_send(&near, fd, bytes + FRAME, length));
        }
        if (written)
            CU_ASSERT_TRUE(raw_done_comes(&near, fd, 0));
        if (use == OUR_WRITE)
            CU_ASSERT_EQUAL(near_write_from(&near, memory.index, cut.base, length, COOKIE), 0);
        if (use == READ_FROM || use == OUR_WRITE)
            CU_ASSERT_EQUAL(raw_take(&near, fd, bytes, FRAME + length), FRAME + length);
        if (use == OUR_READ) {
            CU_ASSERT_EQUAL(
                fabric_post_read(near.fabric, &(struct fabric_read){.peer = 1,
                                                                    .memory = memory.index,
                                                                    .destination = cut.base,
                                                                    .length = length,
                                                                    .cookie = COOKIE}),
                0);
            CU_ASSERT_EQUAL(raw_take(&near, fd, &frame, FRAME), FRAME);
            frame = (struct stream_frame){.kind = STREAM_DATA, .length = length};
            memcpy(bytes, &frame, FRAME);
            CU_ASSERT_TRUE(raw_send(&near, fd, bytes, FRAME + length));
        }
        if (use == OUR_WRITE || use == OUR_READ) {
            CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
            CU_ASSERT_EQUAL(near.status[COOKIE], 0);
        }
        CU_ASSERT_TRUE(sigbus_hit(cut.range));
        CU_ASSERT_TRUE(raw_alive(&near, fd));
        CU_ASSERT_TRUE(raw_alive(&near, other));
        CU_ASSERT_EQUAL(near.peers[1].broken, 0);
        CU_ASSERT_TRUE(near_untouched(&near, NEAR_ALL));
        close(fd);
        close(other);
        near_finish(&near);
        uncut(&cut);
    }
}

/* ---- full tables ----------------------------------------------------------------------------- */

static void full_tables(void)
{
    struct stream_config config = {.peers_max = 2, .memories_max = 5, .operations_max = 12};
    uint8_t base[64], written[3 * 3 * (FRAME + 8)];
    struct fabric_memory fifth;
    int fd;

    near_begin(&near, &config); /* with four memories */
    fd = raw_peer(&near, 1);
    CU_ASSERT_EQUAL(raw_announce(&near, 2, true, 9), -EINVAL);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 2), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, NULL, 1, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, 0, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, UINT64_MAX, 0, 0), -EINVAL);
    fifth = near_add(&near, base, sizeof(base));
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, 1, 0, 0), -ENOSPC);
    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, 5, 0), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, fifth.index, 0), 0);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, 1, 0, 0), -ENOSPC); /* not delivered yet */
    CU_ASSERT_TRUE(near_until(&near, &near.memory_events, 6));
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, 1, 0, 0), 0);
    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, fifth.index, 0), -EBUSY); /* not delivered yet */
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t index = near.registered[NEAR_LOCAL].index, first = 4 * round;
        const uint8_t *source = near.memory[NEAR_LOCAL];

        for (uint32_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(near_write_from(&near, index, source, 8, first + i), 0);
        CU_ASSERT_EQUAL(near_write_from(&near, index, source, 8, first + 3), -EAGAIN);
        CU_ASSERT_TRUE(near_until(&near, &near.ended_count, 3 * round + 3));
    }
    CU_ASSERT_EQUAL(raw_take(&near, fd, written, sizeof(written)), sizeof(written));
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    close(fd);
    near_finish(&near);
}

/* Posts operations of 8 bytes until the fabric takes no more. Returns their number. */
static uint32_t post_all(uint32_t peer, bool reads, bool records)
{
    const struct fabric_read read = {.peer = peer,
                                     .memory = near.registered[NEAR_LOCAL].index,
                                     .destination = near.memory[NEAR_LOCAL],
                                     .length = 8};
    const struct fabric_write write = {.peer = peer,
                                       .memory = read.memory,
                                       .source = read.destination,
                                       .length = 8,
                                       .placed = true,
                                       .announce = true,
                                       .record = records};
    uint32_t posted = 0;
    int rc;

    while ((rc = reads ? fabric_post_read(near.fabric, &read)
                       : fabric_post_write(near.fabric, &write)) == 0)
        posted++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    return posted;
}

/* A peer that answers nothing holds a quarter of the operations, also when its link begins anew
 * before their events are taken. Peers together leave an eighth to announced writes. */
static void silent_peers(void)
{
    enum { MOST = 64, QUARTER = MOST / 4, EIGHTH = MOST / 8, PEERS = 6 };
    struct stream_config config = {.peers_max = NEAR_PEERS, .operations_max = MOST};
    int fds[PEERS];

    near_begin(&near, &config);
    for (uint32_t i = 0; i < PEERS; i++)
        fds[i] = raw_peer(&near, i);
    CU_ASSERT_EQUAL(post_all(0, true, false), QUARTER);
    CU_ASSERT_EQUAL(post_all(0, false, false), 0);
    CU_ASSERT_EQUAL(post_all(1, false, false), QUARTER);
    CU_ASSERT_EQUAL(post_all(1, true, false), 0);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
    CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
    CU_ASSERT_EQUAL(post_all(2, true, false), QUARTER);
    CU_ASSERT_EQUAL(post_all(3, false, false), QUARTER - EIGHTH);
    CU_ASSERT_EQUAL(post_all(4, true, false), 0);
    CU_ASSERT_EQUAL(post_all(5, false, true), EIGHTH);
    for (uint32_t i = 0; i < PEERS; i++)
        close(fds[i]);
    near.wrong = 0; /* all cookies are 0 */
    near_finish(&near);
}

/* Records to peers that answer nothing leave a sixteenth of the operations to peers with few of
 * them under way, so that records to other peers still leave. */
static void silent_receivers(void)
{
    enum { MOST = 256, LAST = MOST / 16, FEW = 8, PEERS = 3 };
    struct stream_config config = {.peers_max = NEAR_PEERS, .operations_max = MOST};
    int fds[PEERS];

    near_begin(&near, &config);
    for (uint32_t i = 0; i < PEERS; i++)
        fds[i] = raw_peer(&near, i);
    CU_ASSERT_EQUAL(post_all(0, false, true), MOST - LAST);
    CU_ASSERT_EQUAL(post_all(1, true, false), 0);
    CU_ASSERT_EQUAL(post_all(1, false, true), FEW);
    CU_ASSERT_EQUAL(post_all(2, false, true), LAST - FEW);
    for (uint32_t i = 0; i < PEERS; i++)
        close(fds[i]);
    near.wrong = 0; /* all cookies are 0 */
    near_finish(&near);
}

/* The number of our own reads and placed writes under way is bounded. */
static void full_of_questions(void)
{
    struct stream_config config = {.operations_max = 8 * STREAM_ANSWERS};
    static struct stream_frame frames[STREAM_ANSWERS];
    uint32_t index, posted = 0;
    int fd, rc;

    near_begin(&near, &config);
    index = near.registered[NEAR_LOCAL].index;
    fd = raw_peer(&near, 1);
    for (;;) {
        rc = fabric_post_read(near.fabric,
                              &(struct fabric_read){.peer = 1,
                                                    .memory = index,
                                                    .destination = near.memory[NEAR_LOCAL],
                                                    .length = 8,
                                                    .cookie = posted});
        if (rc < 0 || posted > STREAM_ANSWERS)
            break;
        posted++;
    }
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(posted, STREAM_ANSWERS);
    CU_ASSERT_EQUAL(near_write_from(&near, index, near.memory[NEAR_LOCAL], 8, posted++),
                    0); /* unanswered */
    CU_ASSERT_EQUAL(raw_take(&near, fd, frames, sizeof(frames)), sizeof(frames));
    for (uint32_t i = 0; i < STREAM_ANSWERS; i++)
        frames[i] = (struct stream_frame){.kind = STREAM_DONE, .key = EIO};
    CU_ASSERT_TRUE(raw_send(&near, fd, frames, sizeof(frames)));
    CU_ASSERT_TRUE(near_until(&near, &near.ended_count, posted));
    CU_ASSERT_EQUAL(near.status[0], -EIO);
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    near_finish(&near);
}

/* Hundreds of events of each kind are returned by polls with room for one. */
static void small_polls(void)
{
    enum { COUNT = 300 };
    static struct stream_frame frames[COUNT];
    uint8_t base[64];
    int fd, rc = 0;

    near_begin(&near, NULL);
    near.room = 1;
    fd = raw_peer(&near, 1);
    raw_announcements(&near, frames, COUNT);
    CU_ASSERT_EQUAL(send(fd, frames, sizeof(frames), 0), sizeof(frames));
    for (uint32_t i = 0; i < COUNT; i++)
        rc |= near_write_from(&near, near.registered[NEAR_LOCAL].index, near.memory[NEAR_LOCAL], 8,
                              i);
    for (uint32_t i = 0; i < COUNT; i++)
        rc |= fabric_mem_add(near.fabric, base, sizeof(base), 0, 0);
    CU_ASSERT_EQUAL(rc, 0);
    for (uint32_t polls = 0; polls < 3 * COUNT + 64; polls++)
        (void)near_poll(&near);
    CU_ASSERT_EQUAL(near.ended_count, COUNT);
    CU_ASSERT_EQUAL(near.memory_events, COUNT + NEAR_MEMORIES);
    CU_ASSERT_EQUAL(near.peers[1].arrived, COUNT);
    CU_ASSERT_EQUAL(near.peers[1].disorder, 0);
    close(fd);
    near_finish(&near);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"memory dropped while it is used", dropped},
        {"memory dropped unused", dropped_unused},
        {"memory that cannot be reached", unreachable},
        {"full tables", full_tables},
        {"peers that answer nothing", silent_peers},
        {"peers that take no records", silent_receivers},
        {"full of questions", full_of_questions},
        {"polls that take one event", small_polls},
        CU_TEST_INFO_NULL,
    };

    return suite_run("stream_limits", tests);
}
