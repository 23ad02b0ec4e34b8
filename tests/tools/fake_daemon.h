/* A daemon of one answer: what pwcctl must cope with, said by a socket of ours. */
#ifndef TESTS_TOOLS_FAKE_DAEMON_H
#define TESTS_TOOLS_FAKE_DAEMON_H

#include <pthread.h>
#include <stddef.h>

#define FAKE_ASKED_MAX 32

/* The thread of this daemon serves one connection. The rest belongs to the test, before start and
 * after finish. */
struct fake_daemon {
    char path[108];
    int listener;
    pthread_t thread;
    const void *answer; /* whole frames, or what should have been some */
    size_t answer_size;
    char asked[FAKE_ASKED_MAX]; /* Inspect.what, as it came */
};

int fake_daemon_start(struct fake_daemon *daemon, const char *path, const void *answer,
                      size_t size);
void fake_daemon_finish(struct fake_daemon *daemon);

/* Make frames, which the caller frees. */
void *fake_inspected(const char *json, size_t *size);
void *fake_error(int status, const char *text, size_t *size);

#endif
