/*
 * Owns the peers of the stream fabric: finds connections by the caller's numbers, connects and
 * disconnects, and reports once that a peer is lost.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include "daemon/fabric/stream/stream_private.h"

#define ACCEPT_FIRST 64u /* most connections that are accepted before a peer is connected */

bool stream_same_token(const uint8_t *a, const uint8_t *b)
{
    uint8_t differ = 0;

    for (uint32_t i = 0; i < STREAM_TOKEN; i++) /* no early exit: constant time */
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Parses an address, and checks all of it, because it comes from another machine. */
static int parse(const struct stream *s, const struct fabric_address *address,
                 struct sockaddr_storage *to, const uint8_t **token)
{
    const uint8_t *at = address->bytes + sizeof(STREAM_MAGIC) - 1;
    uint32_t size = s->listener.address_size;

    if (address->size != sizeof(STREAM_MAGIC) - 1 + size + STREAM_TOKEN ||
        memcmp(address->bytes, STREAM_MAGIC, sizeof(STREAM_MAGIC) - 1) != 0)
        return -EINVAL;
    memset(to, 0, sizeof(*to));
    memcpy(to, at, size);
    *token = at + size;
    return to->ss_family == s->listener.address.ss_family &&
                   !stream_same_token(*token, s->listener.token)
               ? 0
               : -EINVAL;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Binds the socket, so that data leaves by the configured network, also where there are several. */
static int bind_source(const struct stream *s, int fd)
{
    struct sockaddr_storage from = s->listener.address;
    int one = 1;

    if (from.ss_family == AF_INET)
        ((struct sockaddr_in *)&from)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&from)->sin6_port = 0;
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    return bind(fd, (struct sockaddr *)&from, s->listener.address_size) < 0 ? -errno : 0;
}

static int start(struct stream *s, uint32_t number, const struct sockaddr_storage *to)
{
    struct stream_peer *peer = &s->peers.table[number];
    struct stream_connection *c;
    int fd = stream_socket(to->ss_family);
    int rc;

    if (fd < 0)
        return -errno;
    rc = bind_source(s, fd);
    if (rc == 0)
        rc = connect(fd, (const struct sockaddr *)to, s->listener.address_size) < 0 ? -errno : 0;
    if (rc < 0 && rc != -EINPROGRESS) {
        close(fd);
        return rc;
    }
    rc = stream_connection_open(s, fd, true, &c);
    if (rc < 0)
        return rc;
    c->peer = number;
    memcpy(c->greeting.magic, STREAM_MAGIC, sizeof(c->greeting.magic));
    memcpy(c->greeting.target, peer->token, STREAM_TOKEN);
    memcpy(c->greeting.origin, s->listener.token, STREAM_TOKEN);
    peer->connection = c;
    return 0;
}

static void await(struct stream *s, uint32_t number, bool awaited)
{
    struct stream_peer *peer = &s->peers.table[number];

    s->peers.awaited += (uint32_t)awaited - (uint32_t)peer->awaited;
    peer->awaited = awaited;
}

static void adopt(struct stream *s, uint32_t number, struct stream_connection *c)
{
    await(s, number, false);
    s->peers.table[number].connection = c;
    c->peer = number;
    stream_connection_tune(c);
    c->readable = true; /* an edge that was reported while the connection waited is not reported
                         * again */
    stream_connection_due(s, c);
}

int stream_connect(struct fabric *fabric, uint32_t number, const struct fabric_address *address)
{
    struct stream *s = (struct stream *)fabric;
    struct sockaddr_storage to;
    struct stream_connection *waiting;
    struct stream_peer *peer;
    const uint8_t *token;
    int rc;

    if (number >= s->peers.count || parse(s, address, &to, &token) < 0)
        return -EINVAL;
    /* Without a link to end, what waits belongs to the new one. */
    if (s->peers.table[number].connected)
        (void)stream_disconnect(fabric, number);
    /* The last connection of a peer counts, so accept all that wait first. A connection that is
     * accepted later counts as a second one, and the link starts over (stream_peer_greeted). */
    (void)stream_listener_accept(s, ACCEPT_FIRST);
    peer = &s->peers.table[number];
    memcpy(peer->token, token, STREAM_TOKEN);
    peer->connected = true;
    peer->broken = 0;
    if (memcmp(s->listener.token, token, STREAM_TOKEN) < 0) {
        rc = start(s, number, &to);
        if (rc < 0)
            stream_peer_broken(s, number, rc);
        return 0;
    }
    await(s, number, true);
    waiting = stream_listener_take(s, token);
    if (waiting)
        adopt(s, number, waiting);
    return 0;
}

int stream_disconnect(struct fabric *fabric, uint32_t number)
{
    struct stream *s = (struct stream *)fabric;
    struct stream_connection *waiting;
    struct stream_peer *peer;

    if (number >= s->peers.count)
        return -EINVAL;
    peer = &s->peers.table[number];
    /* A waiting connection belongs to the link that ends, which may not have been connected here
     * yet. */
    while ((waiting = stream_listener_take(s, peer->token)))
        stream_connection_close(s, waiting, -ECANCELED);
    if (!peer->connected)
        return 0;
    peer->connected = false;
    await(s, number, false);
    if (peer->connection)
        stream_connection_close(s, peer->connection, -ECANCELED);
    peer->connection = NULL;
    /* Arrivals that are not delivered yet belong to the link that ends, too. */
    for (uint32_t i = s->arrival_head; i != s->arrival_tail; i++)
        if (s->arrivals[i % STREAM_ARRIVALS].peer == number)
            s->arrivals[i % STREAM_ARRIVALS].peer = STREAM_NOBODY;
    return 0;
}

void stream_peer_greeted(struct stream *s, struct stream_connection *c)
{
    for (uint32_t i = 0; i < s->peers.count; i++) {
        struct stream_peer *peer = &s->peers.table[i];

        if (!peer->connected || !stream_same_token(peer->token, c->greeting.origin))
            continue;
        if (!peer->connection && !peer->broken)
            /* At most one connection of a peer waits, and this is `c`. */
            adopt(s, i, stream_listener_take(s, c->greeting.origin));
        else /* the peer has started over, and waits until the caller does so, too */
            stream_peer_broken(s, i, -ECONNRESET);
        return;
    }
}

/* ---- losing ---------------------------------------------------------------------------------- */

void stream_peer_broken(struct stream *s, uint32_t number, int status)
{
    struct stream_peer *peer = &s->peers.table[number];

    if (peer->connection)
        stream_connection_close(s, peer->connection, status);
    peer->connection = NULL;
    if (peer->broken)
        return;
    peer->broken = status;
    peer->behind = s->arrival_tail;
    if (peer->in_broken_chain)
        return; /* the peer is in the chain already, from before it was connected again */
    peer->in_broken_chain = true;
    peer->next_broken = s->peers.broken_head;
    s->peers.broken_head = number;
}

int stream_peers_deliver(struct stream_peers *peers, uint32_t delivered,
                         struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && peers->broken_head != STREAM_NOBODY) {
        uint32_t number = peers->broken_head;
        struct stream_peer *peer = &peers->table[number];

        if ((int32_t)(delivered - peer->behind) < 0)
            break;
        peers->broken_head = peer->next_broken;
        peer->in_broken_chain = false;
        if (peer->connected && peer->broken)
            events[n++] = (struct fabric_event){
                .kind = FABRIC_BROKEN, .status = peer->broken, .peer = number};
    }
    return n;
}
