/*
 * The service manager, played by a test: the other end of NOTIFY_SOCKET, to which a daemon that is
 * started from here on reports. One thread.
 */
#ifndef PWC_TESTS_CONTROL_MANAGER_H
#define PWC_TESTS_CONTROL_MANAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct manager {
    int socket;
    pid_t speaker;   /* the sender of the last message */
    char said[4096]; /* the last message */
};

/* Opens the socket, and sets NOTIFY_SOCKET. */
bool manager_open(struct manager *m);
/* Reads the next message, and closes its descriptors. Returns false if none comes in time. */
bool manager_hears(struct manager *m, int limit_ms);
/* Reads messages for 20 s at most until one has this text. */
bool manager_is_notified(struct manager *m, const char *text);

#endif
