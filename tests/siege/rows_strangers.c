/* Rows of strangers: connections to the daemons' TCP ports and sockets, which any user can make. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/siege/row.h"

#define HELD 256u

/* Connects to "host:port". Returns a socket, or a negative errno. */
static int stranger_connect(const char *where)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    const char *colon = strrchr(where, ':');
    char host[64];
    int s;

    if (!colon || colon - where >= (long)sizeof(host))
        return -EINVAL;
    snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
    name.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, host, &name.sin_addr) != 1)
        return -EINVAL;
    s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s >= 0 && connect(s, (struct sockaddr *)&name, sizeof(name)) < 0) {
        int rc = -errno;

        close(s);
        return rc;
    }
    return s < 0 ? -errno : s;
}

/* Closes the connection by a reset, so that the kernel keeps no state that would stop the
 * attack. */
static void reset(int s)
{
    const struct linger now = {.l_onoff = 1};

    setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(s);
}

static void connect_and_reset(struct attack *a, const char *const *ports)
{
    attack_begins(a);
    for (size_t i = 0; ports[0]; i = ports[i + 1] ? i + 1 : 0) {
        int s = stranger_connect(ports[i]);

        attack_counts(a, s);
        if (s >= 0)
            reset(s);
    }
}

static void run_connects(struct attack *a)
{
    connect_and_reset(a, a->data);
}

static void run_strangers(struct attack *a)
{
    connect_and_reset(a, a->control);
}

/* Opens connections that begin a frame and send no more. Each new connection replaces the oldest
 * one. */
static void connect_and_wait(struct attack *a, const char *const *ports)
{
    static const uint8_t half[3] = {7, 0, 0};
    int held[HELD];

    for (size_t i = 0; i < HELD; i++)
        held[i] = -1;
    attack_begins(a);
    for (size_t i = 0, at = 0; ports[0]; i = ports[i + 1] ? i + 1 : 0, at = (at + 1) % HELD) {
        if (held[at] >= 0)
            close(held[at]);
        held[at] = stranger_connect(ports[i]);
        attack_counts(a, held[at]);
        if (held[at] >= 0)
            (void)!send(held[at], half, sizeof(half), MSG_NOSIGNAL);
    }
}

static void run_silent(struct attack *a)
{
    connect_and_wait(a, a->data);
}

static void run_mute(struct attack *a)
{
    connect_and_wait(a, a->control);
}

/* Connects to the daemons' sockets for clients and hangs up at once, without end. */
static void run_callers(struct attack *a)
{
    attack_begins(a);
    for (unsigned i = 0;; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int rc = s < 0 ? -errno : 0;

        snprintf(name.sun_path, sizeof(name.sun_path), "%s", a->sockets[i % ATTACK_NODES]);
        if (rc == 0 && connect(s, (struct sockaddr *)&name, sizeof(name)) < 0)
            rc = -errno;
        attack_counts(a, rc);
        if (s >= 0)
            close(s);
    }
}

const struct row rows_strangers[] = {
    {"connects", "connects to the data ports and resets", 1, ROW_STREAM, NULL, run_connects},
    {"silent", "256 connections to the data ports that send half a frame", 1, ROW_STREAM, NULL,
     run_silent},
    {"strangers", "connects to the ports for daemons and resets", 1, 0, NULL, run_strangers},
    {"mute", "256 connections to the ports for daemons that send half a frame", 1, 0, NULL,
     run_mute},
    {"callers", "connects to the sockets for clients and hangs up", 1, 0, NULL, run_callers},
    {0},
};
