/*
 * Owns the listening socket, and the accepted connections that wait, oldest first, until they have
 * greeted and the caller has connected their peer. At most SILENT_MAX connections may wait without
 * a greeting; then the oldest is closed. A connection that has greeted knows our token, and at most
 * one waits for each peer.
 *
 * Strangers may connect as often as they like, so only a few connections are accepted at a time,
 * and then none for REST_NS. While a peer is to connect, it may wait behind many strangers, or find
 * the queue full, so a look goes on for ACCEPT_NS. The set reports the listening socket once, and
 * later looks follow a timer.
 *
 *     set reports the socket --> accept a few --+--> some: rest, the timer --> accept a few ...
 *               ^                               |
 *               +------- ask the set again <----+--> none
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "daemon/fabric/source.h"
#include "daemon/fabric/stream/stream_private.h"
#include "shm_ring/clock.h"

#define SILENT_MAX  64u
#define ACCEPT_MOST 4u        /* most connections accepted in one look, or at a time */
#define ACCEPT_NS   100000    /* length of a look while a peer is to connect */
#define REST_NS     1000000   /* time to the next look, if this one has accepted some */
#define AGAIN_NS    100000000 /* time to the next look, if no descriptor was free */

/* ---- the address ---------------------------------------------------------------------------- */

/* Whether the address is "any", to which peers cannot connect. */
static bool is_any(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

    return address->ss_family == AF_INET ? four->sin_addr.s_addr == htonl(INADDR_ANY)
                                         : IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

int stream_address(struct fabric *fabric, struct fabric_address *out)
{
    const struct stream_listener *l = &((struct stream *)fabric)->listener;
    uint8_t *at = out->bytes;

    memcpy(at, STREAM_MAGIC, sizeof(STREAM_MAGIC) - 1);
    at += sizeof(STREAM_MAGIC) - 1;
    memcpy(at, &l->address, l->address_size);
    at += l->address_size;
    memcpy(at, l->token, STREAM_TOKEN);
    out->size = (uint32_t)(at + STREAM_TOKEN - out->bytes);
    return 0;
}

/* ---- connections that wait ------------------------------------------------------------------ */

static bool has_greeted(const struct stream_connection *c)
{
    return c->greeted == sizeof(c->greeting);
}

static void unlink_waiting(struct stream_listener *l, struct stream_connection *c)
{
    struct stream_connection **at = &l->waiting;

    while (*at != c)
        at = &(*at)->next_waiting;
    *at = c->next_waiting;
    if (has_greeted(c))
        l->greeted--;
    else
        l->silent--;
}

static void turn_away(struct stream *s, struct stream_connection *c)
{
    unlink_waiting(&s->listener, c);
    stream_connection_close(s, c, -ECONNREFUSED);
}

/* Closes a peer's older connections, which belong to links that have ended. */
static void turn_away_older(struct stream *s, const struct stream_connection *than)
{
    for (struct stream_connection *c = s->listener.waiting, *next; c; c = next) {
        next = c->next_waiting;
        if (c != than && has_greeted(c) &&
            stream_same_token(c->greeting.origin, than->greeting.origin))
            turn_away(s, c);
    }
}

/* Closes the oldest connection that has greeted, or that has not, but not `kept`: a connection may
 * be the oldest and have greeted just now. */
static void turn_away_oldest(struct stream *s, bool greeted, const struct stream_connection *kept)
{
    struct stream_connection *c = s->listener.waiting;

    while (c && (c == kept || has_greeted(c) != greeted))
        c = c->next_waiting;
    if (c)
        turn_away(s, c);
}

struct stream_connection *stream_listener_take(struct stream *s, const uint8_t origin[STREAM_TOKEN])
{
    struct stream_connection *c = s->listener.waiting;

    while (c && !(has_greeted(c) && stream_same_token(c->greeting.origin, origin)))
        c = c->next_waiting;
    if (c)
        unlink_waiting(&s->listener, c);
    return c;
}

/* Whether a greeting is a peer's: it names our token, and comes from the side with the lower
 * token. */
static bool is_of_a_peer(const struct stream *s, const struct stream_greeting *g)
{
    return memcmp(g->magic, STREAM_MAGIC, sizeof(g->magic)) == 0 &&
           stream_same_token(g->target, s->listener.token) &&
           memcmp(g->origin, s->listener.token, STREAM_TOKEN) < 0;
}

/* Handles a complete greeting. May close this connection, or another one. */
static void take_greeting(struct stream *s, struct stream_connection *c)
{
    if (!is_of_a_peer(s, &c->greeting)) {
        turn_away(s, c);
        return;
    }
    turn_away_older(s, c);
    if (s->listener.greeted > s->peers.count) /* only peers and earlier peers know our token */
        turn_away_oldest(s, true, c);
    stream_peer_greeted(s, c);
    if (c->peer == STREAM_NOBODY && c->hung)
        turn_away(s, c);
}

void stream_listener_read(struct stream *s, struct stream_connection *c)
{
    struct stream_greeting *g = &c->greeting;
    ssize_t got;

    if (has_greeted(c)) {
        if (c->hung)
            turn_away(s, c);
        return;
    }
    got = recv(c->socket, (uint8_t *)g + c->greeted, sizeof(*g) - c->greeted, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN && !c->hung)
        return;
    if (got <= 0) {
        turn_away(s, c);
        return;
    }
    c->greeted += (uint32_t)got;
    if (!has_greeted(c)) {
        stream_connection_due(s, c); /* more bytes may have come */
        return;
    }
    s->listener.silent--;
    s->listener.greeted++;
    take_greeting(s, c);
}

/* ---- accepting ------------------------------------------------------------------------------ */

/* Takes an accepted connection. One that has ended already, or has greeted wrongly, is closed at
 * once, without an entry. */
static void take_in(struct stream *s, int fd)
{
    struct stream_connection **last = &s->listener.waiting, *c;
    struct stream_greeting greeting = {0};
    ssize_t got = recv(fd, &greeting, sizeof(greeting), MSG_DONTWAIT);
    bool whole = got == sizeof(greeting);

    if (got == 0 || (got < 0 && errno != EAGAIN) || (whole && !is_of_a_peer(s, &greeting))) {
        close(fd);
        return;
    }
    if (!whole && s->listener.silent == SILENT_MAX)
        turn_away_oldest(s, false, NULL);
    if (stream_connection_open(s, fd, false, &c) < 0)
        return;
    c->greeting = greeting;
    c->greeted = got < 0 ? 0 : (uint32_t)got;
    while (*last)
        last = &(*last)->next_waiting;
    *last = c;
    s->listener.silent += !whole;
    s->listener.greeted += whole;
    if (whole)
        take_greeting(s, c);
}

int stream_listener_accept(struct stream *s, uint32_t most)
{
    uint32_t accepted = 0;

    for (; accepted < most; accepted++) {
        int fd = accept4(s->listener.socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            take_in(s, fd);
        else if (errno == EAGAIN)
            break;
        else if (errno != ECONNABORTED)
            return -errno;
    }
    return (int)accepted;
}

/* Lets the set report the listening socket once. */
static int watch(const struct stream *s, int how)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = NULL};

    return epoll_ctl(s->set, how, s->listener.socket, &event) < 0 ? -errno : 0;
}

