/*
 * Finds out whether a provider's wait object can be trusted. Some wait objects are always readable
 * after a connection has been made, so a daemon that trusted them would never sleep. With a wait
 * object that does not become readable, a daemon would miss messages. So a fabric that is opened
 * only for this trial writes to itself, or another fabric writes to it, and its wait object is
 * watched.
 *
 * Thread: the thread that opens the fabric.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include "daemon/fabric/ofi/ofi_private.h"
#include "proto/clock.h"

#define PATIENCE_MS 500 /* for the whole trial, which takes 2 ms where the provider works */
#define GLANCES     2000

struct trial {
    struct fabric *fabric; /* the fabric on trial, whose wait object is watched */
    struct fabric *writer; /* the fabric that writes to it: the same, or another one */
    struct fabric_memory memory, source;
    uint64_t word[2]; /* source and target */
    int64_t limit;
    uint32_t added, arrived, written;
};

static int progress_of(struct trial *t, struct fabric *fabric)
{
    struct fabric_event events[8];
    int n = fabric_poll(fabric, events, 8);

    for (int i = 0; i < n; i++) {
        if (events[i].kind == FABRIC_ADDED && events[i].status == 0) {
            if (fabric == t->fabric)
                t->memory = events[i].memory;
            if (fabric == t->writer)
                t->source = events[i].memory;
            t->added++;
        }
        t->arrived += events[i].kind == FABRIC_ARRIVED;
        t->written += events[i].kind == FABRIC_WRITTEN && events[i].status == 0;
    }
    return n;
}

static int progress(struct trial *t)
{
    int n = progress_of(t, t->fabric);

    if (n >= 0 && t->writer != t->fabric) {
        int more = progress_of(t, t->writer);

        n = more < 0 ? more : n + more;
    }
    if (n == 0)
        (void)sched_yield();
    return n;
}

/* Waits until *counter has reached `count`. */
static bool reach(struct trial *t, const uint32_t *counter, uint32_t count)
{
    while (*counter < count && now_ms() < t->limit)
        if (progress(t) < 0)
            return false;
    return *counter >= count;
}

static bool write_there(struct trial *t)
{
    struct fabric_write w = {
        .memory = t->source.index,
        .source = &t->word[0],
        .length = sizeof(t->word[0]),
        .remote_address = t->memory.address + sizeof(t->word[0]),
        .remote_key = t->memory.key,
        .announce = true,
    };
    int rc;

    while ((rc = fabric_post_write(t->writer, &w)) == -EAGAIN && now_ms() < t->limit)
        (void)progress(t);
    return rc == 0;
}

static bool add_memory(struct trial *t, struct fabric *fabric, uint32_t count)
{
    return fabric_mem_add(fabric, t->word, sizeof(t->word), FABRIC_REMOTE_WRITE, 0) == 0 &&
           reach(t, &t->added, count);
}

static bool introduce(struct fabric *a, struct fabric *b)
{
    struct fabric_address address;

    return fabric_address_of(a, &address) == 0 && fabric_connect(b, 0, &address) == 0;
}

static bool connected(struct trial *t)
{
    if (!add_memory(t, t->fabric, 1) || !introduce(t->fabric, t->writer))
        return false;
    if (t->writer != t->fabric &&
        (!add_memory(t, t->writer, 2) || !introduce(t->writer, t->fabric)))
        return false;
    return write_there(t) && reach(t, &t->arrived, 1) && reach(t, &t->written, 1);
}

/* Whether the descriptor is readable within the time, after arm; -1: arm has reported work. */
static int armed_and_readable(struct trial *t, int timeout_ms)
{
    struct pollfd look = {.events = POLLIN};

    if (fabric_arm(t->fabric, &look.fd) != 0)
        return -1;
    return poll(&look, 1, timeout_ms);
}

static bool falls_silent(struct trial *t)
{
    for (int i = 0; i < GLANCES; i++) {
        (void)progress(t);
        if (armed_and_readable(t, 0) == 0)
            return true;
    }
    return false;
}

static bool speaks_up(struct trial *t)
{
    return write_there(t) && armed_and_readable(t, PATIENCE_MS) != 0 && reach(t, &t->arrived, 2);
}

bool ofi_trial_sleeps(struct fabric *fabric, struct fabric *other)
{
    struct trial t = {.fabric = fabric, .writer = other ? other : fabric};

    t.limit = now_ms() + PATIENCE_MS;

    bool result = connected(&t) && falls_silent(&t) && speaks_up(&t);

    fabric_close(fabric); /* close it here, while the memory that it writes to still exists */
    if (other)
        fabric_close(other);
    return result;
}
