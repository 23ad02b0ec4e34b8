/*
 * Writes trace events: a process for each node, a thread for each lane of a client or a peer.
 *
 * Slices ("X") of one lane don't overlap, and the steps of an operation stand inside it. Arrows
 * ("s", "t", "f") lead from an operation over the write that carried its record to its event.
 */
#include "trace_events.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "session_abi.h"

#define LANES_SHOWN 1000u       /* numbers of threads that a track has */
#define PEER_TRACKS 1000000000u /* first thread of peers: behind those of clients */

struct writer {
    const struct trace_model *model;
    const struct trace_source *sources;
    json_t *const *clients;
    FILE *to;
    bool begun;
};

static const char *kind_name(uint8_t what)
{
    static const char *const names[] = {"notification", "put",    "get", "flush",
                                        "short",        "medium", "long"};
    return what < sizeof(names) / sizeof(names[0]) ? names[what] : "operation";
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
    return w->sources[s->source].node + 1; /* viewers take process 0 for none */
}

static uint64_t thread_of(const struct slice *s)
{
    uint32_t lane = s->lane < LANES_SHOWN ? s->lane : LANES_SHOWN - 1;
    uint64_t track = (uint64_t)s->engine * 4096 + s->track % 4096;
    return (s->kind == SLICE_RUN ? PEER_TRACKS : 1) + track * LANES_SHOWN + lane;
}

static void begin_event(struct writer *w)
{
    fputs(w->begun ? ",\n" : "\n", w->to);
    w->begun = true;
}

/* ---- names of tracks ------------------------------------------------------------------------- */

static void put_name(struct writer *w, const char *what, uint32_t process, uint64_t thread,
                     const char *name)
{
    json_t *string = json_string(name);
    char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%" PRIu64 ",\"args\":{\"name\":%s}}",
            what, process, thread, text ? text : "\"?\"");
    free(text);
    json_decref(string);
}

static uint32_t number_in(const json_t *row, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(row, key));
}

/* "rank 3 of job, context ..."; the daemon's word, while it still knew the client. */
static void client_name(const struct writer *w, const struct slice *s, char *to, size_t size)
{
    const json_t *rows = json_object_get(w->clients[s->source], "clients");
    snprintf(to, size, "client %u", s->track);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *job = json_string_value(json_object_get(row, "job"));
        if (number_in(row, "client") == s->track && number_in(row, "engine") == s->engine)
            snprintf(to, size, "rank %u (%.40s, pid %u)", number_in(row, "rank"), job ? job : "?",
                     number_in(row, "pid"));
    }
}

static void track_name(const struct writer *w, const struct slice *s, char *to, size_t size)
{
    const struct trace_source *source = &w->sources[s->source];
    char name[96];
    if (s->kind == SLICE_RUN)
        snprintf(name, sizeof(name), "writes to node %u", s->track % source->nodes);
    else
        client_name(w, s, name, sizeof(name));
    if (s->lane == 0)
        snprintf(to, size, "%s", name);
    else
        snprintf(to, size, "%s +%u", name, s->lane);
}

/* Each lane once: the first slice that stands in it. */
static int put_names(struct writer *w)
{
    const struct trace_model *m = w->model;
    size_t room = 1024;
    while (room < 4 * m->count)
        room *= 2;
    uint64_t *seen = calloc(room, sizeof(*seen));
    if (seen == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < m->count; i++) {
        const struct slice *s = &m->slices[i];
        if (s->kind == SLICE_MARK)
            continue;
        uint64_t thread = thread_of(s), name = (uint64_t)process_of(w, s) << 48 | thread;
        size_t slot = name * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);
        while (seen[slot] != 0 && seen[slot] != name)
            slot = (slot + 1) & (room - 1);
        if (seen[slot] == name)
            continue;
        seen[slot] = name;
        char text[128];
        track_name(w, s, text, sizeof(text));
        put_name(w, "thread_name", process_of(w, s), thread, text);
        begin_event(w);
        fprintf(w->to,
                "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%u,\"tid\":%" PRIu64
                ",\"args\":{\"sort_index\":%" PRIu64 "}}",
                process_of(w, s), thread, thread);
    }
    free(seen);
    return 0;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void put_span(struct writer *w, const struct slice *s, const char *name, uint64_t from,
                     uint64_t to)
{
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"pwcd\",\"pid\":%u,\"tid\":%" PRIu64
            ",\"ts\":%.3f,\"dur\":%.3f",
            name, process_of(w, s), thread_of(s), since_first(w, from), (double)(to - from) / 1000);
}

