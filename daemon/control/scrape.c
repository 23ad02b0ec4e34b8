/* Owns the listener for metrics and its connections (scrape.h). */
#include "scrape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "http.h"
#include "metrics_read.h"
#include "snapshot.h"

enum {
    VISITORS_MAX = 8,
    BACKLOG = 16,
    VISIT_MS = 5000,
    ANSWER_MS = 1000,
    DROPPED_MAX = 65536, /* bytes behind a head */
    HEAD_ROOM = 256,     /* of an answer */
    WHY_MAX = 512,
};

#define FRESH_NS UINT64_C(250000000)

/* An answer's body, shared by those whom it is sent to. */
struct body {
    uint32_t references;
    size_t length;
    char *text;
};

enum visitor_state {
    VISITOR_FREE = 0,
    VISITOR_ASKS,     /* its head is being read */
    VISITOR_WAITS,    /* for the counters */
    VISITOR_ANSWERED, /* the answer is being written */
    VISITOR_SERVED,   /* nothing but its hang-up is waited for */
    VISITOR_ENDS,     /* its handles are being closed */
};

struct visitor {
    struct scrape *scrape;
    enum visitor_state state;
    uint64_t number; /* in the order in which they came */
    bool openmetrics;
    bool silent; /* has said all: it may still listen */
    uv_tcp_t tcp;
    uv_timer_t deadline;
    uv_write_t write;
    uv_shutdown_t shutdown;
    uint32_t handles; /* open ones */
    struct body *body;
    size_t size, dropped;
    char answer[HEAD_ROOM];
    char head[HTTP_HEAD_MAX];
};

struct scrape {
    struct control *control;
    char address[NODE_HOST_MAX + 16];
    uv_tcp_t server;
    struct visitor visitors[VISITORS_MAX];
    uint64_t visits;
    bool knocking;       /* somebody waits for one of them to be free */
    uv_timer_t patience; /* with the progress threads */
    bool reading;        /* they have been asked */
    bool asked[NODES_ENGINES_MAX];
    struct snapshot *views[NODES_ENGINES_MAX]; /* lent to those that are asked */
    struct engine_latency_view *latencies;     /* by engine, as it last told */
    uint64_t read_ns;                          /* when bodies were made */
    struct body *bodies[2];                    /* plain, OpenMetrics; NULL: not made */
};

/* ---- bodies ---------------------------------------------------------------------------------- */

static void body_release(struct body *body)
{
    if (!body || --body->references > 0)
        return;
    free(body->text);
    free(body);
}

/* NULL without memory. */
static struct body *body_new(const struct metrics *metrics, bool openmetrics)
{
    struct body *body = calloc(1, sizeof(*body));
    struct openmetrics text = {.plain = !openmetrics};

    metrics_render(metrics, &text);
    if (!body || text.failed) {
        free(text.text);
        free(body);
        return NULL;
    }
    *body = (struct body){.references = 1, .length = text.length, .text = text.text};
    return body;
}

static void make_bodies(struct scrape *s)
{
    bool responding[NODES_ENGINES_MAX];
    struct metrics metrics;
    int rc;

    for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
        responding[e] = !s->asked[e];
    rc = metrics_read(&metrics, s->control, responding);
    for (uint32_t e = 0; rc == 0 && e < s->control->worker_count; e++)
        for (uint32_t i = 0; i < ENGINE_LATENCIES; i++)
            histogram_merge(&metrics.latency.steps[i], &s->latencies[e].steps[i]);
    for (int i = 0; i < 2; i++) {
        body_release(s->bodies[i]);
        s->bodies[i] = rc == 0 ? body_new(&metrics, i == 1) : NULL;
    }
    if (rc == 0)
        metrics_free(&metrics);
    s->read_ns = clock_ns();
}

/* ---- visitors -------------------------------------------------------------------------------- */

static void let_in(struct scrape *s);

