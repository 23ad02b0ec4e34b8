/* The command line of pwcrun. */
#ifndef PWCRUN_OPTIONS_H
#define PWCRUN_OPTIONS_H

#include <stdbool.h>
#include "tools/pwcrun/processors.h"

#define PWCRUN_NODES_MAX 256u
#define PWCRUN_RANKS_MAX 4096u

/* Exit statuses of pwcrun itself, as env(1) and timeout(1) have them. */
enum {
    PWCRUN_FAILED = 125,
    PWCRUN_NOT_EXECUTABLE = 126,
    PWCRUN_NOT_FOUND = 127,
};

struct options {
    unsigned nodes;
    unsigned ranks;
    char **words;             /* argv */
    const char *provider;     /* NULL: the daemon chooses */
    const char *protocol;     /* NULL: the daemon chooses */
    const char *rails;        /* NULL: the daemon chooses */
    const char *progress;     /* NULL: the daemon chooses */
    const char *delay_ns;     /* NULL: none */
    const char *daemon;       /* path of pwcd; NULL: look for it */
    const char **daemon_args; /* further arguments of every daemon; points into argv */
    unsigned daemon_arg_count;
    double grace_s;
    bool keep;
    bool netns;
    enum bind bind;
    bool hold;  /* daemons for ranks that another launcher starts */
    bool place; /* a rank of another launcher, for daemons that --hold has started */
    bool label;
    bool verbose;
    char **program; /* NULL-terminated, the rest of argv; may be empty with `hold` */
};

/* 0: run; 1: help or the version was printed; -EINVAL: the command line is wrong, and stderr has
 * the reason. */
int options_parse(struct options *out, int argc, char **argv);
void options_free(struct options *options);

#endif
