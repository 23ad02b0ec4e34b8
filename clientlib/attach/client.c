/*
 * Owns the attachment to the daemon, from greeting to hang-up. Thread: the callers of pwc_init,
 * pwc_finalize and pwc_abort, alone with the client.
 */
#include "clientlib/attach/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "clientlib/attach/context.h"
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/environment.h"
#include "clientlib/calls/finish.h"
#include "clientlib/handlers/loaded.h"
#include "shm_ring/fault.h"
#include "proto/job_socket.h"
#include "clientlib/memory/region.h"

#define TEXT_OF(number)                   #number
#define RELEASE_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define RELEASE                           RELEASE_TEXT(PWC_VERSION_MAJOR, PWC_VERSION_MINOR, PWC_VERSION_PATCH)

enum {
    VERSION_MIN = 1, /* of the control protocol */
    VERSION_MAX = 1,
    RETRY_MS = 10,
};

static int check_owner(int fd, const char *path, char *why, size_t why_size)
{
    uid_t owner = job_socket_peer(fd);

    if (job_socket_trusted(path, owner))
        return 0;
    snprintf(why, why_size,
             "%s is served by user %d, neither this user nor root nor the one in its name: set "
             "PWC_SOCKET",
             path, (int)owner);
    return -EACCES;
}

/* Many ranks connect at once: waits while the listener's queue is full. */
static int connect_until(int fd, const struct sockaddr_un *address, socklen_t size,
                         int64_t deadline)
{
    int rc;

    do {
        int left = deadline_poll_ms(deadline);
        int ms = left > 0 ? left : left == 0 ? 1 : 0; /* to the kernel 0 means no limit */
        struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
            return -errno;
        rc = connect(fd, (const struct sockaddr *)address, size) == 0 ? 0 : -errno;
    } while (rc == -EINTR);
    if (rc == -EAGAIN)
        return -ETIMEDOUT;
    return rc == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : rc;
}

static int connect_socket(const char *path, int64_t deadline, char *why, size_t why_size)
{
    struct sockaddr_un address;
    socklen_t size = job_socket_address(path, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return -errno;
    rc = connect_until(fd, &address, size, deadline);
    if (rc == -ETIMEDOUT)
        snprintf(why, why_size, "the daemon at %s takes no connections: it is busy, or stuck",
                 path);
    else if (rc == -EACCES || rc == -EPERM)
        snprintf(why, why_size,
                 "%s is there, but user %d may not connect: have its daemon admit this user "
                 "(allow-users, allow-groups), or start a pwcd and set PWC_SOCKET",
                 path, (int)geteuid());
    else if (rc < 0)
        snprintf(why, why_size, "no daemon answers at %s (%s): start pwcd, or set PWC_SOCKET", path,
                 strerror(-rc));
    else
        rc = check_owner(fd, path, why, why_size);
    if (rc == 0) {
        FAULT(ATTACH_CONNECTED);
        return fd;
    }
    close(fd);
    return rc;
}

/*
 * A job's daemon (pwcd --job) is started together with its ranks, and may begin to listen after
 * they connect. So each rank tries until the deadline, or until the node's own daemon answers.
 */
static int connect_daemon(const struct environment *environment, char *why, size_t why_size)
{
    int64_t deadline = deadline_after_ms(environment->timeout_ms);
    char ignored[DAEMON_TEXT_MAX];
    int rc, other;

    for (;;) {
        rc = connect_socket(environment->socket, deadline, why, why_size);
        if (rc != -ECONNREFUSED || environment->socket[0] != '@')
            return rc;
        other = environment->other[0]
                    ? connect_socket(environment->other, deadline, ignored, sizeof(ignored))
                    : rc;
        if (other >= 0 || deadline_poll_ms(deadline) == 0)
            return other >= 0 ? other : rc;
        (void)poll(NULL, 0, RETRY_MS);
    }
}

/* The values of a Welcome that accept_welcome keeps. The limits go into `client`. */
struct accepted {
    struct pwc_client *client;
    uint32_t version, rings;
    char release[16];
};

static int accept_welcome(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__Welcome *welcome = reply->welcome;
    struct accepted *accepted = context;
    struct pwc_client *client = accepted->client;

    accepted->rings = welcome->rings ? welcome->rings : SESSION_VERSION_UNSENT;
    snprintf(accepted->release, sizeof(accepted->release), "%s",
             *welcome->release ? welcome->release : "0.1");
    accepted->version = welcome->version;
    client->packed_max = welcome->packed_max;
    client->bounce_max = welcome->bounce_max;
    client->message_max = welcome->message_max;
    client->node = welcome->node;
    client->instance = welcome->instance;
    if (client->size == PWC_OPEN) /* else the caller gave the rank */
        client->rank = welcome->rank;
    return 1;
}

/* 0, or -EPROTONOSUPPORT with its text. */
static int check_versions(struct pwc_client *client, const struct accepted *daemon)
{
    bool daemon_is_older = daemon->version < VERSION_MIN || daemon->rings < SESSION_VERSION;
    char why[DAEMON_TEXT_MAX];

    if (daemon->version >= VERSION_MIN && daemon->version <= VERSION_MAX &&
        daemon->rings == SESSION_VERSION)
        return 0;
    snprintf(why, sizeof(why),
             "library %s speaks versions %d to %d with rings %u, daemon %s version %u with rings "
             "%u: upgrade %s",
             RELEASE, VERSION_MIN, VERSION_MAX, SESSION_VERSION, daemon->release, daemon->version,
             daemon->rings,
             daemon_is_older ? "the daemon, pwcd" : "the library, and build the program anew");
    return daemon_link_refuse(&client->link, -EPROTONOSUPPORT, why);
}

static int say_hello(struct pwc_client *client, const struct environment *environment)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;
    struct accepted accepted = {.client = client};
    int rc;

    hello.version_min = VERSION_MIN;
    hello.version_max = VERSION_MAX;
    hello.job = (char *)(uintptr_t)environment->job;
    hello.rank = environment->rank;
    hello.size = environment->size;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    hello.release = (char *)(uintptr_t)RELEASE;
    hello.rings = SESSION_VERSION;
    request.hello = &hello;
    rc = daemon_call(&client->link, &request, PWC__CLIENT_REPLY__BODY_WELCOME, accept_welcome,
                     &accepted);
    return rc == 0 ? check_versions(client, &accepted) : rc;
}

