/*
 * Owns an endpoint's peers and remotes. Thread: the one that holds the endpoint's lock.
 */
#include "providers/libfabric/members/remote.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/objects/endpoint.h"

/* The result for an operation in this state; a failure is returned once, and then looked up anew.
 */
static int answer(enum remote_state *state, int error)
{
    if (*state == REMOTE_READY)
        return 0;
    if (*state != REMOTE_FAILED)
        return -FI_EAGAIN;
    *state = REMOTE_NEW;
    return error;
}

/* A bind or a read was started with this result. */
static void started(enum remote_state *state, int *error, int rc)
{
    if (rc == -EAGAIN) {
        *state = REMOTE_NEW;
    } else if (rc < 0) {
        *error = rc;
        *state = REMOTE_FAILED;
    }
}

/* A bind has ended: *handle is its remote, which only a bind that succeeded keeps. */
static void bound(enum remote_state *state, int *error, pwc_remote **handle, int status)
{
    *error = status;
    *state = status < 0 ? REMOTE_FAILED : REMOTE_READY;
    if (status < 0) {
        pwc_unbind(*handle);
        *handle = NULL;
    }
}

static void peer_bound(struct endpoint *endpoint, struct pending *pending,
                       const struct pwc_event *event)
{
    struct peer *peer = container_of(pending, struct peer, pending);

    bound(&peer->state, &peer->error, &peer->table, event->status);
}

static void start_peer(struct endpoint *endpoint, struct peer *peer, fi_addr_t number)
{
    struct address address;
    int rc = av_find(endpoint->av, number, &address);

    peer->pending.end = peer_bound;
    if (rc == 0)
        rc = client_peer(endpoint->domain->client, address.context, &peer->address);
    if (rc == 0) {
        peer->state = REMOTE_BINDS;
        rc = pwc_bind_start(endpoint->ctx, peer->address, &address.keys, pending_id(&peer->pending),
                            &peer->table);
    }
    started(&peer->state, &peer->error, rc);
}

/* Returns the peer with a number; makes its entry if there is none. NULL: no memory. */
static struct peer *peer_of(struct remotes *remotes, fi_addr_t number)
{
    if (number >= remotes->count) {
        size_t count = number + 1 > 2 * remotes->count ? number + 1 : 2 * remotes->count;
        struct peer **peers = realloc(remotes->peers, count * sizeof(*peers));

        if (!peers)
            return NULL;
        memset(peers + remotes->count, 0, (count - remotes->count) * sizeof(*peers));
        remotes->peers = peers;
        remotes->count = count;
    }
    if (!remotes->peers[number])
        remotes->peers[number] = calloc(1, sizeof(struct peer));
    return remotes->peers[number];
}

/* Finds the peer's entry, or makes it. The vector is asked at the first use of a number, and again
 * after addresses were removed from it. */
static int peer_with(struct endpoint *endpoint, fi_addr_t number, struct peer **out)
{
    struct remotes *remotes = &endpoint->remotes;
    unsigned removals = av_removals(endpoint->av);
    struct peer *peer = number < remotes->count ? remotes->peers[number] : NULL;
    struct address address;

    if (!peer || peer->removals != removals) {
        /* Only a number that the vector has gets memory, so the memory is bounded. */
        if (av_find(endpoint->av, number, &address) < 0)
            return -FI_EINVAL;
        peer = peer_of(remotes, number);
        if (!peer)
            return -FI_ENOMEM;
        peer->removals = removals;
    }
    *out = peer;
    return 0;
}

static int find_peer(struct endpoint *endpoint, fi_addr_t number, struct peer **out)
{
    int rc = peer_with(endpoint, number, out);

    if (rc < 0)
        return rc;
    if ((*out)->state == REMOTE_NEW)
        start_peer(endpoint, *out, number);
    return answer(&(*out)->state, (*out)->error);
}

int remote_peer(struct endpoint *endpoint, fi_addr_t number, struct peer **out)
{
    int64_t end;
    int rc = find_peer(endpoint, number, out);

    if (rc != -FI_EAGAIN || (*out)->waited)
        return rc;
    (*out)->waited = true;
    end = members_now() + REMOTE_PATIENCE_MS;
    while (rc == -FI_EAGAIN && members_now() < end && endpoint_progress_held(endpoint) >= 0) {
        sched_yield();
        rc = find_peer(endpoint, number, out);
    }
    return rc;
}

static void remote_bound(struct endpoint *endpoint, struct pending *pending,
                         const struct pwc_event *event)
{
    struct remote *remote = container_of(pending, struct remote, pending);

    bound(&remote->state, &remote->error, &remote->handle, event->status);
}

