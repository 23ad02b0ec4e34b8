/*
 * The handshake of two daemons: how it succeeds, and every way in which it must fail; then sealed
 * frames that are altered, replayed, reflected or lost.
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include "daemon/peering/handshake.h"
#include "tests/suite.h"

/* A greeting on the wire: in this test simply the bytes of this struct. */
struct letter {
    uint32_t version_min, version_max, node, target, nodes;
    char provider[HANDSHAKE_PROVIDER_MAX];
    uint32_t rails;
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    uint8_t boot_id[HANDSHAKE_BOOT_BYTES];
    uint32_t nonce_size, boot_id_size;
    uint32_t auth;
    uint8_t share[HANDSHAKE_SHARE_BYTES];
    uint32_t share_size;
};

static struct handshake_identity identity(uint32_t node)
{
    struct handshake_identity self = {.node = node,
                                      .nodes = 4,
                                      .version_min = HANDSHAKE_VERSION_MIN,
                                      .version_max = HANDSHAKE_VERSION_MAX,
                                      .provider = "tcp"};

    memset(self.boot_id, (int)node + 1, sizeof(self.boot_id));
    memset(self.secret, 0x55, sizeof(self.secret));
    return self;
}

static struct letter letter_of(const struct handshake_identity *self, uint32_t target)
{
    struct letter l = {.version_min = self->version_min,
                       .version_max = self->version_max,
                       .node = self->node,
                       .target = target,
                       .nodes = self->nodes,
                       .rails = self->rails,
                       .nonce_size = HANDSHAKE_NONCE_BYTES,
                       .boot_id_size = HANDSHAKE_BOOT_BYTES};

    snprintf(l.provider, sizeof(l.provider), "%s", self->provider);
    randombytes_buf(l.nonce, sizeof(l.nonce));
    memcpy(l.boot_id, self->boot_id, sizeof(l.boot_id));
    return l;
}

static int greet(struct handshake *h, const struct letter *l)
{
    return handshake_greet(h, (const uint8_t *)l, sizeof(*l));
}

static int greeted(struct handshake *h, const struct letter *l)
{
    const struct handshake_greeting g = {.version_min = l->version_min,
                                         .version_max = l->version_max,
                                         .node = l->node,
                                         .target = l->target,
                                         .nodes = l->nodes,
                                         .provider = l->provider,
                                         .rails = l->rails,
                                         .nonce = l->nonce,
                                         .nonce_size = l->nonce_size,
                                         .boot_id = l->boot_id,
                                         .boot_id_size = l->boot_id_size,
                                         .auth = l->auth,
                                         .share = l->share,
                                         .share_size = l->share_size};

    return handshake_greeted(h, &g, (const uint8_t *)l, sizeof(*l));
}

/* The two sides of a handshake. */
struct pair {
    struct handshake_identity a_self, b_self;
    struct handshake a, b; /* a has connected to b */
    struct letter from_a, from_b;
};

static void share(struct handshake *h, struct letter *l)
{
    uint8_t random[HANDSHAKE_SHARE_BYTES];

    if (h->self->auth == HANDSHAKE_AUTH_SECRET)
        return;
    randombytes_buf(random, sizeof(random));
    handshake_share(h, random);
    l->auth = h->self->auth;
    l->share_size = sizeof(l->share);
    memcpy(l->share, h->share, sizeof(l->share));
}

