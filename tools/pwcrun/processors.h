/* The processors that a node's processes stay on, among those that pwcrun may use. */
#ifndef PWCRUN_PROCESSORS_H
#define PWCRUN_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>

enum bind {
    BIND_SHARE, /* each node has its share, where there are as many processors as nodes */
    BIND_ONE,   /* one processor a node */
    BIND_NONE,
};

/* Fills `out` for node `number` of `nodes`. False, and nothing filled: the node is not bound. */
bool processors_of(unsigned number, unsigned nodes, enum bind bind, cpu_set_t *out);

#endif
