/* Owns the configuration that a job's daemon gets from its launcher (launch.h). Thread: main. */
#include "daemon/control/start/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/start/hostlist.h"
#include "daemon/control/start/pmix.h"
#include "proto/job_socket.h"
#include "daemon/control/nodes/munge_async.h"

static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int number_of(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 ? 0 : -EINVAL;
}

int launch_port(const char *id, uint32_t *out)
{
    uint64_t number;
    int rc = number_of(id, &number);

    if (rc == 0)
        *out = LAUNCH_PORT_FIRST + (uint32_t)(number % LAUNCH_PORT_COUNT);
    return rc;
}

static int set(struct config *config, const char *key, const char *value, char *why,
               size_t why_size)
{
    return config_set(config, key, value, CONFIG_ENVIRONMENT, why, why_size);
}

/* ---- the socket of the job's ranks ---------------------------------------------------------- */

/* Chooses the socket as libpwc does: PWC_SOCKET if it is set, else the name with the job's
 * number. */
static int set_socket(struct config *config, char *why, size_t why_size)
{
    const char *named = value_of("PWC_SOCKET"), *id = value_of("SLURM_JOB_ID");
    char name[108];

    if (config->socket)
        return 0;
    if (named)
        return set(config, "socket", named, why, why_size);
    if (!id || job_socket_name(name, sizeof(name), geteuid(), id) < 0) {
        snprintf(why, why_size,
                 "SLURM_JOB_ID is %s%s: start pwcd --job by srun, or name its socket by PWC_SOCKET",
                 id ? "no job's number: " : "not set", id ? id : "");
        return -EINVAL;
    }
    return set(config, "socket", name, why, why_size);
}

/* ---- the nodes of the job -------------------------------------------------------------------- */

static int list_nodes(struct hostlist *list, char *why, size_t why_size)
{
    /* Prefer the step's nodes, which may be fewer than the job's. */
    const char *text = value_of("SLURM_STEP_NODELIST");

    if (!text)
        text = value_of("SLURM_JOB_NODELIST");
    if (!text) {
        snprintf(why, why_size,
                 "neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is set: start pwcd --job by "
                 "srun, or give --nodes and --node");
        return -ENOENT;
    }
    return hostlist_expand(list, text, why, why_size);
}

/* Finds our own entry: by our name if Slurm gives it, else by our number. */
static int find_node(const struct hostlist *list, uint32_t *out, char *why, size_t why_size)
{
    const char *name = value_of("SLURMD_NODENAME"), *number = value_of("SLURM_NODEID");
    uint64_t value;

    for (uint32_t i = 0; name && i < list->count; i++)
        if (strcmp(list->names[i], name) == 0) {
            *out = i;
            return 0;
        }
    if (!name && number && number_of(number, &value) == 0 && value < list->count) {
        *out = (uint32_t)value;
        return 0;
    }
    if (!name && !number && list->count == 1) {
        *out = 0;
        return 0;
    }
    snprintf(why, why_size,
             "%s \"%s\" is none of the job's %u nodes: start pwcd --job by srun on each",
             name ? "SLURMD_NODENAME" : "SLURM_NODEID",
             name     ? name
             : number ? number
                      : "",
             list->count);
    return -EINVAL;
}

/* ---- our address and node number ------------------------------------------------------------ */

/* Finds the address that we use towards another node. The address of our own name will not do: on
 * many systems it is a loopback address. */
static int address_towards(const char *host, const char *port, char *to, size_t size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV};
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof(own);
    struct addrinfo *found;
    int s, rc;

    rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return rc == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL;
    /* Connecting a UDP socket sends nothing: the kernel only looks up the route. */
    s = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    rc = s < 0 || connect(s, found->ai_addr, found->ai_addrlen) != 0 ||
                 getsockname(s, (struct sockaddr *)&own, &length) != 0
             ? -errno
             : 0;
    if (s >= 0)
        close(s);
    freeaddrinfo(found);
    if (rc == 0 && getnameinfo((struct sockaddr *)&own, length, to, (socklen_t)size, NULL, 0,
                               NI_NUMERICHOST) != 0)
        rc = -EADDRNOTAVAIL;
    return rc;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Writes "n1:p,10.0.0.2:p,n3:p". Our own entry has the address in place of the name, because we
 * listen there. */
static char *nodes_text(const struct node_address *nodes, uint32_t count, uint32_t own,
                        const char *address)
{
    size_t room = count * (NODE_HOST_MAX + 16ull) + 1, used = 0;
    char *text = malloc(room);

    for (uint32_t i = 0; text && i < count; i++) {
        const char *host = i == own ? address : nodes[i].host;
        bool bracket = strchr(host, ':') != NULL;

        used += (size_t)snprintf(text + used, room - used, "%s%s%s%s:%s", i ? "," : "",
                                 bracket ? "[" : "", host, bracket ? "]" : "", nodes[i].port);
    }
    return text;
}

/* Sets a key, and its environment variable for processes that take our place (--keep) and do not
 * ask the launcher again. */
static int set_key(struct config *config, const char *key, const char *name, const char *value,
                   char *why, size_t why_size)
{
    return setenv(name, value, 1) == 0 ? set(config, key, value, why, why_size) : -ENOMEM;
}

