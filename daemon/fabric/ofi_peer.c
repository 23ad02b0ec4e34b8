/*
 * The peers of the libfabric fabric: from the caller's peer numbers to the provider's addresses,
 * connecting, disconnecting, and telling once that the transport lost one.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "ofi_private.h"

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

/* Providers take addresses on trust; these come from another machine. */
static bool address_fits(struct ofi *ofi, const struct fabric_address *address)
{
    if (address->size == 0 || address->size > FABRIC_ADDRESS_MAX)
        return false;
    if (ofi->named_addresses)
        return memchr(address->bytes, 0, address->size) == &address->bytes[address->size - 1];

    struct fabric_address ours;

    if (fabric_address_of(&ofi->fabric, &ours) || address->size != ours.size)
        return false;
    switch (ofi->info->addr_format) {
    case FI_SOCKADDR:
    case FI_SOCKADDR_IN:
    case FI_SOCKADDR_IN6:
        return memcmp(address->bytes, ours.bytes, sizeof(sa_family_t)) == 0;
    default:
        return true;
    }
}

static void remove_address(struct ofi *ofi, struct ofi_peer *peer)
{
    if (peer->inserted)
        (void)fi_av_remove(ofi->addresses, &peer->address, 1, 0);
    peer->inserted = false;
}

int ofi_connect(struct fabric *fabric, uint32_t number, const struct fabric_address *address)
{
    struct ofi *ofi = (struct ofi *)fabric;

    if (number >= ofi->peers.count || !address_fits(ofi, address))
        return -EINVAL;

    struct ofi_peer *peer = &ofi->peers.table[number];
    struct fabric_address *known = &ofi->peers.addresses[number];

    (void)ofi_disconnect(fabric, number);
    if (!peer->inserted || !same_address(known, address)) {
        /*
         * Where addresses are names, the new one goes in before the old one leaves: the shm
         * provider keeps what it knew of a place in its table, and would give the place again.
         */
        fi_addr_t inserted;
        int rc = fi_av_insert(ofi->addresses, address->bytes, 1, &inserted, 0, NULL);

        if (rc != 1)
            return rc < 0 ? ofi_error(rc) : -EADDRNOTAVAIL;
        remove_address(ofi, peer);
        peer->address = inserted;
        peer->inserted = true;
        *known = *address;
    }
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
        return 0;
    peer->connected = false;
    if (!ofi->named_addresses)
        remove_address(ofi, peer); /* closes the transport's connection, where it has one */
    if (peer->outstanding > 0)
        ofi_operations_cancel(&ofi->operations, number);
    peer->outstanding = 0;
    return 0;
}

void ofi_peer_broken(struct ofi_peers *peers, uint32_t number, int status)
{
    struct ofi_peer *peer = &peers->table[number];

    if (!peer->connected || peer->broken)
        return;
    peer->broken = status;
    if (peer->in_broken_chain)
        return; /* from before it was connected again */
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
