/* Answers of a peer to pings: they show whether its progress thread runs (peer_ping.h). The test
 * wraps the calls to the own progress thread: there is no memory for any. Thread: one. */
#include <string.h>
#include "daemon/control/control.h"
#include "daemon/control/nodes/peer_ping.h"
#include "daemon/control/threads/call.h"
#include "shm_ring/clock.h"
#include "tests/suite.h"

struct call *__wrap_call_new(const struct call_target *target, enum call_kind kind, void *owner,
                             void (*done)(struct call *call));
void __wrap_call_post(struct progress *progress, struct call *call);

struct call *__wrap_call_new(const struct call_target *target, enum call_kind kind, void *owner,
                             void (*done)(struct call *call))
{
    return NULL;
}

void __wrap_call_post(struct progress *progress, struct call *call)
{
}

static void answer(struct peer_ping *b, uint64_t pings)
{
    Pwc__Ping ping = PWC__PING__INIT;

    ping.answer = true;
    ping.pings = pings;
    peer_ping_take(b, &ping);
}

/* Two answers that are half an interval apart show that the peer's progress thread stands still,
 * where its count has not moved. The interval is a fifth of the deadline at most. */
static void stands_still(void)
{
    enum { LONG_AGO_MS = 60000 };
    static const struct {
        uint64_t keepalive_ms, deadline_ms;
        uint64_t moved; /* by how much the count has */
        bool stuck;
    } rows[] = {
        {1000, 5000, 0, true},     {1000, 5000, 1, false},        {3600000, 5000, 0, true},
        {3600000, 5000, 1, false}, {3600000, 86400000, 0, false}, /* the answers are too close to
                                                                     each other */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct control control;
        struct worker worker = {.control = &control};
        const struct config config = {.keepalive_ms = rows[i].keepalive_ms,
                                      .peer_deadline_ms = rows[i].deadline_ms};
        struct peer_ping b;

        control.config = &config;
        peer_ping_init(&b, &worker, 0, NULL, NULL);
        answer(&b, 7);
        b.their_count = 7;
        b.answered_ns = clock_ns() - LONG_AGO_MS * UINT64_C(1000000);
        answer(&b, 7 + rows[i].moved);
        CU_ASSERT_EQUAL(strstr(peer_ping_why(&b), "its progress thread does not") != NULL,
                        rows[i].stuck);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"stands still", stands_still}, CU_TEST_INFO_NULL};

    return suite_run("ping", tests);
}