static void visitor_closed(uv_handle_t *handle)
{
    struct visitor *v = handle->data;
    struct scrape *s = v->scrape;

    if (--v->handles > 0)
        return;
    body_release(v->body);
    *v = (struct visitor){.scrape = s};
    if (s->knocking && !uv_is_closing((uv_handle_t *)&s->server))
        let_in(s);
}

static void visitor_end(struct visitor *v)
{
    if (v->state == VISITOR_FREE || v->state == VISITOR_ENDS)
        return;
    v->state = VISITOR_ENDS;
    uv_close((uv_handle_t *)&v->tcp, visitor_closed);
    uv_close((uv_handle_t *)&v->deadline, visitor_closed);
}

static void deadline_passed(uv_timer_t *timer)
{
    visitor_end(timer->data);
}

/* Closing at once could take the answer away from one who still sends. */
static void said(uv_shutdown_t *request, int status)
{
    struct visitor *v = request->data;

    if (status < 0 || v->silent)
        visitor_end(v);
    else
        v->state = VISITOR_SERVED;
}

static void written(uv_write_t *request, int status)
{
    struct visitor *v = request->data;

    v->shutdown.data = v;
    if (status < 0 || uv_shutdown(&v->shutdown, (uv_stream_t *)&v->tcp, said) < 0)
        visitor_end(v);
}

static void answer(struct visitor *v, int status, struct body *body)
{
    const char *type = !body            ? "text/plain; charset=utf-8"
                       : v->openmetrics ? "application/openmetrics-text; version=1.0.0; "
                                          "charset=utf-8"
                                        : "text/plain; version=0.0.4; charset=utf-8";
    uv_buf_t parts[2];
    int length = snprintf(v->answer, sizeof(v->answer),
                          "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                          "Connection: close\r\n\r\n",
                          status, http_reason(status), type, body ? body->length : 0,
                          status == 405 ? "Allow: GET\r\n" : "");

    v->state = VISITOR_ANSWERED;
    v->write.data = v;
    parts[0] = uv_buf_init(v->answer, (unsigned)length);
    if (body) {
        v->body = body;
        body->references++;
        parts[1] = uv_buf_init(body->text, (unsigned)body->length);
    }
    if (uv_write(&v->write, (uv_stream_t *)&v->tcp, parts, body ? 2 : 1, written) < 0)
        visitor_end(v);
}

static void give(struct visitor *v)
{
    struct body *body = v->scrape->bodies[v->openmetrics];

    answer(v, body ? 200 : 503, body);
}

/* ---- the counters ---------------------------------------------------------------------------- */

static void give_all(struct scrape *s)
{
    uv_timer_stop(&s->patience);
    s->reading = false;
    make_bodies(s);
    for (int i = 0; i < VISITORS_MAX; i++)
        if (s->visitors[i].state == VISITOR_WAITS)
            give(&s->visitors[i]);
}

static void too_late(uv_timer_t *timer)
{
    give_all(timer->data);
}

static bool all_have_answered(const struct scrape *s)
{
    for (uint32_t e = 0; e < s->control->worker_count; e++)
        if (s->asked[e])
            return false;
    return true;
}

static void counted(struct call *call)
{
    struct scrape *s = call->owner;

    s->asked[call->cookie] = false;
    s->latencies[call->cookie] = *s->views[call->cookie]->latency_sum;
    if (s->reading && all_have_answered(s))
        give_all(s);
}

/* One that has not answered yet is not asked again. */
static void ask_engines(struct scrape *s)
{
    s->reading = true;
    uv_timer_start(&s->patience, too_late, ANSWER_MS, 0);
    for (uint32_t e = 0; e < s->control->worker_count; e++) {
        struct worker *w = &s->control->workers[e];
        struct call *count = s->asked[e] ? NULL : call_new(&w->target, CALL_COUNT, s, NULL);
        struct call *view = count ? call_new(&w->target, CALL_VIEW, s, counted) : NULL;

        if (!view) {
            free(count);
            continue;
        }
        view->cookie = e;
        view->view = s->views[e];
        s->asked[e] = true;
        call_post(w->progress, count);
        call_post(w->progress, view);
    }
    if (s->reading && all_have_answered(s)) /* there was no memory for any call */
        give_all(s);
}

