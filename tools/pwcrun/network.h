/*
 * The nodes' network with --netns: one network namespace for each node, and one for the bridge that
 * joins them, so that the machine's own network stays as it is.
 *
 *     pwcrun-PID-0        pwcrun-PID-1                 pwcrun-PID-bridge
 *     +-------------+     +-------------+              +--------------------------+
 *     | 10.77.0.1   |     | 10.77.0.2   |              | br0 --- n0, n1, ...      |
 *     | eth0 -------+-----+-------------+--- veth -----+-> n0                     |
 *     +-------------+     +-------------+              +--------------------------+
 *
 * The names carry pwcrun's pid; so runs side by side do not clash.
 */
#ifndef PWCRUN_NETWORK_H
#define PWCRUN_NETWORK_H

#include <stddef.h>
#include <sys/types.h>

#define NETWORK_NAME_MAX 40

struct network {
    pid_t owner;    /* pid of pwcrun */
    unsigned nodes; /* 0: no namespaces */
};

void network_name(const struct network *network, unsigned node, char out[NETWORK_NAME_MAX]);
void network_address(unsigned node, char out[16]);

/* Builds the network. Each command keeps `lifeline`, the writing end of the reaper's pipe: if
 * pwcrun is killed, the reaper cleans after the command has ended. 0, or a negative errno after a
 * message on stderr. */
int network_up(const struct network *network, int lifeline);
/* Removes the network, also one that is only half built. */
void network_down(const struct network *network);

#endif
