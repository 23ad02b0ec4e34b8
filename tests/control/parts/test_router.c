/*
 * The router over a scripted network fabric and a loop, scripted or real: which side gets an
 * operation, with which keys and addresses, in which order the events of both sides come, and when
 * the router may sleep. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/fabric/loop.h"
#include "daemon/fabric/router.h"
#include "tests/suite.h"

#define SELF     1u
#define OTHER    0u
#define MEMORIES 4u
#define LENGTH   4096u
#define EVENTS   64u

/* A scripted fabric: it counts the calls, and returns what the test has set. */
struct script {
    struct fabric base;
    uint32_t first_index; /* the first index of its memories */
    uint64_t away;        /* added to the memory's real address */
    struct fabric_event queue[EVENTS];
    uint32_t head, tail;
    uint32_t added, dropped, writes, reads, connects, disconnects;
    uint32_t flood; /* not 0: endless arrivals with this immediate data */
    int add_now, add_later, drop_now, poll_status, arm_status;
    bool *closed;
    struct fabric_write write;
    struct fabric_read read;
    struct fabric_address connected;
};

static struct script *script_of(struct fabric *fabric)
{
    return (struct script *)fabric;
}

static void push(struct script *s, const struct fabric_event *event)
{
    s->queue[s->tail++ % EVENTS] = *event;
}

static void script_close(struct fabric *fabric)
{
    *script_of(fabric)->closed = true;
    free(fabric);
}

static int script_address(struct fabric *fabric, struct fabric_address *out)
{
    *out = (struct fabric_address){.size = 1, .bytes = {(uint8_t)script_of(fabric)->first_index}};
    return 0;
}

static int script_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *a)
{
    script_of(fabric)->connects++;
    script_of(fabric)->connected = *a;
    return 0;
}

static int script_disconnect(struct fabric *fabric, uint32_t peer)
{
    script_of(fabric)->disconnects++;
    return 0;
}

static int script_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                          uint64_t cookie)
{
    struct script *s = script_of(fabric);
    struct fabric_event event = {.kind = FABRIC_ADDED, .status = s->add_later, .cookie = cookie};

    if (s->add_now < 0)
        return s->add_now;
    event.memory.index = s->first_index + s->added;
    event.memory.address = (uintptr_t)base + s->away;
    event.memory.key = 1000 * s->first_index + s->added++;
    push(s, &event);
    return 0;
}

static int script_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    struct script *s = script_of(fabric);

    if (s->drop_now < 0)
        return s->drop_now;
    s->dropped++;
    push(s, &(struct fabric_event){.kind = FABRIC_DROPPED, .cookie = cookie});
    return 0;
}

static int script_write(struct fabric *fabric, const struct fabric_write *write)
{
    script_of(fabric)->writes++;
    script_of(fabric)->write = *write;
    return 0;
}

static int script_read(struct fabric *fabric, const struct fabric_read *read)
{
    script_of(fabric)->reads++;
    script_of(fabric)->read = *read;
    return 0;
}

static int script_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct script *s = script_of(fabric);
    int n = 0;

    if (s->poll_status < 0)
        return s->poll_status;
    while (n < room && s->head != s->tail)
        events[n++] = s->queue[s->head++ % EVENTS];
    while (s->flood && n < room)
        events[n++] = (struct fabric_event){.kind = FABRIC_ARRIVED, .immediate = s->flood};
    return n;
}

static int script_arm(struct fabric *fabric, int *descriptor)
{
    const struct script *s = script_of(fabric);

    *descriptor = (int)s->first_index;
    return s->head != s->tail ? -EAGAIN : s->arm_status;
}

static const struct fabric_ops script_ops = {
    "script",          script_close,   script_address,  script_connect,
    script_disconnect, script_mem_add, script_mem_drop, script_write,
    script_read,       script_poll,    script_arm,      NULL,
};

/* ---- a router of two ------------------------------------------------------------------------- */

struct pair {
    struct fabric *router;
    struct script *net;
    struct script *loop; /* NULL: the real loop, which also adopts memory */
    bool closed[2];
    uint8_t memory[2 * LENGTH];
};

static struct script *script_new(uint32_t first_index, bool *closed)
{
    struct script *s = calloc(1, sizeof(*s));

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    *s = (struct script){
        .base = {&script_ops,
                 {.message_max = 1000 * first_index, .ordered_write_max = 1000 / first_index}},
        .first_index = first_index,
        .away = (uint64_t)first_index << 40,
        .closed = closed,
    };
    return s;
}

