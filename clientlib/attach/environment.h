/* This process's job and rank, and the socket of its daemon: from the attributes of pwc_init, else
 * from the environment. Thread: the caller of pwc_init. */
#ifndef PWC_CLIENTLIB_ENVIRONMENT_H
#define PWC_CLIENTLIB_ENVIRONMENT_H

#include <stdint.h>
#include "pwc/pwc.h"

#define ENVIRONMENT_SOCKET_MAX 108 /* sun_path, terminator included */
#define ENVIRONMENT_JOB_MAX    60  /* a job's name, terminator included */
#define ENVIRONMENT_TIMEOUT_MS 30000

struct environment {
    char socket[ENVIRONMENT_SOCKET_MAX]; /* "@name": an abstract socket (job_socket.h) */
    char other[ENVIRONMENT_SOCKET_MAX];  /* to try when `socket` does not answer; or empty */
    char job[ENVIRONMENT_JOB_MAX];
    uint32_t rank;
    uint32_t size;
    int timeout_ms;
};

/* 0, or -EINVAL with the reason in `why` (room for `why_size` bytes). */
int environment_resolve(const struct pwc_attr *attr, struct environment *out, char *why,
                        size_t why_size);

#endif
