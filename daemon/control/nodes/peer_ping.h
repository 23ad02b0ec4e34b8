/*
 * Pings between two engines, which do not use their fabric: they show why a peer's fabric is silent
 * (engine/peer/keepalive.h). Between nodes, pings travel over the link of the daemons.
 *
 * The control thread answers a ping at once, and the progress thread also answers it, through the
 * fabric. The control thread's answer contains how many pings the progress thread has answered: two
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
    struct worker *worker;                         /* the worker of our engine */
    uint32_t number;                               /* the other engine's number */
    void (*send)(void *context, Pwc__Ping *frame); /* sends to the other side */
    void *context;
    uint64_t generation;  /* of the link: answers that belong to an earlier link are ignored */
    bool asking;          /* the call for the other side's last question has not returned */
    uint64_t count;       /* how many questions our progress thread has answered */
    uint64_t bytes;       /* bytes that may be ahead of that thread's last answer in the fabric */
    uint32_t asked;       /* our questions since the other side's last answer */
    uint64_t their_count; /* `count` in their last answer; UINT64_MAX: none yet */
    uint64_t answered_ns; /* when their_count came */
    bool stuck;           /* the count before their_count was the same */
};

void peer_ping_init(struct peer_ping *b, struct worker *worker, uint32_t number,
                    void (*send)(void *context, Pwc__Ping *frame), void *context);
/* Restarts, after the link has ended. */
void peer_ping_forget(struct peer_ping *b);
/* Asks whether the other side lives. Up to `bytes` bytes of ours may be queued in the fabric ahead
 * of our progress thread's own answer. */
void peer_ping_ask(struct peer_ping *b, uint64_t bytes);
/* Takes a frame from the other side. */
void peer_ping_take(struct peer_ping *b, const Pwc__Ping *frame);
/* Why the peer's fabric may be silent, in words. */
const char *peer_ping_why(const struct peer_ping *b);

#endif
