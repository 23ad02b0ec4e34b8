/*
 * Owns the peers of the libfabric fabric: finds the provider's addresses by the caller's numbers,
 * connects and disconnects, and reports once that the transport lost a peer.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "daemon/fabric/ofi/ofi_private.h"

int ofi_peers_open(struct ofi_peers *peers, uint32_t count)
{
    *peers = (struct ofi_peers){.count = count, .broken_head = OFI_NO_PEER};
    /* calloc leaves the pages of peers that never connect untouched. */
    peers->table = calloc(count, sizeof(*peers->table));
    peers->addresses = calloc(count, sizeof(*peers->addresses));
    return peers->table && peers->addresses ? 0 : -ENOMEM;
}

void ofi_peers_close(struct ofi_peers *peers)
{
    free(peers->table);
    free(peers->addresses);
}

static bool same_address(const struct fabric_address *a, const struct fabric_address *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* For how many rails an address is; 0: it makes no sense. */
static uint32_t rails_of(struct ofi *ofi, const struct fabric_address *address)
{
    struct fabric_address ours;
    uint32_t names = 0;

    if (address->size == 0 || address->size > FABRIC_ADDRESS_MAX)
        return 0;
    if (ofi->named_addresses) {
        for (uint32_t i = 0; i < address->size; i++)
            names += address->bytes[i] == 0;
        return address->bytes[address->size - 1] == 0 && address->size % names == 0 ? names : 0;
    }
    if (ofi_address(&ofi->fabric, &ours) || address->size % (ours.size / ofi->rail_count) != 0)
        return 0;
    return address->size / (ours.size / ofi->rail_count);
}

/* Checks an address, because it comes from another machine, and providers trust addresses. */
static int check_address(struct ofi *ofi, const struct fabric_address *address)
{
    uint32_t rails = rails_of(ofi, address);
    uint32_t size = rails ? address->size / rails : 0;
    struct fabric_address ours;

    if (rails == 0 || ofi_address(&ofi->fabric, &ours))
        return -EINVAL;
    for (uint32_t i = 0; i < rails; i++) {
        const uint8_t *one = address->bytes + i * size;
        bool fits = true;

        if (ofi->named_addresses)
            fits = memchr(one, 0, size) == one + size - 1;
        else if (ofi->info->addr_format >= FI_SOCKADDR && ofi->info->addr_format <= FI_SOCKADDR_IN6)
            fits = memcmp(one, ours.bytes, sizeof(sa_family_t)) == 0;
        if (!fits)
            return -EINVAL;
    }
    return rails == ofi->rail_count ? 0 : -EPROTO;
}

static void remove_from(struct ofi *ofi, const fi_addr_t *addresses, uint32_t rails)
{
    for (uint32_t i = 0; i < rails; i++) {
        fi_addr_t one = addresses[i];

        (void)fi_av_remove(ofi->rails[i].addresses, &one, 1, 0);
    }
}

static void remove_address(struct ofi *ofi, struct ofi_peer *peer)
{
    if (peer->inserted)
        remove_from(ofi, peer->addresses, ofi->rail_count);
    peer->inserted = false;
}

/* Inserts the address of each of the peer's rails into our rail's table. */
static int insert(struct ofi *ofi, const struct fabric_address *address, fi_addr_t *out)
{
    uint32_t size = address->size / ofi->rail_count;

    for (uint32_t i = 0; i < ofi->rail_count; i++) {
        int rc =
            fi_av_insert(ofi->rails[i].addresses, address->bytes + i * size, 1, &out[i], 0, NULL);

        if (rc != 1) {
            remove_from(ofi, out, i);
            return rc < 0 ? ofi_error(rc) : -EADDRNOTAVAIL;
        }
    }
    return 0;
}

/*
 * Whether a dead peer blocks the provider. The shm provider keeps awaited answers in one queue, and
 * does not look past an answer that a dead process will never give.
 */
static bool is_blocked(const struct ofi *ofi, uint32_t number)
{
    return ofi->named_addresses && ofi_operations_held(&ofi->operations, number);
}

int ofi_connect(struct fabric *fabric, uint32_t number, const struct fabric_address *address)
{
    struct ofi *ofi = (struct ofi *)fabric;
    int rc = number >= ofi->peers.count ? -EINVAL
             : ofi->messages            ? ofi_connection_check(ofi, address)
                                        : check_address(ofi, address);

    if (rc)
        return rc;

    struct ofi_peer *peer = &ofi->peers.table[number];
    struct fabric_address *known = &ofi->peers.addresses[number];

    (void)ofi_disconnect(fabric, number);
    if (ofi->messages) {
        rc = ofi_connection_open(ofi, peer, address);
        if (rc)
            return rc;
        goto connected;
    }
    if (peer->inserted && !same_address(known, address) && is_blocked(ofi, number))
        return -EOWNERDEAD;
    if (!peer->inserted || !same_address(known, address)) {
        /*
         * Where addresses are names, insert the new one before the old one is removed: the shm
         * provider keeps what it knows of a place in its table, and would use the same place again.
         */
        fi_addr_t inserted[OFI_RAILS_MAX] = {0};

        rc = insert(ofi, address, inserted);
        if (rc)
            return rc;
        remove_address(ofi, peer);
        memcpy(peer->addresses, inserted, sizeof(inserted));
        for (uint32_t i = 0; i < ofi->rail_count; i++)
            peer->endpoints[i] = ofi->rails[i].endpoint;
        peer->inserted = true;
        *known = *address;
    }
connected:
    peer->connected = true;
    peer->broken = 0;
    return 0;
}

int ofi_disconnect(struct fabric *fabric, uint32_t number)
{
    struct ofi *ofi = (struct ofi *)fabric;

    if (number >= ofi->peers.count)
        return -EINVAL;

    struct ofi_peer *peer = &ofi->peers.table[number];

    if (!peer->connected)
        return is_blocked(ofi, number) ? -EOWNERDEAD : 0;
    peer->connected = false;
    if (ofi->messages)
        ofi_connection_close(ofi, peer);
    else if (!ofi->named_addresses)
        remove_address(ofi, peer); /* some providers close the connection, too */
    if (peer->outstanding > 0)
        ofi_operations_cancel(&ofi->operations, number);
    peer->outstanding = 0;
    memset(peer->load, 0, sizeof(peer->load));
    return 0;
}

void ofi_peer_broken(struct ofi_peers *peers, uint32_t number, int status)
{
    struct ofi_peer *peer = &peers->table[number];

    if (!peer->connected || peer->broken)
        return;
    peer->broken = status;
    if (peer->in_broken_chain)
        return; /* the peer is in the chain already, from before it was connected again */
    peer->in_broken_chain = true;
    peer->next_broken = peers->broken_head;
    peers->broken_head = number;
}

int ofi_peers_deliver(struct ofi_peers *peers, struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && peers->broken_head != OFI_NO_PEER) {
        uint32_t number = peers->broken_head;
        struct ofi_peer *peer = &peers->table[number];

        peers->broken_head = peer->next_broken;
        peer->in_broken_chain = false;
        if (peer->connected && peer->broken)
            events[n++] = (struct fabric_event){
                .kind = FABRIC_BROKEN, .status = peer->broken, .peer = number};
    }
    return n;
}
