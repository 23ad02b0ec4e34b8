/* The command line of pwcctl. */
#ifndef PWCCTL_OPTIONS_H
#define PWCCTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_SOCKETS_MAX 16u

struct options {
    char socket[108];
    const char *what; /* status, nodes, clients, ... */
    bool json;
    double watch; /* seconds between two looks; 0: one look */
    bool upgrade;
    bool doctor;
    bool trace;
    const char *out;                          /* of trace: the file */
    double seconds;                           /* of trace */
    long client;                              /* of trace: of this one alone; -1: of all */
    const char *sockets[OPTIONS_SOCKETS_MAX]; /* all that were given, or the default */
    uint32_t socket_count;
    bool check, disassemble;
    const char *program; /* of upgrade; NULL: the daemon's own; of check and disassemble */
    bool top;
    bool batch;     /* top prints lines */
    unsigned count; /* of looks in batch; 0: without end */
};

/* 0: run; 1: help or the version was printed; -EINVAL: the command line is wrong, and stderr has
 * the reason. */
int options_parse(struct options *out, int argc, char **argv);

#endif
