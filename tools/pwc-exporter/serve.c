/*
 * Owns the listener and its connections: each is answered once and closed.
 *
 * Who asks may be anybody: there are VISITORS_MAX connections, of which the oldest makes room for a
 * new one, each has VISIT_NS in all, and a head has a bound.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tools/pwc-exporter/exporter.h"

enum {
    VISITORS_MAX = 8,
    ACCEPTED_MAX = 64, /* those that are being shut down included */
    HEAD_MAX = 16384,
    BACKLOG = 16,
    ROUND_MS = 200,
};

#define VISIT_NS UINT64_C(5000000000)

struct visitor {
    int fd; /* -1: none */
    uint64_t since_ns;
    bool shut;
};

struct server {
    struct scrape scrape;
    struct visitor visitors[ACCEPTED_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- visitors -------------------------------------------------------------------------------- */

/* libmicrohttpd sees its end, and closes it. */
static void shut(struct visitor *v)
{
    (void)shutdown(v->fd, SHUT_RDWR);
    v->shut = true;
}

static void make_room(struct server *s)
{
    struct visitor *oldest = NULL;
    size_t count = 0;

    for (struct visitor *v = s->visitors; v < s->visitors + ACCEPTED_MAX; v++) {
        if (v->fd < 0 || v->shut)
            continue;
        count++;
        if (!oldest || v->since_ns < oldest->since_ns)
            oldest = v;
    }
    if (count > VISITORS_MAX)
        shut(oldest);
}

static void end_the_slow(struct server *s)
{
    for (struct visitor *v = s->visitors; v < s->visitors + ACCEPTED_MAX; v++)
        if (v->fd >= 0 && !v->shut && now_ns() - v->since_ns >= VISIT_NS)
            shut(v);
}

static void noticed(void *context, struct MHD_Connection *connection, void **visitor,
                    enum MHD_ConnectionNotificationCode code)
{
    struct server *s = context;
    struct visitor *v = s->visitors;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*visitor)
            *(struct visitor *)*visitor = (struct visitor){.fd = -1};
        return;
    }
    while (v < s->visitors + ACCEPTED_MAX && v->fd >= 0)
        v++;
    if (v == s->visitors + ACCEPTED_MAX) /* libmicrohttpd accepts no more than that */
        return;
    *v = (struct visitor){
        .fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
        .since_ns = now_ns()};
    *visitor = v;
    make_room(s);
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result give(struct MHD_Connection *connection, unsigned status, const char *type,
                            const char *text, size_t length)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result rc = MHD_NO;

    if (!response)
        return MHD_NO;
    if (MHD_add_response_header(response, "Connection", "close") == MHD_YES &&
        MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
        (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
         MHD_add_response_header(response, "Allow", "GET") == MHD_YES))
        rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    return give(connection, status, "text/plain; charset=utf-8", why, strlen(why));
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **state)
{
    struct server *s = context;
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    bool open = accept && strcasestr(accept, "application/openmetrics-text");
    const struct openmetrics *text;

    (void)version, (void)body, (void)body_size, (void)state;
    if (strcmp(path, "/metrics") != 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "metrics are at /metrics\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET gives metrics\n");
    text = scrape_text(&s->scrape, !open);
    if (!text)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    return give(connection, MHD_HTTP_OK,
                open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                     : "text/plain; version=0.0.4; charset=utf-8",
                text->text, text->length);
}

/* ---- the listener ---------------------------------------------------------------------------- */

bool exporter_address_parse(const char *text, struct exporter_address *out)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0, digits = strspn(port, "0123456789");
    const char *host = text;

    if (colon && length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (digits == 0 || digits > 5 || port[digits] != '\0' || strtoul(port, NULL, 10) > 65535 ||
        (colon && (length == 0 || length >= sizeof(out->host))))
        return false;
    snprintf(out->host, sizeof(out->host), "%.*s", colon ? (int)length : 9,
             colon ? host : "127.0.0.1");
    snprintf(out->port, sizeof(out->port), "%s", port);
    return true;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *six = (const void *)address;
    const struct sockaddr_in *four = (const void *)address;

    return address->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                          : ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

/* Where it is, with the port that was found. */
static void say_address(int fd, const struct exporter_address *at)
{
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof(name);
    char port[8] = "";

    (void)getsockname(fd, (struct sockaddr *)&name, &size);
    (void)getnameinfo((struct sockaddr *)&name, size, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
    printf(strchr(at->host, ':') ? "pwc-exporter: serving http://[%s]:%s/metrics\n"
                                 : "pwc-exporter: serving http://%s:%s/metrics\n",
           at->host, port);
    fflush(stdout);
    if (!is_loopback(&name))
        fprintf(stderr,
                "pwc-exporter: whoever reaches %s can read the metrics: 127.0.0.1 is for this node "
                "alone\n",
                at->host);
}

/* A listening socket, or a negative errno that is said. */
static int listen_at(const struct exporter_address *at)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(at->host, at->port, &hints, &found), fd, on = 1;

    if (rc != 0) {
        fprintf(stderr, "pwc-exporter: %s:%s: %s\n", at->host, at->port, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        rc = -errno;
        fprintf(stderr, "pwc-exporter: cannot listen at %s:%s: %s%s\n", at->host, at->port,
                strerror(-rc), rc == -EADDRINUSE ? "; give another port, or 0" : "");
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(found);
    return rc < 0 ? rc : fd;
}

/* Readable when the process is to end. */
static int open_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int exporter_serve(const struct exporter_options *options, const struct exporter_address *at)
{
    struct server s = {.scrape.options = options};
    struct signalfd_siginfo signal;
    int signals = open_signals(), fd = listen_at(at);
    struct MHD_Daemon *http;

    if (signals < 0 || fd < 0)
        return fd < 0 ? fd : -EMFILE;
    for (size_t i = 0; i < ACCEPTED_MAX; i++)
        s.visitors[i].fd = -1;
    http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, &s, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)ACCEPTED_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX,
                            MHD_OPTION_NOTIFY_CONNECTION, noticed, &s, MHD_OPTION_END);
    if (!http) {
        fprintf(stderr, "pwc-exporter: the HTTP server cannot start\n");
        close(fd);
        close(signals);
        return -ENOMEM;
    }
    say_address(fd, at);
    while (read(signals, &signal, sizeof(signal)) < 0 && MHD_run_wait(http, ROUND_MS) == MHD_YES)
        end_the_slow(&s);
    MHD_stop_daemon(http); /* closes the listener, too */
    scrape_free(&s.scrape);
    close(signals);
    return 0;
}
