/*
 * Connections of raw sockets to the data port of the stream fabric: strangers, greetings that are
 * wrong, slow or repeated, and more connections than the fabric accepts; also the fabric's
 * addresses. No peer is affected.
 */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "tests/fabric/end.h"
#include "tests/fabric/near.h"
#include "tests/suite.h"

#define FRAME sizeof(struct stream_frame)

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

static bool is_open(int fd)
{
    uint8_t byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Closes the socket by a reset, which drops unread bytes. */
static void reset(int fd)
{
    struct linger linger = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);

static uint32_t accepts;      /* accept calls that returned a connection */
static uint64_t accept_takes; /* ns that each call takes at least */

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    uint64_t until = clock_ns() + accept_takes;
    int accepted = __real_accept4(fd, address, size, flags);

    while (accept_takes > 0 && clock_ns() < until)
        ;
    accepts += accepted >= 0;
    return accepted;
}

static void strangers(void)
{
    static const struct {
        uint32_t byte; /* index of the greeting's byte that is changed */
        uint8_t change;
        uint32_t said; /* bytes of the greeting that are sent */
        bool ends;
    } rows[] = {
        {0, 0, 0, false},     {0, 0, 1, false},     {0, 0, 39, false},
        {0, 0x01, 39, false}, {0, 0x01, 40, true},  {7, 0x80, 40, true},
        {8, 0x01, 40, true},  {23, 0x80, 40, true}, {24, 0xff, 40, true},
    };
    int friend;

    open_near(NULL);
    friend = raw_peer(&near, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stream_greeting greeting = raw_greeting(&near, 2);
        int fd = raw_dial(&near);

        ((uint8_t *)&greeting)[rows[i].byte] ^= rows[i].change;
        if (rows[i].byte == 24) /* above any token */
            memset(greeting.origin, 0xff, STREAM_TOKEN);
        CU_ASSERT_TRUE(raw_send(&near, fd, &greeting, rows[i].said));
        CU_ASSERT_TRUE(raw_alive(&near, friend));
        if (rows[i].ends)
            CU_ASSERT_TRUE(raw_ends(&near, fd));
        CU_ASSERT_TRUE(rows[i].ends || is_open(fd));
        close(fd);
    }
    CU_ASSERT_EQUAL(near.peers[1].broken + near.peers[2].broken, 0);
    close(friend);
    close_near();
}

/* Greetings from a side that must not connect: with the fabric's own token, and with a greater
 * one. */
static void wrong_way(void)
{
    open_near(NULL);
    for (int above = 0; above < 2; above++) {
        struct stream_greeting greeting = raw_greeting(&near, 2);
        int fd = raw_dial(&near);

        memcpy(greeting.origin, near.token, STREAM_TOKEN);
        greeting.origin[STREAM_TOKEN - 1] |= (uint8_t)above;
        CU_ASSERT_TRUE(raw_send(&near, fd, &greeting, sizeof(greeting)));
        CU_ASSERT_TRUE(raw_ends(&near, fd));
        close(fd);
    }
    close_near();
}

/* There is room for 64 silent strangers; the oldest is dropped for the next one, and a peer can
 * still connect. */
static void silent_crowd(void)
{
    enum { CROWD = 200, ROOM = 64 };
    int crowd[CROWD], friend, descriptor, peer;

    open_near(NULL);
    friend = raw_peer(&near, 1);
    for (int i = 0; i < CROWD; i++)
        CU_ASSERT_TRUE_FATAL((crowd[i] = raw_dial(&near)) >= 0);
    for (int i = 0; i < CROWD - ROOM; i++)
        CU_ASSERT_TRUE(raw_ends(&near, crowd[i]));
    for (int i = CROWD - ROOM; i < CROWD; i++)
        CU_ASSERT_TRUE(is_open(crowd[i]));
    peer = raw_peer(&near, 2);
    CU_ASSERT_TRUE(raw_alive(&near, peer) && raw_alive(&near, friend));
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_TRUE(raw_alive(&near, peer) && raw_alive(&near, friend));
    close(peer);
    close(friend);
    close_near();
}

/* ---- greetings ------------------------------------------------------------------------------- */

