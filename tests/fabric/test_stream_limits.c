/*
 * The stream fabric at its limits: memory that is dropped while it is used, or that cannot be
 * accessed; full tables; and work that must not wait for other work.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
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

static void open_near(const struct stream_config *config)
{
    struct stream_config small = {.peers_max = NEAR_PEERS};

    CU_ASSERT_TRUE_FATAL(near_open(&near, config ? config : &small));
}

static void close_near(void)
{
    CU_ASSERT_EQUAL(near.wrong, 0);
    near_close(&near);
}

static struct fabric_memory add(void *base, uint64_t length)
{
    uint32_t before = near.memory_events;

    CU_ASSERT_EQUAL_FATAL(
        fabric_mem_add(near.fabric, base, length, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE, 0), 0);
    CU_ASSERT_TRUE_FATAL(near_until(&near, &near.memory_events, before + 1));
    return near.memory_event.memory;
}

static void drop(const struct fabric_memory *memory)
{
    uint32_t before = near.memory_events;

    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, memory->index, 77), 0);
    CU_ASSERT_TRUE(near_until(&near, &near.memory_events, before + 1));
    CU_ASSERT_EQUAL(near.memory_event.kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(near.memory_event.status, 0);
    CU_ASSERT_EQUAL(near.memory_event.cookie, 77);
}

static int write_from(uint32_t index, const void *source, uint64_t length, uint64_t cookie)
{
    return fabric_post_write(
        near.fabric,
        &(struct fabric_write){
            .peer = 1, .memory = index, .source = source, .length = length, .cookie = cookie});
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

    open_near(NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    memory = add(base, LARGE);
    memset(payload, 0x77, LARGE);
    frame.key = memory.key;
    frame.kind = use == WRITTEN_TO ? STREAM_WRITE : STREAM_READ;
    if (use == WRITTEN_TO || use == READ_FROM)
        CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    if (use == OUR_WRITE)
        CU_ASSERT_EQUAL(write_from(memory.index, base, LARGE, COOKIE), 0);
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
    close_near();
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

    open_near(NULL);
    fd = raw_peer(&near, 1);
    memory = add(base, sizeof(base));
    drop(&memory);
    CU_ASSERT_EQUAL(fabric_mem_drop(near.fabric, memory.index, 0), -EINVAL);
    CU_ASSERT_EQUAL(write_from(memory.index, base, 8, COOKIE), -EINVAL);
    frame.key = memory.key;
    CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    CU_ASSERT_TRUE(raw_done_comes(&near, fd, EACCES));
    second = add(base, sizeof(base));
    CU_ASSERT_EQUAL(second.index, memory.index);
    CU_ASSERT_NOT_EQUAL(second.key, memory.key);
    CU_ASSERT_TRUE(raw_send(&near, fd, &frame, FRAME));
    CU_ASSERT_TRUE(raw_done_comes(&near, fd, EACCES));
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    close_near();
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
        open_near(NULL);
        fd = raw_peer(&near, 1);
        other = raw_peer(&near, 2);
        memory = add(cut.base, cut.size);
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
            CU_ASSERT_EQUAL(write_from(memory.index, cut.base, length, COOKIE), 0);
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
        close_near();
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

    open_near(&config); /* with four memories */
    fd = raw_peer(&near, 1);
    CU_ASSERT_EQUAL(raw_announce(&near, 2, true, 9), -EINVAL);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 2), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, NULL, 1, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, 0, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, UINT64_MAX, 0, 0), -EINVAL);
    fifth = add(base, sizeof(base));
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
            CU_ASSERT_EQUAL(write_from(index, source, 8, first + i), 0);
        CU_ASSERT_EQUAL(write_from(index, source, 8, first + 3), -EAGAIN);
        CU_ASSERT_TRUE(near_until(&near, &near.ended_count, 3 * round + 3));
    }
    CU_ASSERT_EQUAL(raw_take(&near, fd, written, sizeof(written)), sizeof(written));
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    close(fd);
    close_near();
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

    open_near(&config);
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
    close_near();
}

