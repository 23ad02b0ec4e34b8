/*
 * Owns the connections of message endpoints: listens, connects, accepts, and handles their event
 * queue. Not used where the provider has reliable datagrams.
 *
 * The side with the lower token connects, and the other side accepts. A token is 16 random bytes,
 * drawn when the fabric is opened. The token is part of our address, which daemons exchange only
 * after they have authenticated each other. A connection request contains both tokens, so that no
 * other process can get a connection:
 *
 *     address   +---------------------------+-----------+
 *               | socket address, 16 or 28  | token, 16 |
 *               +---------------------------+-----------+
 *     request   +-----------+-----------+
 *               | target 16 | origin 16 |     tokens of the listener and of the connecting side
 *               +-----------+-----------+
 *
 * A request that comes before the caller has connected its peer here, or while the last connection
 * still exists, waits. When a connection ends, its peer is reported as lost; disconnect closes the
 * connection, so that nothing can arrive over it any more.
 *
 * Thread: the thread that opens the fabric; then the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "daemon/fabric/ofi/ofi_private.h"

#define LOOK_EVERY 64 /* polls from one look to the next, while no connection is being made */

struct request {
    uint8_t target[OFI_TOKEN];
    uint8_t origin[OFI_TOKEN];
};

_Static_assert(sizeof(struct request) == 32, "small enough for every provider's connection data");

/* The event with a connection request. */
struct request_event {
    struct fi_eq_cm_entry entry; /* its data follows */
    struct request request;
};

static bool same_token(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, OFI_TOKEN) == 0;
}

/* ---- one connection -------------------------------------------------------------------------- */

static int open_endpoint(struct ofi *ofi, struct fi_info *info, struct fid_ep **out)
{
    struct fid_ep *endpoint;
    int rc = fi_endpoint(ofi->domain, info, &endpoint, NULL);

    if (rc)
        return rc;
    rc = fi_ep_bind(endpoint, &ofi->queue->fid, FI_TRANSMIT | FI_RECV);
    if (!rc)
        rc = fi_ep_bind(endpoint, &ofi->connections.events->fid, 0);
    if (!rc)
        rc = fi_enable(endpoint);
    if (rc)
        (void)fi_close(&endpoint->fid);
    else
        *out = endpoint;
    return rc;
}

static int start(struct ofi *ofi, struct ofi_peer *peer, const struct fabric_address *address)
{
    struct ofi_connections *c = &ofi->connections;
    struct request request;
    struct fid_ep *endpoint;
    int rc = open_endpoint(ofi, ofi->info, &endpoint);

    if (rc)
        return ofi_error(rc);
    memcpy(request.target, peer->token, OFI_TOKEN);
    memcpy(request.origin, c->token, OFI_TOKEN);
    rc = fi_connect(endpoint, address->bytes, &request, sizeof(request));
    if (rc) {
        (void)fi_close(&endpoint->fid);
        return ofi_error(rc);
    }
    peer->endpoints[0] = endpoint;
    return 0;
}

/* Accepts a connection request. Takes `info` over. */
static int accept_request(struct ofi *ofi, struct ofi_peer *peer, struct fi_info *info)
{
    struct fid_ep *endpoint;
    int rc = open_endpoint(ofi, info, &endpoint);

    if (rc) {
        (void)fi_reject(ofi->connections.listener, info->handle, NULL, 0);
    } else {
        rc = fi_accept(endpoint, NULL, 0);
        if (rc)
            (void)fi_close(&endpoint->fid);
        else
            peer->endpoints[0] = endpoint;
    }
    fi_freeinfo(info);
    return ofi_error(rc);
}

/* ---- requests that wait ---------------------------------------------------------------------- */

static void reject(struct ofi *ofi, struct fi_info *info)
{
    (void)fi_reject(ofi->connections.listener, info->handle, NULL, 0);
    fi_freeinfo(info);
}

/* Keeps a request. It replaces an older request of the same peer, or, where there is no room, the
 * oldest request. */
