/*
 * The router over a scripted net and a loop, scripted or real: what goes where and under which
 * names, memory of both as one, whose events come, and when it may sleep. One thread.
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

/* A fabric that remembers what it was asked and says what the test wants. */
struct script {
    struct fabric base;
    uint32_t first_index; /* of its memories, which it numbers from there */
    uint64_t away;        /* its addresses lie so far from the memory's */
    struct fabric_event queue[EVENTS];
    uint32_t head, tail;
    uint32_t added, dropped, writes, reads, connects, disconnects;
    uint32_t flood;    /* immediate of arrivals without end; 0: none */
    bool holds_memory; /* answers about memory wait */
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
    while (!s->holds_memory && n < room && s->head != s->tail)
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
    script_read,       script_poll,    script_arm,
};

/* ---- a router of two ------------------------------------------------------------------------- */

struct pair {
    struct fabric *router;
    struct script *net;
    struct script *loop; /* NULL: the real one */
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
        CU_ASSERT_EQUAL_FATAL(loop_open(&(struct loop_config){0}, &loop), 0);
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

/* The next event; kind 0: none comes. */
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

/* ---- what goes where ------------------------------------------------------------------------- */

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
    CU_ASSERT_EQUAL(p.loop->connected.bytes[0], 20); /* by its own address */
    CU_ASSERT_EQUAL(fabric_disconnect(p.router, OTHER), 0);
    CU_ASSERT_EQUAL(p.net->disconnects, 1);
    CU_ASSERT_EQUAL(p.loop->disconnects, 0);
    CU_ASSERT_EQUAL(fabric_disconnect(p.router, SELF), 0);
    CU_ASSERT_EQUAL(p.loop->disconnects, 1);
    pair_close(&p);
}

static void operations(void)
{
    struct pair p;
    struct fabric_memory first, second;
    struct fabric_write write = {.length = 64, .cookie = 7, .immediate = 9, .announce = true};
    struct fabric_read read = {.length = 64, .cookie = 8};

    pair_open(&p, false);
    first = add(&p, p.memory, LENGTH);
    second = add(&p, p.memory + LENGTH, LENGTH);
    CU_ASSERT_NOT_EQUAL(first.index, second.index);
    write.memory = read.memory = second.index;
    write.source = read.destination = p.memory + LENGTH;

    /* Others' names go as they are. */
    write.peer = read.peer = OTHER;
    write.remote_address = read.remote_address = 12345;
    write.remote_key = read.remote_key = 6789;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(fabric_post_read(p.router, &read), 0);
    CU_ASSERT_EQUAL(p.net->writes, 1);
    CU_ASSERT_EQUAL(p.net->reads, 1);
    CU_ASSERT_EQUAL(p.net->write.memory, 11);
    CU_ASSERT_EQUAL(p.net->read.memory, 11);
    CU_ASSERT_EQUAL(p.net->write.remote_address, 12345);
    CU_ASSERT_EQUAL(p.net->write.remote_key, 6789);
    CU_ASSERT_EQUAL(p.net->write.cookie, 7);
    CU_ASSERT_EQUAL(p.net->write.immediate, 9);

    /* Our own are turned into the loop's. */
    write.peer = read.peer = SELF;
    write.remote_address = read.remote_address = first.address + 100;
    write.remote_key = read.remote_key = first.key;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(fabric_post_read(p.router, &read), 0);
    CU_ASSERT_EQUAL(p.net->writes, 1);
    CU_ASSERT_EQUAL(p.loop->writes, 1);
    CU_ASSERT_EQUAL(p.loop->reads, 1);
    CU_ASSERT_EQUAL(p.loop->write.memory, 21);
    CU_ASSERT_EQUAL(p.loop->read.memory, 21);
    CU_ASSERT_EQUAL(p.loop->write.remote_address, (uintptr_t)p.memory + 100 + p.loop->away);
    CU_ASSERT_EQUAL(p.loop->read.remote_address, p.loop->write.remote_address);
    CU_ASSERT_EQUAL(p.loop->write.remote_key, 20000);
    CU_ASSERT_EQUAL(p.loop->write.immediate, 9);
    CU_ASSERT_TRUE(p.loop->write.announce);
    pair_close(&p);
}

