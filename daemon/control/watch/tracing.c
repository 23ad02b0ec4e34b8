/* Owns the rings that engines record into, their readers, and the answers (tracing.h). Thread:
 * control. */
#include "daemon/control/watch/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "daemon/engine/watch/trace_ring.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"

/* Records in one answer, of all engines together. */
enum { ANSWER_RECORDS = 8192 };

/* The ring of one engine. */
struct tracing {
    struct trace_ring *ring;
    struct call stop; /* the last call about the ring, which cannot fail */
};

/* A connection that reads the trace. */
struct tracer {
    uint64_t next[NODES_ENGINES_MAX]; /* by engine: the next record to read */
    uint32_t request, starting;       /* how many engines do not record yet */
    int status;                       /* the reason why the trace cannot begin */
};

/* ---- recording ------------------------------------------------------------------------------- */

static void tracing_free(struct tracing *t)
{
    munmap(t->ring, trace_ring_bytes(TRACING_RECORDS));
    free(t);
}

/* Makes a ring. Its pages use memory only when something is recorded into them. */
static struct tracing *tracing_new(void)
{
    struct tracing *t = calloc(1, sizeof(*t));
    void *ring = MAP_FAILED;

    if (t)
        ring = mmap(NULL, trace_ring_bytes(TRACING_RECORDS), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED) {
        free(t);
        return NULL;
    }
    t->ring = ring;
    trace_ring_init(t->ring, TRACING_RECORDS);
    return t;
}

static void stopped(struct call *call)
{
    tracing_free(call->owner);
}

/* Lets the engine stop recording. */
static void tracing_stop(struct worker *w)
{
    struct tracing *t = w->tracing;

    if (!t || !w->progress) /* the engine may still record: tracing_close frees the ring */
        return;
    w->tracing = NULL;
    call_init(&t->stop, &w->target, CALL_TRACE, t, stopped);
    t->stop.trace = NULL;
    call_post(w->progress, &t->stop);
}

void tracing_close(struct control *control)
{
    for (uint32_t e = 0; control->workers && e < control->worker_count; e++) {
        struct worker *w = &control->workers[e];

        if (w->tracing)
            tracing_free(w->tracing);
        w->tracing = NULL;
    }
}

static uint32_t count_tracers(const struct control *control)
{
    uint32_t count = 0;

    for (const struct client *c = control->clients; c; c = c->next)
        count += c->tracer != NULL;
    return count;
}

void tracing_leave(struct client *c)
{
    struct control *control = c->control;

    if (!c->tracer)
        return;
    free(c->tracer);
    c->tracer = NULL;
    for (uint32_t e = 0; count_tracers(control) == 0 && e < control->worker_count; e++)
        tracing_stop(&control->workers[e]);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Keeps the records that the client may see, and returns their number. */
static int keep_own(const struct client *c, struct trace_record *records, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (c->sees_all || records[i].uid == c->uid)
            records[kept++] = records[i];
    return kept;
}

/* Reads what an engine has recorded since the last answer. */
static void read_engine(const struct client *c, uint32_t engine, struct trace_record *records,
                        int room, Pwc__TracedEngine *out)
{
    const struct tracing *t = c->control->workers[engine].tracing;
    int count = 0;

    out->engine = engine;
    if (t)
        count = trace_ring_read(t->ring, &c->tracer->next[engine], records, room, &out->lost);
    out->more = count == room;
    out->records.data = (uint8_t *)records;
    out->records.len = (size_t)keep_own(c, records, count) * sizeof(*records);
}

static void answer(struct client *c, uint32_t request)
{
    const struct control *control = c->control;
    int room = ANSWER_RECORDS / (int)control->worker_count;
    struct trace_record *records = malloc(ANSWER_RECORDS * sizeof(*records));
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Traced traced = PWC__TRACED__INIT;
    Pwc__TracedEngine engines[NODES_ENGINES_MAX], *list[NODES_ENGINES_MAX];

    if (!records) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    for (uint32_t e = 0; e < control->worker_count; e++) {
        pwc__traced_engine__init(&engines[e]);
        read_engine(c, e, records + (size_t)room * e, room, &engines[e]);
        list[e] = &engines[e];
    }
    traced.node = control->node;
    traced.nodes = control->node_count;
    traced.now_ns = clock_ns();
    traced.real_ns = clock_of(CLOCK_REALTIME);
    traced.n_engines = control->worker_count;
    traced.engines = list;
    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_TRACED;
    reply.traced = &traced;
    client_reply(c, &reply, NULL, 0);
    free(records);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void fail(struct client *c)
{
    uint32_t request = c->tracer->request;
    int status = c->tracer->status;

    tracing_leave(c);
    reply_error(c, request, status, "this daemon is out of memory");
}

/* Answers when all calls have returned, also if one could not be made. Otherwise a later start
 * would count these calls as its own. */
static void started(struct call *call)
{
    struct client *c = call->owner;

    if (c->tracer && --c->tracer->starting == 0 && c->tracer->status == 0)
        answer(c, c->tracer->request);
    else if (c->tracer && c->tracer->starting == 0)
        fail(c);
}

static int start_engine(struct client *c, struct worker *w)
{
    struct call *call = client_call_to(c, w, CALL_TRACE, started);

    if (!call)
        return -ENOMEM;
    if (!w->tracing)
        w->tracing = tracing_new();
    /* This call is made also if the engine records already: it returns after the call that starts
     * the recording. */
    call->trace = w->tracing ? w->tracing->ring : NULL;
    c->tracer->starting++;
    call_post(w->progress, call);
    return w->tracing ? 0 : -ENOMEM;
}

static void start(struct client *c, uint32_t request)
{
    struct control *control = c->control;
    int rc = 0;

    c->tracer = calloc(1, sizeof(*c->tracer));
    if (!c->tracer) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    c->tracer->request = request;
    for (uint32_t e = 0; rc == 0 && e < control->worker_count; e++) {
        const struct tracing *t = control->workers[e].tracing;

        if (t) /* this reader gets no earlier records */
            c->tracer->next[e] = trace_ring_head(t->ring);
        rc = start_engine(c, &control->workers[e]);
    }
    c->tracer->status = rc;
    if (rc < 0 && c->tracer->starting == 0)
        fail(c);
}

void request_trace(struct client *c, uint32_t request)
{
    if (c->state == CLIENT_STRANGER && !client_may_look(c, request))
        return;
    if (c->state == CLIENT_LOOKING)
        client_await_question(c);
    if (!c->tracer)
        start(c, request);
    else if (c->tracer->starting > 0)
        reply_error(c, request, -EAGAIN, "its trace has not begun: ask when that is answered");
    else
        answer(c, request);
}