static void keep(struct ofi *ofi, const uint8_t *origin, struct fi_info *info)
{
    struct ofi_connections *c = &ofi->connections;
    struct ofi_waiting *place = NULL, *free = NULL;

    for (int i = 0; i < OFI_WAITING; i++) {
        struct ofi_waiting *waiting = &c->waiting[i];

        if (!waiting->info)
            free = waiting;
        else if (same_token(waiting->origin, origin))
            place = waiting;
    }
    if (!place)
        place = free;
    if (!place) {
        place = &c->waiting[c->next_waiting];
        c->next_waiting = (c->next_waiting + 1) % OFI_WAITING;
    }
    if (place->info)
        reject(ofi, place->info);
    place->info = info;
    memcpy(place->origin, origin, OFI_TOKEN);
}

static struct fi_info *take_waiting(struct ofi *ofi, const uint8_t *origin)
{
    for (int i = 0; i < OFI_WAITING; i++) {
        struct ofi_waiting *waiting = &ofi->connections.waiting[i];
        struct fi_info *info = waiting->info;

        if (info && same_token(waiting->origin, origin)) {
            waiting->info = NULL;
            return info;
        }
    }
    return NULL;
}

/* ---- connecting and disconnecting ------------------------------------------------------------ */

int ofi_connection_check(const struct ofi *ofi, const struct fabric_address *address)
{
    struct fabric_address ours;

    if (ofi_connections_address(ofi, &ours))
        return -EINVAL;
    return address->size == ours.size &&
                   memcmp(address->bytes, ours.bytes, sizeof(sa_family_t)) == 0 &&
                   !same_token(address->bytes + address->size - OFI_TOKEN, ofi->connections.token)
               ? 0
               : -EINVAL;
}

int ofi_connection_open(struct ofi *ofi, struct ofi_peer *peer,
                        const struct fabric_address *address)
{
    struct ofi_connections *c = &ofi->connections;
    struct fi_info *info;
    int rc = 0;

    memcpy(peer->token, address->bytes + address->size - OFI_TOKEN, OFI_TOKEN);
    ofi_connections_poll(ofi, true); /* the last request of the peer counts */
    if (memcmp(c->token, peer->token, OFI_TOKEN) < 0)
        rc = start(ofi, peer, address);
    else if ((info = take_waiting(ofi, peer->token)))
        (void)accept_request(ofi, peer, info); /* if this fails, the peer will send another
                                                * request */
    if (rc == 0)
        c->unmade++;
    return rc;
}