/* Names of our own memory that a write to ourselves may, and may not, use. */
static void own_names(void)
{
    static const struct {
        int64_t offset;
        uint64_t length;
        int64_t key; /* away from the right one */
        int expected;
    } rows[] = {
        {0, LENGTH, 0, 0},
        {LENGTH - 1, 1, 0, 0},
        {LENGTH, 0, 0, 0},
        {0, LENGTH + 1, 0, -EKEYREJECTED},
        {1, LENGTH, 0, -EKEYREJECTED},
        {LENGTH, 1, 0, -EKEYREJECTED},
        {-1, 1, 0, -EKEYREJECTED},
        {1, UINT64_MAX, 0, -EKEYREJECTED},
        {INT64_MIN, 1, 0, -EKEYREJECTED},
        {0, 1, 1, -EKEYREJECTED},
        {0, 1, INT64_MIN, -EKEYREJECTED},
    };
    struct pair p;
    struct fabric_memory memory;

    pair_open(&p, false);
    memory = add(&p, p.memory, LENGTH);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fabric_write write = {.peer = SELF,
                                     .memory = memory.index,
                                     .source = p.memory,
                                     .length = rows[i].length,
                                     .remote_address = memory.address + (uint64_t)rows[i].offset,
                                     .remote_key = memory.key + (uint64_t)rows[i].key};
        struct fabric_read read = {.peer = SELF,
                                   .memory = memory.index,
                                   .destination = p.memory,
                                   .length = write.length,
                                   .remote_address = write.remote_address,
                                   .remote_key = write.remote_key};

        CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), rows[i].expected);
        CU_ASSERT_EQUAL(fabric_post_read(p.router, &read), rows[i].expected);
    }
    pair_close(&p);
}

/* Through the real loop: the bytes move, and the announcement comes. */
static void real_loop(void)
{
    struct pair p;
    struct fabric_memory memory;
    struct fabric_address address;
    struct fabric_write write = {
        .peer = SELF, .length = 100, .cookie = 7, .immediate = 9, .announce = true};

    pair_open(&p, true);
    memory = add(&p, p.memory, sizeof(p.memory));
    CU_ASSERT_EQUAL(fabric_address_of(p.router, &address), 0);
    CU_ASSERT_EQUAL(fabric_connect(p.router, SELF, &address), 0);
    memset(p.memory, 'x', 100);
    write.memory = memory.index;
    write.source = p.memory;
    write.remote_address = memory.address + LENGTH;
    write.remote_key = memory.key;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(next(&p).immediate, 9);
    CU_ASSERT_EQUAL(next(&p).cookie, 7);
    CU_ASSERT_EQUAL(memcmp(p.memory, p.memory + LENGTH, 100), 0);
    pair_close(&p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Ready when both have answered, in whichever order. */
static void added_by_both(void)
{
    for (int late = 0; late < 2; late++) {
        struct pair p;

        pair_open(&p, false);
        (late ? p.loop : p.net)->holds_memory = true;
        CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), 0);
        CU_ASSERT_EQUAL(next(&p).kind, 0);
        CU_ASSERT_EQUAL(fabric_mem_drop(p.router, 0, 6), -EINVAL);
        (late ? p.loop : p.net)->holds_memory = false;
        CU_ASSERT_EQUAL(next(&p).kind, FABRIC_ADDED);
        (late ? p.net : p.loop)->holds_memory = true;
        CU_ASSERT_EQUAL(fabric_mem_drop(p.router, 0, 6), 0);
        CU_ASSERT_EQUAL(fabric_mem_drop(p.router, 0, 6), -EINVAL);
        CU_ASSERT_EQUAL(next(&p).kind, 0);
        (late ? p.net : p.loop)->holds_memory = false;
        CU_ASSERT_EQUAL(next(&p).kind, FABRIC_DROPPED);
        pair_close(&p);
    }
}

static void memories(void)
{
    struct pair p;
    struct fabric_memory memory[MEMORIES];
    struct fabric_event event;
    struct fabric_write write = {.peer = SELF, .length = 1};

    pair_open(&p, false);
    for (uint32_t i = 0; i < MEMORIES; i++)
        memory[i] = add(&p, p.memory, LENGTH);
    CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), -ENOSPC);
    CU_ASSERT_EQUAL(fabric_mem_drop(p.router, memory[2].index, 66), 0);
    /* From here on nothing may name it. */
    write.memory = memory[2].index;
    write.remote_address = memory[0].address;
    write.remote_key = memory[0].key;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), -EINVAL);
    write.memory = memory[0].index;
    write.remote_address = memory[2].address;
    write.remote_key = memory[2].key;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), -EKEYREJECTED);
    event = next(&p);
    CU_ASSERT_EQUAL(event.kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(event.cookie, 66);
    CU_ASSERT_EQUAL(event.status, 0);
    CU_ASSERT_EQUAL(p.net->dropped, 1);
    CU_ASSERT_EQUAL(p.loop->dropped, 1);
    memory[2] = add(&p, p.memory, LENGTH);
    write.remote_address = memory[2].address;
    write.remote_key = memory[2].key;
    CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), 0);
    CU_ASSERT_EQUAL(p.loop->write.remote_key, 20004);
    for (uint32_t i = MEMORIES; i < MEMORIES + 2; i++) {
        write.memory = i;
        CU_ASSERT_EQUAL(fabric_post_write(p.router, &write), -EINVAL);
        CU_ASSERT_EQUAL(fabric_mem_drop(p.router, i, 5), -EINVAL);
    }
    CU_ASSERT_EQUAL(fabric_mem_drop(p.router, UINT32_MAX, 5), -EINVAL);
    pair_close(&p);
}

