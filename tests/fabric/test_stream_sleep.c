/*
 * The stream fabric wakes a caller that sleeps on its descriptor for everything that needs a poll,
 * on any connection, and not for data that a poll has handled already.
 */
#include <CUnit/CUnit.h>
#include <poll.h>
#include <unistd.h>
#include "tests/fabric/near.h"
#include "tests/suite.h"

static struct near near;

/* Opens two connections. The first is hot: the fabric reads it in each poll, without asking epoll
 * first. */
static void open_two(int fds[2])
{
    CU_ASSERT_TRUE_FATAL(near_open(&near, &(struct stream_config){.peers_max = NEAR_PEERS}));
    fds[1] = raw_peer(&near, 2);
    fds[0] = raw_peer(&near, 1);
}

static void close_two(const int fds[2])
{
    CU_ASSERT_EQUAL(near.wrong, 0);
    close(fds[0]);
    close(fds[1]);
    near_close(&near);
}

static bool would_wake(int descriptor, int limit_ms)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};

    return poll(&wait, 1, limit_ms) == 1;
}

static void announce(int fd, uint32_t immediate)
{
    const struct stream_frame frame = {.kind = STREAM_WRITE,
                                       .flags = STREAM_ANNOUNCE,
                                       .immediate = immediate,
                                       .key = near.registered[NEAR_ALL].key};

    CU_ASSERT_EQUAL(send(fd, &frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
}

/* Waits until the listening socket, which rests after an accept, has woken the caller once more by
 * its timer. */
static void until_listener_rests(void)
{
    int descriptor;

    do {
        CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
    } while (would_wake(descriptor, 20));
}

/* Data that a poll has read from a hot connection causes no later wake-up. */
static void nothing_that_was_read(void)
{
    int fds[2], descriptor;

    open_two(fds);
    until_listener_rests();
    for (uint32_t i = 0; i < 100; i++) {
        announce(fds[0], i);
        CU_ASSERT_TRUE(near_until(&near, &near.peers[1].arrived, i + 1));
        CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
        CU_ASSERT_FALSE(would_wake(descriptor, 0));
    }
    CU_ASSERT_EQUAL(near.peers[1].disorder, 0);
    close_two(fds);
}

/* Data on either connection, hot or not, wakes the sleeper, and the next poll reads it. */
static void what_comes(void)
{
    int fds[2], descriptor;

    open_two(fds);
    for (uint32_t i = 0; i < 200; i++) {
        CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
        announce(fds[i % 2], i / 2);
        CU_ASSERT_TRUE_FATAL(would_wake(descriptor, NEAR_PATIENCE));
        CU_ASSERT_EQUAL(near_poll(&near), 1);
        CU_ASSERT_EQUAL(near.peers[1 + i % 2].arrived, i / 2 + 1);
    }
    close_two(fds);
}

/* Data that comes after the wake-up, without a further sleep, is read by the third poll at the
 * latest. */
static void what_comes_next(void)
{
    for (uint32_t which = 0; which < 2; which++) {
        int fds[2], descriptor;
        uint32_t polls = 0;

        open_two(fds);
        CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
        announce(fds[0], 0);
        CU_ASSERT_TRUE_FATAL(would_wake(descriptor, NEAR_PATIENCE));
        CU_ASSERT_EQUAL(near_poll(&near), 1);
        announce(fds[0], 1);
        CU_ASSERT_TRUE(would_wake(descriptor, NEAR_PATIENCE)); /* the second write has arrived */
        if (which) {                                           /* and the caller sleeps at once */
            CU_ASSERT_EQUAL(fabric_arm(near.fabric, &descriptor), 0);
            CU_ASSERT_TRUE(would_wake(descriptor, 0));
            CU_ASSERT_EQUAL(near_poll(&near), 1);
        } else {
            while (near.peers[1].arrived < 2 && polls < 100)
                polls += near_poll(&near) >= 0;
            CU_ASSERT(polls <= 3);
        }
        CU_ASSERT_EQUAL(near.peers[1].arrived, 2);
        close_two(fds);
    }
}

/* After a sleep that something else has ended, two polls look at no socket. What comes meanwhile
 * wakes the next sleep at once. */
static void something_else(void)
{
    int fds[2], descriptor;

    open_two(fds);
    CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
    fabric_silent(near.fabric);
    announce(fds[0], 0);
    CU_ASSERT_TRUE_FATAL(would_wake(descriptor, NEAR_PATIENCE));
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(near_poll(&near), 0);
    CU_ASSERT_EQUAL(fabric_arm(near.fabric, &descriptor), 0);
    CU_ASSERT_TRUE(would_wake(descriptor, 0));
    CU_ASSERT_EQUAL(near_poll(&near), 1);
    close_two(fds);
}

/* The end of an idle connection wakes the sleeper. */
static void the_end(void)
{
    for (int which = 0; which < 2; which++) {
        int fds[2], descriptor;

        open_two(fds);
        CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
        CU_ASSERT_EQUAL(shutdown(fds[which], SHUT_WR), 0);
        CU_ASSERT_TRUE(would_wake(descriptor, NEAR_PATIENCE));
        CU_ASSERT_TRUE(near_until(&near, &near.peers[1 + which].broken, 1));
        close_two(fds);
    }
}

/* Room in a full socket wakes the sleeper; room in a socket for which no frame waits does not. */
static void room(void)
{
    enum { WRITES = 200 };
    static uint8_t taken[NEAR_MEMORY];
    uint32_t ended;
    int fds[2], descriptor;

    open_two(fds);
    until_listener_rests();
    for (uint32_t i = 0; i < WRITES; i++)
        CU_ASSERT_EQUAL(
            fabric_post_write(near.fabric,
                              &(struct fabric_write){.peer = 1,
                                                     .memory = near.registered[NEAR_LOCAL].index,
                                                     .source = near.memory[NEAR_LOCAL],
                                                     .length = NEAR_MEMORY,
                                                     .cookie = i}),
            0);
    CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
    ended = near.ended_count;
    CU_ASSERT(ended < WRITES);
    CU_ASSERT_FALSE(would_wake(descriptor, 0));
    while (near.ended_count < WRITES)
        if (recv(fds[0], taken, sizeof(taken), MSG_DONTWAIT) < 0) {
            CU_ASSERT_TRUE_FATAL(would_wake(descriptor, NEAR_PATIENCE));
            CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
        }
    CU_ASSERT_EQUAL(near.ended_count, WRITES);
    CU_ASSERT_TRUE_FATAL(near_rest(&near, &descriptor));
    CU_ASSERT_FALSE(would_wake(descriptor, 0));
    CU_ASSERT_TRUE(raw_alive(&near, fds[1]));
    close_two(fds);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"nothing that was read", nothing_that_was_read},
        {"what comes", what_comes},
        {"what comes next", what_comes_next},
        {"something else", something_else},
        {"the end", the_end},
        {"room", room},
        CU_TEST_INFO_NULL,
    };

    return suite_run("stream_sleep", tests);
}
