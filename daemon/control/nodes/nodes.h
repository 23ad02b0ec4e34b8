/*
 * The list of nodes: host and port of each node, by its number. Thread: any; read-only once parsed.
 *
 * A node has as many engines as progress threads. In engines, in keys and on the wire, each engine
 * is a peer with one number, which is the same on all nodes:
 *
 *     engine 0 of nodes 0, 1, .. n-1 | engine 1 of nodes 0, 1, .. n-1 | engine 2 ...
 *
 * so the engine of a node with one engine has the node's number. How many engines another node has
 * is learned when it is linked.
 */
#ifndef PWC_CONTROL_NODES_H
#define PWC_CONTROL_NODES_H

#include <stddef.h>
#include <stdint.h>

#define NODES_MAX         16384u
#define NODE_HOST_MAX     256u
#define NODES_ENGINES_MAX 16u /* of one node */

struct node_address {
    char host[NODE_HOST_MAX];
    char port[6];
};

struct node_list {
    struct node_address *nodes;
    uint32_t count;
};

/* The most engines that a node may have in a cluster of `nodes`: the wire has room for 16384
 * numbers. */
static inline uint32_t nodes_engines_max(uint32_t nodes)
{
    return NODES_MAX / nodes < NODES_ENGINES_MAX ? NODES_MAX / nodes : NODES_ENGINES_MAX;
}

static inline uint32_t nodes_number(uint32_t nodes, uint32_t node, uint32_t engine)
{
    return engine * nodes + node;
}

/* Parses "host:port,host:port", also "[v6]:port". With `separator` '\n', each line has one entry,
 * and # begins a comment. -EINVAL, -E2BIG, -ENOMEM with the reason, value and remedy in `why`. */
int node_list_parse(struct node_list *list, const char *text, char separator, char *why,
                    size_t why_size);
int node_list_load(struct node_list *list, const char *path, char *why, size_t why_size);
void node_list_free(struct node_list *list);

#endif
