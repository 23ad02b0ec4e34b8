/*
 * A hostile process at the daemon's socket (hostile.h): it plays strangers and ranks of a job that
 * send wrong, short, endless and slow frames, descriptors, and open many connections.
 *
 * Thread: its process's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "proto/session_abi.h"
#include "tests/lib/raw/ask.h"
#include "tests/hostile/hostile.h"
#include "tests/hostile/values.h"
#include "daemon/control/clients/message.h"

#define STORM       64u /* connections at once: more than a user's strangers may have */
#define SLOW        8u  /* half frames that are held open */
#define SCM_MOST    250u
#define BODY_MAX    512u
#define UNREAD      200u
#define ENDLESS     (256u << 10)
#define BETWEEN_NS  10000000
#define FRAME_BOUND 65536u

struct attacker {
    const struct hostile *hostile;
    struct values values;
    int slow[SLOW];
    uint32_t next_slow;
};

static void count(struct attacker *a, uint64_t frames)
{
    tally_count(a->hostile->tally, TARGET_SOCKET, frames);
}

/* Connects. A send on the socket waits only for a short time, because the daemon may not read. */
static int dial(const struct attacker *a)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(name.sun_path, a->hostile->node->socket, sizeof(name.sun_path));
    if (s >= 0 && connect(s, (struct sockaddr *)&name, sizeof(name)) < 0) {
        close(s);
        return -1;
    }
    return s;
}

static bool put(int s, const void *bytes, size_t size)
{
    return send(s, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool put_frame(int s, uint32_t announced, const void *body, size_t size)
{
    uint8_t head[4] = {(uint8_t)announced, (uint8_t)(announced >> 8), (uint8_t)(announced >> 16),
                       (uint8_t)(announced >> 24)};

    return put(s, head, sizeof(head)) && put(s, body, size);
}

static bool put_request(int s, Pwc__ClientRequest *request)
{
    uint8_t body[BODY_MAX];
    size_t size = pwc__client_request__get_packed_size(request);

    return size <= sizeof(body) && pwc__client_request__pack(request, body) == size &&
           put_frame(s, (uint32_t)size, body, size);
}

static bool say_hello(struct attacker *a, int s)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;

    hello.version_min = hello.version_max = 1;
    hello.rings = SESSION_VERSION;
    hello.job = (char *)(uintptr_t)a->hostile->job;
    hello.rank = (uint32_t)values_below(&a->values, a->hostile->size);
    hello.size = a->hostile->size;
    request.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    return put_request(s, &request);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Makes a random request, with small or wrong values in its fields. Returns its length in bytes. */
static size_t make_request(struct attacker *a, uint8_t body[BODY_MAX])
{
    struct values *v = &a->values;
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    uint8_t bytes[64];
    uint32_t handle = (uint32_t)values_wrong(v, values_below(v, 4));
    uint64_t length = values_wrong(v, 65536);
    Pwc__Rings rings = PWC__RINGS__INIT;
    Pwc__Key key = PWC__KEY__INIT;
    Pwc__ContextOpen context = PWC__CONTEXT_OPEN__INIT;
    Pwc__ContextClose context_close = PWC__CONTEXT_CLOSE__INIT;
    Pwc__SegmentOpen segment = PWC__SEGMENT_OPEN__INIT;
    Pwc__SegmentClose segment_close = PWC__SEGMENT_CLOSE__INIT;
    Pwc__RegionOpen region = PWC__REGION_OPEN__INIT;
    Pwc__RegionClose region_close = PWC__REGION_CLOSE__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    size_t size;

    memset(bytes, (int)values_any(v), sizeof(bytes));
    r.id = (uint32_t)(1 + values_below(v, 9));
    r.body_case = (Pwc__ClientRequest__BodyCase)(PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN +
                                                 values_below(v, 10));
    switch (r.body_case) {
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN:
        rings.submit = rings.local = (uint32_t)values_wrong(v, 8192);
        rings.reply_event = (uint32_t)values_wrong(v, 65536);
        context.rings = &rings;
        context.direct = values_below(v, 2);
        r.context_open = &context;
        break;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE:
        context_close.session = handle;
        r.context_close = &context_close;
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN:
        segment.length = length;
        r.segment_open = &segment;
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE:
        segment_close.segment = handle;
        r.segment_close = &segment_close;
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_OPEN:
        region.segment = handle;
        region.offset = values_wrong(v, 0);
        region.length = length;
        region.rights = (uint32_t)values_wrong(v, 3);
        r.region_open = &region;
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_CLOSE:
        region_close.slot = handle;
        region_close.generation = (uint32_t)values_wrong(v, 1);
        r.region_close = &region_close;
        break;
    case PWC__CLIENT_REQUEST__BODY_BIND:
        key.node = (uint32_t)values_wrong(v, 0);
        key.slot = handle;
        key.secret = (ProtobufCBinaryData){values_below(v, sizeof(bytes)), bytes};
        bind.session = (uint32_t)values_below(v, 3);
        bind.peer = values_wrong(v, 0);
        bind.key = values_below(v, 2) ? &key : NULL;
        r.bind = &bind;
        break;
    case PWC__CLIENT_REQUEST__BODY_UNBIND:
        unbind.session = handle;
        unbind.remote = (uint32_t)values_wrong(v, 0);
        unbind.pair = values_wrong(v, 1);
        r.unbind = &unbind;
        break;
    case PWC__CLIENT_REQUEST__BODY_EXCHANGE:
        exchange.sequence = (uint32_t)values_wrong(v, 0);
        exchange.data = (ProtobufCBinaryData){values_below(v, sizeof(bytes)), bytes};
        r.exchange = &exchange;
        break;
    default:
        inspect.what = (char *)(uintptr_t)(values_below(v, 2) ? "queues" : "\033[2J");
        r.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
        r.inspect = &inspect;
        break;
    }
    size = pwc__client_request__get_packed_size(&r);
    return size <= BODY_MAX ? pwc__client_request__pack(&r, body) : 0;
}

/* Sends requests as a rank or as a stranger: with wrong fields, and some cut short or with changed
 * bytes. */
static void send_requests(struct attacker *a)
{
    int s = dial(a);
    char replies[4096];
    bool open = s >= 0 && (values_below(&a->values, 8) == 0 || say_hello(a, s));

    for (int i = 0; i < 32 && open; i++) {
        uint8_t body[BODY_MAX];
        size_t size = make_request(a, body), announced;

        if (values_below(&a->values, 8) == 0 && size > 0)
            body[values_below(&a->values, size)] = (uint8_t)values_any(&a->values);
        if (values_below(&a->values, 16) == 0 && size > 0)
            size = values_below(&a->values, size);
        announced = values_below(&a->values, 64) ? size : values_wrong(&a->values, size);
        open = put_frame(s, (uint32_t)announced, body, size);
        count(a, 1);
        while (recv(s, replies, sizeof(replies), MSG_DONTWAIT) > 0) /* also drops descriptors */
            ;
    }
    if (s >= 0)
        close(s);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void send_lengths(struct attacker *a)
{
    static const uint32_t lengths[] = {
        0,        1,         3,          FRAME_BOUND - 1, FRAME_BOUND,
        1u << 20, INT32_MAX, UINT32_MAX, 1u << 31,        FRAME_BOUND + 1};
    uint64_t body[16];
    int s = dial(a);

    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); i++)
        body[i] = values_any(&a->values);
    if (s < 0)
        return;
    (void)put_frame(s, lengths[values_below(&a->values, sizeof(lengths) / sizeof(lengths[0]))],
                    body, values_below(&a->values, sizeof(body)));
    count(a, 1);
    close(s);
}

/* Sends frames of the greatest length, whose bytes are no request, again and again; or one without
 * end. */
static void send_endless(struct attacker *a)
{
    static uint8_t bytes[16384];
    int s = dial(a);

    if (s < 0)
        return;
    (void)put_frame(s, values_below(&a->values, 2) ? FRAME_BOUND : UINT32_MAX, bytes, 1);
    for (uint32_t sent = 0; sent < ENDLESS && put(s, bytes, sizeof(bytes)); sent += sizeof(bytes))
        ;
    count(a, 1);
    close(s);
}

/* Goes to the next of the slow connections: opens it with half a frame, sends one byte more, or
 * closes it. */
static void send_slowly(struct attacker *a)
{
    int *s = &a->slow[a->next_slow++ % SLOW];
    static const uint8_t part[] = {64, 0, 0, 0, 8};

    if (*s < 0) {
        *s = dial(a);
        if (*s >= 0)
            (void)put(*s, part, 1 + values_below(&a->values, sizeof(part)));
    } else if (!put(*s, part, 1) || values_below(&a->values, 8) == 0) {
        close(*s);
        *s = -1;
    }
    count(a, 1);
}

static void ask_and_not_read(struct attacker *a)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    int s = dial(a);

    inspect.what = (char *)(uintptr_t) "queues";
    request.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    for (uint32_t i = 0; s >= 0 && i < UNREAD && put_request(s, &request); i++)
        count(a, 1);
    if (s >= 0)
        close(s);
}