void ofi_connection_close(struct ofi *ofi, struct ofi_peer *peer)
{
    struct fi_info *info;

    if (peer->endpoints[0])
        (void)fi_close(&peer->endpoints[0]->fid);
    if (!peer->inserted)
        ofi->connections.unmade--;
    peer->endpoints[0] = NULL;
    peer->inserted = false;
    /* A request that still waits belongs to the link that ends. */
    if ((info = take_waiting(ofi, peer->token)))
        reject(ofi, info);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct ofi_peer *peer_of(struct ofi *ofi, const struct fid *endpoint)
{
    for (uint32_t i = 0; i < ofi->peers.count; i++)
        if (ofi->peers.table[i].endpoints[0] && &ofi->peers.table[i].endpoints[0]->fid == endpoint)
            return &ofi->peers.table[i];
    return NULL;
}

static void requested(struct ofi *ofi, struct request_event *event, size_t length)
{
    struct fi_info *info = event->entry.info;
    struct ofi_peer *peer = NULL;

    if (length < sizeof(event->entry) + sizeof(event->request) ||
        !same_token(event->request.target, ofi->connections.token)) {
        reject(ofi, info);
        return;
    }
    for (uint32_t i = 0; i < ofi->peers.count && !peer; i++)
        if (ofi->peers.table[i].connected &&
            same_token(ofi->peers.table[i].token, event->request.origin))
            peer = &ofi->peers.table[i];
    if (!peer || peer->endpoints[0])
        keep(ofi, event->request.origin, info);
    else if (accept_request(ofi, peer, info))
        ofi_peer_broken(&ofi->peers, (uint32_t)(peer - ofi->peers.table), -ECONNABORTED);
}

static void ended(struct ofi *ofi, const struct fid *endpoint, int status)
{
    struct ofi_peer *peer = peer_of(ofi, endpoint);

    if (peer)
        ofi_peer_broken(&ofi->peers, (uint32_t)(peer - ofi->peers.table), status);
}

static void made(struct ofi *ofi, const struct fid *endpoint)
{
    struct ofi_peer *peer = peer_of(ofi, endpoint);

    if (peer && !peer->inserted) {
        peer->inserted = true;
        ofi->connections.unmade--;
    }
}

static bool take_event(struct ofi *ofi)
{
    struct request_event event;
    struct fi_eq_err_entry error = {0};
    uint32_t kind;
    ssize_t length = fi_eq_read(ofi->connections.events, &kind, &event, sizeof(event), 0);

    if (length == -FI_EAVAIL) {
        if (fi_eq_readerr(ofi->connections.events, &error, 0) < 0)
            return false;
        ended(ofi, error.fid, error.err ? ofi_error(-error.err) : -ECONNREFUSED);
        return true;
    }
    if (length < 0)
        return false;
    switch (kind) {
    case FI_CONNREQ:
        requested(ofi, &event, (size_t)length);
        break;
    case FI_CONNECTED:
        made(ofi, event.entry.fid);
        break;
    case FI_SHUTDOWN:
        ended(ofi, event.entry.fid, -ECONNRESET);
        break;
    }
    return true;
}

void ofi_connections_poll(struct ofi *ofi, bool now)
{
    struct ofi_connections *c = &ofi->connections;

    if (!now && c->unmade == 0 && ++c->looks % LOOK_EVERY != 0)
        return;
    for (int i = 0; i < OFI_WAITING && take_event(ofi); i++)
        ;
}

/* ---- opening and closing --------------------------------------------------------------------- */

int ofi_connections_open(struct ofi *ofi)
{
    struct ofi_connections *c = &ofi->connections;
    struct fi_eq_attr attributes = {.size = 256, .wait_obj = FI_WAIT_FD};
    int rc;

    if (getrandom(c->token, sizeof(c->token), 0) != sizeof(c->token))
        return -FI_EIO;
    rc = fi_eq_open(ofi->provider, &attributes, &c->events, NULL);
    if (!rc)
        rc = fi_passive_ep(ofi->provider, ofi->info, &c->listener, NULL);
    if (!rc)
        rc = fi_pep_bind(c->listener, &c->events->fid, 0);
    return rc ? rc : fi_listen(c->listener);
}

void ofi_connections_close(struct ofi *ofi)
{
    struct ofi_connections *c = &ofi->connections;

    for (uint32_t i = 0; c->events && i < ofi->peers.count; i++)
        if (ofi->peers.table[i].endpoints[0])
            (void)fi_close(&ofi->peers.table[i].endpoints[0]->fid);
    for (int i = 0; i < OFI_WAITING; i++)
        if (c->waiting[i].info)
            reject(ofi, c->waiting[i].info);
    if (c->listener)
        (void)fi_close(&c->listener->fid);
    if (c->events)
        (void)fi_close(&c->events->fid);
}

int ofi_connections_address(const struct ofi *ofi, struct fabric_address *out)
{
    size_t size = sizeof(out->bytes) - OFI_TOKEN;
    int rc = fi_getname(&ofi->connections.listener->fid, out->bytes, &size);

    if (rc)
        return rc == -FI_ETOOSMALL ? -ENAMETOOLONG : ofi_error(rc);
    memcpy(out->bytes + size, ofi->connections.token, OFI_TOKEN);
    out->size = (uint32_t)(size + OFI_TOKEN);
    return 0;
}
