/*
 * The promises of fabric.h, checked on each fabric: `test_contract loop|delay|tcp|net|shm`, and
 * tcp2, tcp4, ... with 2, 4, ... rails. The other end is a process of its own (far.h). Exits with
 * 77 where the machine lacks the provider.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/fabric/ofi/ofi.h"
#include "tests/fabric/end.h"
#include "tests/fabric/far.h"
#include "tests/suite.h"

#define SKIPPED 77
#define LIMIT   160 /* seconds for the whole program */

/* Two connected ends. `near` knows address and key of the far end's memory. */
struct link {
    struct fabric *fabric;
    struct end near;
    struct far far;
    struct far_reply hello;
};

/* Global, because CUnit passes nothing to its tests. */
static const struct rig *rig;
static struct end_log near_log;

static const uint64_t sizes[] = {1, 8, 64, 65, 128, 4096, 4097, 65536, 1u << 20, 4u << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- set-up ---------------------------------------------------------------------------------- */

static int ask(struct link *link, struct far_request request, struct far_reply *reply)
{
    int rc = far_call(&link->far, &link->near, &request, reply);

    return rc ? rc : reply->status;
}

static int ask_far(struct link *link, struct far_request request)
{
    struct far_reply reply;

    return ask(link, request, &reply);
}

static int connect_both(struct link *link)
{
    struct far_request q = {.kind = FAR_CONNECT};
    int rc = fabric_address_of(link->fabric, &q.address);

    if (!rc)
        rc = fabric_connect(link->fabric, OTHER, &link->hello.address);
    return rc ? rc : ask_far(link, q);
}

static void link_open(struct link *link)
{
    char role[32];

    memset(&near_log, 0, sizeof(near_log));
    (void)snprintf(role, sizeof(role), "%d.near", (int)getpid());
    CU_ASSERT_EQUAL_FATAL(rig_open(rig, role, &link->fabric), 0);
    CU_ASSERT_EQUAL_FATAL(end_open(&link->near, link->fabric, &near_log), 0);
    CU_ASSERT_EQUAL_FATAL(far_start(&link->far, &link->near, rig, &link->hello), 0);
    CU_ASSERT_EQUAL_FATAL(connect_both(link), 0);
}

static void link_close(struct link *link)
{
    CU_ASSERT_EQUAL(near_log.violations, 0);
    far_stop(&link->far, &link->near);
    end_close(&link->near, true);
}

/* Posts a write of `length` bytes from the start of near's memory to `offset` of far's. */
static struct fabric_write write_of(struct link *link, uint64_t offset, uint64_t length,
                                    uint64_t cookie)
{
    return (struct fabric_write){
        .peer = OTHER,
        .memory = link->near.registered.index,
        .source = link->near.memory,
        .length = length,
        .remote_address = link->hello.target + offset,
        .remote_key = link->hello.key,
        .cookie = cookie,
        .immediate = (uint32_t)cookie,
    };
}

static struct fabric_read read_of(struct link *link, uint64_t offset, uint64_t length,
                                  uint64_t cookie)
{
    return (struct fabric_read){
        .peer = OTHER,
        .memory = link->near.registered.index,
        .destination = link->near.memory,
        .length = length,
        .remote_address = link->hello.target + offset,
        .remote_key = link->hello.key,
        .cookie = cookie,
    };
}

static void assert_ended_once(uint32_t first, uint32_t count, int status)
{
    uint32_t wrong = 0;

    for (uint32_t i = first; i < first + count; i++)
        wrong += near_log.ended[i] != 1 || near_log.status[i] != status;
    CU_ASSERT_EQUAL(wrong, 0);
}

static void assert_arrived(struct link *link, uint32_t count)
{
    struct far_reply reply;

    CU_ASSERT_EQUAL(ask(link, (struct far_request){.kind = FAR_AWAIT, .count = count}, &reply), 0);
    CU_ASSERT_EQUAL(reply.count, 0);
}

/* Checks that the link works: one announced write arrives. */
static void assert_link_works(struct link *link, uint32_t cookie, uint32_t arrivals)
{
    struct fabric_write w = write_of(link, 0, 8, cookie);

    w.announce = true;
    CU_ASSERT_EQUAL_FATAL(end_write(&link->near, &w), 0);
    CU_ASSERT_TRUE(end_await_ended(&link->near, cookie, 1));
    assert_ended_once(cookie, 1, 0);
    assert_arrived(link, arrivals);
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* The data is there when its announcement arrives. */
static void announced(void)
{
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < 2 * SIZES; i++) {
        uint64_t length = sizes[i / 2];
        struct fabric_write w = write_of(&link, 8 * i, length, i);

        w.announce = true;
        w.placed = i % 2;
        pattern_fill(link.near.memory, length, i);
        CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_EXPECT,
                                                            .immediate = i,
                                                            .offset = 8 * i,
                                                            .length = length,
                                                            .seed = i}),
                        0);
        CU_ASSERT_EQUAL_FATAL(end_write(&link.near, &w), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, i, 1));
        assert_arrived(&link, i + 1);
    }
    assert_ended_once(0, 2 * SIZES, 0);
    link_close(&link);
}

