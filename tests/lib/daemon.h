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
    uid_t uid; /* that it runs as; 0: ours */
    int log;   /* reading end of its standard error */
    char directory[64];
    char socket[96];
    char said[65536]; /* of its log, so far */
    size_t said_bytes;
};

/* Starts it with more arguments (NULL-terminated); returns when it serves. */
int daemon_start(struct daemon *d, const char *program, const char *const *arguments);
/* As that user and group (0: ours). */
int daemon_start_as(struct daemon *d, uid_t uid, const char *program, const char *const *arguments);
/* As a second one in the directory of another. `ready` false: it ended by itself. */
int daemon_start_beside(struct daemon *d, const struct daemon *first, const char *socket,
                        const char *program, const char *const *arguments, bool *ready);
/* SIGTERM; its exit status, or a negative errno. Removes the directory where it made one. */
int daemon_stop(struct daemon *d);
/* What a main returns: stops it, and prints a status that is not 0; 1 where that or `failed` is. */
int daemon_end(struct daemon *d, int failed);
/* SIGKILL. What it leaves in a directory of its own goes too. */
void daemon_kill(struct daemon *d);
/* Reads its log until this text is in it; false: it did not come within 20 s. */
bool daemon_says(struct daemon *d, const char *text);

/* Connects, to a daemon or to the socket of one; a negative errno. */
int raw_connect(const struct daemon *d);
int raw_connect_to(const char *path);
/* One frame with this body; with `fd` >= 0 as a descriptor beside. False: the daemon hung up. */
bool raw_send(int socket, const void *body, size_t size, int fd);
bool raw_request(int socket, uint32_t id, Pwc__ClientRequest *request);
/* The next reply, its descriptors in fds[3] (closed by the caller), or NULL: hang-up, or 20 s. */
Pwc__ClientReply *raw_reply(int socket, int fds[3], int *fd_count);
/* True: the daemon hangs up within 20 s. Reads and drops what it says before. */
bool raw_hangs_up(int socket);

/* Hello as a rank of a job; its status: 0 or the Error's. */
int raw_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Sends it, and does not wait for the reply. */
bool raw_ask_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Whether a client that behaves is served: Inspect status, answered. */
bool raw_is_served(const struct daemon *d);

#endif
