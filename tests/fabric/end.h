/*
 * One end of a fabric under test: the fabric, a memory registered with it, and a log of all events
 * that polls returned. Tests post operations at an end, pump it (poll it), and read the log.
 */
#ifndef PWC_TESTS_FABRIC_END_H
#define PWC_TESTS_FABRIC_END_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

#define END_MEMORY     (8u << 20)
#define END_COOKIES    16384u
#define END_ARRIVALS   16384u
#define END_EXPECTED   64u
#define END_PATIENCE   10000 /* ms that any wait lasts before it counts as a failure */
#define END_OPERATIONS 64u   /* outstanding operations: the tests' bound */

/* The bytes that memory must hold when the arrival with this immediate is seen. */
struct expectation {
    uint32_t immediate;
    uint32_t seed;
    const uint8_t *at;
    uint64_t length;
};

struct end_log {
    uint8_t ended[END_COOKIES]; /* number of events by cookie */
    int32_t status[END_COOKIES];
    uint32_t arrived[END_ARRIVALS]; /* immediates, in the order of arrival */
    uint32_t arrivals;
    uint32_t violations; /* arrivals or reads without data, unknown cookies, failed polls */
    uint32_t broken;
    uint32_t memory_events;
    struct fabric_event memory_event; /* the last one */
    struct expectation expected[END_EXPECTED];
    uint32_t expectations;
    struct expectation read; /* the bytes that a read must bring; length 0: not checked */
};

struct end {
    struct fabric *fabric;
    struct end_log *log; /* both ends of a loop share one log */
    uint8_t *memory;
    struct fabric_memory registered;
};

/* A kind of fabric, by the name that meson gives it: loop, delay, tcp, net, shm, tcp2, ... */
struct rig {
    const char *name;
    const char *provider; /* NULL: a fabric within this process */
    uint32_t rails;       /* 0: one */
    bool delayed;
    bool sleeps;        /* can sleep for certain; other fabrics may, depending on the machine */
    bool dies_anywhere; /* a peer may be killed at any instruction, also while it owes answers,
                           without harm to others */
    bool cuts;          /* a disconnect ends a write of the peer in its middle */
    bool joint;         /* after a disconnect both ends must connect again */
};

const struct rig *rig_find(const char *name);
/* Opens a fabric; `role` names which of the test's two processes this is. -ENODEV: this machine
 * lacks the provider. */
int rig_open(const struct rig *rig, const char *role, struct fabric **out);

/* Takes ownership of the fabric, allocates the memory and registers it. */
int end_open(struct end *end, struct fabric *fabric, struct end_log *log);
/* Frees the memory, and closes the fabric if `with_fabric`. */
void end_close(struct end *end, bool with_fabric);

void pattern_fill(uint8_t *at, uint64_t length, uint32_t seed);
bool pattern_holds(const uint8_t *at, uint64_t length, uint32_t seed);

int64_t milliseconds(void);
/* Polls once and logs the events. Returns their number; without events it yields the processor. */
int end_pump(struct end *end);
void end_expect(struct end *end, uint32_t immediate, const uint8_t *at, uint64_t length,
                uint32_t seed);
/* Pump until `count` arrivals were logged in all; until all `count` operations with cookies from
 * `first` on have ended; or until `count` memory events were logged. False: not in time. */
bool end_await_arrivals(struct end *end, uint32_t count);
bool end_await_ended(struct end *end, uint32_t first, uint32_t count);
bool end_await_memory(struct end *end, uint32_t count);
/* Sleeps on the descriptor in an epoll set, as the daemon does. -ETIMEDOUT: the descriptor was not
 * ready in time. */
int end_sleep(int descriptor);
/* Post an operation, and pump while the fabric returns -EAGAIN. */
int end_write(struct end *end, const struct fabric_write *write);
int end_read(struct end *end, const struct fabric_read *read);

#endif
