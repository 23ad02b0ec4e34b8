#include "tests/fabric/end.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "daemon/fabric/delay.h"
#include "daemon/fabric/loop.h"
#include "daemon/fabric/ofi/ofi.h"
#include "daemon/fabric/stream/stream.h"

static const struct rig rigs[] = {
    {.name = "loop", .sleeps = true},
    {.name = "delay", .delayed = true, .sleeps = true},
    {.name = "tcp", .provider = "tcp;ofi_rxm", .sleeps = true, .dies_anywhere = true},
    {.name = "msg",
     .provider = "tcp",
     .sleeps = true,
     .dies_anywhere = true,
     .cuts = true,
     .joint = true},
    {.name = "net", .provider = "net", .dies_anywhere = true},
    {.name = "shm", .provider = "shm"}, /* its queues have locks in shared memory */
    {.name = "tcp2", .provider = "tcp;ofi_rxm", .rails = 2, .sleeps = true, .dies_anywhere = true},
    {.name = "tcp4", .provider = "tcp;ofi_rxm", .rails = 4, .sleeps = true, .dies_anywhere = true},
    {.name = "net2", .provider = "net", .rails = 2, .dies_anywhere = true},
    {.name = "net4", .provider = "net", .rails = 4, .dies_anywhere = true},
    {.name = "shm2", .provider = "shm", .rails = 2},
    {.name = "shm4", .provider = "shm", .rails = 4},
    {.name = "stream",
     .provider = "stream",
     .sleeps = true,
     .dies_anywhere = true,
     .cuts = true,
     .joint = true},
};