/* The greeting comes byte by byte, before and after fabric_connect for its peer. */
static void greeting_in_pieces(void)
{
    for (int before = 0; before < 2; before++) {
        struct stream_greeting greeting;
        int fd, descriptor;

        open_near(NULL);
        greeting = raw_greeting(&near, 1);
        if (!before)
            CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
        fd = raw_dial(&near);
        for (uint32_t i = 0; i < sizeof(greeting); i++) {
            CU_ASSERT_TRUE(raw_send(&near, fd, (uint8_t *)&greeting + i, 1));
            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
        }
        if (before)
            CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
        CU_ASSERT_TRUE(raw_alive(&near, fd));
        CU_ASSERT_EQUAL(near.peers[1].broken, 0);
        close(fd);
        close_near();
    }
}

/* Frames right after the greeting are not lost while the connection waits for fabric_connect. */
static void words_before_connect(void)
{
    struct {
        struct stream_greeting greeting;
        struct stream_frame frame;
    } words;
    int fd, descriptor;

    open_near(NULL);
    words.greeting = raw_greeting(&near, 1);
    words.frame = (struct stream_frame){.kind = STREAM_WRITE,
                                        .flags = STREAM_ANNOUNCE | STREAM_PLACED,
                                        .immediate = 5,
                                        .key = near.registered[NEAR_ALL].key};
    fd = raw_dial(&near);
    CU_ASSERT_TRUE(raw_send(&near, fd, &words, sizeof(words.greeting) + FRAME));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
    CU_ASSERT_TRUE(raw_done_comes(&near, fd, 0));
    CU_ASSERT_EQUAL(near.peers[1].arrived, 1);
    CU_ASSERT_EQUAL(near.peers[1].immediate, 5);
    close(fd);
    close_near();
}

/* A connection that hangs up while it waits for fabric_connect is forgotten. */
static void gone_before_connect(void)
{
    struct stream_greeting greeting;
    int fd, descriptor;

    open_near(NULL);
    greeting = raw_greeting(&near, 1);
    fd = raw_dial(&near);
    CU_ASSERT_TRUE(raw_send(&near, fd, &greeting, sizeof(greeting)));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    close(fd);
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    fd = raw_peer(&near, 1);
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    close_near();
}

/* Two connections claim to be the same peer: as long as they wait for fabric_connect, the later one
 * counts. */
static void twins_that_wait(void)
{
    struct stream_greeting greeting;
    int older, younger, descriptor;

    for (int seen = 0; seen < 2; seen++) { /* 1: a poll sees them before connect */
        open_near(NULL);
        greeting = raw_greeting(&near, 1);
        older = raw_dial(&near);
        CU_ASSERT_TRUE(raw_send(&near, older, &greeting, sizeof(greeting)));
        younger = raw_dial(&near);
        CU_ASSERT_TRUE(raw_send(&near, younger, &greeting, sizeof(greeting)));
        if (seen)
            CU_ASSERT_TRUE(near_rest(&near, &descriptor));
        CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
        CU_ASSERT_TRUE(raw_ends(&near, older));
        CU_ASSERT_TRUE(raw_alive(&near, younger));
        CU_ASSERT_EQUAL(near.peers[1].broken, 0);
        close(older);
        close(younger);
        close_near();
    }
}

static int greeted_socket(uint32_t peer)
{
    struct stream_greeting greeting = raw_greeting(&near, peer);
    int fd = raw_dial(&near), descriptor;

    accepts = 0;
    CU_ASSERT_TRUE(raw_send(&near, fd, &greeting, sizeof(greeting)));
    CU_ASSERT_TRUE(near_until(&near, &accepts, 1) && near_rest(&near, &descriptor));
    return fd;
}

/* A peer that is not connected here connects again. Its connection waits for fabric_connect, but
 * not longer than its link: a disconnect ends it, so that the next link does not get it. */
static void link_given_up(void)
{
    int fd;

    open_near(NULL);
    fd = raw_peer(&near, 1);
    for (int given_up = 0; given_up < 2; given_up++) {
        CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
        CU_ASSERT_TRUE(raw_ends(&near, fd));
        close(fd);
        fd = greeted_socket(1);
        if (given_up) {
            CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 1), 0);
            CU_ASSERT_TRUE(raw_ends(&near, fd));
            close(fd);
            fd = greeted_socket(1);
        }
        CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
        CU_ASSERT_TRUE(raw_alive(&near, fd));
    }
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    close_near();
}

/* More connections have greeted than there may be peers: the one whose greeting ends last stays,
 * even if it has connected first. */
