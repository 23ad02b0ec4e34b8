/*
 * A daemon as a child process on a socket of its own, and raw connections to it: for tests that do
 * what no library would. Every wait has a limit.
 */
#ifndef PWC_TESTS_LIB_DAEMON_H
#define PWC_TESTS_LIB_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "proto/control.pb-c.h"

struct daemon {
    pid_t pid;
    uid_t uid; /* the user that it runs as; 0: ours */
    int log;   /* the reading end of its standard error */
    char directory[64];
    char socket[96];
    char said[65536]; /* of its log, so far */
    size_t said_bytes;
};

/* Starts a daemon with more arguments (NULL-terminated); returns when it serves. */
int daemon_start(struct daemon *d, const char *program, const char *const *arguments);
/* As daemon_start, as that user and group (0: ours). */
int daemon_start_as(struct daemon *d, uid_t uid, const char *program, const char *const *arguments);
/* Starts a second daemon in the folder of another one. `ready` is false if it ended on its own. */
int daemon_start_beside(struct daemon *d, const struct daemon *first, const char *socket,
                        const char *program, const char *const *arguments, bool *ready);
/* Sends SIGTERM and waits. Returns the exit status, or a negative errno. Removes the folder if the
 * daemon made one. */
int daemon_stop(struct daemon *d);
/* Computes what main returns: stops the daemon and prints a status that is not 0; 1 where that
 * status or `failed` is not 0. */
int daemon_end(struct daemon *d, int failed);
/* Sends SIGKILL. Files in a folder of the daemon's own are removed too. */
void daemon_kill(struct daemon *d);
/* Reads the daemon's log until this text is in it. Returns false if it did not come within 20 s. */
bool daemon_says(struct daemon *d, const char *text);

/* Connect to a daemon, or to a daemon's socket; a negative errno on failure. */
int raw_connect(const struct daemon *d);
int raw_connect_to(const char *path);
/* Sends one frame with this body; with `fd` >= 0 a descriptor goes beside it. Returns false if the
 * daemon hung up. */
bool raw_send(int socket, const void *body, size_t size, int fd);
bool raw_request(int socket, uint32_t id, Pwc__ClientRequest *request);
/* Reads the next reply, with its descriptors in fds[3] (the caller closes them). NULL: hang-up, or
 * nothing within 20 s. */
Pwc__ClientReply *raw_reply(int socket, int fds[3], int *fd_count);
/* Returns true if the daemon hangs up within 20 s. Drops everything that it sends before. */
bool raw_hangs_up(int socket);

/* Sends Hello as a rank of a job. Returns the status: 0 or that of the Error. */
int raw_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Sends a request, and does not wait for the reply. */
bool raw_ask_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Returns whether a client that behaves is served: Inspect gets an answer. */
bool raw_is_served(const struct daemon *d);

#endif
