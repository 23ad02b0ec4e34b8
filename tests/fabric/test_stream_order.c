/*
 * The order of the stream fabric's work, with raw sockets as its peers: one peer's flood, long
 * answer or payload does not hold up others, and posts in a row take few calls. And which
 * congestion control its sockets have. Threads: one, and one that reads a payload.
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
#include "tests/suite.h"

#define FRAME  sizeof(struct stream_frame)
#define COOKIE 7u

static struct near near;

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

    near_begin(&near, NULL);
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
    near_finish(&near);
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

    near_begin(&near, NULL);
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
    near_finish(&near);
}

/* When the kernel refuses to send, that connection ends and others continue. */
static void send_fails(void)
{
    int fd, other;

    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    sendmsg_fails = ENOBUFS;
    CU_ASSERT_EQUAL(near_write_from(&near, near.registered[NEAR_LOCAL].index,
                                    near.memory[NEAR_LOCAL], 8, COOKIE),
                    0);
    CU_ASSERT_TRUE(near_until_ended(&near, COOKIE));
    CU_ASSERT_EQUAL(near.status[COOKIE], -ECONNRESET);
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
    CU_ASSERT_TRUE(raw_ends(&near, fd));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    close(fd);
    close(other);
    near_finish(&near);
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

    near_begin(&near, NULL);
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
    near_finish(&near);
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
    near_begin(&near, NULL);
    fd = raw_peer(&near, 1);
    memory = near_add(&near, base, ANSWER);
    ask.key = memory.key;
    CU_ASSERT_TRUE(raw_send(&near, fd, &ask, FRAME));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor)); /* the sockets are full */
    for (int i = 0; i < WRITES; i++)
        CU_ASSERT_EQUAL(near_write_from(&near, near.registered[NEAR_LOCAL].index,
                                        near.memory[NEAR_LOCAL], 8, (uint64_t)(COOKIE + i)),
                        0);
    while (heard.data < ANSWER || heard.writes < WRITES)
        hear_frame(fd, base, &heard);
    CU_ASSERT_EQUAL(heard.wrong, 0);
    CU_ASSERT_EQUAL(heard.data, ANSWER);
    CU_ASSERT_TRUE(heard.data_before_write < BOUND);
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    close(fd);
    near_finish(&near);
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
        near_begin(&near, NULL);
        fd = raw_peer(&near, 1);
        memory = near_add(&near, base, FULL);
        CU_ASSERT_EQUAL(near_write_from(&near, memory.index, base, FULL, COOKIE),
                        0); /* the sockets are full */
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
        near_finish(&near);
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
    near_begin(&near, NULL);
    d.socket = raw_peer(&near, 1);
    (void)setsockopt(d.socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    memory = near_add(&near, base, size);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, drain, &d), 0);
    CU_ASSERT_EQUAL(near_write_from(&near, memory.index, base, size, COOKIE), 0);
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
    near_finish(&near);
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

    return suite_run("stream_order", tests);
}
