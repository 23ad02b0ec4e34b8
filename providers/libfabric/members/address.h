/*
 * An endpoint's address, as fi_getname gives it and fi_av_insert takes it: a context, and the key
 * of its client's table of keys (keys.h). An address is plain bytes; endpoints of different nodes
 * have the same byte order.
 */
#ifndef PWC_PROVIDER_ADDRESS_H
#define PWC_PROVIDER_ADDRESS_H

#include <pwc/pwc.h>
#include <rdma/fabric.h>
#include "providers/libfabric/members/client.h"

/* The form of an address is this provider's own: applications see only bytes. */
#define ADDRESS_FORMAT FI_FORMAT_UNSPEC

struct address {
    uint8_t context[CLIENT_ADDRESS_BYTES];
    struct pwc_key keys;
};

#endif
