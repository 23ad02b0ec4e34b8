/* Owns connections that ask for the document (http_server.h). */
#include "daemon/control/watch/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKLOG = 16,
    VISIT_MS = 5000,
    DROPPED_MAX = 65536, /* bytes behind a head */
};

void http_body_release(struct http_body *body)
{
    if (!body || --body->references > 0)
        return;
    free(body->text);
    free(body);
}

/* ---- visitors -------------------------------------------------------------------------------- */

static void let_in(struct http_server *s);

static void visitor_closed(uv_handle_t *handle)
{
    struct http_visitor *v = handle->data;
    struct http_server *s = v->server;

    if (--v->handles > 0)
        return;
    http_body_release(v->body);
    *v = (struct http_visitor){.server = s};
    if (s->knocking && !uv_is_closing((uv_handle_t *)&s->listener))
        let_in(s);
}

static void visitor_end(struct http_visitor *v)
{
    if (v->state == HTTP_FREE || v->state == HTTP_ENDS)
        return;
    v->state = HTTP_ENDS;
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
    struct http_visitor *v = request->data;

    if (status < 0 || v->silent)
        visitor_end(v);
    else
        v->state = HTTP_SERVED;
}

static void written(uv_write_t *request, int status)
{
    struct http_visitor *v = request->data;

    v->shutdown.data = v;
    if (status < 0 || uv_shutdown(&v->shutdown, (uv_stream_t *)&v->tcp, said) < 0)
        visitor_end(v);
}

static void answer(struct http_visitor *v, int status, struct http_body *body)
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

    v->state = HTTP_ANSWERED;
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

static void give(struct http_visitor *v, struct http_body *const bodies[2])
{
    struct http_body *body = bodies[v->openmetrics];

    answer(v, body ? 200 : 503, body);
}

static void take_request(struct http_visitor *v, const struct http_request *request)
{
    v->openmetrics = request->openmetrics;
    if (request->status != 200) {
        answer(v, request->status, NULL);
    } else {
        v->state = HTTP_WAITS;
        v->server->wanted(v->server->context);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void room_for(uv_handle_t *handle, size_t wanted, uv_buf_t *to)
{
    struct http_visitor *v = handle->data;

    /* Behind the head nothing is looked at. */
    if (v->state != HTTP_ASKS)
        v->size = 0;
    *to = uv_buf_init(v->head + v->size, (unsigned)(sizeof(v->head) - v->size));
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *from)
{
    struct http_visitor *v = stream->data;
    struct http_request request;

    if (got == UV_EOF && (v->state == HTTP_WAITS || v->state == HTTP_ANSWERED)) {
        v->silent = true;
    } else if (got < 0) {
        visitor_end(v);
    } else if (v->state != HTTP_ASKS) {
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

static struct http_visitor *place_for_one(struct http_server *s)
{
    for (int i = 0; i < HTTP_VISITORS_MAX; i++)
        if (s->visitors[i].state == HTTP_FREE)
            return &s->visitors[i];
    return NULL;
}

/* The oldest makes room, unless somebody does already. */
static void make_place(struct http_server *s)
{
    struct http_visitor *oldest = &s->visitors[0];

    for (int i = 0; i < HTTP_VISITORS_MAX; i++) {
        if (s->visitors[i].state == HTTP_ENDS)
            return;
        if (s->visitors[i].number < oldest->number)
            oldest = &s->visitors[i];
    }
    visitor_end(oldest);
}

static void let_in(struct http_server *s)
{
    struct http_visitor *v = place_for_one(s);

    s->knocking = v == NULL; /* until it is accepted, the loop accepts nobody else */
    if (!v) {
        make_place(s);
        return;
    }
    v->server = s;
    v->state = HTTP_ASKS;
    v->number = ++s->visits;
    v->tcp.data = v->deadline.data = v;
    v->handles = 2;
    uv_tcp_init(s->loop, &v->tcp);
    uv_timer_init(s->loop, &v->deadline);
    uv_timer_start(&v->deadline, deadline_passed, VISIT_MS, 0);
    if (uv_accept((uv_stream_t *)&s->listener, (uv_stream_t *)&v->tcp) < 0 ||
        uv_read_start((uv_stream_t *)&v->tcp, room_for, on_bytes) < 0)
        visitor_end(v);
}

static void on_visitor(uv_stream_t *server, int status)
{
    if (status == 0)
        let_in(server->data);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void http_server_init(struct http_server *s, uv_loop_t *loop, void *context,
                      void (*wanted)(void *context))
{
    *s = (struct http_server){.loop = loop, .context = context, .wanted = wanted};
    uv_tcp_init(loop, &s->listener);
    s->listener.data = s;
}

int http_server_listen(struct http_server *s, const struct sockaddr *at)
{
    int rc = uv_tcp_bind(&s->listener, at, 0);

    return rc < 0 ? rc : uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_visitor);
}

void http_server_give(struct http_server *s, struct http_body *const bodies[2])
{
    for (int i = 0; i < HTTP_VISITORS_MAX; i++)
        if (s->visitors[i].state == HTTP_WAITS)
            give(&s->visitors[i], bodies);
}

void http_server_close(struct http_server *s)
{
    if (uv_is_closing((uv_handle_t *)&s->listener))
        return;
    uv_close((uv_handle_t *)&s->listener, NULL);
    for (int i = 0; i < HTTP_VISITORS_MAX; i++)
        visitor_end(&s->visitors[i]);
}

void http_server_free(struct http_server *s)
{
    for (int i = 0; i < HTTP_VISITORS_MAX; i++)
        http_body_release(s->visitors[i].body);
}
