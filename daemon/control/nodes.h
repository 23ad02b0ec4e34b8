/* The list of nodes: host and port of each, by node number. Thread: any; read-only once parsed. */
#ifndef PWC_CONTROL_NODES_H
#define PWC_CONTROL_NODES_H

#include <stddef.h>
#include <stdint.h>

#define NODES_MAX     16384u
#define NODE_HOST_MAX 256u

struct node_address {
    char host[NODE_HOST_MAX];
    char port[6];
};

struct node_list {
    struct node_address *nodes;
    uint32_t count;
};

/* "host:port,host:port"; "[v6]:port" too. Or one a line with # comments, with `separator` '\n'.
 * -EINVAL, -E2BIG, -ENOMEM with the reason, value and remedy in `why`. */
int node_list_parse(struct node_list *list, const char *text, char separator, char *why,
                    size_t why_size);
int node_list_load(struct node_list *list, const char *path, char *why, size_t why_size);
void node_list_free(struct node_list *list);

#endif
