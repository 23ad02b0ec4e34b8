/*
 * A daemon as a child process on a socket of its own, and raw connections to it, for tests that do
 * what no library would. Every wait has a limit. Thread: the one that started the daemon.
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
    uid_t uid; /* the user as which the daemon runs; 0: the test's own */
    int log;   /* the reading end of its standard error */
    char directory[64];
    char socket[96];
    char said[65536]; /* the daemon's log so far */
    size_t said_bytes;
};

/* Starts a daemon with more arguments (NULL-terminated); returns when it serves. */
int daemon_start(struct daemon *d, const char *program, const char *const *arguments);
/* As daemon_start, with that user and group (0: the test's own). */
int daemon_start_as(struct daemon *d, uid_t uid, const char *program, const char *const *arguments);
/* Starts a second daemon in the folder of another one. `ready` becomes false if it ended by itself.
 */
int daemon_start_beside(struct daemon *d, const struct daemon *first, const char *socket,
                        const char *program, const char *const *arguments, bool *ready);
/* Sends SIGTERM and waits. Removes the folder if the daemon has one of its own. Returns the exit
 * status, or a negative errno: -ENOTEMPTY where the daemon has left files in the folder. */
int daemon_stop(struct daemon *d);
/* Stops the daemon, prints its status if that is not 0, and returns what main is to return: 1 where
 * the status or `failed` is not 0. */
int daemon_end(struct daemon *d, int failed);
/* Sends SIGKILL to the daemon, and removes the files if it has a folder of its own. */
void daemon_kill(struct daemon *d);
/* Reads the daemon's log until this text is in it. Returns false if the text did not come within 20
 * s. */
bool daemon_says(struct daemon *d, const char *text);

/* Connects to a daemon, or to a daemon's socket. Returns the socket or a negative errno. */
int raw_connect(const struct daemon *d);
int raw_connect_to(const char *path);
/* As raw_connect, as this user. Afterwards the process, which is root, is root again. */
int raw_connect_as(const struct daemon *d, uid_t uid);
/* Sends one frame with this body, and with `fd` >= 0 that descriptor. Returns false if the daemon
 * hung up. */
bool raw_send(int socket, const void *body, size_t size, int fd);
bool raw_request(int socket, uint32_t id, Pwc__ClientRequest *request);
/* Sends so many short requests in one write, with ids from 1. */
bool raw_requests(int socket, Pwc__ClientRequest *requests, uint32_t count);
/* Reads the next reply, with its descriptors in fds[3] (the caller closes them). Returns NULL after
 * a hang-up, or when nothing has come within 20 s. */
Pwc__ClientReply *raw_reply(int socket, int fds[3], int *fd_count);
/* Returns true if the daemon hangs up within 20 s. Drops everything that the daemon sends before.
 */
bool raw_hangs_up(int socket);

/* Sends Hello as a rank of a job. Returns the status: 0, or that of the Error. */
int raw_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Sends Hello, and does not wait for the reply. */
bool raw_ask_hello(int socket, const char *job, uint32_t rank, uint32_t size);
/* Returns whether a client that behaves is served: Inspect gets an answer. */
bool raw_is_served(const struct daemon *d);

#endif