static void slow_greeting(void)
{
    enum { EARLY = 20, PEERS = 2 };
    struct stream_config config = {.peers_max = PEERS};
    struct stream_greeting greeting;
    int slow, quick[PEERS], descriptor;

    open_near(&config);
    accepts = 0;
    slow = raw_dial(&near);
    greeting = raw_greeting(&near, 3);
    CU_ASSERT_TRUE(raw_send(&near, slow, &greeting, EARLY));
    CU_ASSERT_TRUE(near_until(&near, &accepts, 1));
    for (int i = 0; i < PEERS; i++) {
        struct stream_greeting whole = raw_greeting(&near, 1 + (uint32_t)i);

        quick[i] = raw_dial(&near);
        CU_ASSERT_TRUE(raw_send(&near, quick[i], &whole, sizeof(whole)));
        CU_ASSERT_TRUE(near_until(&near, &accepts, 2 + (uint32_t)i));
    }
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_TRUE(raw_send(&near, slow, (uint8_t *)&greeting + EARLY, sizeof(greeting) - EARLY));
    CU_ASSERT_TRUE(raw_ends(&near, quick[0]));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_TRUE(is_open(slow) && is_open(quick[1]));
    for (int i = 0; i < PEERS; i++)
        close(quick[i]);
    close(slow);
    close_near();
}

/* A second greeting from a connected peer means that the peer has started anew: the link is
 * lost. */
static void twin_of_a_peer(void)
{
    struct stream_greeting greeting;
    int first, second, other;

    open_near(NULL);
    first = raw_peer(&near, 1);
    other = raw_peer(&near, 2);
    greeting = raw_greeting(&near, 1);
    second = raw_dial(&near);
    CU_ASSERT_TRUE(raw_send(&near, second, &greeting, sizeof(greeting)));
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
    CU_ASSERT_EQUAL(near.peers[1].status, -ECONNRESET);
    CU_ASSERT_TRUE(raw_ends(&near, first));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_EQUAL(near.peers[1].broken, 1);
    close(first);
    close(second);
    first = raw_peer(&near, 1);
    CU_ASSERT_TRUE(raw_alive(&near, first));
    close(first);
    close(other);
    close_near();
}

/* The fabric connects to a peer and sends its greeting. Where no peer listens, the connection
 * fails. */
static void connected_to(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    struct stream_greeting greeting, expected;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

    open_near(NULL);
    CU_ASSERT_EQUAL_FATAL(bind(door, (struct sockaddr *)&at, size), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(door, (struct sockaddr *)&at, &size), 0);
    CU_ASSERT_EQUAL(raw_announce(&near, 1, false, ntohs(at.sin_port)), 0); /* nobody listens */
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 1));
    CU_ASSERT_EQUAL(near.peers[1].status, -ECONNREFUSED);
    CU_ASSERT_EQUAL_FATAL(listen(door, 8), 0);
    CU_ASSERT_EQUAL(raw_announce(&near, 1, false, ntohs(at.sin_port)), 0);
    fd = accept(door, NULL, NULL);
    memcpy(expected.magic, STREAM_MAGIC, sizeof(expected.magic));
    raw_token(1, false, expected.target);
    memcpy(expected.origin, near.token, STREAM_TOKEN);
    CU_ASSERT_EQUAL(raw_take(&near, fd, &greeting, sizeof(greeting)), sizeof(greeting));
    CU_ASSERT_EQUAL(memcmp(&greeting, &expected, sizeof(greeting)), 0);
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    reset(fd);
    CU_ASSERT_TRUE(near_until(&near, &near.peers[1].broken, 2));
    CU_ASSERT_EQUAL(near.peers[1].status, -ECONNRESET);
    close(door);
    close_near();
}

/* The process has no descriptor left for a connection. When one is free later, the fabric must wake
 * up to accept it. */
static void no_descriptor(void)
{
    struct stream_greeting greeting;
    struct rlimit before, none;
    int fd, free_one, descriptor, other;

    open_near(NULL);
    other = raw_peer(&near, 2);
    CU_ASSERT_EQUAL(raw_announce(&near, 1, true, 9), 0);
    greeting = raw_greeting(&near, 1);
    fd = raw_dial(&near);
    CU_ASSERT_TRUE(raw_send(&near, fd, &greeting, sizeof(greeting)));
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    free_one = dup(0);
    close(free_one);
    none = before;
    none.rlim_cur = (rlim_t)free_one;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_TRUE(near_rest(&near, &descriptor));
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    CU_ASSERT_EQUAL(end_sleep(descriptor), 0);
    CU_ASSERT_TRUE(raw_alive(&near, fd));
    CU_ASSERT_TRUE(raw_alive(&near, other));
    CU_ASSERT_EQUAL(near.peers[1].broken, 0);
    close(fd);
    close(other);
    close_near();
}