/* One of the two cannot: what the other has done is taken back, and the answer is an error. */
static void half_added(void)
{
    static const struct {
        int net_now, net_later, loop_now, loop_later;
        int returned, told;
        uint32_t net_dropped, loop_dropped;
    } rows[] = {
        {-ENOMEM, 0, 0, 0, -ENOMEM, 0, 0, 0},    {0, 0, -ENOMEM, 0, 0, -ENOMEM, 1, 0},
        {0, -EPERM, 0, 0, 0, -EPERM, 0, 1},      {0, 0, 0, -EPERM, 0, -EPERM, 1, 0},
        {0, -EPERM, 0, -EPERM, 0, -EPERM, 0, 0}, {0, -EPERM, -ENOMEM, 0, 0, -ENOMEM, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair p;
        struct fabric_event event;

        pair_open(&p, false);
        p.net->add_now = rows[i].net_now;
        p.net->add_later = rows[i].net_later;
        p.loop->add_now = rows[i].loop_now;
        p.loop->add_later = rows[i].loop_later;
        CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), rows[i].returned);
        event = next(&p);
        CU_ASSERT_EQUAL(event.kind, rows[i].returned < 0 ? 0 : FABRIC_ADDED);
        CU_ASSERT_EQUAL(event.status, rows[i].told);
        CU_ASSERT_EQUAL(next(&p).kind, 0);
        CU_ASSERT_EQUAL(p.net->dropped, rows[i].net_dropped);
        CU_ASSERT_EQUAL(p.loop->dropped, rows[i].loop_dropped);
        p.net->add_now = p.net->add_later = p.loop->add_now = p.loop->add_later = 0;
        for (uint32_t n = 0; n < MEMORIES; n++) /* all places are free again */
            (void)add(&p, p.memory, LENGTH);
        pair_close(&p);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static int count(const struct fabric_event *events, int n, uint32_t immediate)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += events[i].kind == FABRIC_ARRIVED && events[i].immediate == immediate;
    return found;
}

/* A side that always fills all the room does not keep the other's events away, nor answers. */
static void fairness(void)
{
    enum { POLLS = 100, ROOM = 64, NET = 1, LOOP = 2 };
    static const struct {
        bool net, loop;
    } floods[] = {{true, true}, {true, false}, {false, true}};

    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        struct fabric_event events[ROOM];
        struct pair p;
        int net = 0, loop = 0, added = 0, quiet = 0;

        pair_open(&p, false);
        p.net->flood = floods[i].net ? NET : 0;
        p.loop->flood = floods[i].loop ? LOOP : 0;
        CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), 0);
        for (int n = 0; n < POLLS; n++) {
            struct script *calm = floods[i].net ? p.loop : p.net;
            int got;

            if (!floods[i].net || !floods[i].loop)
                push(calm, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = 3});
            got = fabric_poll(p.router, events, ROOM);
            CU_ASSERT_FATAL(got > 0 && got <= ROOM);
            net += count(events, got, NET);
            loop += count(events, got, LOOP);
            for (int e = 0; e < got; e++) {
                added += events[e].kind == FABRIC_ADDED;
                quiet += events[e].kind == FABRIC_WRITTEN;
            }
        }
        CU_ASSERT_EQUAL(added, 1);
        if (floods[i].net && floods[i].loop) {
            CU_ASSERT(net > POLLS * ROOM / 3);
            CU_ASSERT(loop > POLLS * ROOM / 3);
        } else {
            CU_ASSERT(quiet >= POLLS - 2);
        }
        pair_close(&p);
    }
}

/* One side fails to poll: the other's events come, and the failure when there are none. */
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

/* An answer that found no room: no sleep before it is given. */
static void answers_before_sleep(void)
{
    struct fabric_event event;
    struct pair p;
    int descriptor, added = 0;

    pair_open(&p, false);
    CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 5), 0);
    CU_ASSERT_EQUAL(fabric_mem_add(p.router, p.memory, LENGTH, 0, 6), 0);
    for (int i = 0; i < 8; i++) {
        if (fabric_poll(p.router, &event, 1) == 1)
            added += event.kind == FABRIC_ADDED;
        if (added == 1)
            CU_ASSERT_EQUAL(fabric_arm(p.router, &descriptor), -EAGAIN);
        if (added == 1)
            break;
    }
    CU_ASSERT_EQUAL(next(&p).kind, FABRIC_ADDED);
    CU_ASSERT_EQUAL(fabric_arm(p.router, &descriptor), 0);
    pair_close(&p);
}

int main(void)
{
    CU_TestInfo tests[] = {{"peers", peers},
                           {"operations", operations},
                           {"own names", own_names},
                           {"real loop", real_loop},
                           {"added by both", added_by_both},
                           {"memories", memories},
                           {"half added", half_added},
                           {"fairness", fairness},
                           {"failing side", failing_side},
                           {"sleeping", sleeping},
                           {"answers before sleep", answers_before_sleep},
                           CU_TEST_INFO_NULL};

    return suite_run("router", tests);
}
