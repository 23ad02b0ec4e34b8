/* Programs and offloads of a client, and the calls that libpwc exports only for libpwc-handlers,
 * which always has the same version. Thread: any; the client's lock guards its lists. */
#ifndef PWC_CLIENTLIB_LOADED_H
#define PWC_CLIENTLIB_LOADED_H

#include <stddef.h>
#include <stdint.h>
#include "pwc/offload.h"

/* Owned by the caller of pwc_program_load until pwc_program_unload, or the client's end. */
struct pwc_program {
    struct pwc_client *client;
    struct pwc_program *next; /* in the client's list */
    uint32_t number;          /* the daemon's */
};

/* Owned by the caller of pwc_offload_create until pwc_offload_destroy, or the client's end. */
struct pwc_offload {
    struct pwc_client *client;
    struct pwc_offload *next; /* in the client's list */
    uint32_t session;
    uint32_t number; /* the daemon's */
};

/* Frees the programs and offloads that are left; the daemon drops its part with the client. Thread:
 * the one that ends the client. */
void loaded_free(struct pwc_client *client);

/* Loads an image (proto/handler_abi.h); errors as pwc_program_load. */
PWC_API int pwc_private_program_load(pwc_client *client, const void *image, size_t size,
                                     pwc_program **out);
/* Keeps `text` for pwc_error_text. Returns `error`. */
PWC_API int pwc_private_refuse(pwc_client *client, int error, const char *text);

#endif
