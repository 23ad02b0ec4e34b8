/* Plans and starts daemons. */
#include "tools/pwcrun/node.h"
#include "tools/find_pwcd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tools/pwcrun/child.h"

#define NETNS_PORT 7711u
#define OWN_ARGS   30u /* arguments that node_start gives, the terminator included */
#define QUOTE(x)   QUOTE_(x)
#define QUOTE_(x)  #x

extern char **environ;

/*
 * A port that is free now may be taken before the daemon binds it. So each run has a loopback
 * address of its own (all of 127/8 is loopback), and two runs do not compete for a port.
 */
static uint32_t loopback_address(pid_t owner)
{
    return 0x7f400000u | ((uint32_t)owner & 0x003fffffu);
}

/* Leaves a bound socket in *probe: the port stays taken until this socket is closed. */
static int free_port(uint32_t address, unsigned *port, int *probe)
{
    *probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*probe < 0)
        return -errno;
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    socklen_t length = sizeof(name);
    if (bind(*probe, (struct sockaddr *)&name, sizeof(name)) < 0 ||
        getsockname(*probe, (struct sockaddr *)&name, &length) < 0)
        return -errno;
    *port = ntohs(name.sin_port);
    return 0;
}

static int plan_loopback(struct node *nodes, unsigned count, pid_t owner)
{
    int probes[PWCRUN_NODES_MAX];
    struct in_addr address = {htonl(loopback_address(owner))};
    unsigned done = 0;
    int rc = 0;
    while (rc == 0 && done < count) {
        struct node *node = &nodes[done];
        inet_ntop(AF_INET, &address, node->host, sizeof(node->host));
        rc = free_port(ntohl(address.s_addr), &node->port, &probes[done]);
        done++;
    }
    for (unsigned i = 0; i < done; i++)
        if (probes[i] >= 0)
            close(probes[i]);
    return rc;
}

int nodes_plan(struct node *nodes, const struct options *options, const struct workdir *dir,
               const struct network *network)
{
    for (unsigned i = 0; i < options->nodes; i++) {
        struct node *node = &nodes[i];
        *node = (struct node){.number = i, .ready = -1, .log.from = -1};
        node->bound = processors_of(i, options->nodes, options->bind, &node->processors);
        snprintf(node->socket, sizeof(node->socket), "%s/%u.sock", dir->path, i);
        if (network->nodes > 0) {
            network_name(network, i, node->netns);
            network_address(i, node->host);
            node->port = NETNS_PORT;
        }
    }
    return network->nodes > 0 ? 0 : plan_loopback(nodes, options->nodes, network->owner);
}

char *nodes_sockets(const struct node *nodes, unsigned count)
{
    size_t room = sizeof("PWC_SOCKETS=") + count * sizeof(nodes->socket), used = 0;
    char *list = malloc(room);
    for (unsigned i = 0; list != NULL && i < count; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%s",
                                 i > 0 ? ":" : "PWC_SOCKETS=", nodes[i].socket);
    return list;
}

char *nodes_list(const struct node *nodes, unsigned count)
{
    size_t room = count * sizeof("255.255.255.255:65535,"), used = 0;
    char *list = malloc(room);
    for (unsigned i = 0; list != NULL && i < count; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%s:%u", i > 0 ? "," : "",
                                 nodes[i].host, nodes[i].port);
    return list;
}

int node_daemon_path(const struct options *options, char *out, size_t size)
{
    const char *named = options->daemon != NULL ? options->daemon : getenv("PWCD");
    if (named != NULL) {
        snprintf(out, size, "%s", named);
        if (access(out, X_OK) == 0)
            return 0;
        int rc = -errno;
        fprintf(stderr, "pwcrun: daemon \"%s\": %s\n", named, strerror(-rc));
        return rc;
    }
    find_pwcd(out, size);
    return 0;
}

int node_start(struct node *node, const char *daemon, const char *list,
               const struct options *options, const struct workdir *dir,
               const struct reaper *reaper)
{
    char number[16], label[24], fabric_address[16];
    snprintf(number, sizeof(number), "%u", node->number);
    snprintf(label, sizeof(label), "[pwcd %u] ", node->number);
    /* The fabric chooses its ports itself, so 127.0.0.1 is good enough for it. */
    snprintf(fabric_address, sizeof(fabric_address), "%s",
             node->netns[0] != '\0' ? node->host : "127.0.0.1");

    const char **argv = calloc(OWN_ARGS + options->daemon_arg_count, sizeof(*argv));
    if (argv == NULL)
        return -ENOMEM;
    const char *const own[] = {
        daemon,
        "--config",
        "none",
        "--socket",
        node->socket,
        "--node",
        number,
        "--nodes",
        list,
        "--secret",
        dir->secret,
        "--address",
        fabric_address,
        "--ready-fd",
        QUOTE(CHILD_EXTRA_FD),
        "--log",
        options->verbose ? "info" : "warning",
    };
    size_t count = sizeof(own) / sizeof(own[0]);
    memcpy(argv, own, sizeof(own));
    const char *const chosen[][2] = {
        {"--provider", options->provider}, {"--protocol", options->protocol},
        {"--rails", options->rails},       {"--progress", options->progress},
        {"--delay-ns", options->delay_ns},
    };
    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++)
        for (size_t k = 0; chosen[i][1] != NULL && k < 2; k++)
            argv[count++] = chosen[i][k];
    if (options->keep)
        argv[count++] = "--keep";
    for (unsigned i = 0; i < options->daemon_arg_count; i++)
        argv[count++] = options->daemon_args[i];

    int ready[2] = {-1, -1}, log = -1;
    int rc = pipe2(ready, O_CLOEXEC) < 0 ? -errno : 0;
    if (rc == 0)
        rc = output_open(&node->log, STDERR_FILENO, label, false, &log);
    if (rc == 0 && fcntl(ready[0], F_SETFL, O_NONBLOCK) < 0)
        rc = -errno;
    if (rc == 0) {
        struct child_spec spec = {
            .argv = (char *const *)argv,
            .envp = environ,
            .netns = node->netns[0] != '\0' ? node->netns : NULL,
            .processors = node->bound ? &node->processors : NULL,
            .out = log,
            .err = log,
            .extra = ready[1],
            .reaper = reaper,
        };
        rc = child_start(&spec, &node->pid);
        if (rc < 0)
            fprintf(stderr, "pwcrun: daemon \"%s\": %s (name its path with --daemon)\n", daemon,
                    strerror(-rc));
    }
    if (rc == 0) {
        node->ready = ready[0];
        ready[0] = -1;
    }
    if (ready[0] >= 0)
        close(ready[0]);
    if (ready[1] >= 0)
        close(ready[1]);
    if (log >= 0)
        close(log);
    free(argv);
    return rc;
}

int node_read_ready(struct node *node)
{
    char text[16];
    ssize_t got = read(node->ready, text, sizeof(text));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    close(node->ready);
    node->ready = -1;
    node->serving = got > 0;
    return got > 0 ? 1 : -EPIPE;
}