static void pair_open(struct pair *p, bool real_loop)
{
    const struct router_config config = {.node = SELF, .memories_max = MEMORIES};
    struct fabric *loop;

    *p = (struct pair){0};
    p->net = script_new(10, &p->closed[0]);
    if (real_loop) {
        struct fabric_address own;

        CU_ASSERT_EQUAL_FATAL(loop_open(&(struct loop_config){.memories_max = 32}, &loop), 0);
        CU_ASSERT_EQUAL_FATAL(fabric_address_of(loop, &own), 0);
        CU_ASSERT_EQUAL_FATAL(fabric_connect(loop, SELF, &own), 0);
    } else {
        p->loop = script_new(20, &p->closed[1]);
        loop = &p->loop->base;
    }
    CU_ASSERT_EQUAL_FATAL(router_open(&config, &p->net->base, loop, &p->router), 0);
}

static void pair_close(struct pair *p)
{
    fabric_close(p->router);
    CU_ASSERT_TRUE(p->closed[0]);
    CU_ASSERT_TRUE(p->closed[1] || !p->loop);
}

/* Polls for the next event; kind 0: there is none. */
static struct fabric_event next(struct pair *p)
{
    struct fabric_event event = {0};

    for (int i = 0; i < 16; i++)
        if (fabric_poll(p->router, &event, 1) == 1)
            return event;
    return (struct fabric_event){0};
}

static struct fabric_memory add(struct pair *p, void *base, uint64_t length)
{
    struct fabric_event event;

    CU_ASSERT_EQUAL_FATAL(
        fabric_mem_add(p->router, base, length, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE, 55), 0);
    event = next(p);
    CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ADDED);
    CU_ASSERT_EQUAL_FATAL(event.status, 0);
    CU_ASSERT_EQUAL(event.cookie, 55);
    return event.memory;
}

/* ---- routes --------------------------------------------------------------------------------- */

static void peers(void)
{
    struct fabric_address address;
    struct pair p;

    pair_open(&p, false);
    CU_ASSERT_EQUAL(p.router->traits.message_max, 10000);
    CU_ASSERT_EQUAL(p.router->traits.ordered_write_max, 50);
    CU_ASSERT_EQUAL(fabric_address_of(p.router, &address), 0);
    CU_ASSERT_EQUAL(address.bytes[0], 10);
    CU_ASSERT_EQUAL(fabric_connect(p.router, OTHER, &address), 0);
    CU_ASSERT_EQUAL(p.net->connects, 1);
    CU_ASSERT_EQUAL(p.loop->connects, 0);
    CU_ASSERT_EQUAL(fabric_connect(p.router, SELF, &address), 0);
    CU_ASSERT_EQUAL(p.net->connects, 1);
    CU_ASSERT_EQUAL(p.loop->connects, 1);
    CU_ASSERT_EQUAL(p.loop->connected.bytes[0], 20); /* connected by the loop's own address */
    CU_ASSERT_EQUAL(fabric_disconnect(p.router, OTHER), 0);
    CU_ASSERT_EQUAL(p.net->disconnects, 1);
    CU_ASSERT_EQUAL(p.loop->disconnects, 0);
    CU_ASSERT_EQUAL(fabric_disconnect(p.router, SELF), 0);
    CU_ASSERT_EQUAL(p.loop->disconnects, 1);
    pair_close(&p);
}

/* Operations to other engines are passed to the network fabric unchanged. */
static void to_others(void)
{
    struct fabric_write write = {
        .peer = OTHER, .memory = 11, .remote_address = 12345, .remote_key = 6789, .immediate = 9};
    struct fabric_read read = {.peer = OTHER, .memory = 11, .remote_key = 6789};
    struct pair p;

    pair_open(&p, false);
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(fabric_post_read(p.router, &read), 0);
    CU_ASSERT_EQUAL(memcmp(&p.net->write, &write, sizeof(write)), 0);
    CU_ASSERT_EQUAL(memcmp(&p.net->read, &read, sizeof(read)), 0);
    CU_ASSERT_EQUAL(p.loop->writes + p.loop->reads, 0);
    pair_close(&p);
}

/* Operations to ourselves name our memory by the network fabric's keys and addresses: right ones
 * move the right bytes, wrong ones are refused. */
