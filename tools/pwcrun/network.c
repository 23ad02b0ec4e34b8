/* Builds and removes network namespaces by ip(8). */
#include "tools/pwcrun/network.h"
#include "tools/pwcrun/child.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 24

void network_name(const struct network *network, unsigned node, char out[NETWORK_NAME_MAX])
{
    snprintf(out, NETWORK_NAME_MAX, "pwcrun-%d-%u", (int)network->owner, node);
}

static void bridge_name(const struct network *network, char out[NETWORK_NAME_MAX])
{
    snprintf(out, NETWORK_NAME_MAX, "pwcrun-%d-bridge", (int)network->owner);
}

void network_address(unsigned node, char out[16])
{
    unsigned host = node + 1;
    snprintf(out, 16, "10.77.%u.%u", host >> 8 & 0xff, host & 0xff);
}

/* Runs one command, given as words with single blanks between, which keeps `lifeline`; -1: none. */
__attribute__((format(printf, 2, 3))) static int run(int lifeline, const char *format, ...)
{
    char command[256], words[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);

    char *argv[WORDS_MAX + 1];
    size_t count = 0;
    char *rest = memcpy(words, command, sizeof(words)), *word;
    while (count < WORDS_MAX && (word = strsep(&rest, " ")) != NULL)
        argv[count++] = word;
    argv[count] = NULL;

    int status = child_run(argv, lifeline);
    if (status < 0)
        fprintf(stderr, "pwcrun: %s: %s (is the package iproute2 there?)\n", command,
                strerror(-status));
    else if (status != 0)
        fprintf(stderr, "pwcrun: \"%s\" failed with status %d\n", command, status);
    return status < 0 ? status : status > 0 ? -EIO : 0;
}

static int node_up(const struct network *network, unsigned node, const char *bridge, int lifeline)
{
    char name[NETWORK_NAME_MAX], address[16];
    network_name(network, node, name);
    network_address(node, address);
    int rc = run(lifeline, "ip netns add %s", name);
    if (rc == 0)
        rc = run(lifeline, "ip link add eth0 netns %s type veth peer name n%u netns %s", name, node,
                 bridge);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s link set n%u master br0 up", bridge, node);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s addr add %s/16 dev eth0", name, address);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s link set eth0 up", name);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s link set lo up", name);
    return rc;
}

int network_up(const struct network *network, int lifeline)
{
    char bridge[NETWORK_NAME_MAX];
    bridge_name(network, bridge);
    int rc = run(lifeline, "ip netns add %s", bridge);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s link add br0 type bridge", bridge);
    if (rc == 0)
        rc = run(lifeline, "ip -n %s link set br0 up", bridge);
    for (unsigned node = 0; rc == 0 && node < network->nodes; node++)
        rc = node_up(network, node, bridge, lifeline);
    return rc;
}

static void remove_namespace(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "/run/netns/%s", name);
    if (access(path, F_OK) == 0)
        run(-1, "ip netns del %s", name);
}

void network_down(const struct network *network)
{
    char name[NETWORK_NAME_MAX];
    for (unsigned node = 0; node < network->nodes; node++) {
        network_name(network, node, name);
        remove_namespace(name);
    }
    bridge_name(network, name);
    remove_namespace(name);
}