/* ---- descriptors and connections ------------------------------------------------------------- */

static void send_descriptors(struct attacker *a)
{
    _Alignas(struct cmsghdr) static uint8_t control[MESSAGE_ROOM(SCM_MOST)];
    int itself[SCM_MOST];
    uint32_t n = 1 + (uint32_t)values_below(&a->values, SCM_MOST);
    uint8_t head[4] = {4, 0, 0, 0};
    struct iovec part = {head, sizeof(head)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int s = dial(a);

    if (s < 0)
        return;
    if (values_below(&a->values, 2))
        (void)say_hello(a, s);
    for (uint32_t i = 0; i < n; i++)
        itself[i] = s; /* the socket is sent over itself: a cycle */
    message_attach(&message, control, itself, n);
    (void)sendmsg(s, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    count(a, 1);
    close(s);
}

/* Opens many connections at once, sends Hello on some, and closes all. */
static void storm(struct attacker *a)
{
    int open[STORM];

    for (uint32_t i = 0; i < STORM; i++) {
        open[i] = dial(a);
        if (open[i] >= 0 && values_below(&a->values, 4) == 0)
            (void)say_hello(a, open[i]);
        count(a, 1);
    }
    for (uint32_t i = 0; i < STORM; i++)
        if (open[i] >= 0)
            close(open[i]);
}

int hostile_sockets(const struct hostile *h)
{
    static void (*const attacks[])(struct attacker *) = {
        send_requests, send_requests,    send_requests,    send_lengths, send_endless,
        send_slowly,   ask_and_not_read, send_descriptors, storm};
    const struct timespec pause = {.tv_nsec = BETWEEN_NS};
    struct attacker a = {.hostile = h};

    values_init(&a.values, h->seed);
    for (uint32_t i = 0; i < SLOW; i++)
        a.slow[i] = -1;
    while (!atomic_load(&h->board->stop)) {
        attacks[values_below(&a.values, sizeof(attacks) / sizeof(attacks[0]))](&a);
        nanosleep(&pause, NULL); /* so that other clients can attach, too */
    }
    for (uint32_t i = 0; i < SLOW; i++)
        if (a.slow[i] >= 0)
            close(a.slow[i]);
    return 0;
}
