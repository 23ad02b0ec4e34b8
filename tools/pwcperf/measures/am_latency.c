/*
 * Latency of active messages: a request and its reply, both of one kind and size.
 *
 * No message asks for a local event. With --check the handlers compare while the clock runs; the
 * initiator's next payload is prepared while the clock is stopped. Two slots are used in turn, as
 * for puts.
 */
#include <errno.h>
#include <pwc/am.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/message.h"

#define SLOTS 2u

size_t am_latency_half(uint64_t size)
{
    return SLOTS * size;
}

static int send(struct messages *m, uint64_t number)
{
    struct pwc_event event;
    uint64_t since = 0;
    int rc;
    while ((rc = messages_send(m, number, 0, PWC_NO_LCE)) == -EAGAIN) {
        rc = pwc_probe(m->pair->world->ctx, m->pair->peer, PWC_LOCAL, &event);
        if (rc == 0)
            rc = world_again(m->pair->world, &since);
        else if (rc == 1)
            rc = world_error(m->pair->world, event.status, "a message failed");
        if (rc < 0)
            return rc;
    }
    return rc < 0
               ? world_error(m->pair->world, rc, "sending %llu bytes", (unsigned long long)m->size)
               : 0;
}

/* One request and its reply; at the initiator, *ns is the round trip. */
static int round_trip(struct pair *pair, const struct plan *plan, void *context, uint64_t i,
                      uint64_t *ns)
{
    struct messages *m = context;
    if (!m->pair->initiates)
        return messages_await(m, i + 1); /* the handler replies, and fills the next reply */
    if (m->pair->world->options->check)
        messages_fill(m, i);
    uint64_t start = now_ns();
    int rc = send(m, i);
    if (rc == 0)
        rc = messages_await(m, i + 1);
    *ns = now_ns() - start;
    return rc;
}

int am_latency(struct pair *pair, const struct plan *plan)
{
    struct messages messages;
    int rc = messages_open(&messages, pair, plan->size, SLOTS);
    return rc < 0 ? rc : latency_run(pair, plan, "am_lat", 2, round_trip, &messages);
}
