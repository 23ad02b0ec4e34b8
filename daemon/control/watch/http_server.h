/*
 * Gives one document, in two formats, to whoever asks for it over HTTP: a visitor says its head,
 * waits until there is something to give, gets it, and is hung up on.
 *
 *     FREE -> ASKS --head--> WAITS --http_server_give--> ANSWERED -> SERVED --hang-up--> ENDS ->
 * FREE
 *
 * Visitors are strangers: a head has a bound, a visit 5 s in all, there are 8 and the oldest makes
 * room for a ninth, and what comes behind a head is dropped, to a bound.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_HTTP_SERVER_H
#define PWC_CONTROL_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include "daemon/control/watch/http.h"

#define HTTP_VISITORS_MAX 8
#define HTTP_ANSWER_ROOM  256 /* bytes of an answer's head */

struct http_server;

/* An answer's body, shared by those whom it is sent to. */
struct http_body {
    uint32_t references;
    size_t length;
    char *text;
};

enum http_visitor_state {
    HTTP_FREE = 0,
    HTTP_ASKS,     /* its head is being read */
    HTTP_WAITS,    /* for the counters */
    HTTP_ANSWERED, /* the answer is being written */
    HTTP_SERVED,   /* nothing but its hang-up is waited for */
    HTTP_ENDS,     /* its handles are being closed */
};

struct http_visitor {
    struct http_server *server;
    enum http_visitor_state state;
    uint64_t number; /* in the order in which they came */
    bool openmetrics;
    bool silent; /* has said all: it may still listen */
    uv_tcp_t tcp;
    uv_timer_t deadline;
    uv_write_t write;
    uv_shutdown_t shutdown;
    uint32_t handles; /* open ones */
    struct http_body *body;
    size_t size, dropped;
    char answer[HTTP_ANSWER_ROOM];
    char head[HTTP_HEAD_MAX];
};

struct http_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    struct http_visitor visitors[HTTP_VISITORS_MAX];
    uint64_t visits;
    bool knocking; /* somebody waits for one of them to be free */
    void *context;
    void (*wanted)(void *context); /* somebody waits: give now, or later */
};

void http_body_release(struct http_body *body);

void http_server_init(struct http_server *s, uv_loop_t *loop, void *context,
                      void (*wanted)(void *context));
/* 0 or libuv's error. */
int http_server_listen(struct http_server *s, const struct sockaddr *at);
/* To all who wait: plain, OpenMetrics; NULL: there is none (503). */
void http_server_give(struct http_server *s, struct http_body *const bodies[2]);
/* Handles are closed by the loop; then what is left is freed. */
void http_server_close(struct http_server *s);
void http_server_free(struct http_server *s);

#endif