static void start_bind(struct endpoint *endpoint, struct remote *remote,
                       const struct key_entry *entry)
{
    int rc;

    remote->base = entry->base;
    remote->length = entry->length;
    remote->skip = entry->skip;
    remote->state = REMOTE_BINDS;
    remote->pending.end = remote_bound;
    rc = pwc_bind_start(endpoint->ctx, remote->peer->address, &entry->region,
                        pending_id(&remote->pending), &remote->handle);
    started(&remote->state, &remote->error, rc);
}

/* Runs when the window of a peer's table was read: binds the key's entry. */
static void entry_read(struct endpoint *endpoint, struct pending *pending,
                       const struct pwc_event *event)
{
    struct remote *remote = container_of(pending, struct remote, pending);
    const struct key_entry *entry = NULL;

    remote->peer->users--;
    endpoint->remotes.reads--;
    if (event->status == 0)
        entry = keys_find(remote->window, remote->key);
    if (entry)
        start_bind(endpoint, remote, entry);
    else {
        remote->error = event->status < 0 ? event->status : -FI_EKEYREJECTED;
        remote->state = REMOTE_FAILED;
    }
}

static void start_read(struct endpoint *endpoint, struct remote *remote)
{
    int rc;

    remote->pending.end = entry_read;
    remote->state = REMOTE_READS;
    rc = pwc_get(remote->peer->table, keys_home(remote->key) * sizeof(struct key_entry),
                 remote->window, sizeof(remote->window), pending_id(&remote->pending), PWC_CID_NONE,
                 PWC_NO_RCE);
    if (rc == 0) {
        remote->peer->users++;
        endpoint->remotes.reads++;
    }
    started(&remote->state, &remote->error, rc);
}

static void retire(struct remotes *remotes, struct remote *remote)
{
    remote->next = remotes->retired;
    remotes->retired = remote;
    remotes->retired_count++;
}

/* Whether an event will come for the remote, which must stay until then. */
static bool is_awaited(const struct remote *remote)
{
    return remote->state == REMOTE_READS || remote->state == REMOTE_BINDS;
}

/* Takes a remote that is not awaited out of its peer's list. Operations under way keep it until it
 * is unbound; a remote that is not bound has none. */
static void give_up(struct remotes *remotes, struct remote **at)
{
    struct remote *remote = *at;

    *at = remote->next;
    remote->peer->count--;
    if (remote->handle)
        retire(remotes, remote);
    else
        free(remote);
}

/* Makes room for one more remote of a peer. 0, or -FI_EAGAIN: it will have room later. */
static int make_room(struct remotes *remotes, struct peer *peer)
{
    struct remote **last = NULL;

    if (peer->count < REMOTES_OF_PEER)
        return 0;
    for (struct remote **at = &peer->remotes; *at; at = &(*at)->next)
        if (!is_awaited(*at))
            last = at;
    if (!last || remotes->retired_count >= REMOTES_RETIRED)
        return -FI_EAGAIN;
    give_up(remotes, last);
    return 0;
}

static int add_remote(struct remotes *remotes, struct peer *peer, uint64_t key)
{
    int rc = make_room(remotes, peer);
    struct remote *remote;

    if (rc < 0)
        return rc;
    remote = calloc(1, sizeof(*remote));
    if (!remote)
        return -FI_ENOMEM;
    remote->key = key;
    remote->peer = peer;
    remote->next = peer->remotes;
    peer->remotes = remote;
    peer->count++;
    return 0;
}

/* Makes the remote of a key the first of its peer's list, or adds it there. */
static int remote_of(struct remotes *remotes, struct peer *peer, uint64_t key)
{
    struct remote **at = &peer->remotes;
    struct remote *remote;

    while (*at && (*at)->key != key)
        at = &(*at)->next;
    remote = *at;
    if (!remote)
        return add_remote(remotes, peer, key);
    *at = remote->next;
    remote->next = peer->remotes;
    peer->remotes = remote;
    return 0;
}

/* Replaces the first remote of the peer's list by a new one, which will look the key up again.
 * Operations under way keep the old one. */
static int renew(struct remotes *remotes, struct remote **at)
{
    struct remote *old = *at;
    struct remote *fresh;

    if (remotes->retired_count >= REMOTES_RETIRED)
        return -FI_EAGAIN;
    fresh = calloc(1, sizeof(*fresh));
    if (!fresh)
        return -FI_ENOMEM;
    fresh->key = old->key;
    fresh->peer = old->peer;
    fresh->next = old->next;
    *at = fresh;
    retire(remotes, old);
    return 0;
}