/* The number of our own reads and placed writes under way is bounded. */
static void full_of_questions(void)
{
    struct stream_config config = {.operations_max = 8 * STREAM_ANSWERS};
    static struct stream_frame frames[STREAM_ANSWERS];
    uint32_t index, posted = 0;
    int fd, rc;

    open_near(&config);
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
    CU_ASSERT_EQUAL(write_from(index, near.memory[NEAR_LOCAL], 8, posted++), 0); /* unanswered */
    CU_ASSERT_EQUAL(raw_take(&near, fd, frames, sizeof(frames)), sizeof(frames));
    for (uint32_t i = 0; i < STREAM_ANSWERS; i++)
        frames[i] = (struct stream_frame){.kind = STREAM_DONE, .key = EIO};
    CU_ASSERT_TRUE(raw_send(&near, fd, frames, sizeof(frames)));
    CU_ASSERT_TRUE(near_until(&near, &near.ended_count, posted));
    CU_ASSERT_EQUAL(near.status[0], -EIO);
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    close_near();
}

/* Hundreds of events of each kind are returned by polls with room for one. */
static void small_polls(void)
{
    enum { COUNT = 300 };
    static struct stream_frame frames[COUNT];
    uint8_t base[64];
    int fd, rc = 0;

    open_near(NULL);
    near.room = 1;
    fd = raw_peer(&near, 1);
    raw_announcements(&near, frames, COUNT);
    CU_ASSERT_EQUAL(send(fd, frames, sizeof(frames), 0), sizeof(frames));
    for (uint32_t i = 0; i < COUNT; i++)
        rc |= write_from(near.registered[NEAR_LOCAL].index, near.memory[NEAR_LOCAL], 8, i);
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
    close_near();
}

/* ---- order of work --------------------------------------------------------------------------- */

/* Returns whether the other side's kernel has received all bytes that were sent. */
static bool is_there(int fd)
{
    int left = 1;

    for (int64_t limit = milliseconds() + END_PATIENCE; left > 0 && milliseconds() < limit;)
        if (ioctl(fd, SIOCOUTQ, &left) < 0)
            return false;
    return left == 0;
}

/* One peer keeps its socket full of announced writes; a single announced write of another peer must
 * arrive within a bounded number of polls. */
static void flood(void)
{
    enum { FRAMES = 512, ROUNDS = 20, BOUND = 200 };
    static struct stream_frame frames[FRAMES];
    struct stream_frame single;
    int flooder, other;

    open_near(NULL);
    flooder = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    raw_announcements(&near, frames, FRAMES);
    single = frames[0];
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint32_t polls = 0;
        size_t part = 0; /* bytes sent of a frame that was cut */

        single.immediate = round;
        CU_ASSERT_TRUE(raw_send(&near, other, &single, FRAME));
        CU_ASSERT_TRUE(is_there(other));
        while (near.peers[2].arrived < round && polls < 10 * BOUND) {
            for (;;) {
                ssize_t n = send(flooder, (uint8_t *)frames + part, sizeof(frames) - part,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0)
                    break;
                part = (part + (size_t)n) % FRAME;
            }
            (void)near_poll(&near);
            polls++;
        }
        CU_ASSERT_TRUE(polls <= BOUND);
        CU_ASSERT_TRUE(raw_send(&near, flooder, (uint8_t *)frames + part, part ? FRAME - part : 0));
    }
    CU_ASSERT_TRUE(near.peers[1].arrived > BOUND);
    CU_ASSERT_EQUAL(near.peers[1].broken + near.peers[2].broken, 0);
    close(flooder);
    close(other);
    close_near();
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

static int sendmsg_fails; /* errno of the next sendmsg, which fails once; 0: none */
static uint32_t sendmsg_calls;

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    sendmsg_calls++;
    if (sendmsg_fails == 0)
        return __real_sendmsg(fd, message, flags);
    errno = sendmsg_fails;
    sendmsg_fails = 0;
    return -1;
}

/* Reads and payloads in a row: the first read is sent at once, and all further ones by a few calls,
 * with the next announced write or in the next poll. */