void stream_listener_look(struct stream *s)
{
    struct itimerspec rest = {0};
    uint64_t began = clock_ns();
    bool none = true;
    int accepted;

    do {
        accepted = stream_listener_accept(s, ACCEPT_MOST);
        none &= accepted == 0;
    } while (accepted == ACCEPT_MOST && s->peers.awaited > 0 && clock_ns() - began < ACCEPT_NS);
    rest.it_value.tv_nsec = accepted < 0 ? AGAIN_NS : REST_NS;
    if (none)
        (void)watch(s, EPOLL_CTL_MOD);
    else
        (void)timerfd_settime(s->listener.timer, 0, &rest, NULL);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* Writes what is wrong, and what to do. */
static int refuse(const struct stream_config *config, int rc)
{
    if (config->message)
        snprintf(
            config->message, config->message_size,
            "cannot listen at '%s': %s; give an address of this node, or an interface that has "
            "one",
            config->bind ? config->bind : SOURCE_DEFAULT, strerror(-rc));
    return rc;
}

int stream_listener_open(struct stream *s, const struct stream_config *config)
{
    struct stream_listener *l = &s->listener;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    int rc;

    if (getrandom(l->token, sizeof(l->token), 0) != sizeof(l->token))
        return -EIO;
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->timer < 0 || epoll_ctl(s->set, EPOLL_CTL_ADD, l->timer, &event) < 0)
        return -errno;
    rc = source_parse(config->bind, &l->address);
    if (rc == 0 && is_any(&l->address))
        rc = -EADDRNOTAVAIL;
    if (rc < 0)
        return refuse(config, rc);
    l->address_size = source_size(&l->address);
    l->socket = stream_socket(l->address.ss_family);
    if (l->socket < 0 || bind(l->socket, (struct sockaddr *)&l->address, l->address_size) < 0 ||
        listen(l->socket, SOMAXCONN) < 0 ||
        getsockname(l->socket, (struct sockaddr *)&l->address, &l->address_size) < 0 ||
        watch(s, EPOLL_CTL_ADD) < 0)
        return refuse(config, -errno);
    return 0;
}

void stream_listener_close(struct stream *s)
{
    while (s->listener.waiting)
        turn_away(s, s->listener.waiting);
    if (s->listener.socket >= 0)
        close(s->listener.socket);
    if (s->listener.timer >= 0)
        close(s->listener.timer);
}
