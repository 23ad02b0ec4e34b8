/* Owns every decision of the handshake between daemons (handshake.h). Thread: control. */
#include "daemon/peering/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static_assert(HANDSHAKE_HASH_BYTES == crypto_hash_sha256_BYTES, "hash");
static_assert(HANDSHAKE_MAC_BYTES == crypto_auth_hmacsha512256_BYTES, "MAC");
static_assert(HANDSHAKE_SHARE_BYTES == crypto_scalarmult_SCALARBYTES, "share");

enum { GREETED_OURS = 1, GREETED_THEIRS = 2, GREETED_BOTH = 3 };

__attribute__((format(printf, 3, 4))) static int refuse(struct handshake *h, int status,
                                                        const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(h->text, sizeof(h->text), format, arguments);
    va_end(arguments);
    h->state = HANDSHAKE_REFUSED;
    return status;
}

void handshake_begin(struct handshake *h, const struct handshake_identity *self,
                     enum handshake_role role, uint32_t node)
{
    *h = (struct handshake){
        .self = self,
        .state = HANDSHAKE_GREET,
        .role = role,
        .node = role == HANDSHAKE_INITIATOR ? node : HANDSHAKE_ANY,
    };
}

static uint32_t other_role(const struct handshake *h)
{
    return h->role == HANDSHAKE_INITIATOR ? HANDSHAKE_RESPONDER : HANDSHAKE_INITIATOR;
}

void handshake_share(struct handshake *h, const uint8_t random[HANDSHAKE_SHARE_BYTES])
{
    memcpy(h->share_secret, random, sizeof(h->share_secret));
    (void)crypto_scalarmult_base(h->share, h->share_secret);
}

static void note_greeting(struct handshake *h, uint32_t role, uint32_t bit, const uint8_t *bytes,
                          size_t size)
{
    crypto_hash_sha256(h->greeting_hash[role - HANDSHAKE_INITIATOR], bytes, size);
    h->greeted |= bit;
    if (h->greeted == GREETED_BOTH)
        h->state = HANDSHAKE_PROVE;
}

int handshake_greet(struct handshake *h, const uint8_t *bytes, size_t size)
{
    if (h->state != HANDSHAKE_GREET || (h->greeted & GREETED_OURS))
        return -EPROTO;
    note_greeting(h, h->role, GREETED_OURS, bytes, size);
    return 0;
}

/* Checks the nodes in a greeting before anything is proven, so that a link that could never work is
 * refused with a clear reason. */
static int check_identity(struct handshake *h, const struct handshake_greeting *g)
{
    const struct handshake_identity *self = h->self;

    if (memcmp(g->boot_id, self->boot_id, HANDSHAKE_BOOT_BYTES) == 0)
        return refuse(h, -ELOOP,
                      "node %u has reached itself (or its own greeting came back): check the host "
                      "and port of node %u in the list of nodes",
                      self->node, h->node == HANDSHAKE_ANY ? g->target : h->node);
    if (g->node == self->node)
        return refuse(h, -EADDRINUSE,
                      "two daemons claim node number %u: start one of them with another --node",
                      self->node);
    if (g->nodes != self->nodes)
        return refuse(h, -EINVAL,
                      "node %u counts %u nodes, node %u counts %u: give both the same list",
                      g->node, g->nodes, self->node, self->nodes);
    if (g->node >= self->nodes)
        return refuse(h, -EINVAL, "node number %u is not below %u, the number of nodes", g->node,
                      self->nodes);
    if (g->target != self->node)
        return refuse(
            h, -EADDRNOTAVAIL,
            "node %u was looking for node %u and found node %u: the lists of nodes differ", g->node,
            g->target, self->node);
    if (h->role == HANDSHAKE_INITIATOR && g->node != h->node)
        return refuse(h, -EADDRNOTAVAIL,
                      "where node %u should be, node %u answers: the lists of nodes differ",
                      h->node, g->node);
    return 0;
}

static uint32_t at_least_one(uint32_t count)
{
    return count ? count : 1;
}

static const char *auth_name(uint32_t auth)
{
    return auth == HANDSHAKE_AUTH_SECRET  ? "secret"
           : auth == HANDSHAKE_AUTH_MUNGE ? "munge"
                                          : "something unknown";
}

static const char *release_name(const char *release)
{
    return release && *release ? release : "0.1";
}

static int check_terms(struct handshake *h, const struct handshake_greeting *g)
{
    const struct handshake_identity *self = h->self;

    if (g->version_min > self->version_max || g->version_max < self->version_min)
        return refuse(h, -EPROTONOSUPPORT,
                      "node %u speaks control versions %u to %u, node %u speaks %u to %u; they are "
                      "pwcd %.16s and %s: upgrade pwcd on node %u",
                      g->node, g->version_min, g->version_max, self->node, self->version_min,
                      self->version_max, release_name(g->release), release_name(self->release),
                      g->version_max < self->version_min ? g->node : self->node);
    if (strcmp(g->provider, self->provider) != 0)
        return refuse(h, -EXDEV,
                      "node %u uses provider \"%.63s\", node %u uses \"%s\": give both the same "
                      "--provider",
                      g->node, g->provider, self->node, self->provider);
    if (at_least_one(g->rails) != at_least_one(self->rails))
        return refuse(h, -EXDEV,
                      "node %u has %u rails to a peer, node %u has %u: give both the same --rails",
                      g->node, at_least_one(g->rails), self->node, at_least_one(self->rails));
    if (g->auth != self->auth)
        return refuse(
            h, -EXDEV,
            "node %u authenticates by %s, node %u by %s: run munged on both or on neither, "
            "or give both the same --auth",
            g->node, auth_name(g->auth), self->node, auth_name(self->auth));
    if (g->engines > HANDSHAKE_ENGINES_MAX)
        return refuse(h, -EPROTO, "node %u claims %u progress threads: %u are the most", g->node,
                      g->engines, HANDSHAKE_ENGINES_MAX);
    return 0;
}

