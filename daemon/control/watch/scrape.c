/* Owns the listener for metrics and its connections (scrape.h). */
#include "daemon/control/watch/scrape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/threads/clock.h"
#include "daemon/control/watch/http_server.h"
#include "daemon/control/watch/metrics_read.h"
#include "daemon/control/threads/snapshot.h"
#include "daemon/control/fatal.h"

enum { ANSWER_MS = 1000, WHY_MAX = 512 };

#define FRESH_NS UINT64_C(250000000)

/* What an engine has told last. */
struct told {
    struct engine_latency_view sum;
    struct snapshot_latency *rows;
    int row_count;
};

struct scrape {
    struct control *control;
    char address[NODE_HOST_MAX + 16];
    struct http_server server;
    uv_timer_t patience; /* with the progress threads */
    bool reading;        /* they have been asked */
    bool asked[NODES_ENGINES_MAX];
    struct snapshot *views[NODES_ENGINES_MAX]; /* lent to those that are asked */
    struct told *told;                         /* by engine */
    uint64_t read_ns;                          /* when bodies were made */
    struct http_body *bodies[2];               /* plain, OpenMetrics; NULL: not made */
};

/* ---- bodies ---------------------------------------------------------------------------------- */

/* NULL without memory. */
static struct http_body *body_new(const struct metrics *metrics, bool openmetrics)
{
    struct http_body *body = calloc(1, sizeof(*body));
    struct openmetrics text = {.plain = !openmetrics};

    metrics_render(metrics, &text);
    if (!body || text.failed) {
        free(text.text);
        free(body);
        return NULL;
    }
    *body = (struct http_body){.references = 1, .length = text.length, .text = text.text};
    return body;
}

static void make_bodies(struct scrape *s)
{
    bool responding[NODES_ENGINES_MAX];
    struct metrics metrics;
    bool read;
    int rc;

    for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
        responding[e] = !s->asked[e];
    rc = metrics_read(&metrics, s->control, responding);
    read = rc == 0;
    for (uint32_t e = 0; rc == 0 && e < s->control->worker_count; e++) {
        for (uint32_t i = 0; i < ENGINE_LATENCIES; i++)
            histogram_merge(&metrics.latency.steps[i], &s->told[e].sum.steps[i]);
        rc = metrics_add_latencies(&metrics, s->told[e].rows, s->told[e].row_count);
    }
    for (int i = 0; i < 2; i++) {
        http_body_release(s->bodies[i]);
        s->bodies[i] = rc == 0 ? body_new(&metrics, i == 1) : NULL;
    }
    if (read)
        metrics_free(&metrics);
    s->read_ns = clock_ns();
}

/* ---- the counters ---------------------------------------------------------------------------- */

static void give_all(struct scrape *s)
{
    uv_timer_stop(&s->patience);
    s->reading = false;
    make_bodies(s);
    http_server_give(&s->server, s->bodies);
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
    struct snapshot *view = s->views[call->cookie];
    struct told *told = &s->told[call->cookie];
    struct snapshot_latency *rows = told->rows;

    s->asked[call->cookie] = false;
    told->sum = *view->latency_sum;
    told->rows = view->latency_rows;
    told->row_count = view->latency_row_count;
    view->latency_rows = rows; /* room for the next time */
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

/* What was read just now is given again. */
static void wanted(void *context)
{
    struct scrape *s = context;

    if (s->reading)
        return;
    if (clock_ns() - s->read_ns < FRESH_NS)
        http_server_give(&s->server, s->bodies);
    else
        ask_engines(s);
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

    (void)uv_tcp_getsockname(&s->server.listener, (struct sockaddr *)&name, &size);
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
    rc = http_server_listen(&s->server, found->ai_addr);
    freeaddrinfo(found);
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

    s->told = calloc(NODES_ENGINES_MAX, sizeof(*s->told));
    whole = s->told != NULL;
    for (uint32_t e = 0; whole && e < engines; e++) {
        s->views[e] = snapshot_new(SNAPSHOT_LATENCY_SUM, 1);
        s->told[e].rows = calloc(SNAPSHOT_LATENCY_ROWS_MAX + 1, sizeof(*s->told[e].rows));
        whole = s->views[e] && s->told[e].rows;
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
    http_server_init(&s->server, &control->loop, s, wanted);
    uv_timer_init(&control->loop, &s->patience);
    s->patience.data = s;
    if (!make_views(s))
        return control_explain(control, -ENOMEM, "");
    rc = scrape_parse(control->config->metrics, &at, why, sizeof(why));
    if (rc == 0)
        rc = listen_at(s, &at, why, sizeof(why));
    (void)control_explain(control, rc, why);
    return control->inherited || control->was_next ? 0 : rc;
}

void scrape_close(struct control *control)
{
    struct scrape *s = control->scrape;

    if (!s || uv_is_closing((uv_handle_t *)&s->patience))
        return;
    s->reading = false;
    uv_close((uv_handle_t *)&s->patience, NULL);
    http_server_close(&s->server);
}

void scrape_free(struct control *control)
{
    struct scrape *s = control->scrape;

    if (!s)
        return;
    http_server_free(&s->server);
    http_body_release(s->bodies[0]);
    http_body_release(s->bodies[1]);
    for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
        snapshot_free(s->views[e]);
    for (uint32_t e = 0; s->told && e < NODES_ENGINES_MAX; e++)
        free(s->told[e].rows);
    free(s->told);
    free(s);
    control->scrape = NULL;
}

const char *scrape_address(const struct control *control)
{
    return control->scrape && control->scrape->address[0] ? control->scrape->address : NULL;
}
