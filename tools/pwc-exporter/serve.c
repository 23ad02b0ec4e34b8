/*
 * Owns the listener and its connections: each is answered once and closed.
 *
 * Anybody may connect, so there are bounds. A connection is closed when VISITORS_MAX others have
 * arrived after it, or after SILENCE_S seconds of silence. The head of a request has at most
 * HEAD_MAX bytes.
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
#include <sys/socket.h>
#include <unistd.h>
#include "tools/pwc-exporter/exporter.h"

enum {
    VISITORS_MAX = 8,
    ACCEPTED_MAX = 64, /* connections, including those that are being shut down */
    SILENCE_S = 5,
    HEAD_MAX = 16384,
    BACKLOG = 128, /* a visitor that finds no room tries again only after a second */
};

struct server {
    struct scrape scrape;
    int visitors[VISITORS_MAX]; /* descriptors; -1: none */
    size_t next;                /* the visitor that makes room for another */
};

/* libmicrohttpd reports that a connection was accepted, or is about to be closed. */
static void noticed(void *context, struct MHD_Connection *connection, void **state,
                    enum MHD_ConnectionNotificationCode code)
{
    struct server *s = context;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        for (size_t i = 0; i < VISITORS_MAX; i++)
            s->visitors[i] = s->visitors[i] == fd ? -1 : s->visitors[i];
        return;
    }
    if (s->visitors[s->next] >= 0) /* libmicrohttpd notices, and closes this connection */
        (void)shutdown(s->visitors[s->next], SHUT_RDWR);
    s->visitors[s->next] = fd;
    s->next = (s->next + 1) % VISITORS_MAX;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result give(struct MHD_Connection *connection, unsigned status, const char *type,
                            const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
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
    return give(connection, status, "text/plain; charset=utf-8", why);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **state)
{
    struct server *s = context;
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    bool open = accept && strcasestr(accept, "application/openmetrics-text");
    const char *text;

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
                text);
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

/* Prints the address that is served, with the port that the system chose. */
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
        fprintf(
            stderr,
            "pwc-exporter: anybody who reaches %s can read the metrics: 127.0.0.1 is for this node "
            "alone\n",
            at->host);
}

/* Opens a listening socket. Returns it; or prints what failed, and returns a negative errno. */
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

int exporter_serve(const struct exporter_options *options, const struct exporter_address *at)
{
    struct server s = {.scrape.options = options};
    int fd = listen_at(at), signal_number;
    struct MHD_Daemon *http;
    sigset_t ends;

    if (fd < 0)
        return fd;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* for the other thread, too */
    memset(s.visitors, -1, sizeof(s.visitors));
    http = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, &s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)ACCEPTED_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, noticed, &s, MHD_OPTION_END);
    if (!http) {
        fprintf(stderr, "pwc-exporter: the HTTP server cannot start\n");
        close(fd);
        return -ENOMEM;
    }
    say_address(fd, at);
    (void)sigwait(&ends, &signal_number);
    MHD_stop_daemon(http); /* closes the listener, too */
    scrape_free(&s.scrape);
    return 0;
}