/* Makes a client, without the greeting. Owns `fd` on success. */
static int client_open(const struct environment *environment, int fd, struct pwc_client **out)
{
    struct pwc_client *client = calloc(1, sizeof(*client));
    int rc;

    if (!client)
        return -ENOMEM;
    rc = fork_guard_open(&client->guard);
    if (rc < 0) {
        free(client);
        return rc;
    }
    client->rank = environment->rank;
    client->size = environment->size;
    pthread_mutex_init(&client->lock, NULL);
    daemon_link_open(&client->link, fd, environment->timeout_ms);
    span_table_init(&client->spans);
    landing_table_init(&client->landings);
    segments_init(&client->segments, &client->link, &client->spans);
    tracts_init(&client->tracts, &client->link, &client->spans);
    *out = client;
    return 0;
}

static void client_close(struct pwc_client *client)
{
    /* Hang up first, so that the daemon writes nothing more into memory that is unmapped below. */
    daemon_link_close(&client->link);
    FAULT(DETACHED);
    while (client->contexts) {
        struct pwc_ctx *ctx = client->contexts;

        client->contexts = ctx->next;
        context_free(ctx);
    }
    while (client->regions) {
        struct pwc_region *region = client->regions;

        client->regions = region->next;
        free(region);
    }
    loaded_free(client);
    tracts_destroy(&client->tracts);
    segments_destroy(&client->segments);
    span_table_destroy(&client->spans);
    landing_table_destroy(&client->landings);
    pthread_mutex_destroy(&client->lock);
    fork_guard_close(&client->guard);
    free(client->world_joins);
    free(client);
}

/* Connects and sends this process's identity. -EAGAIN: the daemon has too many connections at
 * present. */
static int attach(const struct environment *environment, char *why, size_t why_size,
                  struct pwc_client **out)
{
    struct pwc_client *client;
    int fd = connect_daemon(environment, why, why_size), rc = fd;

    if (rc < 0)
        return rc;
    rc = client_open(environment, fd, &client);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    rc = say_hello(client, environment);
    if (rc == 0) {
        *out = client;
        return 0;
    }
    daemon_link_text(&client->link, why, why_size);
    client_close(client);
    return rc;
}

/* Many ranks attach at once. A daemon accepts a bounded number of a user's connections that have
 * not sent a Hello; the others try again. */
static int attach_until(const struct environment *environment, char *why, size_t why_size,
                        struct pwc_client **out)
{
    int64_t deadline = deadline_after_ms(environment->timeout_ms);
    int rc;

    while ((rc = attach(environment, why, why_size, out)) == -EAGAIN &&
           deadline_poll_ms(deadline) != 0)
        (void)poll(NULL, 0, RETRY_MS);
    return rc == -EAGAIN ? -EDQUOT : rc;
}

int pwc_init(const struct pwc_attr *attr, pwc_client **out)
{
    static const struct pwc_attr defaults;
    char why[DAEMON_TEXT_MAX] = "";
    struct environment environment;
    int rc;

    if (!attr)
        attr = &defaults;
    rc = handler_on_this_thread() ? -EDEADLK : 0;
    if (rc == 0)
        rc = environment_resolve(attr, &environment, why, sizeof(why));
    if (rc == 0)
        rc = attach_until(&environment, why, sizeof(why), out);
    if (rc == 0) {
        FAULT(ATTACH_WELCOMED);
        return 0;
    }
    if (attr->error && attr->error_size > 0)
        snprintf(attr->error, attr->error_size, "%s", *why ? why : pwc_strerror(rc));
    return rc;
}

/* Closes the contexts one after the other, so that peers see an orderly end; a hang-up alone would
 * look like a killed process. */
static void leave_in_order(struct pwc_client *client, int64_t deadline)
{
    int rc = 0;

    while (rc == 0 && client->contexts) {
        client->link.timeout_ms = deadline_poll_ms(deadline);
        rc = context_end(client->contexts);
    }
}

int pwc_finalize(pwc_client *client)
{
    int rc = client_may_block(client);
    uint64_t given_up;
    int64_t deadline;

    if (rc < 0)
        return rc;
    deadline = deadline_after_ms(client->link.timeout_ms);
    given_up = finish_contexts(client, deadline);
    leave_in_order(client, deadline);
    client_close(client);
    return given_up < INT_MAX ? (int)given_up : INT_MAX;
}

int pwc_abort(pwc_client *client)
{
    int rc = client_may_block(client);

    if (rc == 0)
        client_close(client);
    return rc;
}

uint32_t pwc_version(void)
{
    return PWC_VERSION_NUMBER;
}

uint32_t pwc_rank(const pwc_client *client)
{
    return client->rank;
}

uint32_t pwc_size(const pwc_client *client)
{
    return client->size;
}

size_t pwc_packed_max(const pwc_client *client)
{
    return client->packed_max;
}

size_t pwc_message_max(const pwc_client *client)
{
    return client->message_max;
}

size_t pwc_error_text(pwc_client *client, char *text, size_t size)
{
    return daemon_link_text(&client->link, text, size);
}
