/* Regions, grants and withdrawal. Thread: the progress thread. */
#include "daemon/engine/peer/region.h"

#include <string.h>
#include "daemon/engine/session/direct.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/find.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"

int engine_region_open(struct engine *e, uint32_t client, uint32_t segment, uint64_t offset,
                       uint64_t length, unsigned rights, struct engine_key *out)
{
    struct segment *seg;
    struct region *region;
    uint32_t slot;

    if (client >= e->config.clients_max || e->clients[client].state != CLIENT_LIVE ||
        segment >= e->config.segments_max || length == 0 ||
        rights & ~(unsigned)(ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE))
        return -EINVAL;
    seg = &e->segments[segment];
    if (seg->state != SEGMENT_OPEN || seg->client != client)
        return -EINVAL;
    if (!(offset <= seg->length && length <= seg->length - offset))
        return -ERANGE;
    slot = table_take(e, TABLE_REGIONS);
    if (slot == NONE)
        return -ENOSPC;
    region = &e->regions[slot];
    region->client = client;
    region->segment = segment;
    region->rights = rights;
    region->offset = offset;
    region->length = length;
    region->first_grant = NONE;
    region->grants = 0;
    region->offloads = 0;
    region->packet = 0;
    region->ways = 0;
    region->offload = NONE;
    e->host->random(e->host->context, region->secret, sizeof(region->secret));
    set32(e, &region->generation, region->generation + 1);
    set32(e, &region->state, REGION_OPEN);
    set32(e, &seg->regions, seg->regions + 1);
    commit(e);
    *out =
        (struct engine_key){.node = e->config.self, .slot = slot, .generation = region->generation};
    memcpy(out->secret, region->secret, sizeof(out->secret));
    return 0;
}

int region_resolve(const struct engine *e, uint32_t client, uint32_t slot, uint32_t generation,
                   const uint8_t secret[16])
{
    const struct region *region;
    uint8_t difference = 0;

    if (slot >= e->config.regions_max)
        return -EKEYREJECTED;
    region = &e->regions[slot];
    for (int i = 0; i < 16; i++)
        difference |= region->secret[i] ^ secret[i];
    if (difference != 0 || region->state != REGION_OPEN || region->generation != generation ||
        region->client != client)
        return -EKEYREJECTED;
    return (int)slot;
}

/* The peer's grant of the region, or NONE. There are at most as many grants as peers. */
static uint32_t grant_of(const struct engine *e, const struct region *r, uint32_t peer)
{
    uint32_t grant = r->first_grant;

    while (grant != NONE && e->grants[grant].peer != peer)
        grant = e->grants[grant].next;
    return grant;
}

int region_grant(struct engine *e, uint32_t region, uint32_t peer)
{
    struct region *r = &e->regions[region];
    uint32_t free;
    int rc;

    if (grant_of(e, r, peer) != NONE)
        return 0;
    rc = quota_grant(e, region);
    if (rc < 0)
        return rc;
    free = table_take(e, TABLE_GRANTS);
    if (free == NONE)
        return -ENOSPC;
    e->grants[free].peer = peer;
    e->grants[free].asked = 0;
    set32(e, &e->grants[free].region, region);
    set32(e, &e->clients[r->client].grants, e->clients[r->client].grants + 1);
    set32(e, &r->grants, r->grants + 1);
    list_grant(e, &r->first_grant, free);
    chain_add(&e->grants_of_peer, peer, free);
    return 0;
}

void grants_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < table_bound(e, TABLE_GRANTS); i++) {
        if (e->grants[i].region == NONE)
            continue;
        lists_inherit_grant(e, i);
        chain_add(&e->grants_of_peer, e->grants[i].peer, i);
    }
}

/* Within a transaction: removes a grant. With the last one, a region whose offload has gone takes
 * ordinary puts again. */
static void grant_drop(struct engine *e, uint32_t grant)
{
    struct region *r = &e->regions[e->grants[grant].region];
    struct client *c = &e->clients[r->client];

    chain_remove(&e->grants_of_peer, grant);
    unlist_grant(e, &r->first_grant, grant);
    set32(e, &r->grants, r->grants - 1);
    set32(e, &e->grants[grant].region, NONE);
    table_give(e, TABLE_GRANTS, grant);
    set32(e, &c->grants, c->grants - 1);
    if (r->first_grant == NONE && r->offload == NONE)
        set32(e, &r->packet, 0);
    e->sweep = true;
}

int engine_region_close(struct engine *e, uint32_t client, uint32_t slot, uint32_t generation,
                        uint64_t cookie)
{
    struct region *region;

    if (slot >= e->config.regions_max)
        return -EINVAL;
    region = &e->regions[slot];
    if (region->state == REGION_FREE || region->client != client ||
        region->generation != generation)
        return -EINVAL;
    if (region->offloads > 0)
        return -EBUSY;
    set64(e, &region->cookie, cookie);
    if (region->state == REGION_REVOKING) {
        commit(e);
        return 1;
    }
    set32(e, &region->state, REGION_REVOKING);
    commit(e);
    table_leaves(e, TABLE_REGIONS, slot);
    return 0;
}

