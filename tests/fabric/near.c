/* The stream fabric under test, and its sockets (near.h). Thread: one. */
#include "tests/fabric/near.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/clock.h"

#define MAGIC (sizeof(STREAM_MAGIC) - 1)

/* ---- the fabric ----------------------------------------------------------------------------- */

static void log_event(struct near *n, const struct fabric_event *event)
{
    struct near_peer *peer = &n->peers[event->peer % NEAR_PEERS];

    switch (event->kind) {
    case FABRIC_WRITTEN:
    case FABRIC_READ:
        if (event->cookie >= NEAR_COOKIES || n->ended[event->cookie]++ > 0)
            n->wrong++;
        else
            n->status[event->cookie] = event->status;
        n->ended_count++;
        break;
    case FABRIC_ARRIVED:
        peer->disorder += peer->arrived > 0 && event->immediate != peer->immediate + 1;
        peer->immediate = event->immediate;
        peer->arrived++;
        break;
    case FABRIC_ADDED:
    case FABRIC_DROPPED:
        n->memory_events++;
        n->memory_event = *event;
        break;
    case FABRIC_BROKEN:
        peer->broken++;
        peer->status = event->status;
        peer->arrived_when_broken = peer->arrived;
        break;
    default:
        n->wrong++;
    }
}

int near_poll(struct near *n)
{
    struct fabric_event events[64];
    int count = fabric_poll(n->fabric, events, n->room);

    if (count < 0 || count > n->room) {
        n->wrong++;
        return 0;
    }
    for (int i = 0; i < count; i++)
        log_event(n, &events[i]);
    if (count == 0)
        (void)sched_yield();
    return count;
}

bool near_until(struct near *n, const uint32_t *counter, uint32_t value)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;

    while (*counter < value && now_ms() < limit)
        (void)near_poll(n);
    return *counter >= value;
}

bool near_until_ended(struct near *n, uint32_t cookie)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;

    while (n->ended[cookie] == 0 && now_ms() < limit)
        (void)near_poll(n);
    return n->ended[cookie] == 1;
}

bool near_rest(struct near *n, int *descriptor)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;

    while (now_ms() < limit)
        if (near_poll(n) == 0 && fabric_arm(n->fabric, descriptor) == 0)
            return true;
    return false;
}

static bool add_memory(struct near *n, enum near_memory kind)
{
    static const unsigned access[NEAR_MEMORIES] = {
        FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
        FABRIC_REMOTE_READ,
        FABRIC_REMOTE_WRITE,
        FABRIC_LOCAL,
    };
    uint32_t before = n->memory_events;

    n->memory[kind] = malloc(NEAR_MEMORY);
    if (!n->memory[kind])
        return false;
    memset(n->memory[kind], 0xa0 + (int)kind, NEAR_MEMORY);
    if (fabric_mem_add(n->fabric, n->memory[kind], NEAR_MEMORY, access[kind], 0) < 0 ||
        !near_until(n, &n->memory_events, before + 1))
        return false;
    n->registered[kind] = n->memory_event.memory;
    return n->memory_event.status == 0;
}

bool near_untouched(const struct near *n, enum near_memory memory)
{
    for (uint32_t i = 0; i < NEAR_MEMORY; i++)
        if (n->memory[memory][i] != (uint8_t)(0xa0 + (int)memory))
            return false;
    return true;
}

bool near_open(struct near *n, const struct stream_config *config)
{
    struct fabric_address address;

    *n = (struct near){.room = 16};
    if (stream_open(config, &n->fabric) < 0)
        return false;
    if (fabric_address_of(n->fabric, &address) < 0 ||
        address.size != MAGIC + sizeof(n->address) + STREAM_TOKEN)
        return false;
    memcpy(&n->address, address.bytes + MAGIC, sizeof(n->address));
    memcpy(n->token, address.bytes + MAGIC + sizeof(n->address), STREAM_TOKEN);
    for (int i = 0; i < NEAR_MEMORIES; i++)
        if (!add_memory(n, (enum near_memory)i))
            return false;
    return true;
}

void near_close(struct near *n)
{
    fabric_close(n->fabric);
    for (int i = 0; i < NEAR_MEMORIES; i++)
        free(n->memory[i]);
}

/* ---- the sockets ---------------------------------------------------------------------------- */

void raw_token(uint32_t peer, bool connects, uint8_t token[STREAM_TOKEN])
{
    memset(token, connects ? 0 : 0xff, STREAM_TOKEN);
    token[STREAM_TOKEN - 1] = (uint8_t)peer;
}

