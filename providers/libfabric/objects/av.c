/*
 * Owns address vectors. Any thread may call; the vector's lock keeps threads apart.
 */
#include "providers/libfabric/objects/av.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/objects/eq.h"
#include "providers/libfabric/refuse.h"

#define FIRST_ROOM 64

static struct av *av_of(struct fid_av *fid)
{
    return container_of(fid, struct av, fid);
}

static size_t peer_slot(const struct av *av, pwc_peer peer)
{
    return (size_t)((peer * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (av->peers_room - 1);
}

/* Enters a peer into the table; a later insertion of the same peer replaces the earlier one. */
static void note_peer(struct av *av, size_t number)
{
    size_t slot = peer_slot(av, av->entries[number].peer);

    while (av->peers[slot] != 0 &&
           av->entries[av->peers[slot] - 1].peer != av->entries[number].peer)
        slot = (slot + 1) & (av->peers_room - 1);
    av->peers[slot] = number + 1;
}

/* Fills the table of peers again; at most half of it is in use. */
static void note_all(struct av *av)
{
    memset(av->peers, 0, av->peers_room * sizeof(*av->peers));
    for (size_t i = 0; i < av->count; i++)
        if (av->entries[i].used && av->entries[i].known)
            note_peer(av, i);
}

static int make_room(struct av *av, size_t needed)
{
    size_t room = av->room ? av->room : FIRST_ROOM;
    struct av_entry *entries;
    uint64_t *peers;

    if (needed <= av->room)
        return 0;
    while (room < needed)
        room *= 2;
    entries = realloc(av->entries, room * sizeof(*entries));
    if (!entries)
        return -FI_ENOMEM;
    av->entries = entries;
    peers = realloc(av->peers, 2 * room * sizeof(*peers));
    if (!peers)
        return -FI_ENOMEM;
    av->peers = peers;
    av->peers_room = 2 * room;
    memset(entries + av->room, 0, (room - av->room) * sizeof(*entries));
    av->room = room;
    note_all(av);
    return 0;
}

static int insert_one(struct av *av, const struct address *address, fi_addr_t *out)
{
    size_t number = av->count;
    struct av_entry *entry;
    int rc = make_room(av, number + 1);

    if (rc < 0)
        return rc;
    entry = &av->entries[number];
    entry->address = *address;
    rc = client_peer(av->domain->client, address->context, &entry->peer);
    if (rc < 0 && rc != -EHOSTUNREACH)
        return rc;
    entry->used = true;
    entry->known = rc == 0;
    av->count++;
    if (entry->known)
        note_peer(av, number);
    *out = number;
    return 0;
}

static int av_insert(struct fid_av *fid, const void *addresses, size_t count, fi_addr_t *numbers,
                     uint64_t flags, void *context)
{
    struct av *av = av_of(fid);
    const char *bytes = addresses;
    int *errors = flags & FI_SYNC_ERR ? context : NULL;
    int good = 0;

    if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID) || flags & FI_AV_USER_ID)
        return -FI_EBADFLAGS;
    if (!addresses && count > 0)
        return -FI_EINVAL;
    lock_take(&av->lock);
    for (size_t i = 0; i < count; i++) {
        struct address address;
        fi_addr_t number = FI_ADDR_NOTAVAIL;
        int rc;

        memcpy(&address, bytes + i * sizeof(address), sizeof(address));
        rc = insert_one(av, &address, &number);
        if (rc == 0)
            good++;
        if (numbers)
            numbers[i] = number;
        if (errors)
            errors[i] = -rc;
    }
    lock_give(&av->lock);
    return good;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
                        fi_addr_t *number, uint64_t flags, void *context)
{
    return -FI_ENOSYS;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service,
                        size_t services, fi_addr_t *numbers, uint64_t flags, void *context)
{
    return -FI_ENOSYS;
}