static void posted_in_a_row(void)
{
    enum { ROW = 256, CALLS_MOST = 8 };
    static struct stream_frame frames[1 + ROW];
    struct fabric_read read = {.peer = 1, .length = 8};
    struct fabric_write write = {.peer = 1};
    int fd;

    open_near(NULL);
    fd = raw_peer(&near, 1);
    read.memory = write.memory = near.registered[NEAR_LOCAL].index;
    read.destination = near.memory[NEAR_LOCAL];
    write.source = near.memory[NEAR_LOCAL];
    for (int announced = 0; announced < 2; announced++) {
        uint32_t expected = ROW + (uint32_t)announced;

        (void)near_poll(&near);
        sendmsg_calls = 0;
        CU_ASSERT_EQUAL(fabric_post_read(near.fabric, &read), 0);
        CU_ASSERT_EQUAL(sendmsg_calls, 1);
        for (uint32_t i = 1; i < ROW; i++)
            CU_ASSERT_EQUAL(fabric_post_read(near.fabric, &read), 0);
        CU_ASSERT_EQUAL(sendmsg_calls, 1);
        write.announce = true;
        if (announced)
            CU_ASSERT_EQUAL(fabric_post_write(near.fabric, &write), 0);
        CU_ASSERT_EQUAL(raw_take(&near, fd, frames, expected * FRAME), expected * FRAME);
        for (uint32_t i = 0; i < ROW; i++)
            CU_ASSERT_EQUAL_FATAL(frames[i].kind, STREAM_READ);
        CU_ASSERT_TRUE(!announced || frames[ROW].kind == STREAM_WRITE);
        CU_ASSERT_TRUE(sendmsg_calls <= CALLS_MOST);
    }
    sendmsg_calls = 0;
    write.announce = false;
    write.length = 8;
    CU_ASSERT_EQUAL(fabric_post_write(near.fabric, &write), 0);
    CU_ASSERT_EQUAL(sendmsg_calls, 0);
    write.announce = true;
    CU_ASSERT_EQUAL(fabric_post_write(near.fabric, &write), 0);
    CU_ASSERT_EQUAL(sendmsg_calls, 1); /* both in one call */
    CU_ASSERT_EQUAL(raw_take(&near, fd, frames, 2 * (FRAME + 8)), 2 * (FRAME + 8));
    close(fd);
    close_near();
}

/* When the kernel refuses to send, that connection ends and others continue. */
static void send_fails(void)
{
    int fd, other;

    open_near(NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    sendmsg_fails = ENOBUFS;
    CU_ASSERT_EQUAL(
        write_from(near.registered[NEAR_LOCAL].index, near.memory[NEAR_LOCAL], 8, COOKIE), 0);
    CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
    CU_ASSERT_EQUAL(near.status[COOKIE], -ECONNRESET);
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
    CU_ASSERT_TRUE(raw_ends(&near, fd));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    close(fd);
    close(other);
    close_near();
}

/* A flood of announced writes, which fills each poll completely, must not delay ends of operations
 * and memory events. */
static void flood_of_whole_polls(void)
{
    enum { FRAMES = 512, BOUND = 2000 };
    static struct stream_frame frames[FRAMES];
    uint8_t base[64];
    uint32_t polls = 0, before;
    int fd;

    open_near(NULL);
    fd = raw_peer(&near, 1);
    raw_announcements(&near, frames, FRAMES);
    for (int i = 0; i < 8; i++) /* fills one buffer after another */
        CU_ASSERT_EQUAL(send(fd, frames, sizeof(frames), MSG_NOSIGNAL), sizeof(frames));
    CU_ASSERT_TRUE(is_there(fd));
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].arrived, 1));
    before = near.memory_events;
    CU_ASSERT_EQUAL(fabric_mem_add(near.fabric, base, sizeof(base), 0, 0), 0);
    for (; near.memory_events == before && polls < BOUND; polls++) {
        if (polls % 32 == 0)
            CU_ASSERT_EQUAL(send(fd, frames, sizeof(frames), MSG_NOSIGNAL), sizeof(frames));
        (void)near_poll(&near);
    }
    CU_ASSERT_TRUE(polls <= 2 * FRAMES / 16);
    close(fd);
    close_near();
}

/* Counts of what a peer has read: a long answer, and frames sent meanwhile. */
struct beside {
    uint64_t data; /* bytes of the answer */
    uint64_t data_before_write;
    uint32_t writes, wrong;
};