/* All 32 bits of immediate data arrive; a write without announce causes no arrival. */
static void immediates(void)
{
    static const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678};
    struct far_request back = {.kind = FAR_WRITE, .length = 8};
    struct link link;

    link_open(&link);
    back.target = link.near.registered.address;
    back.key = link.near.registered.key;
    for (uint32_t i = 0; i < 6; i++) {
        back.immediate = values[i];
        CU_ASSERT_EQUAL(ask_far(&link, back), 0);
        CU_ASSERT_TRUE(end_await_arrivals(&link.near, i + 1));
        CU_ASSERT_EQUAL(near_log.arrived[i], values[i]);
    }

    struct fabric_write silent = write_of(&link, 0, 8, 100);

    silent.placed = true;
    CU_ASSERT_EQUAL(end_write(&link.near, &silent), 0);
    CU_ASSERT_TRUE(end_await_ended(&link.near, 100, 1));
    /* In the loop both ends share one log, so near's log also has far's six arrivals. */
    assert_link_works(&link, 101, link.far.pid ? 1 : 7);
    link_close(&link);
}

/*
 * A write with `placed` completes only when its bytes are at the target, announced or not. These
 * providers place bytes while the target polls, so the write must not complete while the target
 * pauses.
 */
static void placed(void)
{
    enum { LAST = 100, GLANCE = 20 };
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < SIZES; i++) {
        struct fabric_write w = write_of(&link, 0, sizes[i], i);

        w.placed = true;
        pattern_fill(link.near.memory, sizes[i], i);
        CU_ASSERT_EQUAL_FATAL(end_write(&link.near, &w), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, i, 1));
        CU_ASSERT_EQUAL(
            ask_far(&link, (struct far_request){.kind = FAR_CHECK, .length = sizes[i], .seed = i}),
            0);
    }
    assert_ended_once(0, SIZES, 0);

    struct fabric_write w = write_of(&link, 0, 8, LAST);

    w.placed = true;
    CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_PAUSE}), 0);
    CU_ASSERT_EQUAL(end_write(&link.near, &w), 0);
    for (int64_t until = milliseconds() + GLANCE; link.far.pid && milliseconds() < until;)
        (void)end_pump(&link.near);
    CU_ASSERT_EQUAL(near_log.ended[LAST], 0);
    assert_arrived(&link, 0);
    CU_ASSERT_TRUE(end_await_ended(&link.near, LAST, 1));
    link_close(&link);
}

static void reads(void)
{
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < SIZES; i++) {
        struct fabric_read r = read_of(&link, 16, sizes[i], i);

        CU_ASSERT_EQUAL(ask_far(&link,
                                (struct far_request){
                                    .kind = FAR_FILL, .offset = 16, .length = sizes[i], .seed = i}),
                        0);
        CU_ASSERT_EQUAL_FATAL(end_read(&link.near, &r), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, i, 1));
        CU_ASSERT_TRUE(pattern_holds(link.near.memory, sizes[i], i));
    }
    assert_ended_once(0, SIZES, 0);
    link_close(&link);
}

/* Posts far more operations than may be outstanding: some are refused with -EAGAIN, and each
 * accepted one ends once and arrives once. */
