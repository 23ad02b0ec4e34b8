/* The command line of pwcctl. */
#ifndef PWCCTL_OPTIONS_H
#define PWCCTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_SOCKETS_MAX 256u /* pwcrun --hold names one for each of its nodes */

struct options {
    char socket[108];
    char held[OPTIONS_SOCKETS_MAX * 108]; /* the sockets of pwcrun --hold */
    const char *what;                     /* status, nodes, clients, ... */
    bool json;
    double watch; /* seconds between two looks; 0: one look */
    bool upgrade;
    bool doctor;
    bool trace;
    const char *out; /* for trace: the file */
    double seconds;  /* for trace: how long */
    bool one_client; /* for trace: only this client of the engine is traced */
    uint32_t engine, client;
    const char *sockets[OPTIONS_SOCKETS_MAX]; /* all that were given, or the default */
    uint32_t socket_count;
    bool check, disassemble;
    const char *program; /* for upgrade (NULL: the daemon's own), check and disassemble */
    bool top;
    bool batch;     /* top prints lines */
    unsigned count; /* in batch: how many looks; 0: without end */
};

/* 0: run; 1: help or the version was printed; -EINVAL: the command line is wrong, and stderr has
 * the reason. */
int options_parse(struct options *out, int argc, char **argv);

/* Reads a number that a view shows, "N" or "ENGINE.N". 0, or -EINVAL. */
int options_handle(const char *text, uint32_t *engine, uint32_t *number);

#endif
