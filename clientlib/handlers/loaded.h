/*
 * Programs that a client has loaded, and what libpwc gives to libpwc-handlers alone: the two are of
 * one version, always. Thread: any.
 */
#ifndef PWC_CLIENTLIB_LOADED_H
#define PWC_CLIENTLIB_LOADED_H

#include <stddef.h>
#include <stdint.h>
#include "pwc/offload.h"

/* Owned by the caller of pwc_program_load, until pwc_program_unload. */
struct pwc_program {
    struct pwc_client *client;
    uint32_t number; /* the daemon's */
};

/* Loads an image (proto/handler_abi.h); errors as pwc_program_load. */
PWC_API int pwc_private_program_load(pwc_client *client, const void *image, size_t size,
                                     pwc_program **out);
/* Keeps `text` for pwc_error_text. Returns `error`. */
PWC_API int pwc_private_refuse(pwc_client *client, int error, const char *text);

#endif