static void crowd(void)
{
    enum { COUNT = 6000 };
    static const uint64_t mixed[] = {8, 48, 100, 2000, 8, 20000};
    struct link link;
    uint32_t refused = 0, announcements = 0;

    link_open(&link);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct fabric_write w = write_of(&link, 64 * i, mixed[i % 6], i);
        int rc;

        w.announce = i % 3 != 2;
        w.placed = i % 7 == 0;
        announcements += w.announce;
        rc = fabric_post_write(link.fabric, &w);
        if (rc == -EAGAIN) {
            refused++;
            rc = end_write(&link.near, &w);
        }
        CU_ASSERT_EQUAL_FATAL(rc, 0);
    }
    CU_ASSERT_TRUE(refused > 0);
    CU_ASSERT_TRUE(end_await_ended(&link.near, 0, COUNT));
    assert_ended_once(0, COUNT, 0);
    assert_arrived(&link, announcements);
    link_close(&link);
}

/* Where writes are ordered, a payload is in place when the small write after it arrives. */
static void ordered(void)
{
    struct link link;
    uint32_t rounds = 0;

    link_open(&link);
    for (uint32_t i = 0; i < SIZES; i++) {
        struct fabric_write payload = write_of(&link, 4096, sizes[i], 2 * i);
        struct fabric_write record = write_of(&link, 0, 8, 2 * i + 1);

        if (sizes[i] > link.fabric->traits.ordered_write_max)
            break;
        record.announce = true;
        pattern_fill(link.near.memory, sizes[i], i);
        CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_EXPECT,
                                                            .immediate = record.immediate,
                                                            .offset = 4096,
                                                            .length = sizes[i],
                                                            .seed = i}),
                        0);
        CU_ASSERT_EQUAL_FATAL(end_write(&link.near, &payload), 0);
        CU_ASSERT_EQUAL_FATAL(end_write(&link.near, &record), 0);
        assert_arrived(&link, ++rounds);
        CU_ASSERT_TRUE(end_await_ended(&link.near, 2 * i, 2));
    }
    assert_ended_once(0, 2 * rounds, 0);
    link_close(&link);
}

/* The result of a registration is an event; the index of dropped memory is used again; a wrong
 * index is an error. */
static void memory(void)
{
    static uint8_t other[3 * 4096];
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t seen = near_log.memory_events;
        struct fabric_memory added;

        CU_ASSERT_EQUAL_FATAL(
            fabric_mem_add(link.fabric, other, sizeof(other), FABRIC_LOCAL, 7000 + i), 0);
        CU_ASSERT_TRUE_FATAL(end_await_memory(&link.near, seen + 1));
        CU_ASSERT_EQUAL(near_log.memory_event.kind, FABRIC_ADDED);
        CU_ASSERT_EQUAL(near_log.memory_event.cookie, 7000 + i);
        CU_ASSERT_EQUAL_FATAL(near_log.memory_event.status, 0);
        added = near_log.memory_event.memory;
        CU_ASSERT_NOT_EQUAL(added.index, link.near.registered.index);

        struct fabric_write w = write_of(&link, 0, sizeof(other), i);

        w.memory = added.index;
        w.source = other;
        w.placed = true;
        pattern_fill(other, sizeof(other), i);
        CU_ASSERT_EQUAL(end_write(&link.near, &w), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, i, 1));
        CU_ASSERT_EQUAL(
            ask_far(&link,
                    (struct far_request){.kind = FAR_CHECK, .length = sizeof(other), .seed = i}),
            0);

        CU_ASSERT_EQUAL(fabric_mem_drop(link.fabric, added.index, 8000 + i), 0);
        CU_ASSERT_EQUAL(fabric_mem_drop(link.fabric, added.index, 8000 + i), -EINVAL);
        CU_ASSERT_TRUE(end_await_memory(&link.near, seen + 2));
        CU_ASSERT_EQUAL(near_log.memory_event.kind, FABRIC_DROPPED);
        CU_ASSERT_EQUAL(near_log.memory_event.cookie, 8000 + i);
        CU_ASSERT_EQUAL(near_log.memory_event.status, 0);
        CU_ASSERT_EQUAL(fabric_post_write(link.fabric, &w), -EINVAL);
    }
    link_close(&link);
}

