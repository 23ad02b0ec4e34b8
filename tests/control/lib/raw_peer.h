/*
 * The other daemon of a plan, played by the test: it knows the secret, connects to a real daemon,
 * and then sends any frames. Thread: one at a time.
 */
#ifndef PWC_TESTS_CONTROL_RAW_PEER_H
#define PWC_TESTS_CONTROL_RAW_PEER_H

#include "proto/control.pb-c.h"
#include "daemon/peering/handshake.h"
#include "tests/control/lib/plan.h"

struct raw_peer {
    int socket;
    struct handshake_identity self;
    struct handshake handshake;
    struct seal seal;
    bool linked; /* the handshake is done: frames are sealed */
};

/* Connects to the other daemon as `node` of the plan. Nothing is sent yet. */
bool raw_peer_dial(struct raw_peer *p, const struct plan *plan, uint32_t node);
void raw_peer_close(struct raw_peer *p);

/* Build the greeting and the proof that would be right now. The memory they point to belongs to the
 * peer. */
void raw_peer_greeting(struct raw_peer *p, Pwc__Greeting *out);
void raw_peer_proof(struct raw_peer *p, Pwc__Proof *out);
/* Sends one frame, sealed once the link is up. Notes our own greeting when the frame is one. */
bool raw_peer_send(struct raw_peer *p, const Pwc__PeerFrame *frame);
/* Reads the next frame, which the caller frees. NULL: the other side hung up, or sent nothing
 * within 5 s. */
Pwc__PeerFrame *raw_peer_next(struct raw_peer *p);
/* Does the whole handshake. */
bool raw_peer_link(struct raw_peer *p, const struct plan *plan, uint32_t node);

#endif