const struct rig *rig_find(const char *name)
{
    for (size_t i = 0; i < sizeof(rigs) / sizeof(rigs[0]); i++)
        if (strcmp(rigs[i].name, name) == 0)
            return &rigs[i];
    return NULL;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t milliseconds(void)
{
    return (int64_t)(nanoseconds() / 1000000u);
}

static int loop_rig_open(const struct rig *rig, struct fabric **out)
{
    struct loop_config loop = {.operations_max = END_OPERATIONS};
    struct delay_config delay = {.clock = nanoseconds, .seed = 1};
    struct fabric *inner;
    int rc = loop_open(&loop, &inner);

    if (rc)
        return rc;
    if (!rig->delayed) {
        *out = inner;
        return 0;
    }
    rc = delay_open(inner, &delay, out);
    if (rc)
        fabric_close(inner);
    return rc;
}

static int stream_rig_open(struct fabric **out)
{
    char message[256] = "";
    struct stream_config config = {
        .peers_max = 16,
        .operations_max = END_OPERATIONS,
        .memories_max = 16,
        .message = message,
        .message_size = sizeof(message),
    };
    int rc = stream_open(&config, out);

    if (rc)
        (void)fprintf(stderr, "%s\n", message);
    return rc;
}

int rig_open(const struct rig *rig, const char *role, struct fabric **out)
{
    char name[64], message[256] = "";
    struct ofi_config config = {
        .provider = rig->provider,
        .name = name,
        .peers_max = 16,
        .operations_max = END_OPERATIONS,
        .memories_max = 16,
        .rails = rig->rails,
        .message = message,
        .message_size = sizeof(message),
    };

    if (!rig->provider)
        return loop_rig_open(rig, out);
    if (strcmp(rig->provider, "stream") == 0)
        return stream_rig_open(out);
    (void)snprintf(name, sizeof(name), "test.%s", role);

    int rc = ofi_open(&config, out);

    if (rc)
        (void)fprintf(stderr, "%s\n", message);
    return rc;
}

int end_open(struct end *end, struct fabric *fabric, struct end_log *log)
{
    uint32_t before = log->memory_events;
    int rc;

    *end = (struct end){.fabric = fabric, .log = log};
    end->memory = aligned_alloc(4096, END_MEMORY);
    if (!end->memory)
        return -ENOMEM;
    memset(end->memory, 0, END_MEMORY);
    rc = fabric_mem_add(fabric, end->memory, END_MEMORY, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
                        UINT64_MAX);
    if (rc)
        return rc;
    if (!end_await_memory(end, before + 1))
        return -ETIMEDOUT;
    end->registered = log->memory_event.memory;
    return log->memory_event.status;
}

void end_close(struct end *end, bool with_fabric)
{
    if (with_fabric)
        fabric_close(end->fabric);
    free(end->memory);
}

static uint8_t pattern(uint64_t i, uint32_t seed)
{
    return (uint8_t)((i * 167u + (i >> 8) * 29u + (i >> 16)) ^ (seed * 2654435761u >> 13));
}

void pattern_fill(uint8_t *at, uint64_t length, uint32_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        at[i] = pattern(i, seed);
}

bool pattern_holds(const uint8_t *at, uint64_t length, uint32_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        if (at[i] != pattern(i, seed))
            return false;
    return true;
}

void end_expect(struct end *end, uint32_t immediate, const uint8_t *at, uint64_t length,
                uint32_t seed)
{
    end->log->expected[end->log->expectations++ % END_EXPECTED] =
        (struct expectation){immediate, seed, at, length};
}

static void log_arrival(struct end_log *log, uint32_t immediate)
{
    uint32_t known = log->expectations < END_EXPECTED ? log->expectations : END_EXPECTED;

    for (uint32_t i = 0; i < known; i++) {
        const struct expectation *x = &log->expected[i];

        if (x->immediate == immediate && !pattern_holds(x->at, x->length, x->seed))
            log->violations++;
    }
    log->arrived[log->arrivals++ % END_ARRIVALS] = immediate;
}

static void log_event(struct end_log *log, const struct fabric_event *event)
{
    switch (event->kind) {
    case FABRIC_WRITTEN:
    case FABRIC_READ:
        if (event->cookie >= END_COOKIES) {
            log->violations++;
            break;
        }
        if (event->kind == FABRIC_READ && event->status == 0 &&
            !pattern_holds(log->read.at, log->read.length, log->read.seed))
            log->violations++;
        log->ended[event->cookie]++;
        log->status[event->cookie] = event->status;
        break;
    case FABRIC_ARRIVED:
        log_arrival(log, event->immediate);
        break;
    case FABRIC_ADDED:
    case FABRIC_DROPPED:
        log->memory_events++;
        log->memory_event = *event;
        break;
    case FABRIC_BROKEN:
        log->broken++;
        break;
    default:
        log->violations++;
    }
}

int end_pump(struct end *end)
{
    struct fabric_event events[16];
    int n = fabric_poll(end->fabric, events, 16);

    if (n < 0) {
        end->log->violations++;
        return n;
    }
    for (int i = 0; i < n; i++)
        log_event(end->log, &events[i]);
    if (n == 0)
        (void)sched_yield();
    return n;
}

bool end_await_arrivals(struct end *end, uint32_t count)
{
    int64_t limit = milliseconds() + END_PATIENCE;

    while (end->log->arrivals < count && milliseconds() < limit)
        (void)end_pump(end);
    return end->log->arrivals >= count;
}

bool end_await_memory(struct end *end, uint32_t count)
{
    int64_t limit = milliseconds() + END_PATIENCE;

    while (end->log->memory_events < count && milliseconds() < limit)
        (void)end_pump(end);
    return end->log->memory_events >= count;
}

bool end_await_ended(struct end *end, uint32_t first, uint32_t count)
{
    int64_t limit = milliseconds() + END_PATIENCE;
    uint32_t i = 0;

    while (i < count && milliseconds() < limit) {
        if (end->log->ended[first + i])
            i++;
        else
            (void)end_pump(end);
    }
    return i == count;
}

int end_write(struct end *end, const struct fabric_write *write)
{
    int64_t limit = milliseconds() + END_PATIENCE;
    int rc;

    while ((rc = fabric_post_write(end->fabric, write)) == -EAGAIN && milliseconds() < limit)
        (void)end_pump(end);
    return rc;
}

int end_read(struct end *end, const struct fabric_read *read)
{
    int64_t limit = milliseconds() + END_PATIENCE;
    int rc;

    while ((rc = fabric_post_read(end->fabric, read)) == -EAGAIN && milliseconds() < limit)
        (void)end_pump(end);
    return rc;
}

int end_sleep(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    int rc = -EIO;

    if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0)
        rc = epoll_wait(set, &event, 1, END_PATIENCE) == 1 ? 0 : -ETIMEDOUT;
    if (set >= 0)
        close(set);
    return rc;
}