/* Reads the next frame with its payload. */
static void hear_frame(int fd, const uint8_t *answer, struct beside *heard)
{
    static uint8_t payload[1u << 20];
    struct stream_frame frame;

    CU_ASSERT_EQUAL_FATAL(raw_take(&near, fd, &frame, FRAME), FRAME);
    CU_ASSERT_TRUE_FATAL(frame.length <= sizeof(payload));
    CU_ASSERT_EQUAL_FATAL(raw_take(&near, fd, payload, frame.length), frame.length);
    if (frame.kind == STREAM_DATA) {
        heard->wrong += memcmp(payload, answer + heard->data, frame.length) != 0;
        heard->data += frame.length;
        return;
    }
    heard->wrong += frame.kind != STREAM_WRITE;
    if (heard->writes++ == 0)
        heard->data_before_write = heard->data;
}

/* A small write is posted while a very long answer is being sent. The write waits only for the
 * bytes in the sockets and for a part of the answer. The answer stays whole. */
static void write_beside_an_answer(void)
{
    enum { ANSWER = 64 << 20, BOUND = 16 << 20, WRITES = 100 };
    uint8_t *base = malloc(ANSWER);
    struct stream_frame ask = {.kind = STREAM_READ, .length = ANSWER};
    struct beside heard = {0};
    struct fabric_memory memory;
    int fd, descriptor;

    pattern_fill(base, ANSWER, 5);
    open_near(NULL);
    fd = raw_peer(&near, 1);
    memory = add(base, ANSWER);
    ask.key = memory.key;
    CU_ASSERT_TRUE(raw_send(&near, fd, &ask, FRAME));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor)); /* the sockets are full */
    for (int i = 0; i < WRITES; i++)
        CU_ASSERT_EQUAL(write_from(near.registered[NEAR_LOCAL].index, near.memory[NEAR_LOCAL], 8,
                                   (uint64_t)(COOKIE + i)),
                        0);
    while (heard.data < ANSWER || heard.writes < WRITES)
        hear_frame(fd, base, &heard);
    CU_ASSERT_EQUAL(heard.wrong, 0);
    CU_ASSERT_EQUAL(heard.data, ANSWER);
    CU_ASSERT_TRUE(heard.data_before_write < BOUND);
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    close(fd);
    close_near();
    free(base);
}

/* Pieces of one payload that wait in a row are sent in one frame; a piece that does not continue
 * the one before has a frame of its own. Each piece ends once: when it is sent, or when the link
 * ends. */
static void pieces_in_a_row(void)
{
    enum { FULL = 16 << 20, PIECE = 64 << 10, PIECES = 5 };
    static const struct {
        uint64_t source, target;
    } rows[PIECES] = {{0, 0},
                      {PIECE, PIECE},
                      {2 * PIECE, 2 * PIECE},
                      {3 * PIECE, 4 * PIECE},  /* its target does not continue the previous one */
                      {5 * PIECE, 5 * PIECE}}; /* its source does not */
    static const uint64_t lengths[] = {FULL, 3 * PIECE, PIECE, PIECE};

    for (int ends = 0; ends < 2; ends++) {
        uint8_t *base = malloc(FULL), *heard = malloc(FULL);
        struct fabric_memory memory;
        int fd;

        pattern_fill(base, FULL, 9);
        open_near(NULL);
        fd = raw_peer(&near, 1);
        memory = add(base, FULL);
        CU_ASSERT_EQUAL(write_from(memory.index, base, FULL, COOKIE), 0); /* the sockets are full */
        (void)near_poll(&near);
        for (uint32_t i = 0; i < PIECES; i++)
            CU_ASSERT_EQUAL(
                fabric_post_write(near.fabric,
                                  &(struct fabric_write){.peer = 1,
                                                         .memory = memory.index,
                                                         .source = base + rows[i].source,
                                                         .length = PIECE,
                                                         .remote_address = rows[i].target,
                                                         .cookie = COOKIE + 1 + i}),
                0);
        for (size_t i = 0; i < 4 && !ends; i++) {
            uint64_t source = i > 1 ? rows[i + 1].source : 0;
            struct stream_frame frame;

            CU_ASSERT_EQUAL_FATAL(raw_take(&near, fd, &frame, FRAME), FRAME);
            CU_ASSERT_EQUAL_FATAL(frame.length, lengths[i]);
            CU_ASSERT_EQUAL(frame.address, i > 1 ? rows[i + 1].target : 0);
            CU_ASSERT_EQUAL_FATAL(raw_take(&near, fd, heard, frame.length), frame.length);
            CU_ASSERT_EQUAL(memcmp(heard, base + source, frame.length), 0);
        }
        if (ends)
            CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
        for (uint32_t i = 0; i <= PIECES; i++) {
            CU_ASSERT_TRUE(near_until_ended(&near, COOKIE + i));
            CU_ASSERT_EQUAL(near.status[COOKIE + i], ends ? -ECANCELED : 0);
        }
        CU_ASSERT_EQUAL(near.ended_count, PIECES + 1);
        close(fd);
        close_near();
        free(base);
        free(heard);
    }
}