/* Removes addresses. Their numbers are not used again, so a stale number reaches no peer. */
static int av_remove(struct fid_av *fid, fi_addr_t *numbers, size_t count, uint64_t flags)
{
    struct av *av = av_of(fid);
    int rc = 0;

    if (flags)
        return -FI_EINVAL;
    lock_take(&av->lock);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < av->count && av->entries[numbers[i]].used)
            av->entries[numbers[i]].used = false;
        else
            rc = -FI_EINVAL;
    }
    if (av->room)
        note_all(av);
    atomic_fetch_add_explicit(&av->removals, 1, memory_order_release);
    lock_give(&av->lock);
    return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t number, void *out, size_t *length)
{
    struct address address;
    int rc = av_find(av_of(fid), number, &address);

    if (rc < 0)
        return rc;
    memcpy(out, &address, *length < sizeof(address) ? *length : sizeof(address));
    *length = sizeof(address);
    return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *bytes, char *buf, size_t *length)
{
    const unsigned char *address = bytes;
    char text[2 * CLIENT_ADDRESS_BYTES + 16];
    int n = snprintf(text, sizeof(text), "fi_pwc://");

    for (unsigned i = 0; i < CLIENT_ADDRESS_BYTES; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x", address[i]);
    if (buf && *length)
        snprintf(buf, *length, "%s", text);
    *length = (size_t)n + 1;
    return buf;
}

int av_find(struct av *av, fi_addr_t number, struct address *out)
{
    int rc = -FI_EINVAL;

    lock_take(&av->lock);
    if (number < av->count && av->entries[number].used) {
        *out = av->entries[number].address;
        rc = 0;
    }
    lock_give(&av->lock);
    return rc;
}

int av_peer(struct av *av, fi_addr_t number, pwc_peer *out)
{
    struct address address;
    int rc = av_find(av, number, &address);

    return rc < 0 ? rc : client_peer(av->domain->client, address.context, out);
}

fi_addr_t av_number(struct av *av, pwc_peer peer)
{
    fi_addr_t number = FI_ADDR_NOTAVAIL;

    lock_take(&av->lock);
    if (av->peers_room) {
        for (size_t slot = peer_slot(av, peer); av->peers[slot] != 0;
             slot = (slot + 1) & (av->peers_room - 1))
            if (av->entries[av->peers[slot] - 1].peer == peer) {
                number = av->peers[slot] - 1;
                break;
            }
    }
    lock_give(&av->lock);
    return number;
}

static int av_close(struct fid *fid)
{
    struct av *av = container_of(fid, struct av, fid.fid);

    if (atomic_load(&av->users) != 0)
        return -FI_EBUSY;
    lock_destroy(&av->lock);
    atomic_fetch_sub(&av->domain->users, 1);
    free(av->entries);
    free(av->peers);
    free(av);
    return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    return -FI_ENOSYS;
}

static struct fi_ops av_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = av_close,
    .bind = av_bind,
    .control = refuse_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_av av_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = av_insert,
    .insertsvc = av_insertsvc,
    .insertsym = av_insertsym,
    .remove = av_remove,
    .lookup = av_lookup,
    .straddr = av_straddr,
};

int av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
    struct domain *domain = domain_of(fid);
    struct av *av;
    int rc;

    if (attr && (attr->name || attr->flags || attr->rx_ctx_bits))
        return -FI_ENOSYS;
    av = calloc(1, sizeof(*av));
    if (!av)
        return -FI_ENOMEM;
    av->domain = domain;
    lock_init(&av->lock, domain->locked);
    rc = make_room(av, attr && attr->count ? attr->count : FIRST_ROOM);
    if (rc < 0) {
        free(av->entries);
        free(av);
        return rc;
    }
    if (attr && attr->type == FI_AV_UNSPEC)
        attr->type = FI_AV_TABLE;
    av->fid.fid.fclass = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops = &av_fid_ops;
    av->fid.ops = &av_ops;
    atomic_fetch_add(&domain->users, 1);
    *out = &av->fid;
    return 0;
}
