/*
 * The other daemon of a plan, made up: it knows the secret, dials a real one, and then says what it
 * likes. Thread: one at a time.
 */
#ifndef PWC_TESTS_CONTROL_RAW_PEER_H
#define PWC_TESTS_CONTROL_RAW_PEER_H

#include "proto/control.pb-c.h"
#include "daemon/peering/handshake.h"
#include "tests/control/plan.h"

struct raw_peer {
    int socket;
    struct handshake_identity self;
    struct handshake handshake;
    struct seal seal;
    bool linked; /* frames are sealed */
};

/* As `node` of the plan, towards the other one. Nothing is said yet. */
bool raw_peer_dial(struct raw_peer *p, const struct plan *plan, uint32_t node);
void raw_peer_close(struct raw_peer *p);

/* The greeting and the proof that would be right now; what they point to is the peer's. */
void raw_peer_greeting(struct raw_peer *p, Pwc__Greeting *out);
void raw_peer_proof(struct raw_peer *p, Pwc__Proof *out);
/* One frame: sealed once linked. Notes our own greeting. */
bool raw_peer_send(struct raw_peer *p, const Pwc__PeerFrame *frame);
/* The next frame, the caller's to free. NULL: hang-up, or nothing within 5 s. */
Pwc__PeerFrame *raw_peer_next(struct raw_peer *p);
/* The whole handshake. */
bool raw_peer_link(struct raw_peer *p, const struct plan *plan, uint32_t node);

#endif
