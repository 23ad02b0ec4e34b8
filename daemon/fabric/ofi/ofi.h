/*
 * The fabric over libfabric: a domain with one or several reliable-datagram endpoints (rails), or
 * with message endpoints; one completion queue; and a thread of its own that registers memory.
 *
 * Thread: the progress thread, as fabric.h says, and the registration thread (ofi_memory.c).
 *
 * Decisions that libfabric leaves to its user:
 * - Where no provider is named, the first one in libfabric's order that can do what we need is
 *   chosen. A named provider without reliable datagrams is used with message endpoints, one for
 *   each peer: both sides have to connect, and to connect again after a break.
 * - disconnect ends every operation under way with -ECANCELED; it is not known whether the
 *   operation was placed. Some providers keep the transport's connection to a removed peer
 *   (`tcp;ofi_rxm`, `net`), so earlier writes and reads of both sides may still be carried out.
 *   Once memory has been dropped no write or read begins there, but one that had begun goes on.
 *   libfabric 1.17 can close such connections (FI_AV_REMOVE_CLEANUP), but then the process crashes
 *   in fi_av_remove where a write of the peer has begun, or where no connection could be made.
 * - Our rail i is connected to rail i of each peer, and there is no order between rails. Each post
 *   uses the rail with the fewest bytes under way. A peer with another number of rails is refused
 *   (-EPROTO). When one rail loses a peer, the peer is lost.
 * - Towards a peer that died silently every post may return -EAGAIN: the caller decides whether the
 *   peer lives.
 */
#ifndef PWC_FABRIC_OFI_H
#define PWC_FABRIC_OFI_H

#include <stddef.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

/* Zero and NULL mean the default. */
struct ofi_config {
    const char *provider; /* its name in libfabric; default: the first one that can do what we
                           * need */
    const char *bind;     /* IP address or interface; default 127.0.0.1 */
    const char *name;     /* name of this endpoint, for a provider that keeps endpoints in /dev/shm.
                           * Files there that a killed process with this name has left are removed.
                           * Default: a name with the pid and the process group, and
                           * nothing is removed */
    uint32_t peers_max;   /* 16384 */
    uint32_t operations_max; /* 4096: most writes and reads under way */
    uint32_t memories_max;   /* 4096 */
    uint32_t rails;          /* 1; or 2 or 4 */
    char *message;           /* where to write why ofi_open failed, or NULL */
    size_t message_size;
};

/* Sets what libfabric reads from the environment, unless the user has set it. Call it before there
 * is a second thread, and before the calls below. */
void ofi_prepare(void);

int ofi_open(const struct ofi_config *config, struct fabric **out);

/* The provider that was chosen, for status and the handshake. */
const char *ofi_provider_name(const struct fabric *fabric);

/* ---- without opening one --------------------------------------------------------------------- */

#define OFI_NAME_MAX 64u

/* Stores the name of the provider that ofi_open would use. Fails as ofi_open does: -ENODEV and
 * others. */
int ofi_choose(const struct ofi_config *config, char name[OFI_NAME_MAX]);
/* Stores all providers with reliable datagrams that can serve this address, in libfabric's order of
 * preference; returns how many. */
int ofi_providers(const char *bind, char names[][OFI_NAME_MAX], int room);

#endif
