/*
 * The handshake of two daemons, as one pure state machine for each side.
 *
 *     initiator                               responder
 *     Greeting (nonce, who I am)  ---------->
 *                                 <----------  Greeting (nonce, who I am)
 *     Proof(initiator)            ---------->  checked: the link is authentic
 *     checked: authentic          <----------  Proof(responder)
 *     sealed frames (seal.h), each way
 *
 * A proof is HMAC(key, purpose, role, both complete greetings). Each side's nonce is in it, so an
 * old proof does not fit a new connection (replay), and the role is in it, so a side does not
 * accept its own proof when it is sent back (reflection). Nothing secret is sent before the proofs:
 * offers (ring keys, fabric addresses) travel sealed.
 *
 * The key is the shared secret; or, where both greetings name another authority (MUNGE), the key
 * that both sides compute from the shares in the greetings (X25519). Then a proof alone shows
 * nothing: it must arrive in a credential of that authority, and the caller checks which user the
 * credential names.
 *
 * The caller sends and receives, parses the greeting's fields, and keeps the time. A call that
 * refuses leaves a text for both logs in `text`, and later calls are refused.
 *
 * Pure: no clock, socket or allocation. Thread: the thread that owns the struct (control).
 */
#ifndef PWC_PEERING_HANDSHAKE_H
#define PWC_PEERING_HANDSHAKE_H

#include <assert.h>
#include <stdint.h>
#include <stddef.h>
#include "daemon/peering/seal.h"
#include "proto/wire_abi.h"

/* One number for the frames between daemons and the records in their ledgers. */
#define HANDSHAKE_VERSION_MIN  WIRE_VERSION
#define HANDSHAKE_VERSION_MAX  WIRE_VERSION
#define HANDSHAKE_NONCE_BYTES  32u
#define HANDSHAKE_BOOT_BYTES   16u
#define HANDSHAKE_MAC_BYTES    32u
#define HANDSHAKE_HASH_BYTES   32u
#define HANDSHAKE_PROVIDER_MAX 64u
#define HANDSHAKE_TEXT_MAX     256u
#define HANDSHAKE_ENGINES_MAX  16u
#define HANDSHAKE_SHARE_BYTES  32u
#define HANDSHAKE_ANY          UINT32_MAX

/* How the other side is authenticated; a number in greetings. */
enum handshake_auth {
    HANDSHAKE_AUTH_SECRET = 0,
    HANDSHAKE_AUTH_MUNGE = 1,
};

enum handshake_role {
    HANDSHAKE_INITIATOR = 1,
    HANDSHAKE_RESPONDER = 2,
};

/* This daemon's identity; the same for each of its handshakes. */
struct handshake_identity {
    uint32_t node;
    uint32_t nodes;
    uint32_t version_min, version_max;
    const char *release; /* of pwcd, as "0.2.0"; NULL or empty: 0.1, which did not send it */
    char provider[HANDSHAKE_PROVIDER_MAX];
    uint32_t rails;                        /* 0 counts as 1 */
    uint32_t engines;                      /* 0 counts as 1 */
    uint8_t boot_id[HANDSHAKE_BOOT_BYTES]; /* random at each start */
    uint32_t auth;                         /* enum handshake_auth */
    uint8_t secret[HANDSHAKE_HASH_BYTES];  /* hash of the shared secret */
};

/* The other side's greeting, parsed: plain data from a stranger. */
struct handshake_greeting {
    uint32_t version_min, version_max;
    const char *release; /* as handshake_identity's */
    uint32_t node, target, nodes;
    const char *provider;
    uint32_t rails;   /* 0 counts as 1 */
    uint32_t engines; /* 0 counts as 1 */
    const uint8_t *nonce;
    size_t nonce_size;
    const uint8_t *boot_id;
    size_t boot_id_size;
    uint32_t auth;
    const uint8_t *share; /* not used with the secret */
    size_t share_size;
};

enum handshake_state {
    HANDSHAKE_GREET = 1,  /* our greeting must still be sent, or theirs arrive */
    HANDSHAKE_PROVE = 2,  /* both have greeted; their proof must still arrive */
    HANDSHAKE_PROVEN = 3, /* the other side's proof is right */
    HANDSHAKE_REFUSED = 4,
};

struct handshake {
    const struct handshake_identity *self;
    uint32_t state;
    uint32_t role;
    uint32_t node;    /* the other node; HANDSHAKE_ANY: a responder before the greeting */
    uint32_t version; /* the highest version that both speak */
    uint32_t engines; /* how many engines the other node has */
    uint8_t boot_id[HANDSHAKE_BOOT_BYTES];          /* the other node's */
    uint8_t greeting_hash[2][HANDSHAKE_HASH_BYTES]; /* of the initiator's, of the responder's */
    uint32_t greeted;                            /* bit 0: our greeting is sent, bit 1: theirs has
                                                  * arrived */
    uint8_t share[HANDSHAKE_SHARE_BYTES];        /* our share, for our greeting */
    uint8_t share_secret[HANDSHAKE_SHARE_BYTES]; /* the private part of our share */
    uint8_t key[HANDSHAKE_HASH_BYTES];           /* for proofs and seals, once both have greeted */
    char text[HANDSHAKE_TEXT_MAX];
};

/* Begins a handshake. `node`: the node that the initiator dials; HANDSHAKE_ANY for a responder. */
void handshake_begin(struct handshake *h, const struct handshake_identity *self,
                     enum handshake_role role, uint32_t node);
/* Makes our share from 32 random bytes. Call this first, where the key is not the shared secret. */
void handshake_share(struct handshake *h, const uint8_t random[HANDSHAKE_SHARE_BYTES]);
/* Notes the bytes of our greeting, which the caller sends. */
int handshake_greet(struct handshake *h, const uint8_t *bytes, size_t size);
/*
 * Takes their greeting. Returns 0, or -EPROTO (malformed, out of order), -EPROTONOSUPPORT
 * (versions), -EADDRNOTAVAIL (not the node that was dialled), -EINVAL (number of nodes),
 * -EADDRINUSE (our own node number), -ELOOP (our own greeting), -EXDEV (another provider, another
 * authority).
 */
int handshake_greeted(struct handshake *h, const struct handshake_greeting *theirs,
                      const uint8_t *bytes, size_t size);
/* Makes our proof. -EPROTO: too early. */
int handshake_proof(const struct handshake *h, uint8_t mac[HANDSHAKE_MAC_BYTES]);
/* Checks their proof, in constant time. Returns 0, -EACCES, or -EPROTO (out of order). */
int handshake_proved(struct handshake *h, const uint8_t *mac, size_t size);
/* Makes the key for the seal. -EPROTO: their proof has not arrived yet. */
int handshake_seal(const struct handshake *h, struct seal *out);

/* ---- two connections with one node ----------------------------------------------------------- */

/* Our other connection with the same node. */
struct handshake_rival {
    uint32_t initiator;     /* the node that has dialled it */
    const uint8_t *boot_id; /* NULL: we have dialled it, and it is not proven yet */
};

enum handshake_verdict {
    HANDSHAKE_TAKE = 0,      /* the new connection replaces the other one */
    HANDSHAKE_KEEP = 1,      /* the other one stays; both sides agree on it */
    HANDSHAKE_DUPLICATE = 2, /* two daemons claim that node number; the first stays */
};

/* Whether a proven connection replaces another one with the same node. */
enum handshake_verdict handshake_choose(const struct handshake *proven,
                                        const struct handshake_rival *other);

#endif
