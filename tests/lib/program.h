/*
 * A program as a child: started with pipes from its streams, and ended within a limit. The child
 * dies with the thread that started it.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_LIB_PROGRAM_H
#define PWC_TESTS_LIB_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The streams of which the parent gets the reading end. */
enum program_stream {
    PROGRAM_OUT,
    PROGRAM_ERR,
    PROGRAM_READY, /* descriptor 3: --ready-fd 3 */
    PROGRAM_STREAMS
};

struct program_options {
    uid_t uid;           /* the user as which the child runs; 0: the test's own */
    const char *setting; /* "NAME=value" for its environment; NULL: none */
    unsigned streams;    /* 1 << enum program_stream */
};

/* Starts a program; `argv` ends with NULL. Returns the pid, and in `from` the reading ends of the
 * streams asked for, -1 for the others; or a negative errno. */
pid_t program_start(const char *const *argv, const struct program_options *options,
                    int from[PROGRAM_STREAMS]);
/* Waits up to 20 s until a daemon reports on PROGRAM_READY that it serves. */
bool program_is_ready(int from);
/* Waits for the end of a child, and sends SIGKILL after `limit_ms`. Returns its status as wait(2)
 * does. */
int program_reap(pid_t pid, int limit_ms);

#endif
