/*
 * Fuzzes the bytes that a peer of the stream fabric sends after a right greeting. An input is a
 * sequence of (control byte, parameter, frame, number of bytes, bytes). Kinds, and keys, which are
 * random and so cannot be in an input, are repaired where the control byte says so. In between this
 * side posts operations, drops memory, or polls; a broken link is made again.
 *
 * Afterwards each operation must have ended once, memory without the right to write must be
 * unchanged, and the fabric must come to rest.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/fabric/stream/stream.h"

#define PEER       3u
#define MEMORY     8192u
#define OPERATIONS 64u
#define MAGIC      (sizeof(STREAM_MAGIC) - 1)
#define QUIET      1000000 /* most polls until the fabric rests */

enum control {
    REPAIR_KIND = 1 << 0,
    REPAIR_KEY = 1 << 1,    /* the key becomes that of the memory that the parameter names */
    REPAIR_LENGTH = 1 << 2, /* the length of the bytes that follow */
    REPAIR_PLACE = 1 << 3,  /* the address becomes one within the memory */
    POST = 1 << 4,          /* post an operation first: the parameter says which */
    HEAR = 1 << 5,          /* the peer reads afterwards */
    HANG_UP = 1 << 6,
    DROP = 1 << 7, /* drop a memory, and register it again */
};

enum { SHARED, READ_ONLY, LOCAL, MEMORIES };

