/* A fake daemon that gives one answer, right or wrong, to test how pwcctl copes with it. */
#ifndef TESTS_TOOLS_FAKE_DAEMON_H
#define TESTS_TOOLS_FAKE_DAEMON_H

#include <pthread.h>
#include <stddef.h>

#define FAKE_ASKED_MAX 32

/* The daemon's thread serves one connection. Before start and after finish the fields belong to the
 * test. */
struct fake_daemon {
    char path[108];
    int listener;
    pthread_t thread;
    const void *answer; /* bytes of the answer: whole frames, or something else */
    size_t answer_size;
    char asked[FAKE_ASKED_MAX]; /* Inspect.what of the request */
};

int fake_daemon_start(struct fake_daemon *daemon, const char *path, const void *answer,
                      size_t size);
void fake_daemon_finish(struct fake_daemon *daemon);

/* Make frames, which the caller frees. */
void *fake_inspected(const char *json, size_t *size);
void *fake_error(int status, const char *text, size_t *size);

#endif
