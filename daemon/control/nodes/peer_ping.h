/*
 * Signs of life between two engines, beside their fabric: questions, answers, and what they tell of
 * a peer whose fabric is silent (engine/peer/keepalive.h). Between nodes they travel over the
 * control connection.
 *
 * A question is answered at once by the control thread, and by the progress thread through the
 * fabric. The answer counts what the progress thread has done so far, so two answers with one count
 * between them tell that it is stuck.
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
    uint64_t generation;  /* of the link; answers of earlier ones are void */
    bool asking;          /* our progress thread has not come back from their last question */
    uint64_t count;       /* signs that it has given */
    uint64_t bytes;       /* that the last may stand behind */
    uint32_t asked;       /* questions of ours without an answer since */
    uint64_t their_count; /* as their last answer says; UINT64_MAX: none yet */
    uint64_t answered_ns; /* when it came */
    bool stuck;           /* and the one before it said the same */
};

void peer_ping_init(struct peer_ping *b, struct worker *worker, uint32_t number,
                    void (*send)(void *context, Pwc__Ping *frame), void *context);
/* The link has ended. */
void peer_ping_forget(struct peer_ping *b);
/* Asks the other side. */
void peer_ping_ask(struct peer_ping *b);
/* A frame of the other side's. */
void peer_ping_take(struct peer_ping *b, const Pwc__Ping *frame);
/* In words, why its fabric may be silent. */
const char *peer_ping_why(const struct peer_ping *b);

#endif
