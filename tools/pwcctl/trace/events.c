/*
 * Writes trace events: a process for each node, a thread for each lane of a client or a peer. Run
 * by pwcctl's only thread.
 *
 * Slices ("X") of one lane don't overlap, and the steps of an operation lie inside its slice.
 * Arrows
 * ("s", "t", "f") lead from an operation through the write that carried its record to its event.
 *
 * Viewers differ in what they accept. So no two threads or processes have the same number. An
 * arrow's id is a number (a text would have to be hexadecimal). And arrows are written after all
 * slices, because viewers process entries of the same time in the order of the file.
 */
#include "tools/pwcctl/trace/events.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "proto/handler_abi.h"
#include "proto/session_abi.h"

struct writer {
    const struct trace_model *model;
    const struct trace_source *sources;
    json_t *const *clients;
    FILE *to;
    uint32_t first_thread;
    bool begun;
};

static const char *kind_name(uint8_t what)
{
    const char *name = submit_kind_name(what);

    return name ? name : "operation";
}

static const char *stage_name(uint8_t what)
{
    static const char *const names[] = {"header", "payload", "completion"};

    return what < HANDLER_STAGES ? names[what] : "?";
}

static const char *mark_name(uint8_t what)
{
    switch (what) {
    case TRACE_PEER_UP:
        return "link up";
    case TRACE_PEER_DOWN:
        return "link down";
    case TRACE_CLIENT_ATTACHED:
        return "client attached";
    case TRACE_CLIENT_DETACHED:
        return "client detached";
    default:
        return "client in quarantine";
    }
}

/* Microseconds since the first record. */
static double since_first(const struct writer *w, uint64_t at)
{
    return (double)(at - w->model->first_ns) / 1000;
}

static uint32_t process_of(const struct writer *w, const struct slice *s)
{
    return w->sources[s->source].node + 1; /* to viewers, process 0 means none */
}

static uint32_t thread_of(const struct writer *w, const struct slice *s)
{
    return w->first_thread + s->thread;
}

/* Returns the number of the first thread; processes have the numbers below it. */
static uint32_t first_thread(const struct trace_model *m, const struct trace_source *sources)
{
    uint32_t nodes = 0;
    for (size_t i = 0; i < m->count; i++)
        if (sources[m->slices[i].source].nodes > nodes)
            nodes = sources[m->slices[i].source].nodes;
    return nodes + 1;
}

static void begin_event(struct writer *w)
{
    fputs(w->begun ? ",\n" : "\n", w->to);
    w->begun = true;
}

/* ---- names of tracks ------------------------------------------------------------------------- */

/* Writes the name of a process or a thread (`what` says which), and its place from the top. */
static void put_name(struct writer *w, const char *what, uint32_t process, uint32_t thread,
                     const char *name)
{
    json_t *string = json_string(name);
    char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":%s}}",
            what, process, thread, text ? text : "\"?\"");
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%u,\"tid\":%u"
            ",\"args\":{\"sort_index\":%u}}",
            what, process, thread, thread);
    free(text);
    json_decref(string);
}

static uint32_t number_in(const json_t *row, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(row, key));
}

/* Writes "rank 3 (job, pid)" if a document of the daemon has the client. Viewers show about twenty
 * characters, so lanes after the first have the rank alone. */
static void client_name(const struct writer *w, const struct slice *s, char *to, size_t size)
{
    const json_t *rows = json_object_get(w->clients[s->source], "clients");
    snprintf(to, size, "client %u", s->track);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *job = json_string_value(json_object_get(row, "job"));
        if (number_in(row, "client") != s->track || number_in(row, "engine") != s->engine)
            continue;
        if (s->lane == 0)
            snprintf(to, size, "rank %u (%.40s, pid %u)", number_in(row, "rank"), job ? job : "?",
                     number_in(row, "pid"));
        else
            snprintf(to, size, "rank %u", number_in(row, "rank"));
    }
}

static void put_track(struct writer *w, const struct slice *s)
{
    char name[96], text[128];
    if (s->kind == SLICE_RUN)
        snprintf(name, sizeof(name), "writes to node %u", s->track % w->sources[s->source].nodes);
    else
        client_name(w, s, name, sizeof(name));
    if (s->lane == 0)
        snprintf(text, sizeof(text), "%s", name);
    else
        snprintf(text, sizeof(text), "%s +%u", name, s->lane);
    put_name(w, "thread", process_of(w, s), thread_of(w, s), text);
}

static void put_names(struct writer *w)
{
    const struct trace_model *m = w->model;
    uint32_t named = TRACE_NONE;
    for (size_t i = 0; i < m->count; i++)
        if (m->slices[i].source != named) { /* slices are in the order of their sources */
            char text[32];
            named = m->slices[i].source;
            uint32_t process = process_of(w, &m->slices[i]);
            snprintf(text, sizeof(text), "node %u", w->sources[named].node);
            put_name(w, "process", process, process, text);
        }
    for (size_t i = 0; i < m->count; i++)
        if (m->slices[i].opens_lane)
            put_track(w, &m->slices[i]);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void put_span(struct writer *w, const struct slice *s, const char *category,
                     const char *name, uint64_t from, uint64_t to)
{
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u"
            ",\"ts\":%.3f,\"dur\":%.3f",
            name, category, process_of(w, s), thread_of(w, s), since_first(w, from),
            (double)(to - from) / 1000);
}