int raw_announce(struct near *n, uint32_t peer, bool connects, uint16_t port)
{
    struct sockaddr_in at = n->address;
    struct fabric_address address = {.size = MAGIC + sizeof(at) + STREAM_TOKEN};

    at.sin_port = htons(port);
    memcpy(address.bytes, STREAM_MAGIC, MAGIC);
    memcpy(address.bytes + MAGIC, &at, sizeof(at));
    raw_token(peer, connects, address.bytes + MAGIC + sizeof(at));
    return fabric_connect(n->fabric, peer, &address);
}

int raw_dial(const struct near *n)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    /* The socket sends each byte at once. */
    if (fd >= 0 && (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
                    connect(fd, (const struct sockaddr *)&n->address, sizeof(n->address)) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

struct stream_greeting raw_greeting(const struct near *n, uint32_t peer)
{
    struct stream_greeting greeting;

    memcpy(greeting.magic, STREAM_MAGIC, sizeof(greeting.magic));
    memcpy(greeting.target, n->token, STREAM_TOKEN);
    raw_token(peer, true, greeting.origin);
    return greeting;
}

int raw_peer(struct near *n, uint32_t peer)
{
    struct stream_greeting greeting = raw_greeting(n, peer);
    int fd = raw_announce(n, peer, true, 9) == 0 ? raw_dial(n) : -1;

    if (fd < 0 || !raw_send(n, fd, &greeting, sizeof(greeting)) || !raw_alive(n, fd)) {
        (void)fprintf(stderr, "peer %u does not connect\n", peer);
        exit(1);
    }
    return fd;
}

bool raw_send(struct near *n, int socket, const void *bytes, size_t size)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;

    while (size > 0 && now_ms() < limit) {
        ssize_t sent = send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0) {
            (void)near_poll(n);
            continue;
        }
        bytes = (const uint8_t *)bytes + sent;
        size -= (size_t)sent;
    }
    return size == 0;
}

void raw_announcements(const struct near *n, struct stream_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (struct stream_frame){.kind = STREAM_WRITE,
                                          .flags = STREAM_ANNOUNCE,
                                          .immediate = i,
                                          .key = n->registered[NEAR_ALL].key};
}

size_t raw_take(struct near *n, int socket, void *bytes, size_t size)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;
    size_t taken = 0;

    while (taken < size && now_ms() < limit) {
        ssize_t got = recv(socket, (uint8_t *)bytes + taken, size - taken, MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
        if (got > 0)
            taken += (size_t)got;
        else
            (void)near_poll(n);
    }
    return taken;
}

bool raw_ends(struct near *n, int socket)
{
    int64_t limit = now_ms() + NEAR_PATIENCE;
    uint8_t bytes[4096];

    while (now_ms() < limit) {
        ssize_t got = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN))
            return true;
        if (got < 0)
            (void)near_poll(n);
    }
    return false;
}

bool raw_done_comes(struct near *n, int socket, uint64_t error)
{
    struct stream_frame frame, done = {.kind = STREAM_DONE, .key = error};

    return raw_take(n, socket, &frame, sizeof(frame)) == sizeof(frame) &&
           memcmp(&frame, &done, sizeof(frame)) == 0;
}

bool raw_alive(struct near *n, int socket)
{
    struct {
        struct stream_frame frame;
        uint8_t payload[8];
    } write = {.frame = {.kind = STREAM_WRITE,
                         .flags = STREAM_PLACED,
                         .length = 8,
                         .key = n->registered[NEAR_ALL].key}};

    memset(write.payload, 0xa0 + NEAR_ALL, sizeof(write.payload));
    return raw_send(n, socket, &write, sizeof(write)) && raw_done_comes(n, socket, 0);
}

void near_begin(struct near *n, const struct stream_config *config)
{
    const struct stream_config small = {.peers_max = NEAR_PEERS};

    CU_ASSERT_TRUE_FATAL(near_open(n, config ? config : &small));
}

void near_finish(struct near *n)
{
    CU_ASSERT_EQUAL(n->wrong, 0);
    near_close(n);
}

struct fabric_memory near_add(struct near *n, void *base, uint64_t length)
{
    uint32_t before = n->memory_events;

    CU_ASSERT_EQUAL_FATAL(
        fabric_mem_add(n->fabric, base, length, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE, 0), 0);
    CU_ASSERT_TRUE_FATAL(near_until(n, &n->memory_events, before + 1));
    return n->memory_event.memory;
}

int near_write_from(struct near *n, uint32_t index, const void *source, uint64_t length,
                    uint64_t cookie)
{
    return fabric_post_write(
        n->fabric,
        &(struct fabric_write){
            .peer = 1, .memory = index, .source = source, .length = length, .cookie = cookie});
}
