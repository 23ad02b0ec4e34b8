/* Owns pings between engines (peer_ping.h). Thread: control. */
#include "daemon/control/nodes/peer_ping.h"

#include "daemon/control/threads/call.h"
#include "shm_ring/clock.h"
#include "daemon/control/control.h"

void peer_ping_init(struct peer_ping *b, struct worker *worker, uint32_t number,
                    void (*send)(void *context, Pwc__Ping *frame), void *context)
{
    *b = (struct peer_ping){.worker = worker,
                            .number = number,
                            .send = send,
                            .context = context,
                            .their_count = UINT64_MAX};
}

void peer_ping_forget(struct peer_ping *b)
{
    b->generation++;
    b->count = b->bytes = b->asked = 0;
    b->their_count = UINT64_MAX;
    b->stuck = false;
}

void peer_ping_ask(struct peer_ping *b, uint64_t bytes)
{
    Pwc__Ping ping = PWC__PING__INIT;

    ping.bytes = bytes;
    b->asked++;
    b->send(b->context, &ping);
}

static void given(struct call *call)
{
    struct peer_ping *b = call->owner;

    b->asking = false;
    if (call->cookie != b->generation)
        return;
    b->count++;
    b->bytes = call->peer.bytes;
}

static struct call *peer_ping_call(struct peer_ping *b, enum call_kind kind,
                                   void (*done)(struct call *call))
{
    struct call *call = call_new(&b->worker->target, kind, b, done);

    if (call) {
        call->peer.number = b->number;
        call->cookie = b->generation;
    }
    return call;
}

static void take_question(struct peer_ping *b, const Pwc__Ping *frame)
{
    Pwc__Ping ping = PWC__PING__INIT;
    /* One call at a time: calls must not pile up where the progress thread is stuck. */
    struct call *call = b->asking ? NULL : peer_ping_call(b, CALL_PING, given);

    ping.answer = true;
    ping.pings = b->count;
    ping.bytes = b->bytes;
    if (call) {
        b->asking = true;
        call->peer.bytes = frame->bytes;
        call_post(b->worker->progress, call);
    }
    b->send(b->context, &ping);
}

static void take_answer(struct peer_ping *b, const Pwc__Ping *frame)
{
    uint64_t now = clock_ns();
    struct call *call = peer_ping_call(b, CALL_PONG, NULL);

    b->asked = 0;
    /* Answers that arrive together, after an interruption of the network, do not show whether the
     * progress thread has moved between them. */
    if (now - b->answered_ns >=
        config_keepalive_ms(b->worker->control->config) * UINT64_C(500000)) {
        b->stuck = frame->pings == b->their_count;
        b->their_count = frame->pings;
        b->answered_ns = now;
    }
    if (call) {
        call->peer.bytes = frame->bytes;
        call_post(b->worker->progress, call);
    }
}

void peer_ping_take(struct peer_ping *b, const Pwc__Ping *frame)
{
    if (frame->answer)
        take_answer(b, frame);
    else
        take_question(b, frame);
}

const char *peer_ping_why(const struct peer_ping *b)
{
    if (b->asked > 1)
        return "it does not answer";
    if (b->stuck)
        return "it answers, but its progress thread does not";
    return "it answers, but nothing comes through the fabric: do both nodes let the fabric's "
           "ports through, and have the same FI_ variables?";
}
