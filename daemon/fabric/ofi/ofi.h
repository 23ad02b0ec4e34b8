/*
 * The fabric over libfabric: one domain with one or several reliable-datagram endpoints (rails),
 * or message endpoints, one completion queue, and a thread of its own that registers memory.
 *
 * Thread: as fabric.h says; the registration thread is inside.
 *
 * Choices that libfabric leaves open are made here:
 * - A provider is chosen by what it can do, in libfabric's order of preference, unless named. One
 *   that is named, and has no reliable datagrams, is used by message endpoints, one for each peer:
 *   both sides have to connect, and after a break connect again.
 * - disconnect ends every outstanding operation with -ECANCELED: whether it was placed is not
 *   known. Some providers keep the transport connection to a removed peer, so writes and reads that
 *   either side posted before may still land: memory is safe from them once it has been dropped.
 * - Rail i of ours speaks to rail i of a peer, over a connection of its own: nothing is ordered
 *   between them. Each post takes the one with the fewest bytes outstanding. A peer of another
 *   number of rails is refused (-EPROTO). When one rail loses a peer, the peer is lost.
 * - A peer that died silently shows as -EAGAIN on every post: liveness is the caller's to judge.
 */
#ifndef PWC_FABRIC_OFI_H
#define PWC_FABRIC_OFI_H

#include <stddef.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

/* Zero and NULL mean the default. */
struct ofi_config {
    const char *provider; /* as libfabric names it; default: the first that fits */
    const char *bind;     /* IP address or interface; default 127.0.0.1 */
    const char *name;     /* of this endpoint where the provider keeps it in /dev/shm: what a killed
                             process of that name left there is removed. Default: made of the pid,
                             nothing is removed */
    uint32_t peers_max;   /* 16384 */
    uint32_t operations_max; /* 4096: outstanding writes and reads */
    uint32_t memories_max;   /* 4096 */
    uint32_t rails;          /* 1; or 2 or 4 */
    char *message;           /* where to say why opening failed, or NULL */
    size_t message_size;
};

int ofi_open(const struct ofi_config *config, struct fabric **out);

/* The provider that was chosen, for status and the handshake. */
const char *ofi_provider_name(const struct fabric *fabric);

/* ---- without opening one --------------------------------------------------------------------- */

#define OFI_NAME_MAX 64u

/* The provider that ofi_open would take; -ENODEV and other errors as ofi_open. */
int ofi_choose(const struct ofi_config *config, char name[OFI_NAME_MAX]);
/* Stores all providers with reliable datagrams that can serve this address, in libfabric's order of
 * preference; returns how many. */
int ofi_providers(const char *bind, char names[][OFI_NAME_MAX], int room);

#endif