/* Wrong arguments are refused at once. */
static void refusals(void)
{
    struct fabric_address empty = {0}, huge = {.size = FABRIC_ADDRESS_MAX + 1};
    struct link link;

    link_open(&link);

    struct fabric_write w = write_of(&link, 0, 8, 1);
    struct fabric_read r = read_of(&link, 0, 8, 2);

    w.memory = r.memory = 1u << 20;
    CU_ASSERT_EQUAL(fabric_post_write(link.fabric, &w), -EINVAL);
    CU_ASSERT_EQUAL(fabric_post_read(link.fabric, &r), -EINVAL);
    w.memory = r.memory = link.near.registered.index;
    w.peer = r.peer = OTHER + 1;
    CU_ASSERT_EQUAL(fabric_post_write(link.fabric, &w), -ENOTCONN);
    CU_ASSERT_EQUAL(fabric_post_read(link.fabric, &r), -ENOTCONN);
    CU_ASSERT_EQUAL(fabric_connect(link.fabric, OTHER + 1, &empty), -EINVAL);
    CU_ASSERT_EQUAL(fabric_connect(link.fabric, OTHER + 1, &huge), -EINVAL);
    CU_ASSERT_EQUAL(fabric_connect(link.fabric, UINT32_MAX, &link.hello.address), -EINVAL);
    CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER + 1), 0);
    CU_ASSERT_EQUAL(fabric_mem_add(link.fabric, link.near.memory, 0, FABRIC_LOCAL, 1), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_add(link.fabric, NULL, 8, FABRIC_LOCAL, 1), -EINVAL);
    CU_ASSERT_EQUAL(fabric_mem_drop(link.fabric, 1u << 20, 1), -EINVAL);
    assert_link_works(&link, 3, 1);
    link_close(&link);
}

/* Posts writes with `placed` and reads, in turn, until the fabric refuses one or END_OPERATIONS are
 * posted. None can end while the far end pauses. Returns their number. */
static uint32_t post_unanswered(struct link *link, uint32_t first)
{
    uint32_t n = 0;
    int rc = 0;

    while (n < END_OPERATIONS && rc == 0) {
        if (n % 2) {
            struct fabric_read r = read_of(link, 0, 64, first + n);

            rc = fabric_post_read(link->fabric, &r);
        } else {
            struct fabric_write w = write_of(link, 1u << 20, 64, first + n);

            w.placed = true;
            rc = fabric_post_write(link->fabric, &w);
        }
        n += rc == 0;
    }
    CU_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
    return n;
}

/* After a disconnect each outstanding operation ends once, with -ECANCELED, and a new connection
 * does not continue any of them. */
static void disconnected(void)
{
    enum { ROUNDS = 5 };
    uint32_t counts[ROUNDS];
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t first = 1000 * (i + 1);

        assert_link_works(&link, i, i + 1);
        CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_PAUSE}), 0);

        uint32_t count = counts[i] = post_unanswered(&link, first);

        CU_ASSERT_TRUE(count > 0);
        CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, first, count));
        assert_ended_once(first, count, -ECANCELED);

        struct fabric_write w = write_of(&link, 0, 8, 999);

        CU_ASSERT_EQUAL(fabric_post_write(link.fabric, &w), -ENOTCONN);
        CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_DISCONNECT}), 0);
        CU_ASSERT_EQUAL_FATAL(connect_both(&link), 0);
    }
    assert_link_works(&link, ROUNDS, ROUNDS + 1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        assert_ended_once(1000 * (i + 1), counts[i], -ECANCELED); /* still once */
    link_close(&link);
}

/*
 * When the peer polls again, the provider completes operations of the broken connection after all:
 * that must not end operations posted since.
 */
static void late_completions(void)
{
    enum { OLD = 1000, NEW = 2000, LENGTH = 65536, APART = 2 << 20 };
    struct link link;
    uint32_t posted = 0;

    link_open(&link);
    assert_link_works(&link, 0, 1);
    CU_ASSERT_EQUAL(ask_far(&link,
                            (struct far_request){
                                .kind = FAR_FILL, .offset = APART, .length = LENGTH, .seed = 5}),
                    0);
    CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_PAUSE}), 0);

    uint32_t old = post_unanswered(&link, OLD);

    CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER), 0);
    CU_ASSERT_TRUE(end_await_ended(&link.near, OLD, old));
    /* Operations of the old connection may still write into the areas that are not checked. */
    near_log.read = (struct expectation){0, 5, link.near.memory + APART, LENGTH};
    if (rig->joint) {
        CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_DISCONNECT}), 0);
        CU_ASSERT_EQUAL_FATAL(connect_both(&link), 0);
    } else {
        CU_ASSERT_EQUAL_FATAL(fabric_connect(link.fabric, OTHER, &link.hello.address), 0);
    }
    for (; posted < END_OPERATIONS; posted++) {
        struct fabric_read r = read_of(&link, APART, LENGTH, NEW + posted);

        r.destination = link.near.memory + APART;
        if (fabric_post_read(link.fabric, &r))
            break;
    }
    assert_arrived(&link, 1); /* the far process polls again and awaits an arrival */
    if (posted < END_OPERATIONS) {
        struct fabric_read r = read_of(&link, APART, LENGTH, NEW + posted++);

        r.destination = link.near.memory + APART;
        CU_ASSERT_EQUAL(end_read(&link.near, &r), 0);
    }
    CU_ASSERT_TRUE(end_await_ended(&link.near, NEW, posted));
    assert_ended_once(NEW, posted, 0);
    assert_ended_once(OLD, old, -ECANCELED);
    link_close(&link);
}

