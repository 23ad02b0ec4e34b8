/* The private folder of one run: the daemons' sockets and the secret that they share. */
#ifndef PWCRUN_WORKDIR_H
#define PWCRUN_WORKDIR_H

#include <stddef.h>

struct workdir {
    char path[80];
    char secret[96]; /* path of the secret */
};

/* Makes the folder with mode 0700 under $XDG_RUNTIME_DIR, or /tmp. */
int workdir_create(struct workdir *out);
void workdir_remove(const struct workdir *dir);

#endif
