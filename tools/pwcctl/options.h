/* The command line of pwcctl. */
#ifndef PWCCTL_OPTIONS_H
#define PWCCTL_OPTIONS_H

#include <stdbool.h>

struct options {
    char socket[108];
    const char *what; /* status, nodes, clients, ... */
    bool json;
    double watch; /* seconds between two looks; 0: one look */
    bool upgrade;
    bool doctor;
    const char *program; /* of upgrade; NULL: the daemon's own */
    bool top;
    bool batch;     /* top prints lines */
    unsigned count; /* of looks in batch; 0: without end */
};

/* 0: run; 1: all is done (help, version); -EINVAL: wrong, said on stderr. */
int options_parse(struct options *out, int argc, char **argv);

#endif