/* Polls for some milliseconds, and counts what is accepted. Returns the most that one poll
 * accepted. */
static uint32_t most_accepted(uint32_t *all, int64_t *took)
{
    enum { MS = 30, POLLS = 100 }; /* many polls do not look, after data has come */
    uint32_t first = accepts, most = 0, polls = 0;
    int64_t begun = milliseconds();

    do {
        uint32_t before = accepts;

        (void)near_poll(&near);
        most = accepts - before > most ? accepts - before : most;
        *took = milliseconds() - begun;
    } while (++polls < POLLS || *took < MS);
    *all = accepts - first;
    return most;
}

/* Strangers connect without end: a poll accepts few of them, and so do all polls of a millisecond,
 * and a connect. While a peer is to connect, a poll accepts more, but not for long. A connected
 * peer is still served, and another peer can connect. */
static void crowd_of_strangers(void)
{
    enum { CROWD = 1200, POLL_MOST = 4, CONNECT_MOST = 64, SLOW_NS = 100000 };
    uint32_t all;
    int64_t took;
    int friend, peer;

    open_near(NULL);
    friend = raw_peer(&near, 1);
    for (int i = 0; i < CROWD; i++)
        reset(raw_dial(&near));
    CU_ASSERT_EQUAL(raw_announce(&near, 3, true, 9), 0);
    CU_ASSERT_EQUAL(fabric_disconnect(near.fabric, 3), 0); /* nobody waits for peer 3 any more */
    CU_ASSERT_TRUE(most_accepted(&all, &took) <= POLL_MOST);
    CU_ASSERT_TRUE(all <= POLL_MOST * (uint32_t)(took + 2));
    CU_ASSERT_TRUE(raw_alive(&near, friend));
    accepts = 0;
    CU_ASSERT_EQUAL(raw_announce(&near, 2, true, 9), 0);
    CU_ASSERT_TRUE(accepts > 0 && accepts <= CONNECT_MOST);
    accept_takes = SLOW_NS;
    CU_ASSERT_TRUE(most_accepted(&all, &took) <= POLL_MOST);
    accept_takes = 0;
    CU_ASSERT_TRUE(raw_alive(&near, friend));
    CU_ASSERT_TRUE(most_accepted(&all, &took) > POLL_MOST);
    peer = raw_peer(&near, 2); /* connects after all strangers */
    CU_ASSERT_TRUE(raw_alive(&near, friend));
    CU_ASSERT_EQUAL(near.peers[1].broken + near.peers[2].broken, 0);
    close(friend);
    close(peer);
    close_near();
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void bound(void)
{
    static const struct {
        const char *bind;
        int status;
    } rows[] = {
        {NULL, 0},
        {"127.0.0.1", 0},
        {"lo", 0},
        {"0.0.0.0", -EADDRNOTAVAIL},
        {"::", -EADDRNOTAVAIL},
        {"198.51.100.77", -EADDRNOTAVAIL}, /* reserved for documentation */
        {"2001:db8::77", -EADDRNOTAVAIL},
        {"no-such-interface", -ENODEV},
        {"", -ENODEV},
        {"127.0.0.1.5", -ENODEV},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char message[256] = "";
        struct stream_config config = {
            .bind = rows[i].bind, .message = message, .message_size = sizeof(message)};
        struct fabric_address address;
        struct sockaddr_in at;
        struct fabric *fabric;
        int rc = stream_open(&config, &fabric);

        CU_ASSERT_EQUAL(rc, rows[i].status);
        config.message = NULL;
        if (rc < 0) {
            CU_ASSERT_PTR_NOT_NULL(strstr(message, rows[i].bind));
            CU_ASSERT_PTR_NOT_NULL(strstr(message, "give an address of this node"));
            CU_ASSERT_EQUAL(stream_open(&config, &fabric), rows[i].status);
            continue;
        }
        CU_ASSERT_EQUAL(fabric_address_of(fabric, &address), 0);
        memcpy(&at, address.bytes + 8, sizeof(at));
        CU_ASSERT_EQUAL(at.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        CU_ASSERT_NOT_EQUAL(at.sin_port, 0);
        fabric_close(fabric);
    }
}

static void wrong_addresses(void)
{
    struct fabric_address ours, wrong;

    open_near(NULL);
    CU_ASSERT_EQUAL(fabric_address_of(near.fabric, &ours), 0);
    CU_ASSERT_EQUAL(fabric_connect(near.fabric, 1, &ours), -EINVAL); /* to ourselves */
    ours.bytes[ours.size - 1] ^= 1;
    for (int change = 0; change < 6; change++) {
        wrong = ours;
        if (change == 0)
            wrong.size--;
        else if (change == 1)
            wrong.size++;
        else if (change == 2)
            wrong.size += sizeof(struct sockaddr_in6) - sizeof(struct sockaddr_in);
        else if (change == 3)
            wrong.size = 0;
        else if (change == 4)
            wrong.bytes[0] ^= 1;
        else
            wrong.bytes[8] ^= AF_INET ^ AF_INET6;
        CU_ASSERT_EQUAL(fabric_connect(near.fabric, 1, &wrong), -EINVAL);
    }
    close_near();
}

/* Two fabrics at ::1 write to each other, and both writes arrive. */
static void over_ipv6(void)
{
    struct stream_config config = {.bind = "::1", .peers_max = 4};
    struct fabric *fabrics[2];
    struct fabric_address addresses[2];
    uint64_t words[2] = {1, 2};
    struct fabric_memory memories[2] = {{0}};
    int ended = 0, arrived = 0, added = 0, posted = 0;
    int rc = stream_open(&config, &fabrics[0]);

    if (rc == -EADDRNOTAVAIL) {
        printf("left out: this machine has no ::1 ");
        return;
    }
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL_FATAL(stream_open(&config, &fabrics[1]), 0);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(fabric_address_of(fabrics[i], &addresses[i]), 0);
        CU_ASSERT_EQUAL(fabric_mem_add(fabrics[i], &words[i], 8, FABRIC_REMOTE_WRITE, 0), 0);
    }
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(fabric_connect(fabrics[i], 3, &addresses[!i]), 0);
    for (int64_t limit = milliseconds() + END_PATIENCE;
         (arrived < 2 || ended < 2) && milliseconds() < limit;)
        for (int i = 0; i < 2; i++) {
            struct fabric_event events[8];
            int n = fabric_poll(fabrics[i], events, 8);

            for (int j = 0; j < n; j++) {
                if (events[j].kind == FABRIC_ADDED)
                    memories[i] = events[j].memory, added++;
                ended += events[j].kind == FABRIC_WRITTEN && events[j].status == 0;
                arrived += events[j].kind == FABRIC_ARRIVED && events[j].immediate == 42;
                CU_ASSERT_NOT_EQUAL(events[j].kind, FABRIC_BROKEN);
            }
            if (added == 2 && !(posted & 1 << i) &&
                fabric_post_write(fabrics[i], &(struct fabric_write){.peer = 3,
                                                                     .memory = memories[i].index,
                                                                     .source = &words[i],
                                                                     .length = i ? 0 : 8,
                                                                     .remote_key = memories[!i].key,
                                                                     .immediate = 42,
                                                                     .announce = true,
                                                                     .placed = true}) == 0)
                posted |= 1 << i;
        }
    CU_ASSERT_EQUAL(arrived, 2);
    CU_ASSERT_EQUAL(ended, 2);
    CU_ASSERT_EQUAL(words[1], 1);
    fabric_close(fabrics[0]);
    fabric_close(fabrics[1]);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"strangers", strangers},
        {"greeted the wrong way round", wrong_way},
        {"200 that say nothing", silent_crowd},
        {"a greeting byte by byte", greeting_in_pieces},
        {"frames behind a greeting that waits", words_before_connect},
        {"gone while it waits", gone_before_connect},
        {"two of one name that wait", twins_that_wait},
        {"a link given up", link_given_up},
        {"a greeting that ends last", slow_greeting},
        {"a second of a connected peer", twin_of_a_peer},
        {"a peer that is connected to", connected_to},
        {"no descriptor left", no_descriptor},
        {"a crowd of strangers", crowd_of_strangers},
        {"where it is bound", bound},
        {"wrong addresses", wrong_addresses},
        {"IPv6", over_ipv6},
        CU_TEST_INFO_NULL,
    };

    return suite_run("stream_strangers", tests);
}
