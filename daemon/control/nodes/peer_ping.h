/*
 * Pings between two engines, beside their fabric: they say why a peer's fabric is silent
 * (engine/peer/keepalive.h). Between nodes they travel over the control connection.
 *
 * The control thread answers a question at once, and the progress thread answers it through the
 * fabric. The control thread's answer has the count of the progress thread's signs of life: two
 * answers with the same count show that the progress thread is stuck.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_PEER_PING_H
#define PWC_CONTROL_PEER_PING_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"

struct worker;

struct peer_ping {
    struct worker *worker;                         /* of our engine */
    uint32_t number;                               /* of the other */
    void (*send)(void *context, Pwc__Ping *frame); /* to the other side */
    void *context;
    uint64_t generation;  /* of the link: answers for an earlier one are ignored */
    bool asking;          /* the call for their last question has not returned */
    uint64_t count;       /* signs of life that our progress thread has given */
    uint64_t bytes;       /* that may be ahead of the last sign, in the fabric */
    uint32_t asked;       /* our questions since their last answer */
    uint64_t their_count; /* `count` in their last answer; UINT64_MAX: none yet */
    uint64_t answered_ns; /* when that answer came */
    bool stuck;           /* the answer before it had the same count */
};

void peer_ping_init(struct peer_ping *b, struct worker *worker, uint32_t number,
                    void (*send)(void *context, Pwc__Ping *frame), void *context);
/* The link has ended: restarts. */
void peer_ping_forget(struct peer_ping *b);
/* Asks the other side for a sign of life. Up to this many bytes of ours may be queued ahead of our
 * own. */
void peer_ping_ask(struct peer_ping *b, uint64_t bytes);
/* Takes a frame from the other side. */
void peer_ping_take(struct peer_ping *b, const Pwc__Ping *frame);
/* Why the peer's fabric may be silent, in words. */
const char *peer_ping_why(const struct peer_ping *b);

#endif