static int set_nodes(struct config *config, const struct node_address *nodes, uint32_t count,
                     uint32_t own, char *why, size_t why_size)
{
    char number[16], address[64] = "127.0.0.1", *text;
    int rc = 0;

    if (count > 1) {
        const struct node_address *other = &nodes[(own + 1) % count];

        rc = address_towards(other->host, other->port, address, sizeof(address));
        if (rc < 0)
            snprintf(why, why_size,
                     "node \"%s\" of the job is not found by its name (%s): have it in /etc/hosts "
                     "or DNS, or give --nodes, --node and --address",
                     other->host, strerror(-rc));
    }
    if (rc < 0)
        return rc;
    text = nodes_text(nodes, count, own, address);
    if (!text)
        return -ENOMEM;
    snprintf(number, sizeof(number), "%" PRIu32, own);
    rc = set_key(config, "nodes", "PWCD_NODES", text, why, why_size);
    if (rc == 0)
        rc = set_key(config, "node", "PWCD_NODE", number, why, why_size);
    if (rc == 0)
        rc = set_key(config, "address", "PWCD_ADDRESS", address, why, why_size);
    free(text);
    return rc;
}

/* ---- by Slurm's environment ------------------------------------------------------------------ */

static int port_text(const struct config *config, char port[6], char *why, size_t why_size)
{
    const char *id = value_of("SLURM_JOB_ID");
    uint32_t number = (uint32_t)config->job_port;

    if (number == 0 && (!id || launch_port(id, &number) < 0)) {
        snprintf(why, why_size,
                 "SLURM_JOB_ID \"%.64s\" is no number, from which the daemons' port "
                 "would follow: give --job-port",
                 id ? id : "");
        return -EINVAL;
    }
    snprintf(port, 6, "%u", (unsigned)(uint16_t)number);
    return 0;
}

static int by_environment(struct config *config, char *why, size_t why_size)
{
    struct node_address *nodes = NULL;
    struct hostlist list = {0};
    uint32_t own;
    char port[6];
    int rc = list_nodes(&list, why, why_size);

    if (rc == 0)
        rc = find_node(&list, &own, why, why_size);
    if (rc == 0)
        rc = port_text(config, port, why, why_size);
    if (rc == 0 && !(nodes = calloc(list.count, sizeof(*nodes))))
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < list.count; i++) {
        memcpy(nodes[i].host, list.names[i], sizeof(nodes[i].host));
        memcpy(nodes[i].port, port, sizeof(port));
    }
    if (rc == 0)
        rc = set_nodes(config, nodes, list.count, own, why, why_size);
    free(nodes);
    hostlist_free(&list);
    return rc;
}

/* ---- by PMIx --------------------------------------------------------------------------------- */

static int bind_any(int family, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {.any.sa_family = (sa_family_t)family};
    socklen_t size = family == AF_INET6 ? sizeof(name.v6) : sizeof(name.v4);
    int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, no = 0, rc;

    if (s < 0)
        return -errno;
    if ((family == AF_INET6 && setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0) ||
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(s, &name.any, size) != 0 || getsockname(s, &name.any, &size) != 0) {
        rc = -errno;
        close(s);
        return rc;
    }
    *port = ntohs(family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
    return s;
}

int launch_hold_port(uint16_t *port)
{
    int s = bind_any(AF_INET6, port); /* this socket holds the IPv4 port, too */

    return s >= 0 ? s : bind_any(AF_INET, port);
}

/* Takes the configured port, or holds a free one. */
static int find_port(struct config *config, char port[6])
{
    uint16_t number = (uint16_t)config->job_port;

    if (number == 0) {
        config->port_held = launch_hold_port(&number);
        if (config->port_held < 0)
            return config->port_held;
    }
    snprintf(port, 6, "%u", (unsigned)number);
    return 0;
}

/* Makes a secret if nothing else is configured for authentication. All daemons use the one that
 * rank 0 made. */
static int make_secret(const struct config *config, char *to, size_t size)
{
    uint8_t bytes[24];
    char ignored[256];

    *to = '\0';
    if (config->auth == CONFIG_AUTH_MUNGE || config->secret || value_of("PWCD_SECRET") ||
        (config->auth == CONFIG_AUTH_AUTO && munge_works(ignored, sizeof(ignored)) == 0))
        return 0;
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -errno;
    sodium_bin2hex(to, size, bytes, sizeof(bytes));
    sodium_memzero(bytes, sizeof(bytes));
    return 0;
}

static int by_pmix(struct config *config, char *why, size_t why_size)
{
    const char *name = value_of("SLURMD_NODENAME");
    char secret[PMIX_SECRET_MAX];
    struct node_address ours = {0};
    struct pmix_nodes all;
    int rc = find_port(config, ours.port);

    if (name)
        snprintf(ours.host, sizeof(ours.host), "%s", name);
    else if (rc == 0 && gethostname(ours.host, sizeof(ours.host) - 1) != 0)
        rc = -errno;
    if (rc == 0)
        rc = make_secret(config, secret, sizeof(secret));
    if (rc == 0)
        rc = pmix_exchange(&all, &ours, secret, why, why_size);
    if (rc < 0)
        return rc;
    if (all.spare) {
        rc = 1;
    } else {
        rc = set_nodes(config, all.nodes, all.count, all.own, why, why_size);
        if (rc == 0 && all.secret[0])
            rc = setenv("PWCD_SECRET", all.secret, 1) == 0 ? 0 : -ENOMEM;
    }
    pmix_nodes_free(&all);
    return rc;
}

int launch_configure(struct config *config, bool alone, char *why, size_t why_size)
{
    const char *local = value_of("SLURM_LOCALID");
    int rc;

    if (config->nodes || config->nodes_file)
        return set_socket(config, why, why_size);
    if (pmix_offered() && alone)
        return set_socket(config, why, why_size);
    if (pmix_offered()) {
        rc = by_pmix(config, why, why_size);
        if (rc != -ENOTCONN) /* else no PMIx answers: its variables are left from another launch */
            return rc == 0 ? set_socket(config, why, why_size) : rc;
    }
    if (local && strcmp(local, "0") != 0)
        return 1;
    rc = set_socket(config, why, why_size);
    return rc == 0 ? by_environment(config, why, why_size) : rc;
}