static void to_ourselves(void)
{
    static const struct {
        int64_t offset;
        uint64_t length;
        int64_t key; /* difference from the right key */
        int expected;
    } rows[] = {
        {0, LENGTH, 0, 0},           {LENGTH - 1, 1, 0, 0},      {LENGTH, 0, 0, 0},
        {0, LENGTH + 1, 0, -EACCES}, {1, LENGTH, 0, -EACCES},    {LENGTH, 1, 0, -EACCES},
        {-1, 1, 0, -EACCES},         {INT64_MIN, 1, 0, -EACCES}, {0, 1, 1, -EACCES},
        {0, 1, INT64_MIN, -EACCES},
    };
    struct fabric_memory source, target;
    struct pair p;

    pair_open(&p, true);
    source = add(&p, p.memory, 2 * LENGTH);
    target = add(&p, p.memory + LENGTH, LENGTH);
    CU_ASSERT_NOT_EQUAL(target.address, (uintptr_t)p.memory + LENGTH);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fabric_write write = {.peer = SELF,
                                     .memory = source.index,
                                     .source = p.memory,
                                     .length = rows[i].length,
                                     .remote_address = target.address + (uint64_t)rows[i].offset,
                                     .remote_key = target.key + (uint64_t)rows[i].key,
                                     .cookie = 7,
                                     .immediate = 9,
                                     .announce = rows[i].expected == 0};
        struct fabric_read read = {.peer = SELF,
                                   .memory = source.index,
                                   .destination = p.memory,
                                   .length = write.length,
                                   .remote_address = write.remote_address,
                                   .remote_key = write.remote_key,
                                   .cookie = 8};
        struct fabric_event event;

        memset(p.memory, (int)i + 1, LENGTH);
        CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
        if (rows[i].expected == 0) {
            CU_ASSERT_EQUAL(next(&p).immediate, 9);
            CU_ASSERT_EQUAL(memcmp(p.memory, p.memory + LENGTH + rows[i].offset, rows[i].length),
                            0);
        }
        event = next(&p);
        CU_ASSERT_EQUAL(event.cookie, 7);
        CU_ASSERT_EQUAL(event.status, rows[i].expected);
        CU_ASSERT_EQUAL(fabric_post_read(p.router, &read), 0);
        event = next(&p);
        CU_ASSERT_EQUAL(event.cookie, 8);
        CU_ASSERT_EQUAL(event.status, rows[i].expected);
    }
    CU_ASSERT_EQUAL(p.net->writes + p.net->reads, 0);
    pair_close(&p);
}

/* Once a memory is dropped, operations to ourselves that name it are refused, and its place is used
 * again. */
static void dropped(void)
{
    struct fabric_memory source, target;
    struct fabric_write write = {.peer = SELF, .length = 1};
    struct fabric_event event;
    struct pair p;

    pair_open(&p, true);
    source = add(&p, p.memory, LENGTH);
    target = add(&p, p.memory + LENGTH, LENGTH);
    write.memory = source.index;
    write.source = p.memory;
    write.remote_address = target.address;
    write.remote_key = target.key;
    p.net->drop_now = -EINVAL; /* the network fabric's result is returned */
    CU_ASSERT_EQUAL(fabric_mem_drop(p.router, target.index, 66), -EINVAL);
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(next(&p).status, 0);
    p.net->drop_now = 0;
    CU_ASSERT_EQUAL(fabric_mem_drop(p.router, target.index, 66), 0);
    event = next(&p);
    CU_ASSERT_EQUAL(event.kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(event.cookie, 66);
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(next(&p).status, -EACCES);
    write.memory = target.index;
    write.source = p.memory + LENGTH;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), -EINVAL);
    p.net->added--; /* the next memory gets its index */
    target = add(&p, p.memory + LENGTH, LENGTH);
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(next(&p).status, 0);
    pair_close(&p);
}

/* The network fabric or the loop cannot register a memory: the result is an error, and the memory
 * is dropped from the network fabric again. */
static void refused(void)
{
    static const struct {
        int now, later;
        uint32_t first_index;
        int returned, status;
        uint32_t dropped;
    } rows[] = {{-ENOMEM, 0, 10, -ENOMEM, 0, 0},
                {0, -EPERM, 10, 0, -EPERM, 0},
                {0, 0, 32, 0, -ENOSPC, 1}}; /* the loop has 32 places */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fabric_event event;
        struct pair p;

        pair_open(&p, true);
        p.net->add_now = rows[i].now;
        p.net->add_later = rows[i].later;
        p.net->first_index = rows[i].first_index;
        CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), rows[i].returned);
        event = next(&p);
        CU_ASSERT_EQUAL(event.kind, rows[i].returned < 0 ? 0 : FABRIC_ADDED);
        CU_ASSERT_EQUAL(event.status, rows[i].status);
        CU_ASSERT_EQUAL(event.cookie, rows[i].returned < 0 ? 0 : 5);
        CU_ASSERT_EQUAL(next(&p).kind, 0); /* no event of a drop that nobody asked for */
        CU_ASSERT_EQUAL(p.net->dropped, rows[i].dropped);
        p.net->add_now = p.net->add_later = 0;
        p.net->first_index = 10;
        for (uint32_t n = 0; n < MEMORIES; n++) /* all places are free again */
            CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), 0);
        CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), -ENOSPC);
        pair_close(&p);
    }
}

