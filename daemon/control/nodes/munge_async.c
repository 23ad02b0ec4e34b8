/* Owns the steps of a handshake that wait for munged (munge_async.h). Thread: control, and libuv's
 * pool. */
#include "daemon/control/nodes/munge_async.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/nodes/credential.h"

struct munge_async *munge_async_new(const char *theirs)
{
    struct munge_async *v = calloc(1, sizeof(*v));

    if (v && theirs && !(v->theirs = strdup(theirs))) {
        free(v);
        return NULL;
    }
    return v;
}

void munge_async_free(struct munge_async *v)
{
    if (!v)
        return;
    free(v->theirs);
    free(v->ours);
    free(v);
}

/* Opens the other side's credential, and refuses a valid one of another user. */
static int open_theirs(struct munge_async *v)
{
    uid_t uid;
    int rc =
        credential_open(v->theirs, v->payload, sizeof(v->payload), &uid, v->why, sizeof(v->why));

    if (rc == 0 && uid != geteuid()) {
        snprintf(v->why, sizeof(v->why),
                 "the other daemon is user %u's by its credential, this one is user %u's: run both "
                 "as one user",
                 (unsigned)uid, (unsigned)geteuid());
        rc = -EACCES;
    }
    return rc;
}

static void run(uv_work_t *work)
{
    struct munge_async *v = work->data;

    if (v->theirs)
        v->status = open_theirs(v);
    if (v->status == 0 && v->make)
        v->status = credential_make(v->mac, sizeof(v->mac), &v->ours, v->why, sizeof(v->why));
}

static void ran(uv_work_t *work, int status)
{
    struct munge_async *v = work->data;

    if (status < 0 && v->status == 0) {
        v->status = status;
        snprintf(v->why, sizeof(v->why), "%s", uv_strerror(status));
    }
    v->done(v);
}

int munge_async_start(struct munge_async *v, uv_loop_t *loop)
{
    v->work.data = v;
    return uv_queue_work(loop, &v->work, run, ran);
}

int munge_works(char *why, size_t why_size)
{
    uint8_t payload[HANDSHAKE_MAC_BYTES] = {0};
    char *credential = NULL;
    uid_t uid;
    int rc = credential_make(payload, sizeof(payload), &credential, why, why_size);

    if (rc == 0)
        rc = credential_open(credential, payload, sizeof(payload), &uid, why, why_size);
    free(credential);
    return rc;
}