/* The far end stops in the middle of a long write, and its link ends. Once the memory is dropped,
 * the rest of the write does not come, also when the far end goes on. */
static void cut(void)
{
    enum { AFTER = 500 };
    struct far_request q = {.kind = FAR_WRITE, .length = END_MEMORY};
    struct far_reply reply;
    struct link link;
    uint32_t before;
    int64_t until;

    link_open(&link);
    if (!rig->cuts) {
        link_close(&link);
        return;
    }
    CU_ASSERT_EQUAL(
        ask_far(&link, (struct far_request){.kind = FAR_FILL, .length = END_MEMORY, .seed = 1}), 0);
    q.target = link.near.registered.address;
    q.key = link.near.registered.key;
    CU_ASSERT_EQUAL(send(link.far.socket, &q, sizeof(q), 0), sizeof(q));
    for (until = milliseconds() + END_PATIENCE; link.near.memory[1] == 0 && milliseconds() < until;)
        (void)end_pump(&link.near);
    CU_ASSERT_EQUAL(kill(link.far.pid, SIGSTOP), 0);
    for (until = milliseconds() + 50; milliseconds() < until;)
        (void)end_pump(&link.near); /* takes what the far end has sent */
    CU_ASSERT_EQUAL(near_log.arrivals, 0);
    CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER), 0);
    before = near_log.memory_events;
    CU_ASSERT_EQUAL(fabric_mem_drop(link.fabric, link.near.registered.index, 9), 0);
    CU_ASSERT_TRUE(end_await_memory(&link.near, before + 1));
    pattern_fill(link.near.memory, END_MEMORY, 2);
    CU_ASSERT_EQUAL(kill(link.far.pid, SIGCONT), 0);
    for (until = milliseconds() + AFTER; milliseconds() < until;)
        (void)end_pump(&link.near);
    CU_ASSERT_TRUE(pattern_holds(link.near.memory, END_MEMORY, 2));
    CU_ASSERT_EQUAL(far_again(&link.far, &link.near, &reply), 0);
    CU_ASSERT_NOT_EQUAL(reply.status, 0);
    link_close(&link);
}

/* When a peer dies, disconnect ends its operations, other peers are not disturbed, and its
 * successor is reached. */
static void killed(void)
{
    enum { ROUNDS = 3 };
    struct link link;

    link_open(&link);
    for (uint32_t i = 0; i < ROUNDS && rig->provider; i++) {
        uint32_t first = 1000 * (i + 1), count;
        int64_t until;

        assert_link_works(&link, i, 1);
        if (!rig->dies_anywhere || i == 0)
            CU_ASSERT_EQUAL(ask_far(&link, (struct far_request){.kind = FAR_PAUSE}), 0);
        count = post_unanswered(&link, first);
        far_kill(&link.far);
        for (until = milliseconds() + 50; milliseconds() < until;)
            (void)end_pump(&link.near);

        /* The fabric may accept or refuse operations to a dead peer, but each accepted one must
         * end. */
        for (; count < 900; count++) {
            struct fabric_write w = write_of(&link, 0, 8, first + count);

            w.announce = true;
            if (fabric_post_write(link.fabric, &w))
                break;
            (void)end_pump(&link.near);
        }
        CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER), 0);
        CU_ASSERT_TRUE(end_await_ended(&link.near, first, count));
        for (uint32_t c = first; c < first + count; c++)
            CU_ASSERT_EQUAL(near_log.ended[c], 1);
        CU_ASSERT_EQUAL_FATAL(far_start(&link.far, &link.near, rig, &link.hello), 0);
        if (!rig->dies_anywhere) {
            /* The dead peer still owes answers that the provider needs: disconnect returns
             * -EOWNERDEAD. */
            CU_ASSERT_EQUAL(fabric_disconnect(link.fabric, OTHER), -EOWNERDEAD);
            CU_ASSERT_EQUAL(connect_both(&link), -EOWNERDEAD);
            link_close(&link);
            return;
        }
        CU_ASSERT_EQUAL_FATAL(connect_both(&link), 0);
    }
    assert_link_works(&link, 900, 1);
    link_close(&link);
}