/* Makes the key of proofs and seals. Only an attacker sends a share that gives no key. */
static int agree(struct handshake *h, const struct handshake_greeting *g)
{
    uint8_t point[crypto_scalarmult_BYTES];

    if (h->self->auth == HANDSHAKE_AUTH_SECRET) {
        memcpy(h->key, h->self->secret, sizeof(h->key));
        return 0;
    }
    if (g->share_size != HANDSHAKE_SHARE_BYTES ||
        crypto_scalarmult(point, h->share_secret, g->share) != 0)
        return refuse(h, -EPROTO, "node %u greets with a share of %zu bytes that is none", g->node,
                      g->share_size);
    crypto_hash_sha256(h->key, point, sizeof(point));
    sodium_memzero(point, sizeof(point));
    return 0;
}

int handshake_greeted(struct handshake *h, const struct handshake_greeting *theirs,
                      const uint8_t *bytes, size_t size)
{
    int rc;

    if (h->state != HANDSHAKE_GREET || (h->greeted & GREETED_THEIRS))
        return refuse(h, -EPROTO, "a greeting out of place");
    /* An initiator speaks first. */
    if (h->role == HANDSHAKE_INITIATOR && !(h->greeted & GREETED_OURS))
        return refuse(h, -EPROTO, "a greeting before ours");
    if (theirs->nonce_size != HANDSHAKE_NONCE_BYTES ||
        theirs->boot_id_size != HANDSHAKE_BOOT_BYTES || !theirs->provider ||
        theirs->version_min > theirs->version_max)
        return refuse(h, -EPROTO, "a malformed greeting: nonce of %zu bytes, boot id of %zu bytes",
                      theirs->nonce_size, theirs->boot_id_size);
    rc = check_terms(h, theirs);
    if (rc == 0)
        rc = check_identity(h, theirs);
    if (rc == 0)
        rc = agree(h, theirs);
    if (rc < 0)
        return rc;
    h->node = theirs->node;
    h->engines = at_least_one(theirs->engines);
    h->version =
        theirs->version_max < h->self->version_max ? theirs->version_max : h->self->version_max;
    memcpy(h->boot_id, theirs->boot_id, HANDSHAKE_BOOT_BYTES);
    note_greeting(h, other_role(h), GREETED_THEIRS, bytes, size);
    return 0;
}

/* Derives proofs and the seal's key: HMAC(key, purpose, role, initiator's greeting, responder's
 * greeting). */
static void derive(const struct handshake *h, const char *purpose, uint32_t role,
                   uint8_t out[HANDSHAKE_MAC_BYTES])
{
    crypto_auth_hmacsha512256_state state;
    uint8_t byte = (uint8_t)role;

    crypto_auth_hmacsha512256_init(&state, h->key, sizeof(h->key));
    crypto_auth_hmacsha512256_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
    crypto_auth_hmacsha512256_update(&state, &byte, 1);
    crypto_auth_hmacsha512256_update(&state, h->greeting_hash[0], HANDSHAKE_HASH_BYTES);
    crypto_auth_hmacsha512256_update(&state, h->greeting_hash[1], HANDSHAKE_HASH_BYTES);
    crypto_auth_hmacsha512256_final(&state, out);
}

int handshake_proof(const struct handshake *h, uint8_t mac[HANDSHAKE_MAC_BYTES])
{
    if (h->state != HANDSHAKE_PROVE && h->state != HANDSHAKE_PROVEN)
        return -EPROTO;
    derive(h, "pwcd proof", h->role, mac);
    return 0;
}

int handshake_proved(struct handshake *h, const uint8_t *mac, size_t size)
{
    uint8_t expected[HANDSHAKE_MAC_BYTES];

    if (h->state != HANDSHAKE_PROVE)
        return refuse(h, -EPROTO, "a proof out of place");
    derive(h, "pwcd proof", other_role(h), expected);
    if (size != sizeof(expected) || sodium_memcmp(mac, expected, sizeof(expected)) != 0)
        return refuse(h, -EACCES,
                      h->self->auth == HANDSHAKE_AUTH_SECRET
                          ? "node %u does not know the secret of node %u (or its proof is an old "
                            "one): give both the same --secret file"
                          : "the credential of node %u was not made for this connection of node %u",
                      h->node, h->self->node);
    h->state = HANDSHAKE_PROVEN;
    return 0;
}

int handshake_seal(const struct handshake *h, struct seal *out)
{
    if (h->state != HANDSHAKE_PROVEN)
        return -EPROTO;
    *out = (struct seal){.role = (uint8_t)h->role};
    derive(h, "pwcd session", 0, out->key);
    return 0;
}

enum handshake_verdict handshake_choose(const struct handshake *proven,
                                        const struct handshake_rival *other)
{
    uint32_t self = proven->self->node;
    uint32_t initiator = proven->role == HANDSHAKE_INITIATOR ? self : proven->node;
    bool same_daemon =
        other->boot_id && memcmp(other->boot_id, proven->boot_id, HANDSHAKE_BOOT_BYTES) == 0;

    if (other->boot_id && !same_daemon)
        return HANDSHAKE_DUPLICATE;
    /* One end has dialled twice, so it has given up the first connection. */
    if (initiator == other->initiator)
        return HANDSHAKE_TAKE;
    return initiator < other->initiator ? HANDSHAKE_TAKE : HANDSHAKE_KEEP;
}