/* Writes the steps of an operation, one after the other inside its slice. */
static void put_steps(struct writer *w, const struct slice *s)
{
    static const char *const names[MOMENTS] = {[MOMENT_POSTED] = "queued",
                                               [MOMENT_COMPLETED] = "payload on the fabric",
                                               [MOMENT_PLACED] = "to the target",
                                               [MOMENT_LOCAL] = "to the local event",
                                               [MOMENT_END] = "to be read"};
    uint64_t from = s->at[MOMENT_BEGIN];
    for (int i = MOMENT_POSTED; i < MOMENTS; i++) {
        if (s->at[i] <= from || (i == MOMENT_END && s->position == 0))
            continue;
        put_span(w, s, "step", names[i], from, s->at[i]);
        fputs("}", w->to);
        from = s->at[i];
    }
}

static void put_operation(struct writer *w, const struct slice *s)
{
    char name[64];
    if (s->count > 1)
        snprintf(name, sizeof(name), "%u %ss", s->count, kind_name(s->what));
    else
        snprintf(name, sizeof(name), "%s",
                 s->length || s->what != 1 ? kind_name(s->what) : kind_name(0));
    put_span(w, s, "operation", name, s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
    fprintf(w->to,
            ",\"args\":{\"to_rank\":%u,\"to_context\":%u,\"node\":%u,\"bytes\":%u"
            ",\"flow\":%u,\"sequence\":%u,\"status\":%d%s}}",
            (uint32_t)s->peer, (uint32_t)(s->peer >> 32), s->towards % w->sources[s->source].nodes,
            s->length, s->flow, s->sequence, s->status,
            s->at[MOMENT_LOCAL] == 0 ? ",\"unfinished\":true" : "");
    put_steps(w, s);
}

static void put_slice(struct writer *w, const struct slice *s)
{
    char name[64];
    switch (s->kind) {
    case SLICE_OPERATION:
        put_operation(w, s);
        break;
    case SLICE_RUN:
        put_span(w, s, "write", "write", s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
        fprintf(w->to, ",\"args\":{\"bytes\":%u,\"number\":%u}}", s->length, s->sequence);
        break;
    case SLICE_EVENT:
        if (s->count > 1)
            snprintf(name, sizeof(name), "%u events", s->count);
        else
            snprintf(name, sizeof(name), "event of a %s", kind_name(s->what));
        put_span(w, s, "event", name, s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
        fprintf(w->to, ",\"args\":{\"from_node\":%u,\"bytes\":%u,\"flow\":%u,\"sequence\":%u}}",
                s->origin % w->sources[s->source].nodes, s->length, s->flow, s->sequence);
        break;
    case SLICE_HANDLER:
        snprintf(name, sizeof(name), "%s handler", stage_name(s->what));
        put_span(w, s, "handler", name, s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
        fprintf(w->to, ",\"args\":{\"units\":%u,\"bytes\":%u,\"offload\":%u,\"fault\":%d}}",
                s->sequence, s->length, s->flow, s->status);
        break;
    default:
        begin_event(w);
        fprintf(w->to,
                "{\"ph\":\"i\",\"s\":\"p\",\"name\":\"%s %u\",\"cat\":\"mark\",\"pid\":%u"
                ",\"tid\":%u,\"ts\":%.3f}",
                mark_name(s->what), s->track, process_of(w, s), process_of(w, s),
                since_first(w, s->at[MOMENT_BEGIN]));
        break;
    }
}

/* ---- arrows ---------------------------------------------------------------------------------- */

/* `way` is the number of the operation whose way the arrow shows. */
static void put_arrow(struct writer *w, const char *phase, size_t way, const struct slice *at,
                      uint64_t when)
{
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"%s\",\"name\":\"way\",\"cat\":\"way\",\"id\":%zu,\"pid\":%u,\"tid\":%u"
            ",\"ts\":%.3f%s}",
            phase, way, process_of(w, at), thread_of(w, at), since_first(w, when),
            *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Writes the arrows from an operation to its run and to its event at the target. */
static void put_arrows(struct writer *w, const struct slice *s)
{
    const struct slice *slices = w->model->slices;
    const struct slice *run = s->carried_by != TRACE_NONE ? &slices[s->carried_by] : NULL;
    const struct slice *event = s->arrived_as != TRACE_NONE ? &slices[s->arrived_as] : NULL;
    if (s->kind != SLICE_OPERATION || (run == NULL && event == NULL))
        return;
    size_t way = (size_t)(s - slices) + 1;
    put_arrow(w, "s", way, s, s->at[MOMENT_BEGIN]);
    if (run != NULL)
        put_arrow(w, event != NULL ? "t" : "f", way, run, run->at[MOMENT_BEGIN]);
    if (event != NULL)
        put_arrow(w, "f", way, event, event->at[MOMENT_BEGIN]);
}

int trace_events_write(const struct trace_model *m, const struct trace_source *sources,
                       json_t *const *clients, int64_t real_ns, uint64_t lost, FILE *to)
{
    struct writer w = {.model = m,
                       .sources = sources,
                       .clients = clients,
                       .to = to,
                       .first_thread = first_thread(m, sources)};
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
    put_names(&w);
    for (size_t i = 0; i < m->count; i++)
        put_slice(&w, &m->slices[i]);
    for (size_t i = 0; i < m->count; i++)
        put_arrows(&w, &m->slices[i]);
    fprintf(to,
            "\n],\"otherData\":{\"producer\":\"pwcctl %s\",\"realtime_ns\":\"%" PRId64
            "\",\"lost_records\":\"%" PRIu64 "\",\"begun_before\":\"%" PRIu64 "\"}}\n",
            PWC_VERSION, (int64_t)m->first_ns + real_ns, lost, m->unknown);
    return fflush(to) != 0 || ferror(to) ? -EIO : 0;
}