static int exchange_greetings(struct pair *p)
{
    struct letter from_b = letter_of(&p->b_self, p->a_self.node);
    int rc;

    handshake_begin(&p->a, &p->a_self, HANDSHAKE_INITIATOR, p->b_self.node);
    handshake_begin(&p->b, &p->b_self, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    p->from_a = letter_of(&p->a_self, p->b_self.node);
    share(&p->a, &p->from_a);
    share(&p->b, &from_b);
    CU_ASSERT_EQUAL(greet(&p->a, &p->from_a), 0);
    rc = greeted(&p->b, &p->from_a);
    if (rc < 0)
        return rc;
    p->from_b = from_b;
    CU_ASSERT_EQUAL(greet(&p->b, &p->from_b), 0);
    return greeted(&p->a, &p->from_b);
}

static struct pair pair_of(uint32_t a, uint32_t b)
{
    return (struct pair){.a_self = identity(a), .b_self = identity(b)};
}

static int prove(struct handshake *from, struct handshake *to)
{
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    CU_ASSERT_EQUAL(handshake_proof(from, mac), 0);
    return handshake_proved(to, mac, sizeof(mac));
}

static void succeeds(void)
{
    struct pair p = pair_of(1, 3);
    struct seal a, b;

    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(handshake_seal(&p.b, &b), -EPROTO); /* no seal before the proof */
    CU_ASSERT_EQUAL(prove(&p.a, &p.b), 0);
    CU_ASSERT_EQUAL(prove(&p.b, &p.a), 0);
    CU_ASSERT_EQUAL(handshake_seal(&p.a, &a), 0);
    CU_ASSERT_EQUAL(handshake_seal(&p.b, &b), 0);
    CU_ASSERT_EQUAL(memcmp(a.key, b.key, sizeof(a.key)), 0);
    CU_ASSERT_EQUAL(p.a.node, 3);
    CU_ASSERT_EQUAL(p.b.node, 1);
}

/* With MUNGE both sides agree on a key that is new for each connection and does not depend on a
 * secret. */
static void succeeds_without_secret(void)
{
    struct pair p = pair_of(1, 3), again = pair_of(1, 3);
    uint8_t old[HANDSHAKE_MAC_BYTES];
    struct seal a, b;

    p.a_self.auth = p.b_self.auth = again.a_self.auth = again.b_self.auth = HANDSHAKE_AUTH_MUNGE;
    memset(p.b_self.secret, 0x77, sizeof(p.b_self.secret));
    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(handshake_proof(&p.a, old), 0);
    CU_ASSERT_EQUAL(prove(&p.a, &p.b), 0);
    CU_ASSERT_EQUAL(prove(&p.b, &p.a), 0);
    CU_ASSERT_EQUAL(handshake_seal(&p.a, &a), 0);
    CU_ASSERT_EQUAL(handshake_seal(&p.b, &b), 0);
    CU_ASSERT_EQUAL(memcmp(a.key, b.key, sizeof(a.key)), 0);

    CU_ASSERT_EQUAL(exchange_greetings(&again), 0);
    CU_ASSERT_EQUAL(handshake_proved(&again.b, old, sizeof(old)), -EACCES);
    CU_ASSERT_PTR_NOT_NULL(strstr(again.b.text, "was not made for this connection"));
}

/* An attacker between the two sides replaces both key shares by his own. */
static void share_replaced(void)
{
    struct pair p = pair_of(1, 3);
    struct handshake between;
    uint8_t random[HANDSHAKE_SHARE_BYTES] = {7};
    struct letter altered;

    p.a_self.auth = p.b_self.auth = HANDSHAKE_AUTH_MUNGE;
    handshake_begin(&p.a, &p.a_self, HANDSHAKE_INITIATOR, 3);
    handshake_begin(&p.b, &p.b_self, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    handshake_begin(&between, &p.a_self, HANDSHAKE_INITIATOR, 3);
    handshake_share(&between, random);
    p.from_a = letter_of(&p.a_self, 3);
    p.from_b = letter_of(&p.b_self, 1);
    share(&p.a, &p.from_a);
    share(&p.b, &p.from_b);
    CU_ASSERT_EQUAL(greet(&p.a, &p.from_a), 0);
    altered = p.from_a;
    memcpy(altered.share, between.share, sizeof(altered.share));
    CU_ASSERT_EQUAL(greeted(&p.b, &altered), 0);
    CU_ASSERT_EQUAL(greet(&p.b, &p.from_b), 0);
    altered = p.from_b;
    memcpy(altered.share, between.share, sizeof(altered.share));
    CU_ASSERT_EQUAL(greeted(&p.a, &altered), 0);
    CU_ASSERT_EQUAL(prove(&p.a, &p.b), -EACCES); /* although the credential is good */
}

enum change {
    NO_CHANGE = 0,
    VERSION_OLD,
    VERSION_NEW,
    VERSION_TURNED,
    NODE_OURS,
    NODE_TOO_HIGH,
    NODES_DIFFER,
    TARGET_OTHER,
    PROVIDER_OTHER,
    RAILS_ONE,
    RAILS_MORE,
    NONCE_SHORT,
    BOOT_ID_LONG,
    BOOT_ID_OURS,
    AUTH_SECRET,
    AUTH_UNKNOWN,
    SHARE_NONE,
    SHARE_LONG,
    SHARE_ZERO,
};

/* Changes one field of the initiator's greeting that the responder must not accept. */
static void greetings_refused(void)
{
    static const struct {
        enum change change;
        int expected;
        const char *says;
    } rows[] = {
        {NO_CHANGE, 0, ""},
        {VERSION_OLD, -EPROTONOSUPPORT, "versions"},
        {VERSION_NEW, -EPROTONOSUPPORT, "versions"},
        {VERSION_TURNED, -EPROTO, "malformed"},
        {NODE_OURS, -EADDRINUSE, "two daemons claim node number 3"},
        {NODE_TOO_HIGH, -EINVAL, "not below 4"},
        {NODES_DIFFER, -EINVAL, "same list"},
        {TARGET_OTHER, -EADDRNOTAVAIL, "lists of nodes differ"},
        {PROVIDER_OTHER, -EXDEV, "same --provider"},
        {RAILS_ONE, 0, ""}, /* 0 rails mean 1 */
        {RAILS_MORE, -EXDEV, "node 1 has 2 rails to a peer, node 3 has 1"},
        {NONCE_SHORT, -EPROTO, "malformed"},
        {BOOT_ID_LONG, -EPROTO, "malformed"},
        {BOOT_ID_OURS, -ELOOP, "itself"},
        {AUTH_SECRET, -EXDEV, "node 1 authenticates by secret, node 3 by munge"},
        {AUTH_UNKNOWN, -EXDEV, "by something unknown"},
        {SHARE_NONE, -EPROTO, "a share of 0 bytes"},
        {SHARE_LONG, -EPROTO, "a share of 33 bytes"},
        {SHARE_ZERO, -EPROTO, "a share of 32 bytes that is none"}, /* any key would fit */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct handshake_identity a = identity(1), b = identity(3);
        struct letter l = letter_of(&a, 3);
        struct handshake h;
        uint8_t mac[HANDSHAKE_MAC_BYTES] = {0};

        switch (rows[i].change) {
        case NO_CHANGE:
            break;
        case VERSION_OLD:
            l.version_min = l.version_max = HANDSHAKE_VERSION_MIN - 1;
            break;
        case VERSION_NEW:
            l.version_min = l.version_max = HANDSHAKE_VERSION_MAX + 1;
            break;
        case VERSION_TURNED:
            l.version_min = 2, l.version_max = 1;
            break;
        case NODE_OURS:
            l.node = 3;
            break;
        case NODE_TOO_HIGH:
            l.node = 4;
            break;
        case NODES_DIFFER:
            l.nodes = 5;
            break;
        case TARGET_OTHER:
            l.target = 2;
            break;
        case PROVIDER_OTHER:
            l.provider[0] = 'x';
            break;
        case RAILS_ONE:
            l.rails = 1;
            break;
        case RAILS_MORE:
            l.rails = 2;
            break;
        case NONCE_SHORT:
            l.nonce_size--;
            break;
        case BOOT_ID_LONG:
            l.boot_id_size++;
            break;
        case BOOT_ID_OURS:
            memcpy(l.boot_id, b.boot_id, sizeof(l.boot_id));
            break;
        case AUTH_SECRET:
            b.auth = HANDSHAKE_AUTH_MUNGE;
            break;
        case AUTH_UNKNOWN:
            l.auth = 2;
            break;
        case SHARE_NONE:
        case SHARE_LONG:
        case SHARE_ZERO:
            b.auth = l.auth = HANDSHAKE_AUTH_MUNGE;
            l.share_size = rows[i].change == SHARE_NONE   ? 0
                           : rows[i].change == SHARE_LONG ? HANDSHAKE_SHARE_BYTES + 1
                                                          : HANDSHAKE_SHARE_BYTES;
            break;
        }
        handshake_begin(&h, &b, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
        CU_ASSERT_EQUAL(greeted(&h, &l), rows[i].expected);
        CU_ASSERT_PTR_NOT_NULL(strstr(h.text, rows[i].says));
        if (rows[i].expected < 0) { /* and refuses any further greeting */
            CU_ASSERT_EQUAL(greeted(&h, &l), -EPROTO);
            CU_ASSERT_EQUAL(handshake_proved(&h, mac, sizeof(mac)), -EPROTO);
        }
    }
}

/* Node 3 answers where node 2 should be. */
static void wrong_node_answers(void)
{
    struct handshake_identity a = identity(1), b = identity(3);
    struct letter ours = letter_of(&a, 2), theirs = letter_of(&b, 1);
    struct handshake h;

    handshake_begin(&h, &a, HANDSHAKE_INITIATOR, 2);
    CU_ASSERT_EQUAL(greet(&h, &ours), 0);
    CU_ASSERT_EQUAL(greeted(&h, &theirs), -EADDRNOTAVAIL);
}

static void wrong_secret(void)
{
    struct pair p = pair_of(0, 1);
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    p.b_self.secret[31] ^= 1;
    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(prove(&p.a, &p.b), -EACCES);
    CU_ASSERT_EQUAL(handshake_proof(&p.b, mac), -EPROTO); /* b has refused: no proof of b */
}

static void wrong_secret_of_responder(void)
{
    struct pair p = pair_of(0, 1);
    uint8_t mac[HANDSHAKE_MAC_BYTES] = {1};

    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(handshake_proved(&p.a, mac, sizeof(mac)), -EACCES);
    CU_ASSERT_PTR_NOT_NULL(strstr(p.a.text, "--secret"));
}

/* An attacker replays an old greeting and its proof: the nonce is new, so the proof does not
 * fit. */
static void replay(void)
{
    struct pair p = pair_of(0, 1);
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    struct handshake later;
    struct letter fresh;

    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(handshake_proof(&p.a, mac), 0);
    CU_ASSERT_EQUAL(handshake_proved(&p.b, mac, sizeof(mac)), 0);

    handshake_begin(&later, &p.b_self, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    CU_ASSERT_EQUAL(greeted(&later, &p.from_a), 0);
    fresh = letter_of(&p.b_self, 0);
    CU_ASSERT_EQUAL(greet(&later, &fresh), 0);
    CU_ASSERT_EQUAL(handshake_proved(&later, mac, sizeof(mac)), -EACCES);
}

/* The initiator's own greeting and its own proof are sent back to it. */
static void reflection(void)
{
    struct pair p = pair_of(0, 1);
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    struct handshake h;
    struct letter ours = letter_of(&p.a_self, 1);

    handshake_begin(&h, &p.a_self, HANDSHAKE_INITIATOR, 1);
    CU_ASSERT_EQUAL(greet(&h, &ours), 0);
    CU_ASSERT_EQUAL(greeted(&h, &ours), -ELOOP);

    CU_ASSERT_EQUAL(exchange_greetings(&p), 0);
    CU_ASSERT_EQUAL(handshake_proof(&p.a, mac), 0);
    CU_ASSERT_EQUAL(handshake_proved(&p.a, mac, sizeof(mac)), -EACCES);
}

/* A changed bit in either greeting makes the proof fail. */
static void altered_on_the_way(void)
{
    struct handshake_identity a_self = identity(0), b_self = identity(1);
    struct letter from_a = letter_of(&a_self, 1), from_b = letter_of(&b_self, 0), altered = from_b;
    struct handshake a, b;
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    altered.nonce[0] ^= 1;
    handshake_begin(&a, &a_self, HANDSHAKE_INITIATOR, 1);
    handshake_begin(&b, &b_self, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    CU_ASSERT_EQUAL(greet(&a, &from_a), 0);
    CU_ASSERT_EQUAL(greeted(&b, &from_a), 0);
    CU_ASSERT_EQUAL(greet(&b, &from_b), 0);
    CU_ASSERT_EQUAL(greeted(&a, &altered), 0);
    CU_ASSERT_EQUAL(handshake_proof(&a, mac), 0);
    CU_ASSERT_EQUAL(handshake_proved(&b, mac, sizeof(mac)), -EACCES);
}

static void out_of_order(void)
{
    struct handshake_identity a = identity(0), b = identity(1);
    struct letter l = letter_of(&b, 0), ours = letter_of(&a, 1);
    uint8_t mac[HANDSHAKE_MAC_BYTES] = {0};
    struct handshake h;

    handshake_begin(&h, &a, HANDSHAKE_INITIATOR, 1);
    CU_ASSERT_EQUAL(handshake_proof(&h, mac), -EPROTO);
    CU_ASSERT_EQUAL(greeted(&h, &l), -EPROTO); /* the initiator has not greeted yet */
    handshake_begin(&h, &a, HANDSHAKE_INITIATOR, 1);
    CU_ASSERT_EQUAL(greet(&h, &ours), 0);
    CU_ASSERT_EQUAL(greet(&h, &ours), -EPROTO);
    CU_ASSERT_EQUAL(handshake_proved(&h, mac, sizeof(mac)), -EPROTO);
    /* A responder receives one greeting and sends one: a second one, or one out of turn, is
     * refused. */
    handshake_begin(&h, &a, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    CU_ASSERT_EQUAL(greeted(&h, &l), 0);
    CU_ASSERT_EQUAL(greeted(&h, &l), -EPROTO);
    handshake_begin(&h, &a, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    CU_ASSERT_EQUAL(greeted(&h, &l), 0);
    CU_ASSERT_EQUAL(greet(&h, &ours), 0);
    CU_ASSERT_EQUAL(greet(&h, &ours), -EPROTO);
    CU_ASSERT_EQUAL(greeted(&h, &l), -EPROTO);
}

/* A greeting may name no provider. The agreed version is the highest that both sides speak. */
static void provider_and_version(void)
{
    struct handshake_identity a = identity(1), b = identity(3);
    struct letter l = letter_of(&a, 3);
    struct handshake_greeting none = {.version_min = l.version_min,
                                      .version_max = l.version_max,
                                      .node = l.node,
                                      .target = l.target,
                                      .nodes = l.nodes,
                                      .nonce = l.nonce,
                                      .nonce_size = l.nonce_size,
                                      .boot_id = l.boot_id,
                                      .boot_id_size = l.boot_id_size};
    struct handshake h;

    handshake_begin(&h, &b, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
    CU_ASSERT_EQUAL(handshake_greeted(&h, &none, (const uint8_t *)&l, sizeof(l)), -EPROTO);
    b.version_max = HANDSHAKE_VERSION_MAX + 2;
    for (uint32_t more = 0; more <= 3; more++) {
        l.version_max = HANDSHAKE_VERSION_MAX + more;
        handshake_begin(&h, &b, HANDSHAKE_RESPONDER, HANDSHAKE_ANY);
        CU_ASSERT_EQUAL(greeted(&h, &l), 0);
        CU_ASSERT_EQUAL(h.version, HANDSHAKE_VERSION_MAX + (more < 2 ? more : 2));
    }
}

/* Two connections between nodes 1 and 3: both ends keep the same one. */
static void two_connections(void)
{
    static const struct {
        uint32_t self, node, role;
        uint32_t other_initiator;
        int other_boot; /* 0: not proven, 1: the same daemon, 2: another */
        enum handshake_verdict expected;
    } rows[] = {
        /* Both nodes dial at once; node 1's connection stays, seen from either end. */
        {1, 3, HANDSHAKE_RESPONDER, 1, 0, HANDSHAKE_KEEP},
        {3, 1, HANDSHAKE_RESPONDER, 3, 0, HANDSHAKE_TAKE},
        {1, 3, HANDSHAKE_RESPONDER, 1, 1, HANDSHAKE_KEEP},
        {3, 1, HANDSHAKE_RESPONDER, 3, 1, HANDSHAKE_TAKE},
        {3, 1, HANDSHAKE_INITIATOR, 1, 1, HANDSHAKE_KEEP},
        {1, 3, HANDSHAKE_INITIATOR, 3, 1, HANDSHAKE_TAKE},
        /* One node dials again, which means that it has given the first connection up. */
        {1, 3, HANDSHAKE_RESPONDER, 3, 1, HANDSHAKE_TAKE},
        {3, 1, HANDSHAKE_RESPONDER, 1, 1, HANDSHAKE_TAKE},
        /* Another daemon claims the number. */
        {1, 3, HANDSHAKE_RESPONDER, 3, 2, HANDSHAKE_DUPLICATE},
        {3, 1, HANDSHAKE_RESPONDER, 3, 2, HANDSHAKE_DUPLICATE},
        {1, 3, HANDSHAKE_INITIATOR, 3, 2, HANDSHAKE_DUPLICATE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct handshake_identity self = identity(rows[i].self);
        struct handshake h = {.self = &self, .role = rows[i].role, .node = rows[i].node};
        uint8_t boot[HANDSHAKE_BOOT_BYTES] = {0};
        struct handshake_rival other = {.initiator = rows[i].other_initiator,
                                        .boot_id = rows[i].other_boot ? boot : NULL};

        boot[0] = rows[i].other_boot == 2;
        CU_ASSERT_EQUAL(handshake_choose(&h, &other), rows[i].expected);
    }
}

/* ---- sealed frames --------------------------------------------------------------------------- */

struct sealed {
    uint8_t bytes[SEAL_HEAD_MAX + 64];
    size_t size;
};

static struct sealed seal_of(struct seal *s, const char *body)
{
    struct sealed out;
    size_t length = strlen(body), head = seal_close(s, (const uint8_t *)body, length, out.bytes);

    memcpy(out.bytes + head, body, length);
    out.size = head + length;
    return out;
}

static void seals(struct seal *a, struct seal *b)
{
    *a = (struct seal){.role = HANDSHAKE_INITIATOR};
    *b = (struct seal){.role = HANDSHAKE_RESPONDER};
    memset(a->key, 9, sizeof(a->key));
    memset(b->key, 9, sizeof(b->key));
}

static void sealed_frames(void)
{
    struct seal a, b;
    struct sealed first;

    seals(&a, &b);
    /* Past 127 the varint of the counter takes two bytes. */
    for (int i = 0; i < 300; i++) {
        struct sealed f = seal_of(&a, "body");
        int at = seal_open(&b, f.bytes, f.size);

        CU_ASSERT_FATAL(at > 0);
        CU_ASSERT_EQUAL(memcmp(f.bytes + at, "body", 4), 0);
        CU_ASSERT_EQUAL(f.size - (size_t)at, 4);
    }
    first = seal_of(&b, "");
    CU_ASSERT(seal_open(&a, first.bytes, first.size) > 0);
}

static void sealed_frames_refused(void)
{
    struct seal a, b, before;
    struct sealed first, second;

    seals(&a, &b);
    first = seal_of(&a, "first");
    second = seal_of(&a, "second");
    before = b;
    /* A change of any bit is found. */
    for (size_t bit = 0; bit < 8 * first.size; bit++) {
        struct sealed f = first;

        f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_EQUAL(seal_open(&b, f.bytes, f.size), -EBADMSG);
    }
    /* A change of any length is found. */
    for (size_t size = 0; size < first.size; size++)
        CU_ASSERT_EQUAL(seal_open(&b, first.bytes, size), -EBADMSG);
    CU_ASSERT_EQUAL(memcmp(&b, &before, sizeof(b)), 0);
    CU_ASSERT_EQUAL(seal_open(&b, second.bytes, second.size), -EBADMSG); /* first one lost */
    CU_ASSERT_EQUAL(seal_open(&a, first.bytes, first.size), -EBADMSG);   /* reflected */
    CU_ASSERT(seal_open(&b, first.bytes, first.size) > 0);
    CU_ASSERT_EQUAL(seal_open(&b, first.bytes, first.size), -EBADMSG); /* replayed */
    CU_ASSERT(seal_open(&b, second.bytes, second.size) > 0);
}

int main(void)
{
    CU_TestInfo tests[] = {{"succeeds", succeeds},
                           {"succeeds without a secret", succeeds_without_secret},
                           {"share replaced", share_replaced},
                           {"greetings refused", greetings_refused},
                           {"the wrong node answers", wrong_node_answers},
                           {"wrong secret", wrong_secret},
                           {"wrong secret of the responder", wrong_secret_of_responder},
                           {"replay", replay},
                           {"reflection", reflection},
                           {"altered on the way", altered_on_the_way},
                           {"out of order", out_of_order},
                           {"provider and version", provider_and_version},
                           {"two connections", two_connections},
                           {"sealed frames", sealed_frames},
                           {"sealed frames refused", sealed_frames_refused},
                           CU_TEST_INFO_NULL};

    return sodium_init() < 0 ? 1 : suite_run("handshake", tests);
}