void region_withdraw_client(struct engine *e, uint32_t client)
{
    for (uint32_t i = 0; i < table_bound(e, TABLE_REGIONS); i++) {
        struct region *region = &e->regions[i];

        if (region->state == REGION_FREE || region->client != client)
            continue;
        if (region->state == REGION_OPEN) {
            set64(e, &region->cookie, 0);
            set32(e, &region->state, REGION_REVOKING);
            commit(e);
            table_leaves(e, TABLE_REGIONS, i);
        }
    }
}

/* How many remotes one REVOKE withdraws in a step. */
#define REVOKED_MOST 256u

static bool names(const struct remote *r, uint32_t peer, uint32_t slot, uint32_t generation)
{
    return r->peer == peer && r->key.slot == slot && r->key.generation == generation;
}

/* Whether any fabric operation of ours still names this region of `peer`. */
static bool region_busy(const struct engine *e, uint32_t peer, uint32_t slot, uint32_t generation)
{
    const struct chain *remotes = &e->remotes_of_key;

    for (uint32_t i = chain_first(remotes, remote_home(e, peer, slot)); i != NONE;
         i = chain_next(remotes, i))
        if (e->remotes[i].state == REMOTE_REVOKED &&
            names(&e->remotes[i], peer, slot, generation) && e->remote_busy[i] > 0)
            return true;
    return false;
}

/* Within a transaction: answers REVOKE. Returns as notes_answer. */
static int revoke_answer(struct engine *e, uint32_t peer, uint32_t slot, uint32_t generation)
{
    struct wire_region record = {.head.kind = WIRE_REVOKED, .slot = slot, .generation = generation};

    return notes_answer(e, peer, NONE, &record, sizeof(record));
}

int region_revoke_asked(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct chain *remotes = &e->remotes_of_key;
    struct wire_region w;
    uint32_t left = REVOKED_MOST;

    memcpy(&w, record->at, sizeof(w));
    for (uint32_t i = chain_first(remotes, remote_home(e, peer, w.slot)), next; i != NONE;
         i = next) {
        struct remote *r = &e->remotes[i];

        next = chain_next(remotes, i);
        if ((r->state != REMOTE_READY && r->state != REMOTE_STALE) ||
            !names(r, peer, w.slot, w.generation))
            continue;
        if (left-- == 0)
            return -EAGAIN; /* the next step takes the others */
        if (e->remote_busy[i] == 0)
            chain_remove(remotes, i); /* no other REVOKE has to find it */
        set32(e, &r->revoke_due, e->remote_busy[i] > 0);
        table_leaves(e, TABLE_REMOTES, i);
        set32(e, &r->state, REMOTE_REVOKED);
        commit(e);
        FAULT(REVOKE_TAKEN);
        direct_show_ended(e, i, true);
        flows_ready_towards(e, r);
    }
    return region_busy(e, peer, w.slot, w.generation)
               ? 0
               : revoke_answer(e, peer, w.slot, w.generation);
}

void region_answer_revoke(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];

    if (region_busy(e, r->peer, r->key.slot, r->key.generation))
        return;
    if (revoke_answer(e, r->peer, r->key.slot, r->key.generation) < 0) {
        e->sweep = true; /* revoke_due stays set: the sweep tries again */
        return;
    }
    commit(e);
    /* A second answer, after a restart in the middle of this, does no harm. */
    for (uint32_t i = chain_first(&e->remotes_of_key, remote_home(e, r->peer, r->key.slot));
         i != NONE; i = chain_next(&e->remotes_of_key, i)) {
        struct remote *other = &e->remotes[i];

        if (!other->revoke_due || !names(other, r->peer, r->key.slot, r->key.generation))
            continue;
        set32(e, &other->revoke_due, 0);
        commit(e);
    }
    e->sweep = true;
}

int region_revoke_answered(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_region w;
    uint32_t grant;

    memcpy(&w, record->at, sizeof(w));
    if (w.slot >= e->config.regions_max || e->regions[w.slot].state == REGION_FREE ||
        e->regions[w.slot].generation != w.generation)
        return 0;
    grant = grant_of(e, &e->regions[w.slot], peer);
    if (grant != NONE)
        grant_drop(e, grant);
    return 0;
}

void region_forget_node(struct engine *e, uint32_t peer)
{
    for (uint32_t i = chain_first(&e->grants_of_peer, peer), next; i != NONE; i = next) {
        next = chain_next(&e->grants_of_peer, i);
        if (e->grants[i].region == NONE)
            continue;
        grant_drop(e, i);
        commit(e);
    }
}

int region_memory(const struct engine *e, uint32_t session, uint32_t slot, uint32_t generation,
                  unsigned rights, uint8_t **base, uint64_t *length)
{
    const struct region *region;
    const struct segment_live *segment;

    if (slot >= e->config.regions_max)
        return -EKEYREJECTED;
    region = &e->regions[slot];
    if (region->state == REGION_FREE || region->generation != generation ||
        region->client != e->sessions[session].client || (region->rights & rights) != rights)
        return -EKEYREJECTED;
    if (region->packet > 0 && rights & ENGINE_REMOTE_WRITE)
        return -EOPNOTSUPP;
    segment = &e->segment_live[region->segment];
    if (!segment->base)
        return -EHOSTDOWN;
    *base = segment->base + region->offset;
    *length = region->length;
    return 0;
}
