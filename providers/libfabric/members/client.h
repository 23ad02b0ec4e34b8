/*
 * The provider's way to the daemon: whether there is one, a client in the open job, and addresses
 * of contexts, which any process of the user may use.
 */
#ifndef PWC_PROVIDER_CLIENT_H
#define PWC_PROVIDER_CLIENT_H

#include <pwc/pwc.h>

#define CLIENT_ADDRESS_BYTES 32

/* 0 where a daemon listens at the socket that pwc_init would choose, or a negative errno. Never
 * blocks, starts nothing, prints nothing. */
int client_reachable(void);

/* Attaches to the daemon. Blocks. The reason of a failure goes to libfabric's log. */
int client_open(pwc_client **out);

/* Writes the address of a context, as plain bytes. */
int client_address(pwc_ctx *ctx, uint8_t address[CLIENT_ADDRESS_BYTES]);

/* Finds the peer that has an address. Never blocks. -EHOSTUNREACH: no context has this address any
 * more; -EINVAL: these bytes are no address. */
int client_peer(pwc_client *client, const uint8_t address[CLIENT_ADDRESS_BYTES], pwc_peer *out);

/* Makes a region of memory that peers may reach with these rights, with a key of its own. Blocks.
 * Errors as pwc_register. */
int client_share(pwc_client *client, void *address, size_t length, unsigned rights,
                 pwc_region **out);

#endif