/* Computes the range's offset in the memory that peers have at this key. 0, or -ERANGE. */
static int offset_of(const struct remote *remote, const struct fi_rma_iov *range, uint64_t *out)
{
    uint64_t offset = range->addr - remote->base;

    if (offset < remote->skip || offset > remote->length || range->len > remote->length - offset)
        return -ERANGE;
    *out = offset;
    return 0;
}

int remote_of_peer(struct endpoint *endpoint, struct peer *peer, const struct fi_rma_iov *range,
                   struct remote **out, uint64_t *offset)
{
    struct remote *remote = peer->remotes;
    int rc;

    if (!remote || remote->key != range->key) {
        rc = remote_of(&endpoint->remotes, peer, range->key);
        if (rc < 0) {
            *out = NULL;
            return rc;
        }
        remote = peer->remotes;
    }
    *out = remote;
    if (remote->state == REMOTE_READY && !remote->stale) {
        rc = offset_of(remote, range, offset);
        remote->stale = rc < 0;
        if (rc == 0 || !remote->used)
            return rc;
    }
    if (remote->stale) {
        rc = renew(&endpoint->remotes, &peer->remotes);
        if (rc < 0)
            return rc;
        remote = *out = peer->remotes;
    }
    if (remote->state == REMOTE_NEW)
        start_read(endpoint, remote);
    return answer(&remote->state, remote->error);
}

int remote_find(struct endpoint *endpoint, fi_addr_t number, const struct fi_rma_iov *range,
                struct remote **out, uint64_t *offset)
{
    struct peer *peer;
    int64_t end;
    int rc = remote_peer(endpoint, number, &peer);

    if (rc < 0)
        return rc;
    rc = remote_of_peer(endpoint, peer, range, out, offset);
    if (rc != -FI_EAGAIN || !*out || (*out)->waited)
        return rc;
    (*out)->waited = true;
    end = members_now() + REMOTE_PATIENCE_MS;
    while (rc == -FI_EAGAIN && members_now() < end && endpoint_progress_held(endpoint) >= 0) {
        sched_yield();
        rc = find_peer(endpoint, number, &peer); /* the address may have been removed meanwhile */
        if (rc == 0)
            rc = remote_of_peer(endpoint, peer, range, out, offset);
    }
    return rc;
}

void remote_failed(struct remote *remote, int status)
{
    /* A key without memory is looked up anyway. */
    if (remote->state == REMOTE_READY && (status == -EKEYREJECTED || status == -EHOSTDOWN))
        remote->stale = true;
}

bool remote_refused(struct remote *remote)
{
    remote->stale = true;
    return remote->used;
}

/* Gives up the remotes of a peer, and then its table. Returns whether nothing is left. */
static bool give_up_peer(struct remotes *remotes, struct peer *peer)
{
    struct remote **at = &peer->remotes;
    struct remote *table;

    while (*at)
        if (is_awaited(*at))
            at = &(*at)->next;
        else
            give_up(remotes, at);
    /* Operations need the table for their further parts, and for their second submission. */
    if (peer->remotes || peer->users > 0 || peer->waiting > 0 || peer->state == REMOTE_BINDS)
        return false;
    if (!peer->table)
        return true;
    table = calloc(1, sizeof(*table));
    if (!table)
        return false;
    table->peer = peer;
    table->handle = peer->table;
    retire(remotes, table);
    peer->table = NULL;
    peer->state = REMOTE_NEW;
    return true;
}

void remotes_review(struct endpoint *endpoint)
{
    struct remotes *remotes = &endpoint->remotes;
    unsigned removals = av_removals(endpoint->av);
    bool all = true;

    for (size_t i = 0; i < remotes->count; i++) {
        struct peer *peer = remotes->peers[i];
        struct address address;

        if (!peer || peer->removals == removals)
            continue;
        if (av_find(endpoint->av, i, &address) == 0)
            peer->removals = removals;
        else
            all &= give_up_peer(remotes, peer);
    }
    if (all)
        remotes->removals = removals;
}

bool remotes_unbind(struct remotes *remotes)
{
    struct remote **at = &remotes->retired;
    struct remote *remote;

    while (*at && (*at)->peer->users > 0)
        at = &(*at)->next;
    remote = *at;
    if (!remote || pwc_unbind(remote->handle) < 0)
        return false;
    *at = remote->next;
    remotes->retired_count--;
    free(remote);
    return true;
}

static void free_list(struct remote *remote)
{
    while (remote) {
        struct remote *next = remote->next;

        free(remote);
        remote = next;
    }
}

void remotes_free(struct remotes *remotes)
{
    for (size_t i = 0; i < remotes->count; i++) {
        if (remotes->peers[i])
            free_list(remotes->peers[i]->remotes);
        free(remotes->peers[i]);
    }
    free_list(remotes->retired);
    free(remotes->peers);
}