static void take_request(struct visitor *v, const struct http_request *request)
{
    struct scrape *s = v->scrape;

    v->openmetrics = request->openmetrics;
    if (request->status != 200) {
        answer(v, request->status, NULL);
    } else if (clock_ns() - s->read_ns < FRESH_NS && !s->reading) {
        give(v);
    } else {
        v->state = VISITOR_WAITS;
        if (!s->reading)
            ask_engines(s);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void room_for(uv_handle_t *handle, size_t wanted, uv_buf_t *to)
{
    struct visitor *v = handle->data;

    /* Behind the head nothing is looked at. */
    if (v->state != VISITOR_ASKS)
        v->size = 0;
    *to = uv_buf_init(v->head + v->size, (unsigned)(sizeof(v->head) - v->size));
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *from)
{
    struct visitor *v = stream->data;
    struct http_request request;

    if (got == UV_EOF && (v->state == VISITOR_WAITS || v->state == VISITOR_ANSWERED)) {
        v->silent = true;
    } else if (got < 0) {
        visitor_end(v);
    } else if (v->state != VISITOR_ASKS) {
        v->dropped += (size_t)got;
        if (v->dropped > DROPPED_MAX)
            visitor_end(v);
    } else {
        v->size += (size_t)got;
        if (http_request_read(v->head, v->size, &request))
            take_request(v, &request);
    }
}

/* ---- the door -------------------------------------------------------------------------------- */

static struct visitor *place_for_one(struct scrape *s)
{
    for (int i = 0; i < VISITORS_MAX; i++)
        if (s->visitors[i].state == VISITOR_FREE)
            return &s->visitors[i];
    return NULL;
}

/* The oldest makes room, unless somebody does already. */
static void make_place(struct scrape *s)
{
    struct visitor *oldest = &s->visitors[0];

    for (int i = 0; i < VISITORS_MAX; i++) {
        if (s->visitors[i].state == VISITOR_ENDS)
            return;
        if (s->visitors[i].number < oldest->number)
            oldest = &s->visitors[i];
    }
    visitor_end(oldest);
}

static void let_in(struct scrape *s)
{
    struct visitor *v = place_for_one(s);

    s->knocking = v == NULL; /* until it is accepted, the loop accepts nobody else */
    if (!v) {
        make_place(s);
        return;
    }
    v->scrape = s;
    v->state = VISITOR_ASKS;
    v->number = ++s->visits;
    v->tcp.data = v->deadline.data = v;
    v->handles = 2;
    uv_tcp_init(&s->control->loop, &v->tcp);
    uv_timer_init(&s->control->loop, &v->deadline);
    uv_timer_start(&v->deadline, deadline_passed, VISIT_MS, 0);
    if (uv_accept((uv_stream_t *)&s->server, (uv_stream_t *)&v->tcp) < 0 ||
        uv_read_start((uv_stream_t *)&v->tcp, room_for, on_bytes) < 0)
        visitor_end(v);
}

static void on_visitor(uv_stream_t *server, int status)
{
    if (status == 0)
        let_in(server->data);
}

/* ---- life ------------------------------------------------------------------------------------ */

int scrape_parse(const char *text, struct node_address *out, char *why, size_t why_size)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0, digits = strspn(port, "0123456789");
    const char *host = text;

    if (colon && length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (digits == 0 || digits > 5 || port[digits] != '\0' || strtoul(port, NULL, 10) > 65535 ||
        (colon && (length == 0 || length >= sizeof(out->host)))) {
        snprintf(why, why_size,
                 "metrics \"%.64s\": give a port (0: any that is free), or host:port", text);
        return -EINVAL;
    }
    snprintf(out->host, sizeof(out->host), "%.*s", colon ? (int)length : 9,
             colon ? host : "127.0.0.1");
    snprintf(out->port, sizeof(out->port), "%s", port);
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *six = (const void *)address;
    const struct sockaddr_in *four = (const void *)address;

    return address->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                          : ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

/* What was asked for may have left the port open. */
static void note_address(struct scrape *s, const struct node_address *at)
{
    struct sockaddr_storage name = {0};
    const struct sockaddr_in6 *six = (const void *)&name;
    const struct sockaddr_in *four = (const void *)&name;
    int size = sizeof(name);
    bool is_six;

    (void)uv_tcp_getsockname(&s->server, (struct sockaddr *)&name, &size);
    is_six = name.ss_family == AF_INET6;
    snprintf(s->address, sizeof(s->address), strchr(at->host, ':') ? "[%s]:%u" : "%s:%u", at->host,
             (unsigned)ntohs(is_six ? six->sin6_port : four->sin_port));
    if (!is_loopback(&name))
        log_line(&s->control->log, LOG_LEVEL_WARNING,
                 "metrics are served at %s, to whoever can reach it: 127.0.0.1 is for this node "
                 "alone",
                 s->address);
}

static int listen_at(struct scrape *s, const struct node_address *at, char *why, size_t why_size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(at->host, at->port, &hints, &found);

    if (rc != 0) {
        snprintf(why, why_size, "metrics %s:%s: %s", at->host, at->port, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    rc = uv_tcp_bind(&s->server, found->ai_addr, 0);
    freeaddrinfo(found);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&s->server, BACKLOG, on_visitor);
    if (rc < 0)
        snprintf(why, why_size, "metrics: cannot listen at %s:%s: %s%s", at->host, at->port,
                 uv_strerror(rc), rc == -EADDRINUSE ? "; give another port, or 0" : "");
    else
        note_address(s, at);
    return rc;
}

static bool make_views(struct scrape *s)
{
    uint32_t engines = s->control->worker_count;
    bool whole;

    s->latencies = calloc(engines, sizeof(*s->latencies));
    whole = s->latencies != NULL;
    for (uint32_t e = 0; whole && e < engines; e++) {
        s->views[e] = snapshot_new(SNAPSHOT_LATENCY_SUM, 1);
        whole = s->views[e] != NULL;
    }
    return whole;
}

int scrape_open(struct control *control)
{
    struct node_address at;
    char why[WHY_MAX] = "";
    struct scrape *s;
    int rc;

    if (!control->config->metrics)
        return 0;
    s = calloc(1, sizeof(*s));
    if (!s)
        return control_explain(control, -ENOMEM, "");
    control->scrape = s;
    s->control = control;
    uv_tcp_init(&control->loop, &s->server);
    uv_timer_init(&control->loop, &s->patience);
    s->server.data = s->patience.data = s;
    if (!make_views(s))
        return control_explain(control, -ENOMEM, "");
    rc = scrape_parse(control->config->metrics, &at, why, sizeof(why));
    if (rc == 0)
        rc = listen_at(s, &at, why, sizeof(why));
    (void)control_explain(control, rc, why);
    return control->inherited ? 0 : rc;
}

void scrape_close(struct control *control)
{
    struct scrape *s = control->scrape;

    if (!s || uv_is_closing((uv_handle_t *)&s->server))
        return;
    s->reading = false;
    uv_close((uv_handle_t *)&s->server, NULL);
    uv_close((uv_handle_t *)&s->patience, NULL);
    for (int i = 0; i < VISITORS_MAX; i++)
        visitor_end(&s->visitors[i]);
}

void scrape_free(struct control *control)
{
    struct scrape *s = control->scrape;

    if (!s)
        return;
    for (int i = 0; i < VISITORS_MAX; i++)
        body_release(s->visitors[i].body);
    body_release(s->bodies[0]);
    body_release(s->bodies[1]);
    for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
        snapshot_free(s->views[e]);
    free(s->latencies);
    free(s);
    control->scrape = NULL;
}

const char *scrape_address(const struct control *control)
{
    return control->scrape && control->scrape->address[0] ? control->scrape->address : NULL;
}
