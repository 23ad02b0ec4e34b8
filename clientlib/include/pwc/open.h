/*
 * Open jobs: processes that come and go, find each other by name, and address each other by 32
 * bytes. Conventions as in pwc.h.
 *
 * A process that attaches with PWC_OPEN as the size joins an open job: the daemons give it the next
 * free rank; the number of processes is not fixed. A server publishes its address and a key under a
 * name; a client looks the name up, binds, and puts:
 *
 *     server                                       client
 *     pwc_init(size = PWC_OPEN), pwc_ctx_create    pwc_init(size = PWC_OPEN), pwc_ctx_create
 *     pwc_address(ctx, &card.address)
 *     pwc_region_key(region, &card.key)
 *     pwc_publish(client, "store", &card, ...) --> pwc_lookup(client, "store", &card, ..., 1000)
 *                                                  pwc_address_peer(client, &card.address, &peer)
 *                                                  pwc_bind(ctx, peer, &card.key, &store)
 *     the rid says that the data is there      <-- pwc_put(store, ...)
 *
 * Only processes of one user join a job. Addresses and names work in jobs of fixed size, too.
 */
#ifndef PWC_OPEN_H
#define PWC_OPEN_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a context is: plain data, which may be sent to peers by any means. Only the library
 * interprets the bytes. */
struct pwc_address {
    uint8_t bytes[32];
};

/*
 * The context's address. It names the context, its process and the job's instance, so it is invalid
 * as soon as one of these is gone: in an open job no rank and no context number is ever given
 * twice, and another job of this name has another instance. In a job of fixed size only the
 * instance is sure to differ: a new process with the rank of one that has ended, or a new context
 * with the number of one that was destroyed, has the old one's address.
 *
 * Never blocks. Only on the context's thread. -ENOTSUP: the daemon of the job's home is older than
 * 0.6, and gives jobs no instance.
 */
PWC_API int pwc_address(pwc_ctx *ctx, struct pwc_address *out);

/*
 * The peer at an address of this job, for pwc_bind. Never blocks, and asks no daemon: pwc_bind
 * finds out whether the peer still exists, and gives -EHOSTUNREACH where it does not. The bytes
 * need not be trusted. Any thread.
 *
 * -EINVAL: the bytes are no address, or an address of a later version; -EHOSTUNREACH: the address
 * belongs to another job, or to an instance of this job that has ended.
 */
PWC_API int pwc_address_peer(pwc_client *client, const struct pwc_address *address, pwc_peer *out);

enum {
    PWC_NAME_MAX = 63,           /* characters of a published name: printable, no spaces */
    PWC_PUBLISHED_MAX = 1024,    /* bytes under a name */
    PWC_PUBLISHED_NAMES_MAX = 16 /* names of one process at a time */
};

/*
 * Publish `len` bytes under a name in this job; processes of the job find them by pwc_lookup. The
 * bytes are copied. If this process has published the name before, the new bytes replace the old
 * ones. The name ends with pwc_unpublish or with the process, also when that is killed, and
 * outlives restarts of daemons. Blocks. Any thread.
 *
 * -EINVAL: no name, a name over PWC_NAME_MAX or with other characters, or over PWC_PUBLISHED_MAX
 * bytes; -EADDRINUSE: another live process has published the name; -EDQUOT: this process has
 * PWC_PUBLISHED_NAMES_MAX names, or its user has used up its share of the home's memory; -ENOSPC:
 * the job has 1024 names; -EHOSTDOWN: the node of the job's home cannot be reached; -ESTALE: the
 * home has lost its state, and does not know this process; -ENOTSUP: the home's daemon is older
 * than 0.6.
 */
PWC_API int pwc_publish(pwc_client *client, const char *name, const void *data, size_t len);

/* Takes back a name that this process has published. Blocks. Any thread. -ENOENT: this process has
 * not published it; other errors as pwc_publish. */
PWC_API int pwc_unpublish(pwc_client *client, const char *name);

/*
 * Find what is published under a name. At the call `*len` is the room at `data` in bytes;
 * afterwards it is the number of bytes found. Where the name is not published yet, the call waits
 * for it up to `timeout_ms`; 0 looks once, a negative value waits for ever. Blocks, without running
 * handlers. Any thread.
 *
 * -ENOENT: the name was not published, or not in time; -EMSGSIZE: `data` is too small; -EINVAL: as
 * pwc_publish; -ENOSPC: 4096 lookups of the job wait already; -ENOBUFS: 128 lookups of this process
 * wait already; -EDQUOT, -EHOSTDOWN, -ESTALE, -ENOTSUP: as pwc_publish.
 */
PWC_API int pwc_lookup(pwc_client *client, const char *name, void *data, size_t *len,
                       int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