/* The steps that lie one behind the other inside it. */
static void put_steps(struct writer *w, const struct slice *s)
{
    static const char *const names[MOMENTS] = {[MOMENT_POSTED] = "queued",
                                               [MOMENT_COMPLETED] = "payload on the fabric",
                                               [MOMENT_PLACED] = "to the target",
                                               [MOMENT_TOLD] = "to the local event",
                                               [MOMENT_END] = "to be read"};
    uint64_t from = s->at[MOMENT_BEGIN];
    for (int i = MOMENT_POSTED; i < MOMENTS; i++) {
        if (s->at[i] <= from || (i == MOMENT_END && s->position == 0))
            continue;
        put_span(w, s, names[i], from, s->at[i]);
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
    put_span(w, s, name, s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
    fprintf(w->to,
            ",\"args\":{\"to_rank\":%u,\"to_context\":%u,\"node\":%u,\"bytes\":%u"
            ",\"flow\":%u,\"sequence\":%u,\"status\":%d%s}}",
            (uint32_t)s->peer, (uint32_t)(s->peer >> 32), s->towards % w->sources[s->source].nodes,
            s->length, s->flow, s->sequence, s->status,
            s->at[MOMENT_TOLD] == 0 ? ",\"unfinished\":true" : "");
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
        put_span(w, s, "write", s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
        fprintf(w->to, ",\"args\":{\"bytes\":%u,\"number\":%u}}", s->length, s->sequence);
        break;
    case SLICE_EVENT:
        if (s->count > 1)
            snprintf(name, sizeof(name), "%u events", s->count);
        else
            snprintf(name, sizeof(name), "event of a %s", kind_name(s->what));
        put_span(w, s, name, s->at[MOMENT_BEGIN], s->at[MOMENT_END]);
        fprintf(w->to, ",\"args\":{\"from_node\":%u,\"bytes\":%u,\"flow\":%u,\"sequence\":%u}}",
                s->origin % w->sources[s->source].nodes, s->length, s->flow, s->sequence);
        break;
    default:
        begin_event(w);
        fprintf(w->to,
                "{\"ph\":\"i\",\"s\":\"p\",\"name\":\"%s %u\",\"cat\":\"pwcd\",\"pid\":%u"
                ",\"tid\":1,\"ts\":%.3f}",
                mark_name(s->what), s->track, process_of(w, s),
                since_first(w, s->at[MOMENT_BEGIN]));
        break;
    }
}

/* ---- arrows ---------------------------------------------------------------------------------- */

static void put_arrow(struct writer *w, const char *phase, const struct slice *operation,
                      const struct slice *at, uint64_t when)
{
    begin_event(w);
    fprintf(w->to,
            "{\"ph\":\"%s\",\"name\":\"way\",\"cat\":\"pwcd\",\"id\":\"%u.%u.%u\""
            ",\"pid\":%u,\"tid\":%" PRIu64 ",\"ts\":%.3f%s}",
            phase, operation->origin, operation->flow, operation->sequence, process_of(w, at),
            thread_of(at), since_first(w, when), *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* From an operation to what is known of its way. */
static void put_arrows(struct writer *w, const struct slice *s)
{
    const struct slice *slices = w->model->slices;
    const struct slice *run = s->carried_by != TRACE_NONE ? &slices[s->carried_by] : NULL;
    const struct slice *event = s->arrived_as != TRACE_NONE ? &slices[s->arrived_as] : NULL;
    if (s->kind != SLICE_OPERATION || (run == NULL && event == NULL))
        return;
    put_arrow(w, "s", s, s, s->at[MOMENT_BEGIN]);
    if (run != NULL)
        put_arrow(w, event != NULL ? "t" : "f", s, run, run->at[MOMENT_BEGIN]);
    if (event != NULL)
        put_arrow(w, "f", s, event, event->at[MOMENT_BEGIN]);
}

int trace_events_write(const struct trace_model *m, const struct trace_source *sources,
                       json_t *const *clients, int64_t real_ns, uint64_t lost, FILE *to)
{
    struct writer w = {.model = m, .sources = sources, .clients = clients, .to = to};
    uint32_t named = TRACE_NONE;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
    for (size_t i = 0; i < m->count; i++)
        if (m->slices[i].source != named) { /* sources come one behind the other */
            char text[32];
            named = m->slices[i].source;
            snprintf(text, sizeof(text), "node %u", sources[named].node);
            put_name(&w, "process_name", process_of(&w, &m->slices[i]), 0, text);
        }
    int rc = put_names(&w);
    for (size_t i = 0; i < m->count; i++) {
        put_slice(&w, &m->slices[i]);
        put_arrows(&w, &m->slices[i]);
    }
    fprintf(to,
            "\n],\"otherData\":{\"producer\":\"pwcctl %s\",\"realtime_ns\":\"%" PRId64
            "\",\"lost_records\":\"%" PRIu64 "\",\"begun_before\":\"%" PRIu64 "\"}}\n",
            PWC_VERSION, (int64_t)m->first_ns + real_ns, lost, m->unknown);
    return rc < 0 ? rc : fflush(to) != 0 || ferror(to) ? -EIO : 0;
}
