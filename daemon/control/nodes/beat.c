/* Owns signs of life between daemons (beat.h). */
#include "daemon/control/nodes/beat.h"

#include "daemon/control/threads/call.h"
#include "daemon/control/threads/clock.h"
#include "daemon/control/control.h"

void beat_init(struct beat *b, struct worker *worker, uint32_t number,
               void (*send)(void *context, Pwc__Beat *frame), void *context)
{
    *b = (struct beat){.worker = worker,
                       .number = number,
                       .send = send,
                       .context = context,
                       .their_count = UINT64_MAX};
}

void beat_forget(struct beat *b)
{
    b->generation++;
    b->count = b->bytes = b->asked = 0;
    b->their_count = UINT64_MAX;
    b->stuck = false;
}

void beat_ask(struct beat *b)
{
    Pwc__Beat beat = PWC__BEAT__INIT;

    b->asked++;
    b->send(b->context, &beat);
}

static void given(struct call *call)
{
    struct beat *b = call->owner;

    b->asking = false;
    if (call->cookie != b->generation)
        return;
    b->count++;
    b->bytes = call->peer.bytes;
}

static struct call *beat_call(struct beat *b, enum call_kind kind, void (*done)(struct call *call))
{
    struct call *call = call_new(&b->worker->target, kind, b, done);

    if (call) {
        call->peer.node = b->number;
        call->cookie = b->generation;
    }
    return call;
}

static void take_question(struct beat *b)
{
    Pwc__Beat beat = PWC__BEAT__INIT;
    /* One at a time: a progress thread that is held up is not buried in them. */
    struct call *call = b->asking ? NULL : beat_call(b, CALL_BEAT, given);

    beat.answer = true;
    beat.beats = b->count;
    beat.bytes = b->bytes;
    if (call) {
        b->asking = true;
        call_post(b->worker->progress, call);
    }
    b->send(b->context, &beat);
}

static void take_answer(struct beat *b, const Pwc__Beat *frame)
{
    uint64_t now = clock_ns();
    struct call *call = beat_call(b, CALL_ANSWERED, NULL);

    b->asked = 0;
    /* Answers that come together, after a cut, say nothing of the time between them. */
    if (now - b->answered_ns >= b->worker->control->config->keepalive_ms * UINT64_C(500000)) {
        b->stuck = frame->beats == b->their_count;
        b->their_count = frame->beats;
        b->answered_ns = now;
    }
    if (call) {
        call->peer.bytes = frame->bytes;
        call_post(b->worker->progress, call);
    }
}

void beat_take(struct beat *b, const Pwc__Beat *frame)
{
    if (frame->answer)
        take_answer(b, frame);
    else
        take_question(b);
}

const char *beat_why(const struct beat *b)
{
    if (b->asked > 1)
        return "it does not answer";
    if (b->stuck)
        return "it answers, but its progress thread does not";
    return "it answers, but nothing comes through the fabric: do both nodes let the fabric's "
           "ports through?";
}