struct drain {
    int socket;
    _Atomic uint64_t bytes;
};

static void *drain(void *argument)
{
    struct drain *d = argument;
    ssize_t n;

    while ((n = recv(d->socket, NULL, 1u << 16, MSG_TRUNC)) > 0)
        atomic_fetch_add(&d->bytes, (uint64_t)n);
    return NULL;
}

/* A call returns after a bounded amount, also where the peer reads as fast as the fabric sends. */
static void endless_payload(void)
{
    const uint64_t size = UINT64_C(1) << 30, some = UINT64_C(32) << 20;
    uint8_t *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct drain d = {0};
    int buffer = 4 << 20;
    struct fabric_memory memory;
    pthread_t thread;
    uint64_t before;

    CU_ASSERT_FATAL(base != MAP_FAILED);
    open_near(NULL);
    d.socket = raw_peer(&near, 1);
    (void)setsockopt(d.socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    memory = add(base, size);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, drain, &d), 0);
    CU_ASSERT_EQUAL(write_from(memory.index, base, size, COOKIE), 0);
    CU_ASSERT_TRUE(atomic_load(&d.bytes) <= some);
    while (near.ended[COOKIE] == 0) {
        before = atomic_load(&d.bytes);
        (void)near_poll(&near);
        CU_ASSERT_TRUE_FATAL(atomic_load(&d.bytes) - before <= some);
    }
    CU_ASSERT_EQUAL(near.status[COOKIE], 0);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(atomic_load(&d.bytes), size + FRAME);
    close(d.socket);
    close_near();
    munmap(base, size);
}

static void algorithm_of(int fd, char name[16])
{
    socklen_t size = 16;

    name[0] = '\0';
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    close(fd);
}

/* A socket has the system's congestion control, except where that is BBR, which paces; and so has
 * a connection that it accepts. */
static void congestion_control(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), listener = stream_socket(AF_INET);
    const char *expected;
    socklen_t size = sizeof(at);
    char system[16], ours[16];

    CU_ASSERT_FATAL(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0 &&
                    getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    CU_ASSERT_EQUAL_FATAL(connect(other, (struct sockaddr *)&at, size), 0);
    algorithm_of(accept4(listener, NULL, NULL, SOCK_CLOEXEC), ours);
    algorithm_of(other, system);
    expected = strncmp(system, "bbr", 3) == 0 ? "reno" : system;
    CU_ASSERT_STRING_EQUAL(ours, expected);
    algorithm_of(listener, ours);
    CU_ASSERT_STRING_EQUAL(ours, expected);
    if (strncmp(system, "bbr", 3) != 0)
        printf("(not seen: a system with BBR; this one has %s) ", system);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"memory dropped while it is used", dropped},
        {"memory dropped unused", dropped_unused},
        {"memory that cannot be reached", unreachable},
        {"full tables", full_tables},
        {"peers that answer nothing", silent_peers},
        {"full of questions", full_of_questions},
        {"polls that take one event", small_polls},
        {"a flood", flood},
        {"a flood of whole polls", flood_of_whole_polls},
        {"posted in a row", posted_in_a_row},
        {"a send that fails", send_fails},
        {"a write beside a long answer", write_beside_an_answer},
        {"pieces in a row", pieces_in_a_row},
        {"a payload as fast as it is taken", endless_payload},
        {"the system's congestion control", congestion_control},
        CU_TEST_INFO_NULL,
    };

    return suite_run("stream_limits", tests);
}