struct bench {
    struct fabric *fabric;
    struct sockaddr_in address;
    uint8_t token[STREAM_TOKEN];
    uint8_t memory[MEMORIES][MEMORY];
    struct fabric_memory registered[MEMORIES];
    uint8_t posted[OPERATIONS]; /* operations under way by cookie */
    bool broken;
    int socket;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the fabric ------------------------------------------------------------------------------ */

static int step(struct bench *b, int room)
{
    struct fabric_event events[16];
    int n = fabric_poll(b->fabric, events, room);

    if (n < 0 || n > room)
        abort();
    for (int i = 0; i < n; i++)
        switch (events[i].kind) {
        case FABRIC_WRITTEN:
        case FABRIC_READ:
            if (events[i].cookie >= OPERATIONS || !b->posted[events[i].cookie])
                abort();
            b->posted[events[i].cookie] = 0;
            break;
        case FABRIC_ADDED:
            b->registered[events[i].cookie] = events[i].memory;
            break;
        case FABRIC_BROKEN:
            if (events[i].peer != PEER || events[i].status >= 0)
                abort();
            b->broken = true;
            break;
        case FABRIC_ARRIVED:
            if (events[i].peer != PEER)
                abort();
            break;
        case FABRIC_DROPPED:
            break;
        default:
            abort();
        }
    return n;
}

/* Polls until the fabric allows a sleep, which must happen at some time. */
static void rest(struct bench *b, int room)
{
    int descriptor, quiet = 0;

    for (int i = 0; quiet < 2; i++) {
        int n = step(b, room);

        if (i == QUIET)
            abort();
        quiet = n == 0 && fabric_arm(b->fabric, &descriptor) == 0 ? quiet + 1 : 0;
    }
}

static void add(struct bench *b, int which)
{
    static const unsigned access[MEMORIES] = {FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
                                              FABRIC_REMOTE_READ, FABRIC_LOCAL};

    if (fabric_mem_add(b->fabric, b->memory[which], MEMORY, access[which], (uint64_t)which) < 0)
        abort();
    rest(b, 16);
}

static void post(struct bench *b, uint8_t parameter)
{
    uint64_t length = (uint64_t)(parameter >> 2) * 100;
    uint32_t cookie = 0;
    int rc;

    while (cookie < OPERATIONS && b->posted[cookie])
        cookie++;
    if (cookie == OPERATIONS)
        return;
    if (parameter & 1)
        rc = fabric_post_read(b->fabric, &(struct fabric_read){.peer = PEER,
                                                               .memory = b->registered[LOCAL].index,
                                                               .destination = b->memory[LOCAL],
                                                               .length = length,
                                                               .cookie = cookie});
    else
        rc = fabric_post_write(b->fabric,
                               &(struct fabric_write){.peer = PEER,
                                                      .memory = b->registered[LOCAL].index,
                                                      .source = b->memory[LOCAL],
                                                      .length = length,
                                                      .cookie = cookie,
                                                      .placed = parameter & 2});
    b->posted[cookie] = rc == 0;
}

/* ---- the peer -------------------------------------------------------------------------------- */

static void hang_up(struct bench *b)
{
    struct linger linger = {.l_onoff = 1};

    if (b->socket < 0)
        return;
    (void)setsockopt(b->socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(b->socket);
    b->socket = -1;
}

static void hear(struct bench *b)
{
    uint8_t bytes[4096];

    while (recv(b->socket, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void say(struct bench *b, const void *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(b->socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the connection has ended, or the fabric does not read it */
        bytes = (const uint8_t *)bytes + n;
        size -= (size_t)n;
    }
}

/* Connects as the peer. The fuzzer's timer signal may interrupt calls. */
static void dial(struct bench *b)
{
    struct pollfd made = {.events = POLLOUT};

    made.fd = b->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->socket < 0)
        abort();
    if (connect(b->socket, (struct sockaddr *)&b->address, sizeof(b->address)) == 0)
        return;
    if (errno != EINTR)
        abort();
    while (poll(&made, 1, -1) < 0)
        ;
}

static void link_up(struct bench *b)
{
    struct fabric_address address = {.size = MAGIC + sizeof(b->address) + STREAM_TOKEN};
    struct stream_greeting greeting = {.origin = {[STREAM_TOKEN - 1] = 1}};

    hang_up(b);
    rest(b, 16);
    memcpy(address.bytes, STREAM_MAGIC, MAGIC);
    memcpy(address.bytes + MAGIC, &b->address, sizeof(b->address));
    memcpy(address.bytes + MAGIC + sizeof(b->address), greeting.origin, STREAM_TOKEN);
    memcpy(greeting.magic, STREAM_MAGIC, MAGIC);
    memcpy(greeting.target, b->token, STREAM_TOKEN);
    if (fabric_disconnect(b->fabric, PEER) < 0 || fabric_connect(b->fabric, PEER, &address) < 0)
        abort();
    b->broken = false;
    dial(b);
    say(b, &greeting, sizeof(greeting));
    rest(b, 16);
}

static struct stream_frame repaired(const struct bench *b, uint8_t how, uint8_t parameter,
                                    struct stream_frame frame, size_t payload)
{
    if (how & REPAIR_KIND) {
        frame.kind = frame.kind % (STREAM_DONE + 1);
        frame.flags &= STREAM_ANNOUNCE | STREAM_PLACED;
        frame.zero = 0;
    }
    if (how & REPAIR_KEY)
        frame.key = frame.kind == STREAM_DONE ? parameter : b->registered[parameter % MEMORIES].key;
    if (how & REPAIR_LENGTH)
        frame.length = frame.kind == STREAM_DONE ? 0 : payload;
    if (how & REPAIR_PLACE)
        frame.address %= MEMORY;
    return frame;
}

/* ---- an input -------------------------------------------------------------------------------- */

static bool open_bench(struct bench *b)
{
    struct stream_config config = {
        .peers_max = PEER + 1, .memories_max = MEMORIES, .operations_max = OPERATIONS};
    struct fabric_address address;

    b->socket = -1;
    if (stream_open(&config, &b->fabric) < 0 || fabric_address_of(b->fabric, &address) < 0)
        return false;
    memcpy(&b->address, address.bytes + MAGIC, sizeof(b->address));
    memcpy(b->token, address.bytes + MAGIC + sizeof(b->address), STREAM_TOKEN);
    memset(b->memory, 0x5a, sizeof(b->memory));
    for (int i = 0; i < MEMORIES; i++)
        add(b, i);
    link_up(b);
    return true;
}

static void close_bench(struct bench *b)
{
    hang_up(b);
    rest(b, 16);
    if (fabric_disconnect(b->fabric, PEER) < 0)
        abort();
    rest(b, 1);
    for (uint32_t i = 0; i < OPERATIONS; i++)
        if (b->posted[i])
            abort();
    for (uint32_t i = 0; i < MEMORY; i++)
        if (b->memory[READ_ONLY][i] != 0x5a)
            abort();
    fabric_close(b->fabric);
    free(b);
}

/* Checks the target itself: a good frame must be accepted; otherwise no input would get past the
 * first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct stream_frame frame = {.kind = STREAM_WRITE, .flags = 3, .address = 8};

    if (!b || !open_bench(b))
        abort();
    frame = repaired(b, REPAIR_KEY | REPAIR_LENGTH, SHARED, frame, 5);
    say(b, &frame, sizeof(frame));
    say(b, "hello", 5);
    frame.kind = 0;
    for (int i = 0; i < QUIET && frame.kind == 0; i++) {
        (void)step(b, 16);
        (void)recv(b->socket, &frame, sizeof(frame), MSG_DONTWAIT);
    }
    if (b->broken || memcmp(b->memory[SHARED] + 8, "hello", 5) != 0 || frame.kind != STREAM_DONE ||
        frame.key != 0)
        abort();
    close_bench(b);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct stream_frame frame;

    if (!b || !open_bench(b))
        abort();
    while (size >= 3 + sizeof(frame)) {
        uint8_t how = data[0], parameter = data[1];
        size_t payload = 16u * data[2];

        memcpy(&frame, data + 3, sizeof(frame));
        data += 3 + sizeof(frame);
        size -= 3 + sizeof(frame);
        payload = payload < size ? payload : size;
        if (how & POST)
            post(b, parameter);
        frame = repaired(b, how, parameter, frame, payload);
        say(b, &frame, sizeof(frame));
        if (parameter & 0x80)
            (void)step(b, 1);
        say(b, data, payload);
        data += payload;
        size -= payload;
        if (how & DROP) {
            (void)step(b, 16);
            if (fabric_mem_drop(b->fabric, b->registered[parameter % MEMORIES].index, 0) < 0)
                abort();
            rest(b, 16);
            add(b, parameter % MEMORIES);
        }
        if (how & HANG_UP)
            hang_up(b);
        rest(b, 1 + parameter % 16);
        if (how & HEAR && b->socket >= 0)
            hear(b);
        if (b->broken)
            link_up(b);
    }
    close_bench(b);
    return 0;
}
