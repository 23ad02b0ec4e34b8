/*
 * Lists of hosts as Slurm writes them: "login,n[1-3,07],rack[0-1]n[00-15]". Names are in the order
 * of the list; where a name has several brackets, the number of the last one changes fastest; a
 * range keeps the leading zeros of its first number.
 *
 * Thread: main, at start.
 */
#ifndef PWC_CONTROL_HOSTLIST_H
#define PWC_CONTROL_HOSTLIST_H

#include <stddef.h>
#include <stdint.h>
#include "daemon/control/nodes/nodes.h"

struct hostlist {
    char (*names)[NODE_HOST_MAX];
    uint32_t count;
};

/* Returns 0, -EINVAL, -E2BIG (more than NODES_MAX names) or -ENOMEM, with the reason in `why`. */
int hostlist_expand(struct hostlist *list, const char *text, char *why, size_t why_size);
void hostlist_free(struct hostlist *list);

#endif
