/* Owns the calls to MUNGE's library (credential.h). Thread: any. */
#include "daemon/control/nodes/credential.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef PWC_MUNGE
#include <munge.h>

static int failed(const char *what, munge_err_t error, munge_ctx_t context, char *why,
                  size_t why_size)
{
    const char *more = context ? munge_ctx_strerror(context) : NULL;

    snprintf(why, why_size, "%s: %s", what, more ? more : munge_strerror(error));
    return error == EMUNGE_SOCKET || error == EMUNGE_TIMEOUT ? -ECONNREFUSED : -EACCES;
}

int credential_make(const uint8_t *payload, size_t size, char **out, char *why, size_t why_size)
{
    munge_ctx_t context = munge_ctx_create();
    munge_err_t error = EMUNGE_NO_MEMORY;
    int rc;

    if (context)
        error = munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (error == EMUNGE_SUCCESS)
        error = munge_encode(out, context, payload, (int)size);
    rc = error == EMUNGE_SUCCESS
             ? 0
             : failed("munged gives us no credential", error, context, why, why_size);
    if (context)
        munge_ctx_destroy(context);
    return rc;
}

int credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid, char *why,
                    size_t why_size)
{
    void *bytes = NULL;
    int length = 0, rc = 0;
    gid_t gid;
    munge_err_t error = munge_decode(credential, NULL, &bytes, &length, uid, &gid);

    if (error != EMUNGE_SUCCESS) {
        rc = failed("munged does not take its credential", error, NULL, why, why_size);
    } else if ((size_t)length != size) {
        snprintf(why, why_size, "its credential has a payload of %d bytes, not %zu", length, size);
        rc = -EACCES;
    } else {
        memcpy(payload, bytes, size);
    }
    free(bytes);
    return rc;
}

#else

static int unsupported(char *why, size_t why_size)
{
    snprintf(why, why_size, "this pwcd was built without MUNGE");
    return -ENOTSUP;
}

int credential_make(const uint8_t *payload, size_t size, char **out, char *why, size_t why_size)
{
    return unsupported(why, why_size);
}

int credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid, char *why,
                    size_t why_size)
{
    return unsupported(why, why_size);
}
#endif