/* The far end arms and sleeps, and a write wakes it; or it reports that it cannot sleep. */
static void asleep(void)
{
    struct far_request q = {.kind = FAR_SLEEP};
    struct link link;
    struct far_reply reply;

    link_open(&link);
    CU_ASSERT_TRUE(link.fabric->traits.can_sleep || !rig->sleeps);
    for (uint32_t i = 0; i < 20 && link.far.pid; i++) {
        struct fabric_write w = write_of(&link, 0, i % 2 ? 8 : 100000, i + 10);

        assert_link_works(&link, 100 + i, 2 * i + 1);
        q.count = 2 * i + 2;
        if (!link.fabric->traits.can_sleep) {
            CU_ASSERT_EQUAL(ask(&link, q, &reply), -ENOTSUP);
            w.announce = true;
            CU_ASSERT_EQUAL(end_write(&link.near, &w), 0);
            assert_arrived(&link, 2 * i + 2);
            continue;
        }
        CU_ASSERT_EQUAL_FATAL(ask(&link, q, &reply), 0);
        w.announce = true;
        CU_ASSERT_EQUAL(end_write(&link.near, &w), 0);
        CU_ASSERT_EQUAL_FATAL(far_again(&link.far, &link.near, &reply), 0);
        CU_ASSERT_EQUAL(reply.status, 0);
        CU_ASSERT_TRUE(reply.count < 100); /* the far end slept, and was not woken all the time */
    }
    link_close(&link);
}

/* The result of a registration wakes a sleeper as well. */
static void woken_by_registration(void)
{
    struct link link;
    int descriptor, rc;
    int64_t limit = milliseconds() + END_PATIENCE;

    link_open(&link);
    for (uint32_t i = 0; i < 20 && link.fabric->traits.can_sleep; i++) {
        uint32_t seen = near_log.memory_events;

        CU_ASSERT_EQUAL(fabric_mem_add(link.fabric, link.near.memory, 4096, FABRIC_LOCAL, i), 0);
        while (near_log.memory_events == seen && milliseconds() < limit) {
            rc = fabric_arm(link.fabric, &descriptor);
            CU_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
            if (rc == 0)
                CU_ASSERT_EQUAL_FATAL(end_sleep(descriptor), 0);
            (void)end_pump(&link.near);
        }
        CU_ASSERT_EQUAL(near_log.memory_event.cookie, i);
        CU_ASSERT_EQUAL(fabric_mem_drop(link.fabric, near_log.memory_event.memory.index, i), 0);
        CU_ASSERT_TRUE(end_await_memory(&link.near, seen + 2));
    }
    link_close(&link);
}

/* ---- the program ----------------------------------------------------------------------------- */

static CU_TestInfo cases[] = {
    {"announced writes carry their data", announced},
    {"immediates", immediates},
    {"placed writes are placed", placed},
    {"reads", reads},
    {"a crowd of operations", crowd},
    {"ordered writes", ordered},
    {"memory comes and goes", memory},
    {"refusals", refusals},
    {"disconnect and connect again", disconnected},
    {"late completions", late_completions},
    {"cut in the middle", cut},
    {"a killed peer", killed},
    {"asleep and woken", asleep},
    {"woken by a registration", woken_by_registration},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
    struct fabric *probe;

    ofi_prepare();
    if (argc == 4)
        return far_main(argv[1], argv[2], atoi(argv[3]));
    rig = argc == 2 ? rig_find(argv[1]) : NULL;
    if (!rig) {
        (void)fprintf(stderr, "usage: %s loop|delay|tcp[2|4]|net[2|4]|shm[2|4]\n", argv[0]);
        return 2;
    }
    (void)alarm(LIMIT);

    int rc = rig_open(rig, "probe", &probe);

    if (rc == -ENODEV) {
        (void)printf("skipped: the provider for '%s' is not on this machine\n", rig->name);
        return SKIPPED;
    }
    if (rc)
        return 1;
    fabric_close(probe);
    return suite_run("fabric contract", cases);
}
