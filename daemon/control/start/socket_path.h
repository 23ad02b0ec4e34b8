/*
 * Finds the path of the daemon's socket, makes its directory, and takes the lock beside it. An
 * abstract socket, "@name", has no file at all.
 *
 * Thread: main, at start and end.
 */
#ifndef PWC_CONTROL_SOCKET_PATH_H
#define PWC_CONTROL_SOCKET_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include "daemon/control/survive/store.h"

#define SOCKET_PATH_MAX 108u /* of a Unix socket, with the terminator */

struct socket_path {
    char path[SOCKET_PATH_MAX];
    char counters[SOCKET_PATH_MAX + 16]; /* counters and lock are empty beside an abstract socket */
    char lock[SOCKET_PATH_MAX + 16];
    int lock_fd;
    int listen_fd;
    bool inherited; /* the socket is systemd's: we do not unlink it */
};

/* Sets the paths: as configured, or the user's default if `configured` is NULL. -ENAMETOOLONG,
 * -ENOENT. */
int socket_path_find(struct socket_path *s, const char *configured, char *why, size_t why_size);
/*
 * Makes the directory, takes the lock, replaces a stale socket and listens. -EADDRINUSE: a daemon
 * serves there already. A lock and a socket that an earlier process of this daemon has left are
 * taken over. `system`: other users may reach the socket.
 */
int socket_path_open(struct socket_path *s, struct store *store, bool system, char *why,
                     size_t why_size);
/* Unlinks and closes socket and lock. */
void socket_path_close(struct socket_path *s);

#endif