/* The router shows the network fabric's count of what it has received. */
static void received(void)
{
    struct fabric_event event;
    struct pair p;

    pair_open(&p, true);
    CU_ASSERT_EQUAL(fabric_poll(p.router, &event, 1), 0);
    CU_ASSERT_EQUAL(p.router->received, 0);
    p.net->base.received = 7;
    CU_ASSERT_EQUAL(fabric_poll(p.router, &event, 1), 0);
    CU_ASSERT_EQUAL(p.router->received, 7);
    pair_close(&p);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int count(const struct fabric_event *events, int n, uint32_t immediate)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += events[i].kind == FABRIC_ARRIVED && events[i].immediate == immediate;
    return found;
}

/* One side always has more events than there is room for: the other side's events come
 * nevertheless. */
static void fairness(void)
{
    enum { POLLS = 100, ROOM = 64, NET = 1, LOOP = 2 };
    static const struct {
        bool net, loop;
    } floods[] = {{true, true}, {true, false}, {false, true}};

    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        struct fabric_event events[ROOM];
        struct pair p;
        int net = 0, loop = 0, quiet = 0;

        pair_open(&p, false);
        p.net->flood = floods[i].net ? NET : 0;
        p.loop->flood = floods[i].loop ? LOOP : 0;
        for (int n = 0; n < POLLS; n++) {
            struct script *calm = floods[i].net ? p.loop : p.net;
            int got;

            if (!floods[i].net || !floods[i].loop)
                push(calm, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = 3});
            got = fabric_poll(p.router, events, ROOM);
            CU_ASSERT_FATAL(got > 0 && got <= ROOM);
            net += count(events, got, NET);
            loop += count(events, got, LOOP);
            for (int e = 0; e < got; e++)
                quiet += events[e].kind == FABRIC_WRITTEN;
        }
        if (floods[i].net && floods[i].loop) {
            CU_ASSERT(net > POLLS * ROOM / 3);
            CU_ASSERT(loop > POLLS * ROOM / 3);
        } else {
            CU_ASSERT(quiet >= POLLS - 2);
        }
        pair_close(&p);
    }
}

/* The poll of one side fails: events of the other side are returned first, and then the failure. */
static void failing_side(void)
{
    for (int failing = 0; failing < 2; failing++) {
        struct pair p;
        struct fabric_event events[4];
        int came = 0, failed = 0;

        pair_open(&p, false);
        (failing ? p.loop : p.net)->poll_status = -EIO;
        push(failing ? p.net : p.loop, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = 3});
        for (int i = 0; i < 4; i++) {
            int n = fabric_poll(p.router, events, 4);

            came += n > 0;
            failed += n == -EIO;
        }
        CU_ASSERT_EQUAL(came, 1);
        CU_ASSERT_EQUAL(failed, 3);
        pair_close(&p);
    }
}

/* ---- sleep ----------------------------------------------------------------------------------- */

static void sleeping(void)
{
    static const struct {
        int net, loop, expected;
    } rows[] = {{0, 0, 0},
                {-EAGAIN, 0, -EAGAIN},
                {0, -EAGAIN, -EAGAIN},
                {-ENOTSUP, 0, -ENOTSUP},
                {-ENOTSUP, -EAGAIN, -EAGAIN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair p;
        int descriptor = -1, status;

        pair_open(&p, false);
        p.net->arm_status = rows[i].net;
        p.loop->arm_status = rows[i].loop;
        status = fabric_arm(p.router, &descriptor);
        CU_ASSERT_EQUAL(status, rows[i].expected);
        CU_ASSERT(status != 0 || descriptor == 10);
        pair_close(&p);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"peers", peers},       {"to others", to_others},       {"to ourselves", to_ourselves},
        {"dropped", dropped},   {"refused", refused},           {"received", received},
        {"fairness", fairness}, {"failing side", failing_side}, {"sleeping", sleeping},
        CU_TEST_INFO_NULL};

    return suite_run("router", tests);
}
